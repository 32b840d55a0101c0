//! What others set on an object beside what is ours: it goes with the object, so a plan that
//! deletes it names it.

use super::manifest::without_servers_part;
use super::ownership::{
    FieldManager, collect_object_managers, find_field_managers, list_whole_object_entries,
};
use super::paths::{self, FieldDifference};
use serde_json::{Value, json};

/// A field that somebody else set on an object.
pub struct ForeignField {
    /// Its path for people: `data.b`.
    pub shown: String,
    /// What is there.
    pub value: Value,
    /// Who set it, and when.
    pub manager: FieldManager,
}

/// The fields of an object that `ours` does not name and that only managers for whom `is_other`
/// holds have set. What controllers note through a part of the object, as its status or its scale,
/// is left out.
pub fn list_foreign_fields(
    object: &Value,
    ours: &Value,
    is_other: impl Fn(&str) -> bool,
) -> Vec<ForeignField> {
    // Most objects have nobody else, and some are large.
    if !collect_object_managers(object)
        .iter()
        .any(|manager| is_other(manager))
    {
        return Vec::new();
    }
    let entries: Vec<&Value> = list_whole_object_entries(object).collect();
    let held = json!({ "metadata": { "managedFields": entries } });
    let mut fields = paths::collect_all_fields(&without_servers_part(object), ours);
    // Of a text that is JSON the whole text counts.
    fields.dedup_by(|next, field| next.path == field.path);
    let mut out = Vec::new();
    for FieldDifference {
        path,
        shown,
        desired,
        actual,
    } in fields
    {
        let Some(value) = desired.filter(|value| actual.is_none() && is_smallest(value)) else {
            continue;
        };
        let managers = find_field_managers(&held, &path);
        if managers.iter().any(|holder| !is_other(&holder.manager)) {
            continue;
        }
        let Some(manager) = managers.into_iter().next() else {
            continue;
        };
        out.push(ForeignField {
            shown,
            value,
            manager,
        });
    }
    out
}

/// Neither a map nor a list of maps with something in it.
fn is_smallest(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => !items.iter().any(Value::is_object),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_added_is_named_and_no_more() {
        let entry = |manager: &str, part: &str, fields: Value| {
            json!({ "manager": manager, "subresource": part, "time": "2026-01-02T03:04:05Z",
                    "fieldsV1": fields })
        };
        let ours = json!({ "data": { "a": "1" } });
        let entries = [
            entry("helm", "", json!({ "f:data": { ".": {}, "f:a": {} } })),
            entry(
                "kubectl-patch",
                "",
                json!({ "f:data": { "f:a": {}, "f:b": {}, "f:c": {} } }),
            ),
            entry("helm", "", json!({ "f:data": { "f:c": {} } })),
            entry(
                "controller",
                "status",
                json!({ "f:metadata": { "f:annotations": { "f:r": {} } } }),
            ),
        ];
        let metadata =
            json!({ "name": "x", "annotations": { "r": "1" }, "managedFields": entries });
        let object = json!({ "metadata": metadata,
                             "data": { "a": "2", "b": "{\"k\":[{\"n\":1}]}", "c": "3" } });
        let fields = list_foreign_fields(&object, &ours, |manager| manager != "helm");
        let names: Vec<&str> = fields.iter().map(|field| field.shown.as_str()).collect();
        assert_eq!(names, ["data.b"]);
        assert_eq!(fields[0].manager.manager, "kubectl-patch");
    }
}
