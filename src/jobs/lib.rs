//! Jobs as they stand in a cluster, and why one did not go.

pub mod doctor;
pub mod job;
