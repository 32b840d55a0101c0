//! Jobs that are submitted, watched and deleted. The kind is that of mpi-operator, as far as
//! anything here goes by it; what its operator would do (make pods, say how far it is) is done by
//! the story, so that each moment lasts as long as it is looked at. The operator itself is in
//! `tests/operators`.

use crate::cluster::{Cluster, flat};
use crate::rbac::identity;
use crate::rig::{ControlPlane, ESTABLISHED};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const INV: &str = "inv";
/// An identity that may do what jobs need.
const SUBMITTER: &str = "submitter";

/// The programs of pods, and what every pod writes.
pub fn fakes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    writes(folder.path(), &[]);
    folder
}

fn writes(folder: &Path, lines: &[(u32, &str)]) {
    writes_into(folder, "pod.log", lines);
}

fn writes_into(folder: &Path, file: &str, lines: &[(u32, &str)]) {
    let line = |(second, text): &(u32, &str)| {
        format!("2026-11-21T11:00:{second:02}.000000000Z stdout F {text}\n")
    };
    fs::write(
        folder.join(file),
        lines.iter().map(line).collect::<String>(),
    )
    .unwrap();
}

fn define(plane: &ControlPlane) {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = json!({ "name": "v2beta1", "served": true, "storage": true, "schema": schema, "subresources": { "status": {} } });
    let names = json!({ "kind": "MPIJob", "plural": "mpijobs", "singular": "mpijob" });
    let spec = json!({ "group": "kubeflow.org", "scope": "Namespaced", "names": names, "versions": [version] });
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "mpijobs.kubeflow.org" }, "spec": spec });
    plane.apply(&definition.to_string());
    plane.kubectl(&[
        "wait",
        "crd/mpijobs.kubeflow.org",
        ESTABLISHED,
        "--timeout=60s",
    ]);
}

/// A job and what belongs to it.
fn job(beside: &str) -> String {
    format!(
        "apiVersion: v1\n\
         kind: ConfigMap\n\
         metadata: {{ name: nccl-hosts }}\n\
         ---\n\
         apiVersion: kubeflow.org/v2beta1\n\
         kind: MPIJob\n\
         metadata: {{ name: nccl }}\n\
         spec: {{ slotsPerWorker: 8, template: {{ volumes: [{{ persistentVolumeClaim: {{ \
         claimName: logs }} }}] }} }}\n\
         {beside}"
    )
}

/// As its operator would: a pod of the job.
fn pod(plane: &ControlPlane, name: &str, role: &str, erdma: u32) {
    pod_of(plane, "nccl", name, role, erdma);
}

fn pod_of(plane: &ControlPlane, job: &str, name: &str, role: &str, erdma: u32) {
    let labels =
        json!({ "training.kubeflow.org/job-name": job, "training.kubeflow.org/job-role": role });
    let amount = json!({ "aliyun/erdma": erdma.to_string() });
    let container = json!({ "name": "main", "image": "example.invalid/nccl:1", "resources": { "limits": amount, "requests": amount } });
    let owner = plane.kubectl(&["get", "mpijob", job, "-o", "jsonpath={.metadata.uid}"]);
    let owners = json!([{ "apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": job, "uid": owner, "blockOwnerDeletion": true }]);
    let metadata = json!({ "name": name, "namespace": "default", "labels": labels, "ownerReferences": owners });
    plane.apply(&json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": { "containers": [container] } }).to_string());
}

/// As its operator would: how far the job is.
fn says(plane: &ControlPlane, conditions: &[(&str, &str)]) {
    says_of(plane, "nccl", conditions);
}

fn says_of(plane: &ControlPlane, job: &str, conditions: &[(&str, &str)]) {
    let condition = |(kind, status): &(&str, &str)| json!({ "type": kind, "status": status, "reason": format!("MPIJob{kind}"), "message": "" });
    let conditions: Vec<Value> = conditions.iter().map(condition).collect();
    let patch = json!({ "status": { "conditions": conditions } }).to_string();
    plane.kubectl(&[
        "patch",
        "mpijob",
        job,
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ]);
}

/// The program as it watches, line by line.
struct Watching {
    child: Child,
    lines: Receiver<String>,
    seen: String,
}

impl Watching {
    fn begin(cluster: &Cluster<'_>, words: &[&str]) -> Self {
        let mut child = cluster
            .command(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .for_each(|line| drop(sender.send(line)))
        });
        Watching {
            child,
            lines,
            seen: String::new(),
        }
    }

    /// Until a line has this in it.
    fn until(&mut self, text: &str) -> String {
        loop {
            let line = self
                .lines
                .recv_timeout(Duration::from_secs(60))
                .unwrap_or_else(|_| panic!("{text} did not come:\n{}", self.seen));
            self.seen += &format!("{line}\n");
            if line.contains(text) {
                return line;
            }
        }
    }

    fn ends(mut self, code: i32) -> String {
        let status = self.child.wait().unwrap();
        self.seen
            .extend(self.lines.iter().map(|line| format!("{line}\n")));
        assert_eq!(status.code(), Some(code), "{}", self.seen);
        std::mem::take(&mut self.seen)
    }
}

