//! Goes on with the last run: its own copy of the plan, its journal, and another look at every step
//! that has an intent and no good outcome.

use super::context::{Context, DesiredSpec, EventSink};
use super::heartbeat::HeldLocks;
use super::host_locks::release_dead_locks;
use super::limits_of_now::find_narrower_limits;
use super::outcome::ApplyOutcome;
use super::preflight::{Preflight, PreflightScope, run_preflight};
use super::run::{PreparedRun, list_problem, lock_taken, recognize_hosts};
use super::run_history::is_done;
use super::shared::{Earlier, RunParts};
use super::steps::{ScheduledStep, StepRole, build_steps};
use super::{plan_validity, trouble::NextCommands};
use railwright_base::{Address, Diagnostic};
use railwright_plan::by_hand::release_power_cycles;
use railwright_plan::{NodeKind, Plan};
use railwright_state::journal::Journal;
use railwright_state::{
    ClusterIdentity, ClusterLock, ClusterState, IdentityConflict, JournalEntry, JournalWriter,
    NodeOutcome, RunOrder, RunStatus, StateFolder, run_status,
};
use railwright_system::identity;
use std::collections::BTreeSet;

/// What the user says about resources that nobody else can tell anything of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Do these again, whatever they look like.
    pub redo: BTreeSet<Address>,
    /// Take these for done as they are.
    pub accept: BTreeSet<Address>,
}

fn is_left(steps: &[ScheduledStep], n: usize, status: &RunStatus) -> bool {
    steps[n].blocked.is_none() && !is_done(steps, n, status)
}

/// The ids of the steps that a resumed run still has to do.
fn list_steps_left<'s>(steps: &'s [ScheduledStep], status: &RunStatus) -> BTreeSet<&'s str> {
    (0..steps.len())
        .filter(|n| is_left(steps, *n, status))
        .map(|n| steps[n].id.as_str())
        .collect()
}

/// Whether something is left of a run that it may go on with: what its plan holds is left to
/// another plan.
pub(super) fn is_resumable(steps: &[ScheduledStep], status: &RunStatus) -> bool {
    (0..steps.len()).any(|n| is_left(steps, n, status) && steps[n].role != StepRole::Barrier)
}

/// Goes on with the newest run of the state folder.
pub async fn resume_run(context: &Context, decisions: Decisions, sink: EventSink) -> ApplyOutcome {
    match prepare_resume(context, decisions, sink).await {
        Ok(begun) => begun.carry_out().await,
        Err(problems) => ApplyOutcome::not_begun(problems, context.is_interrupted()),
    }
}

async fn prepare_resume(
    context: &Context,
    decisions: Decisions,
    sink: EventSink,
) -> Result<PreparedRun, Vec<Diagnostic>> {
    let lock = ClusterLock::take(&context.folder, "resume").map_err(list_problem)?;
    let newest = NewestRun::read(&context.folder).map_err(list_problem)?;
    let context = Context {
        spec_digest: None,
        ..context.clone()
    };
    let plan = newest.read_plan(&context)?;
    let steps = build_steps(&plan).map_err(list_problem)?;
    let mut locks = HeldLocks::begin(lock, format!("run {}", newest.name), &context);
    let begun = continue_run(&newest, plan, &steps, &decisions, &context, &locks, sink).await;
    let (parts, found) = match begun {
        Ok(begun) => begun,
        Err(problems) => {
            locks.release_hosts(&context).await;
            return Err(problems);
        }
    };
    let entries = vec![
        new_resume_entry(&decisions, &newest),
        lock_taken(&locks.cluster),
    ];
    let earlier = Earlier {
        status: newest.status,
        decisions,
        last_order: newest.last_order,
    };
    Ok(PreparedRun::new(
        parts, locks, steps, earlier, found, entries,
    ))
}

/// Checks what is left of the run, locks its targets, then opens its journal.
async fn continue_run(
    newest: &NewestRun,
    plan: Plan,
    steps: &[ScheduledStep],
    decisions: &Decisions,
    context: &Context,
    locks: &HeldLocks,
    sink: EventSink,
) -> Result<(RunParts, Preflight), Vec<Diagnostic>> {
    let lock = &locks.cluster;
    let left = list_steps_left(steps, &newest.status);
    if !is_resumable(steps, &newest.status) {
        // It may have died before it let its hosts go.
        release_locks_except(&BTreeSet::new(), &plan, context, lock).await;
        let why = format!("run {} is done", newest.name);
        return Err(vec![report_nothing_to_resume(
            &why,
            &NextCommands::of(&plan),
        )]);
    }
    check_decisions(&plan, &left, &newest.status, decisions)?;
    check_steps_left(&plan, &left, context)?;
    let mut state = state_of(&newest.status, &context.folder, &NextCommands::of(&plan))
        .map_err(list_problem)?;
    let scope = build_preflight_scope(&plan, &left, newest, &state);
    release_locks_except(&scope.hosts, &plan, context, lock).await;
    let mut found = run_preflight(&plan, scope, context, locks, &sink).await;
    if !found.refusals.is_empty() {
        return Err(found.refusals);
    }
    check_identities(&mut found, &mut state, &plan, context)?;
    let (cluster, journal) = newest
        .open_journal(&mut state, &plan, &context.folder, lock)
        .map_err(list_problem)?;
    let parts = RunParts {
        plan,
        context: context.clone(),
        sink,
        run: newest.name.clone(),
        cluster,
        journal,
        state,
    };
    Ok((parts, found))
}

