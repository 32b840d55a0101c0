//! Hosts that are out of service whatever a plan does to them. `max_unavailable` counts them,
//! whoever caused it: a later run never disturbs a host because the ones that are broken already
//! are not part of it.

use super::PlanInputs;
use super::diff::find_read_results;
use super::drains::KnownNodes;
use super::part::TargetPlan;
use railwright_base::text::one_line;
use railwright_base::{Redaction, Target, TargetKind, nodeset};
use railwright_resource::kubernetes_object::nodes::{Cordon, NodeNow};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Why a run left a host out of service.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum OutageCause {
    /// A gate did not pass it.
    GateFailed {
        /// The gate's id in the run.
        gate: String,
        /// The code of the check that failed first.
        code: String,
        /// What it found, in one line.
        check: String,
    },
    /// A step that disturbs it failed, or nobody knows how it ended, and no gate has passed it
    /// since.
    StepFailed {
        /// The step's id in the run.
        node: String,
    },
    /// The run disturbed it and ended before its gate passed.
    Unproven {
        /// The step's id in the run.
        node: String,
    },
    /// Somebody switched it off and on, as the run asked: it may be in service again.
    SwitchedOffAndOn {
        /// The id in the run of the power cycle that it waited for.
        node: String,
    },
    /// A step that disturbs nobody failed, or nobody knows how it ended: it may be in service all
    /// the same.
    InDoubt {
        /// The step's id in the run.
        node: String,
    },
    /// The run left it out of service, and another folder's run seems to have given it back since.
    /// A host alone says so: the folder of the run remembers why it was left.
    GivenBack {
        /// The id in the run of the step or gate that left it.
        node: String,
    },
    /// The run began to empty its node, and nobody knows how far it came: pods may be on it still.
    Emptying {
        /// The step's id in the run.
        node: String,
    },
}

/// The code of a gate that had nothing to check on a host of which an earlier one found something.
pub const NOTHING_TO_CHECK: &str = "RW0658";

impl OutageCause {
    /// True where a check found something.
    pub fn is_of_check(&self) -> bool {
        matches!(self, OutageCause::GateFailed { code, .. } if code != NOTHING_TO_CHECK)
    }

    /// How sure it is that the host is out of service.
    pub fn certainty(&self) -> OutageCertainty {
        match self {
            OutageCause::InDoubt { .. } | OutageCause::SwitchedOffAndOn { .. } => {
                OutageCertainty::LeftInDoubt
            }
            OutageCause::Emptying { .. } | OutageCause::GivenBack { .. } => {
                OutageCertainty::Unknown
            }
            _ => OutageCertainty::Certain,
        }
    }

    /// True where the host may be in service all the same.
    pub fn is_in_doubt(&self) -> bool {
        self.certainty() != OutageCertainty::Certain
    }

    /// The id in the run of the step or gate that left it.
    pub fn node(&self) -> &str {
        match self {
            OutageCause::GateFailed { gate: node, .. }
            | OutageCause::StepFailed { node }
            | OutageCause::Unproven { node }
            | OutageCause::SwitchedOffAndOn { node }
            | OutageCause::InDoubt { node }
            | OutageCause::GivenBack { node }
            | OutageCause::Emptying { node } => node,
        }
    }

    /// How much it says: what a check found is more than that the host was disturbed, and that is
    /// more than a doubt.
    pub fn weight(&self) -> u8 {
        match self {
            _ if self.is_of_check() => 2,
            _ if self.is_in_doubt() => 0,
            _ => 1,
        }
    }
}

/// Notes an outage, but for one that says less than what is known; says whether it was noted.
pub fn note_outage<K: Ord>(outages: &mut BTreeMap<K, Outage>, host: K, outage: Outage) -> bool {
    if let Some(before) = outages.get(&host)
        && before.cause.weight() > outage.cause.weight()
    {
        return false;
    }
    outages.insert(host, outage);
    true
}

/// A host that a run left out of service. It stays so until a gate passes it, or somebody decides
/// otherwise.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Outage {
    /// Why.
    #[serde(flatten)]
    pub cause: OutageCause,
    /// Since when, RFC 3339.
    pub since: String,
    /// The run that left it so.
    pub run: String,
}

