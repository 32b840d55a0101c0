//! Hosts that are out of service whatever a plan does: which, why, and how much of the budget they
//! use up.

use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use indexmap::IndexMap;
use railwright_base::nodeset;
use railwright_base::text::{clean_line, one_line};
use railwright_plan::{Plan, Unavailable};

/// The hosts, as node-sets, by why they are out of service, in words.
pub fn fold_by_reason(unavailable: &[Unavailable]) -> IndexMap<String, String> {
    let mut hosts: IndexMap<String, Vec<String>> = IndexMap::new();
    for some in unavailable {
        hosts
            .entry(one_line(&some.why.words(), 400))
            .or_default()
            .extend(some.names());
    }
    hosts
        .into_iter()
        .map(|(why, names)| (why, clean_line(&nodeset::fold_node_set(&names))))
        .collect()
}

fn render_unavailable_entries(unavailable: &[Unavailable]) -> String {
    fold_by_reason(unavailable)
        .iter()
        .map(|(why, hosts)| wrap_labelled_text(&format!(" ! {hosts:<14} "), why, COLUMNS))
        .collect()
}

/// A section of its own with a title; nothing where all hosts are in service.
pub fn render_out_of_service_section(unavailable: &[Unavailable]) -> String {
    if unavailable.is_empty() {
        return String::new();
    }
    render_heading("OUT OF SERVICE: counts in the budget of every run")
        + &render_unavailable_entries(unavailable)
}

/// Of a plan, with what is left of its budget.
pub fn render_plan_outages(plan: &Plan) -> String {
    if plan.unavailable.is_empty() {
        return String::new();
    }
    let (out, most) = (plan.unavailable_hosts().len(), plan.rollout.max_unavailable);
    let left = match most.saturating_sub(out) {
        0 => "no other host is disturbed".to_owned(),
        left => format!("{left} more may be"),
    };
    render_heading(&format!(
        "OUT OF SERVICE before anything is done: {out}, of a budget of {most}; {left}"
    )) + &render_unavailable_entries(&plan.unavailable)
}
