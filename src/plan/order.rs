//! Which resource comes before which: from resources' `after`, from the kinds' own rules, and for
//! removals the other way round.

use super::diff::{KindLookup, PlanItem};
use railwright_base::{Address, Target};
use railwright_graph::Graph;
use std::collections::{BTreeMap, BTreeSet};

/// The graph over all items, changed or not. What a module says comes first; a kind's own rule
/// gives way where it would turn that round (a module may need a package after another module's
/// kernel module), and where it would put something that waits for the reboot before it
/// (`Reboots`).
pub fn item_graph(items: &[PlanItem], kinds: KindLookup) -> Graph {
    let mut edges = collect_module_edges(items);
    // What is only remembered comes from records, some of them written by hosts that an attacker
    // has: those in a ring are in no order, since a ring would refuse the plan of all hosts.
    let rings = Graph::new(items.len(), edges.iter().copied()).ring_numbers();
    edges.retain(|(first, then)| !items[*first].removal || rings[*first] != rings[*then]);
    let mut after: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (first, then) in &edges {
        after.entry(*first).or_default().insert(*then);
    }
    let mut reboots = Reboots::of(items, &edges);
    for (first, then) in collect_kind_rule_edges(items, kinds) {
        if !is_reachable(&after, then, first) && reboots.allow(first, then) {
            after.entry(first).or_default().insert(then);
        }
    }
    let mut edges = Vec::new();
    for (first, dependants) in after {
        edges.extend(dependants.into_iter().map(|then| (first, then)));
    }
    Graph::new(items.len(), edges)
}

/// Edges that the resources' own `after` asks for.
fn collect_module_edges(items: &[PlanItem]) -> BTreeSet<(usize, usize)> {
    let mut number: BTreeMap<&Address, usize> = BTreeMap::new();
    for (n, item) in items.iter().enumerate() {
        number.insert(&item.resource.address, n);
    }
    let mut edges = BTreeSet::new();
    for (n, item) in items.iter().enumerate() {
        for address in &item.resource.after {
            if let Some(first) = number.get(address) {
                edges.extend(orient_edge(items, *first, n));
            }
        }
    }
    edges
}

/// The steps of a host that need a reboot share one, and what they need comes before it. A kind's
/// own rule must not make that of something that a module puts after such a step: the kernel
/// parameter comes after packages, but not after one that needs the running GPU driver, which runs
/// only once the reboot has taken nouveau away.
#[derive(Default)]
struct Reboots {
    /// Steps that need a reboot, and all that comes before one.
    before: BTreeSet<usize>,
    /// What comes after a step that needs one.
    after: BTreeSet<usize>,
    edges: BTreeMap<usize, BTreeSet<usize>>,
    back: BTreeMap<usize, BTreeSet<usize>>,
}

impl Reboots {
    /// With the edges that the modules ask for; nothing of it counts where no step needs a reboot.
    fn of(items: &[PlanItem], edges: &BTreeSet<(usize, usize)>) -> Self {
        let mut reboots = Reboots::default();
        let mut needing: Vec<usize> = (0..items.len()).collect();
        needing.retain(|n| items[*n].causes_reboot());
        if needing.is_empty() {
            return reboots;
        }
        reboots.before.extend(&needing);
        for (first, then) in edges {
            reboots.join(*first, *then);
        }
        for step in needing {
            reboots.reach(step);
        }
        reboots
    }

    fn join(&mut self, first: usize, then: usize) {
        self.edges.entry(first).or_default().insert(then);
        self.back.entry(then).or_default().insert(first);
    }

    /// All before a step that needs a reboot, and all after it.
    fn reach(&mut self, step: usize) {
        let before = list_neighbours(&self.back, step);
        collect_reachable(before, &self.back, &mut self.before);
        let after = list_neighbours(&self.edges, step);
        collect_reachable(after, &self.edges, &mut self.after);
    }

    fn waits(&self, item: usize) -> bool {
        self.after.contains(&item) && !self.before.contains(&item)
    }

    /// Takes an edge in, unless it would put what waits for the reboot before it.
    fn allow(&mut self, first: usize, then: usize) -> bool {
        if self.before.is_empty() {
            return true;
        }
        if self.waits(first) && self.before.contains(&then) {
            return false;
        }
        self.join(first, then);
        if self.before.contains(&then) {
            collect_reachable(vec![first], &self.back, &mut self.before);
        }
        if self.after.contains(&first) {
            collect_reachable(vec![then], &self.edges, &mut self.after);
        }
        true
    }
}

fn list_neighbours(edges: &BTreeMap<usize, BTreeSet<usize>>, item: usize) -> Vec<usize> {
    match edges.get(&item) {
        Some(neighbours) => neighbours.iter().copied().collect(),
        None => Vec::new(),
    }
}

/// Adds these and all that is reached from them.
fn collect_reachable(
    mut queue: Vec<usize>,
    edges: &BTreeMap<usize, BTreeSet<usize>>,
    all: &mut BTreeSet<usize>,
) {
    while let Some(item) = queue.pop() {
        if all.insert(item) {
            queue.extend(edges.get(&item).into_iter().flatten());
        }
    }
}

/// The most removals of one target among which the kinds' rules keep an order: some times what a
/// spec gives a host. A record that somebody made up may hold any number, and the rules are about
/// pairs.
const ORDERED_REMOVALS_MAX: usize = 500;

