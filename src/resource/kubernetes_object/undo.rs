//! Taking an object back: only what we made is deleted, by its UID; what was there before us stays,
//! without our marks.

use super::claims::explain_claim_deletion;
use super::fields_of_others::list_foreign_fields;
use super::ownership::{MANAGER, PriorObject, is_adopted, is_ours};
use super::precondition::ObjectPrecondition;
use super::request::{NO_KIND, ObjectName};
use super::{
    DesiredObject, LiveObject, OBJECT, explain_removal_prohibition, finalizers,
    parse_desired_object, pod_disruption, read_live_object, set_presence_attribute,
};
use crate::{
    Action, Attribute, DesiredResource, Disruption, Plane, ReadResults, Reading, ResourceDiff,
};
use serde::Deserialize;
use serde_json::Value;

/// How long an object that is being deleted may take: it stays until its finalizers are removed.
const GONE_WITHIN_S: u32 = 120;
/// The attribute of our label and our annotation on what was taken over.
const MARKS: &str = "marks";

/// An object may be there under a version of its kind that is no longer served.
fn is_unserved(asked: &DesiredObject, answers: &ReadResults) -> bool {
    matches!(answers.output(&asked.live()), Ok((NO_KIND, _)))
}

/// Why an object that is there is not deleted.
fn reason_to_stay(
    name: &ObjectName,
    object: &Value,
    was_there: bool,
    ours: bool,
) -> Option<String> {
    let why = if was_there {
        "it was there before us"
    } else if let Some(why) = explain_removal_prohibition(name) {
        why
    } else if !ours {
        "it bears no mark of ours: somebody removed it, or recreated the object"
    } else {
        return explain_claim_deletion(name, object);
    };
    Some(why.to_owned())
}

/// Plans how an object that was applied is undone: it is deleted where we made it, and else stays,
/// without our marks.
pub(super) fn plan_object_undo(
    last_applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let mut diff = ResourceDiff {
        before: before.clone(),
        ..ResourceDiff::default()
    };
    let Some(asked) = parse_desired_object(last_applied) else {
        return diff;
    };
    let object = match find_object_to_undo(&asked, answers) {
        Ok(object) => object,
        Err(found) => {
            set_presence_attribute(&mut diff, Reading::Absent, found);
            return diff;
        }
    };
    let ours = is_ours(&object, &asked.cluster);
    let existed = PriorObject::deserialize(before).map_or(true, |prior| prior.existed);
    let was_there = existed || asked.adopts || is_adopted(&object);
    match reason_to_stay(&asked.object, &object, was_there, ours) {
        Some(why) => {
            diff.stays = true;
            diff.residue
                .push(format!("{} stays as it is: {why}", asked.object));
            if was_there && ours {
                plan_unmarking(asked.object, &object, &mut diff);
            }
        }
        None => plan_deletion(asked, &object, &mut diff),
    }
    diff
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

fn plan_unmarking(name: ObjectName, object: &Value, diff: &mut ResourceDiff) {
    let attribute = Attribute::in_plane(Plane::Persisted, Reading::Absent, Reading::is("ours"));
    diff.attributes.insert(MARKS.to_owned(), attribute);
    diff.actions = vec![Action::UnmarkObject {
        object: name,
        precondition: ObjectPrecondition::of(object),
    }];
}

/// Plans the deletion of an object, or waits for one that is being deleted already.
fn plan_deletion(asked: DesiredObject, object: &Value, diff: &mut ResourceDiff) {
    let name = asked.object;
    let gone = Action::Await {
        until: format!("{name} is gone"),
        within_s: GONE_WITHIN_S,
    };
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        let found = Reading::is(finalizers::describe_deletion(object));
        let attribute =
            Attribute::in_plane(Plane::Persisted, Reading::Absent, found).that_settles();
        diff.attributes.insert(OBJECT.to_owned(), attribute);
        diff.actions = vec![gone];
        return;
    }
    set_presence_attribute(diff, Reading::Absent, Reading::is("present"));
    for field in list_foreign_fields(object, &asked.manifest, |manager| manager != MANAGER) {
        let attribute = Attribute {
            by: Some(field.manager.provenance()),
            ..Attribute::in_plane(Plane::Persisted, Reading::Absent, Reading::Is(field.value))
        };
        diff.insert_beside(field.shown, attribute);
    }
    if pod_disruption::pods_end_with(&name) {
        diff.disruption = Disruption::Restart;
        diff.interrupts = vec![format!("pods of {name} end")];
    }
    let delete = Action::DeleteObject {
        object: name,
        precondition: ObjectPrecondition::for_deletion(object),
        anew: false,
    };
    diff.actions = vec![delete, gone];
}

#[cfg(test)]
mod tests {
    use super::super::request::ABSENT;
    use super::super::tests::{answers, object, resource};
    use super::super::{KubernetesObject, MANAGER};
    use crate::{Action, ResourceKind};
    use serde_json::{Value, json};

    /// A StatefulSet stays only while Kubernetes would delete the claims of its pods with it.
    #[test]
    fn what_holds_data_stays() {
        let undo = |kind: &str, spec: &Value| {
            let (version, kind) = kind.split_once(' ').unwrap();
            let manifest = json!({ "apiVersion": version, "kind": kind, "metadata": { "name": "db", "namespace": "x" }, "spec": spec });
            let resource = resource(json!({ "cluster": "lab", "manifest": manifest }));
            let mut live = object(&json!({}), MANAGER);
            live["spec"] = spec.clone();
            let answers = answers(&resource, (0, &live), (ABSENT, &json!("")));
            KubernetesObject.undo(&resource, &json!({ "existed": false }), &answers)
        };
        let set = |policy: &str, templates: Value| json!({ "persistentVolumeClaimRetentionPolicy": { "whenDeleted": policy }, "volumeClaimTemplates": templates });
        let templates =
            json!([{ "metadata": { "name": "data" } }, { "metadata": { "name": "log" } }]);
        for (kind, spec, why) in [
            (
                "v1 PersistentVolumeClaim",
                json!({}),
                "its data would go along",
            ),
            ("v1 PersistentVolume", json!({}), "its data would go along"),
            (
                "apps/v1 StatefulSet",
                set("Delete", templates.clone()),
                "the claims of its pods (data-db-N, log-db-N) would go along with their data",
            ),
        ] {
            let kept = undo(kind, &spec);
            assert!(
                kept.stays && kept.actions.is_empty() && kept.residue[0].contains(why),
                "{kept:?}"
            );
        }
        for spec in [
            set("Retain", templates),
            set("Delete", json!([])),
            json!({}),
        ] {
            let removed = undo("apps/v1 StatefulSet", &spec);
            assert!(
                matches!(
                    &removed.actions[..],
                    [Action::DeleteObject { .. }, Action::Await { .. }]
                ),
                "{removed:?}"
            );
        }
    }
}
