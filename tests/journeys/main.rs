//! Journeys at the seam of the command line, as transcripts. One binary for all of them: linking is
//! what costs.

// A journey that cannot go on stops where it is; that is what `unwrap` says here.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod cabling;
mod chain;
mod connections;
#[path = "../kubernetes/rig.rs"]
#[allow(
    dead_code,
    clippy::print_stderr,
    reason = "the stories of Kubernetes use the rest of it; it says what it skips"
)]
mod control_plane;
mod documents;
mod drains;
mod drift;
mod fabric;
mod fencing;
mod fixture;
mod foreign_files;
mod golden;
mod host_jobs;
mod hosts;
mod identity;
mod image;
mod interrupted;
mod job_compare;
mod job_render;
mod jobs;
mod knowledge;
mod kubelet;
mod left_cordoned;
mod lost;
mod machine;
#[path = "../kubernetes/meanwhile.rs"]
#[allow(dead_code, reason = "the stories of Kubernetes use the rest of it")]
mod meanwhile;
mod moved;
mod nccl_gate;
mod no_ssh;
mod out_of_service;
mod pasted;
mod plans;
mod read_only;
mod recorded_logs;
#[path = "../kinds/repositories.rs"]
#[allow(dead_code, reason = "the stories of the kinds use the rest of it")]
mod repositories;
#[path = "../kinds/rig.rs"]
#[allow(dead_code, reason = "the stories of the kinds use the rest of it")]
mod rig;
mod rollout;
#[path = "../transport/server.rs"]
#[allow(dead_code, reason = "the stories of the transport use the rest of it")]
mod server;
mod support;
mod timer;
mod translate;
#[path = "../transport/user.rs"]
mod user;
mod validate;
mod workloads;
