//! Which resource comes before which: from wishes' `after`, from the kinds' own rules, and for
//! removals the other way round.

use super::judge::{KindLookup, PlanItem};
use railwright_base::Address;
use railwright_graph::Graph;
use std::collections::{BTreeMap, BTreeSet};

/// The graph over all items, changed or not. What a module says comes first; a kind's own rule
/// gives way where it would turn that round (a module may well want a package after another
/// module's kernel module), and where it would put something that waits for the reboot before it
/// (`Reboots`).
pub fn item_graph(items: &[PlanItem], kinds: KindLookup) -> Graph {
    let edges = collect_module_edges(items);
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
        number.insert(&item.wish.address, n);
    }
    let mut edges = BTreeSet::new();
    for (n, item) in items.iter().enumerate() {
        for address in &item.wish.after {
            if let Some(first) = number.get(address) {
                edges.extend(orient_edge(items, *first, n));
            }
        }
    }
    edges
}

/// The steps of a host that need a reboot share one, and what they need comes before it. A kind's
/// own rule must not make that of something that a module wants after such a step: the kernel
/// parameter comes after packages, but not after one that wants the GPU driver to run, which runs
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

/// Edges that the kinds' rules ask for, among the resources of one target.
fn collect_kind_rule_edges(items: &[PlanItem], kinds: KindLookup) -> Vec<(usize, usize)> {
    let mut by_kind: BTreeMap<(&railwright_base::Target, &str), Vec<usize>> = BTreeMap::new();
    for (n, item) in items.iter().enumerate() {
        by_kind
            .entry((&item.wish.address.target, &item.wish.kind))
            .or_default()
            .push(n);
    }
    let mut edges = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let Some(kind) = kinds(&item.wish.kind) else {
            continue;
        };
        for first_kind in kind.after_kinds() {
            let firsts = by_kind.get(&(&item.wish.address.target, *first_kind));
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

/// Applied in order, removed in reverse order; between a removal and a wish that stays there is no
/// order to keep.
fn orient_edge(items: &[PlanItem], first: usize, then: usize) -> Option<(usize, usize)> {
    match (items[first].removal, items[then].removal) {
        (false, false) => Some((first, then)),
        (true, true) => Some((then, first)),
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
