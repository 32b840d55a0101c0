//! The lines below the entries: words that need explaining, rules of the rollout, the numbers, and
//! how to go on.

use super::{PlanNextSteps, count_adopted_resources, entry};
use crate::wrap;
use railwright_base::text::{self, clean_line, format_count};
use railwright_base::{TargetKind, nodeset};
use railwright_knowledge::spec::window::Window;
use railwright_plan::{ChangeReason, Member, NodeKind, Plan, PlanNode};
use railwright_resource::Disruption;
use std::collections::BTreeSet;
use unicode_width::UnicodeWidthStr as _;

/// What the words in brackets mean, where some stand above.
pub fn render_plane_legend(open: &[&PlanNode], blocked: &[&PlanNode]) -> String {
    for node in open.iter().chain(blocked) {
        if node.members().iter().any(names_a_plane) {
            return "planes   persisted: written to disk; running: in effect now; next boot: waits \
                    for a boot\n"
                .to_owned();
        }
    }
    String::new()
}

fn names_a_plane(member: &Member) -> bool {
    !matches!(
        member.reason,
        ChangeReason::New | ChangeReason::KnownAfter { .. }
    ) && !member.differences.is_empty()
}

/// When what disturbs much may begin, and how long a run may go on.
pub fn render_rollout_rules(plan: &Plan) -> String {
    let rollout = &plan.rollout;
    let mut out = String::new();
    if let Some(least) = rollout.windows_for
        && !rollout.windows.is_empty()
    {
        let windows: Vec<String> = rollout.windows.iter().map(Window::words).collect();
        let what = match least {
            Disruption::None => "every step".to_owned(),
            least => format!(
                "what disturbs as much as a {} or more",
                least.word().replace('_', " ")
            ),
        };
        let text = format!("{}; for {what}", windows.join("; "));
        out.push_str(&wrap::wrap_labelled_text("windows  ", &text, 100));
    }
    if let Some(seconds) = rollout.deadline_s {
        out.push_str(&format!(
            "deadline {} after the run begins\n",
            text::format_duration(seconds)
        ));
    }
    out
}

/// What comes of it, in numbers.
pub fn render_plan_summary(plan: &Plan, open: &[&PlanNode], blocked: &[&PlanNode]) -> String {
    let mut parts = list_disturbances(open);
    let members: Vec<&Member> = open.iter().flat_map(|node| node.members()).collect();
    let (mut looked, mut forgotten, mut removed, mut waited) = (0, 0, 0, 0);
    for member in &members {
        looked += usize::from(matches!(member.reason, ChangeReason::Disturbed { .. }));
        forgotten += usize::from(entry::is_forgotten(member));
        removed += usize::from(member.removal && !entry::is_forgotten(member));
        waited += usize::from(member.reason == ChangeReason::NotReady);
    }
    let changed = members.len() - looked - removed - forgotten - waited;
    if changed > 0 {
        parts.push(format!(
            "{} change{}",
            format_count(changed, "resource"),
            if changed == 1 { "s" } else { "" }
        ));
    }
    for (number, words) in [
        (removed, "removed"),
        (forgotten, "forgotten"),
        (waited, "waited for"),
        (looked, "re-checked"),
        (blocked.len(), "blocked"),
        (plan.unknown.len(), "unknown"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {words}"));
        }
    }
    let unchanged: usize = plan.unchanged.values().sum();
    let noted = count_adopted_resources(plan);
    let noted = if noted > 0 {
        format!(" ({noted} recorded so for the first time)")
    } else {
        String::new()
    };
    parts.push(format!("{unchanged} in sync{noted}"));
    format!("summary  {}\n", wrap_comma_list(&parts))
}

/// How many targets are disturbed in which way.
fn list_disturbances(open: &[&PlanNode]) -> Vec<String> {
    let mut parts = Vec::new();
    let emptied = open
        .iter()
        .filter(|n| matches!(n.kind, NodeKind::Drain { .. }))
        .count();
    if emptied > 0 {
        parts.push(format!("{} emptied first", format_count(emptied, "node")));
    }
    let link = Disruption::LinkBlip;
    for (class, kind, words) in [
        (Disruption::Reboot, TargetKind::Host, "reboot"),
        (link, TargetKind::Host, "lose a link for a moment"),
        (link, TargetKind::Switch, "take ports down for a moment"),
    ] {
        match count_disturbed_targets(open, class, kind) {
            0 => {}
            n => parts.push(format!("{} will {words}", format_count(n, kind.noun()))),
        }
    }
    parts
}

