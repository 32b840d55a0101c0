//! What one target brings to a plan, planned by itself: diff, select, block, disturb, order, group.
//! Targets that wait for each other are planned together, and then parted.

use super::blocked::BlockedReason;
use super::by_hand::is_by_hand;
use super::diff::{PlanItem, PlanItemStatus, diff_resources};
use super::draft::{PlanDraft, build_planned_diff, join_actions};
use super::dropped::find_dropped_fields;
use super::make::{node_graph, sort_nodes};
use super::model::{ChangeReason, DroppedField, Member, NodeKind, PlanNode, UnknownFinding};
use super::order::item_graph;
use super::rollback_reasons::RollbackReasons;
use super::{AppliedResource, LastApplied, PlanInputs, brought, pending_restarts, select};
use railwright_base::{Address, Diagnostic, Target};
use railwright_graph::Cycle;
use railwright_resource::{Action, DesiredResource, Disruption, ReadResults};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All that is known of one target before it is planned, or of several that wait for each other.
pub(super) struct TargetGroup<'a> {
    /// In the order of their names.
    pub targets: Vec<&'a Target>,
    /// What is desired, sorted by address.
    pub resources: Vec<&'a DesiredResource>,
    /// What was applied last, sorted by address.
    pub applied: Vec<(&'a Address, &'a AppliedResource)>,
    /// What was read from the targets, one after the other.
    pub answers: Vec<&'a ReadResults>,
}

impl<'a> TargetGroup<'a> {
    /// One target.
    pub fn of(
        target: &'a Target,
        resources: &[&'a DesiredResource],
        last: &'a LastApplied,
        answers: &'a ReadResults,
    ) -> Self {
        TargetGroup {
            targets: vec![target],
            resources: resources.to_vec(),
            applied: last.of_target(target).collect(),
            answers: vec![answers],
        }
    }

    /// What was applied last to this resource.
    pub fn applied_to(&self, address: &Address) -> Option<&'a AppliedResource> {
        let at = self
            .applied
            .binary_search_by_key(&address, |(address, _)| address)
            .ok()?;
        Some(self.applied[at].1)
    }

    /// Targets of others for which something here waits.
    pub fn others(&self) -> impl Iterator<Item = &'a Target> {
        let own = self.targets[0];
        let desired = self.resources.iter().flat_map(|resource| &resource.after);
        let applied = self.applied.iter().flat_map(|(_, applied)| &applied.after);
        let targets = desired.chain(applied).map(|address| &address.target);
        targets.filter(move |target| *target != own)
    }

    /// Two groups, planned together; `other` comes later in the order of names.
    pub fn join(mut self, other: Self) -> Self {
        self.targets.extend(other.targets);
        self.resources.extend(other.resources);
        self.applied.extend(other.applied);
        self.answers.extend(other.answers);
        self
    }
}

/// What one target brings to the plan.
pub struct TargetPlan {
    /// The target.
    pub target: Target,
    /// The wave, from 0; 0 is the canary.
    pub wave: usize,
    /// In an order in which everything comes after what it waits for.
    pub nodes: Vec<PlanNode>,
    /// The hosts' steps wait for it.
    pub(super) before_hosts: bool,
    /// Of a switch its turn among them, from 1.
    pub(super) turn: usize,
    /// Gives its node back to the cluster, once a gate has passed it.
    pub(super) uncordon: Option<PlanNode>,
    /// What is in sync and not remembered so.
    pub(super) adopted: Option<PlanNode>,
    /// How many resources are in sync.
    pub(super) unchanged: usize,
    /// What could not be determined.
    pub(super) unknown: Vec<UnknownFinding>,
    /// What stays behind.
    pub(super) dropped: Vec<DroppedField>,
    /// Nodes that are executed and wait for nothing of the part.
    first: Arc<[usize]>,
    /// Nodes that are executed and for which nothing of the part waits.
    last: Arc<[usize]>,
}

