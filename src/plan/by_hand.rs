//! What waits for a power cycle that somebody makes by hand: the power cycle itself, and what comes
//! after it on its host. A plan holds both. A run takes them up once the host was switched off and
//! on: in waves of their own, after all others and by the same rules, each with its gate.
//!
//! What needs something else that is held stays held, and so does what waits for the power cycle of
//! another host.

use super::model::{NodeKind, Plan, PlanNode};
use super::part::describe_blocking_cause;
use super::waves::{build_gate_node, gate_id, split_into_waves};
use railwright_base::{Address, Target};
use railwright_graph::Graph;
use railwright_resource::Disruption;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A reboot that somebody makes by switching the host off and on.
pub fn is_by_hand(node: &PlanNode) -> bool {
    node.kind == NodeKind::Reboot && node.disruption == Disruption::PowerCycle
}

/// Whether a plan has nothing to do with a resource and knows all of it: it is as wished, or it is
/// not in the spec and nothing is remembered of it.
pub fn asks_nothing_of(plan: &Plan, address: &Address) -> bool {
    let is_member = || {
        plan.nodes
            .iter()
            .flat_map(PlanNode::members)
            .any(|member| member.wish.address == *address)
    };
    let is_about = |(target, resource): (Target, Option<Address>)| {
        target == address.target && resource.is_none_or(|resource| resource.path == address.path)
    };
    let is_unknown = || {
        plan.unknown
            .iter()
            .filter_map(|finding| finding.about())
            .any(is_about)
    };
    plan.narrowed.is_empty() && !is_member() && !is_unknown()
}

/// By the number of each power cycle by hand, the changes of its host that come before it, however
/// far.
pub fn changes_before_power_cycles(nodes: &[PlanNode]) -> BTreeMap<usize, Vec<&PlanNode>> {
    let number: HashMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .map(|(n, node)| (node.id.as_str(), n))
        .collect();
    let own = |n: usize| {
        let before = nodes[n]
            .after
            .iter()
            .filter_map(|id| number.get(id.as_str()).copied());
        before
            .filter(|m| nodes[*m].target == nodes[n].target)
            .map(|m| (m, n))
            .collect::<Vec<_>>()
    };
    let graph = Graph::new(nodes.len(), (0..nodes.len()).flat_map(own));
    let changes = |n: usize| {
        graph
            .with_prerequisites([n])
            .into_iter()
            .map(|m| &nodes[m])
            .filter(|node| node.is_change())
            .collect()
    };
    (0..nodes.len())
        .filter(|n| is_by_hand(&nodes[*n]))
        .map(|n| (n, changes(n)))
        .collect()
}

/// The plan with its power cycles, and what comes after them, as steps that can be taken up;
/// nothing where it has none. The nodes keep their places; the gates of the further waves come
/// last.
pub fn release_power_cycles(plan: &Plan) -> Option<Plan> {
    let waits = find_nodes_awaiting_power_cycle(&plan.nodes);
    if waits.is_empty() {
        return None;
    }
    let hosts: Vec<Target> = in_turn(&plan.nodes)
        .into_iter()
        .filter(|host| waits.contains_key(host))
        .collect();
    if hosts.is_empty() {
        return None;
    }
    let mut plan = plan.clone();
    // Every wave has a gate, so there are no more waves than nodes; a plan file may say otherwise.
    let first = plan
        .nodes
        .iter()
        .map(|node| node.wave)
        .max()
        .unwrap_or(0)
        .min(plan.nodes.len())
        + 1;
    for (hosts, wave) in split_into_waves(&hosts, &plan.rollout)
        .into_iter()
        .zip(first..)
    {
        let before = (wave > first).then(|| gate_id(wave - 1));
        let mut ends = Vec::new();
        for own in hosts.iter().filter_map(|host| waits.get(host)) {
            ends.extend(take_up(&mut plan.nodes, own, wave, before.as_ref()));
        }
        plan.nodes.push(build_gate_node(wave, &hosts, ends));
    }
    Some(plan)
}

