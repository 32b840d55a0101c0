//! Begins a run: looks at the plan, takes the locks, opens the journal; then goes on until all is
//! over.

use super::context::{Context, EventSink, RunEvent};
use super::heartbeat::HeldLocks;
use super::outcome::ApplyOutcome;
use super::plan_authorization::find_foreign_steps;
use super::plan_graph_check::{check_plan_graph, loosened_later};
use super::plan_validity;
use super::preflight::{Preflight, PreflightScope, run_preflight};
use super::resume::Decisions;
use super::run_history::{
    add_known_outages, build_history, doubt_outages, find_power_cycled_hosts,
};
use super::scheduler::Scheduler;
use super::shared::{Earlier, RunContext, RunParts};
use super::signal::Limits;
use super::steps::{ScheduledStep, StepRole, build_steps, mark_blocked_steps};
use super::trouble::{self, NextCommands};
use super::turn::Turn;
use railwright_base::Diagnostic;
use railwright_plan::by_hand::{is_by_hand, release_power_cycles};
use railwright_plan::{OutageCause, Plan};
use railwright_resource::host::MachineIdReading;
use railwright_state::journal;
use railwright_state::journal_writer::{JournalError, JournalWriter};
use railwright_state::{
    ClusterIdentity, ClusterLock, ClusterState, IdentityConflict, JournalEntry, Recognition,
    RunStatus, StateFolder, TargetIdentity,
};
use railwright_system::identity;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Applies a plan. Refusals change nothing and leave no run behind.
pub async fn apply_plan(plan: &Plan, context: &Context, sink: EventSink) -> ApplyOutcome {
    match prepare_run(plan, context, sink).await {
        Ok(Some(begun)) => begun.carry_out().await,
        Ok(None) => ApplyOutcome::without_work(false),
        Err(problems) => ApplyOutcome::not_begun(problems, context.is_interrupted()),
    }
}

async fn prepare_run(
    plan: &Plan,
    context: &Context,
    sink: EventSink,
) -> Result<Option<PreparedRun>, Vec<Diagnostic>> {
    check_plan(plan, context)?;
    let later = release_power_cycles(plan);
    let mut steps = build_steps(later.as_ref().unwrap_or(plan)).map_err(list_problem)?;
    mark_blocked_steps(&mut steps, plan);
    if steps.is_empty() && plan.reinstalled.is_empty() {
        return Ok(None);
    }
    let lock = ClusterLock::take(&context.folder, "apply").map_err(list_problem)?;
    let run = StateFolder::run_name(lock.fence, &plan.digest, &lock.holder.taking);
    let mut locks = HeldLocks::begin(lock, format!("run {run}"), context);
    let begun = begin_run(plan, later, run, context, &locks, sink).await;
    let (parts, found) = match begun {
        Ok(begun) => begun,
        Err(problems) => {
            locks.release_hosts(context).await;
            return Err(problems);
        }
    };
    let earlier = Earlier {
        status: RunStatus::default(),
        decisions: Decisions::default(),
        last_order: None,
    };
    let entries = vec![
        new_run_started_entry(&parts.run, &parts.cluster, plan, parts.state.serial),
        lock_taken(&locks.cluster),
    ];
    Ok(Some(PreparedRun::new(
        parts, locks, steps, earlier, found, entries,
    )))
}

/// Locks and checks the targets, then opens the journal of a new run of this name. `later` is the
/// plan with what power cycles keep waiting.
async fn begin_run(
    plan: &Plan,
    later: Option<Plan>,
    run: String,
    context: &Context,
    locks: &HeldLocks,
    sink: EventSink,
) -> Result<(RunParts, Preflight), Vec<Diagnostic>> {
    let mut state = ClusterState::load(&context.folder).map_err(list_problem)?;
    let mut found = lock_targets(plan, context, locks, &sink).await?;
    let problems = check_targets(plan, later.as_ref(), context, &mut state, &mut found);
    if !problems.is_empty() {
        return Err(problems);
    }
    let (cluster, journal) =
        open_run_journal(plan, &run, context, &mut state, &locks.cluster).map_err(list_problem)?;
    let parts = RunParts {
        plan: later.unwrap_or_else(|| plan.clone()),
        context: context.clone(),
        sink,
        run,
        cluster,
        journal,
        state,
    };
    Ok((parts, found))
}

