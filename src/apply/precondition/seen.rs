//! One resource of a step, as it is right before it: what the plan says of it, what is remembered,
//! what its kind makes of it.

use crate::trouble::describe_differences;
use railwright_base::{Address, Redaction};
use railwright_plan::judge::{diff_wish, taken_back};
use railwright_plan::{AppliedResource, ChangeReason, Member};
use railwright_resource::readability::{list_reads, list_reads_to_undo};
use railwright_resource::redacted_assessment;
use railwright_resource::{
    Assessment, Attribute, Plane, Read, ReadResults, Reading, ResourceKind, kind_named,
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
    pub assessment: Assessment,
    /// Its kind; an adopted resource that is taken back needs none.
    pub kind: Option<&'static dyn ResourceKind>,
    /// It may have moved, by our own doing.
    pub may_have_moved: bool,
}

/// What must be read to compare a member. What a removal takes back is as it is remembered: the plan
/// carries it without secrets, and so may name something else.
pub fn collect_member_reads(member: &Member, prior: Option<&AppliedResource>) -> Vec<Read> {
    let Some(kind) = kind_named(&member.wish.kind) else {
        return Vec::new();
    };
    match prior {
        _ if !member.removal => list_reads(kind, &member.wish),
        Some(applied) => applied.list_reads_to_undo(&member.wish.address, kind),
        None => list_reads_to_undo(kind, &member.wish),
    }
}

/// Compares a member with its target's read results.
pub fn observe_member<'a>(
    member: &'a Member,
    prior: Option<AppliedResource>,
    answers: &ReadResults,
    may_have_moved: bool,
) -> ObservedMember<'a> {
    let kind = kind_named(&member.wish.kind);
    let assessment = match kind {
        None => Assessment::default(),
        Some(kind) if member.removal => match &prior {
            Some(applied) => taken_back(kind, &member.wish.address, applied, answers).0,
            // What is ours no more and had nothing to be put back is let go.
            None if member.before.is_null() => Assessment::default(),
            None => redacted_assessment::diff_removal(kind, &member.wish, &member.before, answers),
        },
        Some(kind) => diff_wish(kind, &member.wish, prior.as_ref(), answers),
    };
    ObservedMember {
        member,
        prior,
        assessment,
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
        &self.member.wish.address
    }

    /// Nothing is left to do but a reboot, which is a step of its own.
    pub fn is_settled(&self) -> bool {
        self.assessment.is_met() || self.only_waits_for_reboot()
    }

    /// What our own actions brought about and did not last yet differs until it has.
    pub fn expect_to_last(&mut self, answers: &ReadResults) {
        let unsteady = self
            .kind
            .and_then(|kind| kind.unsteady(&self.member.wish, answers));
        let Some((name, reading)) = unsteady else {
            return;
        };
        if let Some(attribute) = self.assessment.attributes.get_mut(name)
            && attribute.wanted.running == Some(Reading::is(true))
            && attribute.differences().is_empty()
        {
            attribute.found.running = Some(reading);
        }
    }

    /// Everything differs only in the running plane, and only a reboot fixes that.
    pub fn only_waits_for_reboot(&self) -> bool {
        self.assessment.needs_reboot
            && self
                .assessment
                .attributes
                .values()
                .flat_map(|a| a.differences())
                .all(|(plane, ..)| plane == Plane::Running)
    }

    /// For messages: `file /etc/x: what differs`.
    pub fn what_differs(&self) -> String {
        let name = self.address().path.join(" ");
        match &self.assessment.known_after {
            Some(step) => format!("{name}: it cannot be judged before {step} is there"),
            None => format!("{name}: {}", describe_differences(&self.assessment)),
        }
    }

    /// Who else sets what differs, where the target knows: `set by kubectl-edit at
    /// 2026-01-02T03:04:05Z`.
    pub fn rival(&self) -> Option<&str> {
        self.open().find_map(|(_, attribute)| attribute.rival())
    }

    /// The attributes that differ and do not settle by themselves.
    fn open(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        let attributes = self.assessment.attributes.iter();
        attributes
            .map(|(name, attribute)| (name.as_str(), attribute))
            .filter(|(_, attribute)| !attribute.settles && !attribute.differences().is_empty())
    }

    /// Who else has set since `before` what this step took on: what nobody touched since is set
    /// back by nobody.
    pub fn set_back_by(&self, before: &ObservedMember<'_>) -> Option<&str> {
        for (name, attribute) in self.open() {
            let was = match before.assessment.attributes.get(name) {
                Some(was) if was.differences().is_empty() => continue,
                Some(was) => was.rival(),
                // Nodes of one field that differ alike are one attribute by their names.
                None if before.rival().is_none() => continue,
                None => before.rival(),
            };
            if attribute.is_set_since(was) {
                return attribute.rival();
            }
        }
        None
    }

    /// How it stands with what comes about by itself: `2 of 4 nodes give 63 of rdma/a`.
    pub fn what_is_waited_for(&self) -> String {
        let mut words = Vec::new();
        for (name, attribute) in &self.assessment.attributes {
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
        self.assessment.fingerprint() == self.member.fingerprint
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
                |kind| kind.remembered(&prior.before, &self.assessment.before),
            ),
            (None, ChangeReason::KnownAfter { .. }) => self.assessment.before.clone(),
            (None, _) => self.member.before.clone(),
        }
    }

    /// What the journal keeps of it before the step, without these secrets.
    pub fn intent(&self, redaction: Option<&Redaction>) -> MemberIntent {
        let planned_so = matches!(self.member.reason, ChangeReason::Disturbed { .. });
        MemberIntent {
            address: self.address().clone(),
            met: self.is_settled() || planned_so,
            fingerprint: self.assessment.fingerprint(),
            before: redacted_assessment::redact_recorded_value(&self.before(), redaction),
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
                reading_word(&d.found)
            )
        })
        .collect();
    if found.is_empty() {
        "as wished".to_owned()
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
