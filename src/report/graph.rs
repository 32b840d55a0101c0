//! The plan's graph for Graphviz or Mermaid. Hosts whose steps are the same are drawn once, with their node-set.

use railwright_base::nodeset;
use railwright_base::text::clean;
use railwright_graph::dot::{Drawn, dot, mermaid};
use railwright_plan::{Node, NodeKind, Plan};
use std::collections::BTreeMap;

/// How the graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Graphviz: `| dot -Tsvg > plan.svg`.
    Dot,
    /// Mermaid, as GitHub shows it in Markdown.
    Mermaid,
}

/// The graph as text.
pub fn graph(plan: &Plan, format: Format) -> String {
    let drawn = drawn(plan);
    match format {
        Format::Dot => dot(&drawn),
        Format::Mermaid => mermaid(&drawn),
    }
}

/// The steps of one target with the target's name taken out: equal texts are drawn once.
fn shape(target: &str, nodes: &[&Node]) -> String {
    nodes.iter().map(|n| format!("{}<{:?}<{:?};", n.id, n.after, n.held.is_some())).collect::<String>().replace(&format!("{target}/"), "/")
}

fn drawn(plan: &Plan) -> Vec<Drawn> {
    let mut by_target: BTreeMap<String, Vec<&Node>> = BTreeMap::new();
    for node in &plan.nodes {
        by_target.entry(node.target.as_ref().map_or("gates".to_owned(), ToString::to_string)).or_default().push(node);
    }
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (target, nodes) in &by_target {
        alike.entry(shape(target, nodes)).or_default().push(target.clone());
    }
    let label_of: BTreeMap<&String, String> = alike.values().map(|targets| (&targets[0], nodeset::fold(targets))).collect();
    let shown: Vec<(&Node, String)> = plan
        .nodes
        .iter()
        .filter_map(|n| {
            let target = n.target.as_ref().map_or("gates".to_owned(), ToString::to_string);
            label_of.get(&target).map(|label| (n, label.clone()))
        })
        .collect();
    let number: BTreeMap<&str, usize> = shown.iter().enumerate().map(|(n, (node, _))| (node.id.as_str(), n)).collect();
    shown
        .iter()
        .map(|(node, group)| Drawn {
            label: label(node),
            group: clean(group),
            after: node.after.iter().filter_map(|id| number.get(id.as_str()).copied()).collect(),
        })
        .collect()
}

fn label(node: &Node) -> String {
    let text = match &node.kind {
        NodeKind::Gate { hosts } => format!("gate\n{}", nodeset::fold(hosts)),
        NodeKind::Change { members, .. } => {
            let names: Vec<String> = members.iter().take(6).map(|m| m.wish.address.words()).collect();
            let more = if members.len() > 6 { format!("\nand {} more", members.len() - 6) } else { String::new() };
            format!("{}{more}", names.join("\n"))
        }
        NodeKind::Adopt { members } => format!("record {} as found", members.len()),
        NodeKind::Reboot => "reboot".to_owned(),
        NodeKind::Drain { .. } => "drain".to_owned(),
        NodeKind::Uncordon { .. } => "uncordon".to_owned(),
        NodeKind::Barrier => "barrier".to_owned(),
    };
    clean(&if node.held.is_some() { format!("{text}\n(held)") } else { text })
}
