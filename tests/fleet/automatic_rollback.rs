//! Changes on the path of our own connection: the host keeps what they touch and puts it back,
//! unless they are confirmed over a new connection.

use crate::room::{Room, codes};
use railwright_apply::{ApplyOutcome, Decisions, RunEvent, RunExitClass, apply_plan, resume_run};
use railwright_plan::NodeKind;
use railwright_state::JournalEntry;
use railwright_transport::sim::links::SimulatedNetdev;
use railwright_transport::sim::{SimulatedFault, SimulatedHost, SimulatedTrouble};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const NETWORK: &str = "/etc/systemd/network/10-management.network";
const RULES: &str = "/etc/nftables.conf";

/// A host that is reached over eth0, with a packet filter that runs.
pub fn reached_over_eth0() -> SimulatedHost {
    let mut host = SimulatedHost::fresh();
    host.ssh_netdev = Some("eth0".to_owned());
    host.disk.put(
        NETWORK,
        "[Match]\nName=eth0\n[Network]\nAddress=10.0.0.1/24\n".into(),
    );
    host.links
        .0
        .insert("eth0".to_owned(), SimulatedNetdev::of(9000, Some(NETWORK)));
    host.disk.put(
        "/usr/lib/systemd/system/nftables.service",
        "[Service]\n".into(),
    );
    host.disk.put(RULES, "flush ruleset\n".into());
    host.units.enabled.insert("nftables.service".to_owned());
    host.reboot(Duration::ZERO);
    (host.boot, host.booted, host.down_until) = (0, Duration::ZERO, Duration::ZERO);
    let began_s = host.clock_s(Duration::ZERO);
    host.units
        .known
        .values_mut()
        .for_each(|unit| unit.since_s = began_s);
    host
}

fn room(hosts: &[&str]) -> Room {
    let mut room = Room::with(
        hosts
            .iter()
            .map(|name| ((*name).to_owned(), reached_over_eth0()))
            .collect::<BTreeMap<_, _>>(),
    );
    room.rollout.rollback_timer_s = Some(60);
    room
}

fn mtu(mtu: u32) -> Value {
    json!({ "netdev": "eth0", "mtu": mtu })
}

fn filter(room: Room) -> Room {
    let unit = json!({ "name": "nftables.service", "active": true, "restart_on": [RULES] });
    room.resource("systemd_unit", unit, &[]).resource(
        "file",
        json!({ "path": RULES, "content": "drop\n" }),
        &[],
    )
}

async fn run(room: &Room) -> ApplyOutcome {
    let plan = room.plan().await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    apply_plan(&plan, &room.context, room.sink()).await
}

async fn go_on(room: &Room) -> ApplyOutcome {
    resume_run(&room.context, Decisions::default(), room.sink()).await
}

/// How each automatic rollback of the journal ended; nothing for one that was armed and has no end.
fn rollback_timers(room: &Room) -> Vec<Option<bool>> {
    let run = room.context.folder.newest_run().unwrap().unwrap();
    let mut found: BTreeMap<String, Option<bool>> = BTreeMap::new();
    for record in room.context.folder.read_journal(&run).unwrap().records {
        match record.entry {
            JournalEntry::RollbackTimerArmed { token, .. } => drop(found.insert(token, None)),
            JournalEntry::RollbackTimerEnded {
                token, confirmed, ..
            } => drop(found.insert(token, Some(confirmed))),
            _ => {}
        }
    }
    found.into_values().collect()
}

/// Applies until the first action is through, and dies.
async fn dies_after_the_first_action(room: &Room) {
    dies_after(room, |told| !told.is_empty()).await;
}

