//! Begins a run: looks at the plan, takes the locks, opens the journal; then goes on until all is
//! over.

use super::context::{Context, EventSink, RunEvent};
use super::frame::{check_plan_graph, loosened_later};
use super::heart::Heart;
use super::host_locks::release_host_locks;
use super::outcome::ApplyOutcome;
use super::preflight::{HostNow, Preflight, PreflightScope, run_preflight};
use super::refusal;
use super::resume::Decisions;
use super::scheduler::Scheduler;
use super::shared::{Earlier, RunContext, RunParts};
use super::signal::{History, Limits};
use super::steps::{OnNode, ScheduledStep, StepRole, build_steps, mark_blocked_steps, sort_steps};
use super::trouble::{self, NextCommands};
use super::turn::Turn;
use super::wished::find_foreign_steps;
use railwright_base::{Diagnostic, Target, TargetKind};
use railwright_plan::by_hand::{is_by_hand, release_power_cycles};
use railwright_plan::{OutageCause, Plan};
use railwright_resource::host::MachineIdReading;
use railwright_state::journal::{self, Chain};
use railwright_state::journal_writer::JournalWriter;
use railwright_state::{
    ClusterIdentity, ClusterLock, ClusterState, IdentityConflict, JournalEntry, NodeOutcome,
    Recognition, RunStatus, StateFolder, TargetIdentity,
};
use railwright_system::identity;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Carries out a plan. Refusals change nothing and leave no run behind.
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
    let mut problems = refusal::of_plan(plan, context);
    problems.extend(refusal::of_secrets(
        plan,
        plan.nodes.iter(),
        &context.secrets,
    ));
    problems.extend(refusal::of_windows(
        plan,
        plan.nodes.iter(),
        context.clock.now(),
        "run the same command again",
    ));
    if !problems.is_empty() {
        return Err(problems);
    }
    let later = release_power_cycles(plan);
    let mut steps = build_steps(later.as_ref().unwrap_or(plan)).map_err(|problem| vec![problem])?;
    mark_blocked_steps(&mut steps, plan);
    if steps.is_empty() && plan.reinstalled.is_empty() {
        return Ok(None);
    }
    let lock = ClusterLock::take(&context.folder, "apply").map_err(|problem| vec![problem])?;
    let mut state = ClusterState::load(&context.folder).map_err(|problem| vec![problem])?;
    let moved = refusal::of_state(plan, &state);
    let hosts = refusal::list_target_names(plan)
        .into_iter()
        .map(str::to_owned)
        .collect();
    let mut found = run_preflight(
        plan,
        PreflightScope {
            hosts,
            ..PreflightScope::default()
        },
        context,
        &lock,
        &sink,
    )
    .await;
    if !found.refusals.is_empty() {
        return Err(found.refusals);
    }
    let nobody = found.nobody_there();
    if !nobody.is_empty() {
        return Err(nobody);
    }
    let recognition = recognize_hosts(&mut state, plan, &found, context);
    let mut problems = other_ground(plan, context, &state, &recognition, moved);
    found.warnings.extend(recognition.warnings);
    if !problems.is_empty() {
        // What could not be read may be why.
        problems.splice(0..0, found.told(&NextCommands::of(plan), &BTreeSet::new()));
    } else {
        problems = find_foreign_steps(plan, context, &state);
        let wishes = context
            .wished
            .as_ref()
            .map(|wished| wished.wishes.as_slice());
        problems.extend(check_plan_graph(plan, wishes, &state.last_applied));
        // What a resumed run takes up after a power cycle was reviewed with this plan, and is not
        // looked at again.
        if let Some(later) = later.as_ref().filter(|_| problems.is_empty()) {
            problems = refusal::of_steps(later, context);
            problems.extend(find_foreign_steps(later, context, &state));
            problems.extend(loosened_later(later, wishes, &state.last_applied));
        }
    }
    let opened = match problems.is_empty() {
        false => Err(problems),
        true => open_run_journal(plan, context, &mut state, &lock).map_err(|problem| vec![problem]),
    };
    match opened {
        Ok((run, cluster, journal)) => {
            let entries = vec![
                new_run_started_entry(&run, &cluster, plan, state.serial),
                lock_taken(&lock),
            ];
            let earlier = Earlier {
                status: RunStatus::default(),
                decisions: Decisions::default(),
                told: None,
            };
            let plan = later.unwrap_or_else(|| plan.clone());
            let parts = RunParts {
                plan,
                context: context.clone(),
                sink,
                run,
                cluster,
                journal,
                state,
            };
            Ok(Some(PreparedRun::new(
                parts, lock, steps, earlier, found, entries,
            )))
        }
        Err(problems) => {
            release_host_locks(&found.ready, context, &lock.holder).await;
            Err(problems)
        }
    }
}

