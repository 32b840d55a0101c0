//! A pod of a job, as `KubernetesRead::JobPods` tells it.

use crate::json_fields::list_items_at;
use crate::json_fields::read_text_at;
use crate::kubernetes_object::conditions::find_condition;
use railwright_base::text::one_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// One pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobPod {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// The node that it is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// `Pending`, `Running`, `Succeeded`, `Failed`, `Unknown`.
    pub phase: String,
    /// All its containers are ready.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,
    /// What it is in its job: `launcher`, `master`, `worker`, `head`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The first of its containers, whose log is the pod's.
    pub container: String,
    /// How often its containers were started again.
    #[serde(default)]
    pub restarts: u64,
    /// Why a container does not start yet, in the kubelet's words: `ErrImagePull ...`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// Why it is on no node yet, in the scheduler's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unscheduled: Option<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<PodTermination>,
    /// What it asks of extended resources, all its containers together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asks: BTreeMap<String, u64>,
    /// The objects that it belongs to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<PodOwner>,
}

/// An object that a pod belongs to (`metadata.ownerReferences`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodOwner {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

impl PodOwner {
    fn of(owner: &Value) -> Self {
        PodOwner {
            kind: show_text_at(owner, "/kind"),
            name: show_text_at(owner, "/name"),
            uid: show_text_at(owner, "/uid"),
        }
    }
}

/// How a pod ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodTermination {
    /// The exit code of a container; nothing where the pod itself was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// `OOMKilled`, `Error`, `Evicted`.
    pub reason: String,
    /// In words.
    pub message: String,
}

/// No name of Kubernetes is longer, in characters.
const NAME_LIMIT: usize = 317;
/// What is kept of a reason in words, in characters.
const TEXT_LIMIT: usize = 600;

/// Labels that say what a pod is in its job: kubeflow/training-operator,
/// pkg/apis/kubeflow.org/v1/common_types.go (`ReplicaTypeLabel`, `JobRoleLabel`),
/// kubeflow/mpi-operator, pkg/apis/kubeflow/v2beta1/constants.go, ray-project/kuberay,
/// ray-operator/controllers/ray/utils/constant.go.
const ROLES: [&str; 3] = [
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/job-role",
    "ray.io/node-type",
];

impl JobPod {
    /// Of the pod as the API server has it.
    pub fn of(pod: &Value) -> Self {
        let statuses = list_items_at(pod, "/status/initContainerStatuses")
            .iter()
            .chain(list_items_at(pod, "/status/containerStatuses"));
        JobPod {
            name: show_text_at(pod, "/metadata/name"),
            uid: show_text_at(pod, "/metadata/uid"),
            node: Some(show_text_at(pod, "/spec/nodeName")).filter(|node| !node.is_empty()),
            address: show_text_at(pod, "/status/podIP").parse().ok(),
            phase: show_text_at(pod, "/status/phase"),
            ready: find_condition(pod, "Ready", ("status", "True")).is_some(),
            role: find_role(pod),
            container: list_items_at(pod, "/spec/containers")
                .first()
                .map(|one| one_line(extract_text_field(one, "name"), NAME_LIMIT))
                .unwrap_or_default(),
            restarts: statuses
                .clone()
                .filter_map(|one| one.get("restartCount")?.as_u64())
                .sum(),
            waits: statuses
                .clone()
                .filter_map(|one| one.pointer("/state/waiting"))
                .find(|waiting| is_stuck(waiting))
                .map(describe_reason),
            unscheduled: find_condition(pod, "PodScheduled", ("status", "False"))
                .map(describe_reason),
            ended: find_pod_termination(pod, statuses),
            asks: compute_extended_requests(pod),
            owners: list_items_at(pod, "/metadata/ownerReferences")
                .iter()
                .map(PodOwner::of)
                .collect(),
        }
    }

    /// Whether it belongs to the object of this UID itself.
    pub fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner.uid == uid)
    }
}

/// Whoever reads a pod shows it: nothing of it acts on a terminal.
fn show_text_at(pod: &Value, pointer: &str) -> String {
    let text = read_text_at(pod, pointer).unwrap_or_default();
    one_line(text, NAME_LIMIT)
}

fn find_role(pod: &Value) -> Option<String> {
    let labels = pod.pointer("/metadata/labels")?;
    let role = ROLES
        .iter()
        .find_map(|label| labels.get(*label)?.as_str())?;
    Some(one_line(&role.to_lowercase(), NAME_LIMIT))
}

/// Whether a container waits for more than its turn.
fn is_stuck(waiting: &Value) -> bool {
    !matches!(
        extract_text_field(waiting, "reason"),
        "PodInitializing" | "ContainerCreating" | ""
    )
}

/// Reason and message of a state or a condition, in one line.
fn describe_reason(of: &Value) -> String {
    let words = [
        extract_text_field(of, "reason"),
        extract_text_field(of, "message"),
    ];
    one_line(&words.join(" "), TEXT_LIMIT)
}

fn extract_text_field<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A pod that was evicted says so itself; else its containers do, one that failed before one that
/// did not.
fn find_pod_termination<'v>(
    pod: &'v Value,
    statuses: impl Iterator<Item = &'v Value>,
) -> Option<PodTermination> {
    let status = pod.get("status")?;
    let reason = extract_text_field(status, "reason");
    if !reason.is_empty() && extract_text_field(status, "phase") == "Failed" {
        let message = one_line(extract_text_field(status, "message"), TEXT_LIMIT);
        return Some(PodTermination {
            code: None,
            reason: one_line(reason, NAME_LIMIT),
            message,
        });
    }
    let terminated = statuses.filter_map(|one| one.pointer("/state/terminated"));
    let ended = terminated.map(|one| PodTermination {
        code: one.get("exitCode").and_then(Value::as_i64),
        reason: one_line(extract_text_field(one, "reason"), NAME_LIMIT),
        message: one_line(extract_text_field(one, "message"), TEXT_LIMIT),
    });
    let is_through = matches!(extract_text_field(status, "phase"), "Succeeded" | "Failed");
    ended
        .max_by_key(|ended| ended.code != Some(0))
        .filter(|_| is_through)
}

