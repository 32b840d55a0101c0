//! Whole runs against a fleet in memory, with real kinds and real plans.

use super::fleet_for_tests::{Fault, Host, Room};
use super::outcome::{ApplyOutcome, Counts, Ending};
use super::resume::{Decisions, resume, resume_through};
use super::run::{apply, apply_through};
use crate::plan::{NodeKind, Plan, Reason, file};
use crate::resource::Disruption;
use crate::state::journal_writer::JournalStore;
use crate::state::{ClusterLock, Outcome, State};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

fn codes(outcome: &ApplyOutcome) -> Vec<&'static str> {
    outcome.problems.iter().map(|problem| problem.code).collect()
}

async fn run(room: &Room) -> ApplyOutcome {
    apply(&room.plan(), &room.context, room.sink()).await
}

/// A file, a sysctl after it, and a kernel parameter that needs a reboot.
fn full(hosts: &[&str]) -> Room {
    Room::of(hosts)
        .wish("file", json!({ "path": "/etc/x", "content": "one\n" }), &[])
        .wish("sysctl", json!({ "key": "net.a", "value": "7" }), &["file/%2Fetc%2Fx"])
        .wish("kernel_parameter", json!({ "parameter": "iommu", "value": "pt" }), &["file/%2Fetc%2Fx"])
}

fn two_files(hosts: &[&str]) -> Room {
    Room::of(hosts).wish("file", json!({ "path": "/etc/x", "content": "one\n" }), &[]).wish(
        "file",
        json!({ "path": "/etc/y", "content": "two\n" }),
        &["file/%2Fetc%2Fx"],
    )
}

#[tokio::test]
async fn from_nothing_to_done_and_then_there_is_nothing_to_do() {
    let room = full(&["a", "b", "c"]);
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Done, vec![]));
    assert_eq!(outcome.counts, Counts { done: 12, ..Counts::default() });
    assert_eq!(*room.gate.checked.lock().unwrap(), ["a after ", "b,c after a"]);
    room.fleet.with("b", |host| {
        assert_eq!((host.boot, host.sysctls["net.a"].as_str(), host.cmdline.join(" ").as_str()), (1, "7", "quiet iommu=pt"));
        assert_eq!((&host.lock, host.told.iter().filter(|word| *word == "reboot").count()), (&None, 1));
    });
    assert_eq!(room.plan().nodes, [], "law 1: the next plan is empty");
    let again = run(&room).await;
    assert_eq!((again.ending, again.run), (Ending::Done, None));
}

#[tokio::test]
async fn what_was_there_before_comes_back_when_the_wish_goes() {
    let mut room = full(&["a"]);
    room.fleet.with("a", |host| host.files.insert("/etc/x".into(), "before\n".into()));
    let untouched = room.fleet.with("a", |host| (host.files.clone(), host.sysctls.clone(), host.next_cmdline.clone()));
    assert_eq!(run(&room).await.ending, Ending::Done);
    room.fleet.with("a", |host| host.files.insert("/etc/x".into(), "drifted\n".into()));
    assert_eq!(run(&room).await.ending, Ending::Done);
    room.wishes.clear();
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Done, vec![]));
    assert_eq!(room.fleet.with("a", |host| (host.files.clone(), host.sysctls.clone(), host.next_cmdline.clone())), untouched);
    assert!(room.state().last_applied.resources.is_empty());
}

#[tokio::test]
async fn a_host_that_moved_is_left_alone_before_anything_of_it_is_changed() {
    let room = two_files(&["a", "b"]);
    let plan = room.plan();
    room.fleet.with("b", |host| host.files.insert("/etc/y".into(), "by hand\n".into()));
    let outcome = apply(&plan, &room.context, room.sink()).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Incomplete, vec!["RW0610"]));
    assert!(outcome.problems[0].message.contains("by hand"), "{}", outcome.problems[0].message);
    room.fleet.with("b", |host| assert!(host.told.is_empty(), "{:?}", host.told));
    room.fleet.with("a", |host| assert_eq!(host.told.len(), 2));
}

#[tokio::test]
async fn what_is_so_already_is_done_without_an_action_and_never_taken_away() {
    let mut room = two_files(&["a"]);
    let plan = room.plan();
    room.fleet.with("a", |host| host.files.insert("/etc/x".into(), "one\n".into()));
    let outcome = apply(&plan, &room.context, room.sink()).await;
    assert_eq!((outcome.ending, outcome.counts.already, outcome.counts.done), (Ending::Done, 1, 1));
    assert!(room.state().last_applied.resources.values().any(|applied| applied.adopted));
    room.wishes.clear();
    assert_eq!(run(&room).await.ending, Ending::Done);
    room.fleet.with("a", |host| assert_eq!(host.files.keys().collect::<Vec<_>>(), ["/etc/x"]));
}

