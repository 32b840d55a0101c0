//! Nodes that nobody logs in to: what they say is read by programs in the pods of an agent, through
//! the API server and its way to the kubelets. Here kwok has the kubelets' part, with the same
//! library for the streams, and small programs stand in for those of the nodes: `nsenter` runs what
//! it is told, and `rdma`, `ip` and `eadm` print what a file beside them holds.

use crate::begun::{begun, ended, until_said};
use crate::cluster::Cluster;
use crate::ready::{define_erdma_devices, erdma_device};
use crate::rig::ControlPlane;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const INV: &str = "inv";
const NAMESPACE: &str = "ack-erdma-controller";
const LINKS: &str = r#"[{"ifindex":0,"ifname":"erdma_0","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"eth1"}]"#;
const ROUTES: &str = r#"[{"dst":"default","gateway":"10.0.0.253","dev":"eth0","metric":100,"flags":[]},
                         {"dst":"default","gateway":"10.0.0.253","dev":"eth1","metric":200,"flags":[]}]"#;

/// The programs and what they print.
pub fn fakes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program(
        "nsenter",
        "[ \"$*\" != \"${*#-t 1 -m -- }\" ] || exit 64\nshift 4\nexec \"$@\"",
    );
    for (name, words) in [
        ("rdma", "-j link show"),
        ("ip", "-j route show"),
        ("eadm", "ver"),
    ] {
        program(
            name,
            &format!("[ \"$*\" = \"{words}\" ] || exit 64\n/bin/cat \"${{0%/*}}/{name}.txt\""),
        );
    }
    says(folder.path(), "rdma", "[]");
    says(folder.path(), "ip", ROUTES);
    says(folder.path(), "eadm", "eadm version 1.2.3");
    folder
}

fn says(folder: &Path, program: &str, text: &str) {
    fs::write(folder.join(format!("{program}.txt")), format!("{text}\n")).unwrap();
}

fn managed<'a>(plane: &'a ControlPlane, identity: &str) -> Cluster<'a> {
    let cluster = Cluster::new(plane, identity);
    spec(&cluster, identity);
    cluster
}

fn spec(cluster: &Cluster<'_>, identity: &str) {
    let kubeconfig = cluster.plane.kubeconfig(identity);
    let text = format!(
        "cluster: train
fabric: {{ kind: erdma }}
ssh: none
nodes:
  - {{ name: \"gpu[1-2]\", os: alinux-3, instance: gn8is, nics: {{ model: eRDMA, netdev: eth1 }} }}
kubernetes:
  name: prod
  kubeconfig: {}
  platform: ack-managed
  erdma: {{ install: ack-addon, prefer_driver: ofed, allocate_all_devices: true }}
",
        kubeconfig.display()
    );
    cluster.file("inv/cluster.yaml", &text);
}

/// The agent, as the add-on brings it.
fn agent(plane: &ControlPlane) {
    let template = json!({ "metadata": { "labels": { "tier": "agent" } },
                           "spec": { "hostPID": true, "hostNetwork": true, "containers": [{ "name": "agent", "image": "example.invalid/agent:1" }] } });
    let set = json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "alibabacloud-erdma-agent", "namespace": NAMESPACE },
                      "spec": { "selector": { "matchLabels": { "tier": "agent" } }, "template": template } });
    plane.apply(&set.to_string());
    plane.kubectl(&[
        "-n",
        NAMESPACE,
        "rollout",
        "status",
        "daemonset/alibabacloud-erdma-agent",
        "--timeout=120s",
    ]);
}

fn addon(plane: &ControlPlane) {
    plane.kubectl(&["create", "namespace", NAMESPACE]);
    define_erdma_devices(plane);
    for node in ["gpu1", "gpu2"] {
        erdma_device(plane, node, "Ready");
        let gives = json!({ "aliyun/erdma": "200" });
        let patch = json!({ "status": { "allocatable": gives, "capacity": gives } }).to_string();
        plane.kubectl(&["patch", "node", node, "--subresource=status", "-p", &patch]);
    }
}

pub fn a_managed_cluster_is_brought_up_and_proven(plane: &ControlPlane, folder: &Path) {
    plane.nodes(&["gpu1", "gpu2"], &[]);
    let cluster = managed(plane, "admin");
    let fresh = cluster.flat(3, &["plan", INV]);
    assert!(
        fresh.contains("NO SSH, by the spec") && fresh.contains("gpu[1-2] without"),
        "{fresh}"
    );
    assert!(
        fresh.contains(&format!(
            "gpu[1-2]: no pod of DaemonSet {NAMESPACE}/alibabacloud-erdma-agent is there"
        )),
        "{fresh}"
    );
    assert!(
        !fresh.contains("UNKNOWN:") && fresh.contains("6 blocked, 3 unknown"),
        "said once: {fresh}"
    );

    addon(plane);
    let mut run = begun(&cluster, &["apply", INV, "--yes"]);
    until_said(
        &mut run,
        &format!(
            "waits: nobody knows: gpu[1-2]: no pod of DaemonSet \
             {NAMESPACE}/alibabacloud-erdma-agent is there"
        ),
    );
    agent(plane);
    until_said(
        &mut run,
        "waits: 0 of 2 nodes in sync; gpu[1-2]: 0 erdma_* instead of 1",
    );
    says(folder, "rdma", LINKS);
    ended(run, 0);
    let events = || {
        plane.kubectl(&[
            "get",
            "pods",
            "-A",
            "-o",
            "jsonpath={.items[*].metadata.uid}",
        ])
    };
    let before = events();
    assert!(
        cluster
            .told(0, &["plan", INV, "--detailed-exitcode"])
            .contains("No changes.")
    );
    let drift = cluster.flat(0, &["drift", INV]);
    assert!(
        drift.contains("NO SSH, by the spec") && drift.contains(". gpu[1-2]"),
        "{drift}"
    );

    says(folder, "rdma", &LINKS.replace("ACTIVE", "DOWN"));
    says(folder, "ip", &ROUTES.replace("200", "100"));
    fs::rename(folder.join("eadm"), folder.join("gone")).unwrap();
    let drift = cluster.flat(2, &["drift", INV]);
    assert!(
        drift.contains("0 of 2 nodes in sync; gpu[1-2]: erdma_0 has state DOWN instead of ACTIVE"),
        "{drift}"
    );
    assert!(
        drift.contains("dst default: eth1 has metric 100, and eth0 has metric 100"),
        "{drift}"
    );
    // kwok tells every status but 0 as an error of its own, and so nothing of the node.
    assert!(
        drift.contains(
            "node_probe/erdma-eadm says, running: actual unknown (gpu[1-2]: the pod cannot be \
             asked: Internal error"
        ),
        "{drift}"
    );
    fs::rename(folder.join("gone"), folder.join("eadm")).unwrap();
    says(folder, "rdma", LINKS);
    says(folder, "ip", ROUTES);
    cluster.told(0, &["drift", INV]);
    assert_eq!(events(), before, "no pod was started for it");
}

