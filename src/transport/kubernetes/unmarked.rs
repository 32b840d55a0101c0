//! What was stored without the marks that we sent with it: an admission webhook on the way took
//! them. Nobody would know as ours what is left so: what was made is deleted again, and what was
//! changed gets its value of before.

use super::act::{Doubt, KubernetesActionStop, TRIES, format_error_line};
use super::server::KubernetesReply;
use super::write::new_delete_request;
use super::write_target::WriteTarget;
use super::{KubernetesLink, answer, performed_from_exit};
use railwright_resource::json_fields::read_text_at;
use railwright_resource::kubernetes_object::owns_nothing;
use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
use railwright_resource::kubernetes_object::request::UNMARKED;
use serde_json::{Value, json};
use std::time::Duration;

/// What labels and annotations of ours begin with.
const OURS: &str = "railwright.io/";

/// The first label or annotation of ours that was sent and is not stored so.
fn find_lost_mark(sent: &Value, stored: &Value) -> Option<String> {
    for place in ["/metadata/labels", "/metadata/annotations"] {
        let sent = sent.pointer(place).and_then(Value::as_object);
        let marks = sent.into_iter().flatten();
        for (name, value) in
            marks.filter(|(name, value)| name.starts_with(OURS) && value.is_string())
        {
            if stored.pointer(place).and_then(|stored| stored.get(name)) != Some(value) {
                return Some(name.clone());
            }
        }
    }
    None
}

/// How long what was made may take to be gone again.
const GONE_LIMIT: Duration = Duration::from_secs(20);

/// What has become of something that was stored without a mark of ours.
pub(super) enum UnmarkedFate {
    TakenBack,
    /// It was told to end, and is there still.
    Ends,
    Stands,
}

/// Something that was stored without a mark of ours.
pub(super) struct UnmarkedObject {
    object: String,
    mark: String,
    stored: Value,
}

impl UnmarkedObject {
    /// What is stored, where it lacks a mark that was sent.
    pub fn of(place: &WriteTarget<'_>, sent: &Value, stored: Option<Value>) -> Option<Self> {
        let stored = stored?;
        let mark =
            find_lost_mark(sent, &stored).filter(|_| answer::is_of(place.object, &stored))?;
        Some(UnmarkedObject {
            object: place.object.to_string(),
            mark,
            stored,
        })
    }

    /// The failure, with what has become of it.
    pub fn stop(&self, fate: UnmarkedFate) -> KubernetesActionStop {
        let (code, now) = match fate {
            UnmarkedFate::TakenBack => (1, "it was undone"),
            UnmarkedFate::Ends => (UNMARKED, "it was told to end, and is there still"),
            UnmarkedFate::Stands => (UNMARKED, "it stands as it was written"),
        };
        let line = format_error_line(&format!(
            "{} was written, and something on the way took {} from it, by which it would be known \
             as ours; {now}: look for an admission webhook (kubectl get \
             mutatingwebhookconfigurations)",
            self.object, self.mark
        ));
        KubernetesActionStop::Ended(performed_from_exit(code, "", &line))
    }
}

/// An error for what is stored without a mark and stands: it was there before, or a look found it
/// where the answer got lost, and others may have taken it over by then.
pub(super) fn refuse_unmarked(
    place: &WriteTarget<'_>,
    sent: &Value,
    stored: Option<Value>,
) -> Result<(), KubernetesActionStop> {
    match UnmarkedObject::of(place, sent, stored) {
        Some(unmarked) => Err(unmarked.stop(UnmarkedFate::Stands)),
        None => Ok(()),
    }
}

impl KubernetesLink {
    /// Deletes what was made by the request with this answer where it was stored without a mark; an
    /// error then.
    pub(super) async fn keep_if_marked(
        &self,
        place: &WriteTarget<'_>,
        sent: &Value,
        reply: &KubernetesReply,
    ) -> Result<(), KubernetesActionStop> {
        match UnmarkedObject::of(place, sent, reply.json()) {
            Some(unmarked) => Err(unmarked.stop(self.delete_made(place, &unmarked.stored).await)),
            None => Ok(()),
        }
    }

