//! The plan's screen: worst disruption first, identical changes folded by node-set, a reason for
//! each, what it interrupts, unknowns visible, the order of time and unchanged things a line each,
//! the next command last.

mod behind;
mod closing;
mod emptied;
mod entry;
mod fold;
mod full;
mod identity;
mod list;
mod new_values;
mod order;
mod shape;
mod switch;
mod unreached;
mod waves;

use super::knowledge::render_waived_rules;
use super::out_of_service;
use super::unread;
use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use indexmap::IndexMap;
use railwright_base::text::{self, clean_line, format_count, sanitize_text};
use railwright_base::{Target, TargetKind, nodeset};
use railwright_plan::BlockedReason;
use railwright_plan::{ChangeReason, NodeKind, Plan, PlanNode, Unavailable};
use railwright_resource::Disruption;
use std::collections::{BTreeMap, BTreeSet};

/// How the plan can be gone on with.
#[derive(Debug, Clone, Default)]
pub struct PlanNextSteps {
    /// The file that the plan was written to.
    pub file: Option<String>,
    /// The inventory as the user named it.
    pub inventory: String,
    /// How long it will likely take, as a line; it is no part of the plan.
    pub time: String,
}

/// The whole screen. What stands in a plan comes from hosts, their records and files that others
/// wrote.
pub fn render_plan_screen(plan: &Plan, next: &PlanNextSteps) -> String {
    sanitize_text(&render_plan_page(plan, next))
}

fn render_plan_page(plan: &Plan, next: &PlanNextSteps) -> String {
    let mut out = render_plan_header(plan);
    let work: Vec<&PlanNode> = plan.nodes.iter().filter(|n| !is_without_work(n)).collect();
    if work.is_empty() {
        return out + &render_idle_plan(plan, next);
    }
    let (blocked, open): (Vec<&PlanNode>, Vec<&PlanNode>) =
        work.into_iter().partition(|n| n.blocked.is_some());
    let hosts = emptied::find_drained_hosts(plan);
    let mut classes: BTreeMap<(std::cmp::Reverse<Disruption>, &str), Vec<&PlanNode>> =
        BTreeMap::new();
    for node in &open {
        classes
            .entry((
                std::cmp::Reverse(node.disruption),
                select_disruption_title(node, &hosts),
            ))
            .or_default()
            .push(node);
    }
    for ((_, title), nodes) in &classes {
        out.push_str(&render_heading(title));
        out.push_str(&fold::render_plan_entries(nodes));
    }
    out.push_str(&emptied::render_not_emptied(plan));
    out.push_str(&out_of_service::render_plan_outages(plan));
    if !blocked.is_empty() {
        out.push_str(&render_blocked_sections(plan, &blocked));
    }
    out.push_str(&render_left_alone(plan));
    out.push('\n');
    out.push_str(&closing::render_plane_legend(&open, &blocked));
    out.push_str(&behind::render_attached_hosts(&open, &plan.rollout));
    out.push_str(&order::render_host_prerequisites(&open));
    out.push_str(&order::render_step_order(&open));
    out.push_str(&waves::render_plan_waves(plan));
    out.push_str(&closing::render_rollout_rules(plan));
    out.push_str(&next.time);
    out.push_str(&closing::render_plan_summary(plan, &open, &blocked));
    out.push_str(&closing::render_next_commands(plan, next));
    out
}

/// A node that is emptied is given back: the one entry says both.
fn is_without_work(node: &PlanNode) -> bool {
    matches!(
        node.kind,
        NodeKind::Gate { .. }
            | NodeKind::Barrier
            | NodeKind::Adopt { .. }
            | NodeKind::Uncordon { left: false, .. }
    )
}

/// Blocked steps; of hosts, those that wait for a change of a cluster are named apart.
fn render_blocked_sections(plan: &Plan, blocked: &[&PlanNode]) -> String {
    let mut out = String::new();
    let causes = find_cluster_causes(plan);
    let (later, now): (Vec<&PlanNode>, Vec<&PlanNode>) = blocked.iter().partition(|node| {
        entry::has_target_kind(node, TargetKind::Host)
            && find_cluster_cause(node, &causes).is_some()
    });
    if !now.is_empty() {
        out.push_str(&render_heading("BLOCKED: not applied in this run"));
        out.push_str(&fold::render_plan_entries(&now));
    }
    out.push_str(&render_later_host_steps(&later, &causes));
    out
}

/// What the plan leaves alone, and why.
fn render_left_alone(plan: &Plan) -> String {
    [
        identity::render_refused_targets(plan),
        identity::render_reinstalled_hosts(plan),
        render_unknown_section(plan),
        render_dropped_fields(plan),
        unreached::render_hosts_without_ssh(&plan.no_ssh),
        render_waived_rules(&plan.waived),
    ]
    .concat()
}

