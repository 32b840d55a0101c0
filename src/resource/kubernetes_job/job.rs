//! An object whose pods do a job, as `KubernetesRead::Jobs` tells it.

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
        let text = |pointer: &str| {
            one_line(
                object
                    .pointer(pointer)
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
                253,
            )
        };
        let flag = |pointer: &str| object.pointer(pointer).and_then(Value::as_bool) == Some(true);
        let labels = object
            .pointer("/spec/selector/matchLabels")
            .and_then(Value::as_object);
        let pair = |(key, value): (&String, &Value)| Some(format!("{key}={}", value.as_str()?));
        JobNow {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            created: text("/metadata/creationTimestamp"),
            job: Some(text("/metadata/labels/railwright.io~1job")).filter(|job| !job.is_empty()),
            ends: object.pointer("/metadata/deletionTimestamp").is_some(),
            suspended: flag("/spec/runPolicy/suspend") || flag("/spec/suspend"),
            replicas: object.pointer("/spec/replicas").and_then(Value::as_u64),
            selector: labels
                .map(|labels| labels.iter().filter_map(pair).collect::<Vec<_>>().join(",")),
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
        let text = |field: &str| one.get(field).and_then(Value::as_str).unwrap_or_default();
        Some((text("reason"), text("message")))
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