/// Of a story that failed too.
impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn a_cluster_without_operators_says_so(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let listed = cluster.flat(0, &["job", "list", "-i", INV]);
    let kinds = "The cluster does not have the kinds MPIJob, PyTorchJob, RayCluster: their \
                 operators are not installed.";
    assert!(
        listed.contains("No job is in namespace default.") && listed.contains(kinds),
        "{listed}"
    );
    cluster.file("job.yaml", &job(""));
    let refused = cluster.flat(1, &["job", "submit", "job.yaml", "-i", INV]);
    assert!(
        refused.contains("RW1244")
            && refused.contains("mpi-operator is not installed in the cluster"),
        "{refused}"
    );
    assert!(
        refused.contains("nothing is there of this job"),
        "{refused}"
    );
    let left = plane.kubectl(&["get", "configmap", "nccl-hosts", "--ignore-not-found"]);
    assert_eq!(left, "", "what was made before is taken back");
    assert!(
        cluster
            .flat(1, &["job", "watch", "nccl", "-i", INV])
            .contains("RW1240")
    );
}

/// Who may do what `rbac --role jobs` prints, and nothing more: all that follows is done with that.
pub fn somebody_may_submit_jobs(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let documents = cluster.told(0, &["rbac", INV, "--role", "jobs"]);
    assert!(
        documents.contains("# --- jobs: jobs of a namespace")
            && documents.contains("whoever has it runs any program"),
        "{documents}"
    );
    plane.apply(&documents);
    identity(
        plane,
        SUBMITTER,
        &plane.kubectl(&[
            "-n",
            "kube-system",
            "create",
            "token",
            "railwright-train-jobs",
        ]),
    );
    let cluster = Cluster::new(plane, SUBMITTER);
    cluster.file("job.yaml", &job(""));
    let elsewhere = cluster.flat(
        1,
        &["job", "submit", "job.yaml", "-i", INV, "-n", "kube-system"],
    );
    assert!(
        elsewhere.contains("verb create, resource configmaps"),
        "{elsewhere}"
    );
}

