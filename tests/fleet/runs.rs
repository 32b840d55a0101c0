//! Whole runs against a fleet in memory, with real kinds and real plans.

use crate::room::{NEVER, Room, codes, machine_id};
use railwright_apply::{
    ApplyOutcome, Context, Decisions, RunEvent, RunExitClass, StepCounts, apply_plan, resume_run,
};
use railwright_base::Address;
use railwright_plan::{ChangeReason, NodeKind, Plan, content};
use railwright_report::apply::{Besides, render_run_summary};
use railwright_resource::{Action, Disruption};
use railwright_state::{ClusterLock, NodeOutcome, OrderKind};
use railwright_transport::sim::links::SimulatedNetdev;
use railwright_transport::sim::steps::SimulatedRunningAction;
use railwright_transport::sim::{SimulatedFault, SimulatedHost, SimulatedTrouble};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

async fn run(room: &Room) -> ApplyOutcome {
    apply_plan(&room.plan().await, &room.context, room.sink()).await
}

/// A file, a sysctl after it, and a kernel parameter that needs a reboot.
fn full(hosts: &[&str]) -> Room {
    Room::of(hosts)
        .resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[])
        .resource(
            "sysctl",
            json!({ "key": "net.a", "value": "7" }),
            &["file/%2Fetc%2Fx"],
        )
        .resource(
            "kernel_parameter",
            json!({ "parameter": "iommu", "value": "pt" }),
            &["file/%2Fetc%2Fx"],
        )
}

fn two_files(hosts: &[&str]) -> Room {
    Room::of(hosts)
        .resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[])
        .resource(
            "file",
            json!({ "path": "/etc/y", "content": "two\n" }),
            &["file/%2Fetc%2Fx"],
        )
}

/// systemd calls a program started that ends over its configuration a moment later.
#[tokio::test(start_paused = true)]
async fn a_service_that_ends_a_moment_after_its_start_is_not_done() {
    let lost = SimulatedFault {
        after: 0,
        word: Some("unit".to_owned()),
        trouble: SimulatedTrouble::LostAfter,
    };
    for (seconds, rollback_timer, fault, code) in [
        ("infinity", false, None, None),
        ("infinity", true, None, None),
        ("4", false, None, Some("RW0613")),
        ("4", false, Some(lost), Some("RW0613")),
        ("4", true, None, Some("RW0641")),
    ] {
        let content = format!("[Service]\nExecStart=/bin/sleep {seconds}\n");
        let unit = json!({ "name": "own.service", "content": content, "active": true, "rollback_timer": rollback_timer });
        let room = Room::of(&["a", "b"]).resource("systemd_unit", unit, &[]);
        room.host("a", |host| host.faults.extend(fault));
        let outcome = run(&room).await;
        assert_eq!(
            codes(&outcome).first().copied(),
            code,
            "{seconds} {rollback_timer} {:?}",
            outcome.problems
        );
        let is_begun = room.host("b", |host| !host.told.is_empty());
        assert_eq!(is_begun, code.is_none(), "{seconds} {rollback_timer}");
    }
    let unit = json!({ "name": "own.service", "content": "[Service]\nExecStart=/bin/sleep 4\n", "active": true });
    let room = Room::of(&["a"]).resource("systemd_unit", unit, &[]);
    let plan = room.plan().await;
    let is_started = || room.host("a", |host| host.told.contains(&"unit".to_owned()));
    room.dies_when(&plan, is_started).await;
    let resumed = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(codes(&resumed), ["RW0613"], "{:?}", resumed.problems);
}

#[tokio::test(start_paused = true)]
async fn from_nothing_to_done_and_then_there_is_nothing_to_do() {
    let room = full(&["a", "b", "c"]);
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    assert_eq!(
        outcome.counts,
        StepCounts {
            done: 12,
            ..StepCounts::default()
        }
    );
    assert_eq!(
        *room.gate.checked.lock().unwrap(),
        ["a after ", "b,c after a"]
    );
    room.host("b", |host| {
        assert_eq!(
            (
                host.boot,
                host.kernel.sysctls["net.a"].as_str(),
                host.loader.running.join(" ").as_str()
            ),
            (1, "7", "root=/dev/vda1 ro quiet iommu=pt")
        );
        assert_eq!(
            (
                host.holder(),
                host.told.iter().filter(|word| *word == "reboot").count()
            ),
            (None, 1)
        );
    });
    assert_eq!(room.plan().await.nodes, [], "law 1: the next plan is empty");
    let again = run(&room).await;
    assert_eq!((again.ending, again.run), (RunExitClass::Done, None));
}

#[tokio::test(start_paused = true)]
async fn what_was_there_before_comes_back_when_the_resource_goes() {
    let mut room = full(&["a"]);
    room.put("a", "/etc/x", "before\n");
    let untouched = room.fleet.effects();
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    room.put("a", "/etc/x", "drifted\n");
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    room.resources.clear();
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    assert_eq!(room.fleet.effects(), untouched);
    assert!(room.state().last_applied.resources.is_empty());
}

