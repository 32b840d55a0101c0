//! `json_in_configmap`: parts of a JSON text that somebody else owns in a ConfigMap. Server-side
//! apply knows the text as one field and could only take all of it; here each part is compared and
//! changed by its JSON pointer, and the rest keeps its bytes.
//!
//! What reads the text only at its start needs a restart after an edit. The edit leaves a mark on
//! the ConfigMap in the same request, and the template of the pods has to bear the same one: a
//! pending restart is a difference, whatever became of the run.
//!
//! One resource for one text: two modules that declare parts of it are an error, even where the
//! parts differ.

mod body;
pub mod edit;
mod look;
pub mod mark;
mod parts;
mod same;
mod text;
mod undo;

use self::body::JsonInConfigMapBody;
use self::look::{ConfigMapText, ConfigMapTextError};
use self::parts::{JsonPartsDiff, PriorConfigMapText};
use super::kubernetes_object::access::ApiVerb;
use super::kubernetes_object::manifest;
use super::kubernetes_object::request::{KubernetesRead, ObjectName};
use super::{
    Action, Attribute, DesiredResource, Disruption, Plane, Read, ReadResults, Reading,
    ResourceDiff, ResourceKind,
};
use crate::body::{BodyType, read_body};
use crate::json_fields::read_text_field;
use railwright_base::{Reason, TargetKind};
use serde::Deserialize;
use serde_json::{Value, json};

/// The kind.
pub struct JsonInConfigMap;

/// The kind's word.
pub const NAME: &str = "json_in_configmap";
/// The attribute that says whether there is a text to edit.
const TEXT: &str = "text";

impl ResourceKind for JsonInConfigMap {
    fn name(&self) -> &'static str {
        NAME
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Kube
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "key").map(str::to_owned)
    }

    fn address_path(&self, body: &Value) -> Option<Vec<String>> {
        let body = read_body::<JsonInConfigMapBody>(body);
        let object = body.config_map();
        Some(vec![
            self.name().to_owned(),
            object.namespace?,
            object.name,
            body.key,
        ])
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<JsonInConfigMapBody>()
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["edits"]
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let objects = read_body::<JsonInConfigMapBody>(&resource.body).list_objects();
        let objects = objects.into_iter().map(KubernetesRead::Object);
        objects.map(Read::Kubernetes).collect()
    }

    /// Both are of others: neither is made nor deleted.
    fn changes(&self, resource: &DesiredResource, _removal: bool) -> Vec<(ObjectName, ApiVerb)> {
        let objects = read_body::<JsonInConfigMapBody>(&resource.body).list_objects();
        let objects = objects.into_iter();
        objects.map(|object| (object, ApiVerb::Patch)).collect()
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = read_body::<JsonInConfigMapBody>(&resource.body);
        match ConfigMapText::at(&body, answers) {
            Ok(look) => diff_configmap_text(&body, &look)
                .unwrap_or_else(|reason| build_refused_diff(&look, reason)),
            Err(ConfigMapTextError::Unknown(reason)) => {
                of_one(TEXT, Reading::is("a JSON map"), Reading::Unknown(reason))
            }
            Err(ConfigMapTextError::Absent { what, reason }) => {
                let mut diff = of_one(&what, Reading::is("present"), Reading::Absent);
                diff.wait_or_refuse(resource, &["edit_config_map", "mark_pod_template"], || {
                    reason.to_string()
                });
                diff
            }
        }
    }

    /// What stood in an object that was recreated since is what stood in that one.
    fn remembered(&self, first: &Value, now: &Value) -> Value {
        let [was, is] =
            [first, now].map(|before| PriorConfigMapText::deserialize(before).ok()?.uid);
        if undo::is_of_another(was.as_deref(), is.as_deref()) {
            now.clone()
        } else {
            first.clone()
        }
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        undo::plan_configmap_undo(last_applied, before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorConfigMapText::deserialize(before).is_ok()
    }
}

/// The key of a ConfigMap that a `kubernetes_object` declares as a whole, where it is the text of
/// this resource.
pub fn is_declared_whole(edited: &DesiredResource, object: &DesiredResource) -> bool {
    let Ok(manifest) = manifest::parse_manifest(&object.body) else {
        return false;
    };
    let edited = read_body::<JsonInConfigMapBody>(&edited.body);
    manifest::parse_object_name(&manifest).is_some_and(|object| object == edited.config_map())
        && manifest
            .pointer("/data")
            .is_some_and(|data| data.get(&edited.key).is_some())
}

