//! Taking an object back: only what we made is deleted, by its UID; what was there before us stays,
//! without our marks.

use super::fields_of_others::list_foreign_fields;
use super::ownership::{MANAGER, is_adopted, is_ours};
use super::precondition::ObjectPrecondition;
use super::request::{NO_KIND, ObjectName};
use super::{
    DesiredObject, LiveObject, OBJECT, finalizers, is_never_removed, parse_desired_object, pods,
    read_live_object, set_presence_attribute,
};
use crate::json_fields::read_flag_field;
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
    } else if is_never_removed(&asked.object) {
        Some("what lies below it would go along")
    } else {
        (!ours).then_some("it bears no mark of ours: somebody took that away, or made it anew")
    }
}

/// Plans how an object that was applied is taken back: it is deleted where we made it, and else
/// stays, without our marks.
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
    let object = match find_object_to_undo(&asked, answers) {
        Ok(object) => object,
        Err(found) => {
            set_presence_attribute(&mut assessment, Reading::Absent, found);
            return assessment;
        }
    };
    let ours = is_ours(&object, &asked.cluster);
    let was_there =
        read_flag_field(before, "existed") != Some(false) || asked.adopts || is_adopted(&object);
    match reason_to_stay(&asked, was_there, ours) {
        Some(why) => {
            assessment.stays = true;
            assessment
                .residue
                .push(format!("{} stays as it is: {why}", asked.object));
            if was_there && ours {
                plan_unmarking(asked.object, &object, &mut assessment);
            }
        }
        None => plan_deletion(asked, &object, &mut assessment),
    }
    assessment
}

/// The object that is there. The error is what is found in its place.
fn find_object_to_undo(asked: &DesiredObject, answers: &ReadResults) -> Result<Value, Reading> {
    match read_live_object(asked, answers) {
        LiveObject::Is(object) => Ok(object),
        LiveObject::Unknown(reason) => Err(Reading::Unknown(reason)),
        LiveObject::Absent if is_unserved(asked, answers) => Err(Reading::Unknown(
            format!(
                "the server does not serve {} {}; where its definition is gone for good, so is the \
             object: railwright state forget",
                asked.object.api_version, asked.object.kind
            )
            .into(),
        )),
        LiveObject::Absent => Err(Reading::Absent),
    }
}

fn plan_unmarking(name: ObjectName, object: &Value, assessment: &mut Assessment) {
    let attribute = Attribute::in_plane(Plane::Persisted, Reading::Absent, Reading::is("ours"));
    assessment.attributes.insert(MARKS.to_owned(), attribute);
    assessment.actions = vec![Action::UnmarkObject {
        object: name,
        precondition: ObjectPrecondition::of(object),
    }];
}

/// Plans the deletion of an object, or waits for one that is being deleted already.
fn plan_deletion(asked: DesiredObject, object: &Value, assessment: &mut Assessment) {
    let name = asked.object;
    let gone = Action::Await {
        until: format!("{name} is gone"),
        within_s: GONE_WITHIN_S,
    };
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        let found = Reading::is(finalizers::describe_deletion(object));
        let attribute =
            Attribute::in_plane(Plane::Persisted, Reading::Absent, found).that_settles();
        assessment.attributes.insert(OBJECT.to_owned(), attribute);
        assessment.actions = vec![gone];
        return;
    }
    set_presence_attribute(assessment, Reading::Absent, Reading::is("present"));
    for field in list_foreign_fields(object, &asked.manifest, |manager| manager != MANAGER) {
        let attribute = Attribute {
            by: Some(field.manager.provenance()),
            ..Attribute::in_plane(Plane::Persisted, Reading::Absent, Reading::Is(field.value))
        };
        assessment.insert_beside(field.shown, attribute);
    }
    if pods::end_with(&name) {
        assessment.disruption = Disruption::Restart;
        assessment.interrupts = vec![format!("pods of {name} end")];
    }
    let delete = Action::DeleteObject {
        object: name,
        precondition: ObjectPrecondition::for_deletion(object),
        anew: false,
    };
    assessment.actions = vec![delete, gone];
}
