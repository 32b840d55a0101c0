//! Law 1: after a run in which every step ended done and none was blocked, the next plan is empty;
//! or it is of what somebody else changed since we looked, and of hosts that were down. Once they
//! are gone, the world comes to what it would have been without them. Law 2: applying twice equals
//! once.

use super::case::{Case, Freedom, benign, free_cases, name, troubles};
use super::crash::{ensure_equal, undecided};
use super::third_party::{Edited, Witness, edit};
use super::{Held, ensure, law, switch_off_and_on};
use crate::nodes::Nodes;
use crate::room::Room;
use railwright_apply::{ApplyOutcome, Decisions, RunExitClass, apply_plan, resume_run};
use railwright_base::{Address, Target};
use railwright_plan::by_hand::release_power_cycles;
use railwright_plan::{ChangeReason, Member, NodeKind, Plan, PlanNode};
use railwright_resource::Action;
use railwright_state::NodeOutcome;
use railwright_transport::sim::SimulatedTrouble;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Nothing goes wrong any more, and everybody is back.
pub async fn calm(room: &Room) {
    for host in room.context.hosts.keys() {
        room.host(host, |host| host.faults.clear());
    }
    room.gate.bad.lock().unwrap().clear();
    tokio::time::sleep(Duration::from_secs(10_000)).await;
}

fn shown(plan: &Plan) -> String {
    let nodes: Vec<String> = plan
        .nodes
        .iter()
        .map(|node| {
            format!(
                "{} {:?}",
                node.id,
                node.members().first().map(|m| (&m.reason, &m.differences))
            )
        })
        .collect();
    format!("{}; unknown: {:?}", nodes.join("; "), plan.unknown)
}

/// Goes on until there is nothing to do, as a patient person would: resumes what was left, does
/// again what nobody can tell the end of, switches hosts off and on, and plans anew. False where
/// some step is blocked, or something cannot be read.
pub async fn come_to_rest(room: &Room) -> Result<bool, String> {
    let mut problems = Vec::new();
    for _ in 0..6 {
        let plan = room.plan().await;
        if plan.nodes.iter().any(|node| node.blocked.is_some()) || !plan.unknown.is_empty() {
            return Ok(false);
        }
        if plan.nodes.is_empty() {
            return Ok(true);
        }
        let mut outcome = apply_plan(&plan, &room.context, room.sink()).await;
        for _ in 0..4 {
            let redo = undecided(&outcome);
            if matches!(outcome.ending, RunExitClass::Done | RunExitClass::Refused)
                || outcome.ending != RunExitClass::Waiting && redo.is_empty()
            {
                break;
            }
            switch_off_and_on(room, &outcome, false, true).await;
            outcome = resume_run(
                &room.context,
                Decisions {
                    redo,
                    ..Decisions::default()
                },
                room.sink(),
            )
            .await;
        }
        problems = outcome.problems;
    }
    Err(format!(
        "it does not come to rest: {}, and the latest run said {problems:?}",
        shown(&room.plan().await)
    ))
}

/// What is remembered as applied, without what was there before and when it was.
fn remembered(room: &Room) -> BTreeMap<Address, (Value, bool)> {
    room.state()
        .last_applied
        .resources
        .into_iter()
        .map(|(address, applied)| (address, (applied.body, applied.unfinished)))
        .collect()
}

/// The nodes that we cordoned and did not give back.
fn cordoned(room: &Room) -> Vec<String> {
    room.server
        .as_ref()
        .map(Nodes::cordoned)
        .unwrap_or_default()
}

/// Two rooms that came to rest are the same. What only ran before us is put back so where it leaves
/// the spec; whether a boot comes after that depends on what the runs had to do, so worlds that
/// have lived are compared after one, as are those of which one lost its power.
pub fn ensure_same_world(case: &Case, room: &Room, other: &Room) -> Result<(), String> {
    let is_booted = case.lived
        || case
            .faults
            .iter()
            .any(|struck| struck.fault.trouble == SimulatedTrouble::PowerLost);
    for target in case.targets() {
        for room in [room, other].into_iter().filter(|_| is_booted) {
            let now = room.fleet.now();
            room.host(&target, |host| host.reboot(now));
        }
        // A host that nobody reached at the end keeps the lock, and the next run takes it.
        let mut worlds = [room, other].map(|room| room.host(&target, |host| host.effect()));
        worlds.iter_mut().for_each(|host| host.lock.held = None);
        ensure_equal(&target, &worlds[0], &worlds[1])?;
    }
    ensure!(
        cordoned(room).is_empty(),
        "{:?} are cordoned still",
        cordoned(room)
    );
    Ok(())
}

