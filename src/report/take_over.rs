//! Targets that were taken over from another cluster: what it brought to them, and that none of it
//! is managed.

use super::wrap::{COLUMNS, wrap_labelled_text};
use railwright_apply::target_take_over::TakenOver;
use railwright_base::Address;
use railwright_base::text::{clean_line, format_count, one_line};
use railwright_state::TakeOver;
use railwright_state::host_record::HOST_RECORD_PATH;
use std::collections::BTreeMap;

/// What a take-over came to.
pub fn render_take_over_results(taken: &TakenOver, keep_record: bool, inventory: &str) -> String {
    let mut out = String::new();
    for (target, one) in taken
        .iter()
        .filter_map(|(target, one)| Some((target, one.as_ref().ok()?)))
    {
        out.push_str(&format!(
            "{target} taken over from {}\n",
            describe_previous_cluster(one)
        ));
        out.push_str(&render_kept_records(one));
        out.push_str(&render_unmanaged_resources(&one.resources));
    }
    if out.is_empty() {
        return out;
    }
    let next = match keep_record {
        true => {
            "what their records hold counts as this cluster's from now on: look at the removals of \
             the next plan"
        }
        false => {
            "what the other cluster brought stays; what of it the spec names is planned as not \
             managed yet"
        }
    };
    format!(
        "{out}{}next     railwright plan {inventory}\n",
        wrap_labelled_text("state    ", next, COLUMNS)
    )
}

/// For `state list`.
pub fn render_recorded_take_overs(taken: &BTreeMap<&str, &TakeOver>) -> String {
    taken.iter().map(render_recorded_take_over).collect()
}

fn render_recorded_take_over((name, taken): (&&str, &&TakeOver)) -> String {
    let by = format!(
        "{} on {}",
        one_line(&taken.who, 40),
        one_line(&taken.machine, 60)
    );
    let reason = one_line(&taken.reason, 200);
    let head = format!(
        "{name}  taken over from {} by {by} at {}: {reason}",
        describe_previous_cluster(taken),
        one_line(&taken.at, 40)
    );
    clean_line(&head)
        + "\n"
        + &render_kept_records(taken)
        + &render_unmanaged_resources(&taken.resources)
}

fn describe_previous_cluster(taken: &TakeOver) -> String {
    match &taken.from {
        Some(from) => format!(
            "the cluster `{}` (id {})",
            one_line(&from.name, 60),
            from.id
        ),
        None => "a cluster that its record does not tell".to_owned(),
    }
}

fn render_kept_records(taken: &TakeOver) -> String {
    let Some(name) = &taken.set_aside else {
        return String::new();
    };
    clean_line(&format!(
        "  what could not be read is kept there beside {HOST_RECORD_PATH} as {}",
        one_line(name, 80)
    )) + "\n"
}

fn render_unmanaged_resources(resources: &[Address]) -> String {
    if resources.is_empty() {
        return String::new();
    }
    let lines: String = resources
        .iter()
        .map(|address| {
            clean_line(&format!("    {}", address.to_string().replace("%2F", "/"))) + "\n"
        })
        .collect();
    format!(
        "  {} of it not managed here:\n{lines}",
        format_count(resources.len(), "resource")
    )
}
