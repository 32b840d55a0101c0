//! One entry of the plan's screen: the change, its differences, why, what it interrupts.

use super::shape::own_name;
use super::{new_values, switch};
use crate::value::{self, ChangeDescription};
use crate::wrap;
use railwright_base::text::{self, clean_line};
use railwright_base::{SourceLocation, TargetKind, nodeset};
use railwright_plan::{AttributeDifference, ChangeReason, Member, NodeKind, PlanNode};
use railwright_resource::{Action, Disruption};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// The indentation of what stands below an entry.
pub(super) const BELOW: &str = "       ";

/// Stands for the node-set until entries are folded; no name can hold a control character.
pub const WHO: &str = "\u{1}";

/// The target's name as it is folded: hosts by name alone.
pub fn format_node_target(node: &PlanNode) -> Cow<'_, str> {
    match &node.target {
        Some(target) if target.kind == TargetKind::Host => Cow::Borrowed(&*target.name),
        Some(target) => Cow::Owned(target.to_string()),
        None => Cow::Borrowed(""),
    }
}

/// The steps of its host that a reboot comes after.
pub(super) fn list_reboot_causes(node: &PlanNode) -> String {
    let own = node.after.iter().filter(|id| !id.starts_with("gate/"));
    own.map(|id| strip_target(id))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Why it is blocked; a step of the same host that it needs is named without the host, so that all
/// hosts share the text.
pub(super) fn format_blocked_reason(node: &PlanNode) -> Option<String> {
    let why = node.blocked.as_ref()?.to_string();
    Some(match &node.target {
        Some(target) => why.replace(&format!("{target}/"), "").replace("%2F", "/"),
        None => why,
    })
}

pub(super) fn name_node_kind(node: &PlanNode) -> &'static str {
    match node.kind {
        NodeKind::Change { .. } => "change",
        NodeKind::Reboot if node.disruption == Disruption::PowerCycle => "power cycle",
        NodeKind::Reboot => "reboot",
        NodeKind::Drain { .. } => "drain",
        NodeKind::Uncordon { .. } => "uncordon",
        NodeKind::Gate { .. } => "gate",
        NodeKind::Barrier => "barrier",
        NodeKind::Adopt { .. } => "adopt",
    }
}

pub(super) fn is_rechecked(member: &Member) -> bool {
    matches!(member.reason, ChangeReason::Disturbed { .. })
}

/// When a node is given back.
const GIVEN_BACK: &str =
    "once the host has passed a gate, and the node is Ready and gives what it gave before";

/// The entry's lines for nodes of one shape, with `WHO` where the node-set goes. Where resources of
/// several names are one entry, `names` are all of them, folded.
pub fn render_entry_body(nodes: &[&PlanNode], names: Option<&str>) -> String {
    let node = nodes[0];
    let called = |text: &str| match (names, node.members()) {
        (Some(all), [member, ..]) => text.replace(own_name(member), all),
        _ => text.to_owned(),
    };
    let mut out = match &node.kind {
        NodeKind::Change { members, .. } if members.iter().all(is_rechecked) => {
            render_rechecked_members(nodes)
        }
        NodeKind::Change { actions, .. } if is_of_switch(node) => {
            switch::render_switch_members(nodes, &called) + &switch::render_switch_edits(actions)
        }
        NodeKind::Change { members, .. } => {
            let (mut new_packages, mut rest) = (Vec::new(), String::new());
            for (n, member) in members.iter().enumerate() {
                if is_new_package(member) {
                    new_packages.push(n);
                } else {
                    rest.push_str(&render_member(nodes, n, &called));
                }
            }
            render_new_packages(nodes, &new_packages) + &rest
        }
        _ => render_host_step(node),
    };
    if let Some(blocked) = format_blocked_reason(node) {
        return out + &wrap_entry_line("blocked  ", &called(&blocked));
    }
    if !node.interrupts.is_empty() {
        let interrupts = if is_of_switch(node) {
            switch::format_port_interrupts(&node.interrupts)
        } else {
            node.interrupts.join("; ")
        };
        out.push_str(&wrap_entry_line("interrupts ", &called(&interrupts)));
    }
    for wait in list_waits(node) {
        out.push_str(&wrap_entry_line("waits    ", &called(&wait)));
    }
    if let Some(rollback) = describe_automatic_rollback(node) {
        out.push_str(&wrap_entry_line("rollback ", &called(&rollback)));
    }
    out
}

