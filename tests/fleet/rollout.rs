//! Windows, deadlines, orders, locks and the status of a run, against a simulated fleet whose gate
//! acts in the middle of it.

use crate::room::{Room, codes};
use jiff::Timestamp;
use railwright_apply::lock_steal::{self, HostLock, Stolen};
use railwright_apply::status::{
    GateState, HostState, RolloutStatus, RunPhase, compute_rollout_status,
};
use railwright_apply::steps::build_steps;
use railwright_apply::{
    ApplyOutcome, Context, Decisions, DesiredSpec, EventSink, GateResult, Gatekeeper, Past,
    RunEvent, RunExitClass, apply_plan, resume_run,
};
use railwright_base::{Diagnostic, Digest};
use railwright_knowledge::spec::window::Window;
use railwright_plan::{DrainPolicy, PlanSelection, RolloutPolicy};
use railwright_resource::Disruption;
use railwright_state::{
    ClusterLock, JournalEntry, LocalLock, NodeOutcome, OrderKind, Skip, run_status,
};
use railwright_system::clock::Clock;
use railwright_transport::BoxFuture;
use railwright_transport::sim::SimulatedTrouble;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Act = Box<dyn Fn() + Send + Sync>;

/// The first time that it is asked it does something, and waits until the run has noticed.
struct Acting {
    asked: AtomicBool,
    act: Act,
    noticed: fn(&RunEvent) -> bool,
    events: Arc<Mutex<Vec<RunEvent>>>,
}

impl Gatekeeper for Acting {
    fn check<'a>(&'a self, _: &'a [String], _: &'a [String]) -> BoxFuture<'a, GateResult> {
        Box::pin(async move {
            if !self.asked.swap(true, Ordering::SeqCst) {
                (self.act)();
                let mut looks = 0;
                while !self.events.lock().unwrap().iter().any(self.noticed) {
                    looks += 1;
                    assert!(looks < 20_000, "the run does not notice");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
            GateResult::default()
        })
    }
}

/// A file and a kernel parameter that needs a reboot, on each host.
fn room(hosts: &[&str]) -> Room {
    Room::of(hosts)
        .resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[])
        .resource(
            "kernel_parameter",
            json!({ "parameter": "iommu", "value": "pt" }),
            &["file/%2Fetc%2Fx"],
        )
}

fn acting(room: &mut Room, noticed: fn(&RunEvent) -> bool, act: impl Fn() + Send + Sync + 'static) {
    room.context.gatekeeper = Arc::new(Acting {
        asked: AtomicBool::new(false),
        act: Box::new(act),
        noticed,
        events: room.events.clone(),
    });
}

fn always(_: &RunEvent) -> bool {
    true
}

/// A clock that stands at a moment.
fn clock(room: &mut Room, at: &str) -> Arc<AtomicI64> {
    let seconds = Arc::new(AtomicI64::new(second(at)));
    room.context.clock = Clock::Set(seconds.clone());
    seconds
}

fn second(at: &str) -> i64 {
    at.parse::<Timestamp>().unwrap().as_second()
}

fn nightly(room: &mut Room) {
    room.rollout.windows = vec![Window {
        days: vec![],
        from: "22:00".into(),
        lasts: "2h".into(),
        zone: "UTC".into(),
    }];
    room.rollout.windows_for = Some(Disruption::LinkBlip);
}

async fn run(room: &Room) -> ApplyOutcome {
    apply_plan(&room.plan().await, &room.context, room.sink()).await
}

fn skipped(outcome: &ApplyOutcome, because: &Skip) -> usize {
    outcome
        .outcomes
        .iter()
        .filter(|(_, o)| matches!(o, NodeOutcome::Skipped { because: why } if why == because))
        .count()
}

fn status_of(room: &Room) -> RolloutStatus {
    let folder = &room.context.folder;
    let run = folder.newest_run().unwrap().unwrap();
    let plan = folder.read_plan(&run).unwrap();
    let records = folder.read_journal(&run).unwrap().records;
    let live = ClusterLock::is_held(folder).unwrap();
    compute_rollout_status(
        &plan,
        &build_steps(&plan).unwrap(),
        &run_status::fold_journal_records(&records),
        live,
        &Past::default(),
    )
}

