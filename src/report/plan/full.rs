//! A node of a plan in full, for `show`.

use super::entry::{
    BELOW, describe_automatic_rollback, describe_reason_with_place, format_difference_label,
    render_residue, select_change_symbol, wrap_entry_line,
};
use super::new_values::{render_object_fields, render_preview_note};
use crate::text_difference::render_text_difference;
use crate::value;
use crate::wrap;
use railwright_base::text::clean_line;
use railwright_plan::{ChangeReason, Member, NodeKind, PlanNode};
use railwright_resource::{DesiredResource, Disruption};

/// What a command runs and what its probe asks: who agrees to it has to have read it.
fn render_full_command(resource: &DesiredResource) -> String {
    let probe = resource
        .body
        .pointer("/read/probe")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default();
    let script = quote_lines(resource.text("run").unwrap_or_default());
    format!(
        "       runs, as root\n{script}       when this probe does not say what is expected\n{}",
        quote_lines(probe)
    )
}

fn quote_lines(text: &str) -> String {
    text.lines()
        .map(|line| format!("         | {}\n", clean_line(line)))
        .collect::<String>()
}

/// A node in full, for `show PLAN ADDRESS`.
pub fn render_full_node(node: &PlanNode) -> String {
    let mut out = format!(
        "{}   {}   wave {}\n",
        clean_line(&node.id),
        node.disruption.word(),
        node.wave
    );
    if node.disruption > Disruption::None && !node.interrupts.is_empty() {
        out.push_str(&wrap_entry_line("interrupts ", &node.interrupts.join("; ")));
    }
    if let Some(rollback) = describe_automatic_rollback(node) {
        out.push_str(&wrap_entry_line("rollback ", &rollback));
    }
    if let Some(blocked) = &node.blocked {
        out.push_str(&wrap_entry_line("blocked ", &blocked.to_string()));
    }
    for member in node.members() {
        out.push_str(&render_full_member(member));
    }
    for member in node.members() {
        if member.resource.kind == "kubernetes_object" && member.reason == ChangeReason::New {
            out.push_str(&render_object_fields(&member.resource, usize::MAX));
            out.push_str(&render_preview_note(member));
        }
    }
    for member in node.members() {
        if member.resource.kind == "command" {
            out.push_str(&render_full_command(&member.resource));
        }
    }
    out.push_str(&render_actions(node));
    if !node.after.is_empty() {
        let after: Vec<String> = node.after.iter().map(|id| clean_line(id)).collect();
        out.push_str(&wrap_entry_line("after ", &after.join(", ")));
    }
    out
}

/// A member with its differences, and with what somebody changed since it was applied.
fn render_full_member(member: &Member) -> String {
    let mut out = format!(
        "  {} {}\n",
        select_change_symbol(member),
        clean_line(&member.resource.address.to_string())
    );
    out.push_str(&wrap_entry_line(
        "because ",
        &describe_reason_with_place(member),
    ));
    out.push_str(&render_residue(member, &str::to_owned));
    for difference in &member.differences {
        let change = value::describe_change(&difference.actual, &difference.desired, value::WIDE);
        out.push_str(&wrap::wrap_field_line(
            BELOW,
            &format_difference_label(difference),
            &change.to_string(),
            99,
        ));
        out.push_str(
            &render_text_difference(&difference.actual, &difference.desired, "         ")
                .unwrap_or_default(),
        );
    }
    for since in &member.since {
        let change = value::describe_change(&since.desired, &since.actual, value::WIDE);
        out.push_str(&wrap_entry_line(
            "drops what somebody changed since we applied it: ",
            &format!("{}{change}", format_difference_label(since)),
        ));
        out.push_str(
            &render_text_difference(&since.desired, &since.actual, "         ").unwrap_or_default(),
        );
    }
    out
}

/// What the step does, and what it may come to do.
fn render_actions(node: &PlanNode) -> String {
    let NodeKind::Change {
        actions, announced, ..
    } = &node.kind
    else {
        return String::new();
    };
    let words: Vec<String> = actions
        .iter()
        .map(railwright_resource::Action::word)
        .collect();
    let does = match words.is_empty() {
        true => "nothing yet".to_owned(),
        false => words.join(", "),
    };
    let mut out = wrap_entry_line("does ", &does);
    if !announced.is_empty() {
        let may_do = announced.join(", ");
        out.push_str(&wrap_entry_line(
            "may come to do ",
            &may_do.replace('*', "what applying it again takes"),
        ));
    }
    out
}