/// The first lines of a step that changes no resources.
fn render_host_step(node: &PlanNode) -> String {
    match &node.kind {
        NodeKind::Reboot => {
            let what = if node.disruption == Disruption::PowerCycle {
                "power cycle, by hand"
            } else {
                "reboot, once"
            };
            format!(
                " ! {WHO} {what}\n{}",
                wrap_entry_line("after    ", &list_reboot_causes(node))
            )
        }
        NodeKind::Drain { cluster, .. } => {
            let first = format!(
                "no more pods are put on the node of {cluster}, and it is emptied, before its host \
                 is disturbed"
            );
            format!(
                " ! {WHO} drain\n{}{}",
                wrap_entry_line("cordons  ", &first),
                wrap_entry_line("back     ", GIVEN_BACK)
            )
        }
        NodeKind::Uncordon { cluster, .. } => {
            let why =
                format!("an earlier run cordoned the node of {cluster} and did not give it back");
            format!(
                " . {WHO} uncordon\n{}{}",
                wrap_entry_line("back     ", GIVEN_BACK),
                wrap_entry_line("because  ", &why)
            )
        }
        NodeKind::Gate { .. }
        | NodeKind::Barrier
        | NodeKind::Adopt { .. }
        | NodeKind::Change { .. } => String::new(),
    }
}

fn is_of_switch(node: &PlanNode) -> bool {
    has_target_kind(node, TargetKind::Switch)
}

pub(super) fn has_target_kind(node: &PlanNode, kind: TargetKind) -> bool {
    matches!(&node.target, Some(target) if target.kind == kind)
}

/// What it waits for after its last action, and how long.
pub(super) fn list_waits(node: &PlanNode) -> impl Iterator<Item = String> {
    let actions: &[Action] = if let NodeKind::Change { actions, .. } = &node.kind {
        actions
    } else {
        &[]
    };
    actions.iter().filter_map(|action| match action {
        Action::Await { until, within_s } => Some(format!(
            "until {}, for {} at most",
            clean_line(until),
            text::format_duration(u64::from(*within_s))
        )),
        _ => None,
    })
}

/// What watches over a change that can cut our own connection, and why.
pub(super) fn describe_automatic_rollback(node: &PlanNode) -> Option<String> {
    let NodeKind::Change {
        automatic_rollback: Some(rollback),
        ..
    } = &node.kind
    else {
        return None;
    };
    let because = clean_line(&rollback.because);
    Some(format!(
        "reverts by itself after {} s unless confirmed over a new connection ({because})",
        rollback.seconds
    ))
}

pub(super) fn is_new_package(member: &Member) -> bool {
    member.resource.kind == "package" && member.reason == ChangeReason::New && !member.removal
}

/// New packages of one run are one entry: their names say it all.
fn render_new_packages(nodes: &[&PlanNode], which: &[usize]) -> String {
    let members: Vec<&Member> = which.iter().map(|n| &nodes[0].members()[*n]).collect();
    if members.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = members.iter().map(|m| m.resource.address.name()).collect();
    let modules: BTreeSet<String> = members.iter().map(|m| m.resource.whose()).collect();
    let list = clean_line(&names.join(", "));
    let word = if names.len() == 1 {
        "package"
    } else {
        "packages, in one run"
    };
    let because = format!(
        "new: {}",
        modules.into_iter().collect::<Vec<_>>().join(", ")
    );
    format!(
        " + {WHO} {word}\n{}{}",
        wrap_entry_line("", &list),
        wrap_entry_line("because  ", &because)
    )
}

fn strip_target(id: &str) -> String {
    let shown = id.splitn(3, '/').nth(2).unwrap_or(id).to_owned();
    clean_line(&shown.replace("%2F", "/"))
}

fn render_rechecked_members(nodes: &[&PlanNode]) -> String {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for member in nodes.iter().flat_map(|node| node.members()) {
        names
            .entry(clean_line(member.resource.address.kind()))
            .or_default()
            .insert(clean_line(member.resource.address.name()));
    }
    let mut list = Vec::new();
    for (kind, names) in &names {
        let (plain, other): (Vec<&str>, Vec<&str>) = names
            .iter()
            .map(String::as_str)
            .partition(|name| nodeset::is_plain(name));
        for name in nodeset::fold_by_stem(&plain) {
            list.push(format!("{kind} {name}"));
        }
        for name in other {
            list.push(format!("{kind} {name}"));
        }
    }
    let first = &nodes[0].members()[0];
    format!(
        " = {WHO} re-checked, as it is right now and may be lost\n{}{}",
        wrap_entry_line("", &list.join(", ")),
        wrap_entry_line("because  ", &describe_reason_with_place(first))
    )
}

