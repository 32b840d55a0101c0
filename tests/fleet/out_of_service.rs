//! What earlier runs and others took out of service counts in every run, and what a gate did not
//! pass is verified first.

use crate::drains::emptied;
use crate::nodes::Nodes;
use crate::room::{Room, codes, copy_folder};
use railwright_apply::{
    ApplyOutcome, Decisions, GateResult, Gatekeeper, RunEvent, RunExitClass, apply_plan,
    resume_run, return_to_service,
};
use railwright_plan::{OutageCause, Plan, PlanSelection, Unavailability};
use railwright_resource::{Action, Disruption};
use railwright_state::{NodeOutcome, Skip, StateFolder};
use railwright_transport::BoxFuture;
use railwright_transport::sim::{SimulatedFault, SimulatedTrouble};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// A kernel parameter, which needs a reboot, on each host; one may be out of service at a time.
fn room(hosts: &[&str]) -> Room {
    let mut room = Room::of(hosts).resource(
        "kernel_parameter",
        json!({ "parameter": "iommu", "value": "pt" }),
        &[],
    );
    room.rollout.max_unavailable = 1;
    room
}

/// A file, which disturbs nobody, and then the kernel parameter.
fn room_with_harmless_step(hosts: &[&str]) -> Room {
    let mut room = Room::of(hosts)
        .resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[])
        .resource(
            "kernel_parameter",
            json!({ "parameter": "iommu", "value": "pt" }),
            &["file/%2Fetc%2Fx"],
        );
    room.rollout.max_unavailable = 1;
    room
}

async fn run(room: &Room) -> ApplyOutcome {
    apply_plan(&room.plan().await, &room.context, room.sink()).await
}

async fn narrowed(room: &Room, targets: &[&str], excludes: &[&str]) -> ApplyOutcome {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let plan = room
        .narrowed_plan(PlanSelection {
            targets: owned(targets),
            excludes: owned(excludes),
        })
        .await;
    apply_plan(&plan, &room.context, room.sink()).await
}

/// How often the host was booted.
fn boots(room: &Room, host: &str) -> u32 {
    room.host(host, |host| host.boot)
}

fn is_bad(room: &Room, hosts: &[&str]) {
    *room.gate.bad.lock().unwrap() = hosts.iter().map(|host| (*host).to_owned()).collect();
}

/// How many hosts were between their reboot and their gate at once.
fn most_at_once(room: &Room) -> usize {
    let (mut out, mut most) = (BTreeSet::new(), 0);
    for event in room.events.lock().unwrap().iter() {
        match event {
            RunEvent::Rebooting { host } => drop(out.insert(host.clone())),
            RunEvent::GateFinished { hosts, .. } => out.retain(|host| !hosts.contains(host)),
            _ => {}
        }
        most = most.max(out.len());
    }
    most
}

/// Nobody reaches the host any more.
pub fn goes_down(room: &Room, host: &str) {
    room.host(host, |host| {
        host.faults.push(SimulatedFault {
            after: 0,
            word: None,
            trouble: SimulatedTrouble::Unreachable(u32::MAX),
        })
    });
}

