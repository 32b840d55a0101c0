//! Whose the targets are, and which machines: what a plan has to know of it.

use super::PlanInputs;
use super::model::UnknownFinding;
use railwright_base::{ClusterId, MachineId, Target};
use railwright_resource::TargetReadFailure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// By what the targets report of themselves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IdentityFindings {
    /// The cluster's id, where it has one.
    pub cluster_id: Option<ClusterId>,
    /// Targets of which nothing may be planned.
    pub refused: BTreeMap<Target, TargetReadFailure>,
    /// Hosts that are another machine than the one that is remembered, with the number of resources
    /// that were set aside.
    pub reinstalled: BTreeMap<Target, usize>,
    /// Hosts whose machines were remembered under another name, with these.
    pub renamed: BTreeMap<Target, MachineId>,
}

/// A host that is another machine than at the last apply: what was remembered of the machine before
/// is set aside.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct ReinstalledHost {
    /// The host.
    pub host: Target,
    /// How many resources were applied to the machine before.
    pub resources: usize,
}

/// Targets that answer and must not be touched.
pub(super) fn refused_targets(inputs: &PlanInputs) -> Vec<UnknownFinding> {
    let mut refused = Vec::new();
    for target in inputs.targets {
        if let Some(trouble) = inputs.identity.refused.get(target) {
            refused.push(UnknownFinding::target(target, trouble));
        }
    }
    refused
}

/// Hosts that are another machine than at the last apply, as far as the plan is about them.
pub(super) fn reinstalled_hosts(inputs: &PlanInputs) -> Vec<ReinstalledHost> {
    let mut reinstalled = Vec::new();
    for (host, resources) in &inputs.identity.reinstalled {
        if inputs.targets.contains(host) && inputs.selection.covers(&host.to_string()) {
            reinstalled.push(ReinstalledHost {
                host: host.clone(),
                resources: *resources,
            });
        }
    }
    reinstalled
}
