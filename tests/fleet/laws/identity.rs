//! Laws of whose a target is: the inventory of another cluster changes nothing of it, a state that
//! was lost or is older than the fleet comes to the same, and nothing of a machine before comes to
//! a new one.

use super::case::{Case, benign, cases, host};
use super::{Held, ensure, law};
use crate::room::{Room, copy_folder};
use railwright_apply::target_take_over::{TakeOverDecision, take_over_targets};
use railwright_apply::{ApplyOutcome, RunExitClass, apply_plan};
use railwright_base::Target;
use railwright_plan::Plan;
use railwright_state::ClusterLock;
use railwright_transport::sim::SimulatedHost;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

async fn run(room: &Room) -> (Plan, ApplyOutcome) {
    let plan = room.plan().await;
    let outcome = apply_plan(&plan, &room.context, room.sink()).await;
    (plan, outcome)
}

/// The spec is applied; nothing to say where that did not go through.
async fn applied(case: &Case) -> Option<Room> {
    let room = case.room();
    let (plan, outcome) = run(&room).await;
    (outcome.ending == RunExitClass::Done && plan.has_work()).then_some(room)
}

/// Hosts that were applied to.
fn managed(room: &Room) -> BTreeSet<Target> {
    let hosts = room
        .fleet
        .hosts()
        .into_iter()
        .filter(|(_, host)| host.record.is_some());
    hosts.map(|(name, _)| Target::host(&name)).collect()
}

fn touches(plan: &Plan, targets: &BTreeSet<Target>) -> Vec<String> {
    let of_targets = plan.nodes.iter().filter(|node| {
        node.target
            .as_ref()
            .is_some_and(|target| targets.contains(target))
    });
    of_targets.map(|node| node.id.clone()).collect()
}

fn refused(plan: &Plan) -> BTreeSet<Target> {
    plan.refused
        .iter()
        .filter_map(|one| one.subject.parse().ok())
        .collect()
}

/// Another inventory of the same hosts: of another name, or of the same with an id of its own.
fn another(case: &Case, room: &Room) -> Room {
    let mut other = Room::beside(room.fleet.clone(), if case.crash.1 { "c" } else { "zzz" });
    let mut state = other.state();
    if case.crash.1 {
        other
            .context
            .folder
            .identify(&mut state, None, "c")
            .unwrap();
        let lock = ClusterLock::take(&other.context.folder, "apply").unwrap();
        state.store(lock.folder()).unwrap();
    }
    other.resources = case.desired(&case.dropped);
    (other.rollout.canary, other.rollout.max_unavailable) = (case.canary, case.max_unavailable);
    other
}

#[test]
fn law_another_cluster_changes_nothing_before_it_takes_over() {
    law(
        "law_another_cluster",
        cases(2, benign(), 0),
        async |case: &Case| {
            let Some(room) = applied(case).await else {
                return Ok(Held::Beside);
            };
            let (ours, before, other) =
                (managed(&room), room.fleet.effects(), another(case, &room));
            let (plan, _) = run(&other).await;
            ensure!(
                touches(&plan, &ours).is_empty(),
                "it plans {:?}",
                touches(&plan, &ours)
            );
            ensure!(
                refused(&plan) == ours,
                "it refuses {:?} and not {ours:?}",
                refused(&plan)
            );
            let after = room.fleet.effects();
            ensure!(
                ours.iter()
                    .all(|target| before[&*target.name] == after[&*target.name]),
                "a host of another cluster was changed"
            );

            let (state, _, _, recognition) = other.recognize().await;
            let decision = TakeOverDecision {
                targets: recognition.conflicts,
                reason: "moved".to_owned(),
                keep_record: false,
                cluster: state.cluster,
                name: other.cluster.to_owned(),
            };
            let taken = take_over_targets(&decision, &other.context)
                .await
                .map_err(|problem| problem.message)?;
            ensure!(
                taken.values().all(Result::is_ok) && taken.len() == ours.len(),
                "not all were taken over: {taken:?}"
            );
            let next = other.plan().await;
            ensure!(
                next.refused.is_empty(),
                "after it was taken over it is refused: {:?}",
                next.refused
            );
            ensure!(
                next.nodes
                    .iter()
                    .flat_map(|node| node.members())
                    .all(|member| !member.removal),
                "something of the other is removed"
            );
            let theirs = room.plan().await;
            ensure!(
                refused(&theirs) == ours && touches(&theirs, &ours).is_empty(),
                "the first cluster goes on: {:?}",
                theirs.nodes
            );
            Ok(Held::Yes)
        },
    );
}

