//! A node of a real Kubernetes cluster that a run left cordoned, as `drift` and `plan` tell it. The
//! machine is real, the control plane is real; the node's kubelet is played by kwok.

use crate::control_plane::ControlPlane;
use crate::machine::Machine;

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_node_that_a_run_left_cordoned_is_drift_until_it_is_given_back() {
    let Some(machine) = Machine::start("a node is left cordoned", "", &[]) else {
        return;
    };
    let Some(plane) = ControlPlane::start() else {
        return;
    };
    let access = format!(
        "kubernetes: {{ name: prod, kubeconfig: {} }}\n",
        plane.kubeconfig("admin").display()
    );
    machine.place.write("inv/kubernetes.yaml", access);
    plane.nodes(&["n1"], &[("nvidia.com/gpu", "8")]);
    let told = |code: i32, words: &[&str]| {
        let said = machine.run(words);
        assert!(said.ends_with(&format!("--- exit {code} ---\n")), "{said}");
        flat(&said)
    };
    machine.resource("  - id: note\n    file: { path: /etc/note.conf, content: \"rails\\n\" }\n");
    told(0, &["apply", "inv", "--yes"]);
    assert!(told(0, &["drift", "inv"]).contains("No drift."));

    plane.kubectl(&["cordon", "n1"]);
    assert!(
        told(0, &["drift", "inv"]).contains("No drift."),
        "who cordoned it will know why"
    );
    plane.kubectl(&[
        "annotate",
        "node",
        "n1",
        r#"railwright.io/cordoned={"run":"r0007","gives":{"nvidia.com/gpu":"8"}}"#,
    ]);
    assert!(
        told(0, &["drift", "inv"]).contains("No drift."),
        "our mark is of an earlier time: somebody gave the node back by hand"
    );
    plane.kubectl(&["uncordon", "n1"]);
    let ours = [
        "--field-manager=railwright",
        "--type=merge",
        "-p",
        r#"{"spec":{"unschedulable":true}}"#,
    ];
    plane.kubectl(&[&["patch", "node", "n1"][..], &ours].concat());
    let drift = told(2, &["drift", "inv"]);
    for said in [
        "NOT GIVEN BACK: a run of ours took it out of service, and no run has given it back",
        "~ kube/prod Node/-/n1 schedulable, running: actual no, desired yes (applied no; run r0007 \
         cordoned it)",
        "1 attribute differs from the spec. next: railwright plan inv",
    ] {
        assert!(drift.contains(said), "{said}\n{drift}");
    }
    for (format, said) in [
        ("json", r#""reason": "not_given_back""#),
        ("junit", r#"<failure type="not_given_back""#),
        ("sarif", r#""ruleId": "not_given_back""#),
        (
            "prometheus",
            r#"host="prod",kind="Node",plane="running"} 1"#,
        ),
        ("markdown", "#### Not given back"),
    ] {
        let document = told(2, &["drift", "inv", "--format", format]);
        assert!(document.contains(said), "{said}\n{document}");
    }

    // The spec empties no nodes any more: this one is still ours to give back.
    machine
        .place
        .write("inv/rollout.yaml", "rollout: { drain: { pods: leave } }\n");
    told(2, &["drift", "inv"]);
    let plan = told(0, &["plan", "inv"]);
    assert!(
        plan.contains(". n1 uncordon")
            && plan.contains("an earlier run cordoned the node of kube/prod"),
        "{plan}"
    );
    let roles = told(0, &["rbac", "inv", "--role", "apply"]);
    assert!(
        roles.contains("resourceNames: [n1] resources: [nodes] verbs: [get, patch]")
            && !roles.contains("eviction"),
        "{roles}"
    );
    told(0, &["apply", "inv", "--yes"]);
    assert!(told(0, &["drift", "inv"]).contains("No drift."));
}
