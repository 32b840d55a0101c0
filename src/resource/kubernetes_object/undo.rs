//! Taking an object back: only what we made is deleted, by its UID; what was there before us stays,
//! without our marks.

use super::ownership::{is_adopted, is_ours};
use super::precondition::ObjectPrecondition;
use super::request::NO_KIND;
use super::{
    DesiredObject, LiveObject, NEVER_REMOVED, OBJECT, finalizers, parse_desired_object, pods,
    read_live_object, set_presence_attribute,
};
use crate::{
    Action, Assessment, Attribute, DesiredResource, Disruption, Plane, ReadResults, Reading,
};
use serde_json::Value;

/// How long an object that was told to go may take: it is held until its finalizers are taken away.
const GONE_WITHIN_S: u32 = 120;
/// The attribute of our label and our annotation on what was taken over.
const MARKS: &str = "marks";

/// An object may be there under a version of its kind that is no longer served.
fn is_unserved(asked: &DesiredObject, answers: &ReadResults) -> bool {
    matches!(answers.output(&asked.live()), Ok((NO_KIND, _)))
}

/// Why an object that is there is not deleted.
fn reason_to_stay(asked: &DesiredObject, was_there: bool, ours: bool) -> Option<&'static str> {
    if was_there {
        Some("it was there before us")
    } else if NEVER_REMOVED.contains(&asked.object.kind_and_group().as_str()) {
        Some("what lies below it would go along")
    } else {
        (!ours).then_some("somebody made it anew since")
    }
}

/// What takes back an object that was applied.
pub(super) fn plan_object_undo(
    last_applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> Assessment {
    let mut assessment = Assessment {
        before: before.clone(),
        ..Assessment::default()
    };
    let Some(asked) = parse_desired_object(last_applied) else {
        return assessment;
    };
    let object = match read_live_object(&asked, answers) {
        LiveObject::Absent if is_unserved(&asked, answers) => {
            let reason = format!(
                "the server does not serve {} {}; where its definition is gone for good, so is the \
                 object: railwright state forget",
                asked.object.api_version, asked.object.kind
            );
            set_presence_attribute(&mut assessment, Reading::Absent, Reading::Unknown(reason));
            return assessment;
        }
        LiveObject::Absent => {
            set_presence_attribute(&mut assessment, Reading::Absent, Reading::Absent);
            return assessment;
        }
        LiveObject::Unknown(reason) => {
            set_presence_attribute(&mut assessment, Reading::Absent, Reading::Unknown(reason));
            return assessment;
        }
        LiveObject::Is(object) => object,
    };
    let ours = is_ours(&object, &asked.cluster);
    let was_there = before.get("existed").and_then(Value::as_bool) != Some(false)
        || asked.adopts
        || is_adopted(&object);
    if let Some(why) = reason_to_stay(&asked, was_there, ours) {
        assessment.stays = true;
        assessment
            .residue
            .push(format!("{} stays as it is: {why}", asked.object));
        if was_there && ours {
            let attribute =
                Attribute::in_plane(Plane::Persisted, Reading::Absent, Reading::is("ours"));
            assessment.attributes.insert(MARKS.to_owned(), attribute);
            let precondition = ObjectPrecondition::of(&object);
            assessment.actions = vec![Action::UnmarkObject {
                object: asked.object,
                precondition,
            }];
        }
        return assessment;
    }
    let gone = Action::Await {
        until: format!("{} is gone", asked.object),
        within_s: GONE_WITHIN_S,
    };
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        let found = Reading::is(finalizers::describe_deletion(&object));
        let attribute =
            Attribute::in_plane(Plane::Persisted, Reading::Absent, found).that_settles();
        assessment.attributes.insert(OBJECT.to_owned(), attribute);
        assessment.actions = vec![gone];
        return assessment;
    }
    set_presence_attribute(&mut assessment, Reading::Absent, Reading::is("present"));
    if pods::end_with(&asked.object) {
        assessment.disruption = Disruption::Restart;
        assessment.interrupts = vec![format!("pods of {} end", asked.object)];
    }
    let precondition = ObjectPrecondition::for_deletion(&object);
    assessment.actions = vec![
        Action::DeleteObject {
            object: asked.object,
            precondition,
            anew: false,
        },
        gone,
    ];
    assessment
}