impl TargetPlan {
    /// These nodes of one target, in order.
    pub fn new(target: Target, nodes: Vec<PlanNode>) -> Self {
        let mut part = TargetPlan {
            target,
            wave: 0,
            before_hosts: false,
            turn: 0,
            uncordon: None,
            adopted: None,
            unchanged: 0,
            unknown: Vec::new(),
            dropped: Vec::new(),
            first: Arc::default(),
            last: Arc::default(),
            nodes: Vec::new(),
        };
        part.put(nodes);
        part
    }

    /// These nodes, in order, in the place of those that it had.
    pub(super) fn put(&mut self, nodes: Vec<PlanNode>) {
        let own: BTreeSet<&String> = nodes.iter().map(|node| &node.id).collect();
        let mut awaited: BTreeSet<&String> = BTreeSet::new();
        let mut first = Vec::new();
        for (n, node) in nodes.iter().enumerate() {
            if node.blocked.is_some() {
                continue;
            }
            awaited.extend(&node.after);
            if !node.after.iter().any(|before| own.contains(before)) {
                first.push(n);
            }
        }
        self.first = first.into();
        self.last = (0..nodes.len())
            .filter(|n| nodes[*n].blocked.is_none() && !awaited.contains(&nodes[*n].id))
            .collect();
        self.nodes = nodes;
    }

    /// Blocks all that is not blocked for a reason of its own.
    pub(super) fn block(&mut self, why: &BlockedReason) {
        let mut nodes = std::mem::take(&mut self.nodes);
        for node in &mut nodes {
            if node.blocked.is_none() || is_by_hand(node) {
                node.blocked = Some(why.clone());
            }
        }
        self.put(nodes);
    }

    /// Whether anything is executed in this run.
    pub fn is_open(&self) -> bool {
        !self.first.is_empty() || self.uncordon.is_some()
    }

    /// The steps that open it.
    pub fn first(&mut self) -> impl Iterator<Item = &mut PlanNode> {
        let first = Arc::clone(&self.first);
        self.nodes
            .iter_mut()
            .enumerate()
            .filter(move |(n, _)| first.binary_search(n).is_ok())
            .map(|(_, node)| node)
    }

    /// The steps that end it.
    pub fn last(&self) -> impl Iterator<Item = &PlanNode> {
        self.last.iter().map(|n| &self.nodes[*n])
    }

    /// Whether nothing of it is left behind or could not be determined.
    pub(super) fn is_whole(&self) -> bool {
        self.unknown.is_empty() && self.dropped.is_empty()
    }

    /// Whether this resource is in sync and only has to be written down.
    pub(super) fn adopts(&self, path: &[String]) -> bool {
        self.adopted
            .iter()
            .flat_map(PlanNode::members)
            .any(|member| *member.resource.address.path == *path)
    }

    /// Puts what is the target's own in the place of the model's: `own` by path, `items` are the
    /// model's.
    pub(super) fn with_own(
        mut self,
        own: &BTreeMap<&[String], PlanItem>,
        items: &[PlanItem],
    ) -> TargetPlan {
        let of_model: BTreeMap<&[String], &PlanItem> = items
            .iter()
            .map(|item| (&item.resource.address.path[..], item))
            .collect();
        for node in self.nodes.iter_mut().chain(&mut self.adopted) {
            let (NodeKind::Change { members, .. } | NodeKind::Adopt { members }) = &mut node.kind
            else {
                continue;
            };
            let is_own = |member: &Member| own.contains_key(&member.resource.address.path[..]);
            if !members.iter().any(is_own) {
                continue;
            }
            let mut desired: Vec<&Action> = Vec::new();
            for member in members {
                let path = &member.resource.address.path[..];
                if let Some(item) = own.get(path) {
                    desired.extend(&item.diff.actions);
                    member.resource.declaration = Arc::clone(&item.resource.declaration);
                    member.diff = Arc::new(build_planned_diff(item));
                } else if let Some(item) = of_model.get(path) {
                    desired.extend(&item.diff.actions);
                }
            }
            if let NodeKind::Change { actions, .. } = &mut node.kind {
                *actions = join_actions(desired.into_iter()).into();
            }
        }
        self
    }

