//! Inventory ray-shared-rdma with KubeRay's operator (ray-project/kuberay ray-operator v1.6.2): its
//! pools, and the RayCluster of its workloads, whose pods ask for them.

use crate::cluster::Cluster;
use crate::device_plugin;
use crate::rig::ControlPlane;
use crate::software::{Operator, Software};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const INV: &str = "inv";
const KUBE: &str = "kube/ray-shared-rdma";
const NODES: [&str; 4] = ["gpu01", "gpu02", "gpu03", "gpu04"];

/// The operator runs beside the Deployment that its project ships, in the place of its pod, and the
/// nodes give what the spec says.
pub fn operator(software: &Software, plane: &ControlPlane) -> Operator {
    let gives = [
        ("cpu", "192"),
        ("memory", "2Ti"),
        ("nvidia.com/gpu-h800", "8"),
    ];
    plane.nodes(
        &NODES,
        &[
            &gives[..],
            &[
                ("rdma/rdma_shared_device_a", "63"),
                ("rdma/rdma_shared_device_b", "63"),
            ],
        ]
        .concat(),
    );
    plane.kubectl(&[
        "apply",
        "--server-side",
        "-k",
        &software.shipped("config/default"),
    ]);
    plane.kubectl(&[
        "rollout",
        "status",
        "deployment/kuberay-operator",
        "--timeout=60s",
    ]);
    software.operate(
        plane,
        ("default", "kuberay-operator"),
        "--kubeconfig",
        &["--enable-leader-election=false"],
    )
}

/// The shipped inventory as it is, with what its operators keep beside it.
pub fn inventory<'a>(plane: &'a ControlPlane) -> Cluster<'a> {
    fn copy(cluster: &Cluster<'_>, from: &Path, to: &str) {
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let path = format!("{to}/{}", entry.file_name().to_str().unwrap());
            match entry.path() {
                folder if folder.is_dir() => copy(cluster, &folder, &path),
                file => cluster.file(&path, &fs::read_to_string(file).unwrap()),
            }
        }
    }
    let cluster = Cluster::new(plane, "admin");
    copy(
        &cluster,
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("inventories/ray-shared-rdma"),
        INV,
    );
    for beside in ["known_hosts", "keys/mellanox.asc", "keys/cuda.asc"] {
        // Of the hosts, and no host is asked.
        cluster.file(
            &format!("inv/{beside}"),
            "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----\n",
        );
    }
    cluster.file(
        "inv/kubeconfig",
        &fs::read_to_string(plane.kubeconfig("admin")).unwrap(),
    );
    cluster
}

pub fn the_inventory_comes_to_run(cluster: &Cluster<'_>) {
    cluster.told(0, &["apply", INV, "--yes", "--target", KUBE]);
    let pods: Value = serde_json::from_str(&cluster.plane.kubectl(&[
        "get",
        "pods",
        "-l",
        "ray.io/cluster=raycluster-kuberay",
        "-o",
        "json",
    ]))
    .unwrap();
    let pods = pods["items"].as_array().unwrap();
    let mut nodes: Vec<_> = pods
        .iter()
        .map(|pod| pod["spec"]["nodeName"].as_str().unwrap())
        .collect();
    nodes.sort_unstable();
    assert_eq!(nodes, NODES, "the head and three workers, one a node");
    for pod in pods {
        let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
        for (resource, amount) in [
            ("nvidia.com/gpu-h800", "8"),
            ("rdma/rdma_shared_device_a", "1"),
            ("rdma/rdma_shared_device_b", "1"),
        ] {
            assert_eq!(limits[resource], amount, "{limits}");
        }
    }
    // What the operator and the defaults of its definition wrote is no change.
    assert!(
        cluster
            .told(0, &["plan", INV, "--target", KUBE, "--detailed-exitcode"])
            .contains("No changes.")
    );
}

/// As it came to the pods of the plugin.
pub fn its_pools_are_what_the_plugin_takes(cluster: &Cluster<'_>, plugin: &Software) {
    let words = [
        "-n",
        "kube-system",
        "get",
        "configmap",
        "rdma-devices",
        "-o",
        "jsonpath={.data.config\\.json}",
    ];
    assert_eq!(
        device_plugin::refusal(plugin, &cluster.plane.kubectl(&words)),
        None
    );
}

/// The operator makes a worker anew that no node can run.
pub fn a_worker_that_is_missing_is_waited_for(cluster: &Cluster<'_>) {
    let worker = "--selector=ray.io/node-type=worker";
    let node = cluster.plane.kubectl(&[
        "get",
        "pods",
        worker,
        "-o",
        "jsonpath={.items[0].spec.nodeName}",
    ]);
    cluster.plane.kubectl(&["cordon", &node]);
    cluster.plane.kubectl(&[
        "delete",
        "pods",
        worker,
        &format!("--field-selector=spec.nodeName={node}"),
    ]);
    cluster.plane.kubectl(&[
        "wait",
        "raycluster/raycluster-kuberay",
        "--for=jsonpath={.status.readyWorkerReplicas}=2",
        "--timeout=60s",
    ]);
    let plan = cluster.flat(2, &["plan", INV, "--target", KUBE, "--detailed-exitcode"]);
    assert!(
        plan.contains("now status.readyWorkerReplicas is 2"),
        "{plan}"
    );
    cluster.plane.kubectl(&["uncordon", &node]);
    cluster.told(0, &["apply", INV, "--yes", "--target", KUBE]);
}