#[tokio::test]
async fn what_is_as_wished_from_the_start_is_remembered_and_its_drift_is_told() {
    let mut room = two_files(&["a"]);
    let put = |room: &Room, text: &str| room.fleet.with("a", |host| drop(host.files.insert("/etc/x".into(), text.into())));
    room.fleet.with("a", |host| drop(host.files.insert("/etc/y".into(), "two\n".into())));
    put(&room, "one\n");
    // moved after the plan: nothing is taken for so
    let plan = room.plan();
    put(&room, "else\n");
    let moved = apply(&plan, &room.context, room.sink()).await;
    assert_eq!((moved.ending, codes(&moved), moved.counts.stale), (Ending::Incomplete, vec!["RW0610"], 1));
    assert!(room.state().last_applied.resources.is_empty());
    put(&room, "one\n");
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, outcome.counts), (Ending::Done, Counts { already: 1, ..Counts::default() }));
    room.fleet.with("a", |host| assert!(host.told.is_empty() && host.record.as_ref().unwrap().contains("/etc/x")));
    assert!(room.state().last_applied.resources.values().all(|applied| applied.adopted));
    assert_eq!((room.plan().nodes, room.gate.checked.lock().unwrap().len()), (vec![], 0));
    put(&room, "drifted\n");
    assert_eq!(room.plan().nodes[0].members()[0].reason, Reason::Drifted);
    assert_eq!(run(&room).await.ending, Ending::Done);
    room.wishes.clear();
    assert_eq!(run(&room).await.ending, Ending::Done);
    room.fleet.with("a", |host| assert_eq!(format!("{}{}", host.files["/etc/x"], host.files["/etc/y"]), "one\ntwo\n"));
    assert!(room.state().last_applied.resources.is_empty());
}

#[tokio::test]
async fn a_lost_connection_is_looked_into_and_never_taken_for_a_failure() {
    for fault in [Fault::LostBefore, Fault::LostAfter] {
        let room = two_files(&["a"]);
        room.fleet.fault("a", "write_file", fault);
        let outcome = run(&room).await;
        assert_eq!((outcome.ending, codes(&outcome)), (Ending::Done, vec![]), "{fault:?}");
        room.fleet.with("a", |host| assert_eq!(host.told.len(), 2, "{fault:?}"));
        let same = room.fleet.with("a", |host| host.tokens[0] == host.tokens[1]);
        assert_eq!(same, fault == Fault::LostBefore, "what may still run is found under its own token");
    }
    let room = two_files(&["a"]);
    room.fleet.fault("a", "write_file", Fault::LostBefore);
    room.fleet.fault("a", "write_file", Fault::LostBefore);
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Incomplete, vec!["RW0614"]));
}

#[tokio::test]
async fn a_step_that_goes_on_without_us_is_waited_for_and_not_begun_again() {
    let busy = super::Event::HostBusy { host: "a".to_owned() };
    let room = two_files(&["a"]);
    room.fleet.fault("a", "write_file", Fault::GoesOn);
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Done, vec![]));
    room.fleet.with("a", |host| assert_eq!(host.told, ["write_file", "write_file"], "one for each file"));
    assert_eq!(room.events.lock().unwrap().iter().filter(|event| **event == busy).count(), 1);
    // What an earlier run left running is waited for before anything is looked at.
    let room = two_files(&["a", "b"]);
    let plan = room.plan();
    let left = plan.nodes.iter().find_map(|node| match &node.kind {
        crate::plan::NodeKind::Change { actions, .. } => actions.first().cloned(),
        _ => None,
    });
    room.fleet.with("a", |host| host.running = left.clone().map(|action| (action, 3)));
    let outcome = apply(&plan, &room.context, room.sink()).await;
    assert_eq!((outcome.ending, outcome.counts.already), (Ending::Done, 1), "{:?}", outcome.problems);
    assert!(room.events.lock().unwrap().contains(&busy));
    // One that does not end costs its own host alone, and is named.
    let room = two_files(&["a", "b"]);
    room.fleet.with("b", |host| host.running = left.map(|action| (action, u32::MAX)));
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Incomplete, vec!["RW0627"]));
    room.fleet.with("a", |host| assert_eq!(host.told.len(), 2));
    room.fleet.with("b", |host| assert_eq!((host.told.len(), host.lock.clone()), (0, None)));
}

