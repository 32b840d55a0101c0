//! What waits for a power cycle that somebody makes by hand: the power cycle itself, and what comes
//! after it on its host. A plan holds both. A run takes them up once the host was switched off and
//! on: in waves of their own, after all others and by the same rules, each with its gate.
//!
//! What needs something else that is blocked stays blocked, and so does what waits for the power
//! cycle of another host, and what needs an empty node: whoever switched the host off has emptied
//! its node, and pods may be on it again by the time that it is on. A plan that is made then
//! empties it.

use super::blocked::BlockedReason;
use super::make::number_nodes;
use super::model::{NodeKind, Plan, PlanNode};
use super::waves::{build_gate_node, gate_id, split_into_waves};
use railwright_base::{Address, Target};
use railwright_graph::Graph;
use railwright_resource::Disruption;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A reboot that somebody makes by switching the host off and on.
pub fn is_by_hand(node: &PlanNode) -> bool {
    node.kind == NodeKind::Reboot && node.disruption == Disruption::PowerCycle
}

/// Whether a plan has nothing to do with a resource and knows all of it: it is in sync, or it is
/// not in the spec and nothing is remembered of it.
pub fn asks_nothing_of(plan: &Plan, address: &Address) -> bool {
    if !plan.narrowed.is_empty() {
        return false;
    }
    let mut members = plan.nodes.iter().flat_map(PlanNode::members);
    if members.any(|member| member.resource.address == *address) {
        return false;
    }
    for finding in &plan.unknown {
        let is_about_it = match finding.about() {
            Some((target, None)) => target == address.target,
            Some((_, Some(resource))) => {
                resource.target == address.target && resource.path == address.path
            }
            None => false,
        };
        if is_about_it {
            return false;
        }
    }
    true
}

/// The nodes directly before one, by their numbers.
fn list_prerequisites(node: &PlanNode, number: &HashMap<&str, usize>) -> Vec<usize> {
    let ids = node.after.iter();
    ids.filter_map(|id| number.get(id.as_str()).copied())
        .collect()
}

/// By the number of each power cycle by hand, the changes of its host that come before it, however
/// far.
pub fn changes_before_power_cycles(nodes: &[PlanNode]) -> BTreeMap<usize, Vec<&PlanNode>> {
    let number = number_nodes(nodes);
    let mut edges = Vec::new();
    for (n, node) in nodes.iter().enumerate() {
        for before in list_prerequisites(node, &number) {
            if nodes[before].target == node.target {
                edges.push((before, n));
            }
        }
    }
    let graph = Graph::new(nodes.len(), edges);
    let mut changes = BTreeMap::new();
    for (n, node) in nodes.iter().enumerate() {
        if is_by_hand(node) {
            let before = graph.with_prerequisites([n]);
            let mut before: Vec<&PlanNode> = before.into_iter().map(|m| &nodes[m]).collect();
            before.retain(|node| node.is_change());
            changes.insert(n, before);
        }
    }
    changes
}

/// The plan with its power cycles, and what comes after them, as steps that can be taken up;
/// nothing where it has none. The nodes keep their places; the gates of the further waves come
/// last.
pub fn release_power_cycles(plan: &Plan) -> Option<Plan> {
    let mut waits = find_nodes_awaiting_power_cycle(&plan.nodes);
    if waits.is_empty() {
        return None;
    }
    let occupied = withhold_from_nodes(plan, &mut waits);
    let mut hosts = list_gated_hosts(&plan.nodes);
    hosts.retain(|host| waits.contains_key(host));
    if hosts.is_empty() {
        return None;
    }
    let mut plan = plan.clone();
    for n in occupied {
        plan.nodes[n].blocked = Some(BlockedReason::NeedsEmptyNode);
    }
    // Every wave has a gate, so there are no more waves than nodes; a plan file may say otherwise.
    let last = plan.nodes.iter().map(|node| node.wave).max().unwrap_or(0);
    let first = last.min(plan.nodes.len()) + 1;
    let mut gate_before = None;
    for (hosts, wave) in split_into_waves(&hosts, &plan.rollout).iter().zip(first..) {
        let mut ends = Vec::new();
        for host in hosts {
            if let Some(own) = waits.get(host) {
                ends.extend(take_up(&mut plan.nodes, own, wave, gate_before.as_ref()));
            }
        }
        plan.nodes.push(build_gate_node(wave, hosts, ends));
        gate_before = Some(gate_id(wave));
    }
    Some(plan)
}

/// Whether a step follows a power cycle and is left to a plan that empties its host's node.
pub fn is_left_to_new_plan(node: &PlanNode) -> bool {
    node.blocked == Some(BlockedReason::NeedsEmptyNode)
}

