//! The three actions that empty a node and give it back. A cordon is a merge patch that names
//! nothing but its two fields, and holds for the version of the node that was looked at.

use super::act::{
    Doubt, KubernetesActionStop, TRIES, format_error_line, stop_with_failure, stop_with_refusal,
};
use super::edit::build_version_precondition;
use super::kinds::ApiResource;
use super::lists::find_json_text;
use super::nodes::{new_node_reference, new_pod_reference};
use super::server::{KubernetesReply, KubernetesRequest};
use super::unmarked::UnmarkedObject;
use super::write_target::WriteTarget;
use super::{KubernetesLink, performed_from_exit};
use crate::ExecutionOutcome;
use http::Method;
use railwright_resource::json_fields::list_items_at;
use railwright_resource::kubernetes_object::nodes::{CORDONED, NodeNow};
use railwright_resource::kubernetes_object::request::NOT_NOW;
use serde_json::{Value, json};

/// The cause of a refusal where the namespace is being deleted (kubernetes/kubernetes:
/// staging/src/k8s.io/api/core/v1/types.go, NamespaceTerminatingCause).
const NAMESPACE_GOES: &str = "NamespaceTerminating";

impl KubernetesLink {
    /// Has no more pods put on a node that still takes some, and marks it.
    pub(super) async fn cordon(
        &self,
        name: &str,
        mark: &str,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        self.schedule(name, |now| {
            now.schedulable.then(|| (json!(true), json!(mark)))
        })
        .await
    }

    /// Has pods put on a node again that bears our mark.
    pub(super) async fn uncordon(
        &self,
        name: &str,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        self.schedule(name, |now| {
            now.cordoned.is_some().then_some((Value::Null, Value::Null))
        })
        .await
    }

    /// Writes what `decide` makes of the node for its `unschedulable` and our mark, as long as
    /// nobody changed the node meanwhile.
    async fn schedule(
        &self,
        name: &str,
        decide: impl Fn(&NodeNow) -> Option<(Value, Value)>,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let (object, resource) = new_node_reference(name);
        let place = WriteTarget::new(&object, resource)?;
        let mut doubt = Doubt::default();
        for turn in 1..=TRIES {
            let live = self.live(&place).await.map_err(|stop| doubt.over(stop))?;
            let Some((unschedulable, mark)) = decide(&NodeNow::of(&live)) else {
                return Ok(performed_from_exit(0, "", ""));
            };
            let version = live.pointer("/metadata/resourceVersion");
            let metadata = json!({ "resourceVersion": version, "annotations": { CORDONED: mark } });
            let patch = json!({ "metadata": metadata, "spec": { "unschedulable": unschedulable } });
            if let Some(reply) = self.patch(&place, &patch, (turn, &mut doubt)).await? {
                return match UnmarkedObject::of(&place, &patch, reply.json()) {
                    None => Ok(performed_from_exit(0, &reply.warnings.join("\n"), "")),
                    Some(unmarked) => {
                        Err(unmarked.stop(self.take_back(&place, uncordon_unmarked).await))
                    }
                };
            }
        }
        Err(doubt.over(stop_with_failure(&format!(
            "{object} changes all the time; nothing was changed by us"
        ))))
    }

    /// Has a pod end. One that is gone, or is another one by now, is done with.
    pub(super) async fn evict(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<ExecutionOutcome, KubernetesActionStop> {
        let (object, resource) = new_pod_reference(Some(namespace), name);
        let place = WriteTarget::new(&object, resource)?;
        let eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": { "name": name, "namespace": namespace },
            "deleteOptions": { "preconditions": { "uid": uid } },
        });
        let reply = self
            .change(&KubernetesRequest::with(
                Method::POST,
                format!("{}/eviction", place.path),
                "application/json",
                eviction.to_string(),
            ))
            .await?;
        match reply.status {
            200 | 201 | 409 => Ok(performed_from_exit(0, "", "")),
            _ if reply.is_not_found() => Ok(performed_from_exit(0, "", "")),
            // The words of the budget are in the causes (kubernetes/kubernetes:
            // pkg/registry/core/pod/storage/eviction.go).
            429 => {
                let why = reply
                    .json()
                    .as_ref()
                    .map(|status| find_json_text(status, "/details/causes/0/message").to_owned())
                    .unwrap_or_default();
                let why = if why.is_empty() { reply.message() } else { why };
                Ok(performed_from_exit(NOT_NOW, "", &format_error_line(&why)))
            }
            // A namespace that goes takes its pods with it.
            403 if names_cause(&reply, NAMESPACE_GOES) => Ok(performed_from_exit(0, "", "")),
            _ => Err(stop_with_refusal(
                &object,
                &ApiResource {
                    plural: "pods/eviction".to_owned(),
                    ..place.resource
                },
                &reply,
            )),
        }
    }
}