#[tokio::test(start_paused = true)]
async fn outside_of_every_window_nothing_is_changed_and_the_next_one_is_named() {
    let mut room = room(&["a"]);
    nightly(&mut room);
    let now = clock(&mut room, "2026-01-01T12:00:00Z");
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Refused, vec!["RW0628"])
    );
    let next = outcome.problems[0].next.join("\n");
    assert!(
        next.contains("from Thu 2026-01-01 22:00 UTC on: run the same command again"),
        "{next}"
    );
    room.host("a", |host| {
        assert!(host.told.is_empty() && host.holder().is_none() && host.lock.highest == 0)
    });
    assert_eq!(room.context.folder.newest_run().unwrap(), None);
    now.store(second("2026-01-01T22:00:00Z"), Ordering::SeqCst);
    let inside = run(&room).await;
    assert_eq!(
        (inside.ending, inside.problems),
        (RunExitClass::Done, vec![])
    );
    // What disturbs nobody needs no window.
    let mut quiet =
        Room::of(&["a"]).resource("file", json!({ "path": "/etc/x", "content": "one\n" }), &[]);
    nightly(&mut quiet);
    clock(&mut quiet, "2026-01-01T12:00:00Z");
    assert_eq!(run(&quiet).await.ending, RunExitClass::Done);
}

#[tokio::test(start_paused = true)]
async fn a_window_that_closes_ends_the_run_and_the_next_one_goes_on_with_it() {
    let mut room = room(&["a", "b", "c"]);
    nightly(&mut room);
    let now = clock(&mut room, "2026-01-01T22:00:00Z");
    let closing = now.clone();
    let is_halt = |event: &RunEvent| {
        matches!(
            event,
            RunEvent::Halted {
                because: Skip::Window,
                ..
            }
        )
    };
    acting(&mut room, is_halt, move || {
        closing.store(second("2026-01-02T00:00:00Z"), Ordering::SeqCst)
    });
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Incomplete, vec!["RW0629"])
    );
    assert_eq!(
        skipped(&outcome, &Skip::Window),
        7,
        "three steps on b and on c, and their gate"
    );
    let next = outcome.problems[0].next.join("\n");
    assert!(
        next.contains("from Fri 2026-01-02 22:00 UTC on: railwright resume"),
        "{next}"
    );
    room.host("b", |host| assert!(host.told.is_empty(), "{:?}", host.told));
    let refused = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (refused.ending, codes(&refused)),
        (RunExitClass::Refused, vec!["RW0628"])
    );
    now.store(second("2026-01-02T23:00:00Z"), Ordering::SeqCst);
    let resumed = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(
        (resumed.ending, codes(&resumed)),
        (RunExitClass::Done, vec![])
    );
    room.host("a", |host| {
        assert_eq!(host.boot, 1, "what was done is not done again")
    });
}

#[tokio::test(start_paused = true)]
async fn a_window_that_closes_while_the_hosts_are_reached_is_closed_for_the_first_step() {
    let mut room = room(&["a"]);
    nightly(&mut room);
    let now = clock(&mut room, "2026-01-01T22:00:00Z");
    let events = room.events.clone();
    let sink = Arc::new(move |event| {
        if matches!(event, RunEvent::HostReady { .. }) {
            now.store(second("2026-01-02T00:00:00Z"), Ordering::SeqCst);
        }
        events.lock().unwrap().push(event);
    });
    let outcome = apply_plan(&room.plan().await, &room.context, sink).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Incomplete, vec!["RW0629"])
    );
    room.host("a", |host| {
        assert!(
            host.told.is_empty() && host.holder().is_none(),
            "{:?}",
            host.told
        )
    });
}

