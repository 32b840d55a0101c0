//! Switches and hosts: a host whose priority pauses on a port that drops it loses packets, so
//! switches that are changed go before the hosts. What is only taken back from a switch comes after
//! them, for the same reason.
//!
//! Hosts behind a switch that cannot be made right are held: those that the cabling file has
//! plugged into it, and all of them where it knows of none (a spine is on everybody's way). What is
//! taken back from a switch is held by such hosts in its turn.

use super::judge::find_read_results;
use super::make::PlanInputs;
use super::model::PlanNode;
use super::part::{TargetPlan, describe_blocking_cause};
use railwright_base::{Target, TargetKind};
use std::collections::{BTreeMap, BTreeSet};

/// Puts the switches on their side of the hosts, each side one at a time in the spec's order: what
/// goes wrong with one stops before the next.
pub(super) fn put_in(parts: &mut [TargetPlan], inputs: &PlanInputs) {
    let turns: BTreeMap<&Target, usize> = inputs.targets.iter().zip(1..).collect();
    let mut not_right = find_unread_switches(inputs);
    for part in parts
        .iter_mut()
        .filter(|part| part.target.kind == TargetKind::Switch)
    {
        part.turn = turns.get(&part.target).copied().unwrap_or(usize::MAX);
        part.before_hosts = part.nodes.iter().any(has_changes);
        let held = part
            .nodes
            .iter()
            .find(|node| node.held.is_some() && has_changes(node));
        not_right.extend(held.map(|node| (part.target.clone(), describe_blocking_cause(&node.id))));
    }
    not_right.sort_by_key(|(switch, _)| turns.get(switch).copied());
    for (switch, why) in not_right {
        let is_behind = build_attached_host_filter(inputs, &switch);
        let hosts = parts
            .iter_mut()
            .filter(|part| part.target.kind == TargetKind::Host && is_behind(&part.target));
        hosts.for_each(|part| part.hold(&why));
    }
    hold_removals(parts, inputs);
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
        part.first()
            .for_each(|node| node.after.extend(before.iter().cloned()));
        let last: Vec<String> = part.last().map(|node| node.id.clone()).collect();
        if !last.is_empty() {
            *before = last;
        }
    }
}

fn has_changes(node: &PlanNode) -> bool {
    node.members().iter().any(|member| !member.removal)
}

/// Which hosts are plugged into a switch; all of them where the cabling file knows of none.
fn build_attached_host_filter(
    inputs: &PlanInputs,
    switch: &Target,
) -> impl Fn(&Target) -> bool + use<> {
    let behind: Option<BTreeSet<String>> = inputs
        .rollout
        .hosts_behind(&switch.name)
        .map(|hosts| hosts.into_iter().collect());
    move |host| {
        behind
            .as_ref()
            .is_none_or(|behind| behind.contains(&*host.name))
    }
}

/// What is taken back from a switch is held while the same is held on a host behind it: that one
/// goes on pausing on its port.
fn hold_removals(parts: &mut [TargetPlan], inputs: &PlanInputs) {
    let is_held = |node: &&PlanNode| {
        node.held.is_some() && node.members().iter().any(|member| member.removal)
    };
    let hosts = parts
        .iter()
        .filter(|part| part.target.kind == TargetKind::Host);
    let held: Vec<(Target, String)> = hosts
        .filter_map(|part| {
            Some((
                part.target.clone(),
                part.nodes.iter().find(is_held)?.id.clone(),
            ))
        })
        .collect();
    for part in parts
        .iter_mut()
        .filter(|part| part.target.kind == TargetKind::Switch && !part.before_hosts)
    {
        let is_behind = build_attached_host_filter(inputs, &part.target);
        if let Some((_, id)) = held.iter().find(|(host, _)| is_behind(host)) {
            part.hold(&describe_blocking_cause(id));
        }
    }
}

/// Switches that something is wished of and that could not be read, with what the hosts behind them
/// are held for. Whoever leaves one out of the plan answers for it.
fn find_unread_switches(inputs: &PlanInputs) -> Vec<(Target, String)> {
    let wished: BTreeSet<&Target> = inputs
        .wishes
        .iter()
        .map(|wish| &wish.address.target)
        .collect();
    let switches = inputs
        .targets
        .iter()
        .filter(|target| target.kind == TargetKind::Switch && wished.contains(target));
    let unread = switches.filter(|switch| {
        inputs.selection.covers(&switch.to_string())
            && find_read_results(inputs.observation, switch).is_err()
    });
    let why = |switch: &Target| {
        format!(
            "it is behind {switch}, which could not be read; `--exclude {switch}` goes on without \
             that switch"
        )
    };
    unread.map(|switch| (switch.clone(), why(switch))).collect()
}
