//! A finding of drift, and all of them.

use crate::base::{Address, Place, Target};
use crate::plan::{InventoryOrigin, UnknownFinding};
use crate::resource::{Plane, Reading};
use serde::Serialize;

/// The format of the JSON report.
pub const FORMAT_VERSION: &str = "1.0";

/// Why an attribute is not as the spec wants it. Ordered as on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriftReason {
    /// Somebody else changed it since we applied it.
    ChangedOutside,
    /// In effect, but written nowhere: the next boot loses it.
    WillBeLostAtReboot,
    /// Written as wished, but waiting for a restart or reboot.
    OwedRestart,
    /// The spec says something else than what was applied last, or it was never applied.
    SpecNewer,
    /// Could not be found out.
    Unknown,
}

/// One attribute in one plane.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DriftFinding {
    /// The resource, with the attribute.
    pub address: Address,
    /// The attribute's name.
    pub attribute: String,
    /// Persisted, running or next boot.
    pub plane: Plane,
    /// What the spec wants now.
    pub wanted: Reading,
    /// What was applied last; nothing where we never applied it.
    pub last_applied: Option<Reading>,
    /// What the target says.
    pub found: Reading,
    /// Why they differ.
    pub reason: DriftReason,
    /// Where the spec says so.
    pub places: Vec<Place>,
}

/// All findings.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DriftReport {
    /// `FORMAT_VERSION`.
    pub format_version: &'static str,
    /// Where the spec came from.
    pub inventory: InventoryOrigin,
    /// In the order of reasons, then addresses.
    pub findings: Vec<DriftFinding>,
    /// What could not be judged.
    pub not_judged: Vec<UnknownFinding>,
    /// What was applied and is no longer in the spec; a plan takes it back.
    pub no_longer_wished: Vec<Address>,
    /// Targets that were looked at.
    pub targets: Vec<Target>,
    /// Resources that were judged.
    pub resources: usize,
}

impl DriftReport {
    /// True when something was found that is not as wished (exit 2); what is only unknown does not count.
    pub fn has_drift(&self) -> bool {
        !self.no_longer_wished.is_empty() || self.findings.iter().any(|f| f.reason != DriftReason::Unknown)
    }

    /// True when something could not be found out (exit 3, where nothing drifted).
    pub fn is_incomplete(&self) -> bool {
        !self.not_judged.is_empty() || self.findings.iter().any(|f| f.reason == DriftReason::Unknown)
    }
}