/// The hosts that runs left out of service, by name.
pub type Outages = BTreeMap<String, Outage>;

impl Outage {
    /// In one line, equal for all hosts that one gate did not pass or that one run left.
    pub fn words(&self) -> String {
        let run = &self.run;
        match &self.cause {
            OutageCause::GateFailed { check, .. } => {
                format!("run {run}: its gate failed at {}: {check}", self.since)
            }
            OutageCause::StepFailed { .. } => {
                format!("run {run}: a step failed, and no gate has passed it since")
            }
            OutageCause::Unproven { .. } => {
                format!("run {run} disturbed it, and no gate has passed it since")
            }
            OutageCause::SwitchedOffAndOn { .. } => {
                format!("it was switched off and on for run {run}, and no gate has passed it since")
            }
            OutageCause::InDoubt { .. } => format!(
                "run {run}: a step that disturbs nobody failed, and no gate has passed it since"
            ),
            OutageCause::GivenBack { .. } => format!(
                "run {run} left it out of service, and another folder's run worked on it since"
            ),
            OutageCause::Emptying { .. } => {
                format!("run {run} began to empty its node, and no gate has passed it since")
            }
        }
    }

    /// Describes the outage with its step and its time.
    pub fn details(&self) -> String {
        match &self.cause {
            OutageCause::GateFailed { .. } => self.words(),
            cause => format!("{} ({}, {})", self.words(), cause.node(), self.since),
        }
    }

    /// Takes these secrets out of what its check reported.
    pub fn redact(&mut self, redaction: Option<&Redaction>) {
        if let (OutageCause::GateFailed { check, .. }, Some(redaction)) =
            (&mut self.cause, redaction)
        {
            *check = redaction.apply(check);
        }
    }

    /// Cuts texts that came from a host to what may be shown and kept.
    pub fn in_plain_lines(self) -> Self {
        let cause = match self.cause {
            OutageCause::GateFailed { gate, code, check } => OutageCause::GateFailed {
                gate: cut_line(&gate),
                code: cut_line(&code),
                check: cut_line(&check),
            },
            OutageCause::StepFailed { node } => OutageCause::StepFailed {
                node: cut_line(&node),
            },
            OutageCause::Unproven { node } => OutageCause::Unproven {
                node: cut_line(&node),
            },
            OutageCause::SwitchedOffAndOn { node } => OutageCause::SwitchedOffAndOn {
                node: cut_line(&node),
            },
            OutageCause::InDoubt { node } => OutageCause::InDoubt {
                node: cut_line(&node),
            },
            OutageCause::GivenBack { node } => OutageCause::GivenBack {
                node: cut_line(&node),
            },
            OutageCause::Emptying { node } => OutageCause::Emptying {
                node: cut_line(&node),
            },
        };
        Outage {
            cause,
            since: cut_line(&self.since),
            run: cut_line(&self.run),
        }
    }
}

fn cut_line(text: &str) -> String {
    one_line(text, 300)
}

/// Why hosts are out of service.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Unavailability {
    /// An earlier run left them so: they are verified before anything else is disturbed.
    LeftByRun(Outage),
    /// They could not be reached or read.
    Unreachable {
        /// Why, in one line, without what is the host's own: equal for all hosts with the same
        /// trouble.
        reason: String,
    },
    /// They are another cluster's, or one machine under several names: nothing is done to them, and
    /// nothing is known of them.
    Refused {
        /// Why, in one line, as for those that could not be reached.
        reason: String,
    },
    /// Another run works on them; only a run sees that.
    WorkedOn {
        /// Who.
        by: String,
    },
    /// Their nodes of the Kubernetes cluster are not Ready.
    NotReady,
    /// Their nodes of the Kubernetes cluster are cordoned, and not by a run of this spec.
    CordonedByOthers,
    /// Their nodes of the Kubernetes cluster bear the mark of a run of this spec that has not given
    /// them back.
    LeftCordoned {
        /// The run.
        run: String,
    },
    /// The Kubernetes cluster does not report how their nodes are.
    NodeUnknown,
}

