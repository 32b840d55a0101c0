//! Makes a plan: part by part, then all parts take their turns. `part` has the steps for one
//! target; here is the sequence.

use super::cluster_first;
use super::diff::{KindLookup, find_read_results};
use super::drains::{self, ClusterNodes};
use super::equivalence::EquivalenceClasses;
use super::identity::{IdentityFindings, refused_targets, reinstalled_hosts};
use super::model::{FORMAT_VERSION, GateCoverage, HostsWithoutSsh, Plan, PlanNode, UnknownFinding};
use super::out_of_service::{Outages, list_unavailable_hosts, verified_first};
use super::part::{TargetGroup, TargetPlan};
use super::{
    InventoryOrigin, LastApplied, PlanSelection, RolloutPolicy, content, part, select,
    switches_first, waves,
};
use railwright_base::{Diagnostic, Digest, Target, TargetKind, nodeset};
use railwright_graph::{Cycle, Graph};
use railwright_knowledge::rules::WaivedFinding;
use railwright_resource::{DesiredResource, Observation, ReadResults};
use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    pub proof: GateCoverage,
    /// Findings of rules that are accepted for a while.
    pub waived: Vec<WaivedFinding>,
    /// Hosts without SSH.
    pub no_ssh: Vec<HostsWithoutSsh>,
}

impl Header {
    /// The hosts of the spec without SSH.
    pub(super) fn hosts_without_ssh(&self) -> BTreeSet<Target> {
        let mut hosts = BTreeSet::new();
        for without in &self.no_ssh {
            let names = nodeset::expand_node_set(&without.hosts).unwrap_or_default();
            hosts.extend(names.into_iter().map(Target::host));
        }
        hosts
    }
}

/// Everything that a plan depends on.
pub struct PlanInputs<'a> {
    /// What the plan says about its own making.
    pub header: Header,
    /// What is desired.
    pub resources: &'a [DesiredResource],
    /// What was applied last.
    pub last: &'a LastApplied,
    /// The hosts that earlier runs left out of service.
    pub outages: &'a Outages,
    /// What was read from the targets.
    pub observation: &'a Observation,
    /// Whose they are.
    pub identity: &'a IdentityFindings,
    /// The resource kinds.
    pub kinds: KindLookup<'a>,
    /// Every target of the spec, in the spec's order; hosts are rolled out in this order.
    pub targets: &'a [Target],
    /// What the hosts are called as nodes of the Kubernetes cluster, where there is one.
    pub nodes: Option<ClusterNodes>,
    /// The rollout's rules.
    pub rollout: RolloutPolicy,
    /// What the user narrowed the plan to.
    pub selection: PlanSelection,
}

/// The plan, or why there can be none. Targets that differ in nothing but their names are planned
/// once.
pub fn make_plan(inputs: &PlanInputs) -> Result<Plan, Vec<Diagnostic>> {
    let (groups, mut unknown) = group_targets(inputs);
    let tied = groups.iter().any(|group| group.targets.len() > 1);
    let mut parts = plan_groups(inputs, groups)?;
    switches_first::put_in(&mut parts, inputs);
    cluster_first::put_in(&mut parts, inputs.kinds);
    let known_nodes = drains::find_cluster_nodes(inputs);
    let not_emptied = drains::put_in(&mut parts, inputs, &known_nodes);
    let unavailable = list_unavailable_hosts(inputs, &known_nodes);
    let first = verified_first(inputs, &unavailable, &parts);
    let gates = waves::roll_out(&mut parts, inputs.targets, &first, &inputs.rollout);
    unknown.extend(known_nodes.err());
    let mut dropped = Vec::new();
    for part in &mut parts {
        unknown.append(&mut part.unknown);
        dropped.append(&mut part.dropped);
    }
    dropped.sort();
    let mut plan = Plan {
        format_version: FORMAT_VERSION.to_owned(),
        made_by: inputs.header.made_by.clone(),
        cluster: inputs.header.cluster.clone(),
        cluster_id: inputs.identity.cluster_id.clone(),
        inventory: inputs.header.inventory.clone(),
        spec_digest: inputs.header.spec_digest.clone(),
        modules: inputs.header.modules.clone(),
        state_digest: Digest::of(&()),
        observed_at: inputs.observation.recorded_at.clone(),
        narrowed: inputs.selection.words(),
        rollout: inputs.rollout.clone(),
        proof: inputs.header.proof,
        unchanged: parts
            .iter()
            .filter(|part| part.unchanged > 0)
            .map(|part| (part.target.clone(), part.unchanged))
            .collect(),
        nodes: in_order(parts, gates, tied)?,
        unknown: findings_of(unknown, inputs),
        refused: findings_of(refused_targets(inputs), inputs),
        reinstalled: reinstalled_hosts(inputs),
        renamed: inputs.identity.renamed.clone(),
        dropped,
        not_emptied,
        unavailable,
        no_ssh: inputs.header.no_ssh.clone(),
        waived: inputs.header.waived.clone(),
        digest: String::new(),
    };
    plan.state_digest = inputs.last.digest_of(&plan.targets_of_work());
    plan.digest = content::compute_plan_digest(&plan).to_string();
    Ok(plan)
}

