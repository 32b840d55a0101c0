//! What the server calls a kind, and what we are allowed: a SelfSubjectAccessReview is answered and
//! not stored. Everybody who is known may ask one by the role `system:basic-user`, unless somebody
//! took that away.

use super::KubernetesLink;
use super::answer::new_exit_answer;
use super::fault::KubernetesRequestError;
use super::kinds::ApiResource;
use super::server::KubernetesRequest;
use http::Method;
use railwright_resource::ReadResult;
use railwright_resource::kubernetes_object::access::Right;
use railwright_resource::kubernetes_object::known_kinds::ApiResourceName;
use railwright_resource::kubernetes_object::request::{NOT_SAID, REFUSED};
use serde_json::{Value, json};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

impl KubernetesLink {
    /// Whether we are allowed this.
    pub(super) async fn access(&self, right: &Right) -> Result<ReadResult, KubernetesRequestError> {
        let Right {
            namespace,
            group,
            resource,
            name,
            verb,
        } = right;
        // A rule has both in one word, a review apart.
        let (resource, part) = resource
            .split_once('/')
            .map_or((resource.as_str(), None), |(resource, part)| {
                (resource, Some(part))
            });
        let mut asked = json!({ "verb": verb.word(), "group": group, "resource": resource, "namespace": namespace, "name": name });
        if let Some(part) = part {
            asked["subresource"] = part.into();
        }
        let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": { "resourceAttributes": asked } });
        let call = KubernetesRequest::with(
            Method::POST,
            REVIEWS.to_owned(),
            "application/json",
            review.to_string(),
        );
        let reply = self.server.ask(&call).await?;
        let allowed = reply
            .json()
            .and_then(|review| review.pointer("/status/allowed").and_then(Value::as_bool));
        Ok(match (reply.status, allowed) {
            (200 | 201, Some(true)) => new_exit_answer(0, ""),
            (200 | 201, Some(false)) => new_exit_answer(REFUSED, ""),
            (200 | 201, None) => {
                new_exit_answer(NOT_SAID, "what came says nothing of what we are allowed")
            }
            _ => new_exit_answer(NOT_SAID, reply.message()),
        })
    }
}

/// What the server calls objects of a kind.
pub fn new_resource_kind_answer(resource: &ApiResource) -> ReadResult {
    let called = ApiResourceName {
        plural: resource.plural.clone(),
        namespaced: resource.namespaced,
    };
    match serde_json::to_string(&called) {
        Ok(text) => new_exit_answer(0, text),
        Err(error) => new_exit_answer(NOT_SAID, error.to_string()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::HostLink as _;
    use crate::kubernetes::tests::{daemon_set, kinds, link, says};
    use railwright_resource::Read;
    use railwright_resource::kubernetes_object::access::ApiVerb;
    use railwright_resource::kubernetes_object::request::{KubernetesRead, NO_KIND, ObjectName};

    /// Both questions of this file.
    pub fn questions() -> [Read; 2] {
        let right = Right {
            namespace: Some("n".to_owned()),
            group: "apps".to_owned(),
            resource: "daemonsets".to_owned(),
            name: Some("a".to_owned()),
            verb: ApiVerb::Delete,
        };
        [
            Read::Kubernetes(KubernetesRead::Kind(daemon_set())),
            Read::Kubernetes(KubernetesRead::Access(right)),
        ]
    }

    fn review(status: &Value) -> (u16, Vec<(&'static str, String)>, String) {
        (
            201,
            Vec::new(),
            json!({ "kind": "SelfSubjectAccessReview", "status": status }).to_string(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn what_we_are_allowed_is_asked_by_a_review() {
        for (reply, desired) in [
            (review(&json!({ "allowed": true })), new_exit_answer(0, "")),
            (
                review(&json!({ "allowed": false, "reason": "no" })),
                new_exit_answer(REFUSED, ""),
            ),
            (
                review(&json!({ "allowed": "yes" })),
                new_exit_answer(NOT_SAID, "what came says nothing of what we are allowed"),
            ),
            (
                says(403, "you may not ask"),
                new_exit_answer(NOT_SAID, "you may not ask"),
            ),
            (
                says(200, "allowed"),
                new_exit_answer(NOT_SAID, "what came says nothing of what we are allowed"),
            ),
        ] {
            let (link, asked) = link(move |_, _, _| reply.clone());
            let [_, access] = questions();
            let answers = link.read(std::slice::from_ref(&access)).await.unwrap();
            assert_eq!(answers.get(&access), Some(&desired));
            assert_eq!(
                asked.lines(),
                [format!("POST {REVIEWS}")],
                "and no kind is asked for"
            );
            let sent: Value = serde_json::from_str(&asked.last_body()).unwrap();
            let attributes = json!({ "verb": "delete", "group": "apps", "resource": "daemonsets", "namespace": "n", "name": "a" });
            assert_eq!(sent["spec"]["resourceAttributes"], attributes);
        }
    }

    #[tokio::test]
    async fn a_kind_is_told_by_the_list_of_its_group() {
        let (link, asked) = link(|_, path, _| {
            if path == "/apis/apps/v1" {
                kinds()
            } else {
                says(404, "")
            }
        });
        let [kind, _] = questions();
        let strange = Read::Kubernetes(KubernetesRead::Kind(ObjectName {
            kind: "Strange".to_owned(),
            ..daemon_set()
        }));
        let answers = link.read(&[kind.clone(), strange.clone()]).await.unwrap();
        assert_eq!(
            answers.get(&kind),
            Some(&new_exit_answer(
                0,
                r#"{"plural":"daemonsets","namespaced":true}"#
            ))
        );
        assert_eq!(
            answers.get(&strange).unwrap().status,
            new_exit_answer(NO_KIND, "").status
        );
        assert_eq!(asked.lines(), ["GET /apis/apps/v1"]);
    }
}
