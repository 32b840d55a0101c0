//! Makes a plan: judge, select, disturb, order, group, hold, roll out. Each step is a file of its own; here is the sequence.

use super::dropped::dropped;
use super::group::group;
use super::judge::{Item, KindLookup, Status, differences, judge};
use super::model::{FORMAT_VERSION, Member, Node, NodeKind, Plan, Proof, Reason, UnknownFinding};
use super::order::{contract, item_graph};
use super::{InventoryOrigin, LastApplied, RolloutPolicy, Selection, file, owed, select, waves};
use crate::base::{Diagnostic, Digest, Target};
use crate::graph::{Cycle, Graph};
use crate::resource::{Action, Disruption, Observation, Plane, Wish};
use std::collections::{BTreeMap, BTreeSet};

/// What a plan says about its own making.
#[derive(Debug, Clone)]
pub struct Header {
    /// The version of railwright.
    pub made_by: String,
    /// The cluster's name.
    pub cluster: String,
    /// Where the spec came from.
    pub inventory: InventoryOrigin,
    /// Digest of the spec's files.
    pub spec_digest: Digest,
    /// Digests of the modules used.
    pub modules: BTreeMap<String, Digest>,
    /// What the gates will prove.
    pub proof: Proof,
}

/// Everything that a plan depends on.
pub struct Inputs<'a> {
    /// What the plan says about its own making.
    pub header: Header,
    /// What is wanted.
    pub wishes: &'a [Wish],
    /// What was applied last.
    pub last: &'a LastApplied,
    /// What the targets say.
    pub observation: &'a Observation,
    /// The resource kinds.
    pub kinds: KindLookup<'a>,
    /// Every target of the spec, in the spec's order; hosts are rolled out in this order.
    pub targets: &'a [Target],
    /// The rollout's rules.
    pub rollout: RolloutPolicy,
    /// What the user narrowed the plan to.
    pub selection: Selection,
}

/// The plan, or why there can be none.
pub fn make(inputs: &Inputs) -> Result<Plan, Vec<Diagnostic>> {
    let (mut items, unknown) = judge(inputs.wishes, inputs.last, inputs.observation, inputs.targets, inputs.kinds);
    let graph = item_graph(&items, inputs.kinds);
    graph.order().map_err(|cycle| vec![ring(&items, &cycle)])?;
    let kept = select::select(&items, inputs.targets, &graph, &inputs.selection)?;
    let owed = owed::owe(&mut items, &graph, &kept);
    hold_above_limit(&mut items, inputs.rollout.max_disruption);
    let mut draft = Draft::new(items, graph, kept);
    draft.edges.extend(owed);
    draft.disturb();
    draft.reboot();
    let mut nodes = draft.nodes();
    hold_dependants(&mut nodes);
    waves::roll_out(&mut nodes, inputs.targets, &inputs.rollout);
    // After the rollout: what only is written down needs neither a turn nor a gate.
    nodes.extend(draft.adopted(inputs.last, inputs.kinds));
    let mut plan = Plan {
        format_version: FORMAT_VERSION.to_owned(),
        made_by: inputs.header.made_by.clone(),
        cluster: inputs.header.cluster.clone(),
        inventory: inputs.header.inventory.clone(),
        spec_digest: inputs.header.spec_digest.clone(),
        modules: inputs.header.modules.clone(),
        state_digest: Digest::of(inputs.last),
        observed_at: inputs.observation.recorded_at.clone(),
        narrowed: inputs.selection.words(),
        rollout: inputs.rollout.clone(),
        proof: inputs.header.proof,
        nodes: sorted(nodes)?,
        unchanged: draft.unchanged(),
        unknown: unknown_of(unknown, inputs),
        dropped: dropped(inputs),
        digest: String::new(),
    };
    plan.digest = file::digest(&plan).to_string();
    Ok(plan)
}

/// Each once, without whole targets that the plan was narrowed away from.
fn unknown_of(unknown: Vec<UnknownFinding>, inputs: &Inputs) -> Vec<UnknownFinding> {
    let targets: BTreeSet<String> = inputs.targets.iter().map(Target::to_string).collect();
    let kept = unknown.into_iter().filter(|finding| !targets.contains(&finding.subject) || inputs.selection.covers(&finding.subject));
    kept.collect::<BTreeSet<_>>().into_iter().collect()
}

fn ring(items: &[Item], cycle: &Cycle) -> Diagnostic {
    let mut names: Vec<String> = cycle.0.iter().map(|n| format!("{} ({})", items[*n].wish.address, items[*n].wish.module)).collect();
    names.extend(names.first().cloned());
    Diagnostic::error("RW0305", format!("resources wait for each other in a ring: {}", names.join(" before ")))
        .state("nothing was planned or changed")
        .next("take one `after` out of one of these modules")
}

