//! Whole runs against simulated fleets, in virtual time: the stories of a run, and the laws of the
//! design as properties.

#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod automatic_rollback;
mod drains;
mod edited_plans;
#[path = "../hostile/mod.rs"]
mod hostile;
mod laws;
mod lost_locks;
mod names;
mod nodes;
mod out_of_service;
mod platform;
mod power_cycles;
mod records;
mod rollout;
mod room;
mod runs;
mod secrets;
mod switches;