/// Of one attribute alone.
fn of_one(name: &str, desired: Reading, actual: Reading) -> ResourceDiff {
    let mut diff = ResourceDiff::default();
    diff.attributes.insert(
        name.to_owned(),
        Attribute::in_plane(Plane::Persisted, desired, actual),
    );
    diff
}

/// A text that nothing can be done with is left alone.
fn build_refused_diff(look: &ConfigMapText, reason: Reason) -> ResourceDiff {
    let mut diff = ResourceDiff {
        refusal: Some(reason.into()),
        ..ResourceDiff::default()
    };
    let attribute = look.attribute(
        Reading::is("a JSON map that can be edited"),
        Reading::is("something else"),
    );
    diff.attributes.insert(TEXT.to_owned(), attribute);
    diff
}

fn diff_configmap_text(
    body: &JsonInConfigMapBody,
    look: &ConfigMapText,
) -> Result<ResourceDiff, Reason> {
    let mut diff = ResourceDiff::default();
    let (document, mut walk) = (look.document()?, JsonPartsDiff::default());
    for asked in body.list_desired_edits() {
        let (name, desired, actual) = walk
            .diff(&document, &asked)
            .map_err(|reason| look.says(&reason))?;
        diff.attributes
            .insert(name, look.attribute(desired, actual));
    }
    let before = PriorConfigMapText {
        parts: walk.before.clone(),
        uid: look.uid().map(str::to_owned),
    };
    diff.before = serde_json::to_value(before).unwrap_or_default();
    plan_edit_and_restart(body, look, &mut walk, &mut diff);
    for conflict in &body.conflicts {
        if parts::has_value_at_pointer(&document, &conflict.pointer, &conflict.value) {
            let attribute = look.attribute(Reading::Absent, Reading::Is(conflict.value.clone()));
            diff.attributes
                .insert(text::format_json_pointer(&conflict.pointer), attribute);
            diff.refusal = Some(conflict.says.clone());
        }
    }
    if look.is_immutable() && !walk.edits.is_empty() {
        diff.refusal = Some(format!(
            "{} is immutable: only its owner can make it anew",
            look.object
        ));
    }
    if diff.refusal.is_some() {
        diff.actions.clear();
    }
    Ok(diff)
}

/// What edits the text, and what starts its readers anew.
fn plan_edit_and_restart(
    body: &JsonInConfigMapBody,
    look: &ConfigMapText,
    walk: &mut JsonPartsDiff,
    diff: &mut ResourceDiff,
) {
    let desired = &json!(body.edits);
    let next = match (&look.reader, walk.edits.is_empty()) {
        (None, _) => None,
        (Some(_), true) => Some(
            look.mark_of_text()
                .map_or_else(|| mark::of_values(desired), str::to_owned),
        ),
        (Some(_), false) => Some(mark::of_edit(
            desired,
            &json!(walk.before),
            look.mark_of_template(),
        )),
    };
    if !walk.edits.is_empty() {
        diff.actions
            .push(look.edit(walk.edits.clone(), next.clone()));
    }
    let (Some(reader), Some(next)) = (&look.reader, next.filter(|_| !body.edits.is_empty())) else {
        return;
    };
    let actual = look.mark_of_template();
    let attribute = Attribute::in_plane(Plane::Running, of_mark(Some(&next)), of_mark(actual));
    diff.attributes.insert(reader.attribute(), attribute);
    if actual != Some(next.as_str()) {
        diff.pending = walk.edits.is_empty();
        record_reader_disruption(reader, diff);
        diff.actions.push(look.mark_template(reader, Some(next)));
    }
}

fn of_mark(mark: Option<&str>) -> Reading {
    mark.map_or(Reading::Absent, |mark| {
        Reading::is(format!("since edit {mark}"))
    })
}

fn record_reader_disruption(reader: &look::ConfigMapTextReader, diff: &mut ResourceDiff) {
    diff.disruption = Disruption::Restart;
    diff.interrupts = vec![match reader.waits_for_deletion() {
        true => format!(
            "pods of {} go on with what they have read until somebody deletes them (OnDelete)",
            reader.object
        ),
        false => format!("pods of {} start anew, and read it then", reader.object),
    }];
}

#[cfg(test)]
mod tests;
