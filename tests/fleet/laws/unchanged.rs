//! Law 4: plan and drift change nothing on any target.

use super::case::{Case, Freedom, benign, cases, free_cases};
use super::{Held, ensure, law};
use crate::nodes::Nodes;
use crate::room::Room;
use proptest::prelude::*;
use railwright_drift as drift;
use railwright_resource::{Action, DesiredResource, kind_named};
use railwright_transport::sim::{SimulatedHost, SimulatedTrouble};
use std::collections::BTreeMap;

/// Everything of every host, save when and how often it was asked and what it will still be struck
/// with.
fn all(room: &Room) -> BTreeMap<String, SimulatedHost> {
    let mut hosts = room.fleet.hosts();
    hosts.values_mut().for_each(|host| {
        (host.calls, host.faults, host.down_until) = (0, Vec::new(), Default::default());
        host.units.now_s = 0;
    });
    hosts
}

#[test]
fn law_4_plan_and_drift_change_nothing() {
    let silent = prop_oneof![
        (0usize..12).prop_map(SimulatedTrouble::CutOff),
        (1u32..4000).prop_map(SimulatedTrouble::Unreachable)
    ]
    .boxed();
    let freedom = Freedom {
        edits: 3,
        down: true,
        leaf: true,
        lived: true,
        policy: true,
        failing: 1,
    };
    law(
        "law_4",
        free_cases(4, silent, 3, freedom),
        async |case: &Case| {
            let room = case.lived_room().await;
            case.strike(&room);
            let nodes = || room.server.as_ref().map(Nodes::states);
            let (before, log, nodes_before) = (all(&room), room.fleet.log().len(), nodes());
            let plan = room.plan().await;
            let state = room.state();
            let observation = room.observe(&room.resources, &state.last_applied, 3).await;
            let diff = |resource: &DesiredResource| {
                let found = observation
                    .targets
                    .get(&resource.address.target)
                    .ok_or("its target is not in the observation")?;
                Ok(kind_named(&resource.kind)
                    .ok_or("no such kind")?
                    .diff(resource, &found.answers))
            };
            let findings = drift::compute_drift(
                &Default::default(),
                &room.resources,
                &Default::default(),
                drift::compare::DiffFunctions {
                    diff: &diff,
                    left: &|applied, _| diff(applied),
                },
                &state.last_applied,
            );
            ensure!(all(&room) == before, "a host is another one");
            ensure!(room.fleet.log().len() == log, "a host was told something");
            ensure!(nodes() == nodes_before, "a node is another one");
            let spoke = !plan.nodes.is_empty() || findings.has_drift();
            Ok(if spoke { Held::Yes } else { Held::Beside })
        },
    );
}

#[test]
fn the_comparison_sees_what_somebody_else_does() {
    law(
        "the_comparison_sees",
        cases(2, benign(), 0),
        async |case: &Case| {
            let room = case.room();
            let before = all(&room);
            let more = Action::WriteFile {
                path: "/x".into(),
                content: String::new(),
                mode: "0644".into(),
                owner: "root".into(),
                group: "root".into(),
            };
            room.host("gpu00", |host| {
                host.suffer(
                    SimulatedTrouble::Stranger(Box::new(more)),
                    std::time::Duration::ZERO,
                )
            });
            ensure!(all(&room) != before, "nobody saw it");
            Ok(Held::Yes)
        },
    );
}
