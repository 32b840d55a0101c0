//! A cluster of Ray, proven as it runs: every pod asks for the devices of every pool, its node
//! gives them, they are in the pod, and RDMA traffic runs between two pods on two nodes. `facts` is
//! what pods say of themselves, `judge` what that means, `run` asks them.
//!
//! Ray itself sees nothing of RDMA devices: they steer the scheduler alone, and a cluster whose
//! pods have none works all the same.

mod facts;
mod judge;
mod run;

pub use facts::{Crossing, DeviceTrafficResult, InspectedRayPod, Pool, RayClusterFacts};
pub use judge::{RayProof, RayProofTopic, check_ray_cluster};
pub use run::RayProofRequest;
