//! What the template of a training can name: names, labels and volumes as Arena's chart gives them.

use super::names::PodNames;
use super::request::{CleanPods, Pytorch, Tensorboard};
use super::toleration::Toleration;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The chart whose labels are given (kubeflow/arena: charts/pytorchjob/Chart.yaml); Helm is what
/// Arena renders it with.
const CHART: [(&str, &str); 4] = [
    ("app", "pytorchjob"),
    ("chart", "pytorchjob-0.5.2"),
    ("heritage", "Helm"),
    ("createdBy", "PyTorchJob"),
];

/// A training of PyTorch.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct PytorchNames {
    /// The pods.
    pub pod: PodNames,
    /// Pods besides the master.
    pub workers: u32,
    /// Labels of job and pods.
    pub labels: BTreeMap<String, String>,
    /// Labels of the master's pod.
    pub master_labels: BTreeMap<String, String>,
    /// Annotations of job and pods.
    pub annotations: BTreeMap<String, String>,
    /// How the job ends, and what is removed then.
    pub run_policy: BTreeMap<String, Value>,
    /// What the container runs.
    pub command: Vec<String>,
    /// The folder that it runs in.
    pub working_dir: String,
    /// Volumes of a pod.
    pub volumes: Vec<Value>,
    /// Where they are in the container.
    pub volume_mounts: Vec<Value>,
    /// Labels of nodes.
    pub node_selector: BTreeMap<String, String>,
    /// Taints that are tolerated.
    pub tolerations: Vec<Value>,
    /// Secrets for registries.
    pub image_pull_secrets: Vec<Value>,
    /// A priority class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// A scheduler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// The container may lock memory.
    pub locks_memory: bool,
    /// Pods share the processes of their host.
    pub host_pid: bool,
    /// Pods share the memory segments of their host.
    pub host_ipc: bool,
    /// A dashboard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensorboard: Option<TensorboardNames>,
}

/// A dashboard beside a training.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct TensorboardNames {
    /// The name of its Deployment and Service.
    pub name: String,
    /// Its image.
    pub image: String,
    /// The labels that it is known by.
    pub selector: BTreeMap<String, String>,
    /// Labels of Deployment and Service.
    pub labels: BTreeMap<String, String>,
    /// The folder with the logs, in its container.
    pub logdir: String,
    /// Its volumes.
    pub volumes: Vec<Value>,
    /// Where they are.
    pub volume_mounts: Vec<Value>,
}

/// The names of a training.
pub(super) fn build_pytorch_names(job: &Pytorch, pod: PodNames, gpus: u32) -> PytorchNames {
    let mut labels = chart_labels(job);
    if job.gang {
        labels.insert(
            "pod-group.scheduling.sigs.k8s.io/name".to_owned(),
            format!("pytorchjob-{}", job.pods.name),
        );
        labels.insert(
            "pod-group.scheduling.sigs.k8s.io/min-available".to_owned(),
            job.workers.to_string(),
        );
    }
    labels.extend(job.labels.iter().cloned());
    let mut master_labels = labels.clone();
    master_labels.insert(
        "master-pod-name".to_owned(),
        format!("{}-master-0", job.pods.name),
    );
    let mut annotations: BTreeMap<_, _> = job.annotations.iter().cloned().collect();
    annotations.insert(
        "requestGPUsOfJobOwner".to_owned(),
        (u64::from(job.workers) * u64::from(gpus)).to_string(),
    );
    annotations.extend(pod.annotations.clone());
    let (volumes, volume_mounts) = build_volumes(job);
    PytorchNames {
        workers: job.workers.saturating_sub(1),
        labels,
        master_labels,
        annotations,
        run_policy: run_policy(job),
        command: vec![job.shell.clone(), "-c".to_owned(), job.command.clone()],
        working_dir: job.working_dir.clone(),
        volumes,
        volume_mounts,
        node_selector: job.selectors.iter().cloned().collect(),
        tolerations: job
            .tolerations
            .iter()
            .filter_map(|text| Some(Toleration::parse(text).ok()?.object()))
            .collect(),
        image_pull_secrets: job
            .image_pull_secrets
            .iter()
            .map(|name| json!({ "name": name }))
            .collect(),
        priority: job.priority.clone(),
        scheduler: job.scheduler.clone(),
        locks_memory: job.rdma,
        host_pid: job.host_pid,
        host_ipc: job.host_ipc,
        tensorboard: job
            .tensorboard
            .as_ref()
            .map(|board| build_tensorboard_names(job, board)),
        pod,
    }
}

fn chart_labels(job: &Pytorch) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([("release".to_owned(), job.pods.name.clone())]);
    for (key, value) in CHART {
        labels.insert(key.to_owned(), value.to_owned());
    }
    labels
}

