//! Compares every resource: in sync, to be changed and why, or unknown.

use super::AppliedResource;
use super::model::{AttributeDifference, ChangeReason, UnknownFinding};
use super::part::TargetGroup;
use railwright_base::{Address, Target, TargetKind};
use railwright_resource::{
    DesiredResource, Disruption, Observation, Plane, ReadResults, Reading, ResourceDiff,
    ResourceKind, readability, redacted_diff,
};
use std::collections::{BTreeMap, BTreeSet};

/// Finds a kind by its name. A parameter, so that resources of targets to come pass through the
/// plan like any other.
pub type KindLookup<'a> = &'a dyn Fn(&str) -> Option<&'static dyn ResourceKind>;

/// What is to happen with one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanItemStatus {
    /// In sync.
    Met,
    /// Changes, for this reason.
    Change(ChangeReason),
    /// Would change, but cannot or may not; in words.
    Blocked(ChangeReason, String),
    /// Not compared: see the unknown findings.
    Unknown,
}

/// One resource with its diff.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanItem {
    /// What is desired; for a removal, what was applied last.
    pub resource: DesiredResource,
    /// Taken back instead of applied.
    pub removal: bool,
    /// What the kind makes of it.
    pub diff: ResourceDiff,
    /// What is to happen.
    pub status: PlanItemStatus,
    /// Of a removal: what somebody changed since it was applied, and loses with it.
    pub since: Vec<AttributeDifference>,
}

impl PlanItem {
    /// True when it changes something that only a reboot brings into effect.
    pub(super) fn causes_reboot(&self) -> bool {
        self.diff.needs_reboot && matches!(self.status, PlanItemStatus::Change(_))
    }

    /// True when it changes what its target boots with the next time, and nothing but a boot brings
    /// that into effect.
    pub(super) fn changes_next_boot(&self, kinds: KindLookup) -> bool {
        let mut attributes = self.diff.attributes.values();
        matches!(self.status, PlanItemStatus::Change(_))
            && kinds(&self.resource.kind).is_some_and(|kind| kind.takes_effect_at_boot())
            && attributes.any(|attribute| {
                let mut planes = attribute.differences().into_iter();
                planes.any(|(plane, ..)| plane == Plane::NextBoot)
            })
    }

    /// True when it becomes part of a node.
    pub fn changes(&self) -> bool {
        matches!(
            self.status,
            PlanItemStatus::Change(_) | PlanItemStatus::Blocked(..)
        )
    }
}

/// All resources, desired ones in the order of their addresses, then the removals; and what could
/// not be determined.
pub(super) fn diff_resources(
    group: &TargetGroup,
    kinds: KindLookup,
) -> (Vec<PlanItem>, Vec<UnknownFinding>) {
    let mut unknown = Vec::new();
    let mut answers: BTreeMap<&Target, &ReadResults> = BTreeMap::new();
    for (target, read) in group.targets.iter().zip(&group.answers) {
        answers.insert(target, read);
    }
    let records: BTreeMap<&Address, &AppliedResource> = group.applied.iter().copied().collect();
    let desired: BTreeSet<&Address> = group
        .resources
        .iter()
        .map(|resource| &resource.address)
        .collect();
    let mut items = Vec::with_capacity(group.resources.len());
    for resource in &group.resources {
        let applied = records.get(&resource.address).copied();
        let answers = answers[&resource.address.target];
        items.push(plan_resource(
            resource,
            applied,
            answers,
            kinds,
            &mut unknown,
        ));
    }
    for (address, applied) in &group.applied {
        if !desired.contains(address) {
            let answers = answers[&address.target];
            items.extend(diff_removal(address, applied, answers, kinds, &mut unknown));
        }
    }
    (items, unknown)
}

/// One resource of one target again; nothing where something of it cannot be determined.
pub(super) fn diff_again(
    item: &PlanItem,
    resource: &DesiredResource,
    applied: Option<&AppliedResource>,
    answers: &ReadResults,
    kinds: KindLookup,
) -> Option<PlanItem> {
    let mut unknown = Vec::new();
    let again = match (item.removal, applied) {
        (false, applied) => Some(plan_resource(
            resource,
            applied,
            answers,
            kinds,
            &mut unknown,
        )),
        (true, Some(applied)) => {
            diff_removal(&resource.address, applied, answers, kinds, &mut unknown)
        }
        (true, None) => None,
    };
    again.filter(|_| unknown.is_empty())
}

