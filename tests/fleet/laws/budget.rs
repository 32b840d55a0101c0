//! Law 7: in no interleaving do we start a disruption that puts unavailable above the budget,
//! whoever caused it: hosts down before the plan, nodes that others cordoned, gates that failed in
//! an earlier run, also with a budget in percent and a plan that is narrowed away from them.
//! Checked from what happened, by rules of its own: not by what the scheduler thinks.

use super::case::{Case, Freedom, free_cases, troubles};
use super::{Held, ensure, law, runtime, switch_off_and_on};
use crate::nodes::Nodes;
use crate::room::Room;
use proptest::prelude::*;
use railwright_apply::{Decisions, RunEvent, RunExitClass, apply_plan, resume_run};
use railwright_plan::{NodeKind, Plan, PlanNode};
use railwright_resource::Disruption;
use railwright_state::NodeOutcome;
use railwright_transport::sim::{SimulatedFault, SimulatedTrouble};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Who is out of service, as somebody who only watches would say.
struct Watcher<'a> {
    plan: &'a Plan,
    /// Disturbed, or failed by a gate, and no gate has passed since.
    out: BTreeSet<String>,
    /// Lost by a step that disturbs nobody, and no gate has passed since: it may carry jobs.
    in_doubt: BTreeSet<String>,
    /// Not reached when it was asked last.
    silent: BTreeSet<String>,
    /// Its node was cordoned by us, and not given back since.
    cordoned: BTreeSet<String>,
    /// Down before the plan was made, or taken out of service by others.
    elsewhere: BTreeSet<String>,
    budget: usize,
    disruptions: usize,
}

impl<'a> Watcher<'a> {
    fn new(plan: &'a Plan, budget: usize) -> Self {
        let nobody = BTreeSet::new;
        Watcher {
            plan,
            out: nobody(),
            in_doubt: nobody(),
            silent: nobody(),
            cordoned: nobody(),
            elsewhere: nobody(),
            budget,
            disruptions: 0,
        }
    }

    fn step(&self, node: &str) -> Option<&'a PlanNode> {
        self.plan.nodes.iter().find(|other| other.id == node)
    }

    fn host(&self, node: &str) -> Option<String> {
        self.step(node)?
            .target
            .as_ref()
            .map(|target| target.name.to_string())
    }

    fn is_disruptive(&self, node: &str) -> bool {
        self.step(node)
            .is_some_and(|step| step.disruption >= Disruption::Restart)
    }

    /// Whoever cannot be in service.
    fn out_for_certain(&self) -> BTreeSet<String> {
        [&self.out, &self.silent, &self.cordoned, &self.elsewhere]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    fn see(&mut self, event: &RunEvent) -> Result<(), String> {
        match event {
            RunEvent::ActionStarted { node, index: 0, .. } if self.is_disruptive(node) => {
                let own = self.host(node).unwrap_or_default();
                let was_out = self.out_for_certain().contains(&own);
                let was_in_doubt = self.in_doubt.remove(&own);
                self.out.insert(own);
                self.disruptions += 1;
                let mut unavailable = self.out_for_certain();
                if !was_in_doubt {
                    unavailable.extend(self.in_doubt.iter().cloned());
                }
                let (count, budget) = (unavailable.len(), self.budget);
                // Fixing a host that is out already puts nobody else out.
                ensure!(
                    was_out || count <= budget,
                    "{node} began with {unavailable:?} out of service, and the budget is {budget}"
                );
            }
            RunEvent::StepFinished {
                node,
                outcome: NodeOutcome::Done { .. },
            } => match self.step(node).map(|step| &step.kind) {
                Some(NodeKind::Drain { .. }) => self.cordoned.extend(self.host(node)),
                Some(NodeKind::Uncordon { .. }) => {
                    let host = self.host(node);
                    self.cordoned.retain(|other| Some(other) != host.as_ref());
                }
                _ => {}
            },
            RunEvent::StepFinished {
                node,
                outcome: NodeOutcome::Failed { .. } | NodeOutcome::Unknown { .. },
            } => {
                let (host, is_disruptive) = (self.host(node), self.is_disruptive(node));
                match is_disruptive {
                    true => self.out.extend(host),
                    false => self
                        .in_doubt
                        .extend(host.filter(|host| !self.out.contains(host))),
                }
            }
            RunEvent::StepFinished {
                node,
                outcome: NodeOutcome::Unreachable { .. },
            } => self.silent.extend(self.host(node)),
            RunEvent::HostUnreachable { host, .. } => self.silent.extend([host.clone()]),
            // The gate of these worlds passes a host also while somebody has it switched off.
            RunEvent::PowerCycled { host } => self.out.extend([host.clone()]),
            RunEvent::HostReady { host, .. } => self.silent.retain(|other| other != host),
            RunEvent::GateFinished { hosts, result, .. } => match result.failure() {
                // Whom a gate passed has answered.
                None => [&mut self.out, &mut self.in_doubt, &mut self.silent]
                    .into_iter()
                    .for_each(|some| some.retain(|host| !hosts.contains(host))),
                Some(_) => self.out.extend(hosts.iter().cloned()),
            },
            _ => {}
        }
        Ok(())
    }
}

