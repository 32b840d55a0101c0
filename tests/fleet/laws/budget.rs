//! Law 7: in no interleaving do we start a disruption that puts unavailable above the budget. Judged from what happened,
//! by rules of its own: not by what the scheduler thinks.

use super::case::{Case, cases, troubles};
use super::{Held, ensure, law, switch_off_and_on};
use railwright::apply::{Decisions, Ending, Event, apply, resume};
use railwright::plan::Plan;
use railwright::resource::Disruption;
use railwright::state::Outcome;
use std::collections::{BTreeMap, BTreeSet};

/// Who is out of service, as somebody who only watches would say.
struct Watcher<'a> {
    plan: &'a Plan,
    /// Disturbed or lost, and no gate has passed since.
    out: BTreeSet<String>,
    /// Not reached when it was asked last.
    silent: BTreeSet<String>,
    worst: usize,
    disruptions: usize,
}

impl Watcher<'_> {
    fn host(&self, node: &str) -> Option<String> {
        let node = self.plan.nodes.iter().find(|other| other.id == node)?;
        node.target.as_ref().map(|target| target.name.to_string())
    }

    fn is_disruptive(&self, node: &str) -> bool {
        self.plan.nodes.iter().any(|other| other.id == node && other.disruption >= Disruption::Restart)
    }

    fn see(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::ActionStarted { node, index: 0, .. } if self.is_disruptive(node) => {
                let own = self.host(node).unwrap_or_default();
                let was_out = self.out.contains(&own) || self.silent.contains(&own);
                self.out.insert(own);
                self.disruptions += 1;
                let unavailable: BTreeSet<&String> = self.out.union(&self.silent).collect();
                self.worst = self.worst.max(unavailable.len());
                let budget = self.plan.rollout.max_unavailable;
                // Mending a host that is out already puts nobody else out.
                ensure!(
                    was_out || unavailable.len() <= budget,
                    "{node} began with {unavailable:?} out of service, and the budget is {budget}"
                );
            }
            Event::StepFinished { node, outcome: Outcome::Failed { .. } | Outcome::Unknown { .. } } => self.out.extend(self.host(node)),
            Event::StepFinished { node, outcome: Outcome::Unreachable { .. } } => self.silent.extend(self.host(node)),
            Event::HostUnreachable { host, .. } => self.silent.extend([host.clone()]),
            Event::HostReady { host, .. } => self.silent.retain(|other| other != host),
            Event::GateFinished { hosts, result, .. } if result.failure().is_none() => {
                self.out.retain(|host| !hosts.contains(host));
            }
            _ => {}
        }
        Ok(())
    }
}

#[test]
fn law_7_never_more_out_of_service_than_the_budget_allows() {
    law("law_7", cases(6, troubles(), 6), async |case: &Case| {
        let room = case.room();
        let plan = room.plan().await;
        case.strike(&room);
        let mut outcome = apply(&plan, &room.context, room.sink()).await;
        let mut switched: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for turn in 0..4 {
            if matches!(outcome.ending, Ending::Done | Ending::Refused) {
                break;
            }
            let hosts = switch_off_and_on(&room, &outcome, case.crash.1, !(case.crash.0 + turn).is_multiple_of(3)).await;
            switched.insert(room.events.lock().unwrap().len(), hosts);
            outcome = resume(&room.context, Decisions::default(), room.sink()).await;
        }
        let mut watcher = Watcher { plan: &plan, out: BTreeSet::new(), silent: BTreeSet::new(), worst: 0, disruptions: 0 };
        let events = room.events.lock().unwrap();
        for (n, event) in events.iter().enumerate() {
            watcher.out.extend(switched.remove(&n).into_iter().flatten());
            watcher.see(event).map_err(|why| format!("{why}, after {:#?}", &events[n.saturating_sub(30)..=n]))?;
        }
        Ok(if watcher.disruptions > 0 { Held::Yes } else { Held::Beside })
    });
}
