//! How a node of a plan ended in a run.

use serde::{Deserialize, Serialize};

/// Why a node was not begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Skip {
    /// A prerequisite is not done.
    Dependency {
        /// Its id.
        node: String,
    },
    /// An earlier step of the same target failed, is unknown or stale; the target is left alone for
    /// the rest of the run.
    Target {
        /// The step.
        node: String,
    },
    /// As many hosts as the budget allows are out of service.
    Budget,
    /// A gate did not pass.
    Gate {
        /// Its id.
        node: String,
    },
    /// The run was interrupted first.
    Interrupted,
    /// The maintenance window closed first.
    Window,
    /// The run's deadline came first.
    Deadline,
}

/// How a node ended. Only `Done` is success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum NodeOutcome {
    /// In sync, read again after the last action.
    Done {
        /// False when it was in sync before we did anything.
        changed: bool,
    },
    /// It was tried and is not as desired.
    Failed {
        /// In one line.
        reason: String,
    },
    /// It was begun, and whether it took effect is unknown.
    Unknown {
        /// In one line.
        reason: String,
    },
    /// The target could not be reached; nothing was begun.
    Unreachable {
        /// In one line.
        reason: String,
    },
    /// The target moved since the plan was made; nothing was begun.
    Stale {
        /// In one line.
        reason: String,
    },
    /// The target's lock went to somebody else before it was done; nothing was written after that.
    LockLost {
        /// In one line.
        reason: String,
    },
    /// Blocked by the plan, or waits for a blocked step.
    Blocked {
        /// In one line.
        reason: String,
    },
    /// Not begun.
    Skipped {
        /// Why.
        because: Skip,
    },
}

impl NodeOutcome {
    /// True for success.
    pub fn is_done(&self) -> bool {
        matches!(self, NodeOutcome::Done { .. })
    }

    /// True when the target counts as out of service from now on.
    pub fn is_loss(&self) -> bool {
        matches!(
            self,
            NodeOutcome::Failed { .. }
                | NodeOutcome::Unknown { .. }
                | NodeOutcome::Unreachable { .. }
                | NodeOutcome::LockLost { .. }
        )
    }

    /// True when nothing more may be done to the target in this run.
    pub fn isolates(&self) -> bool {
        self.is_loss() || matches!(self, NodeOutcome::Stale { .. })
    }

    /// The word on the screen.
    pub fn word(&self) -> &'static str {
        match self {
            NodeOutcome::Done { changed: true } => "done",
            NodeOutcome::Done { changed: false } => "already so",
            NodeOutcome::Failed { .. } => "failed",
            NodeOutcome::Unknown { .. } => "unknown",
            NodeOutcome::Unreachable { .. } => "unreachable",
            NodeOutcome::Stale { .. } => "stale",
            NodeOutcome::LockLost { .. } => "lock lost",
            NodeOutcome::Blocked { .. } => "blocked",
            NodeOutcome::Skipped { .. } => "skipped",
        }
    }
}
