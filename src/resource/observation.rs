//! What all targets said: the file that `railwright facts` writes and `plan --observations` reads.

use super::Answers;
use crate::base::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format of observation files; a reader refuses another major.
pub const FORMAT_VERSION: &str = "1.0";

/// What one target said, or why it said nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetObservation {
    /// Why the target could not be read at all (unreachable, refused key), in one sentence.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<String>,
    /// Its answers.
    #[serde(default)]
    pub answers: Answers,
}

/// What all targets said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// `FORMAT_VERSION` of the writer.
    pub format_version: String,
    /// When it was recorded, RFC 3339, as the shell's clock said.
    pub recorded_at: String,
    /// Texts of files that the spec refers to (a repository's key), by the path as the spec has it, so that a plan can be
    /// made where those files are not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub texts: BTreeMap<String, String>,
    /// By target.
    pub targets: BTreeMap<Target, TargetObservation>,
}