/// Changes above the limit are held, not an error; a change that needs a reboot counts as one.
fn hold_above_limit(items: &mut [Item], limit: Disruption) {
    for item in items {
        let needed = if item.assessment.needs_reboot { Disruption::Reboot } else { item.assessment.disruption };
        if let Status::Change(reason) = &item.status
            && needed > limit
        {
            let text = format!("it disturbs as much as a {}, and rollout.max_disruption is {}", needed.word(), limit.word());
            item.status = Status::Held(reason.clone(), text);
        }
    }
}

struct Draft {
    items: Vec<Item>,
    graph: Graph,
    kept: BTreeSet<usize>,
    /// The kept ones of each target.
    of_target: BTreeMap<Target, Vec<usize>>,
    /// Items that become part of a node.
    chosen: BTreeSet<usize>,
    /// Edges among chosen items.
    edges: BTreeSet<(usize, usize)>,
    /// Items that come before their target's reboot, by target.
    before_reboot: BTreeMap<Target, BTreeSet<usize>>,
}

impl Draft {
    fn new(items: Vec<Item>, graph: Graph, kept: BTreeSet<usize>) -> Self {
        let chosen: BTreeSet<usize> = kept.iter().copied().filter(|n| items[*n].changes()).collect();
        let edges = contract(&graph, &chosen).into_iter().collect();
        let mut of_target: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
        for n in &kept {
            of_target.entry(items[*n].wish.address.target.clone()).or_default().push(*n);
        }
        Draft { items, graph, kept, of_target, chosen, edges, before_reboot: BTreeMap::new() }
    }

    /// What a change resets is looked at again after it, also when it is as wished now.
    fn disturb(&mut self) {
        for (_, own) in self.of_target.clone() {
            for by in own.iter().copied().filter(|n| self.chosen.contains(n)).collect::<Vec<_>>() {
                let hit: Vec<usize> = own.iter().copied().filter(|n| disturbs(&self.items[by], &self.items[*n])).collect();
                let first = if hit.is_empty() { BTreeSet::new() } else { self.graph.with_prerequisites([by]) };
                for n in hit.into_iter().filter(|n| !first.contains(n)) {
                    self.look_again(n, self.items[by].wish.address.to_string());
                    self.edges.insert((by, n));
                }
            }
        }
    }

    /// Steps that need a reboot share one, after all that they need. Everything else of the host comes after it, so that
    /// nothing is done that the reboot would undo; what runs now is looked at again after it.
    fn reboot(&mut self) {
        let causes: Vec<usize> = self
            .chosen
            .iter()
            .copied()
            .filter(|n| self.items[*n].assessment.needs_reboot && matches!(self.items[*n].status, Status::Change(_)))
            .collect();
        for cause in causes {
            let target = self.items[cause].wish.address.target.clone();
            let on_target = |n: &usize| self.chosen.contains(n) && self.items[*n].wish.address.target == target;
            let first: Vec<usize> = self.graph.with_prerequisites([cause]).into_iter().filter(on_target).collect();
            self.before_reboot.entry(target).or_default().extend(first);
        }
        for target in self.before_reboot.keys().cloned().collect::<Vec<_>>() {
            let by = format!("{target}/reboot");
            let own = self.of_target.get(&target).into_iter().flatten().copied();
            let met: Vec<usize> = own.filter(|n| self.is_running_and_met(*n)).collect();
            for n in met {
                self.look_again(n, by.clone());
            }
        }
        self.edges.extend(contract(&self.graph, &self.chosen));
        let turned = |(a, b): &(usize, usize)| self.is_before_reboot(*b) && !self.is_before_reboot(*a) && self.rebooting(*a);
        let keep: BTreeSet<_> = self.edges.iter().copied().filter(|edge| !turned(edge)).collect();
        self.edges = keep;
    }

    fn is_running_and_met(&self, n: usize) -> bool {
        let item = &self.items[n];
        item.status == Status::Met && item.assessment.judges(Plane::Running)
    }

    fn look_again(&mut self, n: usize, by: String) {
        let item = &mut self.items[n];
        if item.status == Status::Met {
            item.status = Status::Change(Reason::Disturbed { by });
            self.chosen.insert(n);
        }
    }

    fn rebooting(&self, n: usize) -> bool {
        self.before_reboot.contains_key(&self.items[n].wish.address.target)
    }

    fn is_before_reboot(&self, n: usize) -> bool {
        self.before_reboot.get(&self.items[n].wish.address.target).is_some_and(|first| first.contains(&n))
    }

