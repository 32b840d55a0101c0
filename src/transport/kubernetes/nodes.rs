//! Nodes and the pods on them, as far as emptying a node goes by them.

use super::answer::{self, new_exit_answer};
use super::fault::KubernetesRequestError;
use super::kinds::{self, ApiResource};
use super::lists::{ObjectSelection, find_json_text, list_all_pages};
use super::server::{KubernetesRequest, KubernetesServer};
use jiff::Timestamp;
use railwright_resource::json_fields::list_items_at;
use railwright_resource::kubernetes_job::JobPod;
use railwright_resource::kubernetes_object::conditions::find_condition;
use railwright_resource::kubernetes_object::nodes::{NodeNow, PodNow};
use railwright_resource::kubernetes_object::request::{KubernetesRead, ObjectName};
use railwright_resource::{Read, ReadResult, node_field};
use serde_json::{Value, json};

/// The annotation of a pod that the kubelet has from a file of its own
/// (kubernetes.io/docs/reference/labels-annotations-taints). Anybody may write it on any pod; the
/// kubelet also has the node own it (kubernetes/kubernetes: pkg/kubelet/pod/mirror_client.go).
const MIRROR: &str = "kubernetes.io/config.mirror";
/// A kubelet that has been silent for so long, in seconds, by the word of the cluster's own
/// controller, is not only away for a moment.
const SILENT_S: i64 = 60;

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
    let (name, kind) = new_node_reference("");
    let listed = list_all_pages(server, &name, &kind, ObjectSelection::All, |node| {
        let values: Vec<Value> = reads.iter().map(|read| read_node(read, node)).collect();
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
fn read_node(read: &Read, node: &Value) -> Value {
    let value = match read {
        Read::Kubernetes(KubernetesRead::NodeField(field)) => serde_json::to_value(field.of(node)),
        _ => serde_json::to_value(NodeNow::of(node)),
    };
    value.unwrap_or_default()
}

/// The pods of a node. When one was told to end, its node is asked for too: where the kubelet is
/// silent nobody says that it is gone.
pub async fn pods_on(
    server: &KubernetesServer,
    node: &str,
) -> Result<ReadResult, KubernetesRequestError> {
    let (name, kind) = new_pod_reference(None, "");
    let selection = ObjectSelection::OnNode(node);
    let mut pods = match list_all_pages(server, &name, &kind, selection, pod_with_end).await? {
        Err(answer) => return Ok(answer),
        Ok(pods) => pods,
    };
    let silent_at = if pods.iter().any(|(pod, _)| pod.ends) {
        silent_at(server, node).await?
    } else {
        None
    };
    for (pod, ends_at) in &mut pods {
        // The time by which it is to have ended
        // (kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta).
        pod.lost = match (*ends_at, silent_at) {
            (Some(ends_at), Some(now)) => ends_at < now,
            _ => false,
        };
    }
    let pods: Vec<PodNow> = pods.into_iter().map(|(pod, _)| pod).collect();
    Ok(new_exit_answer(0, json!(pods).to_string()))
}

/// A pod, with the time by which it is to have ended.
fn pod_with_end(pod: &Value) -> Option<(PodNow, Option<Timestamp>)> {
    let ends_at = parse_timestamp_at(pod, "/metadata/deletionTimestamp");
    Some((pod_now(pod), ends_at))
}

/// Now, by the server's clock, where the kubelet of a node has been silent for long. `Unknown` is
/// said of one that sends nothing any more; `False` is what a kubelet says itself
/// (kubernetes.io/docs/reference/node/node-status, "Conditions").
async fn silent_at(
    server: &KubernetesServer,
    name: &str,
) -> Result<Option<Timestamp>, KubernetesRequestError> {
    let (object, resource) = new_node_reference(name);
    let Ok(path) = kinds::build_object_path(&object, &resource) else {
        return Ok(None);
    };
    let reply = server.ask(&KubernetesRequest::get(path)).await?;
    let Some(node) = reply
        .json()
        .filter(|node| reply.status == 200 && !reply.cut && answer::is_of(&object, node))
    else {
        return Ok(None);
    };
    let unknown = find_condition(&node, "Ready", ("status", "Unknown"));
    let since = unknown.and_then(|unknown| parse_timestamp_at(unknown, "/lastTransitionTime"));
    Ok(match since {
        Some(since) if reply.now.as_second() - since.as_second() >= SILENT_S => Some(reply.now),
        _ => None,
    })
}

fn parse_timestamp_at(object: &Value, pointer: &str) -> Option<Timestamp> {
    find_json_text(object, pointer).parse().ok()
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
    use crate::kubernetes::tests::link;
    use railwright_base::Reason;
    use railwright_resource::kubernetes_object::nodes::CORDONED;
    use railwright_resource::kubernetes_object::request::NOT_SAID;

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

    /// What these pods, which the server says are of gpu-1, come to, with this Ready condition of
    /// the node at this time of the server.
    async fn pods_told(
        pods: Value,
        ready: Value,
        now: &'static str,
    ) -> Result<Vec<PodNow>, Reason> {
        let node = json!({ "kind": "Node", "metadata": { "name": "gpu-1" }, "status": { "conditions": [ready] } });
        let (link, _) = link(move |_, path, _| {
            let body = if path.starts_with("/api/v1/nodes/") {
                node.clone()
            } else {
                json!({ "kind": "PodList", "items": pods })
            };
            (200, vec![("date", now.to_owned())], body.to_string())
        });
        let read = Read::Kubernetes(KubernetesRead::PodsOn("gpu-1".to_owned()));
        let answers = link.read(std::slice::from_ref(&read)).await.unwrap();
        match answers.output(&read).unwrap() {
            (0, out) => Ok(serde_json::from_str(out).unwrap()),
            (_, why) => Err(why.to_owned().into()),
        }
    }

    const NOW: &str = "Thu, 01 Jan 2026 00:10:00 GMT";

    /// A kubelet that says that it is not ready is no silent one, and one may be silent for a
    /// moment.
    #[tokio::test]
    async fn a_pod_that_ends_is_lost_only_with_a_kubelet_that_is_silent_for_long() {
        let ready = |status: &str, since: &str| json!({ "type": "Ready", "status": status, "lastTransitionTime": since });
        let pod = |ends_at: &str| {
            let metadata = json!({ "name": "train-0", "namespace": "ml", "uid": "u", "deletionTimestamp": ends_at });
            json!([{ "metadata": metadata, "spec": { "nodeName": "gpu-1" } }])
        };
        for (ready, ends_at, lost) in [
            (
                ready("Unknown", "2026-01-01T00:09:00Z"),
                "2026-01-01T00:09:59Z",
                true,
            ),
            (
                ready("False", "2026-01-01T00:00:00Z"),
                "2026-01-01T00:09:59Z",
                false,
            ),
            (
                ready("True", "2026-01-01T00:00:00Z"),
                "2026-01-01T00:09:59Z",
                false,
            ),
            (
                ready("Unknown", "2026-01-01T00:09:30Z"),
                "2026-01-01T00:09:59Z",
                false,
            ),
            (
                ready("Unknown", "2026-01-01T00:00:00Z"),
                "2026-01-01T00:10:30Z",
                false,
            ),
            (
                ready("Unknown", "some time ago"),
                "2026-01-01T00:09:59Z",
                false,
            ),
            (json!({}), "2026-01-01T00:09:59Z", false),
        ] {
            let told = pods_told(pod(ends_at), ready.clone(), NOW).await.unwrap();
            assert_eq!(
                (told[0].ends, told[0].lost),
                (true, lost),
                "{ready} {ends_at}"
            );
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
            let told = pods_told(pod(annotation, owner.clone()), json!({}), NOW)
                .await
                .unwrap();
            assert_eq!(told[0].stays(), stays, "{owner}: {}", told[0].shown());
        }
    }

    #[tokio::test]
    async fn objects_that_were_not_asked_for_make_a_list_none() {
        let of = |node: &str| json!([{ "metadata": { "name": "train-0", "namespace": "ml", "uid": "u" }, "spec": { "nodeName": node } }]);
        assert_eq!(
            pods_told(of("gpu-1"), json!({}), NOW).await.unwrap().len(),
            1
        );
        let said = pods_told(of("gpu-2"), json!({}), NOW).await.unwrap_err();
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
