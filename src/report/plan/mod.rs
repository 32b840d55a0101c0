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
use railwright_plan::part::describe_blocking_cause;
use railwright_plan::{NodeKind, Plan, PlanNode, Reason, Unavailable, UnknownFinding};
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
    // A node that is emptied is given back: the one entry says both.
    let no_work = |n: &PlanNode| {
        matches!(
            n.kind,
            NodeKind::Gate { .. }
                | NodeKind::Barrier
                | NodeKind::Adopt { .. }
                | NodeKind::Uncordon { left: false, .. }
        )
    };
    let work: Vec<&PlanNode> = plan.nodes.iter().filter(|n| !no_work(n)).collect();
    if work.is_empty() {
        return out + &without_work(plan, next);
    }
    let (held, open): (Vec<&PlanNode>, Vec<&PlanNode>) =
        work.into_iter().partition(|n| n.held.is_some());
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
    out.push_str(&emptied::not_emptied(plan));
    out.push_str(&out_of_service::of_plan(plan));
    if !held.is_empty() {
        out.push_str(&render_blocked_sections(plan, &held));
    }
    out.push_str(&set_aside(plan));
    out.push('\n');
    out.push_str(&closing::render_plane_legend(&open, &held));
    out.push_str(&behind::render_attached_hosts(&open, &plan.rollout));
    out.push_str(&order::render_host_prerequisites(&open));
    out.push_str(&order::render_step_order(&open));
    out.push_str(&waves::render_plan_waves(plan));
    out.push_str(&closing::rollout_rules(plan));
    out.push_str(&next.time);
    out.push_str(&closing::render_plan_summary(plan, &open, &held));
    out.push_str(&closing::go_on(plan, next));
    out
}

/// Steps that the plan holds; on hosts, those that wait for a change of a cluster are named apart.
fn render_blocked_sections(plan: &Plan, held: &[&PlanNode]) -> String {
    let mut out = String::new();
    let causes = held_by_cluster(plan);
    let on_host = |node: &PlanNode| {
        node.target
            .as_ref()
            .is_some_and(|target| target.kind == TargetKind::Host)
    };
    let (later, now): (Vec<&PlanNode>, Vec<&PlanNode>) = held.iter().partition(|node| {
        on_host(node)
            && node
                .held
                .as_ref()
                .is_some_and(|why| causes.contains_key(why))
    });
    if !now.is_empty() {
        out.push_str(&render_heading("HELD: not carried out in this run"));
        out.push_str(&fold::render_plan_entries(&now));
    }
    out.push_str(&on_hosts_later(&later, &causes));
    out
}

/// What the plan leaves alone, and why.
fn set_aside(plan: &Plan) -> String {
    [
        identity::render_refused_targets(plan),
        identity::render_reinstalled_hosts(plan),
        render_unknown_section(plan),
        render_dropped_fields(plan),
        unreached::no_ssh(&plan.no_ssh),
        render_waived_rules(&plan.waived),
    ]
    .concat()
}

/// What is said of a plan that changes nothing.
fn without_work(plan: &Plan, next: &PlanNextSteps) -> String {
    let mut out = nothing_to_do(plan);
    out.push_str(&not_recorded(plan, next));
    // Nobody is disturbed, so it is of no matter who else is down.
    if plan.has_outages() {
        out.push_str(&out_of_service::of_plan(plan));
    }
    out.push_str(&set_aside(plan));
    out.push_str(&closing::go_on_with_outages(plan, next));
    if !plan.unknown.is_empty() {
        let inventory = if next.inventory.is_empty() {
            plan.inventory.word()
        } else {
            next.inventory.clone()
        };
        out.push_str(&format!(
            "\nnext: mend what could not be read, then railwright plan {inventory}{}\n",
            closing::format_narrowing(plan)
        ));
    }
    out
}

/// What the steps of hosts that wait for one of a Kubernetes cluster are held with, and its id.
fn held_by_cluster(plan: &Plan) -> BTreeMap<String, &str> {
    let of_cluster = |node: &&PlanNode| {
        node.held.is_some()
            && node
                .target
                .as_ref()
                .is_some_and(|target| target.kind == TargetKind::Kube)
    };
    plan.nodes
        .iter()
        .filter(of_cluster)
        .map(|node| (describe_blocking_cause(&node.id), node.id.as_str()))
        .collect()
}