/// Who is out of service by the plan, with the sort of reason.
fn unavailable(plan: &Plan) -> Vec<(&str, &str)> {
    let sort = |why: &Unavailability| match why {
        Unavailability::LeftByRun(outage) => match outage.cause {
            OutageCause::GateFailed { .. } => "gate failed",
            OutageCause::StepFailed { .. } => "step failed",
            OutageCause::Unproven { .. } => "unproven",
            OutageCause::SwitchedOffAndOn { .. } => "switched off and on",
            OutageCause::InDoubt { .. } => "in doubt",
            OutageCause::GivenBack { .. } => "given back",
            OutageCause::Emptying { .. } => "emptying",
        },
        Unavailability::Unreachable { .. } => "unreachable",
        Unavailability::Refused { .. } => "refused",
        Unavailability::WorkedOn { .. } => "worked on",
        Unavailability::NotReady => "not ready",
        Unavailability::CordonedByOthers => "cordoned",
        Unavailability::LeftCordoned { .. } => "left cordoned",
        Unavailability::NodeUnknown => "node unknown",
    };
    plan.unavailable
        .iter()
        .map(|some| (some.hosts.as_str(), sort(&some.why)))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_host_that_its_gate_did_not_pass_is_verified_by_every_later_run_before_another_is_disturbed()
 {
    let room = room(&["a", "b", "c"]);
    is_bad(&room, &["a"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
    // A timer that applies again and again.
    for _ in 0..3 {
        let plan = room.plan().await;
        assert_eq!(
            (unavailable(&plan), plan.has_work()),
            (vec![("a", "gate failed")], true)
        );
        let again = apply_plan(&plan, &room.context, room.sink()).await;
        assert_eq!(
            (again.ending, codes(&again)),
            (RunExitClass::Stopped, vec!["RW0650"])
        );
        assert_eq!(
            (boots(&room, "a"), boots(&room, "b"), boots(&room, "c")),
            (1, 0, 0),
            "one host is broken, and no more"
        );
    }
    let narrow = narrowed(&room, &["host/b"], &[]).await;
    assert_eq!(
        (narrow.ending, boots(&room, "b")),
        (RunExitClass::Stopped, 0),
        "who is out of service does not depend on the target"
    );
    is_bad(&room, &[]);
    let well = run(&room).await;
    assert_eq!(
        (well.ending, codes(&well), boots(&room, "a")),
        (RunExitClass::Done, vec![], 1)
    );
    assert_eq!((boots(&room, "b"), boots(&room, "c")), (1, 1));
    let plan = room.plan().await;
    assert!(room.state().outages.is_empty() && unavailable(&plan).is_empty() && !plan.has_work());
}

#[tokio::test(start_paused = true)]
async fn a_gate_and_a_step_that_end_at_once_write_one_record_after_the_other() {
    for takes in (0..=100).step_by(10) {
        let mut room = room(&["a"]);
        is_bad(&room, &["a"]);
        assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
        is_bad(&room, &[]);
        *room.gate.takes.lock().unwrap() = Duration::from_millis(takes);
        // What somebody did by hand is noted while the host is verified.
        room = room.resource("file", json!({ "path": "/etc/x", "content": "x\n" }), &[]);
        room.put("a", "/etc/x", "x\n");
        let well = run(&room).await;
        assert_eq!(
            (well.ending, codes(&well)),
            (RunExitClass::Done, vec![]),
            "{takes} ms"
        );
        let record = room.host("a", |host| host.record.clone().unwrap());
        assert!(
            record.contains("/etc/x") && !record.contains("gate_failed"),
            "{takes} ms: {record}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_a_gate_did_not_pass_is_out_of_service_where_its_name_goes_to_another_one() {
    for keeps_record in [true, false] {
        let room = room(&["a", "b", "c"]);
        is_bad(&room, &["a"]);
        assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
        // The bad machine becomes the spare, and the spare takes its name.
        let (bad, mut spare) = (
            room.host("a", |host| host.clone()),
            room.host("b", |host| host.clone()),
        );
        room.host("b", |host| *host = bad);
        spare.record = spare.record.filter(|_| keeps_record);
        room.host("a", |host| *host = spare);
        if !keeps_record {
            room.host("b", |host| host.record = None);
        }
        is_bad(&room, &["b"]);
        assert_eq!(
            unavailable(&room.plan().await),
            [("b", "gate failed")],
            "with its record: {keeps_record}"
        );
        assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
        assert_eq!(
            (boots(&room, "a"), boots(&room, "b"), boots(&room, "c")),
            (0, 1, 0),
            "one machine is broken, and no more"
        );
        is_bad(&room, &[]);
        assert_eq!(run(&room).await.ending, RunExitClass::Done);
        assert!(
            room.state().outages.is_empty() && unavailable(&room.plan().await).is_empty(),
            "with its record: {keeps_record}"
        );
    }
}

/// It got another name, and its record could not be written: the folder alone tells of it.
#[tokio::test(start_paused = true)]
async fn a_machine_that_a_gate_did_not_pass_counts_where_the_run_is_not_about_its_new_name() {
    let mut room = room(&["a", "b", "c"]);
    is_bad(&room, &["a"]);
    assert_eq!(
        narrowed(&room, &["host/a"], &[]).await.ending,
        RunExitClass::Stopped
    );
    let bad = room.host("a", |host| host.clone());
    room.host("c", |host| (*host, host.record) = (bad, None));
    room.context.hosts.remove("a");
    room.resources
        .retain(|resource| *resource.address.target.name != *"a");
    let outcome = narrowed(&room, &[], &["host/c"]).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), boots(&room, "b")),
        (RunExitClass::Stopped, vec!["RW0620"], 0),
        "{:?}",
        outcome.problems
    );
    assert_eq!(unavailable(&room.plan().await), [("c", "gate failed")]);
}

/// The newest run's folder is gone: its journal was damaged, and somebody followed the advice.
#[tokio::test(start_paused = true)]
async fn an_older_runs_journal_is_not_put_over_a_state_that_went_on() {
    let room = room(&["a", "b"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    let again = room.resource(
        "kernel_parameter",
        json!({ "parameter": "numa", "value": "off" }),
        &[],
    );
    is_bad(&again, &["a"]);
    assert_eq!(run(&again).await.ending, RunExitClass::Stopped);
    let folder = &again.context.folder;
    std::fs::remove_dir_all(
        folder
            .path()
            .join("runs")
            .join(folder.newest_run().unwrap().unwrap()),
    )
    .unwrap();
    assert_eq!(unavailable(&again.plan().await), [("a", "gate failed")]);
    // Nothing is written where nobody would read it.
    let outcome = resume_run(&again.context, Decisions::default(), again.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Refused, vec!["RW0623"]),
        "that one is done"
    );
    assert_eq!(
        return_to_service(folder, &["a".to_owned()], "seen to")
            .await
            .unwrap_err()
            .code,
        "RW0705"
    );
    assert_eq!(unavailable(&again.plan().await), [("a", "gate failed")]);
}

#[tokio::test(start_paused = true)]
async fn an_older_run_does_not_go_on_with_a_state_that_went_beyond_it() {
    let room = room(&["a", "b"]);
    is_bad(&room, &["b"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
    is_bad(&room, &["a"]);
    let again = room.resource(
        "kernel_parameter",
        json!({ "parameter": "numa", "value": "off" }),
        &[],
    );
    assert_eq!(run(&again).await.ending, RunExitClass::Stopped);
    let folder = &again.context.folder;
    std::fs::remove_dir_all(
        folder
            .path()
            .join("runs")
            .join(folder.newest_run().unwrap().unwrap()),
    )
    .unwrap();
    let before = again.state();
    let outcome = resume_run(&again.context, Decisions::default(), again.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Refused, vec!["RW0705"])
    );
    assert_eq!(again.state(), before);
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_go_on_with_an_older_copy_of_its_journal() {
    let room = room(&["a", "b"]);
    is_bad(&room, &["a"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
    let folder = &room.context.folder;
    let journal = folder
        .path()
        .join("runs")
        .join(folder.newest_run().unwrap().unwrap())
        .join("journal.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(
        &journal,
        format!("{}\n", text.trim_end().rsplit_once('\n').unwrap().0),
    )
    .unwrap();
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Refused, vec!["RW0705"])
    );
    assert_eq!(unavailable(&room.plan().await), [("a", "gate failed")]);
}

/// A check fails on a host that passed before, while another one passes.
#[tokio::test(start_paused = true)]
async fn a_gate_leaves_out_of_service_whoever_its_checks_name() {
    let mut room = room(&["a", "b", "c"]);
    let (gate, bad) = (room.gate.clone(), room.gate.clone());
    let breaks = move || *bad.partner_failed.lock().unwrap() = Some("a".to_owned());
    room.context.gatekeeper = Arc::new(After { gate, act: breaks });
    assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
    assert_eq!(room.state().outages.keys().collect::<Vec<_>>(), ["a", "b"]);
    // Somebody fixes it, and the run goes on: its own gate was passed long ago, and has to be
    // passed again.
    *room.gate.partner_failed.lock().unwrap() = None;
    room.context.gatekeeper = room.gate.clone();
    room.gate.checked.lock().unwrap().clear();
    assert_eq!(
        resume_run(&room.context, Decisions::default(), room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let checked = room.gate.checked.lock().unwrap().clone();
    assert_eq!(
        (checked, room.state().outages.len()),
        (
            vec![
                "a after ".to_owned(),
                "b after a".to_owned(),
                "c after a,b".to_owned()
            ],
            0
        )
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_excluded_or_silent_counts_and_is_told_at_the_end() {
    let mut room = room(&["a", "b", "c"]);
    is_bad(&room, &["a"]);
    run(&room).await;
    let without = narrowed(&room, &[], &["host/a"]).await;
    assert_eq!(
        (without.ending, codes(&without), boots(&room, "b")),
        (RunExitClass::Stopped, vec!["RW0620"], 0)
    );
    assert!(
        without.problems[0].message.ends_with("1 may be: a"),
        "{}",
        without.problems[0].message
    );
    room.rollout.max_unavailable = 2;
    let more = narrowed(&room, &[], &["host/a"]).await;
    assert_eq!(
        (more.ending, codes(&more)),
        (RunExitClass::Incomplete, vec!["RW0655"])
    );
    assert_eq!((boots(&room, "b"), boots(&room, "c")), (1, 1));
    goes_down(&room, "a");
    let plan = room.plan().await;
    assert_eq!(
        (unavailable(&plan), plan.has_work()),
        (vec![("a", "gate failed")], false),
        "nobody can verify it now"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ended_before_a_gate_leaves_its_host_unproven() {
    let room = room(&["a", "b"]);
    room.fault("a", "reboot", SimulatedTrouble::BackAfter(100_000));
    assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
    tokio::time::sleep(Duration::from_secs(200_000)).await;
    let plan = room.plan().await;
    assert_eq!(unavailable(&plan), [("a", "step failed")]);
    assert_eq!(plan.verified_first().into_iter().collect::<Vec<_>>(), ["a"]);
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, room.state().outages.len()),
        (RunExitClass::Done, 0)
    );
    let checked = room.gate.checked.lock().unwrap().clone();
    assert_eq!(checked, ["a after ", "b after a"]);
}

/// The machine that ran it burns down with its folder before any gate: the host tells it itself.
#[tokio::test(start_paused = true)]
async fn a_host_remembers_that_no_gate_has_proven_it() {
    let burnt = |room: &Room| std::fs::remove_dir_all(room.context.folder.path()).unwrap();
    let lost = room(&["a", "b"]);
    let plan = lost.plan().await;
    lost.dies_when(&plan, || boots(&lost, "a") > 0).await;
    burnt(&lost);
    tokio::time::sleep(Duration::from_secs(400)).await;
    assert_eq!(unavailable(&lost.plan().await), [("a", "unproven")]);
    // And a step that was no disruption, and that nobody knows the end of.
    let failed =
        Room::of(&["a"]).resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[]);
    failed.fault("a", "write_file", SimulatedTrouble::Fails);
    assert_eq!(run(&failed).await.ending, RunExitClass::Failed);
    burnt(&failed);
    assert_eq!(unavailable(&failed.plan().await), [("a", "in doubt")]);
}

#[tokio::test(start_paused = true)]
async fn somebody_takes_a_host_as_in_service_and_the_journal_says_who_and_why() {
    let room = room(&["a", "b"]);
    is_bad(&room, &["a"]);
    run(&room).await;
    let folder = &room.context.folder;
    let refused = return_to_service(folder, &["a".to_owned(), "b".to_owned()], "ticket 7")
        .await
        .unwrap_err();
    assert_eq!(
        (refused.code.as_ref(), room.state().outages.len()),
        ("RW0656", 1)
    );
    return_to_service(folder, &["a".to_owned()], "ticket 7")
        .await
        .unwrap();
    assert!(room.state().outages.is_empty());
    let journal = std::fs::read_to_string(
        folder
            .path()
            .join("runs")
            .join(folder.newest_run().unwrap().unwrap())
            .join("journal.jsonl"),
    );
    let last = journal.unwrap().lines().last().unwrap().to_owned();
    assert!(
        last.contains("\"returned_to_service\"") && last.contains("ticket 7"),
        "{last}"
    );
    let plan = room.plan().await;
    assert!(unavailable(&plan).is_empty());
    assert_eq!(
        (
            apply_plan(&plan, &room.context, room.sink()).await.ending,
            boots(&room, "b")
        ),
        (RunExitClass::Done, 1)
    );
    let nobody = return_to_service(
        &StateFolder::at(folder.path().join("empty")),
        &["a".to_owned()],
        "x",
    )
    .await
    .unwrap_err();
    assert_eq!(nobody.code, "RW0656");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_down_before_the_plan_uses_up_the_budget() {
    let room = room(&["a", "b", "c"]);
    goes_down(&room, "c");
    let plan = room.plan().await;
    assert_eq!(unavailable(&plan), [("c", "unreachable")]);
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, boots(&room, "a"), boots(&room, "b")),
        (RunExitClass::Stopped, 0, 0)
    );
    let told = outcome
        .problems
        .iter()
        .find(|problem| problem.code == "RW0620")
        .unwrap();
    assert!(
        told.message
            .contains("1 host is out of service, 1 may be: c (not reachable: "),
        "{}",
        told.message
    );
    // A saved plan of before it went down is no better.
    let down_later = room_with_plan_before("c").await;
    assert_eq!(
        (down_later.0.ending, boots(&down_later.1, "b")),
        (RunExitClass::Stopped, 0)
    );
}

/// A plan for `a` and `b` alone, and a host that goes down between plan and apply.
async fn room_with_plan_before(down: &str) -> (ApplyOutcome, Room) {
    let room = room(&["a", "b", "c"]);
    let plan = room
        .narrowed_plan(PlanSelection {
            targets: vec!["host/a".to_owned(), "host/b".to_owned()],
            excludes: Vec::new(),
        })
        .await;
    goes_down(&room, down);
    (apply_plan(&plan, &room.context, room.sink()).await, room)
}

#[tokio::test(start_paused = true)]
async fn a_host_that_was_proven_and_goes_down_while_the_run_goes_on_counts() {
    let mut room = room(&["a", "b"]);
    let (fleet, gate) = (room.fleet.clone(), room.gate.clone());
    let act = move || {
        fleet.with("a", |host| {
            host.faults.push(SimulatedFault {
                after: 0,
                word: None,
                trouble: SimulatedTrouble::Unreachable(u32::MAX),
            })
        });
    };
    room.context.gatekeeper = Arc::new(After { gate, act });
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, boots(&room, "b")),
        (RunExitClass::Stopped, 0)
    );
    assert!(codes(&outcome).contains(&"RW0620"), "{:?}", codes(&outcome));
}

#[tokio::test(start_paused = true)]
async fn a_gate_with_nothing_to_check_ends_no_outage_that_a_check_began() {
    let mut room = room(&["a", "b"]);
    is_bad(&room, &["a"]);
    run(&room).await;
    is_bad(&room, &[]);
    // Other hosts have checks to this day.
    room.gate.unchecked.lock().unwrap().insert("a".to_owned());
    let stays = |room: &Room| {
        let outages = room.state().outages;
        let found = matches!(&outages["a"].cause, OutageCause::GateFailed { code, check, .. } if code == "RW0650" && check == "a is slow");
        assert!(
            found
                && room
                    .host("a", |host| host.record.clone().unwrap())
                    .contains("a is slow"),
            "{outages:?}"
        );
    };
    for _ in 0..2 {
        let outcome = run(&room).await;
        assert_eq!(
            (outcome.ending, boots(&room, "b")),
            (RunExitClass::Stopped, 0)
        );
        assert!(codes(&outcome).contains(&"RW0658"), "{:?}", codes(&outcome));
        stays(&room);
    }
    // Nor does it after a step that left the host in the dark.
    room = room.resource(
        "kernel_parameter",
        json!({ "parameter": "pci", "value": "pcie_bus_perf" }),
        &[],
    );
    room.fault("a", "reboot", SimulatedTrouble::BackAfter(100_000));
    assert_eq!(
        (run(&room).await.ending, boots(&room, "b")),
        (RunExitClass::Stopped, 0)
    );
    stays(&room);
    tokio::time::sleep(Duration::from_secs(200_000)).await;
    let outcome = run(&room).await;
    assert!(
        outcome.ending == RunExitClass::Stopped
            && codes(&outcome).contains(&"RW0658")
            && boots(&room, "b") == 0,
        "{:?}",
        codes(&outcome)
    );
    room.gate.unchecked.lock().unwrap().clear();
    assert_eq!(
        (run(&room).await.ending, boots(&room, "b")),
        (RunExitClass::Done, 1),
        "the check that comes back proves it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_another_folders_run_left_out_of_service_uses_up_the_budget_of_a_saved_plan_and_of_a_resumed_run()
 {
    let room = room(&["a", "b", "c"]);
    assert_eq!(
        narrowed(&room, &["host/b"], &[]).await.ending,
        RunExitClass::Done
    );
    let saved = room
        .narrowed_plan(PlanSelection {
            targets: vec!["host/a".to_owned()],
            excludes: Vec::new(),
        })
        .await;
    let other = room.copied();
    is_bad(&other, &["c"]);
    assert_eq!(
        (
            narrowed(&other, &["host/c"], &[]).await.ending,
            boots(&room, "c")
        ),
        (RunExitClass::Stopped, 1)
    );
    let outcome = apply_plan(&saved, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), boots(&room, "a")),
        (RunExitClass::Stopped, vec!["RW0620"], 0)
    );
    assert!(
        outcome.problems[0].message.contains(" its gate failed at "),
        "{}",
        outcome.problems[0].message
    );
    let again = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (again.ending, codes(&again), boots(&room, "a")),
        (RunExitClass::Stopped, vec!["RW0620"], 0)
    );
    is_bad(&other, &[]);
    assert_eq!(
        narrowed(&other, &["host/c"], &[]).await.ending,
        RunExitClass::Done
    );
    let well = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (well.ending, boots(&room, "a")),
        (RunExitClass::Done, 1),
        "it is asked anew"
    );
}

/// A copy of the folder goes on with the same run, and is cut off.
#[tokio::test(start_paused = true)]
async fn what_another_part_of_the_same_run_left_is_not_forgotten() {
    let room = room(&["a", "b", "c"]);
    is_bad(&room, &["a"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
    let copy = Room::beside(room.fleet.clone(), room.cluster);
    copy_folder(room.context.folder.path(), copy.context.folder.path());
    is_bad(&room, &["b"]);
    assert_eq!(
        resume_run(&room.context, Decisions::default(), room.sink())
            .await
            .ending,
        RunExitClass::Stopped
    );
    let cut_off = tokio::time::timeout(
        Duration::from_secs(30),
        resume_run(&copy.context, Decisions::default(), copy.sink()),
    )
    .await;
    assert!(
        cut_off.is_err() && copy.state().outages.contains_key("b"),
        "{:?}",
        copy.state().outages
    );
}

/// Only its gate is left, and somebody else's machine answers in its name.
#[tokio::test(start_paused = true)]
async fn a_gate_that_is_left_passes_no_other_machine() {
    let room = room(&["a", "b"]);
    is_bad(&room, &["a"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
    is_bad(&room, &[]);
    room.reinstall("a", room.host("b", |host| host.clone()));
    assert_ne!(
        resume_run(&room.context, Decisions::default(), room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    assert_eq!(room.state().outages.keys().collect::<Vec<_>>(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_another_run_works_on_uses_up_the_budget() {
    let room = room(&["a", "b", "c"]);
    let plan = room
        .narrowed_plan(PlanSelection {
            targets: vec!["host/a".to_owned()],
            excludes: Vec::new(),
        })
        .await;
    let now = room.fleet.now();
    room.host("c", |host| host.hold("somebody elsewhere", 1, 0, now));
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, boots(&room, "a")),
        (RunExitClass::Stopped, 0)
    );
    let told = outcome
        .problems
        .iter()
        .find(|problem| problem.code == "RW0620")
        .unwrap();
    assert!(
        told.message.contains("c (another run works on it: "),
        "{}",
        told.message
    );
}

/// It answers, and nothing is known of it: it may be changed by its own cluster at any moment.
#[tokio::test(start_paused = true)]
async fn a_host_of_another_cluster_uses_up_the_budget() {
    let room = room(&["a", "b", "c"]);
    let other = Room::beside(room.fleet.clone(), "zzz").resource(
        "file",
        json!({ "path": "/etc/x", "content": "one\n" }),
        &[],
    );
    let of_c = other
        .narrowed_plan(PlanSelection {
            targets: vec!["host/c".to_owned()],
            excludes: Vec::new(),
        })
        .await;
    assert_eq!(
        apply_plan(&of_c, &other.context, other.sink()).await.ending,
        RunExitClass::Done
    );
    let plan = room
        .narrowed_plan(PlanSelection {
            targets: vec!["host/a".to_owned()],
            excludes: Vec::new(),
        })
        .await;
    assert_eq!(unavailable(&plan), [("c", "refused")]);
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, boots(&room, "a")),
        (RunExitClass::Stopped, 0)
    );
    let told = outcome
        .problems
        .iter()
        .find(|problem| problem.code == "RW0620")
        .unwrap();
    assert!(
        told.message.contains("c (belongs to the cluster `zzz`"),
        "{}",
        told.message
    );
}

/// Another cluster takes it while a plan lies about.
#[tokio::test(start_paused = true)]
async fn a_host_that_became_another_clusters_uses_up_the_budget_of_a_saved_plan() {
    let room = room(&["a", "b", "c"]);
    let plan = room
        .narrowed_plan(PlanSelection {
            targets: vec!["host/a".to_owned()],
            excludes: Vec::new(),
        })
        .await;
    let other = Room::beside(room.fleet.clone(), "zzz").resource(
        "file",
        json!({ "path": "/etc/x", "content": "one\n" }),
        &[],
    );
    assert_eq!(
        narrowed(&other, &["host/c"], &[]).await.ending,
        RunExitClass::Done
    );
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), boots(&room, "a")),
        (RunExitClass::Stopped, vec!["RW0620"], 0)
    );
    assert!(
        outcome.problems[0]
            .message
            .contains("c (belongs to the cluster `zzz`"),
        "{}",
        outcome.problems[0].message
    );
}

/// The program ends while the hosts write down that their gate failed.
#[tokio::test(start_paused = true)]
async fn a_gate_that_failed_is_journalled_before_any_host_writes_it_down() {
    let mut room = room(&["a", "b", "c"]);
    (room.rollout.canary, room.rollout.max_unavailable) = (2, 2);
    is_bad(&room, &["a", "b"]);
    let plan = room.plan().await;
    let is_written = || {
        room.host("a", |host| {
            host.record
                .as_ref()
                .is_some_and(|record| record.contains("gate_failed"))
        })
    };
    room.dies_when(&plan, is_written).await;
    let failed = |host: &str| {
        matches!(
            room.state().outages[host].cause,
            OutageCause::GateFailed { .. }
        )
    };
    assert!(failed("a") && failed("b"), "{:?}", room.state().outages);
}

#[tokio::test(start_paused = true)]
async fn a_host_writes_down_that_its_step_was_given_up() {
    let room =
        Room::of(&["a"]).resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[]);
    let interrupt = room.interrupt.clone();
    let gives_up = move |event| {
        if let RunEvent::ActionStarted { .. } = event {
            interrupt.send_replace(2);
        }
    };
    let outcome = apply_plan(&room.plan().await, &room.context, Arc::new(gives_up)).await;
    assert_eq!(
        (outcome.ending, room.state().outages.len()),
        (RunExitClass::Interrupted, 1)
    );
    let record = room
        .host("a", |host| host.record.clone())
        .expect("it answers");
    assert!(record.contains("in_doubt"), "{record}");
}

/// A colleague's gate passed it: this folder counts it as out of service to this day, and the host
/// itself does not say so any more.
#[tokio::test(start_paused = true)]
async fn a_host_writes_down_that_it_leaves_service_whatever_this_side_knew() {
    let room = room(&["a", "b"]);
    is_bad(&room, &["a"]);
    assert_eq!(
        narrowed(&room, &["host/a"], &[]).await.ending,
        RunExitClass::Stopped
    );
    let mut other = Room::beside(room.fleet.clone(), room.cluster);
    (other.resources, other.rollout) = (room.resources.clone(), room.rollout.clone());
    assert_eq!(
        narrowed(&other, &["host/a"], &[]).await.ending,
        RunExitClass::Done
    );
    let says_out = |room: &Room| {
        room.host("a", |host| host.record.clone().unwrap())
            .contains("\"cause\"")
    };
    assert!(!says_out(&room) && room.state().outages.contains_key("a"));
    let before = boots(&room, "a");
    let room = room.resource(
        "kernel_parameter",
        json!({ "parameter": "pci", "value": "pcie_bus_perf" }),
        &[],
    );
    is_bad(&room, &[]);
    let plan = room
        .narrowed_plan(PlanSelection {
            targets: vec!["host/a".to_owned()],
            excludes: Vec::new(),
        })
        .await;
    room.dies_when(&plan, || boots(&room, "a") > before).await;
    assert!(says_out(&room));
}

/// Its disk fills up at each of its calls in turn.
#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_write_down_that_it_leaves_service_stays_in_service() {
    let mut refused = 0;
    for nth in 1..60 {
        let room = room(&["a", "b"]);
        let plan = room.plan().await;
        room.fill_disk("a", nth, 1000);
        let outcome = apply_plan(&plan, &room.context, room.sink()).await;
        if !codes(&outcome).contains(&"RW0659") {
            continue;
        }
        refused += 1;
        assert_ne!(outcome.ending, RunExitClass::Done);
        assert_eq!((boots(&room, "a"), boots(&room, "b")), (0, 0));
        assert!(!room.state().outages.contains_key("a"));
        room.host("a", |host| host.disk.full_for = 0);
        let resumed = resume_run(&room.context, Decisions::default(), room.sink()).await;
        assert_eq!(resumed.ending, RunExitClass::Done, "{:?}", resumed.problems);
        assert_eq!((boots(&room, "a"), boots(&room, "b")), (1, 1));
    }
    assert!(refused > 0);
}

/// Its disk fills up at each of its calls in turn, and its gate does not pass it after a step that
/// disturbs nothing.
#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_write_down_that_its_gate_failed_is_named() {
    let mut unwritten = 0;
    for nth in 1..60 {
        let file = json!({ "path": "/etc/x", "content": "one\n" });
        let room = Room::of(&["a"]).resource("file", file, &[]);
        is_bad(&room, &["a"]);
        let plan = room.plan().await;
        room.fill_disk("a", nth, 1000);
        let outcome = apply_plan(&plan, &room.context, room.sink()).await;
        let record = room.host("a", |host| host.record.clone());
        if record.is_some_and(|record| record.contains("\"cause\""))
            || !codes(&outcome).contains(&"RW0650")
        {
            continue;
        }
        unwritten += 1;
        let named = outcome.problems.iter().any(|problem| {
            let effect = problem.effect.as_deref().unwrap_or_default();
            problem.code == "RW0622" && effect.contains("rollout.max_unavailable")
        });
        assert!(named, "{:?}", outcome.problems);
    }
    assert!(unwritten > 0);
}

/// A colleague applies while a run lies half done, and the run goes on.
#[tokio::test(start_paused = true)]
async fn what_a_resumed_run_takes_over_from_hosts_is_remembered() {
    let room = Room::of(&["a", "b"]).resource(
        "file",
        json!({ "path": "/etc/x", "content": "one\n" }),
        &[],
    );
    room.fault("b", "write_file", SimulatedTrouble::Fails);
    assert_eq!(run(&room).await.ending, RunExitClass::Failed);
    let mut other = Room::beside(room.fleet.clone(), room.cluster);
    other.resources = room.resources.clone();
    other = other.resource("file", json!({ "path": "/etc/y", "content": "two\n" }), &[]);
    assert_eq!(run(&other).await.ending, RunExitClass::Done);
    assert_eq!(
        resume_run(&room.context, Decisions::default(), room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    assert!(
        room.state()
            .last_applied
            .resources
            .contains_key(&"host/b/file/%2Fetc%2Fy".parse().unwrap())
    );
    assert_eq!(
        run(&room).await.ending,
        RunExitClass::Done,
        "it is taken back, since this spec says nothing of it"
    );
    assert!(
        ["a", "b"]
            .iter()
            .all(|host| room.host(host, |host| host.disk.text("/etc/y").is_none()))
    );
}

/// Passes, and then something happens.
pub struct After<F> {
    pub gate: Arc<crate::room::Gate>,
    pub act: F,
}

impl<F: Fn() + Send + Sync> Gatekeeper for After<F> {
    fn check<'a>(&'a self, hosts: &'a [String], proven: &'a [String]) -> BoxFuture<'a, GateResult> {
        Box::pin(async move {
            let result = self.gate.check(hosts, proven).await;
            (self.act)();
            result
        })
    }
}

/// Nobody can verify it any more, and nothing says that it is well.
#[tokio::test(start_paused = true)]
async fn a_host_that_a_gate_did_not_pass_counts_where_the_spec_takes_its_ssh_away() {
    let mut room = room(&["a", "b"]);
    is_bad(&room, &["a"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Stopped);
    room.take_ssh_away("a");
    let plan = room.plan().await;
    assert_eq!(unavailable(&plan), [("a", "gate failed")]);
    let stopped = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (stopped.ending, codes(&stopped), boots(&room, "b")),
        (RunExitClass::Stopped, vec!["RW0620"], 0)
    );
}

#[tokio::test(start_paused = true)]
async fn nodes_of_hosts_without_ssh_use_up_the_budget() {
    let mut room = room(&["a", "b"]);
    let nodes = Nodes::beside(&mut room);
    nodes.set("b", true, false);
    room.take_ssh_away("b");
    let plan = room.plan().await;
    assert_eq!(unavailable(&plan), [("b", "cordoned")]);
    nodes.hide_all(true);
    let stopped = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (stopped.ending, codes(&stopped), boots(&room, "a")),
        (RunExitClass::Stopped, vec!["RW0620"], 0)
    );
}

#[tokio::test(start_paused = true)]
async fn nodes_that_are_not_ready_or_cordoned_by_others_use_up_the_budget() {
    for (ready, schedulable, sort) in [(true, false, "cordoned"), (false, true, "not ready")] {
        let mut room = room(&["a", "b", "c"]);
        let nodes = Nodes::beside(&mut room);
        nodes.set("c", ready, schedulable);
        let plan = room
            .narrowed_plan(PlanSelection {
                targets: vec!["host/a".to_owned()],
                excludes: Vec::new(),
            })
            .await;
        assert_eq!(unavailable(&plan), [("c", sort)]);
        // A cluster that does not say counts as it answered last: when the plan was made.
        nodes.hide_all(true);
        let outcomes = [
            apply_plan(&plan, &room.context, room.sink()).await,
            resume_run(&room.context, Decisions::default(), room.sink()).await,
        ];
        nodes.hide_all(false);
        for outcome in outcomes.into_iter().chain([resume_run(
            &room.context,
            Decisions::default(),
            room.sink(),
        )
        .await])
        {
            assert_eq!(
                (outcome.ending, codes(&outcome), boots(&room, "a")),
                (RunExitClass::Stopped, vec!["RW0620"], 0),
                "{sort}"
            );
        }
        nodes.set("c", true, true);
        assert_eq!(
            resume_run(&room.context, Decisions::default(), room.sink())
                .await
                .ending,
            RunExitClass::Done,
            "it is asked anew"
        );
    }
}

/// An account that may not list them, or a gateway that knows no such path.
#[tokio::test(start_paused = true)]
async fn no_host_is_disturbed_before_its_cluster_says_how_its_nodes_are() {
    let mut room = room(&["a", "b"]);
    let nodes = Nodes::beside(&mut room);
    nodes.hide_all(true);
    let plan = room.plan().await;
    let unknown: Vec<&str> = plan.unknown.iter().map(|of| of.subject.as_str()).collect();
    assert_eq!(
        (unavailable(&plan), unknown),
        (vec![("a,b", "node unknown")], vec!["kube/kube"])
    );
    let stopped = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (stopped.ending, codes(&stopped), boots(&room, "a")),
        (RunExitClass::Stopped, vec!["RW0620"], 0)
    );
    nodes.hide_all(false);
    let went_on = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (went_on.ending, ["a", "b"].map(|host| boots(&room, host))),
        (RunExitClass::Done, [1, 1])
    );
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_part_of_the_run_was_told_of_nodes_is_kept() {
    let mut room = room(&["a", "b", "c"]);
    let nodes = Nodes::beside(&mut room);
    let only_a = PlanSelection {
        targets: vec!["host/a".to_owned()],
        excludes: Vec::new(),
    };
    let plan = room.narrowed_plan(only_a).await;
    assert_eq!(unavailable(&plan), []);
    nodes.set("c", true, false);
    let stopped = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(codes(&stopped), ["RW0620"]);
    nodes.hide_all(true);
    let again = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!((codes(&again), boots(&room, "a")), (vec!["RW0620"], 0));
}

