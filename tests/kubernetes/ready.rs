//! What becomes ready by itself is waited for, reported meanwhile, and noticed when it is gone.

use crate::begun::{begun, ended, until_said};
use crate::cluster::{Cluster, flat};
use crate::rig::{ControlPlane, ESTABLISHED};
use serde_json::{Value, json};
use std::time::Duration;

const INV: &str = "inv";

/// A daemon set of this name, whose pods want nothing.
fn daemon_set(name: &str, ready: &str) -> String {
    format!(
        "  - id: {name}
    kubernetes_object:
      ready: {ready}
      manifest:
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {{ name: {name}, namespace: default }}
        spec:
          selector: {{ matchLabels: {{ app: {name} }} }}
          template:
            metadata: {{ labels: {{ app: {name} }} }}
            spec: {{ containers: [{{ name: main, image: \"example.invalid/a:1\" }}] }}
"
    )
}

fn allocatable(resource: &str, amounts: &str) -> String {
    format!(
        "  - id: allocatable\n    node_allocatable: {{ resource: {resource}, amounts: {amounts} }}\n"
    )
}

fn gives(plane: &ControlPlane, node: &str, resource: &str, amount: &str) {
    let gives = json!({ resource: amount });
    let patch = json!({ "status": { "allocatable": gives, "capacity": gives } }).to_string();
    plane.kubectl(&["patch", "node", node, "--subresource=status", "-p", &patch]);
}

pub fn pods_and_resources_are_waited_for(plane: &ControlPlane) {
    plane.nodes(&["gpu1", "gpu2"], &[("rdma/a", "63")]);
    let cluster = Cluster::new(plane, "admin");
    let resources = daemon_set("plugin", "{ nodes: 3 }")
        + &allocatable("rdma/a", "{ gpu1: 63, gpu2: 63, gpu3: 63 }")
            .replace("    node_", "    after: [plugin]\n    node_");
    cluster.resources(&resources);
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains(
            "waits until DaemonSet.apps default/plugin is ready on 3 nodes, for 10 min at most"
        ),
        "{plan}"
    );
    assert!(
        plan.contains("now 2 of 3 nodes give it; gpu3: no node of this name"),
        "{plan}"
    );
    assert!(plan.contains("1 resource changes, 1 waited for"), "{plan}");

    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(&mut run, "waits: it is to run on 2 of at least 3 nodes");
    plane.nodes(&["gpu3"], &[("rdma/a", "0")]);
    until_said(
        &mut run,
        "waits: 2 of 3 nodes give it; gpu3: 0 instead of 63",
    );
    gives(plane, "gpu3", "rdma/a", "63");
    ended(run, 0);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );

    gives(plane, "gpu2", "rdma/a", "0");
    let drift = cluster.flat(2, &["drift", INV]);
    assert!(
        drift.contains("NOT READY") && drift.contains("gpu2: 0 instead of 63"),
        "{drift}"
    );
    gives(plane, "gpu2", "rdma/a", "63");
    cluster.told(0, &["drift", INV]);
}

/// An interrupted wait is gone on with; so is one whose run was killed.
pub fn a_wait_that_was_left_is_gone_on_with(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&allocatable("rdma/b", "{ gpu1: 5 }"));
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let mut run = begun(&cluster, &["apply", INV, "--yes"]);
        until_said(&mut run, "waits: 0 of 1 node give it");
        let pid = run.id().to_string();
        assert!(
            std::process::Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        let output = run.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            code,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        if signal == "-INT" {
            let said = flat(&String::from_utf8_lossy(&output.stderr));
            assert!(said.contains("RW0634") && said.contains("resume"), "{said}");
            let mut run = begun(&cluster, &["resume", INV]);
            until_said(&mut run, "waits: 0 of 1 node give it");
            gives(plane, "gpu1", "rdma/b", "5");
            ended(run, 0);
            gives(plane, "gpu1", "rdma/b", "0");
            cluster.resources(&allocatable("rdma/b", "{ gpu1: 6 }"));
            gives(plane, "gpu1", "rdma/b", "0");
            plane.kubectl(&[
                "patch",
                "node",
                "gpu1",
                "--subresource=status",
                "-p",
                r#"{"status":{"allocatable":{"rdma/b":null},"capacity":{"rdma/b":null}}}"#,
            ]);
        }
    }
    gives(plane, "gpu1", "rdma/b", "6");
    cluster.told(0, &["resume", INV]);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
}

/// A rollout that its controller gave up ends the wait, with what keeps the pods.
pub fn what_does_not_heal_ends_the_wait(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let stuck = daemon_set("stuck", "true")
        .replace("kind: DaemonSet", "kind: Deployment")
        .replace(
            "          template:",
            "          progressDeadlineSeconds: 2\n          template:",
        );
    let stuck = stuck.replace(
        "spec: { containers",
        "spec: { nodeSelector: { no: such }, containers",
    );
    cluster.resources(
        &(stuck.clone()
            + "  - id: later\n    after: [stuck]\n    kubernetes_object:\n      manifest: { apiVersion: v1, kind: ConfigMap, metadata: \
               { name: later, namespace: default }, data: { a: b } }\n"),
    );
    let failed = cluster.flat(1, &["apply", INV, "--yes"]);
    assert!(
        failed.contains("RW0633") && failed.contains("has timed out progressing"),
        "{failed}"
    );
    assert!(
        failed.contains("didn't match Pod's node affinity/selector"),
        "why its pods do not run: {failed}"
    );
    assert_eq!(
        plane.kubectl(&[
            "get",
            "configmap",
            "later",
            "--ignore-not-found",
            "-o",
            "name"
        ]),
        "",
        "nothing after it was begun"
    );
    // What its controller said of the earlier rollout stands there until the fix has come about.
    let mut run = begun(&cluster, &["resume", INV]);
    until_said(&mut run, "waits: 0 of 1 pods are ready");
    plane.kubectl(&["label", "node", "gpu1", "no=such"]);
    ended(run, 0);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
}

/// What an operator makes for each node is read by name and never written. Its kind is a fake
/// with the fields of the real one (AliyunContainerService/alibabacloud-erdma-controller
/// api/v1/erdmadevice_types.go).
pub fn what_others_make_is_expected_by_name(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let resource = "  - id: devices
    kubernetes_state:
      api_version: network.alibabacloud.com/v1
      kind: ERdmaDevice
      names: [gpu1, gpu2]
      ready: { each: [{ list: status.devices, field: status, equals: Ready }] }
";
    cluster.resources(resource);
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("waits until 2 of ERdmaDevice.network.alibabacloud.com are ready"),
        "{plan}"
    );
    define_erdma_devices(plane);
    let made = |name: &str, status: &str| erdma_device(plane, name, status);
    made("gpu1", "Ready");
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(&mut run, "waits: 1 of 2; gpu2: not there");
    made("gpu2", "Pending");
    until_said(
        &mut run,
        "gpu2: 0 of 1 in status.devices are Ready, one is Pending attaching",
    );
    made("gpu2", "Ready");
    ended(run, 0);
    std::thread::sleep(Duration::from_millis(100));
    let before = plane.kubectl(&[
        "get",
        "erdmadevices",
        "-o",
        "jsonpath={.items[*].metadata.resourceVersion}",
    ]);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    assert_eq!(
        plane.kubectl(&[
            "get",
            "erdmadevices",
            "-o",
            "jsonpath={.items[*].metadata.resourceVersion}"
        ]),
        before
    );
    plane.kubectl(&["delete", "crd", "erdmadevices.network.alibabacloud.com"]);
}

/// Three projects define the kind of an MPIJob, each with a version of its own: that some
/// definition of the name is there is not enough.
pub fn a_kind_is_waited_for_in_its_version(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = |name: &str, storage: bool| json!({ "name": name, "served": true, "storage": storage, "schema": schema });
    define(
        plane,
        "kubeflow.org",
        "MPIJob",
        "Namespaced",
        &version("v1", true),
    );
    let spec = std::fs::read_to_string(cluster.folder().join("inv/cluster.yaml")).unwrap();
    cluster.file(
        "inv/cluster.yaml",
        &(spec + "modules: { mpi-operator: { enabled: true, parameters: { within_s: 60 } } }\n"),
    );
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(
        &mut run,
        "waits: 0 of 1; mpijobs.kubeflow.org: served.v2beta1 is not there yet, and is to be true",
    );
    let more =
        json!([{ "op": "add", "path": "/spec/versions/-", "value": version("v2beta1", false) }])
            .to_string();
    plane.kubectl(&[
        "patch",
        "crd",
        "mpijobs.kubeflow.org",
        "--type=json",
        "-p",
        &more,
    ]);
    until_said(&mut run, "waits: 0 of 1 there");
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &run.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    ended(run, 130);
    plane.kubectl(&["delete", "crd", "mpijobs.kubeflow.org"]);
}

/// A fake kind, with the fields of the real one.
pub fn define_erdma_devices(plane: &ControlPlane) {
    let text = json!({ "type": "string" });
    let device =
        json!({ "type": "object", "properties": { "id": text, "status": text, "message": text } });
    let status = json!({ "type": "object", "properties": { "devices": { "type": "array", "items": device } } });
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "properties": { "status": status } } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": { "status": {} } });
    define(
        plane,
        "network.alibabacloud.com",
        "ERdmaDevice",
        "Cluster",
        &version,
    );
}

