//! The digest of a plan file is no signature: what holds its steps together is held against what
//! the steps themselves need. A host with work is proven by a gate, a reboot has a change before
//! it, and no order that the wishes ask for is missing. Pure.

use super::trouble::NextCommands;
use railwright_base::{Address, Diagnostic, Target, TargetKind};
use railwright_graph::Graph;
use railwright_plan::cluster_first::is_before_hosts;
use railwright_plan::judge::{PlanItem, PlanItemStatus};
use railwright_plan::make::node_graph;
use railwright_plan::order::{contract_graph, item_graph};
use railwright_plan::part::TargetPlan;
use railwright_plan::waves::roll_out;
use railwright_plan::{LastApplied, NodeKind, Plan, PlanNode};
use railwright_resource::{Assessment, DesiredResource, Disruption, kind_named};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the plan's graph leaves out or adds, against what its steps need. `wishes` are those of the
/// spec; without a spec to compare, only gates and reboots are looked at.
pub fn check_plan_graph(
    plan: &Plan,
    wishes: Option<&[DesiredResource]>,
    last: &LastApplied,
) -> Vec<Diagnostic> {
    let hosts = HostSteps::all(plan);
    let mut problems: Vec<Diagnostic> = hosts.iter().flat_map(HostSteps::wrong_reboots).collect();
    problems.extend(check_gates(plan, &hosts));
    problems.extend(cluster_first(plan, &hosts));
    if let Some(wishes) = wishes {
        let wanted = RequiredOrder::of(plan, wishes, last);
        problems.extend(hosts.iter().flat_map(|host| host.missing_order(&wanted)));
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
    wishes: Option<&[DesiredResource]>,
    last: &LastApplied,
) -> Vec<Diagnostic> {
    let wanted = wishes.map(|wishes| RequiredOrder::of(plan, wishes, last));
    let hosts = HostSteps::all(plan);
    let problems = hosts
        .iter()
        .flat_map(|host| wanted.iter().flat_map(|wanted| host.missing_order(wanted)));
    problems
        .map(|problem| problem.next(NextCommands::of(plan).anew()))
        .collect()
}

fn report_inconsistent_plan(what: String) -> Diagnostic {
    Diagnostic::error(
        "RW0640",
        format!("the plan does not hold together as its own steps need it: {what}"),
    )
    .effect(
        "steps could run in a wrong order, on more hosts than have been proven, or disturb a host \
         for nothing",
    )
    .state("nothing was changed")
}

/// The steps of one host that are to be carried out, and their order.
struct HostSteps<'a> {
    host: &'a Target,
    nodes: Vec<&'a PlanNode>,
    graph: Graph,
}

impl<'a> HostSteps<'a> {
    fn all(plan: &'a Plan) -> Vec<Self> {
        let mut of_host: BTreeMap<&Target, Vec<&PlanNode>> = BTreeMap::new();
        for node in plan
            .nodes
            .iter()
            .filter(|node| node.held.is_none() && is_disruptive_node(node))
        {
            if let Some(target) = node
                .target
                .as_ref()
                .filter(|target| target.kind == TargetKind::Host)
            {
                of_host.entry(target).or_default().push(node);
            }
        }
        let one = |(host, nodes): (&'a Target, Vec<&'a PlanNode>)| {
            let number: BTreeMap<&str, usize> = nodes
                .iter()
                .enumerate()
                .map(|(n, node)| (node.id.as_str(), n))
                .collect();
            let before = |node: &'a PlanNode| {
                node.after
                    .iter()
                    .filter_map(|id| number.get(id.as_str()).copied())
                    .collect::<Vec<_>>()
            };
            let edges = nodes
                .iter()
                .enumerate()
                .flat_map(|(n, node)| before(node).into_iter().map(move |first| (first, n)));
            HostSteps {
                host,
                graph: Graph::new(nodes.len(), edges),
                nodes,
            }
        };
        of_host.into_iter().map(one).collect()
    }

    fn reboots(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|n| self.nodes[*n].kind == NodeKind::Reboot)
    }

    /// Whether a change before it waits for the reboot is seen when its turn comes; with no change
    /// before it, none can. It also has to count as what it is, or the host would not be counted as
    /// out of service.
    fn wrong_reboots(&self) -> Vec<Diagnostic> {
        let wrong = |n: usize| {
            let node = self.nodes[n];
            let what = match self
                .graph
                .with_prerequisites([n])
                .iter()
                .any(|m| self.nodes[*m].is_change())
            {
                false => "no step of the host comes before its reboot",
                true if node.disruption != Disruption::Reboot => "the reboot does not count as one",
                true => return None,
            };
            Some(report_inconsistent_plan(what.to_owned()).on(node.id.clone()))
        };
        self.reboots().filter_map(wrong).collect()
    }

    /// Pairs of resources that the wishes put in order and the plan does not. What comes before a
    /// reboot need not wait for what comes after it.
    fn missing_order(&self, wanted: &RequiredOrder) -> Vec<Diagnostic> {
        let Some(pairs) = wanted.pairs.get(self.host) else {
            return Vec::new();
        };
        let mut of = BTreeMap::new();
        for (n, node) in self.nodes.iter().enumerate() {
            of.extend(
                node.members()
                    .iter()
                    .map(|member| (&member.wish.address, n)),
            );
        }
        let earlier: Vec<BTreeSet<usize>> = (0..self.nodes.len())
            .map(|n| self.graph.with_prerequisites([n]))
            .collect();
        let turned = |first: usize, then: usize| {
            self.reboots()
                .any(|r| earlier[r].contains(&then) && earlier[first].contains(&r))
        };
        let missing = |(first, then): &&(Address, Address)| match (of.get(first), of.get(then)) {
            (Some(first), Some(then)) => !earlier[*then].contains(first) && !turned(*first, *then),
            _ => false,
        };
        let say = |(first, then): &(Address, Address)| {
            report_inconsistent_plan(format!(
                "{} does not wait for {}",
                then.within_target(),
                first.within_target()
            ))
            .on(then.to_string())
        };
        pairs.iter().filter(missing).map(say).collect()
    }
}

