//! What is in the place of a host's record and is no record of this cluster: the host is left alone
//! until somebody takes it over.

use crate::room::{Room, copy_folder, machine_id, resource};
use railwright_apply::target_take_over::{TakeOverDecision, TakenOver, take_over_targets};
use railwright_apply::{RunExitClass, apply_plan};
use railwright_base::{Address, Target};
use railwright_plan::Plan;
use railwright_state::ClusterLock;
use railwright_transport::RECORD_LIMIT_BYTES;
use railwright_transport::sim::{SimulatedFault, SimulatedTrouble};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

fn desired(room: Room) -> Room {
    room.resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[])
}

fn refused(plan: &Plan) -> Vec<&str> {
    plan.refused
        .iter()
        .map(|one| one.trouble.as_ref().unwrap().code.as_str())
        .collect()
}

async fn taken_over(room: &Room, keep_record: bool) -> TakenOver {
    let (state, _, _, recognition) = room.recognize().await;
    let targets = recognition.conflicts;
    let decision = TakeOverDecision {
        targets,
        reason: "moved".to_owned(),
        keep_record,
        cluster: state.cluster,
        name: room.cluster.to_owned(),
    };
    take_over_targets(&decision, &room.context).await.unwrap()
}

/// The records of one host: what the first cluster wrote, and what became of it. With the code for
/// the first one.
fn unreadable(record: &str) -> Vec<(String, &'static str)> {
    let newer = record.replace("\"format_version\":\"", "\"format_version\":\"9");
    let (before, after) = record.split_once("\"serial\":").unwrap();
    let (_, after) = after.split_once(',').unwrap();
    let endless = format!("{before}\"serial\":{},{after}", u64::MAX);
    let lacking = record.replace("\"run\":", "\"ran\":");
    let cut = record[..record.len() - 20].to_owned();
    vec![
        (newer, "RW0720"),
        (endless, "RW0720"),
        (lacking, "RW0720"),
        (cut, "RW0736"),
        (String::new(), "RW0736"),
        ("[]".to_owned(), "RW0736"),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_is_no_record_of_this_cluster_is_left_until_the_host_is_taken_over() {
    let room = desired(Room::of(&["a"]));
    let other = desired(Room::beside(room.fleet.clone(), "zzz"));
    let planned_before = other.plan().await;
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let record = room.host("a", |host| host.record.clone().unwrap());
    for (unreadable, code) in unreadable(&record) {
        assert_ne!(unreadable, record);
        room.host("a", |host| host.record = Some(unreadable.clone()));
        let before = room.fleet.effects();
        assert_eq!(refused(&other.plan().await), [code], "{unreadable}");
        assert_eq!(refused(&room.plan().await), ["RW0736"], "{unreadable}");
        // A plan that was made when there was none.
        let outcome = apply_plan(&planned_before, &other.context, other.sink()).await;
        assert_eq!(
            outcome
                .problems
                .iter()
                .map(|problem| problem.code.as_ref())
                .collect::<Vec<&str>>(),
            [code],
            "{unreadable}"
        );
        assert_eq!(room.fleet.effects(), before);
        room.host("a", |host| {
            assert_eq!(host.record.as_deref(), Some(unreadable.as_str()))
        });
    }
    // Decided of what names no cluster; by then there is one that does.
    let (state, _, _, recognition) = room.recognize().await;
    let (targets, name) = (recognition.conflicts, room.cluster.to_owned());
    let decision = TakeOverDecision {
        targets,
        reason: "moved".to_owned(),
        keep_record: false,
        cluster: state.cluster,
        name,
    };
    room.host("a", |host| {
        host.record = Some(unreadable(&record)[0].0.clone())
    });
    let taken = take_over_targets(&decision, &room.context).await.unwrap();
    assert!(taken[&Target::host("a")].is_err(), "{taken:?}");
    room.host("a", |host| host.record = Some("[]".to_owned()));
    let kept = taken_over(&room, true).await;
    assert!(
        kept[&Target::host("a")].is_err(),
        "nothing of it can be kept"
    );
    let taken = taken_over(&room, false).await;
    assert!(
        taken[&Target::host("a")]
            .as_ref()
            .is_ok_and(|taken| taken.set_aside.is_some() && taken.from.is_none()),
        "{taken:?}"
    );
    let next = room.plan().await;
    assert!(
        next.refused.is_empty() && next.nodes.is_empty(),
        "what this side remembers stands: {:?}",
        next.nodes
    );
}

/// A host to which its cluster applied a file, and another cluster with the same host.
async fn applied_and_another() -> (Room, Room) {
    let room = desired(Room::of(&["a"]));
    let other = desired(Room::beside(room.fleet.clone(), "zzz"));
    let applied = apply_plan(&room.plan().await, &room.context, room.sink()).await;
    assert_eq!(applied.ending, RunExitClass::Done);
    (room, other)
}

/// Whether the folder remembers that the host was taken over, and how many resources.
fn remembered(room: &Room) -> (bool, usize) {
    let state = room.state();
    let is_taken_over = state.taken_over.contains_key("a");
    assert_eq!(is_taken_over, state.lineages.contains_key("a"));
    (is_taken_over, state.last_applied.resources.len())
}

async fn take_over_with_a_full_disk(nth: u32, keep_record: bool) -> bool {
    let (room, other) = applied_and_another().await;
    let record = room.host("a", |host| host.record.clone());
    // Looking at the host takes some of the calls.
    other.fill_disk("a", nth, 1000);
    let taken = taken_over(&other, keep_record).await;
    let kept = room.host("a", |host| host.record == record);
    let mut is_unwritten = false;
    match taken.get(&Target::host("a")) {
        Some(Ok(_)) => assert!(!kept, "{nth}: its record names the other cluster still"),
        Some(Err(problem)) => {
            assert!(kept, "{nth}: {}", problem.message);
            is_unwritten = problem.code == "RW0622";
        }
        None => assert!(kept, "{nth}"),
    }
    room.host("a", |host| host.faults.clear());
    if kept {
        assert_eq!(remembered(&other), (false, 0), "{nth}");
        assert_eq!(refused(&other.plan().await).len(), 1, "{nth}");
    } else {
        assert_eq!(remembered(&other), (true, usize::from(keep_record)));
    }
    is_unwritten
}

#[tokio::test(start_paused = true)]
async fn a_take_over_that_the_host_could_not_write_down_is_an_error() {
    for keep_record in [false, true] {
        let mut unwritten = 0;
        for nth in 1..12 {
            unwritten += u32::from(take_over_with_a_full_disk(nth, keep_record).await);
        }
        assert!(unwritten > 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_take_over_whose_record_would_not_be_read_again_is_not_remembered() {
    let (room, other) = applied_and_another().await;
    let record = room.host("a", |host| host.record.clone());
    // The other folder remembers a file that leaves no room in the record.
    let resources = room.state().last_applied.resources;
    let mut large = resources.into_values().next().unwrap();
    large.body = json!({ "path": "/etc/y", "content": "x".repeat(RECORD_LIMIT_BYTES) });
    let folder = &other.context.folder;
    let lock = ClusterLock::take(folder, "test").unwrap();
    let mut state = other.state();
    let address = Address::host("a", "file", "/etc/y");
    state.last_applied.resources.insert(address, large);
    state.store(lock.folder()).unwrap();
    drop(lock);
    let taken = taken_over(&other, true).await;
    let problem = taken[&Target::host("a")].as_ref().unwrap_err();
    let words = "host/a was not taken over";
    assert!(problem.message.starts_with(words), "{}", problem.message);
    assert_eq!(remembered(&other), (false, 1));
    assert_eq!(record, room.host("a", |host| host.record.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_take_over_that_may_have_been_written_down_is_remembered() {
    let mut unknown = 0;
    for nth in 1..12 {
        let (_room, other) = applied_and_another().await;
        other.host("a", |host| {
            host.faults.push(SimulatedFault {
                after: host.calls + nth,
                word: None,
                trouble: SimulatedTrouble::Unreachable(3600),
            })
        });
        let taken = taken_over(&other, true).await;
        if let Some(Err(problem)) = taken.get(&Target::host("a")) {
            let is_unknown = problem.code == "RW0622";
            assert_eq!(remembered(&other), (is_unknown, is_unknown.into()), "{nth}");
            unknown += u32::from(is_unknown);
        }
    }
    assert!(unknown > 0);
}

#[tokio::test(start_paused = true)]
async fn what_another_folder_recorded_without_knowing_ours_is_put_together_by_hand_alone() {
    let room = desired(Room::of(&["a", "b"]));
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    // The record is lost with its disk, and somebody goes on from a folder that does not know what
    // this one does.
    room.host("a", |host| host.record = None);
    room.put("a", "/etc/z", "precious\n");
    let other = desired(Room::beside(room.fleet.clone(), room.cluster)).resource(
        "file",
        json!({ "path": "/etc/z", "content": "z\n" }),
        &[],
    );
    assert_eq!(
        apply_plan(&other.plan().await, &other.context, other.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let theirs = room.host("a", |host| host.record.clone().unwrap());
    assert_eq!(refused(&room.plan().await), ["RW0738"]);
    apply_plan(&room.plan().await, &room.context, room.sink()).await;
    room.host("a", |host| {
        assert_eq!(
            host.record.as_deref(),
            Some(theirs.as_str()),
            "what another wrote stands"
        )
    });
    let copy = Room::beside(room.fleet.clone(), room.cluster);
    copy_folder(room.context.folder.path(), copy.context.folder.path());
    let not_managed = taken_over(&copy, false)
        .await
        .remove(&Target::host("a"))
        .unwrap()
        .unwrap()
        .resources;
    assert_eq!(
        not_managed,
        ["host/a/file/%2Fetc%2Fz".parse().unwrap()],
        "what this side remembers itself stays managed"
    );
    room.host("a", |host| host.record = Some(theirs));
    assert!(taken_over(&room, true).await[&Target::host("a")].is_ok());
    assert!(refused(&room.plan().await).is_empty() && refused(&other.plan().await).is_empty());
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let content = room.host("a", |host| host.disk.text("/etc/z"));
    assert_eq!(
        content.as_deref(),
        Some("precious\n"),
        "what was there before comes back with the removal"
    );
}

/// A colleague applies after a run was killed: what that one did is in its journal alone.
#[tokio::test(start_paused = true)]
async fn what_no_record_says_yet_is_lost_to_no_other_record() {
    let mut room =
        Room::of(&["a"]).resource("file", json!({ "path": "/etc/y", "content": "two\n" }), &[]);
    room.put("a", "/etc/x", "old\n");
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let resources = room.resources.clone();
    room = desired(room);
    let plan = room.plan().await;
    let text = |room: &Room| room.host("a", |host| host.disk.text("/etc/x"));
    room.dies_when(&plan, || text(&room).as_deref() == Some("one\n"))
        .await;
    // The host lets it go after a while.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let mut other = Room::beside(room.fleet.clone(), room.cluster).resource(
        "file",
        json!({ "path": "/etc/z", "content": "three\n" }),
        &[],
    );
    other.resources.extend(resources.clone());
    assert_eq!(
        apply_plan(&other.plan().await, &other.context, other.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    room.resources.clone_from(&other.resources);
    assert_eq!(refused(&room.plan().await), ["RW0738"]);
    taken_over(&room, true).await;
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    assert_eq!(text(&room).as_deref(), Some("old\n"));
}

/// Two folders of one cluster: what the killed run of the one did after its last record is in its
/// journal alone, also where the other one takes that record over.
#[tokio::test(start_paused = true)]
async fn who_takes_a_record_over_knows_no_more_than_it_says() {
    let file = |room: Room, path: &str, after: &[&str]| {
        room.resource("file", json!({ "path": path, "content": "one\n" }), after)
    };
    let room = file(Room::of(&["a"]), "/etc/u", &[]);
    room.put("a", "/etc/x", "old\n");
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let other = file(
        file(
            Room::beside(room.fleet.clone(), room.cluster),
            "/etc/u",
            &[],
        ),
        "/etc/v",
        &[],
    );
    assert_eq!(
        apply_plan(&other.plan().await, &other.context, other.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    other.forgets(&"host/a/file/%2Fetc%2Fv".parse().unwrap());
    let last = "file/%2Fetc%2Fw";
    let room = file(
        file(file(room, "/etc/v", &[]), "/etc/w", &[]),
        "/etc/x",
        &[last],
    );
    let is_there =
        |path: &str| room.host("a", |host| host.disk.text(path)).as_deref() == Some("one\n");
    room.dies_when(&room.plan().await, || is_there("/etc/x"))
        .await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(refused(&other.plan().await), ["RW0738"]);
    assert!(taken_over(&other, true).await[&Target::host("a")].is_ok());
    assert_eq!(refused(&room.plan().await), ["RW0738"]);
    taken_over(&room, true).await;
    let known = room
        .state()
        .last_applied
        .resources
        .keys()
        .filter(|address| address.to_string().ends_with('x'))
        .count();
    assert_eq!(known, 1);
}

/// What was there before was so on the machine that the image was made of.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_record_is_kept_that_came_with_an_image() {
    let other = desired(Room::beside(Room::of(&["a"]).fleet.clone(), "zzz"));
    other.put("a", "/etc/x", "old image\n");
    assert_eq!(
        apply_plan(&other.plan().await, &other.context, other.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    other.host("a", |host| host.machine_id = Some(machine_id("another")));
    let room = Room::beside(other.fleet.clone(), "c");
    let kept = taken_over(&room, true).await;
    assert!(
        kept[&Target::host("a")]
            .as_ref()
            .is_err_and(|problem| problem.message.contains("is of another machine")),
        "{kept:?}"
    );
    assert!(taken_over(&room, false).await[&Target::host("a")].is_ok());
    assert_eq!(room.plan().await.nodes, []);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_was_renamed_is_known_by_its_machine() {
    let room = desired(Room::of(&["a"]));
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    // The folder remembers it under a name that the spec does not have any more: as good as
    // nothing.
    std::fs::remove_dir_all(room.context.folder.path()).unwrap();
    room.host("a", |host| {
        let record = host.record.as_mut().unwrap();
        *record = record
            .replace("\"host\":\"a\"", "\"host\":\"old\"")
            .replace("host/a/", "host/old/");
    });
    let (state, _, _, recognition) = room.recognize().await;
    assert_eq!(
        recognition
            .warnings
            .iter()
            .map(|warning| warning.code.as_ref())
            .collect::<Vec<&str>>(),
        ["RW0737"]
    );
    assert_eq!(state.last_applied.of_target(&Target::host("a")).count(), 1);
    let plan = room.plan().await;
    assert!(
        plan.refused.is_empty() && plan.nodes.is_empty(),
        "{:?}",
        plan.nodes
    );
    // Nothing tells that it is the same machine.
    room.host("a", |host| host.machine_id = None);
    assert_eq!(refused(&room.plan().await), ["RW0736"]);
    room.host("a", |host| {
        host.machine_id = Some(machine_id("a"));
        let mut record: Value = serde_json::from_str(host.record.as_ref().unwrap()).unwrap();
        assert!(record.as_object_mut().unwrap().remove("machine").is_some());
        host.record = Some(record.to_string());
    });
    assert_eq!(refused(&room.plan().await), ["RW0736"]);
}

/// The plan sees both, and the run only the one that it works on.
#[tokio::test(start_paused = true)]
async fn two_hosts_that_swapped_their_names_are_no_new_machines_where_only_one_has_work() {
    let mut room = desired(Room::of(&["a", "b"]));
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let [a, b] = ["a", "b"].map(|name| room.host(name, |host| host.clone()));
    room.host("a", |host| *host = b);
    room.host("b", |host| *host = a);
    room.resources.push(resource(
        "b",
        "file",
        json!({ "path": "/etc/y", "content": "two\n" }),
        &[],
    ));
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let (state, _, _, recognition) = room.recognize().await;
    assert_eq!(
        (
            state.last_applied.resources.len(),
            recognition.warnings.len(),
            recognition.reinstalled.len()
        ),
        (3, 0, 0)
    );
    assert!(room.plan().await.nodes.is_empty());
}

/// What is remembered of a machine goes with it, also where it needs nothing and the run does not
/// reach it.
#[tokio::test(start_paused = true)]
async fn a_machine_under_the_name_of_one_that_was_renamed_is_no_new_installation() {
    let mut room = Room::of(&["a", "b"]);
    let of = |host: &str| {
        resource(
            host,
            "file",
            json!({ "path": "/etc/x", "content": "one\n" }),
            &[],
        )
    };
    room.resources.push(of("a"));
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    let [a, b] = ["a", "b"].map(|name| room.host(name, |host| host.clone()));
    room.host("a", |host| *host = b);
    room.host("b", |host| *host = a);
    room.resources.push(of("b"));
    let plan = room.plan().await;
    assert_eq!(
        plan.renamed,
        BTreeMap::from([(Target::host("b"), machine_id("a"))])
    );
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    assert_eq!(
        (outcome.ending, outcome.problems.len()),
        (RunExitClass::Done, 0),
        "{:?}",
        outcome.problems
    );
    assert!(room.plan().await.nodes.is_empty());
    // What was there before us is known on both.
    room.resources.clear();
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    for host in ["a", "b"] {
        room.host(host, |host| {
            assert!(!host.disk.files.contains_key("/etc/x"))
        });
    }
}

/// What the spec says of three files is more than a host reads again of its record.
#[tokio::test(start_paused = true)]
async fn a_record_that_would_not_be_read_again_is_not_written() {
    let large = "x".repeat(RECORD_LIMIT_BYTES * 2 / 5);
    let file = |room: Room, path: &str| {
        room.resource("file", json!({ "path": path, "content": large }), &[])
    };
    let room = ["/etc/x", "/etc/y", "/etc/z"]
        .into_iter()
        .fold(Room::of(&["a"]), file);
    let outcome = apply_plan(&room.plan().await, &room.context, room.sink()).await;
    assert_eq!(outcome.ending, RunExitClass::Done);
    let told = format!("{:?}", outcome.problems);
    for words in [
        "RW0622",
        "and one of more than 8192 KiB is not read",
        "the largest is host/a/file/",
    ] {
        assert!(told.contains(words), "{words}");
    }
    room.host("a", |host| {
        assert!(
            host.record
                .as_ref()
                .is_some_and(|record| record.len() < RECORD_LIMIT_BYTES)
        )
    });
    assert!(refused(&room.plan().await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_off_is_no_record_that_cannot_be_read() {
    let room = desired(Room::of(&["a"]));
    assert_eq!(
        apply_plan(&room.plan().await, &room.context, room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
    for place in 0..3 {
        room.host("a", |host| {
            host.faults.push(SimulatedFault {
                after: host.calls,
                word: None,
                trouble: SimulatedTrouble::CutOff(place),
            })
        });
        let plan = room.plan().await;
        assert!(
            !refused(&plan).contains(&"RW0736") && plan.nodes.is_empty(),
            "{place}: {:?}",
            plan.refused
        );
    }
    assert!(refused(&room.plan().await).is_empty());
}
