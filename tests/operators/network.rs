//! Module nvidia-network-operator with the operator (Mellanox/network-operator 1.4.0 of 2022, the
//! newest that is a Go module), as far as the two have the same fields: `rdmaSharedDevicePlugin`
//! with image, repository, version and config, and `status.state`. Newer are `useCdi` and
//! `containerResources` of that section, `nicConfigurationOperator`, `nvIpam`, and conditions in
//! the status; nothing here proves them.

use crate::begun::{begun, ended, until_said};
use crate::cluster::Cluster;
use crate::device_plugin;
use crate::rig::ControlPlane;
use crate::software::{Operator, Software};

const INV: &str = "inv";
const SPACE: &str = "nvidia-network-operator";
const DEPLOYMENT: &str = "nvidia-network-operator-controller-manager";

/// In the place of its pod; it has its templates beside it, as in its image.
pub fn operator(software: &Software, plane: &ControlPlane) -> Operator {
    plane.nodes(
        &["gpu1", "gpu2"],
        &[
            ("rdma/rdma_shared_device_a", "63"),
            ("rdma/rdma_shared_device_b", "63"),
        ],
    );
    plane.kubectl(&[
        "apply",
        "--server-side",
        "-k",
        &software.shipped("config/default"),
    ]);
    plane.kubectl(&[
        "-n",
        SPACE,
        "rollout",
        "status",
        &format!("deployment/{DEPLOYMENT}"),
        "--timeout=60s",
    ]);
    software.operate(plane, (SPACE, DEPLOYMENT), "--kubeconfig", &[])
}

/// Of two hosts with two rails, whose pools the operator hands out; `more` are fields of the
/// plugin's section.
fn spec(cluster: &Cluster<'_>, more: &str) {
    let kubeconfig = cluster.plane.kubeconfig("admin");
    let text = format!(
        "cluster: train
fabric: {{ kind: rocev2 }}
ssh: {{ user: root, host_keys: known_hosts }}
nodes: [{{ name: \"gpu[1-2]\", ssh: {{ address: \"127.0.0.{{index}}\", port: 1 }}, nics: {{ model: ConnectX-6, rails: 2, netdev: \"ens{{rail}}\" }} }}]
kubernetes:
  name: prod
  kubeconfig: {}
  rdma: {{ max: 63, resources: {{ rdma_shared_device_a: rail 0, rdma_shared_device_b: rail 1 }} }}
modules:
  rdma-shared-device-plugin: {{ enabled: false }}
  nvidia-network-operator:
    enabled: true
    parameters:
      install: false
      deployment: {DEPLOYMENT}
      conditions: false
      rdma_shared_device_plugin: {{ version: v1.5.3{more} }}
",
        kubeconfig.display()
    );
    cluster.file("inv/cluster.yaml", &text);
    cluster.file("inv/known_hosts", "");
}

pub fn its_policy_is_waited_for_until_it_is_ready(cluster: &Cluster<'_>) {
    spec(cluster, "");
    let mut run = begun(cluster, &["apply", INV, "--yes", "--target", "kube/prod"]);
    until_said(&mut run, "waits: status.state is notReady");
    // What Node Feature Discovery would say of nodes with ConnectX NICs.
    let labels = [
        "pci-15b3.present=true",
        "system-os_release.ID=ubuntu",
        "system-os_release.VERSION_ID=22.04",
        "kernel-version.full=5.15.0",
    ];
    let labels = labels.map(|label| format!("feature.node.kubernetes.io/{label}"));
    let words = [
        &["label", "node", "gpu1", "gpu2", "kubernetes.io/arch=amd64"][..],
        &labels.each_ref().map(String::as_str),
    ]
    .concat();
    cluster.plane.kubectl(&words);
    ended(run, 0);
    assert!(
        cluster
            .told(
                0,
                &["plan", INV, "--target", "kube/prod", "--detailed-exitcode"]
            )
            .contains("No changes.")
    );
}

pub fn it_hands_out_our_pools(cluster: &Cluster<'_>, plugin: &Software) {
    let kubectl = |words: &[&str]| {
        cluster
            .plane
            .kubectl(&[&["-n", SPACE, "get"], words].concat())
    };
    let image = kubectl(&[
        "daemonset",
        "rdma-shared-dp-ds",
        "-o",
        "jsonpath={.status.numberReady} {.spec.template.spec.containers[0].image}",
    ]);
    assert_eq!(
        image,
        "2 nvcr.io/nvidia/mellanox/k8s-rdma-shared-dev-plugin:v1.5.3"
    );
    let pools = kubectl(&[
        "configmap",
        "rdma-devices",
        "-o",
        "jsonpath={.data.config\\.json}",
    ]);
    assert!(pools.contains(r#""resourceName":"rdma_shared_device_b","rdmaHcaMax":63,"selectors":{"ifNames":["ens1"]}"#), "{pools}");
    assert_eq!(device_plugin::refusal(plugin, &pools), None);
}

/// A field of a later release.
pub fn what_its_definition_does_not_know_is_not_planned(cluster: &Cluster<'_>) {
    spec(cluster, ", useCdi: true");
    let plan = cluster.flat(3, &["plan", INV, "--target", "kube/prod"]);
    assert!(
        plan.contains("useCdi: field not declared in schema"),
        "{plan}"
    );
}

/// The policy, and by it what the operator made of it.
pub fn it_is_taken_back(cluster: &Cluster<'_>) {
    cluster.spec("admin", "");
    cluster.told(0, &["apply", INV, "--yes"]);
    cluster.plane.kubectl(&[
        "-n",
        SPACE,
        "wait",
        "daemonset/rdma-shared-dp-ds",
        "--for=delete",
        "--timeout=60s",
    ]);
    assert_eq!(
        cluster
            .plane
            .kubectl(&["get", "nicclusterpolicies", "-o", "name"]),
        ""
    );
}
