//! Conditions of objects, as their controllers write them.

use crate::json_fields::list_items_at;
use serde_json::Value;

/// The condition of an object that has this type and this value in a field: `("status", "True")`.
pub fn find_condition<'v>(
    object: &'v Value,
    kind: &str,
    (field, value): (&str, &str),
) -> Option<&'v Value> {
    list_items_at(object, "/status/conditions")
        .iter()
        .find(|condition| condition["type"] == kind && condition[field] == value)
}
