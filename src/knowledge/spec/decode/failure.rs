//! Why a value could not be decoded, and where: kept as a value, so that the message is written
//! once and well.

use crate::spec::yaml::{NodeId, YamlDocument};
use railwright_base::Diagnostic;
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use serde::de;
use std::fmt;

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeProblem {
    /// A key that nobody reads.
    UnknownKey {
        key: String,
        known: &'static [&'static str],
    },
    /// A word that is none of those allowed.
    UnknownWord {
        word: String,
        known: &'static [&'static str],
    },
    /// A key that has to be there.
    Missing { key: &'static str },
    /// A value of another sort.
    WrongType { found: String, expected: String },
    /// A key without a value.
    Nothing { expected: String },
    /// `yes`, `off` and the like.
    OldBool { word: String },
    /// Said by a type of the model itself.
    Other(String),
}

/// A problem with its place; boxed, because serde carries it through every return value.
#[derive(Debug, Clone)]
pub struct DecodeError(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    problem: DecodeProblem,
    node: Option<NodeId>,
    key: Option<NodeId>,
    entry: Option<NodeId>,
    through: Vec<NodeId>,
}

impl DecodeError {
    /// A problem whose place is not known yet.
    pub fn new(problem: DecodeProblem) -> Self {
        DecodeError(Box::new(Inner {
            problem,
            node: None,
            key: None,
            entry: None,
            through: Vec::new(),
        }))
    }

    /// Sets the place, unless a closer one is known.
    pub(super) fn at(mut self, node: NodeId) -> Self {
        self.0.node.get_or_insert(node);
        self
    }

    /// Sets the key whose value it is, unless a closer one is known.
    pub(super) fn under(mut self, key: NodeId) -> Self {
        self.0.key.get_or_insert(key);
        self
    }

    /// Sets the entry or item that may be masked to read on, unless a closer one is known.
    pub(super) fn in_entry(mut self, entry: NodeId) -> Self {
        self.0.entry.get_or_insert(entry);
        self
    }

    /// Notes an alias on the way.
    pub(super) fn through(mut self, alias: NodeId) -> Self {
        if self.0.through.last() != Some(&alias) {
            self.0.through.push(alias);
        }
        self
    }

    pub(super) fn entry(&self) -> Option<NodeId> {
        self.0.entry
    }

    /// What is wrong.
    pub fn problem(&self) -> &DecodeProblem {
        &self.0.problem
    }

    /// The value or key that is wrong; for a missing key the mapping.
    pub fn node(&self) -> Option<NodeId> {
        self.0.node
    }

    /// As it is shown.
    pub fn diagnostic(&self, document: &YamlDocument) -> Diagnostic {
        let key = self
            .0
            .key
            .map(|key| format!("`{}`", one_line(document.text(key), 60)));
        let subject = key.as_deref().unwrap_or("this value");
        let (code, message, label, fix) = self.0.problem.words(subject);
        let node = self.0.node.unwrap_or(0);
        // An empty value has no bytes to point at; its key has.
        let caret = match (&self.0.problem, self.0.key) {
            (DecodeProblem::Nothing { .. }, Some(key)) if document.span(node).is_empty() => {
                document.caret(key)
            }
            _ => document.caret(document.resolved(node)),
        };
        let name = document.source().name();
        let mut diagnostic = Diagnostic::error(code, message).at(name, caret, label);
        for alias in &self.0.through {
            diagnostic = diagnostic.at(name, document.span(*alias), "brought in here");
        }
        match fix {
            Some(fix) => diagnostic.next(fix),
            None => diagnostic,
        }
    }
}

impl DecodeProblem {
    /// Code, message, label at the caret, and what to do.
    fn words(&self, subject: &str) -> (&'static str, String, String, Option<String>) {
        match self {
            DecodeProblem::UnknownKey { key, known } => {
                let key = one_line(key, 60);
                let label = suggest_word(&key, known, "nothing reads this");
                (
                    "RW0105",
                    format!("unknown key `{key}`"),
                    label,
                    Some(format!("keys that can stand here: {}", known.join(", "))),
                )
            }
            DecodeProblem::UnknownWord { word, known } => {
                let word = one_line(word, 60);
                let label = suggest_word(&word, known, "not a known word");
                (
                    "RW0108",
                    format!("`{word}` is no value for {subject}"),
                    label,
                    Some(format!("write one of {}", known.join(", "))),
                )
            }
            DecodeProblem::Missing { key } => (
                "RW0107",
                format!("the key `{key}` is missing"),
                "in this mapping".to_owned(),
                Some(format!("add `{key}:`")),
            ),
            DecodeProblem::WrongType { found, expected } => (
                "RW0106",
                format!("{subject} wants {expected}"),
                format!("found {found}"),
                None,
            ),
            DecodeProblem::Nothing { expected } => (
                "RW0106",
                format!("{subject} has no value"),
                format!("wants {expected}"),
                Some("write the value, or remove the key".to_owned()),
            ),
            DecodeProblem::OldBool { word } => {
                let meant = matches!(
                    word.to_ascii_lowercase().as_str(),
                    "yes" | "on" | "y" | "true"
                );
                let fix = format!("write `{meant}`; readers of YAML disagree about `{word}`");
                (
                    "RW0106",
                    format!("{subject} wants `true` or `false`"),
                    format!("found `{word}`"),
                    Some(fix),
                )
            }
            DecodeProblem::Other(text) => ("RW0106", one_line(text, 200), "here".to_owned(), None),
        }
    }
}

fn suggest_word(word: &str, known: &[&str], otherwise: &str) -> String {
    match find_nearest_word(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.problem.words("the value").1)
    }
}

impl std::error::Error for DecodeError {}

impl de::Error for DecodeError {
    fn custom<T: fmt::Display>(text: T) -> Self {
        DecodeError::new(DecodeProblem::Other(text.to_string()))
    }
    fn invalid_type(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        DecodeError::new(DecodeProblem::WrongType {
            found: found.to_string(),
            expected: expected.to_string(),
        })
    }
    fn invalid_value(found: de::Unexpected<'_>, expected: &dyn de::Expected) -> Self {
        de::Error::invalid_type(found, expected)
    }
    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        DecodeError::new(DecodeProblem::UnknownKey {
            key: key.to_owned(),
            known,
        })
    }
    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        DecodeError::new(DecodeProblem::UnknownWord {
            word: word.to_owned(),
            known,
        })
    }
    fn missing_field(key: &'static str) -> Self {
        DecodeError::new(DecodeProblem::Missing { key })
    }
}
