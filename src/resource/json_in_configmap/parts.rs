//! Each part of the text against its wish: what differs, the edit that mends it, and what was there before.

use super::Reading;
use super::body::{Asked, Wanted};
use super::edit::{Edit, Held, held};
use super::text::{Document, shown};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A part as it was before our first change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Was {
    /// The value.
    Value {
        pointer: String,
        held: Held,
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
pub struct Walk {
    /// What mends them.
    pub edits: Vec<Edit>,
    /// What they were.
    pub before: Vec<Was>,
}

impl Walk {
    /// One part: its name, what is wanted, and what is there.
    pub fn judge(&mut self, document: &Document<'_>, asked: &Asked) -> Result<(String, Reading, Reading), String> {
        let pointer = asked.pointer.clone();
        let part = document.part(&pointer)?;
        let (now, up_to) = (held(document, &part)?, part.outermost(&pointer));
        let new = match &asked.wanted {
            Wanted::Value(value) => Held::Is(value.clone()),
            Wanted::Absent => Held::Absent,
            Wanted::Elements(elements) => return self.elements(pointer, elements, &now, up_to),
        };
        let (wanted, found) = readings(&new, &now);
        let out = (shown(&pointer), wanted, found);
        self.before.push(Was::Value { pointer: pointer.clone(), held: now.clone(), up_to });
        if now != new {
            self.edits.push(Edit::Value { pointer, old: now, new, up_to: None });
        }
        Ok(out)
    }

    fn elements(
        &mut self,
        pointer: String,
        wanted: &[Value],
        now: &Held,
        up_to: Option<String>,
    ) -> Result<(String, Reading, Reading), String> {
        let list = list(&pointer, now)?;
        let (there, added): (Vec<Value>, Vec<Value>) = wanted.iter().cloned().partition(|element| holds(&list, element));
        let listed = *now != Held::Absent;
        let name = format!("{} holds", shown(&pointer));
        match listed {
            true => self.edits.extend(added.iter().map(|element| element_edit(&pointer, element, true))),
            false => self.edits.push(Edit::Value {
                pointer: pointer.clone(),
                old: Held::Absent,
                new: Held::Is(Value::from(added.clone())),
                up_to: None,
            }),
        }
        self.before.push(Was::Elements { pointer, added, listed, up_to });
        Ok((name, Reading::is(wanted.to_vec()), some(there)))
    }

    /// A part as it was: its name, what is wanted again, and what is there.
    pub fn back(&mut self, document: &Document<'_>, was: &Was) -> Result<(String, Reading, Reading), String> {
        let part = document.part(was.pointer());
        match was {
            // Where no map leads to it there is nothing, as before.
            Was::Value { pointer, held: Held::Absent, .. } if part.is_err() => Ok((shown(pointer), Reading::Absent, Reading::Absent)),
            Was::Value { pointer, held: was, up_to } => {
                let now = held(document, &part?)?;
                if now != *was {
                    let up_to = up_to.clone().filter(|_| *was == Held::Absent);
                    self.edits.push(Edit::Value { pointer: pointer.clone(), old: now.clone(), new: was.clone(), up_to });
                }
                let (wanted, found) = readings(was, &now);
                Ok((shown(pointer), wanted, found))
            }
            Was::Elements { pointer, added, listed, up_to } => {
                let now = part.and_then(|part| held(document, &part)).unwrap_or(Held::Absent);
                let list = list(pointer, &now)?;
                let ours: Vec<Value> = added.iter().filter(|element| holds(&list, element)).cloned().collect();
                let (old, pointer) = (Held::Is(Value::from(list.clone())), pointer.clone());
                let name = format!("{} holds", shown(&pointer));
                match !listed && !ours.is_empty() && list.len() == ours.len() {
                    true => self.edits.push(Edit::Value { pointer, old, new: Held::Absent, up_to: up_to.clone() }),
                    false => self.edits.extend(ours.iter().map(|element| element_edit(&pointer, element, false))),
                }
                Ok((name, Reading::Absent, some(ours)))
            }
        }
    }
}

/// True where this value stands at the pointer.
pub fn stands(document: &Document<'_>, pointer: &str, value: &Value) -> bool {
    document.part(pointer).and_then(|part| held(document, &part)).is_ok_and(|now| now == Held::Is(value.clone()))
}

fn element_edit(pointer: &str, element: &Value, present: bool) -> Edit {
    Edit::Element { pointer: pointer.to_owned(), element: element.clone(), present }
}

fn list(pointer: &str, now: &Held) -> Result<Vec<Value>, String> {
    match now.value() {
        Some(Value::Array(list)) => Ok(list),
        Some(_) => Err(format!("`{}` is no list", shown(pointer))),
        None => Ok(Vec::new()),
    }
}

/// Whether a list has this element, however it is written there.
fn holds(list: &[Value], element: &Value) -> bool {
    let wanted = Held::Is(element.clone());
    list.iter().any(|one| Held::Is(one.clone()) == wanted)
}

/// What is wanted and what is there, which read alike where they are the same, and differ where they are not: numbers that differ behind
/// the digits that fit are told as they are written.
fn readings(wanted: &Held, found: &Held) -> (Reading, Reading) {
    let reading = |held: &Held| held.value().map_or(Reading::Absent, Reading::Is);
    let written = |held: &Held| held.json().map_or(Reading::Absent, Reading::is);
    match (reading(wanted), reading(found)) {
        (one, _) if wanted == found => (one.clone(), one),
        (one, other) if one == other => (written(wanted), written(found)),
        both => both,
    }
}

fn some(elements: Vec<Value>) -> Reading {
    if elements.is_empty() { Reading::Absent } else { Reading::is(elements) }
}