/// A later version wrote the record, in which bodies have a field more.
#[tokio::test(start_paused = true)]
async fn what_another_version_recorded_is_neither_forgotten_nor_taken_back() {
    let mut room = full(&["a"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    let record = room.host("a", |host| host.record.clone().unwrap());
    let newer = record.replace("\"body\":{", "\"body\":{\"colour\":\"red\",");
    room.host("a", |host| host.record = Some(newer.clone()));
    room = Room::beside(room.fleet.clone(), room.cluster);
    let plan = room.plan().await;
    let unknown: Vec<&str> = plan.unknown.iter().map(|one| &*one.subject).collect();
    assert_eq!(
        (plan.nodes.len(), unknown),
        (
            0,
            vec![
                "host/a/file/%2Fetc%2Fx#body (running)",
                "host/a/kernel_parameter/iommu#body (running)",
                "host/a/sysctl/net.a#body (running)",
            ]
        )
    );
    let before = room.fleet.effects();
    apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(room.fleet.effects(), before);
    assert_eq!(room.host("a", |host| host.record.clone()), Some(newer));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_moved_is_left_alone_before_anything_of_it_is_changed() {
    let room = two_files(&["a", "b"]);
    let plan = room.plan().await;
    room.put("b", "/etc/y", "by hand\n");
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Incomplete, vec!["RW0610"])
    );
    assert!(
        outcome.problems[0].message.contains("by hand"),
        "{}",
        outcome.problems[0].message
    );
    room.host("b", |host| assert!(host.told.is_empty(), "{:?}", host.told));
    room.host("a", |host| assert_eq!(host.told.len(), 2));
    // Whoever goes on with the run finds the same: the first file is not written either.
    let again = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (again.ending, codes(&again)),
        (RunExitClass::Incomplete, vec!["RW0610"])
    );
    room.host("b", |host| assert!(host.told.is_empty(), "{:?}", host.told));
}

#[tokio::test(start_paused = true)]
async fn what_is_so_already_is_done_without_an_action_and_never_taken_away() {
    let mut room = two_files(&["a"]);
    let plan = room.plan().await;
    room.put("a", "/etc/x", "one\n");
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, outcome.counts.already, outcome.counts.done),
        (RunExitClass::Done, 1, 1)
    );
    assert!(
        room.state()
            .last_applied
            .resources
            .values()
            .any(|applied| applied.adopted)
    );
    room.resources.clear();
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    room.host("a", |host| {
        assert!(host.disk.files.contains_key("/etc/x") && !host.disk.files.contains_key("/etc/y"))
    });
}

#[tokio::test(start_paused = true)]
async fn what_is_in_sync_from_the_start_is_remembered_and_its_drift_is_told() {
    let mut room = two_files(&["a"]);
    let put = |room: &Room, text: &str| room.put("a", "/etc/x", text);
    room.put("a", "/etc/y", "two\n");
    put(&room, "one\n");
    // moved after the plan: nothing is taken for so
    let plan = room.plan().await;
    put(&room, "else\n");
    let moved = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (moved.ending, codes(&moved), moved.counts.stale),
        (RunExitClass::Incomplete, vec!["RW0610"], 1)
    );
    assert!(room.state().last_applied.resources.is_empty());
    put(&room, "one\n");
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, outcome.counts),
        (
            RunExitClass::Done,
            StepCounts {
                already: 1,
                ..StepCounts::default()
            }
        )
    );
    room.host("a", |host| {
        assert!(host.told.is_empty() && host.record.as_ref().unwrap().contains("/etc/x"))
    });
    assert!(
        room.state()
            .last_applied
            .resources
            .values()
            .all(|applied| applied.adopted)
    );
    assert_eq!(
        (
            room.plan().await.nodes,
            room.gate.checked.lock().unwrap().len()
        ),
        (vec![], 0)
    );
    put(&room, "drifted\n");
    assert_eq!(
        room.plan().await.nodes[0].members()[0].reason,
        ChangeReason::Drifted
    );
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    room.resources.clear();
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    room.host("a", |host| {
        assert_eq!(
            format!(
                "{}{}",
                host.disk.text("/etc/x").unwrap(),
                host.disk.text("/etc/y").unwrap()
            ),
            "one\ntwo\n"
        )
    });
    assert!(room.state().last_applied.resources.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_looked_into_and_never_taken_for_a_failure() {
    for fault in [SimulatedTrouble::LostBefore, SimulatedTrouble::LostAfter] {
        let room = two_files(&["a"]);
        room.fault("a", "write_file", fault.clone());
        let outcome = run(&room).await;
        assert_eq!(
            (outcome.ending, codes(&outcome)),
            (RunExitClass::Done, vec![]),
            "{fault:?}"
        );
        room.host("a", |host| assert_eq!(host.told.len(), 2, "{fault:?}"));
        let same = room.host("a", |host| host.tokens[0] == host.tokens[1]);
        assert_eq!(
            same,
            fault == SimulatedTrouble::LostBefore,
            "what may still run is found under its own token"
        );
    }
    let room = two_files(&["a"]);
    room.fault("a", "write_file", SimulatedTrouble::LostBefore);
    room.fault("a", "write_file", SimulatedTrouble::LostBefore);
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Incomplete, vec!["RW0614"])
    );
}

/// What an earlier run left running: the first action of a plan, which does not end.
fn running_for_ever(plan: &Plan) -> Option<SimulatedRunningAction> {
    let actions = plan.nodes.iter().find_map(|node| match &node.kind {
        NodeKind::Change { actions, .. } => actions.first().cloned(),
        _ => None,
    });
    actions.map(|action| SimulatedRunningAction {
        action,
        token: "t".into(),
        until: NEVER,
        trouble: None,
    })
}

