//! Carries out a plan: a pure scheduler decides what may start, the executor does it and journals
//! it, and what a crash or an interruption left open is found out again by `resume`.
//!
//! `refusal` looks at the plan (`wished`: at what it does; `frame`: at what holds its steps
//! together) and `preflight` at the hosts before anything is changed (`idle`: nothing of an earlier
//! run goes on there); `scheduler` (over `steps`) says what may start; `change` and `reboot` carry
//! out one step each, judged by `precondition`, `by_hand` proves what a person does, `drain` and
//! `uncordon` (over `cluster_node`) empty a node of a Kubernetes cluster and give it back; `run`
//! begins (`run_history`: what earlier parts of it and earlier runs left), `turn` is the loop
//! between them, told by `watch` of the time and of orders and by `lookout` who else is out of
//! service, while `heart` keeps its locks alive (`host_locks` takes them and lets them go, `locks`
//! shows them and takes them away); `status` and `estimate` say how it stands; `resume` goes on
//! with a run that was left, `return_to_service` records that somebody takes a host as in service.

mod access;
mod by_hand;
pub mod change;
mod cluster_node;
pub mod context;
mod drain;
pub mod estimate;
pub mod frame;
pub mod gate;
mod heart;
mod host_locks;
pub mod idle;
pub mod locks;
mod lookout;
mod occupied;
mod outcome;
pub mod precondition;
pub mod preflight;
pub mod reboot;
mod records;
pub mod refusal;
pub mod resume;
mod return_to_service;
pub mod run;
mod run_history;
pub mod scheduler;
#[cfg(test)]
mod scheduler_tests;
mod shared;
pub mod signal;
pub mod status;
pub mod steps;
pub mod take_over;
pub mod trouble;
mod turn;
mod uncordon;
pub mod unready;
mod watch;
mod wished;

pub use context::{Context, DesiredSpec, EventSink, ExecutionOptions, RunEvent};
pub use estimate::{Estimate, Past};
pub use gate::{GateResult, Gatekeeper};
pub use outcome::{ApplyOutcome, RunExitClass, StepCounts};
pub use resume::{Decisions, resume_run};
pub use return_to_service::return_to_service;
pub use run::apply_plan;