/// What was read from a target, or why nothing was.
pub fn find_read_results<'a>(
    observation: &'a Observation,
    target: &Target,
) -> Result<&'a ReadResults, UnknownFinding> {
    let Some(found) = observation.targets.get(target) else {
        let why = "it is not in the observation";
        return Err(UnknownFinding::new(target.to_string(), why));
    };
    match &found.problem {
        Some(trouble) => Err(UnknownFinding::target(target, trouble)),
        None => Ok(&found.answers),
    }
}

fn plan_resource(
    resource: &DesiredResource,
    applied: Option<&AppliedResource>,
    answers: &ReadResults,
    kinds: KindLookup,
    unknown: &mut Vec<UnknownFinding>,
) -> PlanItem {
    let kind = match find_resource_kind(resource, applied, kinds) {
        Ok(kind) => kind,
        Err(reason) => {
            unknown.push(UnknownFinding::new(resource.address.to_string(), reason));
            return PlanItem {
                resource: resource.clone(),
                removal: false,
                diff: ResourceDiff::default(),
                status: PlanItemStatus::Unknown,
                since: Vec::new(),
            };
        }
    };
    let diff = diff_resource(kind, resource, applied, answers);
    note_unknown(&resource.address, &diff, unknown);
    // What was begun and did not come through was never applied.
    let status = compute_item_status(
        resource,
        applied.filter(|applied| !applied.unfinished),
        &diff,
        kind,
    );
    PlanItem {
        resource: resource.clone(),
        removal: false,
        diff,
        status,
        since: Vec::new(),
    }
}

/// The kind that compares a resource, or why none does: what is remembered of the resource would be
/// overwritten without having been read.
fn find_resource_kind(
    resource: &DesiredResource,
    applied: Option<&AppliedResource>,
    kinds: KindLookup,
) -> Result<&'static dyn ResourceKind, String> {
    let Some(kind) = kinds(&resource.kind) else {
        return Err(format!(
            "this railwright has no resource kind `{}`",
            resource.kind
        ));
    };
    let can_read = |applied: &AppliedResource| {
        kinds(&applied.kind).is_some_and(|kind| {
            readability::is_readable(kind, &applied.resource(&resource.address))
        })
    };
    if applied.is_none_or(can_read) {
        return Ok(kind);
    }
    Err(readability::UNREADABLE_BODY.to_owned())
}

fn compute_item_status(
    resource: &DesiredResource,
    applied: Option<&AppliedResource>,
    diff: &ResourceDiff,
    kind: &dyn ResourceKind,
) -> PlanItemStatus {
    if diff.is_met() {
        return PlanItemStatus::Met;
    }
    let reason = find_change_reason(resource, applied, diff);
    if let Some(refusal) = &diff.refusal {
        return PlanItemStatus::Blocked(reason, refusal.clone());
    }
    if diff.disruption >= Disruption::PowerCycle {
        return PlanItemStatus::Blocked(reason, by_hand(diff.disruption));
    }
    let blind = matches!(reason, ChangeReason::Unknown)
        && (diff.actions.is_empty() || !kind.is_convergent(resource));
    if blind {
        PlanItemStatus::Unknown
    } else {
        PlanItemStatus::Change(reason)
    }
}

/// Why it is blocked, where it is nothing that a program should do.
fn by_hand(disruption: Disruption) -> String {
    format!(
        "a {} is done by hand; a plan after it proves it and goes on",
        disruption.word().replace('_', " ")
    )
}

