//! Nodes and the pods on them, as far as emptying a node goes by them.

use super::answer::{self, new_exit_answer};
use super::fault::KubernetesRequestError;
use super::kinds::{self, ApiResource};
use super::lists::{ObjectSelection, find_json_text, list_all_pages};
use super::mark_key::read_mark_key;
use super::server::{KubernetesRequest, KubernetesServer};
use super::silence::SilenceWatch;
use railwright_resource::json_fields::list_items_at;
use railwright_resource::kubernetes_job::JobPod;
use railwright_resource::kubernetes_object::node_pods::PodNow;
use railwright_resource::kubernetes_object::nodes::NodeNow;
use railwright_resource::kubernetes_object::request::{KubernetesRead, ObjectName};
use railwright_resource::node_field::mark::MarkKey;
use railwright_resource::{Read, ReadResult, node_field};
use serde_json::{Value, json};

/// The annotation of a pod that the kubelet has from a file of its own
/// (kubernetes.io/docs/reference/labels-annotations-taints). Anybody may write it on any pod; the
/// kubelet also has the node own it (kubernetes/kubernetes: pkg/kubelet/pod/mirror_client.go).
const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) fn new_node_reference(name: &str) -> (ObjectName, ApiResource) {
    (
        node_field::build_node_object_name(name),
        ApiResource {
            plural: "nodes".to_owned(),
            namespaced: false,
        },
    )
}

/// A pod; without a namespace those of all.
pub(super) fn new_pod_reference(namespace: Option<&str>, name: &str) -> (ObjectName, ApiResource) {
    let resource = ApiResource {
        plural: "pods".to_owned(),
        namespaced: namespace.is_some(),
    };
    let namespace = namespace.map(str::to_owned);
    (
        ObjectName {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            namespace,
            name: name.to_owned(),
        },
        resource,
    )
}

/// True for a question that the list of all nodes answers.
pub fn is_of_all(read: &Read) -> bool {
    matches!(
        read,
        Read::Kubernetes(KubernetesRead::Nodes | KubernetesRead::NodeField(_))
    )
}

/// The answers to these questions about all nodes, each by the nodes' names: however many they are,
/// the nodes are listed once.
pub async fn of_all(
    server: &KubernetesServer,
    reads: &[&Read],
) -> Result<Vec<ReadResult>, KubernetesRequestError> {
    if reads.is_empty() {
        return Ok(Vec::new());
    }
    let key = read_mark_key(server, reads).await?;
    let (name, kind) = new_node_reference("");
    let listed = list_all_pages(server, &name, &kind, ObjectSelection::All, |node| {
        let values: Vec<Value> = reads
            .iter()
            .map(|read| read_node(read, node, &key))
            .collect();
        Some((find_json_text(node, "/metadata/name").to_owned(), values))
    })
    .await?;
    let nodes = match listed {
        Ok(nodes) => nodes,
        Err(answer) => return Ok(vec![answer; reads.len()]),
    };
    let mut answers = vec![serde_json::Map::new(); reads.len()];
    for (name, values) in nodes {
        for (answer, value) in answers.iter_mut().zip(values) {
            answer.insert(name.clone(), value);
        }
    }
    Ok(answers
        .into_iter()
        .map(|answer| new_exit_answer(0, Value::Object(answer).to_string()))
        .collect())
}

/// What this question has of a node.
fn read_node(read: &Read, node: &Value, key: &MarkKey) -> Value {
    let value = match read {
        Read::Kubernetes(KubernetesRead::NodeField(field)) => {
            serde_json::to_value(field.of(node, key))
        }
        _ => serde_json::to_value(NodeNow::of(node)),
    };
    value.unwrap_or_default()
}