/// Takes out of what waits for power cycles the steps that need an empty node, and what needs
/// these. A host that was no node when the plan was made is looked at before each of its steps.
fn withhold_from_nodes(
    plan: &Plan,
    waits: &mut BTreeMap<Target, BTreeSet<usize>>,
) -> BTreeSet<usize> {
    let mut occupied = BTreeSet::new();
    let Some(policy) = &plan.rollout.drain else {
        return occupied;
    };
    let number = number_nodes(&plan.nodes);
    for (host, own) in waits {
        if plan.not_emptied.iter().any(|one| one.host == *host) {
            continue;
        }
        let places = Vec::from_iter(own.iter().copied());
        let needs = (0..places.len()).filter(|at| policy.is_needed_for(&plan.nodes[places[*at]]));
        for at in build_host_graph(&plan.nodes, &places, &number).with_dependants(needs) {
            own.remove(&places[at]);
            occupied.insert(places[at]);
        }
    }
    occupied
}

/// Takes up the nodes of one host in this wave; the ids of those for which nothing of them waits.
/// What follows the power cycle begins after the gate before it; that the power cycle was made is
/// reported in any order.
fn take_up(
    nodes: &mut [PlanNode],
    own: &BTreeSet<usize>,
    wave: usize,
    gate_before: Option<&String>,
) -> Vec<String> {
    let (mut power_cycles, mut following) = (BTreeSet::new(), BTreeSet::new());
    for n in own {
        let node = &nodes[*n];
        if is_by_hand(node) {
            power_cycles.insert(node.id.clone());
        } else {
            following.insert(node.id.clone());
        }
    }
    let mut ends: BTreeSet<String> = power_cycles.union(&following).cloned().collect();
    for n in own {
        let node = &mut nodes[*n];
        ends.retain(|id| !node.after.contains(id));
        let is_first =
            following.contains(&node.id) && !node.after.iter().any(|id| following.contains(id));
        if let Some(gate) = gate_before
            && is_first
        {
            node.after.push(gate.clone());
        }
        (node.wave, node.blocked) = (wave, None);
    }
    ends.into_iter().collect()
}

/// The hosts with gates, in the order in which the plan takes them.
fn list_gated_hosts(nodes: &[PlanNode]) -> Vec<Target> {
    let mut gates: Vec<&PlanNode> = nodes.iter().collect();
    gates.retain(|node| !node.verified().is_empty());
    gates.sort_by_key(|gate| gate.wave);
    let mut seen = BTreeSet::new();
    let mut hosts = Vec::new();
    for host in gates.into_iter().flat_map(PlanNode::verified) {
        if seen.insert(host) {
            hosts.push(Target::host(host));
        }
    }
    hosts
}

/// By host, the nodes that wait for its power cycle and for nothing else that is blocked; the power
/// cycle among them.
fn find_nodes_awaiting_power_cycle(nodes: &[PlanNode]) -> BTreeMap<Target, BTreeSet<usize>> {
    let mut nodes_of: BTreeMap<&Target, Vec<usize>> = BTreeMap::new();
    for node in nodes {
        if let Some(target) = &node.target
            && is_by_hand(node)
            && node.blocked.is_some()
        {
            nodes_of.insert(target, Vec::new());
        }
    }
    if nodes_of.is_empty() {
        return BTreeMap::new();
    }
    for (n, node) in nodes.iter().enumerate() {
        if let Some(target) = &node.target
            && let Some(own) = nodes_of.get_mut(target)
        {
            own.push(n);
        }
    }
    let number = number_nodes(nodes);
    let mut awaiting = BTreeMap::new();
    for (target, own) in nodes_of {
        let waits = waiting_on(nodes, &own, &number);
        if !waits.is_empty() {
            awaiting.insert(target.clone(), waits);
        }
    }
    awaiting
}

/// The nodes of one host alone, by their places in `own`: gates tie the nodes of all hosts
/// together.
fn build_host_graph(nodes: &[PlanNode], own: &[usize], number: &HashMap<&str, usize>) -> Graph {
    let places: HashMap<usize, usize> = own.iter().copied().zip(0..).collect();
    let mut edges = Vec::new();
    for n in own {
        for before in list_prerequisites(&nodes[*n], number) {
            if let Some(before) = places.get(&before) {
                edges.push((*before, places[n]));
            }
        }
    }
    Graph::new(own.len(), edges)
}

fn waiting_on(nodes: &[PlanNode], own: &[usize], number: &HashMap<&str, usize>) -> BTreeSet<usize> {
    let graph = build_host_graph(nodes, own, number);
    let mut waits = BTreeSet::new();
    for at in graph.order().unwrap_or_default() {
        let n = own[at];
        let Some(blocked) = &nodes[n].blocked else {
            continue;
        };
        let mut before = list_prerequisites(&nodes[n], number).into_iter();
        if !before.all(|m| nodes[m].blocked.is_none() || waits.contains(&m)) {
            continue;
        }
        // A node that is blocked by another one names it.
        let mut causes = graph.with_prerequisites([at]).into_iter();
        let is_cause = |id: &str, m: usize| m != at && nodes[own[m]].id == id;
        if is_by_hand(&nodes[n])
            || matches!(blocked, BlockedReason::NeedsStep(id) if causes.any(|m| is_cause(id, m)))
        {
            waits.insert(n);
        }
    }
    waits
}
