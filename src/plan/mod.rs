//! The plan: a three-way difference (last applied, desired, observed) made into a graph of nodes, as bytes.
//! Pure: the same inputs give the same bytes.
//!
//! `judge` says of each resource whether and why it changes; `select` narrows; `owed` adds what a change makes others owe; `group`
//! joins changes that go out together; `order` puts edges and reboots between them; `waves` takes hosts in turn, by the rules of `policy`;
//! `dropped` names what stays behind; `make` runs these in order.

pub mod dropped;
pub mod file;
pub mod group;
pub mod judge;
pub mod last_applied;
pub mod make;
pub mod model;
pub mod order;
mod owed;
pub mod policy;
pub mod select;
#[cfg(test)]
mod tests;
pub mod waves;

pub use last_applied::{Applied, LastApplied};
pub use make::{Header, Inputs, make};
pub use model::{Difference, Dropped, InventoryOrigin, Member, Node, NodeKind, Plan, Proof, Reason, UnknownFinding};
pub use policy::RolloutPolicy;
pub use select::Selection;
