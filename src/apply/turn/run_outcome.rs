//! How a run ended: its exit class, what it leaves open, and one sentence for all that was skipped.

use super::Turn;
use crate::outcome::{ApplyOutcome, RunExitClass, StepCounts, compute_exit_class};
use crate::shared::RunContext;
use crate::steps::StepRole;
use crate::trouble;
use crate::uncordon::{may_be_cordoned, stay_cordoned};
use railwright_base::{Diagnostic, nodeset};
use railwright_plan::by_hand::{is_by_hand, is_left_to_new_plan};
use railwright_plan::{Outage, Outages};
use railwright_state::journal_writer::JournalError;
use railwright_state::{ClusterState, FencedFolder, JournalEntry, NodeOutcome, Skip};
use std::collections::{BTreeMap, BTreeSet};

impl Turn {
    /// How the run ended; its end is journalled, and the state made of the journal.
    pub async fn outcome(
        mut self,
        broken: Option<JournalError>,
        folder: &FencedFolder,
    ) -> ApplyOutcome {
        let outcomes: Vec<(String, NodeOutcome)> = self
            .scheduler
            .outcomes()
            .map(|(step, outcome)| (step.id.clone(), or_unknown(outcome)))
            .collect();
        let summary = self.summary(&outcomes);
        self.problems.extend(summary);
        let (nodes, next) = (&self.shared.plan.nodes, &self.shared.next);
        self.problems.extend(stay_cordoned(nodes, &outcomes, next));
        self.problems
            .extend(may_be_cordoned(nodes, &outcomes, next));
        let (waits, power_cycles) = self.waiting(&outcomes);
        self.problems
            .extend(self.find_steps_for_new_plan(&outcomes, &waits));
        let resumable = !waits.is_empty()
            || self.scheduler.outcomes().any(|(step, outcome)| {
                step.role != StepRole::Barrier
                    && step.blocked.is_none()
                    && !outcome.is_some_and(NodeOutcome::is_done)
            });
        let ending = compute_exit_class(&outcomes, &waits, self.interrupts > 0, &self.problems);
        let stored = store_end(&self.shared, ending, broken, folder).await;
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
        let (mut waits, mut hosts) = (BTreeSet::new(), BTreeMap::new());
        let nodes = &self.shared.plan.nodes;
        let is_blocked = |n: usize| matches!(outcomes[n].1, NodeOutcome::Blocked { .. });
        for (n, node) in nodes.iter().enumerate() {
            let own = self.shared.on_target(node.target.as_ref());
            let is_off = |m: &usize| is_by_hand(&nodes[*m]) && is_blocked(*m);
            let may_follow = is_left_to_new_plan(node) && own.iter().any(is_off);
            if !is_blocked(n) || (node.blocked.is_some() && !may_follow) {
                continue;
            }
            waits.insert(n);
            if !is_by_hand(node) {
                continue;
            }
            let earlier = self.shared.earlier_on_target(n);
            if earlier.iter().all(|m| outcomes[*m].1.is_done()) {
                let of_wave: &mut Vec<String> = hosts.entry(node.wave).or_default();
                of_wave.extend(node.target.iter().map(|target| target.name.to_string()));
            }
        }
        (waits, hosts.into_values().collect())
    }

    /// The steps that a new plan has to empty a node for, once no power cycle comes before them.
    fn find_steps_for_new_plan(
        &self,
        outcomes: &[(String, NodeOutcome)],
        waits: &BTreeSet<usize>,
    ) -> Option<Diagnostic> {
        let (mut steps, mut hosts) = (0, BTreeSet::new());
        for (n, node) in self.shared.plan.nodes.iter().enumerate() {
            let is_blocked = matches!(outcomes[n].1, NodeOutcome::Blocked { .. });
            if is_blocked && is_left_to_new_plan(node) && !waits.contains(&n) {
                steps += 1;
                hosts.extend(node.target.iter().map(|target| &*target.name));
            }
        }
        let hosts = nodeset::fold_node_set(&Vec::from_iter(hosts));
        (steps > 0).then(|| trouble::left_to_new_plan(steps, &hosts, &self.shared.next))
    }

    /// Who is out of service, with the reason where it is nobody's doing here.
    fn unavailable(&self) -> BTreeMap<String, Option<String>> {
        let (seen, refused) = (self.seen_out(), self.shared.plan.refused_hosts());
        let mut unavailable = BTreeMap::new();
        for host in self.scheduler.out_of_service() {
            let why = match seen.get(host) {
                Some(why) if !self.scheduler.is_out_for_certain_by_run(host) => Some(why.words()),
                _ => refused.get(&*host.name).cloned(),
            };
            unavailable.insert(host.name.to_string(), why);
        }
        unavailable
    }

    /// One sentence for all that was skipped, with the number that the run's last line has.
    fn summary(&self, outcomes: &[(String, NodeOutcome)]) -> Option<Diagnostic> {
        let mut found: Vec<&Skip> = Vec::new();
        for (_, outcome) in outcomes {
            if let NodeOutcome::Skipped { because } = outcome {
                found.push(because);
            }
        }
        let mut reasons = [
            Skip::Interrupted,
            Skip::Window,
            Skip::Deadline,
            Skip::Budget,
        ]
        .into_iter();
        let because = reasons.find(|because| found.contains(&because))?;
        Some(self.report_skipped(&because))
    }

    fn report_skipped(&self, because: &Skip) -> Diagnostic {
        let (count, lost) = (self.count_work().skipped, self.scheduler.lost());
        let (next, rollout) = (&self.shared.next, &self.shared.plan.rollout);
        match (because, rollout.failure_budget) {
            (Skip::Interrupted, _) => trouble::report_interrupted_run(count, next),
            (Skip::Window, _) => {
                trouble::window_closed(count, rollout, self.shared.context.clock.now(), next)
            }
            (Skip::Deadline, _) => {
                let seconds = rollout.deadline_s.unwrap_or_default();
                trouble::report_deadline_passed(count, seconds, next)
            }
            (_, Some(failures)) if lost >= failures => {
                trouble::failure_budget(count, lost, failures, next)
            }
            _ => {
                let out = self.unavailable();
                trouble::report_budget_stop(count, &out, rollout.max_unavailable, next)
            }
        }
    }
}

/// Journals the end unless the journal is broken, and makes the state of the journal. Gives back the
/// hosts that are out of service after it.
async fn store_end(
    shared: &RunContext,
    ending: RunExitClass,
    broken: Option<JournalError>,
    folder: &FencedFolder,
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
    let stored = ClusterState::load(&shared.context.folder).and_then(|mut state| {
        state.store(folder)?;
        Ok(state.outages)
    });
    stored.map_err(|problem| {
        problem.state("what the run did is in its journal, from which the next command reads it")
    })
}

/// Only a run whose journal broke ends with steps that have no outcome.
fn or_unknown(outcome: Option<&NodeOutcome>) -> NodeOutcome {
    outcome.cloned().unwrap_or_else(|| NodeOutcome::Unknown {
        reason: "the run ended before it".to_owned(),
    })
}
