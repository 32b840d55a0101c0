//! The objects of NVIDIA's operators by which groups of nodes have NIC drivers and settings of
//! their own, on a real API server with fakes of their definitions, which take everything:
//! what is asked for, waited for and said; nothing of the operators is tested.

use crate::begun::{begun, ended, until_said};
use crate::cluster::Cluster;
use crate::ready::define;
use crate::rig::{ControlPlane, ESTABLISHED};
use serde_json::{Value, json};

const INV: &str = "inv";

fn fakes(plane: &ControlPlane) {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = |status: Value| json!({ "name": "v1alpha1", "served": true, "storage": true, "schema": schema, "subresources": status });
    let conditions = version(json!({ "status": {} }));
    define(
        plane,
        "configuration.net.nvidia.com",
        "NicConfigurationTemplate",
        "Namespaced",
        &conditions,
    );
    for (kind, plural) in [
        ("NicClusterPolicy", "nicclusterpolicies"),
        ("NicNodePolicy", "nicnodepolicies"),
    ] {
        let names = json!({ "plural": plural, "singular": kind.to_lowercase(), "kind": kind });
        let spec = json!({ "group": "mellanox.com", "scope": "Cluster", "names": names, "versions": [conditions] });
        let name = format!("{plural}.mellanox.com");
        plane.apply(&json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": name }, "spec": spec }).to_string());
        plane.kubectl(&["wait", &format!("crd/{name}"), ESTABLISHED, "--timeout=60s"]);
    }
    plane.kubectl(&["create", "namespace", "nvidia-network-operator"]);
}

const TEMPLATES: &str = "modules:
  nic-configuration:
    enabled: true
    parameters: { templates: [{ name: gpu, node_selector: { pool: gpu }, nic_type: 101d, num_vfs: 8 }] }
";

pub fn a_template_waits_for_both_operators_and_counts_as_a_reboot(plane: &ControlPlane) {
    fakes(plane);
    let cluster = Cluster::new(plane, "admin");
    cluster.spec("admin", TEMPLATES);
    let plan = cluster.flat(0, &["plan", INV]);
    assert!(
        plan.contains("empties and reboots every node that gpu selects") && plan.contains("REBOOT"),
        "{plan}"
    );
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(
        &mut run,
        "nodemaintenances.maintenance.nvidia.com: not there",
    );
    let get = [
        "-n",
        "nvidia-network-operator",
        "get",
        "nicconfigurationtemplates",
        "-o",
        "name",
    ];
    assert_eq!(
        plane.kubectl(&get),
        "",
        "nothing is asked of an operator that would not do it"
    );
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    define(
        plane,
        "maintenance.nvidia.com",
        "NodeMaintenance",
        "Namespaced",
        &json!({ "name": "v1alpha1", "served": true, "storage": true, "schema": schema }),
    );
    ended(run, 0);
    assert_eq!(
        plane.kubectl(&get),
        "nicconfigurationtemplate.configuration.net.nvidia.com/gpu\n"
    );
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    cluster.spec(
        "admin",
        &format!(
            "{}rollout: {{ max_disruption: drain }}\n",
            TEMPLATES.replace("num_vfs: 8", "num_vfs: 16")
        ),
    );
    let held = cluster.flat(3, &["plan", INV]);
    assert!(
        held.contains("it disturbs as much as a reboot, and rollout.max_disruption is drain"),
        "{held}"
    );
    cluster.spec("admin", "");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(plane.kubectl(&get), "");
}

pub fn policies_of_groups_are_waited_for_each(plane: &ControlPlane) {
    let cluster = Cluster::new(plane, "admin");
    plane.nodes(&["gpu1"], &[]);
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "network-operator", "namespace": "nvidia-network-operator" },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "o" } }, "template": { "metadata": { "labels": { "app": "o" } },
        "spec": { "containers": [{ "name": "o", "image": "example.invalid/o:1" }] } } } });
    plane.apply(&deployment.to_string());
    let policies = "[{ name: gpu, node_selector: { pool: gpu }, ofed_driver: { version: a } }, { \
                    name: store, node_selector: { pool: store }, sriov_device_plugin: { config: \
                    '{}' } }]";
    cluster.spec(
        "admin",
        &format!(
            "modules:\n  nvidia-network-operator:\n    enabled: true\n    parameters: {{ install: false, within_s: 60, node_policies: {policies} }}\n"
        ),
    );
    let said = |kind: &str, name: &str, generation: u32| {
        let conditions = json!([{ "type": "Ready", "status": "True", "reason": "AllComponentsReady", "observedGeneration": generation }]);
        let status =
            json!({ "status": { "state": "ready", "conditions": conditions } }).to_string();
        plane.kubectl(&[
            "patch",
            kind,
            name,
            "--subresource=status",
            "--type=merge",
            "-p",
            &status,
        ]);
    };
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(&mut run, "waits: status.state is not there yet");
    said("nicclusterpolicy", "nic-cluster-policy", 1);
    for name in ["gpu", "store"] {
        plane.kubectl(&[
            "wait",
            "nicnodepolicy",
            name,
            "--for=create",
            "--timeout=60s",
        ]);
        said("nicnodepolicy", name, 1);
    }
    ended(run, 0);
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    let spec = plane.kubectl(&[
        "get",
        "nicnodepolicy",
        "store",
        "-o",
        "jsonpath={.spec.nodeSelector.pool} {.spec.ofedDriver}",
    ]);
    assert_eq!(spec, "store ");
    cluster.spec("admin", "");
    cluster.told(0, &["apply", INV, "--yes"]);
    assert_eq!(
        plane.kubectl(&["get", "nicnodepolicies,nicclusterpolicies", "-o", "name"]),
        ""
    );
}
