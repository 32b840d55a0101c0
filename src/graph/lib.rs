//! Directed graphs of things with an order: build, sort, find a shortest cycle, look up and down.
//! No word of the domain: nodes are numbers, edges say "first before second".

pub mod dot;

use petgraph::Direction;
use petgraph::algo::{astar, kosaraju_scc};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, IntoNeighbors, Reversed, Visitable};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// A directed graph over the nodes `0..len`.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    graph: DiGraph<(), ()>,
}

/// Nodes that wait for each other in a ring: each must come before the next, the last before the
/// first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle(pub Vec<usize>);

impl Graph {
    /// A graph of `len` nodes; edges are sorted and deduplicated first, so that a doubled edge
    /// costs nothing.
    pub fn new(len: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let edges: BTreeSet<(usize, usize)> =
            edges.into_iter().filter(|(from, to)| from != to).collect();
        let mut graph = DiGraph::with_capacity(len, edges.len());
        for _ in 0..len {
            graph.add_node(());
        }
        for (from, to) in edges {
            graph.add_edge(NodeIndex::new(from), NodeIndex::new(to), ());
        }
        Graph { graph }
    }

    /// How many nodes.
    pub fn len(&self) -> usize {
        self.graph.node_count()
    }

    /// True without nodes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Direct prerequisites, ascending.
    pub fn before(&self, node: usize) -> Vec<usize> {
        self.neighbours(node, Direction::Incoming)
    }

    /// Direct dependants, ascending.
    pub fn after(&self, node: usize) -> Vec<usize> {
        self.neighbours(node, Direction::Outgoing)
    }

    fn neighbours(&self, node: usize, direction: Direction) -> Vec<usize> {
        let mut found: Vec<usize> = self
            .graph
            .neighbors_directed(NodeIndex::new(node), direction)
            .map(NodeIndex::index)
            .collect();
        found.sort_unstable();
        found
    }

    /// An order in which every edge points forward; among the free nodes the smallest comes first,
    /// so the order depends on the graph alone, and a host's steps among others are in the order
    /// that they have alone. `petgraph::algo::toposort` keeps neither.
    pub fn order(&self) -> Result<Vec<usize>, Cycle> {
        let before = |n| {
            self.graph
                .neighbors_directed(n, Direction::Incoming)
                .count()
        };
        let mut waiting: Vec<usize> = self.graph.node_indices().map(before).collect();
        let mut free: BinaryHeap<Reverse<usize>> = (0..self.len())
            .filter(|n| waiting[*n] == 0)
            .map(Reverse)
            .collect();
        let mut order = Vec::with_capacity(self.len());
        while let Some(Reverse(node)) = free.pop() {
            order.push(node);
            for next in self
                .graph
                .neighbors_directed(NodeIndex::new(node), Direction::Outgoing)
            {
                waiting[next.index()] -= 1;
                if waiting[next.index()] == 0 {
                    free.push(Reverse(next.index()));
                }
            }
        }
        if order.len() == self.len() {
            Ok(order)
        } else {
            Err(self.shortest_cycle())
        }
    }

    /// For each node the number of its ring: nodes that wait for each other have the same one, and
    /// each other node has one of its own.
    pub fn ring_numbers(&self) -> Vec<usize> {
        let mut numbers = vec![0; self.len()];
        for (number, ring) in kosaraju_scc(&self.graph).into_iter().enumerate() {
            for node in ring {
                numbers[node.index()] = number;
            }
        }
        numbers
    }

    /// A shortest cycle through one of the first nodes that are part of any.
    fn shortest_cycle(&self) -> Cycle {
        let rings = kosaraju_scc(&self.graph)
            .into_iter()
            .filter(|ring| ring.len() > 1);
        let in_rings: BTreeSet<NodeIndex> = rings.flatten().collect();
        let cycles = in_rings
            .into_iter()
            .take(64)
            .filter_map(|start| self.cycle_through(start));
        Cycle(
            cycles
                .min_by_key(|cycle| (cycle.len(), cycle.clone()))
                .unwrap_or_default(),
        )
    }

    fn cycle_through(&self, start: NodeIndex) -> Option<Vec<usize>> {
        let closes = |node| self.graph.contains_edge(node, start);
        let (_, path) = astar(&self.graph, start, closes, |_| 1u32, |_| 0)?;
        Some(path.into_iter().map(NodeIndex::index).collect())
    }

    /// These nodes and all that must come before them.
    pub fn with_prerequisites(&self, nodes: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        collect_reachable_nodes(Reversed(&self.graph), nodes)
    }

    /// These nodes and all that must come after them.
    pub fn with_dependants(&self, nodes: impl IntoIterator<Item = usize>) -> BTreeSet<usize> {
        collect_reachable_nodes(&self.graph, nodes)
    }
}

fn collect_reachable_nodes<G>(graph: G, nodes: impl IntoIterator<Item = usize>) -> BTreeSet<usize>
where
    G: IntoNeighbors<NodeId = NodeIndex> + Visitable<NodeId = NodeIndex>,
{
    let mut walk = Dfs::from_parts(
        nodes.into_iter().map(NodeIndex::new).collect(),
        graph.visit_map(),
    );
    std::iter::from_fn(|| walk.next(graph))
        .map(NodeIndex::index)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_a_shortest_cycle() {
        let graph = Graph::new(6, [(0, 1), (1, 2), (2, 3), (3, 0), (2, 1), (4, 0)]);
        assert_eq!(graph.order(), Err(Cycle(vec![1, 2])));
    }

    #[test]
    fn a_long_chain_does_not_overflow_the_stack() {
        let graph = Graph::new(200_000, (1..200_000).map(|n| (n - 1, n)));
        assert_eq!(graph.order().unwrap().len(), 200_000);
        assert_eq!(graph.with_prerequisites([199_999]).len(), 200_000);
    }

    proptest! {
        #[test]
        fn the_order_respects_every_edge(edges in proptest::collection::vec((0usize..30, 0usize..30), 0..120)) {
            let forward: Vec<_> = edges.into_iter().filter(|(a, b)| a < b).collect();
            let order = Graph::new(30, forward.clone()).order().unwrap();
            let position = |n| order.iter().position(|m| *m == n).unwrap();
            for (a, b) in forward {
                prop_assert!(position(a) < position(b));
            }
        }
    }
}