#[tokio::test(start_paused = true)]
async fn a_step_that_goes_on_without_us_is_waited_for_and_not_begun_again() {
    let busy = RunEvent::HostBusy {
        host: "a".to_owned(),
    };
    let room = two_files(&["a"]);
    room.fault("a", "write_file", SimulatedTrouble::GoesOn(3));
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    room.host("a", |host| {
        assert_eq!(host.told, ["write_file", "write_file"], "one for each file")
    });
    assert_eq!(
        room.events
            .lock()
            .unwrap()
            .iter()
            .filter(|event| **event == busy)
            .count(),
        1
    );
    // What an earlier run left running is waited for before anything is looked at.
    let room = two_files(&["a", "b"]);
    let plan = room.plan().await;
    let running = running_for_ever(&plan);
    room.host("a", |host| {
        host.running = running.clone().map(|running| SimulatedRunningAction {
            until: Duration::from_secs(9),
            ..running
        })
    });
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, outcome.counts.already),
        (RunExitClass::Done, 1),
        "{:?}",
        outcome.problems
    );
    assert!(room.events.lock().unwrap().contains(&busy));
    // One that does not end costs its own host alone, and is named.
    let room = two_files(&["a", "b"]);
    room.host("b", |host| host.running = running.clone());
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Incomplete, vec!["RW0627"])
    );
    room.host("a", |host| assert_eq!(host.told.len(), 2));
    room.host("b", |host| {
        assert_eq!((host.told.len(), host.holder()), (0, None))
    });
}

#[tokio::test(start_paused = true)]
async fn a_failure_says_what_the_host_said_and_a_lie_is_found_out() {
    let room = two_files(&["a"]);
    room.fault("a", "write_file", SimulatedTrouble::Fails);
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Failed, vec!["RW0612"])
    );
    assert!(
        outcome.problems[0]
            .message
            .ends_with("it said: no such \u{fffd}[31mdevice"),
        "{}",
        outcome.problems[0].message
    );
    assert_eq!(
        resume_run(&room.context, Decisions::default(), room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    room.host("a", |host| {
        assert_ne!(
            host.tokens[0], host.tokens[1],
            "what has failed is begun anew"
        )
    });
    let room = two_files(&["a"]);
    room.fault("a", "write_file", SimulatedTrouble::NoEffect);
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Failed, vec!["RW0613"])
    );
    let left: Vec<_> = room
        .state()
        .last_applied
        .resources
        .into_values()
        .map(|applied| (applied.unfinished, applied.adopted))
        .collect();
    assert_eq!(
        left,
        [(true, false)],
        "to be taken back should its resource go, and never applied"
    );
}

/// A step that failed without an effect made nothing, and of one that may have had one nothing that
/// somebody else made is undone.
#[tokio::test(start_paused = true)]
async fn what_somebody_makes_after_a_step_that_failed_is_theirs() {
    for (trouble, remembered) in [
        (SimulatedTrouble::Fails, 0),
        (SimulatedTrouble::NoEffect, 1),
    ] {
        let mut room =
            Room::of(&["a"]).resource("file", json!({ "path": "/etc/one", "content": "1\n" }), &[]);
        room.fault("a", "write_file", trouble);
        assert_eq!(
            (
                run(&room).await.ending,
                room.state().last_applied.resources.len()
            ),
            (RunExitClass::Failed, remembered)
        );
        room.put("a", "/etc/one", "theirs\n");
        room.resources.clear();
        let plan = room.plan().await;
        let blocked: Vec<_> = plan
            .nodes
            .iter()
            .filter_map(|node| Some(node.blocked.as_ref()?.to_string()))
            .collect();
        assert_eq!(
            blocked
                .iter()
                .filter(|why| why.contains("neither what was there before"))
                .count(),
            remembered,
            "{blocked:?}"
        );
        apply_plan(&plan, &room.context, room.sink()).await;
        assert_eq!(
            room.host("a", |host| host.disk.text("/etc/one")).as_deref(),
            Some("theirs\n")
        );
        // What it made itself is undone.
        room.put("a", "/etc/one", "1\n");
        run(&room).await;
        assert_eq!(
            room.host("a", |host| host.disk.text("/etc/one")).is_none(),
            remembered == 1
        );
    }
}

