//! What a cluster gives its nodes before anything can prove them: where a controller in the cluster
//! brings the driver of the hosts' devices, the hosts' steps wait for it, since a gate follows
//! them. Everything else of a cluster comes after the last host.
//!
//! - Which steps those are is up to their kind (`Kind::comes_before_hosts`); what they need on
//!   their cluster comes with them.
//! - Where one of them is blocked, the hosts are blocked: nothing would prove what is done to them.

use super::blocked::BlockedReason;
use super::diff::KindLookup;
use super::make::node_graph;
use super::model::PlanNode;
use super::part::TargetPlan;
use railwright_base::TargetKind;

/// Whether the hosts' steps wait for this one.
pub fn is_before_hosts(node: &PlanNode, kinds: KindLookup) -> bool {
    node.is_change()
        && node.members().iter().any(|m| {
            !m.removal
                && kinds(&m.resource.kind).is_some_and(|kind| kind.comes_before_hosts(&m.resource))
        })
}

/// Parts a cluster in what comes before the hosts and the rest, and blocks the hosts where that is
/// blocked.
pub(super) fn put_in(parts: &mut Vec<TargetPlan>, kinds: KindLookup) {
    let mut early = Vec::new();
    for part in parts.iter_mut() {
        if part.target.kind != TargetKind::Kube {
            continue;
        }
        let desired: Vec<usize> = (0..part.nodes.len())
            .filter(|n| is_before_hosts(&part.nodes[*n], kinds))
            .collect();
        if desired.is_empty() {
            continue;
        }
        let before_hosts = node_graph(&part.nodes).with_prerequisites(desired);
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for (n, node) in std::mem::take(&mut part.nodes).into_iter().enumerate() {
            if before_hosts.contains(&n) {
                first.push(node);
            } else {
                rest.push(node);
            }
        }
        part.put(rest);
        let mut first = TargetPlan::new(part.target.clone(), first);
        first.before_hosts = true;
        early.push(first);
    }
    let mut nodes = early.iter().flat_map(|part| &part.nodes);
    if let Some(blocked) = nodes.find(|node| node.blocked.is_some() && is_before_hosts(node, kinds))
    {
        let why = BlockedReason::NeedsStep(blocked.id.clone());
        for part in parts.iter_mut() {
            if part.target.kind == TargetKind::Host {
                part.block(&why);
            }
        }
    }
    parts.append(&mut early);
}
