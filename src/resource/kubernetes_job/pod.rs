//! A pod of a job, as `KubernetesRead::JobPods` tells it.

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
    pub ended: Option<Ended>,
    /// What it asks of extended resources, all its containers together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub asks: BTreeMap<String, u64>,
}

/// How a pod ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// The exit code of a container; nothing where the pod itself was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i64>,
    /// `OOMKilled`, `Error`, `Evicted`.
    pub reason: String,
    /// In words.
    pub message: String,
}

/// Labels that say what a pod is in its job: kubeflow/training-operator, pkg/apis/kubeflow.org/v1/common_types.go (`ReplicaTypeLabel`,
/// `JobRoleLabel`), kubeflow/mpi-operator, pkg/apis/kubeflow/v2beta1/constants.go, ray-project/kuberay, ray-operator/controllers/ray/utils/constant.go.
const ROLES: [&str; 3] = ["training.kubeflow.org/replica-type", "training.kubeflow.org/job-role", "ray.io/node-type"];

impl JobPod {
    /// Of the pod as the API server has it.
    pub fn of(pod: &Value) -> Self {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let list = |pointer: &str| pod.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let condition =
            |kind: &str, status: &str| list("/status/conditions").iter().find(|one| one["type"] == kind && one["status"] == status);
        let statuses = || list("/status/initContainerStatuses").iter().chain(list("/status/containerStatuses"));
        let said = |of: &Value| [field(of, "reason"), field(of, "message")].join(" ").trim().to_owned();
        let is_why = |waiting: &&Value| !matches!(field(waiting, "reason"), "PodInitializing" | "ContainerCreating" | "");
        let labels = pod.pointer("/metadata/labels");
        JobPod {
            name: text("/metadata/name"),
            uid: text("/metadata/uid"),
            node: Some(text("/spec/nodeName")).filter(|node| !node.is_empty()),
            address: text("/status/podIP").parse().ok(),
            phase: text("/status/phase"),
            ready: condition("Ready", "True").is_some(),
            role: ROLES.iter().find_map(|label| Some(labels?.get(*label)?.as_str()?.to_lowercase())),
            container: list("/spec/containers").first().map(|one| field(one, "name").to_owned()).unwrap_or_default(),
            restarts: statuses().filter_map(|one| one.get("restartCount")?.as_u64()).sum(),
            waits: statuses().filter_map(|one| one.pointer("/state/waiting")).find(is_why).map(said),
            unscheduled: condition("PodScheduled", "False").map(said),
            ended: ended(pod, statuses()),
            asks: asks(pod),
        }
    }
}

fn field<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A pod that was evicted says so itself; else its containers do, one that failed before one that did not.
fn ended<'v>(pod: &'v Value, statuses: impl Iterator<Item = &'v Value>) -> Option<Ended> {
    let status = pod.get("status")?;
    let reason = field(status, "reason");
    if !reason.is_empty() && field(status, "phase") == "Failed" {
        return Some(Ended { code: None, reason: reason.to_owned(), message: field(status, "message").to_owned() });
    }
    let terminated = statuses.filter_map(|one| one.pointer("/state/terminated"));
    let ended = terminated.map(|one| Ended {
        code: one.get("exitCode").and_then(Value::as_i64),
        reason: field(one, "reason").to_owned(),
        message: field(one, "message").to_owned(),
    });
    let is_through = matches!(field(status, "phase"), "Succeeded" | "Failed");
    ended.max_by_key(|ended| ended.code != Some(0)).filter(|_| is_through)
}

/// What the containers of a pod ask of extended resources, whose requests are their limits. Init containers run before the others, so that of
/// each resource the larger counts (kubernetes.io/docs/concepts/workloads/pods/init-containers, Resource sharing within containers).
pub fn asks(pod: &Value) -> BTreeMap<String, u64> {
    let of = |pointer: &str, join: fn(u64, u64) -> u64| {
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        for container in pod.pointer(pointer).and_then(Value::as_array).into_iter().flatten() {
            let resources =
                ["/resources/limits", "/resources/requests"].into_iter().filter_map(|at| container.pointer(at)?.as_object()).flatten();
            let mut own: BTreeMap<&String, u64> = BTreeMap::new();
            for (name, value) in resources.filter(|(name, _)| name.contains('/')) {
                own.entry(name).or_insert_with(|| amount(value));
            }
            for (name, value) in own {
                let sum = all.entry(name.clone()).or_default();
                *sum = join(*sum, value);
            }
        }
        all
    };
    let mut asks = of("/spec/containers", u64::saturating_add);
    for (name, value) in of("/spec/initContainers", u64::max) {
        let all = asks.entry(name).or_default();
        *all = (*all).max(value);
    }
    asks.retain(|_, amount| *amount > 0);
    asks
}

/// Extended resources are whole numbers, which the API server may write with a suffix (`1k`).
pub fn amount(value: &Value) -> u64 {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match &text[digits.len()..] {
        "k" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => 1,
    };
    digits.parse::<u64>().unwrap_or_default().saturating_mul(factor)
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
    fn how_it_ended_is_that_of_the_container_that_failed_or_of_the_pod() {
        let of = |status: Value| JobPod::of(&json!({ "status": status })).ended;
        let exit = |code: i64, reason: &str| json!({ "state": { "terminated": { "exitCode": code, "reason": reason } } });
        let both = json!([exit(0, "Completed"), exit(137, "OOMKilled")]);
        assert_eq!(of(json!({ "phase": "Failed", "containerStatuses": both })).unwrap().reason, "OOMKilled");
        assert_eq!(of(json!({ "phase": "Running", "containerStatuses": [exit(1, "Error")] })), None);
        let evicted = of(json!({ "phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory." })).unwrap();
        assert_eq!((evicted.code, evicted.reason.as_str()), (None, "Evicted"));
        let waits = |reason: &str| {
            JobPod::of(&json!({ "status": { "containerStatuses": [{ "state": { "waiting": { "reason": reason } } }] } })).waits
        };
        assert_eq!((waits("ContainerCreating"), waits("ErrImagePull").as_deref()), (None, Some("ErrImagePull")));
    }
}