/// The pods of a node. When one was told to end, its node is asked for too: where the kubelet is
/// silent nobody says that it is gone.
pub(super) async fn pods_on(
    server: &KubernetesServer,
    silence: &SilenceWatch,
    node: &str,
) -> Result<ReadResult, KubernetesRequestError> {
    let (name, kind) = new_pod_reference(None, "");
    let selection = ObjectSelection::OnNode(node);
    let listed = list_all_pages(server, &name, &kind, selection, |pod| {
        let now = pod_now(pod);
        let is_time_over = now.ends && silence.is_time_over(pod);
        Some((now, is_time_over))
    })
    .await?;
    let pods = match listed {
        Err(answer) => return Ok(answer),
        Ok(pods) => pods,
    };
    let is_silent = pods.iter().any(|(pod, _)| pod.ends)
        && silence.is_silent(node, read_node_object(server, node).await?.as_ref());
    let pods: Vec<PodNow> = pods
        .into_iter()
        .map(|(pod, is_time_over)| PodNow {
            lost: is_silent && is_time_over,
            ..pod
        })
        .collect();
    Ok(new_exit_answer(0, json!(pods).to_string()))
}

/// The node of this name; nothing where the server does not say.
async fn read_node_object(
    server: &KubernetesServer,
    name: &str,
) -> Result<Option<Value>, KubernetesRequestError> {
    let (object, resource) = new_node_reference(name);
    let Ok(path) = kinds::build_object_path(&object, &resource) else {
        return Ok(None);
    };
    let reply = server.ask(&KubernetesRequest::get(path)).await?;
    Ok(reply
        .json()
        .filter(|node| reply.status == 200 && !reply.cut && answer::is_of(&object, node)))
}

fn pod_now(pod: &Value) -> PodNow {
    let controller = list_items_at(pod, "/metadata/ownerReferences")
        .iter()
        .find(|owner| owner["controller"] == true);
    let is_of_node = controller.is_some_and(|owner| {
        (
            find_json_text(owner, "/kind"),
            find_json_text(owner, "/apiVersion"),
        ) == ("Node", "v1")
    });
    let mut local_data = Vec::new();
    for volume in list_items_at(pod, "/spec/volumes") {
        let is_local = volume.get("emptyDir").is_some();
        if is_local && find_json_text(volume, "/emptyDir/medium") != "Memory" {
            local_data.push(find_json_text(volume, "/name").to_owned());
        }
    }
    PodNow {
        namespace: find_json_text(pod, "/metadata/namespace").to_owned(),
        name: find_json_text(pod, "/metadata/name").to_owned(),
        uid: find_json_text(pod, "/metadata/uid").to_owned(),
        owner: controller.map(owner_of),
        mirror: is_of_node
            && pod
                .pointer("/metadata/annotations")
                .is_some_and(|all| all.get(MIRROR).is_some()),
        finished: matches!(find_json_text(pod, "/status/phase"), "Succeeded" | "Failed"),
        ends: pod.pointer("/metadata/deletionTimestamp").is_some(),
        lost: false,
        local_data,
        devices: JobPod::of(pod).asks.into_keys().collect(),
    }
}

