//! Module mpi-operator with the operator (kubeflow/mpi-operator v0.8.0), and an MPIJob that asks
//! for RDMA devices.

use crate::cluster::Cluster;
use crate::rig::ControlPlane;
use crate::software::{Operator, Software};
use crate::waited::comes_while_it_is_waited_for;

const INV: &str = "inv";

/// Installed as the module's README has it.
pub fn the_operator_is_waited_for(software: &Software, plane: &ControlPlane) {
    comes_while_it_is_waited_for(
        plane,
        "mpi-operator",
        ["-f", &software.shipped("deploy/v2beta1/mpi-operator.yaml")],
    );
}

/// In the place of its pod.
pub fn operator(software: &Software, plane: &ControlPlane) -> Operator {
    software.operate(
        plane,
        ("mpi-operator", "mpi-operator"),
        "--kubeConfig",
        &["--lock-namespace", "mpi-operator"],
    )
}

/// Two workers with all GPUs of their nodes and one unit of a pool, and a launcher.
fn job(name: &str, implementation: &str, ready: &str) -> String {
    format!(
        "  - id: job
    kubernetes_object:
      ready: {ready}
      manifest:
        apiVersion: kubeflow.org/v2beta1
        kind: MPIJob
        metadata: {{ name: {name}, namespace: default }}
        spec:
          slotsPerWorker: 8
          mpiImplementation: {implementation}
          mpiReplicaSpecs:
            Launcher:
              template: {{ spec: {{ containers: [{{ name: launcher, image: \"example.invalid/mpi:1\", command: [mpirun, all_reduce_perf] }}] }} }}
            Worker:
              replicas: 2
              template:
                spec:
                  containers:
                    - name: worker
                      image: example.invalid/mpi:1
                      resources: {{ limits: {{ nvidia.com/gpu: 8, rdma/rdma_shared_device_a: 1 }} }}
"
    )
}

const RUNS: &str = "{ conditions: [{ type: Running }], within_s: 120 }";

pub fn a_job_is_made_and_taken_back(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&job("train", "OpenMPI", RUNS));
    cluster.told(0, &["apply", INV, "--yes"]);
    let workers = "jsonpath={range .items[*]}{.spec.nodeName} {.status.phase} \
                   {.spec.containers[0].resources.limits.rdma/rdma_shared_device_a}{\"\\n\"}{end}";
    let workers = plane.kubectl(&[
        "get",
        "pods",
        "-l",
        "training.kubeflow.org/job-role=worker",
        "--sort-by=.spec.nodeName",
        "-o",
        workers,
    ]);
    assert_eq!(workers, "gpu1 Running 1\ngpu2 Running 1\n");
    let hosts = plane.kubectl(&[
        "get",
        "configmap",
        "train-config",
        "-o",
        "jsonpath={.data.hostfile}",
    ]);
    assert_eq!(
        hosts,
        "train-worker-0.train.default.svc slots=8\ntrain-worker-1.train.default.svc slots=8\n"
    );
    // What the operator and the defaults of its definition wrote is no change.
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["wait", "pods", "--all", "--for=delete", "--timeout=60s"]);
}

pub fn a_job_that_it_refuses_is_told(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&job("train", "OpenMPI5", RUNS));
    let plan = cluster.flat(3, &["plan", INV]);
    assert!(plan.contains("Unsupported value"), "{plan}");
    // The definition takes a name of which no Service can be made; the operator says so in an event
    // alone.
    cluster.resources(&job(
        "1train",
        "OpenMPI",
        "{ conditions: [{ type: Running }], within_s: 10 }",
    ));
    let failed = cluster.flat(1, &["apply", INV, "--yes"]);
    assert!(
        failed.contains("RW0633")
            && failed.contains("condition Running is not there yet, and is to be True; warning: "),
        "{failed}"
    );
    assert!(
        failed.contains("a DNS-1035 label must consist of"),
        "{failed}"
    );
    let said = plane.kubectl(&[
        "get",
        "events",
        "--field-selector",
        "involvedObject.kind=MPIJob,type=Warning",
        "-o",
        "jsonpath={.items[*].reason}",
    ]);
    assert_eq!(said, "ValidationError");
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
}

/// One that somebody took away is missed.
pub fn an_operator_that_is_gone_is_drift(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.spec("admin", "modules: { mpi-operator: { enabled: true } }\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["-n", "mpi-operator", "delete", "deployment", "mpi-operator"]);
    let drift = cluster.flat(2, &["drift", INV]);
    assert!(
        drift.contains("NOT READY") && drift.contains("0 of 1 there"),
        "{drift}"
    );
}
