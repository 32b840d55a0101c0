//! How a run ended: its exit class, what it leaves open, and one sentence for all that was skipped.

use super::Turn;
use crate::outcome::{ApplyOutcome, RunExitClass, StepCounts, compute_exit_class};
use crate::shared::RunContext;
use crate::steps::{ScheduledStep, StepRole};
use crate::trouble;
use crate::uncordon::{may_be_cordoned, stay_cordoned};
use railwright_base::{Diagnostic, Target};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{Outage, Outages, Unavailability};
use railwright_state::journal_writer::JournalError;
use railwright_state::{ClusterState, JournalEntry, NodeOutcome, Skip};
use std::collections::{BTreeMap, BTreeSet};

impl Turn {
    /// How the run ended; its end is journalled, and the state made of the journal.
    pub async fn outcome(mut self, broken: Option<JournalError>) -> ApplyOutcome {
        let outcomes: Vec<(String, NodeOutcome)> = self
            .scheduler
            .outcomes()
            .map(|(step, outcome)| (step.id.clone(), or_unknown(outcome)))
            .collect();
        let (nodes, next) = (&self.shared.plan.nodes, &self.shared.next);
        let told = self
            .summary(&outcomes)
            .into_iter()
            .chain(stay_cordoned(nodes, &outcomes, next))
            .chain(may_be_cordoned(nodes, &outcomes, next));
        self.problems.extend(told);
        let (waits, power_cycles) = self.waiting(&outcomes);
        let is_left = |(step, outcome): (&ScheduledStep, Option<&NodeOutcome>)| {
            step.role != StepRole::Barrier
                && step.held.is_none()
                && !outcome.is_some_and(NodeOutcome::is_done)
        };
        let resumable = !waits.is_empty() || self.scheduler.outcomes().any(is_left);
        let ending = compute_exit_class(&outcomes, &waits, self.interrupts > 0, &self.problems);
        let stored = store_end(&self.shared, ending, broken).await;
        let ending = match stored {
            Ok(outages) if ending == RunExitClass::Done => self.check_outages(&outages),
            Ok(_) => ending,
            Err(problem) => {
                self.problems.push(problem);
                ending.min(RunExitClass::Failed)
            }
        };
        ApplyOutcome {
            ending,
            run: Some(self.shared.run.clone()),
            counts: self.count_work(),
            resumable,
            power_cycles,
            problems: self.problems,
            outcomes,
        }
    }

    /// Counts steps that work on a target by their outcome; gates and barriers are not counted.
    fn count_work(&self) -> StepCounts {
        let mut counts = StepCounts::default();
        for (step, outcome) in self.scheduler.outcomes() {
            if step.role == StepRole::Work {
                counts.add(&or_unknown(outcome));
            }
        }
        counts
    }

    /// A run that is done is incomplete where hosts of the inventory are still out of service.
    fn check_outages(&mut self, outages: &Outages) -> RunExitClass {
        let hosts = &self.shared.context.hosts;
        let known: BTreeMap<&str, &Outage> = outages
            .iter()
            .filter(|(host, _)| hosts.contains_key(*host))
            .map(|(host, outage)| (host.as_str(), outage))
            .collect();
        if known.is_empty() {
            return RunExitClass::Done;
        }
        self.problems
            .push(trouble::still_out_of_service(&known, &self.shared.next));
        RunExitClass::Incomplete
    }

    /// The steps that wait for nothing but a power cycle, and the hosts that wait for one, wave by
    /// wave. The plan of a run holds nothing of them itself.
    fn waiting(&self, outcomes: &[(String, NodeOutcome)]) -> (BTreeSet<usize>, Vec<Vec<String>>) {
        let nodes = &self.shared.plan.nodes;
        let is_held = |n: &usize| matches!(outcomes[*n].1, NodeOutcome::Held { .. });
        let waits: BTreeSet<usize> = (0..nodes.len())
            .filter(|n| nodes[*n].held.is_none() && is_held(n))
            .collect();
        let mut hosts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let is_due = |n: &usize| {
            self.shared
                .earlier_on_target(*n)
                .iter()
                .all(|m| outcomes[*m].1.is_done())
        };
        for node in waits
            .iter()
            .filter(|n| is_by_hand(&nodes[**n]) && is_due(n))
            .map(|n| &nodes[*n])
        {
            hosts
                .entry(node.wave)
                .or_default()
                .extend(node.target.iter().map(|target| target.name.to_string()));
        }
        (waits, hosts.into_values().collect())
    }

    /// Who is out of service, with the reason where it is nobody's doing here.
    fn unavailable(&self) -> BTreeMap<String, Option<String>> {
        let (seen, refused) = (self.seen_out(), self.shared.plan.refused_hosts());
        let outside = |host: &Target| {
            seen.get(host)
                .filter(|_| !self.scheduler.is_out_for_certain_by_run(host))
        };
        let why = |host: &Target| {
            outside(host)
                .map(Unavailability::words)
                .or_else(|| refused.get(&*host.name).cloned())
        };
        let one = |host: &Target| (host.name.to_string(), why(host));
        self.scheduler
            .out_of_service()
            .into_iter()
            .map(one)
            .collect()
    }

    /// One sentence for all that was skipped, with the number that the run's last line has.
    fn summary(&self, outcomes: &[(String, NodeOutcome)]) -> Option<Diagnostic> {
        let is_skipped = |wanted: &Skip| {
            outcomes
                .iter()
                .any(|(_, o)| matches!(o, NodeOutcome::Skipped { because } if because == wanted))
        };
        let count = self.count_work().skipped;
        let next = &self.shared.next;
        let rollout = &self.shared.plan.rollout;
        let tell = |because: Skip| match because {
            Skip::Interrupted => trouble::report_interrupted_run(count, next),
            Skip::Window => {
                trouble::window_closed(count, rollout, self.shared.context.clock.now(), next)
            }
            Skip::Deadline => {
                let seconds = rollout.deadline_s.unwrap_or_default();
                trouble::report_deadline_passed(count, seconds, next)
            }
            _ => match rollout.failure_budget {
                Some(failures) if self.scheduler.lost() >= failures => {
                    trouble::failure_budget(count, self.scheduler.lost(), failures, next)
                }
                _ => trouble::report_budget_stop(
                    count,
                    &self.unavailable(),
                    rollout.max_unavailable,
                    next,
                ),
            },
        };
        [
            Skip::Interrupted,
            Skip::Window,
            Skip::Deadline,
            Skip::Budget,
        ]
        .into_iter()
        .find(is_skipped)
        .map(tell)
    }
}

/// Journals the end unless the journal is broken, and makes the state of the journal. Gives back the
/// hosts that are out of service after it.
async fn store_end(
    shared: &RunContext,
    ending: RunExitClass,
    broken: Option<JournalError>,
) -> Result<Outages, Diagnostic> {
    let finished = match broken {
        Some(broken) => Err(broken),
        None => {
            let ending = ending.word().to_owned();
            let entry = JournalEntry::RunFinished { ending };
            shared.journal.commit(entry).await
        }
    };
    finished.map_err(|broken| trouble::journal_broken(&broken, &shared.next))?;
    let folder = &shared.context.folder;
    let mut state = ClusterState::load(folder)?;
    state.store(folder)?;
    Ok(state.outages)
}

/// Only a run whose journal broke ends with steps that have no outcome.
fn or_unknown(outcome: Option<&NodeOutcome>) -> NodeOutcome {
    outcome.cloned().unwrap_or_else(|| NodeOutcome::Unknown {
        reason: "the run ended before it".to_owned(),
    })
}
