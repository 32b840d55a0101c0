//! A power cycle is done by hand: the run ends as one that waits, and `resume` proves it and goes
//! on.

use crate::drains::emptied;
use crate::out_of_service::{After, goes_down, with_disruption};
use crate::room::{NEVER, Room, codes, machine_id};
use jiff::Timestamp;
use railwright_apply::status::{GateState, HostState, RolloutStatus, compute_rollout_status};
use railwright_apply::steps::build_steps;
use railwright_apply::{
    ApplyOutcome, Decisions, Past, RunEvent, RunExitClass, apply_plan, resume_run,
    return_to_service,
};
use railwright_base::Address;
use railwright_knowledge::spec::window::Window;
use railwright_plan::by_hand::release_power_cycles;
use railwright_plan::{OutageCause, PlanSelection, Unavailability};
use railwright_report::{self as report, apply::Besides};
use railwright_resource::{DesiredResource, Disruption};
use railwright_state::{JournalEntry, NodeOutcome, run_status};
use railwright_system::clock::Clock;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

/// A setting that needs a power cycle, a file after it, and a file beside it.
fn room(hosts: &[&str]) -> Room {
    let setting =
        json!({ "netdev": "ens1", "settings": { "SRIOV_EN": 1 }, "takes_effect": "power_cycle" });
    let room = Room::of(hosts)
        .resource(
            "file",
            json!({ "path": "/etc/first", "content": "0\n" }),
            &[],
        )
        .resource("firmware_setting", setting, &["file/%2Fetc%2Ffirst"])
        .resource(
            "file",
            json!({ "path": "/etc/after", "content": "1\n" }),
            &["firmware_setting/ens1"],
        );
    hosts.iter().for_each(|host| {
        room.host(host, |host| {
            host.firmware.put("ens1", "SRIOV_EN", "0", true)
        })
    });
    room
}

async fn begin(room: &Room) -> ApplyOutcome {
    apply_plan(&room.plan().await, &room.context, room.sink()).await
}

async fn go_on(room: &Room) -> ApplyOutcome {
    room.gate.checked.lock().unwrap().clear();
    resume_run(&room.context, Decisions::default(), room.sink()).await
}

fn summary(outcome: &ApplyOutcome) -> String {
    report::apply::render_run_summary(
        outcome,
        outcome.ending,
        Besides {
            inventory: "inv",
            unknown: 0,
            provable: true,
        },
    )
}

fn waits(outcome: &ApplyOutcome) -> String {
    outcome
        .power_cycles
        .iter()
        .map(|hosts| hosts.join(","))
        .collect::<Vec<_>>()
        .join(" then ")
}

fn switch_off_and_on(room: &Room, hosts: &[&str]) {
    for host in hosts {
        room.host(host, |host| {
            host.power_cycle(Duration::ZERO);
            host.down_until = Duration::ZERO;
        });
    }
}

fn through(room: &Room) -> String {
    let is_through =
        |host: &&String| room.host(host, |host| host.disk.text("/etc/after").is_some());
    room.context
        .hosts
        .keys()
        .filter(is_through)
        .cloned()
        .collect::<Vec<_>>()
        .join(",")
}

fn checked(room: &Room) -> Vec<String> {
    room.gate.checked.lock().unwrap().clone()
}