/// Applies until this is so of the actions that a host was told, and dies.
async fn dies_after(room: &Room, is_so: impl Fn(&[String]) -> bool) {
    let plan = room.plan().await;
    room.dies_when(&plan, || {
        room.fleet.hosts().values().any(|host| is_so(&host.told))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_good_change_is_confirmed_over_a_new_connection() {
    let room = room(&["a"]).resource("link", mtu(1400), &[]);
    let plan = room.plan().await;
    let NodeKind::Change {
        automatic_rollback: Some(rollback),
        ..
    } = &plan.nodes[0].kind
    else {
        panic!("{:?}", plan.nodes[0])
    };
    assert_eq!(
        (rollback.because.as_str(), rollback.seconds),
        ("eth0 carries our own connection", 60)
    );
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    assert_eq!(
        (
            rollback_timers(&room),
            room.host("a", |host| (
                host.links.0["eth0"].mtu,
                host.armed_rollback.is_some()
            ))
        ),
        (vec![Some(true)], (1400, false))
    );
    assert!(room.plan().await.nodes.is_empty());
    let events = room.events.lock().unwrap();
    let told = |desired: &dyn Fn(&RunEvent) -> bool| events.iter().position(desired).unwrap();
    let armed = told(&|event| matches!(event, RunEvent::RollbackTimerArmed { .. }));
    assert!(
        armed < told(&|event| matches!(event, RunEvent::ActionStarted { .. })),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn what_cuts_us_off_is_put_back_and_told() {
    let room = room(&["a"]).resource("link", mtu(68), &[]);
    let before = room.fleet.effects();
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)[0]),
        (RunExitClass::Failed, "RW0641")
    );
    assert!(
        outcome.problems[0]
            .state
            .as_deref()
            .unwrap()
            .starts_with("a is as it was before the change"),
        "{:?}",
        outcome.problems[0]
    );
    assert_eq!(
        (room.fleet.effects(), rollback_timers(&room)),
        (before.clone(), vec![Some(false)])
    );
    let outcome = go_on(&room).await;
    assert_eq!(
        (
            codes(&outcome)[0],
            room.fleet.effects(),
            rollback_timers(&room)
        ),
        ("RW0641", before, vec![Some(false); 2]),
        "under an automatic rollback again"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dead_run_leaves_a_rollback_timer_that_acts_by_itself() {
    let room = room(&["a"]).resource("link", mtu(1400), &[]);
    dies_after_the_first_action(&room).await;
    assert!(room.host("a", |host| {
        host.armed_rollback
            .as_ref()
            .is_some_and(|armed| !armed.reverted)
    }));
    tokio::time::sleep(Duration::from_secs(61)).await;
    room.fleet
        .with("a", |host| host.settle(Duration::from_secs(120)));
    assert_eq!(
        room.host("a", |host| (
            host.links.0["eth0"].mtu,
            host.disk
                .files
                .keys()
                .any(|path| path.contains("railwright"))
        )),
        (1500, false)
    );
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    assert_eq!(
        (
            room.host("a", |host| host.links.0["eth0"].mtu),
            rollback_timers(&room)
        ),
        (1400, vec![Some(false), Some(true)])
    );
}

#[tokio::test(start_paused = true)]
async fn a_rollback_timer_that_is_still_armed_is_put_back_or_confirmed_by_resume_and_waited_for_by_others()
 {
    let room = room(&["a"]).resource("link", mtu(1400), &[]);
    dies_after_the_first_action(&room).await;
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    assert_eq!(
        rollback_timers(&room),
        [Some(false), Some(true)],
        "half done, so it was put back and done again"
    );

    let room = self::room(&["a"]).resource(
        "sysctl",
        json!({ "key": "net.core.x", "value": "1", "rollback_timer": true }),
        &[],
    );
    room.host("a", |host| {
        let settings: BTreeMap<_, _> = [("net.core.x".to_owned(), "0".to_owned())].into();
        (host.kernel.sysctls, host.kernel.defaults) = (settings.clone(), settings);
    });
    let plan = room.plan().await;
    dies_after_the_first_action(&room).await;
    // Somebody finishes it by hand: it is in sync, and we came over a new connection.
    let action = railwright_resource::Action::SetSysctl {
        key: "net.core.x".into(),
        value: "1".into(),
    };
    room.host("a", |host| host.act(&action, Duration::ZERO).unwrap());
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, rollback_timers(&room)),
        (RunExitClass::Done, vec![Some(true)]),
        "{:?}",
        outcome.problems
    );

    let room = self::room(&["a"]).resource("link", mtu(1400), &[]);
    dies_after_the_first_action(&room).await;
    let outcome = apply_plan(&room.plan().await, &room.context, room.sink()).await;
    assert!(
        room.events
            .lock()
            .unwrap()
            .iter()
            .any(|event| matches!(event, RunEvent::RollbackPending { .. }))
    );
    assert_eq!(
        codes(&outcome),
        ["RW0610"],
        "what it was planned on was put back meanwhile: {plan:?}"
    );
}

/// It was in sync when the plan was made, and the reboot changed it: the plan knows of no automatic
/// rollback.
#[tokio::test(start_paused = true)]
async fn a_rollback_timer_that_is_still_armed_over_what_is_in_sync_by_now_is_confirmed_by_resume() {
    let room = room(&["a"])
        .resource(
            "kernel_parameter",
            json!({ "parameter": "iommu", "value": "pt" }),
            &[],
        )
        .resource(
            "systemd_unit",
            json!({ "name": "nftables.service", "active": true }),
            &[],
        );
    // Somebody started it by hand.
    assert!(room.host("a", |host| host.units.enabled.remove("nftables.service")));
    dies_after(&room, |told| told.iter().any(|word| word == "unit")).await;
    assert!(room.host("a", |host| {
        host.armed_rollback
            .as_ref()
            .is_some_and(|armed| !armed.reverted)
    }));
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, rollback_timers(&room)),
        (RunExitClass::Done, vec![Some(true)]),
        "{:?}",
        outcome.problems
    );
    tokio::time::sleep(Duration::from_secs(600)).await;
    room.fleet
        .with("a", |host| host.settle(Duration::from_secs(7200)));
    assert_eq!(room.plan().await.nodes, []);
}

