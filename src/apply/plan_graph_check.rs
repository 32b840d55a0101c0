//! The digest of a plan file is no signature: the order of its steps is compared with what the
//! steps themselves need. A host with work passes a gate, a reboot has a change before it, and no
//! order that the spec asks for is missing. Pure.

use super::trouble::NextCommands;
use railwright_base::{Address, Diagnostic, Target, TargetKind};
use railwright_graph::Graph;
use railwright_plan::cluster_first::is_before_hosts;
use railwright_plan::diff::{PlanItem, PlanItemStatus};
use railwright_plan::make::node_graph;
use railwright_plan::order::{contract_graph, item_graph};
use railwright_plan::part::TargetPlan;
use railwright_plan::waves::roll_out;
use railwright_plan::{LastApplied, NodeKind, Plan, PlanNode};
use railwright_resource::{DesiredResource, Disruption, ResourceDiff, kind_named};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the plan's graph leaves out or adds, against what its steps need. `resources` are those of
/// the spec; without a spec to compare, only gates and reboots are looked at.
pub fn check_plan_graph(
    plan: &Plan,
    resources: Option<&[DesiredResource]>,
    last: &LastApplied,
) -> Vec<Diagnostic> {
    let hosts = HostSteps::from_plan(plan);
    let mut problems: Vec<Diagnostic> = hosts.iter().flat_map(HostSteps::check_reboots).collect();
    problems.extend(check_gates(plan, &hosts));
    problems.extend(check_cluster_first(plan, &hosts));
    if let Some(resources) = resources {
        let desired = RequiredOrder::from_resources(plan, resources, last);
        problems.extend(hosts.iter().flat_map(|host| host.check_order(&desired)));
    }
    problems
        .into_iter()
        .map(|problem| problem.next(NextCommands::of(plan).anew()))
        .collect()
}

/// Checks the steps that only a power cycle keeps waiting, in a plan that takes them up. Its gates
/// are not checked: they were made with its waves.
pub fn loosened_later(
    plan: &Plan,
    resources: Option<&[DesiredResource]>,
    last: &LastApplied,
) -> Vec<Diagnostic> {
    let Some(resources) = resources else {
        return Vec::new();
    };
    let desired = RequiredOrder::from_resources(plan, resources, last);
    HostSteps::from_plan(plan)
        .iter()
        .flat_map(|host| host.check_order(&desired))
        .map(|problem| problem.next(NextCommands::of(plan).anew()))
        .collect()
}

fn report_inconsistent_plan(what: String) -> Diagnostic {
    Diagnostic::error(
        "RW0640",
        format!("the plan does not hold together as its own steps need it: {what}"),
    )
    .effect(
        "steps could run in a wrong order, on more hosts than have passed their gate, or disturb \
         a host for nothing",
    )
    .state("nothing was changed")
}

/// The steps of one host that are to be executed, and their order.
struct HostSteps<'a> {
    host: &'a Target,
    nodes: Vec<&'a PlanNode>,
    graph: Graph,
}

impl<'a> HostSteps<'a> {
    fn from_plan(plan: &'a Plan) -> Vec<Self> {
        let mut of_host: BTreeMap<&Target, Vec<&PlanNode>> = BTreeMap::new();
        for node in &plan.nodes {
            let Some(target) = &node.target else {
                continue;
            };
            if node.blocked.is_none() && is_disruptive_node(node) && target.kind == TargetKind::Host
            {
                of_host.entry(target).or_default().push(node);
            }
        }
        of_host
            .into_iter()
            .map(|(host, nodes)| HostSteps::new(host, nodes))
            .collect()
    }

    fn new(host: &'a Target, nodes: Vec<&'a PlanNode>) -> Self {
        let mut number: BTreeMap<&str, usize> = BTreeMap::new();
        for (n, node) in nodes.iter().enumerate() {
            number.insert(&node.id, n);
        }
        let mut edges = Vec::new();
        for (n, node) in nodes.iter().enumerate() {
            for id in &node.after {
                if let Some(before) = number.get(id.as_str()) {
                    edges.push((*before, n));
                }
            }
        }
        HostSteps {
            host,
            graph: Graph::new(nodes.len(), edges),
            nodes,
        }
    }

