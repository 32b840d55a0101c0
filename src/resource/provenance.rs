//! How an attribute came to be as it is, as far as that is known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Who made an attribute so, or how it was found out, each with the words for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Somebody else set it.
    SetBy {
        /// Who, and when.
        words: String,
        /// We wrote to the same object in the same second: the times do not say whose came later.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        with_ours: bool,
    },
    /// The server gave no preview of it: why.
    NotPreviewed(String),
    /// Anything else that is known of it.
    Note(String),
}

impl Provenance {
    /// Somebody else set it, maybe in the second in which we wrote to the same object. `time` is
    /// empty where the server has none of it.
    pub fn set_by(who: &str, time: &str, with_ours: bool) -> Self {
        let words = match time {
            "" => format!("set by {who}"),
            time => format!("set by {who} at {time}"),
        };
        Provenance::SetBy { words, with_ours }
    }

    /// The server gave no preview of it.
    pub fn not_previewed(why: impl fmt::Display) -> Self {
        Provenance::NotPreviewed(format!("not previewed: {why}"))
    }

    /// Whether it is there could not be read.
    pub fn presence_unknown(why: impl fmt::Display) -> Self {
        Provenance::Note(format!("whether it is there is not known: {why}"))
    }

    /// The words for people.
    pub fn words(&self) -> &str {
        let (Provenance::SetBy { words, .. }
        | Provenance::NotPreviewed(words)
        | Provenance::Note(words)) = self;
        words
    }

    /// With other words for it.
    pub(crate) fn in_words(mut self, words: String) -> Self {
        *self.words_mut() = words;
        self
    }

    pub(crate) fn words_mut(&mut self) -> &mut String {
        let (Provenance::SetBy { words, .. }
        | Provenance::NotPreviewed(words)
        | Provenance::Note(words)) = self;
        words
    }
}