#[tokio::test(start_paused = true)]
async fn a_boot_with_the_rollback_timer_armed_puts_everything_back() {
    let room = room(&["a"]).resource("link", mtu(1400), &[]);
    let before = room.fleet.effects();
    dies_after_the_first_action(&room).await;
    room.host("a", |host| host.reboot(Duration::from_secs(10)));
    let mut after = room.fleet.effects();
    after
        .values_mut()
        .for_each(|host| host.lock = Default::default());
    assert_eq!(after, before);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(go_on(&room).await.ending, RunExitClass::Done);
}

#[tokio::test(start_paused = true)]
async fn rules_and_the_unit_that_loads_them_go_out_together_and_come_back_together() {
    let room = filter(room(&["a"]));
    let plan = room.plan().await;
    let ids: Vec<&str> = plan
        .nodes
        .iter()
        .filter(|node| node.is_change())
        .map(|node| node.id.as_str())
        .collect();
    assert_eq!(ids, ["host/a/transaction/automatic-rollback"]);
    let outcome = run(&room).await;
    assert_eq!(
        (outcome.ending, codes(&outcome)),
        (RunExitClass::Done, vec![])
    );
    assert_eq!(
        room.host("a", |host| host.told.clone()),
        ["write_file", "unit"]
    );
    assert!(room.plan().await.nodes.is_empty());

    let room = filter(self::room(&["a"]));
    let before = room.host("a", |host| host.disk.text(RULES));
    room.fault("a", "unit", SimulatedTrouble::Fails);
    let outcome = run(&room).await;
    assert_eq!(
        (
            codes(&outcome)[0],
            room.host("a", |host| host.disk.text(RULES))
        ),
        ("RW0641", before)
    );
    assert!(
        outcome.problems[0]
            .message
            .contains("unit failed: exit status 1"),
        "{:?}",
        outcome.problems[0]
    );
}

#[tokio::test(start_paused = true)]
async fn power_lost_in_the_middle_is_put_back_by_the_boot_and_done_again_by_resume() {
    let room = room(&["a"]).resource("link", mtu(1400), &[]);
    room.fault("a", "set_link", SimulatedTrouble::PowerLost);
    let outcome = run(&room).await;
    assert_eq!(
        (
            codes(&outcome)[0],
            room.host("a", |host| host.links.0["eth0"].mtu)
        ),
        ("RW0641", 1500)
    );
    assert_eq!(go_on(&room).await.ending, RunExitClass::Done);
}

#[tokio::test(start_paused = true)]
async fn without_a_rollback_timer_nothing_is_done() {
    let mut seen = BTreeSet::new();
    for nth in 1..60 {
        let room = room(&["a"]).resource("link", mtu(1400), &[]);
        let plan = room.plan().await;
        room.fill_disk("a", nth, 40);
        let outcome = apply_plan(&plan, &room.context, room.sink()).await;
        for code in ["RW0642", "RW0659"] {
            if codes(&outcome).contains(&code) {
                seen.insert(code);
                assert_eq!(
                    room.host("a", |host| (host.told.len(), host.links.0["eth0"].mtu)),
                    (0, 1500)
                );
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["RW0642", "RW0659"]);
}

/// It would roll back what somebody else changes within its time.
#[tokio::test(start_paused = true)]
async fn a_rollback_timer_whose_arming_got_no_answer_is_taken_away() {
    let room = room(&["a"]).resource("link", mtu(1400), &[]);
    room.host("a", |host| {
        host.faults.push(SimulatedFault {
            after: 0,
            word: None,
            trouble: SimulatedTrouble::ArmedUnsaid,
        });
    });
    let outcome = run(&room).await;
    assert_eq!(codes(&outcome)[0], "RW0642", "{:?}", outcome.problems);
    room.host("a", |host| {
        host.links.0.get_mut("eth0").unwrap().mtu = 1300;
    });
    tokio::time::sleep(Duration::from_secs(3600)).await;
    // A host does what is due when it is asked.
    assert!(!room.plan().await.nodes.is_empty());
    assert_eq!(room.host("a", |host| host.links.0["eth0"].mtu), 1300);
    assert_eq!(go_on(&room).await.ending, RunExitClass::Done);
}
