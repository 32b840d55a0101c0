//! Pods that count as gone though nobody says so: they were told to end, their time to do so is
//! over, and their node's kubelet is silent for long. All of it goes by our own monotonic clock,
//! from when we first saw it: the dates of the server's answers are whatever wrote them or stands
//! between.

use railwright_base::mutex::lock_ignoring_poison;
use railwright_resource::kubernetes_object::conditions::find_condition;
use railwright_system::clock::Deadline;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// A kubelet that we have seen silent for so long is not only away for a moment.
const SILENT: Duration = Duration::from_secs(60);

/// What a run has seen of the nodes and pods of its cluster.
#[derive(Default)]
pub(super) struct SilenceWatch(Mutex<SeenSilence>);

#[derive(Default)]
struct SeenSilence {
    /// By node: since when it is, by the word of the cluster's own controller, and when it is for
    /// long.
    nodes: BTreeMap<String, (String, Deadline)>,
    /// When the time to end is over, by the UID of a pod.
    pods: BTreeMap<String, Deadline>,
}

impl SilenceWatch {
    /// Whether a node's kubelet is silent for long, as it was at each look since then. `Unknown` is
    /// said of one that sends nothing any more; `False` is what a kubelet says itself
    /// (kubernetes.io/docs/reference/node/node-status, "Conditions").
    pub(super) fn is_silent(&self, name: &str, node: Option<&Value>) -> bool {
        let unknown = node.and_then(|node| find_condition(node, "Ready", ("status", "Unknown")));
        let since = unknown.and_then(|unknown| unknown["lastTransitionTime"].as_str());
        let nodes = &mut lock_ignoring_poison(&self.0).nodes;
        let Some(since) = since else {
            nodes.remove(name);
            return false;
        };
        let seen = nodes
            .get(name)
            .filter(|(before, _)| before == since)
            .map(|(_, long)| *long);
        let long = seen.unwrap_or_else(|| Deadline::after(SILENT));
        nodes.insert(name.to_owned(), (since.to_owned(), long));
        long.left().is_zero()
    }

    /// Whether the time to end is over of a pod that was told to. It can be made shorter, and not
    /// longer (kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta,
    /// `deletionGracePeriodSeconds`).
    pub(super) fn is_time_over(&self, pod: &Value) -> bool {
        let metadata = &pod["metadata"];
        let (Some(uid), Some(grace_s)) = (
            metadata["uid"].as_str(),
            metadata["deletionGracePeriodSeconds"].as_u64(),
        ) else {
            return false;
        };
        let from_now = Deadline::after(Duration::from_secs(grace_s.min(u32::MAX.into())));
        let pods = &mut lock_ignoring_poison(&self.0).pods;
        let over = pods.entry(uid.to_owned()).or_insert(from_now);
        if from_now.left() < over.left() {
            *over = from_now;
        }
        over.left().is_zero()
    }
}
