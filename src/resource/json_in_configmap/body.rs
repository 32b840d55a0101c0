//! The desired parts of a JSON text in a ConfigMap, as the module's manifest has it.

use super::edit::is_below;
use crate::body::{Body, BodyErrors};
use crate::kubernetes_object::manifest::{is_label, is_subdomain};
use crate::kubernetes_object::request::ObjectName;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Workloads of `apps/v1` with a template of pods.
const WORKLOADS: [&str; 3] = ["DaemonSet", "Deployment", "StatefulSet"];

/// Parts of a text in a ConfigMap: what is desired there, and what must not stand there.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonInConfigMapBody {
    name: String,
    namespace: String,
    /// The ConfigMap's key whose value is the text.
    pub key: String,
    /// [{ pointer: /a/b, value: 1 }]; instead of `value` also `absent: true` or `contains`.
    #[serde(default)]
    pub edits: Vec<DeclaredEdit>,
    /// [{ pointer: /a/b, value: 1, says: what it would do, in words }]
    #[serde(default)]
    pub conflicts: Vec<JsonConflict>,
    /// What reads the text at its start only: { kind, name, namespace }.
    restarts: Option<ReaderWorkload>,
    known_after: Option<String>,
}

/// One edit. Its digest is kept on the cluster, so that it is written as it was declared.
#[derive(Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclaredEdit {
    pointer: String,
    #[serde(
        default,
        deserialize_with = "read_value",
        skip_serializing_if = "Option::is_none"
    )]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<bool>,
    #[serde(
        default,
        deserialize_with = "read_value",
        skip_serializing_if = "Option::is_none"
    )]
    contains: Option<Value>,
}

/// A value that is there, null too.
fn read_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// What must not stand in the text: beside it the edits would do harm.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonConflict {
    pub pointer: String,
    pub value: Value,
    /// What it would do, and what is to be decided.
    pub says: String,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReaderWorkload {
    /// DaemonSet, Deployment or StatefulSet.
    kind: String,
    name: String,
    namespace: Option<String>,
}

/// What is desired at one pointer.
#[derive(Debug, Clone, PartialEq)]
pub enum DesiredJsonValue {
    /// This value.
    Value(Value),
    /// Nothing.
    Absent,
    /// A list with these elements, among others.
    Elements(Vec<Value>),
}

/// One pointer with what is desired there.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredJsonEdit {
    pub pointer: String,
    pub desired: DesiredJsonValue,
}

impl Body for JsonInConfigMapBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        self.check_names(errors);
        errors.require(
            !self.edits.is_empty() || !self.conflicts.is_empty(),
            "",
            "nothing is edited",
            "`edits: [{ pointer: /a/b, value: 1 }]`",
        );
        self.check_edits(errors);
        for (n, conflict) in self.conflicts.iter().enumerate() {
            let at = format!("/conflicts/{n}");
            check_pointer(errors, &at, &conflict.pointer);
            errors.require(
                !conflict.says.trim().is_empty(),
                &at,
                "a conflict has `value` and `says`",
                "what it would do, in words",
            );
        }
        errors.check_known_after(self.known_after.as_deref());
    }
}

