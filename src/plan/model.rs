//! The plan as data: nodes and their graph, content-addressed. Rendering lives in `report`,
//! execution in `apply`.

use super::blocked::BlockedReason;
use super::identity::ReinstalledHost;
use super::out_of_service::{Unavailability, Unavailable};
use super::policy::RolloutPolicy;
use railwright_base::{
    Address, ClusterId, Digest, MachineId, SourceLocation, Target, WorkTreeState, quote,
};
use railwright_knowledge::rules::WaivedFinding;
use railwright_resource::{
    Action, DesiredResource, Disruption, Plane, Provenance, Reading, TargetReadFailure,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The format of plan files: readers ignore unknown keys, and refuse another major.
pub const FORMAT_VERSION: &str = "6.0";

/// Why a change is in the plan.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum ChangeReason {
    /// Never applied, and not there.
    New,
    /// Never applied, but something else is there (its values are in the differences).
    Takeover,
    /// The spec says something else than what was applied last.
    SpecChanged {
        /// Where.
        places: Vec<SourceLocation>,
    },
    /// The spec is what it was when it was applied, and what it goes by (a chart) is another one
    /// since.
    InputChanged {
        /// What, in words.
        input: String,
    },
    /// The target was changed by somebody else since we applied it.
    Drifted,
    /// Persisted as desired, but not in effect yet.
    PendingRestart,
    /// As it was applied, and not ready yet: it is waited for.
    NotReady,
    /// In effect, but the next boot will lose it.
    WillBeLostAtReboot,
    /// Applied earlier, no longer in the spec.
    RemovedFromSpec,
    /// Applied earlier and no longer in the spec; it stays where it is, and is ours no longer.
    LetGo,
    /// In sync now; an earlier step of this plan resets it, so it is re-checked after that step.
    Disturbed {
        /// The node that disturbs it.
        by: String,
    },
    /// Cannot be compared before another step is done.
    KnownAfter {
        /// The resource that must be done first.
        step: Address,
    },
    /// Could not be determined, so it is applied again.
    Unknown,
    /// In sync, and not remembered so: its actual state is recorded, and nothing is done.
    InSync,
}

/// One attribute in one plane that is not as desired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AttributeDifference {
    /// The attribute's name.
    pub attribute: String,
    /// Persisted, running or next boot.
    pub plane: Plane,
    /// What is desired.
    pub desired: Reading,
    /// What the target reports.
    pub actual: Reading,
    /// Who made it so, or how it was found out, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Provenance>,
}

/// One resource in a node: its own are its place and why it changes; its diff is often equal on
/// thousands of targets, and kept once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Member {
    /// What is desired; for a removal the resource that was applied last.
    pub resource: DesiredResource,
    /// Why.
    pub reason: ChangeReason,
    /// What was read, and what follows from it.
    #[serde(flatten)]
    pub diff: Arc<PlannedDiff>,
}

/// The diff of a resource, without the target: equal for all that share it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlannedDiff {
    /// True when the resource is undone instead of applied.
    pub removal: bool,
    /// What differs.
    pub differences: Vec<AttributeDifference>,
    /// The digest of the actual state when the plan was made; read again right before the step.
    pub fingerprint: Digest,
    /// What was there when the plan was made, for undoing it later; for a removal, what was there
    /// before our first change.
    pub before: serde_json::Value,
    /// What removal leaves behind, in words.
    pub residue: Vec<String>,
    /// Of a removal: what somebody changed since it was applied, and loses with it; `desired` is
    /// what was applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub since: Vec<AttributeDifference>,
    /// It takes effect with the next power cycle, which is done by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_power_cycle: bool,
}

impl std::ops::Deref for Member {
    type Target = PlannedDiff;

    fn deref(&self) -> &PlannedDiff {
        &self.diff
    }
}

