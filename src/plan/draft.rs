//! The items of a plan while they become nodes: what a change disturbs is looked at again, reboots
//! are shared, changes are joined.

use super::group::group_transactions;
use super::guards::RollbackReasons;
use super::judge::{KindLookup, PlanItem, PlanItemStatus, collect_differences};
use super::model::{Member, NodeKind, PlanNode, PlannedDiff, Reason};
use super::order::contract_graph;
use super::{AppliedResource, LastApplied};
use indexmap::IndexSet;
use railwright_base::Target;
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
    /// The kept ones of each target.
    of_target: BTreeMap<Target, Vec<usize>>,
    /// Items that become part of a node.
    chosen: BTreeSet<usize>,
    /// Edges among chosen items.
    pub edges: BTreeSet<(usize, usize)>,
    /// Items that come before their target's reboot, by target.
    before_reboot: BTreeMap<Target, BTreeSet<usize>>,
    /// Targets for which a reboot is not enough.
    power_cycled: BTreeSet<Target>,
    guards: RollbackReasons<'a>,
}

impl<'a> PlanDraft<'a> {
    /// Of these, the kept ones.
    pub fn new(
        items: Vec<PlanItem>,
        graph: Graph,
        kept: BTreeSet<usize>,
        guards: RollbackReasons<'a>,
    ) -> Self {
        let chosen: BTreeSet<usize> = kept
            .iter()
            .copied()
            .filter(|n| items[*n].changes())
            .collect();
        let edges = contract_graph(&graph, &chosen).into_iter().collect();
        let mut of_target: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
        for n in &kept {
            of_target
                .entry(items[*n].wish.address.target.clone())
                .or_default()
                .push(*n);
        }
        PlanDraft {
            items,
            graph,
            kept,
            of_target,
            chosen,
            edges,
            before_reboot: BTreeMap::new(),
            power_cycled: BTreeSet::new(),
            guards,
        }
    }

    /// What a change resets is looked at again after it, also when it is as wished now.
    pub fn disturb(&mut self) {
        for (_, own) in self.of_target.clone() {
            for by in own
                .iter()
                .copied()
                .filter(|n| self.chosen.contains(n))
                .collect::<Vec<_>>()
            {
                let hit: Vec<usize> = own
                    .iter()
                    .copied()
                    .filter(|n| may_disturb(&self.items[by], &self.items[*n]))
                    .collect();
                let first = if hit.is_empty() {
                    BTreeSet::new()
                } else {
                    self.graph.with_prerequisites([by])
                };
                for n in hit.into_iter().filter(|n| !first.contains(n)) {
                    self.look_again(n, self.items[by].wish.address.to_string());
                    self.edges.insert((by, n));
                }
            }
        }
    }

    /// Steps that need a reboot share one, after all that they need. Everything else of the host
    /// comes after it, so that nothing is done that the reboot would undo; what runs now is looked
    /// at again after it.
    pub fn reboot(&mut self) {
        let causes: Vec<usize> = self
            .chosen
            .iter()
            .copied()
            .filter(|n| {
                self.items[*n].assessment.needs_reboot
                    && matches!(self.items[*n].status, PlanItemStatus::Change(_))
            })
            .collect();
        for cause in causes.iter().copied() {
            let target = self.items[cause].wish.address.target.clone();
            if self.items[cause].assessment.needs_power_cycle {
                self.power_cycled.insert(target.clone());
            }
            let on_target =
                |n: &usize| self.chosen.contains(n) && self.items[*n].wish.address.target == target;
            let first: Vec<usize> = self
                .graph
                .with_prerequisites([cause])
                .into_iter()
                .filter(on_target)
                .collect();
            self.before_reboot.entry(target).or_default().extend(first);
        }
        self.bring_before_reboot(&causes);
        for target in self.before_reboot.keys().cloned().collect::<Vec<_>>() {
            let by = format!("{target}/reboot");
            let own = self.of_target.get(&target).into_iter().flatten().copied();
            let met: Vec<usize> = own.filter(|n| self.is_running_and_met(*n)).collect();
            for n in met {
                self.look_again(n, by.clone());
            }
        }
        self.edges.extend(contract_graph(&self.graph, &self.chosen));
        let turned = |(a, b): &(usize, usize)| {
            self.is_before_reboot(*b) && !self.is_before_reboot(*a) && self.rebooting(*a)
        };
        let keep: BTreeSet<_> = self
            .edges
            .iter()
            .copied()
            .filter(|edge| !turned(edge))
            .collect();
        self.edges = keep;
    }