/// Jobs go on where no new pods come, and where a kubelet cannot reach the API server.
#[tokio::test(start_paused = true)]
async fn nodes_that_take_no_pods_are_disturbed_one_after_the_other() {
    for (ready, schedulable) in [(true, false), (false, true)] {
        let mut room = room(&["a", "b", "c"]);
        (room.rollout.batches, room.context.patience.parallel) = (vec![3], 3);
        let nodes = Nodes::beside(&mut room);
        ["a", "b", "c"]
            .iter()
            .for_each(|host| nodes.set(host, ready, schedulable));
        let outcome = run(&room).await;
        assert_eq!(
            (
                outcome.ending,
                ["a", "b", "c"].map(|host| boots(&room, host))
            ),
            (RunExitClass::Done, [1, 1, 1]),
            "{:?}",
            outcome.problems
        );
        assert_eq!(most_at_once(&room), 1);
    }
}

/// Somebody cordons one node, and the other is not Ready: one for each reason is one too many.
#[tokio::test(start_paused = true)]
async fn a_cordoned_node_is_not_disturbed_beside_one_that_is_not_ready() {
    let mut room = room(&["a", "b"]);
    let nodes = Nodes::beside(&mut room);
    nodes.set("a", true, false);
    nodes.set("b", false, true);
    let stopped = run(&room).await;
    assert_eq!(
        (codes(&stopped), ["a", "b"].map(|host| boots(&room, host))),
        (vec!["RW0620"], [0, 0])
    );
}

