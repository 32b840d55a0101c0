//! Pods on a node, and which of them a drain leaves there.

use railwright_base::text::one_line;
use serde::{Deserialize, Serialize};

/// One pod of a node, as `KubernetesRead::PodsOn` tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodNow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID: another pod may have its name a moment later.
    pub uid: String,
    /// Kind and name of its controller, `Job/train`; nothing where none would make it anew.
    /// `DaemonSet` is that of Kubernetes itself, and one of another API group is written with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The kubelet has it from a file of its own: the API server cannot end it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mirror: bool,
    /// Its containers are through.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finished: bool,
    /// It is being deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends: bool,
    /// It is being deleted, its grace period is over, and its node's kubelet has been silent for
    /// long: nobody would say that it is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Volumes on the node's disk that go with it (`emptyDir`, other than in memory).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub local_data: Vec<String>,
    /// Devices of the node that it has, as extended resources: `rdma/hca`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
}

impl PodNow {
    /// Whether a node counts as empty with it: a DaemonSet's pod belongs to the node and would be
    /// back at once, a mirror pod is the kubelet's own, and one that is through uses nothing.
    /// `kubectl drain` leaves the first two as well.
    pub fn is_exempt_from_drain(&self) -> bool {
        self.mirror
            || self.finished
            || self
                .owner
                .as_ref()
                .is_some_and(|owner| owner.starts_with("DaemonSet/"))
    }

    /// Whether it has devices of the node though the node counts as empty with it: whatever
    /// disturbs the host takes them from it.
    pub fn keeps_devices(&self) -> bool {
        self.is_exempt_from_drain() && !self.finished && !self.devices.is_empty()
    }

    /// `ml/train-0 (Job train)`.
    pub fn shown(&self) -> String {
        let owner = self
            .owner
            .as_ref()
            .map(|owner| format!(" ({})", owner.replacen('/', " ", 1)))
            .unwrap_or_default();
        one_line(&format!("{}/{}{owner}", self.namespace, self.name), 200)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn pods_of_the_node_itself_are_exempt_from_a_drain() {
        let pod = |more: Value| {
            let mut pod = json!({ "namespace": "ml", "name": "train-0", "uid": "u" });
            pod.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            serde_json::from_value::<PodNow>(pod).unwrap()
        };
        for exempt in [
            json!({ "owner": "DaemonSet/plugin" }),
            json!({ "mirror": true }),
            json!({ "owner": "Job/a", "finished": true }),
        ] {
            assert!(pod(exempt).is_exempt_from_drain());
        }
        assert!(
            pod(json!({ "owner": "DaemonSet/probe", "devices": ["rdma/hca"] })).keeps_devices()
        );
        assert!(!pod(json!({ "owner": "DaemonSet/plugin" })).keeps_devices());
        let job = pod(json!({ "owner": "Job/train", "ends": true }));
        assert_eq!(
            (job.is_exempt_from_drain(), job.shown().as_str()),
            (false, "ml/train-0 (Job train)")
        );
        assert_eq!(
            pod(json!({ "name": "a\u{9b}2J\nfake" })).shown(),
            "ml/a\u{fffd}2J fake"
        );
        assert_eq!(
            (
                pod(json!({})).is_exempt_from_drain(),
                pod(json!({})).shown().as_str()
            ),
            (false, "ml/train-0")
        );
    }
}
