//! A run that is resumed brings the steps that were reviewed, and only as far as the spec of now
//! allows: whoever stopped it may have narrowed the limits since.

use super::context::DesiredSpec;
use super::plan_authorization::find_changed_module;
use super::trouble::NextCommands;
use railwright_base::{Diagnostic, Target};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{NodeKind, Plan, PlanNode};
use railwright_resource::Disruption;
use std::collections::{BTreeMap, BTreeSet};

/// Why a run does not go on with these steps where the spec allows less by now, its gates prove
/// less, or hosts are other nodes.
pub fn find_narrower_limits(
    plan: &Plan,
    left: &BTreeSet<&str>,
    now: &DesiredSpec,
    nodes: &BTreeMap<String, Target>,
) -> Option<Diagnostic> {
    let (then, limits) = (&plan.rollout, &now.rollout);
    let disturbing = |node: &&PlanNode| {
        left.contains(node.id.as_str()) && node.disruption > Disruption::None && !is_by_hand(node)
    };
    if now.proof.proves_less_than(plan.proof) {
        let what = "the checks are gone that its gates were to make";
        return Some(report_narrower_limits(plan, what));
    }
    if let Some(name) = find_changed_module(&plan.modules, &now.modules) {
        let what =
            format!("the module {name} is another one, and what its gates check may be less");
        return Some(report_narrower_limits(plan, &what));
    }
    let most = plan.nodes.iter().filter(disturbing);
    let most = most.max_by_key(|node| node.disruption)?;
    let what = if most.disruption > limits.max_disruption {
        format!(
            "{} disturbs as much as a {}, and `rollout.max_disruption` is {} by now",
            most.id,
            most.disruption.word(),
            limits.max_disruption.word()
        )
    } else if limits.max_unavailable < then.max_unavailable {
        format!(
            "`rollout.max_unavailable` allows {} by now, and the run was planned for {}",
            limits.max_unavailable, then.max_unavailable
        )
    } else if limits.failure_budget() < then.failure_budget() {
        format!(
            "`rollout.failure_budget` allows {} by now, and the run was planned for {}",
            limits.failure_budget(),
            then.failure_budget()
        )
    } else if limits.drain.is_some() && limits.drain != then.drain {
        "nodes are emptied in another way by now (`rollout.drain`)".to_owned()
    } else if limits.drain.is_some()
        && let Some((host, node)) = find_renamed_node(plan, nodes)
    {
        format!("the run was planned with {node} as the node of {host}, which has another by now")
    } else {
        return None;
    };
    Some(report_narrower_limits(plan, &what))
}

/// A host that was planned as this node of a Kubernetes cluster, and is not by the spec of now;
/// `nodes` are the hosts of now by the names of their nodes. That its node was emptied, or was none,
/// says nothing of the node that it is now.
fn find_renamed_node<'a>(
    plan: &'a Plan,
    nodes: &BTreeMap<String, Target>,
) -> Option<(&'a Target, &'a str)> {
    let mut planned: Vec<(&Target, &str)> = Vec::new();
    for node in &plan.nodes {
        if let (NodeKind::Drain { node: name, .. }, Some(host)) = (&node.kind, &node.target) {
            planned.push((host, name));
        }
    }
    planned.extend(
        plan.not_emptied
            .iter()
            .map(|one| (&one.host, one.node.as_str())),
    );
    planned.retain(|(host, name)| nodes.get(*name) != Some(host));
    planned.first().copied()
}

fn report_narrower_limits(plan: &Plan, what: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0661",
        format!("the run goes further than the spec of now: {what}"),
    )
    .effect("it would disturb more hosts, or others than passed a gate, than the spec allows now")
    .state("nothing was changed; the run is where it was")
    .next(format!(
        "a new plan keeps to the spec of now and takes over what the run left: {}",
        NextCommands::of(plan).anew()
    ))
}
