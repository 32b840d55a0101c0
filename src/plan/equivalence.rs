//! Which targets need no plan of their own. Those that differ in nothing but their names are an
//! equivalence class and get the steps of the first of them. So do those that desire or report
//! something of their own (an address, a serial number), where that changes neither the steps nor
//! their order; only what is their own is compared again.

use super::diff::{KindLookup, PlanItem, PlanItemStatus, diff_again};
use super::draft::is_remembered;
use super::part::{TargetGroup, TargetPlan};
use super::{AppliedResource, ChangeReason, PlanSelection};
use railwright_base::Address;
use railwright_resource::host::ssh_lines;
use railwright_resource::readability::{list_reads, list_reads_to_undo};
use railwright_resource::{Action, DesiredResource, Plane, Read, ReadResults, Unlike};
use rustc_hash::FxHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// How many targets with the same resources are kept to compare others with: a fleet has few
/// classes, and where every target is different a long search would find nothing.
const NEAR: usize = 8;

/// What was applied last to a resource, with its address.
type Record<'g> = (&'g Address, &'g AppliedResource);

/// The targets that were planned so far.
pub(super) struct EquivalenceClasses<'a> {
    selection: &'a PlanSelection,
    kinds: KindLookup<'a>,
    /// By a hash over all that counts.
    same: HashMap<u64, Vec<usize>>,
    /// By a hash over the names of their resources.
    near: HashMap<u64, Vec<usize>>,
    models: Vec<Model<'a>>,
    /// The model of the target before: most often it is that of the next one too, and then nothing
    /// has to be hashed.
    latest: Option<usize>,
}

struct Model<'a> {
    group: TargetGroup<'a>,
    place: usize,
    /// How its resources were compared; empty where it is no model for others that are only near.
    items: Vec<PlanItem>,
    /// What is read for each of them.
    reads: Vec<Vec<Read>>,
}

impl<'a> EquivalenceClasses<'a> {
    /// None yet.
    pub fn new(selection: &'a PlanSelection, kinds: KindLookup<'a>) -> Self {
        EquivalenceClasses {
            selection,
            kinds,
            same: HashMap::new(),
            near: HashMap::new(),
            models: Vec::new(),
            latest: None,
        }
    }

    /// The part of this group, made from one of those that are there.
    pub fn part(&mut self, group: &TargetGroup, parts: &[TargetPlan]) -> Option<TargetPlan> {
        if !self.can_be(group) {
            return None;
        }
        let target = group.targets[0];
        if let Some(latest) = self.latest
            && is_same(&self.models[latest].group, group)
        {
            return Some(parts[self.models[latest].place].renamed(target));
        }
        let names = hash_resource_names(group);
        let whole = hash_whole_group(group, names);
        for &n in self.same.get(&whole).into_iter().flatten() {
            let model = &self.models[n];
            if is_same(&model.group, group) {
                self.latest = Some(n);
                return Some(parts[model.place].renamed(target));
            }
        }
        for &n in self.near.get(&names)? {
            let model = &self.models[n];
            let part = &parts[model.place];
            if let Some(own) = model.own(group, part, self.kinds) {
                return Some(part.renamed(target).with_own(&own, &model.items));
            }
        }
        None
    }

    /// Remembers a group that was planned, with the place of its part and the diffs of its
    /// resources.
    pub fn learn(&mut self, group: TargetGroup<'a>, place: usize, mut items: Vec<PlanItem>) {
        if !self.can_be(&group) {
            return;
        }
        let (number, names) = (self.models.len(), hash_resource_names(&group));
        self.same
            .entry(hash_whole_group(&group, names))
            .or_default()
            .push(number);
        let near = self.near.entry(names).or_default();
        if near.len() < NEAR {
            near.push(number);
        } else {
            items.clear();
        }
        let mut reads = Vec::with_capacity(items.len());
        for item in &items {
            reads.push(match (self.kinds)(&item.resource.kind) {
                Some(kind) if item.removal => list_reads_to_undo(kind, &item.resource),
                Some(kind) => list_reads(kind, &item.resource),
                None => Vec::new(),
            });
        }
        self.models.push(Model {
            group,
            place,
            items,
            reads,
        });
    }

    /// One that `--target` or `--exclude` names is like no other, nor is one on which a change was
    /// cut off.
    fn can_be(&self, group: &TargetGroup) -> bool {
        matches!(group.targets.as_slice(), [target] if !self.selection.names(target))
            && (group.applied.iter()).all(|(_, applied)| applied.begun.is_empty())
    }
}

