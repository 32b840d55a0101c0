//! What came back from one target: an answer for each read, by the read's key.

use super::file::sealed;
use super::{Read, rights};
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::text::one_line;
use railwright_base::{Reason, Redaction};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock};

/// How a read ended.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
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
    /// Only root may see it, and it was read as somebody else; the output says what was missing, a
    /// line each.
    Denied,
    /// The way by which the target is reached does not report it; the output says why.
    NotOffered,
}

/// The answer to one read: bounded text, invalid UTF-8 replaced.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct ReadResult {
    /// How it ended.
    pub status: AnswerStatus,
    /// Standard output. Hostile: never print it unclean, never hand it to a shell unquoted.
    pub out: String,
}

/// All answers of one target, as recorded in an observation file.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct ReadResults {
    answers: BTreeMap<String, ReadResult>,
    #[serde(skip)]
    decoded: DecodedReadCache,
    #[serde(skip)]
    secrets: SecretsWithin,
}

/// The secrets that the answers may hold. They are no part of what was said, so all are equal.
#[derive(Default, Clone)]
struct SecretsWithin {
    redaction: Arc<Redaction>,
    /// Whether some answer holds one, once that was looked for.
    found: OnceLock<bool>,
}

impl fmt::Debug for SecretsWithin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretsWithin")
    }
}

impl PartialEq for SecretsWithin {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for SecretsWithin {}

impl Hash for SecretsWithin {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

/// What large answers were decoded to, by their keys, so that hundreds of resources do not each
/// parse the same configuration. It says nothing that the answers do not say, so all are equal.
#[derive(Debug, Default)]
struct DecodedReadCache(Mutex<BTreeMap<String, Arc<dyn Any + Send + Sync>>>);

impl Clone for DecodedReadCache {
    fn clone(&self) -> Self {
        DecodedReadCache::default()
    }
}

impl PartialEq for DecodedReadCache {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for DecodedReadCache {}

impl Hash for DecodedReadCache {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

impl ReadResults {
    /// What the answer to a read decodes to, by its exit status and text; decoded once. The error
    /// fits after "unknown:".
    pub fn decoded<T: Send + Sync + 'static>(
        &self,
        read: &Read,
        decode: impl FnOnce(i32, &str) -> Result<T, Reason>,
    ) -> Result<Arc<T>, Reason> {
        let key = read.key();
        let known = lock_ignoring_poison(&self.decoded.0).get(&key).cloned();
        if let Some(known) = known.and_then(|known| known.downcast::<Result<Arc<T>, Reason>>().ok())
        {
            return known.as_ref().clone();
        }
        let made = self
            .output(read)
            .and_then(|(code, out)| decode(code, out))
            .map(Arc::new);
        lock_ignoring_poison(&self.decoded.0).insert(key, Arc::new(made.clone()));
        made
    }

    /// Adds an answer.
    pub fn insert(&mut self, key: impl Into<String>, answer: ReadResult) {
        self.forget();
        self.answers.insert(key.into(), answer);
    }

    /// Takes an answer out.
    pub fn remove(&mut self, read: &Read) -> Option<ReadResult> {
        self.forget();
        self.answers.remove(&read.key())
    }

    /// Changes the text of every answer.
    pub fn rewrite(&mut self, change: impl Fn(&str) -> String) {
        self.forget();
        self.answers
            .values_mut()
            .for_each(|answer| answer.out = change(&answer.out));
    }

    /// What was worked out of the answers is no longer so.
    fn forget(&mut self) {
        self.decoded = DecodedReadCache::default();
        self.secrets.found = OnceLock::new();
    }

    /// The answers may hold these secrets: they are compared as they are, and redacted before they
    /// are shown or written down.
    pub fn may_hold(&mut self, redaction: Arc<Redaction>) {
        self.secrets = SecretsWithin {
            redaction,
            found: OnceLock::new(),
        };
    }

    /// What takes the secrets out of whatever is made of the answers, where the run has any.
    pub fn redaction(&self) -> Option<&Redaction> {
        Some(&*self.secrets.redaction).filter(|redaction| !redaction.is_empty())
    }

