//! What differs between a declared object and the object on the server, and what fixes it.

use super::ownership::{
    FieldManager, MANAGER, PriorObject, find_field_managers, is_adopted, is_mark, is_ours,
};
use super::paths::{self, FieldDifference};
use super::precondition::ObjectPrecondition;
use super::preview::{self, ObjectPreview};
use super::replace::{self, ReplacementReason};
use super::request::{NO_KIND, ObjectName};
use super::{DesiredObject, finalizers, manifest, place, pod_disruption, set_presence_attribute};
use crate::Provenance;
use crate::{Attribute, Lacking, Plane, ReadResults, Reading, ResourceDiff};
use railwright_base::Reason;
use railwright_base::text::one_line;
use serde_json::Value;

/// Compares a resource with an object that is not there, and plans to make it.
pub(super) fn diff_missing_object(
    asked: &DesiredObject,
    answers: &ReadResults,
    diff: &mut ResourceDiff,
) {
    set_presence_attribute(diff, Reading::is("present"), Reading::Absent);
    asked.readiness(None, diff);
    let existed = asked.adopts;
    diff.before = serde_json::to_value(PriorObject { existed }).unwrap_or_default();
    diff.actions = asked.apply_and_wait(ObjectPrecondition::Absent);
    let not_previewed = match preview::read_object_preview(asked, answers) {
        ObjectPreview::Is(_) => return,
        ObjectPreview::Refused(refusal) => {
            Err(format_server_refusal(&asked.object, &refusal.told()))
        }
        ObjectPreview::NoDryRun(reason) => Ok(reason),
        ObjectPreview::Unknown(reason) if answers.get(&asked.preview()).is_none() => Ok(reason),
        ObjectPreview::Unknown(reason) => Err(format!(
            "whether the API server takes {} is not known: {reason}; fix what keeps it from \
             answering a dry run, then plan again",
            asked.object
        )),
        ObjectPreview::NotAllowed(reason) => Ok(reason),
        ObjectPreview::NotYet(said) => {
            let no_kind = matches!(answers.output(&asked.live()), Ok((NO_KIND, _)));
            diff.lacks = Some(Lacking {
                what: place::describe_prerequisite(&asked.object, no_kind),
                said,
            });
            return;
        }
    };
    match not_previewed {
        Ok(why) => diff
            .attributes
            .values_mut()
            .for_each(|attribute| attribute.by = Some(Provenance::not_previewed(&why))),
        Err(refusal) => {
            diff.refusal = Some(refusal);
            diff.actions.clear();
        }
    }
}

/// What is said of an object that the server refuses.
pub(super) fn format_server_refusal(object: &ObjectName, message: &str) -> String {
    format!("the API server does not take {object}: {message}")
}

/// A resource and its preview, where the object was taken over earlier: that stays so.
fn keep_adoption(
    asked: &DesiredObject,
    previewed: ObjectPreview,
    is_adopted: bool,
) -> (DesiredObject, ObjectPreview) {
    let keeps = is_adopted && !asked.adopts;
    (
        if keeps {
            asked.taken_over()
        } else {
            asked.clone()
        },
        previewed.of_one_taken_over(keeps),
    )
}

/// Compares a resource with the object that is there, and plans what fixes the difference.
pub(super) fn diff_live_object(
    asked: &DesiredObject,
    object: &Value,
    answers: &ReadResults,
    diff: &mut ResourceDiff,
) {
    set_presence_attribute(diff, Reading::is("present"), Reading::is("present"));
    let ours = is_ours(object, &asked.cluster);
    let (asked, previewed) = &keep_adoption(
        asked,
        preview::read_object_preview(asked, answers),
        ours && is_adopted(object),
    );
    let existed = !ours || asked.adopts;
    diff.before = serde_json::to_value(PriorObject { existed }).unwrap_or_default();
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return refuse_deleted_object(asked, object, diff);
    }
    let mut live = match diff_live_fields(asked, object, previewed, ours) {
        Ok(live) => live,
        Err(reason) => {
            let found = Reading::Unknown(reason);
            return set_presence_attribute(diff, Reading::is("present"), found);
        }
    };
    diff.refusal = live.refusal.take();
    // What is in sync needs nobody's leave, and no mark of ours.
    live.fields
        .retain(|field| ours || asked.adopts || !is_mark(field));
    asked.readiness(Some(object), diff);
    if live.fields.is_empty() && diff.refusal.is_none() {
        diff.actions = asked
            .wait()
            .filter(|_| !diff.is_met())
            .into_iter()
            .collect();
        return;
    }
    let theirs = insert_field_attributes(object, &live, diff);
    if !ours && !asked.adopts && diff.refusal.is_none() {
        diff.refusal = Some(never_ours(asked, object, &theirs));
    }
    plan_object_change(asked, object, &live, diff);
}

fn refuse_deleted_object(asked: &DesiredObject, object: &Value, diff: &mut ResourceDiff) {
    let how = finalizers::describe_deletion(object);
    diff.refusal = Some(format!(
        "{} is {how}; a plan makes it anew once it is gone",
        asked.object
    ));
    set_presence_attribute(diff, Reading::is("present"), Reading::is("being deleted"));
}