    fn reboots(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|n| self.nodes[*n].kind == NodeKind::Reboot)
    }

    /// Whether a change before it waits for the reboot is seen when its turn comes; with no change
    /// before it, none can. It also has to count as what it is, or the host would not be counted as
    /// out of service.
    fn check_reboots(&self) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for n in self.reboots() {
            let (node, before) = (self.nodes[n], self.graph.with_prerequisites([n]));
            let what = if !before.iter().any(|m| self.nodes[*m].is_change()) {
                "no step of the host comes before its reboot"
            } else if node.disruption != Disruption::Reboot {
                "the reboot does not count as one"
            } else {
                continue;
            };
            problems.push(report_inconsistent_plan(what.to_owned()).on(node.id.clone()));
        }
        problems
    }

    /// Pairs of resources that the spec puts in order and the plan does not. What comes before a
    /// reboot need not wait for what comes after it.
    fn check_order(&self, desired: &RequiredOrder) -> Vec<Diagnostic> {
        let Some(pairs) = desired.pairs.get(self.host) else {
            return Vec::new();
        };
        let (mut step_of, mut earlier) = (BTreeMap::new(), Vec::new());
        for (n, node) in self.nodes.iter().enumerate() {
            earlier.push(self.graph.with_prerequisites([n]));
            for member in node.members() {
                step_of.insert(&member.resource.address, n);
            }
        }
        let mut problems = Vec::new();
        for (first, then) in pairs {
            let (Some(before), Some(after)) = (step_of.get(first), step_of.get(then)) else {
                continue;
            };
            if earlier[*after].contains(before)
                || self.reboots().any(|reboot| {
                    earlier[reboot].contains(after) && earlier[*before].contains(&reboot)
                })
            {
                continue;
            }
            let (first, waits) = (first.within_target(), then.within_target());
            problems.push(
                report_inconsistent_plan(format!("{waits} does not wait for {first}"))
                    .on(then.to_string()),
            );
        }
        problems
    }
}

/// A host that would begin without what its cluster brings to it.
fn check_cluster_first(plan: &Plan, hosts: &[HostSteps]) -> Option<Diagnostic> {
    let mut graph = None;
    for (first, step) in plan.nodes.iter().enumerate() {
        if !is_before_hosts(step, &kind_named) {
            continue;
        }
        let graph = graph.get_or_insert_with(|| node_graph(&plan.nodes));
        let mut waiting: BTreeSet<&str> = BTreeSet::new();
        if step.blocked.is_none() {
            for n in graph.with_dependants([first]) {
                waiting.insert(&plan.nodes[n].id);
            }
        }
        let mut nodes = hosts.iter().flat_map(|host| &host.nodes);
        if let Some(early) = nodes.find(|node| !waiting.contains(node.id.as_str())) {
            let what = format!("a host does not wait for {}", step.id);
            return Some(report_inconsistent_plan(what).on(early.id.clone()));
        }
    }
    None
}

/// A step after which its host has to pass a gate.
fn is_disruptive_node(node: &PlanNode) -> bool {
    matches!(node.kind, NodeKind::Change { .. } | NodeKind::Reboot)
}

/// Each host with work is named by a gate that comes after all of it and in its wave, and the waves
/// are those that the rollout's rules make of these hosts.
fn check_gates(plan: &Plan, hosts: &[HostSteps]) -> Vec<Diagnostic> {
    let mut by_id: BTreeMap<&str, &PlanNode> = BTreeMap::new();
    for node in &plan.nodes {
        by_id.insert(&node.id, node);
    }
    let (mut gates, mut gate_of) = (Vec::new(), BTreeMap::new());
    for node in &plan.nodes {
        let (NodeKind::Gate { hosts }, None) = (&node.kind, &node.blocked) else {
            continue;
        };
        for host in hosts {
            gate_of.insert(host.as_str(), gates.len());
        }
        gates.push((node, waited_for(node, &by_id)));
    }
    let mut problems = Vec::new();
    for host in hosts {
        let Some(gate) = gate_of.get(&*host.host.name) else {
            let what = "no gate proves the host after its steps".to_owned();
            problems.push(report_inconsistent_plan(what).on(host.host.to_string()));
            continue;
        };
        let (gate, waited) = &gates[*gate];
        let mut nodes = host.nodes.iter();
        if let Some(open) = nodes.find(|node| !waited.contains(node.id.as_str())) {
            let what = format!("{} does not wait for it", gate.id);
            problems.push(report_inconsistent_plan(what).on(open.id.clone()));
        }
    }
    if problems.is_empty() && list_gate_waves(&plan.nodes) != list_gate_waves(&roll_out_anew(plan))
    {
        problems.push(report_inconsistent_plan(
            "its waves are not those that the rollout's rules make of its hosts".to_owned(),
        ));
    }
    problems
}

/// The hosts of each wave, by the gate that proves it.
fn list_gate_waves(nodes: &[PlanNode]) -> Vec<(usize, BTreeSet<&str>)> {
    let mut waves: Vec<(usize, BTreeSet<&str>)> = Vec::new();
    for node in nodes {
        if let (NodeKind::Gate { hosts }, None) = (&node.kind, &node.blocked) {
            waves.push((node.wave, hosts.iter().map(String::as_str).collect()));
        }
    }
    waves.sort();
    waves
}