/// Each role does its probes, also that of previews, which a policy holds to dry runs; and without
/// the right the rest goes on.
pub fn the_right_to_run_programs_is_asked_for_and_told(plane: &ControlPlane) {
    let cluster = managed(plane, "admin");
    let roles = cluster.told(0, &["rbac", INV]);
    assert!(
        roles.contains("pods/exec is a strong right") && roles.contains("alibabacloud-erdma-agent"),
        "{roles}"
    );
    let of_probe = roles
        .split("---\n")
        .filter(|document| document.contains("resources: [pods/exec]\n"));
    assert!(
        of_probe.clone().count() == 3
            && of_probe
                .clone()
                .all(|document| document.contains(&format!("namespace: {NAMESPACE}\n"))),
        "{roles}"
    );
    if crate::has_admission_policies(plane) {
        plane.apply(&roles);
        for role in ["observe", "preview"] {
            let account = format!("railwright-train-{role}");
            crate::rbac::identity(
                plane,
                role,
                &plane.kubectl(&["-n", "kube-system", "create", "token", &account]),
            );
            spec(&cluster, role);
            cluster.told(0, &["drift", INV]);
        }
        let role = "railwright-train-observe";
        plane.kubectl(&["-n", NAMESPACE, "delete", "role", role]);
        spec(&cluster, "observe");
        let why = |rule: &str| {
            format!(
                "actual unknown (gpu[1-2]: no role of ours allows it: {rule}, API group \"\", \
                 namespace {NAMESPACE})"
            )
        };
        let drift = cluster.flat(3, &["drift", INV]);
        assert!(drift.contains(&why("verb list, resource pods")), "{drift}");
        plane.kubectl(&[
            "-n",
            NAMESPACE,
            "create",
            "role",
            role,
            "--verb=list",
            "--resource=pods",
        ]);
        let drift = cluster.flat(3, &["drift", INV]);
        assert!(
            drift.contains(&why("verb get, resource pods/exec")),
            "{drift}"
        );
        // A GET alone is enough for a server of before 1.35.
        plane.kubectl(&[
            "-n",
            NAMESPACE,
            "create",
            "role",
            "more",
            "--verb=get",
            "--resource=pods/exec",
        ]);
        plane.kubectl(&[
            "-n",
            NAMESPACE,
            "create",
            "rolebinding",
            "more",
            "--role=more",
            "--serviceaccount=kube-system:railwright-train-observe",
        ]);
        let version: serde_json::Value =
            serde_json::from_str(&plane.kubectl(&["get", "--raw=/version"])).unwrap();
        match version["minor"].as_str().unwrap().parse::<u32>().unwrap() < 35 {
            true => drop(cluster.told(0, &["drift", INV])),
            false => {
                let drift = cluster.flat(3, &["drift", INV]);
                assert!(
                    drift.contains(&why("verb create, resource pods/exec")),
                    "{drift}"
                );
            }
        }
    }
}

/// The API server says so itself: no kubelet is where the node has one.
pub fn who_has_no_kubelet_is_unknown(plane: &ControlPlane) {
    plane.nodes(&["gpu1", "gpu2"], &[]);
    addon(plane);
    agent(plane);
    let cluster = managed(plane, "admin");
    let unknown = |why: &str| {
        let plan = cluster.flat(3, &["plan", INV]);
        assert!(
            plan.contains(
                "3 resources on 1 Kubernetes cluster are in sync; of the rest \
                 nobody knows"
            ),
            "{plan}"
        );
        let words = "? kube/prod node_probe/erdma-devices#says (running) gpu[1-2]: the API server \
                     does not reach the node's kubelet (port 10250, or a tunnel to it): ";
        assert!(plan.contains(words) && plan.contains(why), "{plan}");
    };
    unknown("no preferred addresses found");
    for node in ["gpu1", "gpu2"] {
        let at = json!({ "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }], "daemonEndpoints": { "kubeletEndpoint": { "Port": 1 } } });
        plane.kubectl(&[
            "patch",
            "node",
            node,
            "--subresource=status",
            "-p",
            &json!({ "status": at }).to_string(),
        ]);
    }
    unknown("dial tcp 127.0.0.1:1: connect: connection refused");
}
