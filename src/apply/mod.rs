//! Carries out a plan: a pure scheduler decides what may start, the executor does it and journals it, and what a crash
//! or an interruption left open is found out again by `resume`.

pub mod scheduler;
#[cfg(test)]
mod scheduler_tests;
pub mod steps;
