//! What is wrong with a plan before anybody looks at a host: nothing is changed, and the run does
//! not begin.

use super::context::Context;
use super::trouble::{self, NextCommands};
use jiff::Timestamp;
use railwright_base::{Diagnostic, Target, secret};
use railwright_knowledge::spec::window::{WindowState, compute_window_state};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{NodeKind, Plan, PlanNode, content};
use railwright_resource::file::sealed;
use railwright_resource::{DesiredResource, kind_named};
use railwright_state::{ClusterState, identity_conflict};
use railwright_transport::Secrets;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that speaks against this plan, as far as this side can tell.
pub fn check_plan(plan: &Plan, context: &Context) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    // A plan that comes from a file was read by `plan::file::parse_plan_file`, which says more;
    // this covers every other way.
    if content::compute_plan_digest(plan).as_str() != plan.digest {
        problems.push(
            Diagnostic::error(
                "RW0602",
                "the plan does not have the digest that it carries: it was changed after it was \
                 made",
            )
            .effect("what would be applied is not what was planned and reviewed")
            .state("nothing was changed")
            .next(NextCommands::of(plan).anew()),
        );
    }
    if context
        .spec_digest
        .as_ref()
        .is_some_and(|now| *now != plan.spec_digest)
    {
        problems.push(
            Diagnostic::error("RW0603", "the spec was changed after the plan was made")
                .on(plan.inventory.path.clone())
                .effect("the plan would bring the cluster to what the spec said then")
                .state("nothing was changed")
                .next(NextCommands::of(plan).anew()),
        );
    }
    problems.extend(check_steps(plan, context));
    problems
}

/// Steps that this railwright cannot execute.
pub fn check_steps(plan: &Plan, context: &Context) -> Vec<Diagnostic> {
    let next = NextCommands::of(plan);
    plan.nodes
        .iter()
        .filter(|node| node.blocked.is_none())
        .filter_map(|node| cannot_be_done(node, context, &next))
        .collect()
}

/// Secrets that these steps need and that cannot be had, or are not those that the plan was made
/// with.
pub fn check_secrets<'a>(
    plan: &Plan,
    nodes: impl Iterator<Item = &'a PlanNode>,
    secrets: &Secrets,
) -> Vec<Diagnostic> {
    let mut problems: BTreeMap<String, Diagnostic> = BTreeMap::new();
    let nodes = nodes.filter(|node| node.blocked.is_none());
    for member in nodes.flat_map(|node| node.members()) {
        if member.removal {
            continue;
        }
        let (resource, mut is_complete) = (&member.resource, true);
        for name in secret::names_in(&resource.body) {
            if let Some(why) = secrets.missing(name) {
                is_complete = false;
                problems.insert(name.to_owned(), why.state("nothing was changed"));
            }
        }
        if is_complete && has_other_value(resource, secrets) {
            problems.insert(resource.address.to_string(), other_secret(plan, resource));
        }
    }
    problems.into_values().collect()
}

/// The seal in the plan is not that of the content as it would be written now.
fn has_other_value(resource: &DesiredResource, secrets: &Secrets) -> bool {
    let Some(Ok(planned)) = sealed::find_desired_seal(resource) else {
        return false;
    };
    let mut now = resource.clone();
    let filled = secrets.fill(resource.text("content").unwrap_or_default());
    sealed::seal_resource(
        &mut now,
        secrets.key(),
        filled.as_deref().map_err(Clone::clone),
        None,
    );
    sealed::find_desired_seal(&now) != Some(Ok(planned))
}

fn other_secret(plan: &Plan, resource: &DesiredResource) -> Diagnostic {
    Diagnostic::error(
        "RW0625",
        "a secret has another value than when the plan was made, or the plan was made in another \
         folder",
    )
    .on(resource.address.to_string())
    .effect("what would be written is not what was compared with the hosts")
    .state("nothing was changed")
    .next(NextCommands::of(plan).plan())
}

