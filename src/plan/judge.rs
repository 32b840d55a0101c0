//! Judges every resource: as wished, to be changed and why, or not to be found out.

use super::AppliedResource;
use super::model::{AttributeDifference, ChangeReason, UnknownFinding};
use super::part::TargetGroup;
use railwright_base::{Address, Target, TargetKind};
use railwright_resource::{
    Assessment, DesiredResource, Disruption, Observation, Plane, ReadResults, Reading,
    ResourceKind, readability, redacted_assessment,
};
use std::collections::{BTreeMap, BTreeSet};

/// Finds a kind by its name. A parameter, so that resources of targets to come pass through the
/// plan like any other.
pub type KindLookup<'a> = &'a dyn Fn(&str) -> Option<&'static dyn ResourceKind>;

/// What is to happen with one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum PlanItemStatus {
    /// As wished.
    Met,
    /// Changes, for this reason.
    Change(ChangeReason),
    /// Would change, but cannot or may not; in words.
    Held(ChangeReason, String),
    /// Not judged: see the unknown findings.
    Unknown,
}

/// One resource with its judgement.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanItem {
    /// What is wanted; for a removal, what was applied last.
    pub wish: DesiredResource,
    /// Taken back instead of applied.
    pub removal: bool,
    /// What the kind makes of it.
    pub assessment: Assessment,
    /// What is to happen.
    pub status: PlanItemStatus,
    /// Of a removal: what somebody changed since it was applied, and loses with it.
    pub since: Vec<AttributeDifference>,
}

impl PlanItem {
    /// True when it changes something that only a reboot brings into effect.
    pub(super) fn causes_reboot(&self) -> bool {
        self.assessment.needs_reboot && matches!(self.status, PlanItemStatus::Change(_))
    }

    /// True when it becomes part of a node.
    pub fn changes(&self) -> bool {
        matches!(
            self.status,
            PlanItemStatus::Change(_) | PlanItemStatus::Held(..)
        )
    }
}

/// All resources, wished ones in the order of their addresses, then the removals; and what could
/// not be found out.
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
    let desired: BTreeSet<&Address> = group.wishes.iter().map(|wish| &wish.address).collect();
    let mut items = Vec::with_capacity(group.wishes.len());
    for wish in &group.wishes {
        let applied = records.get(&wish.address).copied();
        let answers = answers[&wish.address.target];
        items.push(judge_wish(wish, applied, answers, kinds, &mut unknown));
    }
    for (address, applied) in &group.applied {
        if !desired.contains(address) {
            let answers = answers[&address.target];
            items.extend(judge_removal(
                address,
                applied,
                answers,
                kinds,
                &mut unknown,
            ));
        }
    }
    (items, unknown)
}

/// One resource of one target again; nothing where something of it cannot be found out.
pub(super) fn judge_again(
    item: &PlanItem,
    wish: &DesiredResource,
    applied: Option<&AppliedResource>,
    answers: &ReadResults,
    kinds: KindLookup,
) -> Option<PlanItem> {
    let mut unknown = Vec::new();
    let again = match (item.removal, applied) {
        (false, applied) => Some(judge_wish(wish, applied, answers, kinds, &mut unknown)),
        (true, Some(applied)) => {
            judge_removal(&wish.address, applied, answers, kinds, &mut unknown)
        }
        (true, None) => None,
    };
    again.filter(|_| unknown.is_empty())
}

/// What a target said, or that it said nothing.
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

fn judge_wish(
    wish: &DesiredResource,
    applied: Option<&AppliedResource>,
    answers: &ReadResults,
    kinds: KindLookup,
    unknown: &mut Vec<UnknownFinding>,
) -> PlanItem {
    let kind = match find_kind_of_wish(wish, applied, kinds) {
        Ok(kind) => kind,
        Err(reason) => {
            unknown.push(UnknownFinding::new(wish.address.to_string(), reason));
            return PlanItem {
                wish: wish.clone(),
                removal: false,
                assessment: Assessment::default(),
                status: PlanItemStatus::Unknown,
                since: Vec::new(),
            };
        }
    };
    let assessment = diff_wish(kind, wish, applied, answers);
    note_unknown(&wish.address, &assessment, unknown);
    // What was begun and did not come through was never applied.
    let status = compute_item_status(
        wish,
        applied.filter(|applied| !applied.unfinished),
        &assessment,
        kind,
    );
    PlanItem {
        wish: wish.clone(),
        removal: false,
        assessment,
        status,
        since: Vec::new(),
    }
}

/// The kind that compares a resource, or why none does: what is remembered of the resource would be
/// overwritten without having been read.
fn find_kind_of_wish(
    wish: &DesiredResource,
    applied: Option<&AppliedResource>,
    kinds: KindLookup,
) -> Result<&'static dyn ResourceKind, String> {
    let Some(kind) = kinds(&wish.kind) else {
        return Err(format!(
            "this railwright has no resource kind `{}`",
            wish.kind
        ));
    };
    let can_read = |applied: &AppliedResource| {
        kinds(&applied.kind)
            .is_some_and(|kind| readability::is_readable(kind, &applied.wish(&wish.address)))
    };
    if applied.is_none_or(can_read) {
        return Ok(kind);
    }
    Err(readability::UNREADABLE_BODY.to_owned())
}