fn stands(room: &Room) -> RolloutStatus {
    let folder = &room.context.folder;
    let name = folder.newest_run().unwrap().unwrap();
    let plan = folder.read_plan(&name).unwrap();
    let plan = release_power_cycles(&plan).unwrap_or(plan);
    let run = run_status::fold_journal_records(&folder.read_journal(&name).unwrap().records);
    compute_rollout_status(
        &plan,
        &build_steps(&plan).unwrap(),
        &run,
        false,
        &Past::default(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_run_waits_for_power_cycles_and_goes_on_host_by_host_as_they_are_made() {
    let room = room(&["a", "b", "c"]);
    let outcome = begin(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), &*waits(&outcome)),
        (RunExitClass::Waiting, vec![], "a then b,c"),
        "{:?}",
        outcome.outcomes
    );
    assert_eq!(
        (checked(&room), through(&room)),
        (
            vec!["a after ".to_owned(), "b,c after a".to_owned()],
            String::new()
        )
    );
    for host in ["a", "b", "c"] {
        room.host(host, |host| {
            assert_eq!(
                (
                    host.boot,
                    &*host.firmware.0["ens1"].settings["SRIOV_EN"].next_boot
                ),
                (0, "1")
            )
        });
    }
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, &*waits(&outcome), checked(&room)),
        (RunExitClass::Waiting, "a then b,c", vec![]),
        "nobody was there yet"
    );
    switch_off_and_on(&room, &["a"]);
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, &*waits(&outcome), &*through(&room)),
        (RunExitClass::Waiting, "b,c", "a"),
        "{:?}",
        outcome.problems
    );
    assert_eq!(
        checked(&room),
        ["a after b,c"],
        "what followed on it is proven, and the others need no proof again"
    );
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, &*waits(&outcome), checked(&room)),
        (RunExitClass::Waiting, "b,c", vec![])
    );
    switch_off_and_on(&room, &["c"]);
    assert_eq!(
        (waits(&go_on(&room).await), through(&room), checked(&room)),
        (
            "b".to_owned(),
            "a,c".to_owned(),
            vec!["c after a,b".to_owned()]
        )
    );
    switch_off_and_on(&room, &["b"]);
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), &*through(&room)),
        (RunExitClass::Done, vec![], "a,b,c")
    );
    assert_eq!(checked(&room), ["b,c after a,c"], "the whole wave at last");
    assert_eq!(room.plan().await.nodes, [], "law 1");
    assert_eq!(
        codes(&go_on(&room).await),
        ["RW0623"],
        "there is nothing to resume"
    );
    let cycled = room
        .events
        .lock()
        .unwrap()
        .iter()
        .filter(|event| matches!(event, RunEvent::PowerCycled { .. }))
        .count();
    assert_eq!(cycled, 3);
    let journal = room
        .context
        .folder
        .read_journal(&room.context.folder.newest_run().unwrap().unwrap())
        .unwrap();
    let rebooted = journal
        .records
        .iter()
        .filter(|record| matches!(record.entry, JournalEntry::Rebooted { .. }))
        .count();
    assert_eq!(rebooted, 3, "the same proof as after a reboot of ours");
    ["a", "b", "c"].iter().for_each(|host| {
        room.host(host, |host| {
            assert!(!host.told.contains(&"reboot".to_owned()) && host.boot == 1)
        })
    });
}

#[tokio::test(start_paused = true)]
async fn what_follows_waits_for_the_canary_whoever_was_switched_off_first() {
    let room = room(&["a", "b", "c"]);
    begin(&room).await;
    switch_off_and_on(&room, &["b", "c"]);
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, &*waits(&outcome), &*through(&room)),
        (RunExitClass::Waiting, "a", "")
    );
    let stood = stands(&room);
    assert_eq!(
        (stood.unavailable.as_str(), stood.unavailable_count),
        ("b,c", 2),
        "nobody has proven them since"
    );
    let writes_it_down = |host: &&str| {
        room.host(host, |host| {
            host.record.clone().unwrap().contains("switched_off_and_on")
        })
    };
    assert_eq!(
        ["a", "b", "c"]
            .iter()
            .filter(|host| writes_it_down(host))
            .collect::<Vec<_>>(),
        [&"b", &"c"],
        "who has no such folder sees it"
    );
    switch_off_and_on(&room, &["a"]);
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), &*through(&room)),
        (RunExitClass::Done, vec![], "a,b,c")
    );
    assert_eq!(
        checked(&room),
        ["a after ", "b,c after a"],
        "two hosts out by hand do not keep the canary from its turn"
    );
    assert_eq!(stands(&room).unavailable_count, 0);
}

