//! Which step may start when: a pure state machine, (state, signal) -> (state, commands).
//!
//! The rules: edges are kept; one step at a time on a target; a wave begins when the one before it
//! is over; a disruptive step starts only when its host fits into the budget, in which everybody
//! counts who is out of service, whoever caused it, and that is asked again after each change of
//! the run's own, and of hosts that count and may be in service all the same no more are disturbed
//! at once than fit into it either; a host leaves service with its first disruptive step or its
//! failure, or where it was switched off and on by hand, and comes back only through a passed gate,
//! and where its node was emptied through the step that gives it back; a failure leaves the rest of
//! its target alone; a failed canary or gate stops what follows; when the maintenance window closes
//! or the deadline comes, nothing new starts, and what is through still passes its gate; with the
//! budget of failures used up, what was begun on a host is finished and no further host is begun.
//! Nothing ever waits for ever: when nothing runs and nothing may start, the rest is skipped and
//! says why.
//!
//! `step_outcome` says what becomes of a step that waits for nothing any more, `admission` which of
//! them begin, `out_of_service` who is out of it.

mod admission;
mod out_of_service;
mod step_outcome;

use self::out_of_service::OutageCheckState;
use super::signal::{GIVEN_UP, History, Limits, SchedulerCommand, Signal};
use super::steps::{OnNode, ScheduledStep, StepRole};
use railwright_base::{Target, TargetKind};
use railwright_plan::OutageCertainty;
use railwright_state::{NodeOutcome, Skip};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq)]
enum StepProgress {
    Waiting,
    Ready,
    Running,
    Over(NodeOutcome),
}

/// The state machine.
#[derive(Debug, Clone, Default)]
pub struct Scheduler {
    steps: Vec<ScheduledStep>,
    limits: Limits,
    progress: Vec<StepProgress>,
    /// Prerequisites that are not over, by step.
    waits_for: Vec<usize>,
    /// Steps that are not over, by wave.
    left_in_wave: BTreeMap<usize, usize>,
    /// Steps whose prerequisites are all over, to be looked at.
    unblocked: Vec<usize>,
    /// Steps that may start, by wave.
    ready: BTreeSet<(usize, usize)>,
    running: BTreeSet<usize>,
    busy: BTreeSet<Target>,
    /// Targets on which something was begun, in this part of the run or before.
    begun: BTreeSet<Target>,
    /// Hosts that a disruptive step took out of service, with that step; none for a step of an
    /// earlier part of the run.
    disturbed: BTreeMap<Target, Option<usize>>,
    /// Hosts that are lost: failed, unknown, unreachable.
    lost: BTreeSet<Target>,
    /// Hosts that are out of service by nobody's doing here, as it was looked at last.
    outside: BTreeMap<Target, OutageCertainty>,
    /// Hosts that count as out of service by what runs did, and may be in service all the same.
    in_doubt: BTreeMap<Target, OutageCertainty>,
    /// Hosts that an earlier run, or an earlier part of this one, left out of service, and that this
    /// part has not disturbed. Somebody may have given them back since.
    out_before: BTreeSet<Target>,
    look: OutageCheckState,
    /// Hosts lost in this run, which stops further waves.
    lost_in_run: BTreeSet<Target>,
    /// Gates with the steps that give back the hosts that passed: these wait for them no longer,
    /// though the gate is not over.
    let_go: BTreeSet<(usize, usize)>,
    /// Waits that ended well for some hosts alone, with these: all other hosts are left out.
    spared: BTreeMap<usize, BTreeSet<Target>>,
    /// Gates that an earlier part of the run has passed.
    passed_before: BTreeSet<usize>,
    /// Targets that are left alone, with the step that is the reason.
    isolated: BTreeMap<Target, usize>,
    /// For barriers that let others pass: who did not come along, with the step that is the reason.
    gaps: BTreeMap<usize, BTreeMap<Target, usize>>,
    of_target: BTreeMap<Target, Vec<usize>>,
    gated: BTreeSet<Target>,
    stopped: Option<Skip>,
    paused: bool,
    interrupted: bool,
    wave: Option<usize>,
    is_begun: bool,
    ended: bool,
}

