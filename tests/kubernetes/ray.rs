//! A cluster of Ray that is tested as it runs. Here kwok has the kubelets' part, and small programs
//! stand in for those of the pods: `ls` and `cat` tell of RDMA devices that a file beside them
//! names, `ib_write_bw` meets its other end by a file and prints what perftest 6.06 prints,
//! `timeout` holds nothing. KubeRay's part, to make the pods, is done by the story; KubeRay itself
//! is in `tests/operators`.

use crate::cluster::{Cluster, flat};
use crate::rig::{ControlPlane, ESTABLISHED};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

const INV: &str = "inv";

/// As perftest 6.06 prints it (Debian 12), with a rate of one's own.
const TABLE: &str = " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   \
                     MsgRate[Mpps]\n 65536      5000             97.10              96.90                \
                     0.184822\n";

/// The programs of pods.
pub fn fakes() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    symlink("/bin/sh", folder.path().join("sh")).unwrap();
    symlink("/bin/sleep", folder.path().join("sleep")).unwrap();
    program("timeout", "shift\nexec \"$@\"");
    program(
        "ls",
        "[ \"$*\" = /dev/infiniband ] || exit 64\n/bin/cat \"${0%/*}/devices.txt\"",
    );
    program(
        "cat",
        "case $1 in /sys/class/infiniband_verbs/uverbs*/ibdev) u=${1%/ibdev}; echo \
         \"mlx5_${u##*uverbs}\" ;; *) exit 1 ;; esac",
    );
    // One that listens waits for the one that sends, whose last word is an address.
    let meet = "own=${0%/*}\n\
                for last; do :; done\n\
                port=${*#* -p }\n\
                port=${port%% *}\n\
                case $last in\n\
                *.*.*.*) /bin/rm \"$own/listens.$port\" 2>/dev/null || \
                { echo \"Couldn't connect to $last:$port\"; exit 1; } ;;\n\
                *) : >\"$own/listens.$port\"; n=0; while [ -e \"$own/listens.$port\" ]; do \
                n=$((n+1)); [ $n -lt 100 ] || exit 1; /bin/sleep 0.1; done ;;\n\
                esac\n\
                echo \"$*\" >>\"$own/traffic.txt\"\n\
                /bin/cat \"$own/table.txt\"";
    program("ib_write_bw", meet);
    says(folder.path(), "devices", "rdma_cm\nuverbs0\nuverbs1\n");
    says(folder.path(), "table", TABLE);
    fs::write(folder.path().join("pod.log"), "").unwrap();
    folder
}

fn says(folder: &Path, what: &str, text: &str) {
    fs::write(folder.join(format!("{what}.txt")), text).unwrap();
}

fn define(plane: &ControlPlane) {
    let schema = json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = json!({ "name": "v1", "served": true, "storage": true, "schema": schema, "subresources": { "status": {} } });
    let names = json!({ "kind": "RayCluster", "plural": "rayclusters", "singular": "raycluster" });
    let spec =
        json!({ "group": "ray.io", "scope": "Namespaced", "names": names, "versions": [version] });
    let definition = json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "rayclusters.ray.io" }, "spec": spec });
    plane.apply(&definition.to_string());
    plane.kubectl(&[
        "wait",
        "crd/rayclusters.ray.io",
        ESTABLISHED,
        "--timeout=60s",
    ]);
}

