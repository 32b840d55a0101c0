//! What an action does to nodes: one change on those that are identical.

use super::field::FieldNow;
use super::mark::NodeOwnershipAnnotation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One change, of each of these nodes. Valid only for what was there when it was planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeEdit {
    /// Their names.
    pub nodes: Vec<String>,
    /// The change.
    #[serde(flatten)]
    pub change: NodeFieldChange,
}

/// From what to what.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct NodeFieldChange {
    /// The value that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The value that is to be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// Our mark beside it; nothing where it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<NodeOwnershipAnnotation>,
}

/// What is to be done with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeEditDecision {
    /// It is so already.
    Nothing,
    /// The change is written.
    Write,
    /// Somebody else was there since it was planned.
    Moved,
}

impl NodeFieldChange {
    /// What is to be done with a node that says this. Nothing is undone without our mark.
    pub fn next(&self, now: &FieldNow) -> NodeEditDecision {
        let is_due = now.value == self.old && (self.mark.is_some() || now.mark.is_some());
        if now.value == self.new && now.mark == self.mark {
            NodeEditDecision::Nothing
        } else if is_due {
            NodeEditDecision::Write
        } else {
            NodeEditDecision::Moved
        }
    }
}