#[tokio::test(start_paused = true)]
async fn a_deadline_counts_from_the_beginning_of_each_part_of_the_run() {
    let mut room = room(&["a", "b"]);
    room.rollout.deadline_s = Some(3600);
    let now = clock(&mut room, "2026-01-01T00:00:00Z");
    let late = now.clone();
    let is_halt = |event: &RunEvent| {
        matches!(
            event,
            RunEvent::Halted {
                because: Skip::Deadline,
                ..
            }
        )
    };
    acting(&mut room, is_halt, move || {
        late.store(second("2026-01-01T01:00:00Z"), Ordering::SeqCst)
    });
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Incomplete, vec!["RW0630"])
    );
    assert!(
        outcome.problems[0].message.contains("after 1 h"),
        "{}",
        outcome.problems[0].message
    );
    assert_eq!(
        resume_run(&room.context, Decisions::default(), room.sink())
            .await
            .ending,
        RunExitClass::Done
    );
}

#[tokio::test(start_paused = true)]
async fn a_paused_run_begins_nothing_until_it_is_told_to_go_on_and_its_journal_says_so() {
    let mut room = room(&["a", "b"]);
    let folder = room.context.folder.clone();
    assert_eq!(
        folder.order(OrderKind::Pause).unwrap_err().code,
        "RW0710",
        "nothing runs"
    );
    let paused = folder.clone();
    let is_order = |event: &RunEvent| matches!(event, RunEvent::Ordered { .. });
    acting(&mut room, is_order, move || {
        drop(paused.order(OrderKind::Pause).unwrap())
    });
    let room = Arc::new(room);
    let running = tokio::spawn({
        let room = room.clone();
        async move { run(&room).await }
    });
    while !room
        .events
        .lock()
        .unwrap()
        .iter()
        .any(|event| matches!(event, RunEvent::GateFinished { .. }))
    {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let seen = status_of(&room);
    assert_eq!(
        (
            seen.life,
            seen.waves[0]
                .hosts
                .get(&HostState::Done)
                .map(String::as_str)
        ),
        (RunPhase::Paused, Some("a"))
    );
    assert_eq!(
        (
            seen.waves[1]
                .hosts
                .get(&HostState::Waiting)
                .map(String::as_str),
            &seen.waves[1].gate
        ),
        (Some("b"), &GateState::Waiting)
    );
    assert!(
        LocalLock::read(&folder)
            .unwrap()
            .is_some_and(|lock| lock.holder.starts_with("apply by "))
    );
    folder.order(OrderKind::Continue).unwrap();
    assert_eq!(running.await.unwrap().ending, RunExitClass::Done);
    let events = room.events.lock().unwrap();
    let at = |desired: &dyn Fn(&RunEvent) -> bool| events.iter().position(desired).unwrap();
    let pause = at(&|event| {
        matches!(
            event,
            RunEvent::Ordered {
                order: OrderKind::Pause,
                ..
            }
        )
    });
    let go_on = at(&|event| {
        matches!(
            event,
            RunEvent::Ordered {
                order: OrderKind::Continue,
                ..
            }
        )
    });
    assert!(
        !events[pause..go_on]
            .iter()
            .any(|event| matches!(event, RunEvent::StepStarted { .. }))
    );
    let records = folder.read_journal(&seen.run).unwrap().records;
    assert_eq!(
        records
            .iter()
            .filter(|record| matches!(record.entry, JournalEntry::Ordered { .. }))
            .count(),
        2
    );
}

/// Orders the run to end when its first host is reached and when it begins, and then to go on; with
/// what came of it.
fn aborting(room: &Room) -> (EventSink, Arc<Mutex<Vec<Option<String>>>>) {
    let (folder, events, answers) = (
        room.context.folder.clone(),
        room.events.clone(),
        Arc::new(Mutex::default()),
    );
    let kept: Arc<Mutex<Vec<Option<String>>>> = answers.clone();
    let sink = move |event: RunEvent| {
        let is_first =
            matches!(event, RunEvent::HostReady { .. }) && kept.lock().unwrap().is_empty();
        let order = |order| {
            let refused = folder.order(order).err();
            refused.map(|refused| refused.code.to_string())
        };
        if is_first {
            kept.lock().unwrap().push(order(OrderKind::Abort));
        }
        if matches!(event, RunEvent::RunStarted { .. }) {
            let answers = [OrderKind::Abort, OrderKind::Continue].map(order);
            kept.lock().unwrap().extend(answers);
        }
        events.lock().unwrap().push(event);
    };
    (Arc::new(sink), answers)
}

#[tokio::test(start_paused = true)]
async fn an_order_is_refused_until_the_hosts_are_reached_and_taken_from_then_on() {
    let room = room(&["a", "b"]);
    let is_begun = || {
        room.events
            .lock()
            .unwrap()
            .iter()
            .any(|event| matches!(event, RunEvent::StepStarted { .. }))
    };
    room.dies_when(&room.plan().await, is_begun).await;
    let refused = || Some("RW0710".to_owned());
    let answered = || vec![refused(), None, refused()];
    // The run that was cut off is no run that goes on.
    let plan = room.plan().await;
    let (sink, answers) = aborting(&room);
    let begun = apply_plan(&plan, &room.context, sink).await;
    assert_eq!(
        (begun.ending, answers.lock().unwrap().clone()),
        (RunExitClass::Interrupted, answered())
    );
    let (sink, answers) = aborting(&room);
    let resumed = resume_run(&room.context, Decisions::default(), sink).await;
    assert_eq!(
        (resumed.ending, answers.lock().unwrap().clone()),
        (RunExitClass::Interrupted, answered())
    );
    room.host("b", |host| assert!(host.told.is_empty()));
    assert_eq!(
        resume_run(&room.context, Decisions::default(), room.sink())
            .await
            .ending,
        RunExitClass::Done,
        "an order is for one part of a run"
    );
}

#[tokio::test(start_paused = true)]
async fn an_aborted_run_finishes_what_it_does_and_is_resumed() {
    let mut room = room(&["a", "b"]);
    let folder = room.context.folder.clone();
    let told = move || {
        folder.order(OrderKind::Abort).unwrap();
        assert_eq!(
            folder.order(OrderKind::Pause).unwrap_err().code,
            "RW0710",
            "a later order does not take it back"
        );
        folder.order(OrderKind::Abort).unwrap();
    };
    acting(
        &mut room,
        |event| matches!(event, RunEvent::Interrupted { .. }),
        told,
    );
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Interrupted, vec!["RW0621"])
    );
    room.host("b", |host| assert!(host.told.is_empty()));
    // A freeze that was declared since holds for what is left; so does its end.
    let frozen = Window {
        days: vec![],
        from: "22:00".into(),
        lasts: "1h".into(),
        zone: "UTC".into(),
    };
    let now = |windows: Vec<Window>| {
        let rollout = RolloutPolicy {
            windows,
            windows_for: Some(Disruption::None),
            ..room.rollout.clone()
        };
        let clock = Clock::Set(Arc::new(AtomicI64::new(second("2026-01-05T12:00:00Z"))));
        Context {
            clock,
            desired: Some(Arc::new(DesiredSpec {
                rollout,
                ..DesiredSpec::default()
            })),
            ..room.context.clone()
        }
    };
    assert_eq!(
        codes(&resume_run(&now(vec![frozen]), Decisions::default(), room.sink()).await),
        ["RW0628"]
    );
    room.host("b", |host| assert!(host.told.is_empty()));
    let resumed = resume_run(&now(vec![]), Decisions::default(), room.sink()).await;
    assert_eq!(
        resumed.ending,
        RunExitClass::Done,
        "the order was for the part that it ended"
    );
}