/// A host on which a harmless step failed carries jobs; the other one is taken out by somebody.
#[tokio::test(start_paused = true)]
async fn a_host_in_doubt_is_not_disturbed_while_another_is_cordoned() {
    for goes_on in [true, false] {
        let mut room = room_with_harmless_step(&["a", "b"]);
        let nodes = Nodes::beside(&mut room);
        room.fault("a", "write_file", SimulatedTrouble::Fails);
        run(&room).await;
        nodes.set("b", true, false);
        let outcome = match goes_on {
            true => resume_run(&room.context, Decisions::default(), room.sink()).await,
            false => run(&room).await,
        };
        assert_eq!(
            (codes(&outcome), boots(&room, "a")),
            (vec!["RW0620"], 0),
            "{goes_on}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_down_and_cordoned_counts_for_both() {
    let mut room = room(&["a", "b"]);
    let nodes = Nodes::beside(&mut room);
    nodes.set("b", true, false);
    goes_down(&room, "b");
    let plan = room.plan().await;
    assert_eq!(
        unavailable(&plan),
        [("b", "unreachable"), ("b", "cordoned")]
    );
    room.host("b", |host| host.faults.clear());
    nodes.hide_all(true);
    let stopped = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!((codes(&stopped), boots(&room, "a")), (vec!["RW0620"], 0));
}

/// It uses up the budget of everybody before it, so that nobody's turn would come.
#[tokio::test(start_paused = true)]
async fn a_node_that_an_earlier_run_left_cordoned_is_given_back_before_another_host_is_disturbed() {
    for has_work in [true, false] {
        let mut room = room(&["a", "b", "c"]);
        let nodes = Nodes::beside(&mut room);
        if !has_work {
            assert_eq!(
                narrowed(&room, &["host/b"], &[]).await.ending,
                RunExitClass::Done
            );
        }
        nodes.leave_cordoned("b");
        let only_a = PlanSelection {
            targets: vec!["host/a".to_owned()],
            excludes: Vec::new(),
        };
        let narrow = room.narrowed_plan(only_a).await;
        assert_eq!(
            (unavailable(&narrow), narrow.verified_first().is_empty()),
            (vec![("b", "left cordoned")], true),
            "{has_work}"
        );
        let plan = room.plan().await;
        assert_eq!(
            plan.verified_first().into_iter().collect::<Vec<_>>(),
            ["b"],
            "{has_work}"
        );
        let outcome = apply_plan(&plan, &room.context, room.sink()).await;
        assert_eq!(
            (outcome.ending, codes(&outcome), nodes.cordoned()),
            (RunExitClass::Done, vec![], vec![]),
            "{has_work}"
        );
        assert_eq!(
            ["a", "b", "c"].map(|host| boots(&room, host)),
            [1, 1, 1],
            "{has_work}"
        );
    }
}

/// A copy of the folder went on with the run, and was killed while it emptied a node.
#[tokio::test(start_paused = true)]
async fn a_node_that_another_part_of_the_same_run_cordoned_counts() {
    let mut room = room(&["a", "b", "c"]);
    let nodes = Nodes::beside(&mut room);
    is_bad(&room, &["a"]);
    let stopped = run(&room).await;
    assert_eq!(stopped.ending, RunExitClass::Stopped);
    is_bad(&room, &[]);
    nodes.leave_cordoned_by("c", &stopped.run.unwrap());
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), boots(&room, "b")),
        (RunExitClass::Stopped, vec!["RW0620"], 0),
        "{:?}",
        outcome.problems
    );
}

