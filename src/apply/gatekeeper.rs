//! What proves that hosts are in service again. The checks themselves live in `verify`.

use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Severity};
use railwright_state::journal::GateFailure;
use railwright_transport::BoxFuture;
use std::collections::BTreeSet;

/// What a gate found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateResult {
    /// Errors mean that it did not pass; warnings are only shown.
    pub problems: Vec<Diagnostic>,
    /// The hosts on which something of the spec was checked.
    pub checked: BTreeSet<String>,
    /// The hosts that a check found something of by themselves: one that passed earlier may be
    /// among them.
    pub failed: BTreeSet<String>,
}

impl GateResult {
    /// Why it did not pass, in one line; nothing when it did.
    pub fn failure(&self) -> Option<String> {
        let more = self.errors().count().saturating_sub(1);
        let more = if more > 0 {
            format!(" (and {more} more)")
        } else {
            String::new()
        };
        Some(format!("{}{more}", self.errors().next()?.message))
    }

    /// The first check that failed, to be remembered; nothing when it passed.
    pub fn first_failure(&self) -> Option<GateFailure> {
        let first = self.errors().next()?;
        Some(GateFailure {
            code: first.code.to_string(),
            check: one_line(&first.message, 300),
        })
    }

    fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
    }
}

/// Checks hosts.
pub trait Gatekeeper: Send + Sync {
    /// Are these hosts in service? Only hosts that are done are given; `proven` are those that
    /// passed earlier in the run, also before an interruption, for whoever has no partner to be
    /// paired with.
    fn check<'a>(&'a self, hosts: &'a [String], proven: &'a [String]) -> BoxFuture<'a, GateResult>;
}
