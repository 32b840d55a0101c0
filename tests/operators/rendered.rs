//! What `job render` and `job from-arena` write, as the operators themselves take it: submitted,
//! run, seen and deleted.

use crate::cluster::Cluster;
use crate::rig::ControlPlane;
use serde_json::Value;
use std::time::{Duration, Instant};

const INV: &str = "inv";

/// The objects, which alone are on stdout.
fn written(cluster: &Cluster<'_>, words: &[&str]) {
    let output = cluster.command(words).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{words:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    cluster.file("job.yaml", &String::from_utf8(output.stdout).unwrap());
}

fn submitted(cluster: &Cluster<'_>) {
    cluster.told(0, &["job", "submit", "job.yaml", "-i", INV]);
}

/// Until the list says of the job that it runs.
fn runs(cluster: &Cluster<'_>, job: &str) {
    let began = Instant::now();
    loop {
        let listed: Value =
            serde_json::from_str(&cluster.told(0, &["job", "list", "-i", INV, "--json"])).unwrap();
        let found = listed["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == job)
            .cloned()
            .unwrap();
        if found["phase"] == "running" {
            assert_eq!(found["submitted"], true);
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{found}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

fn pods(plane: &ControlPlane) -> Vec<Value> {
    let listed: Value = serde_json::from_str(&plane.kubectl(&[
        "get",
        "pods",
        "--sort-by=.metadata.name",
        "-o",
        "json",
    ]))
    .unwrap();
    listed["items"].as_array().unwrap().clone()
}

fn deleted(cluster: &Cluster<'_>, job: &str, label: &str) {
    cluster.told(0, &["job", "delete", job, "-i", INV, "--yes"]);
    cluster.plane.kubectl(&[
        "wait",
        "pods",
        "-l",
        &format!("{label}={job}"),
        "--for=delete",
        "--timeout=60s",
    ]);
    let left = [
        "get",
        "deployments,services,configmaps",
        "-l",
        &format!("railwright.io/job={job}"),
        "-o",
        "name",
    ]
    .map(str::to_owned);
    assert_eq!(
        cluster.plane.kubectl(&left.each_ref().map(String::as_str)),
        ""
    );
    assert!(
        cluster
            .told(0, &["job", "delete", job, "-i", INV, "--yes"])
            .contains("Nothing is left")
    );
}

/// Workers with all GPUs of their nodes and one unit of a pool, and the launcher that waits for
/// them.
pub fn nccl_tests_come_to_run(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let words = "job render nccl-test -i inv --image example.invalid/mpi:1 --workers 2 --gpus 8 \
                 --device rdma/rdma_shared_device_a=1 --host-network";
    written(&cluster, &words.split(' ').collect::<Vec<_>>());
    submitted(&cluster);
    runs(&cluster, "nccl-test");
    let pods = pods(plane);
    assert_eq!(pods.len(), 3, "a launcher and two workers");
    let launcher = pods
        .iter()
        .find(|pod| pod["metadata"]["labels"]["training.kubeflow.org/job-role"] == "launcher")
        .unwrap();
    let line = launcher["spec"]["containers"][0]["command"].to_string();
    assert!(
        line.contains(r#""-mca","coll_hcoll_enable","0","-mca","btl","tcp,self""#),
        "{line}"
    );
    let watched = cluster.flat(3, &["job", "watch", "nccl-test", "-i", INV, "--for", "1s"]);
    assert!(
        watched.contains("MPIJob default/nccl-test running; 3 pods: 3 running"),
        "{watched}"
    );
    deleted(&cluster, "nccl-test", "training.kubeflow.org/job-name");
}

/// The line of the page, with its names.
pub fn a_line_of_arena_comes_to_run(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let line = "arena submit pytorch --name=pytorch-mnist --namespace=default --workers=2 --gpus=8 \
                --device=rdma/rdma_shared_device_a=1 --nproc-per-node=8 --env=NCCL_DEBUG=INFO \
                --clean-task-policy=None --working-dir=/root --image=example.invalid/torch:1 \
                --tensorboard --logdir=/workspace/logs \"torchrun main.py --backend nccl\"";
    written(&cluster, &["job", "from-arena", line]);
    submitted(&cluster);
    runs(&cluster, "pytorch-mnist");
    let names: Vec<String> = pods(plane)
        .iter()
        .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    let of_job: Vec<&String> = names
        .iter()
        .filter(|name| !name.contains("tensorboard"))
        .collect();
    assert_eq!(
        of_job,
        ["pytorch-mnist-master-0", "pytorch-mnist-worker-0"],
        "{names:?}"
    );
    assert_eq!(names.len(), 3, "and TensorBoard beside them: {names:?}");
    deleted(&cluster, "pytorch-mnist", "training.kubeflow.org/job-name");
    plane.kubectl(&["wait", "pods", "--all", "--for=delete", "--timeout=60s"]);
}

/// Of the shipped inventory, on nodes that its own RayCluster leaves free: pods with all pools.
pub fn a_ray_cluster_comes_to_run(cluster: &Cluster<'_>) {
    let gives = [
        ("cpu", "192"),
        ("memory", "2Ti"),
        ("nvidia.com/gpu-h800", "8"),
    ];
    let pools = [
        ("rdma/rdma_shared_device_a", "63"),
        ("rdma/rdma_shared_device_b", "63"),
    ];
    cluster
        .plane
        .nodes(&["gpu05", "gpu06"], &[&gives[..], &pools].concat());
    let words = "job render ray -i inv --image rayproject/ray:2.46.0 --name ray-job --replicas 1 \
                 --gpu-resource nvidia.com/gpu-h800";
    written(cluster, &words.split(' ').collect::<Vec<_>>());
    submitted(cluster);
    let watched = cluster.flat(0, &["job", "watch", "ray-job", "-i", INV, "--for", "120s"]);
    assert!(
        watched.contains("RayCluster default/ray-job running"),
        "{watched}"
    );
    deleted(cluster, "ray-job", "ray.io/cluster");
}
