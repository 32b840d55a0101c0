//! The items of a plan while they become nodes: what a change disturbs is re-checked, reboots
//! are shared, changes are joined.

use super::blocked::BlockedReason;
use super::diff::{KindLookup, PlanItem, PlanItemStatus, collect_differences};
use super::group::group_transactions;
use super::model::{ChangeReason, Member, NodeKind, PlanNode, PlannedDiff};
use super::order::contract_graph;
use super::rollback_reasons::RollbackReasons;
use super::{AppliedResource, LastApplied};
use indexmap::IndexSet;
use railwright_base::{Address, Target};
use railwright_graph::Graph;
use railwright_resource::switch::SwitchSystem;
use railwright_resource::switch::edit::SwitchEdit;
use railwright_resource::{Action, DesiredResource, Disruption, Plane};
use rustc_hash::FxBuildHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) struct PlanDraft<'a> {
    items: Vec<PlanItem>,
    graph: Graph,
    kept: BTreeSet<usize>,
    /// The kept items of each target.
    kept_by_target: BTreeMap<Target, Vec<usize>>,
    /// Items that become part of a node.
    chosen: BTreeSet<usize>,
    /// Edges among chosen items.
    pub edges: BTreeSet<(usize, usize)>,
    /// Items that come before their target's reboot, by target.
    before_reboot: BTreeMap<Target, BTreeSet<usize>>,
    /// Targets for which a reboot is not enough.
    power_cycled: BTreeSet<Target>,
    rollback_reasons: RollbackReasons<'a>,
}

impl<'a> PlanDraft<'a> {
    /// Of these, the kept ones.
    pub fn new(
        items: Vec<PlanItem>,
        graph: Graph,
        kept: BTreeSet<usize>,
        rollback_reasons: RollbackReasons<'a>,
    ) -> Self {
        let mut chosen = BTreeSet::new();
        let mut kept_by_target: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
        for &n in &kept {
            if items[n].changes() {
                chosen.insert(n);
            }
            let target = items[n].resource.address.target.clone();
            kept_by_target.entry(target).or_default().push(n);
        }
        let edges = contract_graph(&graph, &chosen).into_iter().collect();
        PlanDraft {
            items,
            graph,
            kept,
            kept_by_target,
            chosen,
            edges,
            before_reboot: BTreeMap::new(),
            power_cycled: BTreeSet::new(),
            rollback_reasons,
        }
    }

    /// What a change resets is re-checked after it, also when it is in sync now.
    pub fn disturb(&mut self) {
        for own in self.kept_by_target.clone().into_values() {
            let mut changed = own.clone();
            changed.retain(|n| self.chosen.contains(n));
            for by in changed {
                self.recheck_disturbed(by, &own);
            }
        }
    }

    /// Re-checks what one change disturbs of its target's `own` items, but nothing that it needs.
    fn recheck_disturbed(&mut self, by: usize, own: &[usize]) {
        let mut disturbed = own.to_vec();
        disturbed.retain(|n| may_disturb(&self.items[by], &self.items[*n]));
        if disturbed.is_empty() {
            return;
        }
        let first = self.graph.with_prerequisites([by]);
        for n in disturbed {
            if !first.contains(&n) {
                self.look_again(n, self.items[by].resource.address.to_string());
                self.edges.insert((by, n));
            }
        }
    }

    /// Steps that need a reboot share one, after all that they need. Everything else of the host
    /// comes after it, so that nothing is done that the reboot would undo; what runs now is
    /// re-checked after it.
    pub fn reboot(&mut self, kinds: KindLookup) {
        let mut causes: Vec<usize> = self.chosen.iter().copied().collect();
        causes.retain(|n| self.items[*n].causes_reboot());
        for &cause in &causes {
            let item = &self.items[cause];
            let target = &item.resource.address.target;
            if item.diff.needs_power_cycle {
                self.power_cycled.insert(target.clone());
            }
            let before = self.before_reboot.entry(target.clone()).or_default();
            for n in self.graph.with_prerequisites([cause]) {
                if self.chosen.contains(&n) && self.items[n].resource.address.target == *target {
                    before.insert(n);
                }
            }
        }
        self.bring_boot_changes(&causes, kinds);
        self.bring_before_reboot(&causes);
        for target in self.before_reboot.keys().cloned().collect::<Vec<_>>() {
            for n in self.kept_by_target[&target].clone() {
                if self.is_running_and_met(n) {
                    self.look_again(n, format!("{target}/reboot"));
                }
            }
        }
        let mut edges = std::mem::take(&mut self.edges);
        edges.extend(contract_graph(&self.graph, &self.chosen));
        edges.retain(|(first, then)| !self.is_across_reboot(*first, *then));
        self.edges = edges;
    }

