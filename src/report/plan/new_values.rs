//! The values of a new resource on the plan's screen: no arrows, and what a release makes by kinds.

use super::entry::{BELOW, format_member_name, summarize_texts, wrap_entry_line};
use crate::{value, wrap};
use railwright_base::quote;
use railwright_base::text::clean_line;
use railwright_plan::Member;
use railwright_resource::{DesiredResource, Provenance, Reading, kubernetes_object};
use std::collections::{BTreeMap, BTreeSet};

/// How many fields of a new object a plan shows; `show` has them all.
const FIELDS_OF_OBJECT: usize = 8;

/// How the part of an object that a release makes ends.
const MADE: &str = " made";

/// The fields of an object that is recreated, a line each.
pub fn render_object_fields(resource: &DesiredResource, most: usize) -> String {
    let called = quote::quote_for_shell(&clean_line(&resource.address.words()));
    let fields = kubernetes_object::list_manifest_fields(resource);
    let mut out = String::new();
    for (path, field) in fields.iter().take(most) {
        out.push_str(&wrap::wrap_field_line(
            BELOW,
            path,
            &value::format_reading(&Reading::Is(field.clone()), value::WIDE),
            99,
        ));
    }
    let more = fields.len().saturating_sub(most);
    if more > 0 {
        out.push_str(&wrap_entry_line(
            "",
            &format!("... {more} more: railwright show PLAN {called}"),
        ));
    }
    out
}

/// What the server could not be asked before is shown of a new object, too.
pub fn render_preview_note(member: &Member) -> String {
    for by in member
        .differences
        .iter()
        .filter_map(|difference| difference.by.as_ref())
    {
        if member.resource.kind == "kubernetes_object" || matches!(by, Provenance::NotPreviewed(_))
        {
            return wrap_entry_line("preview  ", by.words());
        }
    }
    String::new()
}

/// What is new needs no arrows: the values alone, in one wrapped line.
pub fn render_new_values(members: &[&Member]) -> String {
    if members[0].resource.kind == "kubernetes_object" {
        return render_object_fields(&members[0].resource, FIELDS_OF_OBJECT);
    }
    let (made, parts) = fold_release_objects(members[0], list_new_values(members));
    let values = if parts.is_empty() {
        String::new()
    } else {
        wrap_entry_line("", &parts.join(", "))
    };
    match made {
        Some(made) => values + &wrap_entry_line("makes    ", &made),
        None => values,
    }
}

/// Objects that a release makes are listed by their kinds, where they are many; `show` names them
/// all. The rest of the parts with it, and hooks by their names: they are run.
fn fold_release_objects(member: &Member, parts: Vec<String>) -> (Option<String>, Vec<String>) {
    let (made, rest): (Vec<String>, Vec<String>) = parts
        .iter()
        .cloned()
        .partition(|part| part.ends_with(MADE) && !part.starts_with("hook "));
    if member.resource.kind != "helm_release" || made.len() <= FIELDS_OF_OBJECT {
        return (None, parts);
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for part in &made {
        let kind = part.split(' ').next().unwrap_or_default();
        *kinds.entry(kind).or_default() += 1;
    }
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
pub fn list_new_values(members: &[&Member]) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for (d, difference) in members[0].differences.iter().enumerate() {
        let texts: BTreeSet<String> = members
            .iter()
            .filter_map(|m| m.differences.get(d))
            .map(|d| value::format_reading(&d.desired, value::NARROW))
            .collect();
        let text = summarize_texts(texts);
        let plain =
            value::is_presence(&text, &members[0].resource.body) || difference.attribute == "owner";
        let part = format!("{} {text}", difference.attribute);
        if !plain && !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}
