//! A plan file is only as trustworthy as whoever could write to it, and its digest is no secret:
//! what it does has to be what the spec declares, what was applied earlier, and what the kinds make
//! of both.

use super::context::Context;
use super::trouble::NextCommands;
use railwright_base::{Address, Diagnostic, Digest};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{Member, Plan};
use railwright_resource::file::sealed;
use railwright_resource::{DesiredResource, redacted_diff};
use railwright_state::ClusterState;
use railwright_transport::Secrets;
use std::collections::BTreeMap;

/// Steps that nobody asked for: not in the spec as they are in the plan, or a removal of what was
/// never applied or is still desired; and modules or a rollout that are not the spec's.
pub fn find_foreign_steps(plan: &Plan, context: &Context, state: &ClusterState) -> Vec<Diagnostic> {
    let Some(spec) = &context.desired else {
        return Vec::new();
    };
    let mut resources: BTreeMap<&Address, &DesiredResource> = BTreeMap::new();
    for resource in &spec.resources {
        resources.insert(&resource.address, resource);
    }
    let mut problems = Vec::new();
    for node in plan.nodes.iter().filter(|node| node.blocked.is_none()) {
        for member in node.members() {
            let desired = resources.get(&member.resource.address).copied();
            if let Some(what) = why_foreign(member, desired, state, &context.secrets) {
                problems.push(report_foreign_plan(plan, &what).on(node.id.clone()));
            }
        }
    }
    let changed = find_changed_module(&plan.modules, &spec.modules)
        .or_else(|| find_changed_module(&spec.modules, &plan.modules));
    if let Some(name) = changed {
        let what = format!("the module {name} is another one, and what its gates check may be too");
        problems.push(report_foreign_plan(plan, &what));
    }
    if plan.rollout != spec.rollout {
        problems.push(report_foreign_plan(
            plan,
            "its rollout (canary, limits) is not that of the spec",
        ));
    }
    for node in plan.nodes.iter().filter(|node| node.blocked.is_none()) {
        if node.disruption > spec.rollout.max_disruption && !is_by_hand(node) {
            let what = format!(
                "it disturbs as much as a {}, which the spec does not allow",
                node.disruption.word()
            );
            problems.push(report_foreign_plan(plan, &what).on(node.id.clone()));
        }
    }
    problems
}

/// The first of these modules that is another one among the others, or is not there.
pub(super) fn find_changed_module<'m>(
    modules: &'m BTreeMap<String, Digest>,
    others: &BTreeMap<String, Digest>,
) -> Option<&'m String> {
    let mut names = modules.keys();
    names.find(|name| modules.get(*name) != others.get(*name))
}

fn why_foreign(
    member: &Member,
    desired: Option<&DesiredResource>,
    state: &ClusterState,
    secrets: &Secrets,
) -> Option<String> {
    let address = &member.resource.address;
    if !member.removal {
        return match desired {
            None => Some(format!("nothing in the spec declares {address}")),
            Some(desired) if is_same(&member.resource, desired) => None,
            Some(_) => Some(format!("the spec declares something else for {address}")),
        };
    }
    if desired.is_some() {
        return Some(format!("it removes {address}, which the spec declares"));
    }
    let Some(applied) = state.last_applied.resources.get(address) else {
        return Some(format!("it removes {address}, which was never applied"));
    };
    let applied =
        redacted_diff::remembered_resource(&applied.resource(address), secrets.redaction());
    let removed = redacted_diff::remembered_resource(&member.resource, secrets.redaction());
    if is_same(&removed, &applied) {
        None
    } else {
        Some(format!("what was applied at {address} was something else"))
    }
}

/// Seals are no part of the spec.
fn is_same(one: &DesiredResource, other: &DesiredResource) -> bool {
    (&one.kind, &one.after, sealed::without_seals(&one.body))
        == (
            &other.kind,
            &other.after,
            sealed::without_seals(&other.body),
        )
}

fn report_foreign_plan(plan: &Plan, what: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0626",
        format!("the plan is not of this spec and its modules: {what}"),
    )
    .effect("the file was edited, or the modules are others than when it was made")
    .state("nothing was changed")
    .next(NextCommands::of(plan).anew())
}