    /// Deletes this very object, where nothing goes along: controllers take what others made and fits
    /// for the object's own.
    async fn delete_made(&self, place: &WriteTarget<'_>, made: &Value) -> UnmarkedFate {
        let uid = read_text_at(made, "/metadata/uid").unwrap_or_default();
        if uid.is_empty() || !owns_nothing(place.object) {
            return UnmarkedFate::Stands;
        }
        let call = new_delete_request(place, &json!({ "uid": uid }));
        // An answer that got lost leaves what the object says itself.
        let (limit, otherwise) = match self.change(&call).await {
            Ok(reply) if matches!(reply.status, 200 | 202) || reply.is_not_found() => {
                (GONE_LIMIT, UnmarkedFate::Ends)
            }
            _ => (Duration::ZERO, UnmarkedFate::Stands),
        };
        let made = ObjectPrecondition::of(made);
        match self.wait_until_gone(place, &made, limit).await {
            Some(Ok(())) => UnmarkedFate::TakenBack,
            Some(Err(_)) | None => otherwise,
        }
    }

    /// Writes what `undo` makes of the object until it makes nothing of it any more. Others write to it as well, such as the controller that taints a node.
    pub(super) async fn take_back(
        &self,
        place: &WriteTarget<'_>,
        undo: impl Fn(&Value) -> Option<Value> + Send,
    ) -> UnmarkedFate {
        let mut doubt = Doubt::default();
        for turn in 1..=TRIES {
            let Ok(live) = self.live(place).await else {
                return UnmarkedFate::Stands;
            };
            let Some(patch) = undo(&live) else {
                break;
            };
            match self.patch(place, &patch, (turn, &mut doubt)).await {
                Ok(Some(_)) => return UnmarkedFate::TakenBack,
                Ok(None) => {}
                Err(_) => return UnmarkedFate::Stands,
            }
        }
        match doubt.is_there() {
            true => UnmarkedFate::TakenBack,
            false => UnmarkedFate::Stands,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds_of, link, says};
    use super::*;
    use crate::{ExecutionOutcome, HostLink as _};
    use http::Method;
    use railwright_base::mutex::lock_ignoring_poison;
    use railwright_resource::Action;
    use railwright_resource::kubernetes_object::ownership::MEMBERSHIP;
    use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
    use railwright_resource::kubernetes_object::request::{ObjectName, SUBMISSION};
    use std::sync::{Arc, Mutex};

    /// An admission webhook takes our marks away: nobody would know whose it is.
    #[tokio::test(start_paused = true)]
    async fn what_is_made_without_its_marks_is_deleted_again() {
        for (kind, plural, is_held, desired, said) in [
            ("ConfigMap", "configmaps", false, 1, "it was undone"),
            ("ConfigMap", "configmaps", true, UNMARKED, "is there still"),
            ("Namespace", "namespaces", false, UNMARKED, "it stands"),
            // With them may go a volume of others, and endpoints that others wrote.
            (
                "PersistentVolumeClaim",
                "persistentvolumeclaims",
                false,
                UNMARKED,
                "it stands",
            ),
            ("Service", "services", false, UNMARKED, "it stands"),
        ] {
            let named = |metadata: Value| {
                let mut object = json!({ "apiVersion": "v1", "kind": kind, "metadata": metadata });
                object["metadata"]["name"] = "a".into();
                object
            };
            let manifest = named(json!({ "labels": { MEMBERSHIP: "train" },
                                         "annotations": { SUBMISSION: "w" } }));
            let stored = named(json!({ "uid": "u1" }));
            let name = ObjectName {
                api_version: "v1".to_owned(),
                kind: kind.to_owned(),
                namespace: None,
                name: "a".to_owned(),
            };
            for action in [
                Action::ApplyObject {
                    object: name.clone(),
                    manifest: manifest.clone(),
                    precondition: ObjectPrecondition::Absent,
                },
                Action::CreateObject {
                    object: name,
                    manifest,
                },
            ] {
                let stored = stored.to_string();
                let (link, asked) = link(move |method, path, _| match *method {
                    Method::GET if path == "/api/v1" => {
                        let kinds = json!([{ "name": plural, "kind": kind, "namespaced": false }]);
                        (200, Vec::new(), kinds_of("v1", &kinds))
                    }
                    Method::DELETE => says(200, ""),
                    Method::GET if is_held => (200, Vec::new(), stored.clone()),
                    Method::GET => says(404, "not found"),
                    _ => (201, Vec::new(), stored.clone()),
                });
                let performed = link.perform(&action, "t", None).await.unwrap();
                let ExecutionOutcome::Ended { code, stderr, .. } = &performed else {
                    panic!("{performed:?}");
                };
                let bodies = asked.bodies();
                let deleted = bodies.iter().any(|body| body.contains(r#""uid":"u1""#));
                assert_eq!(
                    (*code, stderr.contains(said), deleted),
                    (desired, true, kind == "ConfigMap"),
                    "{stderr}"
                );
                assert!(stderr.contains(MEMBERSHIP), "{stderr}");
            }
        }
    }

    /// What an answer or a look shows without its marks, where nobody says that it is gone.
    #[tokio::test(start_paused = true)]
    async fn what_is_not_said_to_be_gone_again_stands() {
        for is_answered in [true, false] {
            let name = ObjectName {
                api_version: "v1".to_owned(),
                kind: "ConfigMap".to_owned(),
                namespace: None,
                name: "a".to_owned(),
            };
            let manifest = json!({ "apiVersion": "v1", "kind": "ConfigMap",
                                   "metadata": { "name": "a", "labels": { MEMBERSHIP: "train" } } });
            let stored = Arc::new(Mutex::new(None));
            let (link, asked) = link(move |method, path, body| match *method {
                Method::GET if path == "/api/v1" => {
                    let kinds =
                        json!([{ "name": "configmaps", "kind": "ConfigMap", "namespaced": false }]);
                    (200, Vec::new(), kinds_of("v1", &kinds))
                }
                Method::GET => match lock_ignoring_poison(&stored).clone() {
                    None => says(404, "not found"),
                    Some(_) if is_answered => (502, Vec::new(), "bad gateway".to_owned()),
                    Some(object) => (200, Vec::new(), object),
                },
                Method::DELETE => (502, Vec::new(), "bad gateway".to_owned()),
                _ => {
                    let mut made: Value = serde_json::from_str(body).unwrap();
                    made["metadata"]["labels"] = json!({});
                    made["metadata"]["uid"] = "u1".into();
                    *lock_ignoring_poison(&stored) = Some(made.to_string());
                    match is_answered {
                        true => (201, Vec::new(), made.to_string()),
                        false => says(504, "timeout"),
                    }
                }
            });
            let apply = Action::ApplyObject {
                object: name,
                manifest,
                precondition: ObjectPrecondition::Absent,
            };
            let performed = link.perform(&apply, "t", None).await.unwrap();
            let ExecutionOutcome::Ended { code, stderr, .. } = &performed else {
                panic!("{performed:?}");
            };
            let is_told = stderr.contains("it stands as it was written");
            let bodies = asked.bodies();
            let is_deleted = bodies.iter().any(|body| body.contains("DeleteOptions"));
            assert_eq!(
                (*code, is_told, is_deleted),
                (UNMARKED, true, is_answered),
                "{stderr}"
            );
        }
    }

    /// Whose an object is cannot be told where the answer got lost and it bears no annotation.
    #[tokio::test(start_paused = true)]
    async fn an_object_without_the_mark_of_any_submission_may_be_ours_where_the_answer_got_lost() {
        for (answer, is_unknown) in [(504, true), (409, false)] {
            let name = ObjectName {
                api_version: "v1".to_owned(),
                kind: "ConfigMap".to_owned(),
                namespace: None,
                name: "a".to_owned(),
            };
            let named = |annotations: Value| {
                json!({ "apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": { "name": "a", "annotations": annotations } })
            };
            let stored = named(json!({})).to_string();
            let (link, _) = link(move |method, path, _| match *method {
                Method::GET if path == "/api/v1" => {
                    let kinds =
                        json!([{ "name": "configmaps", "kind": "ConfigMap", "namespaced": false }]);
                    (200, Vec::new(), kinds_of("v1", &kinds))
                }
                Method::GET => (200, Vec::new(), stored.clone()),
                _ => says(answer, "no"),
            });
            let create = Action::CreateObject {
                object: name,
                manifest: named(json!({ SUBMISSION: "w" })),
            };
            let performed = link.perform(&create, "t", None).await.unwrap();
            assert_eq!(
                matches!(performed, ExecutionOutcome::Unknown { .. }),
                is_unknown,
                "{performed:?}"
            );
        }
    }

    #[test]
    fn a_mark_that_is_not_stored_is_named() {
        let sent = json!({ "metadata": {
            "labels": { "railwright.io/part-of": "train", "app": "a" },
            "annotations": { "railwright.io/cordoned": null },
        } });
        let stored =
            |labels: Value| find_lost_mark(&sent, &json!({ "metadata": { "labels": labels } }));
        let kept = json!({ "railwright.io/part-of": "train" });
        assert_eq!(
            stored(kept),
            None,
            "a label of others, and one that was taken off"
        );
        for lost in [
            json!({}),
            Value::Null,
            json!({ "railwright.io/part-of": "x" }),
        ] {
            assert_eq!(stored(lost).as_deref(), Some("railwright.io/part-of"));
        }
    }
}
