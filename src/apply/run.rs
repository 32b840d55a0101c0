//! The loop between the scheduler and the hosts: starts what the scheduler asks for, tells it what came of it, and
//! journals both.

use super::change::{Finish, change};
use super::context::{Context, Event, EventSink};
use super::outcome::{ApplyOutcome, Counts, Ending, ending};
use super::preflight::{HostNow, Preflight, connect, preflight, release, told};
use super::reboot::reboot;
use super::resume::Decisions;
use super::scheduler::{Command, History, Limits, Scheduler, Signal};
use super::steps::{Role, Step, steps};
use super::trouble::{self, Next};
use super::{gate::GateResult, refusal};
use crate::base::{Address, Diagnostic, Target};
use crate::plan::{Applied, Node, NodeKind, Plan};
use crate::state::journal::{self, Chain};
use crate::state::journal_writer::{JournalError, JournalStore, JournalWriter};
use crate::state::{ClusterLock, Entry, Outcome, RunStatus, Skip, State, StateFolder};
use crate::system::{clock, identity};
use crate::transport::{Performed, TransportError, Upkeep, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::task::JoinSet;

/// Stands between the run and the journal's file; tests break it there.
pub(super) type Wrap<'a> = &'a (dyn Fn(Box<dyn JournalStore>) -> Box<dyn JournalStore> + Sync);

/// What every step of a run sees.
pub(super) struct Shared {
    pub plan: Plan,
    pub context: Context,
    pub run: String,
    pub next: Next,
    pub journal: JournalWriter,
    pub sink: EventSink,
    pub earlier: RunStatus,
    pub decisions: Decisions,
    state: Mutex<State>,
    hosts: Mutex<BTreeMap<String, HostNow>>,
    /// The numbers of each target's steps.
    of_target: BTreeMap<Target, Vec<usize>>,
    /// Direct prerequisites on the same target.
    before_on_target: Vec<Vec<usize>>,
    /// Steps that acted in this run.
    acted: Mutex<BTreeSet<usize>>,
    /// Hosts whose resources were all compared with the plan.
    compared: Mutex<BTreeSet<String>>,
}

/// A poisoned lock means that another task panicked; what it guards are plain maps, which are whole between statements.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Shared {
    pub async fn connect(&self, host: &str) -> Result<Writer, TransportError> {
        connect(host, &self.context).await
    }

    pub fn prior(&self, address: &Address) -> Option<Applied> {
        guard(&self.state).last_applied.resources.get(address).cloned()
    }

    pub fn host(&self, host: &str) -> HostNow {
        guard(&self.hosts).get(host).cloned().unwrap_or_default()
    }

    pub fn booted(&self, host: &str, boot_id: String) {
        guard(&self.hosts).entry(host.to_owned()).or_default().boot_id = Some(boot_id);
    }

    pub fn note_acted(&self, n: usize) {
        guard(&self.acted).insert(n);
    }

    /// True when no step of the host has compared its resources with the plan yet.
    pub fn is_first_on(&self, host: &str) -> bool {
        guard(&self.compared).insert(host.to_owned())
    }

    /// The steps of one target, in the plan's order.
    pub fn on_target(&self, target: Option<&Target>) -> &[usize] {
        target.and_then(|target| self.of_target.get(target)).map_or(&[], Vec::as_slice)
    }

    /// Steps of the same target that come before this one, however far.
    pub fn earlier_on_target(&self, n: usize) -> BTreeSet<usize> {
        let (mut found, mut queue) = (BTreeSet::new(), vec![n]);
        while let Some(next) = queue.pop() {
            queue.extend(self.before_on_target[next].iter().copied().filter(|m| found.insert(*m)));
        }
        found
    }

    /// An earlier step of this run acted on the same target, so its resources may have moved by our own doing.
    pub fn may_have_moved(&self, n: usize) -> bool {
        let acted = guard(&self.acted).clone();
        self.earlier_on_target(n).iter().any(|m| acted.contains(m))
    }

    /// Journals how a step ended, takes it into the state, and has the host write it down as well.
    pub async fn finish(&self, node: &Node, finish: &Finish, writer: Option<&Writer>) -> Option<Diagnostic> {
        let (outcome, applied, removed) = (finish.outcome.clone(), finish.applied.clone(), finish.removed.clone());
        self.journal.note(Entry::NodeFinished { node: node.id.clone(), outcome, applied: applied.clone(), removed: removed.clone() });
        if applied.is_empty() && removed.is_empty() {
            return None;
        }
        let target = node.target.clone()?;
        let record = {
            let mut state = guard(&self.state);
            state.last_applied.resources.extend(applied);
            state.last_applied.resources.retain(|address, _| !removed.contains(address));
            state.next_record(&target.name, &self.run, &self.plan.digest, clock::now())
        };
        let written = match writer {
            Some(writer) => writer.upkeep(&Upkeep::WriteRecord { json: record.to_json() }).await,
            None => return None,
        };
        let reason = match written {
            Ok(Performed::Ended { code: 0, .. }) => {
                self.journal.note(Entry::HostRecordWritten { host: target.name, serial: record.serial });
                return None;
            }
            Ok(Performed::Ended { code, stderr, .. }) => format!("exit status {code}: {stderr}"),
            Ok(Performed::Unknown { reason }) => reason,
            Err(error) => error.to_string(),
        };
        Some(trouble::record_not_written(&target, &reason))
    }
}

