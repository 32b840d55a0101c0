//! The plan's graph as the scheduler sees it: numbers, targets, waves, and nothing of what a step
//! does. Pure.

use super::trouble::NextCommands;
use railwright_base::{Diagnostic, Target, TargetKind};
use railwright_graph::{Cycle, Graph};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{NodeKind, Plan, PlanNode};
use railwright_resource::Disruption;
use std::collections::{BTreeMap, BTreeSet};

/// What a step is to the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepRole {
    /// Work on a target.
    Work,
    /// The functional check of these hosts.
    Gate(BTreeSet<Target>),
    /// Stands for many edges.
    Barrier,
}

/// What a step does with the node of a cluster that its host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnNode {
    /// Empties it. It may have pods again when a run goes on that was left.
    Empties,
    /// Gives it back, once the host has passed its gate, whatever becomes of the gate's other
    /// hosts: until then it is out of service.
    GivesBack,
}

/// One node of the plan, as the scheduler sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledStep {
    /// The node's id.
    pub id: String,
    /// What it is.
    pub role: StepRole,
    /// The target of work.
    pub target: Option<Target>,
    /// It takes its host out of service until a gate has passed.
    pub disruptive: bool,
    /// It begins only inside a maintenance window.
    pub needs_window: bool,
    /// Somebody does it by hand; the step is to see that it was done.
    pub by_hand: bool,
    /// It empties the host's node of a cluster, or gives it back.
    pub on_node: Option<OnNode>,
    /// An earlier run took its host out of service, and this step brings it back.
    pub is_out: bool,
    /// It changes nothing, and waits for what becomes ready by itself.
    pub waits: bool,
    /// A gate whose hosts go first, of all or of those that are switched off and on: none of them
    /// may be missing.
    pub canary: bool,
    /// Direct prerequisites.
    pub after: Vec<usize>,
    /// Direct dependants.
    pub before: Vec<usize>,
    /// Its wave, never before that of a prerequisite.
    pub wave: usize,
    /// Why the plan blocks it.
    pub blocked: Option<String>,
}

impl ScheduledStep {
    /// Direct prerequisites on its own target, of these steps.
    pub fn after_on_target<'s>(
        &'s self,
        steps: &'s [ScheduledStep],
    ) -> impl Iterator<Item = usize> + 's {
        self.after
            .iter()
            .copied()
            .filter(|n| self.target.is_some() && steps[*n].target == self.target)
    }

    /// The host that it works on.
    pub fn host(&self) -> Option<&Target> {
        self.target
            .as_ref()
            .filter(|target| target.kind == TargetKind::Host)
    }
}

/// A service that restarts may drop the jobs that use it; what is only read again does not.
pub(super) fn takes_out_of_service(disruption: Disruption) -> bool {
    disruption >= Disruption::Restart
}

/// The steps of a plan, in the plan's order. A plan whose edges name nothing or run in a ring is
/// refused.
pub fn build_steps(plan: &Plan) -> Result<Vec<ScheduledStep>, Diagnostic> {
    let mut number = BTreeMap::new();
    for (n, node) in plan.nodes.iter().enumerate() {
        if number.insert(node.id.as_str(), n).is_some() {
            return Err(report_broken_order(
                format!("two steps are called {}", node.id),
                plan,
            ));
        }
    }
    let mut steps = Vec::with_capacity(plan.nodes.len());
    for node in &plan.nodes {
        let mut after = BTreeSet::new();
        for id in &node.after {
            let Some(before) = number.get(id.as_str()) else {
                let what = format!("{} comes after {id}, which is not in the plan", node.id);
                return Err(report_broken_order(what, plan));
            };
            after.insert(*before);
        }
        let needs_window = plan.rollout.needs_window(node.disruption);
        steps.push(new_step(node, after.into_iter().collect(), needs_window));
    }
    let edges: Vec<(usize, usize)> = list_edges(&steps).collect();
    let order = sort_steps(&steps).map_err(|ring| {
        let first = ring.0.first();
        let id = first.map_or("a step", |n| plan.nodes[*n].id.as_str());
        report_broken_order(format!("{id} waits for itself"), plan)
    })?;
    if let Some((own, _)) = edges.iter().find(|(before, after)| before == after) {
        let what = format!("{} waits for itself", plan.nodes[*own].id);
        return Err(report_broken_order(what, plan));
    }
    for (before, after) in edges {
        steps[before].before.push(after);
    }
    raise_waves(&mut steps, &order);
    mark_canaries(&mut steps, plan);
    Ok(steps)
}

