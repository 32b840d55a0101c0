//! Which hosts are emptied before what needs it, and which should be and are not.

use crate::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::clean_line;
use railwright_base::{Target, nodeset};
use railwright_plan::{NodeKind, Plan};
use railwright_resource::Disruption;
use std::collections::{BTreeMap, BTreeSet};

/// The hosts whose nodes are empty when a step that needs it begins.
pub fn find_drained_hosts(plan: &Plan) -> BTreeSet<&Target> {
    let is_drain = |kind: &NodeKind| matches!(kind, NodeKind::Drain { .. });
    // Where only what disturbs more empties a node, the rest is done before that.
    let early = plan
        .rollout
        .drain
        .as_ref()
        .is_none_or(|policy| policy.from > Disruption::Drain);
    let emptied = plan
        .nodes
        .iter()
        .filter(|node| !early && node.held.is_none() && is_drain(&node.kind));
    emptied.filter_map(|node| node.target.as_ref()).collect()
}

/// The hosts that are disturbed as they are, folded by cluster.
pub fn not_emptied(plan: &Plan) -> String {
    let mut folded: BTreeMap<&Target, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for one in &plan.not_emptied {
        let (hosts, nodes) = folded.entry(&one.cluster).or_default();
        hosts.push(&one.host.name);
        nodes.push(&one.node);
    }
    let entry = |(cluster, (hosts, nodes)): (&Target, (Vec<&str>, Vec<&str>))| {
        let (hosts, nodes) = (
            clean_line(&nodeset::fold_node_set(&hosts)),
            clean_line(&nodeset::fold_node_set(&nodes)),
        );
        let why = format!(
            "{cluster} has no node {nodes}; under another name, kubernetes_node in the spec has to \
             say it"
        );
        wrap_labelled_text(&format!(" ! {hosts:<14} "), &why, COLUMNS)
    };
    match folded.is_empty() {
        true => String::new(),
        false => {
            render_heading("NOT EMPTIED: disturbed as they are, whatever runs on them")
                + &folded.into_iter().map(entry).collect::<String>()
        }
    }
}