#[tokio::test]
async fn a_failure_says_what_the_host_said_and_a_lie_is_found_out() {
    let room = two_files(&["a"]);
    room.fleet.fault("a", "write_file", Fault::Fails);
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Failed, vec!["RW0612"]));
    assert!(outcome.problems[0].message.ends_with("it said: no such \u{fffd}[31mdevice"), "{}", outcome.problems[0].message);
    assert_eq!(resume(&room.context, Decisions::default(), room.sink()).await.ending, Ending::Done);
    room.fleet.with("a", |host| assert_ne!(host.tokens[0], host.tokens[1], "what has failed is begun anew"));
    let room = two_files(&["a"]);
    room.fleet.fault("a", "write_file", Fault::NoEffect);
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Failed, vec!["RW0613"]));
    assert_eq!(room.state().last_applied.resources.len(), 0);
}

#[tokio::test]
async fn a_failed_gate_stops_and_resume_goes_on_when_it_is_mended() {
    let room = two_files(&["a", "b"]);
    room.gate.bad.lock().unwrap().insert("a".into());
    let outcome = run(&room).await;
    assert_eq!(outcome.ending, Ending::Stopped);
    assert!(codes(&outcome).contains(&"RW0650"));
    room.fleet.with("b", |host| assert!(host.told.is_empty()));
    room.gate.bad.lock().unwrap().clear();
    let outcome = resume(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Done, vec![]));
    room.fleet.with("a", |host| assert_eq!(host.told.len(), 2, "nothing was done twice"));
    let nothing = resume(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!((nothing.ending, codes(&nothing)), (Ending::Refused, vec!["RW0623"]));
}

#[tokio::test]
async fn hosts_that_are_down_take_the_budget() {
    let mut room = full(&["a", "b"]);
    room.rollout.max_unavailable = 1;
    let plan = room.plan();
    room.fleet.with("b", |host| host.down_for = u32::MAX);
    let outcome = apply(&plan, &room.context, room.sink()).await;
    assert_eq!(outcome.ending, Ending::Stopped);
    assert_eq!(codes(&outcome), ["RW0401", "RW0620"]);
    room.fleet.with("a", |host| assert_eq!(host.boot, 0));
}

#[tokio::test]
async fn a_reboot_is_proven_or_named() {
    let short = std::time::Duration::from_millis(300);
    let mut room = full(&["a"]);
    room.context.patience.reboot = short;
    room.fleet.fault("a", "reboot", Fault::NoEffect);
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Failed, vec!["RW0616"]));
    let room = full(&["a"]);
    room.fleet.fault("a", "reboot", Fault::LostAfter);
    assert_eq!(run(&room).await.ending, Ending::Done, "a reboot cuts the connection");
    let mut room = full(&["a"]);
    room.context.patience.reboot = short;
    let plan = room.plan();
    let gone = room.fleet.clone();
    let sink = Arc::new(move |event| {
        if let super::Event::Rebooting { host } = event {
            gone.with(&host, |host| host.down_for = u32::MAX);
        }
    });
    let outcome = apply(&plan, &room.context, sink).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Incomplete, vec!["RW0617"]));
    room.fleet.with("a", |host| host.down_for = 0);
    room.context.patience.reboot = std::time::Duration::from_secs(300);
    let outcome = resume(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Done, vec![]));
    room.fleet.with("a", |host| assert_eq!(host.boot, 1, "the reboot that happened counts"));
}

#[tokio::test]
async fn plans_that_may_not_be_applied_change_nothing() {
    let room = two_files(&["a"]);
    let plan = room.plan();
    let refused = async |plan: &Plan, context: &super::Context| {
        let outcome = apply(plan, context, room.sink()).await;
        assert_eq!(outcome.ending, Ending::Refused);
        codes(&outcome)[0]
    };
    let sealed = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        changed.digest = file::digest(&changed).to_string();
        changed
    };
    let mut edited = plan.clone();
    edited.nodes[0].wave = 9;
    assert_eq!(refused(&edited, &room.context).await, "RW0602");
    let moved_spec = super::Context { spec_digest: Some(crate::base::Digest::of(&1)), ..room.context.clone() };
    assert_eq!(refused(&plan, &moved_spec).await, "RW0603");
    let moved_state = sealed(&|plan| plan.state_digest = crate::base::Digest::of(&1));
    assert_eq!(refused(&moved_state, &room.context).await, "RW0604");
    let ringed = sealed(&|plan| plan.nodes[0].after = vec![plan.nodes[1].id.clone()]);
    assert_eq!(refused(&ringed, &room.context).await, "RW0605");
    let drained = sealed(&|plan| plan.nodes[0].kind = NodeKind::Drain);
    assert_eq!(refused(&drained, &room.context).await, "RW0607");
    let switch = sealed(&|plan| plan.nodes[0].target = Some("switch/leaf1".parse().unwrap()));
    assert_eq!(refused(&switch, &room.context).await, "RW0607");
    let cut = sealed(&|plan| {
        if let NodeKind::Change { interrupts_netdev, .. } = &mut plan.nodes[0].kind {
            *interrupts_netdev = Some("ens3".into());
        }
    });
    room.fleet.with("a", |host| host.ssh_netdev = Some("ens3".into()));
    assert_eq!(refused(&cut, &room.context).await, "RW0606");
    room.fleet.with("a", |host| assert_eq!((&host.lock, host.told.len()), (&None, 0)));
}

