//! Proof by measurement: links, GIDs, path MTU, marks and real RDMA traffic between pairs, compared
//! with what the spec states.
//!
//! One file a check, its evaluation pure: raw tool output in, verdict out. `run` asks the hosts:
//! first each by itself, then pairs in rounds (`schedule`) in which no host is in two pairs. A pair
//! is measured by `pair` (one way after the other by `pair/direction`), what it has to reach is
//! `expected_bandwidth`, and `traffic` compares the two. What we start on a host has a
//! time limit there: the host itself ends it even if we die. `wave_check` is the same for one wave
//! of a rollout. `cabling` compares what devices hear of each other with the cables of the spec,
//! and starts nothing; nor does `fabric`, which looks at both ends of every link and at their
//! counters. `nccl` reads logs of jobs, `host_job` runs one on hosts, `nccl_run` makes checks of
//! both, `ray` looks into the pods of a cluster of Ray, and `image` looks for the libraries that
//! programs load.

pub mod cabling;
pub mod counters;
mod eadm;
pub mod expected_bandwidth;
pub mod fabric;
pub mod flow;
pub mod gid;
pub mod gpudirect;
mod gpus;
pub mod hardware;
pub mod host_job;
pub mod image;
pub mod link;
mod machine;
pub mod marks;
pub mod module_check;
pub mod nccl;
pub mod nccl_run;
mod pair;
pub mod path_mtu;
mod pcie;
pub mod perftest;
pub mod rail_facts;
pub mod ray;
pub mod request;
pub mod result;
mod routes;
pub mod run;
mod running;
#[cfg(test)]
mod samples;
pub mod schedule;
mod session;
#[cfg(test)]
mod tests;
mod together;
pub mod traffic;
pub mod wave_check;

pub use nccl_run::{NcclFigure, NcclRun, NcclWork};
pub use request::{
    Expectations, ExpectedGpus, ExpectedMarks, ExpectedRail, FabricFacts, GidKind, ModuleCheck,
    VerifyHost, VerifyRequest,
};
pub use result::{CheckResult, CheckVerdict, Measurement, VerifyCheck, VerifyReport};
pub use run::{VerifyEvent, verify_hosts};
pub use wave_check::{GateReport, describe_gate_failure, verify_wave};