/// Nobody goes on with the run; somebody plans anew.
#[tokio::test(start_paused = true)]
async fn who_was_switched_off_and_on_is_out_of_service_for_every_later_plan() {
    let mut room = room(&["a", "b"]);
    room.rollout.max_unavailable = 1;
    begin(&room).await;
    let narrow = || PlanSelection {
        targets: vec!["host/a".to_owned()],
        excludes: Vec::new(),
    };
    let saved = room.narrowed_plan(narrow()).await;
    switch_off_and_on(&room, &["b"]);
    let again = room.resource("sysctl", json!({ "key": "net.a", "value": "5" }), &[]);
    let plan = again.narrowed_plan(narrow()).await;
    let out: Vec<&str> = plan
        .unavailable
        .iter()
        .map(|some| some.hosts.as_str())
        .collect();
    assert_eq!((out, saved.unavailable.len()), (vec!["b"], 0));
    assert!(
        matches!(&plan.unavailable[0].why, Unavailability::LeftByRun(outage) if matches!(outage.cause, OutageCause::SwitchedOffAndOn { .. }))
    );
    assert_eq!(
        begin(&again).await.ending,
        RunExitClass::Waiting,
        "its gate passes it first, and the other one waits still"
    );
    assert!(again.plan().await.unavailable.is_empty());
}

/// A run of a plan that was made since waits for no power cycle itself.
#[tokio::test(start_paused = true)]
async fn who_was_switched_off_and_on_for_an_earlier_run_writes_it_down() {
    let mut room = room(&["a", "b"]);
    room.rollout.max_unavailable = 1;
    // Nothing harmless is left to do on the host.
    room.resources.retain(|resource| resource.kind != "file");
    begin(&room).await;
    switch_off_and_on(&room, &["b"]);
    goes_down(&room, "a");
    let again = with_disruption(room, &["a", "b"], "first", &[]);
    assert_eq!(codes(&begin(&again).await), ["RW0620"]);
    let record = again.host("b", |host| host.record.clone().unwrap());
    assert!(record.contains("switched_off_and_on"), "{record}");
}

/// Whatever comes between: a later run for something else, no machine-id, a run that was killed.
#[tokio::test(start_paused = true)]
async fn nothing_makes_forget_who_waits_for_a_power_cycle() {
    for between in ["a later run", "no machine-id", "killed", "installed anew"] {
        let mut room = room(&["a", "b"]);
        if between == "no machine-id" {
            ["a", "b"]
                .iter()
                .for_each(|host| room.host(host, |host| host.machine_id = None));
        }
        begin(&room).await;
        let folder = room.context.folder.clone();
        let journal = folder
            .path()
            .join("runs")
            .join(folder.newest_run().unwrap().unwrap())
            .join("journal.jsonl");
        let only = |target: &str| PlanSelection {
            targets: vec![target.to_owned()],
            excludes: Vec::new(),
        };
        room = room.resource("sysctl", json!({ "key": "net.a", "value": "5" }), &[]);
        match between {
            "a later run" => {
                let plan = room.narrowed_plan(only("host/b/sysctl/net.a")).await;
                assert_eq!(
                    apply_plan(&plan, &room.context, room.sink())
                        .await
                        .counts
                        .done,
                    1
                );
            }
            "killed" => {
                let text = std::fs::read_to_string(&journal).unwrap();
                let (last, _) = text.trim_end().rsplit_once('\n').unwrap();
                std::fs::write(&journal, format!("{last}\n")).unwrap();
                std::fs::remove_file(folder.path().join("state.json")).unwrap();
            }
            _ => {}
        }
        switch_off_and_on(&room, &["b"]);
        if between == "installed anew" {
            room.host("b", |host| host.machine_id = Some(machine_id("another b")));
        }
        let plan = room.narrowed_plan(only("host/a")).await;
        let out: Vec<&str> = plan
            .unavailable
            .iter()
            .map(|some| some.hosts.as_str())
            .collect();
        assert_eq!(out, ["b"], "{between}");
    }
}

