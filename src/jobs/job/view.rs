//! A job at one moment, in the words of a screen, and what changed since the moment before.

use super::keeps::find_pod_wait_reason;
use super::kind::{JobKind, Phase};
use super::look::ClusterJob;
use railwright_base::Reason;
use railwright_base::nodeset;
use railwright_base::text::{format_count, one_line};
use railwright_resource::kubernetes_job::{JobPod, Room};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A job at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct JobView {
    /// Its kind.
    pub kind: JobKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How far it is.
    pub phase: Phase,
    /// Why, where its controller says so.
    pub why: Option<String>,
    /// Its pods, by name.
    pub pods: Vec<JobPod>,
    /// What keeps it, each with the pods that it keeps; none where it is the job as a whole.
    pub kept: Vec<PodWaitReason>,
}

/// What keeps pods of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PodWaitReason {
    /// The pods, folded; nothing where it is the job as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<String>,
    /// In words.
    pub why: String,
}

/// `failed on gpu1 with exit code 1: Error`.
fn describe_pod_failure(pod: &JobPod) -> String {
    let on = match &pod.node {
        Some(node) => format!(" on {}", one_line(node, 63)),
        None => String::new(),
    };
    let ended = pod.ended.clone().unwrap_or_default();
    let code = match ended.code {
        Some(code) => format!(" with exit code {code}"),
        None => String::new(),
    };
    let mut reasons = vec![ended.reason, ended.message];
    reasons.retain(|text| !text.is_empty());
    one_line(&format!("failed{on}{code}: {}", reasons.join(": ")), 300)
}

impl JobView {
    /// Of what was read.
    pub fn of(found: &ClusterJob, pods: Result<Vec<JobPod>, Reason>) -> Self {
        let (phase, why) = found.kind.phase(&found.job);
        let mut kept = Vec::new();
        if phase == Phase::Waiting && found.kind.is_not_taken_up(&found.job) {
            let controller = found.kind.controller();
            kept.push(PodWaitReason {
                pods: None,
                why: format!(
                    "{controller} has not taken it up yet: does it run, and watch this namespace?"
                ),
            });
        }
        let pods = match pods {
            Ok(pods) => pods,
            Err(reason) => {
                let why = format!("its pods could not be read: {reason}");
                kept.push(PodWaitReason { pods: None, why });
                Vec::new()
            }
        };
        let mut view = JobView {
            kind: found.kind,
            namespace: found.job.namespace.clone(),
            name: found.job.name.clone(),
            phase,
            why: why.map(|why| one_line(&why, 300)),
            pods,
            kept,
        };
        view.pods.sort_by(|a, b| a.name.cmp(&b.name));
        view
    }

    /// It could not be read this time.
    pub fn unread(found: &ClusterJob, reason: String) -> Self {
        let why = format!("it could not be read: {reason}");
        JobView {
            phase: Phase::Waiting,
            why: None,
            kept: vec![PodWaitReason { pods: None, why }],
            ..JobView::of(found, Ok(Vec::new()))
        }
    }

    /// What keeps its pods, with what the cluster warns of.
    pub fn explain(&mut self, room: Option<&Room>, warnings: Vec<String>) {
        let mut identical: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for pod in &self.pods {
            if let Some(why) = find_pod_wait_reason(pod, room) {
                identical.entry(why).or_default().push(&pod.name);
            }
        }
        for (why, pods) in identical {
            self.kept.push(PodWaitReason {
                pods: Some(nodeset::fold_node_set(&pods)),
                why,
            });
        }
        for warning in warnings {
            self.kept.push(PodWaitReason {
                pods: None,
                why: one_line(&warning, 300),
            });
        }
    }

    /// `MPIJob ml/nccl-test waits: 3 pods, 1 running, 2 pending`.
    pub fn headline(&self) -> String {
        let why = match &self.why {
            Some(why) => format!(" ({why})"),
            None => String::new(),
        };
        format!(
            "{} {}/{} {}{why}; {}",
            self.kind.word(),
            one_line(&self.namespace, 63),
            one_line(&self.name, 63),
            self.phase.word(),
            self.describe_pod_phases()
        )
    }

    /// `3 pods: 1 running, 2 pending`.
    fn describe_pod_phases(&self) -> String {
        if self.pods.is_empty() {
            return "no pods".to_owned();
        }
        let mut phases: BTreeMap<&str, usize> = BTreeMap::new();
        for pod in &self.pods {
            *phases.entry(pod.phase.as_str()).or_default() += 1;
        }
        let mut counts = Vec::new();
        for (phase, count) in phases {
            counts.push(format!("{count} {}", one_line(&phase.to_lowercase(), 20)));
        }
        let pods = format_count(self.pods.len(), "pod");
        format!("{pods}: {}", counts.join(", "))
    }

