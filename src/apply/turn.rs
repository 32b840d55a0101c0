//! The loop between the scheduler and the hosts: starts what the scheduler asks for, tells it what
//! came of it, and journals both.

mod run_outcome;

use super::by_hand::by_hand;
use super::change::{Finish, apply_change};
use super::cluster_node::NodeStep;
use super::context::RunEvent;
use super::drain::drain_node;
use super::gatekeeper::GateResult;
use super::outage_check::Lookout;
use super::reboot::reboot_host;
use super::scheduler::Scheduler;
use super::shared::RunContext;
use super::signal::{SchedulerCommand, Signal};
use super::trouble;
use super::uncordon::uncordon_node;
use super::watch::{Notice, RunMonitor};
use railwright_base::{Diagnostic, Target, TargetKind};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{NodeKind, Unavailability};
use railwright_state::journal_writer::JournalError;
use railwright_state::{JournalEntry, NodeOutcome, OrderKind, RunOrder, Skip};
use railwright_system::identity;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::task::JoinSet;

enum FinishedTask {
    Look,
    Step(Box<Finish>),
    /// With what kept hosts from writing it down.
    Gate {
        hosts: Vec<String>,
        result: GateResult,
        unwritten: Vec<Diagnostic>,
    },
}

/// A task that ended, or panicked.
type JoinedTask =
    Result<(tokio::task::Id, Result<FinishedTask, JournalError>), tokio::task::JoinError>;

/// A run that goes on.
pub(super) struct Turn {
    shared: Arc<RunContext>,
    scheduler: Scheduler,
    tasks: JoinSet<Result<FinishedTask, JournalError>>,
    of_task: BTreeMap<tokio::task::Id, usize>,
    problems: Vec<Diagnostic>,
    /// Hosts that passed a gate, in this part of the run or before.
    proven: BTreeSet<String>,
    interrupts: u32,
    watch: RunMonitor,
    lookout: Arc<Lookout>,
    /// The task that looks who else is out of service.
    looking: Option<tokio::task::Id>,
    /// Steps that ran when the run was given up.
    given_up: Vec<usize>,
}

impl Turn {
    /// Before the first signal.
    pub fn new(shared: Arc<RunContext>, scheduler: Scheduler, problems: Vec<Diagnostic>) -> Self {
        let proven = shared.earlier.proven.keys().cloned().collect();
        let watch = RunMonitor::new(
            &shared.context,
            &shared.plan.rollout,
            &shared.run,
            shared.last_order.clone(),
        );
        let lookout = Arc::new(Lookout::new(&shared));
        Turn {
            shared,
            scheduler,
            tasks: JoinSet::new(),
            of_task: BTreeMap::new(),
            problems,
            proven,
            interrupts: 0,
            watch,
            lookout,
            looking: None,
            given_up: Vec::new(),
        }
    }

    /// From signal to signal until all is over.
    pub async fn run(&mut self, unreachable: BTreeMap<Target, String>) -> Result<(), JournalError> {
        let mut interrupts = self.shared.context.interrupts.clone();
        interrupts.mark_changed();
        let mut listening = true;
        // The hosts were reached for a while: the window may have closed meanwhile.
        for notice in self.watch.look() {
            self.noticed(notice).await;
        }
        let mut over = self.signal(Signal::Begin { unreachable }).await;
        while !over {
            over = tokio::select! {
                // Whoever asks to stop is heard first, and the same events always go the same way.
                biased;
                changed = interrupts.changed(), if listening => {
                    listening = changed.is_ok();
                    let count = *interrupts.borrow();
                    self.commit_own_abort(count).await;
                    self.interrupted(count).await
                }
                notices = self.watch.next() => {
                    let mut ended = false;
                    for notice in notices {
                        ended = ended || self.noticed(notice).await;
                    }
                    ended
                }
                Some(joined) = self.tasks.join_next_with_id() => self.joined(joined).await?,
            };
        }
        self.tasks.abort_all();
        Ok(())
    }

    async fn joined(&mut self, joined: JoinedTask) -> Result<bool, JournalError> {
        let (id, done) = match joined {
            Ok((id, done)) => (id, Some(done?)),
            Err(error) => (error.id(), None),
        };
        if self.looking == Some(id) {
            return Ok(self.finish_look().await);
        }
        let Some(step) = self.of_task.remove(&id) else {
            return Ok(false);
        };
        let signal = match done {
            Some(FinishedTask::Step(finish)) => self.finish_step(step, *finish).await,
            Some(FinishedTask::Gate {
                hosts,
                result,
                unwritten,
            }) => {
                self.problems.extend(unwritten);
                self.finish_gate(step, &hosts, result)
            }
            Some(FinishedTask::Look) | None => self.finish_failed_task(step).await,
        };
        Ok(self.signal(signal).await)
    }

    /// Tells the scheduler who else is out of service. True when all is over.
    async fn finish_look(&mut self) -> bool {
        self.looking = None;
        for step in self.lookout.power_cycles() {
            self.signal(Signal::WentOut { step }).await;
        }
        let out = self.seen_out().into_iter();
        let out = out.map(|(host, why)| (host, why.certainty())).collect();
        let may_serve = self.lookout.may_serve(&self.shared);
        self.signal(Signal::Looked { out, may_serve }).await
    }