/// Compares the targets with what is remembered of them, which holds no secret after it. A machine
/// that the plan has seen under another name is taken for seen there: its old name may be another
/// machine's now. The plan has told of it.
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
    let by_plan: BTreeMap<Target, TargetIdentity> = plan
        .renamed
        .iter()
        .filter(|(host, machine)| {
            !reached.contains(machine) && !found.identities.contains_key(host)
        })
        .map(|(host, machine)| {
            (
                host.clone(),
                TargetIdentity {
                    machine_id: MachineIdReading::Known(machine.clone()),
                    ..TargetIdentity::default()
                },
            )
        })
        .collect();
    let told: BTreeSet<String> = by_plan.keys().map(Target::to_string).collect();
    let seen = by_plan
        .into_iter()
        .chain(found.identities.clone())
        .collect();
    let mut recognition = state.recognize(&plan.cluster, &seen);
    recognition.warnings.retain(|warning| {
        warning
            .subject
            .as_ref()
            .is_none_or(|subject| !told.contains(subject))
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
        refusal::of_cluster(plan, state).or_else(|| refusal::of_machines(plan, &seen.reinstalled)),
    );
    if problems.is_empty() {
        // The plan may have been made with or without what the hosts remember; one of the two it
        // must be.
        problems.extend(moved.and(refusal::of_state(plan, state)));
    }
    problems
}

type Opened = (String, ClusterIdentity, JournalWriter);

fn open_run_journal(
    plan: &Plan,
    context: &Context,
    state: &mut ClusterState,
    lock: &ClusterLock,
) -> Result<Opened, Diagnostic> {
    let cluster = context
        .folder
        .identify(state, plan.cluster_id.as_ref(), &plan.cluster)?;
    state.store(&context.folder)?;
    let run = StateFolder::run_name(lock.fence, &plan.digest, &lock.holder.taking);
    let store = context.folder.begin_run(&run, plan)?;
    let store = lock.fenced(&context.folder, store)?;
    Ok((
        run,
        cluster,
        context.folder.writer(store, Chain::default())?,
    ))
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
    lock: ClusterLock,
    found: Preflight,
    entries: Vec<JournalEntry>,
    /// Hosts that are out of service since a power cycle by hand, and do not know it yet.
    switched: Vec<String>,
}

