//! A simulated leaf, and the hosts behind it: what passed their gate before a change of the leaf
//! has to pass it after.

use crate::room::{Room, resource};
use railwright_apply::{
    ApplyOutcome, Decisions, GateResult, Gatekeeper, RunEvent, RunExitClass, apply_plan, resume_run,
};
use railwright_base::Diagnostic;
use railwright_resource::Disruption;
use railwright_transport::BoxFuture;
use railwright_transport::sim::switch::Tables;
use railwright_transport::sim::{Fleet, SimulatedHost, new_simulated_switch_access};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The leaf's name.
pub const LEAF: &str = "leaf1";

/// A port by its number.
pub fn port(number: usize) -> String {
    format!("Ethernet{}", 4 * number)
}

/// Four ports as they are delivered.
pub fn delivered() -> Tables {
    let each = |row: Value| -> Value {
        (0..4)
            .map(|n| (port(n), row.clone()))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let identity: BTreeMap<String, String> =
        (0..8).map(|n| (n.to_string(), n.to_string())).collect();
    let maps = json!({ "dscp_to_tc_map": "AZURE", "tc_to_queue_map": "AZURE", "tc_to_pg_map": "AZURE", "pfc_to_queue_map": "AZURE",
        "pfc_enable": "3,4" });
    let tables = json!({
        "PORT": each(json!({ "speed": "400000", "mtu": "9100", "admin_status": "up" })),
        "PORT_QOS_MAP": each(maps),
        "DSCP_TO_TC_MAP": { "AZURE": { "3": "3", "4": "4", "26": "1", "48": "6" } },
        "TC_TO_QUEUE_MAP": { "AZURE": identity },
        "MAP_PFC_PRIORITY_TO_QUEUE": { "AZURE": identity },
        "TC_TO_PRIORITY_GROUP_MAP": { "AZURE": { "0": "0", "3": "3", "4": "4", "6": "0" } },
    });
    serde_json::from_value(tables).unwrap()
}

/// The leaf alone, reached over its first port.
pub fn room() -> Room {
    let mut room = Room::with(BTreeMap::from([(
        LEAF.to_owned(),
        SimulatedHost::switch(delivered(), &port(0)),
    )]));
    if let Some(access) = room.context.hosts.get_mut(LEAF) {
        *access = new_simulated_switch_access(LEAF);
    }
    room.rollout.max_disruption = Disruption::Reboot;
    room
}

/// What runs, and what is saved.
pub fn configurations(room: &Room) -> (Tables, Tables) {
    room.host(LEAF, |host| {
        let saved = host
            .disk
            .text("/etc/sonic/config_db.json")
            .and_then(|text| serde_json::from_str(&text).ok());
        (
            host.switch
                .as_ref()
                .map(|switch| switch.running.clone())
                .unwrap_or_default(),
            saved.unwrap_or_default(),
        )
    })
}

/// Traffic of the hosts behind the leaf's second port, which needs packets of so many bytes.
struct Traffic {
    fleet: Fleet,
    needs: u64,
    /// What somebody else gives the port while the hosts are asked.
    meanwhile: Option<&'static str>,
}

impl Gatekeeper for Traffic {
    fn check<'a>(&'a self, hosts: &'a [String], _: &'a [String]) -> BoxFuture<'a, GateResult> {
        assert_eq!(hosts, ["gpu1", "gpu2"]);
        if let Some(mtu) = self.meanwhile {
            self.fleet.with(LEAF, |host| {
                let running = host.switch.as_mut().map(|switch| &mut switch.running);
                running.and_then(|tables| {
                    tables
                        .get_mut("PORT")?
                        .get_mut(&port(1))?
                        .insert("mtu".to_owned(), mtu.to_owned())
                })
            });
        }
        let mtu = self.fleet.with(LEAF, |host| {
            host.switch
                .as_ref()
                .and_then(|switch| switch.running["PORT"][&port(1)]["mtu"].parse::<u64>().ok())
                .unwrap_or_default()
        });
        let small = mtu.is_some_and(|mtu| mtu < self.needs);
        let problems = small
            .then(|| Diagnostic::error("RW0650", "gpu1 and gpu2 lose large packets"))
            .into_iter()
            .collect();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            GateResult {
                problems,
                checked: hosts.iter().cloned().collect(),
                ..GateResult::default()
            }
        })
    }
}

fn hosts_need(room: &mut Room, needs: u64, meanwhile: Option<&'static str>) {
    room.context.gatekeeper = Arc::new(Traffic {
        fleet: room.fleet.clone(),
        needs,
        meanwhile,
    });
}

/// The port of the hosts gets this MTU; they need packets of so many bytes.
fn room_to_change(mtu: u32, needs: u64, meanwhile: Option<&'static str>) -> Room {
    let mut room = room();
    room.rollout.behind = BTreeMap::from([(LEAF.to_owned(), "gpu[1-2]".to_owned())]);
    hosts_need(&mut room, needs, meanwhile);
    room.resources.push(resource(
        LEAF,
        "switch_port",
        json!({ "system": "sonic", "port": port(1), "mtu": mtu }),
        &[],
    ));
    room
}