    /// The part for a target that differs from this one in nothing but its name.
    pub(super) fn renamed(&self, target: &Target) -> TargetPlan {
        let rename = Rename {
            from: format!("{}/", self.target),
            to: format!("{target}/"),
            target,
        };
        let nodes: Vec<PlanNode> = self.nodes.iter().map(|node| rename.node(node)).collect();
        let mut unknown = self.unknown.clone();
        for finding in &mut unknown {
            finding.subject = rename.text(&finding.subject);
        }
        let mut dropped = self.dropped.clone();
        for field in &mut dropped {
            field.field = rename.address(&field.field);
        }
        TargetPlan {
            target: target.clone(),
            wave: self.wave,
            before_hosts: self.before_hosts,
            turn: self.turn,
            nodes,
            uncordon: None,
            adopted: self.adopted.as_ref().map(|node| rename.node(node)),
            unchanged: self.unchanged,
            unknown,
            dropped,
            first: Arc::clone(&self.first),
            last: Arc::clone(&self.last),
        }
    }
}

/// Puts one target's name in the place of another's.
struct Rename<'a> {
    from: String,
    to: String,
    target: &'a Target,
}

impl Rename<'_> {
    fn text(&self, text: &str) -> String {
        match text.strip_prefix(&self.from) {
            Some(rest) => [self.to.as_str(), rest].concat(),
            None => text.to_owned(),
        }
    }

    fn address(&self, address: &Address) -> Address {
        Address {
            target: self.target.clone(),
            path: address.path.clone(),
            attribute: address.attribute.clone(),
        }
    }

    fn member(&self, member: &Member) -> Member {
        let reason = match &member.reason {
            ChangeReason::Disturbed { by } => ChangeReason::Disturbed { by: self.text(by) },
            ChangeReason::KnownAfter { step } => ChangeReason::KnownAfter {
                step: self.address(step),
            },
            other => other.clone(),
        };
        let resource = DesiredResource {
            address: self.address(&member.resource.address),
            after: member
                .resource
                .after
                .iter()
                .map(|address| self.address(address))
                .collect(),
            declaration: Arc::clone(&member.resource.declaration),
        };
        Member {
            resource,
            reason,
            diff: Arc::clone(&member.diff),
        }
    }

    fn members(&self, members: &[Member]) -> Vec<Member> {
        members.iter().map(|member| self.member(member)).collect()
    }

    fn node(&self, node: &PlanNode) -> PlanNode {
        let kind = match &node.kind {
            NodeKind::Change {
                members,
                actions,
                announced,
                disturbs,
                interrupts_netdevs,
                automatic_rollback,
            } => NodeKind::Change {
                members: self.members(members),
                actions: Arc::clone(actions),
                announced: Arc::clone(announced),
                disturbs: Arc::clone(disturbs),
                interrupts_netdevs: Arc::clone(interrupts_netdevs),
                automatic_rollback: automatic_rollback.clone(),
            },
            NodeKind::Adopt { members } => NodeKind::Adopt {
                members: self.members(members),
            },
            other => other.clone(),
        };
        PlanNode {
            id: self.text(&node.id),
            kind,
            target: Some(self.target.clone()),
            disruption: node.disruption,
            interrupts: Arc::clone(&node.interrupts),
            after: node.after.iter().map(|before| self.text(before)).collect(),
            wave: node.wave,
            blocked: node
                .blocked
                .as_ref()
                .map(|why| why.map_step(|id| self.text(id))),
        }
    }
}