    async fn finish_step(&mut self, step: usize, finish: Finish) -> Signal {
        self.problems.extend(finish.problems);
        if let Some(hosts) = finish.spares {
            self.signal(Signal::Spare { step, hosts }).await;
        }
        (self.shared.sink)(RunEvent::StepFinished {
            node: self.shared.plan.nodes[step].id.clone(),
            outcome: finish.outcome.clone(),
        });
        if finish.went_out {
            self.signal(Signal::WentOut { step }).await;
        }
        Signal::Finished {
            step,
            outcome: finish.outcome,
        }
    }

    fn finish_gate(&mut self, step: usize, hosts: &[String], result: GateResult) -> Signal {
        let problem = result.failure();
        self.problems.extend(result.problems.iter().cloned());
        if problem.is_none() {
            self.proven.extend(hosts.iter().cloned());
        }
        (self.shared.sink)(RunEvent::GateFinished {
            node: self.shared.plan.nodes[step].id.clone(),
            hosts: hosts.to_vec(),
            result,
        });
        Signal::GateAnswered {
            step,
            hosts: hosts.iter().map(Target::host).collect(),
            problem,
        }
    }

    /// The task of a step panicked: how the step ended is not known.
    async fn finish_failed_task(&mut self, step: usize) -> Signal {
        let outcome = NodeOutcome::Unknown {
            reason: "railwright itself failed in this step".to_owned(),
        };
        let problem = self.unknown(step, "railwright itself failed in this step; this is a bug");
        self.problems.push(problem);
        let finish = Finish::of(outcome.clone());
        let node = &self.shared.plan.nodes[step];
        self.shared.finish(node, &finish, None).await;
        Signal::Finished { step, outcome }
    }

    fn unknown(&self, step: usize, reason: &str) -> Diagnostic {
        let node = &self.shared.plan.nodes[step];
        let resources: Vec<String> = node
            .members()
            .iter()
            .map(|m| m.resource.address.to_string())
            .collect();
        trouble::report_unknown_outcome(&node.id, reason, &resources, &self.shared.next)
    }

    /// What the watch saw is journalled where somebody ordered it, shown, and passed to the
    /// scheduler.
    async fn noticed(&mut self, notice: Notice) -> bool {
        let (signal, because) = match notice {
            Notice::Closed => (Signal::Close, Skip::Window),
            Notice::Expired => (Signal::Expire, Skip::Deadline),
            Notice::Ordered(RunOrder {
                order,
                who,
                machine,
                ..
            }) => {
                self.shared.journal.note(JournalEntry::Ordered {
                    order,
                    who: who.clone(),
                    machine,
                });
                (self.shared.sink)(RunEvent::Ordered { order, who });
                return match order {
                    OrderKind::Pause => self.signal(Signal::Pause).await,
                    OrderKind::Continue => self.signal(Signal::Continue).await,
                    OrderKind::Abort => {
                        self.shared.order_to_end();
                        self.interrupted(self.interrupts.max(1)).await
                    }
                };
            }
        };
        let over = self.signal(signal).await;
        if self.scheduler.stopped() == Some(&because) {
            (self.shared.sink)(RunEvent::Halted {
                because,
                running: self.tasks.len(),
            });
        }
        over
    }

    /// A signal counts as an order to abort: whoever orders something after it hears that.
    async fn commit_own_abort(&self, count: u32) {
        if count > 0 && self.interrupts == 0 {
            let order = JournalEntry::Ordered {
                order: OrderKind::Abort,
                who: identity::find_user_name(),
                machine: identity::read_machine_name(),
            };
            // A journal that broke ends the run at its next step, and says so.
            let _ = self.shared.journal.commit(order).await;
        }
    }

    async fn interrupted(&mut self, count: u32) -> bool {
        let before = std::mem::replace(&mut self.interrupts, count);
        let mut over = false;
        if before == 0 && count >= 1 {
            let running: Vec<_> = self
                .of_task
                .values()
                .map(|step| &self.shared.plan.nodes[*step])
                .collect();
            let reboots = running
                .iter()
                .any(|node| node.kind == NodeKind::Reboot && !is_by_hand(node));
            let reboot_limit = reboots.then_some(self.shared.context.patience.reboot);
            (self.shared.sink)(RunEvent::Interrupted {
                running: running.into_iter().map(|node| node.id.clone()).collect(),
                reboot_limit,
            });
            over = self.signal(Signal::Interrupt).await;
        }
        if before < 2 && count >= 2 && !over {
            self.tasks.abort_all();
            over = self.signal(Signal::Abandon).await;
        }
        over
    }