/// Pods of others may be its own by the time that it would be deleted.
pub fn what_may_have_adopted_is_made_last_and_stays(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, SUBMITTER);
    let deployment = |name: &str, selected: &str| {
        format!(
            "---\n\
             apiVersion: apps/v1\n\
             kind: Deployment\n\
             metadata: {{ name: {name} }}\n\
             spec:\n  replicas: 0\n  selector: {{ matchLabels: {{ app: {selected} }} }}\n  \
             template:\n    metadata: {{ labels: {{ app: {name} }} }}\n    \
             spec: {{ containers: [{{ name: a, image: a }}] }}\n"
        )
    };
    let of_two = deployment("first", "first") + &deployment("second", "another");
    let text = of_two + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: first }\n";
    cluster.file("two.yaml", &text);
    let refused = cluster.flat(1, &["job", "submit", "two.yaml", "-i", INV]);
    assert!(
        refused.contains("RW1244") && refused.contains("Deployment.apps default/first"),
        "{refused}"
    );
    let left = || {
        plane.kubectl(&[
            "get",
            "configmap/first",
            "deployment/first",
            "-o",
            "name",
            "--ignore-not-found",
        ])
    };
    assert_eq!(left(), "deployment.apps/first\n");
    cluster.told(0, &["job", "delete", "first", "-i", INV, "--yes"]);
    assert_eq!(left(), "");
}

