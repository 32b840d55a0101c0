//! The wish for parts of a JSON text in a ConfigMap, as the module's manifest has it.

use super::edit::is_below;
use crate::BodyError;
use crate::body::{
    BodyField, FieldShape, check_fields, new_body_error, new_optional_field, new_required_field,
    read_text_field, require_condition,
};
use crate::kubernetes_object::manifest::{is_label, is_subdomain};
use crate::kubernetes_object::request::ObjectName;
use serde_json::Value;

const FIELDS: &[BodyField] = &[
    new_required_field("name", FieldShape::Text),
    new_required_field("namespace", FieldShape::Text),
    new_required_field("key", FieldShape::Text),
    new_optional_field("restarts", FieldShape::Fields),
    new_optional_field("known_after", FieldShape::Text),
];
const RESTARTS: &[BodyField] = &[
    new_required_field("kind", FieldShape::Text),
    new_required_field("name", FieldShape::Text),
    new_optional_field("namespace", FieldShape::Text),
];
/// Workloads of `apps/v1` with a template of pods.
const WORKLOADS: [&str; 3] = ["DaemonSet", "Deployment", "StatefulSet"];

/// What is wanted at one pointer.
#[derive(Debug, Clone, PartialEq)]
pub enum DesiredJsonValue {
    /// This value.
    Value(Value),
    /// Nothing.
    Absent,
    /// A list with these elements, among others.
    Elements(Vec<Value>),
}

/// One pointer with what is wanted there.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredJsonEdit {
    pub pointer: String,
    pub wanted: DesiredJsonValue,
}

/// What must not stand in the text: beside it the edits would do harm.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonConflict {
    pub pointer: String,
    pub value: Value,
    /// What it would do, and what is to be decided.
    pub says: String,
}

/// The edits, one for each pointer.
pub fn parse_desired_edits(body: &Value) -> Vec<DesiredJsonEdit> {
    let mut out: Vec<DesiredJsonEdit> = Vec::new();
    for entry in find_list_field(body, "edits") {
        let Some(pointer) = read_text_field(entry, "pointer") else {
            continue;
        };
        let wanted = match (entry.get("value"), entry.get("contains")) {
            (Some(value), _) => DesiredJsonValue::Value(value.clone()),
            (None, Some(element)) => {
                if let Some(elements) = find_edited_elements(&mut out, pointer) {
                    if !elements.contains(element) {
                        elements.push(element.clone());
                    }
                    continue;
                }
                DesiredJsonValue::Elements(vec![element.clone()])
            }
            (None, None) => DesiredJsonValue::Absent,
        };
        out.push(DesiredJsonEdit {
            pointer: pointer.to_owned(),
            wanted,
        });
    }
    out
}

/// The elements that the first edit of a pointer asks for, where it asks for elements.
fn find_edited_elements<'e>(
    edits: &'e mut [DesiredJsonEdit],
    pointer: &str,
) -> Option<&'e mut Vec<Value>> {
    let edit = edits.iter_mut().find(|edit| edit.pointer == pointer)?;
    match &mut edit.wanted {
        DesiredJsonValue::Elements(elements) => Some(elements),
        _ => None,
    }
}

/// What must not stand there.
pub fn parse_conflicts(body: &Value) -> Vec<JsonConflict> {
    let conflicts = find_list_field(body, "conflicts");
    conflicts.iter().filter_map(parse_conflict).collect()
}

fn parse_conflict(entry: &Value) -> Option<JsonConflict> {
    Some(JsonConflict {
        pointer: read_text_field(entry, "pointer")?.to_owned(),
        value: entry.get("value")?.clone(),
        says: read_text_field(entry, "says")?.to_owned(),
    })
}

/// The ConfigMap.
pub fn config_map(body: &Value) -> Option<ObjectName> {
    Some(ObjectName {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        namespace: Some(read_text_field(body, "namespace")?.to_owned()),
        name: read_text_field(body, "name")?.to_owned(),
    })
}

/// What reads the text at its start only.
pub fn parse_reader_workload(body: &Value) -> Option<ObjectName> {
    let restarts = body.get("restarts")?;
    let own = read_text_field(restarts, "namespace");
    let namespace = own.or_else(|| read_text_field(body, "namespace"));
    Some(ObjectName {
        api_version: "apps/v1".to_owned(),
        kind: read_text_field(restarts, "kind")?.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: read_text_field(restarts, "name")?.to_owned(),
    })
}

