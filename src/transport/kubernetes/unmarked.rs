//! What was stored without the marks that we sent with it: an admission webhook on the way took
//! them. Nobody would know as ours what is left so: what was made is deleted again, and what was
//! changed gets its value of before.

use super::act::{Doubt, KubernetesActionStop, TRIES, stop_with_failure};
use super::server::{KubernetesReply, KubernetesRequest};
use super::write_target::WriteTarget;
use super::{KubernetesLink, answer};
use http::Method;
use railwright_resource::body::read_text_at;
use railwright_resource::kubernetes_object::is_never_removed;
use serde_json::{Value, json};

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

/// Something that was stored without a mark of ours.
pub(super) struct Unmarked {
    object: String,
    mark: String,
    uid: Option<String>,
}

impl Unmarked {
    /// What an answer shows as stored, where it lacks a mark that was sent.
    pub fn of(place: &WriteTarget<'_>, sent: &Value, reply: &KubernetesReply) -> Option<Self> {
        let stored = reply.json()?;
        let mark =
            find_lost_mark(sent, &stored).filter(|_| answer::is_of(place.object, &stored))?;
        Some(Unmarked {
            object: place.object.to_string(),
            mark,
            uid: read_text_at(&stored, "/metadata/uid").map(str::to_owned),
        })
    }

    /// The failure, with what has become of it.
    pub fn stop(&self, is_taken_back: bool) -> KubernetesActionStop {
        let now = match is_taken_back {
            true => "it was taken back",
            false => "it stands as it was written",
        };
        stop_with_failure(&format!(
            "{} was written, and something on the way took {} from it, by which it would be known \
             as ours; {now}: look for an admission webhook (kubectl get \
             mutatingwebhookconfigurations)",
            self.object, self.mark
        ))
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
        let Some(unmarked) = Unmarked::of(place, sent, reply) else {
            return Ok(());
        };
        let is_gone = match &unmarked.uid {
            // What others put below it in the meantime would go along.
            Some(uid) if !is_never_removed(place.object) => self.delete_made(place, uid).await,
            _ => false,
        };
        Err(unmarked.stop(is_gone))
    }

    /// Whether the object of this UID is gone, or goes.
    async fn delete_made(&self, place: &WriteTarget<'_>, uid: &str) -> bool {
        let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions",
                              "preconditions": { "uid": uid }, "propagationPolicy": "Background" });
        let call = KubernetesRequest::with(
            Method::DELETE,
            place.path.clone(),
            "application/json",
            options.to_string(),
        );
        match self.change(&call).await {
            Ok(reply) => matches!(reply.status, 200 | 202) || reply.is_not_found(),
            Err(_) => false,
        }
    }

    /// Writes what `undo` makes of the object until it makes nothing of it any more; whether it was
    /// written. Others write to it as well, such as the controller that taints a node.
    pub(super) async fn take_back(
        &self,
        place: &WriteTarget<'_>,
        undo: impl Fn(&Value) -> Option<Value> + Send,
    ) -> bool {
        let mut doubt = Doubt::default();
        for turn in 1..=TRIES {
            let Ok(live) = self.live(place).await else {
                return false;
            };
            let Some(patch) = undo(&live) else {
                return doubt.is_there();
            };
            match self.patch(place, &patch, (turn, &mut doubt)).await {
                Ok(Some(_)) => return true,
                Ok(None) => {}
                Err(_) => return false,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kinds_of, link, says};
    use super::*;
    use crate::{ExecutionOutcome, HostLink as _};
    use railwright_resource::Action;
    use railwright_resource::kubernetes_object::ownership::MEMBERSHIP;
    use railwright_resource::kubernetes_object::precondition::ObjectPrecondition;
    use railwright_resource::kubernetes_object::request::{ObjectName, SUBMISSION};

    /// An admission webhook takes our marks away: nobody would know whose it is.
    #[tokio::test(start_paused = true)]
    async fn what_is_made_without_its_marks_is_deleted_again() {
        for (kind, plural, is_deleted) in [
            ("ConfigMap", "configmaps", true),
            ("Namespace", "namespaces", false),
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
                    _ => (201, Vec::new(), stored.clone()),
                });
                let performed = link.perform(&action, "t", None).await.unwrap();
                let ExecutionOutcome::Ended {
                    code: 1, stderr, ..
                } = &performed
                else {
                    panic!("{performed:?}");
                };
                let deleted = asked
                    .bodies()
                    .iter()
                    .any(|body| body.contains(r#""uid":"u1""#));
                assert_eq!(
                    (deleted, stderr.contains("it was taken back")),
                    (is_deleted, is_deleted),
                    "{stderr}"
                );
                assert!(stderr.contains(MEMBERSHIP), "{stderr}");
            }
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
