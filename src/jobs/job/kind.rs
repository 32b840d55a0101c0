//! The kinds of objects whose pods do jobs, and how far one is by what its controller says.

use railwright_resource::kubernetes_job::{JobNow, JobPod, PodOwner};
use railwright_resource::kubernetes_object::request::KubernetesRead;
use serde::Serialize;

/// The label that every object of a job bears that was submitted by railwright, with the job's
/// name.
pub const JOB_LABEL: &str = "railwright.io/job";

/// A kind of objects that do jobs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
pub enum JobKind {
    /// Of mpi-operator (kubeflow/mpi-operator, pkg/apis/kubeflow/v2beta1).
    #[serde(rename = "MPIJob")]
    Mpi,
    /// Of training-operator (kubeflow/training-operator, pkg/apis/kubeflow.org/v1).
    #[serde(rename = "PyTorchJob")]
    Pytorch,
    /// Of KubeRay (ray-project/kuberay, ray-operator/apis/ray/v1).
    #[serde(rename = "RayCluster")]
    Ray,
    /// Pods that stay, as on ACS.
    Deployment,
    /// Pods of Kubernetes' own Job, such as those of perftest.
    #[serde(rename = "Job")]
    Batch,
    /// Pods of no controller.
    Pod,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Its pods do not all run yet.
    Waiting,
    /// It is held back.
    Suspended,
    /// It runs; of pods that stay: all are there.
    Running,
    /// It came to its end.
    Succeeded,
    /// It failed.
    Failed,
    /// It was asked to end.
    Ending,
}

impl Phase {
    /// For people.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Waiting => "waiting",
            Phase::Suspended => "suspended",
            Phase::Running => "running",
            Phase::Succeeded => "succeeded",
            Phase::Failed => "failed",
            Phase::Ending => "ending",
        }
    }

    /// Nothing more comes of it.
    pub fn is_over(self) -> bool {
        matches!(self, Phase::Succeeded | Phase::Failed)
    }
}

impl JobKind {
    /// All of them.
    pub const ALL: [JobKind; 6] = [
        JobKind::Mpi,
        JobKind::Pytorch,
        JobKind::Ray,
        JobKind::Deployment,
        JobKind::Batch,
        JobKind::Pod,
    ];

