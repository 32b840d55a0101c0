//! Targets that a plan refuses because of who they are, and hosts that are another machine than
//! before.

use crate::unread;
use crate::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::nodeset;
use railwright_base::text::format_count;
use railwright_plan::{Plan, ReinstalledHost};

/// Targets that answer and must not be touched, folded by what is wrong with them.
pub fn render_refused_targets(plan: &Plan) -> String {
    if plan.refused.is_empty() {
        return String::new();
    }
    format!(
        "{}{}",
        render_heading("REFUSED: nothing is planned for these targets"),
        unread::render_unknown_findings(&plan.refused)
    )
}

/// Hosts that were re-installed: what is no longer put back.
pub fn render_reinstalled_hosts(plan: &Plan) -> String {
    let hosts: Vec<&str> = plan.reinstalled.iter().map(|one| &*one.host.name).collect();
    if hosts.is_empty() {
        return String::new();
    }
    let count: usize = plan
        .reinstalled
        .iter()
        .map(|one: &ReinstalledHost| one.resources)
        .sum();
    let what = format!(
        "another machine-id than at the last apply: what is remembered of the machine before ({}) \
         is set aside, and nothing of it is put back",
        format_count(count, "resource")
    );
    let entry = wrap_labelled_text(
        &format!(" . {:<14} ", nodeset::fold_node_set(&hosts)),
        &what,
        COLUMNS,
    );
    format!(
        "{}{entry}",
        render_heading("RE-INSTALLED: planned like new hosts")
    )
}
