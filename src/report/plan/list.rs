//! Many resources of one kind on the same hosts, each with little to say, are a list: a line each
//! below one heading.

use super::entry::{self, WHO};
use super::shape;
use crate::value::ChangeDescription;
use crate::wrap;
use indexmap::IndexMap;
use railwright_base::nodeset;
use railwright_base::text::clean_line;
use railwright_plan::{Member, NodeKind, PlanNode, Reason};
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
    /// Where in the spec it is wanted.
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
        guard: None,
        ..
    } = &node.kind
    else {
        return None;
    };
    let [member] = &members[..] else { return None };
    let is_plain = node.held.is_none()
        && node.interrupts.is_empty()
        && member.since.is_empty()
        && member.residue.is_empty();
    if !shape::is_plain(&member.reason) {
        return None;
    }
    let reason = entry::describe_reason(member, "", None);
    let address = &member.wish.address;
    let (name, text) = (clean_line(&address.name_words()), format_list_text(nodes));
    let is_plain = is_plain && member.wish.kind != "kubernetes_object";
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
        .wish
        .places
        .first()
        .filter(|_| matches!(member.reason, Reason::New | Reason::Takeover));
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

/// An attribute and what is wanted of it.
type Wanted = (String, Option<String>);

/// What differs, on one line; planes that differ alike are named together.
fn format_list_text(nodes: &[&PlanNode]) -> String {
    let members: Vec<&Member> = nodes.iter().map(|node| &node.members()[0]).collect();
    if members[0].reason == Reason::New {
        return entry::new_parts(&members).join(", ");
    }
    let mut changes: IndexMap<Wanted, IndexMap<String, Vec<&str>>> = IndexMap::new();
    for (d, difference) in members[0].differences.iter().enumerate() {
        let (found, wanted) = match entry::change_of(&members, d) {
            ChangeDescription::Sides { found, wanted } => (found, Some(wanted)),
            ChangeDescription::Whole(text) => (text, None),
        };
        let planes = changes
            .entry((clean_line(&difference.attribute), wanted))
            .or_default();
        planes
            .entry(found)
            .or_default()
            .push(difference.plane.word());
    }
    let change = |((attribute, wanted), found): (Wanted, IndexMap<String, Vec<&str>>)| {
        let arrow = wanted
            .map(|wanted| format!(" -> {wanted}"))
            .unwrap_or_default();
        match found.first() {
            Some((only, planes)) if found.len() == 1 => {
                format!("{attribute} {only}{arrow} ({})", planes.join(", "))
            }
            _ => {
                let found: Vec<String> = found
                    .iter()
                    .map(|(found, planes)| format!("{found} ({})", planes.join(", ")))
                    .collect();
                format!("{attribute} {}{arrow}", found.join(", "))
            }
        }
    };
    changes
        .into_iter()
        .map(change)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Lines that say the same of names that count on are one line, with all names.
fn fold_list_lines<'a>(lines: &'a [PlanListLine<'a>]) -> Vec<PlanListLine<'a>> {
    let mut alike: IndexMap<(String, &str, &Option<String>), Vec<&PlanListLine<'_>>> =
        IndexMap::new();
    for line in lines {
        let stem = if nodeset::is_plain(&line.name) {
            nodeset::mask_digits(&line.name)
        } else {
            line.name.clone()
        };
        alike
            .entry((stem, &line.text, &line.place))
            .or_default()
            .push(line);
    }
    let one = |lines: Vec<&'a PlanListLine<'a>>| {
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        let name = nodeset::fold_alike(&names);
        PlanListLine {
            member: lines[0].member,
            name,
            text: lines[0].text.clone(),
            place: lines[0].place.clone(),
        }
    };
    alike.into_values().map(one).collect()
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
    let widest = shown
        .iter()
        .map(|line| line.text.width())
        .max()
        .unwrap_or_default();
    let room = wrap::COLUMNS.saturating_sub(INDENT.len() + 2 + widest + 1);
    let column = shown
        .iter()
        .map(|line| line.name.width())
        .filter(|width| *width <= room)
        .max()
        .unwrap_or_default();
    for line in &shown {
        let pad = " ".repeat(column.saturating_sub(line.name.width()));
        let said = format!("{INDENT}{}{pad}  {}", line.name, line.text);
        let place = line
            .place
            .as_deref()
            .filter(|place| said.width() + place.width() < wrap::COLUMNS);
        out.push_str((said + place.unwrap_or_default()).trim_end());
        out.push('\n');
    }
    let modules: BTreeSet<String> = lines.iter().map(|line| line.member.wish.whose()).collect();
    let modules = modules.into_iter().collect::<Vec<_>>().join(", ");
    out + &entry::wrap_entry_line(
        "because  ",
        &entry::describe_reason(lines[0].member, &modules, None),
    )
}