/// A change that the host rolls back by itself, unless it is confirmed over a new connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AutomaticRollback {
    /// Why it needs that.
    pub because: String,
    /// After so many seconds.
    pub seconds: u32,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NodeKind {
    /// Changes of one target that go out together.
    Change {
        /// The resources.
        members: Vec<Member>,
        /// What is done, in order. Empty where it is only known after another step.
        actions: Arc<[Action]>,
        /// Action words that may be needed although `actions` does not hold them (known after, or
        /// disturbed).
        announced: Arc<[String]>,
        /// Resources of the target (`link/ens4`) that must be compared again afterwards.
        disturbs: Arc<[String]>,
        /// The netdevs whose traffic is interrupted.
        interrupts_netdevs: Arc<[String]>,
        /// Why and for how long the host itself watches over it, where it can cut our own
        /// connection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        automatic_rollback: Option<AutomaticRollback>,
    },
    /// Resources that are in sync and not remembered so. They are re-checked and recorded, so that
    /// a later change of them is reported as drift; what was not our doing stays when it leaves the
    /// spec.
    Adopt {
        /// The resources.
        members: Vec<Member>,
    },
    /// The host reboots; proven by another boot id.
    Reboot,
    /// The host's node of a Kubernetes cluster takes no more pods and is emptied of those that it
    /// has.
    Drain {
        /// The cluster.
        cluster: Target,
        /// The node's name there.
        node: String,
    },
    /// The node is given back, once it gives again what it gave before.
    Uncordon {
        /// The cluster.
        cluster: Target,
        /// The node's name there.
        node: String,
        /// An earlier run cordoned it and did not give it back: it is out of service already.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        left: bool,
    },
    /// The functional check of these hosts; the next wave starts only when it passes.
    Gate {
        /// The hosts of the wave.
        hosts: Vec<String>,
    },
    /// No work: it stands for many edges.
    Barrier,
}

/// One node of the plan's graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanNode {
    /// Unique in the plan and stable between plans of the same content: `host/n1/reboot`, `change
    /// host/n1/file/...`.
    pub id: String,
    /// What it does.
    #[serde(flatten)]
    pub kind: NodeKind,
    /// The target; gates and barriers may have none.
    pub target: Option<Target>,
    /// How much it disturbs.
    pub disruption: Disruption,
    /// What it interrupts, in words.
    pub interrupts: Arc<[String]>,
    /// Direct prerequisites, by id.
    pub after: Vec<String>,
    /// The wave, from 0; 0 is the canary.
    pub wave: usize,
    /// Why it is blocked in this run (above the disruption limit, refused), with its dependants.
    pub blocked: Option<BlockedReason>,
}

impl PlanNode {
    /// The resources of a change, or those that are recorded as they are; nothing for other nodes.
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            NodeKind::Change { members, .. } | NodeKind::Adopt { members } => members,
            _ => &[],
        }
    }

    /// The hosts that it verifies, where it is a gate.
    pub fn verified(&self) -> &[String] {
        match &self.kind {
            NodeKind::Gate { hosts } => hosts,
            _ => &[],
        }
    }

    /// The cluster whose node it empties or gives back.
    pub fn cluster(&self) -> Option<&Target> {
        match &self.kind {
            NodeKind::Drain { cluster, .. } | NodeKind::Uncordon { cluster, .. } => Some(cluster),
            _ => None,
        }
    }

    /// The node of this cluster that it empties or gives back.
    pub fn on_node_of(&self, of: &Target) -> Option<&str> {
        match &self.kind {
            NodeKind::Drain { cluster, node } | NodeKind::Uncordon { cluster, node, .. }
                if cluster == of =>
            {
                Some(node)
            }
            _ => None,
        }
    }

    /// True when somebody has to agree to it: it changes something on its target, or gives a node
    /// back.
    pub fn is_to_be_agreed(&self) -> bool {
        self.is_change() || matches!(self.kind, NodeKind::Uncordon { .. })
    }

    /// True when it changes something on its target.
    pub fn is_change(&self) -> bool {
        matches!(self.kind, NodeKind::Change { .. })
    }
}

/// Something that could not be determined.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct UnknownFinding {
    /// Resource, or the whole target when it could not be read at all.
    pub subject: String,
    /// Why.
    pub reason: String,
    /// More of it, where the whole target could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<TargetReadFailure>,
}

impl UnknownFinding {
    /// One resource, or a target without more to say of it.
    pub fn new(subject: impl Into<String>, reason: impl Into<String>) -> Self {
        UnknownFinding {
            subject: subject.into(),
            reason: reason.into(),
            trouble: None,
        }
    }

    /// The subject of an attribute in a plane.
    pub fn subject_of(address: &Address, attribute: &str, plane: Plane) -> String {
        format!("{} ({})", address.with_attribute(attribute), plane.word())
    }