/// Whether this is done to resources of the case alone. Whoever installs a package also sets up
/// what was half installed, and no run makes that half again.
fn is_of_case(case: &Case, edited: &Edited, desired: &BTreeSet<usize>) -> bool {
    let installs = matches!(edit(edited.edit).0, Action::InstallPackages { .. });
    let fixes_another = installs && case.has_half_package(edited.host);
    !fixes_another
        && edit(edited.edit)
            .1
            .first()
            .is_some_and(|what| desired.contains(what))
}

/// Once the others are gone, what they did to resources of the case is undone by the next runs: the
/// world is as if nobody had been there.
pub async fn comes_to_what_it_would(case: &Case, room: &Room) -> Result<(), String> {
    let desired: BTreeSet<usize> = room
        .resources
        .iter()
        .filter_map(|resource| case.what_is(&resource.address))
        .collect();
    // Whoever failed a gate in the run before has to have failed it there too: where the spec no
    // longer has it, some of what was done stays.
    let calm_case = Case {
        edits: Vec::new(),
        down: BTreeSet::new(),
        faults: Vec::new(),
        ..case.clone()
    };
    let undisturbed = calm_case.lived_room().await;
    calm(&undisturbed).await;
    let is_of_case = case
        .edits
        .iter()
        .all(|edited| is_of_case(case, edited, &desired));
    if !is_of_case || !come_to_rest(&undisturbed).await? || !come_to_rest(room).await? {
        return Ok(());
    }
    ensure_same_world(case, room, &undisturbed)?;
    ensure_equal(
        "what is remembered",
        &remembered(room),
        &remembered(&undisturbed),
    )
}

/// A plan names the hosts that were down when it was made, and plans nothing for them.
fn names_who_is_down(case: &Case, room: &Room, plan: &Plan) -> Result<(), String> {
    let desired: BTreeSet<&Target> = room
        .resources
        .iter()
        .map(|resource| &resource.address.target)
        .collect();
    let down = case
        .down
        .iter()
        .filter(|number| case.covers(**number))
        .map(|number| Target::host(name(*number)));
    for target in down.filter(|target| desired.contains(target)) {
        ensure!(
            plan.unknown
                .iter()
                .any(|unknown| unknown.subject == target.to_string()),
            "the plan does not say that {target} is down"
        );
        ensure!(
            plan.nodes
                .iter()
                .all(|node| node.target.as_ref() != Some(&target)),
            "the plan has steps for {target}, which is down"
        );
    }
    Ok(())
}

/// Whether all that the run had to do is done: hosts that were down when it was planned are left
/// alone, with the gate that they owe.
fn is_done(case: &Case, room: &Room, plan: &Plan, outcome: &ApplyOutcome) -> bool {
    let down: BTreeSet<String> = case
        .down
        .iter()
        .map(|number| format!("host/{}", name(*number)))
        .collect();
    let is_all_done = outcome
        .outcomes
        .iter()
        .all(|(_, outcome)| matches!(outcome, NodeOutcome::Done { .. }));
    // Who was silent when the plan was made owes its gate still; a run that knows of one ends
    // incomplete.
    let pending = room
        .state()
        .outages
        .into_keys()
        .all(|host| down.contains(&format!("host/{host}")));
    let ending = outcome.ending == RunExitClass::Done
        || !down.is_empty() && outcome.ending == RunExitClass::Incomplete;
    let others = plan
        .unknown
        .iter()
        .any(|unknown| !down.contains(&unknown.subject));
    ending
        && pending
        && is_all_done
        && !others
        && !plan.nodes.iter().any(|node| node.blocked.is_some())
}