/// Steps that begin only inside a maintenance window, while none is open.
pub fn check_windows<'a>(
    plan: &Plan,
    mut nodes: impl Iterator<Item = &'a PlanNode>,
    now: Timestamp,
    next: &str,
) -> Option<Diagnostic> {
    let waits = nodes.any(|node| {
        node.blocked.is_none() && plan.rollout.needs_window(node.disruption) && !is_by_hand(node)
    });
    if !waits {
        return None;
    }
    match compute_window_state(&plan.rollout.openings(), now) {
        WindowState::Open { .. } => None,
        WindowState::Closed { .. } => Some(trouble::outside_windows(&plan.rollout, now, next)),
    }
}

/// The state that the plan was made against has moved on, as far as the plan works on it.
pub fn check_state(plan: &Plan, state: &ClusterState) -> Option<Diagnostic> {
    if state.last_applied.digest_of(&plan.targets_of_work()) == plan.state_digest {
        return None;
    }
    let problem = Diagnostic::error(
        "RW0604",
        "something was applied or forgotten after the plan was made",
    );
    Some(
        problem
            .effect("what the plan calls new, changed or removed may no longer be so")
            .state("nothing was changed")
            .next(NextCommands::of(plan).anew()),
    )
}

/// The plan was made with the state of another cluster.
pub fn check_cluster(plan: &Plan, state: &ClusterState) -> Option<Diagnostic> {
    let (planned, ours) = (plan.cluster_id.as_ref()?, state.cluster.as_ref()?);
    (*planned != ours.id).then(|| {
        Diagnostic::error(
            "RW0727",
            format!(
                "the plan was made for the cluster of the id {planned}, and this folder is of {}",
                ours.id
            ),
        )
        .effect("what it calls new, changed or removed is so by the memory of another cluster")
        .state("nothing was changed")
        .next(NextCommands::of(plan).anew())
    })
}

/// Hosts that are another machine than when the plan was made.
pub fn check_machines(plan: &Plan, reinstalled: &BTreeMap<Target, usize>) -> Option<Diagnostic> {
    let mut since = reinstalled.clone();
    for planned in &plan.reinstalled {
        since.remove(&planned.host);
    }
    let problem = identity_conflict::warn_reinstalled_hosts(&since)?;
    let refused = Diagnostic::error("RW0723", problem.message)
        .effect("the plan was made against what the machine before said");
    Some(
        refused
            .state("nothing was changed")
            .next(NextCommands::of(plan).anew()),
    )
}

/// The names of the hosts, switches and clusters that the plan works on, and of the hosts that its
/// gates verify.
pub fn list_target_names(plan: &Plan) -> BTreeSet<&str> {
    let targets = plan.targets_of_work().into_iter();
    let mut names: BTreeSet<&str> = targets.map(|target| &*target.name).collect();
    for node in plan.nodes.iter().filter(|node| node.blocked.is_none()) {
        names.extend(node.verified().iter().map(String::as_str));
    }
    names
}

fn cannot_be_done(node: &PlanNode, context: &Context, next: &NextCommands) -> Option<Diagnostic> {
    let what = match (&node.kind, &node.target) {
        (NodeKind::Gate { .. } | NodeKind::Barrier, _) => return None,
        (NodeKind::Drain { cluster, .. } | NodeKind::Uncordon { cluster, .. }, _)
            if !context.hosts.contains_key(&*cluster.name) =>
        {
            "its cluster is not in the inventory".to_owned()
        }
        (_, None) => "it has no target".to_owned(),
        (_, Some(target)) if !context.hosts.contains_key(&*target.name) => {
            format!("its {} is not in the inventory", target.kind.noun())
        }
        _ => unknown_kind(node)?,
    };
    Some(
        Diagnostic::error("RW0607", format!("the step cannot be applied: {what}"))
            .on(node.id.clone())
            .effect("the rest of the plan may need it")
            .state("nothing was changed")
            .next(format!(
                "leave it out: {} --exclude {}",
                next.plan(),
                trouble::extract_exclude_address(&node.id)
            )),
    )
}

fn unknown_kind(node: &PlanNode) -> Option<String> {
    let mut kinds = node.members().iter().map(|member| &member.resource.kind);
    let kind = kinds.find(|kind| kind_named(kind).is_none())?;
    Some(format!(
        "this railwright has no resource kind `{}`",
        railwright_base::text::one_line(kind, 40)
    ))
}
