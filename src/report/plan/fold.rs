//! Folds what is the same on many hosts into one entry with a node-set.

use super::entry;
use crate::base::nodeset;
use crate::plan::{Node, UnknownFinding};
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

/// Unknown findings with the same reason, and the same subject apart from the host, are one line.
pub fn unknown(findings: &[UnknownFinding]) -> String {
    let mut folded: IndexMap<(String, &str), Vec<String>> = IndexMap::new();
    for finding in findings {
        let (host, rest) = match finding.subject.strip_prefix("host/").map(|s| s.split_once('/').unwrap_or((s, ""))) {
            Some((host, rest)) => (host.to_owned(), rest.to_owned()),
            None => (finding.subject.clone(), String::new()),
        };
        folded.entry((rest, &finding.reason)).or_default().push(host);
    }
    folded
        .into_iter()
        .map(|((rest, reason), names)| {
            let reason = crate::base::text::one_line(reason, 200);
            format!(" ? {} {}\n       {reason}\n", hosts(&names), if rest.is_empty() { "the whole target" } else { &rest })
        })
        .collect()
}