    /// One transition of the scheduler, and what it asks for. True when all is over.
    async fn signal(&mut self, signal: Signal) -> bool {
        let (scheduler, commands) = std::mem::take(&mut self.scheduler).step(signal);
        self.scheduler = scheduler;
        let mut over = false;
        for command in commands {
            match command {
                SchedulerCommand::Run { step } => self.start_step(step),
                SchedulerCommand::Check { step, hosts } => self.start_gate(
                    step,
                    hosts
                        .into_iter()
                        .map(|host| host.name.to_string())
                        .collect(),
                ),
                SchedulerCommand::Look => self.start_look(),
                SchedulerCommand::Settle { step, outcome } => self.settle(step, outcome).await,
                SchedulerCommand::End => over = true,
            }
        }
        over
    }

    fn start_step(&mut self, step: usize) {
        let shared = self.shared.clone();
        (shared.sink)(RunEvent::StepStarted {
            node: shared.plan.nodes[step].id.clone(),
        });
        let handle = self.tasks.spawn(async move {
            let finish = match &shared.plan.nodes[step].kind {
                NodeKind::Reboot if is_by_hand(&shared.plan.nodes[step]) => {
                    by_hand(&shared, step).await
                }
                NodeKind::Reboot => reboot_host(&shared, step).await?,
                NodeKind::Drain { cluster, node } => {
                    drain_node(NodeStep::new(&shared, step, cluster, node)).await?
                }
                NodeKind::Uncordon { cluster, node, .. } => {
                    uncordon_node(NodeStep::new(&shared, step, cluster, node)).await?
                }
                _ => apply_change(&shared, step).await?,
            };
            Ok(FinishedTask::Step(Box::new(finish)))
        });
        self.of_task.insert(handle.id(), step);
    }

    /// Who is out of service by what was seen at the last look. A doubt about a host that counts by
    /// a run is nothing new.
    fn seen_out(&self) -> BTreeMap<Target, Unavailability> {
        let mut out = self.lookout.out();
        out.retain(|host, why| {
            let is_doubt =
                matches!(why, Unavailability::LeftByRun(outage) if outage.cause.is_in_doubt());
            !(is_doubt && self.scheduler.is_out_by_run(host))
        });
        out
    }

    /// Looks who is out of service by nobody's doing here. Whoever counts for certain already is
    /// not asked.
    fn start_look(&mut self) {
        let (shared, lookout) = (self.shared.clone(), self.lookout.clone());
        let mut asked = BTreeMap::new();
        for (name, access) in &shared.context.hosts {
            let target = access.target();
            if target.kind == TargetKind::Host && self.scheduler.has_to_be_looked_at(&target) {
                asked.insert(name.clone(), target);
            }
        }
        let handle = self.tasks.spawn(async move {
            lookout.look(&shared, asked).await;
            Ok(FinishedTask::Look)
        });
        self.looking = Some(handle.id());
    }

    fn start_gate(&mut self, step: usize, hosts: Vec<String>) {
        let shared = self.shared.clone();
        // Whoever left service since then proves nothing about others: it may be switched off.
        let mut proven: Vec<String> = self.proven.iter().cloned().collect();
        proven.retain(|host| !self.scheduler.is_out(&Target::host(host.as_str())));
        shared.journal.note(JournalEntry::GateStarted {
            node: shared.plan.nodes[step].id.clone(),
            hosts: hosts.clone(),
        });
        (shared.sink)(RunEvent::GateStarted {
            node: shared.plan.nodes[step].id.clone(),
            hosts: hosts.clone(),
        });
        let handle = self.tasks.spawn(async move {
            let mut result = shared.context.gatekeeper.check(&hosts, &proven).await;
            result
                .problems
                .extend(shared.proves_nothing(&hosts, &result));
            let (node, failure) = (shared.plan.nodes[step].id.clone(), result.first_failure());
            let mut compared = hosts.clone();
            if failure.is_some() {
                let named = result.failed.iter().filter(|host| !hosts.contains(host));
                compared.extend(named.cloned());
            }
            // Before any host knows it: what they know is known here, whenever this ends.
            shared
                .journal
                .commit(JournalEntry::GateChecked {
                    node: node.clone(),
                    hosts: compared.clone(),
                    failure: failure.clone(),
                })
                .await?;
            let unwritten = shared.record_gate(&node, &compared, failure.as_ref()).await;
            Ok(FinishedTask::Gate {
                hosts,
                result,
                unwritten,
            })
        });
        self.of_task.insert(handle.id(), step);
    }

    async fn settle(&mut self, step: usize, outcome: NodeOutcome) {
        if matches!(outcome, NodeOutcome::Unknown { .. }) {
            self.problems
                .push(self.unknown(step, "it was given up while it ran"));
            self.given_up.push(step);
        }
        self.shared
            .finish(
                &self.shared.plan.nodes[step],
                &Finish::of(outcome.clone()),
                None,
            )
            .await;
        (self.shared.sink)(RunEvent::StepFinished {
            node: self.shared.plan.nodes[step].id.clone(),
            outcome,
        });
    }

    /// The steps that were given up while they ran, once.
    pub fn given_up(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.given_up)
    }

    /// What went wrong beside its steps.
    pub fn add(&mut self, problems: Vec<Diagnostic>) {
        self.problems.extend(problems);
    }
}