impl PreparedRun {
    /// Ready to begin: `entries` are its first records.
    pub fn new(
        parts: RunParts,
        lock: ClusterLock,
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
        let mut history = build_history(&steps, &earlier.status, &found.ready);
        // What earlier runs left counts as well, whether the plan verifies it or not.
        let is_known = |host: &str| {
            parts
                .context
                .hosts
                .get(host)
                .is_some_and(|access| access.target().kind == TargetKind::Host)
        };
        for (host, outage) in parts
            .state
            .outages
            .iter()
            .filter(|(host, _)| is_known(host))
        {
            leaves_service(
                &mut history,
                Target::host(host),
                !outage.cause.is_in_doubt(),
            );
        }
        history.out_of_service.extend(
            parts
                .plan
                .refused_hosts()
                .keys()
                .filter(|host| is_known(host))
                .map(Target::host),
        );
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
        let heart = Heart::new(&lock.holder, &parts.run, &parts.context, &found.ready);
        let shared = RunContext::new(
            parts,
            lock.holder.taking.clone(),
            &steps,
            earlier,
            found.ready.clone(),
            heart,
        );
        let switched = switched
            .into_iter()
            .filter_map(|(n, _)| Some((shared.plan.nodes[n].id.clone(), shared.host_of(n)?)));
        let switched: Vec<(String, String)> = switched.collect();
        for (node, host) in &switched {
            shared.note_outage(host, OutageCause::Unproven { node: node.clone() });
        }
        let switched = switched.into_iter().map(|(_, host)| host).collect();
        PreparedRun {
            scheduler: Scheduler::new(steps, limits, &history),
            shared: Arc::new(shared),
            lock,
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
            lock,
            found,
            mut entries,
            switched,
        } = self;
        let ready = found.ready.clone();
        let last = entries.pop();
        entries
            .into_iter()
            .for_each(|entry| shared.journal.note(entry));
        let committed = match last {
            Some(last) => shared.journal.commit(last).await,
            None => Ok(()),
        };
        if let Err(broken) = committed {
            release_host_locks(&ready, &shared.context, &lock.holder).await;
            return ApplyOutcome::refused(vec![trouble::journal_broken(
                &broken.to_string(),
                &shared.next,
            )]);
        }
        let left = scheduler
            .outcomes()
            .filter(|(step, outcome)| step.role == StepRole::Work && outcome.is_none())
            .count();
        (shared.sink)(RunEvent::RunStarted {
            run: shared.run.clone(),
            steps: left,
        });
        let waits = scheduler
            .outcomes()
            .filter(|(step, outcome)| step.by_hand && step.held.is_none() && outcome.is_none());
        let mut problems = found.told(
            &shared.next,
            &waits.filter_map(|(step, _)| step.host()).collect(),
        );
        let unreachable = found.reasons();
        for (target, reason) in &unreachable {
            (shared.sink)(RunEvent::HostUnreachable {
                host: target.name.to_string(),
                reason: reason.clone(),
            });
        }
        problems.extend(found.warnings);
        let mut turn = Turn::new(shared.clone(), scheduler, problems);
        let beating = tokio::spawn(shared.heart.clone().go_on(shared.context.clone()));
        shared.begin_records().await;
        // Whatever is in the way of it is in the way of the next step too, which tells.
        let _ = shared.record_hosts(switched).await;
        let broken = turn.run(unreachable).await.err();
        beating.abort();
        // Its end is waited for, so that no sign of life comes after the lock is let go.
        let _ = beating.await;
        if broken.is_none() {
            let given_up = turn.given_up();
            turn.add(shared.record_given_up(given_up).await);
            turn.add(shared.end_records().await);
            release_host_locks(&ready, &shared.context, &lock.holder).await;
        }
        turn.outcome(broken).await
    }
}

fn is_begun(status: &RunStatus, step: &ScheduledStep) -> bool {
    status
        .nodes
        .get(&step.id)
        .is_some_and(|node| node.intent.is_some())
}

/// Whether an earlier part of the run has done a step. A node that was emptied may have pods again,
/// so it is emptied once more before the rest of what needs it; a gate that passed a host of which
/// a later one found something has to pass it again.
pub(super) fn is_done(steps: &[ScheduledStep], n: usize, status: &RunStatus) -> bool {
    let done = |step: &ScheduledStep| {
        status
            .nodes
            .get(&step.id)
            .and_then(|node| node.outcome.as_ref())
            .is_some_and(NodeOutcome::is_done)
    };
    let is_used = || {
        steps[n]
            .before
            .iter()
            .all(|m| steps[*m].held.is_some() || done(&steps[*m]))
    };
    match &steps[n].role {
        StepRole::Gate(hosts) => {
            done(&steps[n])
                && !hosts
                    .iter()
                    .any(|host| is_failed_by_gate_of_others(steps, status, host))
        }
        _ => done(&steps[n]) && (steps[n].on_node != Some(OnNode::Empties) || is_used()),
    }
}

