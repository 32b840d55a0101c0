//! The key of the codes that marks on nodes bear (`node_field::mark`): a Secret of the cluster,
//! made with the first mark and never changed. A kubelet reads no Secret but those of its pods
//! (kubernetes.io/docs/reference/access-authn-authz/node).

use super::act::{Doubt, KubernetesActionStop, LOOK, TRIES, stop_with_failure};
use super::answer;
use super::fault::KubernetesRequestError;
use super::kinds::{self, ApiResource};
use super::server::{KubernetesRequest, KubernetesServer, WriteRequestOutcome};
use super::write::{OF_NOTHING, new_apply_request};
use super::write_target::WriteTarget;
use super::{KubernetesLink, NAMESPACE};
use railwright_base::{Reason, SealKey};
use railwright_resource::Read;
use railwright_resource::file::base64;
use railwright_resource::json_fields::read_text_at;
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::node_field::mark::{MarkKey, build_mark_key_object_name};
use railwright_system::clock;
use serde_json::{Value, json};

const KEY: &str = "key";
const TYPE: &str = "railwright.io/mark-key";
/// A shorter key was not made by us.
const LEAST_BYTES: usize = 32;
const NO_KEY: &str = "it holds no key, so nobody can tell which marks on nodes are ours";

fn new_secret_resource() -> ApiResource {
    ApiResource {
        plural: "secrets".to_owned(),
        namespaced: true,
    }
}

fn decode_key(secret: &Value) -> Option<SealKey> {
    let bytes = base64::decode_base64_text(read_text_at(secret, &format!("/data/{KEY}"))?)?;
    (bytes.len() >= LEAST_BYTES).then(|| SealKey::new(&bytes))
}

/// The Secret with a new key.
fn build_key_secret(name: &str) -> std::io::Result<Value> {
    let fresh = format!("{}{}", clock::generate_nonce()?, clock::generate_nonce()?);
    let metadata = json!({ "name": name, "namespace": NAMESPACE });
    let data = json!({ KEY: base64::encode_base64_text(fresh.as_bytes()) });
    Ok(
        json!({ "apiVersion": "v1", "kind": "Secret", "type": TYPE, "immutable": true, "metadata": metadata, "data": data }),
    )
}

/// The key for these questions about all nodes; it is asked for where one is about marks.
pub(super) async fn read_mark_key(
    server: &KubernetesServer,
    reads: &[&Read],
) -> Result<MarkKey, KubernetesRequestError> {
    let is_of_marks = |read: &&Read| matches!(read, Read::Kubernetes(KubernetesRead::NodeField(_)));
    let (object, resource) = (build_mark_key_object_name(), new_secret_resource());
    let path = kinds::build_object_path(&object, &resource);
    let (true, Ok(path)) = (reads.iter().any(is_of_marks), path) else {
        return Ok(MarkKey::Absent);
    };
    let reply = server.ask(&KubernetesRequest::get(path)).await?;
    if reply.is_not_found() {
        return Ok(MarkKey::Absent);
    }
    let secret = reply
        .json()
        .filter(|found| reply.status == 200 && answer::is_of(&object, found));
    Ok(match secret {
        Some(secret) => decode_key(&secret).map_or_else(
            || MarkKey::Unknown(format!("{object}: {NO_KEY}").into()),
            MarkKey::Is,
        ),
        None => MarkKey::Unknown(Reason::from(answer::describe_failed_request(
            &format!("whose the marks on nodes are, by the key in {object}"),
            &object,
            &resource.plural,
            &reply,
        ))),
    })
}

impl KubernetesLink {
    /// The key; nothing where none was made yet.
    async fn find_mark_key(
        &self,
        place: &WriteTarget<'_>,
    ) -> Result<Option<SealKey>, KubernetesActionStop> {
        let Some(secret) = self.find(place).await? else {
            return Ok(None);
        };
        match decode_key(&secret) {
            Some(key) => Ok(Some(key)),
            None => Err(stop_with_failure(&format!("{}: {NO_KEY}", place.object))),
        }
    }