    /// Whether some answer, as it was said, holds a secret. What a kind makes of one that does not
    /// may hold it still.
    fn hold_a_secret(&self) -> bool {
        let redaction = &self.secrets.redaction;
        *self.secrets.found.get_or_init(|| {
            let mut answers = self.answers.values();
            answers.any(|answer| redaction.finds_in(&answer.out))
        })
    }

    /// Without the secrets, for whoever shows or writes down the answers themselves: a file that
    /// holds one has no content there.
    pub fn redacted(&self) -> Cow<'_, ReadResults> {
        let Some(redaction) = self.redaction().filter(|_| self.hold_a_secret()) else {
            return Cow::Borrowed(self);
        };
        let mut out = self.without_secret_files(redaction).into_owned();
        for (key, answer) in &mut out.answers {
            let is_whole = Read::is_key_of_file(key);
            answer.out = if is_whole {
                redaction.replace(&answer.out)
            } else {
                redaction.replace_shortened(&answer.out)
            };
        }
        Cow::Owned(out)
    }

    /// Without the content of every file that holds one of these secrets: what was there before us
    /// is kept for the day it is put back, and half of it would be worse than none.
    pub fn without_secret_files(&self, redaction: &Redaction) -> Cow<'_, ReadResults> {
        let holds = |key: &str, answer: &ReadResult| {
            Read::is_key_of_file(key) && redaction.finds_in(&answer.out)
        };
        if !self.hold_a_secret() || !self.iter().any(|(key, answer)| holds(key, answer)) {
            return Cow::Borrowed(self);
        }
        let mut out = self.clone();
        out.forget();
        for (_, answer) in out
            .answers
            .iter_mut()
            .filter(|(key, answer)| holds(key, answer))
        {
            *answer = sealed::veil_answer(answer);
        }
        Cow::Owned(out)
    }

    /// Takes over all answers of another reading of the same target; the other's win.
    pub fn merge(&mut self, other: ReadResults) {
        if self.answers.is_empty() {
            self.secrets = other.secrets;
        }
        self.forget();
        self.answers.extend(other.answers);
    }

    /// The raw answer to a read, if it was asked.
    pub fn get(&self, read: &Read) -> Option<&ReadResult> {
        self.answers.get(&read.key())
    }

    /// The output of a section that ran to its end, with its exit status; else the reason why it is
    /// unknown, in words that fit after "unknown:".
    pub fn output(&self, read: &Read) -> Result<(i32, &str), Reason> {
        match self.get(read) {
            None => Err("it was not read".into()),
            Some(ReadResult {
                status: AnswerStatus::Exit(code),
                out,
            }) => Ok((*code, out)),
            Some(ReadResult {
                status: AnswerStatus::TimedOut,
                ..
            }) => Err("the read ran past its time limit".into()),
            Some(ReadResult {
                status: AnswerStatus::CutOff,
                ..
            }) => Err("the connection ended before the answer".into()),
            Some(ReadResult {
                status: AnswerStatus::Denied,
                out,
            }) if matches!(read, Read::Kubernetes(_)) => {
                Err(self.shown(&rights::of_role(out)).into())
            }
            Some(ReadResult {
                status: AnswerStatus::Denied,
                out,
            }) => Err(self.shown(&rights::describe_denied_access(out)).into()),
            Some(ReadResult {
                status: AnswerStatus::NotOffered,
                out,
            }) => Err(one_line(&self.shown(out), 300).into()),
            Some(ReadResult {
                status: AnswerStatus::TooLong,
                ..
            }) => Err("the answer was longer than the limit".into()),
        }
    }

    /// Part of an answer as it may be shown.
    pub fn shown(&self, text: &str) -> String {
        self.redaction()
            .map_or_else(|| text.to_owned(), |redaction| redaction.apply(text))
    }

    /// All answers with their keys, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ReadResult)> {
        self.answers
            .iter()
            .map(|(key, answer)| (key.as_str(), answer))
    }

    /// The answer to the read with this key.
    pub fn by_key(&self, key: &str) -> Option<&ReadResult> {
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