/// The newest run of the state folder, as its files tell it.
struct NewestRun {
    name: String,
    /// The order that lay there when the cluster's lock was taken.
    last_order: Option<RunOrder>,
    journal: Journal,
    status: RunStatus,
}

impl NewestRun {
    /// A folder without a run has nothing to resume.
    fn read(folder: &StateFolder) -> Result<Self, Diagnostic> {
        let beside = NextCommands::beside(folder);
        let Some(name) = folder.newest_run()? else {
            return Err(report_nothing_to_resume(
                "no run was ever begun here",
                &beside,
            ));
        };
        let last_order = folder.read_order(&name);
        let journal = folder.read_journal(&name)?;
        Ok(NewestRun {
            status: run_status::fold_journal_records(&journal.records),
            name,
            last_order,
            journal,
        })
    }

    /// Its steps are those that were reviewed, with the maintenance windows of the spec of now.
    fn read_plan(&self, context: &Context) -> Result<Plan, Vec<Diagnostic>> {
        let reviewed = context.folder.read_plan(&self.name);
        let mut plan = taken_up(reviewed.map_err(list_problem)?, context)?;
        keep_windows_of_now(&mut plan, context.desired.as_deref());
        Ok(plan)
    }

    /// Opens the journal behind its last sound record, then stores the state with the identity of
    /// its cluster, before anything is journalled: what only the hosts remembered is not in the
    /// journal.
    fn open_journal(
        &self,
        state: &mut ClusterState,
        plan: &Plan,
        folder: &StateFolder,
        lock: &ClusterLock,
    ) -> Result<(ClusterIdentity, JournalWriter), Diagnostic> {
        let cluster = folder.identify(state, plan.cluster_id.as_ref(), &plan.cluster)?;
        let journal = lock.folder().continue_run(&self.name, &self.journal)?;
        state.store(lock.folder())?;
        Ok((cluster, journal))
    }
}

/// Lets go the locks that dead processes left on targets of the plan, other than these.
async fn release_locks_except(
    hosts: &BTreeSet<String>,
    plan: &Plan,
    context: &Context,
    lock: &ClusterLock,
) {
    let through = plan_validity::list_target_names(plan)
        .into_iter()
        .filter(|host| !hosts.contains(*host))
        .map(str::to_owned)
        .collect();
    release_dead_locks(through, context, lock).await;
}