    /// As a manifest has it.
    pub fn word(self) -> &'static str {
        match self {
            JobKind::Mpi => "MPIJob",
            JobKind::Pytorch => "PyTorchJob",
            JobKind::Ray => "RayCluster",
            JobKind::Deployment => "Deployment",
            JobKind::Batch => "Job",
            JobKind::Pod => "Pod",
        }
    }

    /// The kind of this name.
    pub fn of(word: &str) -> Option<Self> {
        JobKind::ALL
            .into_iter()
            .find(|kind| kind.word().eq_ignore_ascii_case(word))
    }

    /// Groups and versions that it may be served as, the newest first. A definition of MPIJob is
    /// shipped by three projects (mpi-operator v2beta1, training-operator v1, arena v1alpha1), and
    /// a cluster can have only one of them.
    pub fn versions(self) -> &'static [&'static str] {
        match self {
            JobKind::Mpi => &[
                "kubeflow.org/v2beta1",
                "kubeflow.org/v1",
                "kubeflow.org/v1alpha1",
            ],
            JobKind::Pytorch => &["kubeflow.org/v1"],
            JobKind::Ray => &["ray.io/v1"],
            JobKind::Deployment => &["apps/v1"],
            JobKind::Batch => &["batch/v1"],
            JobKind::Pod => &["v1"],
        }
    }

    /// What is asked for those of a namespace.
    pub fn reads(self, namespace: &str) -> Vec<KubernetesRead> {
        let mut reads = Vec::new();
        for version in self.versions() {
            reads.push(KubernetesRead::Jobs {
                api_version: (*version).to_owned(),
                kind: self.word().to_owned(),
                namespace: namespace.to_owned(),
            });
        }
        reads
    }

    /// True where only those are jobs that were submitted by railwright: a cluster is full of
    /// others.
    pub fn is_of_all_sorts(self) -> bool {
        matches!(self, JobKind::Deployment | JobKind::Batch | JobKind::Pod)
    }

    /// The labels of its pods; nothing where they cannot be distinguished from others.
    pub fn selector(self, job: &JobNow) -> Option<String> {
        Some(match self {
            JobKind::Mpi | JobKind::Pytorch => {
                format!("training.kubeflow.org/job-name={}", job.name)
            }
            JobKind::Ray => build_ray_selector(&job.name),
            JobKind::Deployment => return job.selector.clone(),
            // kubernetes.io/docs/reference/labels-annotations-taints: batch.kubernetes.io/job-name,
            // from 1.27 on beside this one.
            JobKind::Batch => format!("job-name={}", job.name),
            JobKind::Pod => format!("{JOB_LABEL}={}", job.job.as_deref().unwrap_or_default()),
        })
    }

    /// Whether a pod with the labels of a job is one of it: labels are anybody's, so its owner says
    /// that. Pods of no controller have none.
    pub fn is_pod_of(self, job: &JobNow, pod: &JobPod) -> bool {
        self == JobKind::Pod
            || pod.is_owned_by(&job.uid)
            || pod
                .owners
                .iter()
                .any(|owner| self.is_between(&job.name, owner))
    }

    /// Whether an object is one that the controller of a job makes to have its pods, by the names
    /// that it gives (kubeflow/mpi-operator: pkg/controller/mpi_job_controller.go, launcher and,
    /// in v1alpha1, worker; kubernetes/kubernetes: pkg/controller/deployment/sync.go, whose hash
    /// has no dash).
    fn is_between(self, job: &str, owner: &PodOwner) -> bool {
        let rest = owner.name.strip_prefix(job);
        let Some(rest) = rest.and_then(|rest| rest.strip_prefix('-')) else {
            return false;
        };
        match (self, owner.kind.as_str()) {
            (JobKind::Mpi, "Job") => rest == "launcher",
            (JobKind::Mpi, "StatefulSet") => rest == "worker",
            (JobKind::Deployment, "ReplicaSet") => !rest.contains('-'),
            _ => false,
        }
    }

    /// True where the pods stay until somebody takes them away.
    pub fn stays(self) -> bool {
        matches!(self, JobKind::Ray | JobKind::Deployment)
    }

    /// The role of the pod whose log tells how the job goes.
    pub fn speaks(self) -> Option<&'static str> {
        match self {
            JobKind::Mpi => Some("launcher"),
            JobKind::Pytorch => Some("master"),
            JobKind::Ray => Some("head"),
            JobKind::Deployment | JobKind::Batch | JobKind::Pod => None,
        }
    }

    /// Who makes pods of it.
    pub fn controller(self) -> &'static str {
        match self {
            JobKind::Mpi => "mpi-operator",
            JobKind::Pytorch => "training-operator",
            JobKind::Ray => "KubeRay",
            JobKind::Deployment => "the controller of Deployments",
            JobKind::Batch => "the controller of Jobs",
            JobKind::Pod => "the scheduler",
        }
    }

    /// How far a job is, and why where its controller says so.
    pub fn phase(self, job: &JobNow) -> (Phase, Option<String>) {
        if job.ends {
            return (Phase::Ending, None);
        }
        match self {
            JobKind::Mpi | JobKind::Pytorch => read_kubeflow_phase(job),
            JobKind::Ray => read_ray_phase(job),
            JobKind::Deployment => read_deployment_phase(job),
            JobKind::Batch => read_batch_phase(job),
            JobKind::Pod => read_pod_phase(job),
        }
    }

    /// True where its controller has not said anything of it yet.
    pub fn is_not_taken_up(self, job: &JobNow) -> bool {
        match self {
            JobKind::Mpi | JobKind::Pytorch => job
                .status
                .get("conditions")
                .is_none_or(|all| all.as_array().is_none_or(Vec::is_empty)),
            JobKind::Ray => job.status.as_object().is_none_or(serde_json::Map::is_empty),
            JobKind::Deployment | JobKind::Batch | JobKind::Pod => false,
        }
    }
}

fn join_reason_and_message((reason, message): (&str, &str)) -> Option<String> {
    match (reason, message) {
        ("", "") => None,
        (only, "") | ("", only) => Some(only.to_owned()),
        (reason, message) => Some(format!("{reason}: {message}")),
    }
}

