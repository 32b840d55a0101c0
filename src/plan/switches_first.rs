//! Switches and hosts: a host whose priority pauses on a port that drops it loses packets, so
//! switches that are changed go before the hosts. What is only undone on a switch comes after them,
//! for the same reason.
//!
//! Hosts attached to a switch that cannot be made right are blocked: those that the cabling file
//! has plugged into it, and all of them where it knows of none (a spine is on everybody's way).
//! What is undone on a switch is blocked by such hosts in its turn.

use super::blocked::BlockedReason;
use super::diff::find_read_results;
use super::make::PlanInputs;
use super::model::PlanNode;
use super::part::TargetPlan;
use railwright_base::{Target, TargetKind};
use std::collections::{BTreeMap, BTreeSet};

/// Puts the switches on their side of the hosts, each side one at a time in the spec's order: what
/// goes wrong with one stops before the next.
pub(super) fn put_in(parts: &mut [TargetPlan], inputs: &PlanInputs) {
    let turns: BTreeMap<&Target, usize> = inputs.targets.iter().zip(1..).collect();
    let mut not_right = find_unread_switches(inputs);
    for part in parts.iter_mut() {
        if part.target.kind != TargetKind::Switch {
            continue;
        }
        part.turn = turns.get(&part.target).copied().unwrap_or(usize::MAX);
        part.before_hosts = part.nodes.iter().any(has_changes);
        let mut nodes = part.nodes.iter();
        if let Some(node) = nodes.find(|node| node.blocked.is_some() && has_changes(node)) {
            not_right.push((
                part.target.clone(),
                BlockedReason::NeedsStep(node.id.clone()),
            ));
        }
    }
    not_right.sort_by_key(|(switch, _)| turns.get(switch).copied());
    for (switch, why) in not_right {
        let attached = list_attached_hosts(inputs, &switch);
        for part in parts.iter_mut() {
            if part.target.kind == TargetKind::Host && is_attached(&part.target, &attached) {
                part.block(&why);
            }
        }
    }
    block_removals(parts, inputs);
    put_switches_in_turn(parts);
}

/// Lets each switch wait for the switch before it on its side of the hosts.
fn put_switches_in_turn(parts: &mut [TargetPlan]) {
    let mut switches: Vec<&mut TargetPlan> = parts
        .iter_mut()
        .filter(|part| part.target.kind == TargetKind::Switch)
        .collect();
    switches.sort_by_key(|part| part.turn);
    let (mut early, mut late): (Vec<String>, Vec<String>) = Default::default();
    for part in switches {
        let before = if part.before_hosts {
            &mut early
        } else {
            &mut late
        };
        for node in part.first() {
            node.after.extend(before.iter().cloned());
        }
        let last: Vec<String> = part.last().map(|node| node.id.clone()).collect();
        if !last.is_empty() {
            *before = last;
        }
    }
}

fn has_changes(node: &PlanNode) -> bool {
    node.members().iter().any(|member| !member.removal)
}

fn has_removals(node: &PlanNode) -> bool {
    node.members().iter().any(|member| member.removal)
}

/// Which hosts are plugged into a switch; nothing where the cabling file knows of none.
fn list_attached_hosts(inputs: &PlanInputs, switch: &Target) -> Option<BTreeSet<String>> {
    let hosts = inputs.rollout.hosts_behind(&switch.name)?;
    Some(hosts.into_iter().collect())
}

/// Where the cabling file knows of no host on a switch, every host counts.
fn is_attached(host: &Target, attached: &Option<BTreeSet<String>>) -> bool {
    match attached {
        Some(attached) => attached.contains(&*host.name),
        None => true,
    }
}

/// What is undone on a switch is blocked while the same is blocked on a host attached to it: that
/// host goes on pausing on its port.
fn block_removals(parts: &mut [TargetPlan], inputs: &PlanInputs) {
    let mut blocked: Vec<(Target, String)> = Vec::new();
    for part in parts.iter() {
        if part.target.kind != TargetKind::Host {
            continue;
        }
        let mut nodes = part.nodes.iter();
        if let Some(node) = nodes.find(|node| node.blocked.is_some() && has_removals(node)) {
            blocked.push((part.target.clone(), node.id.clone()));
        }
    }
    for part in parts.iter_mut() {
        if part.target.kind != TargetKind::Switch || part.before_hosts {
            continue;
        }
        let attached = list_attached_hosts(inputs, &part.target);
        if let Some((_, id)) = blocked
            .iter()
            .find(|(host, _)| is_attached(host, &attached))
        {
            part.block(&BlockedReason::NeedsStep(id.clone()));
        }
    }
}

/// Switches for which something is desired and that could not be read, with why the hosts attached
/// to them are blocked. Whoever leaves one out of the plan answers for it.
fn find_unread_switches(inputs: &PlanInputs) -> Vec<(Target, BlockedReason)> {
    let desired: BTreeSet<&Target> = inputs
        .resources
        .iter()
        .map(|resource| &resource.address.target)
        .collect();
    let mut unread = Vec::new();
    for switch in inputs.targets {
        if switch.kind != TargetKind::Switch
            || !desired.contains(switch)
            || !inputs.selection.covers(&switch.to_string())
            || find_read_results(inputs.observation, switch).is_ok()
        {
            continue;
        }
        let why = format!(
            "it is behind {switch}, which could not be read; `--exclude {switch}` goes on without \
             that switch"
        );
        unread.push((switch.clone(), BlockedReason::Stated(why)));
    }
    unread
}
