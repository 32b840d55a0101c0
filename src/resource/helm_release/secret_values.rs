//! Values of a release that may be secrets: where they stand, how they are known by their names,
//! and what is shown in their place.

use super::compare::HelmReleaseChange;
use crate::json_in_configmap::edit::is_below;
use crate::kubernetes_object::paths::{FieldDifference, FieldPathStep};
use railwright_base::Redaction;
use railwright_base::json_pointer::escape_step;
use railwright_base::redaction::SHORTEST_BYTES;
use serde_json::Value;

/// In the place of what is not shown.
pub(super) const HIDDEN: &str = "(not shown)";
const HIDDEN_OTHER: &str = "(not shown, and another)";
/// What a secret of the installed values is called in the place of its text.
const IN_RELEASE: &str = "of the release";
/// Words in the names of values that may well be secrets, whoever set them; `-` and `_` in names
/// are passed over.
const SECRET_WORDS: [&str; 9] = [
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "credential",
    "accesskey",
    "apikey",
    "privatekey",
];
/// What is one too, where it stands by itself: `pw`, `db_pw`, `adminPw`, and no `upward`.
const SECRET_WORD_ALONE: &str = "pw";

/// Whether a field of the values may hold a secret: it stands beside one, or is named like one.
/// `hidden`: where the resource has secrets, as JSON pointers.
pub(super) fn is_secret_field(field: &FieldDifference, hidden: &[String]) -> bool {
    let pointer = format_path_pointer(&field.path);
    for secret in hidden {
        if is_below(secret, &pointer) || is_below(&pointer, secret) {
            return true;
        }
    }
    field.desired.as_ref().is_some_and(names_secret)
        || field.actual.as_ref().is_some_and(names_secret)
        || says_secret(&pointer)
}

/// What is not shown is distinguished from what stood there before by when somebody set it, so that
/// an earlier plan is not taken for a present one.
pub(super) fn hide_found(change: &mut HelmReleaseChange) {
    let hidden = match &change.since {
        Some(time) => format!("(not shown, and another since {time})"),
        None => HIDDEN_OTHER.to_owned(),
    };
    change.actual = change.actual.as_ref().map(|_| hidden.into());
    change.hidden = true;
}

/// Takes out the texts of these values that stand where a secret is, or where a name says so.
pub(super) fn build_secret_redaction(value: &Value, hidden: &[String]) -> Redaction {
    let mut texts = Vec::new();
    visit_values(value, "", &mut |at, value| {
        let Value::String(text) = value else { return };
        if text.len() >= SHORTEST_BYTES
            && (says_secret(at) || hidden.iter().any(|secret| is_below(at, secret)))
        {
            texts.push((IN_RELEASE, text.clone()));
        }
    });
    Redaction::of(texts)
}

/// Visits every value below this one with its JSON pointer, and this one last.
pub(super) fn visit_values(value: &Value, at: &str, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(n, item)| visit_values(item, &format!("{at}/{n}"), visit)),
        Value::Object(map) => map.iter().for_each(|(name, item)| {
            let below = format!(
                "{at}{}",
                format_path_pointer(&[FieldPathStep::Field(name.clone())])
            );
            visit_values(item, &below, visit);
        }),
        _ => {}
    }
    visit(at, value);
}

/// What is shown of a field whose value is not: that it differs.
pub(super) fn hide_field_values(field: &FieldDifference) -> (Option<Value>, Option<Value>) {
    (
        field.desired.as_ref().map(|_| HIDDEN.into()),
        field.actual.as_ref().map(|_| HIDDEN_OTHER.into()),
    )
}

/// Where a field is, without anything that the object holds.
#[derive(Debug, Clone, PartialEq)]
pub struct HiddenPlace {
    name: String,
    is_within_text: bool,
}

impl HiddenPlace {
    /// `owner`: what the names of the object's fields begin with.
    pub(super) fn new(owner: &str, field: &FieldDifference) -> Self {
        HiddenPlace {
            name: format!("{owner}{}", field.format_place()),
            is_within_text: field.is_within_text(),
        }
    }
}

/// Names a change of which nothing is shown by its place.
pub(super) fn hide_name(change: &mut HelmReleaseChange) {
    let Some(place) = change.place.take().filter(|_| change.hidden) else {
        return;
    };
    change.name = place.name;
    if place.is_within_text {
        change.desired.get_or_insert_with(|| HIDDEN.into());
        change.actual.get_or_insert_with(|| HIDDEN_OTHER.into());
    }
}

/// Adds another change of the same place, of which nothing is shown either: an item that comes
/// where another one goes, or another part of the same text.
pub(super) fn merge_hidden_change(first: &mut HelmReleaseChange, other: HelmReleaseChange) {
    let before = first.actual.take();
    first.actual = match other.by {
        Some(_) => other.actual.or(before),
        None => before.or(other.actual),
    };
    first.desired = first.desired.take().or(other.desired);
    first.by = other.by.or(first.by.take());
    first.since = other.since.or(first.since.take());
    first.interrupts = first.interrupts.take().or(other.interrupts);
    first.stays |= other.stays;
    first.added &= other.added;
    first.rendered &= other.rendered;
}

fn format_path_pointer(path: &[FieldPathStep]) -> String {
    let mut pointer = String::new();
    for step in path {
        pointer.push('/');
        pointer.push_str(&match step {
            FieldPathStep::Field(name) => escape_step(name),
            FieldPathStep::Item { index, .. } => index.to_string(),
        });
    }
    pointer
}

fn says_secret(name: &str) -> bool {
    let plain = name.replace(['-', '_'], "").to_ascii_lowercase();
    let mut parts = name.split(|c: char| !c.is_alphanumeric());
    SECRET_WORDS.iter().any(|word| plain.contains(word)) || parts.any(is_secret_word_alone)
}

fn is_secret_word_alone(part: &str) -> bool {
    let before = part.strip_suffix("Pw");
    part.eq_ignore_ascii_case(SECRET_WORD_ALONE)
        || before.is_some_and(|before| before.ends_with(char::is_lowercase))
}

fn names_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(name, value)| says_secret(name) || names_secret(value)),
        Value::Array(items) => items.iter().any(names_secret),
        _ => false,
    }
}