/// A host that waits is rebooted, and is in service again: it still waits for its power cycle,
/// until that was seen and a gate passed.
#[tokio::test(start_paused = true)]
async fn a_reboot_ends_no_wait_for_a_power_cycle() {
    for by in ["a gate", "a gate of a narrowed plan", "somebody"] {
        let mut room = room(&["a", "b"]);
        room.rollout.max_unavailable = 1;
        begin(&room).await;
        let only = |target: &str| PlanSelection {
            targets: vec![target.to_owned()],
            excludes: Vec::new(),
        };
        let out = async |room: &Room| {
            let plan = room.narrowed_plan(only("host/a")).await;
            plan.unavailable
                .iter()
                .map(|some| some.hosts.clone())
                .collect::<Vec<_>>()
                .join(",")
        };
        let reboot = |room: &Room| {
            room.host("b", |host| {
                host.reboot(Duration::ZERO);
                host.down_until = Duration::ZERO;
            });
        };
        reboot(&room);
        assert_eq!(out(&room).await, "b", "{by}");
        let room = room.resource("sysctl", json!({ "key": "net.a", "value": "5" }), &[]);
        match by {
            "a gate" => drop(begin(&room).await),
            "somebody" => return_to_service(&room.context.folder, &["b".to_owned()], "seen to")
                .await
                .unwrap(),
            _ => drop(
                apply_plan(
                    &room.narrowed_plan(only("host/b/sysctl/net.a")).await,
                    &room.context,
                    room.sink(),
                )
                .await,
            ),
        }
        assert_eq!(out(&room).await, "", "{by}");
        assert_eq!(
            apply_plan(
                &room.narrowed_plan(only("host/b/sysctl/net.a")).await,
                &room.context,
                room.sink()
            )
            .await
            .problems,
            [],
            "{by}"
        );
        switch_off_and_on(&room, &["b"]);
        // Whoever somebody returned to service waits for nothing any more.
        assert_eq!(
            out(&room).await,
            if by == "somebody" { "" } else { "b" },
            "{by}"
        );
        begin(&room).await;
        assert_eq!(out(&room).await, "", "{by}");
        reboot(&room);
        assert_eq!(out(&room).await, "", "{by}: nothing waits any more");
    }
}

/// What it waits for is forgotten, or cannot be compared: no plan asks anything of it, and its
/// power cycle comes all the same.
#[tokio::test(start_paused = true)]
async fn a_plan_that_asks_nothing_of_it_ends_no_wait_for_a_power_cycle() {
    for why in ["forgotten", "another setting"] {
        let mut room = room(&["a", "b"]);
        room.rollout.max_unavailable = 1;
        begin(&room).await;
        let setting = |resource: &DesiredResource| resource.kind == "firmware_setting";
        if why == "forgotten" {
            switch_off_and_on(&room, &["a", "b"]);
            assert_eq!(go_on(&room).await.ending, RunExitClass::Done);
            room.resources.retain(|resource| !setting(resource));
            room.resources
                .iter_mut()
                .for_each(|resource| resource.after.clear());
            assert_eq!(
                begin(&room).await.ending,
                RunExitClass::Waiting,
                "it is written, and waits"
            );
            assert_eq!(
                begin(&room).await.ending,
                RunExitClass::Waiting,
                "what was taken back waits in the next plan too"
            );
            for host in ["a", "b"] {
                room.forgets(&Address::host(host, "firmware_setting", "ens1"));
            }
        } else {
            ["a", "b"].iter().for_each(|host| {
                room.host(host, |host| {
                    host.firmware.put("ens1", "NUM_OF_VFS", "0", true)
                })
            });
            let other = json!({ "netdev": "ens1", "settings": { "NUM_OF_VFS": 0 }, "takes_effect": "power_cycle" });
            for resource in room
                .resources
                .iter_mut()
                .filter(|resource| setting(resource))
            {
                Arc::make_mut(&mut resource.declaration).body = other.clone();
            }
        }
        let room = room.resource(
            "kernel_parameter",
            json!({ "parameter": "iommu", "value": "pt" }),
            &[],
        );
        let outcome = begin(&room).await;
        assert_eq!(
            (outcome.ending, room.host("b", |host| host.boot > 0)),
            (RunExitClass::Done, true),
            "{why}: {:?}",
            outcome.problems
        );
        switch_off_and_on(&room, &["b"]);
        let only = PlanSelection {
            targets: vec!["host/a".to_owned()],
            excludes: Vec::new(),
        };
        let plan = room.narrowed_plan(only).await;
        assert_eq!(
            plan.unavailable
                .iter()
                .map(|some| some.hosts.as_str())
                .collect::<Vec<_>>(),
            ["b"],
            "{why}"
        );
    }
}

