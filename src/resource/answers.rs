//! What came back from one target: an answer for each read, by the read's key.

use super::{Read, rights};
use crate::base::text::one_line;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// How a read ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnswerStatus {
    /// The section ran to its end with this exit status (0 is not "true": the kind decides).
    Exit(i32),
    /// It ran past its time limit.
    TimedOut,
    /// The program ended or the connection broke before this section's end mark.
    CutOff,
    /// The output was longer than the limit; what is there is its beginning.
    TooLong,
    /// Only root may see it, and it was read as somebody else; the output says what was missing, a line each.
    Denied,
    /// The way by which the target is reached does not tell it; the output says why.
    NotOffered,
}

/// The answer to one read: bounded text, invalid UTF-8 replaced.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answer {
    /// How it ended.
    pub status: AnswerStatus,
    /// Standard output. Hostile: never print it unclean, never hand it to a shell unquoted.
    pub out: String,
}

/// All answers of one target, as recorded in an observation file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Answers {
    answers: BTreeMap<String, Answer>,
    #[serde(skip)]
    decoded: Decoded,
}

/// What large answers were decoded to, by their keys, so that hundreds of wishes do not each read the same configuration. It says
/// nothing that the answers do not say, so all are equal.
#[derive(Debug, Default)]
struct Decoded(Mutex<BTreeMap<String, Arc<dyn Any + Send + Sync>>>);

impl Clone for Decoded {
    fn clone(&self) -> Self {
        Decoded::default()
    }
}

impl PartialEq for Decoded {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Decoded {}

impl Hash for Decoded {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl Answers {
    /// What the answer to a read decodes to, by its exit status and text; decoded once. The error fits after "unknown:".
    pub fn decoded<T: Send + Sync + 'static>(
        &self,
        read: &Read,
        decode: impl FnOnce(i32, &str) -> Result<T, String>,
    ) -> Result<Arc<T>, String> {
        let key = read.key();
        let known = self.decoded.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(known) = known.and_then(|known| known.downcast::<Result<Arc<T>, String>>().ok()) {
            return known.as_ref().clone();
        }
        let made = self.output(read).and_then(|(code, out)| decode(code, out)).map(Arc::new);
        self.decoded.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::new(made.clone()));
        made
    }

    /// Adds an answer.
    pub fn insert(&mut self, key: impl Into<String>, answer: Answer) {
        self.decoded = Decoded::default();
        self.answers.insert(key.into(), answer);
    }

    /// Takes an answer out.
    pub fn remove(&mut self, read: &Read) -> Option<Answer> {
        self.decoded = Decoded::default();
        self.answers.remove(&read.key())
    }

    /// Changes the text of every answer.
    pub fn rewrite(&mut self, change: impl Fn(&str) -> String) {
        self.decoded = Decoded::default();
        self.answers.values_mut().for_each(|answer| answer.out = change(&answer.out));
    }

    /// Takes over all answers of another reading of the same target; the other's win.
    pub fn merge(&mut self, other: Answers) {
        self.decoded = Decoded::default();
        self.answers.extend(other.answers);
    }

    /// The raw answer to a read, if it was asked.
    pub fn get(&self, read: &Read) -> Option<&Answer> {
        self.answers.get(&read.key())
    }

    /// The output of a section that ran to its end, with its exit status; else the reason why it is unknown,
    /// in words that fit after "unknown:".
    pub fn output(&self, read: &Read) -> Result<(i32, &str), String> {
        match self.get(read) {
            None => Err("it was not read".to_owned()),
            Some(Answer { status: AnswerStatus::Exit(code), out }) => Ok((*code, out)),
            Some(Answer { status: AnswerStatus::TimedOut, .. }) => Err("the read ran past its time limit".to_owned()),
            Some(Answer { status: AnswerStatus::CutOff, .. }) => Err("the connection ended before the answer".to_owned()),
            Some(Answer { status: AnswerStatus::Denied, out }) if matches!(read, Read::Kubernetes(_)) => Err(rights::of_role(out)),
            Some(Answer { status: AnswerStatus::Denied, out }) => Err(rights::reason(out)),
            Some(Answer { status: AnswerStatus::NotOffered, out }) => Err(one_line(out, 300)),
            Some(Answer { status: AnswerStatus::TooLong, .. }) => Err("the answer was longer than the limit".to_owned()),
        }
    }

    /// All answers with their keys, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Answer)> {
        self.answers.iter().map(|(key, answer)| (key.as_str(), answer))
    }

    /// The answer to the read with this key.
    pub fn by_key(&self, key: &str) -> Option<&Answer> {
        self.answers.get(key)
    }

    /// All keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.answers.keys().map(String::as_str)
    }

    /// True when nothing was answered.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }
}
