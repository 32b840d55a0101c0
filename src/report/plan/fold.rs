//! Folds what is the same on many hosts into one entry with a node-set, and what is much alike on the same hosts into a list.

use super::{entry, list};
use crate::base::nodeset;
use crate::plan::Node;
use indexmap::IndexMap;
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

/// Host names as a node-set.
pub fn hosts(names: &[String]) -> String {
    nodeset::fold(names)
}

/// Nodes with the same text, apart from their host, are one entry; first seen, first shown.
pub fn entries(nodes: &[&Node]) -> String {
    let mut shapes: IndexMap<String, Vec<&Node>> = IndexMap::new();
    for node in nodes {
        shapes.entry(entry::shape(node)).or_default().push(node);
    }
    let mut lists: IndexMap<list::Heading, Vec<list::Line>> = IndexMap::new();
    let mut alike = Vec::new();
    for (_, nodes) in shapes {
        let names: BTreeSet<String> = nodes.iter().map(|node| entry::who(node)).collect();
        let names: Rc<[String]> = names.into_iter().collect();
        let heading = list::line(&nodes, &names).map(|(heading, line)| {
            lists.entry(heading.clone()).or_default().push(line);
            heading
        });
        alike.push((nodes, names, heading));
    }
    lists.retain(|_, lines| list::is_list(lines));
    let mut folded: IndexMap<String, Rc<[String]>> = IndexMap::new();
    let mut listed = HashSet::new();
    for (nodes, names, heading) in alike {
        match heading.as_ref().and_then(|heading| lists.get_key_value(heading)) {
            None => drop(folded.insert(entry::body(&nodes), names)),
            Some((heading, lines)) if listed.insert(heading) => drop(folded.insert(list::body(heading, lines), names)),
            Some(_) => {}
        }
    }
    folded.into_iter().map(|(body, names)| body.replace(entry::WHO, &format!("{:<14}", hosts(&names)))).collect()
}