impl Model<'_> {
    /// The reads of its resources to which another target answers something else, and in what.
    fn unlike(&self, answers: &ReadResults) -> BTreeMap<&Read, Unlike> {
        let asked: BTreeSet<&Read> = self.reads.iter().flatten().collect();
        let own = self.group.answers[0];
        let mut unlike = BTreeMap::new();
        for read in asked {
            if own.get(read) != answers.get(read) {
                unlike.insert(read, Unlike::of(read, own, answers));
            }
        }
        unlike
    }

    /// What of a group is its own, compared, by path; nothing where that would make other steps.
    fn own<'g>(
        &self,
        group: &'g TargetGroup,
        part: &TargetPlan,
        kinds: KindLookup,
    ) -> Option<BTreeMap<&'g [String], PlanItem>> {
        let answers = group.answers[0];
        let is_reached_identically = ssh_lines(self.group.answers[0]).eq(ssh_lines(answers));
        if !self.has_equivalent_names(group)
            || !is_reached_identically
            || !part.is_whole()
            || self.items.is_empty()
        {
            return None;
        }
        let unlike = self.unlike(answers);
        let mut resources: BTreeMap<&[String], &'g DesiredResource> = BTreeMap::new();
        for resource in &group.resources {
            resources.insert(&resource.address.path[..], resource);
        }
        let mut records: BTreeMap<&[String], Record<'g>> = BTreeMap::new();
        for (address, applied) in &group.applied {
            records.insert(&address.path[..], (*address, *applied));
        }
        let mut own = BTreeMap::new();
        for (item, reads) in self.items.iter().zip(&self.reads) {
            let path = &item.resource.address.path[..];
            let record = records.get(path).copied();
            let resource = resources.get(path).copied().filter(|_| !item.removal);
            let is_same = self.has_same_record(item, record)
                && resource.is_none_or(|resource| is_same_resource(resource, &item.resource));
            if is_same && spares_item(item, reads, &unlike, kinds) {
                continue;
            }
            let (path, again) = diff_own(item, resource, record, answers, kinds)?;
            let applied = record.map(|(_, applied)| applied);
            if !keeps_steps(item, &again, applied, part, kinds) {
                return None;
            }
            own.insert(path, again);
        }
        // What left a resource is reported, and the model has nothing to report.
        if super::dropped::find_dropped_fields(group, kinds).is_empty() {
            Some(own)
        } else {
            None
        }
    }

    /// Whether the resources of a group have the same names as here, those that were applied too.
    fn has_equivalent_names(&self, group: &TargetGroup) -> bool {
        let paths = group
            .resources
            .iter()
            .map(|resource| &resource.address.path);
        let applied = group.applied.iter().map(|(address, _)| &address.path);
        let model = &self.group;
        let model_paths = model
            .resources
            .iter()
            .map(|resource| &resource.address.path);
        let model_applied = model.applied.iter().map(|(address, _)| &address.path);
        paths.eq(model_paths) && applied.eq(model_applied)
    }

    fn has_same_record(&self, item: &PlanItem, record: Option<Record>) -> bool {
        match (record, self.group.applied_to(&item.resource.address)) {
            (Some((address, applied)), Some(of_model)) => {
                is_same_record(&(address, applied), &(address, of_model))
            }
            (None, None) => true,
            _ => false,
        }
    }
}

/// Whether nothing that a resource reads has another answer in the part that concerns it.
fn spares_item(
    item: &PlanItem,
    reads: &[Read],
    unlike: &BTreeMap<&Read, Unlike>,
    kinds: KindLookup,
) -> bool {
    let part = kinds(&item.resource.kind).and_then(|kind| kind.part(&item.resource));
    reads
        .iter()
        .all(|read| unlike.get(read).is_none_or(|unlike| unlike.spares(part)))
}

/// Compares a resource of the model with the read results of another target, with the path that it
/// has there; nothing where the other has neither a resource nor a record of it.
fn diff_own<'g>(
    item: &PlanItem,
    resource: Option<&'g DesiredResource>,
    record: Option<Record<'g>>,
    answers: &ReadResults,
    kinds: KindLookup,
) -> Option<(&'g [String], PlanItem)> {
    if let Some(resource) = resource {
        let applied = record.map(|(_, applied)| applied);
        let again = diff_again(item, resource, applied, answers, kinds)?;
        return Some((&resource.address.path[..], again));
    }
    let (address, applied) = record?;
    let again = diff_again(
        item,
        &applied.resource(address),
        Some(applied),
        answers,
        kinds,
    )?;
    Some((&address.path[..], again))
}

/// Whether the steps of the model's part stay what they are with this diff, and so does what it
/// only writes down.
fn keeps_steps(
    item: &PlanItem,
    again: &PlanItem,
    applied: Option<&AppliedResource>,
    part: &TargetPlan,
    kinds: KindLookup,
) -> bool {
    if !is_equivalent(item, again) {
        return false;
    }
    if again.status != PlanItemStatus::Met {
        return true;
    }
    let is_adopted = !is_remembered(&again.resource, applied, kinds);
    is_adopted == part.adopts(&again.resource.address.path)
}

