//! What stays behind although nobody desires it any more: a field that left the spec while its
//! resource is still there. Taking a whole resource out restores what was before; a field of it
//! cannot be distinguished from one that was handed to somebody else, so it is reported once, and
//! left.

use super::diff::KindLookup;
use super::model::DroppedField;
use super::part::TargetGroup;
use railwright_resource::ResourceKind;
use railwright_resource::redacted_diff::redact_recorded_value;
use serde_json::Value;

/// All of them, in the order of their addresses.
pub(super) fn find_dropped_fields(group: &TargetGroup, kinds: KindLookup) -> Vec<DroppedField> {
    let redaction = group.answers.iter().find_map(|answers| answers.redaction());
    let mut dropped = Vec::new();
    for resource in &group.resources {
        let (Some(applied), Some(kind)) =
            (group.applied_to(&resource.address), kinds(&resource.kind))
        else {
            continue;
        };
        if applied.adopted {
            continue;
        }
        let earlier = applied.whole_resource(&resource.address, kind);
        for (field, earlier) in find_what_left(kind, &earlier.body, &resource.body) {
            dropped.push(DroppedField {
                field: resource.address.with_attribute(&field),
                value: redact_recorded_value(earlier, redaction).to_string(),
            });
        }
    }
    dropped
}

/// The fields of what was applied that are no longer desired, and the entries of its maps.
fn find_what_left<'a>(
    kind: &dyn ResourceKind,
    applied: &'a Value,
    resource: &Value,
) -> Vec<(String, &'a Value)> {
    let mut left = Vec::new();
    for field in kind.open_fields() {
        if let (Some(earlier), None) = (find_field(applied, field), find_field(resource, field)) {
            left.push(((*field).to_owned(), earlier));
        }
    }
    for field in kind.open_maps() {
        let entries = find_field(applied, field).and_then(Value::as_object);
        let now = find_field(resource, field);
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