    /// Lines for what is another than a moment before: how far it is, what keeps it, pods that
    /// failed.
    pub fn news(&self, before: Option<&JobView>) -> Vec<String> {
        let mut news = Vec::new();
        if before.is_none_or(|before| before.headline() != self.headline()) {
            news.push(self.headline());
        }
        let old = match before {
            Some(before) => before.details(),
            None => Vec::new(),
        };
        for line in self.details() {
            if !old.contains(&line) {
                news.push(line);
            }
        }
        news
    }

    fn details(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for kept in &self.kept {
            lines.push(match &kept.pods {
                Some(pods) => format!("  {pods}: {}", kept.why),
                None => format!("  {}", kept.why),
            });
        }
        lines.extend(self.describe_failed_pods());
        lines
    }

    /// A line for each way in which pods failed.
    fn describe_failed_pods(&self) -> Vec<String> {
        let mut identical: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for pod in &self.pods {
            if pod.phase == "Failed" {
                let why = describe_pod_failure(pod);
                identical.entry(why).or_default().push(&pod.name);
            }
        }
        let mut lines = Vec::new();
        for (why, pods) in identical {
            lines.push(format!(
                "  {}: {}",
                nodeset::fold_node_set(&pods),
                why.trim_end_matches([':', ' '])
            ));
        }
        lines
    }

    /// The pod whose log tells how it goes: the newest of that role that has begun.
    pub fn speaker(&self) -> Option<&JobPod> {
        let mut begun = self
            .pods
            .iter()
            .filter(|pod| pod.phase != "Pending" && !pod.container.is_empty());
        match self.kind.speaks() {
            Some(role) => begun.rfind(|pod| pod.role.as_deref() == Some(role)),
            None => begun.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::kubernetes_job::{JobNow, PodTermination};
    use serde_json::json;

    fn found(status: serde_json::Value) -> ClusterJob {
        let job = JobNow {
            namespace: "ml".to_owned(),
            name: "nccl".to_owned(),
            status,
            ..JobNow::default()
        };
        ClusterJob {
            kind: JobKind::Mpi,
            api_version: "kubeflow.org/v2beta1".to_owned(),
            job,
        }
    }

    fn pod(name: &str, phase: &str, role: &str) -> JobPod {
        JobPod {
            name: name.to_owned(),
            phase: phase.to_owned(),
            role: Some(role.to_owned()),
            container: "c".to_owned(),
            ..JobPod::default()
        }
    }

    #[test]
    fn what_changed_is_told_once() {
        let fresh = JobView::of(&found(json!({})), Ok(Vec::new()));
        insta::assert_snapshot!(fresh.news(None).join("\n"), @r"
        MPIJob ml/nccl waiting; no pods
          mpi-operator has not taken it up yet: does it run, and watch this namespace?
        ");
        let created = found(json!({ "conditions": [{ "type": "Created", "status": "True" }] }));
        let mut pods: Vec<JobPod> = ["nccl-worker-0", "nccl-worker-1"]
            .iter()
            .map(|name| pod(name, "Pending", "worker"))
            .collect();
        pods.iter_mut().for_each(|pod| {
            pod.unscheduled = Some("Unschedulable 0/1 nodes are available".to_owned())
        });
        let mut waits = JobView::of(
            &created,
            Ok([
                pods.clone(),
                vec![pod("nccl-launcher-x", "Running", "launcher")],
            ]
            .concat()),
        );
        waits.explain(None, vec!["exceeded quota: gpus".to_owned()]);
        insta::assert_snapshot!(waits.news(Some(&fresh)).join("\n"), @r"
        MPIJob ml/nccl waiting; 3 pods: 2 pending, 1 running
          nccl-worker-[0-1]: Unschedulable 0/1 nodes are available
          exceeded quota: gpus
        ");
        assert!(waits.news(Some(&waits)).is_empty());
        assert_eq!(
            waits.speaker().map(|pod| pod.name.as_str()),
            Some("nccl-launcher-x")
        );
        pods.iter_mut().for_each(|pod| {
            pod.phase = "Failed".to_owned();
            pod.ended = Some(PodTermination {
                code: Some(137),
                reason: "OOMKilled".to_owned(),
                message: String::new(),
            });
        });
        let failed = JobView::of(
            &found(
                json!({ "conditions": [{ "type": "Failed", "status": "True", "reason": "BackoffLimitExceeded" }] }),
            ),
            Ok(pods),
        );
        insta::assert_snapshot!(failed.news(Some(&waits)).join("\n"), @r"
        MPIJob ml/nccl failed (BackoffLimitExceeded); 2 pods: 2 failed
          nccl-worker-[0-1]: failed with exit code 137: OOMKilled
        ");
    }
}