/// The one of this node, as its controller would leave it.
pub fn erdma_device(plane: &ControlPlane, node: &str, status: &str) {
    plane.apply(&json!({ "apiVersion": "network.alibabacloud.com/v1", "kind": "ERdmaDevice", "metadata": { "name": node } }).to_string());
    let status = json!({ "status": { "devices": [{ "id": "eni-1", "status": status, "message": "attaching" }] } }).to_string();
    plane.kubectl(&[
        "patch",
        "erdmadevice",
        node,
        "--subresource=status",
        "--type=merge",
        "-p",
        &status,
    ]);
}

/// A kind of objects with one version.
pub fn define(plane: &ControlPlane, group: &str, kind: &str, scope: &str, version: &Value) {
    let singular = kind.to_lowercase();
    let names = json!({ "plural": format!("{singular}s"), "singular": singular, "kind": kind });
    let spec = json!({ "group": group, "scope": scope, "names": names, "versions": [version] });
    let name = format!("{singular}s.{group}");
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": name }, "spec": spec });
    plane.apply(&definition.to_string());
    plane.kubectl(&["wait", &format!("crd/{name}"), ESTABLISHED, "--timeout=60s"]);
}

/// An operator may refuse what its definition takes, and say so in an event alone.
pub fn what_an_operator_warns_of_is_told(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": schema });
    define(plane, "jobs.example.org", "Job", "Namespaced", &version);
    cluster.resources(
        "  - id: job
    kubernetes_object:
      ready: { conditions: [{ type: Running }], within_s: 60 }
      manifest: { apiVersion: jobs.example.org/v1, kind: Job, metadata: { name: j, namespace: default } }
",
    );
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(&mut run, "waits: condition Running is not there yet");
    let about = json!({ "apiVersion": "jobs.example.org/v1", "kind": "Job", "name": "j", "namespace": "default" });
    let event = json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": "e", "namespace": "default" },
        "involvedObject": about, "type": "Warning", "reason": "ValidationError", "message": "no such rail" });
    plane.kubectl_as("admin", &["create", "-f", "-"], &event.to_string());
    until_said(&mut run, "and is to be True; warning: no such rail");
    let status = json!({ "status": { "conditions": [{ "type": "Running", "status": "True" }] } })
        .to_string();
    plane.kubectl(&[
        "patch",
        "job.jobs.example.org",
        "j",
        "--type=merge",
        "-p",
        &status,
    ]);
    ended(run, 0);
    cluster.resources("  []\n");
    cluster.told(0, &["apply", INV, "--yes"]);
    plane.kubectl(&["delete", "crd", "jobs.jobs.example.org"]);
}

