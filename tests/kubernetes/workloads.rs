//! Workloads in the spec: planned, applied, drifted, fixed, changed, waited for, taken over and
//! undone on a real API server. Pods on Container Compute Service have no nodes of ours; here
//! they run on played ones.

use crate::begun::{begun, ended, until_said};
use crate::cluster::Cluster;
use crate::rig::ControlPlane;

const INV: &str = "inv";
const DEPLOYMENT: &str = "Deployment.apps default/nginx";

/// The spec with these fields of the one workload.
fn spec(cluster: &Cluster<'_>, fields: &str) {
    let workload = format!("  - {{ name: nginx, kind: acs, model: GU8TF, gpus: 8, {fields} }}\n");
    cluster.spec(
        "admin",
        &format!("fabric: {{ kind: acs }}\nworkloads:\n{workload}"),
    );
}

fn of(plane: &ControlPlane, path: &str) -> String {
    plane.kubectl(&[
        "get",
        "deployment",
        "nginx",
        "-o",
        &format!("jsonpath={{{path}}}"),
    ])
}

fn is_settled(cluster: &Cluster<'_>) {
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.told(0, &["drift", INV]);
}

pub fn a_workload_is_planned_applied_mended_and_taken_back(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    spec(
        &cluster,
        "image: example.invalid/a:1, replicas: 2, command: [run]",
    );
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("new: workload nginx, workloads[0] (inv/cluster.yaml:5)"),
        "{plan}"
    );
    assert!(
        plan.contains(&format!(
            "waits until {DEPLOYMENT} is ready, for 30 min at most"
        )),
        "{plan}"
    );
    assert!(
        plan.contains(r#"spec.template.metadata.labels."alibabacloud.com/hpn-type" rdma"#),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        of(
            plane,
            ".spec.template.spec.containers[0].env[?(@.name==\"NCCL_IB_HCA\")].value"
        ),
        "mlx5"
    );
    assert_eq!(of(plane, ".status.availableReplicas"), "2");
    is_settled(&cluster);

    // What somebody changed by hand is found, and set back.
    let patch = r#"{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"example.invalid/b:1"}]}}}}"#;
    plane.kubectl(&[
        "patch",
        "deployment",
        "nginx",
        "--field-manager=kubectl-edit",
        "-p",
        patch,
    ]);
    let drift = cluster.flat(2, &["drift", INV]);
    assert!(
        drift.contains("containers[main].image") && drift.contains("kubectl-edit"),
        "{drift}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        of(plane, ".spec.template.spec.containers[0].image"),
        "example.invalid/a:1"
    );
    is_settled(&cluster);

    // A Deployment brings its pods along by itself.
    let uid = of(plane, ".metadata.uid");
    spec(
        &cluster,
        "image: example.invalid/a:2, replicas: 2, command: [run]",
    );
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains(&format!("interrupts pods of {DEPLOYMENT} start anew")),
        "{plan}"
    );
    assert!(
        plan.contains("spec changed: workloads[0] (inv/cluster.yaml:5), workload nginx"),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        (
            of(plane, ".spec.template.spec.containers[0].image"),
            of(plane, ".metadata.uid")
        ),
        ("example.invalid/a:2".to_owned(), uid.clone())
    );
    is_settled(&cluster);

    // The label by which it knows its pods never changes.
    spec(
        &cluster,
        "image: example.invalid/a:2, replicas: 2, app: other, command: [run]",
    );
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains(&format!(
            "{DEPLOYMENT} is deleted, and its pods with it, and recreated: a field changes that \
             never changes"
        )),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_ne!(of(plane, ".metadata.uid"), uid);
    is_settled(&cluster);

    // A pod that no node has GPUs for is waited for, and told.
    spec(
        &cluster,
        "image: example.invalid/a:2, replicas: 4, app: other, command: [run]",
    );
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(&mut run, "waits: 3 of 4 pods are ready");
    plane.nodes(&["gpu4"], &[("nvidia.com/gpu", "8")]);
    ended(run, 0);
    spec(
        &cluster,
        "image: example.invalid/a:2, replicas: 1, app: other, command: [run]",
    );
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains(&format!("interrupts 3 pods of {DEPLOYMENT} end")),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    is_settled(&cluster);

    cluster.spec("admin", "fabric: { kind: acs }\n");
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("removed from spec")
            && plan.contains(&format!("interrupts pods of {DEPLOYMENT} end")),
        "{plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        plane.kubectl(&[
            "get",
            "deployment",
            "nginx",
            "--ignore-not-found",
            "-o",
            "name"
        ]),
        ""
    );
    is_settled(&cluster);
}

/// It comes last: what a module brings for its cluster is there before its pods ask for it.
pub fn it_comes_after_what_modules_declare(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    spec(
        &cluster,
        "namespace: ml, image: example.invalid/a:1, command: [run]",
    );
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(plan.contains("namespaces \"ml\" not found"), "{plan}");
    cluster.resources(
        "  - id: space\n    kubernetes_object:\n      manifest: { apiVersion: v1, kind: Namespace, metadata: { name: ml } }\n",
    );
    let plan = cluster.told(
        0,
        &[
            "plan",
            INV,
            "--target",
            "kube/prod/Deployment.apps/ml/nginx",
        ],
    );
    let (space, pods) = (
        plan.find(" Namespace ml\n"),
        plan.find(" Deployment.apps ml/nginx\n"),
    );
    assert!(
        space.is_some() && space < pods,
        "what it needs comes along, and first: {plan}"
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    is_settled(&cluster);
    cluster.spec("admin", "fabric: { kind: acs }\n");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["delete", "namespace", "ml", "--wait=false"]);
}

/// Made with kubectl before there was a spec.
pub fn what_was_there_is_taken_over_only_when_asked(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    plane.kubectl(&[
        "create",
        "deployment",
        "nginx",
        "--image=example.invalid/theirs:1",
    ]);
    spec(
        &cluster,
        "image: example.invalid/a:1, container: theirs, command: [run]",
    );
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains("it was never ours")
            && plan.contains("`adopt: true` in the workload takes it over"),
        "{plan}"
    );
    spec(
        &cluster,
        "image: example.invalid/a:1, container: theirs, command: [run], adopt: true",
    );
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        of(plane, ".spec.template.spec.containers[0].image"),
        "example.invalid/a:1"
    );
    is_settled(&cluster);
    cluster.spec("admin", "fabric: { kind: acs }\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        of(plane, ".spec.template.spec.containers[0].image"),
        "example.invalid/a:1",
        "it stays"
    );
    plane.kubectl(&["delete", "deployment", "nginx"]);
}