/// `status.conditions`: kubeflow/training-operator, pkg/apis/kubeflow.org/v1/common_types.go, and
/// in mpi-operator. What is over is said beside what was before it, so it is looked for
/// first.
fn read_kubeflow_phase(job: &JobNow) -> (Phase, Option<String>) {
    let order = [
        ("Failed", Phase::Failed),
        ("Succeeded", Phase::Succeeded),
        ("Suspended", Phase::Suspended),
    ];
    for (condition, phase) in order {
        if let Some(said) = job.condition(condition) {
            let why = match phase {
                Phase::Failed => join_reason_and_message(said),
                _ => None,
            };
            return (phase, why);
        }
    }
    if job.suspended {
        return (Phase::Suspended, None);
    }
    match (job.condition("Restarting"), job.condition("Running")) {
        (Some(said), _) => (Phase::Waiting, join_reason_and_message(said)),
        (None, Some(_)) => (Phase::Running, None),
        (None, None) => (Phase::Waiting, None),
    }
}

/// `status.state` is written by all versions of KubeRay; what it lacks is in the condition
/// ReplicaFailure (ray-operator/apis/ray/v1/raycluster_types.go).
fn read_ray_phase(job: &JobNow) -> (Phase, Option<String>) {
    let failure = job
        .condition("ReplicaFailure")
        .and_then(join_reason_and_message);
    match job.text("state") {
        // A state of before: its pods cannot be made.
        Some("ready") if failure.is_some() => (Phase::Waiting, failure),
        Some("ready") => (Phase::Running, None),
        Some("suspended") => (Phase::Suspended, None),
        Some("failed") => (
            Phase::Failed,
            failure.or_else(|| job.text("reason").map(str::to_owned)),
        ),
        _ => (Phase::Waiting, failure),
    }
}

fn read_deployment_phase(job: &JobNow) -> (Phase, Option<String>) {
    let (desired, there) = (
        job.replicas.unwrap_or(1),
        job.number("availableReplicas").unwrap_or_default(),
    );
    match there >= desired {
        true if desired == 0 => (Phase::Suspended, Some("it wants no pods".to_owned())),
        true => (Phase::Running, None),
        false => (
            Phase::Waiting,
            job.condition("ReplicaFailure")
                .and_then(join_reason_and_message)
                .or_else(|| Some(format!("{there} of {desired} pods are there"))),
        ),
    }
}

/// kubernetes.io/docs/concepts/workloads/controllers/job: Complete and Failed are the ends, `ready`
/// counts pods that run.
fn read_batch_phase(job: &JobNow) -> (Phase, Option<String>) {
    if let Some(said) = job.condition("Failed") {
        return (Phase::Failed, join_reason_and_message(said));
    }
    match (
        job.condition("Complete"),
        job.suspended,
        job.number("ready").unwrap_or_default(),
    ) {
        (Some(_), ..) => (Phase::Succeeded, None),
        (None, true, _) => (Phase::Suspended, None),
        (None, false, 0) => (Phase::Waiting, None),
        (None, false, _) => (Phase::Running, None),
    }
}

fn read_pod_phase(job: &JobNow) -> (Phase, Option<String>) {
    match job.text("phase") {
        Some("Running") => (Phase::Running, None),
        Some("Succeeded") => (Phase::Succeeded, None),
        Some("Failed") => (
            Phase::Failed,
            join_reason_and_message((
                job.text("reason").unwrap_or_default(),
                job.text("message").unwrap_or_default(),
            )),
        ),
        _ => (Phase::Waiting, None),
    }
}

