//! The read results of all targets: what `railwright facts` writes and `plan --observations` reads.

use super::ReadResults;
use railwright_base::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The format of observation files; a reader refuses another major.
pub const FORMAT_VERSION: &str = "3.0";

/// Why a target could not be read at all (unreachable, refused key), in words that a file can keep.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct TargetReadFailure {
    /// A code of `docs/codes`.
    pub code: String,
    /// One sentence that names the target.
    pub message: String,
    /// The message without what is the target's own (name, address, key): equal on all targets with
    /// the same trouble, so that a screen can fold them.
    pub shared_message: String,
    /// Edits or commands that go on from here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
}

/// The read results of one target, or why it could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetObservation {
    /// Why the target could not be read at all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub problem: Option<TargetReadFailure>,
    /// Its answers.
    #[serde(default)]
    pub answers: ReadResults,
}

/// The read results of all targets; `recorded.rs` beside it has its form in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// `FORMAT_VERSION` of the writer.
    pub format_version: String,
    /// When it was recorded, RFC 3339, as the shell's clock said.
    pub recorded_at: String,
    /// Texts of files that the spec refers to (a repository's key), by the path as the spec has it,
    /// so that a plan can be made where those files are not.
    pub texts: BTreeMap<String, String>,
    /// By target.
    pub targets: BTreeMap<Target, TargetObservation>,
}

impl Observation {
    /// As it may be written down: without the secrets that the answers hold.
    pub fn redacted(&self) -> Observation {
        let mut out = self.clone();
        out.targets
            .values_mut()
            .for_each(|found| found.answers = found.answers.redacted().into_owned());
        out
    }

    /// Recorded at this time, of no target yet.
    pub fn at(recorded_at: String) -> Self {
        Observation {
            format_version: FORMAT_VERSION.to_owned(),
            recorded_at,
            texts: BTreeMap::new(),
            targets: BTreeMap::new(),
        }
    }
}