/// Whether a gate that is not about this host found something of it, and none has passed it since.
/// Its own would pass it by itself.
fn is_failed_by_gate_of_others(steps: &[ScheduledStep], status: &RunStatus, host: &Target) -> bool {
    let mark = status
        .not_passed
        .get(&*host.name)
        .filter(|mark| mark.sequence > status.in_service_since(&host.name));
    let Some(OutageCause::GateFailed { gate, .. }) = mark.map(|mark| &mark.cause) else {
        return false;
    };
    steps.iter().any(|step| {
        step.id == *gate && !matches!(&step.role, StepRole::Gate(own) if own.contains(host))
    })
}

/// Hosts that wait for a power cycle and are in another boot than when they were seen last:
/// whatever becomes of the run, they are out of service until a gate says otherwise.
fn find_power_cycled_hosts(
    steps: &[ScheduledStep],
    status: &RunStatus,
    ready: &BTreeMap<String, HostNow>,
) -> Vec<(usize, JournalEntry)> {
    let of_step = |(n, step): (usize, &ScheduledStep)| {
        let host = step
            .host()
            .filter(|_| step.by_hand && step.held.is_none())?
            .name
            .to_string();
        let (from, to) = (
            status.latest_boot(&host)?.to_owned(),
            ready.get(&host)?.boot_id.clone()?,
        );
        (from != to).then_some((n, JournalEntry::Rebooted { host, from, to }))
    };
    steps.iter().enumerate().filter_map(of_step).collect()
}

/// What the scheduler has to know of an earlier part of the run. A gate or a barrier that was
/// passed without some of its hosts has to be passed again, once they have caught up.
fn build_history(
    steps: &[ScheduledStep],
    status: &RunStatus,
    ready: &BTreeMap<String, HostNow>,
) -> History {
    let mut history = History::default();
    // A ring was refused before.
    for n in sort_steps(steps).unwrap_or_default() {
        let step = &steps[n];
        // Whoever was switched off and on is out of service until a gate says otherwise, whatever
        // the budget says.
        if let (Some(host), true) = (step.host().filter(|_| step.by_hand), step.held.is_none())
            && status.rebooted_unproven(
                &host.name,
                ready
                    .get(&*host.name)
                    .and_then(|now| now.boot_id.as_deref()),
            )
        {
            leaves_service(&mut history, host.clone(), true);
        }
        let whole = step.role == StepRole::Work
            || step
                .after
                .iter()
                .all(|before| history.done.contains(&steps[*before].id));
        if whole && is_done(steps, n, status) {
            history.done.insert(step.id.clone());
        }
        let is_given_back =
            step.on_node == Some(OnNode::GivesBack) && !history.done.contains(&step.id);
        let was_emptied = || {
            steps.iter().any(|of| {
                of.on_node == Some(OnNode::Empties)
                    && of.target == step.target
                    && is_begun(status, of)
            })
        };
        if let (Some(host), true) = (step.host(), is_given_back && (step.is_out || was_emptied())) {
            leaves_service(&mut history, host.clone(), true);
        }
        let Some(node) = status.nodes.get(&step.id) else {
            continue;
        };
        let since = node.out_since(step.disruptive || !history.done.contains(&step.id));
        let Some(host) = step.host() else { continue };
        let in_service = status.in_service_since(&host.name);
        if in_service < since {
            let is_disturbed = step.disruptive
                && node
                    .intent
                    .as_ref()
                    .is_some_and(|intent| intent.sequence > in_service);
            leaves_service(&mut history, host.clone(), is_disturbed);
        }
    }
    history
}

/// A host counts as out of service, for certain or in doubt. What is certain stays so.
fn leaves_service(history: &mut History, host: Target, for_certain: bool) {
    if for_certain {
        history.in_doubt.remove(&host);
    } else if !history.out_of_service.contains(&host) {
        history.in_doubt.insert(host.clone());
    }
    history.out_of_service.insert(host);
}