pub fn a_job_is_submitted_whole_or_not_at_all(plane: &ControlPlane) {
    define(plane);
    let cluster = Cluster::new(plane, SUBMITTER);
    cluster.file(
        "bad.yaml",
        &job("---\n\
              apiVersion: v1\n\
              kind: Service\n\
              metadata: { name: nccl }\n\
              spec: { ports: [{ port: 700000 }] }\n"),
    );
    let refused = cluster.flat(1, &["job", "submit", "bad.yaml", "-i", INV]);
    assert!(
        refused.contains("RW1244") && refused.contains("nothing is there of this job"),
        "{refused}"
    );
    assert_eq!(
        plane.kubectl(&[
            "get",
            "mpijob,configmap",
            "-l",
            "railwright.io/job=nccl",
            "-o",
            "name"
        ]),
        ""
    );
    cluster.file("job.yaml", &job(""));
    let made = cluster.told(0, &["job", "submit", "job.yaml", "-i", INV]);
    insta::assert_snapshot!(made, @r"
    MPIJob default/nccl is submitted: 2 objects
      watch it:  railwright job watch nccl -i inv -n default
      delete it: railwright job delete nccl -i inv -n default
    ");
    let again = cluster.flat(1, &["job", "submit", "job.yaml", "-i", INV]);
    assert!(
        again.contains("RW1243")
            && again.contains("ConfigMap.core default/nccl-hosts is there already"),
        "{again}"
    );
    assert_eq!(
        plane.kubectl(&["get", "configmap", "nccl-hosts", "-o", "name"]),
        "configmap/nccl-hosts\n"
    );
    // Whoever may do nothing is told what is missing.
    let nobody = Cluster::new(plane, "nobody");
    nobody.file("job.yaml", &job(""));
    let refused = nobody.flat(1, &["job", "submit", "job.yaml", "-i", INV]);
    assert!(
        refused.contains("verb create, resource configmaps"),
        "{refused}"
    );
    let listed = nobody.flat(3, &["job", "list", "-i", INV]);
    assert!(
        listed.contains("MPIJob could not be read")
            && listed.contains("verb list, resource mpijobs"),
        "{listed}"
    );
}

pub fn a_job_is_watched_to_its_end(plane: &ControlPlane, writes_of: &Path) {
    plane.nodes(&["gpu-001", "gpu-002"], &[("aliyun/erdma", "2")]);
    let cluster = Cluster::new(plane, SUBMITTER);
    let mut watching = Watching::begin(
        &cluster,
        &["job", "watch", "nccl", "-i", INV, "--stuck-after", "4s"],
    );
    watching.until("MPIJob default/nccl waiting; no pods");
    watching.until("mpi-operator has not taken it up yet");
    says(plane, &[("Created", "True")]);
    pod(plane, "nccl-worker-0", "worker", 2);
    pod(plane, "nccl-worker-1", "worker", 1);
    pod(plane, "nccl-worker-2", "worker", 2);
    let kept = watching.until("nccl-worker-2: asks");
    // Which worker came where is the scheduler's.
    let used = [[2, 1], [1, 2]]
        .map(|[one, other]| format!("{one}/2 used on gpu-001, {other}/2 used on gpu-002"));
    let told = used.map(|used| {
        format!("  nccl-worker-2: asks aliyun/erdma 2, 2 nodes have 1 free at most: {used}")
    });
    assert!(told.contains(&kept), "{kept}");
    let listed = cluster.told(0, &["job", "list", "-i", INV]);
    assert!(listed.contains("  nccl  MPIJob      waiting"), "{listed}");
    plane.kubectl(&["delete", "pod", "nccl-worker-2", "--wait=false"]);
    pod(plane, "nccl-launcher", "launcher", 0);
    plane.kubectl(&[
        "wait",
        "pod/nccl-launcher",
        "--for=condition=Ready",
        "--timeout=60s",
    ]);
    says(plane, &[("Created", "True"), ("Running", "True")]);
    watching.until("running");
    watching.until("it runs and has written nothing for");
    watching.until("coll_hcoll_enable 0");
    writes(
        writes_of,
        &[
            (1, "NCCL INFO NET/IB : Using [0]erdma_0:1/RoCE"),
            (1, "\u{1b}[2Jmore"),
        ],
    );
    watching.until("  | NCCL INFO NET/IB : Using [0]erdma_0:1/RoCE");
    watching.until("  | \u{fffd}[2Jmore");
    writes(
        writes_of,
        &[
            (1, "NCCL INFO NET/IB : Using [0]erdma_0:1/RoCE"),
            (1, "\u{1b}[2Jmore"),
            (2, "# Avg bus bandwidth : 11.2"),
        ],
    );
    watching.until("  | # Avg bus bandwidth : 11.2");
    says(
        plane,
        &[
            ("Created", "True"),
            ("Running", "False"),
            ("Succeeded", "True"),
        ],
    );
    let told = watching.ends(0);
    assert_eq!(
        told.matches("NET/IB").count(),
        1,
        "no line is told twice: {told}"
    );
    assert!(told.contains("succeeded after"), "{told}");
    let json = cluster.told(0, &["job", "watch", "nccl", "-i", INV, "--json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (
            &document["phase"],
            &document["pods"][1]["asks"]["aliyun/erdma"]
        ),
        (&json!("succeeded"), &json!(2)),
        "{json}"
    );
    says(plane, &[("Failed", "True")]);
    assert!(
        cluster
            .flat(1, &["job", "watch", "nccl", "-i", INV])
            .contains("failed (MPIJobFailed)")
    );
    says(plane, &[("Running", "True")]);
    let late = cluster.flat(3, &["job", "watch", "nccl", "-i", INV, "--for", "1s"]);
    assert!(late.contains("the time is over"), "{late}");
}

pub fn a_watch_that_is_ended_leaves_the_job(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, SUBMITTER);
    let mut watching = Watching::begin(&cluster, &["job", "watch", "nccl", "-i", INV]);
    watching.until("running");
    let id = watching.child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    watching.ends(130);
    assert_eq!(
        plane.kubectl(&["get", "mpijob", "nccl", "-o", "name"]),
        "mpijob.kubeflow.org/nccl\n"
    );
    // One that is deleted while it is watched is said to be gone.
    let mut watching = Watching::begin(&cluster, &["job", "watch", "nccl", "-i", INV]);
    watching.until("running");
    plane.kubectl(&["delete", "mpijob", "nccl", "--wait=false"]);
    watching.ends(1);
}