/// What is so before the run that is checked, and who else takes hosts out of service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct World {
    case: Case,
    /// Whether the hosts that do not pass their gate in the run before pass it later.
    healed: bool,
    /// Hosts that go down after that run.
    down: BTreeSet<usize>,
    /// Hosts whose nodes somebody cordons or that are NotReady, by whether they are Ready.
    nodes: BTreeMap<usize, bool>,
}

fn worlds() -> impl Strategy<Value = World> {
    let some = || proptest::collection::btree_set(0usize..6, 0..3);
    let nodes = proptest::collection::btree_map(0usize..6, any::<bool>(), 0..2);
    let freedom = Freedom {
        failing: 2,
        policy: true,
        ..Freedom::default()
    };
    let case = free_cases(6, troubles(), 6, freedom);
    (case, any::<bool>(), some(), nodes).prop_map(|(case, healed, down, nodes)| World {
        case,
        healed,
        down,
        nodes,
    })
}

impl World {
    /// The names of those of these hosts that there are.
    fn names(&self, hosts: impl IntoIterator<Item = usize>) -> BTreeSet<String> {
        let names = self.case.names();
        hosts
            .into_iter()
            .filter_map(|host| names.get(host).cloned())
            .collect()
    }
}

/// Goes on until nothing is left that `resume` could do.
async fn through(
    room: &Room,
    case: &Case,
    plan: &Plan,
    switched: &mut BTreeMap<usize, Vec<String>>,
) {
    let mut outcome = apply_plan(plan, &room.context, room.sink()).await;
    for turn in 0..4 {
        if matches!(outcome.ending, RunExitClass::Done | RunExitClass::Refused)
            || outcome.run.is_none()
        {
            break;
        }
        let hosts = switch_off_and_on(
            room,
            &outcome,
            case.crash.1,
            !(case.crash.0 + turn).is_multiple_of(3),
        )
        .await;
        switched.insert(room.events.lock().unwrap().len(), hosts);
        outcome = resume_run(&room.context, Decisions::default(), room.sink()).await;
    }
}

/// Checks what happened since this event, with these hosts down or cordoned by others all the time.
fn watch(
    room: &Room,
    watcher: &mut Watcher<'_>,
    since: usize,
    switched: &mut BTreeMap<usize, Vec<String>>,
) -> Result<(), String> {
    let events = room.events.lock().unwrap();
    for (n, event) in events.iter().enumerate().skip(since) {
        watcher
            .out
            .extend(switched.remove(&n).into_iter().flatten());
        watcher
            .see(event)
            .map_err(|why| format!("{why}, after {:#?}", &events[n.saturating_sub(30)..=n]))?;
    }
    Ok(())
}

/// What becomes of a world, checked by a watcher: the first plan, then another spec on a fleet of
/// which some hosts are down or taken by others.
async fn within_budget(world: &World) -> Result<Held, String> {
    let case = &world.case;
    let mut room = case.room();
    let nodes = room
        .server
        .clone()
        .unwrap_or_else(|| Nodes::beside(&mut room));
    let mut switched = BTreeMap::new();
    let first = room.plan().await;
    through(&room, case, &first, &mut switched).await;
    let mut watcher = Watcher::new(&first, case.budget());
    watch(&room, &mut watcher, 0, &mut switched)?;
    // Another spec, on a fleet of which some hosts are down or taken by others.
    if world.healed {
        room.gate.bad.lock().unwrap().clear();
    }
    room.resources = case.desired(&case.dropped);
    for host in world.names(world.down.iter().copied()) {
        room.host(&host, |host| {
            host.faults.push(SimulatedFault {
                after: 0,
                word: None,
                trouble: SimulatedTrouble::Unreachable(u32::MAX),
            })
        });
    }
    for (host, ready) in &world.nodes {
        world
            .names([*host])
            .iter()
            .for_each(|host| nodes.set(host, *ready, false));
    }
    let second = case.plan(&room).await;
    case.strike(&room);
    // A host that is down stays down: it loses no power, and so boots no more.
    for host in world.names(world.down.iter().copied()) {
        room.host(&host, |host| {
            host.faults
                .retain(|fault| fault.trouble != SimulatedTrouble::PowerLost)
        });
    }
    let since = room.events.lock().unwrap().len();
    through(&room, case, &second, &mut switched).await;
    let mut watcher = Watcher {
        plan: &second,
        elsewhere: world.names(world.down.iter().chain(world.nodes.keys()).copied()),
        ..watcher
    };
    watch(&room, &mut watcher, since, &mut switched)?;
    Ok(if watcher.disruptions > 0 {
        Held::Yes
    } else {
        Held::Beside
    })
}

#[test]
fn law_7_never_more_out_of_service_than_the_budget_allows() {
    law("law_7", worlds(), within_budget);
}

/// A host loses power and is back before its power cycle is due: it may carry jobs again, and one
/// host is down already.
#[test]
fn a_host_that_booted_anew_by_itself_is_disturbed_within_the_budget() {
    let line = r#"{"case":{"hosts":[0,0,0],"resources":[{"what":11,"form":false,"after":[]},
        {"what":16,"form":true,"after":[0]}],"dropped":[],"max_unavailable":1,"canary":1,
        "faults":[{"host":1,"after":5,"trouble":"power_lost"}],"crash":[0,false],"failing":[0]},
        "healed":false,"down":[0],"nodes":{}}"#;
    let world: World = serde_json::from_str(line).unwrap();
    assert_eq!(runtime().block_on(within_budget(&world)), Ok(Held::Yes));
}
