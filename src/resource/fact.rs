//! Something that was asked for, with the three ways in which there can be no value: none of them
//! is zero.

use super::Reading;
use railwright_base::Reason;
use serde::Serialize;
use serde_json::Value;

/// What is known of something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// It is this.
    Is(T),
    /// It is known not to be there.
    Absent,
    /// The fact does not apply here: why.
    NotApplicable(Reason),
    /// Nobody can tell: why.
    Unknown(Reason),
}

impl<T> Fact<T> {
    /// The value, where there is one.
    pub fn value(&self) -> Option<&T> {
        if let Fact::Is(value) = self {
            Some(value)
        } else {
            None
        }
    }

    /// Why nobody can tell.
    pub fn why_unknown(&self) -> Option<&Reason> {
        if let Fact::Unknown(why) = self {
            Some(why)
        } else {
            None
        }
    }

    /// What follows from the value; without one, the reason why there is none stays.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Is(value) => Fact::Is(of(value)),
            Fact::Absent => Fact::Absent,
            Fact::NotApplicable(why) => Fact::NotApplicable(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// What follows from the value, which may be no value either.
    pub fn and_then<U>(self, of: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self.map(of) {
            Fact::Is(fact) => fact,
            Fact::Absent => Fact::Absent,
            Fact::NotApplicable(why) => Fact::NotApplicable(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }

    /// Puts a default in the place of what is known not to be there.
    pub fn or(self, default: T) -> Fact<T> {
        if let Fact::Absent = self {
            Fact::Is(default)
        } else {
            self
        }
    }
}

impl<T> From<Option<T>> for Fact<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Fact::Absent, Fact::Is)
    }
}

impl<T: Into<Value>> From<Fact<T>> for Reading {
    fn from(fact: Fact<T>) -> Self {
        match fact {
            Fact::Is(value) => Reading::is(value),
            Fact::Absent => Reading::Absent,
            Fact::NotApplicable(why) => Reading::NotApplicable(why),
            Fact::Unknown(why) => Reading::Unknown(why),
        }
    }
}