fn compute_item_status(
    wish: &DesiredResource,
    applied: Option<&AppliedResource>,
    assessment: &Assessment,
    kind: &dyn ResourceKind,
) -> PlanItemStatus {
    if assessment.is_met() {
        return PlanItemStatus::Met;
    }
    let reason = find_change_reason(wish, applied, assessment);
    if let Some(refusal) = &assessment.refusal {
        return PlanItemStatus::Held(reason, refusal.clone());
    }
    if assessment.disruption >= Disruption::PowerCycle {
        return PlanItemStatus::Held(reason, by_hand(assessment.disruption));
    }
    let blind = matches!(reason, ChangeReason::Unknown)
        && (assessment.actions.is_empty() || !kind.is_convergent(wish));
    if blind {
        PlanItemStatus::Unknown
    } else {
        PlanItemStatus::Change(reason)
    }
}

/// Why it is held, where it is nothing that a program should do.
fn by_hand(disruption: Disruption) -> String {
    format!(
        "a {} is done by hand; a plan after it proves it and goes on",
        disruption.word().replace('_', " ")
    )
}

/// Why a resource that is not as desired is not: the spec, the world, or a debt.
fn find_change_reason(
    wish: &DesiredResource,
    applied: Option<&AppliedResource>,
    assessment: &Assessment,
) -> ChangeReason {
    if let Some(step) = &assessment.known_after {
        // The name of a resource on a host may be a path; objects of Kubernetes have their
        // namespace in a segment of its own.
        let segments = if wish.address.target.kind == TargetKind::Kube {
            4
        } else {
            2
        };
        let path: Vec<String> = step.splitn(segments, '/').map(str::to_owned).collect();
        let step = Address {
            target: wish.address.target.clone(),
            path: path.into(),
            attribute: None,
        };
        return ChangeReason::KnownAfter { step };
    }
    if let Some(input) = assessment.input()
        && applied.is_some_and(|applied| applied.digest == wish.digest())
    {
        return ChangeReason::InputChanged {
            input: input.to_owned(),
        };
    }
    // Whoever cannot be asked yet may come by itself.
    let is_waited_for = assessment.only_waits() && !assessment.actions.is_empty();
    match applied {
        None if assessment.is_absent() && !assessment.only_waits() => ChangeReason::New,
        _ if assessment.only_unknown() && !is_waited_for => ChangeReason::Unknown,
        _ if assessment.owed => ChangeReason::PendingRestart,
        _ if assessment.only_waits() => ChangeReason::NotReady,
        None => ChangeReason::Takeover,
        Some(applied) if applied.digest != wish.digest() => ChangeReason::SpecChanged {
            places: wish.places.clone(),
        },
        Some(_) if !differs_while_running(assessment) && assessment.judges(Plane::Running) => {
            ChangeReason::WillBeLostAtReboot
        }
        Some(_) => ChangeReason::Drifted,
    }
}

fn differs_while_running(assessment: &Assessment) -> bool {
    for attribute in assessment.attributes.values() {
        for (plane, _, _) in attribute.differences() {
            if plane == Plane::Running {
                return true;
            }
        }
    }
    false
}

fn judge_removal(
    address: &Address,
    applied: &AppliedResource,
    answers: &ReadResults,
    kinds: KindLookup,
    unknown: &mut Vec<UnknownFinding>,
) -> Option<PlanItem> {
    let Some(kind) = kinds(&applied.kind) else {
        let reason = format!(
            "it was applied, and this railwright has no resource kind `{}` to take it back",
            applied.kind
        );
        unknown.push(UnknownFinding::new(address.to_string(), reason));
        return None;
    };
    let (mut assessment, since) = taken_back(kind, address, applied, answers);
    if !applied.adopted {
        // Once it is taken back nobody else remembers it, and a reboot after it has yet to be
        // proven.
        assessment.before =
            redacted_assessment::redact_recorded_value(&applied.before, answers.redaction());
    }
    note_unknown(address, &assessment, unknown);
    let reason = if assessment.stays {
        ChangeReason::LetGo
    } else {
        ChangeReason::RemovedFromSpec
    };
    let status = match &assessment.refusal {
        Some(refusal) => PlanItemStatus::Held(reason, refusal.clone()),
        // A step that would do nothing would only stop those after it.
        None if assessment.has_unknown() => PlanItemStatus::Unknown,
        None => PlanItemStatus::Change(reason),
    };
    Some(PlanItem {
        wish: redacted_assessment::remembered_wish(&applied.wish(address), answers.redaction()),
        removal: true,
        assessment,
        status,
        since,
    })
}

