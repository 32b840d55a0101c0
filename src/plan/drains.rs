//! Nodes of a Kubernetes cluster are emptied before their hosts are disturbed, and given back after
//! the gate that proves them.
//!
//! - What needs no empty node and comes before what does is done first: packages are installed
//!   while jobs go on.
//! - A host that is no node of the cluster (not yet, or under another name) is not emptied, and the
//!   plan says so; where nobody knows, the step itself finds out.
//! - By machine-ids, a host whose node is another machine, or that is a node under another name, is
//!   left alone.
//! - A node that an earlier run cordoned and did not give back is given back by the next one,
//!   through a gate, even where
//!   the spec empties no nodes any more.

use super::blocked::BlockedReason;
use super::diff::find_read_results;
use super::make::node_graph;
use super::model::{NodeKind, NotEmptied, PlanNode, UnknownFinding};
use super::part::TargetPlan;
use super::{DrainPolicy, PlanInputs};
use crate::by_hand::is_by_hand;
use railwright_base::text::one_line;
use railwright_base::{MachineId, Target};
use railwright_knowledge::spec::LoadedSpec;
use railwright_resource::kubernetes_object::nodes::{NodeNow, read_cluster_nodes};
use railwright_resource::{Disruption, Observation, host};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the hosts of a spec are called as nodes of its Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterNodes {
    /// The cluster.
    pub cluster: Target,
    /// The spec's own name, which is in the marks on nodes: another spec may have hosts of the same
    /// names.
    pub spec: String,
    /// The names, by host. Those without SSH are among them: an earlier run may have cordoned their
    /// nodes.
    pub by_host: BTreeMap<Target, String>,
}

impl ClusterNodes {
    /// Of a spec that was loaded; nothing where it names no cluster.
    pub fn of(loaded: &LoadedSpec) -> Option<Self> {
        let cluster = Target::kube(loaded.kubernetes_name()?);
        let by_host = loaded
            .hosts
            .iter()
            .map(|host| (Target::host(&host.name), host.node.clone()))
            .collect();
        Some(ClusterNodes {
            cluster,
            spec: loaded.spec.cluster.clone(),
            by_host,
        })
    }
}

/// Puts the steps that empty nodes before those that disturb their hosts, and notes which are given
/// back. The hosts that should have been emptied and are no nodes come back, in the order of their
/// names.
pub(super) fn put_in(
    parts: &mut [TargetPlan],
    inputs: &PlanInputs,
    known: &KnownNodes,
) -> Vec<NotEmptied> {
    let Some(nodes) = &inputs.nodes else {
        return Vec::new();
    };
    let mut not_emptied = Vec::new();
    // All hosts are asked who they are, and most clusters know each by its name.
    let other_names = LazyCell::new(|| find_other_node_names(inputs.observation, nodes, known));
    for part in parts {
        let Some(name) = nodes.by_host.get(&part.target) else {
            continue;
        };
        let now = known.as_ref().ok().and_then(|known| known.get(name));
        if known.is_err() || now.is_some() {
            plan_drain(part, inputs, nodes, name, now);
        } else if !is_disrupted(part, inputs.rollout.drain.as_ref()) {
            continue;
        } else if let Some(other) = other_names.get(&part.target) {
            part.block(&BlockedReason::Stated(describe_other_node_name(
                other,
                &nodes.cluster,
            )));
        } else {
            not_emptied.push(NotEmptied {
                host: part.target.clone(),
                cluster: nodes.cluster.clone(),
                node: name.clone(),
            });
        }
    }
    not_emptied.sort();
    not_emptied
}

/// Plans how the node of one host is emptied and given back; `now` is nothing where the cluster did
/// not say.
fn plan_drain(
    part: &mut TargetPlan,
    inputs: &PlanInputs,
    nodes: &ClusterNodes,
    name: &str,
    now: Option<&NodeNow>,
) {
    let policy = inputs.rollout.drain.as_ref();
    let host = part.target.clone();
    let (cluster, node) = (nodes.cluster.clone(), name.to_owned());
    let other = now.and_then(|now| other_machine(inputs.observation, &host, name, now));
    // Emptying that node would leave pods on this host, and take them from another one.
    if let Some(why) = &other
        && is_disrupted(part, policy)
    {
        part.block(&BlockedReason::Stated(why.clone()));
    }
    let is_drained = match policy {
        Some(policy) if other.is_none() => {
            let (cluster, node) = (cluster.clone(), node.clone());
            insert_drain_step(part, policy, NodeKind::Drain { cluster, node })
        }
        _ => false,
    };
    // Whether nodes are emptied now says nothing of one that was emptied before.
    let left = now.is_some_and(|now| now.left_cordoned(&nodes.spec).is_some());
    if is_drained || (left && inputs.selection.covers(&host.to_string())) {
        let kind = NodeKind::Uncordon {
            cluster,
            node,
            left,
        };
        part.uncordon = Some(new_drain_step(&host, "uncordon", kind, Disruption::None));
    }
}

/// Whether a part has steps that need an empty node, now or once its host was switched off and on.
fn is_disrupted(part: &TargetPlan, policy: Option<&DrainPolicy>) -> bool {
    let waits = part.nodes.iter().any(is_by_hand);
    let is_done = |node: &&PlanNode| node.blocked.is_none() || waits;
    let mut done = part.nodes.iter().filter(is_done);
    policy.is_some_and(|policy| done.any(|node| policy.is_needed_for(node)))
}

/// The nodes of a cluster by name, or why they are not known.
pub(super) type KnownNodes = Result<BTreeMap<String, NodeNow>, UnknownFinding>;

