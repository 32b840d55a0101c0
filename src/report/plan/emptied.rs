//! Which hosts are emptied before what needs it, and which should be and are not.

use crate::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::clean_line;
use railwright_base::{Target, nodeset};
use railwright_plan::{NodeKind, Plan};
use railwright_resource::Disruption;
use std::collections::{BTreeMap, BTreeSet};

/// The hosts whose nodes are empty when a step that needs it begins.
pub fn find_drained_hosts(plan: &Plan) -> BTreeSet<&Target> {
    // Where only what disturbs more empties a node, the rest is done before that.
    let early = plan
        .rollout
        .drain
        .as_ref()
        .is_none_or(|policy| policy.from > Disruption::Drain);
    let mut hosts: BTreeSet<&Target> = BTreeSet::new();
    for node in &plan.nodes {
        if !early && node.blocked.is_none() && matches!(node.kind, NodeKind::Drain { .. }) {
            hosts.extend(&node.target);
        }
    }
    hosts
}

/// The hosts that are disturbed as they are, folded by cluster.
pub fn render_not_emptied(plan: &Plan) -> String {
    let mut folded: BTreeMap<&Target, (Vec<&str>, Vec<&str>)> = BTreeMap::new();
    for one in &plan.not_emptied {
        let (hosts, nodes) = folded.entry(&one.cluster).or_default();
        hosts.push(&one.host.name);
        nodes.push(&one.node);
    }
    if folded.is_empty() {
        return String::new();
    }
    let mut out = render_heading("NOT EMPTIED: disturbed as they are, whatever runs on them");
    for (cluster, (hosts, nodes)) in folded {
        let hosts = clean_line(&nodeset::fold_node_set(&hosts));
        let nodes = clean_line(&nodeset::fold_node_set(&nodes));
        let why = format!(
            "{cluster} has no node {nodes}; under another name, kubernetes_node in the spec has to \
             say it"
        );
        out.push_str(&wrap_labelled_text(
            &format!(" ! {hosts:<14} "),
            &why,
            COLUMNS,
        ));
    }
    out
}
