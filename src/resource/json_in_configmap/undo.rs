//! The resource was taken out of the spec: the parts are as they were before our first change, and
//! what reads the text reads it again.

use super::body::{DesiredJsonEdit, DesiredJsonValue, JsonInConfigMapBody};
use super::edit::JsonPointerValue;
use super::look::{ConfigMapText, ConfigMapTextError};
use super::parts::{JsonPartsDiff, PriorConfigMapText, Was};
use super::text::format_json_pointer;
use super::{
    Attribute, DesiredResource, Plane, ReadResults, Reading, ResourceDiff, TEXT,
    build_refused_diff, of_mark, of_one, record_reader_disruption,
};
use crate::body::read_body;
use railwright_base::Reason;
use serde::Deserialize;
use serde_json::Value;

/// The attribute of the mark on the ConfigMap.
const MARK: &str = "mark";

/// Undoes what we changed, and only that.
pub fn plan_configmap_undo(
    last_applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let body = read_body::<JsonInConfigMapBody>(&last_applied.body);
    let diff = match ConfigMapText::at_text(&body, answers) {
        Ok(look) => diff_restored_parts(&body, before, &look)
            .unwrap_or_else(|reason| build_refused_diff(&look, reason)),
        Err(ConfigMapTextError::Unknown(reason)) => {
            of_one(TEXT, Reading::is("as before us"), Reading::Unknown(reason))
        }
        // With the text went what we changed in it.
        Err(ConfigMapTextError::Absent { .. }) => of_one(TEXT, Reading::Absent, Reading::Absent),
    };
    ResourceDiff {
        before: before.clone(),
        ..diff
    }
}

/// What is remembered stood in an object that is gone.
pub(super) fn is_of_another(was: Option<&str>, is: Option<&str>) -> bool {
    was.zip(is).is_some_and(|(was, is)| was != is)
}

fn diff_restored_parts(
    body: &JsonInConfigMapBody,
    before: &Value,
    look: &ConfigMapText,
) -> Result<ResourceDiff, Reason> {
    let mut diff = ResourceDiff::default();
    let PriorConfigMapText { parts: was, uid } =
        PriorConfigMapText::deserialize(before).unwrap_or_default();
    if is_of_another(uid.as_deref(), look.uid()) {
        diff.residue.push(format!(
            "{} was recreated since, and stays as it is: what stood in it before us is not known",
            look.object
        ));
        return Ok(diff);
    }
    let (document, mut walk) = (look.document()?, JsonPartsDiff::default());
    for was in &was {
        let (name, desired, actual) = walk
            .back(&document, was)
            .map_err(|reason| look.says(&reason))?;
        let attribute = look.attribute(desired, actual);
        diff.attributes.insert(name, attribute);
    }
    let asked = body.list_desired_edits();
    for asked in &asked {
        if !was.iter().any(|was| was.pointer() == asked.pointer) {
            diff.residue.push(format!(
                "{} stays as it is: what was there before us is not known",
                format_json_pointer(&asked.pointer)
            ));
        }
    }
    if let Some(mark) = look.mark_of_text() {
        let attribute = Attribute::in_plane(Plane::Persisted, Reading::Absent, Reading::is(mark));
        diff.insert_beside(MARK.to_owned(), attribute);
    }
    if !walk.edits.is_empty() || look.mark_of_text().is_some() {
        diff.actions.push(look.edit(walk.edits, None));
    }
    plan_template_undo(look, is_changed(&asked, &was), &mut diff);
    Ok(diff)
}

/// Takes our mark from the template of the pods that read the text, where we changed the text:
/// without the mark they start anew.
fn plan_template_undo(look: &ConfigMapText, is_changed: bool, diff: &mut ResourceDiff) {
    let (Some(reader), Some(mark)) = (&look.reader, look.mark_of_template()) else {
        return;
    };
    if !is_changed {
        // To take it would start pods anew for nothing.
        diff.residue.push(format!(
            "an annotation in the template of {} stays; nothing reads it",
            reader.object
        ));
        return;
    }
    let attribute = Attribute::in_plane(Plane::Running, Reading::Absent, of_mark(Some(mark)));
    diff.attributes.insert(reader.attribute(), attribute);
    record_reader_disruption(reader, diff);
    diff.actions.push(look.mark_template(reader, None));
}

/// True where we changed anything: what stood there already was never ours.
fn is_changed(asked: &[DesiredJsonEdit], was: &[Was]) -> bool {
    asked.iter().any(
        |asked| match was.iter().find(|was| was.pointer() == asked.pointer) {
            None => true,
            Some(Was::Elements { added, .. }) => !added.is_empty(),
            Some(Was::Value { held, .. }) => match &asked.desired {
                DesiredJsonValue::Value(value) => *held != JsonPointerValue::Is(value.clone()),
                DesiredJsonValue::Absent => *held != JsonPointerValue::Absent,
                DesiredJsonValue::Elements(_) => true,
            },
        },
    )
}