/// Plans one group: a part for each of its targets, and the diff of each resource.
pub(super) fn plan_target_group(
    inputs: &PlanInputs,
    group: &TargetGroup,
    named: &mut select::SelectionMatches,
) -> Result<(Vec<TargetPlan>, Vec<PlanItem>), Vec<Diagnostic>> {
    let (mut items, unknown) = diff_resources(group, inputs.kinds);
    let compared = items.clone();
    let graph = item_graph(&items, inputs.kinds);
    graph
        .order()
        .map_err(|cycle| vec![new_resource_cycle_error(&items, &cycle)])?;
    let kept = named.select(&items, &graph);
    brought::resolve_missing_prerequisites(&mut items, &graph, &kept, inputs.kinds);
    let pending = pending_restarts::mark_pending_restarts(&mut items, &graph, &kept);
    block_above_limit(&mut items, inputs.rollout.max_disruption);
    let rollback_reasons = RollbackReasons::mark(&mut items, inputs.observation, &inputs.rollout);
    let mut draft = PlanDraft::new(items, graph, kept, rollback_reasons);
    draft.edges.extend(pending);
    draft.disturb();
    draft.reboot(inputs.kinds);
    let mut nodes = sort_nodes(draft.nodes())?;
    block_dependants(&mut nodes);
    let mut nodes_by_target: BTreeMap<Target, Vec<PlanNode>> = BTreeMap::new();
    for node in nodes {
        let target = node.target.clone();
        let target = target.expect("a change and a reboot have a target");
        nodes_by_target.entry(target).or_default().push(node);
    }
    let mut adopted = draft.adopted(inputs.last, inputs.kinds);
    let mut unchanged = draft.unchanged();
    let mut parts: Vec<TargetPlan> = Vec::new();
    for target in &group.targets {
        let nodes = nodes_by_target.remove(*target).unwrap_or_default();
        let mut part = TargetPlan::new((*target).clone(), nodes);
        part.adopted = adopted.remove(*target);
        part.unchanged = unchanged.remove(*target).unwrap_or(0);
        parts.push(part);
    }
    if let Some(part) = parts.first_mut() {
        part.unknown = unknown;
        part.dropped = find_dropped_fields(group, inputs.kinds);
    }
    Ok((parts, compared))
}

fn new_resource_cycle_error(items: &[PlanItem], cycle: &Cycle) -> Diagnostic {
    let mut names: Vec<String> = cycle
        .0
        .iter()
        .map(|n| {
            format!(
                "{} ({})",
                items[*n].resource.address, items[*n].resource.module
            )
        })
        .collect();
    names.extend(names.first().cloned());
    Diagnostic::error(
        "RW0305",
        format!(
            "resources wait for each other in a ring: {}",
            names.join(" before ")
        ),
    )
    .state("nothing was planned or changed")
    .next("take one `after` out of one of these modules")
}

/// Changes above the limit are blocked, not an error; a change that needs a reboot counts as one.
fn block_above_limit(items: &mut [PlanItem], limit: Disruption) {
    for item in items {
        // What waits for a power cycle may be written at once: the power cycle itself is blocked.
        let reboots = item.diff.needs_reboot && !item.diff.needs_power_cycle;
        let needed = if reboots {
            Disruption::Reboot
        } else {
            item.diff.disruption
        };
        if let PlanItemStatus::Change(reason) = &item.status
            && needed > limit
        {
            let text = format!(
                "it disturbs as much as a {}, and rollout.max_disruption is {}",
                needed.word(),
                limit.word()
            );
            item.status = PlanItemStatus::Blocked(reason.clone(), text);
        }
    }
}

/// What needs a blocked node is blocked too: (blocked, cause). A power cycle is blocked anyway, and
/// says so where nothing else is in its way.
fn block_dependants(nodes: &mut [PlanNode]) {
    let graph = node_graph(nodes);
    let mut causes: Vec<usize> = (0..nodes.len()).collect();
    causes.retain(|n| nodes[*n].blocked.is_some());
    for cause in causes {
        let why = BlockedReason::NeedsStep(nodes[cause].id.clone());
        for n in graph.with_dependants([cause]) {
            let by_hand = n != cause && is_by_hand(&nodes[n]);
            if nodes[n].blocked.is_none() || by_hand {
                nodes[n].blocked = Some(why.clone());
            }
        }
    }
}