/// The screen of a plan that changes nothing.
fn render_idle_plan(plan: &Plan, next: &PlanNextSteps) -> String {
    let mut out = describe_idle_plan(plan);
    out.push_str(&describe_unrecorded(plan, next));
    // Nobody is disturbed, so it is of no matter who else is down.
    if plan.has_outages() {
        out.push_str(&out_of_service::render_plan_outages(plan));
    }
    out.push_str(&render_left_alone(plan));
    out.push_str(&closing::render_outage_commands(plan, next));
    if !plan.unknown.is_empty() {
        let inventory = if next.inventory.is_empty() {
            plan.inventory.word()
        } else {
            next.inventory.clone()
        };
        out.push_str(&format!(
            "\nnext: fix what could not be read, then railwright plan {inventory}{}\n",
            closing::format_narrowing(plan)
        ));
    }
    out
}

/// The blocked steps of Kubernetes clusters, which block steps of hosts.
fn find_cluster_causes(plan: &Plan) -> BTreeSet<&str> {
    let mut causes = BTreeSet::new();
    for node in &plan.nodes {
        if node.blocked.is_some() && entry::has_target_kind(node, TargetKind::Kube) {
            causes.insert(node.id.as_str());
        }
    }
    causes
}

/// The one of these steps that blocks this node.
fn find_cluster_cause<'a>(node: &'a PlanNode, causes: &BTreeSet<&str>) -> Option<&'a str> {
    match &node.blocked {
        Some(BlockedReason::NeedsStep(id)) if causes.contains(id.as_str()) => Some(id),
        _ => None,
    }
}

/// What blocks the hosts: the reason once, then the steps as if they were applied.
fn render_later_host_steps(later: &[&PlanNode], causes: &BTreeSet<&str>) -> String {
    let first = later.first();
    let Some(cause) = first.and_then(|node| find_cluster_cause(node, causes)) else {
        return String::new();
    };
    let open: Vec<PlanNode> = later
        .iter()
        .map(|node| PlanNode {
            blocked: None,
            ..(*node).clone()
        })
        .collect();
    let why = format!(
        "{} is blocked, and nothing would prove what is done to hosts before it",
        cause.replace("%2F", "/")
    );
    let head = render_heading("BLOCKED UNTIL LATER: on hosts, which wait for their cluster");
    format!(
        "{head}{}{}",
        wrap_labelled_text(" ", &why, COLUMNS),
        fold::render_plan_entries(&open.iter().collect::<Vec<_>>())
    )
}

/// One resource or target in full: every difference, text changes line by line, the actions' own
/// words.
pub fn render_plan_details(plan: &Plan, subjects: &[String]) -> Option<String> {
    let mut texts = Vec::new();
    for node in &plan.nodes {
        if is_within(node, subjects) {
            texts.push(full::render_full_node(node));
        }
    }
    if texts.is_empty() {
        return None;
    }
    Some(sanitize_text(&texts.join("\n")))
}

/// Whether a node or one of its resources is one of these or below one of them.
fn is_within(node: &PlanNode, subjects: &[String]) -> bool {
    let mut addresses = vec![node.id.clone()];
    for member in node.members() {
        addresses.push(member.resource.address.to_string());
    }
    addresses
        .iter()
        .any(|address| subjects.iter().any(|subject| is_below(address, subject)))
}

fn is_below(address: &str, subject: &str) -> bool {
    match address.strip_prefix(subject) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

fn render_plan_header(plan: &Plan) -> String {
    let mut out = format!(
        "cluster {}   {}   read {}\nspec     {} ({})\n",
        clean_line(&plan.cluster),
        clean_line(&plan.inventory.path),
        clean_line(&plan.observed_at),
        clean_line(plan.spec_digest.short()),
        clean_line(&plan.inventory.words()),
    );
    if !plan.narrowed.is_empty() {
        out.push_str(&format!(
            "narrowed to a part of the cluster: {}\n",
            clean_line(&plan.narrowed.join(" "))
        ));
    }
    out
}

fn select_disruption_title(node: &PlanNode, emptied: &BTreeSet<&Target>) -> &'static str {
    match node.disruption {
        Disruption::None => {
            "LIVE: what runs goes on; new files and packages, values, first starts of services"
        }
        Disruption::Reload => "RELOAD: a setting or service is read again",
        Disruption::Restart => "RESTART: a service restarts",
        Disruption::LinkBlip => "LINK: a link goes down for a moment",
        Disruption::Drain
            if node
                .target
                .as_ref()
                .is_some_and(|target| emptied.contains(target)) =>
        {
            "DRAIN: only on nodes that are empty"
        }
        Disruption::Drain => "DRAIN: what runs on them is disturbed; nothing empties them first",
        Disruption::Reboot => "REBOOT",
        Disruption::PowerCycle => "POWER CYCLE: by hand",
        Disruption::Reinstall => "REINSTALL: by hand",
    }
}