/// A resource with its host, as it is named on a command line.
pub fn format_member_argument(member: &Member) -> String {
    let (address, shown) = (&member.resource.address, format_member_name(member));
    let plain = address.target.kind == TargetKind::Host
        && shown
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./: ".contains(c));
    if plain {
        format!("{} {shown}", clean_line(&address.target.name))
    } else {
        clean_line(&address.to_string())
    }
}

/// `kind name` of a resource, as a person would say it.
pub(super) fn format_member_name(member: &Member) -> String {
    clean_line(&member.resource.address.words())
}

pub(super) fn render_member(
    nodes: &[&PlanNode],
    n: usize,
    called: &dyn Fn(&str) -> String,
) -> String {
    let members: Vec<&Member> = nodes.iter().map(|node| &node.members()[n]).collect();
    let member = members[0];
    let mut out = format!(
        " {} {WHO} {}\n",
        select_change_symbol(member),
        called(&format_member_name(member))
    );
    if matches!(
        member.reason,
        ChangeReason::New | ChangeReason::KnownAfter { .. }
    ) {
        out.push_str(&new_values::render_new_values(&members));
        out.push_str(&new_values::render_preview_note(member));
    } else if member.reason == ChangeReason::NotReady {
        let found = member
            .differences
            .iter()
            .map(|difference| value::format_reading(&difference.actual, value::WIDE));
        out.push_str(&wrap_entry_line(
            "now      ",
            &found.collect::<Vec<_>>().join("; "),
        ));
    } else {
        out.push_str(&render_differences(&members));
    }
    out.push_str(&wrap_entry_line(
        "because  ",
        &called(&describe_shared_reason(&members)),
    ));
    out + &render_dropped_changes(&members) + &render_residue(member, called)
}

fn render_differences(members: &[&Member]) -> String {
    let mut out = String::new();
    for (place, difference) in members[0].differences.iter().enumerate() {
        let by = match &difference.by {
            Some(by) => format!(" ({})", clean_line(by.words())),
            None => String::new(),
        };
        out.push_str(&wrap::wrap_field_line(
            BELOW,
            &format_difference_label(difference),
            &format!("{}{by}", describe_member_change(members, place)),
            99,
        ));
    }
    out
}

/// What somebody changed on the target, and the change undoes.
fn render_dropped_changes(members: &[&Member]) -> String {
    let mut out = String::new();
    for (place, since) in members[0].since.iter().enumerate() {
        let attribute = format!("{} ({})", since.attribute, since.plane.word());
        let mut changes = BTreeSet::new();
        for since in members.iter().filter_map(|member| member.since.get(place)) {
            changes.insert(value::describe_change(
                &since.desired,
                &since.actual,
                value::NARROW,
            ));
        }
        out.push_str(&wrap_entry_line(
            "drops    ",
            &format!(
                "what somebody changed since we applied it: {attribute} {}",
                summarize_texts(changes)
            ),
        ));
    }
    out
}

/// What a removal does not undo.
pub(super) fn render_residue(member: &Member, called: &dyn Fn(&str) -> String) -> String {
    let mut out = String::new();
    if member.removal {
        for residue in &member.residue {
            out.push_str(&wrap_entry_line("leaves   ", &called(residue)));
        }
    }
    out
}

/// The reason of identical members; where their places in the spec differ, the first stands
/// for all.
fn describe_shared_reason(members: &[&Member]) -> String {
    let first = describe_reason_with_place(members[0]);
    if members
        .iter()
        .all(|m| describe_reason_with_place(m) == first)
    {
        first
    } else {
        format!("{first}, and likewise for the others")
    }
}

pub(super) fn format_difference_label(difference: &AttributeDifference) -> String {
    format!(
        "{:<22}",
        format!(
            "{} ({})",
            clean_line(&difference.attribute),
            difference.plane.word()
        )
    )
}

/// A difference of identical members, by its place; as a whole where it is not the same for
/// all of them.
pub fn describe_member_change(members: &[&Member], place: usize) -> ChangeDescription {
    let differences = members
        .iter()
        .filter_map(|member| member.differences.get(place));
    let mut changes: BTreeSet<ChangeDescription> = differences
        .map(|d| value::describe_change(&d.actual, &d.desired, value::NARROW))
        .collect();
    match changes.pop_first() {
        Some(only) if changes.is_empty() => only,
        first => {
            ChangeDescription::Whole(summarize_texts(first.into_iter().chain(changes).collect()))
        }
    }
}

