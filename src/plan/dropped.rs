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
    let mut all = Vec::new();
    for wish in &group.wishes {
        let Some(applied) = group
            .applied_to(&wish.address)
            .filter(|applied| !applied.adopted)
        else {
            continue;
        };
        let fields = kinds(&wish.kind).map_or(&[][..], |kind| kind.open_fields());
        let value =
            |body: &Value, field: &str| body.get(field).filter(|value| !value.is_null()).cloned();
        for field in fields {
            if let (Some(earlier), None) = (value(&applied.body, field), value(&wish.body, field)) {
                all.push(DroppedField {
                    field: wish.address.with_attribute(field),
                    value: earlier.to_string(),
                });
            }
        }
    }
    all
}
