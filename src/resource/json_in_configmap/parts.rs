//! Each part of the text against what is desired: what differs, the edit that fixes it, and what
//! was there before.

use super::Reading;
use super::body::{DesiredJsonEdit, DesiredJsonValue};
use super::edit::{JsonEdit, JsonPointerValue, read_pointer_value};
use super::text::{JsonTextDocument, format_json_pointer};
use railwright_base::Reason;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What was there before our first change.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorConfigMapText {
    pub parts: Vec<Was>,
    /// Of the ConfigMap.
    pub uid: Option<String>,
}

/// A part as it was before our first change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case", deny_unknown_fields)]
pub enum Was {
    /// The value.
    Value {
        pointer: String,
        held: JsonPointerValue,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up_to: Option<String>,
    },
    /// The elements of a list that were not in it.
    Elements {
        pointer: String,
        added: Vec<Value>,
        /// There was a list.
        listed: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up_to: Option<String>,
    },
}

impl Was {
    /// Where it is.
    pub fn pointer(&self) -> &str {
        let (Was::Value { pointer, .. } | Was::Elements { pointer, .. }) = self;
        pointer
    }
}

/// All parts of one text.
#[derive(Default)]
pub struct JsonPartsDiff {
    /// What fixes them.
    pub edits: Vec<JsonEdit>,
    /// What they were.
    pub before: Vec<Was>,
}

impl JsonPartsDiff {
    /// One part: its name, what is desired, and what is there.
    pub fn diff(
        &mut self,
        document: &JsonTextDocument<'_>,
        asked: &DesiredJsonEdit,
    ) -> Result<(String, Reading, Reading), Reason> {
        let pointer = asked.pointer.clone();
        let part = document.part(&pointer)?;
        let (now, up_to) = (
            read_pointer_value(document, &part)?,
            part.outermost(&pointer),
        );
        let new = match &asked.desired {
            DesiredJsonValue::Value(value) => JsonPointerValue::Is(value.clone()),
            DesiredJsonValue::Absent => JsonPointerValue::Absent,
            DesiredJsonValue::Elements(elements) => {
                return self.elements(pointer, elements, &now, up_to);
            }
        };
        let (desired, actual) = build_reading_pair(&new, &now);
        let out = (format_json_pointer(&pointer), desired, actual);
        self.before.push(Was::Value {
            pointer: pointer.clone(),
            held: now.clone(),
            up_to,
        });
        if now != new {
            self.edits.push(JsonEdit::Value {
                pointer,
                old: now,
                new,
                up_to: None,
            });
        }
        Ok(out)
    }

    fn elements(
        &mut self,
        pointer: String,
        desired: &[Value],
        now: &JsonPointerValue,
        up_to: Option<String>,
    ) -> Result<(String, Reading, Reading), Reason> {
        let list = parse_list_value(&pointer, now)?;
        let (there, added): (Vec<Value>, Vec<Value>) = desired
            .iter()
            .cloned()
            .partition(|element| has_element(&list, element));
        let listed = *now != JsonPointerValue::Absent;
        let name = format!("{} holds", format_json_pointer(&pointer));
        match listed {
            true => self.edits.extend(
                added
                    .iter()
                    .map(|element| element_edit(&pointer, element, true)),
            ),
            false => self.edits.push(JsonEdit::Value {
                pointer: pointer.clone(),
                old: JsonPointerValue::Absent,
                new: JsonPointerValue::Is(Value::from(added.clone())),
                up_to: None,
            }),
        }
        self.before.push(Was::Elements {
            pointer,
            added,
            listed,
            up_to,
        });
        Ok((
            name,
            Reading::is(desired.to_vec()),
            reading_from_elements(there),
        ))
    }