    /// Whether this order would put something before the reboot of its target and after what comes
    /// after a reboot.
    fn is_across_reboot(&self, first: usize, then: usize) -> bool {
        self.is_before_reboot(then) && !self.is_before_reboot(first) && self.rebooting(first)
    }

    /// What only a boot brings into effect comes before the reboot, unless it waits for what needs
    /// the reboot: the target would boot with what is about to be taken away.
    fn bring_boot_changes(&mut self, causes: &[usize], kinds: KindLookup) {
        let mut of_boot: Vec<usize> = self.chosen.iter().copied().collect();
        of_boot.retain(|n| self.items[*n].changes_next_boot(kinds));
        for n in of_boot {
            let first = self.graph.with_prerequisites([n]);
            let is_blocked =
                |n: &usize| matches!(self.items[*n].status, PlanItemStatus::Blocked(..));
            if causes.iter().any(|cause| first.contains(cause)) || first.iter().any(is_blocked) {
                continue;
            }
            for n in first {
                if self.chosen.contains(&n) {
                    self.put_before_reboot(n);
                }
            }
        }
    }

    /// What disturbs something that comes before the reboot comes before it too, unless it waits
    /// for what needs the reboot: nobody would look at that again.
    fn bring_before_reboot(&mut self, causes: &[usize]) {
        loop {
            let mut late = BTreeSet::new();
            for (by, n) in &self.edges {
                if self.is_across_reboot(*by, *n) {
                    late.insert(*by);
                }
            }
            let mut is_grown = false;
            for by in late {
                let first = self.graph.with_prerequisites([by]);
                if causes.iter().any(|cause| first.contains(cause)) {
                    continue;
                }
                for n in first {
                    is_grown |= self.chosen.contains(&n) && self.put_before_reboot(n);
                }
            }
            if !is_grown {
                return;
            }
        }
    }

    /// True where it was not there before; false also where its target does not reboot.
    fn put_before_reboot(&mut self, n: usize) -> bool {
        let target = &self.items[n].resource.address.target;
        match self.before_reboot.get_mut(target) {
            Some(before) => before.insert(n),
            None => false,
        }
    }

    fn is_running_and_met(&self, n: usize) -> bool {
        let item = &self.items[n];
        item.status == PlanItemStatus::Met && item.diff.compares(Plane::Running)
    }

    fn look_again(&mut self, n: usize, by: String) {
        let item = &mut self.items[n];
        if item.status == PlanItemStatus::Met {
            item.status = PlanItemStatus::Change(ChangeReason::Disturbed { by });
            self.chosen.insert(n);
        }
    }

    fn rebooting(&self, n: usize) -> bool {
        self.before_reboot
            .contains_key(&self.items[n].resource.address.target)
    }

    fn is_before_reboot(&self, n: usize) -> bool {
        self.before_reboot
            .get(&self.items[n].resource.address.target)
            .is_some_and(|first| first.contains(&n))
    }

    /// The nodes, in no order yet.
    pub fn nodes(&self) -> Vec<PlanNode> {
        let edges: Vec<(usize, usize)> = self.edges.iter().copied().collect();
        let mut groups = self.group_chosen(&edges);
        self.rollback_reasons
            .put_in_order(&mut groups, &self.items, &edges);
        let mut names = BTreeMap::new();
        let mut ids: Vec<String> = Vec::new();
        let mut group_of: BTreeMap<usize, usize> = BTreeMap::new();
        for (g, members) in groups.iter().enumerate() {
            ids.push(self.id(members, &mut names));
            group_of.extend(members.iter().map(|n| (*n, g)));
        }
        let mut after: Vec<BTreeSet<String>> = vec![BTreeSet::new(); groups.len()];
        for (a, b) in &edges {
            let (first, then) = (group_of[a], group_of[b]);
            if first != then {
                after[then].insert(ids[first].clone());
            }
        }
        let mut nodes: Vec<PlanNode> = Vec::new();
        let mut before_reboot: BTreeMap<&Target, Vec<String>> = BTreeMap::new();
        for ((members, id), after) in groups.iter().zip(ids).zip(after) {
            if self.is_before_reboot(members[0]) {
                let target = &self.items[members[0]].resource.address.target;
                before_reboot.entry(target).or_default().push(id.clone());
            }
            nodes.push(self.change(members, id, after));
        }
        for target in self.before_reboot.keys() {
            let after = before_reboot.remove(target).unwrap_or_default();
            nodes.push(if self.power_cycled.contains(target) {
                power_cycle_node(target, after)
            } else {
                reboot_node(target, after)
            });
        }
        nodes
    }

    /// The chosen items in groups that become one node each. A reboot stands between what comes
    /// before and after it, so a transaction is never joined across it.
    fn group_chosen(&self, edges: &[(usize, usize)]) -> Vec<Vec<usize>> {
        let (early, late): (BTreeSet<usize>, BTreeSet<usize>) =
            self.chosen.iter().partition(|n| self.is_before_reboot(**n));
        let mut groups = Vec::new();
        for half in [early, late] {
            let edges = select_edges_within(edges, &half);
            groups.extend(group_transactions(&self.items, &half, &edges));
        }
        groups
    }