async fn change(mtu: u32, needs: u64, meanwhile: Option<&'static str>) -> (Room, ApplyOutcome) {
    let room = room_to_change(mtu, needs, meanwhile);
    let outcome = apply_plan(&room.plan().await, &room.context, room.sink()).await;
    (room, outcome)
}

/// How the hosts passed, before and after.
fn checked(room: &Room) -> Vec<(bool, bool)> {
    let events = room.events.lock().unwrap();
    let checks = events.iter().filter_map(|event| match event {
        RunEvent::BehindChecked {
            before, failure, ..
        } => Some((*before, failure.is_none())),
        _ => None,
    });
    checks.collect()
}

#[tokio::test(start_paused = true)]
async fn what_the_hosts_behind_it_do_not_bear_is_taken_back() {
    let (room, outcome) = change(1500, 4096, None).await;
    assert_eq!(
        (outcome.ending, outcome.problems[0].code.as_ref()),
        (RunExitClass::Failed, "RW0641")
    );
    let said = "gpu[1-2] behind it passed their gate before the change, and not after it: gpu1 and \
                gpu2 lose large packets";
    assert!(
        outcome.problems[0].message.contains(said),
        "{:?}",
        outcome.problems[0]
    );
    assert_eq!(
        (configurations(&room), checked(&room)),
        (
            (delivered(), delivered()),
            vec![(true, true), (false, false)]
        )
    );
}

/// railwright dies while the hosts are asked after the change, which is saved by then.
async fn dies_while_they_are_asked() -> Room {
    let room = room_to_change(1500, 4096, None);
    let plan = room.plan().await;
    let is_saved = || {
        let saved = configurations(&room).1;
        saved
            .get("PORT")
            .is_some_and(|ports| ports[&port(1)]["mtu"] == "1500")
    };
    room.dies_when(&plan, is_saved).await;
    room
}

async fn go_on(room: &Room) -> ApplyOutcome {
    resume_run(&room.context, Decisions::default(), room.sink()).await
}

#[tokio::test(start_paused = true)]
async fn what_nobody_asked_the_hosts_behind_it_of_is_not_confirmed_by_resume() {
    let room = dies_while_they_are_asked().await;
    let outcome = go_on(&room).await;
    assert_eq!(
        (outcome.ending, outcome.problems[0].code.as_ref()),
        (RunExitClass::Failed, "RW0641")
    );
    assert_eq!(configurations(&room), (delivered(), delivered()));
}

#[tokio::test(start_paused = true)]
async fn a_change_is_not_made_again_before_hosts_that_passed_once_pass_again() {
    let mut room = dies_while_they_are_asked().await;
    hosts_need(&mut room, 10_000, None);
    // The second time it was rolled back long ago.
    for _ in 0..2 {
        let outcome = go_on(&room).await;
        assert_eq!(
            (outcome.ending, outcome.problems[0].code.as_ref()),
            (RunExitClass::Failed, "RW0641")
        );
        assert_eq!(configurations(&room), (delivered(), delivered()));
    }
    hosts_need(&mut room, 1000, None);
    assert_eq!(go_on(&room).await.ending, RunExitClass::Done);
    assert_eq!(configurations(&room).1["PORT"][&port(1)]["mtu"], "1500");
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_confirmed_is_done_only_where_hosts_that_passed_before_pass() {
    let mut room = dies_while_they_are_asked().await;
    room.host(LEAF, |host| host.armed_rollback = None);
    let outcome = go_on(&room).await;
    assert_eq!(outcome.problems[0].code, "RW0614", "{:?}", outcome.problems);
    assert_ne!(outcome.ending, RunExitClass::Done);
    hosts_need(&mut room, 1000, None);
    assert_eq!(go_on(&room).await.ending, RunExitClass::Done);
}

#[tokio::test(start_paused = true)]
async fn what_they_bear_is_confirmed_and_saved() {
    let (room, outcome) = change(9216, 4096, None).await;
    assert_eq!(
        (outcome.ending, checked(&room)),
        (RunExitClass::Done, vec![(true, true), (false, true)])
    );
    let (running, saved) = configurations(&room);
    assert_eq!(
        (running["PORT"][&port(1)]["mtu"].as_str(), &running),
        ("9216", &saved)
    );
}

#[tokio::test(start_paused = true)]
async fn hosts_that_did_not_pass_before_prove_nothing() {
    let (room, outcome) = change(1500, 9200, None).await;
    assert_eq!(
        (outcome.ending, checked(&room)),
        (RunExitClass::Done, vec![(true, false)])
    );
    assert_eq!(configurations(&room).0["PORT"][&port(1)]["mtu"], "1500");
}

#[tokio::test(start_paused = true)]
async fn what_moves_while_they_are_asked_is_seen_before_anything_is_done() {
    let (room, outcome) = change(9216, 4000, Some("4200")).await;
    assert_eq!(
        (outcome.ending, outcome.problems[0].code.as_ref()),
        (RunExitClass::Incomplete, "RW0610"),
        "{:?}",
        outcome.problems
    );
    let running = configurations(&room).0;
    assert_eq!(
        (running["PORT"][&port(1)]["mtu"].as_str(), checked(&room)),
        ("4200", vec![(true, true)])
    );
}