/// What the containers of a pod ask of extended resources, whose requests are their limits. Init
/// containers run before the others, so that of each resource the larger counts
/// (kubernetes.io/docs/concepts/workloads/pods/init-containers, Resource sharing within
/// containers).
pub fn compute_extended_requests(pod: &Value) -> BTreeMap<String, u64> {
    let mut asks: BTreeMap<String, u64> = BTreeMap::new();
    for container in list_items_at(pod, "/spec/containers") {
        for (name, value) in compute_container_requests(container) {
            let sum = asks.entry(one_line(name, NAME_LIMIT)).or_default();
            *sum = sum.saturating_add(value);
        }
    }
    for container in list_items_at(pod, "/spec/initContainers") {
        for (name, value) in compute_container_requests(container) {
            let most = asks.entry(one_line(name, NAME_LIMIT)).or_default();
            *most = value.max(*most);
        }
    }
    asks.retain(|_, amount| *amount > 0);
    asks
}

fn compute_container_requests(container: &Value) -> BTreeMap<&str, u64> {
    let mut requests = BTreeMap::new();
    for pointer in ["/resources/limits", "/resources/requests"] {
        let resources = container.pointer(pointer).and_then(Value::as_object);
        for (name, value) in resources.into_iter().flatten() {
            if name.contains('/') {
                requests
                    .entry(name.as_str())
                    .or_insert_with(|| parse_extended_quantity(value));
            }
        }
    }
    requests
}

/// Extended resources are whole numbers, which the API server may write with a suffix (`1k`).
pub fn parse_extended_quantity(value: &Value) -> u64 {
    let text = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match &text[digits.len()..] {
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => 1,
    };
    digits
        .parse::<u64>()
        .unwrap_or_default()
        .saturating_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pod_is_told_with_what_keeps_it() {
        let pod = JobPod::of(&json!({
            "metadata": { "name": "nccl-worker-0", "uid": "u", "labels": { "training.kubeflow.org/job-role": "Worker" } },
            "spec": {
                "containers": [
                    { "name": "worker", "resources": { "limits": { "nvidia.com/gpu": "8", "aliyun/erdma": 1, "cpu": "4" }, "requests": { "nvidia.com/gpu": "8" } } },
                    { "name": "side", "resources": { "requests": { "aliyun/erdma": "1k" } } },
                ],
                "initContainers": [{ "name": "first", "resources": { "limits": { "nvidia.com/gpu": "9" } } }],
            },
            "status": { "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/2 nodes are available: 2 Insufficient aliyun/erdma." }] },
        }));
        insta::assert_snapshot!(serde_json::to_string(&pod).unwrap(), @r#"{"name":"nccl-worker-0","uid":"u","phase":"Pending","role":"worker","container":"worker","restarts":0,"unscheduled":"Unschedulable 0/2 nodes are available: 2 Insufficient aliyun/erdma.","asks":{"aliyun/erdma":1001,"nvidia.com/gpu":9}}"#);
    }

    #[test]
    fn nothing_of_a_pod_acts_on_a_terminal() {
        let bad = "a\u{1b}[31m\u{7}\u{9b}2J\u{202e}b\r\nfake line";
        let state =
            json!({ "name": bad, "state": { "waiting": { "reason": bad, "message": bad } } });
        let pod = JobPod::of(&json!({
            "metadata": { "name": bad, "uid": bad, "labels": { "ray.io/node-type": bad } },
            "spec": { "nodeName": bad, "containers": [{ "name": bad, "resources": { "limits": { (format!("x/{bad}")): "1" } } }] },
            "status": { "phase": bad, "containerStatuses": [state], "conditions": [{ "type": "PodScheduled", "status": "False", "reason": bad }] },
        }));
        let failed =
            JobPod::of(&json!({ "status": { "phase": "Failed", "reason": bad, "message": bad } }));
        for text in [
            serde_json::to_string(&pod).unwrap(),
            serde_json::to_string(&failed).unwrap(),
        ] {
            let acts = |c: char| c.is_control() || c == '\u{202e}';
            assert!(
                text.contains("fake line")
                    && !text.contains(acts)
                    && !text.contains("\\u00")
                    && !text.contains("\\n"),
                "{text}"
            );
        }
    }

    #[test]
    fn how_it_ended_is_that_of_the_container_that_failed_or_of_the_pod() {
        let of = |status: Value| JobPod::of(&json!({ "status": status })).ended;
        let exit = |code: i64, reason: &str| json!({ "state": { "terminated": { "exitCode": code, "reason": reason } } });
        let both = json!([exit(0, "Completed"), exit(137, "OOMKilled")]);
        assert_eq!(
            of(json!({ "phase": "Failed", "containerStatuses": both }))
                .unwrap()
                .reason,
            "OOMKilled"
        );
        assert_eq!(
            of(json!({ "phase": "Running", "containerStatuses": [exit(1, "Error")] })),
            None
        );
        let evicted = of(json!({ "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory." })).unwrap();
        assert_eq!((evicted.code, evicted.reason.as_str()), (None, "Evicted"));
        let waits = |reason: &str| {
            JobPod::of(&json!({ "status": { "containerStatuses": [{ "state": { "waiting": { "reason": reason } } }] } })).waits
        };
        assert_eq!(
            (waits("ContainerCreating"), waits("ErrImagePull").as_deref()),
            (None, Some("ErrImagePull"))
        );
    }
}