/// A disk was full, say, so a step that disturbs nobody failed on three hosts at once. They carry
/// jobs still.
async fn room_with_hosts_in_doubt() -> Room {
    let mut room = room_with_harmless_step(&["a", "b", "c", "d"]);
    (room.rollout.batches, room.context.patience.parallel) = (vec![3], 3);
    ["b", "c", "d"]
        .iter()
        .for_each(|host| room.fault(host, "write_file", SimulatedTrouble::Fails));
    let left = run(&room).await;
    assert_eq!(
        ["a", "b", "c", "d"].map(|host| boots(&room, host)),
        [1, 0, 0, 0]
    );
    assert_eq!(room.state().outages.len(), 3, "{:?}", left.outcomes);
    room
}

#[tokio::test(start_paused = true)]
async fn hosts_that_a_harmless_step_left_are_disturbed_one_after_the_other() {
    for goes_on in [true, false] {
        let room = room_with_hosts_in_doubt().await;
        let outcome = match goes_on {
            true => resume_run(&room.context, Decisions::default(), room.sink()).await,
            false => run(&room).await,
        };
        assert_eq!(
            ["a", "b", "c", "d"].map(|host| boots(&room, host)),
            [1, 1, 1, 1],
            "{goes_on}: {:?}",
            outcome.problems
        );
        assert_eq!(
            (outcome.ending, most_at_once(&room)),
            (RunExitClass::Done, 1),
            "{goes_on}: {:?}",
            outcome.problems
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_in_doubt_that_is_down_by_now_uses_up_the_budget() {
    for goes_on in [true, false] {
        let room = room_with_hosts_in_doubt().await;
        let plan = room.plan().await;
        goes_down(&room, "d");
        let outcome = match goes_on {
            true => resume_run(&room.context, Decisions::default(), room.sink()).await,
            false => apply_plan(&plan, &room.context, room.sink()).await,
        };
        assert_ne!(outcome.ending, RunExitClass::Done);
        assert_eq!(
            ["b", "c"].map(|host| boots(&room, host)),
            [0, 0],
            "{goes_on}: {:?}",
            outcome.problems
        );
    }
}

/// It answers, and its reboot did not bring what it was for.
#[tokio::test(start_paused = true)]
async fn a_host_that_an_earlier_run_disturbed_is_out_for_certain_beside_one_in_doubt() {
    for goes_on in [true, false] {
        let room = room_with_harmless_step(&["a", "b"]);
        room.fault("a", "reboot", SimulatedTrouble::OldKernel);
        room.fault("b", "write_file", SimulatedTrouble::Fails);
        assert_ne!(
            narrowed(&room, &["host/a"], &[]).await.ending,
            RunExitClass::Done
        );
        assert_ne!(
            narrowed(&room, &[], &["host/a"]).await.ending,
            RunExitClass::Done
        );
        let state = room.state();
        let causes: Vec<bool> = state
            .outages
            .values()
            .map(|outage| outage.cause.is_in_doubt())
            .collect();
        assert_eq!(causes, [false, true], "{:?}", state.outages);
        let outcome = match goes_on {
            true => resume_run(&room.context, Decisions::default(), room.sink()).await,
            false => narrowed(&room, &[], &["host/a"]).await,
        };
        assert_eq!(
            (outcome.ending, boots(&room, "b")),
            (RunExitClass::Stopped, 0),
            "{goes_on}: {:?}",
            outcome.problems
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_somebody_cordons_while_the_run_goes_on_counts_from_then_on() {
    let mut room = room(&["a", "b", "c"]);
    let nodes = Nodes::beside(&mut room);
    let gate = room.gate.clone();
    room.context.gatekeeper = Arc::new(After {
        gate,
        act: move || nodes.set("c", true, false),
    });
    let outcome = run(&room).await;
    assert_eq!((boots(&room, "a"), boots(&room, "b")), (1, 0));
    let skipped = outcome
        .outcomes
        .iter()
        .filter(|(_, outcome)| {
            *outcome
                == NodeOutcome::Skipped {
                    because: Skip::Budget,
                }
        })
        .count();
    assert!(
        outcome.ending == RunExitClass::Stopped && skipped > 0,
        "{:?}",
        outcome.outcomes
    );
    let seen = room
        .events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| matches!(event, RunEvent::Rebooting { .. }))
        .count();
    assert_eq!(seen, 1);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_another_folders_run_gave_back_is_disturbed_again_only_within_the_budget() {
    for is_given_back in [true, false] {
        let room = room(&["a", "b"]);
        room.fault("a", "reboot", SimulatedTrouble::OldKernel);
        assert_ne!(
            narrowed(&room, &["host/a"], &[]).await.ending,
            RunExitClass::Done
        );
        if is_given_back {
            let other = room.copied();
            assert_eq!(
                narrowed(&other, &["host/a"], &[]).await.ending,
                RunExitClass::Done
            );
        }
        goes_down(&room, "b");
        let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
        assert_eq!(
            codes(&outcome).contains(&"RW0620"),
            is_given_back,
            "{:?}",
            outcome.problems
        );
    }
}

/// With a command that disturbs these hosts.
pub fn with_disruption(room: Room, hosts: &[&str], name: &str, after: &[&str]) -> Room {
    for host in hosts {
        let path = format!("/opt/{name}");
        room.host(host, |host| {
            host.probes.insert(format!("show {name}"), path.clone());
            let writes = vec![Action::WriteFile {
                path,
                content: "done\n".into(),
                mode: "0644".into(),
                owner: "root".into(),
                group: "root".into(),
            }];
            host.commands.insert(format!("make {name}"), writes);
        });
    }
    let body = json!({
        "name": name, "run": format!("make {name}"), "disruption": "drain",
        "read": { "probe": format!("show {name}") },
    });
    room.resource("command", body, after)
}

/// A command that disturbs its host, a file, and a command again; one host may be out of service at
/// a time.
fn room_with_two_disruptions(hosts: &[&str]) -> Room {
    let mut room = Room::of(hosts);
    room.rollout.max_unavailable = 1;
    let room = with_disruption(room, hosts, "first", &[]).resource(
        "file",
        json!({ "path": "/etc/x", "content": "one\n" }),
        &["command/first"],
    );
    with_disruption(room, hosts, "second", &["file/%2Fetc%2Fx"])
}

/// The run's own step has the host write down what the run remembers of it, and that is no word of
/// the host's.
#[tokio::test(start_paused = true)]
async fn a_host_that_another_folders_run_gave_back_is_not_taken_for_left_out_by_this_runs_own_word()
{
    for failed_attempts in 0..3 {
        let room = room_with_two_disruptions(&["a", "b"]);
        room.fault("a", "write_file", SimulatedTrouble::Fails);
        let first = narrowed(&room, &["host/a"], &[]).await;
        assert_ne!(first.ending, RunExitClass::Done);
        let is_made = |name: &str| {
            room.host("a", |host| {
                host.disk.text(&format!("/opt/{name}")).is_some()
            })
        };
        assert_eq!((is_made("first"), is_made("second")), (true, false));
        let other = room.copied();
        let disk = room.host("a", |host| host.disk.clone());
        let well = narrowed(&other, &["host/a"], &[]).await;
        assert_eq!((well.ending, is_made("second")), (RunExitClass::Done, true));
        // Somebody undoes what it did.
        room.host("a", |host| host.disk = disk);
        for _ in 0..failed_attempts {
            room.fault("a", "write_file", SimulatedTrouble::Fails);
            resume_run(&room.context, Decisions::default(), room.sink()).await;
        }
        goes_down(&room, "b");
        let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
        assert!(room.host("a", |host| host.disk.text("/etc/x").is_some()));
        assert_eq!(
            (codes(&outcome), is_made("second")),
            (vec!["RW0620"], false),
            "{:?}",
            outcome.problems
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_another_folders_run_gave_back_and_left_in_doubt_is_not_taken_for_left_out() {
    let room = room(&["a", "b"]);
    room.fault("a", "reboot", SimulatedTrouble::OldKernel);
    let first = narrowed(&room, &["host/a"], &[]).await;
    assert_ne!(first.ending, RunExitClass::Done);
    let other = room.copied();
    let loader = room.host("a", |host| host.loader.clone());
    let well = narrowed(&other, &["host/a"], &[]).await;
    assert_eq!(well.ending, RunExitClass::Done);
    let other = other.resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[]);
    room.fault("a", "write_file", SimulatedTrouble::Fails);
    let left = narrowed(&other, &["host/a"], &[]).await;
    assert_ne!(left.ending, RunExitClass::Done);
    room.host("a", |host| host.loader = loader);
    goes_down(&room, "b");
    let boots_before = boots(&room, "a");
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (codes(&outcome), boots(&room, "a")),
        (vec!["RW0620"], boots_before),
        "{:?}",
        outcome.problems
    );
}

/// Before a host is disturbed it writes that down, whatever its record says of another folder's
/// doubt.
#[tokio::test(start_paused = true)]
async fn a_host_that_another_folder_left_in_doubt_writes_down_that_it_leaves_service() {
    let room = room_with_two_disruptions(&["a", "b"]);
    room.fault("a", "run_command", SimulatedTrouble::Fails);
    let first = narrowed(&room, &["host/a"], &[]).await;
    assert_ne!(first.ending, RunExitClass::Done);
    let other = room.copied();
    let disk = room.host("a", |host| host.disk.clone());
    let well = narrowed(&other, &["host/a"], &[]).await;
    assert_eq!(well.ending, RunExitClass::Done);
    let other = other.resource("file", json!({ "path": "/etc/y", "content": "one\n" }), &[]);
    room.fault("a", "write_file", SimulatedTrouble::Fails);
    let left = narrowed(&other, &["host/a"], &[]).await;
    assert_ne!(left.ending, RunExitClass::Done);
    assert_eq!(unavailable(&other.plan().await), [("a", "in doubt")]);
    room.host("a", |host| host.disk = disk);
    room.fault("a", "run_command", SimulatedTrouble::Fails);
    let outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_ne!(outcome.ending, RunExitClass::Done);
    let plan = other.plan().await;
    assert!(
        matches!(unavailable(&plan)[..], [("a", "step failed" | "unproven")]),
        "{:?}",
        unavailable(&plan)
    );
}

/// Nothing of the run that goes on empties its node or gives it back.
#[tokio::test(start_paused = true)]
async fn a_node_that_somebody_gave_back_is_disturbed_by_a_lesser_step_only_within_the_budget() {
    for is_given_back in [true, false] {
        let mut room = room_with_two_disruptions(&["a", "b"]);
        let nodes = emptied(&mut room, Disruption::Drain);
        let seconds = room.resources.clone();
        room.resources
            .retain(|resource| &*resource.address.path[1] == "first");
        room.fault("a", "run_command", SimulatedTrouble::Fails);
        let first = narrowed(&room, &["host/a"], &[]).await;
        assert_ne!(first.ending, RunExitClass::Done);
        assert_eq!(nodes.cordoned(), ["node-a"]);
        if is_given_back {
            nodes.uncordon("a");
        }
        room.resources = seconds;
        room.resources
            .retain(|resource| &*resource.address.path[1] == "second");
        for resource in &mut room.resources {
            let body = &mut Arc::make_mut(&mut resource.declaration).body;
            body["disruption"] = json!("restart");
        }
        goes_down(&room, "b");
        let outcome = run(&room).await;
        let is_made = room.host("a", |host| host.disk.text("/opt/second").is_some());
        assert_eq!(
            (codes(&outcome).contains(&"RW0620"), is_made),
            (is_given_back, !is_given_back),
            "{:?}",
            outcome.problems
        );
    }
}

/// The host does not answer, or has no room, when its gate has failed. What its record says instead
/// is no word of another run.
#[tokio::test(start_paused = true)]
async fn a_failed_gate_that_no_record_says_is_remembered_as_that() {
    let mut unwritten = 0;
    for nth in 1..40 {
        let room =
            Room::of(&["a"]).resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[]);
        room.fault("a", "write_file", SimulatedTrouble::Fails);
        run(&room).await;
        is_bad(&room, &["a"]);
        room.fill_disk("a", nth, 1000);
        let failed = resume_run(&room.context, Decisions::default(), room.sink()).await;
        room.host("a", |host| host.faults.clear());
        if !codes(&failed).contains(&"RW0622") || !codes(&failed).contains(&"RW0650") {
            continue;
        }
        unwritten += 1;
        is_bad(&room, &[]);
        room.gate.unchecked.lock().unwrap().insert("a".to_owned());
        let outcome = run(&room).await;
        assert!(
            codes(&outcome).contains(&"RW0658"),
            "{nth}: {:?}",
            codes(&outcome)
        );
    }
    assert!(unwritten > 0);
}
