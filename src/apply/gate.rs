//! What proves that hosts are in service again. The checks themselves live in `verify`.

use crate::base::{Diagnostic, Severity};
use crate::transport::BoxFuture;

/// What a gate found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateResult {
    /// Errors mean that it did not pass; warnings are only told.
    pub problems: Vec<Diagnostic>,
}

impl GateResult {
    /// Why it did not pass, in one line; nothing when it did.
    pub fn failure(&self) -> Option<String> {
        let errors: Vec<&Diagnostic> = self.problems.iter().filter(|p| p.severity == Severity::Error).collect();
        let first = errors.first()?;
        let more = if errors.len() > 1 { format!(" (and {} more)", errors.len() - 1) } else { String::new() };
        Some(format!("{}{more}", first.message))
    }
}

/// Checks hosts.
pub trait Gatekeeper: Send + Sync {
    /// Are these hosts in service? Only hosts that are done are given; `proven` are those that passed earlier in the
    /// run, also before an interruption, for whoever has no partner to be paired with.
    fn check<'a>(&'a self, hosts: &'a [String], proven: &'a [String]) -> BoxFuture<'a, GateResult>;
}