/// What the hosts are held with: the reason once, then the steps as if they were carried out.
fn on_hosts_later(later: &[&PlanNode], causes: &BTreeMap<String, &str>) -> String {
    let Some(cause) = later
        .first()
        .and_then(|node| causes.get(node.held.as_ref()?))
    else {
        return String::new();
    };
    let open: Vec<PlanNode> = later
        .iter()
        .map(|node| PlanNode {
            held: None,
            ..(*node).clone()
        })
        .collect();
    let why = format!(
        "{} is held, and nothing would prove what is done to hosts before it",
        cause.replace("%2F", "/")
    );
    let head = render_heading("HELD UNTIL LATER: on hosts, which wait for their cluster");
    format!(
        "{head}{}{}",
        wrap_labelled_text(" ", &why, COLUMNS),
        fold::render_plan_entries(&open.iter().collect::<Vec<_>>())
    )
}

/// One resource or target in full: every difference, text changes line by line, the actions' own
/// words.
pub fn render_plan_details(plan: &Plan, subjects: &[String]) -> Option<String> {
    let hit = |node: &&PlanNode| {
        let is_below = |address: &str, subject: &String| {
            address
                .strip_prefix(subject.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let within = |address: String| subjects.iter().any(|subject| is_below(&address, subject));
        within(node.id.clone())
            || node
                .members()
                .iter()
                .any(|m| within(m.wish.address.to_string()))
    };
    let nodes: Vec<&PlanNode> = plan.nodes.iter().filter(hit).collect();
    if nodes.is_empty() {
        return None;
    }
    Some(sanitize_text(
        &nodes
            .into_iter()
            .map(full::in_full)
            .collect::<Vec<_>>()
            .join("\n"),
    ))
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

fn nothing_to_do(plan: &Plan) -> String {
    let count: usize = plan.unchanged.values().sum();
    let (resources, (verb, them)) = (
        format_count(count, "resource"),
        if count == 1 {
            ("is", "it")
        } else {
            ("are", "them")
        },
    );
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
            format!("No changes. {resources} on {targets} {verb} as the spec wants {them}.\n")
        }
        (false, 0) => {
            "Nothing could be compared with the spec: nobody knows what would change.\n".to_owned()
        }
        (false, _) => {
            format!(
                "Not all could be read. {resources} on {targets} {verb} as the spec wants {them}; \
                 of the rest nobody knows.\n"
            )
        }
    }
}

/// How many resources are as wished and not remembered so.
fn count_adopted_resources(plan: &Plan) -> usize {
    plan.nodes
        .iter()
        .filter(|node| matches!(node.kind, NodeKind::Adopt { .. }))
        .map(|node| node.members().len())
        .sum()
}

fn not_recorded(plan: &Plan, next: &PlanNextSteps) -> String {
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
    let word = |kind: &TargetKind| match kind {
        TargetKind::Host => "host",
        TargetKind::Kube => "Kubernetes cluster",
        TargetKind::Switch => "switch",
    };
    let counts: Vec<String> = of_kind
        .iter()
        .map(|(kind, targets)| format_count(targets.len(), word(kind)))
        .collect();
    if counts.is_empty() {
        format_count(0, "host")
    } else {
        counts.join(" and ")
    }
}

/// What is held and only waited for says above that nobody knows it, and why.
fn render_unknown_section(plan: &Plan) -> String {
    let held = plan.nodes.iter().filter(|node| node.held.is_some());
    let members = held
        .flat_map(PlanNode::members)
        .filter(|member| member.reason == Reason::NotReady);
    let waited: BTreeSet<String> = members
        .map(|member| member.wish.address.to_string())
        .collect();
    let said = |finding: &UnknownFinding| {
        finding
            .subject
            .split_once('#')
            .is_some_and(|(address, _)| waited.contains(address))
    };
    let rest: Vec<UnknownFinding> = plan
        .unknown
        .iter()
        .filter(|finding| !said(finding))
        .cloned()
        .collect();
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
    let entry = |((what, value), names): ((String, &str), Vec<&str>)| {
        let names = nodeset::fold_node_set(&names);
        format!(
            " . {names:<14} {}   {}\n",
            text::sanitize_text(&what),
            text::one_line(value, 40)
        )
    };
    let entries: String = folded.into_iter().map(entry).collect();
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
