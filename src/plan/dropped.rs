//! What stays behind although nobody wishes for it any more: a field that left the spec while its
//! resource is still there. Taking a whole resource out restores what was before; for one field of
//! it that cannot be told from a field that was handed to somebody else, so it is said once, and
//! left.

use super::judge::KindLookup;
use super::model::DroppedField;
use super::part::TargetGroup;
use railwright_resource::ResourceKind;
use railwright_resource::redacted_assessment::redact_recorded_value;
use serde_json::Value;

/// All of them, in the order of their addresses.
pub(super) fn find_dropped_fields(group: &TargetGroup, kinds: KindLookup) -> Vec<DroppedField> {
    let redaction = group.answers.iter().find_map(|answers| answers.redaction());
    let mut dropped = Vec::new();
    for wish in &group.wishes {
        let (Some(applied), Some(kind)) = (group.applied_to(&wish.address), kinds(&wish.kind))
        else {
            continue;
        };
        if applied.adopted {
            continue;
        }
        let earlier = applied.whole_wish(&wish.address, kind);
        for (field, earlier) in find_what_left(kind, &earlier.body, &wish.body) {
            dropped.push(DroppedField {
                field: wish.address.with_attribute(&field),
                value: redact_recorded_value(earlier, redaction).to_string(),
            });
        }
    }
    dropped
}

/// The fields of what was applied that are not wished any more, and the entries of its maps.
fn find_what_left<'a>(
    kind: &dyn ResourceKind,
    applied: &'a Value,
    wish: &Value,
) -> Vec<(String, &'a Value)> {
    let mut left = Vec::new();
    for field in kind.open_fields() {
        if let (Some(earlier), None) = (find_field(applied, field), find_field(wish, field)) {
            left.push(((*field).to_owned(), earlier));
        }
    }
    for field in kind.open_maps() {
        let entries = find_field(applied, field).and_then(Value::as_object);
        let now = find_field(wish, field);
        for (key, earlier) in entries.into_iter().flatten() {
            if now.is_none_or(|now| now.get(key).is_none()) {
                left.push((format!("{field}.{key}"), earlier));
            }
        }
    }
    left
}

/// The value of a field that is there and not null.
fn find_field<'a>(body: &'a Value, field: &str) -> Option<&'a Value> {
    body.get(field).filter(|value| !value.is_null())
}