/// Carries out a plan. Refusals change nothing and leave no run behind.
pub async fn apply(plan: &Plan, context: &Context, sink: EventSink) -> ApplyOutcome {
    apply_through(plan, context, sink, &|store| store).await
}

/// `apply`, with something between it and the journal's file.
pub(super) async fn apply_through(plan: &Plan, context: &Context, sink: EventSink, wrap: Wrap<'_>) -> ApplyOutcome {
    match begin(plan, context, sink, wrap).await {
        Ok(Some(begun)) => begun.carry_out().await,
        Ok(None) => ApplyOutcome { ending: Ending::Done, run: None, counts: Counts::default(), problems: Vec::new(), outcomes: Vec::new() },
        Err(problems) => ApplyOutcome::refused(problems),
    }
}

async fn begin(plan: &Plan, context: &Context, sink: EventSink, wrap: Wrap<'_>) -> Result<Option<Begun>, Vec<Diagnostic>> {
    let problems = refusal::of_plan(plan, context);
    if !problems.is_empty() {
        return Err(problems);
    }
    let steps = steps(plan).map_err(|problem| vec![problem])?;
    if steps.is_empty() {
        return Ok(None);
    }
    let lock = ClusterLock::take(&context.folder, "apply").map_err(|problem| vec![problem])?;
    let mut state = State::load(&context.folder).map_err(|problem| vec![problem])?;
    let moved = refusal::of_state(plan, &state);
    let hosts = refusal::hosts(plan).into_iter().map(str::to_owned).collect();
    let found = preflight(plan, hosts, context, &lock, &sink).await;
    if !found.refusals.is_empty() {
        return Err(found.refusals);
    }
    for record in &found.records {
        state.merge(record);
    }
    let ready: Vec<String> = found.ready.keys().cloned().collect();
    // The plan may have been made with or without what the hosts remember; one of the two it must be.
    let opened = match moved.and(refusal::of_state(plan, &state)) {
        Some(problem) => Err(problem),
        None => open(plan, context, &mut state, found.fence, wrap),
    };
    match opened {
        Ok((run, journal)) => {
            let entries = vec![started(&run, plan), Entry::LockTaken { fence: found.fence }];
            let earlier = Earlier { status: RunStatus::default(), decisions: Decisions::default() };
            let run = RunParts { plan: plan.clone(), context: context.clone(), sink, run, journal, state, lock };
            Ok(Some(Begun::new(run, steps, earlier, found, entries)))
        }
        Err(problem) => {
            release(ready, context, &lock.holder).await;
            Err(vec![problem])
        }
    }
}

fn open(plan: &Plan, context: &Context, state: &mut State, fence: u64, wrap: Wrap<'_>) -> Result<(String, JournalWriter), Diagnostic> {
    state.store(&context.folder)?;
    let run = StateFolder::run_name(fence, &plan.digest);
    let store = context.folder.begin_run(&run, plan)?;
    Ok((run, context.folder.writer(wrap(store), Chain::default())?))
}