impl Scheduler {
    /// Before the first signal.
    pub fn new(steps: Vec<ScheduledStep>, limits: Limits, history: &History) -> Self {
        let mut progress = vec![StepProgress::Waiting; steps.len()];
        let mut begun = history.out_of_service.clone();
        for (n, step) in steps.iter().enumerate() {
            if history.done.contains(&step.id) {
                progress[n] = StepProgress::Over(NodeOutcome::Done { changed: false });
                begun.extend(step.target.clone());
            }
        }
        let mut waits_for = Vec::with_capacity(steps.len());
        for step in &steps {
            let after = step.after.iter();
            let open = after.filter(|n| !matches!(progress[**n], StepProgress::Over(_)));
            waits_for.push(open.count());
        }
        let disturbed = history.out_of_service.iter();
        let mut scheduler = Scheduler {
            limits: Limits {
                parallel: limits.parallel.max(1),
                ..limits
            },
            waits_for,
            begun,
            disturbed: disturbed.map(|host| (host.clone(), None)).collect(),
            in_doubt: history.in_doubt.clone(),
            out_before: history.out_of_service.clone(),
            look: if limits.looks {
                OutageCheckState::Due
            } else {
                OutageCheckState::Fresh
            },
            progress,
            steps,
            ..Scheduler::default()
        };
        scheduler.index_steps();
        scheduler
    }

    /// Finds the steps of each wave and target, and the hosts that gates still have to verify.
    fn index_steps(&mut self) {
        for (n, step) in self.steps.iter().enumerate() {
            let is_over = matches!(self.progress[n], StepProgress::Over(_));
            if !is_over {
                *self.left_in_wave.entry(step.wave).or_insert(0) += 1;
            }
            if let Some(target) = &step.target {
                self.of_target.entry(target.clone()).or_default().push(n);
            }
            match &step.role {
                StepRole::Gate(_) if is_over => drop(self.passed_before.insert(n)),
                StepRole::Gate(hosts) => self.gated.extend(hosts.iter().cloned()),
                _ => {}
            }
        }
    }

    /// The one transition.
    pub fn step(mut self, signal: Signal) -> (Self, Vec<SchedulerCommand>) {
        let mut commands = Vec::new();
        match signal {
            Signal::Begin { unreachable } => self.begin(unreachable, &mut commands),
            Signal::Finished { step, outcome } => {
                self.look_again();
                self.finished(step, outcome);
            }
            Signal::Looked { out, may_serve } => self.record_outages(out, &may_serve),
            // Nobody asked the budget, and it may carry jobs by now: what fits in is asked of what we
            // do ourselves. Only a gate brings it back.
            Signal::WentOut { step } => self.went_out(step),
            Signal::Spare { step, hosts } => drop(self.spared.insert(step, hosts)),
            Signal::GateAnswered {
                step,
                hosts,
                problem,
            } => {
                self.look_again();
                self.gate_answered(step, &hosts, problem, &mut commands);
            }
            Signal::Close => self.close(),
            Signal::Expire => drop(self.stopped.get_or_insert(Skip::Deadline)),
            Signal::Pause => self.paused = true,
            Signal::Continue => {
                self.look_again();
                self.paused = false;
            }
            Signal::Interrupt => self.interrupted = true,
            Signal::Abandon => self.abandon(&mut commands),
        }
        // What comes before the beginning is only taken note of.
        if self.is_begun {
            self.advance(&mut commands);
        }
        (self, commands)
    }

    /// The steps, as they were given.
    pub fn steps(&self) -> &[ScheduledStep] {
        &self.steps
    }

    /// How each step ended, by number; nothing for what is not over.
    pub fn outcomes(&self) -> impl Iterator<Item = (&ScheduledStep, Option<&NodeOutcome>)> {
        self.steps
            .iter()
            .zip(&self.progress)
            .map(|(step, progress)| match progress {
                StepProgress::Over(outcome) => (step, Some(outcome)),
                _ => (step, None),
            })
    }

    /// Why nothing new starts any more, if so.
    pub fn stopped(&self) -> Option<&Skip> {
        self.stopped.as_ref()
    }

