//! What stands at a path, decoded from `Read::File`: it is shown, compared, kept for undoing, and put back.
//! Every kind that owns a file below /etc goes through here.

use super::base64;
use crate::{Action, Answers, Read, Reading};
use railwright_base::{Digest, secret};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Beyond this many bytes a file's content is not carried, only its digest.
pub const CONTENT_LIMIT_BYTES: usize = 256 * 1024;
/// Text up to this many bytes is shown as it is.
const SHOWN_LIMIT_BYTES: usize = 16 * 1024;

/// A file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Base64(String),
    /// Too large to be carried: its SHA-256 and length in bytes.
    TooLarge { sha256: String, bytes: u64 },
    /// May hold a secret: only its seal is known.
    Sealed(String),
}

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regular {
    /// Four octal digits.
    pub mode: String,
    /// The owner's name, or number when it has none.
    pub owner: String,
    /// The group's name, or number when it has none.
    pub group: String,
    /// What is in it.
    pub content: Content,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// Nothing; `folder` is the deepest folder above it that is there.
    Absent { folder: Option<String> },
    /// A regular file.
    Regular(Regular),
    /// Something that is no regular file, in the words of stat: `directory`, `symbolic link`.
    Other { what: String },
    /// Could not be found out.
    Unknown { reason: String },
}

/// What a read of a file of root's alone answers that holds this text: for a record that came another way.
pub fn answer_of_private(text: &str) -> String {
    format!("600 root root {} regular file\n{text}", text.len())
}

impl Found {
    /// What stands at this path, by the answers.
    pub fn at(path: &str, answers: &Answers) -> Self {
        Found::by(&Read::File { path: path.to_owned() }, answers)
    }

    /// The same of a file that may hold a secret: of its content only the seal.
    pub fn at_sealed(path: &str, answers: &Answers) -> Self {
        Found::by(&Read::SealedFile { path: path.to_owned() }, answers)
    }

    /// What this read of a file found.
    pub fn by(read: &Read, answers: &Answers) -> Self {
        match answers.output(read) {
            Err(reason) => Found::Unknown { reason },
            Ok((1, out)) => Found::Absent { folder: out.lines().find_map(|l| l.strip_prefix("folder ")).map(str::to_owned) },
            Ok((0, out)) => decode(out),
            Ok((code, _)) => Found::Unknown { reason: format!("the file could not be read (exit {code})") },
        }
    }

    /// What a kind kept in `before`.
    pub fn remembered(before: Option<&Value>) -> Self {
        let kept = before.and_then(|value| serde_json::from_value(value.clone()).ok());
        kept.unwrap_or_else(|| Found::Unknown { reason: "what was there before was not recorded".to_owned() })
    }

    /// For `before`.
    pub fn remember(&self) -> Value {
        serde_json::to_value(self).expect("our own types have string keys and serialise without fail")
    }

    /// The text, where it is a regular file with text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Found::Regular(Regular { content: Content::Text(text), .. }) => Some(text),
            _ => None,
        }
    }

    /// The content as a reading: text when it is short and clean, else a digest.
    pub fn content_reading(&self) -> Reading {
        self.reading(|file| shown_content(&file.content))
    }

    /// One side of a regular file as a reading.
    pub fn reading(&self, side: impl Fn(&Regular) -> String) -> Reading {
        match self {
            Found::Absent { .. } => Reading::Absent,
            Found::Regular(file) => Reading::is(side(file)),
            Found::Other { what } => Reading::is(format!("a {what}")),
            Found::Unknown { reason } => Reading::Unknown(reason.clone()),
        }
    }

    /// What puts this back at the path, given what is there now; the second part is what cannot be put back.
    pub fn restore(&self, path: &str, now: &Found) -> (Vec<Action>, Option<String>) {
        match self {
            _ if self == now => (Vec::new(), None),
            Found::Absent { folder } => (removal(path, folder.as_deref(), now), None),
            Found::Regular(file) => restore_regular(path, file),
            Found::Other { what } => (Vec::new(), Some(format!("{path} was a {what} before; what is there now stays"))),
            Found::Unknown { reason } => (Vec::new(), Some(format!("{path} stays as it is: {reason}"))),
        }
    }

    /// The reading that `restore` leads to: what it cannot put back stays as it is now.
    pub fn restored_reading(&self, now: &Found) -> Reading {
        match self {
            Found::Absent { .. } => Reading::Absent,
            Found::Regular(Regular { content: Content::Text(_) | Content::Base64(_), .. }) => self.content_reading(),
            _ => now.content_reading(),
        }
    }
}

fn removal(path: &str, folder: Option<&str>, now: &Found) -> Vec<Action> {
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let below = folder.filter(|folder| *folder != parent && *now != Found::Absent { folder: Some((*folder).to_owned()) });
    if below.is_none() && matches!(now, Found::Absent { .. }) {
        return Vec::new();
    }
    vec![Action::RemoveFile { path: path.to_owned(), below: below.map(str::to_owned) }]
}