/// As KubeRay would.
fn pod(plane: &ControlPlane, name: &str, role: &str, node: &str, resources: &[&str]) {
    let labels = json!({ "ray.io/cluster": "ray", "ray.io/node-type": role });
    let amounts: serde_json::Map<String, Value> = resources
        .iter()
        .map(|name| ((*name).to_owned(), json!("1")))
        .collect();
    let container = json!({ "name": "ray", "image": "example.invalid/ray:2.40.0", "resources": { "limits": amounts, "requests": amounts } });
    let owner = plane.kubectl(&["get", "raycluster", "ray", "-o", "jsonpath={.metadata.uid}"]);
    let owners =
        json!([{ "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "ray", "uid": owner }]);
    let metadata = json!({ "name": name, "namespace": "default", "labels": labels, "ownerReferences": owners });
    let spec = json!({ "nodeName": node, "containers": [container] });
    plane.apply(
        &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
            .to_string(),
    );
    plane.kubectl(&[
        "wait",
        &format!("pod/{name}"),
        "--for=condition=Ready",
        "--timeout=60s",
    ]);
}

/// How much a node gives of the second pool.
fn gives(plane: &ControlPlane, node: &str, amount: &str) {
    let patch = json!({ "status": { "allocatable": { BOTH[1]: amount }, "capacity": { BOTH[1]: amount } } }).to_string();
    plane.kubectl(&["patch", "node", node, "--subresource=status", "-p", &patch]);
}

fn cluster<'a>(plane: &'a ControlPlane, identity: &str) -> Cluster<'a> {
    let cluster = Cluster::new(plane, identity);
    let text = format!(
        "cluster: train
fabric: {{ kind: rocev2, mtu: 9000, lossless: {{ priority: 3, dscp: 26, cnp: {{ priority: 6, dscp: 48 }} }} }}
ssh: none
nodes:
  - {{ name: \"gpu[1-3]\", os: ubuntu-22.04, nics: {{ model: ConnectX-7, rails: 2, netdev: \"ens{{rail}}f0np0\" }} }}
kubernetes:
  name: prod
  kubeconfig: {}
  rdma: {{ plugin: shared, resources: {{ shared_a: rail 0, shared_b: rail 1 }} }}
",
        plane.kubeconfig(identity).display()
    );
    cluster.file("inv/cluster.yaml", &text);
    cluster
}

const BOTH: [&str; 2] = ["rdma/shared_a", "rdma/shared_b"];

pub fn every_pod_holds_every_pool_and_traffic_crosses(plane: &ControlPlane, folder: &Path) {
    define(plane);
    plane.nodes(
        &["gpu1", "gpu2", "gpu3"],
        &[("rdma/shared_a", "63"), ("rdma/shared_b", "63")],
    );
    plane.apply(
        &json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": "ray", "namespace": "default" }, "spec": {} })
            .to_string(),
    );
    plane.kubectl(&[
        "patch",
        "raycluster",
        "ray",
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"desiredWorkerReplicas":2}}"#,
    ]);
    pod(plane, "ray-head", "head", "gpu1", &BOTH);
    pod(plane, "ray-worker-1", "worker", "gpu2", &BOTH);
    let cluster = cluster(plane, "admin");
    let early = cluster.flat(3, &["job", "prove", "ray", "-i", INV]);
    assert!(
        early.contains("RW1261")
            && early.contains("2 pods running, 1 worker")
            && early.contains("railwright job watch ray -i inv -n default"),
        "{early}"
    );
    pod(plane, "ray-worker-2", "worker", "gpu3", &BOTH);
    let _ = fs::remove_file(folder.join("traffic.txt"));
    insta::assert_snapshot!(cluster.told(0, &["job", "prove", "ray", "-i", INV]), @r#"
    job prove RayCluster default/ray

    PASSED: its pods have RDMA, and it passes between nodes -----------------------------------------
       pods         3 of 3 pods running, 2 workers on 3 nodes
       rdma/shared_a 3 pods ask for it, 3 nodes give it
       rdma/shared_b 3 pods ask for it, 3 nodes give it
       devices      mlx5_[0-1] in each of 3 pods
       traffic      ray-worker-1 (gpu2) to ray-worker-2 (gpu3), in Gb/s: mlx5_0 96.9, mlx5_1 96.9
    "#);
    // Both ends of each device were told the same, with the mark of the lossless class.
    let traffic = fs::read_to_string(folder.join("traffic.txt")).unwrap();
    let mut lines: Vec<&str> = traffic
        .lines()
        .map(|line| line.split(" -p ").next().unwrap())
        .collect();
    lines.sort_unstable();
    let words = |device: &str| format!("-d {device} -F --report_gbits -D 2");
    assert_eq!(
        lines,
        [
            words("mlx5_0"),
            words("mlx5_0"),
            words("mlx5_1"),
            words("mlx5_1")
        ]
    );
    assert_eq!(traffic.matches("--tclass=104").count(), 4, "{traffic}");
    let json = cluster.told(0, &["job", "prove", "ray", "-i", INV, "--json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&document["verdict"], &document["traffic"][1]["gbps"]),
        (&json!("passed"), &json!(96.9)),
        "{json}"
    );
    assert_eq!(
        document["pods"][0]["devices"],
        json!(["mlx5_0", "mlx5_1"]),
        "{json}"
    );
}

pub fn what_a_cluster_of_ray_lacks_is_said(plane: &ControlPlane, folder: &Path) {
    let cluster = cluster(plane, "admin");
    let prove = |code: i32| cluster.flat(code, &["job", "prove", "ray", "-i", INV]);
    // A device of one pool is not there.
    says(folder, "devices", "uverbs0\n");
    let few = prove(1);
    assert!(
        few.contains("RW1262") && few.contains("3 of 3 pods: 1 device on ray-"),
        "{few}"
    );
    says(folder, "devices", "uverbs0\nuverbs1\n");
    // Nothing passes.
    says(folder, "table", &TABLE.replace("96.90", " 0.00"));
    let nothing = prove(1);
    assert!(
        nothing.contains("RW1264") && nothing.contains("no byte moved"),
        "{nothing}"
    );
    says(folder, "table", TABLE);
    // The image has no perftest.
    fs::rename(folder.join("ib_write_bw"), folder.join("away")).unwrap();
    let without = prove(3);
    assert!(
        without.contains("RW1263") && without.contains("`ib_write_bw` is not in the image"),
        "{without}"
    );
    assert!(
        without.contains("railwright job render perftest-pods -i inv -n default --image IMAGE"),
        "{without}"
    );
    fs::rename(folder.join("away"), folder.join("ib_write_bw")).unwrap();
    // A node lost a pool, and then a worker comes that asks for one of the two alone.
    gives(plane, "gpu3", "0");
    let lost = prove(1);
    assert!(
        lost.contains("RW1260") && lost.contains("nodes that give none any more: gpu3"),
        "{lost}"
    );
    gives(plane, "gpu3", "63");
    pod(plane, "ray-worker-3", "worker", "gpu2", &BOTH[..1]);
    let lacking = prove(1);
    assert!(
        lacking.contains("RW1260") && lacking.contains("1 of 4 pods ask for none: ray-worker-3"),
        "{lacking}"
    );
    plane.kubectl(&["delete", "pod", "ray-worker-3"]);
    // All on one node: nothing crosses.
    plane.kubectl(&["delete", "pod", "ray-worker-1", "ray-worker-2"]);
    pod(plane, "ray-worker-1", "worker", "gpu1", &BOTH);
    pod(plane, "ray-worker-2", "worker", "gpu1", &BOTH);
    assert!(prove(3).contains("on one node: nothing crosses the network"));
    assert!(flat(&cluster.told(1, &["job", "prove", "other", "-i", INV])).contains("RW1240"));
}
