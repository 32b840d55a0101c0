//! Joins changes of one target that must go out together (one package run, one netplan apply) into
//! transactions.

use super::diff::{PlanItem, PlanItemStatus};
use railwright_base::Target;
use railwright_graph::Graph;
use std::collections::{BTreeMap, BTreeSet};

/// Groups of item numbers; each becomes one node. Sorted by their first member.
///
/// A transaction is split where joining would turn the order round: if something else has to happen
/// between two members, the later one goes into the next slot. Where that is not enough (two
/// transactions that interleave), the members of the ring stay single.
pub fn group_transactions(
    items: &[PlanItem],
    chosen: &BTreeSet<usize>,
    edges: &[(usize, usize)],
) -> Vec<Vec<usize>> {
    let slots = compute_transaction_slots(items, chosen, edges);
    let groups = collect_groups(items, chosen, &slots, &BTreeSet::new());
    match build_quotient_graph(&groups, edges).order() {
        Ok(_) => groups,
        Err(_) => {
            let ringed = find_cyclic_items(&groups, edges);
            collect_groups(items, chosen, &slots, &ringed)
        }
    }
}

type Key<'a> = (&'a Target, &'a str, bool);

/// What is blocked goes alone, so that it blocks nothing else.
fn build_transaction_key(item: &PlanItem) -> Option<Key<'_>> {
    if matches!(item.status, PlanItemStatus::Blocked(..)) {
        return None;
    }
    let word = item.diff.transaction.as_deref()?;
    Some((&item.resource.address.target, word, item.removal))
}

/// For each item of a transaction, how many times the path to it has left the transaction and come
/// back.
fn compute_transaction_slots(
    items: &[PlanItem],
    chosen: &BTreeSet<usize>,
    edges: &[(usize, usize)],
) -> BTreeMap<usize, usize> {
    let graph = Graph::new(items.len(), edges.iter().copied());
    let order = graph.order().unwrap_or_default();
    let mut reach: BTreeMap<usize, BTreeMap<Key, (usize, bool)>> = BTreeMap::new();
    let mut slots = BTreeMap::new();
    for node in order {
        if !chosen.contains(&node) {
            continue;
        }
        let mut here: BTreeMap<Key, (usize, bool)> = BTreeMap::new();
        for before in graph.before(node) {
            for (key, value) in reach.get(&before).into_iter().flatten() {
                let best = here.entry(*key).or_insert(*value);
                *best = (*best).max(*value);
            }
        }
        let own = build_transaction_key(&items[node]);
        let reached = own.and_then(|key| here.get(&key)).copied();
        for (key, (_, left)) in &mut here {
            *left = *left || Some(*key) != own;
        }
        if let Some(own) = own {
            let (slot, left) = reached.unwrap_or_default();
            let slot = slot + usize::from(left);
            here.insert(own, (slot, false));
            slots.insert(node, slot);
        }
        reach.insert(node, here);
    }
    slots
}

fn collect_groups(
    items: &[PlanItem],
    chosen: &BTreeSet<usize>,
    slots: &BTreeMap<usize, usize>,
    single: &BTreeSet<usize>,
) -> Vec<Vec<usize>> {
    let mut joined: BTreeMap<(Key, usize), Vec<usize>> = BTreeMap::new();
    let mut groups = Vec::new();
    for &n in chosen {
        match (build_transaction_key(&items[n]), single.contains(&n)) {
            (Some(key), false) => joined
                .entry((key, slots.get(&n).copied().unwrap_or(0)))
                .or_default()
                .push(n),
            _ => groups.push(vec![n]),
        }
    }
    groups.extend(joined.into_values());
    groups.sort();
    groups
}

fn build_quotient_graph(groups: &[Vec<usize>], edges: &[(usize, usize)]) -> Graph {
    let mut group_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (g, members) in groups.iter().enumerate() {
        group_of.extend(members.iter().map(|member| (*member, g)));
    }
    let mut between = Vec::new();
    for (first, then) in edges {
        if let (Some(first), Some(then)) = (group_of.get(first), group_of.get(then)) {
            between.push((*first, *then));
        }
    }
    Graph::new(groups.len(), between)
}

/// Every item in a group that lies on some ring.
fn find_cyclic_items(groups: &[Vec<usize>], edges: &[(usize, usize)]) -> BTreeSet<usize> {
    let graph = build_quotient_graph(groups, edges);
    let mut cyclic = BTreeSet::new();
    for (g, members) in groups.iter().enumerate() {
        if graph.with_dependants(graph.after(g)).contains(&g) {
            cyclic.extend(members);
        }
    }
    cyclic
}