/// Somebody does not wait until the run is over.
#[tokio::test(start_paused = true)]
async fn who_is_switched_off_and_on_while_the_run_goes_on_counts_in_it() {
    let mut room = room(&["a", "b"]).resource(
        "kernel_parameter",
        json!({ "parameter": "iommu", "value": "pt" }),
        &[],
    );
    room.rollout.max_unavailable = 1;
    room.resources.retain(|resource| {
        (resource.kind == "kernel_parameter") == (*resource.address.target.name == *"b")
    });
    let (fleet, gate) = (room.fleet.clone(), room.gate.clone());
    let act = move || {
        fleet.with("a", |host| {
            host.power_cycle(Duration::ZERO);
            host.down_until = Duration::ZERO;
        });
    };
    let calm = std::mem::replace(&mut room.context.gatekeeper, Arc::new(After { gate, act }));
    let outcome = begin(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Stopped, vec!["RW0620"]),
        "{:?}",
        outcome.outcomes
    );
    assert_eq!(
        (room.host("b", |host| host.boot), stands(&room).unavailable),
        (0, "a".to_owned())
    );
    assert!(
        room.host("a", |host| host.record.clone().unwrap())
            .contains("switched_off_and_on"),
        "who has no such folder sees it"
    );
    room.context.gatekeeper = calm;
    assert_eq!(
        codes(&go_on(&room).await),
        ["RW0620"],
        "its gate is in a later wave"
    );
    assert!(
        outcome.problems[0].next[2].contains("railwright apply"),
        "{:?}",
        outcome.problems[0].next
    );
    let outcome = begin(&room).await;
    assert_eq!(
        (
            outcome.ending,
            codes(&outcome),
            room.host("b", |host| host.boot)
        ),
        (RunExitClass::Done, vec![], 1),
        "{:?}",
        outcome.outcomes
    );
}

#[tokio::test(start_paused = true)]
async fn only_hosts_on_which_all_else_is_done_are_to_be_switched_off() {
    let room = room(&["a", "b", "c"]);
    room.gate.bad.lock().unwrap().insert("a".to_owned());
    let outcome = begin(&room).await;
    assert_eq!(
        (
            outcome.ending,
            &*waits(&outcome),
            stands(&room).power_cycles
        ),
        (RunExitClass::Stopped, "a", vec!["a".to_owned()])
    );
    switch_off_and_on(&room, &["c"]);
    let plan = room.plan().await;
    assert_eq!(
        plan.unavailable
            .iter()
            .map(|some| some.hosts.as_str())
            .collect::<Vec<_>>(),
        ["a"],
        "nothing was done to it"
    );
}

#[tokio::test(start_paused = true)]
async fn a_reboot_is_no_power_cycle_and_is_told_as_that() {
    let room = room(&["a", "b"]);
    begin(&room).await;
    room.host("a", |host| {
        host.reboot(Duration::ZERO);
        host.down_until = Duration::ZERO;
    });
    for _ in 0..2 {
        let outcome = go_on(&room).await;
        assert_eq!(
            (outcome.ending, codes(&outcome), &*waits(&outcome)),
            (RunExitClass::Waiting, vec!["RW0645"], "a then b")
        );
        assert!(
            outcome.problems[0].next[0].contains("switch a off and on again"),
            "{:?}",
            outcome.problems
        );
        assert_eq!(
            stands(&room).unavailable,
            "a",
            "it was down, and has passed no gate since"
        );
    }
    switch_off_and_on(&room, &["a", "b"]);
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), &*through(&room)),
        (RunExitClass::Done, vec![], "a,b")
    );
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_off_is_waited_for_and_counts_as_out_of_service() {
    let room = room(&["a", "b"]);
    begin(&room).await;
    switch_off_and_on(&room, &["a", "b"]);
    room.host("b", |host| host.down_until = NEVER);
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, &*through(&room)),
        (RunExitClass::Incomplete, "a"),
        "{:?}",
        outcome.outcomes
    );
    let told = outcome
        .problems
        .iter()
        .find(|problem| problem.subject.as_deref() == Some("host/b"))
        .unwrap();
    assert!(
        told.next
            .iter()
            .any(|next| next.contains("switched it off")),
        "{told:?}"
    );
    assert_eq!(
        (
            stands(&room).unavailable.as_str(),
            stands(&room).lost.as_str()
        ),
        ("b", "b")
    );
    room.host("b", |host| host.down_until = Duration::ZERO);
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), &*through(&room)),
        (RunExitClass::Done, vec![], "a,b")
    );
}