    fn nodes(&self) -> Vec<Node> {
        let edges: Vec<(usize, usize)> = self.edges.iter().copied().collect();
        // A reboot stands between what comes before and after it, so a transaction is never joined across it.
        let (early, late): (BTreeSet<usize>, BTreeSet<usize>) = self.chosen.iter().partition(|n| self.is_before_reboot(**n));
        let mut groups = group(&self.items, &early, &within(&edges, &early));
        groups.extend(group(&self.items, &late, &within(&edges, &late)));
        let mut names = BTreeMap::new();
        let ids: Vec<String> = groups.iter().map(|members| self.id(members, &mut names)).collect();
        let of: BTreeMap<usize, usize> = groups.iter().enumerate().flat_map(|(g, m)| m.iter().map(move |n| (*n, g))).collect();
        let mut after: Vec<BTreeSet<String>> = vec![BTreeSet::new(); groups.len()];
        for (a, b) in &edges {
            if of[a] != of[b] {
                after[of[b]].insert(ids[of[a]].clone());
            }
        }
        let mut nodes: Vec<Node> = Vec::new();
        for ((members, id), after) in groups.iter().zip(&ids).zip(after) {
            nodes.push(self.change(members, id.clone(), after));
        }
        let mut first: BTreeMap<&Target, Vec<String>> = BTreeMap::new();
        for (members, id) in groups.iter().zip(&ids).filter(|(members, _)| self.is_before_reboot(members[0])) {
            first.entry(&self.items[members[0]].wish.address.target).or_default().push(id.clone());
        }
        nodes.extend(self.before_reboot.keys().map(|target| reboot_node(target, first.remove(target).unwrap_or_default())));
        nodes
    }

    fn id(&self, members: &[usize], names: &mut BTreeMap<String, usize>) -> String {
        let first = &self.items[members[0]];
        let held = matches!(first.status, Status::Held(..));
        let name = match &first.assessment.transaction {
            Some(word) if !held => {
                format!("{}/transaction/{word}{}", first.wish.address.target, if first.removal { "-removal" } else { "" })
            }
            _ => return first.wish.address.to_string(),
        };
        let count = names.entry(name.clone()).and_modify(|c| *c += 1).or_insert(1);
        if *count == 1 { name } else { format!("{name}-{count}") }
    }

    fn change(&self, members: &[usize], id: String, mut after: BTreeSet<String>) -> Node {
        let items: Vec<&Item> = members.iter().map(|n| &self.items[*n]).collect();
        let target = items[0].wish.address.target.clone();
        if self.rebooting(members[0]) && !self.is_before_reboot(members[0]) {
            after.insert(format!("{target}/reboot"));
        }
        let held = items.iter().find_map(|item| match &item.status {
            Status::Held(_, text) => Some(text.clone()),
            _ => None,
        });
        let union = |pick: fn(&Item) -> &Vec<String>| -> Vec<String> {
            items.iter().flat_map(|item| pick(item)).cloned().collect::<BTreeSet<_>>().into_iter().collect()
        };
        Node {
            id,
            kind: NodeKind::Change {
                actions: join_actions(items.iter().flat_map(|item| &item.assessment.actions)),
                announced: announced(&items),
                disturbs: union(|item| &item.assessment.disturbs),
                interrupts_netdev: items.iter().find_map(|item| item.assessment.interrupts_netdev.clone()),
                members: items.iter().map(|item| member(item)).collect(),
            },
            target: Some(target),
            disruption: items.iter().filter(|i| i.changes()).map(|item| item.assessment.disruption).max().unwrap_or_default(),
            interrupts: union(|item| &item.assessment.interrupts),
            after: after.into_iter().collect(),
            wave: 0,
            held,
        }
    }

    /// One node a target for all that is as wished and not remembered so.
    fn adopted(&self, last: &LastApplied, kinds: KindLookup) -> Vec<Node> {
        let remembered = |wish: &Wish| {
            let (Some(applied), Some(kind)) = (last.resources.get(&wish.address), kinds(&wish.kind)) else { return false };
            applied.digest == wish.digest() || kind.is_same_wish(&applied.wish(&wish.address), wish)
        };
        let mut found: BTreeMap<&Target, Vec<Member>> = BTreeMap::new();
        for item in self.kept.iter().map(|n| &self.items[*n]).filter(|item| item.status == Status::Met && !remembered(&item.wish)) {
            found.entry(&item.wish.address.target).or_default().push(Member { reason: Reason::AsWished, ..member(item) });
        }
        let node = |(target, members): (&Target, Vec<Member>)| Node {
            id: format!("{target}/found"),
            kind: NodeKind::Adopt { members },
            target: Some(target.clone()),
            disruption: Disruption::None,
            interrupts: Vec::new(),
            after: Vec::new(),
            wave: 0,
            held: None,
        };
        found.into_iter().map(node).collect()
    }