    /// The key for edits of nodes, which is made where they write the first mark. Of two that make
    /// it at once both get the one that was first.
    pub(super) async fn take_mark_key(
        &self,
        writes_marks: bool,
    ) -> Result<Option<SealKey>, KubernetesActionStop> {
        let object = build_mark_key_object_name();
        let place = WriteTarget::new(&object, new_secret_resource())?;
        let mut doubt = Doubt::default();
        for _ in 0..TRIES {
            let found = self.find_mark_key(&place).await;
            let found = found.map_err(|stop| doubt.over(stop))?;
            if found.is_some() || !writes_marks {
                return Ok(found);
            }
            let secret = build_key_secret(&object.name)
                .map_err(|error| stop_with_failure(&format!("no random numbers: {error}")))?;
            let precondition = json!({ "resourceVersion": OF_NOTHING });
            let call = new_apply_request(&place.path, &secret, &precondition);
            match self.send(&call).await.map_err(|stop| doubt.over(stop))? {
                WriteRequestOutcome::Answered(reply) if matches!(reply.status, 200 | 201) => {}
                WriteRequestOutcome::Answered(reply) if reply.status == 409 => {
                    clock::sleep_for(LOOK).await;
                }
                WriteRequestOutcome::Answered(reply) => {
                    return Err(doubt.over(place.refused(&reply)));
                }
                WriteRequestOutcome::Unsure(unsure) => {
                    clock::sleep_for(doubt.add(unsure)).await;
                }
            }
        }
        let gone = format!("{object} is written by others all the time");
        Err(doubt.given_up(stop_with_failure(&gone)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::{Reply, link, says, told};
    use super::*;
    use crate::{ExecutionOutcome, HostLink as _};
    use http::Method;
    use railwright_base::mutex::lock_ignoring_poison;
    use railwright_resource::Action;
    use railwright_resource::kubernetes_object::request::MOVED;
    use railwright_resource::node_field::NodeField;
    use railwright_resource::node_field::edit::{NodeEdit, NodeFieldChange};
    use railwright_resource::node_field::mark::NodeOwnershipAnnotation;
    use std::sync::{Arc, Mutex};

    const SECRET: &str = "/api/v1/namespaces/kube-system/secrets/railwright.node-marks";

    /// The Secret with a key, where the server is asked for it.
    pub(in super::super) fn answer_of_key(path: &str) -> Option<Reply> {
        let secret = || build_key_secret("railwright.node-marks").unwrap();
        (path == SECRET).then(|| (200, Vec::new(), secret().to_string()))
    }

    /// A cluster of one node, and the Secret with the key.
    #[derive(Clone, Default)]
    struct Cluster {
        node: Arc<Mutex<Value>>,
        secret: Arc<Mutex<Option<Value>>>,
        /// What is answered of the Secret in its place.
        refused: Option<Reply>,
    }

    impl Cluster {
        fn new(annotations: &Value) -> Self {
            let metadata = json!({ "name": "gpu-1", "uid": "u1", "resourceVersion": "7", "labels": { "pool": "batch" }, "annotations": annotations });
            Cluster {
                node: Arc::new(Mutex::new(json!({ "kind": "Node", "metadata": metadata }))),
                ..Cluster::default()
            }
        }

        fn answer(&self, method: &Method, path: &str, body: &str) -> Reply {
            let mut secret = lock_ignoring_poison(&self.secret);
            let mut node = lock_ignoring_poison(&self.node);
            let well = |status: u16, body: &Value| (status, Vec::new(), body.to_string());
            if path.starts_with(SECRET) {
                return match (&self.refused, &*secret, method) {
                    (Some(refused), ..) => refused.clone(),
                    (_, Some(there), &Method::GET) => well(200, there),
                    (_, None, &Method::GET) => says(404, "not found"),
                    (_, Some(_), _) => says(409, "the object has been modified"),
                    (_, None, _) => {
                        let made = serde_json::from_str::<Value>(body).unwrap();
                        well(201, secret.insert(made))
                    }
                };
            }
            if *method == Method::PATCH {
                let patch: Value = serde_json::from_str(body).unwrap();
                for part in ["labels", "annotations"] {
                    for (name, value) in patch["metadata"][part].as_object().unwrap() {
                        let there = node["metadata"][part].as_object_mut().unwrap();
                        match value {
                            Value::Null => drop(there.remove(name)),
                            value => drop(there.insert(name.clone(), value.clone())),
                        }
                    }
                }
            }
            match path.starts_with("/api/v1/nodes?") {
                true => well(200, &json!({ "kind": "NodeList", "items": [*node] })),
                false => well(200, &node),
            }
        }

        async fn read(&self) -> (i32, Value) {
            let cluster = self.clone();
            let (link, _) = link(move |method, path, body| cluster.answer(method, path, body));
            let read = Read::Kubernetes(KubernetesRead::NodeField(pool()));
            let answers = link.read(std::slice::from_ref(&read)).await.unwrap();
            let (code, out) = answers.output(&read).unwrap();
            let nodes = serde_json::from_str::<Value>(out).unwrap_or_default();
            (code, nodes["gpu-1"].clone())
        }

        async fn edit(&self, change: NodeFieldChange) -> ExecutionOutcome {
            let cluster = self.clone();
            let (link, _) = link(move |method, path, body| cluster.answer(method, path, body));
            let nodes = vec!["gpu-1".to_owned()];
            let action = Action::EditNodes {
                field: pool(),
                edits: vec![NodeEdit { nodes, change }],
            };
            link.perform(&action, "t", None).await.unwrap()
        }

        fn label(&self) -> Value {
            lock_ignoring_poison(&self.node)["metadata"]["labels"]["pool"].clone()
        }
    }

    fn pool() -> NodeField {
        NodeField::Label {
            key: "pool".to_owned(),
        }
    }

    fn change(old: &str, new: &str, mark: Option<NodeOwnershipAnnotation>) -> NodeFieldChange {
        NodeFieldChange {
            old: Some(old.to_owned()),
            new: Some(new.to_owned()),
            mark,
        }
    }

    fn mark() -> NodeOwnershipAnnotation {
        NodeOwnershipAnnotation {
            spec: "train".to_owned(),
            set: "train".to_owned(),
            was: Some("batch".to_owned()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_mark_makes_the_key_and_every_later_one_takes_it() {
        let cluster = Cluster::new(&json!({}));
        for (old, new) in [("batch", "train"), ("train", "train")] {
            let done = cluster.edit(change(old, new, Some(mark()))).await;
            assert_eq!(told(done).0, 0);
            let (code, now) = cluster.read().await;
            assert_eq!((code, &now["mark"]), (0, &json!(mark())), "{now}");
        }
        let first = lock_ignoring_poison(&cluster.secret).clone().unwrap();
        assert_eq!(
            (&first["immutable"], decode_key(&first).is_some()),
            (&json!(true), true)
        );
        let back = cluster.edit(change("train", "batch", None)).await;
        assert_eq!((told(back).0, cluster.label()), (0, json!("batch")));
        assert_eq!(*lock_ignoring_poison(&cluster.secret), Some(first));
    }

    /// A kubelet writes an annotation on its own node.
    #[tokio::test(start_paused = true)]
    async fn a_forged_mark_is_none_of_ours_and_nothing_is_taken_back_by_it() {
        let text = r#"{"spec":"train","set":"batch","was":"secrets"}"#;
        let cluster = Cluster::new(&json!({ "railwright.io/label-pool": text }));
        for with_key in [false, true] {
            let made = build_key_secret("railwright.node-marks").unwrap();
            *lock_ignoring_poison(&cluster.secret) = with_key.then_some(made);
            let (code, now) = cluster.read().await;
            assert_eq!(
                (code, &now["unproven_mark"], now.get("mark")),
                (0, &json!(true), None)
            );
            let back = told(cluster.edit(change("batch", "secrets", None)).await);
            assert_eq!((back.0, cluster.label()), (MOVED, json!("batch")));
            assert!(back.2.contains("our mark is no longer there"), "{back:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whose_a_mark_is_stays_unknown_where_the_key_cannot_be_read() {
        let denied = says(
            403,
            r#"secrets "railwright.node-marks" is forbidden: User "u" cannot get resource "secrets" in API group """#,
        );
        let short = json!({ "kind": "Secret", "metadata": { "name": "railwright.node-marks" }, "data": { KEY: "a2V5" } });
        for (refused, why) in [
            (denied, "a rule is missing: verb get, resource secrets"),
            (says(500, "etcd is away"), "etcd is away"),
            ((200, Vec::new(), short.to_string()), NO_KEY),
        ] {
            let mut cluster = Cluster::new(&json!({ "railwright.io/label-pool": "{}" }));
            cluster.refused = Some(refused);
            let (code, now) = cluster.read().await;
            let said = now["unread_mark"].as_str().unwrap_or_default().to_owned();
            assert!(code == 0 && said.contains(why), "{code} {now}");
            let done = cluster.edit(change("batch", "train", Some(mark()))).await;
            assert!(told(done).0 != 0 && cluster.label() == "batch");
            // What bears no mark is known all the same.
            *lock_ignoring_poison(&cluster.node) =
                lock_ignoring_poison(&Cluster::new(&json!({})).node).clone();
            let (code, now) = cluster.read().await;
            assert_eq!((code, now), (0, json!({ "value": "batch" })));
        }
    }
}
