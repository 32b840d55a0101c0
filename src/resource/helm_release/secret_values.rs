//! Values of a release that may be secrets: where they stand, how they are known by their names,
//! and what is shown in their place.

use super::compare::HelmReleaseChange;
use crate::kubernetes_object::paths::{FieldDifference, FieldPathStep};
use railwright_base::redaction::SHORTEST_BYTES;
use serde_json::Value;

/// In the place of what is not shown.
pub(super) const HIDDEN: &str = "(not shown)";
const HIDDEN_OTHER: &str = "(not shown, and another)";
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
/// `hidden`: where the wish has secrets, as JSON pointers.
pub(super) fn is_secret_field(field: &FieldDifference, hidden: &[String]) -> bool {
    let pointer = format_path_pointer(&field.path);
    for secret in hidden {
        if is_within_pointer(secret, &pointer) || is_within_pointer(&pointer, secret) {
            return true;
        }
    }
    field.wanted.as_ref().is_some_and(names_secret)
        || field.found.as_ref().is_some_and(names_secret)
        || says_secret(&pointer)
}

/// What is not shown is told from what stood there before by when somebody set it, so that a plan
/// of before is not taken for one of now.
pub(super) fn hide_found(change: &mut HelmReleaseChange) {
    let hidden = match &change.since {
        Some(time) => format!("(not shown, and another since {time})"),
        None => HIDDEN_OTHER.to_owned(),
    };
    change.found = change.found.as_ref().map(|_| hidden.into());
}

/// Texts of these values that stand where a secret is, or where a name says so; as they are, and as
/// JSON writes them.
pub(super) fn collect_secret_texts(value: &Value, hidden: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    visit_values(value, "", &mut |at, value| {
        let Value::String(text) = value else { return };
        if text.len() >= SHORTEST_BYTES
            && (says_secret(at) || hidden.iter().any(|secret| is_within_pointer(at, secret)))
        {
            let json = Value::from(text.as_str()).to_string();
            out.extend([text.clone(), json.trim_matches('"').to_owned()]);
        }
    });
    out
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
        field.wanted.as_ref().map(|_| HIDDEN.into()),
        field.found.as_ref().map(|_| HIDDEN_OTHER.into()),
    )
}

fn format_path_pointer(path: &[FieldPathStep]) -> String {
    let mut pointer = String::new();
    for step in path {
        pointer.push('/');
        pointer.push_str(&match step {
            FieldPathStep::Field(name) => name.replace('~', "~0").replace('/', "~1"),
            FieldPathStep::Item { index, .. } => index.to_string(),
        });
    }
    pointer
}

fn is_within_pointer(inner: &str, outer: &str) -> bool {
    inner
        .strip_prefix(outer)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
