//! What stays behind although nobody wishes for it any more: a field that left the spec while its
//! resource is still there. Taking a whole resource out restores what was before; for one field of
//! it that cannot be told from a field that was handed to somebody else, so it is said once, and
//! left.

use super::judge::KindLookup;
use super::model::DroppedField;
use super::part::TargetGroup;
use serde_json::Value;

/// All of them, in the order of their addresses.
pub(super) fn find_dropped_fields(group: &TargetGroup, kinds: KindLookup) -> Vec<DroppedField> {
    let mut dropped = Vec::new();
    for wish in &group.wishes {
        let (Some(applied), Some(kind)) = (group.applied_to(&wish.address), kinds(&wish.kind))
        else {
            continue;
        };
        if applied.adopted {
            continue;
        }
        for field in kind.open_fields() {
            if let Some(earlier) = find_field(&applied.body, field)
                && find_field(&wish.body, field).is_none()
            {
                dropped.push(DroppedField {
                    field: wish.address.with_attribute(field),
                    value: earlier.to_string(),
                });
            }
        }
    }
    dropped
}

/// The value of a field that is there and not null.
fn find_field<'a>(body: &'a Value, field: &str) -> Option<&'a Value> {
    body.get(field).filter(|value| !value.is_null())
}