pub fn a_job_is_proven_by_the_logs_of_its_pods(plane: &ControlPlane, writes_of: &Path) {
    let cluster = Cluster::new(plane, SUBMITTER);
    plane.kubectl(&["delete", "configmap", "nccl-hosts", "--ignore-not-found"]);
    plane.kubectl(&["wait", "pods", "--all", "--for=delete", "--timeout=60s"]);
    cluster.file("job.yaml", &job(""));
    cluster.told(0, &["job", "submit", "job.yaml", "-i", INV]);
    pod(plane, "nccl-launcher", "launcher", 0);
    plane.kubectl(&[
        "wait",
        "pod/nccl-launcher",
        "--for=condition=Ready",
        "--timeout=60s",
    ]);
    writes(
        writes_of,
        &[
            (
                1,
                "nccl-worker-0:7:42 [0] NCCL INFO NET/IB : Using [0]erdma_0:1/RoCE [RO]; OOB \
                 eth0:10.0.0.1<0>",
            ),
            (1, "nccl-worker-0:7:42 [0] NCCL INFO Using network IB"),
            (
                2,
                "nccl-worker-0:7:42 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via \
                 NET/IB/0/GDRDMA",
            ),
            (2, "nccl-worker-0:7:42 [0] NCCL INFO Connected all rings"),
        ],
    );
    let proven = cluster.told(0, &["job", "prove", "nccl", "-i", INV]);
    assert!(
        proven.contains("job prove MPIJob default/nccl, the logs of 1 pod")
            && proven.contains("PASSED: RDMA was used"),
        "{proven}"
    );
    writes(
        writes_of,
        &[
            (
                1,
                "nccl-worker-0:7:42 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",
            ),
            (1, "nccl-worker-0:7:42 [0] NCCL INFO Using network Socket"),
        ],
    );
    let disproven = cluster.told(1, &["job", "prove", "nccl", "-i", INV]);
    assert!(
        disproven.contains("FAILED: not as it must be") && disproven.contains("RW1201"),
        "{disproven}"
    );
    // What keeps a pod is said by the cluster alone.
    pod(plane, "nccl-worker-9", "worker", 9);
    plane.kubectl(&[
        "wait",
        "pod/nccl-worker-9",
        "--for=condition=PodScheduled=False",
        "--timeout=60s",
    ]);
    let doctor = cluster.flat(1, &["doctor", "nccl", "-i", INV]);
    assert!(
        doctor.contains("RW1351") && doctor.contains("Insufficient aliyun/erdma"),
        "{doctor}"
    );
    assert!(cluster.flat(64, &["doctor"]).contains("--log"));
}

pub fn a_job_is_deleted_with_all_that_it_had(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, SUBMITTER);
    let asked = cluster.flat(4, &["job", "delete", "nccl", "-i", INV]);
    assert!(
        asked.contains("RW1013") && asked.contains("nothing was changed"),
        "{asked}"
    );
    let deleted = cluster.told(0, &["job", "delete", "nccl", "-i", INV, "--yes"]);
    insta::assert_snapshot!(deleted, @r"
    MPIJob.kubeflow.org default/nccl is gone
      what it wrote stays on PersistentVolumeClaim logs
    ConfigMap.core default/nccl-hosts is gone
    2 objects of the job nccl, with the pods of each:
      MPIJob.kubeflow.org default/nccl
      ConfigMap.core default/nccl-hosts
    ");
    assert_eq!(
        plane.kubectl(&[
            "get",
            "mpijob,pod,configmap",
            "-l",
            "railwright.io/job=nccl",
            "-o",
            "name"
        ]),
        ""
    );
    assert_eq!(
        plane.kubectl(&["get", "pods", "-o", "name"]),
        "",
        "its pods go with it"
    );
    let again = cluster.told(0, &["job", "delete", "nccl", "-i", INV, "--yes"]);
    assert_eq!(
        again,
        "Nothing is left of a job nccl in namespace default.\n"
    );
}