#[tokio::test(start_paused = true)]
async fn what_came_back_as_somebody_else_left_it_is_not_built_upon() {
    let room = room(&["a"]);
    begin(&room).await;
    room.host("a", |host| {
        drop(host.firmware.set(
            "0000:c0:00.0",
            &[("SRIOV_EN".to_owned(), "0".to_owned())].into(),
        ))
    });
    assert_eq!(
        codes(&go_on(&room).await),
        ["RW0610"],
        "the setting was taken back before anybody switched it off"
    );
    switch_off_and_on(&room, &["a"]);
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), &*through(&room)),
        (RunExitClass::Failed, vec!["RW0618"], "")
    );
}

/// Somebody takes it as in service in between: what fails after that counts again.
#[tokio::test(start_paused = true)]
async fn a_power_cycle_that_brought_something_else_leaves_its_host_out_of_service() {
    let room = room(&["a", "b"]);
    begin(&room).await;
    switch_off_and_on(&room, &["a"]);
    room.put("a", "/etc/first", "theirs\n");
    for _ in 0..2 {
        let outcome = go_on(&room).await;
        assert!(codes(&outcome).contains(&"RW0618"), "{:?}", codes(&outcome));
        assert_eq!(room.state().outages.keys().collect::<Vec<_>>(), ["a"]);
        return_to_service(&room.context.folder, &["a".to_owned()], "seen to")
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_fails_after_a_power_cycle_stops_the_hosts_after_it() {
    let room = room(&["a", "b"]);
    begin(&room).await;
    switch_off_and_on(&room, &["a", "b"]);
    room.gate.bad.lock().unwrap().insert("a".to_owned());
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, &*through(&room)),
        (RunExitClass::Stopped, "a"),
        "{:?}",
        outcome.outcomes
    );
    room.gate.bad.lock().unwrap().clear();
    assert_eq!(
        (go_on(&room).await.ending, &*through(&room)),
        (RunExitClass::Done, "a,b")
    );
}

#[tokio::test(start_paused = true)]
async fn rollout_status_shows_who_waits() {
    let room = room(&["a", "b"]);
    let outcome = begin(&room).await;
    let stood = stands(&room);
    assert_eq!(
        (
            stood.ending.as_deref(),
            stood.unavailable_count,
            stood.power_cycles.clone()
        ),
        (Some("waiting"), 0, vec!["a".into(), "b".into()])
    );
    let hosts: Vec<_> = stood
        .waves
        .iter()
        .map(|wave| (wave.wave, wave.hosts.clone()))
        .collect();
    let of = |state: HostState, host: &str| [(state, host.to_owned())].into();
    let (done, power) = (HostState::Done, HostState::PowerCycle);
    assert_eq!(
        hosts,
        [
            (1, of(done, "a")),
            (2, of(done, "b")),
            (3, of(power, "a")),
            (4, of(power, "b"))
        ]
    );
    assert!(
        matches!(stood.waves[1].gate, GateState::Passed { .. })
            && stood.waves[2].gate == GateState::Waiting
    );
    let now = "2000-01-01T00:00:00Z".parse().unwrap();
    let fixed = RolloutStatus {
        run: "r1".into(),
        who: "ann".into(),
        machine: "ops".into(),
        started_at: "earlier".into(),
        ..stood
    };
    insta::assert_snapshot!(report::rollout::render_rollout_screen(&fixed, "inv", now), @r"
    run      r1 over, waiting, begun by ann on ops at earlier
    steps    4 of 8 over
    budget   0 of at most 2 out of service; 0 of 2 lost
    waits    for a power cycle by hand of a,b (a first)
    wave     1       a done   gate passed
    wave     2       b done   gate passed
    wave     3       a waiting for a power cycle by hand   gate waiting
    wave     4       b waiting for a power cycle by hand   gate waiting

    next     railwright resume inv
    ");
    insta::assert_snapshot!(summary(&ApplyOutcome { run: Some("r1".into()), ..outcome.clone() }), @r"
    run r1 waiting: 4 changed, 4 blocked
    power cycle, by hand: a,b (a first)
    next: when a host was switched off and on, railwright resume inv; it tells which still wait
    ");
    switch_off_and_on(&room, &["a", "b"]);
    let outcome = go_on(&room).await;
    assert!(
        outcome
            .outcomes
            .iter()
            .all(|(_, outcome)| matches!(outcome, NodeOutcome::Done { .. })),
        "{:?}",
        outcome.outcomes
    );
    assert!(
        stands(&room)
            .waves
            .iter()
            .all(|wave| matches!(wave.gate, GateState::Passed { .. })),
        "{:?}",
        stands(&room).waves
    );
}

#[tokio::test(start_paused = true)]
async fn a_power_cycle_that_was_made_is_proven_outside_of_every_window() {
    let mut room = room(&["a", "b"]);
    room.rollout.windows = vec![Window {
        days: vec![],
        from: "22:00".into(),
        lasts: "2h".into(),
        zone: "UTC".into(),
    }];
    room.rollout.windows_for = Some(Disruption::LinkBlip);
    room.context.clock = Clock::Set(Arc::new(AtomicI64::new(
        "2026-01-01T12:00:00Z"
            .parse::<Timestamp>()
            .unwrap()
            .as_second(),
    )));
    let outcome = begin(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Waiting, vec![]),
        "nothing that is carried out needs a window"
    );
    switch_off_and_on(&room, &["a", "b"]);
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome), &*through(&room)),
        (RunExitClass::Done, vec![], "a,b")
    );
}

