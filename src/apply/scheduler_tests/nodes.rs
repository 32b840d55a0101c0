//! Hosts that are nodes: emptied before they are disturbed, given back once they have passed a
//! gate.

use super::Driven;
use crate::signal::Signal;
use railwright_base::Target;
use railwright_state::{NodeOutcome, Skip};

const DRAINED: [&str; 7] = [
    "drain-a a 0 - D",
    "a a 0 drain-a d",
    "drain-b b 0 - D",
    "b b 0 drain-b d",
    "gate gate:a,b 0 a,b",
    "back-a a 0 gate U",
    "back-b b 0 gate U",
];

#[test]
fn a_host_whose_node_was_emptied_is_out_until_it_is_given_back() {
    let mut run = Driven::new(&DRAINED, 1);
    assert_eq!(run.asked(), "drain-a");
    assert_eq!(
        run.done("drain-a").asked(),
        "a",
        "b waits for the only place"
    );
    assert_eq!(
        run.done("a").asked(),
        "gate(a)",
        "which a host that is through may free"
    );
    assert_eq!(
        run.answer("gate", &["a"], true).asked(),
        "back-a",
        "it passed the gate, though b did not"
    );
    assert_eq!(
        run.scheduler.out_of_service().len(),
        1,
        "no pods are put on it yet"
    );
    assert_eq!(run.done("back-a").asked(), "drain-b");
    run.done("drain-b");
    assert_eq!(run.done("b").asked(), "gate(a,b)");
    assert_eq!(run.answer("gate", &["a", "b"], true).asked(), "back-b");
    assert_eq!(run.done("back-b").asked(), "end");
    assert_eq!(run.scheduler.out_of_service().len(), 0);
}

#[test]
fn what_a_gate_has_proven_is_given_back_whatever_stops_the_rest() {
    let mut run = Driven::new(&DRAINED, 1);
    run.done("drain-a").send(Signal::Expire);
    assert_eq!(run.done("a").asked(), "gate(a)");
    assert_eq!(run.answer("gate", &["a"], true).asked(), "back-a");
    assert_eq!(run.done("back-a").asked(), "end");
    assert_eq!(
        (run.outcome("drain-b"), run.scheduler.out_of_service().len()),
        (
            NodeOutcome::Skipped {
                because: Skip::Deadline
            },
            0
        )
    );
}

#[test]
fn what_no_gate_has_proven_is_not_given_back() {
    let mut run = Driven::new(&DRAINED, 2);
    run.done("drain-a").done("drain-b").done("a").done("b");
    assert_eq!(run.answer("gate", &["a", "b"], false).asked(), "end");
    assert_eq!(
        run.outcome("back-a"),
        NodeOutcome::Skipped {
            because: Skip::Gate {
                node: "gate".to_owned()
            }
        }
    );
    let mut run = Driven::new(&DRAINED, 2);
    run.done("drain-a").done("drain-b").done("a");
    assert_eq!(
        run.fail("b").asked(),
        "end",
        "a canary that is lost leaves nothing to prove"
    );
    assert_eq!(run.scheduler.out_of_service().len(), 2);
}

#[test]
fn a_node_that_an_earlier_run_left_is_proven_and_given_back() {
    let mut run = Driven::new(&["gate gate:a 0 -", "back-a a 0 gate U"], 1);
    assert_eq!(run.asked(), "gate(a)");
    assert_eq!(run.answer("gate", &["a"], true).asked(), "back-a");
    assert_eq!(run.done("back-a").asked(), "end");
}

#[test]
fn a_node_that_was_left_is_proven_whatever_else_there_is_on_its_host() {
    let mut run = Driven::new(&["gate gate:a 0 -", "found a 0 -", "back-a a 0 gate U"], 1);
    assert_eq!(run.asked(), "gate(a) found");
    assert_eq!(
        run.done("found").answer("gate", &["a"], true).asked(),
        "back-a"
    );
    // What waits for somebody keeps the host from its gate, and so its node from being given back.
    let run = Driven::new(
        &["hand a 0 - h", "gate gate:a 0 hand", "back-a a 0 gate U"],
        1,
    );
    assert_eq!(run.asked(), "end");
    assert!(
        matches!(run.outcome("back-a"), NodeOutcome::Blocked { .. }),
        "{:?}",
        run.outcome("back-a")
    );
}

/// Two waits on the cluster, one after the other, then four hosts, each with a gate.
const WAITS: [&str; 10] = [
    "devices kube 0 - W",
    "gives kube 0 devices W",
    "a a 0 gives",
    "gate0 gate:a 0 a,gives",
    "b b 1 gate0",
    "gate1 gate:b 1 b",
    "c c 2 gate1",
    "gate2 gate:c 2 c",
    "other kube 3 gate2",
    "needs kube 3 gives",
];

#[test]
fn a_wait_that_came_about_for_some_hosts_holds_the_others_alone() {
    let spare = |run: &mut Driven, id: &str, hosts: &[&str]| {
        let step = run
            .scheduler
            .steps()
            .iter()
            .position(|step| step.id == id)
            .unwrap();
        run.send(Signal::Spare {
            step,
            hosts: hosts.iter().map(|host| Target::host(*host)).collect(),
        });
    };
    let mut run = Driven::new(&WAITS, 1);
    spare(&mut run, "devices", &["a", "c"]);
    assert_eq!(
        run.fail("devices").asked(),
        "gives",
        "what only waits goes on"
    );
    spare(&mut run, "gives", &["a", "c"]);
    assert_eq!(run.fail("gives").asked(), "a");
    assert_eq!(run.done("a").asked(), "gate0(a)");
    assert_eq!(
        run.answer("gate0", &["a"], true).asked(),
        "c",
        "b has no gate to pass, and keeps nobody waiting"
    );
    let because = |node: &str| NodeOutcome::Skipped {
        because: Skip::Dependency {
            node: node.to_owned(),
        },
    };
    assert_eq!(
        (run.outcome("b"), run.outcome("gate1")),
        (because("devices"), NodeOutcome::Done { changed: false })
    );
    assert_eq!(run.done("c").asked(), "gate2(c)");
    assert_eq!(run.answer("gate2", &["c"], true).asked(), "other");
    assert_eq!(
        (run.outcome("needs"), run.done("other").asked()),
        (because("gives"), "end".to_owned())
    );
    // Without the canary no gate passes.
    let mut run = Driven::new(&WAITS, 1);
    run.done("devices");
    spare(&mut run, "gives", &["b", "c"]);
    assert_eq!(run.fail("gives").asked(), "end");
    let mut run = Driven::new(&WAITS, 1);
    assert_eq!(
        run.fail("devices").asked(),
        "end",
        "a wait that ended well for nobody"
    );
}