/// The nodes as the spec's cluster reports them; none where it names no cluster.
pub(super) fn find_cluster_nodes(inputs: &PlanInputs) -> KnownNodes {
    let Some(ClusterNodes { cluster, .. }) = &inputs.nodes else {
        return Ok(BTreeMap::new());
    };
    let answers = find_read_results(inputs.observation, cluster)?;
    read_cluster_nodes(answers).map_err(|why| {
        let reason = format!(
            "its nodes could not be listed: {}",
            one_line(why.as_words(), 200)
        );
        UnknownFinding::new(cluster.to_string(), reason)
    })
}

/// A finding where the node of that name is another machine than the host, by the machine-ids that
/// its kubelet and the host report.
fn other_machine(
    observation: &Observation,
    host: &Target,
    name: &str,
    node: &NodeNow,
) -> Option<String> {
    let (own, of_node) = (read_machine_id(observation, host)?, node.machine.as_ref()?);
    if own == *of_node {
        return None;
    }
    Some(format!(
        "the node {name} is another machine: its kubelet tells machine-id {of_node}, the host \
         {own}; correct its address, or kubernetes_node, in the spec; where the host was \
         re-installed, delete the node of before (kubectl delete node {name}), and it joins anew"
    ))
}

/// The machine-id that a host reports, where it has one.
fn read_machine_id(observation: &Observation, host: &Target) -> Option<MachineId> {
    let facts = host::decode_host_facts(&observation.targets.get(host)?.answers).ok()?;
    facts.machine_id.known().cloned()
}

/// The nodes of no host of the spec that are one of its hosts all the same, by their machine-ids.
/// One that several nodes or several hosts have (cloned images) says of none of them who it is.
fn find_other_node_names<'a>(
    observation: &Observation,
    nodes: &'a ClusterNodes,
    known: &'a KnownNodes,
) -> BTreeMap<&'a Target, &'a str> {
    let mut named: BTreeMap<&MachineId, Vec<&str>> = BTreeMap::new();
    for (name, node) in known.iter().flatten() {
        if let Some(machine) = &node.machine {
            named.entry(machine).or_default().push(name);
        }
    }
    let mut hosts: BTreeMap<MachineId, Vec<&Target>> = BTreeMap::new();
    for host in nodes.by_host.keys() {
        if let Some(machine) = read_machine_id(observation, host) {
            hosts.entry(machine).or_default().push(host);
        }
    }
    let of_spec: BTreeSet<&str> = nodes.by_host.values().map(String::as_str).collect();
    let mut other_names = BTreeMap::new();
    for (machine, hosts) in &hosts {
        if let ([host], Some([name])) = (&hosts[..], named.get(machine).map(Vec::as_slice))
            && !of_spec.contains(name)
        {
            other_names.insert(*host, *name);
        }
    }
    other_names
}

fn describe_other_node_name(name: &str, cluster: &Target) -> String {
    let name = one_line(name, 253);
    format!(
        "it is the node {name} of {cluster}, by the machine-id that both tell, and would be \
         disturbed with the pods on it: write `kubernetes_node: {name}` in the spec, and the node \
         is emptied first"
    )
}

fn new_drain_step(target: &Target, word: &str, kind: NodeKind, disruption: Disruption) -> PlanNode {
    PlanNode {
        id: format!("{target}/{word}"),
        kind,
        target: Some(target.clone()),
        disruption,
        interrupts: Arc::default(),
        after: Vec::new(),
        wave: 0,
        blocked: None,
    }
}

/// The steps of a part that need an empty node, by number.
fn find_disruptive_steps(part: &TargetPlan, policy: &DrainPolicy) -> Vec<usize> {
    let mut steps = Vec::new();
    for (n, node) in part.nodes.iter().enumerate() {
        if node.blocked.is_none() && policy.is_needed_for(node) {
            steps.push(n);
        }
    }
    steps
}

/// Puts a drain before everything that needs an empty node; false where nothing does.
fn insert_drain_step(part: &mut TargetPlan, policy: &DrainPolicy, kind: NodeKind) -> bool {
    let needs = find_disruptive_steps(part, policy);
    if needs.is_empty() {
        return false;
    }
    let late = node_graph(&part.nodes).with_dependants(needs.iter().copied());
    let mut drain = new_drain_step(&part.target, "drain", kind, Disruption::Drain);
    drain.interrupts = Arc::new([match policy.evict {
        true => "all pods of the node but those of DaemonSets".to_owned(),
        false => "nothing: pods are left to end by themselves".to_owned(),
    }]);
    for n in &needs {
        part.nodes[*n].after.push(drain.id.clone());
        part.nodes[*n].after.sort();
    }
    // Nothing early waits for anything late, so that each half stays in order.
    let (mut early_nodes, mut late_nodes) = (Vec::new(), Vec::new());
    let mut needed: BTreeSet<String> = BTreeSet::new();
    for (n, node) in std::mem::take(&mut part.nodes).into_iter().enumerate() {
        if needs.contains(&n) {
            needed.extend(node.after.iter().cloned());
        }
        if late.contains(&n) {
            late_nodes.push(node);
        } else {
            early_nodes.push(node);
        }
    }
    let early_ids: BTreeSet<&String> = early_nodes.iter().map(|node| &node.id).collect();
    needed.retain(|id| early_ids.contains(id));
    drain.after = needed.into_iter().collect();
    early_nodes.push(drain);
    early_nodes.append(&mut late_nodes);
    part.put(early_nodes);
    true
}
