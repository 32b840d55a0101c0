//! A plan file is only as trustworthy as whoever could write to it, and its digest is no secret:
//! what it does has to be what the spec wants, what was applied earlier, and what the kinds make
//! of both.

use super::context::Context;
use super::trouble::NextCommands;
use railwright_base::{Address, Diagnostic, Digest};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{Member, Plan};
use railwright_resource::file::sealed;
use railwright_resource::{DesiredResource, redacted_assessment};
use railwright_state::ClusterState;
use railwright_transport::Secrets;
use std::collections::BTreeMap;

/// Steps that nobody asked for: not in the spec as they are in the plan, or a removal of what was
/// never applied or is still desired; and modules or a rollout that are not the spec's.
pub fn find_foreign_steps(plan: &Plan, context: &Context, state: &ClusterState) -> Vec<Diagnostic> {
    let Some(spec) = &context.wished else {
        return Vec::new();
    };
    let mut wishes: BTreeMap<&Address, &DesiredResource> = BTreeMap::new();
    for wish in &spec.wishes {
        wishes.insert(&wish.address, wish);
    }
    let mut problems = Vec::new();
    for node in plan.nodes.iter().filter(|node| node.held.is_none()) {
        for member in node.members() {
            let wished = wishes.get(&member.wish.address).copied();
            if let Some(what) = why_foreign(member, wished, state, &context.secrets) {
                problems.push(report_foreign_plan(plan, &what).on(node.id.clone()));
            }
        }
    }
    if let Some(name) = find_changed_module(&plan.modules, &spec.modules) {
        let what = format!("the module {name} is another one, and what its gates check may be too");
        problems.push(report_foreign_plan(plan, &what));
    }
    if plan.rollout != spec.rollout {
        problems.push(report_foreign_plan(
            plan,
            "its rollout (canary, limits) is not that of the spec",
        ));
    }
    for node in plan.nodes.iter().filter(|node| node.held.is_none()) {
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

/// The first module that is not in both as it is in one.
fn find_changed_module<'m>(
    then: &'m BTreeMap<String, Digest>,
    now: &'m BTreeMap<String, Digest>,
) -> Option<&'m String> {
    let mut names = then.keys().chain(now.keys());
    names.find(|name| then.get(*name) != now.get(*name))
}

fn why_foreign(
    member: &Member,
    wished: Option<&DesiredResource>,
    state: &ClusterState,
    secrets: &Secrets,
) -> Option<String> {
    let address = &member.wish.address;
    if !member.removal {
        return match wished {
            None => Some(format!("nothing in the spec wishes {address}")),
            Some(wished) if is_same(&member.wish, wished) => None,
            Some(_) => Some(format!("the spec wishes something else of {address}")),
        };
    }
    if wished.is_some() {
        return Some(format!("it removes {address}, which the spec wishes"));
    }
    let Some(applied) = state.last_applied.resources.get(address) else {
        return Some(format!("it removes {address}, which was never applied"));
    };
    let applied = redacted_assessment::remembered_wish(&applied.wish(address), secrets.redaction());
    let removed = redacted_assessment::remembered_wish(&member.wish, secrets.redaction());
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
