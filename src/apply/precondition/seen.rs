//! One resource of a step, as it is right before it: what the plan says of it, what is remembered,
//! what its kind makes of it.

use crate::trouble::describe_differences;
use railwright_base::{Address, Redaction};
use railwright_plan::diff::{diff_resource, taken_back};
use railwright_plan::{AppliedResource, ChangeReason, Member};
use railwright_resource::readability::{list_reads, list_reads_to_undo};
use railwright_resource::redacted_diff;
use railwright_resource::{
    Attribute, Plane, Read, ReadResults, Reading, ResourceDiff, ResourceKind, kind_named,
};
use railwright_state::journal::MemberIntent;
use serde_json::Value;

/// One resource of a step, as it is now.
#[derive(Clone)]
pub struct ObservedMember<'a> {
    /// What the plan says.
    pub member: &'a Member,
    /// What is remembered of it.
    pub prior: Option<AppliedResource>,
    /// What its kind makes of the answers.
    pub diff: ResourceDiff,
    /// Its kind; an adopted resource that is undone needs none.
    pub kind: Option<&'static dyn ResourceKind>,
    /// It may have moved, by our own doing.
    pub may_have_moved: bool,
}

/// What must be read to compare a member. What a removal undoes is as it is remembered: the plan
/// carries it without secrets, and so may name something else.
pub fn collect_member_reads(member: &Member, prior: Option<&AppliedResource>) -> Vec<Read> {
    let Some(kind) = kind_named(&member.resource.kind) else {
        return Vec::new();
    };
    match prior {
        _ if !member.removal => list_reads(kind, &member.resource),
        Some(applied) => applied.list_reads_to_undo(&member.resource.address, kind),
        None => list_reads_to_undo(kind, &member.resource),
    }
}

/// Compares a member with its target's read results.
pub fn observe_member<'a>(
    member: &'a Member,
    prior: Option<AppliedResource>,
    answers: &ReadResults,
    may_have_moved: bool,
) -> ObservedMember<'a> {
    let kind = kind_named(&member.resource.kind);
    let diff = match kind {
        None => ResourceDiff::default(),
        Some(kind) if member.removal => match &prior {
            Some(applied) => taken_back(kind, &member.resource.address, applied, answers).0,
            // What is ours no more and had nothing to be put back is let go.
            None if member.before.is_null() => ResourceDiff::default(),
            None => redacted_diff::diff_removal(kind, &member.resource, &member.before, answers),
        },
        Some(kind) => diff_resource(kind, &member.resource, prior.as_ref(), answers),
    };
    ObservedMember {
        member,
        prior,
        diff,
        kind,
        may_have_moved: may_have_moved || moves_by_plan(member),
    }
}

/// The plan itself says that it looks at the resource again.
pub fn moves_by_plan(member: &Member) -> bool {
    matches!(
        member.reason,
        ChangeReason::Disturbed { .. } | ChangeReason::KnownAfter { .. }
    )
}