/// Kind and name of a controller.
fn owner_of(owner: &Value) -> String {
    let (kind, group) = (
        find_json_text(owner, "/kind"),
        find_json_text(owner, "/apiVersion")
            .split_once('/')
            .map_or("", |(group, _)| group),
    );
    let group = if kind == "DaemonSet" && group != "apps" {
        format!(".{group}")
    } else {
        String::new()
    };
    format!("{kind}{group}/{}", find_json_text(owner, "/name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostLink as _;
    use crate::kubernetes::KubernetesLink;
    use crate::kubernetes::tests::link;
    use railwright_base::Reason;
    use railwright_resource::kubernetes_object::nodes::CORDONED;
    use railwright_resource::kubernetes_object::request::NOT_SAID;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// No kind is unknown either because the list of kinds is something else.
    #[tokio::test]
    async fn an_answer_of_another_shape_is_no_empty_node() {
        let pods = Read::Kubernetes(KubernetesRead::PodsOn("gpu-1".to_owned()));
        let many = format!("{{\"items\":[{}1]}}", "[],".repeat(2_000_000));
        let one = "{\"metadata\":{\"name\":\"a\"}}";
        let far_more = format!(
            "{{\"kind\":\"PodList\",\"items\":[{}{one}]}}",
            format!("{one},").repeat(100_000)
        );
        let bodies = [
            "{}",
            "[1,2]",
            "null",
            "{\"items\":null}",
            "{\"items\":{}}",
            "{\"items\":[1,2]}",
            "{\"items\":[{}]}",
            "{\"kind\":\"Status\"}",
            "{\"items\":[]}",
            "{\"kind\":\"Status\",\"status\":\"Failure\",\"items\":[]}",
            "{\"kind\":\"SecretList\",\"items\":[]}",
            "{\"kind\":\"PodList\",\"items\":[],\"metadata\":{\"continue\":7}}",
            "{\"kind\":\"PodList\",\"items\":[],\"metadata\":{\"remainingItemCount\":2}}",
            "{\"kind\":\"NodeList\",\"items\":[],\"metadata\":{\"continue\":{}}}",
            &many,
            &far_more,
        ];
        for body in bodies.map(str::to_owned) {
            let (link, _) = link(move |_, _, _| (200, Vec::new(), body.clone()));
            let nodes = Read::Kubernetes(KubernetesRead::Nodes);
            let object = Read::Kubernetes(KubernetesRead::Object(new_node_reference("gpu-1").0));
            let answers = link
                .read(&[pods.clone(), nodes.clone(), object.clone()])
                .await
                .unwrap();
            for read in [&pods, &nodes, &object] {
                assert_eq!(
                    answers.output(read).unwrap().0,
                    NOT_SAID,
                    "{read:?}: {:?}",
                    answers.get(read)
                );
            }
        }
    }

    #[tokio::test]
    async fn nodes_and_their_pods_are_told_as_far_as_emptying_goes_by_them() {
        let conditions = json!([{ "type": "Ready", "status": "True" }]);
        let node = json!({
            "metadata": { "name": "gpu-1", "annotations": { CORDONED: "{}" } },
            "spec": { "unschedulable": true },
            "status": { "conditions": conditions, "allocatable": { "cpu": "64", "nvidia.com/gpu": "8" }, "nodeInfo": { "machineID": "0123456789abcdef0123456789abcdef" } },
        });
        let volumes = json!([{ "name": "cache", "emptyDir": {} }, { "name": "shm", "emptyDir": { "medium": "Memory" } }]);
        let owners = json!([{ "kind": "Other", "name": "x" }, { "kind": "Job", "name": "train", "controller": true }]);
        let pod = json!({
            "metadata": { "name": "train-0", "namespace": "ml", "uid": "u", "ownerReferences": owners, "deletionTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "nodeName": "gpu-1", "volumes": volumes },
            "status": { "phase": "Running" },
        });
        let of_node =
            json!([{ "apiVersion": "v1", "kind": "Node", "name": "gpu-1", "controller": true }]);
        let metadata = json!({ "name": "proxy", "namespace": "kube-system", "uid": "m", "annotations": { MIRROR: "x" }, "ownerReferences": of_node });
        let containers =
            json!([{ "name": "main", "resources": { "limits": { "cpu": "1", "rdma/hca": "1" } } }]);
        let mirror = json!({ "metadata": metadata, "spec": { "nodeName": "gpu-1", "containers": containers }, "status": { "phase": "Failed" } });
        let (link, asked) = link(move |_, path, _| {
            let (kind, items) = if path.starts_with("/api/v1/nodes") {
                ("NodeList", json!([node]))
            } else {
                ("PodList", json!([pod, mirror]))
            };
            (
                200,
                Vec::new(),
                json!({ "kind": kind, "items": items }).to_string(),
            )
        });
        let reads = [
            Read::Kubernetes(KubernetesRead::Nodes),
            Read::Kubernetes(KubernetesRead::PodsOn("gpu-1".to_owned())),
        ];
        let answers = link.read(&reads).await.unwrap();
        insta::assert_snapshot!(answers.output(&reads[0]).unwrap().1, @r#"{"gpu-1":{"cordoned":"{}","gives":{"nvidia.com/gpu":"8"},"machine":"0123456789abcdef0123456789abcdef","ready":true,"schedulable":false}}"#);
        insta::assert_snapshot!(answers.output(&reads[1]).unwrap().1, @r#"[{"ends":true,"local_data":["cache"],"name":"train-0","namespace":"ml","owner":"Job/train","uid":"u"},{"devices":["rdma/hca"],"finished":true,"mirror":true,"name":"proxy","namespace":"kube-system","owner":"Node/gpu-1","uid":"m"}]"#);
        assert_eq!(
            asked.lines()[1],
            "GET /api/v1/pods?limit=500&fieldSelector=spec.nodeName%3Dgpu-1"
        );
    }

    /// What these pods, which the server says are of gpu-1, come to.
    async fn pods_told(pods: Value) -> Result<Vec<PodNow>, Reason> {
        let list = json!({ "kind": "PodList", "items": pods }).to_string();
        let (link, _) = link(move |_, _, _| (200, Vec::new(), list.clone()));
        read_pods(&link).await
    }

    async fn read_pods(link: &KubernetesLink) -> Result<Vec<PodNow>, Reason> {
        let read = Read::Kubernetes(KubernetesRead::PodsOn("gpu-1".to_owned()));
        let answers = link.read(std::slice::from_ref(&read)).await.unwrap();
        match answers.output(&read).unwrap() {
            (0, out) => Ok(serde_json::from_str(out).unwrap()),
            (_, why) => Err(why.to_owned().into()),
        }
    }

    /// What a look sees: how Ready is, since when, and the seconds that the pod has to end.
    type Look = (&'static str, &'static str, Value);

    /// Whether the pod counts as lost at each of these looks, each so many seconds after the one
    /// before, on a server whose clock is hours ahead.
    async fn lost_at(looks: &[(u64, Look)]) -> Vec<bool> {
        let now: Arc<Mutex<Look>> = Arc::default();
        let seen = now.clone();
        let (link, _) = link(move |_, path, _| {
            let (status, since, grace) = seen.lock().unwrap().clone();
            let body = if path.starts_with("/api/v1/nodes/") {
                let ready =
                    json!({ "type": "Ready", "status": status, "lastTransitionTime": since });
                json!({ "kind": "Node", "metadata": { "name": "gpu-1" }, "status": { "conditions": [ready] } })
            } else {
                let metadata = json!({ "name": "train-0", "namespace": "ml", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace });
                json!({ "kind": "PodList", "items": [{ "metadata": metadata, "spec": { "nodeName": "gpu-1" } }] })
            };
            let date = "Thu, 01 Jan 2026 09:00:00 GMT".to_owned();
            (200, vec![("date", date)], body.to_string())
        });
        let mut lost = Vec::new();
        for (seconds, look) in looks {
            tokio::time::advance(Duration::from_secs(*seconds)).await;
            *now.lock().unwrap() = look.clone();
            let pods = read_pods(&link).await.unwrap();
            assert!(pods[0].ends);
            lost.push(pods[0].lost);
        }
        lost
    }

    /// A kubelet that says that it is not ready is no silent one, and one may be silent for a
    /// moment. The dates of the server say nothing.
    #[tokio::test(start_paused = true)]
    async fn a_pod_that_ends_is_lost_only_with_a_kubelet_that_is_silent_for_long() {
        let of = |status, grace: u64| (status, "2026-01-01T00:00:00Z", json!(grace));
        let silent = of("Unknown", 30);
        for (looks, lost) in [
            (
                vec![
                    (0, silent.clone()),
                    (59, silent.clone()),
                    (1, silent.clone()),
                ],
                [false, false, true].as_slice(),
            ),
            (
                vec![(0, of("False", 30)), (900, of("False", 30))],
                &[false, false],
            ),
            (
                vec![(0, of("True", 30)), (900, of("True", 30))],
                &[false, false],
            ),
            // It spoke in between: at a look, or between two.
            (
                vec![
                    (0, silent.clone()),
                    (59, of("True", 30)),
                    (1, silent.clone()),
                    (60, silent.clone()),
                ],
                &[false, false, false, true],
            ),
            (
                vec![
                    (0, silent.clone()),
                    (60, ("Unknown", "2026-01-01T00:00:59Z", json!(30))),
                ],
                &[false, false],
            ),
            (
                vec![
                    (0, of("Unknown", 1800)),
                    (1799, of("Unknown", 1800)),
                    (1, of("Unknown", 1800)),
                ],
                &[false, false, true],
            ),
            // Somebody shortens the time.
            (
                vec![
                    (0, of("Unknown", 1800)),
                    (60, silent.clone()),
                    (30, silent.clone()),
                ],
                &[false, false, true],
            ),
            // Nobody says since when, or until when.
            (
                vec![
                    (0, ("Unknown", "2026-01-01T00:00:00Z", Value::Null)),
                    (900, ("Unknown", "2026-01-01T00:00:00Z", Value::Null)),
                ],
                &[false, false],
            ),
            (
                vec![
                    (0, ("Unknown", "2026-01-01T00:00:00Z", json!(u64::MAX))),
                    (900, silent.clone()),
                ],
                &[false, false],
            ),
        ] {
            assert_eq!(lost_at(&looks).await, lost, "{looks:?}");
        }
    }

    /// `kubernetes.io/config.mirror` may be written on any pod, and any API group may have a
    /// DaemonSet.
    #[tokio::test]
    async fn a_pod_is_of_the_node_itself_only_by_its_owner() {
        let pod = |annotation: Value, owner: Value| {
            let metadata = json!({ "name": "a", "namespace": "ml", "uid": "u", "annotations": annotation, "ownerReferences": [owner] });
            json!([{ "metadata": metadata, "spec": { "nodeName": "gpu-1" } }])
        };
        let owner = |api_version: &str, kind: &str| json!({ "apiVersion": api_version, "kind": kind, "name": "x", "controller": true });
        for (annotation, owner, stays) in [
            (json!({ MIRROR: "x" }), owner("v1", "Node"), true),
            (json!({ MIRROR: "x" }), owner("batch/v1", "Job"), false),
            (json!({}), owner("v1", "Node"), false),
            (json!({}), owner("apps/v1", "DaemonSet"), true),
            (json!({}), owner("example.org/v1", "DaemonSet"), false),
        ] {
            let told = pods_told(pod(annotation, owner.clone())).await.unwrap();
            assert_eq!(
                told[0].is_exempt_from_drain(),
                stays,
                "{owner}: {}",
                told[0].shown()
            );
        }
    }

    #[tokio::test]
    async fn objects_that_were_not_asked_for_make_a_list_none() {
        let of = |node: &str| json!([{ "metadata": { "name": "train-0", "namespace": "ml", "uid": "u" }, "spec": { "nodeName": node } }]);
        assert_eq!(pods_told(of("gpu-1")).await.unwrap().len(), 1);
        let said = pods_told(of("gpu-2")).await.unwrap_err();
        assert_eq!(
            said,
            "what came is no list of pods: train-0 is among them, which was not asked for".into()
        );
        let (link, _) = link(|_, _, _| {
            let pod = |name: &str, labels: Value| json!({ "metadata": { "name": name, "labels": labels } });
            let pods = [
                pod("a", json!({ "job": "nccl", "role": "worker" })),
                pod("b", json!({ "job": "other", "role": "worker" })),
            ];
            (
                200,
                Vec::new(),
                json!({ "kind": "PodList", "items": pods }).to_string(),
            )
        });
        for (selector, code) in [
            ("role=worker", 0),
            ("role=worker,job=nccl", NOT_SAID),
            ("job=", NOT_SAID),
        ] {
            let read = Read::Kubernetes(KubernetesRead::JobPods {
                namespace: "ml".to_owned(),
                selector: selector.to_owned(),
            });
            assert_eq!(
                link.read(std::slice::from_ref(&read))
                    .await
                    .unwrap()
                    .output(&read)
                    .unwrap()
                    .0,
                code,
                "{selector}"
            );
        }
    }
}