/// Whoever stops a run because it hurts, and narrows its limits, says `resume` next.
#[tokio::test(start_paused = true)]
async fn a_resumed_run_goes_no_further_than_the_spec_of_now_allows() {
    let mut room = room(&["a", "b", "c"]);
    room.rollout.max_unavailable = 2;
    let two_checks = Digest::of_bytes(b"two checks");
    room.modules.insert("story".to_owned(), two_checks);
    let folder = room.context.folder.clone();
    acting(
        &mut room,
        |event| matches!(event, RunEvent::Interrupted { .. }),
        move || drop(folder.order(OrderKind::Abort).unwrap()),
    );
    assert_eq!(run(&room).await.ending, RunExitClass::Interrupted);
    let resume = async |rollout: RolloutPolicy, modules: BTreeMap<String, Digest>| {
        let spec = DesiredSpec {
            rollout,
            modules,
            ..DesiredSpec::default()
        };
        let context = Context {
            desired: Some(Arc::new(spec)),
            ..room.context.clone()
        };
        resume_run(&context, Decisions::default(), room.sink()).await
    };
    type Edit<'e> = &'e dyn Fn(&mut RolloutPolicy);
    let resumed = async |narrow: Edit| {
        let mut rollout = room.rollout.clone();
        narrow(&mut rollout);
        resume(rollout, room.modules.clone()).await
    };
    let edited = [("story".to_owned(), Digest::of_bytes(b"one check"))].into();
    for modules in [edited, BTreeMap::new()] {
        let outcome = resume(room.rollout.clone(), modules).await;
        assert_eq!(codes(&outcome), ["RW0661"]);
        assert!(outcome.problems[0].message.contains("the module story"));
    }
    let narrower: [(&str, Edit); 4] = [
        ("max_unavailable", &|now| now.max_unavailable = 1),
        ("failure_budget", &|now| now.failure_budget = Some(1)),
        ("max_disruption", &|now| {
            now.max_disruption = Disruption::None
        }),
        ("rollout.drain", &|now| {
            now.drain = Some(DrainPolicy {
                from: Disruption::None,
                evict: false,
                timeout_s: 1,
                evict_unmanaged: false,
                delete_local_data: false,
            });
        }),
    ];
    for (name, narrow) in narrower {
        let outcome = resumed(narrow).await;
        assert_eq!(codes(&outcome), ["RW0661"], "{name}");
        assert!(outcome.problems[0].message.contains(name), "{name}");
        room.host("c", |host| assert!(host.told.is_empty(), "{name}"));
    }
    let wider = resumed(&|now| now.max_unavailable = 3).await;
    assert_eq!(wider.ending, RunExitClass::Done);
}

