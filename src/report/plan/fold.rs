//! Folds what is the same on many hosts into one entry with a node-set.

use super::entry;
use crate::base::nodeset;
use crate::plan::Node;
use indexmap::IndexMap;

/// Host names as a node-set.
pub fn hosts(names: &[String]) -> String {
    nodeset::fold(names)
}

/// Nodes with the same text, apart from their host, are one entry; first seen, first shown.
pub fn entries(nodes: &[&Node]) -> String {
    let mut folded: IndexMap<String, Vec<String>> = IndexMap::new();
    let mut shapes: IndexMap<String, (String, Vec<&Node>)> = IndexMap::new();
    for node in nodes {
        let (_, members) = shapes.entry(entry::shape(node)).or_insert_with(|| (entry::who(node), Vec::new()));
        members.push(node);
    }
    for (_, members) in shapes.values() {
        let names = members.iter().map(|n| entry::who(n)).collect::<Vec<_>>();
        folded.insert(entry::body(members), names);
    }
    folded.into_iter().map(|(body, names)| body.replace(entry::WHO, &who(&names))).collect()
}

fn who(names: &[String]) -> String {
    let mut distinct = names.to_vec();
    distinct.sort();
    distinct.dedup();
    format!("{:<14}", hosts(&distinct))
}