fn find_list_field<'b>(body: &'b Value, field: &str) -> &'b [Value] {
    body.get(field)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// All that is wrong with a body.
pub fn check_configmap_body(body: &Value) -> Vec<BodyError> {
    let mut plain = body.clone();
    let lists = plain
        .as_object_mut()
        .map(|map| [map.remove("edits"), map.remove("conflicts")])
        .unwrap_or_default();
    let mut errors = check_fields(&plain, "", FIELDS);
    check_names(body, &mut errors);
    if let Some(restarts) = body.get("restarts").filter(|restarts| restarts.is_object()) {
        check_restarts(restarts, &mut errors);
    }
    for (field, value) in ["edits", "conflicts"].into_iter().zip(&lists) {
        require_condition(
            &mut errors,
            value.as_ref().is_none_or(Value::is_array),
            &format!("/{field}"),
            &format!("`{field}` must be a list"),
            "of maps with `pointer`",
        );
    }
    let edits = find_list_field(body, "edits");
    let conflicts = find_list_field(body, "conflicts");
    let empty = edits.is_empty() && conflicts.is_empty();
    require_condition(
        &mut errors,
        !empty || !body.is_object(),
        "",
        "nothing is edited",
        "`edits: [{ pointer: /a/b, value: 1 }]`",
    );
    check_edits(edits, &mut errors);
    check_conflicts(conflicts, &mut errors);
    errors
}

/// Checks name, namespace and key as the API server takes them.
fn check_names(body: &Value, errors: &mut Vec<BodyError>) {
    require_condition(
        errors,
        read_text_field(body, "name").is_none_or(is_subdomain),
        "/name",
        "the API server takes no ConfigMap of this name",
        "lower-case letters, digits, `-` and `.`",
    );
    require_condition(
        errors,
        read_text_field(body, "namespace").is_none_or(is_label),
        "/namespace",
        "the API server takes no such namespace",
        "lower-case letters, digits and `-`",
    );
    require_condition(
        errors,
        read_text_field(body, "key").is_none_or(is_key),
        "/key",
        "a ConfigMap takes no such key",
        "letters, digits, `-`, `_` and `.`",
    );
}

fn check_restarts(restarts: &Value, errors: &mut Vec<BodyError>) {
    errors.extend(check_fields(restarts, "/restarts", RESTARTS));
    let kind = read_text_field(restarts, "kind");
    require_condition(
        errors,
        kind.is_none_or(|kind| WORKLOADS.contains(&kind)),
        "/restarts/kind",
        "this has no template of pods",
        "DaemonSet, Deployment or StatefulSet",
    );
}

fn check_edits(edits: &[Value], errors: &mut Vec<BodyError>) {
    for (n, edit) in edits.iter().enumerate() {
        let at = format!("/edits/{n}");
        check_entry(
            edit,
            &at,
            &["pointer", "value", "absent", "contains"],
            errors,
        );
        let ways = ["value", "absent", "contains"];
        require_condition(
            errors,
            ways.iter().filter(|way| edit.get(way).is_some()).count() == 1,
            &at,
            "an edit says one of `value`, `absent: true` and `contains`",
            "`value: 1`",
        );
        let absent = edit
            .get("absent")
            .is_none_or(|absent| *absent == Value::Bool(true));
        require_condition(
            errors,
            absent,
            &format!("{at}/absent"),
            "`absent` is true or left out",
            "`value` says what is wanted",
        );
        if edits[..n].iter().any(|other| do_edits_clash(edit, other)) {
            errors.push(new_body_error(
                &format!("{at}/pointer"),
                "another edit is about the same part",
                Some("make one edit of both"),
            ));
        }
    }
}

/// True where two edits are about one part of the text. Elements of one list are no clash.
fn do_edits_clash(edit: &Value, other: &Value) -> bool {
    let own = read_text_field(edit, "pointer").unwrap_or_default();
    let theirs = read_text_field(other, "pointer").unwrap_or_default();
    let both_elements = edit.get("contains").is_some() && other.get("contains").is_some();
    (is_below(own, theirs) || is_below(theirs, own)) && !(both_elements && own == theirs)
}

fn check_conflicts(conflicts: &[Value], errors: &mut Vec<BodyError>) {
    for (n, conflict) in conflicts.iter().enumerate() {
        let at = format!("/conflicts/{n}");
        check_entry(conflict, &at, &["pointer", "value", "says"], errors);
        let says = read_text_field(conflict, "says").is_some_and(|says| !says.trim().is_empty());
        require_condition(
            errors,
            says && conflict.get("value").is_some(),
            &at,
            "a conflict has `value` and `says`",
            "what it would do, in words",
        );
    }
}

