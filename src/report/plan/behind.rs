//! How many hosts are attached to the switches that change: what goes wrong with such a switch goes
//! wrong for all of them.

use crate::wrap::{COLUMNS, wrap_labelled_text};
use indexmap::IndexMap;
use railwright_base::text::{clean_line, format_count};
use railwright_base::{TargetKind, nodeset};
use railwright_plan::{PlanNode, RolloutPolicy};
use std::collections::BTreeSet;

/// So many lines are shown; of more switches their number is.
const SHOWN: usize = 6;

/// A line for each set of hosts, with the switches that they are plugged into; nothing where no
/// switch changes.
pub fn render_attached_hosts(open: &[&PlanNode], policy: &RolloutPolicy) -> String {
    let mut identical: IndexMap<&str, BTreeSet<&str>> = IndexMap::new();
    for target in open.iter().filter_map(|node| node.target.as_ref()) {
        if target.kind != TargetKind::Switch || policy.behind.is_empty() {
            continue;
        }
        let hosts = policy.behind.get(&*target.name).map_or("", String::as_str);
        identical.entry(hosts).or_default().insert(&target.name);
    }
    let mut out = String::new();
    let mut label = "behind   ";
    for (hosts, switches) in identical.iter().take(SHOWN) {
        let text = describe_attached_hosts(hosts, switches);
        out.push_str(&wrap_labelled_text(label, &text, COLUMNS));
        label = "         ";
    }
    if identical.len() > SHOWN {
        out.push_str(&format!(
            "         and {} more: --json has every switch\n",
            format_count(identical.len() - SHOWN, "line")
        ));
    }
    out
}

/// Switches and the hosts that each of them has, as a node set.
fn describe_attached_hosts(hosts: &str, switches: &BTreeSet<&str>) -> String {
    let count = nodeset::expand_node_set(hosts).map_or(0, |all| all.len());
    let who = match (count, switches.len()) {
        (0, 1) => "no host is plugged into it; all are on its way".to_owned(),
        (0, _) => "no host is plugged into them; all are on their way".to_owned(),
        (_, 1) => format!("{}: {}", format_count(count, "host"), clean_line(hosts)),
        _ => format!(
            "{} each: {}",
            format_count(count, "host"),
            clean_line(hosts)
        ),
    };
    format!(
        "{}: {who}",
        nodeset::fold_node_set(&switches.iter().collect::<Vec<_>>())
    )
}