/// The gates that the rules make of the same hosts in the order in which the plan takes them.
fn roll_out_anew(plan: &Plan) -> Vec<PlanNode> {
    let mut gates: Vec<&PlanNode> = plan
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Gate { .. }))
        .collect();
    gates.sort_by_key(|gate| gate.wave);
    let hosts = gates.into_iter().flat_map(PlanNode::verified);
    let targets: Vec<Target> = hosts.map(Target::host).collect();
    let mut parts: Vec<TargetPlan> = targets
        .iter()
        .map(|target| TargetPlan::new(target.clone(), vec![new_placeholder_step(target)]))
        .collect();
    let verified_first = plan.verified_first().iter().map(Target::host).collect();
    roll_out(&mut parts, &targets, &verified_first, &plan.rollout)
}

/// Stands for all steps of a host where only its wave counts.
fn new_placeholder_step(target: &Target) -> PlanNode {
    PlanNode {
        id: format!("{target}/work"),
        kind: NodeKind::Reboot,
        target: Some(target.clone()),
        disruption: Disruption::Reboot,
        interrupts: Arc::default(),
        after: Vec::new(),
        wave: 0,
        blocked: None,
    }
}

/// All steps that a gate waits for in its wave, however far; a barrier stands for those before it.
fn waited_for<'a>(gate: &'a PlanNode, by_id: &BTreeMap<&str, &'a PlanNode>) -> BTreeSet<&'a str> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut queue = vec![gate];
    while let Some(node) = queue.pop() {
        for id in &node.after {
            let Some(&before) = by_id.get(id.as_str()) else {
                continue;
            };
            let counts = before.wave == gate.wave || before.kind == NodeKind::Barrier;
            if counts && found.insert(&before.id) {
                queue.push(before);
            }
        }
    }
    found
}

/// What the order looks at of a resource, and no more of it: there may be a million.
fn new_order_item(address: &Address, kind: &str, after: &[Address], removal: bool) -> PlanItem {
    let (address, kind, after) = (address.clone(), kind.to_owned(), after.to_vec());
    let resource = DesiredResource {
        after,
        ..DesiredResource::of(address, kind, serde_json::Value::Null)
    };
    PlanItem {
        resource,
        removal,
        diff: ResourceDiff::default(),
        status: PlanItemStatus::Met,
        since: Vec::new(),
    }
}

/// The desired resources of these targets by address, then their removals.
fn list_order_items(
    resources: &[DesiredResource],
    last: &LastApplied,
    targets: &BTreeSet<&Target>,
) -> Vec<PlanItem> {
    let mut sorted: Vec<&DesiredResource> = resources.iter().collect();
    sorted.sort_by(|a, b| a.address.cmp(&b.address));
    let mut items = Vec::new();
    for resource in sorted {
        if targets.contains(&resource.address.target) {
            items.push(new_order_item(
                &resource.address,
                &resource.kind,
                &resource.after,
                false,
            ));
        }
    }
    for (address, applied) in last.not_in_spec(resources) {
        if targets.contains(&address.target) {
            items.push(new_order_item(address, &applied.kind, &applied.after, true));
        }
    }
    items
}

/// Which resource of a host has to come before which, by the spec and the kinds.
struct RequiredOrder {
    pairs: BTreeMap<Target, Vec<(Address, Address)>>,
}

impl RequiredOrder {
    /// Made like the plan's own order: over all resources and removals, and through what is not in
    /// the plan.
    fn from_resources(plan: &Plan, resources: &[DesiredResource], last: &LastApplied) -> Self {
        // Blocked ones with them: what needs a blocked step is blocked too, unless a reboot turned
        // the order.
        let mut targets: BTreeSet<&Target> = BTreeSet::new();
        let mut planned: BTreeSet<&Address> = BTreeSet::new();
        for node in plan.nodes.iter().filter(|node| node.is_change()) {
            targets.extend(&node.target);
            planned.extend(node.members().iter().map(|member| &member.resource.address));
        }
        let items = list_order_items(resources, last, &targets);
        let chosen: BTreeSet<usize> = (0..items.len())
            .filter(|n| planned.contains(&items[*n].resource.address))
            .collect();
        let mut pairs: BTreeMap<Target, Vec<(Address, Address)>> = BTreeMap::new();
        for (first, then) in contract_graph(&item_graph(&items, &kind_named), &chosen) {
            let (first, then) = (
                &items[first].resource.address,
                &items[then].resource.address,
            );
            if first.target == then.target {
                pairs
                    .entry(first.target.clone())
                    .or_default()
                    .push((first.clone(), then.clone()));
            }
        }
        RequiredOrder { pairs }
    }
}