fn run_policy(job: &Pytorch) -> BTreeMap<String, Value> {
    let clean = match job.clean {
        CleanPods::None => "None",
        CleanPods::Running => "Running",
        CleanPods::All => "All",
    };
    let mut policy = BTreeMap::from([("cleanPodPolicy".to_owned(), json!(clean))]);
    if let Some(seconds) = job.running_timeout_s {
        policy.insert("activeDeadlineSeconds".to_owned(), json!(seconds));
    }
    if let Some(seconds) = job.ttl_after_finished_s {
        policy.insert("ttlSecondsAfterFinished".to_owned(), json!(seconds));
    }
    policy
}

/// The volumes of a pod and where they are: logs, data, memory that processes share.
fn build_volumes(job: &Pytorch) -> (Vec<Value>, Vec<Value>) {
    let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
    if let Some(board) = &job.tensorboard
        && !on_a_claim(job, board)
    {
        let name = "training-logs-volume";
        volumes.push(json!({ "name": name, "hostPath": { "path": host_logs(job) } }));
        mounts.push(json!({ "name": name, "mountPath": board.logdir }));
    }
    for (claim, path) in &job.data {
        volumes.push(build_claim_volume(claim));
        mounts.push(json!({ "name": claim, "mountPath": path }));
    }
    for (at, folder) in job.data_dirs.iter().enumerate() {
        let name = format!("training-data-{at}");
        let (host, path) = folder.split_once(':').unwrap_or((folder, folder));
        volumes.push(json!({ "name": name, "hostPath": { "path": host } }));
        mounts.push(json!({ "name": name, "mountPath": path }));
    }
    if let Some(size) = &job.shared_memory {
        let memory = json!({ "medium": "Memory", "sizeLimit": size });
        volumes.push(json!({ "name": "dshm", "emptyDir": memory }));
        mounts.push(json!({ "name": "dshm", "mountPath": "/dev/shm" }));
    }
    (volumes, mounts)
}

fn build_claim_volume(claim: &str) -> Value {
    json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } })
}

/// Logs below the path of a claim are on the claim (kubeflow/arena:
/// pkg/argsbuilder/submit_tensorboard.go).
fn on_a_claim(job: &Pytorch, board: &Tensorboard) -> bool {
    !board.logdir.starts_with('/')
        || job
            .data
            .iter()
            .any(|(_, path)| board.logdir.starts_with(path.as_str()))
}

/// Arena draws a number for each job; the job's name does the same and stays the same.
fn host_logs(job: &Pytorch) -> String {
    format!("/arena_logs/training-{}", job.pods.name)
}

fn build_tensorboard_names(job: &Pytorch, board: &Tensorboard) -> TensorboardNames {
    let mut labels = chart_labels(job);
    labels.insert("role".to_owned(), "tensorboard".to_owned());
    let mut selector = labels.clone();
    selector.retain(|key, _| ["app", "chart", "release", "role"].contains(&key.as_str()));
    let (mut volumes, mut volume_mounts) = (Vec::new(), Vec::new());
    let mut logdir = board.logdir.clone();
    if on_a_claim(job, board) {
        for (claim, path) in &job.data {
            volumes.push(build_claim_volume(claim));
            volume_mounts.push(json!({ "name": claim, "mountPath": path }));
        }
    } else {
        let name = "training-logs-volume";
        logdir = "/output/training_logs".to_owned();
        volumes.push(json!({ "name": name, "hostPath": { "path": host_logs(job) } }));
        volume_mounts.push(json!({ "name": name, "mountPath": logdir }));
    }
    TensorboardNames {
        name: format!("{}-tensorboard", job.pods.name),
        image: board.image.clone(),
        selector,
        labels,
        logdir,
        volumes,
        volume_mounts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_on_the_host_unless_a_claim_holds_them() {
        let board = Tensorboard {
            image: "b".into(),
            logdir: "/workspace/logs".into(),
        };
        let job = |data: &[(&str, &str)]| Pytorch {
            tensorboard: Some(board.clone()),
            data: data
                .iter()
                .map(|(claim, path)| ((*claim).to_owned(), (*path).to_owned()))
                .collect(),
            ..Pytorch::default()
        };
        assert_eq!(
            build_volumes(&job(&[])).0[0]["hostPath"]["path"],
            "/arena_logs/training-"
        );
        let on_claim = build_volumes(&job(&[("logs", "/workspace")])).0;
        assert_eq!(
            on_claim,
            [json!({ "name": "logs", "persistentVolumeClaim": { "claimName": "logs" } })]
        );
    }
}
