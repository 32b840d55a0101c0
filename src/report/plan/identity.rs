//! Targets that a plan refuses because of who they are, and hosts that are another machine than before.

use crate::unread;
use crate::wrap::{COLUMNS, labelled, rule};
use railwright_base::nodeset;
use railwright_base::text::counted;
use railwright_plan::{Plan, Reinstalled};

/// Targets that answer and must not be touched, folded by what is wrong with them.
pub fn refused(plan: &Plan) -> String {
    if plan.refused.is_empty() {
        return String::new();
    }
    format!("{}{}", rule("REFUSED: nothing is planned for these targets"), unread::entries(&plan.refused))
}

/// Hosts that were re-installed: what is no longer put back.
pub fn reinstalled(plan: &Plan) -> String {
    let hosts: Vec<&str> = plan.reinstalled.iter().map(|one| &*one.host.name).collect();
    if hosts.is_empty() {
        return String::new();
    }
    let count: usize = plan.reinstalled.iter().map(|one: &Reinstalled| one.resources).sum();
    let what = format!(
        "another machine-id than at the last apply: what is remembered of the machine before ({}) is set aside, and nothing of it is put back",
        counted(count, "resource")
    );
    let entry = labelled(&format!(" . {:<14} ", nodeset::fold(&hosts)), &what, COLUMNS);
    format!("{}{entry}", rule("RE-INSTALLED: planned like new hosts"))
}