pub(super) fn list_problem(problem: Diagnostic) -> Vec<Diagnostic> {
    vec![problem]
}

/// Refuses a plan that can be seen to be unfit before any lock is taken.
fn check_plan(plan: &Plan, context: &Context) -> Result<(), Vec<Diagnostic>> {
    let mut problems = plan_validity::check_plan(plan, context);
    problems.extend(plan_validity::check_secrets(
        plan,
        plan.nodes.iter(),
        &context.secrets,
    ));
    problems.extend(plan_validity::check_windows(
        plan,
        plan.nodes.iter(),
        context.clock.now(),
        "run the same command again",
    ));
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}

/// Reaches and locks the targets of the plan. An error where one refuses, or none is there.
async fn lock_targets(
    plan: &Plan,
    context: &Context,
    locks: &HeldLocks,
    sink: &EventSink,
) -> Result<Preflight, Vec<Diagnostic>> {
    let hosts = plan_validity::list_target_names(plan)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let scope = PreflightScope {
        hosts,
        ..PreflightScope::default()
    };
    let found = run_preflight(plan, scope, context, locks, sink).await;
    if !found.refusals.is_empty() {
        return Err(found.refusals);
    }
    let nobody = found.nobody_there();
    if nobody.is_empty() {
        Ok(found)
    } else {
        Err(nobody)
    }
}

/// Recognizes the targets in the state, with the warnings of that among what was found. Returns why
/// the plan must not be applied to them.
fn check_targets(
    plan: &Plan,
    later: Option<&Plan>,
    context: &Context,
    state: &mut ClusterState,
    found: &mut Preflight,
) -> Vec<Diagnostic> {
    let moved = plan_validity::check_state(plan, state);
    let recognition = recognize_hosts(state, plan, found, context);
    let mut problems = other_ground(plan, context, state, &recognition, moved);
    found.warnings.extend(recognition.warnings);
    if problems.is_empty() {
        return check_steps(plan, later, context, state);
    }
    // What could not be read may be why.
    problems.splice(
        0..0,
        found.report_unready(&NextCommands::of(plan), &BTreeSet::new()),
    );
    problems
}

/// Compares the steps and their order with what the spec and the state ask for. `later` is the plan
/// with what power cycles keep waiting.
fn check_steps(
    plan: &Plan,
    later: Option<&Plan>,
    context: &Context,
    state: &ClusterState,
) -> Vec<Diagnostic> {
    let spec = context.desired.as_ref();
    let resources = spec.map(|spec| spec.resources.as_slice());
    let mut problems = find_foreign_steps(plan, context, state);
    problems.extend(check_plan_graph(plan, resources, &state.last_applied));
    // What a resumed run takes up after a power cycle was reviewed with this plan, and is not
    // re-checked.
    if problems.is_empty()
        && let Some(later) = later
    {
        problems = plan_validity::check_steps(later, context);
        problems.extend(find_foreign_steps(later, context, state));
        problems.extend(loosened_later(later, resources, &state.last_applied));
    }
    problems
}

/// Compares the targets with what is remembered of them, which holds no secret after it. A machine
/// that the plan has seen under another name is taken for seen there: its old name may be another
/// machine's now. The plan has reported it.
pub(super) fn recognize_hosts(
    state: &mut ClusterState,
    plan: &Plan,
    found: &Preflight,
    context: &Context,
) -> Recognition {
    let reached: BTreeSet<_> = found
        .identities
        .values()
        .filter_map(|identity| identity.machine_id.known())
        .collect();
    let (mut seen, mut by_plan) = (found.identities.clone(), BTreeSet::new());
    for (host, machine) in &plan.renamed {
        if reached.contains(machine) || found.identities.contains_key(host) {
            continue;
        }
        by_plan.insert(host.to_string());
        seen.insert(
            host.clone(),
            TargetIdentity {
                machine_id: MachineIdReading::Known(machine.clone()),
                ..TargetIdentity::default()
            },
        );
    }
    let mut recognition = state.recognize(&plan.cluster, &seen);
    recognition
        .warnings
        .retain(|warning| match &warning.subject {
            Some(subject) => !by_plan.contains(subject),
            None => true,
        });
    state.redact_outages(context.secrets.redaction());
    recognition
}