/// Seconds of a step are taken from the times that the kubelet puts before each line.
pub fn a_pair_is_compared_by_the_logs_of_its_pods(plane: &ControlPlane, writes_of: &Path) {
    let cluster = Cluster::new(plane, "admin");
    for half in ["rdma", "tcp"] {
        cluster.file(
            "job.yaml",
            &job("").replace("name: nccl", &format!("name: pair-{half}")),
        );
        cluster.told(0, &["job", "submit", "job.yaml", "-i", INV]);
        let launcher = format!("pair-{half}-launcher");
        pod_of(plane, &format!("pair-{half}"), &launcher, "launcher", 0);
        plane.kubectl(&[
            "wait",
            &format!("pod/{launcher}"),
            "--for=condition=Ready",
            "--timeout=60s",
        ]);
    }
    let said = |network: &str, step_s: u32| {
        let start = [("w-0", 0), ("w-1", 1)].map(|(host, rank)| {
            let made = format!(
                "{host}:7:42 [0] NCCL INFO ncclCommInitRank comm 0x1 rank {rank} nranks 2 cudaDev \
                 0 nvmlDev 0 busId 1b000 commId 0x9 - Init COMPLETE"
            );
            [
                (
                    0,
                    format!("{host}:7:42 [0] NCCL INFO Using network {network}"),
                ),
                (0, made),
            ]
        });
        let steps = (0..5).map(|step| {
            (
                step * step_s,
                format!("Train Epoch: 1 [{}/60000 (1%)]", step * 640),
            )
        });
        start.into_iter().flatten().chain(steps).collect::<Vec<_>>()
    };
    let lines = |said: &[(u32, String)], file: &str| {
        writes_into(
            writes_of,
            file,
            &said
                .iter()
                .map(|(second, text)| (*second, text.as_str()))
                .collect::<Vec<_>>(),
        );
    };
    lines(&said("IB", 2), "pod.log");
    lines(&said("Socket", 9), "tcp.log");
    let compared = cluster.told(0, &["job", "compare", "pair", "-i", INV]);
    assert!(
        compared.contains("job compare pair-rdma and pair-tcp\n")
            && compared.contains("4.50 times as fast with RDMA"),
        "{compared}"
    );
    lines(&said("IB", 9), "tcp.log");
    let both = cluster.flat(1, &["job", "compare", "pair", "-i", INV]);
    assert!(
        both.contains("RW1252") && both.contains("both used RDMA"),
        "{both}"
    );
    assert!(
        cluster
            .flat(1, &["job", "compare", "other", "-i", INV])
            .contains("RW1240")
    );
    for half in ["pair-rdma", "pair-tcp"] {
        cluster.told(0, &["job", "delete", half, "-i", INV, "--yes"]);
    }
}

pub fn pods_that_stay_are_watched_until_they_run(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, SUBMITTER);
    let labels = "{ app: infer }";
    let template = format!(
        "{{ metadata: {{ labels: {labels} }}, spec: {{ containers: [{{ name: main, image: \
         example.invalid/a:1 }}] }} }}"
    );
    let text = format!(
        "apiVersion: apps/v1\n\
         kind: Deployment\n\
         metadata: {{ name: infer }}\n\
         spec: {{ replicas: 2, selector: {{ matchLabels: {labels} }}, template: {template} }}\n"
    );
    cluster.file("job.yaml", &text);
    let told = flat(&cluster.told(
        0,
        &[
            "job", "submit", "job.yaml", "-i", INV, "--watch", "--for", "60s",
        ],
    ));
    // What the Deployment says of its pods may be a moment ahead of what the pods say themselves.
    assert!(
        told.contains("Deployment default/infer running; 2 pods") && told.contains("running after"),
        "{told}"
    );
    cluster.told(0, &["job", "delete", "infer", "-i", INV, "--yes"]);
    assert_eq!(
        plane.kubectl(&["get", "deployments,pods", "-o", "name"]),
        ""
    );
}

