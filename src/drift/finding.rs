//! A finding of drift, and all of them.

use super::outliers::Outlier;
use railwright_base::{Address, SourceLocation, Target};
use railwright_knowledge::rules::WaivedFinding;
use railwright_plan::{InventoryOrigin, Unavailable, UnknownFinding};
use railwright_resource::{Plane, Provenance, Reading};
use serde::Serialize;

/// The format of the JSON report.
pub const FORMAT_VERSION: &str = "4.0";

/// Why an attribute differs from the spec. Ordered as on the screen.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum DriftReason {
    /// Somebody else changed it since we applied it.
    ChangedOutside,
    /// In effect, but written nowhere: the next boot loses it.
    WillBeLostAtReboot,
    /// Written as desired, but waiting for a restart or reboot.
    PendingRestart,
    /// As it was applied, and what is to come of it by itself has not.
    NotReady,
    /// A run of ours took it out of service and has not given it back: it still goes on, or ended
    /// before.
    NotGivenBack,
    /// The spec says something else than what was applied last, or it was never applied.
    SpecNewer,
    /// Could not be determined.
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
    /// What the spec desires now.
    pub desired: Reading,
    /// What was applied last; nothing where we never applied it.
    pub last_applied: Option<Reading>,
    /// What the target reports.
    pub actual: Reading,
    /// Who made it so, or how it was found out, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Provenance>,
    /// Why they differ.
    pub reason: DriftReason,
    /// Where the spec says so.
    pub places: Vec<SourceLocation>,
    /// Since when it is there; nothing where that is not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen: Option<FindingAge>,
    /// By which acceptance of the spec it is accepted, or was until its day was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<DriftAcceptance>,
}

/// An acceptance of the spec, at one of the findings that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DriftAcceptance {
    /// Why it is accepted.
    pub reason: String,
    /// Who accepted it.
    pub owner: String,
    /// The last day, in UTC.
    pub until: String,
    /// The day is over: the finding counts again.
    pub expired: bool,
}

/// Since when a finding is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct FindingAge {
    /// When it was seen first, RFC 3339.
    pub first: String,
    /// When it was seen last.
    pub last: String,
    /// From the first to the last time, in seconds.
    pub age_s: u64,
}

/// A finding of an earlier look at what could not be looked at now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LastKnown {
    /// The resource, with the attribute.
    pub address: Address,
    /// Persisted, running or next boot.
    pub plane: Plane,
    /// When it was seen first, RFC 3339.
    pub first: String,
    /// When it was seen last.
    pub last: String,
}

impl DriftFinding {
    /// True when it is known to differ from what is desired, and is not accepted.
    pub fn is_drift(&self) -> bool {
        !self.is_unknown() && !self.is_accepted()
    }

    /// True when it could not be determined.
    pub fn is_unknown(&self) -> bool {
        self.reason == DriftReason::Unknown
    }

    /// True when it differs from what is desired, and is accepted today. What is unknown cannot be
    /// accepted.
    pub fn is_accepted(&self) -> bool {
        !self.is_unknown()
            && self
                .accepted
                .as_ref()
                .is_some_and(|accepted| !accepted.expired)
    }
}

/// Which look at which cluster a report is of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Occasion {
    /// The cluster's name.
    pub cluster: String,
    /// Where the spec came from.
    pub inventory: InventoryOrigin,
    /// When the targets were looked at, RFC 3339.
    pub checked_at: String,
}

/// All findings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DriftReport {
    /// `FORMAT_VERSION`.
    pub format_version: &'static str,
    /// The cluster's name.
    pub cluster: String,
    /// When the targets were looked at, RFC 3339.
    pub checked_at: String,
    /// Where the spec came from.
    pub inventory: InventoryOrigin,
    /// In the order of reasons, then addresses.
    pub findings: Vec<DriftFinding>,
    /// What could not be compared.
    pub not_compared: Vec<UnknownFinding>,
    /// What was found before on what could not be compared now.
    pub last_known: Vec<LastKnown>,
    /// Targets on which nothing was applied so far: all that differs there is what a first apply
    /// would do.
    pub never_applied: Vec<Target>,
    /// What was applied and is no longer in the spec; a plan undoes it.
    pub removed_from_spec: Vec<Address>,
    /// A few hosts of a class that differ in what nobody manages; no drift.
    pub outliers: Vec<Outlier>,
    /// Findings of rules that are accepted for a while.
    pub waived: Vec<WaivedFinding>,
    /// Hosts without SSH, as a node-set: nothing was asked of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_ssh: String,
    /// Hosts that a run left out of service, and that no gate has passed since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out_of_service: Vec<Unavailable>,
    /// Targets that were looked at.
    pub targets: Vec<Target>,
    /// How many resources were compared.
    pub resources: usize,
    /// Which they are, for documents that name what is in order as well; a JSON of a large cluster
    /// would be little else.
    #[serde(skip)]
    pub compared: Vec<Address>,
}

impl DriftReport {
    /// True when something was found that is not as desired (exit 2); what is only unknown does not
    /// count.
    pub fn has_drift(&self) -> bool {
        !self.removed_from_spec.is_empty() || self.findings.iter().any(DriftFinding::is_drift)
    }

    /// True when something could not be determined, or is out of service because no gate has passed
    /// it (exit 3, where nothing drifted).
    pub fn is_incomplete(&self) -> bool {
        !self.out_of_service.is_empty() || self.is_partly_unread()
    }

    /// True when something could not be determined.
    pub fn is_partly_unread(&self) -> bool {
        !self.not_compared.is_empty() || self.findings.iter().any(DriftFinding::is_unknown)
    }
}