fn started(run: &str, plan: &Plan) -> Entry {
    Entry::RunStarted {
        format_version: journal::FORMAT_VERSION.to_owned(),
        run: run.to_owned(),
        plan: plan.digest.clone(),
        inventory: plan.inventory.clone(),
        who: identity::user(),
        machine: identity::machine(),
        process: identity::process(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// What a run is made of, new or resumed.
pub(super) struct RunParts {
    pub plan: Plan,
    pub context: Context,
    pub sink: EventSink,
    pub run: String,
    pub journal: JournalWriter,
    pub state: State,
    pub lock: ClusterLock,
}

/// What an earlier part of the run left, and what the user says about it.
pub(super) struct Earlier {
    pub status: RunStatus,
    pub decisions: Decisions,
}

/// A run with its hosts locked, of which nothing is journalled yet.
pub(super) struct Begun {
    shared: Arc<Shared>,
    scheduler: Scheduler,
    lock: ClusterLock,
    found: Preflight,
    entries: Vec<Entry>,
}

impl Begun {
    pub fn new(run: RunParts, steps: Vec<Step>, earlier: Earlier, found: Preflight, mut entries: Vec<Entry>) -> Self {
        let limits = Limits { parallel: run.context.patience.parallel, max_unavailable: run.plan.rollout.max_unavailable };
        let history = history(&steps, &earlier.status);
        let acted =
            (0..steps.len()).filter(|n| earlier.status.nodes.get(&steps[*n].id).is_some_and(|node| node.intent.is_some())).collect();
        let mut of_target: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
        for (n, step) in steps.iter().enumerate() {
            step.target.iter().for_each(|target| of_target.entry(target.clone()).or_default().push(n));
        }
        let same = |n: usize, m: &usize| steps[n].target.is_some() && steps[*m].target == steps[n].target;
        let before_on_target = (0..steps.len()).map(|n| steps[n].after.iter().copied().filter(|m| same(n, m)).collect()).collect();
        for (host, now) in &found.ready {
            entries.push(Entry::HostLocked { host: host.clone(), boot_id: now.boot_id.clone() });
        }
        let shared = Shared {
            next: Next::of(&run.plan),
            plan: run.plan,
            context: run.context,
            run: run.run,
            journal: run.journal,
            sink: run.sink,
            earlier: earlier.status,
            decisions: earlier.decisions,
            state: Mutex::new(run.state),
            hosts: Mutex::new(found.ready.clone()),
            acted: Mutex::new(acted),
            compared: Mutex::default(),
            of_target,
            before_on_target,
        };
        Begun { scheduler: Scheduler::new(steps, limits, &history), shared: Arc::new(shared), lock: run.lock, found, entries }
    }

    /// Journals the beginning, then goes from signal to signal until all is over.
    pub async fn carry_out(self) -> ApplyOutcome {
        let Begun { shared, scheduler, lock, found, mut entries } = self;
        let ready: Vec<String> = found.ready.keys().cloned().collect();
        let last = entries.pop();
        entries.into_iter().for_each(|entry| shared.journal.note(entry));
        if let Some(Err(broken)) = match last {
            Some(last) => Some(shared.journal.commit(last).await),
            None => None,
        } {
            release(ready, &shared.context, &lock.holder).await;
            return ApplyOutcome::refused(vec![trouble::journal_broken(&broken.to_string(), &shared.next)]);
        }
        let left = scheduler.outcomes().filter(|(step, outcome)| step.role == Role::Work && outcome.is_none()).count();
        (shared.sink)(Event::RunStarted { run: shared.run.clone(), steps: left });
        let mut problems = told(&found.unreachable, &shared.next);
        problems.extend(found.warnings);
        let mut turn = Turn { shared: shared.clone(), scheduler, tasks: JoinSet::new(), of_task: BTreeMap::new(), problems, interrupts: 0 };
        let broken = turn.run(found.unreachable).await.err();
        if broken.is_none() {
            release(ready, &shared.context, &lock.holder).await;
        }
        turn.outcome(broken).await
    }
}

/// What the scheduler has to know of an earlier part of the run.
fn history(steps: &[Step], status: &RunStatus) -> History {
    let mut history = History::default();
    for step in steps {
        let Some(node) = status.nodes.get(&step.id) else { continue };
        if node.outcome.as_ref().is_some_and(Outcome::is_done) {
            history.done.insert(step.id.clone());
        }
        if let (Some(host), Some(intent), true) = (step.host(), &node.intent, step.disruptive || !history.done.contains(&step.id))
            && status.proven.get(&host.name).is_none_or(|proven| *proven < intent.sequence)
        {
            history.out_of_service.insert(host.clone());
        }
    }
    history
}

enum Done {
    Step(Box<Finish>),
    Gate { hosts: Vec<String>, result: GateResult },
}

struct Turn {
    shared: Arc<Shared>,
    scheduler: Scheduler,
    tasks: JoinSet<Result<Done, JournalError>>,
    of_task: BTreeMap<tokio::task::Id, usize>,
    problems: Vec<Diagnostic>,
    interrupts: u32,
}

impl Turn {
    async fn run(&mut self, unreachable: BTreeMap<Target, String>) -> Result<(), JournalError> {
        let mut interrupts = self.shared.context.interrupts.clone();
        interrupts.mark_changed();
        let mut listening = true;
        let mut over = self.signal(Signal::Begin { unreachable }).await;
        while !over {
            over = tokio::select! {
                Some(joined) = self.tasks.join_next_with_id() => self.joined(joined).await?,
                changed = interrupts.changed(), if listening => {
                    listening = changed.is_ok();
                    let count = *interrupts.borrow();
                    self.interrupted(count).await
                }
            };
        }
        self.tasks.abort_all();
        Ok(())
    }

    async fn joined(
        &mut self,
        joined: Result<(tokio::task::Id, Result<Done, JournalError>), tokio::task::JoinError>,
    ) -> Result<bool, JournalError> {
        let (id, done) = match joined {
            Ok((id, done)) => (id, Some(done?)),
            Err(error) => (error.id(), None),
        };
        let Some(step) = self.of_task.remove(&id) else { return Ok(false) };
        let node = self.shared.plan.nodes[step].id.clone();
        let signal = match done {
            Some(Done::Step(finish)) => {
                self.problems.extend(finish.problems);
                (self.shared.sink)(Event::StepFinished { node, outcome: finish.outcome.clone() });
                Signal::Finished { step, outcome: finish.outcome }
            }
            Some(Done::Gate { hosts, result }) => {
                let problem = result.failure();
                self.problems.extend(result.problems.iter().cloned());
                self.problems.extend(problem.as_ref().map(|reason| trouble::gate_failed(&node, &hosts, reason, &self.shared.next)));
                let passed = problem.is_none();
                self.shared.journal.note(Entry::GateChecked { node: node.clone(), hosts: hosts.clone(), passed });
                (self.shared.sink)(Event::GateFinished { node, hosts: hosts.clone(), result });
                Signal::GateAnswered { step, hosts: hosts.iter().map(Target::host).collect(), problem }
            }
            None => {
                let outcome = Outcome::Unknown { reason: "railwright itself failed in this step".to_owned() };
                self.problems.push(self.unknown(step, "railwright itself failed in this step; this is a bug"));
                self.shared.finish(&self.shared.plan.nodes[step], &Finish::of(outcome.clone()), None).await;
                Signal::Finished { step, outcome }
            }
        };
        Ok(self.signal(signal).await)
    }

    fn unknown(&self, step: usize, reason: &str) -> Diagnostic {
        let node = &self.shared.plan.nodes[step];
        let resources: Vec<String> = node.members().iter().map(|m| m.wish.address.to_string()).collect();
        trouble::unknown(&node.id, reason, &resources, &self.shared.next)
    }

    async fn interrupted(&mut self, count: u32) -> bool {
        let before = std::mem::replace(&mut self.interrupts, count);
        let mut over = false;
        if before == 0 && count >= 1 {
            (self.shared.sink)(Event::Interrupted { running: self.tasks.len() });
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
                Command::Run { step } => self.start_step(step),
                Command::Check { step, hosts } => self.start_gate(step, hosts.into_iter().map(|host| host.name).collect()),
                Command::Settle { step, outcome } => self.settle(step, outcome).await,
                Command::End => over = true,
            }
        }
        over
    }

    fn start_step(&mut self, step: usize) {
        let shared = self.shared.clone();
        (shared.sink)(Event::StepStarted { node: shared.plan.nodes[step].id.clone() });
        let handle = self.tasks.spawn(async move {
            let finish = match shared.plan.nodes[step].kind {
                NodeKind::Reboot => reboot(&shared, step).await?,
                _ => change(&shared, step).await?,
            };
            Ok(Done::Step(Box::new(finish)))
        });
        self.of_task.insert(handle.id(), step);
    }

    fn start_gate(&mut self, step: usize, hosts: Vec<String>) {
        let shared = self.shared.clone();
        (shared.sink)(Event::GateStarted { node: shared.plan.nodes[step].id.clone(), hosts: hosts.clone() });
        let handle = self.tasks.spawn(async move {
            let result = shared.context.gatekeeper.check(&hosts).await;
            Ok(Done::Gate { hosts, result })
        });
        self.of_task.insert(handle.id(), step);
    }

    async fn settle(&mut self, step: usize, outcome: Outcome) {
        if matches!(outcome, Outcome::Unknown { .. }) {
            self.problems.push(self.unknown(step, "it was given up while it ran"));
        }
        self.shared.finish(&self.shared.plan.nodes[step], &Finish::of(outcome.clone()), None).await;
        (self.shared.sink)(Event::StepFinished { node: self.shared.plan.nodes[step].id.clone(), outcome });
    }

    async fn outcome(mut self, broken: Option<JournalError>) -> ApplyOutcome {
        let outcomes: Vec<(String, Outcome)> =
            self.scheduler.outcomes().map(|(step, outcome)| (step.id.clone(), or_unknown(outcome))).collect();
        let mut counts = Counts::default();
        let worked = |step: &Step| step.role == Role::Work;
        self.scheduler.outcomes().filter(|(step, _)| worked(step)).for_each(|(_, outcome)| counts.add(&or_unknown(outcome)));
        self.problems.extend(self.summary(&outcomes));
        let mut ending = ending(&outcomes, self.interrupts > 0, &self.problems);
        let finished = match broken {
            Some(broken) => Err(broken),
            None => self.shared.journal.commit(Entry::RunFinished { ending: ending.word().to_owned() }).await,
        };
        let stored = match finished {
            Ok(()) => State::load(&self.shared.context.folder).and_then(|mut state| state.store(&self.shared.context.folder)),
            Err(broken) => Err(trouble::journal_broken(&broken.to_string(), &self.shared.next)),
        };
        if let Err(problem) = stored {
            ending = ending.min(Ending::Failed);
            self.problems.push(problem);
        }
        ApplyOutcome { ending, run: Some(self.shared.run.clone()), counts, problems: self.problems, outcomes }
    }

    /// One sentence for all that was skipped.
    fn summary(&self, outcomes: &[(String, Outcome)]) -> Option<Diagnostic> {
        let skipped =
            |wanted: &Skip| outcomes.iter().filter(|(_, o)| matches!(o, Outcome::Skipped { because } if because == wanted)).count();
        let (budget, interrupted) = (skipped(&Skip::Budget), skipped(&Skip::Interrupted));
        let limit = self.shared.plan.rollout.max_unavailable;
        match (interrupted, budget) {
            (0, 0) => None,
            (0, budget) => Some(trouble::budget(budget, self.scheduler.unavailable(), limit, &self.shared.next)),
            (interrupted, _) => Some(trouble::interrupted(interrupted, &self.shared.next)),
        }
    }
}

/// Only a run whose journal broke ends with steps that have no outcome.
fn or_unknown(outcome: Option<&Outcome>) -> Outcome {
    outcome.cloned().unwrap_or_else(|| Outcome::Unknown { reason: "the run ended before it".to_owned() })
}
