//! Something that was asked for, with the three ways in which there can be no value: none of them is zero.

use serde::Serialize;

/// What is known of something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fact<T> {
    /// It is this.
    Is(T),
    /// It is known not to be there.
    Absent,
    /// The question has no meaning here: why.
    NotApplicable(String),
    /// Nobody can tell: why.
    Unknown(String),
}

impl<T> Fact<T> {
    /// The value, where there is one.
    pub fn value(&self) -> Option<&T> {
        if let Fact::Is(value) = self { Some(value) } else { None }
    }

    /// Why nobody can tell.
    pub fn why_unknown(&self) -> Option<&str> {
        if let Fact::Unknown(why) = self { Some(why) } else { None }
    }

    /// The same of something that follows from the value.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Fact::Is(value) => Fact::Is(of(value)),
            Fact::Absent => Fact::Absent,
            Fact::NotApplicable(why) => Fact::NotApplicable(why),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }
}
