//! The machines as nodes of a real Kubernetes: a kubelet and a containerd in each, the control
//! plane beside them. One plan makes the hosts and what runs on the cluster, and the proof is
//! traffic from pod to pod. Takes ten minutes: `make test-deep` runs it.

use crate::journey::applied;
use crate::rig::{Rig, copied};
use serde_json::Value;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

const LAB: &str = "inventories/lab-kubernetes";
const POOL: &str = "rdma/rdma_shared_device_a";

/// A pod for each machine, which asks for a unit of the pool.
fn pod_on(rig: &Rig, node: &str) -> String {
    let of_node = format!("spec.nodeName={node}");
    kubectl(
        rig,
        &[
            "get",
            "pods",
            "-l",
            "app=rdma-pods",
            "--field-selector",
            &of_node,
            "-o",
            "name",
        ],
    )
    .trim()
    .to_owned()
}

fn kubectl(rig: &Rig, words: &[&str]) -> String {
    rig.done(&[&["kubectl"], words].concat())
}

fn of_nodes(rig: &Rig, field: impl Fn(&Value) -> String) -> Vec<String> {
    let nodes: Value =
        serde_json::from_str(&kubectl(rig, &["get", "nodes", "-o", "json"])).unwrap();
    nodes["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(field)
        .collect()
}

fn is_ready(node: &Value) -> String {
    let conditions = node["status"]["conditions"].as_array().unwrap();
    conditions
        .iter()
        .find(|condition| condition["type"] == "Ready")
        .unwrap()["status"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Ready, and with nothing of RDMA to give.
pub fn they_come_up_as_nodes(rig: &Rig) {
    let up = rig.done(&["up", "--kubernetes"]);
    assert!(
        up.contains("the lab is up") && up.contains("kubernetes  https://127.0.0.1:"),
        "{up}"
    );
    assert!(
        rig.done(&["up", "--kubernetes"])
            .contains("the lab is up already")
    );
    let other = rig.lab(&["up"]);
    assert_eq!(
        other.status.code(),
        Some(4),
        "a lab without Kubernetes is another one"
    );
    assert_eq!(
        of_nodes(rig, |node| node["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned()),
        ["node1", "node2"]
    );
    assert_eq!(of_nodes(rig, is_ready), ["True", "True"]);
    assert_eq!(
        of_nodes(rig, |node| node["status"]["allocatable"][POOL].to_string()),
        ["null", "null"]
    );
    let status = rig.json(0, &["lab", "status", "--json"]);
    assert!(
        status["kubernetes"]["resident_mib"].as_u64().unwrap() > 100,
        "{status:#}"
    );
}

/// Each node is emptied before its host is rebooted, and given back after its gate; then what runs
/// on the cluster, which waits for what comes before.
pub fn one_plan_makes_hosts_and_cluster(rig: &Rig) {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join(LAB);
    let port = |offset: u16| (rig.first_port() + offset).to_string();
    let spec = std::fs::read_to_string(shipped.join("cluster.yaml")).unwrap();
    let spec = spec
        .replace("27201", &port(1))
        .replace("27202", &port(2))
        .replace("27280", &port(80));
    std::fs::create_dir_all(rig.folder().join("inventories")).unwrap();
    copied(&shipped, &rig.folder().join(LAB));
    std::fs::write(rig.folder().join(LAB).join("cluster.yaml"), spec).unwrap();

    let (screen, _) = rig.told(0, &["plan", LAB, "-o", "lab.plan"]);
    for part in [
        "! node[1-2]      drain",
        "! node[1-2]      reboot, once",
        "+ kube/lab       DaemonSet.apps kube-system/rdma-shared-dp-ds",
    ] {
        assert!(screen.contains(part), "{part} not in {screen}");
    }
    let lines = applied(rig, 0, &["lab.plan", "--yes"]);
    let at = |line: &str| {
        lines
            .iter()
            .position(|said| said.starts_with(line))
            .unwrap_or_else(|| panic!("no `{line}` in {lines:#?}"))
    };
    let order = [
        "node1  drain  done",
        "node1  rebooting",
        "node1  gate passed",
        "node1  uncordon  done",
        "node2  drain  done",
        "node2  rebooting",
        "node2  gate passed",
        "node2  uncordon  done",
        "lab  DaemonSet.apps kube-system/rdma-shared-dp-ds  done",
        // Done, or in sync already, where the kubelets were quick.
        "lab  node_allocatable rdma/rdma_shared_device_a",
        "lab  DaemonSet.apps default/rdma-pods  done",
    ];
    assert!(order.map(at).is_sorted(), "{lines:#?}");
    assert_eq!(
        of_nodes(rig, |node| node["status"]["allocatable"][POOL].to_string()),
        ["\"63\"", "\"63\""]
    );
    assert_eq!(
        of_nodes(rig, |node| node["spec"]["unschedulable"].to_string()),
        ["null", "null"]
    );
    rig.told(0, &["plan", LAB, "--detailed-exitcode"]);
    rig.told(0, &["drift", LAB]);
}

/// Not privileged, with the devices that the plugin gave them.
pub fn rdma_goes_from_pod_to_pod(rig: &Rig) {
    let (server, client) = (pod_on(rig, "node1"), pod_on(rig, "node2"));
    let device = kubectl(rig, &["exec", &server, "--", "ls", "/sys/class/infiniband"])
        .trim()
        .to_owned();
    let measure = [
        "ib_write_bw",
        "-d",
        &device,
        "-x",
        "1",
        "-m",
        "4096",
        "-D",
        "3",
        "-R",
        "--report_gbits",
    ];
    let mut waits = Ended(
        rig.command(&[&["lab", "kubectl", "exec", &server, "--"], &measure[..]].concat())
            .stdout(Stdio::null())
            .spawn()
            .unwrap(),
    );
    // Others may listen on the node too.
    let listens = |line: &str| line.contains("state LISTEN") && line.contains(":18515");
    while !rig
        .said("node1", "rdma resource show cm_id")
        .lines()
        .any(listens)
    {
        assert!(
            waits.0.try_wait().unwrap().is_none(),
            "the server in the pod has ended"
        );
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    let said = kubectl(
        rig,
        &[&["exec", &client, "--"], &measure[..], &["192.168.77.1"]].concat(),
    );
    let figures = said
        .lines()
        .find(|line| line.trim_start().starts_with("65536"))
        .unwrap_or_else(|| panic!("{said}"));
    let average: f64 = figures.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!(average > 0.02, "{said}");
}

/// The server of a measurement, whatever becomes of it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const PODS: &str = "inventories/pods";
const SAYS: &str = "module: pods-say
summary: What the nodes' RDMA devices say in the pods that hold them
resources:
  - id: devices
    node_probe:
      name: devices
      nodes: [node1, node2]
      pod: { namespace: default, daemon_set: rdma-pods, selector: app=rdma-pods }
      argv: [ibv_devinfo]
      lines: [{ begin: \"state: PORT_ACTIVE\", count: 1 }]
      within_s: 60
  - id: tool
    node_probe:
      name: tool
      nodes: [node1, node2]
      pod: { namespace: default, daemon_set: rdma-pods }
      argv: [sh, -c, cat /tool]
      exits: { \"1\": no tool is there }
      within_s: 60
";

/// These machines, as if nobody could log in to them: what their devices say is read by the real
/// kubelets, in pods that are there already.
pub fn nodes_without_ssh_are_asked_in_their_pods(rig: &Rig) {
    let spec = std::fs::read_to_string(rig.folder().join(LAB).join("cluster.yaml")).unwrap();
    let (head, tail) = spec.split_once("ssh:\n").unwrap();
    let (login, nodes) = tail.split_once("nodes:\n").unwrap();
    assert!(login.contains("identities"), "{spec}");
    let nodes: String = nodes
        .lines()
        .filter(|line| !line.contains("ssh: {"))
        .map(|line| format!("{line}\n"))
        .collect();
    let (nodes, _) = nodes.split_once("  rdma:\n").unwrap();
    let spec = format!(
        "{}ssh: none\nnodes:\n{nodes}",
        head.replace("cluster: lab", "cluster: pods")
    );
    std::fs::create_dir_all(rig.folder().join(PODS).join("modules/pods-say")).unwrap();
    std::fs::write(rig.folder().join(PODS).join("cluster.yaml"), spec).unwrap();
    std::fs::write(
        rig.folder().join(PODS).join("modules/pods-say/module.yaml"),
        SAYS,
    )
    .unwrap();

    let pods = || {
        kubectl(
            rig,
            &[
                "get",
                "pods",
                "-A",
                "-o",
                "jsonpath={.items[*].metadata.uid}",
            ],
        )
    };
    let before = pods();
    let flat = |screen: String| screen.split_whitespace().collect::<Vec<_>>().join(" ");
    let (screen, _) = rig.told(2, &["drift", PODS]);
    assert!(
        flat(screen.clone()).contains("0 of 2 nodes in sync; node[1-2]: no tool is there"),
        "{screen}"
    );
    for node in ["node1", "node2"] {
        kubectl(
            rig,
            &[
                "exec",
                &pod_on(rig, node),
                "--",
                "sh",
                "-c",
                "echo 1 >/tool",
            ],
        );
    }
    rig.told(0, &["drift", PODS]);
    rig.told(0, &["plan", PODS, "--detailed-exitcode"]);

    rig.said("node2", "ip link set ens1f0np0 down");
    let (screen, _) = rig.told(2, &["drift", PODS]);
    assert!(
        flat(screen.clone()).contains(
            "1 of 2 nodes in sync; node2: 0 lines begin with `state: PORT_ACTIVE` instead of 1"
        ),
        "{screen}"
    );
    rig.said("node2", "ip link set ens1f0np0 up");
    rig.told(0, &["apply", PODS, "--yes"]);
    // A program that is not there says nothing of the node: the runtime cannot start it.
    let module = rig.folder().join(PODS).join("modules/pods-say/module.yaml");
    std::fs::write(module, SAYS.replace("[ibv_devinfo]", "[no-such-program]")).unwrap();
    let (screen, _) = rig.told(3, &["drift", PODS]);
    assert!(
        flat(screen.clone()).contains("actual unknown (node[1-2]:")
            && screen.contains("no-such-program"),
        "{screen}"
    );
    assert_eq!(pods(), before, "no pod was started for it");
}

pub fn what_was_changed_by_hand_is_found_on_both_sides(rig: &Rig) {
    rig.said("node1", "dcb pfc set dev ens1f0np0 prio-pfc all:off");
    let edited = r#"{"data":{"config.json":"{\"configList\":[{\"resourceName\":\"rdma_shared_device_a\",\"rdmaHcaMax\":1,\"selectors\":{\"ifNames\":[\"ens1f0np0\"]}}]}"}}"#;
    kubectl(
        rig,
        &[
            "-n",
            "kube-system",
            "patch",
            "configmap",
            "rdma-devices",
            "--type",
            "merge",
            "-p",
            edited,
        ],
    );
    let (screen, _) = rig.told(2, &["drift", LAB]);
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "pfc, running: actual none desired 3",
        "rdmaHcaMax, persisted: actual 1 desired 63",
        "set by kubectl-patch at",
    ] {
        assert!(screen.contains(part), "{part} not in {screen}");
    }
    let lines = applied(rig, 0, &[LAB, "--yes"]);
    assert!(
        lines
            .iter()
            .any(|line| line == "lab  ConfigMap kube-system/rdma-devices  done"),
        "{lines:#?}"
    );
    rig.told(0, &["drift", LAB]);
}

/// Nothing of the earlier one is in it.
pub fn a_reset_gives_a_new_cluster(rig: &Rig) {
    rig.done(&["reset"]);
    assert_eq!(of_nodes(rig, is_ready), ["True", "True"]);
    assert_eq!(
        kubectl(rig, &["get", "daemonsets", "-A", "-o", "name"]).trim(),
        ""
    );
    assert_eq!(
        rig.said(
            "node1",
            "command -v ib_write_bw; cat /sys/class/net/ens1f0np0/mtu"
        ),
        "1500"
    );
}

/// The ports are free, for the next lab as for others.
pub fn an_end_leaves_nothing_running(rig: &Rig) {
    assert!(rig.done(&["down"]).contains("2 machines ended"));
    for offset in [1, 2, 80, 81, 82, 83, 85, 86] {
        TcpListener::bind(("127.0.0.1", rig.first_port() + offset)).unwrap();
    }
}