    /// Hosts that were lost in this part of the run.
    pub fn lost(&self) -> usize {
        self.lost_in_run.len()
    }

    fn begin(
        &mut self,
        unreachable: BTreeMap<Target, String>,
        commands: &mut Vec<SchedulerCommand>,
    ) {
        self.is_begun = true;
        for n in 0..self.steps.len() {
            if let (Some(reason), false) = (self.steps[n].blocked.clone(), self.is_over(n)) {
                self.settle(n, NodeOutcome::Blocked { reason }, commands);
            }
        }
        for (target, reason) in unreachable {
            if target.kind == TargetKind::Host {
                self.in_doubt.remove(&target);
                self.lost.insert(target.clone());
            }
            for n in self.of_target.get(&target).cloned().unwrap_or_default() {
                self.isolated.insert(target.clone(), n);
                if !self.is_over(n) {
                    self.settle(
                        n,
                        NodeOutcome::Unreachable {
                            reason: reason.clone(),
                        },
                        commands,
                    );
                }
            }
        }
        for n in 0..self.steps.len() {
            if self.waits_for[n] == 0 && self.progress[n] == StepProgress::Waiting {
                self.unblocked.push(n);
            }
        }
    }

    fn finished(&mut self, step: usize, outcome: NodeOutcome) {
        if self.release(step) {
            if outcome.is_loss()
                && let Some(host) = self.steps[step].host().cloned()
            {
                self.in_doubt.remove(&host);
                self.lost.insert(host.clone());
                self.lost_in_run.insert(host);
            }
            if let (true, Some(OnNode::GivesBack), Some(host)) = (
                outcome.is_done(),
                self.steps[step].on_node,
                self.steps[step].host(),
            ) {
                self.disturbed.remove(host);
            }
            if matches!(outcome, NodeOutcome::Stale { .. }) {
                // Nothing was begun, so the step took nobody out of service.
                self.disturbed.retain(|_, by| *by != Some(step));
            }
            self.over(step, outcome);
        }
    }

    fn gate_answered(
        &mut self,
        step: usize,
        hosts: &BTreeSet<Target>,
        problem: Option<String>,
        commands: &mut Vec<SchedulerCommand>,
    ) {
        if !self.release(step) {
            return;
        }
        match problem {
            Some(reason) => {
                self.stopped = Some(Skip::Gate {
                    node: self.steps[step].id.clone(),
                });
                self.settle(step, NodeOutcome::Failed { reason }, commands);
            }
            None => {
                let waiting = self.give_back(step, hosts);
                self.disturbed
                    .retain(|host, _| !hosts.contains(host) || waiting.contains(host));
                self.in_doubt.retain(|host, _| !hosts.contains(host));
                if self.waits_for[step] == 0 {
                    self.settle(step, self.passed(step), commands);
                } else {
                    self.progress[step] = StepProgress::Waiting;
                }
            }
        }
    }

    /// Has those of a gate's hosts given back that passed, and are given back by a step: they stay
    /// out of service until that is done.
    fn give_back(&mut self, gate: usize, hosts: &BTreeSet<Target>) -> BTreeSet<Target> {
        let mut waiting = BTreeSet::new();
        for n in self.steps[gate].before.clone() {
            let Some(host) = self.steps[n]
                .host()
                .filter(|host| hosts.contains(host))
                .cloned()
            else {
                continue;
            };
            if self.steps[n].on_node != Some(OnNode::GivesBack) || self.is_over(n) {
                continue;
            }
            waiting.insert(host);
            if self.let_go.insert((gate, n)) {
                self.no_longer_waits(n);
            }
        }
        waiting
    }

    fn no_longer_waits(&mut self, n: usize) {
        self.waits_for[n] -= 1;
        if self.waits_for[n] == 0 && self.progress[n] == StepProgress::Waiting {
            self.unblocked.push(n);
        }
    }

    /// What needs no window goes on when nothing else is left.
    fn close(&mut self) {
        for n in 0..self.steps.len() {
            if self.steps[n].needs_window && !self.is_over(n) && !self.running.contains(&n) {
                self.stopped.get_or_insert(Skip::Window);
                return;
            }
        }
    }

