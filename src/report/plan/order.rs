//! What comes after what: the groups above are sorted by what they interrupt, and this says the
//! order of time.

use super::entry::is_looked_again;
use crate::wrap::{COLUMNS, wrap_labelled_text};
use indexmap::IndexMap;
use railwright_base::text::{clean_line, format_count};
use railwright_base::{TargetKind, nodeset};
use railwright_plan::{NodeKind, PlanNode};
use std::collections::{BTreeMap, BTreeSet};

/// Hosts in so many different orders are told; of more their number is.
const SHOWN: usize = 3;

/// The kinds of steps of a host one after the other, folded over hosts that have the same; nothing
/// for a single kind.
pub fn render_step_order(open: &[&PlanNode]) -> String {
    let mut of_target: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in open {
        let Some(target) = &node.target else { continue };
        let steps = of_target.entry(target.name.to_string()).or_default();
        if let Some(word) = format_step_kind(node) {
            append_step_word(steps, word);
        }
    }
    let mut alike: IndexMap<Vec<String>, Vec<String>> = IndexMap::new();
    of_target
        .into_iter()
        .filter(|(_, steps)| steps.len() > 1)
        .for_each(|(name, steps)| alike.entry(steps).or_default().push(name));
    let whole = alike.len() == 1;
    let of_host = open
        .iter()
        .filter_map(|node| node.target.as_ref())
        .filter(|target| target.kind == TargetKind::Host);
    let hosts: BTreeSet<String> = of_host.map(|target| target.name.to_string()).collect();
    let line = |(number, (steps, names)): (usize, (&Vec<String>, &Vec<String>))| {
        let who = match whole {
            true if names.iter().all(|name| hosts.contains(name)) => {
                "a host, one step at a time".to_owned()
            }
            _ => nodeset::fold_node_set(names),
        };
        wrap_labelled_text(
            if number == 0 {
                "order    "
            } else {
                "         "
            },
            &format!("{who}: {}", steps.join(", ")),
            COLUMNS,
        )
    };
    let mut out: String = alike.iter().take(SHOWN).enumerate().map(line).collect();
    if alike.len() > SHOWN {
        out.push_str(&format!(
            "         and hosts in {}: --json has every step\n",
            format_count(alike.len() - SHOWN, "other order")
        ));
    }
    out
}

/// What of a Kubernetes cluster or of switches the hosts wait for; nothing where they wait for
/// nothing.
pub fn render_host_prerequisites(open: &[&PlanNode]) -> String {
    let of = |node: &PlanNode, kind: TargetKind| {
        node.target
            .as_ref()
            .is_some_and(|target| target.kind == kind)
    };
    let waited: BTreeSet<&str> = open
        .iter()
        .filter(|node| of(node, TargetKind::Host))
        .flat_map(|node| node.after.iter().map(String::as_str))
        .collect();
    let first = || open.iter().filter(|node| waited.contains(node.id.as_str()));
    let switches: BTreeSet<&str> = first()
        .filter(|node| of(node, TargetKind::Switch))
        .flat_map(|node| &node.target)
        .map(|t| &*t.name)
        .collect();
    let all = nodeset::fold_node_set(&switches.iter().collect::<Vec<_>>());
    let of_switches = match switches.len() {
        0 => None,
        1 => Some(format!("switch/{all}: the hosts' steps wait for it")),
        _ => Some(format!(
            "switch/{all}, one at a time: the hosts' steps wait for them"
        )),
    };
    let names: Vec<String> = first()
        .filter(|node| of(node, TargetKind::Kube))
        .map(|node| clean_line(&node.id))
        .collect();
    let of_clusters =
        (!names.is_empty()).then(|| format!("{}: the hosts' steps wait for it", names.join(", ")));
    of_switches
        .into_iter()
        .chain(of_clusters)
        .map(|line| wrap_labelled_text("first    ", &line, COLUMNS))
        .collect()
}

/// Kinds that follow each other over and over (each rail's in turn) are said once.
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
        NodeKind::Change { members, .. } if members.iter().all(is_looked_again) => None,
        NodeKind::Change { members, .. } => Some(clean_line(&members.first()?.wish.kind)),
        NodeKind::Reboot | NodeKind::Drain { .. } => Some(super::entry::kind_word(node).to_owned()),
        NodeKind::Uncordon { .. }
        | NodeKind::Gate { .. }
        | NodeKind::Barrier
        | NodeKind::Adopt { .. } => None,
    }
}
