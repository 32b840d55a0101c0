//! The plan's graph for Graphviz or Mermaid. Hosts whose steps are the same are drawn once, with
//! their node-set.

use railwright_base::nodeset;
use railwright_base::text::sanitize_text;
use railwright_graph::dot::{GraphNode, render_dot, render_mermaid};
use railwright_plan::{NodeKind, Plan, PlanNode};
use std::collections::BTreeMap;

/// How the graph is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GraphFormat {
    /// Graphviz: `| dot -Tsvg > plan.svg`.
    Dot,
    /// Mermaid, as GitHub shows it in Markdown.
    Mermaid,
}

/// The graph as text.
pub fn render_plan_graph(plan: &Plan, format: GraphFormat) -> String {
    let drawn = collect_drawn_nodes(plan);
    match format {
        GraphFormat::Dot => render_dot(&drawn),
        GraphFormat::Mermaid => render_mermaid(&drawn),
    }
}

/// The steps of one target with the target's name taken out: equal texts are drawn once.
fn build_shape_key(target: &str, nodes: &[&PlanNode]) -> String {
    nodes
        .iter()
        .map(|n| format!("{}<{:?}<{:?};", n.id, n.after, n.blocked.is_some()))
        .collect::<String>()
        .replace(&format!("{target}/"), "/")
}

fn collect_drawn_nodes(plan: &Plan) -> Vec<GraphNode> {
    let mut by_target: BTreeMap<String, Vec<&PlanNode>> = BTreeMap::new();
    for node in &plan.nodes {
        by_target.entry(name_target(node)).or_default().push(node);
    }
    let mut identical: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (target, nodes) in &by_target {
        identical
            .entry(build_shape_key(target, nodes))
            .or_default()
            .push(target.clone());
    }
    let label_of: BTreeMap<&String, String> = identical
        .values()
        .map(|targets| (&targets[0], nodeset::fold_node_set(targets)))
        .collect();
    let mut shown: Vec<(&PlanNode, &String)> = Vec::new();
    let mut number: BTreeMap<&str, usize> = BTreeMap::new();
    for node in &plan.nodes {
        if let Some(label) = label_of.get(&name_target(node)) {
            number.insert(node.id.as_str(), shown.len());
            shown.push((node, label));
        }
    }
    shown
        .iter()
        .map(|(node, group)| GraphNode {
            label: render_node_label(node),
            group: sanitize_text(group),
            after: node
                .after
                .iter()
                .filter_map(|id| number.get(id.as_str()).copied())
                .collect(),
        })
        .collect()
}

/// The target of a node; gates have none.
fn name_target(node: &PlanNode) -> String {
    match &node.target {
        Some(target) => target.to_string(),
        None => "gates".to_owned(),
    }
}

fn render_node_label(node: &PlanNode) -> String {
    let text = match &node.kind {
        NodeKind::Gate { hosts } => format!("gate\n{}", nodeset::fold_node_set(hosts)),
        NodeKind::Change { members, .. } => {
            let names: Vec<String> = members
                .iter()
                .take(6)
                .map(|m| m.resource.address.words())
                .collect();
            let more = if members.len() > 6 {
                format!("\nand {} more", members.len() - 6)
            } else {
                String::new()
            };
            format!("{}{more}", names.join("\n"))
        }
        NodeKind::Adopt { members } => format!("record {} as found", members.len()),
        NodeKind::Reboot => "reboot".to_owned(),
        NodeKind::Drain { .. } => "drain".to_owned(),
        NodeKind::Uncordon { .. } => "uncordon".to_owned(),
        NodeKind::Barrier => "barrier".to_owned(),
    };
    sanitize_text(&if node.blocked.is_some() {
        format!("{text}\n(blocked)")
    } else {
        text
    })
}
