//! What version control says of files that were read.

use serde::{Deserialize, Serialize};

/// Whether files are those of the commit that is checked out. In documents `false`, `true` or
/// `null`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Option<bool>", into = "Option<bool>")]
pub enum WorkTreeState {
    /// Every one of them, and none is missing; also where there is no version control.
    #[default]
    AsCommitted,
    /// It cannot be known without running programs or following what the files themselves name.
    Unknown,
    /// One differs, is missing, or was never committed.
    Changed,
}

impl From<Option<bool>> for WorkTreeState {
    fn from(changed: Option<bool>) -> Self {
        match changed {
            Some(false) => WorkTreeState::AsCommitted,
            Some(true) => WorkTreeState::Changed,
            None => WorkTreeState::Unknown,
        }
    }
}

impl From<WorkTreeState> for Option<bool> {
    fn from(state: WorkTreeState) -> Self {
        match state {
            WorkTreeState::AsCommitted => Some(false),
            WorkTreeState::Unknown => None,
            WorkTreeState::Changed => Some(true),
        }
    }
}

/// The commit that files come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitRevision {
    /// Its id in hexadecimal digits; nothing where there is none, or where it is unknown.
    pub commit: Option<String>,
    /// Whether the files are those of the commit.
    pub state: WorkTreeState,
}
