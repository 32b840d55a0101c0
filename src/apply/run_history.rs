//! What the scheduler has to know before a run begins or goes on: steps that are done, and hosts that
//! are out of service already.

use super::preflight::HostNow;
use super::shared::RunParts;
use super::signal::History;
use super::steps::{OnNode, ScheduledStep, StepRole, sort_steps};
use railwright_base::{Target, TargetKind};
use railwright_plan::{OutageCause, OutageCertainty};
use railwright_state::{JournalEntry, NodeOutcome, RunStatus};
use std::collections::{BTreeMap, BTreeSet};

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
    let step = &steps[n];
    if !ended_well(status, step) {
        return false;
    }
    match &step.role {
        StepRole::Gate(hosts) => !hosts
            .iter()
            .any(|host| is_failed_by_gate_of_others(steps, status, host)),
        _ if step.on_node == Some(OnNode::Empties) => step
            .before
            .iter()
            .all(|m| steps[*m].blocked.is_some() || ended_well(status, &steps[*m])),
        _ => true,
    }
}

fn ended_well(status: &RunStatus, step: &ScheduledStep) -> bool {
    let node = status.nodes.get(&step.id);
    node.and_then(|node| node.outcome.as_ref())
        .is_some_and(NodeOutcome::is_done)
}

/// Whether a step with work was over only after another was: a gate or a barrier that was passed
/// while the step waited was passed without its host.
fn is_finished_after(status: &RunStatus, step: &ScheduledStep, other: &ScheduledStep) -> bool {
    let finished = status.nodes.get(&step.id).map(|node| node.finished);
    let other_finished = status.nodes.get(&other.id).map(|node| node.finished);
    step.role == StepRole::Work && finished > other_finished
}

/// Whether a gate that is not about this host found something of it, and none has passed it since.
/// Its own would pass it by itself.
fn is_failed_by_gate_of_others(steps: &[ScheduledStep], status: &RunStatus, host: &Target) -> bool {
    let Some(mark) = status.not_passed.get(&*host.name) else {
        return false;
    };
    let OutageCause::GateFailed { gate, .. } = &mark.cause else {
        return false;
    };
    if mark.sequence <= status.in_service_since(&host.name) {
        return false;
    }
    steps.iter().any(|step| {
        step.id == *gate && !matches!(&step.role, StepRole::Gate(own) if own.contains(host))
    })
}

/// Whether a power cycle by hand is due: all that takes effect with it is done.
fn is_due(steps: &[ScheduledStep], power_cycle: &ScheduledStep, status: &RunStatus) -> bool {
    let mut before = power_cycle.after_on_target(steps);
    before.all(|n| ended_well(status, &steps[n]))
}

/// Hosts that wait for a power cycle and are in another boot than when they were seen last:
/// whatever becomes of the run, they are out of service until a gate says otherwise.
pub(super) fn find_power_cycled_hosts(
    steps: &[ScheduledStep],
    status: &RunStatus,
    ready: &BTreeMap<String, HostNow>,
) -> Vec<(usize, JournalEntry)> {
    let mut switched = Vec::new();
    for (n, step) in steps.iter().enumerate() {
        if step.by_hand
            && step.blocked.is_none()
            && let Some(host) = step.host()
            && let Some(from) = status.latest_boot(&host.name)
            && let Some(HostNow {
                boot_id: Some(to), ..
            }) = ready.get(&*host.name)
            && from != to
            && is_due(steps, step, status)
        {
            let (host, from, to) = (host.name.to_string(), from.to_owned(), to.clone());
            switched.push((n, JournalEntry::Rebooted { host, from, to }));
        }
    }
    switched
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
        // Whoever was switched off and on is out of service until a gate says otherwise, however many
        // there are, and may carry jobs again.
        if step.by_hand
            && step.blocked.is_none()
            && let Some(host) = step.host()
            && status.rebooted_unproven(&host.name, find_boot_id(ready, host))
        {
            leaves_service(&mut history, host.clone(), OutageCertainty::LeftInDoubt);
        }
        let is_whole = step.role == StepRole::Work
            || step.after.iter().all(|before| {
                let before = &steps[*before];
                history.done.contains(&before.id) && !is_finished_after(status, before, step)
            });
        if is_whole && is_done(steps, n, status) {
            history.done.insert(step.id.clone());
        }
        let was_done = history.done.contains(&step.id);
        let Some(host) = step.host() else { continue };
        if step.on_node == Some(OnNode::GivesBack) && !was_done {
            let drain = find_begun_drain(steps, status, host);
            if step.is_out || drain.is_some() {
                // Until that was done, pods are on it.
                let certainty = match drain {
                    Some(drain) if ended_well(status, drain) => OutageCertainty::Certain,
                    _ => OutageCertainty::Unknown,
                };
                leaves_service(&mut history, host.clone(), certainty);
            }
        }
        if let Some(certainty) = find_outage_by_step(step, status, host, was_done) {
            leaves_service(&mut history, host.clone(), certainty);
        }
    }
    history
}