    /// The target that it is about, and the resource on it, unless it is about the whole target.
    pub fn about(&self) -> Option<(Target, Option<Address>)> {
        match self.subject.parse::<Address>() {
            Ok(address) => Some((address.target.clone(), Some(address))),
            Err(_) => Some((self.subject.parse().ok()?, None)),
        }
    }

    /// A whole target that gave no answer.
    pub fn target(target: &Target, trouble: &TargetReadFailure) -> Self {
        UnknownFinding {
            subject: target.to_string(),
            reason: trouble.message.clone(),
            trouble: Some(trouble.clone()),
        }
    }
}

/// A field of a resource that was applied, and is no longer desired while the rest of the resource
/// is: it stays as it is.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct DroppedField {
    /// The resource with the field: `host/n1/link/ens4#mtu`.
    pub field: Address,
    /// What was applied last, as JSON text.
    pub value: String,
}

/// A host that is disturbed as it is, whatever runs on it: its cluster has no node of its name to
/// be emptied.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct NotEmptied {
    /// The host.
    pub host: Target,
    /// The cluster.
    pub cluster: Target,
    /// The node that was looked for there.
    pub node: String,
}

/// Hosts that the spec says have no SSH: they have no steps, and nothing is asked of them.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct HostsWithoutSsh {
    /// The hosts, as a node-set.
    pub hosts: String,
    /// The modules that would be for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
}

/// Where the spec came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InventoryOrigin {
    /// The folder, as given.
    pub path: String,
    /// The git commit that is checked out around the folder; null where there is none, or where it
    /// cannot be known.
    pub commit: Option<String>,
    /// True when what was read of the spec and its modules is not what the commit holds; null where
    /// that cannot be known without running programs of the repository.
    #[schemars(with = "Option<bool>")]
    pub dirty: WorkTreeState,
}

impl InventoryOrigin {
    /// The folder as one word of a command that people are told to type; empty where it is not
    /// known.
    pub fn word(&self) -> String {
        if self.path.is_empty() {
            String::new()
        } else {
            quote::quote_path(Path::new(&self.path))
        }
    }

    /// The state of version control, in words for a screen.
    pub fn words(&self) -> String {
        let Some(commit) = &self.commit else {
            return match self.dirty {
                WorkTreeState::AsCommitted => "not under version control",
                WorkTreeState::Changed => "not committed yet",
                WorkTreeState::Unknown => "commit unknown",
            }
            .to_owned();
        };
        let short: String = commit.chars().take(9).collect();
        match self.dirty {
            WorkTreeState::AsCommitted => format!("commit {short}"),
            WorkTreeState::Changed => format!("commit {short} with uncommitted changes"),
            WorkTreeState::Unknown => format!("commit {short}, perhaps with uncommitted changes"),
        }
    }
}

/// What the gates of a rollout prove, by what the spec has.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum GateCoverage {
    /// Links, addresses and RDMA traffic, and what modules check besides.
    Rdma,
    /// What `Rdma` proves, and NCCL's tests between the hosts with GPUs.
    RdmaAndNccl,
    /// NCCL's tests, and what modules check besides: the spec has no rails.
    Nccl,
    /// What modules check: the spec has no rails.
    ModuleChecks,
    /// That the hosts can be reached and were changed as planned, and no more.
    Nothing,
    /// The plan was written before plans said so.
    #[default]
    NotSaid,
}

impl GateCoverage {
    /// True where such gates leave something unchecked that those of `then` check.
    pub fn proves_less_than(self, then: Self) -> bool {
        let has_rdma = |one| matches!(one, GateCoverage::Rdma | GateCoverage::RdmaAndNccl);
        let has_nccl = |one| matches!(one, GateCoverage::Nccl | GateCoverage::RdmaAndNccl);
        has_rdma(then) && !has_rdma(self)
            || has_nccl(then) && !has_nccl(self)
            || then == GateCoverage::ModuleChecks && self == GateCoverage::Nothing
    }
}