    fn went_out(&mut self, step: usize) {
        let host = self.steps[step].host();
        if let Some(host) = host.filter(|host| !self.is_out_by_run(host)) {
            self.in_doubt
                .insert(host.clone(), OutageCertainty::LeftInDoubt);
            self.disturbed.insert(host.clone(), None);
        }
    }

    /// True when the step was running.
    fn release(&mut self, step: usize) -> bool {
        if let Some(target) = self.steps.get(step).and_then(|s| s.target.as_ref()) {
            self.busy.remove(target);
        }
        self.running.remove(&step)
    }

    fn abandon(&mut self, commands: &mut Vec<SchedulerCommand>) {
        self.interrupted = true;
        self.look = OutageCheckState::Due;
        for n in std::mem::take(&mut self.running) {
            let outcome = match self.steps[n].role {
                StepRole::Work => NodeOutcome::Unknown {
                    reason: GIVEN_UP.to_owned(),
                },
                _ => NodeOutcome::Skipped {
                    because: Skip::Interrupted,
                },
            };
            self.settle(n, outcome, commands);
        }
    }

    fn is_over(&self, n: usize) -> bool {
        matches!(self.progress[n], StepProgress::Over(_))
    }

    /// Ends a step that nobody else reports on.
    fn settle(&mut self, n: usize, outcome: NodeOutcome, commands: &mut Vec<SchedulerCommand>) {
        commands.push(SchedulerCommand::Settle {
            step: n,
            outcome: outcome.clone(),
        });
        self.over(n, outcome);
    }

    fn over(&mut self, n: usize, outcome: NodeOutcome) {
        self.ready.remove(&(self.steps[n].wave, n));
        if let Some(left) = self.left_in_wave.get_mut(&self.steps[n].wave) {
            *left -= 1;
            if *left == 0 {
                self.left_in_wave.remove(&self.steps[n].wave);
            }
        }
        let target = self.steps[n].target.clone();
        if let (Some(target), true) = (&target, outcome.isolates() && !self.spared.contains_key(&n))
        {
            self.isolated.entry(target.clone()).or_insert(n);
            for m in self.of_target.get(target).into_iter().flatten() {
                if self.progress[*m] == StepProgress::Ready {
                    self.unblocked.push(*m);
                }
            }
        }
        self.progress[n] = StepProgress::Over(outcome);
        for dependant in self.steps[n].before.clone() {
            if !self.let_go.contains(&(n, dependant)) {
                self.no_longer_waits(dependant);
            }
        }
        // What an earlier run left out of service only a gate brings back.
        if let Some(target) = target
            && let Some(Some(_)) = self.disturbed.get(&target)
            && !self.gated.contains(&target)
            && let Some(steps) = self.of_target.get(&target)
            && steps.iter().all(|m| self.is_over(*m))
        {
            self.disturbed.remove(&target);
        }
    }

    /// Goes on until something runs or all is over.
    fn advance(&mut self, commands: &mut Vec<SchedulerCommand>) {
        loop {
            while let Some(n) = self.unblocked.pop() {
                self.look_at(n, commands);
            }
            self.start_ready_steps(commands);
            if !self.unblocked.is_empty() {
                continue;
            }
            if !self.running.is_empty() || self.is_looking() {
                return;
            }
            if self.left_in_wave.is_empty() {
                if !self.ended {
                    self.ended = true;
                    commands.push(SchedulerCommand::End);
                }
                return;
            }
            if !self.resolve_standstill(commands) {
                return;
            }
        }
    }

    /// All prerequisites are over: what becomes of the step?
    fn look_at(&mut self, n: usize, commands: &mut Vec<SchedulerCommand>) {
        if self.is_over(n) || self.running.contains(&n) {
            return;
        }
        let fate = match &self.steps[n].role {
            StepRole::Work => self.obstacle(n),
            StepRole::Barrier => Some(self.pass_barrier(n)),
            StepRole::Gate(hosts) => self.gate_obstacle(n, hosts),
        };
        match fate {
            Some(outcome) => self.settle(n, outcome, commands),
            None => {
                self.progress[n] = StepProgress::Ready;
                self.ready.insert((self.steps[n].wave, n));
            }
        }
    }
}