    fn id(&self, members: &[usize], names: &mut BTreeMap<String, usize>) -> String {
        let first = &self.items[members[0]];
        let is_blocked = matches!(first.status, PlanItemStatus::Blocked(..));
        let (Some(word), false) = (&first.diff.transaction, is_blocked) else {
            return first.resource.address.to_string();
        };
        let suffix = if first.removal { "-removal" } else { "" };
        let name = format!(
            "{}/transaction/{word}{suffix}",
            first.resource.address.target
        );
        let count = names.entry(name.clone()).or_insert(0);
        *count += 1;
        match *count {
            1 => name,
            count => format!("{name}-{count}"),
        }
    }

    fn change(&self, members: &[usize], id: String, mut after: BTreeSet<String>) -> PlanNode {
        let items: Vec<&PlanItem> = members.iter().map(|n| &self.items[*n]).collect();
        let target = items[0].resource.address.target.clone();
        if self.rebooting(members[0]) && !self.is_before_reboot(members[0]) {
            after.insert(format!("{target}/reboot"));
        }
        let mut blocked = None;
        let mut disruption = Disruption::default();
        for item in &items {
            if let PlanItemStatus::Blocked(_, text) = &item.status {
                blocked.get_or_insert_with(|| BlockedReason::Stated(text.clone()));
            }
            if item.changes() {
                disruption = disruption.max(item.diff.disruption);
            }
        }
        PlanNode {
            id,
            kind: NodeKind::Change {
                actions: join_actions(items.iter().flat_map(|item| &item.diff.actions)).into(),
                announced: collect_announced_actions(&items).into(),
                disturbs: merge_texts(&items, |item| &item.diff.disturbs),
                interrupts_netdevs: merge_texts(&items, |item| &item.diff.interrupts_netdevs),
                automatic_rollback: self.rollback_reasons.of(&items),
                members: items.iter().map(|item| build_member(item)).collect(),
            },
            target: Some(target),
            disruption,
            interrupts: merge_texts(&items, |item| &item.diff.interrupts),
            after: after.into_iter().collect(),
            wave: 0,
            blocked,
        }
    }

    /// One node a target for all that is in sync and not remembered so.
    pub fn adopted(&self, last: &LastApplied, kinds: KindLookup) -> BTreeMap<Target, PlanNode> {
        let mut members_by_target: BTreeMap<&Target, Vec<Member>> = BTreeMap::new();
        for n in &self.kept {
            let item = &self.items[*n];
            let address = &item.resource.address;
            if item.status != PlanItemStatus::Met
                || is_remembered(&item.resource, last.applied(address), kinds)
            {
                continue;
            }
            let members = members_by_target.entry(&address.target).or_default();
            members.push(Member {
                reason: ChangeReason::InSync,
                ..build_member(item)
            });
        }
        let mut nodes = BTreeMap::new();
        for (target, members) in members_by_target {
            nodes.insert(target.clone(), adopt_node(target, members));
        }
        nodes
    }

    /// How many resources are in sync, by target.
    pub fn unchanged(&self) -> BTreeMap<Target, usize> {
        let mut counts = BTreeMap::new();
        for n in &self.kept {
            let item = &self.items[*n];
            if item.status == PlanItemStatus::Met {
                let target = item.resource.address.target.clone();
                *counts.entry(target).or_insert(0) += 1;
            }
        }
        counts
    }
}

/// A reboot that somebody makes by switching the host off and on. What comes after it is blocked
/// with it, until a run takes both up.
fn power_cycle_node(target: &Target, after: Vec<String>) -> PlanNode {
    let why = "a power cycle is done by hand; `resume` after it proves it and goes on";
    PlanNode {
        disruption: Disruption::PowerCycle,
        blocked: Some(BlockedReason::Stated(why.to_owned())),
        ..reboot_node(target, after)
    }
}

fn adopt_node(target: &Target, members: Vec<Member>) -> PlanNode {
    PlanNode {
        id: format!("{target}/found"),
        kind: NodeKind::Adopt { members },
        target: Some(target.clone()),
        disruption: Disruption::None,
        interrupts: Arc::default(),
        after: Vec::new(),
        wave: 0,
        blocked: None,
    }
}

fn reboot_node(target: &Target, after: Vec<String>) -> PlanNode {
    PlanNode {
        id: format!("{target}/reboot"),
        kind: NodeKind::Reboot,
        target: Some(target.clone()),
        disruption: Disruption::Reboot,
        interrupts: Arc::new(["everything that runs on the host".to_owned()]),
        after,
        wave: 0,
        blocked: None,
    }
}