/// Why a resource that is not as desired is not: the spec, the world, or a debt.
fn find_change_reason(
    resource: &DesiredResource,
    applied: Option<&AppliedResource>,
    diff: &ResourceDiff,
) -> ChangeReason {
    if let Some(step) = &diff.known_after {
        // The name of a resource on a host may be a path; objects of Kubernetes have their
        // namespace in a segment of its own.
        let segments = if resource.address.target.kind == TargetKind::Kube {
            4
        } else {
            2
        };
        let path: Vec<String> = step.splitn(segments, '/').map(str::to_owned).collect();
        let step = Address {
            target: resource.address.target.clone(),
            path: path.into(),
            attribute: None,
        };
        return ChangeReason::KnownAfter { step };
    }
    if let Some(input) = diff.input()
        && applied.is_some_and(|applied| applied.digest == resource.digest())
    {
        return ChangeReason::InputChanged {
            input: input.to_owned(),
        };
    }
    // What cannot be read yet may become ready by itself.
    let is_waited_for = diff.only_waits() && !diff.actions.is_empty();
    match applied {
        None if diff.is_absent() && !diff.only_waits() => ChangeReason::New,
        _ if diff.only_unknown() && !is_waited_for => ChangeReason::Unknown,
        _ if diff.pending => ChangeReason::PendingRestart,
        _ if diff.only_waits() => ChangeReason::NotReady,
        None => ChangeReason::Takeover,
        Some(applied) if applied.digest != resource.digest() => ChangeReason::SpecChanged {
            places: resource.places.clone(),
        },
        Some(_) if !differs_while_running(diff) && diff.compares(Plane::Running) => {
            ChangeReason::WillBeLostAtReboot
        }
        Some(_) => ChangeReason::Drifted,
    }
}

fn differs_while_running(diff: &ResourceDiff) -> bool {
    for attribute in diff.attributes.values() {
        for (plane, _, _) in attribute.differences() {
            if plane == Plane::Running {
                return true;
            }
        }
    }
    false
}

fn diff_removal(
    address: &Address,
    applied: &AppliedResource,
    answers: &ReadResults,
    kinds: KindLookup,
    unknown: &mut Vec<UnknownFinding>,
) -> Option<PlanItem> {
    let Some(kind) = kinds(&applied.kind) else {
        let reason = format!(
            "it was applied, and this railwright has no resource kind `{}` to undo it",
            applied.kind
        );
        unknown.push(UnknownFinding::new(address.to_string(), reason));
        return None;
    };
    let (mut diff, since) = taken_back(kind, address, applied, answers);
    if !applied.adopted {
        // Once it is undone nobody else remembers it, and a reboot after it has yet to be proven.
        diff.before = redacted_diff::redact_recorded_value(&applied.before, answers.redaction());
    }
    note_unknown(address, &diff, unknown);
    let reason = if diff.stays {
        ChangeReason::LetGo
    } else {
        ChangeReason::RemovedFromSpec
    };
    let status = match &diff.refusal {
        Some(refusal) => PlanItemStatus::Blocked(reason, refusal.clone()),
        // A step that would do nothing would only stop those after it.
        None if diff.has_unknown() => PlanItemStatus::Unknown,
        None => PlanItemStatus::Change(reason),
    };
    Some(PlanItem {
        resource: redacted_diff::remembered_resource(
            &applied.resource(address),
            answers.redaction(),
        ),
        removal: true,
        diff,
        status,
        since,
    })
}

/// Why nothing undoes what was begun and did not come through, where somebody else may have made
/// what is there.
const NEITHER: &str = "the step that began it did not come through, and what is there now is \
                       neither what was there before nor what was desired: roll back by hand what \
                       is not yours, then railwright state forget";

/// What is there is what this diff desires: for an undo, what was there before us.
fn is_as_desired(since: &AttributeDifference, by: &ResourceDiff) -> bool {
    match by.attributes.get(&since.attribute) {
        Some(attribute) => attribute.desired.get(since.plane) == Some(&since.actual),
        None => false,
    }
}

/// Compares a resource with its target, by what is desired and by what earlier declarations of it
/// may have made.
pub fn diff_resource(
    kind: &dyn ResourceKind,
    resource: &DesiredResource,
    applied: Option<&AppliedResource>,
    answers: &ReadResults,
) -> ResourceDiff {
    let Some(applied) = applied else {
        return redacted_diff::diff_resource(kind, resource, answers);
    };
    let earlier = applied.whole_resource(&resource.address, kind);
    redacted_diff::diff_after(kind, resource, &earlier, &applied.before, answers)
}

