//! Edits of a text that others own in a ConfigMap. They are merge patches (RFC 7386): unlike an
//! apply they never create what is gone, and they name nothing but what they change, besides the
//! object and its version that they are for.

use super::act::{
    Doubt, KubernetesActionStop, LOOK, TRIES, stop_with_failure, stop_with_refusal,
    stop_with_stale_precondition,
};
use super::answer;
use super::kinds::{self, ApiResource};
use super::read::no_kind;
use super::server::{KubernetesReply, KubernetesRequest, WriteRequestOutcome};
use super::{KubernetesLink, performed_from_exit};
use crate::ExecutionOutcome;
use http::Method;
use railwright_resource::json_in_configmap::edit::{JsonEdit, apply_json_edits, are_made};
use railwright_resource::json_in_configmap::mark::{self, OF_OBJECT, RestartMark};
use railwright_resource::kubernetes_object::MANAGER;
use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
use railwright_resource::kubernetes_object::request::ObjectName;
use railwright_system::clock;
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
        let (path, resource) = self.place(object).await?;
        let mut doubt = Doubt::default();
        for turn in 1..=TRIES {
            let live = self
                .live(object, &path, &resource)
                .await
                .map_err(|stop| doubt.over(stop))?;
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
            match self
                .send(&new_merge_patch_request(&path, &patch))
                .await
                .map_err(|stop| doubt.over(stop))?
            {
                WriteRequestOutcome::Answered(reply) if reply.status == 200 => {
                    return Ok(performed_from_exit(0, &reply.warnings.join("\n"), ""));
                }
                WriteRequestOutcome::Answered(reply) if reply.is_not_found() => {
                    return Err(doubt.over(stop_with_missing_object(object)));
                }
                WriteRequestOutcome::Answered(reply) if reply.status == 409 && turn < TRIES => {
                    clock::sleep_for(LOOK).await
                }
                WriteRequestOutcome::Answered(reply) => {
                    return Err(doubt.over(stop_with_refusal(object, &resource, &reply)));
                }
                WriteRequestOutcome::Unsure {
                    reason,
                    may_come,
                    again_after,
                } => {
                    doubt.add(reason, may_come);
                    clock::sleep_for(again_after).await;
                }
            }
        }
        Err(doubt.over(stop_with_failure(&format!(
            "{object} changes all the time; nothing was changed by us"
        ))))
    }

    pub(super) async fn place(
        &self,
        object: &ObjectName,
    ) -> Result<(String, ApiResource), KubernetesActionStop> {
        let resource = self
            .resource(object)
            .await?
            .ok_or_else(|| stop_with_failure(&no_kind(object)))?;
        let path = kinds::build_object_path(object, &resource)
            .map_err(|reason| stop_with_failure(&reason))?;
        Ok((path, resource))
    }

    /// The object, which has to be there.
    pub(super) async fn live(
        &self,
        object: &ObjectName,
        path: &str,
        resource: &ApiResource,
    ) -> Result<Value, KubernetesActionStop> {
        self.find(object, path, resource)
            .await?
            .ok_or_else(|| stop_with_missing_object(object))
    }

    /// The object as it is; nothing where it is not there.
    pub(super) async fn find(
        &self,
        object: &ObjectName,
        path: &str,
        resource: &ApiResource,
    ) -> Result<Option<Value>, KubernetesActionStop> {
        let reply: KubernetesReply = match self
            .server
            .ask(&KubernetesRequest::get(path.to_owned()))
            .await
        {
            Ok(reply) => reply,
            // Nothing was asked to change yet.
            Err(trouble) => return Err(KubernetesActionStop::Failed(trouble.error(&self.server))),
        };
        match (reply.status, reply.json()) {
            (200, Some(live)) if !reply.cut && answer::is_of(object, &live) => Ok(Some(live)),
            (404, _) if reply.is_not_found() => Ok(None),
            (404, _) => match self.server.kinds.is_served(&self.server, object).await {
                Ok(false) => Ok(None),
                _ => Err(stop_with_failure(&format!(
                    "what answers there is no API server: {}",
                    reply.message()
                ))),
            },
            (200, _) => Err(stop_with_failure(&format!(
                "what came is no {}, or too long a one",
                object.kind
            ))),
            _ => Err(stop_with_refusal(object, resource, &reply)),
        }
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

fn stop_with_missing_object(object: &ObjectName) -> KubernetesActionStop {
    stop_with_stale_precondition(&format!("{object} is gone"))
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