fn select_edges_within(edges: &[(usize, usize)], set: &BTreeSet<usize>) -> Vec<(usize, usize)> {
    edges
        .iter()
        .copied()
        .filter(|(a, b)| set.contains(a) && set.contains(b))
        .collect()
}

/// Whether a resource disturbs another of its target.
fn may_disturb(by: &PlanItem, other: &PlanItem) -> bool {
    let mut patterns = by.diff.disturbs.iter();
    patterns.any(|pattern| is_within_pattern(&other.resource.address, pattern))
}

/// `link/*` means every link of the target.
fn is_within_pattern(address: &Address, pattern: &str) -> bool {
    let within = address.within_target();
    match pattern.strip_suffix('*') {
        Some(prefix) => within.starts_with(prefix),
        None => within == pattern,
    }
}

/// The texts of all items, sorted, each once.
fn merge_texts(items: &[&PlanItem], pick: fn(&PlanItem) -> &Vec<String>) -> Arc<[String]> {
    let texts: BTreeSet<&String> = items.iter().flat_map(|item| pick(item)).collect();
    texts.into_iter().cloned().collect()
}

/// What may be needed beyond the planned actions: the kind's own announcement, and for what an
/// earlier step resets, whatever applying the resource again takes (`*`).
fn collect_announced_actions(items: &[&PlanItem]) -> Vec<String> {
    let mut words: BTreeSet<String> = BTreeSet::new();
    for item in items {
        words.extend(item.diff.announced.iter().cloned());
        if let PlanItemStatus::Change(ChangeReason::Disturbed { .. }) = item.status {
            words.insert("*".to_owned());
        }
    }
    words.into_iter().collect()
}

/// One run for what can be joined; what is asked for twice is done once, at the later place.
pub fn join_actions<'a>(actions: impl Iterator<Item = &'a Action>) -> Vec<Action> {
    let mut joined: Vec<Action> = Vec::new();
    // A large leaf has thousands of edits, and what its ports share is asked for by each.
    let mut edits_of: BTreeMap<SwitchSystem, IndexSet<&SwitchEdit, FxBuildHasher>> =
        BTreeMap::new();
    for action in actions {
        if let Action::EditSwitch { system, edits } = action {
            if !edits_of.contains_key(system) {
                joined.push(Action::EditSwitch {
                    system: *system,
                    edits: Vec::new(),
                });
            }
            edits_of.entry(*system).or_default().extend(edits);
        } else if let Some(twice) = joined.iter().position(|before| before == action) {
            joined.remove(twice);
            joined.push(action.clone());
        } else if !joined.iter_mut().any(|before| before.join(action)) {
            joined.push(action.clone());
        }
    }
    for action in &mut joined {
        if let Action::EditSwitch { system, edits } = action {
            edits.extend(edits_of.remove(system).into_iter().flatten().cloned());
        }
    }
    // A hold that is let go makes room, what goes makes room for the one install of all, and a new
    // hold keeps what that install brought.
    joined.sort_by_key(|action| match action {
        Action::HoldPackages { hold: false, .. } => 0,
        Action::RemovePackages { .. } => 1,
        Action::HoldPackages { hold: true, .. } => 3,
        _ => 2,
    });
    joined
}

fn build_member(item: &PlanItem) -> Member {
    let reason = match &item.status {
        PlanItemStatus::Change(reason) | PlanItemStatus::Blocked(reason, _) => reason.clone(),
        PlanItemStatus::Met | PlanItemStatus::Unknown => ChangeReason::Unknown,
    };
    Member {
        resource: item.resource.clone(),
        reason,
        diff: Arc::new(build_planned_diff(item)),
    }
}

/// What was found of a resource.
pub(super) fn build_planned_diff(item: &PlanItem) -> PlannedDiff {
    PlannedDiff {
        differences: collect_differences(&item.diff),
        removal: item.removal,
        fingerprint: item.diff.fingerprint(),
        before: item.diff.before.clone(),
        residue: item.diff.residue.clone(),
        since: item.since.clone(),
        needs_power_cycle: item.diff.needs_power_cycle,
    }
}

/// Whether what was applied last is this resource, so that there is nothing to write down.
pub(super) fn is_remembered(
    resource: &DesiredResource,
    applied: Option<&AppliedResource>,
    kinds: KindLookup,
) -> bool {
    let (Some(applied), Some(kind)) = (applied, kinds(&resource.kind)) else {
        return false;
    };
    // Where the kind goes by what was begun as well, nothing of it is left, or it is reported.
    let is_over = |begun| kind.join_bodies(&applied.body, begun).is_some();
    if applied.begun.iter().any(is_over) {
        return false;
    }
    applied.digest == resource.digest()
        || kind.is_same_resource(&applied.resource(&resource.address), resource)
}
