//! The three planes of an attribute, and the values that a reading can have.

use railwright_base::Reason;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a value lives. The same attribute can differ between them, and the difference is a
/// finding.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Plane {
    /// Written to disk: what the configuration says.
    Persisted,
    /// In effect now.
    Running,
    /// Written, waiting for a boot (a kernel command line, a firmware setting).
    NextBoot,
}

impl Plane {
    /// All planes, in the order in which they are shown.
    pub const ALL: [Plane; 3] = [Plane::Persisted, Plane::Running, Plane::NextBoot];

    /// The word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Plane::Persisted => "persisted",
            Plane::Running => "running",
            Plane::NextBoot => "next boot",
        }
    }
}

/// What a target reports about one attribute in one plane. The three ways of having no value are
/// different values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// A value.
    Is(Value),
    /// Looked, and there is none.
    Absent,
    /// The attribute does not apply here (a VF has no PFC), with the reason.
    NotApplicable(Reason),
    /// Could not be found out, with the reason (time-out, permission, tool absent, not read).
    Unknown(Reason),
}

/// A value, or that nothing is there.
impl From<Option<Value>> for Reading {
    fn from(value: Option<Value>) -> Self {
        match value {
            Some(value) => Reading::Is(value),
            None => Reading::Absent,
        }
    }
}

impl Reading {
    /// Shorthand for a value.
    pub fn is(value: impl Into<Value>) -> Self {
        Reading::Is(value.into())
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&Value> {
        match self {
            Reading::Is(value) => Some(value),
            _ => None,
        }
    }

    /// True when it could not be found out.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Reading::Unknown(_))
    }
}

/// One `T` for each plane that the kind covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planes<T> {
    /// The persisted plane.
    #[serde(skip_serializing_if = "Option::is_none", default = "default_to_none")]
    pub persisted: Option<T>,
    /// The running plane.
    #[serde(skip_serializing_if = "Option::is_none", default = "default_to_none")]
    pub running: Option<T>,
    /// The plane of the next boot.
    #[serde(skip_serializing_if = "Option::is_none", default = "default_to_none")]
    pub next_boot: Option<T>,
}

fn default_to_none<T>() -> Option<T> {
    None
}

impl<T> Default for Planes<T> {
    fn default() -> Self {
        Planes {
            persisted: None,
            running: None,
            next_boot: None,
        }
    }
}

impl<T> Planes<T> {
    /// The value of a plane.
    pub fn get(&self, plane: Plane) -> Option<&T> {
        match plane {
            Plane::Persisted => self.persisted.as_ref(),
            Plane::Running => self.running.as_ref(),
            Plane::NextBoot => self.next_boot.as_ref(),
        }
    }

    /// Sets the value of a plane.
    pub fn set(&mut self, plane: Plane, value: T) {
        match plane {
            Plane::Persisted => self.persisted = Some(value),
            Plane::Running => self.running = Some(value),
            Plane::NextBoot => self.next_boot = Some(value),
        }
    }

    /// The planes that have a value, with it.
    pub fn iter(&self) -> impl Iterator<Item = (Plane, &T)> {
        Plane::ALL
            .into_iter()
            .filter_map(|plane| self.get(plane).map(|value| (plane, value)))
    }
}
