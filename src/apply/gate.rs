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

/// Checks hosts. Only hosts that are already done are given; with fewer than two there is nobody to pair.
pub trait Gatekeeper: Send + Sync {
    /// Are these hosts in service?
    fn check<'a>(&'a self, hosts: &'a [String]) -> BoxFuture<'a, GateResult>;
}