/// Refuses to go on where a step that is left lacks a secret, its maintenance window is closed, or
/// the spec of now does not allow so much.
fn check_steps_left(
    plan: &Plan,
    left: &BTreeSet<&str>,
    context: &Context,
) -> Result<(), Vec<Diagnostic>> {
    let nodes = plan.nodes.iter();
    let nodes = nodes.filter(|node| left.contains(node.id.as_str()));
    let mut problems = plan_validity::check_secrets(plan, nodes.clone(), &context.secrets);
    problems.extend(plan_validity::check_windows(
        plan,
        nodes,
        context.clock.now(),
        &NextCommands::of(plan).resume(),
    ));
    let spec = context.desired.as_deref();
    problems.extend(spec.and_then(|spec| find_narrower_limits(plan, left, spec, &context.nodes)));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn build_preflight_scope(
    plan: &Plan,
    left: &BTreeSet<&str>,
    newest: &NewestRun,
    state: &ClusterState,
) -> PreflightScope {
    let ids = plan.nodes.iter().map(|node| &node.id);
    PreflightScope {
        rebooting: find_rebooting_hosts(plan, &newest.status),
        hosts: hosts_left(plan, left),
        run: Some(newest.name.clone()),
        done: ids
            .filter(|id| !left.contains(id.as_str()))
            .cloned()
            .collect(),
        machines: state.machines.clone(),
    }
}

/// Compares the targets with what is remembered of them.
fn check_identities(
    found: &mut Preflight,
    state: &mut ClusterState,
    plan: &Plan,
    context: &Context,
) -> Result<(), Vec<Diagnostic>> {
    let recognition = recognize_hosts(state, plan, found, context);
    let conflicts = IdentityConflict::refusals(&recognition.conflicts, &context.folder.inventory());
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    found.warnings.extend(recognition.warnings);
    Ok(())
}

/// The state that goes on with the newest run's journal. What is written after an older copy of it,
/// or after the journal of an older run, would never be read.
pub(super) fn state_of(
    run: &RunStatus,
    folder: &StateFolder,
    next: &NextCommands,
) -> Result<ClusterState, Diagnostic> {
    let state = ClusterState::load(folder)?;
    match state.known_sequence(run) {
        Some(known) if known <= run.sequence => Ok(state),
        Some(_) => Err(report_truncated_journal(
            format!(
                "the journal of run {} ends before what the state knows of it: an older copy is in \
                 its place",
                run.run
            ),
            next,
        )),
        None => Err(report_truncated_journal(
            format!(
                "the state has gone beyond run {}, the newest that has a journal here: that of a \
                 later run was moved away",
                run.run
            ),
            next,
        )),
    }
}

fn report_truncated_journal(why: String, next: &NextCommands) -> Diagnostic {
    Diagnostic::error("RW0705", why)
        .effect("whatever was done after that, and what gates found, would be forgotten")
        .state("nothing was changed")
        .next(format!(
            "a new plan knows what the state knows: {}",
            next.anew()
        ))
}

/// The plan of the run, with what waits for power cycles as steps of it.
fn taken_up(plan: Plan, context: &Context) -> Result<Plan, Vec<Diagnostic>> {
    let mut problems = plan_validity::check_plan(&plan, context);
    let plan = release_power_cycles(&plan).unwrap_or(plan);
    if problems.is_empty() {
        problems = plan_validity::check_steps(&plan, context);
    }
    if problems.is_empty() {
        Ok(plan)
    } else {
        Err(problems)
    }
}

/// The steps are those that were reviewed; when they may begin is what the spec says now: a freeze
/// holds for every run.
fn keep_windows_of_now(plan: &mut Plan, now: Option<&DesiredSpec>) {
    if let Some(DesiredSpec { rollout, .. }) = now {
        (plan.rollout.windows, plan.rollout.windows_for) =
            (rollout.windows.clone(), rollout.windows_for);
    }
}

fn new_resume_entry(decisions: &Decisions, newest: &NewestRun) -> JournalEntry {
    let last_order = newest.last_order.as_ref();
    JournalEntry::RunResumed {
        who: identity::find_user_name(),
        machine: identity::read_machine_name(),
        process: identity::read_process_id(),
        redo: decisions.redo.iter().cloned().collect(),
        accept: decisions.accept.iter().cloned().collect(),
        last_order: last_order.map(|order| order.nonce.clone()),
    }
}

fn hosts_left(plan: &Plan, left: &BTreeSet<&str>) -> BTreeSet<String> {
    let all = plan_validity::list_target_names(plan);
    let mut names = BTreeSet::new();
    for node in &plan.nodes {
        if !left.contains(node.id.as_str()) {
            continue;
        }
        for target in node.target.iter().chain(node.cluster()) {
            names.insert(target.name.to_string());
        }
        // A gate may be the only thing that is left of a host: whoever passes is the machine that
        // the run was about, and nobody else's.
        names.extend(node.verified().iter().cloned());
    }
    names.retain(|name| all.contains(name.as_str()));
    names
}

/// Hosts whose reboot was asked for and not seen to its end.
fn find_rebooting_hosts(plan: &Plan, status: &RunStatus) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    for node in &plan.nodes {
        if node.kind == NodeKind::Reboot
            && let (Some(target), Some(status)) = (&node.target, status.nodes.get(&node.id))
            && status.intent.is_some()
            && !status.outcome.as_ref().is_some_and(NodeOutcome::is_done)
        {
            hosts.insert(target.name.to_string());
        }
    }
    hosts
}

/// A decision is about a step that was begun and is not done.
fn check_decisions(
    plan: &Plan,
    left: &BTreeSet<&str>,
    status: &RunStatus,
    decisions: &Decisions,
) -> Result<(), Vec<Diagnostic>> {
    let mut open: BTreeSet<&Address> = BTreeSet::new();
    for node in &plan.nodes {
        let of_node = status.nodes.get(&node.id);
        if left.contains(node.id.as_str()) && of_node.is_some_and(|node| node.intent.is_some()) {
            open.extend(node.members().iter().map(|member| &member.resource.address));
        }
    }
    let mut problems = Vec::new();
    for address in decisions.redo.iter().chain(&decisions.accept) {
        if !open.contains(address) {
            problems.push(report_nothing_to_decide(address, plan));
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

fn report_nothing_to_decide(address: &Address, plan: &Plan) -> Diagnostic {
    Diagnostic::error(
        "RW0624",
        format!("{address} was not left open by the run, so there is nothing to decide about it"),
    )
    .state("nothing was changed")
    .next(NextCommands::of(plan).resume())
}

fn report_nothing_to_resume(why: &str, next: &NextCommands) -> Diagnostic {
    Diagnostic::error("RW0623", format!("there is nothing to resume: {why}"))
        .state("nothing was changed")
        .next(format!("{} shows what is to be done now", next.plan()))
}
