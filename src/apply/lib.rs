//! Applies a plan: a pure scheduler decides what may start, the executor does it and journals it,
//! and what a crash or an interruption left open is found out again by `resume`.
//!
//! Before a run: `plan_validity` looks at the plan (`plan_authorization`: at what it does;
//! `plan_graph_check`: at what holds its steps together), `preflight` at the hosts (`running_steps`:
//! nothing of an earlier run goes on there), `host_locks` takes their locks, and `run` begins
//! (`run_history`: what earlier parts of it and earlier runs left).
//!
//! During it: `turn` is the loop between the pure `scheduler` (over `steps`) and the tasks.
//! `change` and `reboot` execute one step each, decided by `precondition`; `by_hand` proves what a
//! person does; `drain` and `uncordon` (over `cluster_node`) empty a node of a Kubernetes cluster
//! and give it back. `watch` tells the time and orders, `outage_check` who else is out of service,
//! and `heartbeat` keeps the locks.
//!
//! **Whether a host may be disturbed now** is decided in four places, one after the other:
//! `scheduler/admission` (`max_unavailable`, with what `outage_check` found), `watch` (the window),
//! `occupied` (its node is empty), and on the host itself, where each script checks lock and fencing
//! token (`render_lock_check` of `transport/fenced_script`). The gate itself is behind
//! `gatekeeper`; that one which failed stops the rollout is `Scheduler::gate_answered`, and what it
//! holds back `scheduler/step_outcome`.
//!
//! After it: `status` and `estimate` say how it stands; `resume` goes on with a run that was left,
//! `return_to_service` records that somebody takes a host as in service; `lock_steal` shows locks and
//! takes them away.

mod access;
mod by_hand;
pub mod change;
mod cluster_node;
pub mod context;
mod drain;
pub mod estimate;
pub mod gatekeeper;
mod heartbeat;
mod host_locks;
mod limits_of_now;
pub mod lock_steal;
mod occupied;
mod outage_check;
mod outcome;
mod plan_authorization;
pub mod plan_graph_check;
pub mod plan_validity;
pub mod precondition;
pub mod preflight;
pub mod reboot;
mod records;
pub mod resume;
mod return_to_service;
pub mod run;
mod run_history;
pub mod running_steps;
pub mod scheduler;
#[cfg(test)]
mod scheduler_tests;
mod shared;
pub mod signal;
pub mod status;
pub mod steps;
pub mod target_take_over;
pub mod trouble;
mod turn;
mod uncordon;
pub mod unready;
mod watch;

pub use context::{Context, DesiredSpec, EventSink, ExecutionOptions, RunEvent};
pub use estimate::{Estimate, Past};
pub use gatekeeper::{GateResult, Gatekeeper};
pub use outcome::{ApplyOutcome, RunExitClass, StepCounts};
pub use resume::{Decisions, resume_run};
pub use return_to_service::return_to_service;
pub use run::apply_plan;
