//! A cluster of Ray, checked as it runs: every pod asks for the devices of every pool, its node
//! gives them, they are in the pod, and RDMA traffic runs between two pods on two nodes. `facts` is
//! what was read of pods, `evaluation` what that means, `run` reads it.
//!
//! Ray itself sees nothing of RDMA devices: they steer the scheduler alone, and a cluster whose
//! pods have none works all the same.

mod evaluation;
mod facts;
mod run;

pub use evaluation::{RayProof, RayProofTopic, check_ray_cluster};
pub use facts::{Crossing, DeviceTrafficResult, InspectedRayPod, Pool, RayClusterFacts};
pub use run::RayProofRequest;