#[tokio::test(start_paused = true)]
async fn a_status_tells_the_same_while_it_runs_and_afterwards_from_the_journal_alone() {
    let mut room = room(&["a", "b", "c"]);
    let seen: Arc<Mutex<Option<RolloutStatus>>> = Arc::default();
    let folder = room.context.folder.clone();
    let keep = seen.clone();
    acting(&mut room, always, move || {
        let run = folder.newest_run().unwrap().unwrap();
        let plan = folder.read_plan(&run).unwrap();
        // The record of the gate's beginning is noted, not waited for.
        let mut found;
        loop {
            found = run_status::fold_journal_records(&folder.read_journal(&run).unwrap().records);
            if found.gates.contains_key("gate/0") {
                break;
            }
            std::thread::yield_now();
        }
        *keep.lock().unwrap() = Some(compute_rollout_status(
            &plan,
            &build_steps(&plan).unwrap(),
            &found,
            true,
            &Past::default(),
        ));
    });
    room.fault("c", "write_file", SimulatedTrouble::Fails);
    let outcome = run(&room).await;
    assert_eq!(outcome.ending, RunExitClass::Failed);
    let during = seen.lock().unwrap().clone().unwrap();
    assert_eq!(
        (during.life, during.steps_over, during.steps),
        (RunPhase::Running, 3, 9)
    );
    assert!(matches!(during.waves[0].gate, GateState::Checking { .. }));
    assert_eq!(
        (
            during.unavailable.as_str(),
            during.unavailable_count,
            during.max_unavailable
        ),
        ("a", 1, 2)
    );
    assert_eq!(
        during.waves[1].hosts,
        [(HostState::Waiting, "b,c".to_owned())].into()
    );
    assert_eq!(
        during
            .active
            .iter()
            .map(|note| note.node.as_str())
            .collect::<Vec<_>>(),
        ["gate/0"]
    );
    let after = status_of(&room);
    assert_eq!(
        (
            after.life,
            after.ending.as_deref(),
            after.lost.as_str(),
            after.unavailable.as_str()
        ),
        (RunPhase::Over, Some("failed"), "c", "c")
    );
    assert_eq!(
        after.waves[1].hosts,
        [
            (HostState::Failed, "c".to_owned()),
            (HostState::Done, "b".to_owned())
        ]
        .into()
    );
    assert!(
        after.failed[0]
            .what
            .starts_with("failed: write_file ended with exit status 1"),
        "{:?}",
        after.failed
    );
    assert!(matches!(
        (&after.waves[0].gate, &after.waves[1].gate),
        (GateState::Passed { .. }, GateState::Passed { .. })
    ));
}