/// The plan took it back while it was ours. Nobody asks for a decision about what was made since.
#[tokio::test(start_paused = true)]
async fn what_somebody_makes_before_a_run_goes_on_is_theirs() {
    let mut room =
        Room::of(&["a"]).resource("file", json!({ "path": "/etc/one", "content": "1\n" }), &[]);
    room.fault("a", "write_file", SimulatedTrouble::NoEffect);
    assert_eq!(run(&room).await.ending, RunExitClass::Failed);
    room.put("a", "/etc/one", "1\n");
    room.resources.clear();
    room.fault("a", "remove_file", SimulatedTrouble::Fails);
    assert_eq!(run(&room).await.ending, RunExitClass::Failed);
    room.put("a", "/etc/one", "theirs\n");
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Incomplete, vec!["RW0611"])
    );
    assert!(
        outcome.problems[0]
            .message
            .contains("neither what was there before"),
        "{:?}",
        outcome.problems
    );
    assert_eq!(
        room.host("a", |host| host.disk.text("/etc/one")).as_deref(),
        Some("theirs\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_gate_stops_and_resume_goes_on_when_it_is_mended() {
    let room = two_files(&["a", "b"]);
    room.gate.bad.lock().unwrap().insert("a".into());
    let outcome = run(&room).await;
    assert_eq!(outcome.ending, RunExitClass::Stopped);
    assert!(codes(&outcome).contains(&"RW0650"));
    room.host("b", |host| assert!(host.told.is_empty()));
    room.gate.bad.lock().unwrap().clear();
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    room.host("a", |host| {
        assert_eq!(host.told.len(), 2, "nothing was done twice")
    });
    let nothing = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (nothing.ending, codes(&nothing)),
        (RunExitClass::Refused, vec!["RW0623"])
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_catches_up_is_proven_by_a_gate_that_others_passed_before() {
    let room = full(&["a", "b", "c"]);
    room.fault("c", "write_file", SimulatedTrouble::Fails);
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Failed, vec!["RW0612"])
    );
    assert_eq!(
        *room.gate.checked.lock().unwrap(),
        ["a after ", "b after a"]
    );
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    let last = room.gate.checked.lock().unwrap().last().cloned().unwrap();
    assert!(last.starts_with("b,c after a"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_died_after_its_last_step_lets_its_hosts_go() {
    let room = two_files(&["a"]);
    let dead = ClusterLock::take(&room.context.folder, "apply")
        .unwrap()
        .holder
        .line();
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    let now = room.fleet.now();
    room.host("a", |host| host.hold(&dead, host.lock.highest, 0, now));
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(codes(&outcome), ["RW0623"]);
    room.host("a", |host| assert_eq!(host.holder(), None));
}

#[tokio::test(start_paused = true)]
async fn what_is_forgotten_while_a_run_is_left_open_stays_forgotten() {
    let room = two_files(&["a", "b"]);
    room.gate.bad.lock().unwrap().insert("a".into());
    assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
    let address: Address = "host/a/file/%2Fetc%2Fx".parse().unwrap();
    assert!(room.state().last_applied.resources.contains_key(&address));
    room.forgets(&address);
    room.gate.bad.lock().unwrap().clear();
    assert_eq!(
        resume_run(&room.context, Decisions::default(), room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let left: Vec<String> = room
        .state()
        .last_applied
        .resources
        .keys()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        left,
        [
            "host/a/file/%2Fetc%2Fy",
            "host/b/file/%2Fetc%2Fx",
            "host/b/file/%2Fetc%2Fy"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn hosts_that_are_down_take_the_budget() {
    let mut room = full(&["a", "b"]);
    room.rollout.max_unavailable = 1;
    let plan = room.plan().await;
    room.host("b", |host| host.down_until = NEVER);
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(outcome.ending, RunExitClass::Stopped);
    assert_eq!(codes(&outcome), ["RW0401", "RW0620"]);
    room.host("a", |host| assert_eq!(host.boot, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reboot_is_proven_or_named() {
    let short = Duration::from_secs(600);
    let mut room = full(&["a"]);
    room.context.patience.reboot = short;
    room.fault("a", "reboot", SimulatedTrouble::NoEffect);
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Failed, vec!["RW0616"])
    );
    let room = full(&["a"]);
    room.fault("a", "reboot", SimulatedTrouble::LostAfter);
    assert_eq!(
        run(&room).await.ending,
        RunExitClass::Done,
        "a reboot cuts the connection"
    );
    let mut room = full(&["a"]);
    room.context.patience.reboot = short;
    let plan = room.plan().await;
    let gone = room.fleet.clone();
    let sink = Arc::new(move |event| {
        if let RunEvent::Rebooting { host } = event {
            gone.with(&host, |host| host.down_until = NEVER).unwrap();
        }
    });
    let outcome = apply_plan(&plan, &room.context, sink).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Incomplete, vec!["RW0617"])
    );
    room.host("a", |host| host.down_until = Duration::ZERO);
    room.context.patience.reboot = Duration::from_secs(1200);
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    room.host("a", |host| {
        assert_eq!(host.boot, 1, "the reboot that happened counts")
    });
}

#[tokio::test(start_paused = true)]
async fn a_reboot_from_which_another_machine_comes_back_proves_nothing() {
    // Images have no machine-id before their first setup.
    for another in [Some(machine_id("another")), None] {
        let room = full(&["a", "b"]);
        let (plan, fleet) = (room.plan().await, room.fleet.clone());
        let sink = Arc::new(move |event| {
            if let RunEvent::Rebooting { host } = event {
                let another = another.clone();
                fleet.with(&host, |host| host.machine_id = another).unwrap();
            }
        });
        let outcome = apply_plan(&plan, &room.context, sink).await;
        assert!(
            codes(&outcome).contains(&"RW0723") && outcome.counts.failed == 1,
            "{:?}",
            outcome.problems
        );
        room.host("b", |host| {
            assert_eq!(host.boot, 0, "the next wave waits for it")
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_reboot_that_the_host_did_not_hear_of_is_asked_for_again_a_few_times() {
    for (lost, ending, boots) in [
        (1, RunExitClass::Done, 1),
        (3, RunExitClass::Done, 1),
        (4, RunExitClass::Failed, 0),
    ] {
        let room = full(&["a"]);
        (0..lost).for_each(|_| room.fault("a", "reboot", SimulatedTrouble::LostBefore));
        let outcome = run(&room).await;
        assert_eq!(
            (outcome.ending, codes(&outcome).contains(&"RW0616")),
            (ending, boots == 0),
            "{lost}"
        );
        room.host("a", |host| assert_eq!(host.boot, boots, "{lost}"));
        let orders = room
            .fleet
            .log()
            .iter()
            .filter(|logged| logged.word == "reboot")
            .count();
        assert_eq!(
            orders,
            if boots == 0 { 4 } else { lost + 1 },
            "no more often than that"
        );
    }
    // One that was heard is not: something holds it up.
    let room = full(&["a"]);
    room.fault("a", "reboot", SimulatedTrouble::NoEffect);
    assert_eq!(codes(&run(&room).await), ["RW0616"]);
    assert_eq!(
        room.fleet
            .log()
            .iter()
            .filter(|logged| logged.word == "reboot")
            .count(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_goes_down_for_its_reboot_while_resume_looks_at_it_is_waited_for() {
    // It goes between two calls, or while it answers one.
    for (calls, under_way) in (1..=8).flat_map(|calls| [(calls, false), (calls, true)]) {
        let room = full(&["a"]);
        // Our side dies when it has asked; the host hears it, and goes down only so many calls
        // later.
        room.fault("a", "reboot", SimulatedTrouble::LostBefore);
        let (plan, interrupt) = (room.plan().await, room.interrupt.clone());
        let sink = Arc::new(move |event| {
            if let RunEvent::Rebooting { .. } = event {
                interrupt.send_replace(2);
            }
        });
        assert_eq!(
            apply_plan(&plan, &room.context, sink).await.ending,
            RunExitClass::Interrupted
        );
        room.interrupt.send_replace(0);
        room.host("a", |host| {
            let fault = |after, trouble| SimulatedFault {
                after,
                word: None,
                trouble,
            };
            let cut_off = under_way.then(|| fault(host.calls + calls, SimulatedTrouble::CutOff(0)));
            let down = fault(
                host.calls + calls + u32::from(under_way),
                SimulatedTrouble::PowerLost,
            );
            host.faults.extend(cut_off.into_iter().chain([down]));
        });
        let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
        assert_eq!(
            (outcome.ending, codes(&outcome)),
            (RunExitClass::Done, vec![]),
            "{calls} {under_way}"
        );
        room.host("a", |host| assert_eq!(host.boot, 1, "{calls} {under_way}"));
    }
}

#[tokio::test(start_paused = true)]
async fn plans_that_may_not_be_applied_change_nothing() {
    let room = two_files(&["a"]);
    let plan = room.plan().await;
    let refused = async |plan: &Plan, context: &Context| {
        let outcome = apply_plan(plan, context, room.sink()).await;
        assert_eq!(outcome.ending, RunExitClass::Refused);
        codes(&outcome)[0].to_owned()
    };
    let sealed = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        changed.digest = content::compute_plan_digest(&changed).to_string();
        changed
    };
    let mut edited = plan.clone();
    edited.nodes[0].wave = 9;
    assert_eq!(refused(&edited, &room.context).await, "RW0602");
    let moved_spec = Context {
        spec_digest: Some(railwright_base::Digest::of(&1)),
        ..room.context.clone()
    };
    assert_eq!(refused(&plan, &moved_spec).await, "RW0603");
    let moved_state = sealed(&|plan| plan.state_digest = railwright_base::Digest::of(&1));
    assert_eq!(refused(&moved_state, &room.context).await, "RW0604");
    let ringed = sealed(&|plan| plan.nodes[0].after = vec![plan.nodes[1].id.clone()]);
    assert_eq!(refused(&ringed, &room.context).await, "RW0605");
    let drained = sealed(&|plan| {
        plan.nodes[0].kind = NodeKind::Drain {
            cluster: "kube/none".parse().unwrap(),
            node: "n1".to_owned(),
        }
    });
    assert_eq!(refused(&drained, &room.context).await, "RW0607");
    let switch = sealed(&|plan| plan.nodes[0].target = Some("switch/leaf1".parse().unwrap()));
    assert_eq!(refused(&switch, &room.context).await, "RW0607");
    let cut = sealed(&|plan| {
        if let NodeKind::Change {
            interrupts_netdevs,
            actions,
            ..
        } = &mut plan.nodes[0].kind
        {
            *interrupts_netdevs = ["ens2".into(), "ens3".into()].into();
            *actions = [
                actions.to_vec(),
                vec![Action::UnloadModule {
                    name: "mlx5_core".into(),
                }],
            ]
            .concat()
            .into();
        }
    });
    room.host("a", |host| host.ssh_netdev = Some("ens3".into()));
    assert_eq!(refused(&cut, &room.context).await, "RW0606");
    room.host("a", |host| {
        assert_eq!((host.holder(), host.told.len()), (None, 0))
    });
}

#[tokio::test(start_paused = true)]
async fn two_at_once_and_locks_that_the_dead_left() {
    let room = two_files(&["a"]);
    let other = ClusterLock::take(&room.context.folder, "apply").unwrap();
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Refused, vec!["RW0704"])
    );
    let dead = other.holder.line();
    drop(other);
    let elsewhere = dead
        .replace("\"boot_id\":\"", "\"boot_id\":\"another")
        .replace("\"machine\":\"", "\"machine\":\"another");
    let now = room.fleet.now();
    room.host("a", |host| host.hold(&elsewhere, 41, 10, now));
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Refused, vec!["RW0608"])
    );
    room.host("a", |host| host.hold(&dead, 41, 0, now));
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    room.host("a", |host| {
        assert_eq!(
            host.lock.highest, 42,
            "the fence goes beyond what the host has seen"
        )
    });
}

#[tokio::test(start_paused = true)]
async fn one_host_cannot_use_up_the_numbers_of_all() {
    let room = two_files(&["a", "b"]);
    room.host("a", |host| host.lock.highest = u64::MAX);
    let outcome = run(&room).await;
    assert!(
        codes(&outcome).contains(&"RW0615") && outcome.ending != RunExitClass::Refused,
        "{:?}",
        outcome.problems
    );
    assert!(outcome.run.unwrap().starts_with("r0001-"));
    assert!(
        room.host("b", |host| host.lock.highest) <= 2,
        "b counts on as before"
    );
    room.host("a", |host| host.lock.highest = 0);
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
}

#[tokio::test(start_paused = true)]
async fn a_host_whose_lock_cannot_be_taken_is_left_alone() {
    let room = two_files(&["a", "b"]);
    let plan = room.plan().await;
    room.host("b", |host| host.disk.full_for = 10_000);
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert!(
        codes(&outcome).contains(&"RW0609") && outcome.ending != RunExitClass::Refused,
        "{:?}",
        outcome.problems
    );
    let is_worked_on = |host: &str| room.host(host, |host| !host.told.is_empty());
    assert_eq!((is_worked_on("a"), is_worked_on("b")), (true, false));
    room.host("b", |host| host.disk.full_for = 0);
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
}

#[tokio::test(start_paused = true)]
async fn the_first_interrupt_finishes_what_runs_and_resume_does_the_rest() {
    let room = full(&["a", "b"]);
    let plan = room.plan().await;
    let (interrupt, folder) = (room.interrupt.clone(), room.context.folder.clone());
    let sink = Arc::new(move |event| match event {
        RunEvent::ActionStarted { .. } => interrupt.send_modify(|count| *count = 1),
        RunEvent::Interrupted { .. } => {
            for order in [OrderKind::Pause, OrderKind::Continue] {
                let refused = folder.order(order).unwrap_err();
                assert_eq!(refused.code, "RW0710", "a run that ends does not go on");
            }
        }
        _ => {}
    });
    let outcome = apply_plan(&plan, &room.context, sink).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Interrupted, vec!["RW0621"])
    );
    assert_eq!((outcome.counts.done, outcome.counts.skipped), (1, 7));
    let state = outcome.problems[0].state.as_deref().unwrap_or_default();
    assert!(state.starts_with("7 steps were not begun;"), "{state}");
    room.interrupt.send_modify(|count| *count = 0);
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    assert_eq!(room.plan().await.nodes, []);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_while_hosts_are_reached_changes_nothing_and_leaves_no_lock() {
    let room = two_files(&["a", "b"]);
    let (plan, interrupt) = (room.plan().await, room.interrupt.clone());
    room.host("b", |host| host.running = running_for_ever(&plan));
    let sink = Arc::new(move |event| {
        if let RunEvent::HostBusy { .. } = event {
            interrupt.send_replace(1);
        }
    });
    let outcome = apply_plan(&plan, &room.context, sink).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), &outcome.run),
        (RunExitClass::Interrupted, vec!["RW0621"], &None)
    );
    for name in ["a", "b"] {
        room.host(name, |host| {
            assert_eq!((host.told.len(), host.holder()), (0, None), "{name}")
        });
    }
}

#[tokio::test(start_paused = true)]
async fn the_second_interrupt_waits_for_nothing_and_what_ran_is_unknown() {
    let room = full(&["a"]);
    let plan = room.plan().await;
    let (interrupt, fleet) = (room.interrupt.clone(), room.fleet.clone());
    let sink = Arc::new(move |event| {
        if let RunEvent::Rebooting { host } = event {
            fleet.with(&host, |host| host.down_until = NEVER).unwrap();
            interrupt.send_modify(|count| *count = 2);
        }
    });
    let outcome = apply_plan(&plan, &room.context, sink).await;
    assert_eq!(outcome.ending, RunExitClass::Interrupted);
    assert!(
        outcome
            .outcomes
            .iter()
            .any(|(id, o)| id == "host/a/reboot" && matches!(o, NodeOutcome::Unknown { .. }))
    );
}

/// Whoever goes on with another plan sees what the step made, and not what was there before.
#[tokio::test(start_paused = true)]
async fn what_a_run_had_begun_when_it_was_killed_is_taken_back_by_another_plan() {
    for is_applied in [true, false] {
        let mut room =
            Room::of(&["a"]).resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[]);
        room.put("a", "/etc/x", "old\n");
        let plan = room.plan().await;
        let text = |room: &Room| room.host("a", |host| host.disk.text("/etc/x"));
        room.dies_when(&plan, || text(&room).as_deref() == Some("one\n"))
            .await;
        // The host lets it go after a while.
        tokio::time::sleep(Duration::from_secs(3600)).await;
        if is_applied {
            assert_eq!(run(&room).await.ending, RunExitClass::Done);
        }
        room.resources.clear();
        assert_eq!(
            (run(&room).await.ending, text(&room).as_deref()),
            (RunExitClass::Done, Some("old\n")),
            "{is_applied}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_newer_record_on_the_host_wins() {
    let room = two_files(&["a"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    let elsewhere = two_files(&["a"]);
    elsewhere.fleet.replace(room.fleet.hosts());
    elsewhere.put("a", "/etc/x", "drifted\n");
    let outcome = run(&elsewhere).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    let (ours, theirs) = (room.state().last_applied, elsewhere.state().last_applied);
    assert_eq!(
        theirs.resources.len(),
        2,
        "the second file is known from the host's record alone"
    );
    let x = "host/a/file/%2Fetc%2Fx".parse().unwrap();
    assert_eq!(
        theirs.resources[&x].before, ours.resources[&x].before,
        "before our first change, not before theirs"
    );
}

#[tokio::test(start_paused = true)]
async fn blocked_steps_leave_the_run_incomplete() {
    let mut room = full(&["a"]);
    room.rollout.max_disruption = Disruption::LinkBlip;
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, outcome.counts.blocked, outcome.counts.done),
        (RunExitClass::Incomplete, 1, 2)
    );
    room.host("a", |host| assert_eq!(host.boot, 0));
    let besides = Besides {
        inventory: "inv",
        unknown: 0,
        provable: true,
    };
    let said = render_run_summary(&outcome, outcome.ending, besides);
    assert!(
        said.ends_with("next: fix what is said above, then railwright plan inv\n"),
        "{said}"
    );
    let resumed = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (outcome.resumable, codes(&resumed)),
        (false, vec!["RW0623"]),
        "the two agree"
    );
    let left = ApplyOutcome {
        resumable: true,
        ..outcome.clone()
    };
    assert!(render_run_summary(&left, left.ending, besides).contains("then railwright resume inv"));
    let unproven = Besides {
        provable: false,
        ..besides
    };
    let done = ApplyOutcome {
        ending: RunExitClass::Done,
        ..outcome
    };
    assert!(
        render_run_summary(&done, done.ending, unproven).ends_with("next: railwright drift inv\n")
    );
}

/// A setting of firmware on each host's card.
fn firmware(takes_effect: &str) -> Room {
    let body =
        json!({ "netdev": "ens1", "settings": { "SRIOV_EN": 1 }, "takes_effect": takes_effect });
    let file = json!({ "path": "/etc/x", "content": "one\n" });
    let room = Room::of(&["a"])
        .resource("firmware_setting", body, &[])
        .resource("file", file, &["firmware_setting/ens1"]);
    room.host("a", |host| {
        host.firmware
            .put("ens1", "SRIOV_EN", "0", takes_effect == "power_cycle")
    });
    room
}

#[tokio::test(start_paused = true)]
async fn a_setting_of_firmware_is_in_effect_after_the_one_reboot() {
    let mut room = firmware("reboot");
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    let told = |room: &Room| {
        room.host("a", |host| {
            (
                host.boot,
                host.firmware.0["ens1"].settings["SRIOV_EN"].current.clone(),
            )
        })
    };
    assert_eq!(told(&room), (1, "1".to_owned()));
    assert_eq!(room.plan().await.nodes, []);
    room.resources.clear();
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    assert_eq!(
        told(&room),
        (2, "0".to_owned()),
        "what was there before comes back"
    );
}

#[tokio::test(start_paused = true)]
async fn a_power_cycle_is_left_to_a_person_and_proven_by_the_next_plan() {
    let room = firmware("power_cycle");
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Waiting, vec![])
    );
    let setting = |room: &Room| {
        room.host("a", |host| {
            host.firmware.0["ens1"].settings["SRIOV_EN"].clone()
        })
    };
    assert_eq!(
        (
            setting(&room).next_boot.as_str(),
            setting(&room).current.as_str()
        ),
        ("1", "0"),
        "it is written and waits"
    );
    room.host("a", |host| {
        assert_eq!(
            (host.boot, host.disk.text("/etc/x")),
            (0, None),
            "nobody reboots it, and what comes after it waits"
        );
        host.reboot(Duration::ZERO);
        host.down_until = Duration::ZERO;
    });
    let blocked = room.plan().await;
    let by_hand = blocked
        .nodes
        .iter()
        .find(|node| node.kind == NodeKind::Reboot)
        .unwrap();
    assert_eq!(
        by_hand.disruption,
        Disruption::PowerCycle,
        "a reboot is not enough"
    );
    assert!(
        by_hand
            .blocked
            .as_ref()
            .unwrap()
            .to_string()
            .contains("power cycle is done by hand"),
        "{by_hand:?}"
    );
    room.host("a", |host| {
        host.power_cycle(Duration::ZERO);
        host.down_until = Duration::ZERO;
    });
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    room.host("a", |host| {
        assert_eq!(host.disk.text("/etc/x").as_deref(), Some("one\n"))
    });
}

/// A run that reaches nobody would only tell each step so: it does not begin, and says it once.
#[tokio::test(start_paused = true)]
async fn where_no_host_is_there_no_run_begins() {
    let room = full(&["a1", "a2", "a3"]);
    let plan = room.plan().await;
    ["a1", "a2", "a3"]
        .into_iter()
        .for_each(|host| room.host(host, |host| host.down_until = NEVER));
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, outcome.run.is_none(), codes(&outcome)),
        (RunExitClass::Refused, true, vec!["RW0632", "RW0401"])
    );
    assert_eq!(
        outcome.problems[0].message,
        "none of the 3 hosts of the plan can be reached"
    );
    assert_eq!(outcome.problems[1].subject.as_deref(), Some("host/a[1-3]"));
    assert!(
        room.events.lock().unwrap().is_empty(),
        "{:?}",
        room.events.lock().unwrap()
    );
    ["a1", "a2", "a3"]
        .into_iter()
        .for_each(|host| room.host(host, |host| host.down_until = Duration::ZERO));
    assert_eq!(
        apply_plan(&plan, &room.context, room.sink()).await.ending,
        RunExitClass::Done
    );
}

