//! Module training-operator with the operator (kubeflow/training-operator v1.9.3), its webhook, and
//! a PyTorchJob that asks for RDMA devices.

use crate::cluster::Cluster;
use crate::rig::ControlPlane;
use crate::software::{Operator, Software};
use crate::waited::comes_while_it_is_waited_for;
use serde_json::Value;
use std::fs;
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

const INV: &str = "inv";

/// Installed as the module's README has it.
pub fn the_operator_is_waited_for(software: &Software, plane: &ControlPlane) {
    comes_while_it_is_waited_for(
        plane,
        "training-operator",
        ["-k", &software.shipped("manifests/overlays/standalone")],
    );
}

/// In the place of its pod. The address of its Service is one of this machine, as there is no
/// kube-proxy, and the certificate comes from the Secret that the operator fills to the folder
/// where its pod has it (pkg/cert/cert.go), as a kubelet would bring it.
pub fn operator(software: &Software, plane: &ControlPlane) -> Operator {
    let address = plane.kubectl(&[
        "-n",
        "kubeflow",
        "get",
        "service",
        "training-operator",
        "-o",
        "jsonpath={.spec.clusterIP}",
    ]);
    let words = ["address", "add", &format!("{address}/32"), "dev", "lo"];
    assert!(Command::new("ip").args(words).status().unwrap().success());
    let operator = software.operate(
        plane,
        ("kubeflow", "training-operator"),
        "--kubeconfig",
        &["--webhook-server-port", "443"],
    );
    let mount = operator.tmp.path().join("k8s-webhook-server/serving-certs");
    fs::create_dir_all(&mount).unwrap();
    within("the webhook answers", || {
        let part = |name: &str| {
            let template = format!(
                "go-template={{{{with .data}}}}{{{{with index . \"{name}\"}}}}{{{{base64decode \
                 .}}}}{{{{end}}}}{{{{end}}}}"
            );
            plane.kubectl(&[
                "-n",
                "kubeflow",
                "get",
                "secret",
                "training-operator-webhook-cert",
                "-o",
                &template,
            ])
        };
        for name in ["ca.crt", "tls.crt", "tls.key"] {
            let text = part(name);
            if !text.is_empty() && !mount.join(name).exists() {
                fs::write(mount.join(name), text).unwrap();
            }
        }
        TcpStream::connect((address.as_str(), 443)).is_ok()
    });
    operator
}

fn within(what: &str, comes: impl Fn() -> bool) {
    let began = Instant::now();
    while !comes() {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "{what}: not within 120 s"
        );
        std::thread::sleep(Duration::from_millis(300));
    }
}

/// A master and a worker with all GPUs of their nodes and one unit of a pool.
fn job(container: &str) -> String {
    let pods = format!(
        "{{ replicas: 1, template: {{ spec: {{ containers: [{{ name: {container}, image: \
         \"example.invalid/torch:1\", resources: {{ limits: {{ nvidia.com/gpu: 8, \
         rdma/rdma_shared_device_a: 1 }} }} }}] }} }} }}"
    );
    format!(
        "  - id: job
    kubernetes_object:
      ready: {{ conditions: [{{ type: Running }}], within_s: 120 }}
      manifest:
        apiVersion: kubeflow.org/v1
        kind: PyTorchJob
        metadata: {{ name: train, namespace: default }}
        spec:
          pytorchReplicaSpecs:
            Master: {pods}
            Worker: {pods}
"
    )
}

pub fn a_job_is_made_and_taken_back(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&job("pytorch"));
    cluster.told(0, &["apply", INV, "--yes"]);
    let pods: Value = serde_json::from_str(&plane.kubectl(&[
        "get",
        "pods",
        "--sort-by=.metadata.name",
        "-o",
        "json",
    ]))
    .unwrap();
    let pods = pods["items"].as_array().unwrap();
    let names: Vec<_> = pods
        .iter()
        .map(|pod| pod["metadata"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["train-master-0", "train-worker-0"]);
    assert_ne!(pods[0]["spec"]["nodeName"], pods[1]["spec"]["nodeName"]);
    for pod in pods {
        let container = &pod["spec"]["containers"][0];
        assert_eq!(
            (
                &pod["status"]["phase"],
                &container["resources"]["limits"]["rdma/rdma_shared_device_a"]
            ),
            (&"Running".into(), &"1".into())
        );
        let ranks = container["env"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == "WORLD_SIZE");
        assert_eq!(ranks.unwrap()["value"], "2");
    }
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["wait", "pods", "--all", "--for=delete", "--timeout=60s"]);
}

/// A plan asks the server for a dry run, which asks the webhook.
pub fn a_job_that_its_webhook_refuses_is_not_planned(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&job("main"));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(
        plan.contains(
            "the API server does not take PyTorchJob.kubeflow.org default/train: admission webhook"
        ),
        "{plan}"
    );
    assert!(
        plan.contains("must have at least one container with name pytorch"),
        "{plan}"
    );
}

/// The server takes nothing of the kind then.
pub fn a_webhook_that_is_away_is_told(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&job("pytorch"));
    let held = cluster.flat(3, &["apply", INV, "--yes"]);
    assert!(
        held.contains("failed calling webhook")
            && held.contains("fix what keeps it from answering a dry run"),
        "{held}"
    );
    assert_eq!(plane.kubectl(&["get", "pytorchjobs", "-o", "name"]), "");
}