/// A host that would begin without what its cluster brings to it.
fn cluster_first(plan: &Plan, hosts: &[HostSteps]) -> Option<Diagnostic> {
    let first: Vec<usize> = (0..plan.nodes.len())
        .filter(|n| is_before_hosts(&plan.nodes[*n], &kind_named))
        .collect();
    let graph = if first.is_empty() {
        return None;
    } else {
        node_graph(&plan.nodes)
    };
    first.into_iter().find_map(|first| {
        let waits = if plan.nodes[first].held.is_none() {
            graph.with_dependants([first])
        } else {
            BTreeSet::new()
        };
        let waits: BTreeSet<&str> = waits
            .into_iter()
            .map(|n| plan.nodes[n].id.as_str())
            .collect();
        let early = hosts
            .iter()
            .flat_map(|host| &host.nodes)
            .find(|node| !waits.contains(node.id.as_str()))?;
        let what = format!("a host does not wait for {}", plan.nodes[first].id);
        Some(report_inconsistent_plan(what).on(early.id.clone()))
    })
}

/// A step after which its host has to be proven.
fn is_disruptive_node(node: &PlanNode) -> bool {
    matches!(node.kind, NodeKind::Change { .. } | NodeKind::Reboot)
}

/// Each host with work is named by a gate that comes after all of it and in its wave, and the waves
/// are those that the rollout's rules make of these hosts.
fn check_gates(plan: &Plan, hosts: &[HostSteps]) -> Vec<Diagnostic> {
    let by_id: BTreeMap<&str, &PlanNode> = plan
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut problems = Vec::new();
    let (mut gates, mut gate_of) = (Vec::new(), BTreeMap::new());
    for node in plan.nodes.iter().filter(|node| node.held.is_none()) {
        let NodeKind::Gate { hosts } = &node.kind else {
            continue;
        };
        gate_of.extend(hosts.iter().map(|host| (host.as_str(), gates.len())));
        gates.push((node, waited_for(node, &by_id)));
    }
    for host in hosts {
        let Some(gate) = gate_of.get(&*host.host.name) else {
            problems.push(
                report_inconsistent_plan("no gate proves the host after its steps".to_owned())
                    .on(host.host.to_string()),
            );
            continue;
        };
        let (gate, waited) = &gates[*gate];
        if let Some(open) = host
            .nodes
            .iter()
            .find(|node| !waited.contains(node.id.as_str()))
        {
            problems.push(
                report_inconsistent_plan(format!("{} does not wait for it", gate.id))
                    .on(open.id.clone()),
            );
        }
    }
    if problems.is_empty() && list_gate_waves(&plan.nodes) != list_gate_waves(&rolled_out(plan)) {
        problems.push(report_inconsistent_plan(
            "its waves are not those that the rollout's rules make of its hosts".to_owned(),
        ));
    }
    problems
}

