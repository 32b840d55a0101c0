//! A graph as text that Graphviz (`dot -Tsvg`) and Mermaid understand.

/// One node to draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    /// Label, one or more lines.
    pub label: String,
    /// Nodes of one group are drawn in one box.
    pub group: String,
    /// Numbers of the direct prerequisites.
    pub after: Vec<usize>,
}

fn escape_dot_label(label: &str) -> String {
    label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn group_graph_nodes(nodes: &[GraphNode]) -> Vec<(&str, Vec<usize>)> {
    let mut groups: indexmap::IndexMap<&str, Vec<usize>> = indexmap::IndexMap::new();
    for (number, node) in nodes.iter().enumerate() {
        groups.entry(&node.group).or_default().push(number);
    }
    groups.into_iter().collect()
}

/// Graphviz.
pub fn render_dot(nodes: &[GraphNode]) -> String {
    let mut out = String::from(
        "digraph plan {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n",
    );
    for (number, (group, members)) in group_graph_nodes(nodes).into_iter().enumerate() {
        out.push_str(&format!(
            "  subgraph cluster_{number} {{\n    label=\"{}\";\n",
            escape_dot_label(group)
        ));
        for member in members {
            out.push_str(&format!(
                "    n{member} [label=\"{}\"];\n",
                escape_dot_label(&nodes[member].label)
            ));
        }
        out.push_str("  }\n");
    }
    for (number, node) in nodes.iter().enumerate() {
        for before in &node.after {
            out.push_str(&format!("  n{before} -> n{number};\n"));
        }
    }
    out.push_str("}\n");
    out
}

/// Mermaid, as GitHub renders it.
pub fn render_mermaid(nodes: &[GraphNode]) -> String {
    let mut out = String::from("flowchart LR\n");
    for (number, (group, members)) in group_graph_nodes(nodes).into_iter().enumerate() {
        out.push_str(&format!(
            "  subgraph g{number}[\"{}\"]\n",
            mermaid_text(group)
        ));
        for member in members {
            out.push_str(&format!(
                "    n{member}[\"{}\"]\n",
                mermaid_text(&nodes[member].label)
            ));
        }
        out.push_str("  end\n");
    }
    for (number, node) in nodes.iter().enumerate() {
        for before in &node.after {
            out.push_str(&format!("  n{before} --> n{number}\n"));
        }
    }
    out
}

fn mermaid_text(label: &str) -> String {
    label
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\n', "<br/>")
}
