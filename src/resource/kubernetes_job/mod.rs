//! Jobs of a cluster, and what keeps them: the object that an operator turns into pods, those pods,
//! and what nodes have left of what the pods ask for. Only what is looked at is kept of each
//! object.

pub mod job;
pub mod pod;
pub mod room;

pub use job::JobNow;
pub use pod::{JobPod, PodOwner, PodTermination};
pub use room::Room;