/// As its operator would: takes up the trial whose name begins like this, and lets its launcher
/// run.
fn takes_up(plane: &ControlPlane, start: &str) -> String {
    for _ in 0..240 {
        let named = plane.kubectl(&["get", "mpijobs", "-o", "jsonpath={.items[*].metadata.name}"]);
        if let Some(job) = named
            .split_whitespace()
            .find(|name| name.starts_with(start))
        {
            let launcher = format!("{job}-launcher");
            pod_of(plane, job, &launcher, "launcher", 0);
            plane.kubectl(&[
                "wait",
                &format!("pod/{launcher}"),
                "--for=condition=Ready",
                "--timeout=60s",
            ]);
            says_of(plane, job, &[("Created", "True"), ("Running", "True")]);
            return job.to_owned();
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    panic!("no job {start} came");
}

/// The story of the page: all goes but pods with RDMA on the pod network, whose launcher hangs.
pub fn trials_name_the_first_that_fails(plane: &ControlPlane, writes_of: &Path) {
    let cluster = Cluster::new(plane, SUBMITTER);
    let kubeconfig = plane.kubeconfig(SUBMITTER);
    let spec = format!(
        "cluster: train\n\
         fabric: {{ kind: erdma }}\n\
         ssh: none\n\
         nodes:\n  - {{ name: \"gpu-[001-002]\", os: alinux-3, instance: gn8is, gpu: {{ model: L20, count: \
         1 }}, nics: {{ model: eRDMA, netdev: eth0 }} }}\n\
         kubernetes: {{ name: prod, kubeconfig: {}, platform: ack-managed, erdma: {{ \
         prefer_driver: ofed }} }}\n",
        kubeconfig.display()
    );
    cluster.file("inv/cluster.yaml", &spec);
    let channel = |network: &str| {
        [
            format!(
                "w-0:7:42 [0] NCCL INFO NET/{network} : Using [0]erdma_0:1/RoCE [RO]; OOB \
                 eth0:10.0.0.1<0>"
            ),
            format!("w-0:7:42 [0] NCCL INFO Using network {network}"),
            format!(
                "w-0:7:42 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/{network}/0"
            ),
            "w-0:7:42 [0] NCCL INFO Connected all rings".to_owned(),
        ]
    };
    let write = |lines: &[String]| {
        writes(
            writes_of,
            &lines
                .iter()
                .map(|line| (1, line.as_str()))
                .collect::<Vec<_>>(),
        )
    };
    let words = [
        "doctor",
        "--ladder",
        "-i",
        INV,
        "--image",
        "own/nccl-tests:1",
        "--gpus",
        "1",
        "--stuck-after",
        "4s",
    ];
    write(&channel("IB"));
    let mut climbing = Watching::begin(&cluster, &words);
    says_of(
        plane,
        &takes_up(plane, "railwright-host-network-"),
        &[("Running", "False"), ("Succeeded", "True")],
    );
    climbing.until("pods, network of the host");
    let tcp = [
        "w-0:7:42 [0] NCCL INFO Using network Socket",
        "w-1:7:42 [0] NCCL INFO Using network Socket",
        "Train Epoch: 1",
    ];
    write(&tcp.map(str::to_owned));
    says_of(
        plane,
        &takes_up(plane, "railwright-without-rdma-"),
        &[("Running", "False"), ("Succeeded", "True")],
    );
    climbing.until("pods, without RDMA");
    write(&[]);
    takes_up(plane, "railwright-with-rdma-");
    let told = climbing.ends(1);
    insta::assert_snapshot!(told, @r"
     ? hosts                      no host is reached over SSH
       pods, network of the host  over RoCE, to its end
       pods, without RDMA         over TCP, to its end
     ! pods, with RDMA            it runs and has written nothing for 4 s: it is stuck, or its steps are
                                  that long

    FIRST THAT FAILS: pods, with RDMA ---------------------------------------------------------------
       cause   RDMA on the pod network: the interface of the rail and its GID in the pod, a wrong
               `NCCL_IB_HCA`, or HCOLL and UCX of MPI, which take RDMA devices (`-mca coll_hcoll_enable
               0`)
       next    submit that job by itself, and ask for its log and what keeps it: railwright job render
               nccl-test -i inv --image IMAGE | railwright job submit -i inv -; railwright doctor
               nccl-test -i inv
    ");
    assert_eq!(
        plane.kubectl(&["get", "mpijobs,pods", "-o", "name"]),
        "",
        "each trial is taken away"
    );
}