/// Whether two diffs of a resource give the same steps, whatever the steps write.
fn is_equivalent(a: &PlanItem, b: &PlanItem) -> bool {
    let (x, y) = (&a.diff, &b.diff);
    a.resource.kind == b.resource.kind
        && a.resource.body.get("rollback_timer") == b.resource.body.get("rollback_timer")
        && is_same_order(&a.resource.after, &b.resource.after)
        && is_equivalent_status(&a.status, &b.status)
        && (x.disruption, x.needs_reboot, x.needs_power_cycle)
            == (y.disruption, y.needs_reboot, y.needs_power_cycle)
        && x.transaction == y.transaction
        && (&x.interrupts_netdevs, &x.interrupts, &x.disturbs)
            == (&y.interrupts_netdevs, &y.interrupts, &y.disturbs)
        && (&x.watch, &x.announced, &x.known_after) == (&y.watch, &y.announced, &y.known_after)
        && x.compares(Plane::Running) == y.compares(Plane::Running)
        && x.actions
            .iter()
            .filter_map(Action::path)
            .eq(y.actions.iter().filter_map(Action::path))
}

fn is_equivalent_status(a: &PlanItemStatus, b: &PlanItemStatus) -> bool {
    match (a, b) {
        (PlanItemStatus::Change(a), PlanItemStatus::Change(b)) => is_equivalent_reason(a, b),
        (PlanItemStatus::Blocked(a, text), PlanItemStatus::Blocked(b, other)) => {
            is_equivalent_reason(a, b) && text == other
        }
        (PlanItemStatus::Met, PlanItemStatus::Met) => true,
        // What is unknown is reported, each with its own words.
        _ => false,
    }
}

fn is_equivalent_reason(a: &ChangeReason, b: &ChangeReason) -> bool {
    match (a, b) {
        (ChangeReason::KnownAfter { step }, ChangeReason::KnownAfter { step: other }) => {
            step.path == other.path
        }
        (ChangeReason::Disturbed { .. }, _) | (_, ChangeReason::Disturbed { .. }) => false,
        (a, b) => a == b,
    }
}

fn hash_resource_names(group: &TargetGroup) -> u64 {
    let mut hash = FxHasher::default();
    for resource in &group.resources {
        resource.address.path.hash(&mut hash);
    }
    for (address, _) in &group.applied {
        address.path.hash(&mut hash);
    }
    // Which of its netdevs carry our own connection decides what needs an automatic rollback.
    for answers in &group.answers {
        for line in ssh_lines(answers) {
            line.hash(&mut hash);
        }
    }
    hash.finish()
}

/// Equal for groups that are the same; seldom equal for others.
fn hash_whole_group(group: &TargetGroup, names: u64) -> u64 {
    let mut hash = FxHasher::default();
    names.hash(&mut hash);
    for answers in &group.answers {
        answers.hash(&mut hash);
    }
    hash.finish()
}

fn is_same(a: &TargetGroup, b: &TargetGroup) -> bool {
    let mut resources = a.resources.iter().zip(&b.resources);
    let mut applied = a.applied.iter().zip(&b.applied);
    a.resources.len() == b.resources.len()
        && a.applied.len() == b.applied.len()
        && resources.all(|(a, b)| is_same_resource(a, b))
        && applied.all(|(a, b)| is_same_record(a, b))
        && a.answers == b.answers
}

fn is_same_resource(a: &DesiredResource, b: &DesiredResource) -> bool {
    (Arc::ptr_eq(&a.address.path, &b.address.path) || a.address.path == b.address.path)
        && (Arc::ptr_eq(&a.declaration, &b.declaration) || a.declaration == b.declaration)
        && is_same_order(&a.after, &b.after)
}

/// Of their own targets: a group of one waits for no other.
fn is_same_order(a: &[Address], b: &[Address]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.path == b.path)
}

/// When and in which run it was applied makes no difference to a plan.
fn is_same_record(
    (address, a): &(&Address, &AppliedResource),
    (other, b): &(&Address, &AppliedResource),
) -> bool {
    let AppliedResource {
        kind,
        body,
        digest,
        module,
        places,
        after,
        before,
        adopted,
        unfinished,
        begun,
        run: _,
        at: _,
    } = a;
    address.path == other.path
        && (kind, digest, module, adopted, unfinished)
            == (&b.kind, &b.digest, &b.module, &b.adopted, &b.unfinished)
        && (body, begun, places, before) == (&b.body, &b.begun, &b.places, &b.before)
        && is_same_order(after, &b.after)
}