/// How sure it is that a host is out of service. Of the first three there may be any number at
/// once, whatever runs do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutageCertainty {
    /// A step of a run failed that disturbs nobody: it may carry jobs all the same.
    LeftInDoubt,
    /// Others keep new pods from its node, and those that are on it may go on.
    Cordoned,
    /// Its node is not Ready, and pods on it may go on all the same.
    NotReady,
    /// Whether it carries jobs is unknown.
    Unknown,
    /// It cannot be in service.
    Certain,
}

impl Unavailability {
    /// How sure it is that the hosts are out of service.
    pub fn certainty(&self) -> OutageCertainty {
        match self {
            Unavailability::LeftByRun(outage) => outage.cause.certainty(),
            Unavailability::CordonedByOthers => OutageCertainty::Cordoned,
            Unavailability::NotReady => OutageCertainty::NotReady,
            Unavailability::Unreachable { .. }
            | Unavailability::LeftCordoned { .. }
            | Unavailability::NodeUnknown => OutageCertainty::Unknown,
            Unavailability::Refused { .. } | Unavailability::WorkedOn { .. } => {
                OutageCertainty::Certain
            }
        }
    }

    /// True where the cluster reports so of their nodes.
    pub fn is_of_node(&self) -> bool {
        matches!(
            self,
            Unavailability::NotReady
                | Unavailability::CordonedByOthers
                | Unavailability::LeftCordoned { .. }
                | Unavailability::NodeUnknown
        )
    }

    /// In one line.
    pub fn words(&self) -> String {
        match self {
            Unavailability::LeftByRun(outage) => outage.words(),
            Unavailability::Unreachable { reason } | Unavailability::Refused { reason } => {
                reason.clone()
            }
            Unavailability::WorkedOn { by } => format!("another run works on it: {by}"),
            Unavailability::NotReady => "the cluster says that the node is NotReady".to_owned(),
            Unavailability::CordonedByOthers => {
                "the node is cordoned, and not by railwright".to_owned()
            }
            Unavailability::LeftCordoned { run } => {
                format!("run {run} cordoned the node and has not given it back")
            }
            Unavailability::NodeUnknown => "the cluster does not say how the node is".to_owned(),
        }
    }

    /// How it stands with the host of a node of the cluster; nothing where pods can be put there.
    pub fn of_node(node: &NodeNow, spec: &str) -> Option<Self> {
        if let Some(mark) = &node.cordoned
            && !node.schedulable
        {
            let cordon = Cordon::read(mark);
            if cordon.is_of(spec) {
                return Some(Unavailability::LeftCordoned { run: cordon.run });
            }
        }
        if !node.ready {
            Some(Unavailability::NotReady)
        } else if !node.schedulable {
            Some(Unavailability::CordonedByOthers)
        } else {
            None
        }
    }
}

/// Hosts that are out of service for one reason.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Unavailable {
    /// The hosts, as a node-set.
    pub hosts: String,
    /// Why.
    #[serde(flatten)]
    pub why: Unavailability,
}

impl Unavailable {
    /// Hosts with one reason each, folded by it.
    pub fn fold<'a>(hosts: impl IntoIterator<Item = (&'a str, Unavailability)>) -> Vec<Self> {
        let mut by_reason: BTreeMap<Unavailability, Vec<&str>> = BTreeMap::new();
        for (host, why) in hosts {
            by_reason.entry(why).or_default().push(host);
        }
        let mut folded = Vec::new();
        for (why, hosts) in by_reason {
            let hosts = nodeset::fold_node_set(&hosts);
            folded.push(Unavailable { hosts, why });
        }
        folded
    }

    /// What runs left out of service.
    pub fn left_by_runs<'a>(
        outages: impl IntoIterator<Item = (&'a String, &'a Outage)>,
    ) -> Vec<Self> {
        let hosts = outages.into_iter();
        Unavailable::fold(hosts.map(|(host, outage)| {
            let why = Unavailability::LeftByRun(outage.clone());
            (host.as_str(), why)
        }))
    }

    /// The hosts' names.
    pub fn names(&self) -> Vec<String> {
        nodeset::expand_node_set(&self.hosts).unwrap_or_default()
    }

    /// True where an earlier run left them so.
    pub fn is_left_by_run(&self) -> bool {
        matches!(self.why, Unavailability::LeftByRun(_))
    }

    /// True where an earlier run left their nodes cordoned.
    pub fn is_left_cordoned(&self) -> bool {
        matches!(self.why, Unavailability::LeftCordoned { .. })
    }
}