    /// A part as it was: its name, what is desired again, and what is there.
    pub fn back(
        &mut self,
        document: &JsonTextDocument<'_>,
        was: &Was,
    ) -> Result<(String, Reading, Reading), Reason> {
        let part = document.part(was.pointer());
        match was {
            // Where no map leads to it there is nothing, as before.
            Was::Value {
                pointer,
                held: JsonPointerValue::Absent,
                ..
            } if part.is_err() => {
                let name = format_json_pointer(pointer);
                Ok((name, Reading::Absent, Reading::Absent))
            }
            Was::Value {
                pointer,
                held: was,
                up_to,
            } => {
                let now = read_pointer_value(document, &part?)?;
                let (desired, actual) = build_reading_pair(was, &now);
                if now != *was {
                    self.restore_value(pointer, now, was, up_to);
                }
                Ok((format_json_pointer(pointer), desired, actual))
            }
            Was::Elements {
                pointer,
                added,
                listed,
                up_to,
            } => {
                let now = part
                    .and_then(|part| read_pointer_value(document, &part))
                    .unwrap_or(JsonPointerValue::Absent);
                let list = parse_list_value(pointer, &now)?;
                let ours: Vec<Value> = added
                    .iter()
                    .filter(|element| has_element(&list, element))
                    .cloned()
                    .collect();
                if !listed && !ours.is_empty() && list.len() == ours.len() {
                    let old = JsonPointerValue::Is(Value::from(list));
                    self.restore_value(pointer, old, &JsonPointerValue::Absent, up_to);
                } else {
                    self.remove_elements(pointer, &ours);
                }
                let name = format!("{} holds", format_json_pointer(pointer));
                Ok((name, Reading::Absent, reading_from_elements(ours)))
            }
        }
    }

    /// `up_to`: the outermost map that goes along where nothing stood at the pointer.
    fn restore_value(
        &mut self,
        pointer: &str,
        old: JsonPointerValue,
        new: &JsonPointerValue,
        up_to: &Option<String>,
    ) {
        self.edits.push(JsonEdit::Value {
            pointer: pointer.to_owned(),
            old,
            new: new.clone(),
            up_to: up_to.clone().filter(|_| *new == JsonPointerValue::Absent),
        });
    }

    fn remove_elements(&mut self, pointer: &str, elements: &[Value]) {
        let edits = elements
            .iter()
            .map(|element| element_edit(pointer, element, false));
        self.edits.extend(edits);
    }
}

/// True where this value stands at the pointer.
pub fn has_value_at_pointer(document: &JsonTextDocument<'_>, pointer: &str, value: &Value) -> bool {
    document
        .part(pointer)
        .and_then(|part| read_pointer_value(document, &part))
        .is_ok_and(|now| now == JsonPointerValue::Is(value.clone()))
}

fn element_edit(pointer: &str, element: &Value, present: bool) -> JsonEdit {
    JsonEdit::Element {
        pointer: pointer.to_owned(),
        element: element.clone(),
        present,
    }
}

fn parse_list_value(pointer: &str, now: &JsonPointerValue) -> Result<Vec<Value>, Reason> {
    match now.value() {
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(format!("`{}` is no list", format_json_pointer(pointer)).into()),
        None => Ok(Vec::new()),
    }
}

/// Whether a list has this element, however it is written there.
fn has_element(list: &[Value], element: &Value) -> bool {
    let desired = JsonPointerValue::Is(element.clone());
    list.iter()
        .any(|one| JsonPointerValue::Is(one.clone()) == desired)
}

/// What is desired and what is there, whose readings are equal exactly where the values are:
/// numbers that differ behind the digits that fit are shown as they are written.
fn build_reading_pair(desired: &JsonPointerValue, actual: &JsonPointerValue) -> (Reading, Reading) {
    let [first, second] = [desired, actual].map(|held| Reading::from(held.value()));
    if desired == actual {
        return (first.clone(), first);
    }
    if first != second {
        return (first, second);
    }
    let [first, second] =
        [desired, actual].map(|held| held.json().map_or(Reading::Absent, Reading::is));
    (first, second)
}

fn reading_from_elements(elements: Vec<Value>) -> Reading {
    if elements.is_empty() {
        Reading::Absent
    } else {
        Reading::is(elements)
    }
}
