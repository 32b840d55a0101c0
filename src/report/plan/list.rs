//! Many resources of one kind on the same hosts, each with little to say, are a list: a line each
//! below one heading.

use super::entry::{self, WHO};
use super::{new_values, shape};
use crate::value::ChangeDescription;
use crate::wrap;
use indexmap::IndexMap;
use railwright_base::nodeset;
use railwright_base::text::clean_line;
use railwright_plan::{ChangeReason, Member, NodeKind, PlanNode};
use std::collections::BTreeSet;
use unicode_width::UnicodeWidthStr as _;

/// From so many on they are a list.
const MANY: usize = 3;
/// Where a line begins.
const INDENT: &str = "       ";

/// What all resources of a list have in common: their kind, why they are in the plan, and their
/// hosts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Heading {
    symbol: char,
    kind: String,
    reason: String,
    /// The number of their node-set.
    hosts: usize,
}

/// One of them.
pub struct PlanListLine<'a> {
    member: &'a Member,
    name: String,
    text: String,
    /// Where in the spec it is declared.
    place: Option<String>,
}

/// The line of nodes of one shape, where all that they have to say fits into one.
pub fn build_list_line<'a>(
    nodes: &[&'a PlanNode],
    hosts: usize,
) -> Option<(Heading, PlanListLine<'a>)> {
    let node = nodes[0];
    let NodeKind::Change {
        members,
        automatic_rollback: None,
        ..
    } = &node.kind
    else {
        return None;
    };
    let [member] = &members[..] else { return None };
    let is_plain = node.blocked.is_none()
        && node.interrupts.is_empty()
        && member.since.is_empty()
        && member.residue.is_empty();
    if !shape::is_plain(&member.reason) {
        return None;
    }
    let reason = entry::describe_reason(member, "", None);
    let address = &member.resource.address;
    let (name, text) = (clean_line(&address.name_words()), format_list_text(nodes));
    let is_plain = is_plain && member.resource.kind != "kubernetes_object";
    if !is_plain || INDENT.len() + name.width() + 2 + text.width() >= wrap::COLUMNS {
        return None;
    }
    let heading = Heading {
        symbol: entry::select_change_symbol(member),
        kind: clean_line(address.kind_word()),
        reason,
        hosts,
    };
    let place = member
        .resource
        .places
        .first()
        .filter(|_| matches!(member.reason, ChangeReason::New | ChangeReason::Takeover));
    Some((
        heading,
        PlanListLine {
            member,
            name,
            text,
            place: place.map(|place| clean_line(&format!("   {place}"))),
        },
    ))
}

/// An attribute and what is desired of it.
type DesiredText = (String, Option<String>);

/// What differs, on one line; planes with the same difference are named together.
fn format_list_text(nodes: &[&PlanNode]) -> String {
    let members: Vec<&Member> = nodes.iter().map(|node| &node.members()[0]).collect();
    if members[0].reason == ChangeReason::New {
        return new_values::list_new_values(&members).join(", ");
    }
    let mut changes: IndexMap<DesiredText, IndexMap<String, Vec<&str>>> = IndexMap::new();
    for (d, difference) in members[0].differences.iter().enumerate() {
        let (actual, desired) = match entry::describe_member_change(&members, d) {
            ChangeDescription::Sides { actual, desired } => (actual, Some(desired)),
            ChangeDescription::Whole(text) => (text, None),
        };
        let planes = changes
            .entry((clean_line(&difference.attribute), desired))
            .or_default();
        planes
            .entry(actual)
            .or_default()
            .push(difference.plane.word());
    }
    let mut texts = Vec::new();
    for ((attribute, desired), actual) in &changes {
        texts.push(format_list_change(attribute, desired.as_deref(), actual));
    }
    texts.join(", ")
}

/// The change of one attribute; `actual` are its actual values with their planes.
fn format_list_change(
    attribute: &str,
    desired: Option<&str>,
    actual: &IndexMap<String, Vec<&str>>,
) -> String {
    let arrow = match desired {
        Some(desired) => format!(" -> {desired}"),
        None => String::new(),
    };
    match actual.first() {
        Some((only, planes)) if actual.len() == 1 => {
            format!("{attribute} {only}{arrow} ({})", planes.join(", "))
        }
        _ => {
            let actual: Vec<String> = actual
                .iter()
                .map(|(actual, planes)| format!("{actual} ({})", planes.join(", ")))
                .collect();
            format!("{attribute} {}{arrow}", actual.join(", "))
        }
    }
}

/// Lines that say the same of names that count on are one line, with all names.
fn fold_list_lines<'a>(lines: &'a [PlanListLine<'a>]) -> Vec<PlanListLine<'a>> {
    let mut identical: IndexMap<(String, &str, &Option<String>), Vec<&PlanListLine<'_>>> =
        IndexMap::new();
    for line in lines {
        let stem = if nodeset::is_plain(&line.name) {
            nodeset::mask_digits(&line.name)
        } else {
            line.name.clone()
        };
        identical
            .entry((stem, &line.text, &line.place))
            .or_default()
            .push(line);
    }
    identical.into_values().map(fold_identical_lines).collect()
}

fn fold_identical_lines<'a>(lines: Vec<&'a PlanListLine<'a>>) -> PlanListLine<'a> {
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let name = nodeset::fold_names_of_one_stem(&names);
    PlanListLine {
        member: lines[0].member,
        name,
        text: lines[0].text.clone(),
        place: lines[0].place.clone(),
    }
}

/// Whether so many lines are a list.
pub fn is_list(lines: &[PlanListLine]) -> bool {
    lines.len() >= MANY
}

/// The entry, with `WHO` where the node-set goes.
pub fn render_list_body(heading: &Heading, lines: &[PlanListLine]) -> String {
    let mut out = format!(
        " {} {WHO} {}, {} of them\n",
        heading.symbol,
        heading.kind,
        lines.len()
    );
    let shown = fold_list_lines(lines);
    // The texts stand below each other, behind the longest name that leaves room for the widest of
    // them.
    let widest = shown.iter().map(|line| line.text.width()).max();
    let room = wrap::COLUMNS.saturating_sub(INDENT.len() + 2 + widest.unwrap_or(0) + 1);
    let mut column = 0;
    for line in &shown {
        if line.name.width() <= room {
            column = line.name.width().max(column);
        }
    }
    for line in &shown {
        let pad = " ".repeat(column.saturating_sub(line.name.width()));
        let mut text = format!("{INDENT}{}{pad}  {}", line.name, line.text);
        if let Some(place) = &line.place
            && text.width() + place.width() < wrap::COLUMNS
        {
            text.push_str(place);
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    let modules: BTreeSet<String> = lines
        .iter()
        .map(|line| line.member.resource.whose())
        .collect();
    let modules = modules.into_iter().collect::<Vec<_>>().join(", ");
    out + &entry::wrap_entry_line(
        "because  ",
        &entry::describe_reason(lines[0].member, &modules, None),
    )
}