/// The hosts of each wave, by the gate that proves it.
fn list_gate_waves(nodes: &[PlanNode]) -> Vec<(usize, BTreeSet<&str>)> {
    let gates = nodes.iter().filter(|node| node.held.is_none());
    let mut waves: Vec<(usize, BTreeSet<&str>)> = gates
        .filter_map(|node| match &node.kind {
            NodeKind::Gate { hosts } => {
                Some((node.wave, hosts.iter().map(String::as_str).collect()))
            }
            _ => None,
        })
        .collect();
    waves.sort();
    waves
}

/// The gates that the rules make of the same hosts in the order in which the plan takes them.
fn rolled_out(plan: &Plan) -> Vec<PlanNode> {
    let mut gates: Vec<&PlanNode> = plan
        .nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Gate { .. }))
        .collect();
    gates.sort_by_key(|gate| gate.wave);
    let hosts = gates.into_iter().flat_map(|gate| {
        if let NodeKind::Gate { hosts } = &gate.kind {
            hosts.as_slice()
        } else {
            &[]
        }
    });
    let targets: Vec<Target> = hosts.map(Target::host).collect();
    let work = |target: &Target| PlanNode {
        id: format!("{target}/work"),
        kind: NodeKind::Reboot,
        target: Some(target.clone()),
        disruption: Disruption::Reboot,
        interrupts: Arc::default(),
        after: Vec::new(),
        wave: 0,
        held: None,
    };
    let mut parts: Vec<TargetPlan> = targets
        .iter()
        .map(|target| TargetPlan::new(target.clone(), vec![work(target)]))
        .collect();
    let verified_first = plan.verified_first().iter().map(Target::host).collect();
    roll_out(&mut parts, &targets, &verified_first, &plan.rollout)
}

/// All steps that a gate waits for in its wave, however far; a barrier stands for those before it.
fn waited_for<'a>(gate: &'a PlanNode, by_id: &BTreeMap<&str, &'a PlanNode>) -> BTreeSet<&'a str> {
    let mut found: BTreeSet<&str> = BTreeSet::new();
    let mut queue = vec![gate];
    while let Some(node) = queue.pop() {
        let before = node
            .after
            .iter()
            .filter_map(|id| by_id.get(id.as_str()).copied());
        queue.extend(
            before
                .filter(|node| node.wave == gate.wave || node.kind == NodeKind::Barrier)
                .filter(|node| found.insert(&node.id)),
        );
    }
    found
}

/// What the order looks at of a resource, and no more of it: there may be a million.
fn new_order_item(address: &Address, kind: &str, after: &[Address], removal: bool) -> PlanItem {
    let (address, kind, after) = (address.clone(), kind.to_owned(), after.to_vec());
    let wish = DesiredResource {
        after,
        ..DesiredResource::of(address, kind, serde_json::Value::Null)
    };
    PlanItem {
        wish,
        removal,
        assessment: Assessment::default(),
        status: PlanItemStatus::Met,
        since: Vec::new(),
    }
}

/// Which resource of a host has to come before which, as the wishes and the kinds have it.
struct RequiredOrder {
    pairs: BTreeMap<Target, Vec<(Address, Address)>>,
}

impl RequiredOrder {
    /// Made like the plan's own order: over all wishes and removals, what is not in the plan passed
    /// through.
    fn of(plan: &Plan, wishes: &[DesiredResource], last: &LastApplied) -> Self {
        // Held ones with them: what needs a held step is held too, unless a reboot turned the
        // order.
        let changes: Vec<&PlanNode> = plan.nodes.iter().filter(|node| node.is_change()).collect();
        let targets: BTreeSet<&Target> = changes
            .iter()
            .filter_map(|node| node.target.as_ref())
            .collect();
        let mut sorted: Vec<&DesiredResource> = wishes.iter().collect();
        sorted.sort_by(|a, b| a.address.cmp(&b.address));
        let wished = sorted
            .into_iter()
            .map(|wish| new_order_item(&wish.address, &wish.kind, &wish.after, false));
        let removals = last
            .not_wished(wishes)
            .map(|(address, applied)| new_order_item(address, &applied.kind, &applied.after, true));
        let items: Vec<PlanItem> = wished
            .chain(removals)
            .filter(|item| targets.contains(&item.wish.address.target))
            .collect();
        let planned: BTreeSet<&Address> = changes
            .iter()
            .flat_map(|node| node.members())
            .map(|member| &member.wish.address)
            .collect();
        let chosen: BTreeSet<usize> = (0..items.len())
            .filter(|n| planned.contains(&items[*n].wish.address))
            .collect();
        let mut pairs: BTreeMap<Target, Vec<(Address, Address)>> = BTreeMap::new();
        for (first, then) in contract_graph(&item_graph(&items, &kind_named), &chosen) {
            let (first, then) = (&items[first].wish.address, &items[then].wish.address);
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
