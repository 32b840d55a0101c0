//! What the server says of the ConfigMap, and of the workload that reads it.

use super::body::JsonInConfigMapBody;
use super::edit::JsonEdit;
use super::mark::{self, OF_OBJECT, OF_TEMPLATE, RestartMark};
use super::text::JsonTextDocument;
use super::{Action, Attribute, Plane, Read, ReadResults, Reading, TEXT};
use crate::json_fields::{read_flag_field, read_text_at};
use crate::kubernetes_object::looks::{LiveObject, looked_at};
use crate::kubernetes_object::ownership::{MANAGER, find_field_managers};
use crate::kubernetes_object::paths::FieldPathStep;
use crate::kubernetes_object::precondition::ObjectPrecondition;
use crate::kubernetes_object::request::{KubernetesRead, ObjectName};
use railwright_base::Reason;
use railwright_base::text::one_line;
use serde_json::Value;

/// Nothing to compare with.
pub enum ConfigMapTextError {
    /// It could not be found out.
    Unknown(Reason),
    /// The ConfigMap, its text or the workload is not there.
    Absent {
        /// Which of them.
        what: String,
        reason: Reason,
    },
}

/// The text, and what reads it.
pub struct ConfigMapText {
    /// The ConfigMap.
    pub object: ObjectName,
    key: String,
    live: Value,
    /// The workload, where the resource names one.
    pub reader: Option<ConfigMapTextReader>,
}

/// What reads the text at its start.
pub struct ConfigMapTextReader {
    /// The workload.
    pub object: ObjectName,
    live: Value,
}

impl ConfigMapText {
    /// Everything has to be there.
    pub fn at(
        body: &JsonInConfigMapBody,
        answers: &ReadResults,
    ) -> Result<Self, ConfigMapTextError> {
        let look = ConfigMapText::at_text(body, answers)?;
        match (body.reader_workload(), &look.reader) {
            (Some(workload), None) => {
                Err(new_absent_error(&workload, "nothing would read the edit"))
            }
            _ => Ok(look),
        }
    }

    /// The text has to be there; what read it may be gone.
    pub fn at_text(
        body: &JsonInConfigMapBody,
        answers: &ReadResults,
    ) -> Result<Self, ConfigMapTextError> {
        let (object, key) = (body.config_map(), &body.key);
        let Some(live) = read_live_object(&object, answers)? else {
            return Err(new_absent_error(&object, "there is nothing to edit"));
        };
        if live
            .pointer("/data")
            .and_then(|data| data.get(key))
            .and_then(Value::as_str)
            .is_none()
        {
            return Err(ConfigMapTextError::Absent {
                what: TEXT.to_owned(),
                reason: format!("{object} has no text `{key}`").into(),
            });
        }
        let reader = match body.reader_workload() {
            None => None,
            Some(workload) => {
                read_live_object(&workload, answers)?.map(|live| ConfigMapTextReader {
                    object: workload,
                    live,
                })
            }
        };
        Ok(ConfigMapText {
            object,
            key: key.clone(),
            live,
            reader,
        })
    }

    /// The text, where it is JSON.
    pub fn document(&self) -> Result<JsonTextDocument<'_>, Reason> {
        let text = self
            .live
            .pointer("/data")
            .and_then(|data| data.get(&self.key))
            .and_then(Value::as_str);
        JsonTextDocument::of(text.unwrap_or_default()).map_err(|reason| self.says(&reason))
    }

    /// A reason with the place that it is about.
    pub fn says(&self, reason: &Reason) -> Reason {
        format!(
            "`{}` of {}: {}; nothing of it is touched",
            self.key,
            self.object,
            one_line(reason.as_words(), 200)
        )
        .into()
    }

    /// A part of the text, with who wrote the text last.
    pub fn attribute(&self, desired: Reading, actual: Reading) -> Attribute {
        let path = ["data", &self.key].map(|name| FieldPathStep::Field(name.to_owned()));
        let holder = find_field_managers(&self.live, &path)
            .into_iter()
            .find(|holder| holder.manager != MANAGER);
        let by = holder.map(|holder| {
            let by = holder.provenance();
            let words = format!("the text was {}", by.words());
            by.in_words(words)
        });
        Attribute {
            by,
            ..Attribute::in_plane(Plane::Persisted, desired, actual)
        }
    }

    /// The server's own name for this very object.
    pub fn uid(&self) -> Option<&str> {
        read_text_at(&self.live, "/metadata/uid")
    }

    /// The server would refuse every change.
    pub fn is_immutable(&self) -> bool {
        read_flag_field(&self.live, "immutable") == Some(true)
    }

    /// The mark that the last edit left.
    pub fn mark_of_text(&self) -> Option<&str> {
        mark::find_mark_value(&self.live, OF_OBJECT, &self.mark())
    }

    /// The mark of the edit that the pods have read.
    pub fn mark_of_template(&self) -> Option<&str> {
        mark::find_mark_value(&self.reader.as_ref()?.live, OF_TEMPLATE, &self.mark())
    }

    fn mark(&self) -> String {
        mark::build_mark_name(&self.object, &self.key)
    }

    /// The edits, with the mark that they leave where something reads the text.
    pub fn edit(&self, edits: Vec<JsonEdit>, value: Option<String>) -> Action {
        let is_marked = value.is_some() || self.mark_of_text().is_some();
        let mark = is_marked.then(|| RestartMark {
            name: self.mark(),
            value,
        });
        let precondition = ObjectPrecondition::of(&self.live);
        Action::EditConfigMap {
            object: self.object.clone(),
            precondition,
            key: self.key.clone(),
            edits,
            mark,
        }
    }

    /// What starts the pods anew.
    pub fn mark_template(&self, reader: &ConfigMapTextReader, value: Option<String>) -> Action {
        let (object, precondition) = (reader.object.clone(), ObjectPrecondition::of(&reader.live));
        Action::MarkPodTemplate {
            object,
            precondition,
            mark: RestartMark {
                name: self.mark(),
                value,
            },
        }
    }
}

impl ConfigMapTextReader {
    /// The attribute that says which edit its pods have read.
    pub fn attribute(&self) -> String {
        format!("restart of {}", self.object)
    }

    /// Its controller replaces no pod by itself.
    pub fn waits_for_deletion(&self) -> bool {
        read_text_at(&self.live, "/spec/updateStrategy/type") == Some("OnDelete")
    }
}

fn new_absent_error(object: &ObjectName, effect: &str) -> ConfigMapTextError {
    ConfigMapTextError::Absent {
        what: object.to_string(),
        reason: format!("{object} is not there: {effect}").into(),
    }
}

fn read_live_object(
    object: &ObjectName,
    answers: &ReadResults,
) -> Result<Option<Value>, ConfigMapTextError> {
    match looked_at(
        &Read::Kubernetes(KubernetesRead::Object(object.clone())),
        answers,
    ) {
        LiveObject::Is(live) => Ok(Some(live)),
        LiveObject::Absent => Ok(None),
        LiveObject::Unknown(reason) => Err(ConfigMapTextError::Unknown(reason)),
    }
}
