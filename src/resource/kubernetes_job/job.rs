//! An object whose pods do a job, as `KubernetesRead::Jobs` tells it.

use crate::body::{read_text_at, read_text_field};
use railwright_base::text::one_line;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    /// It was told to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// It is held back (`spec.runPolicy.suspend`, `spec.suspend`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspended: bool,
    /// The job that it was submitted for by railwright (label `railwright.io/job`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Pods that a Deployment wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u64>,
    /// Labels by which a Deployment knows its pods, `a=b,c=d`.
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
        let labels = object.pointer("/spec/selector/matchLabels");
        let suspended = ["/spec/runPolicy/suspend", "/spec/suspend"]
            .into_iter()
            .any(|pointer| object.pointer(pointer) == Some(&Value::Bool(true)));
        JobNow {
            namespace: show_text_at(object, "/metadata/namespace"),
            name: show_text_at(object, "/metadata/name"),
            uid: show_text_at(object, "/metadata/uid"),
            created: show_text_at(object, "/metadata/creationTimestamp"),
            job: Some(job).filter(|job| !job.is_empty()),
            ends: object.pointer("/metadata/deletionTimestamp").is_some(),
            suspended,
            replicas: object.pointer("/spec/replicas").and_then(Value::as_u64),
            selector: labels.and_then(Value::as_object).map(format_label_selector),
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

fn format_label_selector(labels: &Map<String, Value>) -> String {
    let pairs = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
    pairs.collect::<Vec<_>>().join(",")
}