/// The labels of the pods of a RayCluster.
pub fn build_ray_selector(cluster: &str) -> String {
    format!("ray.io/cluster={cluster}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_pod_is_of_a_job_by_its_owner_whatever_its_labels_say() {
        let job = JobNow {
            name: "a".to_owned(),
            uid: "u".to_owned(),
            ..JobNow::default()
        };
        for (kind, (of, name, uid), is_own) in [
            (JobKind::Mpi, ("MPIJob", "a", "u"), true),
            (JobKind::Mpi, ("Job", "a-launcher", "j"), true),
            (JobKind::Mpi, ("TFJob", "a", "t"), false),
            (JobKind::Mpi, ("Job", "a-b-launcher", "j"), false),
            (JobKind::Pytorch, ("MPIJob", "a", "other"), false),
            (JobKind::Pytorch, ("Job", "a-launcher", "j"), false),
            (
                JobKind::Deployment,
                ("ReplicaSet", "a-5d4f9c7b8d", "r"),
                true,
            ),
            (
                JobKind::Deployment,
                ("ReplicaSet", "a-b-5d4f9c7b8d", "r"),
                false,
            ),
            (
                JobKind::Deployment,
                ("ReplicaSet", "ab-5d4f9c7b8d", "r"),
                false,
            ),
            (JobKind::Batch, ("Job", "a", "another"), false),
        ] {
            let owner = PodOwner {
                kind: of.to_owned(),
                name: name.to_owned(),
                uid: uid.to_owned(),
            };
            let pod = JobPod {
                owners: vec![owner],
                ..JobPod::default()
            };
            assert_eq!(kind.is_pod_of(&job, &pod), is_own, "{kind:?} {of} {name}");
        }
        assert!(!JobKind::Deployment.is_pod_of(&job, &JobPod::default()));
    }

    fn told(kind: JobKind, status: Value) -> String {
        let job = JobNow {
            status,
            replicas: Some(2),
            ..JobNow::default()
        };
        let (phase, why) = kind.phase(&job);
        format!("{} {}", phase.word(), why.unwrap_or_default())
            .trim()
            .to_owned()
    }

    #[test]
    fn how_far_a_job_is_follows_from_what_its_controller_says() {
        let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": format!("MPIJob{kind}"), "message": "m" });
        let with = |all: &[Value]| json!({ "conditions": all });
        assert_eq!(told(JobKind::Mpi, json!({})), "waiting");
        assert_eq!(
            told(JobKind::Mpi, with(&[condition("Created", "True")])),
            "waiting"
        );
        assert_eq!(
            told(
                JobKind::Mpi,
                with(&[condition("Created", "True"), condition("Running", "True")])
            ),
            "running"
        );
        let over = [
            condition("Created", "True"),
            condition("Running", "False"),
            condition("Failed", "True"),
        ];
        assert_eq!(told(JobKind::Mpi, with(&over)), "failed MPIJobFailed: m");
        assert_eq!(
            told(
                JobKind::Pytorch,
                with(&[
                    condition("Running", "False"),
                    condition("Succeeded", "True")
                ])
            ),
            "succeeded"
        );
        assert_eq!(
            told(
                JobKind::Pytorch,
                with(&[
                    condition("Running", "False"),
                    condition("Restarting", "True")
                ])
            ),
            "waiting MPIJobRestarting: m"
        );
        assert_eq!(told(JobKind::Ray, json!({ "state": "ready" })), "running");
        assert_eq!(
            told(
                JobKind::Ray,
                json!({ "state": "failed", "reason": "no pods" })
            ),
            "failed no pods"
        );
        let stale = json!({ "state": "ready", "conditions": [{ "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate" }] });
        assert_eq!(
            told(JobKind::Ray, stale),
            "waiting FailedCreate",
            "its watch does not end with 0"
        );
        assert_eq!(
            JobKind::Deployment
                .phase(&JobNow {
                    replicas: Some(0),
                    ..JobNow::default()
                })
                .0,
            Phase::Suspended
        );
        assert_eq!(
            told(JobKind::Deployment, json!({ "availableReplicas": 1 })),
            "waiting 1 of 2 pods are there"
        );
        assert_eq!(told(JobKind::Batch, json!({ "active": 1 })), "waiting");
        assert_eq!(
            told(JobKind::Batch, json!({ "active": 1, "ready": 1 })),
            "running"
        );
        assert_eq!(
            told(JobKind::Batch, with(&[condition("Complete", "True")])),
            "succeeded"
        );
        assert_eq!(
            told(JobKind::Batch, with(&[condition("Failed", "True")])),
            "failed MPIJobFailed: m"
        );
        assert_eq!(
            told(
                JobKind::Pod,
                json!({ "phase": "Failed", "reason": "Evicted" })
            ),
            "failed Evicted"
        );
        for junk in [
            json!(null),
            json!("x"),
            json!({ "conditions": "x" }),
            json!({ "state": 7 }),
        ] {
            JobKind::ALL.iter().for_each(|kind| {
                assert_eq!(
                    kind.phase(&JobNow {
                        status: junk.clone(),
                        ..JobNow::default()
                    })
                    .0,
                    Phase::Waiting
                )
            });
        }
    }
}