fn describe_idle_plan(plan: &Plan) -> String {
    let count: usize = plan.unchanged.values().sum();
    let resources = format_count(count, "resource");
    let verb = if count == 1 { "is" } else { "are" };
    let targets = format_target_counts(plan.unchanged.keys());
    match (plan.unknown.is_empty(), count) {
        (_, 0) if !plan.refused.is_empty() => {
            "Nothing was planned: targets of this inventory are refused.\n".to_owned()
        }
        _ if plan.has_outages() => {
            let left = plan
                .unavailable
                .iter()
                .filter(|some| some.is_left_by_run())
                .flat_map(Unavailable::names)
                .collect::<Vec<_>>();
            let (left, verb) = (
                nodeset::fold_node_set(&left),
                if left.len() == 1 { "is" } else { "are" },
            );
            format!(
                "Nothing to change, but {left} {verb} out of service: no gate has passed what a \
                 run did there.\n"
            )
        }
        (true, _) => {
            format!("No changes. {resources} on {targets} {verb} in sync.\n")
        }
        (false, 0) => {
            "Nothing could be compared with the spec: nobody knows what would change.\n".to_owned()
        }
        (false, _) => {
            format!(
                "Not all could be read. {resources} on {targets} {verb} in sync; \
                 of the rest nobody knows.\n"
            )
        }
    }
}

/// How many resources are in sync and not recorded so.
fn count_adopted_resources(plan: &Plan) -> usize {
    plan.nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Adopt { .. }))
        .map(|node| node.members().len())
        .sum()
}

fn describe_unrecorded(plan: &Plan, next: &PlanNextSteps) -> String {
    let command = match (&next.file, next.inventory.as_str()) {
        (Some(file), _) => format!("railwright apply {file}"),
        (None, "") => "this run".to_owned(),
        (None, inventory) => format!("railwright apply {inventory}"),
    };
    match count_adopted_resources(plan) {
        0 => String::new(),
        1 => format!(
            "1 of them is not recorded yet: {command} writes down that it is so, and changes \
             nothing.\n"
        ),
        count => format!(
            "{count} of them are not recorded yet: {command} writes down that they are so, and \
             changes nothing.\n"
        ),
    }
}

fn format_target_counts<'a>(targets: impl Iterator<Item = &'a Target>) -> String {
    let mut of_kind: BTreeMap<TargetKind, BTreeSet<&Target>> = BTreeMap::new();
    for target in targets {
        of_kind.entry(target.kind).or_default().insert(target);
    }
    let counts: Vec<String> = of_kind
        .iter()
        .map(|(kind, targets)| format_count(targets.len(), name_target_kind(kind)))
        .collect();
    if counts.is_empty() {
        format_count(0, "host")
    } else {
        counts.join(" and ")
    }
}

fn name_target_kind(kind: &TargetKind) -> &'static str {
    match kind {
        TargetKind::Host => "host",
        TargetKind::Kube => "Kubernetes cluster",
        TargetKind::Switch => "switch",
    }
}

/// What is blocked and only waited for says above that nobody knows it, and why.
fn render_unknown_section(plan: &Plan) -> String {
    let mut waited = BTreeSet::new();
    for node in plan.nodes.iter().filter(|node| node.blocked.is_some()) {
        for member in node.members() {
            if member.reason == ChangeReason::NotReady {
                waited.insert(member.resource.address.to_string());
            }
        }
    }
    let mut rest = Vec::new();
    for finding in &plan.unknown {
        let address = finding.subject.split_once('#').map(|(address, _)| address);
        if !address.is_some_and(|address| waited.contains(address)) {
            rest.push(finding.clone());
        }
    }
    if rest.is_empty() {
        return String::new();
    }
    format!(
        "{}{}",
        render_heading("UNKNOWN: could not be found out"),
        unread::render_unknown_findings(&rest)
    )
}

/// What stays as it was applied although the spec no longer says it, folded by node-set.
fn render_dropped_fields(plan: &Plan) -> String {
    let mut folded: IndexMap<(String, &str), Vec<&str>> = IndexMap::new();
    for dropped in &plan.dropped {
        let what = format!(
            "{}: {}",
            dropped.field.path.join(" "),
            dropped.field.attribute.as_deref().unwrap_or_default()
        );
        folded
            .entry((what, &dropped.value))
            .or_default()
            .push(&dropped.field.target.name);
    }
    let mut entries = String::new();
    for ((what, value), names) in folded {
        let names = nodeset::fold_node_set(&names);
        entries.push_str(&format!(
            " . {names:<14} {}   {}\n",
            text::sanitize_text(&what),
            text::one_line(value, 40)
        ));
    }
    if entries.is_empty() {
        return entries;
    }
    format!(
        "{}{entries}",
        render_heading(
            "LEFT AS APPLIED: no longer in the spec; write the value that you want instead"
        )
    )
}

#[cfg(test)]
mod grouping_tests;
#[cfg(test)]
mod tests;