/// How sure it is that a host is out of service since a step of an earlier part of the run; nothing
/// where it is in service by all that the step says.
fn find_outage_by_step(
    step: &ScheduledStep,
    status: &RunStatus,
    host: &Target,
    was_done: bool,
) -> Option<OutageCertainty> {
    let node = status.nodes.get(&step.id)?;
    let in_service = status.in_service_since(&host.name);
    if in_service >= node.out_since(step.disruptive || !was_done) {
        return None;
    }
    let intent = node.intent.as_ref();
    let is_begun = intent.is_some_and(|intent| intent.sequence > in_service);
    let empties = step.on_node == Some(OnNode::Empties);
    Some(match step.disruptive && is_begun {
        true if empties && !ended_well(status, step) => OutageCertainty::Unknown,
        true => OutageCertainty::Certain,
        false => OutageCertainty::LeftInDoubt,
    })
}

fn find_boot_id<'r>(ready: &'r BTreeMap<String, HostNow>, host: &Target) -> Option<&'r str> {
    ready.get(&*host.name)?.boot_id.as_deref()
}

/// The step by which an earlier part of the run began to empty the node that the host is.
fn find_begun_drain<'s>(
    steps: &'s [ScheduledStep],
    status: &RunStatus,
    host: &Target,
) -> Option<&'s ScheduledStep> {
    steps.iter().find(|step| {
        step.on_node == Some(OnNode::Empties) && step.host() == Some(host) && is_begun(status, step)
    })
}

/// A host counts as out of service; what is surer stays.
fn leaves_service(history: &mut History, host: Target, certainty: OutageCertainty) {
    let before = match history.in_doubt.remove(&host) {
        Some(doubt) => Some(doubt),
        None if history.out_of_service.contains(&host) => Some(OutageCertainty::Certain),
        None => None,
    };
    let certainty = before.map_or(certainty, |before| before.max(certainty));
    if certainty != OutageCertainty::Certain {
        history.in_doubt.insert(host.clone(), certainty);
    }
    history.out_of_service.insert(host);
}

/// What earlier runs left out of service counts as well, whether the plan verifies it or not, and
/// so do the hosts that the plan refuses.
pub(super) fn add_known_outages(history: &mut History, parts: &RunParts) {
    for (host, outage) in &parts.state.outages {
        if is_known_host(parts, host) {
            leaves_service(history, Target::host(host), outage.cause.certainty());
        }
    }
    for host in parts.plan.refused_hosts().keys() {
        if is_known_host(parts, host) {
            history.out_of_service.insert(Target::host(host));
        }
    }
}

/// These hosts may be in service again, whatever is known of them.
pub(super) fn doubt_outages(history: &mut History, hosts: &BTreeSet<Target>) {
    for host in hosts {
        if history.out_of_service.contains(host) {
            history
                .in_doubt
                .insert(host.clone(), OutageCertainty::Unknown);
        }
    }
}

fn is_known_host(parts: &RunParts, host: &str) -> bool {
    if parts.context.without_ssh.contains(host) {
        return true;
    }
    let access = parts.context.hosts.get(host);
    access.is_some_and(|access| access.target().kind == TargetKind::Host)
}