/// Puts no step in an earlier wave than what comes before it. `order` has every step after its
/// prerequisites.
fn raise_waves(steps: &mut [ScheduledStep], order: &[usize]) {
    for n in order {
        let before = steps[*n].after.iter().map(|b| steps[*b].wave);
        let latest = before.max().unwrap_or(0);
        steps[*n].wave = steps[*n].wave.max(latest);
    }
}

/// Hosts that an earlier run left out of service go before the canaries.
fn mark_canaries(steps: &mut [ScheduledStep], plan: &Plan) {
    let by_hand = steps.iter().filter(|step| step.by_hand);
    let first_by_hand = by_hand.map(|step| step.wave).min();
    let last_canary = usize::from(!plan.verified_first().is_empty());
    for step in steps {
        step.canary = step.wave <= last_canary || Some(step.wave) == first_by_hand;
    }
}

/// Leaves for `resume` what the plan itself blocks and only a power cycle keeps waiting, with the
/// gates after it.
pub fn mark_blocked_steps(steps: &mut [ScheduledStep], plan: &Plan) {
    for (n, step) in steps.iter_mut().enumerate() {
        let blocked = match plan.nodes.get(n) {
            Some(node) => node.blocked.as_ref().map(ToString::to_string),
            None => Some("it comes after a power cycle, which is done by hand".to_owned()),
        };
        step.needs_window &= blocked.is_none();
        step.blocked = blocked;
    }
}

/// Which step comes right before which.
fn list_edges(steps: &[ScheduledStep]) -> impl Iterator<Item = (usize, usize)> {
    steps
        .iter()
        .enumerate()
        .flat_map(|(n, step)| step.after.iter().map(move |before| (*before, n)))
}

/// Every step after its prerequisites.
pub fn sort_steps(steps: &[ScheduledStep]) -> Result<Vec<usize>, Cycle> {
    Graph::new(steps.len(), list_edges(steps)).order()
}

fn new_step(node: &PlanNode, after: Vec<usize>, needs_window: bool) -> ScheduledStep {
    let role = match &node.kind {
        NodeKind::Gate { hosts } => StepRole::Gate(hosts.iter().map(Target::host).collect()),
        NodeKind::Barrier => StepRole::Barrier,
        NodeKind::Change { .. }
        | NodeKind::Adopt { .. }
        | NodeKind::Reboot
        | NodeKind::Drain { .. }
        | NodeKind::Uncordon { .. } => StepRole::Work,
    };
    ScheduledStep {
        id: node.id.clone(),
        role,
        target: node.target.clone(),
        // The budget is of hosts: a change of the cluster takes none of them out of service.
        disruptive: takes_out_of_service(node.disruption)
            && !is_by_hand(node)
            && !is_of_cluster(node),
        needs_window: needs_window && node.blocked.is_none() && !is_by_hand(node),
        by_hand: is_by_hand(node) && node.blocked.is_none(),
        on_node: match &node.kind {
            NodeKind::Drain { .. } => Some(OnNode::Empties),
            NodeKind::Uncordon { .. } => Some(OnNode::GivesBack),
            _ => None,
        },
        waits: only_waits(node),
        is_out: matches!(node.kind, NodeKind::Uncordon { left: true, .. }),
        canary: false,
        after,
        before: Vec::new(),
        wave: node.wave,
        blocked: node.blocked.as_ref().map(ToString::to_string),
    }
}

/// All its actions wait for what becomes ready by itself.
fn only_waits(node: &PlanNode) -> bool {
    let NodeKind::Change { actions, .. } = &node.kind else {
        return false;
    };
    !actions.is_empty() && actions.iter().all(|action| action.waits_s() > 0)
}

fn is_of_cluster(node: &PlanNode) -> bool {
    node.target
        .as_ref()
        .is_some_and(|target| target.kind == TargetKind::Kube)
}

fn report_broken_order(what: String, plan: &Plan) -> Diagnostic {
    Diagnostic::error(
        "RW0605",
        format!("the plan's order cannot be followed: {what}"),
    )
    .effect("which step has to wait for which is not known")
    .state("nothing was changed")
    .next(NextCommands::of(plan).anew())
}
