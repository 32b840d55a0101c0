//! What the server says of the ConfigMap, and of the workload that reads it.

use super::edit::Edit;
use super::mark::{self, Mark, OF_OBJECT, OF_TEMPLATE};
use super::text::Document;
use super::{Action, Answers, Attribute, Plane, Read, Reading, TEXT, Wish, body};
use crate::kubernetes_object::looks::{Live, looked_at};
use crate::kubernetes_object::ownership::{MANAGER, holders};
use crate::kubernetes_object::paths::Step;
use crate::kubernetes_object::precondition::ObjectPrecondition;
use crate::kubernetes_object::request::{KubernetesRead, ObjectName};
use railwright_base::text::one_line;
use serde_json::Value;

/// Nothing to compare with.
pub enum Trouble {
    /// It could not be found out.
    Unknown(String),
    /// The ConfigMap, its text or the workload is not there.
    Absent {
        /// Which of them.
        what: String,
        reason: String,
    },
}

/// The text, and what reads it.
pub struct Look {
    /// The ConfigMap.
    pub object: ObjectName,
    key: String,
    live: Value,
    /// The workload, where the wish names one.
    pub reader: Option<Reader>,
}

/// What reads the text at its start.
pub struct Reader {
    /// The workload.
    pub object: ObjectName,
    live: Value,
}

impl Look {
    /// Everything has to be there.
    pub fn at(wish: &Wish, answers: &Answers) -> Result<Self, Trouble> {
        let look = Look::at_text(wish, answers)?;
        match (body::workload(&wish.body), &look.reader) {
            (Some(workload), None) => Err(absent(&workload, "nothing would read the edit")),
            _ => Ok(look),
        }
    }

    /// The text has to be there; what read it may be gone.
    pub fn at_text(wish: &Wish, answers: &Answers) -> Result<Self, Trouble> {
        let (Some(object), Some(key)) = (body::config_map(&wish.body), wish.text("key")) else {
            return Err(Trouble::Unknown("the wish names no ConfigMap".to_owned()));
        };
        let Some(live) = found(&object, answers)? else { return Err(absent(&object, "there is nothing to edit")) };
        if live.pointer("/data").and_then(|data| data.get(key)).and_then(Value::as_str).is_none() {
            return Err(Trouble::Absent { what: TEXT.to_owned(), reason: format!("{object} has no text `{key}`") });
        }
        let reader = match body::workload(&wish.body) {
            None => None,
            Some(workload) => found(&workload, answers)?.map(|live| Reader { object: workload, live }),
        };
        Ok(Look { object, key: key.to_owned(), live, reader })
    }

    /// The text, where it is JSON.
    pub fn document(&self) -> Result<Document<'_>, String> {
        let text = self.live.pointer("/data").and_then(|data| data.get(&self.key)).and_then(Value::as_str);
        Document::of(text.unwrap_or_default()).map_err(|reason| self.says(&reason))
    }

    /// A reason with the place that it is about.
    pub fn says(&self, reason: &str) -> String {
        format!("`{}` of {}: {}; nothing of it is touched", self.key, self.object, one_line(reason, 200))
    }

    /// A part of the text, with who wrote the text last.
    pub fn attribute(&self, wanted: Reading, found: Reading) -> Attribute {
        let path = ["data", &self.key].map(|name| Step::Field(name.to_owned()));
        let holder = holders(&self.live, &path).into_iter().find(|holder| holder.manager != MANAGER);
        let by = holder.map(|holder| format!("the text was {}", holder.told()));
        Attribute { by, ..Attribute::in_plane(Plane::Persisted, wanted, found) }
    }

    /// The server's own name for this very object.
    pub fn uid(&self) -> Option<&str> {
        self.live.pointer("/metadata/uid").and_then(Value::as_str)
    }

    /// The server would refuse every change.
    pub fn is_immutable(&self) -> bool {
        self.live.get("immutable").and_then(Value::as_bool) == Some(true)
    }

    /// The mark that the last edit left.
    pub fn mark_of_text(&self) -> Option<&str> {
        mark::borne(&self.live, OF_OBJECT, &self.mark())
    }

    /// The mark of the edit that the pods have read.
    pub fn mark_of_template(&self) -> Option<&str> {
        mark::borne(&self.reader.as_ref()?.live, OF_TEMPLATE, &self.mark())
    }

    fn mark(&self) -> String {
        mark::name(&self.object, &self.key)
    }

    /// The edits, with the mark that they leave where something reads the text.
    pub fn edit(&self, edits: Vec<Edit>, value: Option<String>) -> Action {
        let is_marked = value.is_some() || self.mark_of_text().is_some();
        let mark = is_marked.then(|| Mark { name: self.mark(), value });
        let precondition = ObjectPrecondition::of(&self.live);
        Action::EditConfigMap { object: self.object.clone(), precondition, key: self.key.clone(), edits, mark }
    }

    /// What starts the pods anew.
    pub fn mark_template(&self, reader: &Reader, value: Option<String>) -> Action {
        let (object, precondition) = (reader.object.clone(), ObjectPrecondition::of(&reader.live));
        Action::MarkPodTemplate { object, precondition, mark: Mark { name: self.mark(), value } }
    }
}

impl Reader {
    /// The attribute that says which edit its pods have read.
    pub fn attribute(&self) -> String {
        format!("restart of {}", self.object)
    }

    /// Its controller replaces no pod by itself.
    pub fn waits_for_deletion(&self) -> bool {
        self.live.pointer("/spec/updateStrategy/type").and_then(Value::as_str) == Some("OnDelete")
    }
}

fn absent(object: &ObjectName, effect: &str) -> Trouble {
    Trouble::Absent { what: object.to_string(), reason: format!("{object} is not there: {effect}") }
}

fn found(object: &ObjectName, answers: &Answers) -> Result<Option<Value>, Trouble> {
    match looked_at(&Read::Kubernetes(KubernetesRead::Object(object.clone())), answers) {
        Live::Is(live) => Ok(Some(live)),
        Live::Absent => Ok(None),
        Live::Unknown(reason) => Err(Trouble::Unknown(reason)),
    }
}