#[tokio::test]
async fn two_at_once_and_locks_that_the_dead_left() {
    let room = two_files(&["a"]);
    let other = ClusterLock::take(&room.context.folder, "apply").unwrap();
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Refused, vec!["RW0704"]));
    let dead = other.holder.line();
    drop(other);
    let elsewhere = dead.replace(&room.context.folder.identity().unwrap(), "another-folder");
    room.fleet.with("a", |host| (host.lock, host.fence) = (Some(elsewhere), 41));
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Refused, vec!["RW0608"]));
    room.fleet.with("a", |host| host.lock = Some(dead));
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Done, vec![]));
    assert!(outcome.run.unwrap().starts_with("r0042-"), "the fence goes beyond what the host has seen");
}

#[tokio::test]
async fn one_host_cannot_use_up_the_numbers_of_all() {
    let room = two_files(&["a", "b"]);
    room.fleet.with("a", |host| host.fence = u64::MAX);
    let outcome = run(&room).await;
    assert!(codes(&outcome).contains(&"RW0615") && outcome.ending != Ending::Refused, "{:?}", outcome.problems);
    assert!(outcome.run.unwrap().starts_with("r0001-"));
    assert!(room.fleet.with("b", |host| host.fence) <= 2, "b counts on as before");
    room.fleet.with("a", |host| host.fence = 0);
    assert_eq!(run(&room).await.ending, Ending::Done);
}

#[tokio::test]
async fn the_first_interrupt_finishes_what_runs_and_resume_does_the_rest() {
    let room = full(&["a", "b"]);
    let plan = room.plan();
    let interrupt = room.interrupt.clone();
    let sink = Arc::new(move |event| {
        if matches!(event, super::Event::ActionStarted { .. }) {
            interrupt.send_modify(|count| *count = 1);
        }
    });
    let outcome = apply(&plan, &room.context, sink).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Interrupted, vec!["RW0621"]));
    assert_eq!((outcome.counts.done, outcome.counts.skipped), (1, 7));
    room.interrupt.send_modify(|count| *count = 0);
    let outcome = resume(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Done, vec![]));
    assert_eq!(room.plan().nodes, []);
}

#[tokio::test]
async fn the_second_interrupt_waits_for_nothing_and_what_ran_is_unknown() {
    let room = full(&["a"]);
    let plan = room.plan();
    let (interrupt, fleet) = (room.interrupt.clone(), room.fleet.clone());
    let sink = Arc::new(move |event| {
        if let super::Event::Rebooting { host } = event {
            fleet.with(&host, |host| host.down_for = u32::MAX);
            interrupt.send_modify(|count| *count = 2);
        }
    });
    let outcome = apply(&plan, &room.context, sink).await;
    assert_eq!(outcome.ending, Ending::Interrupted);
    assert!(outcome.outcomes.iter().any(|(id, o)| id == "host/a/reboot" && matches!(o, Outcome::Unknown { .. })));
}

#[tokio::test]
async fn a_newer_record_on_the_host_wins() {
    let room = two_files(&["a"]);
    assert_eq!(run(&room).await.ending, Ending::Done);
    let elsewhere = two_files(&["a"]);
    *elsewhere.fleet.hosts.lock().unwrap() = room.fleet.hosts.lock().unwrap().clone();
    elsewhere.fleet.with("a", |host| host.files.insert("/etc/x".into(), "drifted\n".into()));
    let outcome = run(&elsewhere).await;
    assert_eq!((outcome.ending, codes(&outcome)), (Ending::Done, vec![]));
    let (ours, theirs) = (room.state().last_applied, elsewhere.state().last_applied);
    assert_eq!(theirs.resources.len(), 2, "the second file is known from the host's record alone");
    let x = "host/a/file/%2Fetc%2Fx".parse().unwrap();
    assert_eq!(theirs.resources[&x].before, ours.resources[&x].before, "before our first change, not before theirs");
}

