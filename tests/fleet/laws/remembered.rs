//! Law 13: a host that failed a gate, or that a run left disturbed and unproven, is not forgotten
//! by any later run: whatever is applied, narrowed, crashed, resumed, or gone on with from a copy
//! of the state folder or without it. Checked from what happened.

use super::case::{Case, Freedom, benign, free_cases};
use super::crash::{Death, Fate};
use super::{Held, ensure, law};
use crate::room::{Room, copy_folder, temporary};
use proptest::prelude::*;
use railwright_apply::{Decisions, RunEvent, apply_plan, resume_run};
use railwright_plan::{NodeKind, Plan, PlanNode, PlanSelection, Unavailable};
use railwright_resource::Disruption;
use railwright_state::StateFolder;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What somebody does after the run whose gate failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Later {
    /// Applies the spec.
    Apply,
    /// Applies it to one host.
    Target(usize),
    /// Applies it, and the controller dies before this record.
    Crash(usize),
    /// Goes on with the newest run.
    Resume,
    /// Goes on from a copy of the state folder.
    Copy,
    /// The state folder is gone: a new one knows what the hosts say.
    Lost,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct World {
    case: Case,
    later: Vec<Later>,
    /// Before which of these the hosts are repaired.
    healed: usize,
}

fn worlds() -> impl Strategy<Value = World> {
    let later = prop_oneof![
        3 => Just(Later::Apply),
        2 => (0usize..4).prop_map(Later::Target),
        2 => (0usize..60).prop_map(Later::Crash),
        1 => Just(Later::Resume),
        1 => Just(Later::Copy),
        1 => Just(Later::Lost),
    ];
    let later = proptest::collection::vec(later, 1..6);
    let freedom = Freedom {
        failing: 2,
        policy: true,
        ..Freedom::default()
    };
    (free_cases(4, benign(), 0, freedom), later, 0usize..8).prop_map(|(case, later, healed)| {
        World {
            case,
            later,
            healed,
        }
    })
}

/// Which hosts have to be remembered, as somebody who only watches would say.
#[derive(Default)]
struct Watcher {
    /// A gate did not pass them, or they were disturbed and no gate has passed them since.
    open: BTreeSet<String>,
    /// Those that were open at the end of the run before.
    unproven: BTreeSet<String>,
    /// How much each host had been told to do by then.
    told: BTreeMap<String, usize>,
    seen: usize,
    spoke: bool,
}

impl Watcher {
    /// Checks what happened since the last time, by this plan; a run that begins anew verifies what
    /// is open before anybody else is disturbed.
    fn watch(&mut self, room: &Room, plan: &Plan, begins: bool) -> Result<(), String> {
        let events = room.events.lock().unwrap();
        // Whoever is out of service anyway, as a node that was left cordoned, may come along.
        let is_out = |host: &str| {
            let mut out = plan.unavailable.iter().flat_map(Unavailable::names);
            out.any(|name| name == host)
        };
        for event in &events[self.seen.min(events.len())..] {
            match event {
                RunEvent::ActionStarted { node, index: 0, .. } => {
                    // A node that is emptied bears the mark itself, and nothing is done to its host
                    // yet.
                    let disturbs = |node: &PlanNode| {
                        node.disruption >= Disruption::Restart
                            && !matches!(node.kind, NodeKind::Drain { .. })
                    };
                    let Some(node) = plan
                        .nodes
                        .iter()
                        .find(|other| other.id == *node && disturbs(other))
                    else {
                        continue;
                    };
                    let host = node
                        .target
                        .as_ref()
                        .map(|target| target.name.to_string())
                        .unwrap_or_default();
                    ensure!(
                        !begins
                            || self.unproven.is_empty()
                            || self.unproven.contains(&host)
                            || is_out(&host),
                        "{} was begun although no gate has passed {:?} yet",
                        node.id,
                        self.unproven
                    );
                    // Where the controller died before the word left it, nothing was done.
                    let told = room.host(&host, |host| host.told.len());
                    if self.told.get(&host).is_none_or(|before| told > *before) {
                        self.open.insert(host);
                    }
                }
                RunEvent::GateFinished { hosts, result, .. } => match result.failure() {
                    None => {
                        self.open.retain(|host| !hosts.contains(host));
                        self.unproven.retain(|host| !hosts.contains(host));
                    }
                    Some(_) => self.open.extend(hosts.iter().cloned()),
                },
                _ => {}
            }
        }
        self.seen = events.len();
        self.unproven = self.open.clone();
        let hosts = room.fleet.hosts();
        self.told = hosts
            .iter()
            .map(|(name, host)| (name.clone(), host.told.len()))
            .collect();
        self.spoke |= !self.open.is_empty();
        Ok(())
    }

    /// What is open is in the state, in the next plan, and verified by its first gate, but for who
    /// was still booting at the look.
    async fn is_remembered(&self, room: &Room) -> Result<(), String> {
        let known: BTreeSet<String> = room.recognize().await.0.outages.into_keys().collect();
        ensure!(
            self.open.is_subset(&known),
            "{:?} are out of service, and the state knows of {known:?}",
            self.open
        );
        let now = room.fleet.now();
        let plan = room.plan().await;
        let counted: BTreeSet<String> = plan
            .unavailable
            .iter()
            .flat_map(Unavailable::names)
            .collect();
        ensure!(
            self.open.is_subset(&counted),
            "{:?} are out of service, and the plan counts {counted:?}",
            self.open
        );
        let first = plan.verified_first();
        let is_verified =
            |name: &String| first.contains(name) || room.host(name, |host| host.down_until > now);
        ensure!(
            self.open.iter().all(is_verified),
            "{:?} are out of service, and the plan first verifies {first:?}",
            self.open
        );
        Ok(())
    }
}

/// The state folder at this place, with journals that this decides over.
fn folder(room: &Room, root: &Path, fate: &Fate) -> StateFolder {
    fate.over(StateFolder::at(root), &room.fleet, Death::Torn)
}

#[test]
fn law_13_a_host_that_failed_a_gate_is_not_forgotten() {
    law("law_13", worlds(), async |world: &World| {
        let names = world.case.names();
        let mut room = world.case.room();
        let (places, fate) = (temporary(), Fate::default());
        room.context.folder = folder(&room, &places.path().join("0"), &fate);
        let mut watcher = Watcher::default();
        for (turn, later) in std::iter::once(&Later::Apply)
            .chain(&world.later)
            .enumerate()
        {
            if turn > 0 && turn > world.healed {
                room.gate.bad.lock().unwrap().clear();
            }
            room.resources = if turn % 2 == 0 {
                world.case.desired(&BTreeSet::new())
            } else {
                world.case.desired(&world.case.dropped)
            };
            let target = match later {
                Later::Target(host) => names.get(*host).map(|host| format!("host/{host}")),
                _ => None,
            };
            let mut plan = room
                .narrowed_plan(PlanSelection {
                    targets: target.into_iter().collect(),
                    excludes: Vec::new(),
                })
                .await;
            match later {
                Later::Copy => {
                    let to = places.path().join(format!("{}", turn + 1));
                    // One that was lost a moment ago is not there yet.
                    if room.context.folder.path().exists() {
                        copy_folder(room.context.folder.path(), &to);
                    }
                    room.context.folder = folder(&room, &to, &fate);
                }
                Later::Lost => {
                    room.context.folder =
                        folder(&room, &places.path().join(format!("{}", turn + 1)), &fate)
                }
                Later::Resume => {
                    if let Some(run) = room.context.folder.newest_run().unwrap() {
                        plan = room.context.folder.read_plan(&run).unwrap();
                    }
                    resume_run(&room.context, Decisions::default(), room.sink()).await;
                }
                Later::Crash(at) => {
                    fate.die_at(Some(*at));
                    apply_plan(&plan, &room.context, room.sink()).await;
                    fate.die_at(None);
                    room.fleet.cut_off(false);
                }
                Later::Apply | Later::Target(_) => {
                    drop(apply_plan(&plan, &room.context, room.sink()).await)
                }
            }
            watcher.watch(&room, &plan, *later != Later::Resume)?;
            watcher.is_remembered(&room).await?;
        }
        Ok(if watcher.spoke {
            Held::Yes
        } else {
            Held::Beside
        })
    });
}