/// The targets are not those that the plan was made against, or the memory of them is another one.
fn other_ground(
    plan: &Plan,
    context: &Context,
    state: &ClusterState,
    seen: &Recognition,
    moved: Option<Diagnostic>,
) -> Vec<Diagnostic> {
    let mut problems = IdentityConflict::refusals(&seen.conflicts, &context.folder.inventory());
    problems.extend(
        plan_validity::check_cluster(plan, state)
            .or_else(|| plan_validity::check_machines(plan, &seen.reinstalled)),
    );
    if problems.is_empty() {
        // The plan may have been made with or without what the hosts remember; one of the two it
        // must be.
        problems.extend(moved.and(plan_validity::check_state(plan, state)));
    }
    problems
}

/// Opens the journal of a new run, then stores the state with the identity of its cluster, before
/// anything is journalled. Where one of them is refused there is no run.
fn open_run_journal(
    plan: &Plan,
    run: &str,
    context: &Context,
    state: &mut ClusterState,
    lock: &ClusterLock,
) -> Result<(ClusterIdentity, JournalWriter), Diagnostic> {
    let cluster = context
        .folder
        .identify(state, plan.cluster_id.as_ref(), &plan.cluster)?;
    let journal = lock.folder().begin_run(run, plan)?;
    if let Err(problem) = state.store(lock.folder()) {
        lock.folder().discard_run(run);
        return Err(problem);
    }
    Ok((cluster, journal))
}

/// This part of the run has the cluster's lock.
pub(super) fn lock_taken(lock: &ClusterLock) -> JournalEntry {
    JournalEntry::LockTaken {
        fence: lock.fence,
        part: lock.holder.taking.clone(),
    }
}

