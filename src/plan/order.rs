//! Which resource comes before which: from wishes' `after`, from the kinds' own rules, and for removals the other way round.

use super::judge::{Item, KindLookup};
use crate::base::Address;
use crate::graph::Graph;
use std::collections::{BTreeMap, BTreeSet};

/// The graph over all items, changed or not.
pub fn item_graph(items: &[Item], kinds: KindLookup) -> Graph {
    let number: BTreeMap<&Address, usize> = items.iter().enumerate().map(|(n, item)| (&item.wish.address, n)).collect();
    let mut by_kind: BTreeMap<(&crate::base::Target, &str), Vec<usize>> = BTreeMap::new();
    for (n, item) in items.iter().enumerate() {
        by_kind.entry((&item.wish.address.target, &item.wish.kind)).or_default().push(n);
    }
    let mut edges = Vec::new();
    for (n, item) in items.iter().enumerate() {
        let named = item.wish.after.iter().filter_map(|address| number.get(address).copied());
        let ruled = kinds(&item.wish.kind)
            .into_iter()
            .flat_map(|kind| kind.after_kinds())
            .flat_map(|first| by_kind.get(&(&item.wish.address.target, *first)).into_iter().flatten().copied());
        edges.extend(named.chain(ruled).filter_map(|first| edge(items, first, n)));
    }
    Graph::new(items.len(), edges)
}

/// Applied in order, removed in reverse order; between a removal and a wish that stays there is no order to keep.
fn edge(items: &[Item], first: usize, then: usize) -> Option<(usize, usize)> {
    match (items[first].removal, items[then].removal) {
        (false, false) => Some((first, then)),
        (true, true) => Some((then, first)),
        _ => None,
    }
}

/// Edges among the chosen items alone: what stood between them and is not chosen is passed through.
pub fn contract(graph: &Graph, chosen: &BTreeSet<usize>) -> Vec<(usize, usize)> {
    let mut edges = Vec::new();
    for &node in chosen {
        let mut seen = BTreeSet::new();
        let mut queue = graph.before(node);
        while let Some(before) = queue.pop() {
            if !seen.insert(before) {
                continue;
            }
            if chosen.contains(&before) { edges.push((before, node)) } else { queue.extend(graph.before(before)) }
        }
    }
    edges
}
