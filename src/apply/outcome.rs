//! How a run ended, as a value for the screen and for the exit code.

use railwright_base::{Diagnostic, Severity};
use railwright_state::{Outcome, Skip};
use std::collections::BTreeSet;

/// The exit classes of a run, worst first (design: exit codes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The user stopped it.
    Interrupted,
    /// Refused: nothing was changed.
    Refused,
    /// Stopped by the budget or a gate.
    Stopped,
    /// Something failed.
    Failed,
    /// Something is unknown, unreachable, stale or held.
    Incomplete,
    /// All that is left waits for a power cycle, which is done by hand; `resume` proves it and goes on.
    Waiting,
    /// All done, or nothing to do.
    Done,
}

impl Ending {
    /// The word in the journal.
    pub fn word(self) -> &'static str {
        match self {
            Ending::Interrupted => "interrupted",
            Ending::Refused => "refused",
            Ending::Stopped => "stopped",
            Ending::Failed => "failed",
            Ending::Incomplete => "incomplete",
            Ending::Waiting => "waiting",
            Ending::Done => "done",
        }
    }
}

/// How many steps ended how; gates and barriers are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Counts {
    /// Changed.
    pub done: usize,
    /// As wished before anything was done.
    pub already: usize,
    /// Tried, and not as wished.
    pub failed: usize,
    /// Nobody knows.
    pub unknown: usize,
    /// On hosts that could not be reached.
    pub unreachable: usize,
    /// The host moved since the plan was made.
    pub stale: usize,
    /// Held.
    pub held: usize,
    /// Not begun.
    pub skipped: usize,
}

impl Counts {
    /// Counts one step.
    pub fn add(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Done { changed: true } => &mut self.done,
            Outcome::Done { changed: false } => &mut self.already,
            Outcome::Failed { .. } => &mut self.failed,
            // Whoever has the lock now may have changed what it was about.
            Outcome::Unknown { .. } | Outcome::LockLost { .. } => &mut self.unknown,
            Outcome::Unreachable { .. } => &mut self.unreachable,
            Outcome::Stale { .. } => &mut self.stale,
            Outcome::Held { .. } => &mut self.held,
            Outcome::Skipped { .. } => &mut self.skipped,
        } += 1;
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyOutcome {
    /// The exit class.
    pub ending: Ending,
    /// The run's name; nothing when it was refused before it began.
    pub run: Option<String>,
    /// How many steps ended how.
    pub counts: Counts,
    /// True when `resume` has something to go on with.
    pub resumable: bool,
    /// Hosts that wait for a power cycle, wave by wave.
    pub power_cycles: Vec<Vec<String>>,
    /// What went wrong, in the order in which it was seen; warnings among it.
    pub problems: Vec<Diagnostic>,
    /// Every node of the plan with its outcome, in the plan's order.
    pub outcomes: Vec<(String, Outcome)>,
}

impl ApplyOutcome {
    /// A plan with nothing to do; incomplete when something was unknown or held.
    pub fn without_work(incomplete: bool) -> Self {
        let ending = if incomplete { Ending::Incomplete } else { Ending::Done };
        ApplyOutcome { ending, ..ApplyOutcome::refused(Vec::new()) }
    }

    /// Ended before anything was changed.
    pub fn not_begun(problems: Vec<Diagnostic>, is_interrupted: bool) -> Self {
        let ending = if is_interrupted { Ending::Interrupted } else { Ending::Refused };
        ApplyOutcome { ending, ..ApplyOutcome::refused(problems) }
    }

    /// Refused before anything was changed.
    pub fn refused(problems: Vec<Diagnostic>) -> Self {
        ApplyOutcome {
            ending: Ending::Refused,
            run: None,
            counts: Counts::default(),
            resumable: false,
            power_cycles: Vec::new(),
            problems,
            outcomes: Vec::new(),
        }
    }
}

/// The exit class of a run with these outcomes; `waits` are the steps that wait for nothing but a power cycle.
pub fn ending(outcomes: &[(String, Outcome)], waits: &BTreeSet<usize>, interrupted: bool, problems: &[Diagnostic]) -> Ending {
    let of_one = |(n, (_, outcome)): (usize, &(String, Outcome))| match outcome {
        Outcome::Held { .. } if waits.contains(&n) => Ending::Waiting,
        Outcome::Skipped { because: Skip::Interrupted } => Ending::Interrupted,
        Outcome::Skipped { because: Skip::Budget | Skip::Gate { .. } } => Ending::Stopped,
        Outcome::Skipped { because: Skip::Window | Skip::Deadline } => Ending::Incomplete,
        Outcome::Failed { .. } => Ending::Failed,
        Outcome::Done { .. } => Ending::Done,
        _ => Ending::Incomplete,
    };
    let gate_failed = outcomes.iter().any(|(id, outcome)| id.starts_with("gate/") && matches!(outcome, Outcome::Failed { .. }));
    let mut worst = outcomes.iter().enumerate().map(of_one).min().unwrap_or(Ending::Done);
    if gate_failed {
        worst = worst.min(Ending::Stopped);
    }
    if problems.iter().any(|problem| problem.severity == Severity::Error) {
        worst = worst.min(Ending::Incomplete);
    }
    if interrupted && worst != Ending::Done { Ending::Interrupted } else { worst }
}