/// Why nothing takes back what was begun and did not come through, where somebody else may have
/// made what is there.
const NEITHER: &str = "the step that began it did not come through, and what is there now is \
                       neither what was there before nor what was desired: roll back by hand what \
                       is not yours, then railwright state forget";

/// What is there is what this assessment wants: for an undo, what was there before us.
fn is_as_wanted(since: &AttributeDifference, by: &Assessment) -> bool {
    match by.attributes.get(&since.attribute) {
        Some(attribute) => attribute.wanted.get(since.plane) == Some(&since.found),
        None => false,
    }
}

/// Compares a resource with its target, by its wish and by what earlier wishes of it may have made.
pub fn diff_wish(
    kind: &dyn ResourceKind,
    wish: &DesiredResource,
    applied: Option<&AppliedResource>,
    answers: &ReadResults,
) -> Assessment {
    let Some(applied) = applied else {
        return redacted_assessment::diff_resource(kind, wish, answers);
    };
    let earlier = applied.whole_wish(&wish.address, kind);
    redacted_assessment::diff_after(kind, wish, &earlier, &applied.before, answers)
}

/// What takes a resource back, and what somebody changed since it was applied and loses with it.
/// What was as wished before us stays, without a look unless its target itself says what is ours.
pub fn taken_back(
    kind: &dyn ResourceKind,
    address: &Address,
    applied: &AppliedResource,
    answers: &ReadResults,
) -> (Assessment, Vec<AttributeDifference>) {
    if applied.adopted && !kind.knows_its_own() {
        return (Assessment::default(), Vec::new());
    }
    let whole = applied.whole_wish(address, kind);
    let mut assessment = redacted_assessment::diff_removal(kind, &whole, &applied.before, answers);
    let keeps = assessment.actions.is_empty() || kind.undo_keeps_changes();
    let since = if keeps {
        Vec::new()
    } else {
        changed_since(kind, address, applied, answers)
    };
    if applied.unfinished
        && since
            .iter()
            .any(|difference| !is_as_wanted(difference, &assessment))
    {
        assessment.refusal.get_or_insert_with(|| NEITHER.to_owned());
    }
    (assessment, since)
}

/// What is there and is neither what was applied last nor what was begun after it. The removal goes
/// by what was there before us, so it is lost.
fn changed_since(
    kind: &dyn ResourceKind,
    address: &Address,
    applied: &AppliedResource,
    answers: &ReadResults,
) -> Vec<AttributeDifference> {
    let mut compared = redacted_assessment::diff_applied(kind, &applied.wish(address), answers);
    // What comes about by itself nobody changed.
    compared
        .attributes
        .retain(|_, attribute| !attribute.settles);
    let mut since = collect_differences(&compared);
    since.retain(|difference| difference.found.value().is_some());
    for begun in applied.begun_wishes(address) {
        let begun = redacted_assessment::diff_applied(kind, &begun, answers);
        since.retain(|difference| !is_as_wanted(difference, &begun));
    }
    since
}

/// Every attribute and plane that is not as wanted.
pub fn collect_differences(assessment: &Assessment) -> Vec<AttributeDifference> {
    let mut differences = Vec::new();
    for (name, attribute) in &assessment.attributes {
        for (plane, wanted, found) in attribute.differences() {
            differences.push(AttributeDifference {
                attribute: name.clone(),
                plane,
                wanted: wanted.clone(),
                found: found.clone(),
                by: attribute.by.clone(),
            });
        }
    }
    differences
}

fn note_unknown(address: &Address, assessment: &Assessment, unknown: &mut Vec<UnknownFinding>) {
    if assessment.known_after.is_some() {
        return;
    }
    for (name, attribute) in assessment.attributes.iter().chain(&assessment.out_of_reach) {
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
    use railwright_resource::{Want, kind_named};
    use serde_json::{Value, json};

    /// A later version applied it, with a field more.
    #[test]
    fn what_another_version_applied_is_not_written_over() {
        let wish = DesiredResource {
            address: Address::host("n1", "sysctl", "net.a"),
            after: vec![],
            want: Want {
                kind: "sysctl".into(),
                body: json!({ "key": "net.a", "value": 2 }),
                module: "m/r".into(),
                places: vec![],
            }
            .into(),
        };
        let mut applied = AppliedResource::of(&wish, Value::Null, false, "r1", "t".into());
        let status = |applied: &AppliedResource| {
            let (answers, mut unknown) = (ReadResults::default(), Vec::new());
            let item = judge_wish(&wish, Some(applied), &answers, &kind_named, &mut unknown);
            let about: Vec<String> = unknown.iter().map(|one| one.subject.to_string()).collect();
            (item.status, item.assessment.actions.is_empty(), about)
        };
        assert!(!status(&applied).2.contains(&wish.address.to_string()));
        applied.body["colour"] = "red".into();
        let unknown = (
            PlanItemStatus::Unknown,
            true,
            vec![wish.address.to_string()],
        );
        assert_eq!(status(&applied), unknown);
    }
}
