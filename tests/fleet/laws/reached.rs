//! A law of switches: whatever goes wrong, and wherever railwright dies, once the rollback timer
//! is over the switch is reached over its management, runs what it ran before or all that was
//! desired, and has saved nothing else.

use super::crash::{Death, Fate, undecided};
use super::leaf::{Port, port_resources};
use super::{Held, ensure, law};
use crate::room::Room;
use crate::switches::{LEAF, configurations, delivered, room};
use proptest::prelude::*;
use railwright_apply::{ApplyOutcome, Decisions, RunExitClass, apply_plan, resume_run};
use railwright_resource::DesiredResource;
use railwright_resource::rollback_scope::SWITCH_S;
use railwright_transport::sim::switch::Tables;
use railwright_transport::sim::{SimulatedFault, SimulatedTrouble};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a patch that still runs may take after the rollback timer is over, and then the boot that a
/// power loss brings.
const GRACE: Duration = Duration::from_secs(2100);

/// A resource of each port, what goes wrong, and the journal's record before which railwright dies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Case {
    ports: Vec<Port>,
    faults: Vec<SimulatedFault>,
    death: Option<usize>,
    torn: bool,
}

impl Case {
    fn room(&self) -> Room {
        let mut room = room();
        room.resources = self.resources();
        room
    }

    fn resources(&self) -> Vec<DesiredResource> {
        self.ports
            .iter()
            .enumerate()
            .flat_map(|(n, desired)| port_resources(n, desired))
            .collect()
    }
}

async fn run(room: &Room) -> ApplyOutcome {
    let plan = room.plan().await;
    apply_plan(&plan, &room.context, room.sink()).await
}

/// How the switch stands once everything that was begun is over.
fn stands(room: &Room, before: &Tables, desired: &Tables) -> Result<(), String> {
    let (running, saved) = configurations(room);
    ensure!(
        !room.host(LEAF, |host| host.is_cut_off()),
        "nobody reaches the switch any more"
    );
    ensure!(
        !room.host(LEAF, |host| host
            .armed_rollback
            .as_ref()
            .is_some_and(|armed| !armed.reverted)),
        "its automatic rollback is still armed"
    );
    ensure!(
        running == *before || running == *desired,
        "it runs half of what is desired: {}",
        difference(&running, desired)
    );
    ensure!(
        saved == *before || saved == *desired,
        "it saved half of what is desired: {}",
        difference(&saved, desired)
    );
    ensure!(
        saved == *before || running == *desired,
        "what it saved was taken back"
    );
    Ok(())
}

fn difference(found: &Tables, desired: &Tables) -> String {
    let tables = desired
        .iter()
        .filter(|(name, table)| found.get(*name) != Some(table));
    tables
        .map(|(name, table)| format!("{name}: {:?} and not {table:?}", found.get(name)))
        .collect::<Vec<_>>()
        .join("; ")
}

async fn wait(room: &Room) {
    tokio::time::sleep(Duration::from_secs(SWITCH_S.into()) + GRACE).await;
    let now = room.fleet.now();
    room.host(LEAF, |host| host.settle(now));
}

fn troubles() -> impl Strategy<Value = SimulatedTrouble> {
    prop_oneof![
        Just(SimulatedTrouble::LostBefore),
        Just(SimulatedTrouble::LostAfter),
        // A patch that takes longer is ended by the switch.
        (1u32..450).prop_map(SimulatedTrouble::GoesOn),
        (2u32..6).prop_map(SimulatedTrouble::Slow),
        Just(SimulatedTrouble::Killed),
        Just(SimulatedTrouble::Fails),
        Just(SimulatedTrouble::NoEffect),
        Just(SimulatedTrouble::PowerLost),
        (1u32..4000).prop_map(SimulatedTrouble::Unreachable),
        (1u32..30).prop_map(SimulatedTrouble::DiskFull),
        (1i64..100_000).prop_map(SimulatedTrouble::Clock),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let desired = (
        proptest::option::of(prop_oneof![Just(68u32), Just(9100), Just(9216)]),
        proptest::option::of(any::<bool>()),
        any::<bool>(),
    );
    let ports = proptest::collection::vec(
        desired.prop_map(|(mtu, up, lossless)| Port { mtu, up, lossless }),
        1..=4,
    );
    let word = prop_oneof![
        Just(None),
        Just(Some("edit_switch".to_owned())),
        Just(Some("save_switch".to_owned()))
    ];
    let fault = (0u32..40, word, troubles()).prop_map(|(after, word, trouble)| SimulatedFault {
        after,
        word,
        trouble,
    });
    (
        ports,
        proptest::collection::vec(fault, 0..4),
        proptest::option::of(0usize..20),
        any::<bool>(),
    )
        .prop_map(|(ports, faults, death, torn)| Case {
            ports,
            faults,
            death,
            torn,
        })
}

#[test]
fn a_switch_is_reached_or_as_it_was() {
    law("a_switch_is_reached", cases(), async |case: &Case| {
        let before = delivered();
        let calm = case.room();
        let outcome = run(&calm).await;
        let (desired, _) = configurations(&calm);
        stands(&calm, &before, &desired)?;
        ensure!(
            (outcome.ending == RunExitClass::Done)
                == (desired != before || calm.plan().await.nodes.is_empty()),
            "{:?}",
            outcome.problems
        );

        let mut room = case.room();
        Fate::decide(
            &mut room,
            case.death,
            if case.torn {
                Death::Torn
            } else {
                Death::Before
            },
        );
        let plan = room.plan().await;
        let calls = room.host(LEAF, |host| host.calls);
        room.host(LEAF, |host| {
            host.faults
                .extend(case.faults.iter().map(|fault| SimulatedFault {
                    after: calls + fault.after,
                    ..fault.clone()
                }));
        });
        let outcome = apply_plan(&plan, &room.context, room.sink()).await;
        wait(&room).await;
        stands(&room, &before, &desired)?;
        room.fleet.cut_off(false);
        let redo = undecided(&outcome);
        resume_run(
            &room.context,
            Decisions {
                redo,
                ..Decisions::default()
            },
            room.sink(),
        )
        .await;
        wait(&room).await;
        stands(&room, &before, &desired)?;
        let said_something = desired != before
            || outcome
                .problems
                .iter()
                .any(|problem| problem.code == "RW0641");
        Ok(if said_something {
            Held::Yes
        } else {
            Held::Beside
        })
    });
}