/// The patch that undoes a cordon which bears no mark.
fn uncordon_unmarked(live: &Value) -> Option<Value> {
    let now = NodeNow::of(live);
    let is_unmarked_cordon = !now.schedulable && now.cordoned.is_none();
    is_unmarked_cordon.then(|| {
        let metadata = build_version_precondition(live);
        json!({ "metadata": metadata, "spec": { "unschedulable": null } })
    })
}

/// Whether the server gives this reason among the causes of a refusal.
fn names_cause(reply: &KubernetesReply, reason: &str) -> bool {
    let status = reply.json().unwrap_or_default();
    list_items_at(&status, "/details/causes")
        .iter()
        .any(|cause| find_json_text(cause, "/reason") == reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostLink as _;
    use crate::kubernetes::tests::{Reply, link, says};
    use railwright_resource::Action;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn live(unschedulable: Option<bool>, mark: Option<&str>) -> Reply {
        let annotations = mark
            .map(|mark| json!({ CORDONED: mark }))
            .unwrap_or_default();
        let node = json!({ "metadata": { "name": "gpu-1", "resourceVersion": "7", "annotations": annotations }, "spec": { "unschedulable": unschedulable } });
        (200, Vec::new(), node.to_string())
    }

    async fn done(
        action: Action,
        node: Reply,
        change: Reply,
    ) -> (ExecutionOutcome, Vec<String>, String) {
        let (link, asked) = link(move |method, _, _| {
            if *method == Method::GET {
                node.clone()
            } else {
                change.clone()
            }
        });
        let performed = link.perform(&action, "t", None).await.unwrap();
        (performed, asked.lines(), asked.last_body())
    }

    fn cordon() -> Action {
        Action::CordonNode {
            node: "gpu-1".to_owned(),
            mark: "{}".to_owned(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_we_cordoned_is_uncordoned_and_only_as_it_was_looked_at() {
        let well = || says(200, "");
        let patch = "PATCH /api/v1/nodes/gpu-1?fieldManager=railwright&fieldValidation=Strict";
        let (performed, lines, sent) = done(cordon(), live(None, None), well()).await;
        assert_eq!(
            (performed, lines),
            (
                performed_from_exit(0, "", ""),
                vec!["GET /api/v1/nodes/gpu-1".to_owned(), patch.to_owned()]
            )
        );
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            sent["metadata"],
            json!({ "resourceVersion": "7", "annotations": { CORDONED: "{}" } })
        );
        assert_eq!(sent["spec"], json!({ "unschedulable": true }));
        assert_eq!(
            done(cordon(), live(Some(true), None), well()).await.1.len(),
            1,
            "somebody else's cordon is no work of ours"
        );

        let uncordon = || Action::UncordonNode {
            node: "gpu-1".to_owned(),
        };
        assert_eq!(
            done(uncordon(), live(Some(true), None), well())
                .await
                .1
                .len(),
            1
        );
        let (_, lines, sent) = done(uncordon(), live(Some(true), Some("{}")), well()).await;
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            (lines[1].as_str(), &sent["spec"]),
            (patch, &json!({ "unschedulable": null }))
        );

        let (performed, lines, _) = done(
            cordon(),
            live(None, None),
            says(409, "the object has been modified"),
        )
        .await;
        assert_eq!(lines.len(), 2 * usize::try_from(TRIES).unwrap());
        assert!(
            matches!(performed, ExecutionOutcome::Ended { code: 1, .. }),
            "{performed:?}"
        );
        let (performed, ..) = done(cordon(), says(404, "nodes \"gpu-1\" not found"), well()).await;
        assert!(
            !matches!(performed, ExecutionOutcome::Ended { code: 0, .. }),
            "{performed:?}"
        );
    }

    /// An admission webhook takes our mark away: nobody would give the node back.
    #[tokio::test(start_paused = true)]
    async fn a_cordon_without_its_mark_is_taken_back() {
        // The first look is before the cordon. Somebody else writes to the node after it.
        let (gets, patches) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (link, asked) = link(move |method, _, _| {
            let is_get = *method == Method::GET;
            let count = if is_get { &gets } else { &patches };
            match (is_get, count.fetch_add(1, Ordering::SeqCst)) {
                (true, 0) => live(None, None),
                (true, _) => live(Some(true), None),
                (false, 1) => says(409, "the object has been modified"),
                (false, _) => {
                    let metadata = json!({ "name": "gpu-1" });
                    let stored = json!({ "kind": "Node", "metadata": metadata, "spec": { "unschedulable": true } });
                    (200, Vec::new(), stored.to_string())
                }
            }
        });
        let performed = link.perform(&cordon(), "t", None).await.unwrap();
        let (lines, sent) = (asked.lines(), asked.last_body());
        assert!(
            format!("{performed:?}").contains("took railwright.io/cordoned from it"),
            "{performed:?}"
        );
        assert!(
            format!("{performed:?}").contains("it was undone"),
            "{performed:?}"
        );
        assert_eq!(lines.len(), 6, "{lines:?}");
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            sent,
            json!({ "metadata": { "uid": null, "resourceVersion": "7" }, "spec": { "unschedulable": null } })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_budget_that_has_no_room_is_told_in_its_own_words_and_not_asked_again_at_once() {
        let evict = || Action::EvictPod {
            namespace: "ml".to_owned(),
            name: "web-0".to_owned(),
            uid: "u".to_owned(),
        };
        let causes = json!([{ "reason": "DisruptionBudget", "message": "The disruption budget web \
                                                                        needs 2 healthy pods and \
                                                                        has 2 currently" }]);
        let details = json!({ "causes": causes });
        let kept = json!({ "kind": "Status", "message": "Cannot evict pod", "details": details });
        let kept = (429, Vec::new(), kept.to_string());
        let (performed, lines, sent) = done(evict(), says(500, ""), kept).await;
        let words =
            "railwright: The disruption budget web needs 2 healthy pods and has 2 currently";
        assert_eq!(
            (performed, lines),
            (
                performed_from_exit(NOT_NOW, "", words),
                vec!["POST /api/v1/namespaces/ml/pods/web-0/eviction".to_owned()]
            )
        );
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(sent["deleteOptions"]["preconditions"]["uid"], "u");
        for gone in [
            says(404, "not found"),
            says(409, "another uid"),
            says(201, ""),
        ] {
            assert_eq!(
                done(evict(), says(500, ""), gone).await.0,
                performed_from_exit(0, "", "")
            );
        }
        let lacking = says(
            403,
            r#"pods "web-0" is forbidden: User "u" cannot create resource "pods/eviction" in API group """#,
        );
        let (performed, ..) = done(evict(), says(500, ""), lacking).await;
        assert!(
            format!("{performed:?}").contains("a rule is missing"),
            "{performed:?}"
        );
        // What is said of a namespace that goes counts by its cause, and not by its words; what
        // stands between us and the server says nothing of pods.
        let going = r#"pods "web-0" is forbidden: unable to create new content in namespace ml because it is being terminated"#;
        let (performed, ..) = done(evict(), says(500, ""), says(403, going)).await;
        assert_ne!(performed, performed_from_exit(0, "", ""));
        let causes = json!({ "causes": [{ "reason": "NamespaceTerminating", "message": going }] });
        let body =
            json!({ "kind": "Status", "message": going, "reason": "Forbidden", "details": causes });
        let refusal = (403, Vec::new(), body.to_string());
        assert_eq!(
            done(evict(), says(500, ""), refusal).await.0,
            performed_from_exit(0, "", "")
        );
        for body in [r#"{"error":"no route"}"#, "404 page not found"] {
            let (performed, ..) =
                done(evict(), says(500, ""), (404, Vec::new(), body.to_owned())).await;
            assert!(
                matches!(performed, ExecutionOutcome::Ended { code: 1, .. }),
                "{performed:?}"
            );
        }
    }
}