/// Targets with more removals than the kinds' rules keep in order.
fn find_crowded_targets(items: &[PlanItem]) -> BTreeSet<&Target> {
    let mut removals: BTreeMap<&Target, usize> = BTreeMap::new();
    for item in items.iter().filter(|item| item.removal) {
        *removals.entry(&item.resource.address.target).or_default() += 1;
    }
    removals.retain(|_, count| *count > ORDERED_REMOVALS_MAX);
    removals.into_keys().collect()
}

/// Edges that the kinds' rules ask for, among the resources of one target.
fn collect_kind_rule_edges(items: &[PlanItem], kinds: KindLookup) -> Vec<(usize, usize)> {
    let crowded = find_crowded_targets(items);
    let mut ruled: Vec<(usize, &PlanItem)> = items.iter().enumerate().collect();
    ruled.retain(|(_, item)| !item.removal || !crowded.contains(&item.resource.address.target));
    let mut by_kind: BTreeMap<(&Target, &str), Vec<usize>> = BTreeMap::new();
    for (n, item) in &ruled {
        by_kind
            .entry((&item.resource.address.target, &item.resource.kind))
            .or_default()
            .push(*n);
    }
    let mut edges = Vec::new();
    for (n, item) in ruled {
        let Some(kind) = kinds(&item.resource.kind) else {
            continue;
        };
        for first_kind in kind.after_kinds() {
            let firsts = by_kind.get(&(&item.resource.address.target, *first_kind));
            for first in firsts.into_iter().flatten() {
                edges.extend(orient_edge(items, *first, n));
            }
        }
    }
    edges
}

fn is_reachable(after: &BTreeMap<usize, BTreeSet<usize>>, from: usize, to: usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut queue = vec![from];
    while let Some(node) = queue.pop() {
        if node == to {
            return true;
        }
        if seen.insert(node) {
            queue.extend(after.get(&node).into_iter().flatten());
        }
    }
    false
}

/// Applied in order, removed in reverse order; between a removal and a resource that stays there is
/// no order to keep, and none between removals of two targets: what a target remembers is its own
/// alone, and against the order of the waves it would close a ring.
fn orient_edge(items: &[PlanItem], first: usize, then: usize) -> Option<(usize, usize)> {
    let is_of_one = items[first].resource.address.target == items[then].resource.address.target;
    match (items[first].removal, items[then].removal) {
        (false, false) => Some((first, then)),
        (true, true) if is_of_one => Some((then, first)),
        _ => None,
    }
}

/// Edges among the chosen items alone: what stood between them and is not chosen is passed through.
pub fn contract_graph(graph: &Graph, chosen: &BTreeSet<usize>) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for &node in chosen {
        let mut seen = BTreeSet::new();
        let mut queue = graph.before(node);
        while let Some(before) = queue.pop() {
            if !seen.insert(before) {
                continue;
            }
            if chosen.contains(&before) {
                edges.push((before, node))
            } else {
                queue.extend(graph.before(before))
            }
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::super::diff::PlanItemStatus;
    use super::*;
    use railwright_resource::{DesiredResource, ResourceDiff, kind_named};
    use serde_json::Value;

    fn removal(n: usize, after: &[usize]) -> PlanItem {
        removal_of("file", n, after)
    }

    fn removal_of(kind: &str, n: usize, after: &[usize]) -> PlanItem {
        let address = |n: usize| Address::host("q", kind, &n.to_string());
        let mut resource = DesiredResource::of(address(n), kind, Value::Null);
        resource.after = after.iter().map(|n| address(*n)).collect();
        PlanItem {
            resource,
            removal: true,
            diff: ResourceDiff::default(),
            status: PlanItemStatus::Met,
            since: Vec::new(),
        }
    }

    /// With a search for each edge this takes minutes.
    #[test]
    fn a_large_record_with_a_ring_is_in_order_but_for_the_ring() {
        let (chain, all) = (30_000, 60_000);
        let mut items = vec![removal(0, &[])];
        for n in 1..all {
            items.push(removal(n, &[n - 1]));
        }
        items[chain] = removal(chain, &[chain - 1, all - 1]);
        let graph = item_graph(&items, &|_| None);
        assert_eq!(graph.order().unwrap().len(), all);
        assert_eq!(
            (graph.before(1), graph.before(chain - 1)),
            (vec![2], vec![chain])
        );
        assert_eq!(graph.before(chain), Vec::<usize>::new());
    }

    /// The rules of kinds are about pairs: of so many there are a hundred million.
    #[test]
    fn a_large_record_of_two_kinds_is_in_the_order_of_its_resources_alone() {
        let half = 10_000;
        let mut items: Vec<PlanItem> = (0..half).map(|n| removal(n, &[])).collect();
        items.extend((0..half).map(|n| removal_of("systemd_unit", n, &[])));
        let graph = item_graph(&items, &|name| kind_named(name));
        assert!((0..2 * half).all(|n| graph.before(n).is_empty()));
        let few: Vec<PlanItem> = items.drain(half - 1..=half).collect();
        let graph = item_graph(&few, &|name| kind_named(name));
        assert_eq!((graph.before(0), graph.before(1)), (vec![1], vec![]));
    }
}