/// A whole plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// `FORMAT_VERSION`.
    pub format_version: String,
    /// The version of railwright that made it.
    pub made_by: String,
    /// The cluster's name.
    pub cluster: String,
    /// The cluster's id, where it had one when the plan was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<ClusterId>,
    /// Where the spec came from.
    pub inventory: InventoryOrigin,
    /// Digest of the spec's files.
    pub spec_digest: Digest,
    /// Digests of the modules used, by name.
    pub modules: BTreeMap<String, Digest>,
    /// Digest of what was remembered of the plan's targets of work when it was made.
    pub state_digest: Digest,
    /// When the observation was recorded, RFC 3339.
    pub observed_at: String,
    /// `--target` and `--exclude`, as given; a narrowed plan says so.
    pub narrowed: Vec<String>,
    /// The rollout's rules.
    pub rollout: RolloutPolicy,
    /// What the gates prove.
    #[serde(default)]
    pub proof: GateCoverage,
    /// All nodes, in a topological order that depends on the content alone.
    pub nodes: Vec<PlanNode>,
    /// Resources that are in sync, by count per target.
    pub unchanged: BTreeMap<Target, usize>,
    /// What could not be determined.
    pub unknown: Vec<UnknownFinding>,
    /// Targets that answer and must not be touched: they are another cluster's, or one machine
    /// under several names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<UnknownFinding>,
    /// Hosts that are another machine than at the last apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reinstalled: Vec<ReinstalledHost>,
    /// Hosts whose machines had another name at the last apply, with these: what is remembered of
    /// each goes with it, also where nothing is done to it and the run does not reach it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub renamed: BTreeMap<Target, MachineId>,
    /// What was applied, is no longer desired, and stays as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedField>,
    /// Hosts that are disturbed as they are, although the rollout empties nodes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_emptied: Vec<NotEmptied>,
    /// Hosts of the spec that are out of service before anything is done: they use up the budget,
    /// also where the plan is narrowed away from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Unavailable>,
    /// Hosts without SSH, for which nothing is planned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_ssh: Vec<HostsWithoutSsh>,
    /// Findings of rules that are accepted for a while.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waived: Vec<WaivedFinding>,
    /// Digest over everything else; empty while it is computed.
    pub digest: String,
}

impl Plan {
    /// Hosts that an earlier run left out of service or cordoned, and that the first gate has to
    /// pass before anything else is disturbed.
    pub fn verified_first(&self) -> BTreeSet<String> {
        let mut left = BTreeSet::new();
        for hosts in &self.unavailable {
            if hosts.is_left_by_run() || hosts.is_left_cordoned() {
                left.extend(hosts.names());
            }
        }
        let mut first = BTreeSet::new();
        for node in &self.nodes {
            if node.wave == 0 {
                let verified = node.verified().iter();
                first.extend(verified.filter(|host| left.contains(*host)).cloned());
            }
        }
        first
    }

    /// The hosts of the spec that are out of service before anything is done, each once.
    pub fn unavailable_hosts(&self) -> BTreeSet<String> {
        self.unavailable
            .iter()
            .flat_map(Unavailable::names)
            .collect()
    }

    /// Hosts that are refused whatever they answer, with why.
    pub fn refused_hosts(&self) -> BTreeMap<String, String> {
        let mut refused = BTreeMap::new();
        for hosts in &self.unavailable {
            if let Unavailability::Refused { .. } = hosts.why {
                for host in hosts.names() {
                    refused.insert(host, hosts.why.words());
                }
            }
        }
        refused
    }

    /// True where an earlier run left hosts of the spec out of service.
    pub fn has_outages(&self) -> bool {
        self.unavailable.iter().any(Unavailable::is_left_by_run)
    }
}

#[cfg(test)]
mod tests {
    use super::GateCoverage::{self, ModuleChecks, Nccl, NotSaid, Nothing, Rdma, RdmaAndNccl};

    #[test]
    fn gates_prove_less_where_something_is_no_longer_checked() {
        let less: [(GateCoverage, &[GateCoverage]); 6] = [
            (Nothing, &[Rdma, RdmaAndNccl, Nccl, ModuleChecks]),
            (NotSaid, &[Rdma, RdmaAndNccl, Nccl]),
            (ModuleChecks, &[Rdma, RdmaAndNccl, Nccl]),
            (Nccl, &[Rdma, RdmaAndNccl]),
            (Rdma, &[RdmaAndNccl, Nccl]),
            (RdmaAndNccl, &[]),
        ];
        for (now, than) in less {
            for then in [Nothing, NotSaid, ModuleChecks, Nccl, Rdma, RdmaAndNccl] {
                assert_eq!(
                    now.proves_less_than(then),
                    than.contains(&then),
                    "{now:?} {then:?}"
                );
            }
        }
    }
}