/// The spec with another text in the place of one.
fn respec(cluster: &Cluster<'_>, before: &str, after: &str) {
    let text = fs::read_to_string(cluster.folder().join("inv/cluster.yaml")).unwrap();
    assert!(text.contains(before), "{before}");
    cluster.file("inv/cluster.yaml", &text.replace(before, after));
}

fn uid(cluster: &Cluster<'_>) -> String {
    cluster.plane.kubectl(&[
        "get",
        "raycluster",
        "raycluster-kuberay",
        "-o",
        "jsonpath={.metadata.uid}",
    ])
}

/// The images of its pods, and how many there are.
fn images(cluster: &Cluster<'_>) -> (BTreeSet<String>, usize) {
    let words = [
        "get",
        "pods",
        "-l",
        "ray.io/cluster=raycluster-kuberay",
        "-o",
        "jsonpath={.items[*].spec.containers[0].image}",
    ];
    let all = cluster.plane.kubectl(&words);
    (
        all.split_whitespace().map(str::to_owned).collect(),
        all.split_whitespace().count(),
    )
}

/// A template that changes in place changes no pod: that is why it takes a new RayCluster.
pub fn a_template_that_changes_is_a_replacement(cluster: &Cluster<'_>) {
    let before = (uid(cluster), images(cluster));
    // With one worker less, by which the operator shows that it has seen the change.
    let patch = r#"[{"op": "replace", "path": "/spec/workerGroupSpecs/0/template/spec/containers/0/image", "value": "example.invalid/edited:1"},
                    {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 2}]"#;
    cluster.plane.kubectl(&[
        "patch",
        "raycluster",
        "raycluster-kuberay",
        "--type=json",
        "--field-manager=kubectl-edit",
        "-p",
        patch,
    ]);
    let plan = cluster.flat(0, &["plan", INV, "--target", KUBE]);
    assert!(
        plan.contains("template.spec.containers[ray-worker].image")
            && plan.contains("set by kubectl-edit at "),
        "{plan}"
    );
    assert!(
        plan.contains("drifted: changed on the target since we applied it"),
        "{plan}"
    );
    let fewer = "--for=jsonpath={.status.readyWorkerReplicas}=2";
    cluster.plane.kubectl(&[
        "wait",
        "raycluster/raycluster-kuberay",
        fewer,
        "--timeout=60s",
    ]);
    let old = before.1.0.clone();
    assert_eq!(
        (uid(cluster), images(cluster)),
        (before.0.clone(), (old, 3)),
        "the operator has seen the change, and made no pod anew"
    );
    cluster.told(0, &["apply", INV, "--yes", "--target", KUBE]);
    assert_ne!(uid(cluster), before.0);
    assert_eq!(images(cluster), before.1);

    let old = uid(cluster);
    respec(cluster, "ray-ml-vllm:0.7.1", "ray-ml-vllm:0.7.2");
    respec(
        cluster,
        "    replicas: 3\n",
        "    replicas: 3\n    ray_version: 2.40.0\n",
    );
    let plan = cluster.flat(0, &["plan", INV, "--target", KUBE]);
    let says = "RayCluster.ray.io default/raycluster-kuberay is deleted, and its pods with it, and \
                recreated: its controller leaves its pods as they are when this changes";
    assert!(
        plan.contains(says) && plan.contains("spec changed: workloads[0]"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes", "--target", KUBE]);
    assert_ne!(uid(cluster), old);
    let (images, count) = images(cluster);
    assert_eq!((images.len(), count), (1, 4), "{images:?}");
    assert!(
        images.first().unwrap().ends_with("ray-ml-vllm:0.7.2"),
        "{images:?}"
    );
    assert!(
        cluster
            .told(0, &["plan", INV, "--target", KUBE, "--detailed-exitcode"])
            .contains("No changes.")
    );
}

/// The number of workers is what the operator itself brings about.
pub fn workers_that_are_fewer_end_and_the_rest_stays(cluster: &Cluster<'_>) {
    let before = uid(cluster);
    respec(cluster, "    replicas: 3\n", "    replicas: 2\n");
    let plan = cluster.flat(0, &["plan", INV, "--target", KUBE]);
    assert!(
        plan.contains("interrupts 1 pod of RayCluster.ray.io default/raycluster-kuberay end")
            && !plan.contains("recreated"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes", "--target", KUBE]);
    assert_eq!(uid(cluster), before);
    assert!(
        cluster
            .told(0, &["plan", INV, "--target", KUBE, "--detailed-exitcode"])
            .contains("No changes.")
    );
}

pub fn a_workload_that_is_taken_out_is_taken_back(cluster: &Cluster<'_>) {
    let text = fs::read_to_string(cluster.folder().join("inv/cluster.yaml")).unwrap();
    let (before, rest) = text.split_once("workloads:\n").unwrap();
    // The waiver goes with what it was for.
    let after = &rest[rest.find("repositories:\n").unwrap()..];
    cluster.file("inv/cluster.yaml", &format!("{before}{after}"));
    let plan = cluster.flat(0, &["plan", INV, "--target", KUBE]);
    assert!(
        plan.contains("interrupts pods of RayCluster.ray.io default/raycluster-kuberay end"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes", "--target", KUBE]);
    assert_eq!(
        cluster.plane.kubectl(&["get", "raycluster", "-o", "name"]),
        ""
    );
    cluster.file("inv/cluster.yaml", &text);
}
