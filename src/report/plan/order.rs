//! What comes after what: the groups above are sorted by what they interrupt, and this says the
//! order of time.

use super::entry::{has_target_kind, is_rechecked};
use crate::wrap::{COLUMNS, wrap_labelled_text};
use indexmap::IndexMap;
use railwright_base::text::{clean_line, format_count};
use railwright_base::{TargetKind, nodeset};
use railwright_plan::{NodeKind, PlanNode};
use std::collections::{BTreeMap, BTreeSet};

/// So many different orders of hosts are shown; of more their number is.
const SHOWN: usize = 3;

/// The kinds of steps of a host one after the other, folded over hosts that have the same; nothing
/// for a single kind.
pub fn render_step_order(open: &[&PlanNode]) -> String {
    let mut of_target: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut hosts = BTreeSet::new();
    for node in open {
        let Some(target) = &node.target else { continue };
        if target.kind == TargetKind::Host {
            hosts.insert(target.name.to_string());
        }
        let steps = of_target.entry(target.name.to_string()).or_default();
        if let Some(word) = format_step_kind(node) {
            append_step_word(steps, word);
        }
    }
    let mut identical: IndexMap<Vec<String>, Vec<String>> = IndexMap::new();
    for (name, steps) in of_target {
        if steps.len() > 1 {
            identical.entry(steps).or_default().push(name);
        }
    }
    let mut out = String::new();
    let mut label = "order    ";
    for (steps, names) in identical.iter().take(SHOWN) {
        let who = if identical.len() == 1 && names.iter().all(|name| hosts.contains(name)) {
            "a host, one step at a time".to_owned()
        } else {
            nodeset::fold_node_set(names)
        };
        let text = format!("{who}: {}", steps.join(", "));
        out.push_str(&wrap_labelled_text(label, &text, COLUMNS));
        label = "         ";
    }
    if identical.len() > SHOWN {
        out.push_str(&format!(
            "         and hosts in {}: --json has every step\n",
            format_count(identical.len() - SHOWN, "other order")
        ));
    }
    out
}

/// What of a Kubernetes cluster or of switches the hosts wait for; nothing where they wait for
/// nothing.
pub fn render_host_prerequisites(open: &[&PlanNode]) -> String {
    let mut waited: BTreeSet<&str> = BTreeSet::new();
    for node in open
        .iter()
        .filter(|node| has_target_kind(node, TargetKind::Host))
    {
        waited.extend(node.after.iter().map(String::as_str));
    }
    let (mut switches, mut clusters) = (BTreeSet::new(), Vec::new());
    for node in open.iter().filter(|node| waited.contains(node.id.as_str())) {
        match &node.target {
            Some(target) if target.kind == TargetKind::Switch => {
                switches.insert(&*target.name);
            }
            Some(target) if target.kind == TargetKind::Kube => clusters.push(clean_line(&node.id)),
            _ => {}
        }
    }
    let mut out = String::new();
    let names = nodeset::fold_node_set(&switches.iter().collect::<Vec<_>>());
    let of_switches = match switches.len() {
        0 => String::new(),
        1 => format!("switch/{names}: the hosts' steps wait for it"),
        _ => format!("switch/{names}, one at a time: the hosts' steps wait for them"),
    };
    if !switches.is_empty() {
        out.push_str(&wrap_labelled_text("first    ", &of_switches, COLUMNS));
    }
    if !clusters.is_empty() {
        let text = format!("{}: the hosts' steps wait for it", clusters.join(", "));
        out.push_str(&wrap_labelled_text("first    ", &text, COLUMNS));
    }
    out
}

/// Kinds that follow each other over and over (each rail's in turn) are shown once.
fn append_step_word(steps: &mut Vec<String>, word: String) {
    match steps.as_slice() {
        [.., last] if *last == word => {}
        [.., first, then, again] if first == again && *then == word => drop(steps.pop()),
        _ => steps.push(word),
    }
}

/// What a step is called here; nothing for one that only looks.
fn format_step_kind(node: &PlanNode) -> Option<String> {
    match &node.kind {
        NodeKind::Change { members, .. } if members.iter().all(is_rechecked) => None,
        NodeKind::Change { members, .. } => Some(clean_line(&members.first()?.resource.kind)),
        NodeKind::Reboot | NodeKind::Drain { .. } => {
            Some(super::entry::name_node_kind(node).to_owned())
        }
        NodeKind::Uncordon { .. }
        | NodeKind::Gate { .. }
        | NodeKind::Barrier
        | NodeKind::Adopt { .. } => None,
    }
}