    /// What disturbs something that comes before the reboot comes before it too, unless it waits
    /// for what needs the reboot: nobody would look at that again.
    fn bring_before_reboot(&mut self, causes: &[usize]) {
        loop {
            let is_late = |(by, n): &&(usize, usize)| {
                self.is_before_reboot(*n) && !self.is_before_reboot(*by) && self.rebooting(*by)
            };
            let late: BTreeSet<usize> = self
                .edges
                .iter()
                .filter(is_late)
                .map(|(by, _)| *by)
                .collect();
            let first = late
                .into_iter()
                .map(|by| self.graph.with_prerequisites([by]));
            let first: BTreeSet<usize> = first
                .filter(|first| !causes.iter().any(|cause| first.contains(cause)))
                .flatten()
                .collect();
            let mut grown = false;
            for n in first.into_iter().filter(|n| self.chosen.contains(n)) {
                let target = self.items[n].wish.address.target.clone();
                grown |= self
                    .before_reboot
                    .get_mut(&target)
                    .is_some_and(|before| before.insert(n));
            }
            if !grown {
                return;
            }
        }
    }

    fn is_running_and_met(&self, n: usize) -> bool {
        let item = &self.items[n];
        item.status == PlanItemStatus::Met && item.assessment.judges(Plane::Running)
    }

    fn look_again(&mut self, n: usize, by: String) {
        let item = &mut self.items[n];
        if item.status == PlanItemStatus::Met {
            item.status = PlanItemStatus::Change(Reason::Disturbed { by });
            self.chosen.insert(n);
        }
    }

    fn rebooting(&self, n: usize) -> bool {
        self.before_reboot
            .contains_key(&self.items[n].wish.address.target)
    }

    fn is_before_reboot(&self, n: usize) -> bool {
        self.before_reboot
            .get(&self.items[n].wish.address.target)
            .is_some_and(|first| first.contains(&n))
    }

    /// What came of it, in no order yet.
    pub fn nodes(&self) -> Vec<PlanNode> {
        let edges: Vec<(usize, usize)> = self.edges.iter().copied().collect();
        // A reboot stands between what comes before and after it, so a transaction is never joined
        // across it.
        let (early, late): (BTreeSet<usize>, BTreeSet<usize>) =
            self.chosen.iter().partition(|n| self.is_before_reboot(**n));
        let mut groups =
            group_transactions(&self.items, &early, &select_edges_within(&edges, &early));
        groups.extend(group_transactions(
            &self.items,
            &late,
            &select_edges_within(&edges, &late),
        ));
        self.guards.put_in_order(&mut groups, &self.items, &edges);
        let mut names = BTreeMap::new();
        let ids: Vec<String> = groups
            .iter()
            .map(|members| self.id(members, &mut names))
            .collect();
        let of: BTreeMap<usize, usize> = groups
            .iter()
            .enumerate()
            .flat_map(|(g, m)| m.iter().map(move |n| (*n, g)))
            .collect();
        let mut after: Vec<BTreeSet<String>> = vec![BTreeSet::new(); groups.len()];
        for (a, b) in &edges {
            if of[a] != of[b] {
                after[of[b]].insert(ids[of[a]].clone());
            }
        }
        let mut nodes: Vec<PlanNode> = Vec::new();
        for ((members, id), after) in groups.iter().zip(&ids).zip(after) {
            nodes.push(self.change(members, id.clone(), after));
        }
        let mut first: BTreeMap<&Target, Vec<String>> = BTreeMap::new();
        for (members, id) in groups
            .iter()
            .zip(&ids)
            .filter(|(members, _)| self.is_before_reboot(members[0]))
        {
            first
                .entry(&self.items[members[0]].wish.address.target)
                .or_default()
                .push(id.clone());
        }
        let reboot = |target: &Target| {
            let after = first.remove(target).unwrap_or_default();
            if self.power_cycled.contains(target) {
                power_cycle_node(target, after)
            } else {
                reboot_node(target, after)
            }
        };
        nodes.extend(self.before_reboot.keys().map(reboot));
        nodes
    }

