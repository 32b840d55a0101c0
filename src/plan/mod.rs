//! The plan: a three-way difference (last applied, desired, observed) made into a graph of nodes, as bytes.
//! Pure: the same inputs give the same bytes.

pub mod last_applied;
pub mod model;

pub use last_applied::{Applied, LastApplied};
pub use model::{Difference, Member, Node, NodeKind, Plan, Reason};