/// The reboot that it waits for does not come, and another plan is made, or the run goes on.
#[tokio::test(start_paused = true)]
async fn what_is_taken_back_is_remembered_until_the_reboot_that_it_waits_for() {
    for goes_on in [true, false] {
        let mut room = full(&["a"]);
        room.context.patience.reboot = Duration::from_secs(600);
        assert_eq!(run(&room).await.ending, RunExitClass::Done);
        room.resources
            .retain(|resource| resource.kind != "kernel_parameter");
        room.fault("a", "reboot", SimulatedTrouble::NoEffect);
        let outcome = run(&room).await;
        assert_eq!(
            (outcome.ending, codes(&outcome)),
            (RunExitClass::Failed, vec!["RW0616"])
        );
        let parameter = Address::host("a", "kernel_parameter", "iommu");
        let remembered = |room: &Room| {
            let record = room.host("a", |host| host.record.clone()).unwrap();
            let left = room.state().last_applied.resources.remove(&parameter);
            (
                left.map(|left| left.unfinished),
                record.contains("host/a/kernel_parameter/"),
            )
        };
        assert_eq!(remembered(&room), (Some(true), true));
        let plan = room.plan().await;
        assert!(
            plan.nodes.iter().any(|node| node.kind == NodeKind::Reboot),
            "{plan:?}"
        );
        let outcome = if goes_on {
            resume_run(&room.context, Decisions::default(), room.sink()).await
        } else {
            apply_plan(&plan, &room.context, room.sink()).await
        };
        assert_eq!(outcome.ending, RunExitClass::Done, "{:?}", outcome.problems);
        assert_eq!(remembered(&room), (None, false));
        assert!(!room.plan().await.has_work());
    }
}