    fn unchanged(&self) -> BTreeMap<Target, usize> {
        let mut counts = BTreeMap::new();
        for n in self.kept.iter().filter(|n| self.items[**n].status == Status::Met) {
            *counts.entry(self.items[*n].wish.address.target.clone()).or_insert(0) += 1;
        }
        counts
    }
}

fn reboot_node(target: &Target, after: Vec<String>) -> Node {
    Node {
        id: format!("{target}/reboot"),
        kind: NodeKind::Reboot,
        target: Some(target.clone()),
        disruption: Disruption::Reboot,
        interrupts: vec!["everything that runs on the host".to_owned()],
        after,
        wave: 0,
        held: None,
    }
}

fn within(edges: &[(usize, usize)], set: &BTreeSet<usize>) -> Vec<(usize, usize)> {
    edges.iter().copied().filter(|(a, b)| set.contains(a) && set.contains(b)).collect()
}

/// Of one target. `link/*` means every link of it.
fn disturbs(by: &Item, other: &Item) -> bool {
    let within = || other.wish.address.within_target();
    by.assessment.disturbs.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => within().starts_with(prefix),
        None => within() == *pattern,
    })
}

/// What may be needed beyond the planned actions: the kind's own announcement, and for what an earlier step resets,
/// whatever applying the same wish again takes (`*`).
fn announced(items: &[&Item]) -> Vec<String> {
    let mut words: BTreeSet<String> = items.iter().flat_map(|item| item.assessment.announced.iter().cloned()).collect();
    if items.iter().any(|item| matches!(item.status, Status::Change(Reason::Disturbed { .. }))) {
        words.insert("*".to_owned());
    }
    words.into_iter().collect()
}

/// One run for what can be joined; what is asked for twice is done once, at the later place.
pub(crate) fn join_actions<'a>(actions: impl Iterator<Item = &'a Action>) -> Vec<Action> {
    let mut joined: Vec<Action> = Vec::new();
    for action in actions {
        if let Some(twice) = joined.iter().position(|before| before == action) {
            joined.remove(twice);
            joined.push(action.clone());
        } else if !joined.iter_mut().any(|before| before.join(action)) {
            joined.push(action.clone());
        }
    }
    // A hold that is let go makes room for the one install of all, and a new hold keeps what that install brought.
    joined.sort_by_key(|action| match action {
        Action::HoldPackages { hold: false, .. } => 0,
        Action::HoldPackages { hold: true, .. } => 2,
        _ => 1,
    });
    joined
}

fn member(item: &Item) -> Member {
    let reason = match &item.status {
        Status::Change(reason) | Status::Held(reason, _) => reason.clone(),
        Status::Met | Status::Unknown => Reason::Unknown,
    };
    Member {
        differences: differences(&item.assessment),
        wish: item.wish.clone(),
        reason,
        removal: item.removal,
        fingerprint: item.assessment.fingerprint(),
        before: item.assessment.before.clone(),
        residue: item.assessment.residue.clone(),
        since: item.since.clone(),
    }
}

fn node_graph(nodes: &[Node]) -> Graph {
    let number: BTreeMap<&str, usize> = nodes.iter().enumerate().map(|(n, node)| (node.id.as_str(), n)).collect();
    let edges = nodes.iter().enumerate().flat_map(|(n, node)| {
        let number = &number;
        node.after.iter().filter_map(move |before| number.get(before.as_str()).map(|b| (*b, n)))
    });
    Graph::new(nodes.len(), edges)
}

fn hold_dependants(nodes: &mut [Node]) {
    let graph = node_graph(nodes);
    let held: Vec<usize> = (0..nodes.len()).filter(|n| nodes[*n].held.is_some()).collect();
    for cause in held {
        for n in graph.with_dependants([cause]) {
            if nodes[n].held.is_none() {
                nodes[n].held = Some(format!("it needs {}, which is held", nodes[cause].id));
            }
        }
    }
}

/// Topological, ties by wave, target and id, so that the bytes depend on the content alone.
fn sorted(mut nodes: Vec<Node>) -> Result<Vec<Node>, Vec<Diagnostic>> {
    nodes.sort_by(|a, b| (a.wave, &a.target, &a.id).cmp(&(b.wave, &b.target, &b.id)));
    let order = node_graph(&nodes).order().map_err(|cycle| {
        let ids: Vec<&str> = cycle.0.iter().map(|n| nodes[*n].id.as_str()).collect();
        vec![
            Diagnostic::error("RW0305", format!("steps wait for each other in a ring: {}", ids.join(" before ")))
                .state("nothing was planned or changed")
                .next("report this with the inventory: railwright should have ordered them"),
        ]
    })?;
    let mut slots: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|n| slots[n].take()).collect())
}