/// The hosts of the spec that are out of service, also those that the plan is narrowed away from
/// and those without SSH: each by what is known of it itself, where what an earlier run left comes
/// first, and by what the cluster reports of its node.
pub(super) fn list_unavailable_hosts(inputs: &PlanInputs, known: &KnownNodes) -> Vec<Unavailable> {
    let of_nodes = find_unavailable_nodes(inputs, known);
    let without_ssh = inputs.header.hosts_without_ssh();
    let mut unavailable: Vec<(&str, Unavailability)> = Vec::new();
    for host in inputs.targets.iter().chain(&without_ssh) {
        if host.kind != TargetKind::Host {
            continue;
        }
        let of_host = match inputs.outages.get(&*host.name) {
            Some(outage) => Some(Unavailability::LeftByRun(outage.clone())),
            None if without_ssh.contains(host) => None,
            None => find_unread_host(inputs, host),
        };
        let reasons = of_host.into_iter().chain(of_nodes.get(host).cloned());
        unavailable.extend(reasons.map(|why| (&*host.name, why)));
    }
    Unavailable::fold(unavailable)
}

/// Why a host could not be read; nothing where it could.
fn find_unread_host(inputs: &PlanInputs, host: &Target) -> Option<Unavailability> {
    let finding = find_read_results(inputs.observation, host).err()?;
    let reason = match finding.trouble {
        Some(trouble) => trouble.shared_message,
        None => finding.reason,
    };
    Some(if inputs.identity.refused.contains_key(host) {
        Unavailability::Refused { reason }
    } else {
        Unavailability::Unreachable { reason }
    })
}

/// The hosts whose nodes are out of service, by what the cluster reports; where it reports nothing,
/// all that may be nodes.
fn find_unavailable_nodes(
    inputs: &PlanInputs,
    known: &KnownNodes,
) -> BTreeMap<Target, Unavailability> {
    let mut unavailable = BTreeMap::new();
    let Some(nodes) = &inputs.nodes else {
        return unavailable;
    };
    for (host, name) in &nodes.by_host {
        let why = match known {
            Ok(known) => known
                .get(name)
                .and_then(|now| Unavailability::of_node(now, &nodes.spec)),
            Err(_) => Some(Unavailability::NodeUnknown),
        };
        unavailable.extend(why.map(|why| (host.clone(), why)));
    }
    unavailable
}

/// The hosts that a gate has to pass before anything else is disturbed: an earlier run left them,
/// they answer, and the plan does not exclude them. Who does not answer cannot be verified, and
/// counts all the same. Of the nodes that an earlier run left cordoned, those that the plan works
/// on: they use up the budget until they are given back.
pub(super) fn verified_first(
    inputs: &PlanInputs,
    unavailable: &[Unavailable],
    parts: &[TargetPlan],
) -> BTreeSet<Target> {
    let mut cordoned = BTreeSet::new();
    for hosts in unavailable {
        if hosts.is_left_cordoned() {
            cordoned.extend(hosts.names().into_iter().map(Target::host));
        }
    }
    let mut first = BTreeSet::new();
    for part in parts {
        if part.is_open() && cordoned.contains(&part.target) {
            first.insert(part.target.clone());
        }
    }
    for host in inputs.targets {
        if host.kind == TargetKind::Host
            && inputs.outages.contains_key(&*host.name)
            && find_read_results(inputs.observation, host).is_ok()
            && !inputs.selection.excludes(&host.to_string())
        {
            first.insert(host.clone());
        }
    }
    first
}