fn new_run_started_entry(
    run: &str,
    cluster: &ClusterIdentity,
    plan: &Plan,
    state_serial: u64,
) -> JournalEntry {
    JournalEntry::RunStarted {
        format_version: journal::FORMAT_VERSION.to_owned(),
        run: run.to_owned(),
        cluster: cluster.clone(),
        plan: plan.digest.clone(),
        inventory: plan.inventory.clone(),
        who: identity::find_user_name(),
        machine: identity::read_machine_name(),
        process: identity::read_process_id(),
        state_serial,
        power_cycles: plan.nodes.iter().any(is_by_hand),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// A run with its hosts locked, of which nothing is journalled yet.
pub(super) struct PreparedRun {
    shared: Arc<RunContext>,
    scheduler: Scheduler,
    locks: HeldLocks,
    found: Preflight,
    entries: Vec<JournalEntry>,
    /// Hosts that are out of service since a power cycle by hand, and do not know it yet.
    switched: Vec<String>,
}

impl PreparedRun {
    /// Ready to begin: `entries` are its first records.
    pub fn new(
        parts: RunParts,
        locks: HeldLocks,
        steps: Vec<ScheduledStep>,
        earlier: Earlier,
        found: Preflight,
        mut entries: Vec<JournalEntry>,
    ) -> Self {
        let limits = Limits {
            parallel: parts.context.patience.parallel,
            max_unavailable: parts.plan.rollout.max_unavailable,
            failure_budget: parts.plan.rollout.failure_budget(),
            looks: true,
        };
        let given_back = parts.state.given_back(&found.identities);
        let mut history = build_history(&steps, &earlier.status, &found.ready);
        add_known_outages(&mut history, &parts);
        doubt_outages(&mut history, &given_back);
        let switched = find_power_cycled_hosts(&steps, &earlier.status, &found.ready);
        entries.extend(switched.iter().map(|(_, entry)| entry.clone()));
        for (host, now) in &found.ready {
            let machine_id = now.machine_id.known().cloned();
            entries.push(JournalEntry::HostLocked {
                host: host.clone(),
                boot_id: now.boot_id.clone(),
                machine_id,
            });
        }
        let shared = RunContext::new(
            parts,
            locks.cluster.holder.taking.clone(),
            &steps,
            earlier,
            found.ready.clone(),
            locks.heart.clone(),
        );
        for host in &given_back {
            shared.note_given_back(&host.name, true);
        }
        note_power_cycles(&shared, switched.iter().map(|(n, _)| *n));
        let switched = shared.power_cycled_hosts();
        PreparedRun {
            scheduler: Scheduler::new(steps, limits, &history),
            shared: Arc::new(shared),
            locks,
            found,
            entries,
            switched,
        }
    }

    /// Journals the beginning, then goes from signal to signal until all is over.
    pub async fn carry_out(self) -> ApplyOutcome {
        let PreparedRun {
            shared,
            scheduler,
            mut locks,
            found,
            entries,
            switched,
        } = self;
        let is_new = matches!(entries.first(), Some(JournalEntry::RunStarted { .. }));
        if let Err(broken) = commit_entries(&shared.journal, entries).await {
            if is_new {
                locks.cluster.folder().discard_run(&shared.run);
            }
            locks.release_hosts(&shared.context).await;
            return ApplyOutcome::refused(vec![trouble::journal_broken(&broken, &shared.next)]);
        }
        (shared.sink)(RunEvent::RunStarted {
            run: shared.run.clone(),
            steps: count_steps_left(&scheduler),
        });
        let mut problems = report_unready_targets(&found, &scheduler, &shared.next);
        let unreachable = found.reasons();
        for (target, reason) in &unreachable {
            (shared.sink)(RunEvent::HostUnreachable {
                host: target.name.to_string(),
                reason: reason.clone(),
            });
        }
        problems.extend(found.warnings);
        let mut turn = Turn::new(shared.clone(), scheduler, problems);
        shared.begin_records().await;
        // Whatever is in the way of it is in the way of the next step too, which tells.
        let _ = shared.record_hosts(switched).await;
        let broken = turn.run(unreachable).await.err();
        if broken.is_none() {
            let given_up = turn.given_up();
            turn.add(shared.record_given_up(given_up).await);
            turn.add(shared.end_records().await);
            locks.release_hosts(&shared.context).await;
        }
        turn.outcome(broken, locks.cluster.folder()).await
    }
}

/// Takes the hosts of these steps, which were switched off and on, out of service.
fn note_power_cycles(shared: &RunContext, steps: impl Iterator<Item = usize>) {
    for n in steps {
        if let Some(host) = shared.host_of(n) {
            let node = shared.plan.nodes[n].id.clone();
            shared.note_outage(&host, OutageCause::SwitchedOffAndOn { node });
        }
    }
}

/// Journals these entries; once it returns they are durable, all of them.
async fn commit_entries(
    journal: &JournalWriter,
    mut entries: Vec<JournalEntry>,
) -> Result<(), JournalError> {
    let Some(last) = entries.pop() else {
        return Ok(());
    };
    for entry in entries {
        journal.note(entry);
    }
    journal.commit(last).await
}

fn count_steps_left(scheduler: &Scheduler) -> usize {
    scheduler
        .outcomes()
        .filter(|(step, outcome)| step.role == StepRole::Work && outcome.is_none())
        .count()
}

/// Reports the targets that are left alone. A host that waits for its power cycle may be off.
fn report_unready_targets(
    found: &Preflight,
    scheduler: &Scheduler,
    next: &NextCommands,
) -> Vec<Diagnostic> {
    let waits = scheduler
        .outcomes()
        .filter(|(step, outcome)| step.by_hand && step.blocked.is_none() && outcome.is_none());
    found.report_unready(next, &waits.filter_map(|(step, _)| step.host()).collect())
}
