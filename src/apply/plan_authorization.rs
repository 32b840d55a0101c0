//! A plan file is only as trustworthy as whoever could write to it, and its digest is no secret:
//! what it does has to be what the spec wishes, what was applied earlier, and what the kinds make
//! of both.

use super::context::Context;
use super::trouble::NextCommands;
use railwright_base::{Address, Diagnostic};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{Member, Plan, PlanNode};
use railwright_resource::file::sealed;
use railwright_resource::{DesiredResource, diff};
use railwright_state::ClusterState;
use railwright_transport::Secrets;
use std::collections::BTreeMap;

/// Steps that nobody wished: not in the spec as they are in the plan, or a removal of what was
/// never applied or is wished still; and a rollout that is not the spec's.
pub fn find_foreign_steps(plan: &Plan, context: &Context, state: &ClusterState) -> Vec<Diagnostic> {
    let Some(spec) = &context.wished else {
        return Vec::new();
    };
    let wishes: BTreeMap<&Address, &DesiredResource> = spec
        .wishes
        .iter()
        .map(|wish| (&wish.address, wish))
        .collect();
    let members = plan
        .nodes
        .iter()
        .filter(|node| node.held.is_none())
        .flat_map(|node| node.members().iter().map(move |m| (node, m)));
    let mut problems: Vec<Diagnostic> = members
        .filter_map(|(node, member)| {
            let what = why_foreign(
                member,
                wishes.get(&member.wish.address).copied(),
                state,
                &context.secrets,
            )?;
            Some(report_foreign_plan(plan, &what).on(node.id.clone()))
        })
        .collect();
    if plan.rollout != spec.rollout {
        problems.push(report_foreign_plan(
            plan,
            "its rollout (canary, limits) is not that of the spec",
        ));
    }
    let above = |node: &&PlanNode| {
        node.held.is_none() && node.disruption > spec.rollout.max_disruption && !is_by_hand(node)
    };
    problems.extend(plan.nodes.iter().filter(above).map(|node| {
        report_foreign_plan(
            plan,
            &format!(
                "it disturbs as much as a {}, which the spec does not allow",
                node.disruption.word()
            ),
        )
        .on(node.id.clone())
    }));
    problems
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
            Some(wished) => (!is_same(&member.wish, wished))
                .then(|| format!("the spec wishes something else of {address}")),
        };
    }
    let remembered = |wish: &DesiredResource| diff::remembered_wish(wish, secrets.redaction());
    let applied = state
        .last_applied
        .resources
        .get(address)
        .map(|applied| remembered(&applied.wish(address)));
    match (wished, applied) {
        (Some(_), _) => Some(format!("it removes {address}, which the spec wishes")),
        (None, None) => Some(format!("it removes {address}, which was never applied")),
        (None, Some(applied)) => (!is_same(&remembered(&member.wish), &applied))
            .then(|| format!("what was applied at {address} was something else")),
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