#[test]
fn law_1_after_a_run_that_is_done_there_is_nothing_to_do() {
    let freedom = Freedom {
        edits: 3,
        down: true,
        leaf: true,
        lived: true,
        policy: true,
        failing: 1,
    };
    law(
        "law_1",
        free_cases(4, troubles(), 4, freedom),
        async |case: &Case| {
            let mut room = case.lived_room().await;
            let witness = Witness::of(&mut room);
            case.strike(&room);
            witness.let_in(case);
            let plan = case.plan(&room).await;
            names_who_is_down(case, &room, &plan)?;
            let (told_before, cordoned_before) = (case.told_to_others(&room), cordoned(&room));
            let mut outcome = apply_plan(&plan, &room.context, witness.sink()).await;
            witness.nothing_was_written_over(&plan)?;
            witness.nothing_was_done_twice(&plan)?;
            witness.nobody_was_disturbed(&plan)?;
            let plan = release_power_cycles(&plan).unwrap_or(plan);
            while outcome.ending == RunExitClass::Waiting {
                ensure!(
                    !outcome.power_cycles.is_empty(),
                    "it waits for nobody: {:?}",
                    outcome.outcomes
                );
                switch_off_and_on(&room, &outcome, case.crash.1, true).await;
                outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
            }
            witness.go_away();
            let is_booted = room
                .fleet
                .hosts()
                .values()
                .any(|host| host.told.iter().any(|word| word == "reboot"));
            ensure!(
                !is_booted || !case.policy.boots_nobody,
                "a host was booted, and no plan may do that"
            );
            let is_done = is_done(case, &room, &plan, &outcome);
            calm(&room).await;
            case.switch_on(&room);
            ensure!(
                case.told_to_others(&room) == told_before,
                "a host that the plan is not about was told to do something"
            );
            let is_down = |target: &str| case.down.iter().any(|number| name(*number) == target);
            // What an earlier run cordoned is not given back by a plan that is not about its host,
            // or while its host is down.
            let is_planned = |node: &String| {
                plan.targets_of_work()
                    .iter()
                    .any(|target| **node == format!("node-{}", target.name))
            };
            let mut left = cordoned(&room);
            left.retain(|node| is_planned(node) || !cordoned_before.contains(node));
            ensure!(
                !is_done || left.is_empty(),
                "after a run that was done {left:?} are cordoned"
            );
            let next = case.plan(&room).await;
            // What somebody did since it was looked at last nobody can know; nor what it disturbs.
            let may_differ = |member: &Member| {
                let address = &member.resource.address;
                let follows = matches!(
                    member.reason,
                    ChangeReason::Disturbed { .. } | ChangeReason::KnownAfter { .. }
                );
                is_down(&address.target.name) || follows || witness.is_touched_unseen(case, address)
            };
            let members: Vec<&Member> = next.nodes.iter().flat_map(PlanNode::members).collect();
            // What a host that was down owes since an earlier run: its gate, and that its node is
            // given back. Gates pass who is booting here, and that cannot be written down there.
            let is_pending = |node: &PlanNode| match &node.kind {
                NodeKind::Gate { hosts, .. } => hosts
                    .iter()
                    .all(|host| is_down(host) || case.loses_power(host)),
                NodeKind::Uncordon { .. } => node
                    .target
                    .as_ref()
                    .is_some_and(|target| is_down(&target.name)),
                _ => false,
            };
            let follows_a_change = !members.is_empty() || next.nodes.iter().all(is_pending);
            let nothing = next.unknown.is_empty()
                && members.iter().all(|member| may_differ(member))
                && follows_a_change;
            ensure!(
                !is_done || nothing,
                "after a run that was done there is: {}",
                shown(&next)
            );
            if !witness.edits().is_empty() {
                comes_to_what_it_would(case, &room).await?;
            }
            Ok(if is_done || !witness.edits().is_empty() {
                Held::Yes
            } else {
                Held::Beside
            })
        },
    );
}

#[test]
fn law_2_applying_twice_is_applying_once() {
    let freedom = Freedom {
        leaf: true,
        lived: true,
        policy: true,
        ..Freedom::default()
    };
    law(
        "law_2",
        free_cases(3, benign(), 2, freedom),
        async |case: &Case| {
            let room = case.lived_room().await;
            case.strike(&room);
            let plan = case.plan(&room).await;
            if apply_plan(&plan, &room.context, room.sink()).await.ending != RunExitClass::Done
                || plan.nodes.is_empty()
            {
                return Ok(Held::Beside);
            }
            calm(&room).await;
            let nodes = || room.server.as_ref().map(Nodes::states);
            let (effects, told, before) = (room.fleet.effects(), room.fleet.log().len(), nodes());
            let again = apply_plan(&plan, &room.context, room.sink()).await;
            ensure!(
                matches!(again.ending, RunExitClass::Refused | RunExitClass::Done),
                "the same plan again ended {:?}",
                again.ending
            );
            let next = case.plan(&room).await;
            let empty = apply_plan(&next, &room.context, room.sink()).await;
            ensure!(
                empty.ending == RunExitClass::Done && empty.run.is_none(),
                "the next plan began a run: {}",
                shown(&next)
            );
            ensure!(
                room.fleet.effects() == effects,
                "the fleet is another one after the second time"
            );
            ensure!(
                nodes() == before,
                "the nodes are other ones after the second time"
            );
            ensure!(
                room.fleet.log().len() == told,
                "hosts were told {:?}",
                &room.fleet.log()[told..]
            );
            Ok(Held::Yes)
        },
    );
}
