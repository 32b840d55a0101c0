//! Why something is unknown, not possible or refused, in words for people.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;

/// Why something is unknown, not possible or refused: lower case, without a full stop, to stand
/// behind a colon. It may hold a target's own words. It is shown, put into a longer one or freed of
/// secrets, and never searched: what a decision needs is a variant beside it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Reason(String);

impl Reason {
    /// The words, to be shown.
    pub fn as_words(&self) -> &str {
        &self.0
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Self {
        Reason(words)
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Self {
        Reason(words.to_owned())
    }
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.0
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As a text is shown, so that what holds one reads as before in a failed test.
impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for Reason {}

/// A text, in place.
impl JsonSchema for Reason {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
