//! Why a step of a plan is blocked, as a type: what decides is never read out of a sentence.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a step is blocked in this run. What needs the step is blocked with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BlockedReason {
    /// Another step, which it needs, is blocked: the id of that step.
    NeedsStep(String),
    /// It follows a power cycle and needs an empty node, which only a new plan empties.
    NeedsEmptyNode,
    /// What its kind, its target or the policy of the rollout says, in one line.
    Stated(String),
}

impl BlockedReason {
    /// The reason in which the id of the step that is needed, if it is one, was changed by `rename`.
    pub(super) fn map_step(&self, rename: impl FnOnce(&str) -> String) -> Self {
        match self {
            BlockedReason::NeedsStep(id) => BlockedReason::NeedsStep(rename(id)),
            other => other.clone(),
        }
    }
}

impl fmt::Display for BlockedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BlockedReason::NeedsStep(id) => write!(f, "it needs {id}, which is blocked"),
            BlockedReason::NeedsEmptyNode => f.write_str(
                "it needs an empty node, and pods may be back on it: once its power cycle is \
                 proven, a new plan empties it",
            ),
            BlockedReason::Stated(text) => f.write_str(text),
        }
    }
}