impl ObservedMember<'_> {
    /// The resource's address.
    pub fn address(&self) -> &Address {
        &self.member.resource.address
    }

    /// Nothing is left to do but a reboot, which is a step of its own.
    pub fn is_settled(&self) -> bool {
        self.diff.is_met() || self.only_waits_for_reboot()
    }

    /// What our own actions brought about and did not last yet differs until it has.
    pub fn expect_to_last(&mut self, answers: &ReadResults) {
        let unsteady = self
            .kind
            .and_then(|kind| kind.unsteady(&self.member.resource, answers));
        let Some((name, reading)) = unsteady else {
            return;
        };
        if let Some(attribute) = self.diff.attributes.get_mut(name)
            && attribute.desired.running == Some(Reading::is(true))
            && attribute.differences().is_empty()
        {
            attribute.actual.running = Some(reading);
        }
    }

    /// Everything differs only in the running plane, and only a reboot fixes that.
    pub fn only_waits_for_reboot(&self) -> bool {
        self.diff.needs_reboot
            && self
                .diff
                .attributes
                .values()
                .flat_map(|a| a.differences())
                .all(|(plane, ..)| plane == Plane::Running)
    }

    /// For messages: `file /etc/x: what differs`.
    pub fn what_differs(&self) -> String {
        let name = self.address().path.join(" ");
        match &self.diff.known_after {
            Some(step) => format!("{name}: it cannot be compared before {step} is there"),
            None => format!("{name}: {}", describe_differences(&self.diff)),
        }
    }

    /// Who else sets what differs, where the target knows: `set by kubectl-edit at
    /// 2026-01-02T03:04:05Z`.
    pub fn rival(&self) -> Option<&str> {
        self.open().find_map(|(_, attribute)| attribute.rival())
    }

    /// The attributes that differ and do not settle by themselves.
    fn open(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        let attributes = self.diff.attributes.iter();
        attributes
            .map(|(name, attribute)| (name.as_str(), attribute))
            .filter(|(_, attribute)| !attribute.settles && !attribute.differences().is_empty())
    }

    /// Who else has set since `before` what this step took on: what nobody touched since is set
    /// back by nobody.
    pub fn set_back_by(&self, before: &ObservedMember<'_>) -> Option<&str> {
        for (name, attribute) in self.open() {
            let was = match before.diff.attributes.get(name) {
                Some(was) if was.differences().is_empty() => continue,
                Some(was) => was.rival(),
                // Nodes of one field that differ identically are one attribute by their names.
                None if before.rival().is_none() => continue,
                None => before.rival(),
            };
            if attribute.is_set_since(was) {
                return attribute.rival();
            }
        }
        None
    }

    /// How far what becomes ready by itself has come: `2 of 4 nodes give 63 of rdma/a`.
    pub fn what_is_waited_for(&self) -> String {
        let mut words = Vec::new();
        for (name, attribute) in &self.diff.attributes {
            if !attribute.settles {
                continue;
            }
            let Some((_, _, found)) = attribute.differences().into_iter().next() else {
                continue;
            };
            words.push(match (found.value().and_then(Value::as_str), found) {
                (Some(said), _) => said.to_owned(),
                (None, Reading::Unknown(reason)) => format!("nobody knows: {reason}"),
                (None, _) => format!("{name}: {}", reading_word(found)),
            });
        }
        if words.is_empty() {
            self.what_differs()
        } else {
            railwright_base::text::one_line(&words.join("; "), 300)
        }
    }

    /// Nothing moved since the plan was made.
    pub fn is_as_planned(&self) -> bool {
        self.diff.fingerprint() == self.member.fingerprint
    }

    /// It may be done again whatever became of it.
    pub fn is_convergent(&self) -> bool {
        self.kind.is_none_or(|kind| kind.convergent())
    }

    /// What undoing will need: never overwritten once it is remembered. Where the plan saw the
    /// resource before anything was done, that counts; what was known only after another step is
    /// what is there now.
    fn before(&self) -> Value {
        match (&self.prior, &self.member.reason) {
            (Some(prior), _) => self.kind.map_or_else(
                || prior.before.clone(),
                |kind| kind.remembered(&prior.before, &self.diff.before),
            ),
            (None, ChangeReason::KnownAfter { .. }) => self.diff.before.clone(),
            (None, _) => self.member.before.clone(),
        }
    }

    /// What the journal keeps of it before the step, without these secrets.
    pub fn intent(&self, redaction: Option<&Redaction>) -> MemberIntent {
        let planned_so = matches!(self.member.reason, ChangeReason::Disturbed { .. });
        MemberIntent {
            address: self.address().clone(),
            met: self.is_settled() || planned_so,
            fingerprint: self.diff.fingerprint(),
            before: redacted_diff::redact_recorded_value(&self.before(), redaction),
        }
    }
}

/// What the plan found of it, for messages.
pub(super) fn describe_planned_state(member: &Member) -> String {
    let found: Vec<String> = member
        .differences
        .iter()
        .take(3)
        .map(|d| {
            format!(
                "{} ({}) {}",
                d.attribute,
                d.plane.word(),
                reading_word(&d.actual)
            )
        })
        .collect();
    if found.is_empty() {
        "in sync".to_owned()
    } else {
        found.join("; ")
    }
}

fn reading_word(reading: &Reading) -> String {
    match reading {
        Reading::Is(Value::String(text)) => {
            railwright_base::text::one_line(railwright_base::seal::mask_seal(text), 60)
        }
        Reading::Is(value) => railwright_base::text::one_line(&value.to_string(), 60),
        Reading::Absent => "absent".to_owned(),
        Reading::NotApplicable(_) => "not applicable".to_owned(),
        Reading::Unknown(_) => "unknown".to_owned(),
    }
}
