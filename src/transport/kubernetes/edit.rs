//! Edits of a text that others own in a ConfigMap. They are merge patches (RFC 7386): unlike an
//! apply they never create what is gone, and they name nothing but what they change, besides the
//! object and its version that they are for.

use super::act::{
    Doubt, KubernetesActionStop, TRIES, stop_with_failure, stop_with_stale_precondition,
};
use super::server::KubernetesRequest;
use super::{KubernetesLink, performed_from_exit};
use crate::ExecutionOutcome;
use http::Method;
use railwright_resource::json_in_configmap::edit::{JsonEdit, apply_json_edits, are_made};
use railwright_resource::json_in_configmap::mark::{self, OF_OBJECT, RestartMark};
use railwright_resource::kubernetes_object::MANAGER;
use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
use railwright_resource::kubernetes_object::request::ObjectName;
use serde_json::{Value, json};

const MERGE: &str = "application/merge-patch+json";

impl KubernetesLink {
    /// Reads the text, edits what is as the edits say, and writes it if the object has not changed
    /// meanwhile; else again. What a request left whose answer got lost is found by the edits
    /// themselves: they are made.
    pub(super) async fn edit(
        &self,
        object: &ObjectName,
        precondition: &ObjectPrecondition,
        key: &str,
        edits: &[JsonEdit],
        mark: Option<&RestartMark>,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let place = self.place(object).await?;
        let mut doubt = Doubt::default();
        for turn in 1..=TRIES {
            let live = self.live(&place).await.map_err(|stop| doubt.over(stop))?;
            if !precondition.holds_for(&live) {
                return Err(doubt.over(stop_with_stale_precondition(
                    &precondition.violated_by(object, &live),
                )));
            }
            if doubt.is_there() && is_edited(&live, key, edits, mark) {
                return Ok(performed_from_exit(0, "", ""));
            }
            let patch = build_edit_patch(object, &live, key, edits, mark)
                .map_err(|stop| doubt.over(stop))?;
            if let Some(reply) = self.patch(&place, &patch, (turn, &mut doubt)).await? {
                return Ok(performed_from_exit(0, &reply.warnings.join("\n"), ""));
            }
        }
        Err(doubt.over(stop_with_failure(&format!(
            "{object} changes all the time; nothing was changed by us"
        ))))
    }
}

/// The text of a ConfigMap under this key.
fn find_data_text<'v>(live: &'v Value, key: &str) -> Option<&'v str> {
    live.pointer("/data")?.get(key)?.as_str()
}

/// Whether the edits are made, and the mark is as it is to be.
fn is_edited(live: &Value, key: &str, edits: &[JsonEdit], mark: Option<&RestartMark>) -> bool {
    let is_made = find_data_text(live, key).is_some_and(|text| are_made(text, edits));
    is_made && mark.is_none_or(|mark| is_marked(live, mark))
}

/// A patch of this version of an object: its text with the edits, and the mark where there is one.
fn build_edit_patch(
    object: &ObjectName,
    live: &Value,
    key: &str,
    edits: &[JsonEdit],
    mark: Option<&RestartMark>,
) -> Result<Value, KubernetesActionStop> {
    let Some(text) = find_data_text(live, key) else {
        return Err(stop_with_stale_precondition(&format!(
            "{object} has no text `{key}` by now"
        )));
    };
    let new = apply_json_edits(text, edits).map_err(|reason| {
        stop_with_stale_precondition(&format!("`{key}` of {object}: {reason}"))
    })?;
    let mut patch = json!({ "metadata": build_version_precondition(live), "data": { key: new } });
    if let Some(mark) = mark {
        patch["metadata"]["annotations"] = json!({ &mark.name: mark.value });
    }
    Ok(patch)
}

fn is_marked(object: &Value, mark: &RestartMark) -> bool {
    mark::find_mark_value(object, OF_OBJECT, &mark.name) == mark.value.as_deref()
}

/// What a patch carries so that the server refuses it for any other object, and for any other
/// version of this one.
pub(super) fn build_version_precondition(live: &Value) -> Value {
    json!({ "uid": live["metadata"]["uid"], "resourceVersion": live["metadata"]["resourceVersion"] })
}

pub(super) fn new_merge_patch_request(path: &str, patch: &Value) -> KubernetesRequest {
    KubernetesRequest::with(
        Method::PATCH,
        format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict"),
        MERGE,
        patch.to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostLink as _;
    use crate::kubernetes::tests::{link, says, told};
    use railwright_resource::Action;
    use railwright_resource::json_in_configmap::edit::JsonPointerValue;
    use std::sync::{Arc, Mutex};

    /// The edit was made, and its answer got lost: it is not told as one that others made.
    #[tokio::test(start_paused = true)]
    async fn an_edit_whose_answer_got_lost_was_made() {
        for status in [500, 503, 504] {
            let text = Arc::new(Mutex::new(json!(r#"{"a": 1}"#)));
            let kept = text.clone();
            let (link, asked) = link(move |method, path, body| {
                let mut text = kept.lock().unwrap();
                match *method {
                    Method::GET if path == "/api/v1" => {
                        let kinds = json!([{ "name": "configmaps", "kind": "ConfigMap", "namespaced": true }]);
                        (
                            200,
                            Vec::new(),
                            crate::kubernetes::tests::kinds_of("v1", &kinds),
                        )
                    }
                    Method::GET => {
                        let version = text.as_str().map(str::len);
                        let object = json!({ "metadata": { "name": "c", "uid": "u", "resourceVersion": version }, "data": { "conf": *text } });
                        (200, Vec::new(), object.to_string())
                    }
                    _ => {
                        *text =
                            serde_json::from_str::<Value>(body).unwrap()["data"]["conf"].clone();
                        says(status, "lost")
                    }
                }
            });
            let object = ObjectName {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: Some("n".into()),
                name: "c".into(),
            };
            let edit = JsonEdit::Value {
                pointer: "/a".to_owned(),
                old: JsonPointerValue::Is(json!(1)),
                new: JsonPointerValue::Is(json!(22)),
                up_to: None,
            };
            let precondition = ObjectPrecondition::Present {
                uid: "u".to_owned(),
                part_of: None,
                hands: None,
            };
            let action = Action::EditConfigMap {
                object,
                precondition,
                key: "conf".to_owned(),
                edits: vec![edit],
                mark: None,
            };
            assert_eq!(
                told(link.perform(&action, "t", None).await.unwrap()),
                (0, String::new(), String::new()),
                "{status}"
            );
            assert_eq!(*text.lock().unwrap(), json!(r#"{"a": 22}"#));
            assert_eq!(
                asked
                    .lines()
                    .iter()
                    .filter(|line| line.starts_with("PATCH"))
                    .count(),
                1
            );
        }
    }
}