    fn id(&self, members: &[usize], names: &mut BTreeMap<String, usize>) -> String {
        let first = &self.items[members[0]];
        let held = matches!(first.status, PlanItemStatus::Held(..));
        let name = match &first.assessment.transaction {
            Some(word) if !held => {
                format!(
                    "{}/transaction/{word}{}",
                    first.wish.address.target,
                    if first.removal { "-removal" } else { "" }
                )
            }
            _ => return first.wish.address.to_string(),
        };
        let count = names
            .entry(name.clone())
            .and_modify(|c| *c += 1)
            .or_insert(1);
        if *count == 1 {
            name
        } else {
            format!("{name}-{count}")
        }
    }

    fn change(&self, members: &[usize], id: String, mut after: BTreeSet<String>) -> PlanNode {
        let items: Vec<&PlanItem> = members.iter().map(|n| &self.items[*n]).collect();
        let target = items[0].wish.address.target.clone();
        if self.rebooting(members[0]) && !self.is_before_reboot(members[0]) {
            after.insert(format!("{target}/reboot"));
        }
        let held = items.iter().find_map(|item| match &item.status {
            PlanItemStatus::Held(_, text) => Some(text.clone()),
            _ => None,
        });
        let union = |pick: fn(&PlanItem) -> &Vec<String>| -> Vec<String> {
            items
                .iter()
                .flat_map(|item| pick(item))
                .cloned()
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect()
        };
        PlanNode {
            id,
            kind: NodeKind::Change {
                actions: join_actions(items.iter().flat_map(|item| &item.assessment.actions))
                    .into(),
                announced: collect_announced_actions(&items).into(),
                disturbs: union(|item| &item.assessment.disturbs).into(),
                interrupts_netdevs: union(|item| &item.assessment.interrupts_netdevs).into(),
                guard: self.guards.of(&items),
                members: items.iter().map(|item| build_member(item)).collect(),
            },
            target: Some(target),
            disruption: items
                .iter()
                .filter(|i| i.changes())
                .map(|item| item.assessment.disruption)
                .max()
                .unwrap_or_default(),
            interrupts: union(|item| &item.assessment.interrupts).into(),
            after: after.into_iter().collect(),
            wave: 0,
            held,
        }
    }

    /// One node a target for all that is as wished and not remembered so.
    pub fn adopted(&self, last: &LastApplied, kinds: KindLookup) -> BTreeMap<Target, PlanNode> {
        let remembered =
            |wish: &DesiredResource| is_remembered(wish, last.applied(&wish.address), kinds);
        let mut found: BTreeMap<&Target, Vec<Member>> = BTreeMap::new();
        for item in self
            .kept
            .iter()
            .map(|n| &self.items[*n])
            .filter(|item| item.status == PlanItemStatus::Met && !remembered(&item.wish))
        {
            found
                .entry(&item.wish.address.target)
                .or_default()
                .push(Member {
                    reason: Reason::AsWished,
                    ..build_member(item)
                });
        }
        let node = |(target, members): (&Target, Vec<Member>)| PlanNode {
            id: format!("{target}/found"),
            kind: NodeKind::Adopt { members },
            target: Some(target.clone()),
            disruption: Disruption::None,
            interrupts: Arc::default(),
            after: Vec::new(),
            wave: 0,
            held: None,
        };
        found
            .into_iter()
            .map(|found| (found.0.clone(), node(found)))
            .collect()
    }

    /// How many are as wished, by target.
    pub fn unchanged(&self) -> BTreeMap<Target, usize> {
        let mut counts = BTreeMap::new();
        for n in self
            .kept
            .iter()
            .filter(|n| self.items[**n].status == PlanItemStatus::Met)
        {
            *counts
                .entry(self.items[*n].wish.address.target.clone())
                .or_insert(0) += 1;
        }
        counts
    }
}