/// What identical members say: the first and the last text, as people sort, and how many are
/// between them.
pub(super) fn summarize_texts<T: Display>(texts: BTreeSet<T>) -> String {
    let mut all: Vec<String> = texts.iter().map(T::to_string).collect();
    all.sort_by(|one, other| nodeset::natural_order(one, other));
    match &all[..] {
        [first, _, .., last] if all.len() > 2 => {
            format!("{first}; {last}; {} between them", all.len() - 2)
        }
        _ => all.join("; "),
    }
}

/// What becomes of a resource, as a sign: `+` new, `-` removed, `~` changed, `?` not known yet, `=`
/// in sync, `.` waited for.
pub fn select_change_symbol(member: &Member) -> char {
    match (&member.reason, member.removal) {
        (_, true) => '-',
        (ChangeReason::New, _) => '+',
        (ChangeReason::KnownAfter { .. } | ChangeReason::Unknown, _) => '?',
        (ChangeReason::InSync, _) => '=',
        (ChangeReason::NotReady, _) => '.',
        _ => '~',
    }
}

/// Why a resource is in the plan, with the place in the spec.
pub(super) fn describe_reason_with_place(member: &Member) -> String {
    let places = match &member.reason {
        ChangeReason::SpecChanged { places } => places,
        _ => &member.resource.places,
    };
    describe_member_reason(member, format_spec_places(places))
}

pub(super) fn describe_member_reason(member: &Member, place: Option<String>) -> String {
    describe_reason(member, &member.resource.whose_part(), place)
}

/// True for a removal that finds nothing to undo.
pub(super) fn is_forgotten(member: &Member) -> bool {
    member.removal
        && member.reason == ChangeReason::RemovedFromSpec
        && member.differences.is_empty()
}

/// Why a resource is in the plan; `module` names who wants it.
pub fn describe_reason(member: &Member, module: &str, place: Option<String>) -> String {
    match &member.reason {
        ChangeReason::New => match place {
            Some(place) => format!("new: {module}, {place}"),
            None => format!("new: {module}"),
        },
        ChangeReason::Takeover => format!("not managed yet, and differs from the spec: {module}"),
        ChangeReason::SpecChanged { .. } => match place {
            Some(place) => format!("spec changed: {place}, {module}"),
            None => format!("spec changed: {module}"),
        },
        ChangeReason::InputChanged { input } => format!(
            "input changed: {}, since we applied it; nobody changed the target",
            clean_line(input)
        ),
        ChangeReason::Drifted => "drifted: changed on the target since we applied it".to_owned(),
        ChangeReason::PendingRestart => {
            "restart pending: what is persisted is right and not running yet".to_owned()
        }
        ChangeReason::NotReady => {
            "not ready: it becomes ready by itself, and is waited for".to_owned()
        }
        ChangeReason::WillBeLostAtReboot => {
            "will be lost at reboot: it is running so, and not persisted".to_owned()
        }
        ChangeReason::RemovedFromSpec if is_forgotten(member) => {
            "removed from spec: nothing of it is to be rolled back, and it is forgotten".to_owned()
        }
        ChangeReason::RemovedFromSpec => {
            "removed from spec: what was there before our first change comes back".to_owned()
        }
        ChangeReason::LetGo => "removed from spec: it stays, and is ours no longer".to_owned(),
        ChangeReason::Disturbed { by } => format!("{} resets it", strip_target(by)),
        ChangeReason::KnownAfter { step } => {
            format!("known after {}", clean_line(&step.path.join(" ")))
        }
        ChangeReason::Unknown => "could not be read, so it is applied again".to_owned(),
        ChangeReason::InSync => {
            "in sync already: recorded as it is, and left as it is when it leaves the spec"
                .to_owned()
        }
    }
}

fn format_spec_places(places: &[SourceLocation]) -> Option<String> {
    let first = places.first()?;
    let more = if places.len() > 1 {
        format!(" and {} more", places.len() - 1)
    } else {
        String::new()
    };
    Some(format!("{} ({first}){more}", first.path))
}

/// A labelled line below an entry.
pub fn wrap_entry_line(label: &str, text: &str) -> String {
    wrap::wrap_labelled_text(&format!("{BELOW}{label}"), text, 99)
}
