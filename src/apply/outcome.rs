//! How a run ended, as a value for the screen and for the exit code.

use railwright_base::{Diagnostic, Severity};
use railwright_state::{NodeOutcome, Skip};
use std::collections::BTreeSet;

/// The exit classes of a run, worst first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RunExitClass {
    /// The user stopped it.
    Interrupted,
    /// Refused: nothing was changed.
    Refused,
    /// Stopped by the budget or a gate.
    Stopped,
    /// Something failed.
    Failed,
    /// Something is unknown, unreachable, stale or blocked.
    Incomplete,
    /// All that is left waits for a power cycle, which is done by hand; `resume` proves it and goes
    /// on.
    Waiting,
    /// All done, or nothing to do.
    Done,
}

impl RunExitClass {
    /// The word in the journal.
    pub fn word(self) -> &'static str {
        match self {
            RunExitClass::Interrupted => "interrupted",
            RunExitClass::Refused => "refused",
            RunExitClass::Stopped => "stopped",
            RunExitClass::Failed => "failed",
            RunExitClass::Incomplete => "incomplete",
            RunExitClass::Waiting => "waiting",
            RunExitClass::Done => "done",
        }
    }
}

/// How many steps ended how; gates and barriers are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct StepCounts {
    /// Changed.
    pub done: usize,
    /// In sync before anything was done.
    pub already: usize,
    /// Tried, and not as desired.
    pub failed: usize,
    /// Nobody knows.
    pub unknown: usize,
    /// On hosts that could not be reached.
    pub unreachable: usize,
    /// The host moved since the plan was made.
    pub stale: usize,
    /// Blocked.
    pub blocked: usize,
    /// Not begun.
    pub skipped: usize,
}

impl StepCounts {
    /// Counts one step.
    pub fn add(&mut self, outcome: &NodeOutcome) {
        *match outcome {
            NodeOutcome::Done { changed: true } => &mut self.done,
            NodeOutcome::Done { changed: false } => &mut self.already,
            NodeOutcome::Failed { .. } => &mut self.failed,
            // Whoever has the lock now may have changed what it was about.
            NodeOutcome::Unknown { .. } | NodeOutcome::LockLost { .. } => &mut self.unknown,
            NodeOutcome::Unreachable { .. } => &mut self.unreachable,
            NodeOutcome::Stale { .. } => &mut self.stale,
            NodeOutcome::Blocked { .. } => &mut self.blocked,
            NodeOutcome::Skipped { .. } => &mut self.skipped,
        } += 1;
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ApplyOutcome {
    /// The exit class.
    pub ending: RunExitClass,
    /// The run's name; nothing when it was refused before it began.
    pub run: Option<String>,
    /// How many steps ended how.
    pub counts: StepCounts,
    /// True when `resume` has something to go on with.
    pub resumable: bool,
    /// Hosts that wait for a power cycle, wave by wave.
    pub power_cycles: Vec<Vec<String>>,
    /// What went wrong, in the order in which it was seen; warnings among it.
    pub problems: Vec<Diagnostic>,
    /// Every node of the plan with its outcome, in the plan's order.
    pub outcomes: Vec<(String, NodeOutcome)>,
}

impl ApplyOutcome {
    /// A plan with nothing to do; incomplete when something was unknown or blocked.
    pub fn without_work(incomplete: bool) -> Self {
        let ending = if incomplete {
            RunExitClass::Incomplete
        } else {
            RunExitClass::Done
        };
        ApplyOutcome {
            ending,
            ..ApplyOutcome::refused(Vec::new())
        }
    }

    /// Ended before anything was changed.
    pub fn not_begun(problems: Vec<Diagnostic>, is_interrupted: bool) -> Self {
        let ending = if is_interrupted {
            RunExitClass::Interrupted
        } else {
            RunExitClass::Refused
        };
        ApplyOutcome {
            ending,
            ..ApplyOutcome::refused(problems)
        }
    }

    /// Refused before anything was changed.
    pub fn refused(problems: Vec<Diagnostic>) -> Self {
        ApplyOutcome {
            ending: RunExitClass::Refused,
            run: None,
            counts: StepCounts::default(),
            resumable: false,
            power_cycles: Vec::new(),
            problems,
            outcomes: Vec::new(),
        }
    }
}

/// The exit class of a run with this outcome alone.
fn classify_outcome(outcome: &NodeOutcome, waits_for_power_cycle: bool) -> RunExitClass {
    match outcome {
        NodeOutcome::Blocked { .. } if waits_for_power_cycle => RunExitClass::Waiting,
        NodeOutcome::Skipped {
            because: Skip::Interrupted,
        } => RunExitClass::Interrupted,
        NodeOutcome::Skipped {
            because: Skip::Budget | Skip::Gate { .. },
        } => RunExitClass::Stopped,
        NodeOutcome::Skipped {
            because: Skip::Window | Skip::Deadline,
        } => RunExitClass::Incomplete,
        NodeOutcome::Failed { .. } => RunExitClass::Failed,
        NodeOutcome::Done { .. } => RunExitClass::Done,
        _ => RunExitClass::Incomplete,
    }
}

/// The exit class of a run with these outcomes; `waits` are the steps that wait for nothing but a
/// power cycle.
pub fn compute_exit_class(
    outcomes: &[(String, NodeOutcome)],
    waits: &BTreeSet<usize>,
    interrupted: bool,
    problems: &[Diagnostic],
) -> RunExitClass {
    let gate_failed = outcomes.iter().any(|(id, outcome)| {
        id.starts_with("gate/") && matches!(outcome, NodeOutcome::Failed { .. })
    });
    let numbered = outcomes.iter().enumerate();
    let classes = numbered.map(|(n, (_, outcome))| classify_outcome(outcome, waits.contains(&n)));
    let mut worst = classes.min().unwrap_or(RunExitClass::Done);
    if gate_failed {
        worst = worst.min(RunExitClass::Stopped);
    }
    if problems
        .iter()
        .any(|problem| problem.severity == Severity::Error)
    {
        worst = worst.min(RunExitClass::Incomplete);
    }
    if interrupted && worst != RunExitClass::Done {
        RunExitClass::Interrupted
    } else {
        worst
    }
}
