//! A host that is a node of a real Kubernetes cluster: emptied before it is disturbed, given back
//! once its gate passed. The machine is real, the control plane is real; the node's kubelet is
//! played by kwok.

use crate::control_plane::ControlPlane;
use crate::machine::Machine;
use crate::meanwhile::{Meanwhile, first_line};
use serde_json::{Value, json};
use std::io::Read as _;
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// A step that needs an empty node, and goes on once it may.
const LOUD: &str = "  - id: loud
    command:
      name: loud
      run: 'echo began >>/etc/log; while ! [ -e /etc/go ]; do sleep 0.1; done; ! [ -e /etc/broken ] && touch /etc/NAME'
      read: { probe: 'test -e /etc/NAME' }
      disruption: drain
      convergent: true
";

struct Room {
    machine: Machine,
    plane: ControlPlane,
}

impl Room {
    fn start() -> Option<Self> {
        let machine = Machine::start("a node is emptied", "", &[])?;
        let plane = ControlPlane::start()?;
        plane.nodes(&["n1"], &[("nvidia.com/gpu", "8")]);
        let room = Room { machine, plane };
        room.goes_by(&room.plane.kubeconfig("admin").display().to_string());
        Some(room)
    }

    /// The way to the cluster.
    fn goes_by(&self, kubeconfig: &str) {
        self.machine.place.write(
            "inv/kubernetes.yaml",
            format!("kubernetes: {{ name: prod, kubeconfig: {kubeconfig} }}\n"),
        );
    }

    /// The step is declared under a new name, and goes through as soon as it may.
    fn resource(&self, name: &str, may_go: bool) {
        self.machine.resource(&LOUD.replace("NAME", name));
        self.machine.host.sh(if may_go {
            "rm -f /etc/log; touch /etc/go"
        } else {
            "rm -f /etc/log /etc/go"
        });
    }