fn count_disturbed_targets(open: &[&PlanNode], class: Disruption, kind: TargetKind) -> usize {
    let of_class = open.iter().filter(|n| n.disruption == class);
    of_class
        .filter_map(|n| n.target.as_ref().filter(|t| t.kind == kind))
        .collect::<BTreeSet<_>>()
        .len()
}

/// Parts joined by commas, on lines of at most 100 columns that begin under the first.
fn wrap_comma_list(parts: &[String]) -> String {
    let mut out = String::new();
    let mut column = 9;
    for (n, part) in parts.iter().enumerate() {
        let text = if n + 1 < parts.len() {
            format!("{part}, ")
        } else {
            part.clone()
        };
        if n > 0 && column + text.trim_end().chars().count() > 100 {
            out = format!("{}\n         ", out.trim_end());
            column = 9;
        }
        column += text.chars().count();
        out.push_str(&text);
    }
    out
}

/// The narrowing of this plan for a command line, so that what is copied from the screen is not
/// wider than what was shown.
pub fn format_narrowing(plan: &Plan) -> String {
    match plan.narrowed.len() {
        0 => String::new(),
        1..=3 => format!(" {}", clean_line(&plan.narrowed.join(" "))),
        _ => " (with the same --target and --exclude)".to_owned(),
    }
}

/// What goes on with a plan of which nothing may be applied.
const BLOCKED: &str = "fix what blocks it, then plan again";

/// The commands that bring hosts back which an earlier run left out of service, where nothing else
/// is to be done.
pub fn render_outage_commands(plan: &Plan, next: &PlanNextSteps) -> String {
    let first = plan.verified_first();
    if first.is_empty() || next.inventory.is_empty() {
        return String::new();
    }
    let hosts = clean_line(&nodeset::fold_node_set(
        &first.into_iter().collect::<Vec<_>>(),
    ));
    let apply = next
        .file
        .clone()
        .unwrap_or_else(|| format!("{}{}", next.inventory, format_narrowing(plan)));
    format!(
        "\n\
         next: railwright apply {apply}   (its gate verifies {hosts})\n\
         or as they are: railwright state return-to-service {} '{hosts}' --reason TEXT\n",
        next.inventory
    )
}

/// The plan's digest and the commands that go on.
pub fn render_next_commands(plan: &Plan, next: &PlanNextSteps) -> String {
    let digest = plan.digest.chars().take(12).collect::<String>();
    // Whoever applies it would read that there is nothing to do.
    let can_go_on = plan.has_work();
    match &next.file {
        Some(file) => {
            let mut examples = plan
                .nodes
                .iter()
                .flat_map(|node| node.members())
                .map(entry::format_member_argument);
            let short = examples.find(|example| {
                format_show_command(file, example).trim_end().width() <= wrap::COLUMNS
            });
            let example =
                format_show_command(file, &short.unwrap_or_else(|| "HOST KIND NAME".to_owned()));
            let apply = if can_go_on {
                format!("railwright apply {file}")
            } else {
                BLOCKED.to_owned()
            };
            format!("digest   {digest}\nnext     {apply}\n{example}")
        }
        None if next.inventory.is_empty() => format!("digest   {digest}\n"),
        None if !can_go_on => format!(
            "digest   {digest}\nnext     {BLOCKED}: railwright plan {}{}\n",
            next.inventory,
            format_narrowing(plan)
        ),
        None => format!(
            "digest   {digest}\n\
             next     railwright plan {0} -o FILE, then railwright apply FILE\n         or in one go: railwright apply {0}\n",
            format!("{}{}", next.inventory, format_narrowing(plan))
        ),
    }
}

fn format_show_command(file: &str, example: &str) -> String {
    format!("         one resource in full: railwright show {file} {example}\n")
}
