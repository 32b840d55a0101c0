//! What the scheduler has to know before a run begins or goes on: steps that are done, and hosts that
//! are out of service already.

use super::preflight::HostNow;
use super::shared::RunParts;
use super::signal::History;
use super::steps::{OnNode, ScheduledStep, StepRole, sort_steps};
use railwright_base::{Target, TargetKind};
use railwright_plan::OutageCause;
use railwright_state::{JournalEntry, NodeOutcome, RunStatus};
use std::collections::BTreeMap;

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

/// Whether a step with work was over only after another was: a gate or a barrier that was passed
/// while the step waited was passed without its host.
fn is_finished_after(status: &RunStatus, step: &ScheduledStep, other: &ScheduledStep) -> bool {
    let finished = |step: &ScheduledStep| status.nodes.get(&step.id).map(|node| node.finished);
    step.role == StepRole::Work && finished(step) > finished(other)
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
pub(super) fn find_power_cycled_hosts(
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
pub(super) fn build_history(
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
            || step.after.iter().all(|before| {
                let before = &steps[*before];
                history.done.contains(&before.id) && !is_finished_after(status, before, step)
            });
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

/// What earlier runs left out of service counts as well, whether the plan verifies it or not, and
/// so do the hosts that the plan refuses.
pub(super) fn add_known_outages(history: &mut History, parts: &RunParts) {
    let is_known = |host: &str| {
        let access = parts.context.hosts.get(host);
        access.is_some_and(|access| access.target().kind == TargetKind::Host)
    };
    for (host, outage) in &parts.state.outages {
        if is_known(host) {
            leaves_service(history, Target::host(host), !outage.cause.is_in_doubt());
        }
    }
    for host in parts.plan.refused_hosts().keys() {
        if is_known(host) {
            history.out_of_service.insert(Target::host(host));
        }
    }
}