/// A reboot that somebody makes by switching the host off and on. What comes after it is held with
/// it, until a run takes both up.
fn power_cycle_node(target: &Target, after: Vec<String>) -> PlanNode {
    let held =
        Some("a power cycle is done by hand; `resume` after it proves it and goes on".to_owned());
    PlanNode {
        disruption: Disruption::PowerCycle,
        held,
        ..reboot_node(target, after)
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
        held: None,
    }
}

fn select_edges_within(edges: &[(usize, usize)], set: &BTreeSet<usize>) -> Vec<(usize, usize)> {
    edges
        .iter()
        .copied()
        .filter(|(a, b)| set.contains(a) && set.contains(b))
        .collect()
}

/// Of one target. `link/*` means every link of it.
fn may_disturb(by: &PlanItem, other: &PlanItem) -> bool {
    let within = || other.wish.address.within_target();
    by.assessment
        .disturbs
        .iter()
        .any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => within().starts_with(prefix),
            None => within() == *pattern,
        })
}

/// What may be needed beyond the planned actions: the kind's own announcement, and for what an
/// earlier step resets, whatever applying the same wish again takes (`*`).
fn collect_announced_actions(items: &[&PlanItem]) -> Vec<String> {
    let mut words: BTreeSet<String> = items
        .iter()
        .flat_map(|item| item.assessment.announced.iter().cloned())
        .collect();
    if items.iter().any(|item| {
        matches!(
            item.status,
            PlanItemStatus::Change(Reason::Disturbed { .. })
        )
    }) {
        words.insert("*".to_owned());
    }
    words.into_iter().collect()
}

/// One run for what can be joined; what is asked for twice is done once, at the later place.
pub fn join_actions<'a>(actions: impl Iterator<Item = &'a Action>) -> Vec<Action> {
    let mut joined: Vec<Action> = Vec::new();
    // A large leaf has thousands of edits, and what its ports share is asked for by each.
    let mut told: BTreeMap<SwitchSystem, IndexSet<&SwitchEdit, FxBuildHasher>> = BTreeMap::new();
    for action in actions {
        if let Action::EditSwitch { system, edits } = action {
            if !told.contains_key(system) {
                joined.push(Action::EditSwitch {
                    system: *system,
                    edits: Vec::new(),
                });
            }
            told.entry(*system).or_default().extend(edits);
        } else if let Some(twice) = joined.iter().position(|before| before == action) {
            joined.remove(twice);
            joined.push(action.clone());
        } else if !joined.iter_mut().any(|before| before.join(action)) {
            joined.push(action.clone());
        }
    }
    for action in &mut joined {
        if let Action::EditSwitch { system, edits } = action {
            edits.extend(told.remove(system).into_iter().flatten().cloned());
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
        PlanItemStatus::Change(reason) | PlanItemStatus::Held(reason, _) => reason.clone(),
        PlanItemStatus::Met | PlanItemStatus::Unknown => Reason::Unknown,
    };
    Member {
        wish: item.wish.clone(),
        reason,
        found: Arc::new(build_planned_diff(item)),
    }
}

/// What was found of a resource.
pub(super) fn build_planned_diff(item: &PlanItem) -> PlannedDiff {
    PlannedDiff {
        differences: collect_differences(&item.assessment),
        removal: item.removal,
        fingerprint: item.assessment.fingerprint(),
        before: item.assessment.before.clone(),
        residue: item.assessment.residue.clone(),
        since: item.since.clone(),
        needs_power_cycle: item.assessment.needs_power_cycle,
    }
}

/// Whether what was applied last is this wish, so that there is nothing to write down.
pub(super) fn is_remembered(
    wish: &DesiredResource,
    applied: Option<&AppliedResource>,
    kinds: KindLookup,
) -> bool {
    let (Some(applied), Some(kind)) = (applied, kinds(&wish.kind)) else {
        return false;
    };
    applied.digest == wish.digest() || kind.is_same_wish(&applied.wish(&wish.address), wish)
}