#[tokio::test]
async fn held_steps_leave_the_run_incomplete() {
    let mut room = full(&["a"]);
    room.rollout.max_disruption = Disruption::LinkBlip;
    let outcome = run(&room).await;
    assert_eq!((outcome.ending, outcome.counts.held, outcome.counts.done), (Ending::Incomplete, 1, 2));
    room.fleet.with("a", |host| assert_eq!(host.boot, 0));
}

/// Dies after so many writes: nothing is written any more, and nothing reaches the fleet.
struct Mortal {
    inner: Box<dyn JournalStore>,
    left: Arc<Mutex<i64>>,
    dead: Arc<Mutex<bool>>,
    torn: bool,
}

impl JournalStore for Mortal {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let mut left = self.left.lock().unwrap();
            *left -= 1;
            if *left < 0 {
                if !*self.dead.lock().unwrap() && self.torn {
                    self.inner.append(&line[..line.len() / 2])?;
                }
                *self.dead.lock().unwrap() = true;
                return Err(io::Error::other("killed"));
            }
            self.inner.append(line)?;
        }
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        self.inner.sync()
    }
}

fn end_of(room: &Room) -> (BTreeMap<String, Host>, State) {
    let mut hosts = room.fleet.hosts.lock().unwrap().clone();
    for host in hosts.values_mut() {
        // How often something was told, when, and under which number may differ; what came of it may not.
        (host.told, host.tokens, host.record, host.fence, host.down_for) = (Vec::new(), Vec::new(), None, 0, 0);
    }
    let mut state = room.state();
    (state.serial, state.absorbed) = (0, None);
    state.host_serials.clear();
    state.last_applied.resources.values_mut().for_each(|applied| (applied.at, applied.run) = (String::new(), String::new()));
    (hosts, state)
}

fn small() -> Room {
    let room = full(&["a", "b"]);
    room.fleet.with("a", |host| host.files.insert("/etc/x".into(), "before\n".into()));
    room.fleet.with("b", |host| host.sysctls.insert("net.a".into(), "3".into()));
    room
}

/// One run that dies before the record with this number is written, and everything that somebody would do after it.
async fn crash_at(at: i64) -> (ApplyOutcome, (BTreeMap<String, Host>, State)) {
    let room = small();
    let plan = room.plan();
    let dead = room.fleet.dead.clone();
    let left = Arc::new(Mutex::new(at));
    let (killer, deaths) = (left.clone(), dead.clone());
    let kill = move |inner: Box<dyn JournalStore>| -> Box<dyn JournalStore> {
        Box::new(Mortal { inner, left: killer.clone(), dead: deaths.clone(), torn: at % 2 == 1 })
    };
    let first = apply_through(&plan, &room.context, room.sink(), &kill).await;
    assert_ne!(first.ending, Ending::Done, "it did not die at record {at}");
    *dead.lock().unwrap() = false;
    // A second crash, in the resumed part, must not matter either.
    *left.lock().unwrap() = 7;
    let mut last = resume_through(&room.context, Decisions::default(), room.sink(), &kill).await;
    *dead.lock().unwrap() = false;
    if last.ending != Ending::Done && codes(&last) != ["RW0623"] {
        last = resume(&room.context, Decisions::default(), room.sink()).await;
    }
    if codes(&last) == ["RW0623"] {
        // It died before its first record, so nothing was done and the plan is made as if it were new; or it was through.
        last = run(&room).await;
    }
    (last, end_of(&room))
}

/// Law 3: a crash at any journal record, then resume, gives the same targets and the same state as no crash.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_crash_at_any_record_and_resume_is_as_no_crash() {
    let whole = small();
    let outcome = run(&whole).await;
    assert_eq!(outcome.ending, Ending::Done);
    let records = whole.context.folder.read_journal(&outcome.run.unwrap()).unwrap().records.len();
    let mut tasks = tokio::task::JoinSet::new();
    for at in 0..records {
        tasks.spawn(async move { (at, crash_at(i64::try_from(at).unwrap()).await) });
    }
    let expected = end_of(&whole);
    while let Some(joined) = tasks.join_next().await {
        let (at, (last, end)) = joined.unwrap();
        assert_eq!((last.ending, codes(&last)), (Ending::Done, vec![]), "crash at record {at}");
        assert_eq!(end, expected, "crash at record {at}");
    }
}