const NETWORK: &str = "/etc/systemd/network/10-ens1.network";

/// A rail with these addresses.
async fn applied_rail(addresses: &[&str]) -> Room {
    let mut host = SimulatedHost::fresh();
    host.disk.put(NETWORK, "[Match]\nName=ens1\n".into());
    let netdev = SimulatedNetdev::of(9000, Some(NETWORK));
    host.links.0.insert("ens1".to_owned(), netdev);
    let room = Room::with([("a".to_owned(), host)].into());
    let body = json!({ "netdev": "ens1", "addresses": addresses });
    let room = room.resource("link", body, &[]);
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    room
}

fn resource_addresses(room: &mut Room, addresses: &[&str]) {
    for resource in &mut room.resources {
        Arc::make_mut(&mut resource.declaration).body["addresses"] = json!(addresses);
    }
}

/// The addresses that run, and those that our file sets.
fn found_addresses(room: &Room) -> [BTreeSet<String>; 2] {
    room.host("a", |host| {
        let text = host.disk.text(&format!("{NETWORK}.d/90-railwright.conf"));
        let text = text.unwrap_or_default();
        let set = text
            .lines()
            .filter_map(|line| line.strip_prefix("Address="));
        [
            host.links.0["ens1"].addresses.clone(),
            set.map(str::to_owned).collect(),
        ]
    })
}