/// The parts of all groups in their order; equivalent groups are planned once.
///
/// # Errors
///
/// What a group cannot be planned for, and a name in the selection that nothing has.
fn plan_groups<'a>(
    inputs: &'a PlanInputs,
    groups: Vec<TargetGroup<'a>>,
) -> Result<Vec<TargetPlan>, Vec<Diagnostic>> {
    let mut named = select::SelectionMatches::new(&inputs.selection);
    let mut parts: Vec<TargetPlan> = Vec::new();
    let mut identical = EquivalenceClasses::new(&inputs.selection, inputs.kinds);
    for group in groups {
        if let Some(part) = identical.part(&group, &parts) {
            parts.push(part);
            continue;
        }
        let (made, compared) = part::plan_target_group(inputs, &group, &mut named)?;
        identical.learn(group, parts.len(), compared);
        parts.extend(made);
    }
    let resources = inputs
        .resources
        .iter()
        .map(|resource| &resource.address)
        .chain(inputs.last.resources.keys());
    named.check_all_matched(inputs.targets, resources)?;
    Ok(parts)
}

/// What has to be planned together: each target by itself, and those that wait for each other as
/// one.
fn group_targets<'a>(inputs: &'a PlanInputs) -> (Vec<TargetGroup<'a>>, Vec<UnknownFinding>) {
    let (answers, mut unknown) = find_all_read_results(inputs);
    unknown.extend(find_unreachable_records(inputs));
    let mut resources: Vec<&DesiredResource> = inputs.resources.iter().collect();
    resources.sort_by(|a, b| a.address.cmp(&b.address));
    let mut singles: Vec<TargetGroup> = Vec::with_capacity(answers.len());
    let mut rest = resources.as_slice();
    for (target, answers) in answers {
        let start = rest.partition_point(|resource| resource.address.target < *target);
        let end = rest.partition_point(|resource| resource.address.target <= *target);
        let own = &rest[start..end];
        rest = &rest[end..];
        singles.push(TargetGroup::of(target, own, inputs.last, answers));
    }
    (join_dependent_groups(singles), unknown)
}

/// The read results of the targets of this cluster, and what of them could not be read.
fn find_all_read_results<'a>(
    inputs: &'a PlanInputs,
) -> (BTreeMap<&'a Target, &'a ReadResults>, Vec<UnknownFinding>) {
    let mut unknown = Vec::new();
    let mut answers = BTreeMap::new();
    for target in inputs.targets {
        if inputs.identity.refused.contains_key(target) {
            continue;
        }
        match find_read_results(inputs.observation, target) {
            Ok(found) => drop(answers.insert(target, found)),
            Err(finding) => unknown.push(finding),
        }
    }
    (answers, unknown)
}

/// What is remembered of targets that are not in the spec any more, and why it cannot be rolled
/// back.
fn find_unreachable_records(inputs: &PlanInputs) -> Vec<UnknownFinding> {
    let mut unknown = Vec::new();
    let known: BTreeSet<&Target> = inputs.targets.iter().collect();
    let without_ssh = inputs.header.hosts_without_ssh();
    for address in inputs.last.resources.keys() {
        let target = &address.target;
        if known.contains(target) {
            continue;
        }
        if target.kind == TargetKind::Switch {
            let why = "its switch is in maintenance, or is not reached any more (`ssh` or an API), \
                       so it cannot be read or rolled back; what is remembered of it stays";
            unknown.push(UnknownFinding::new(address.to_string(), why));
            continue;
        }
        let why = if without_ssh.contains(target) {
            "its host has no SSH in the spec any more, so it cannot be read or rolled back"
        } else {
            "its target is no longer in the spec, so it cannot be rolled back"
        };
        unknown.push(UnknownFinding::new(
            address.to_string(),
            format!("{why}; `railwright state forget` drops the memory of it"),
        ));
    }
    unknown
}

