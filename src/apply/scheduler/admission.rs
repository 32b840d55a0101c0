//! Which of the steps that may start do so, within the budget, the number at once and what was
//! ordered; and what is done when none may and nothing runs.

use super::super::signal::SchedulerCommand;
use super::super::steps::{OnNode, StepRole};
use super::out_of_service::OutageCheckState;
use super::{Scheduler, StepProgress};
use railwright_base::Target;
use railwright_state::{NodeOutcome, Skip};
use std::collections::BTreeSet;

impl Scheduler {
    /// Starts what may start.
    pub(super) fn start_ready_steps(&mut self, commands: &mut Vec<SchedulerCommand>) {
        let Some((&wave, _)) = self.left_in_wave.first_key_value() else {
            return;
        };
        if self.interrupted || self.paused || self.running.len() >= self.limits.parallel {
            return;
        }
        if self.stopped.is_none()
            && self.wave.is_some_and(|before| wave > before)
            && self.failure_budget_is_used_up()
        {
            self.stopped = Some(Skip::Budget);
        }
        if self.stopped.is_none() {
            self.wave = Some(wave);
        }
        let ready = self.ready.range(..(wave + 1, 0));
        let mut startable: Vec<usize> = ready.map(|(_, n)| *n).collect();
        if self.stopped.is_some() {
            // A host that passed a gate is given back whatever stopped the rest.
            startable.retain(|n| self.steps[*n].on_node == Some(OnNode::GivesBack));
        }
        for n in startable {
            if self.running.len() >= self.limits.parallel {
                return;
            }
            match self.steps[n].role.clone() {
                StepRole::Gate(hosts) => {
                    let hosts = self.to_be_proven(n, &hosts);
                    self.start_gate(n, hosts, commands);
                }
                _ => self.start_step(n, commands),
            }
        }
    }

    /// Starts a step unless its target is busy or the budget is used up.
    fn start_step(&mut self, n: usize, commands: &mut Vec<SchedulerCommand>) {
        let Some(target) = self.steps[n].target.clone() else {
            return;
        };
        if self.busy.contains(&target)
            || (self.failure_budget_is_used_up() && !self.begun.contains(&target))
            || !self.may_start(n, commands)
        {
            return;
        }
        if let (true, Some(host)) = (self.steps[n].disruptive, self.steps[n].host()) {
            self.disturbed.entry(host.clone()).or_insert(Some(n));
            self.in_doubt.remove(host);
            self.out_before.remove(host);
        }
        self.begun.insert(target.clone());
        self.busy.insert(target);
        self.mark_running(n);
        commands.push(SchedulerCommand::Run { step: n });
    }

    fn start_gate(
        &mut self,
        n: usize,
        hosts: BTreeSet<Target>,
        commands: &mut Vec<SchedulerCommand>,
    ) {
        self.mark_running(n);
        commands.push(SchedulerCommand::Check { step: n, hosts });
    }

    fn mark_running(&mut self, n: usize) {
        self.ready.remove(&(self.steps[n].wave, n));
        self.running.insert(n);
        self.progress[n] = StepProgress::Running;
    }

    /// The budget: a disruptive step may start on a host that is out already, or when one more fits
    /// in. Who else is out is looked at before that. A host that counts and may carry jobs all the
    /// same is disturbed like one that does not count: one more has to fit in.
    fn may_start(&mut self, n: usize, commands: &mut Vec<SchedulerCommand>) -> bool {
        let Some(host) = self.steps[n].host().filter(|_| self.steps[n].disruptive) else {
            return true;
        };
        if self.is_out_for_certain_by_run(host) && !self.out_before.contains(host) {
            return true;
        }
        if self.look == OutageCheckState::Due {
            self.look = OutageCheckState::Asked;
            commands.push(SchedulerCommand::Look);
        }
        let has_room = self.count_out_of_service_beside(host) < self.limits.max_unavailable;
        self.look == OutageCheckState::Fresh && (has_room || self.is_out_for_certain(host))
    }

    /// Nothing runs and nothing may start. A gate may free slots early; otherwise the rest is
    /// skipped.
    pub(super) fn resolve_standstill(&mut self, commands: &mut Vec<SchedulerCommand>) -> bool {
        let because = if self.interrupted {
            Some(Skip::Interrupted)
        } else {
            self.stopped.clone()
        };
        if self.paused && because.is_none() {
            return false;
        }
        if matches!(because, Some(Skip::Window | Skip::Deadline))
            && let Some((gate, hosts)) = self.early_gate()
        {
            self.start_gate(gate, hosts, commands);
            return false;
        }
        if let Some(because) = because {
            for n in 0..self.steps.len() {
                if !self.is_over(n) {
                    self.settle(
                        n,
                        NodeOutcome::Skipped {
                            because: because.clone(),
                        },
                        commands,
                    );
                }
            }
            return true;
        }
        match self.early_gate() {
            Some((gate, hosts)) => {
                self.start_gate(gate, hosts, commands);
                false
            }
            None => {
                self.stopped = Some(Skip::Budget);
                true
            }
        }
    }

    /// A gate that waits for hosts which wait for slots that its other hosts hold: those are
    /// checked first.
    fn early_gate(&self) -> Option<(usize, BTreeSet<Target>)> {
        let wave = *self.left_in_wave.first_key_value()?.0;
        for (n, step) in self.steps.iter().enumerate() {
            let StepRole::Gate(hosts) = &step.role else {
                continue;
            };
            if self.is_over(n) || step.wave > wave {
                continue;
            }
            let mut free = BTreeSet::new();
            for host in hosts {
                if self.disturbed.contains_key(host)
                    && !self.isolated.contains_key(host)
                    && !self.has_let_go(n, host)
                    && self.is_through(host, step.wave)
                {
                    free.insert(host.clone());
                }
            }
            if !free.is_empty() {
                return Some((n, free));
            }
        }
        None
    }

    /// Whether this host has passed a gate already, which let the step go that gives its node back.
    fn has_let_go(&self, gate: usize, host: &Target) -> bool {
        self.let_go
            .iter()
            .any(|(by, n)| *by == gate && self.steps[*n].host() == Some(host))
    }

    /// Whether all that a host does up to this wave is over, but for giving its node back.
    fn is_through(&self, host: &Target, wave: usize) -> bool {
        let mut steps = self.of_target.get(host).into_iter().flatten();
        steps.all(|n| {
            let step = &self.steps[*n];
            self.is_over(*n) || step.wave > wave || step.on_node == Some(OnNode::GivesBack)
        })
    }
}