fn other(process: u32) -> String {
    format!(
        r#"{{"who":"bob","machine":"ops2","machine_id":"m2","boot_id":"b","pid_namespace":"pid:[1]","process":{process},"started":1,"since":"2026-01-01T00:00:00Z","command":"apply","taking":"t"}}"#
    )
}

#[tokio::test(start_paused = true)]
async fn a_host_whose_lock_was_taken_away_is_left_alone() {
    let mut room = room(&["a", "b"]);
    room.context.patience.heartbeat = Duration::ZERO;
    let fleet = room.fleet.clone();
    let note = Arc::new(Mutex::new(None));
    let told = note.clone();
    acting(&mut room, always, move || {
        let now = fleet.now();
        fleet
            .with("b", |host| host.hold(&other(1), 40, 0, now))
            .unwrap();
        *told.lock().unwrap() = fleet
            .with("a", |host| host.lock.held.clone().map(|held| held.note))
            .unwrap();
    });
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Incomplete, vec!["RW0631"])
    );
    assert!(
        note.lock()
            .unwrap()
            .as_ref()
            .unwrap()
            .starts_with("run r0001-"),
        "the host knows which run has its lock"
    );
    assert!(
        outcome.problems[0]
            .message
            .contains("apply by bob on ops2 (process 1)"),
        "{}",
        outcome.problems[0].message
    );
    room.host("b", |host| {
        assert!(
            host.told.is_empty() && host.holder() == Some(other(1).as_str()),
            "{:?}",
            host.told
        )
    });
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_robbed_of_the_clusters_lock_writes_no_journal_and_does_nothing_more() {
    let mut room = room(&["a", "b"]);
    let folder = room.context.folder.clone();
    let thief = Arc::new(Mutex::new(None));
    let taken = thief.clone();
    acting(&mut room, always, move || {
        assert_eq!(
            ClusterLock::take_away(&folder, "lock steal", false)
                .unwrap_err()
                .code,
            "RW0711",
            "it lives"
        );
        *taken.lock().unwrap() = Some(ClusterLock::take_away(&folder, "lock steal", true).unwrap());
    });
    let outcome = run(&room).await;
    let lost = |problem: &&Diagnostic| problem.code == "RW0709";
    let told = outcome.problems.iter().find(lost).unwrap();
    assert!(
        told.message.contains("or the state folder was removed"),
        "{told:?}"
    );
    room.host("b", |host| assert!(host.told.is_empty(), "{:?}", host.told));
    let (lock, from) = thief.lock().unwrap().take().unwrap();
    assert!(from.unwrap().starts_with("apply by "));
    drop(lock);
    let resumed = resume_run(&room.context, Decisions::default(), room.sink()).await;
    assert_eq!(resumed.ending, RunExitClass::Done);
}