/// Takes up the nodes of one host in this wave; the ids of those for which nothing of them waits.
/// What follows the power cycle begins after the gate before it; that the power cycle was made is
/// told in any order.
fn take_up(
    nodes: &mut [PlanNode],
    own: &BTreeSet<usize>,
    wave: usize,
    before: Option<&String>,
) -> Vec<String> {
    let ids: BTreeSet<String> = own.iter().map(|n| nodes[*n].id.clone()).collect();
    let by_hand: BTreeSet<String> = own
        .iter()
        .filter(|n| is_by_hand(&nodes[**n]))
        .map(|n| nodes[*n].id.clone())
        .collect();
    let mut ends = ids.clone();
    for n in own {
        let node = &mut nodes[*n];
        ends.retain(|id| !node.after.contains(id));
        let is_first = !by_hand.contains(&node.id)
            && !node
                .after
                .iter()
                .any(|id| ids.contains(id) && !by_hand.contains(id));
        node.after.extend(before.filter(|_| is_first).cloned());
        (node.wave, node.held) = (wave, None);
    }
    ends.into_iter().collect()
}

/// The hosts with gates, in the order in which the plan takes them.
fn in_turn(nodes: &[PlanNode]) -> Vec<Target> {
    let mut gates: Vec<(usize, &Vec<String>)> = nodes
        .iter()
        .filter_map(|node| match &node.kind {
            NodeKind::Gate { hosts } => Some((node.wave, hosts)),
            _ => None,
        })
        .collect();
    gates.sort_by_key(|(wave, _)| *wave);
    let mut seen = BTreeSet::new();
    gates
        .into_iter()
        .flat_map(|(_, hosts)| hosts)
        .filter(|host| seen.insert(*host))
        .map(Target::host)
        .collect()
}

/// By host, the nodes that wait for its power cycle and for nothing else that is held; the power
/// cycle among them.
fn find_nodes_awaiting_power_cycle(nodes: &[PlanNode]) -> BTreeMap<Target, BTreeSet<usize>> {
    let with_one: BTreeSet<&Target> = nodes
        .iter()
        .filter(|node| is_by_hand(node) && node.held.is_some())
        .filter_map(|node| node.target.as_ref())
        .collect();
    let mut of_target: BTreeMap<&Target, Vec<usize>> = BTreeMap::new();
    for (n, node) in nodes.iter().enumerate() {
        if let Some(target) = node
            .target
            .as_ref()
            .filter(|target| with_one.contains(target))
        {
            of_target.entry(target).or_default().push(n);
        }
    }
    if of_target.is_empty() {
        return BTreeMap::new();
    }
    let number: HashMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .map(|(n, node)| (node.id.as_str(), n))
        .collect();
    let of_one = |(target, own): (&Target, Vec<usize>)| {
        let waits = waiting_on(nodes, &own, &number);
        (!waits.is_empty()).then(|| (target.clone(), waits))
    };
    of_target.into_iter().filter_map(of_one).collect()
}

fn waiting_on(nodes: &[PlanNode], own: &[usize], number: &HashMap<&str, usize>) -> BTreeSet<usize> {
    let place: HashMap<usize, usize> = own
        .iter()
        .enumerate()
        .map(|(place, n)| (*n, place))
        .collect();
    let before = |n: usize| {
        nodes[n]
            .after
            .iter()
            .filter_map(|id| number.get(id.as_str()).copied())
    };
    let edges = own
        .iter()
        .flat_map(|n| before(*n).filter_map(|m| Some((*place.get(&m)?, place[n]))));
    let graph = Graph::new(own.len(), edges.collect::<Vec<_>>());
    let mut waits = BTreeSet::new();
    for at in graph.order().unwrap_or_default() {
        let n = own[at];
        let Some(held) = &nodes[n].held else { continue };
        // Whoever is held for the sake of another says which.
        let for_another = || {
            graph
                .with_prerequisites([at])
                .into_iter()
                .any(|m| m != at && *held == describe_blocking_cause(&nodes[own[m]].id))
        };
        let freed = before(n).all(|m| nodes[m].held.is_none() || waits.contains(&m));
        if freed && (is_by_hand(&nodes[n]) || for_another()) {
            waits.insert(n);
        }
    }
    waits
}
