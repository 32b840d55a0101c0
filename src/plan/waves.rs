//! Hosts are taken in turn: the canary, then batches no larger than may be unavailable, with a gate after each wave.

use super::model::{Node, NodeKind, RolloutPolicy};
use crate::base::{Target, TargetKind};
use crate::resource::Disruption;
use std::collections::{BTreeMap, BTreeSet};

/// Gives every node its wave, puts a gate after each wave, and makes the next wave's first nodes wait for it.
/// Held nodes stay outside: they neither open a wave nor keep a gate waiting.
pub fn roll_out(nodes: &mut Vec<Node>, targets: &[Target], policy: &RolloutPolicy) {
    let active: BTreeSet<&Target> = nodes.iter().filter(|n| n.held.is_none()).filter_map(|n| n.target.as_ref()).collect();
    let hosts: Vec<Target> = targets.iter().filter(|t| t.kind == TargetKind::Host && active.contains(t)).cloned().collect();
    let waves = waves(&hosts, policy);
    let wave_of: BTreeMap<&Target, usize> = waves.iter().enumerate().flat_map(|(w, hosts)| hosts.iter().map(move |h| (h, w))).collect();
    for node in nodes.iter_mut() {
        node.wave = node.target.as_ref().and_then(|t| wave_of.get(t)).copied().unwrap_or(0);
    }
    let gates: Vec<Node> = waves.iter().enumerate().map(|(wave, hosts)| gate(wave, hosts, nodes)).collect();
    for node in nodes.iter_mut().filter(|n| n.wave > 0 && n.held.is_none()) {
        if node.after.iter().all(|before| !in_wave_prefix(before, node.target.as_ref())) {
            node.after.push(gates[node.wave - 1].id.clone());
        }
    }
    nodes.extend(gates);
}

/// The first wave has `canary` hosts, each later one as many as may be out of service at once.
fn waves(hosts: &[Target], policy: &RolloutPolicy) -> Vec<Vec<Target>> {
    let canary = policy.canary.clamp(1, policy.max_unavailable.max(1)).min(hosts.len());
    let (first, rest) = hosts.split_at(canary);
    let mut waves = Vec::new();
    if !first.is_empty() {
        waves.push(first.to_vec());
    }
    waves.extend(rest.chunks(policy.max_unavailable.max(1)).map(<[Target]>::to_vec));
    waves
}

fn in_wave_prefix(id: &str, target: Option<&Target>) -> bool {
    target.is_some_and(|target| id.starts_with(&format!("{target}/")))
}

/// The gate waits for every node of its wave that nothing else of the wave waits for.
fn gate(wave: usize, hosts: &[Target], nodes: &[Node]) -> Node {
    let members: Vec<&Node> = nodes
        .iter()
        .filter(|n| n.held.is_none() && n.wave == wave && n.target.as_ref().is_some_and(|t| t.kind == TargetKind::Host))
        .collect();
    let waited: BTreeSet<&String> = members.iter().flat_map(|n| &n.after).collect();
    Node {
        id: format!("gate/{wave}"),
        kind: NodeKind::Gate { hosts: hosts.iter().map(|h| h.name.clone()).collect() },
        target: None,
        disruption: Disruption::None,
        interrupts: Vec::new(),
        after: members.iter().map(|n| n.id.clone()).filter(|id| !waited.contains(id)).collect(),
        wave,
        held: None,
    }
}