#[tokio::test(start_paused = true)]
async fn locks_of_the_dead_are_taken_away_with_a_reason_and_those_of_the_living_only_by_force() {
    let room = room(&["a", "b", "c"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    // The hosts were booted by the run: none could have been silent for longer than it is up.
    tokio::time::sleep(Duration::from_secs(300)).await;
    for (host, age) in [("a", 10), ("b", 200)] {
        let now = room.fleet.now();
        room.host(host, |host| host.hold(&other(1), 40, age, now));
    }
    let hosts: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
    let found = lock_steal::list_host_locks(&hosts, &room.context).await;
    assert!(
        matches!(&found["a"], HostLock::Held(held) if held.may_be_alive() && held.describe().starts_with("apply by bob on ops2"))
    );
    assert!(
        matches!((&found["b"], &found["c"]), (HostLock::Held(held), HostLock::Free) if !held.may_be_alive() && held.fence == 40)
    );
    let stolen = lock_steal::steal_locks(&hosts, "ops2 burned down", false, &room.context)
        .await
        .unwrap();
    assert!(
        matches!(
            (&stolen["a"], &stolen["b"], &stolen["c"]),
            (Stolen::MayBeAlive(_), Stolen::Taken(_), Stolen::Free)
        ),
        "{stolen:?}"
    );
    room.host("a", |host| {
        assert_eq!(
            (host.holder(), host.lock.highest),
            (Some(other(1).as_str()), 40)
        )
    });
    room.host("b", |host| {
        assert_eq!((host.holder(), host.lock.highest), (None, 41))
    });
    let journal = room
        .context
        .folder
        .read_journal(&room.context.folder.newest_run().unwrap().unwrap())
        .unwrap();
    let Some(JournalEntry::LockStolen {
        reason,
        hosts: robbed,
        fence,
        ..
    }) = journal.records.last().map(|record| &record.entry)
    else {
        panic!("{:?}", journal.records.last())
    };
    let ours = room.context.folder.fence().unwrap();
    assert_eq!(
        (reason.as_str(), robbed.as_slice(), *fence),
        ("ops2 burned down", ["b".to_owned()].as_slice(), ours)
    );
    let forced = lock_steal::steal_locks(&hosts, "now", true, &room.context)
        .await
        .unwrap();
    assert!(matches!(forced["a"], Stolen::Taken(_)));
}

/// One host says that it has seen the last number there is, and that a process holds its lock which
/// is dead.
#[tokio::test(start_paused = true)]
async fn a_host_that_names_an_endless_number_locks_nobody_out() {
    let room = room(&["a", "b"]);
    assert_eq!(run(&room).await.ending, RunExitClass::Done);
    tokio::time::sleep(Duration::from_secs(400)).await;
    for (host, number) in [("a", u64::MAX - 1), ("b", 40)] {
        let now = room.fleet.now();
        room.host(host, |host| host.hold(&other(1), number, 300, now));
    }
    let hosts: Vec<String> = ["a", "b"].map(str::to_owned).into();
    for force in [false, true] {
        let stolen = lock_steal::steal_locks(&hosts, "ops2 burned down", force, &room.context)
            .await
            .unwrap();
        assert!(
            matches!(&stolen["a"], Stolen::Unknown { reason } if reason.contains("higher than any number of runs")),
            "{stolen:?}"
        );
        assert_eq!(
            matches!(stolen["b"], Stolen::Taken(_)),
            !force,
            "{stolen:?}"
        );
    }
    room.host("b", |host| {
        assert_eq!((host.holder(), host.lock.highest), (None, 41))
    });
    assert!(
        room.context.folder.fence().unwrap() < 100,
        "there are numbers left"
    );
    // Nor does a run, which leaves the host alone where nobody has its lock.
    room.host("a", |host| host.lock.held = None);
    for host in ["a", "b"] {
        room.put(host, "/etc/x", "by hand\n");
    }
    let outcome = run(&room).await;
    assert!(
        format!("{:?}", outcome.problems).contains("higher than any number of runs"),
        "{:?}",
        outcome.problems
    );
    assert!(
        room.context.folder.fence().unwrap() < 100,
        "there are numbers left"
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_names_high_numbers_raises_its_own_alone() {
    let mut room = room(&["a", "b"]);
    let highest = |room: &Room, host: &str| room.host(host, |host| host.lock.highest);
    for n in 1..=3u32 {
        // As far ahead as is believed, again and again.
        room.host("a", |host| host.lock.highest += 999_000);
        for host in ["a", "b"] {
            room.put(host, "/etc/x", &format!("{n}\n"));
        }
        run(&room).await;
        assert!(
            room.context.folder.fence().unwrap() < 100 && highest(&room, "b") < 100,
            "{n}"
        );
    }
    assert!(highest(&room, "a") > 1_000_000);
    // What is believed of it depends on no folder: only this host cannot be worked on, also once
    // the folder is lost.
    std::fs::remove_dir_all(room.context.folder.path()).unwrap();
    room = room.resource("file", json!({ "path": "/etc/y", "content": "y\n" }), &[]);
    let refused = run(&room).await;
    assert_eq!(
        (refused.ending, codes(&refused)),
        (RunExitClass::Refused, vec!["RW0615", "RW0604"])
    );
    let excluded = PlanSelection {
        targets: Vec::new(),
        excludes: vec!["host/a".to_owned()],
    };
    let outcome = apply_plan(
        &room.narrowed_plan(excluded).await,
        &room.context,
        room.sink(),
    )
    .await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
}