/// A status that an operator wrote before it saw the last change.
pub fn what_is_of_before_a_change_says_nothing(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": { "status": {} } });
    let names = json!({ "plural": "policies", "singular": "policy", "kind": "Policy" });
    let spec = json!({ "group": "x.example.org", "scope": "Cluster", "names": names, "versions": [version] });
    plane.apply(
        &json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "policies.x.example.org" }, "spec": spec })
        .to_string(),
    );
    plane.kubectl(&[
        "wait",
        "crd/policies.x.example.org",
        ESTABLISHED,
        "--timeout=60s",
    ]);
    let resource = |value: u32, ready: &str| {
        format!(
            "  - id: policy\n    kubernetes_object:\n      ready: {ready}\n      manifest: {{ apiVersion: x.example.org/v1, kind: Policy, metadata: {{ name: p \
             }}, spec: {{ v: {value} }} }}\n"
        )
    };
    let said = |status: &str| {
        plane.kubectl(&[
            "patch",
            "policy",
            "p",
            "--subresource=status",
            "--type=merge",
            "-p",
            status,
        ])
    };
    let ready =
        "{ fields: { status.state: ready }, failed: { status.state: error }, within_s: 60 }";
    cluster.resources(&resource(1, "false"));
    cluster.told(0, &["apply", INV, "--yes"]);
    said(r#"{"status":{"state":"ready","observedGeneration":1}}"#);
    cluster.resources(&resource(2, ready));
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(
        &mut run,
        "waits: its controller has not seen the last change yet",
    );
    said(r#"{"status":{"state":"ready","observedGeneration":2}}"#);
    ended(run, 0);
    said(r#"{"status":{"state":"error","reason":"two of them"}}"#);
    let state = "  - id: state\n    kubernetes_state: { api_version: x.example.org/v1, kind: Policy, names: [p], \
                 ready: { fields: { status.state: ready }, failed: { status.state: error }, \
                 within_s: 600 } }\n";
    cluster.resources(&(resource(2, "false") + state));
    let failed = cluster.flat(1, &["apply", INV, "--yes"]);
    assert!(
        failed.contains("RW0633") && failed.contains("status.state is error two of them"),
        "{failed}"
    );
    plane.kubectl(&["delete", "crd", "policies.x.example.org"]);
}

/// Waiting makes nothing that somebody deleted.
pub fn what_is_gone_is_not_waited_for(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    cluster.resources(&daemon_set("gone", "{ nodes: 99 }"));
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(&mut run, "waits: it is to run on 3 of at least 99 nodes");
    plane.kubectl(&["delete", "daemonset", "gone"]);
    let failed = ended(run, 1);
    assert!(
        failed.contains("RW0613") && failed.contains("something on the cluster"),
        "{failed}"
    );
}
