//! How an attribute came to be as it is, as far as that is known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who made an attribute so, or how it was found out, each with the words for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Somebody else set it: who, and when.
    SetBy(String),
    /// The server did not say what it would make of it: why.
    NotPreviewed(String),
    /// Anything else that is known of it.
    Note(String),
}

impl Provenance {
    /// Somebody else set it.
    pub fn set_by(who: &str, time: &str) -> Self {
        Provenance::SetBy(format!("set by {who} at {time}"))
    }

    /// The server did not say what it would make of it.
    pub fn not_previewed(why: impl fmt::Display) -> Self {
        Provenance::NotPreviewed(format!("not previewed: {why}"))
    }

    /// Whether it is there could not be read.
    pub fn presence_unknown(why: impl fmt::Display) -> Self {
        Provenance::Note(format!("whether it is there is not known: {why}"))
    }

    /// The words for people.
    pub fn words(&self) -> &str {
        let (Provenance::SetBy(words) | Provenance::NotPreviewed(words) | Provenance::Note(words)) =
            self;
        words
    }

    pub(crate) fn words_mut(&mut self) -> &mut String {
        let (Provenance::SetBy(words) | Provenance::NotPreviewed(words) | Provenance::Note(words)) =
            self;
        words
    }
}