    fn begun(&self, words: &[&str]) -> Child {
        self.machine
            .place
            .command(words)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Until the step is at work on the host.
    fn until_begun(&self) {
        // A pod counts as gone a minute after its kubelet was seen silent.
        for _ in 0..2400 {
            if self.machine.file("/etc/log").is_some() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the step was waited for in vain");
    }

    fn told(&self, code: i32, words: &[&str]) -> String {
        let said = self.machine.run(words);
        assert!(said.ends_with(&format!("--- exit {code} ---\n")), "{said}");
        flat(&said)
    }

    fn node(&self) -> Value {
        serde_json::from_str(&self.plane.kubectl(&["get", "node", "n1", "-o", "json"])).unwrap()
    }

    /// Whether pods are put on it, and whether it bears our mark.
    fn stands(&self) -> (bool, bool) {
        let node = self.node();
        (
            node["spec"]["unschedulable"] != true,
            node["metadata"]["annotations"]["railwright.io/cordoned"].is_string(),
        )
    }

    /// Names of the pods of the node.
    fn pods(&self) -> Vec<String> {
        let pods = self.plane.kubectl(&[
            "get",
            "pods",
            "-A",
            "--field-selector=spec.nodeName=n1",
            "-o",
            "name",
        ]);
        pods.lines()
            .map(|line| {
                line.trim_start_matches("pod/")
                    .split('-')
                    .next()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    }

    fn gives(&self, gpus: &str) {
        self.gives_of("nvidia.com/gpu", gpus);
    }

    /// What the node is said to be, since long.
    fn says_ready(&self, status: &str) {
        let ready = json!({ "type": "Ready", "status": status, "reason": "Said", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let patch = json!({ "status": { "conditions": [ready] } }).to_string();
        self.plane
            .kubectl(&["patch", "node", "n1", "--subresource=status", "-p", &patch]);
    }

    fn gives_of(&self, resource: &str, amount: &str) {
        let gives = json!({ resource: amount });
        let patch = json!({ "status": { "allocatable": gives, "capacity": gives } }).to_string();
        self.plane
            .kubectl(&["patch", "node", "n1", "--subresource=status", "-p", &patch]);
    }
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Reads what a program says until it has said this.
fn until_said(child: &mut Child, desired: &str) -> String {
    let (mut said, mut byte) = (Vec::new(), [0]);
    let stderr = child.stderr.as_mut().unwrap();
    while !flat(&String::from_utf8_lossy(&said)).contains(desired) {
        assert_eq!(
            stderr.read(&mut byte).unwrap(),
            1,
            "it ended before it said {desired:?}: {}",
            String::from_utf8_lossy(&said)
        );
        said.push(byte[0]);
    }
    flat(&String::from_utf8_lossy(&said))
}

fn ended(child: Child, code: i32) -> String {
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    flat(&said)
}

fn signal(child: &Child, signal: &str) {
    assert!(
        std::process::Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
}

/// A workload whose pods want nothing.
fn workload(kind: &str, name: &str, more: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: {kind}
metadata: {{ name: {name}, namespace: default }}
spec:
  {more}
  selector: {{ matchLabels: {{ app: {name} }} }}
  template:
    metadata: {{ labels: {{ app: {name} }} }}
    spec: {{ containers: [{{ name: main, image: \"example.invalid/a:1\" }}] }}
---
"
    )
}

fn budget(least: u32) -> String {
    format!(
        "apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{ name: web, namespace: default }}
spec: {{ minAvailable: {least}, selector: {{ matchLabels: {{ app: web }} }} }}
"
    )
}

#[test]
fn a_node_is_emptied_before_its_host_is_disturbed_and_given_back_once_it_is_proven() {
    let Some(room) = Room::start() else { return };
    room.plane.apply(
        &(workload("Deployment", "web", "replicas: 2")
            + &workload("DaemonSet", "plugin", "minReadySeconds: 0")
            + &budget(2)),
    );
    room.plane
        .kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    room.plane
        .kubectl(&["rollout", "status", "daemonset/plugin", "--timeout=60s"]);
    room.plane.nodes(&["n2"], &[]);

    room.resource("first", true);
    let plan = room.told(0, &["plan", "inv"]);
    for said in [
        "! n1 drain cordons no more pods are put on the node of kube/prod, and it is emptied,",
        "interrupts all pods of the node but those of DaemonSets",
    ] {
        assert!(plan.contains(said), "{said}\n{plan}");
    }
    let mut run = room.begun(&["apply", "inv", "--yes"]);
    let said = until_said(&mut run, "needs 2 healthy pods");
    assert!(
        said.contains("2 pods are on it still: default/web-"),
        "{said}"
    );
    assert_eq!(
        (room.stands(), room.machine.file("/etc/log")),
        ((false, true), None),
        "the host waits"
    );
    room.plane.apply(&budget(1));
    ended(run, 0);
    assert_eq!(
        (room.stands(), room.pods()),
        ((true, false), vec!["plugin".to_owned()])
    );
    assert!(room.machine.file("/etc/first").is_some());
    assert!(
        room.told(0, &["plan", "inv", "--detailed-exitcode"])
            .contains("No changes.")
    );

    a_pod_that_comes_after_the_node_was_emptied_holds_the_step(&room);
    a_pod_that_nothing_would_make_anew_keeps_its_node(&room);
    a_node_is_not_given_back_before_it_gives_what_it_gave(&room);
    what_goes_wrong_leaves_the_node_cordoned_and_resume_gives_it_back(&room);
    a_run_that_is_stopped_while_it_empties_gives_the_node_back(&room);
    what_others_do_to_the_node_meanwhile_is_heard(&room);
    a_node_that_was_left_is_given_back_by_a_gate_that_proves_its_host(&room);
    a_run_that_is_killed_goes_on_with_an_empty_node(&room);
    a_run_that_is_given_up_names_the_nodes_that_it_may_leave_cordoned(&room);
    a_node_that_goes_away_is_not_waited_for(&room);
    what_somebody_else_cordoned_stays_cordoned(&room);
    a_host_waits_for_what_its_cluster_brings(&room);
}

/// It names its node itself, so that no cordon keeps it away, and comes once the last look has
/// found the node empty.
fn a_pod_that_comes_after_the_node_was_emptied_holds_the_step(room: &Room) {
    let pod = [
        "run",
        "late",
        "--image=example.invalid/a:1",
        "--overrides",
        r#"{"spec":{"nodeName":"n1"}}"#,
    ];
    let pod = Mutex::new(room.plane.kubectl_command(&pod));
    // The cordon, the pods, and the node, which is read last.
    let ahead = Mutex::new(vec![
        "GET /api/v1/nodes/n1",
        "GET /api/v1/pods?",
        "PATCH /api/v1/nodes/n1?",
    ]);
    let way = Meanwhile::watch(&room.plane, move |piece| {
        let (line, mut ahead) = (first_line(piece), ahead.lock().unwrap());
        if ahead.last().is_some_and(|next| line.starts_with(next)) {
            ahead.pop();
            if ahead.is_empty() {
                assert!(pod.lock().unwrap().output().unwrap().status.success());
            }
        }
    });
    room.machine
        .place
        .write("inv/way.kubeconfig", way.kubeconfig());
    room.goes_by("way.kubeconfig");
    room.resource("late", true);
    let said = room.told(1, &["apply", "inv", "--yes"]);
    assert!(
        said.contains(
            "error RW0729: the node n1 is not empty any more: 1 pod is on it still: default/late"
        ),
        "{said}"
    );
    assert_eq!(
        (room.stands(), room.machine.file("/etc/log")),
        ((false, true), None),
        "nothing was begun on the host"
    );
    room.plane.kubectl(&["delete", "pod", "late"]);
    room.told(0, &["resume", "inv"]);
    assert_eq!(
        (room.stands(), room.pods()),
        ((true, false), vec!["plugin".to_owned()])
    );
    room.goes_by(&room.plane.kubeconfig("admin").display().to_string());
}

fn a_pod_that_nothing_would_make_anew_keeps_its_node(room: &Room) {
    room.plane.kubectl(&[
        "run",
        "shell",
        "--image=example.invalid/a:1",
        "--overrides",
        r#"{"spec":{"nodeName":"n1"}}"#,
    ]);
    room.resource("second", true);
    let said = room.told(1, &["apply", "inv", "--yes"]);
    let desired = "error RW0648: the node n1 cannot be emptied: no controller would recreate these \
                  pods (rollout.drain.evict_unmanaged): default/shell";
    assert!(
        said.contains(desired)
            && said.contains("this step did nothing to the host; the node takes pods again"),
        "{said}"
    );
    assert_eq!(
        (room.stands(), room.machine.file("/etc/log")),
        ((true, false), None)
    );
    room.machine.place.write(
        "inv/rollout.yaml",
        "rollout: { drain: { evict_unmanaged: true } }\n",
    );
    room.told(0, &["apply", "inv", "--yes"]);
    assert_eq!(
        (room.stands(), room.pods()),
        ((true, false), vec!["plugin".to_owned()])
    );
}

fn a_node_is_not_given_back_before_it_gives_what_it_gave(room: &Room) {
    room.resource("third", false);
    let mut run = room.begun(&["apply", "inv", "--yes"]);
    room.until_begun();
    room.gives("7");
    room.machine.host.sh("touch /etc/go");
    until_said(&mut run, "waits: 7 nvidia.com/gpu instead of 8");
    assert_eq!(room.stands(), (false, true));
    room.gives("8");
    ended(run, 0);
    assert_eq!(room.stands(), (true, false));
}

fn what_goes_wrong_leaves_the_node_cordoned_and_resume_gives_it_back(room: &Room) {
    room.resource("fourth", true);
    room.machine.host.sh("touch /etc/broken");
    let said = room.told(1, &["apply", "inv", "--yes"]);
    assert!(
        said.contains("RW0652: n1 stays cordoned") && said.contains("railwright resume inv"),
        "{said}"
    );
    assert_eq!(room.stands(), (false, true));
    // Its host is half done, so it is not given back either where it cannot be emptied again.
    let bound = r#"{"spec":{"nodeName":"n1"}}"#;
    room.plane.kubectl(&[
        "run",
        "late",
        "--image=example.invalid/a:1",
        "--labels=app=web",
        "--overrides",
        bound,
    ]);
    room.plane
        .kubectl(&["wait", "pod/late", "--for=condition=Ready", "--timeout=60s"]);
    room.plane.apply(&budget(3));
    let mut run = room.begun(&["resume", "inv"]);
    until_said(&mut run, "needs 3 healthy pods");
    signal(&run, "-INT");
    let said = ended(run, 130);
    assert!(
        said.contains("the node stays cordoned, as it was found"),
        "{said}"
    );
    assert_eq!(room.stands(), (false, true));
    room.plane.apply(&budget(1));
    room.machine.host.sh("rm /etc/broken");
    room.told(0, &["resume", "inv"]);
    assert_eq!(
        (room.stands(), room.pods()),
        ((true, false), vec!["plugin".to_owned()])
    );

    // Where the spec takes the step back instead, the next plan gives the node back, through a
    // gate.
    room.resource("fifth", true);
    room.machine.host.sh("touch /etc/broken");
    room.told(1, &["apply", "inv", "--yes"]);
    room.resource("fourth", true);
    let plan = room.told(3, &["plan", "inv"]);
    assert!(
        plan.contains(". n1 uncordon") && !plan.contains("n1 drain"),
        "{plan}"
    );
    assert!(
        plan.contains("n1 (out of service, verified first)"),
        "{plan}"
    );
    room.told(0, &["apply", "inv", "--yes"]);
    room.machine.host.sh("rm /etc/broken");
    assert_eq!(room.stands(), (true, false));
}

/// Pods of the workload are on n1 alone, and none of them may end.
fn pods_that_stay(room: &Room) {
    room.plane.kubectl(&["cordon", "n2"]);
    room.plane
        .kubectl(&["delete", "pods", "--selector=app=web"]);
    room.plane
        .kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    room.plane.apply(&budget(2));
}

fn what_others_do_to_the_node_meanwhile_is_heard(room: &Room) {
    pods_that_stay(room);
    room.resource("taken", true);
    let mut run = room.begun(&["apply", "inv", "--yes"]);
    until_said(&mut run, "needs 2 healthy pods");
    room.plane.kubectl(&["uncordon", "n1"]);
    let said = ended(run, 1);
    assert!(
        said.contains("RW0648") && said.contains("somebody uncordoned it while it was emptied"),
        "{said}"
    );
    assert_eq!(
        (room.stands(), room.machine.file("/etc/log")),
        ((true, false), None),
        "nobody's pods were ended in vain"
    );

    let mut run = room.begun(&["resume", "inv"]);
    until_said(&mut run, "needs 2 healthy pods");
    room.told(0, &["rollout", "abort", "inv"]);
    let said = ended(run, 130);
    assert!(
        said.contains("RW0634: the run was stopped while the node n1 was emptied"),
        "{said}"
    );
    room.plane.kubectl(&["uncordon", "n2"]);
    room.plane.apply(&budget(1));
    room.told(0, &["resume", "inv"]);
    assert_eq!(room.stands(), (true, false));

    room.resource("unmarked", false);
    let run = room.begun(&["apply", "inv", "--yes"]);
    room.until_begun();
    room.plane
        .kubectl(&["annotate", "node", "n1", "railwright.io/cordoned-"]);
    room.machine.host.sh("touch /etc/go");
    let said = ended(run, 0);
    assert!(
        said.contains("RW0652: n1 stays cordoned: somebody else did that, or took our mark away"),
        "{said}"
    );
    room.plane.kubectl(&["uncordon", "n1"]);
}

fn a_node_that_was_left_is_given_back_by_a_gate_that_proves_its_host(room: &Room) {
    room.resource("fixed", true);
    room.machine.host.sh("touch /etc/broken");
    room.told(1, &["apply", "inv", "--yes"]);
    // By hand, so that the next plan only takes note of it.
    room.machine.host.sh("rm /etc/broken; touch /etc/fixed");
    let said = room.told(0, &["apply", "inv", "--yes"]);
    assert!(
        said.contains("n1 gate: what `verify` proves") && said.contains("n1 uncordon done"),
        "{said}"
    );
    assert_eq!(room.stands(), (true, false));
}

fn a_run_that_is_stopped_while_it_empties_gives_the_node_back(room: &Room) {
    pods_that_stay(room);
    room.resource("sixth", true);
    let mut run = room.begun(&["apply", "inv", "--yes"]);
    until_said(&mut run, "needs 2 healthy pods");
    signal(&run, "-INT");
    let said = ended(run, 130);
    assert!(
        said.contains("RW0634: the run was stopped while the node n1 was emptied"),
        "{said}"
    );
    assert_eq!(
        (room.stands(), room.machine.file("/etc/log")),
        ((true, false), None)
    );
    room.plane.kubectl(&["uncordon", "n2"]);
    room.plane.apply(&budget(1));
    room.told(0, &["resume", "inv"]);
    assert_eq!(
        (room.stands(), room.pods()),
        ((true, false), vec!["plugin".to_owned()])
    );
}

fn a_run_that_is_killed_goes_on_with_an_empty_node(room: &Room) {
    room.resource("seventh", false);
    let mut run = room.begun(&["apply", "inv", "--yes"]);
    room.until_begun();
    signal(&run, "-KILL");
    run.wait().unwrap();
    // Somebody puts it back to work meanwhile, and pods come.
    room.plane.kubectl(&["uncordon", "n1"]);
    room.plane.kubectl(&["cordon", "n2"]);
    room.plane
        .kubectl(&["delete", "pods", "--selector=app=web"]);
    room.plane
        .kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    room.plane.kubectl(&["uncordon", "n2"]);
    room.machine.host.sh("touch /etc/go");
    room.told(0, &["resume", "inv"]);
    assert_eq!(
        (room.stands(), room.pods()),
        ((true, false), vec!["plugin".to_owned()])
    );
}

fn a_run_that_is_given_up_names_the_nodes_that_it_may_leave_cordoned(room: &Room) {
    pods_that_stay(room);
    room.resource("given-up", true);
    let mut run = room.begun(&["apply", "inv", "--yes"]);
    until_said(&mut run, "needs 2 healthy pods");
    // The store answers nobody, so that the first one cannot end it.
    let store = std::fs::read_to_string(room.plane.work().join("etcd.pid")).unwrap();
    let store = |signal: &str| {
        assert!(
            std::process::Command::new("kill")
                .args([signal, store.trim()])
                .status()
                .unwrap()
                .success()
        )
    };
    store("-STOP");
    signal(&run, "-INT");
    until_said(&mut run, "Ctrl-C again leaves at once");
    signal(&run, "-INT");
    // Not for longer: the controllers end where they cannot renew their leases.
    store("-CONT");
    let said = ended(run, 130);
    assert!(
        said.contains("RW0652: n1 may be left cordoned") && said.contains("kubectl uncordon n1"),
        "{said}"
    );
    assert_eq!(room.stands(), (false, true));
    room.plane.kubectl(&["uncordon", "n2"]);
    room.plane.apply(&budget(1));
    room.told(0, &["resume", "inv"]);
    assert_eq!(room.stands(), (true, false));
}

/// A kubelet that says that it is not ready still ends its pods; of one that is silent for long
/// nobody hears when they ended.
#[test]
#[ignore = "long: make test-deep"]
fn a_pod_that_ends_is_waited_for_while_its_kubelet_speaks() {
    let Some(room) = Room::start() else { return };
    room.machine.place.write(
        "inv/rollout.yaml",
        "rollout: { drain: { evict_unmanaged: true } }\n",
    );
    room.plane.kubectl(&[
        "run",
        "slow",
        "--image=example.invalid/a:1",
        "--overrides",
        r#"{"spec":{"nodeName":"n1","terminationGracePeriodSeconds":1}}"#,
    ]);
    room.plane
        .kubectl(&["wait", "pod/slow", "--for=condition=Ready", "--timeout=60s"]);
    let kubelets = std::fs::read_to_string(room.plane.work().join("kwok.pid")).unwrap();
    let kubelets = |signal: &str| {
        assert!(
            std::process::Command::new("kill")
                .args([signal, kubelets.trim()])
                .status()
                .unwrap()
                .success()
        )
    };
    room.resource("checkpoint", true);
    kubelets("-STOP");
    let run = room.begun(&["apply", "inv", "--yes"]);
    room.plane.kubectl(&[
        "wait",
        "pod/slow",
        "--for=jsonpath={.metadata.deletionTimestamp}",
        "--timeout=60s",
    ]);
    room.says_ready("False");
    // Longer than between two looks.
    std::thread::sleep(Duration::from_secs(8));
    assert_eq!(room.machine.file("/etc/log"), None, "the host waits");
    room.says_ready("Unknown");
    room.until_begun();
    kubelets("-CONT");
    room.says_ready("True");
    let said = ended(run, 0);
    assert!(
        said.contains(
            "RW0652: pods of the node n1 count as gone, and nobody has said so: default/slow"
        ),
        "{said}"
    );
    assert_eq!(room.stands(), (true, false));
}

fn a_node_that_goes_away_is_not_waited_for(room: &Room) {
    room.resource("gone", false);
    let run = room.begun(&["apply", "inv", "--yes"]);
    room.until_begun();
    room.plane.kubectl(&["delete", "node", "n1"]);
    room.machine.host.sh("touch /etc/go");
    let said = ended(run, 0);
    assert!(
        said.contains(
            "RW0652: n1 is no longer a node of the cluster, so there is nothing to give back"
        ),
        "{said}"
    );
    room.plane.nodes(&["n1"], &[("nvidia.com/gpu", "8")]);
    room.plane
        .kubectl(&["rollout", "status", "daemonset/plugin", "--timeout=60s"]);

    pods_that_stay(room);
    room.resource("going", true);
    let mut run = room.begun(&["apply", "inv", "--yes"]);
    until_said(&mut run, "needs 2 healthy pods");
    room.plane.kubectl(&["delete", "node", "n1"]);
    let said = ended(run, 0);
    assert!(
        said.contains(
            "RW0652: n1 is no longer a node of the cluster, so there is nothing to empty"
        ),
        "{said}"
    );
    room.plane.kubectl(&["uncordon", "n2"]);
    room.plane.apply(&budget(1));
    room.plane.nodes(&["n1"], &[("nvidia.com/gpu", "8")]);
}

fn what_somebody_else_cordoned_stays_cordoned(room: &Room) {
    room.plane.kubectl(&["cordon", "n1"]);
    room.resource("eighth", true);
    room.told(0, &["apply", "inv", "--yes"]);
    assert_eq!(room.stands(), (false, false));
    room.plane.kubectl(&["delete", "node", "n1"]);
    room.resource("ninth", true);
    assert!(
        !room.told(0, &["plan", "inv"]).contains("n1 drain"),
        "it is no node any more"
    );
}

fn a_host_waits_for_what_its_cluster_brings(room: &Room) {
    room.plane.nodes(&["n1"], &[("aliyun/erdma", "0")]);
    let wait = "module: brings
summary: a controller brings the driver
resources:
  - id: devices
    node_allocatable: { resource: aliyun/erdma, nodes: [n1], amount: 200, within_s: 60, before_hosts: true }
";
    room.machine
        .place
        .write("inv/modules/brings/module.yaml", wait);
    room.machine
        .resource("  - id: note\n    file: { path: /etc/note.conf, content: \"rails\\n\" }\n");
    let plan = room.told(0, &["plan", "inv"]);
    assert!(
        plan.contains(
            "first kube/prod/node_allocatable/aliyun%2Ferdma: the hosts' steps wait for it"
        ),
        "{plan}"
    );
    let mut run = room.begun(&["apply", "inv", "--yes"]);
    until_said(&mut run, "n1: 0 instead of 200");
    assert_eq!(room.machine.file("/etc/note.conf"), None);
    room.gives_of("aliyun/erdma", "200");
    ended(run, 0);
    assert_eq!(
        room.machine.file("/etc/note.conf").as_deref(),
        Some("rails\n")
    );
    assert!(
        room.told(0, &["plan", "inv", "--detailed-exitcode"])
            .contains("No changes.")
    );

    // A node that never comes to it holds its own host alone.
    let spec = std::fs::read_to_string(room.machine.place.path().join("inv/cluster.yaml")).unwrap();
    let second = "  - { name: n9, os: debian-12, ssh: { address: 127.0.0.1, port: 1 } }\n";
    room.machine.place.write("inv/cluster.yaml", spec + second);
    room.plane.nodes(&["n9"], &[]);
    room.machine.place.write(
        "inv/modules/brings/module.yaml",
        wait.replace("[n1]", "[n1, n9]")
            .replace("within_s: 60", "within_s: 3"),
    );
    room.machine
        .resource("  - id: note\n    file: { path: /etc/note.conf, content: \"more rails\\n\" }\n");
    let said = room.told(1, &["apply", "inv", "--yes"]);
    assert!(
        said.contains("RW0633")
            && said.contains("n9: nothing of it")
            && said.contains("hosts whose nodes have it go on"),
        "{said}"
    );
    assert_eq!(
        room.machine.file("/etc/note.conf").as_deref(),
        Some("more rails\n")
    );
}