/// The operator has emptied the node to switch its host off; pods are back once it is on.
#[tokio::test(start_paused = true)]
async fn what_needs_an_empty_node_after_a_power_cycle_is_done_by_a_plan_that_empties_it() {
    let mut room = room(&["a"]);
    let nodes = emptied(&mut room, Disruption::None);
    room.rollout.drain.as_mut().unwrap().evict_unmanaged = true;
    let outcome = begin(&room).await;
    assert_eq!(
        outcome.ending,
        RunExitClass::Waiting,
        "{:?}",
        outcome.problems
    );
    switch_off_and_on(&room, &["a"]);
    nodes.bind_pod("a");
    let outcome = go_on(&room).await;
    let blocked = outcome
        .outcomes
        .iter()
        .find_map(|(_, outcome)| match outcome {
            NodeOutcome::Blocked { reason } => Some(reason.as_str()),
            _ => None,
        });
    assert_eq!(
        (outcome.ending, &*through(&room), codes(&outcome)),
        (RunExitClass::Incomplete, "", vec!["RW0660"]),
        "{:?}",
        outcome.problems
    );
    assert!(
        blocked.is_some_and(|reason| reason.contains("a new plan empties it")),
        "{:?}",
        outcome.outcomes
    );
    assert_eq!(checked(&room), ["a after "], "its power cycle is proven");
    assert!(
        summary(&outcome).ends_with("next: fix what is said above, then railwright plan inv\n"),
        "{}",
        summary(&outcome)
    );
    let outcome = begin(&room).await;
    assert_eq!(
        (outcome.ending, &*through(&room)),
        (RunExitClass::Done, "a"),
        "{:?}",
        outcome.problems
    );
    assert_eq!(nodes.cordoned(), Vec::<String>::new());
}

/// The host would boot with it, and need another reboot without it.
#[tokio::test(start_paused = true)]
async fn what_takes_a_boot_setting_away_comes_before_the_power_cycle() {
    let iommu = json!({ "parameter": "iommu", "value": "pt" });
    let mut room = room(&["a"]).resource("kernel_parameter", iommu, &[]);
    assert_eq!(begin(&room).await.ending, RunExitClass::Waiting);
    room.resources
        .retain(|resource| resource.kind != "kernel_parameter");
    assert_eq!(begin(&room).await.ending, RunExitClass::Waiting);
    switch_off_and_on(&room, &["a"]);
    assert_eq!(go_on(&room).await.ending, RunExitClass::Done);
    let next = room.plan().await;
    assert!(!next.has_work(), "{:?}", next.nodes);
}