/// What becomes of a state folder.
#[derive(Clone, Copy)]
enum Loss {
    /// It is gone.
    Folder,
    /// `state.json` and the one before it are gone, its runs are there.
    StateFile,
    /// An older copy is in its place.
    Older,
    /// An older copy was put over it: newer runs are there.
    OlderOver,
}

impl Loss {
    fn befalls(self, folder: &Path, older: &Path) {
        match self {
            Loss::Folder | Loss::Older => std::fs::remove_dir_all(folder).unwrap(),
            Loss::StateFile => ["state.json", "state.previous.json"]
                .iter()
                .for_each(|name| drop(std::fs::remove_file(folder.join(name)))),
            Loss::OlderOver => {}
        }
        if matches!(self, Loss::Older | Loss::OlderOver) {
            copy_folder(older, folder);
        }
    }
}

/// The spec, the spec without what is dropped, and nothing any more; between the last two the state
/// is kept, lost or put back as it was before the second.
async fn story(
    case: &Case,
    loses: Option<Loss>,
) -> Result<Option<BTreeMap<String, SimulatedHost>>, String> {
    let Some(mut room) = applied(case).await else {
        return Ok(None);
    };
    let (folder, aside) = (
        room.context.folder.path().to_owned(),
        tempfile::tempdir().unwrap(),
    );
    copy_folder(&folder, &aside.path().join("state"));
    room.resources = case.desired(&case.dropped);
    if run(&room).await.1.ending != RunExitClass::Done {
        return Ok(None);
    }
    let id = room.state().cluster;
    loses
        .into_iter()
        .for_each(|loss| loss.befalls(&folder, &aside.path().join("state")));
    let next = room.plan().await;
    ensure!(
        next.nodes.is_empty() && next.refused.is_empty(),
        "after the state was lost it plans {:?}",
        next.nodes
    );
    room.resources.clear();
    let (_, outcome) = run(&room).await;
    if outcome.ending != RunExitClass::Done {
        return Ok(None);
    }
    ensure!(
        outcome.run.is_none() || room.state().cluster == id,
        "the cluster has another id"
    );
    Ok(Some(room.fleet.effects()))
}

#[test]
fn law_a_state_that_was_lost_or_is_older_comes_to_the_same() {
    law(
        "law_a_state_that_was_lost",
        cases(2, benign(), 0),
        async |case: &Case| {
            let Some(kept) = story(case, None).await? else {
                return Ok(Held::Beside);
            };
            for loss in [Loss::Folder, Loss::StateFile, Loss::Older, Loss::OlderOver] {
                let lost = story(case, Some(loss)).await?;
                ensure!(lost.as_ref() == Some(&kept), "the fleet is another one");
            }
            Ok(Held::Yes)
        },
    );
}

#[test]
fn law_nothing_of_a_machine_before_comes_to_a_new_one() {
    law(
        "law_nothing_of_a_machine_before",
        cases(2, benign(), 0),
        async |case: &Case| {
            let Some(mut room) = applied(case).await else {
                return Ok(Held::Beside);
            };
            let (name, image) = (
                case.names()[case.crash.0 % case.hosts.len()].clone(),
                host(!case.hosts[0] & 0x3fff),
            );
            let record = room.host(&name, |host| host.record.clone());
            room.reinstall(&name, image.clone());
            // The new machine may have been made of an image of the one before.
            room.host(&name, |host| host.record = record.filter(|_| case.crash.1));
            if case.canary == 2 && run(&room).await.1.ending != RunExitClass::Done {
                return Ok(Held::Beside);
            }
            room.resources.clear();
            let (_, outcome) = run(&room).await;
            if outcome.ending != RunExitClass::Done {
                return Ok(Held::Beside);
            }
            let mut fresh = Room::with([(name.clone(), image)].into());
            fresh.reinstall(&name, fresh.host(&name, |host| host.clone()));
            if case.canary == 2 {
                fresh.resources = case
                    .desired(&BTreeSet::new())
                    .into_iter()
                    .filter(|resource| *resource.address.target.name == *name)
                    .collect();
                run(&fresh).await;
                fresh.resources.clear();
                run(&fresh).await;
            }
            let (is, ought) = (
                room.fleet.effects().remove(&name),
                fresh.fleet.effects().remove(&name),
            );
            ensure!(
                is == ought,
                "{name} has something of the machine before: {is:#?} and not {ought:#?}"
            );
            ensure!(
                room.state()
                    .last_applied
                    .of_target(&Target::host(&name))
                    .next()
                    .is_none(),
                "something of it is remembered"
            );
            Ok(Held::Yes)
        },
    );
}