/// Targets between which some resource waits for another become one group.
fn join_dependent_groups(singles: Vec<TargetGroup>) -> Vec<TargetGroup> {
    let ties: BTreeSet<Target> = singles
        .iter()
        .flat_map(TargetGroup::others)
        .cloned()
        .collect();
    if ties.is_empty() {
        return singles;
    }
    let (tied, mut free): (Vec<TargetGroup>, Vec<TargetGroup>) = singles
        .into_iter()
        .partition(|group| group.others().next().is_some() || ties.contains(group.targets[0]));
    free.extend(tied.into_iter().reduce(TargetGroup::join));
    free
}

/// Each once, without whole targets that the plan was narrowed away from.
fn findings_of(unknown: Vec<UnknownFinding>, inputs: &PlanInputs) -> Vec<UnknownFinding> {
    if unknown.is_empty() {
        return unknown;
    }
    let targets: BTreeSet<String> = inputs.targets.iter().map(Target::to_string).collect();
    let mut kept: BTreeSet<UnknownFinding> = unknown.into_iter().collect();
    kept.retain(|finding| {
        !targets.contains(&finding.subject) || inputs.selection.covers(&finding.subject)
    });
    kept.into_iter().collect()
}

/// Wave by wave, first what the hosts wait for, target by target, each in its own order, then the
/// gate; last what only is written down. Where targets wait for each other, the order of the whole
/// graph.
fn in_order(
    mut parts: Vec<TargetPlan>,
    gates: Vec<PlanNode>,
    tied: bool,
) -> Result<Vec<PlanNode>, Vec<Diagnostic>> {
    parts.sort_by(|a, b| rollout_position(a).cmp(&rollout_position(b)));
    let mut adopted: Vec<PlanNode> = parts
        .iter_mut()
        .filter_map(|part| part.adopted.take())
        .collect();
    adopted.sort_by(|a, b| a.id.cmp(&b.id));
    let mut nodes = Vec::with_capacity(
        parts.iter().map(|part| part.nodes.len()).sum::<usize>() + gates.len() + adopted.len(),
    );
    let mut gates = gates.into_iter().peekable();
    for part in parts {
        while let Some(gate) = gates.next_if(|gate| gate.wave < part.wave) {
            nodes.push(gate);
        }
        nodes.extend(part.nodes);
    }
    nodes.extend(gates);
    if tied {
        nodes = sort_nodes(nodes)?;
    }
    // After the rollout: what only is written down needs neither a turn nor a gate.
    nodes.extend(adopted);
    Ok(nodes)
}

fn rollout_position(part: &TargetPlan) -> (usize, bool, usize, &Target) {
    (part.wave, !part.before_hosts, part.turn, &part.target)
}

/// The place of each node in the list, by its id.
pub(super) fn number_nodes(nodes: &[PlanNode]) -> HashMap<&str, usize> {
    let numbered = nodes.iter().enumerate();
    numbered.map(|(n, node)| (node.id.as_str(), n)).collect()
}

/// The nodes as a graph, by their place in the list.
pub fn node_graph(nodes: &[PlanNode]) -> Graph {
    let number = number_nodes(nodes);
    let mut edges = Vec::new();
    for (n, node) in nodes.iter().enumerate() {
        for before in &node.after {
            if let Some(before) = number.get(before.as_str()) {
                edges.push((*before, n));
            }
        }
    }
    Graph::new(nodes.len(), edges)
}

/// Topological, ties by wave, target and id, so that the bytes depend on the content alone.
pub fn sort_nodes(mut nodes: Vec<PlanNode>) -> Result<Vec<PlanNode>, Vec<Diagnostic>> {
    nodes.sort_by(|a, b| (a.wave, &a.target, &a.id).cmp(&(b.wave, &b.target, &b.id)));
    let order = match node_graph(&nodes).order() {
        Ok(order) => order,
        Err(cycle) => return Err(vec![new_step_cycle_error(&nodes, &cycle)]),
    };
    let mut slots: Vec<Option<PlanNode>> = nodes.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|n| slots[n].take()).collect())
}

fn new_step_cycle_error(nodes: &[PlanNode], cycle: &Cycle) -> Diagnostic {
    let ids: Vec<&str> = cycle.0.iter().map(|n| nodes[*n].id.as_str()).collect();
    Diagnostic::error(
        "RW0305",
        format!(
            "steps wait for each other in a ring: {}",
            ids.join(" before ")
        ),
    )
    .state("nothing was planned or changed")
    .next("report this with the inventory: railwright should have ordered them")
}