/// The fields in which an object is not as desired.
#[derive(Default)]
struct LiveObjectDiff {
    fields: Vec<FieldDifference>,
    /// Says that they are not the server's own preview.
    note: Option<&'static str>,
    /// Why it takes a new object.
    anew: Option<ReplacementReason>,
    /// Why the change cannot be made.
    refusal: Option<String>,
}

/// Compares an object with its preview, or with the manifest where the server gave none. The error
/// is why neither can be done.
fn diff_live_fields(
    asked: &DesiredObject,
    object: &Value,
    previewed: &ObjectPreview,
    ours: bool,
) -> Result<LiveObjectDiff, Reason> {
    let actual = manifest::without_servers_part(object);
    if let ObjectPreview::Is(preview) = previewed {
        let desired = manifest::without_servers_part(preview);
        return Ok(LiveObjectDiff {
            fields: paths::diff_fields(&desired, &actual, false),
            ..LiveObjectDiff::default()
        });
    }
    let mut live = LiveObjectDiff {
        fields: paths::diff_fields(&asked.manifest, &actual, true),
        note: Some("not previewed"),
        ..LiveObjectDiff::default()
    };
    match previewed {
        ObjectPreview::Unknown(reason) | ObjectPreview::NoDryRun(reason) => {
            return Err(reason.clone());
        }
        ObjectPreview::Refused(refusal) => {
            let message = refusal.told();
            if !refusal.is_only_of_fields_that_never_change() {
                live.refusal = Some(format_server_refusal(&asked.object, &message));
            } else if ours && asked.replaces && !asked.adopts {
                live.anew = Some(ReplacementReason::NeverChanges);
            } else {
                live.refusal = Some(replace::format_replace_advice(asked, &message, ours));
            }
        }
        ObjectPreview::Is(_) | ObjectPreview::NotAllowed(_) | ObjectPreview::NotYet(_) => {}
    }
    Ok(live)
}

/// Notes every field that differs, with who else set it. Returns the fields that somebody else set,
/// each with its manager.
fn insert_field_attributes(
    object: &Value,
    live: &LiveObjectDiff,
    diff: &mut ResourceDiff,
) -> Vec<String> {
    let mut theirs = Vec::new();
    for field in &live.fields {
        let other = find_field_managers(object, &field.path)
            .into_iter()
            .find(|holder| holder.manager != MANAGER);
        if let Some(holder) = &other {
            theirs.push(format!("{} ({})", field.shown, holder.manager));
        }
        let attribute = build_field_attribute(field, other.as_ref(), live.note);
        diff.insert_beside(field.shown.clone(), attribute);
    }
    theirs
}

/// Plans the change of an object in place, or its replacement where nothing else changes it.
fn plan_object_change(
    asked: &DesiredObject,
    object: &Value,
    live: &LiveObjectDiff,
    diff: &mut ResourceDiff,
) {
    let anew = live
        .anew
        .or_else(|| replace::of_changes(asked, &live.fields, diff));
    match anew {
        Some(because) => {
            let looked_at = ObjectPrecondition::for_deletion(object);
            replace::plan_replacement(asked, looked_at, because, diff);
        }
        None => {
            pod_disruption::record_pod_disruption(asked, object, &live.fields, diff);
            diff.actions = asked.apply_and_wait(ObjectPrecondition::of(object));
        }
    }
}

/// What is said of an object that others made, who set these fields.
fn never_ours(asked: &DesiredObject, object: &Value, theirs: &[String]) -> String {
    let who = if theirs.is_empty() {
        String::new()
    } else {
        format!(", and others set {}", theirs.join(", "))
    };
    match release_of(object) {
        Some(release) => {
            format!(
                "it belongs to the release {} of Helm{who}: own the release (`helm_release`), not \
                 its objects",
                one_line(release, 60)
            )
        }
        None => format!(
            "it was never ours{who}; `adopt: true` {} takes it over",
            asked.beside
        ),
    }
}

/// The release of Helm that made it (helm/helm: pkg/action/validate.go).
fn release_of(object: &Value) -> Option<&str> {
    object
        .pointer("/metadata/annotations")?
        .get("meta.helm.sh/release-name")?
        .as_str()
}

fn build_field_attribute(
    field: &FieldDifference,
    holder: Option<&FieldManager>,
    note: Option<&str>,
) -> Attribute {
    let [desired, actual] =
        [&field.desired, &field.actual].map(|value| Reading::from(value.clone()));
    let by = match (holder.map(FieldManager::provenance), note) {
        (Some(by), Some(note)) => {
            let words = format!("{}, {note}", by.words());
            Some(by.in_words(words))
        }
        (None, Some(note)) => Some(Provenance::NotPreviewed(note.to_owned())),
        (by, None) => by,
    };
    Attribute {
        by,
        ..Attribute::in_plane(Plane::Persisted, desired, actual)
    }
}