impl JsonInConfigMapBody {
    /// The edits, one for each pointer.
    pub fn list_desired_edits(&self) -> Vec<DesiredJsonEdit> {
        let mut out: Vec<DesiredJsonEdit> = Vec::new();
        for edit in &self.edits {
            let desired = match (&edit.value, &edit.contains) {
                (Some(value), _) => DesiredJsonValue::Value(value.clone()),
                (None, Some(element)) => {
                    if let Some(elements) = find_edited_elements(&mut out, &edit.pointer) {
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
                pointer: edit.pointer.clone(),
                desired,
            });
        }
        out
    }

    /// The ConfigMap.
    pub fn config_map(&self) -> ObjectName {
        ObjectName {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some(self.namespace.clone()),
            name: self.name.clone(),
        }
    }

    /// What reads the text at its start only.
    pub fn reader_workload(&self) -> Option<ObjectName> {
        let restarts = self.restarts.as_ref()?;
        let namespace = restarts.namespace.as_ref().unwrap_or(&self.namespace);
        Some(ObjectName {
            api_version: "apps/v1".to_owned(),
            kind: restarts.kind.clone(),
            namespace: Some(namespace.clone()),
            name: restarts.name.clone(),
        })
    }

    /// The ConfigMap, and what reads the text.
    pub fn list_objects(&self) -> Vec<ObjectName> {
        let mut objects = vec![self.config_map()];
        objects.extend(self.reader_workload());
        objects
    }

    /// Checks name, namespace and key as the API server takes them.
    fn check_names(&self, errors: &mut BodyErrors) {
        errors.require(
            is_subdomain(&self.name),
            "/name",
            "the API server takes no ConfigMap of this name",
            "lower-case letters, digits, `-` and `.`",
        );
        errors.require(
            is_label(&self.namespace),
            "/namespace",
            "the API server takes no such namespace",
            "lower-case letters, digits and `-`",
        );
        errors.require(
            is_key(&self.key),
            "/key",
            "a ConfigMap takes no such key",
            "letters, digits, `-`, `_` and `.`",
        );
        let kind = self
            .restarts
            .as_ref()
            .map(|restarts| restarts.kind.as_str());
        errors.require(
            kind.is_none_or(|kind| WORKLOADS.contains(&kind)),
            "/restarts/kind",
            "this has no template of pods",
            "DaemonSet, Deployment or StatefulSet",
        );
    }

    fn check_edits(&self, errors: &mut BodyErrors) {
        for (n, edit) in self.edits.iter().enumerate() {
            let at = format!("/edits/{n}");
            check_pointer(errors, &at, &edit.pointer);
            let ways = [
                edit.value.is_some(),
                edit.absent.is_some(),
                edit.contains.is_some(),
            ];
            errors.require(
                ways.iter().filter(|is_said| **is_said).count() == 1,
                &at,
                "an edit says one of `value`, `absent: true` and `contains`",
                "`value: 1`",
            );
            errors.require(
                edit.absent != Some(false),
                &format!("{at}/absent"),
                "`absent` is true or left out",
                "`value` says what is desired",
            );
            errors.require(
                !self.edits[..n].iter().any(|other| edit.clashes_with(other)),
                &format!("{at}/pointer"),
                "another edit is about the same part",
                "make one edit of both",
            );
        }
    }
}

impl DeclaredEdit {
    /// True where two edits are about one part of the text. Elements of one list are no clash.
    fn clashes_with(&self, other: &DeclaredEdit) -> bool {
        let (own, theirs) = (&self.pointer, &other.pointer);
        let both_elements = self.contains.is_some() && other.contains.is_some();
        (is_below(own, theirs) || is_below(theirs, own)) && !(both_elements && own == theirs)
    }
}

fn check_pointer(errors: &mut BodyErrors, at: &str, pointer: &str) {
    errors.require(
        is_pointer(pointer),
        &format!("{at}/pointer"),
        "this is no JSON pointer",
        "`/a/b`; `~1` for `/` in a name",
    );
}

/// The elements that the first edit of a pointer asks for, where it asks for elements.
fn find_edited_elements<'e>(
    edits: &'e mut [DesiredJsonEdit],
    pointer: &str,
) -> Option<&'e mut Vec<Value>> {
    let edit = edits.iter_mut().find(|edit| edit.pointer == pointer)?;
    match &mut edit.desired {
        DesiredJsonValue::Elements(elements) => Some(elements),
        _ => None,
    }
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
    use crate::body::{check_body, read_body};
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
        check_body::<JsonInConfigMapBody>(&with(more))
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
            ["/edits/0/was"]
        );
        assert_eq!(pointers(json!({})), [""]);
        assert_eq!(pointers(json!({ "edits": "x" })), ["/edits"]);
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
        assert_eq!(check_body::<JsonInConfigMapBody>(&json!([])).len(), 1);
    }

    #[test]
    fn elements_of_one_list_are_asked_together() {
        let body = with(
            json!({ "edits": [{ "pointer": "/a", "contains": 1 }, { "pointer": "/b", "absent": true }, { "pointer": "/a", "contains": 2 }] }),
        );
        let asked = read_body::<JsonInConfigMapBody>(&body).list_desired_edits();
        assert_eq!(
            (asked.len(), &asked[0].desired),
            (2, &DesiredJsonValue::Elements(vec![json!(1), json!(2)]))
        );
    }
}