fn check_entry(entry: &Value, at: &str, known: &[&str], errors: &mut Vec<BodyError>) {
    for (name, _) in entry.as_object().into_iter().flatten() {
        if known.contains(&name.as_str()) {
            continue;
        }
        errors.push(new_body_error(
            at,
            &format!("unknown field `{name}`"),
            Some(&format!("the fields are {}", known.join(", "))),
        ));
    }
    let pointer = read_text_field(entry, "pointer");
    require_condition(
        errors,
        pointer.is_some_and(is_pointer),
        &format!("{at}/pointer"),
        "this is no JSON pointer",
        "`/a/b`; `~1` for `/` in a name",
    );
}

/// RFC 6901; the whole text is not edited.
fn is_pointer(text: &str) -> bool {
    let escapes = text
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    text.len() > 1 && text.starts_with('/') && escapes && !text.chars().any(char::is_control)
}

/// What the API server takes as a key of a ConfigMap.
fn is_key(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && text != "."
        && !text.starts_with("..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(more: Value) -> Value {
        let mut body =
            json!({ "name": "eni-config", "namespace": "kube-system", "key": "eni_conf" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    }

    fn pointers(more: Value) -> Vec<String> {
        check_configmap_body(&with(more))
            .into_iter()
            .map(|error| error.pointer)
            .collect()
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let one = |edit: Value| pointers(json!({ "edits": [edit] }));
        assert_eq!(
            one(json!({ "pointer": "/a", "value": null })),
            Vec::<String>::new()
        );
        assert_eq!(
            one(json!({ "pointer": "a", "value": 1 })),
            ["/edits/0/pointer"]
        );
        assert_eq!(
            one(json!({ "pointer": "/a~2", "value": 1 })),
            ["/edits/0/pointer"]
        );
        assert_eq!(one(json!({ "pointer": "/a" })), ["/edits/0"]);
        assert_eq!(
            one(json!({ "pointer": "/a", "value": 1, "absent": true })),
            ["/edits/0"]
        );
        assert_eq!(
            one(json!({ "pointer": "/a", "absent": false })),
            ["/edits/0/absent"]
        );
        assert_eq!(
            one(json!({ "pointer": "/a", "value": 1, "was": 2 })),
            ["/edits/0"]
        );
        assert_eq!(pointers(json!({})), [""]);
        assert_eq!(pointers(json!({ "edits": "x" })), ["/edits", ""]);
        assert_eq!(
            pointers(
                json!({ "edits": [{ "pointer": "/a", "value": {} }, { "pointer": "/a/b", "value": 1 }] })
            ),
            ["/edits/1/pointer"]
        );
        assert_eq!(
            pointers(
                json!({ "edits": [{ "pointer": "/a", "contains": 1 }, { "pointer": "/a", "contains": 2 }] })
            ),
            Vec::<String>::new()
        );
        assert_eq!(
            pointers(json!({ "conflicts": [{ "pointer": "/a", "value": true }] })),
            ["/conflicts/0"]
        );
        let other = |field: &str, value: Value| {
            pointers(
                json!({ field: value, "conflicts": [{ "pointer": "/a", "value": 1, "says": "no" }] }),
            )
        };
        assert_eq!(other("name", json!("Eni")), ["/name"]);
        assert_eq!(other("namespace", json!("a.b")), ["/namespace"]);
        assert_eq!(other("key", json!("a/b")), ["/key"]);
        assert_eq!(
            other("restarts", json!({ "kind": "Job", "name": "x" })),
            ["/restarts/kind"]
        );
        assert_eq!(
            other("restarts", json!({ "kind": "DaemonSet" })),
            ["/restarts"]
        );
        assert_eq!(check_configmap_body(&json!([])).len(), 1);
    }

    #[test]
    fn elements_of_one_list_are_asked_together() {
        let body = with(
            json!({ "edits": [{ "pointer": "/a", "contains": 1 }, { "pointer": "/b", "absent": true }, { "pointer": "/a", "contains": 2 }] }),
        );
        let asked = parse_desired_edits(&body);
        assert_eq!(
            (asked.len(), &asked[0].wanted),
            (2, &DesiredJsonValue::Elements(vec![json!(1), json!(2)]))
        );
    }
}
