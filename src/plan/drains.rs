//! Nodes of a Kubernetes cluster are emptied before their hosts are disturbed, and given back after
//! the gate that proves them.
//!
//! - What needs no empty node and comes before what does is done first: packages are installed
//!   while jobs go on.
//! - A host that is no node of the cluster (not yet, or under another name) is not emptied, and the
//!   plan says so; where nobody knows,
//!   the step itself finds out. Where the node of its name is another machine, by both machine-ids, the host is left alone.
//! - A node that an earlier run cordoned and did not give back is given back by the next one,
//!   through a gate, even where
//!   the spec empties no nodes any more.

use super::make::node_graph;
use super::model::{NodeKind, NotEmptied, PlanNode};
use super::part::TargetPlan;
use super::{DrainPolicy, PlanInputs};
use crate::by_hand::is_by_hand;
use railwright_base::Target;
use railwright_knowledge::spec::LoadedSpec;
use railwright_resource::kubernetes_object::nodes::{NodeNow, read_cluster_nodes};
use railwright_resource::{Disruption, Observation, host};
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
pub(super) fn put_in(parts: &mut [TargetPlan], inputs: &PlanInputs) -> Vec<NotEmptied> {
    let Some(nodes) = &inputs.nodes else {
        return Vec::new();
    };
    let policy = inputs.rollout.drain.as_ref();
    let known = find_cluster_nodes(inputs.observation, &nodes.cluster);
    let mut not_emptied = Vec::new();
    for part in parts {
        let Some(name) = nodes.by_host.get(&part.target) else {
            continue;
        };
        let now = known.as_ref().map(|known| known.get(name));
        let (cluster, node) = (nodes.cluster.clone(), name.clone());
        if now == Some(None) {
            if policy.is_some_and(|policy| !find_disruptive_steps(part, policy).is_empty()) {
                not_emptied.push(NotEmptied {
                    host: part.target.clone(),
                    cluster,
                    node,
                });
            }
            continue;
        }
        let other = now
            .flatten()
            .and_then(|now| other_machine(inputs.observation, &part.target, name, now));
        // Emptying that node would leave pods on this host, and take them from another one.
        if let Some(why) = &other
            && policy.is_some_and(|policy| !find_disruptive_steps(part, policy).is_empty())
        {
            part.hold(why);
        }
        let kind = NodeKind::Drain {
            cluster: cluster.clone(),
            node: node.clone(),
        };
        let is_drained =
            other.is_none() && policy.is_some_and(|policy| insert_drain_step(part, policy, kind));
        // Whether nodes are emptied now says nothing of one that was emptied before.
        let left = now
            .flatten()
            .is_some_and(|now| now.left_cordoned(&nodes.spec).is_some());
        if is_drained || (left && inputs.selection.covers(&part.target.to_string())) {
            part.uncordon = Some(new_drain_step(
                &part.target,
                "uncordon",
                NodeKind::Uncordon {
                    cluster,
                    node,
                    left,
                },
                Disruption::None,
            ));
        }
    }
    not_emptied.sort();
    not_emptied
}

/// The nodes of the cluster by name; nothing where it did not say.
fn find_cluster_nodes(
    observation: &Observation,
    cluster: &Target,
) -> Option<BTreeMap<String, NodeNow>> {
    let found = observation
        .targets
        .get(cluster)
        .filter(|found| found.problem.is_none())?;
    read_cluster_nodes(&found.answers).ok()
}

/// Says so where the node of that name is another machine than the host, by the machine-ids that
/// its kubelet and the host tell.
fn other_machine(
    observation: &Observation,
    host: &Target,
    name: &str,
    node: &NodeNow,
) -> Option<String> {
    let facts = host::decode_host_facts(&observation.targets.get(host)?.answers).ok()?;
    let (own, of_node) = (facts.machine_id.known()?, node.machine.as_ref()?);
    (own != of_node).then(|| {
        format!(
            "the node {name} is another machine: its kubelet tells machine-id {of_node}, the host \
             {own}; correct its address, or kubernetes_node, in the spec; where the host was \
             re-installed, delete the node of before (kubectl delete node {name}), and it joins \
             anew"
        )
    })
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
        held: None,
    }
}

/// The steps of a part that need an empty node, by number. Whoever switches a host off by hand
/// empties its node by hand.
fn find_disruptive_steps(part: &TargetPlan, policy: &DrainPolicy) -> Vec<usize> {
    let disturbs = |node: &PlanNode| {
        node.held.is_none() && node.disruption >= policy.from && !is_by_hand(node)
    };
    (0..part.nodes.len())
        .filter(|n| disturbs(&part.nodes[*n]))
        .collect()
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
    let numbered = std::mem::take(&mut part.nodes).into_iter().enumerate();
    let (late_nodes, mut nodes): (Vec<_>, Vec<_>) = numbered.partition(|(n, _)| late.contains(n));
    let early: BTreeSet<&str> = nodes.iter().map(|(_, node)| node.id.as_str()).collect();
    let of_needs = late_nodes
        .iter()
        .filter(|(n, _)| needs.contains(n))
        .flat_map(|(_, node)| &node.after);
    drain.after = of_needs
        .filter(|id| early.contains(id.as_str()))
        .cloned()
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    nodes.push((late_nodes.len() + nodes.len(), drain));
    part.put(
        nodes
            .into_iter()
            .chain(late_nodes)
            .map(|(_, node)| node)
            .collect(),
    );
    true
}