fn restore_regular(path: &str, file: &Regular) -> (Vec<Action>, Option<String>) {
    let (path, mode, owner, group) = (path.to_owned(), file.mode.clone(), file.owner.clone(), file.group.clone());
    match &file.content {
        // What stood on a host is given back as it was: a mark in it is no wish of ours, and no secret is filled in there.
        Content::Text(content) if secret::reserved(content).is_some() => {
            (vec![Action::WriteBinaryFile { path, base64: base64::encode(content.as_bytes()), mode, owner, group }], None)
        }
        Content::Text(content) => (vec![Action::WriteFile { path, content: content.clone(), mode, owner, group }], None),
        Content::Base64(base64) => (vec![Action::WriteBinaryFile { path, base64: base64.clone(), mode, owner, group }], None),
        Content::TooLarge { bytes, .. } => {
            (Vec::new(), Some(format!("{path} stays: its earlier content ({bytes} bytes) was too large to be kept")))
        }
        Content::Sealed(_) => (
            Vec::new(),
            Some(format!(
                "{path} stays, with the secret in it: its earlier content was not kept, because it may be a secret too; \
                 put it back or remove the file by hand"
            )),
        ),
    }
}

/// Writes a configuration file of ours: root's, readable by all.
pub fn put(path: &str, content: String) -> Action {
    let root = || "root".to_owned();
    Action::WriteFile { path: path.to_owned(), content, mode: "0644".to_owned(), owner: root(), group: root() }
}

/// Four octal digits: `644` and `0644` are the same mode.
pub fn normal_mode(mode: &str) -> String {
    format!("{:0>4}", mode.trim_start_matches('0'))
}

/// The content as it is compared and shown. A function of the content alone, so that equal contents look equal.
pub fn shown_content(content: &Content) -> String {
    match content {
        Content::Text(text) if is_showable(text) => text.clone(),
        Content::Text(text) => format!("sha256:{} ({} bytes)", Digest::of_bytes(text.as_bytes()), text.len()),
        Content::Base64(text) => {
            let bytes = base64::decode(text).unwrap_or_default();
            format!("sha256:{} ({} bytes)", Digest::of_bytes(&bytes), bytes.len())
        }
        Content::TooLarge { sha256, bytes } => format!("sha256:{sha256} ({bytes} bytes)"),
        Content::Sealed(seal) => seal.clone(),
    }
}

fn is_showable(text: &str) -> bool {
    text.len() <= SHOWN_LIMIT_BYTES && railwright_base::text::clean(text) == text
}

/// The answer of `Read::File`: a line `mode owner group size type[, encoding]`, then the content.
fn decode(out: &str) -> Found {
    let (head, body) = out.split_once('\n').unwrap_or((out, ""));
    let words: Vec<&str> = head.splitn(5, ' ').collect();
    let [mode, owner, group, bytes, what] = words[..] else {
        return Found::Unknown { reason: "the answer makes no sense".to_owned() };
    };
    let (what, encoding) = what.split_once(", ").unwrap_or((what, ""));
    if !what.starts_with("regular") {
        return Found::Other { what: railwright_base::text::one_line(what, 40) };
    }
    let content = match encoding {
        "base64" => decode_base64(body),
        "sealed" => Some(Content::Sealed(body.trim_end().to_owned())),
        "sha256" => Some(Content::TooLarge { sha256: body.trim().to_owned(), bytes: bytes.parse().unwrap_or(0) }),
        _ => Some(Content::Text(body.to_owned())),
    };
    match content {
        None => Found::Unknown { reason: "the content came damaged".to_owned() },
        Some(content) => Found::Regular(Regular { mode: normal_mode(mode), owner: owner.to_owned(), group: group.to_owned(), content }),
    }
}

fn decode_base64(body: &str) -> Option<Content> {
    let bytes = base64::decode(body)?;
    Some(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Content::Text(text),
        _ => Content::Base64(body.split_whitespace().collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_every_form_of_the_answer() {
        let regular = |content| Found::Regular(Regular { mode: "0644".into(), owner: "root".into(), group: "root".into(), content });
        let other = |what: &str| Found::Other { what: what.into() };
        for (out, found) in [
            ("644 root root 2 regular file\na\n", regular(Content::Text("a\n".into()))),
            ("644 root root 0 regular empty file\n", regular(Content::Text(String::new()))),
            ("644 root root 3 regular file, base64\nw7x4\n", regular(Content::Text("üx".into()))),
            ("644 root root 2 regular file, base64\n/wA=\n", regular(Content::Base64("/wA=".into()))),
            ("644 root root 9 regular file, sha256\nabc\n", regular(Content::TooLarge { sha256: "abc".into(), bytes: 9 })),
            ("755 root root 4096 directory\n", other("directory")),
            ("777 root root 4 symbolic link\n", other("symbolic link")),
        ] {
            assert_eq!(decode(out), found, "{out:?}");
        }
        assert!(matches!(decode("nonsense"), Found::Unknown { .. }));
    }

    #[test]
    fn modes_are_the_same_with_and_without_zeros() {
        for (mode, normal) in [("644", "0644"), ("0644", "0644"), ("0", "0000"), ("4755", "4755"), ("00600", "0600")] {
            assert_eq!(normal_mode(mode), normal);
        }
    }
}
