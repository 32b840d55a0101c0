//! An object whose pods do a job, as `KubernetesRead::Jobs` tells it.

use crate::json_fields::{list_items_at, read_text_at, read_text_field, read_text_list_field};
use crate::json_in_configmap::mark::{OF_OBJECT, find_mark_value};
use crate::kubernetes_object::request::SUBMISSION;
use railwright_base::text::one_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobNow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: another one may have its name a moment later.
    pub uid: String,
    /// When it was made, RFC 3339, by the server's clock.
    pub created: String,
    /// It is being deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// It is suspended (`spec.runPolicy.suspend`, `spec.suspend`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// The job that it was submitted for by railwright (label `railwright.io/job`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The word of the submission that made it (annotation `railwright.io/submission`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<String>,
    /// Desired pods of a Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u64>,
    /// The label selector by which a Deployment knows its pods, `a=b,c in (d,e)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// What its controller says of it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub status: Value,
}

impl JobNow {
    /// Of the object as the API server has it.
    pub fn of(object: &Value) -> Self {
        let job = show_text_at(object, "/metadata/labels/railwright.io~1job");
        let submission = find_mark_value(object, OF_OBJECT, SUBMISSION);
        let suspended = ["/spec/runPolicy/suspend", "/spec/suspend"]
            .into_iter()
            .any(|pointer| object.pointer(pointer) == Some(&Value::Bool(true)));
        JobNow {
            namespace: show_text_at(object, "/metadata/namespace"),
            name: show_text_at(object, "/metadata/name"),
            uid: show_text_at(object, "/metadata/uid"),
            created: show_text_at(object, "/metadata/creationTimestamp"),
            job: Some(job).filter(|job| !job.is_empty()),
            submission: submission.map(|word| one_line(word, 253)),
            ends: object.pointer("/metadata/deletionTimestamp").is_some(),
            suspended,
            replicas: object.pointer("/spec/replicas").and_then(Value::as_u64),
            selector: object
                .pointer("/spec/selector")
                .and_then(format_label_selector),
            status: object.get("status").cloned().unwrap_or_default(),
        }
    }

    /// The condition of this type, where it is true: reason and message.
    pub fn condition(&self, name: &str) -> Option<(&str, &str)> {
        let conditions = self
            .status
            .get("conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let one = conditions
            .into_iter()
            .find(|one| one["type"] == name && one["status"] == "True")?;
        let reason = read_text_field(one, "reason").unwrap_or_default();
        let message = read_text_field(one, "message").unwrap_or_default();
        Some((reason, message))
    }

    /// A number of its status.
    pub fn number(&self, field: &str) -> Option<u64> {
        self.status.get(field)?.as_u64()
    }

    /// A text of its status.
    pub fn text(&self, field: &str) -> Option<&str> {
        self.status.get(field)?.as_str()
    }
}

fn show_text_at(object: &Value, pointer: &str) -> String {
    one_line(read_text_at(object, pointer).unwrap_or_default(), 253)
}

/// A selector as a list takes it
/// (kubernetes.io/docs/concepts/overview/working-with-objects/labels); nothing where a part of it
/// is unknown, or where it selects everything.
fn format_label_selector(selector: &Value) -> Option<String> {
    let mut parts = Vec::new();
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    for (key, value) in labels.into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str()?));
    }
    for expression in list_items_at(selector, "/matchExpressions") {
        let key = read_text_field(expression, "key")?;
        let values = read_text_list_field(expression, "values").join(",");
        parts.push(match read_text_field(expression, "operator")? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    (!parts.is_empty()).then(|| parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_selector_without_labels_alone_is_no_selector_of_everything() {
        let of = |selector: Value| {
            let spec = json!({ "selector": selector });
            JobNow::of(&json!({ "spec": spec })).selector
        };
        let expression = |operator: &str, values: Value| json!({ "key": "app", "operator": operator, "values": values });
        let all = json!({
            "matchLabels": { "a": "b" },
            "matchExpressions": [
                expression("In", json!(["x", "y"])),
                expression("NotIn", json!(["z"])),
                expression("Exists", Value::Null),
                expression("DoesNotExist", Value::Null),
            ],
        });
        assert_eq!(
            of(all).as_deref(),
            Some("a=b,app in (x,y),app notin (z),app,!app")
        );
        for nobody in [
            json!({}),
            json!({ "matchLabels": {} }),
            json!({ "matchExpressions": [expression("Near", Value::Null)] }),
            json!({ "matchLabels": { "a": 1 } }),
        ] {
            assert_eq!(of(nobody), None);
        }
    }
}