#[tokio::test(start_paused = true)]
async fn a_rail_that_gets_another_address_keeps_none_of_its_earlier_ones() {
    let mut room = applied_rail(&["10.10.0.1/24"]).await;
    for addresses in [
        &["10.20.0.1/24"][..],
        &["10.20.0.1/24", "10.30.0.1/24"],
        &[],
    ] {
        if addresses.is_empty() {
            room.resources.clear();
        }
        resource_addresses(&mut room, addresses);
        assert_eq!(run(&room).await.ending, RunExitClass::Done);
        let desired: BTreeSet<String> = addresses.iter().map(ToString::to_string).collect();
        assert_eq!(found_addresses(&room), [desired.clone(), desired]);
        assert!(!room.plan().await.has_work());
    }
}

/// The first declaration is back in the spec, or all of it leaves.
#[tokio::test(start_paused = true)]
async fn what_a_change_made_that_was_cut_off_is_ours_beside_what_was_applied() {
    let first = "10.30.0.1/24";
    for (dies, leaves) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut room = applied_rail(&[first]).await;
        resource_addresses(&mut room, &[first, "10.31.0.1/24"]);
        let plan = room.plan().await;
        if dies {
            let has_both = || found_addresses(&room)[0].len() == 2;
            room.dies_when(&plan, has_both).await;
            tokio::time::sleep(Duration::from_secs(3600)).await;
        } else {
            room.fault("a", "reload_link", SimulatedTrouble::Fails);
            let outcome = apply_plan(&plan, &room.context, room.sink()).await;
            assert_eq!(outcome.ending, RunExitClass::Failed);
        }
        assert_eq!(found_addresses(&room)[1].len(), 2);
        let begun = |room: &Room| {
            let resources = room.state().last_applied.resources.into_values();
            resources.map(|applied| applied.begun.len()).sum::<usize>()
        };
        assert_eq!(begun(&room), 1, "{dies}");
        if leaves {
            room.resources.clear();
        }
        resource_addresses(&mut room, &[first]);
        let outcome = run(&room).await;
        assert_eq!(outcome.ending, RunExitClass::Done, "{:?}", outcome.problems);
        let desired: BTreeSet<String> = room.resources.iter().map(|_| first.to_owned()).collect();
        assert_eq!(found_addresses(&room), [desired.clone(), desired]);
        assert_eq!(begun(&room), 0, "{dies}");
        assert!(!room.plan().await.has_work());
    }
}
