//! One entry of the plan's screen: the change, its differences, why, what it interrupts.

use super::shape::own_name;
use super::switch;
use crate::value::{self, ChangeDescription};
use crate::wrap;
use railwright_base::text::{self, clean_line};
use railwright_base::{SourceLocation, TargetKind, nodeset, quote};
use railwright_plan::{AttributeDifference, Member, NodeKind, PlanNode, Reason};
use railwright_resource::{Action, DesiredResource, Disruption, Reading, kubernetes_object};
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
pub(super) fn rebooted_for(node: &PlanNode) -> String {
    let own = node.after.iter().filter(|id| !id.starts_with("gate/"));
    own.map(|id| without_target(id))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Why it is held; a step of the same host that it needs is named as it is called there, alike for
/// all hosts.
pub(super) fn format_blocked_reason(node: &PlanNode) -> Option<String> {
    let own = node.target.as_ref().map(|target| format!("{target}/"));
    let held = node.held.as_ref()?;
    Some(own.map_or_else(
        || held.clone(),
        |own| held.replace(&own, "").replace("%2F", "/"),
    ))
}

pub(super) fn kind_word(node: &PlanNode) -> &'static str {
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

pub(super) fn is_looked_again(member: &Member) -> bool {
    matches!(member.reason, Reason::Disturbed { .. })
}

/// When a node is given back.
const GIVEN_BACK: &str =
    "once a gate has proven the host, and the node is Ready and gives what it gave before";

/// The entry's lines for nodes of one shape, with `WHO` where the node-set goes. Where resources of
/// several names are one entry, `names` are all of them, folded.
pub fn render_entry_body(nodes: &[&PlanNode], names: Option<&str>) -> String {
    let node = nodes[0];
    let called = |text: &str| match (names, node.members()) {
        (Some(all), [member, ..]) => text.replace(own_name(member), all),
        _ => text.to_owned(),
    };
    let mut out = match &node.kind {
        NodeKind::Change { members, .. } if members.iter().all(is_looked_again) => {
            looked_again(nodes)
        }
        NodeKind::Change { actions, .. } if is_of_switch(node) => {
            switch::render_switch_members(nodes, &called) + &switch::render_switch_edits(actions)
        }
        NodeKind::Change { members, .. } => {
            let new_packages: Vec<usize> = (0..members.len())
                .filter(|n| is_new_package(&members[*n]))
                .collect();
            let rest = (0..members.len())
                .filter(|n| !new_packages.contains(n))
                .map(|n| one_member(nodes, n, &called));
            render_new_packages(nodes, &new_packages) + &rest.collect::<String>()
        }
        _ => render_host_step(node),
    };
    if !node.interrupts.is_empty() && node.held.is_none() {
        let said = if is_of_switch(node) {
            switch::format_port_interrupts(&node.interrupts)
        } else {
            node.interrupts.join("; ")
        };
        out.push_str(&wrap_entry_line("interrupts ", &called(&said)));
    }
    for wait in list_waits(node).filter(|_| node.held.is_none()) {
        out.push_str(&wrap_entry_line("waits    ", &called(&wait)));
    }
    if let Some(guard) = describe_automatic_rollback(node).filter(|_| node.held.is_none()) {
        out.push_str(&wrap_entry_line("guard    ", &called(&guard)));
    }
    if let Some(held) = format_blocked_reason(node) {
        out.push_str(&wrap_entry_line("held     ", &called(&held)));
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
                wrap_entry_line("after    ", &rebooted_for(node))
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
    node.target
        .as_ref()
        .is_some_and(|target| target.kind == TargetKind::Switch)
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
        guard: Some(guard), ..
    } = &node.kind
    else {
        return None;
    };
    let because = clean_line(&guard.because);
    Some(format!(
        "reverts by itself after {} s unless confirmed over a new connection ({because})",
        guard.seconds
    ))
}

pub(super) fn is_new_package(member: &Member) -> bool {
    member.wish.kind == "package" && member.reason == Reason::New && !member.removal
}

/// New packages of one run are one entry: their names say it all.
fn render_new_packages(nodes: &[&PlanNode], which: &[usize]) -> String {
    let members: Vec<&Member> = which.iter().map(|n| &nodes[0].members()[*n]).collect();
    if members.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = members.iter().map(|m| m.wish.address.name()).collect();
    let modules: BTreeSet<String> = members.iter().map(|m| m.wish.whose()).collect();
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

fn without_target(id: &str) -> String {
    let shown = id.splitn(3, '/').nth(2).unwrap_or(id).to_owned();
    clean_line(&shown.replace("%2F", "/"))
}

fn looked_again(nodes: &[&PlanNode]) -> String {
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for member in nodes.iter().flat_map(|node| node.members()) {
        names
            .entry(clean_line(member.wish.address.kind()))
            .or_default()
            .insert(clean_line(member.wish.address.name()));
    }
    let of_kind = |(kind, names): (&String, &BTreeSet<String>)| {
        let (plain, other): (Vec<&str>, Vec<&str>) = names
            .iter()
            .map(String::as_str)
            .partition(|name| nodeset::is_plain(name));
        let all: Vec<String> = nodeset::fold_by_stem(&plain)
            .into_iter()
            .chain(other.into_iter().map(str::to_owned))
            .collect();
        all.into_iter()
            .map(|name| format!("{kind} {name}"))
            .collect::<Vec<_>>()
    };
    let list = names
        .iter()
        .flat_map(of_kind)
        .collect::<Vec<_>>()
        .join(", ");
    let first = &nodes[0].members()[0];
    format!(
        " = {WHO} looked at again, as it is right now and may be lost\n{}{}",
        wrap_entry_line("", &list),
        wrap_entry_line("because  ", &describe_reason_with_place(first))
    )
}

/// A resource with its host, as it is named on a command line.
pub fn format_member_argument(member: &Member) -> String {
    let (address, shown) = (&member.wish.address, format_member_name(member));
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
fn format_member_name(member: &Member) -> String {
    clean_line(&member.wish.address.words())
}

pub(super) fn one_member(nodes: &[&PlanNode], n: usize, called: &dyn Fn(&str) -> String) -> String {
    let members: Vec<&Member> = nodes.iter().map(|node| &node.members()[n]).collect();
    let member = members[0];
    let mut out = format!(
        " {} {WHO} {}\n",
        select_change_symbol(member),
        called(&format_member_name(member))
    );
    if matches!(member.reason, Reason::New | Reason::KnownAfter { .. }) {
        out.push_str(&new_values(&members));
        out.push_str(&not_previewed(member));
    } else if member.reason == Reason::NotReady {
        let found = member
            .differences
            .iter()
            .map(|difference| value::format_reading(&difference.found, value::WIDE));
        out.push_str(&wrap_entry_line(
            "now      ",
            &found.collect::<Vec<_>>().join("; "),
        ));
    } else {
        for (d, difference) in member.differences.iter().enumerate() {
            let by = difference
                .by
                .as_ref()
                .map(|by| format!(" ({})", clean_line(by)))
                .unwrap_or_default();
            out.push_str(&wrap::wrap_field_line(
                BELOW,
                &format_difference_label(difference),
                &format!("{}{by}", change_of(&members, d)),
                99,
            ));
        }
    }
    out.push_str(&wrap_entry_line("because  ", &called(&why_of(&members))));
    for (d, since) in member.since.iter().enumerate() {
        let changes = members
            .iter()
            .filter_map(|m| m.since.get(d))
            .map(|since| value::describe_change(&since.wanted, &since.found, value::NARROW));
        let attribute = format!("{} ({})", since.attribute, since.plane.word());
        out.push_str(&wrap_entry_line(
            "drops    ",
            &format!(
                "what somebody changed since we applied it: {attribute} {}",
                summarize_texts(changes.collect())
            ),
        ));
    }
    out + &render_residue(member, called)
}

/// What a removal does not take back.
pub(super) fn render_residue(member: &Member, called: &dyn Fn(&str) -> String) -> String {
    member
        .residue
        .iter()
        .filter(|_| member.removal)
        .map(|residue| wrap_entry_line("leaves   ", &called(residue)))
        .collect()
}

/// How many fields of a new object a plan shows; `show` has them all.
const FIELDS_OF_OBJECT: usize = 8;

/// How the part of an object that a release makes ends.
const MADE: &str = " made";

/// The fields of an object that is made anew, a line each.
pub(super) fn object_fields(wish: &DesiredResource, most: usize) -> String {
    let called = quote::quote_for_shell(&clean_line(&wish.address.words()));
    let fields = kubernetes_object::list_manifest_fields(wish);
    let line = |(path, value): &(String, serde_json::Value)| {
        wrap::wrap_field_line(
            BELOW,
            path,
            &value::format_reading(&Reading::Is(value.clone()), value::WIDE),
            99,
        )
    };
    let more = fields.len().saturating_sub(most);
    let rest = if more > 0 {
        wrap_entry_line(
            "",
            &format!("... {more} more: railwright show PLAN {called}"),
        )
    } else {
        String::new()
    };
    fields.iter().take(most).map(line).collect::<String>() + &rest
}

/// What nobody could ask the server before is said of a new object, too.
pub(super) fn not_previewed(member: &Member) -> String {
    let told =
        |by: &&String| member.wish.kind == "kubernetes_object" || by.starts_with("not previewed");
    let by = member
        .differences
        .iter()
        .filter_map(|difference| difference.by.as_ref())
        .find(told);
    by.map(|by| wrap_entry_line("preview  ", by))
        .unwrap_or_default()
}

/// What is new needs no arrows: the values alone, in one wrapped line.
fn new_values(members: &[&Member]) -> String {
    if members[0].wish.kind == "kubernetes_object" {
        return object_fields(&members[0].wish, FIELDS_OF_OBJECT);
    }
    let (made, parts) = fold_release_objects(members[0], new_parts(members));
    let values = if parts.is_empty() {
        String::new()
    } else {
        wrap_entry_line("", &parts.join(", "))
    };
    values
        + &made
            .map(|made| wrap_entry_line("makes    ", &made))
            .unwrap_or_default()
}

/// Objects that a release makes are told by their kinds, where they are many; `show` names them
/// all. The rest of the parts with it, and hooks by their names: they are run.
fn fold_release_objects(member: &Member, parts: Vec<String>) -> (Option<String>, Vec<String>) {
    let (made, rest): (Vec<String>, Vec<String>) = parts
        .iter()
        .cloned()
        .partition(|part| part.ends_with(MADE) && !part.starts_with("hook "));
    if member.wish.kind != "helm_release" || made.len() <= FIELDS_OF_OBJECT {
        return (None, parts);
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    made.iter().for_each(|part| {
        *kinds
            .entry(part.split(' ').next().unwrap_or_default())
            .or_default() += 1
    });
    let kinds: Vec<String> = kinds
        .into_iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    let called = quote::quote_for_shell(&format_member_name(member));
    (
        Some(format!(
            "{} objects: {}; railwright show PLAN {called} names them",
            made.len(),
            kinds.join(", ")
        )),
        rest,
    )
}

/// The values of what is new. What a name says already is left out.
pub fn new_parts(members: &[&Member]) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for (d, difference) in members[0].differences.iter().enumerate() {
        let texts: BTreeSet<String> = members
            .iter()
            .filter_map(|m| m.differences.get(d))
            .map(|d| value::format_reading(&d.wanted, value::NARROW))
            .collect();
        let text = summarize_texts(texts);
        let plain =
            value::is_presence(&text, &members[0].wish.body) || difference.attribute == "owner";
        let part = format!("{} {text}", difference.attribute);
        if !plain && !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// The reason of members that are alike; where their places in the spec differ, the first stands
/// for all.
fn why_of(members: &[&Member]) -> String {
    let first = describe_reason_with_place(members[0]);
    if members
        .iter()
        .all(|m| describe_reason_with_place(m) == first)
    {
        first
    } else {
        format!("{first}, and alike for the others")
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

/// A difference of alike members, by its place among them; as a whole where it is not the same for
/// all of them.
pub fn change_of(members: &[&Member], place: usize) -> ChangeDescription {
    let differences = members
        .iter()
        .filter_map(|member| member.differences.get(place));
    let mut changes: BTreeSet<ChangeDescription> = differences
        .map(|d| value::describe_change(&d.found, &d.wanted, value::NARROW))
        .collect();
    match changes.pop_first() {
        Some(only) if changes.is_empty() => only,
        first => {
            ChangeDescription::Whole(summarize_texts(first.into_iter().chain(changes).collect()))
        }
    }
}

/// What alike members say: the first and the last of the texts, as people sort, and how many are
/// between them.
fn summarize_texts<T: Display>(texts: BTreeSet<T>) -> String {
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
/// as wished, `.` waited for.
pub fn select_change_symbol(member: &Member) -> char {
    match (&member.reason, member.removal) {
        (_, true) => '-',
        (Reason::New, _) => '+',
        (Reason::KnownAfter { .. } | Reason::Unknown, _) => '?',
        (Reason::AsWished, _) => '=',
        (Reason::NotReady, _) => '.',
        _ => '~',
    }
}

/// Why a resource is in the plan, with the place in the spec.
pub(super) fn describe_reason_with_place(member: &Member) -> String {
    let places = match &member.reason {
        Reason::SpecChanged { places } => places,
        _ => &member.wish.places,
    };
    reason_of(member, format_spec_places(places))
}

pub(super) fn reason_of(member: &Member, place: Option<String>) -> String {
    describe_reason(member, &member.wish.whose_part(), place)
}

/// True for a removal that finds nothing to take back.
pub(super) fn is_forgotten(member: &Member) -> bool {
    member.removal && member.reason == Reason::RemovedFromSpec && member.differences.is_empty()
}

/// Why a resource is in the plan; `module` names who wants it.
pub fn describe_reason(member: &Member, module: &str, place: Option<String>) -> String {
    match &member.reason {
        Reason::New => place.map_or(format!("new: {module}"), |place| {
            format!("new: {module}, {place}")
        }),
        Reason::Takeover => format!("not ours so far, and other than the spec wants it: {module}"),
        Reason::SpecChanged { .. } => place.map_or(format!("spec changed: {module}"), |place| {
            format!("spec changed: {place}, {module}")
        }),
        Reason::InputChanged { input } => format!(
            "input changed: {}, since we applied it; nobody changed the target",
            clean_line(input)
        ),
        Reason::Drifted => "drifted: changed on the target since we applied it".to_owned(),
        Reason::OwedRestart => {
            "owed restart: what is persisted is right and not running yet".to_owned()
        }
        Reason::NotReady => "not ready: it comes about by itself, and is waited for".to_owned(),
        Reason::WillBeLostAtReboot => {
            "will be lost at reboot: it is running so, and not persisted".to_owned()
        }
        Reason::RemovedFromSpec if is_forgotten(member) => {
            "removed from spec: nothing of it is to be taken back, and it is forgotten".to_owned()
        }
        Reason::RemovedFromSpec => {
            "removed from spec: what was there before our first change comes back".to_owned()
        }
        Reason::LetGo => "removed from spec: it stays, and is ours no longer".to_owned(),
        Reason::Disturbed { by } => format!("{} resets it", without_target(by)),
        Reason::KnownAfter { step } => format!("known after {}", clean_line(&step.path.join(" "))),
        Reason::Unknown => "could not be read, so it is applied again".to_owned(),
        Reason::AsWished => {
            "as wished already: recorded as it is, and left as it is when the wish goes".to_owned()
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