/// What undoes a resource, and what somebody changed since it was applied and loses with it. What
/// was in sync before us stays, unread unless its target itself says what is ours.
pub fn taken_back(
    kind: &dyn ResourceKind,
    address: &Address,
    applied: &AppliedResource,
    answers: &ReadResults,
) -> (ResourceDiff, Vec<AttributeDifference>) {
    if applied.adopted && !kind.knows_its_own() {
        return (ResourceDiff::default(), Vec::new());
    }
    let whole = applied.whole_resource(address, kind);
    let mut diff = redacted_diff::diff_removal(kind, &whole, &applied.before, answers);
    let keeps = diff.actions.is_empty() || kind.undo_keeps_changes();
    let since = if keeps {
        Vec::new()
    } else {
        changed_since(kind, address, applied, answers)
    };
    if applied.unfinished
        && since
            .iter()
            .any(|difference| !is_as_desired(difference, &diff))
    {
        diff.refusal.get_or_insert_with(|| NEITHER.to_owned());
    }
    (diff, since)
}

/// What is there and is neither what was applied last nor what was begun after it. The removal goes
/// by what was there before us, so it is lost.
fn changed_since(
    kind: &dyn ResourceKind,
    address: &Address,
    applied: &AppliedResource,
    answers: &ReadResults,
) -> Vec<AttributeDifference> {
    let mut compared = redacted_diff::diff_applied(kind, &applied.resource(address), answers);
    // What becomes ready by itself nobody changed.
    compared
        .attributes
        .retain(|_, attribute| !attribute.settles);
    let mut since = collect_differences(&compared);
    since.retain(|difference| difference.actual.value().is_some());
    for begun in applied.begun_resources(address) {
        let begun = redacted_diff::diff_applied(kind, &begun, answers);
        since.retain(|difference| !is_as_desired(difference, &begun));
    }
    since
}

/// Every attribute and plane that is not as desired.
pub fn collect_differences(diff: &ResourceDiff) -> Vec<AttributeDifference> {
    let mut differences = Vec::new();
    for (name, attribute) in &diff.attributes {
        for (plane, desired, actual) in attribute.differences() {
            differences.push(AttributeDifference {
                attribute: name.clone(),
                plane,
                desired: desired.clone(),
                actual: actual.clone(),
                by: attribute.by.clone(),
            });
        }
    }
    differences
}

fn note_unknown(address: &Address, diff: &ResourceDiff, unknown: &mut Vec<UnknownFinding>) {
    if diff.known_after.is_some() {
        return;
    }
    for (name, attribute) in diff.attributes.iter().chain(&diff.out_of_reach) {
        for (plane, _, found) in attribute.differences() {
            if let Reading::Unknown(reason) = found {
                unknown.push(UnknownFinding::new(
                    UnknownFinding::subject_of(address, name, plane),
                    reason.clone(),
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::{ResourceDeclaration, kind_named};
    use serde_json::{Value, json};

    /// A later version applied it, with a field more.
    #[test]
    fn what_another_version_applied_is_not_written_over() {
        let resource = DesiredResource {
            address: Address::host("n1", "sysctl", "net.a"),
            after: vec![],
            declaration: ResourceDeclaration {
                kind: "sysctl".into(),
                body: json!({ "key": "net.a", "value": 2 }),
                module: "m/r".into(),
                places: vec![],
            }
            .into(),
        };
        let mut applied = AppliedResource::of(&resource, Value::Null, false, "r1", "t".into());
        let status = |applied: &AppliedResource| {
            let (answers, mut unknown) = (ReadResults::default(), Vec::new());
            let item = plan_resource(
                &resource,
                Some(applied),
                &answers,
                &kind_named,
                &mut unknown,
            );
            let about: Vec<String> = unknown.iter().map(|one| one.subject.to_string()).collect();
            (item.status, item.diff.actions.is_empty(), about)
        };
        assert!(!status(&applied).2.contains(&resource.address.to_string()));
        applied.body["colour"] = "red".into();
        let unknown = (
            PlanItemStatus::Unknown,
            true,
            vec![resource.address.to_string()],
        );
        assert_eq!(status(&applied), unknown);
    }
}
