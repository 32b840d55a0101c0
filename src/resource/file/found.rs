//! What stands at a path, decoded from `Read::File`: it is shown, compared, kept for undoing, and
//! put back. Every kind that owns a file below /etc goes through here.

use super::base64;
use crate::{Action, Read, ReadResults, Reading};
use railwright_base::{Digest, Reason, secret};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Beyond this many bytes a file's content is not carried, only its digest.
pub const CONTENT_LIMIT_BYTES: usize = 256 * 1024;
/// Text up to this many bytes is shown as it is.
const SHOWN_LIMIT_BYTES: usize = 16 * 1024;

/// A file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FileContent {
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
#[serde(deny_unknown_fields)]
pub struct Regular {
    /// Four octal digits.
    pub mode: String,
    /// The owner's name, or number when it has none.
    pub owner: String,
    /// The group's name, or number when it has none.
    pub group: String,
    /// What is in it.
    pub content: FileContent,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FileState {
    /// Nothing; `folder` is the deepest folder above it that is there.
    Absent { folder: Option<String> },
    /// A regular file.
    Regular(Regular),
    /// Something that is no regular file, in the words of stat: `directory`, `symbolic link`.
    Other { what: String },
    /// Could not be found out.
    Unknown { reason: Reason },
}

/// What a read of a file of root's alone answers that holds this text: for a record that came
/// another way.
pub fn answer_of_private(text: &str) -> String {
    format!("600 root root {} regular file\n{text}", text.len())
}

/// What was not recorded.
impl Default for FileState {
    fn default() -> Self {
        FileState::Unknown {
            reason: "what was there before was not recorded".into(),
        }
    }
}

impl FileState {
    /// What stands at this path, by the answers.
    pub fn at(path: &str, answers: &ReadResults) -> Self {
        FileState::by(
            &Read::File {
                path: path.to_owned(),
            },
            answers,
        )
    }

    /// What stands at the path of a file that may hold a secret: of its content only the seal.
    pub fn at_sealed(path: &str, answers: &ReadResults) -> Self {
        FileState::by(
            &Read::SealedFile {
                path: path.to_owned(),
            },
            answers,
        )
    }

    /// What this read of a file found.
    pub fn by(read: &Read, answers: &ReadResults) -> Self {
        match answers.output(read) {
            Err(reason) => FileState::Unknown { reason },
            Ok((1, out)) => FileState::Absent {
                folder: out
                    .lines()
                    .find_map(|l| l.strip_prefix("folder "))
                    .map(str::to_owned),
            },
            Ok((0, out)) => parse_file_state(out),
            Ok((code, _)) => FileState::Unknown {
                reason: format!("the file could not be read (exit {code})").into(),
            },
        }
    }

    /// What a kind kept in `before`.
    pub fn remembered(before: Option<&Value>) -> Self {
        let kept = before.and_then(|value| FileState::deserialize(value).ok());
        kept.unwrap_or_default()
    }

    /// For `before`.
    pub fn remember(&self) -> Value {
        serde_json::to_value(self)
            .expect("our own types have string keys and serialise without fail")
    }

    /// The text, where it is a regular file with text.
    pub fn text(&self) -> Option<&str> {
        match self {
            FileState::Regular(Regular {
                content: FileContent::Text(text),
                ..
            }) => Some(text),
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
            FileState::Absent { .. } => Reading::Absent,
            FileState::Regular(file) => Reading::is(side(file)),
            FileState::Other { what } => Reading::is(format!("a {what}")),
            FileState::Unknown { reason } => Reading::Unknown(reason.clone()),
        }
    }

    /// What puts this back at the path, given what is there now; the second part is what cannot be
    /// put back.
    pub fn restore(&self, path: &str, now: &FileState) -> (Vec<Action>, Option<String>) {
        match self {
            _ if self == now => (Vec::new(), None),
            FileState::Absent { folder } => (plan_file_removal(path, folder.as_deref(), now), None),
            FileState::Regular(file) => restore_regular(path, file),
            FileState::Other { what } => (
                Vec::new(),
                Some(format!(
                    "{path} was a {what} before; what is there now stays"
                )),
            ),
            FileState::Unknown { reason } => {
                (Vec::new(), Some(format!("{path} stays as it is: {reason}")))
            }
        }
    }

    /// The reading that `restore` leads to: what it cannot put back stays as it is now.
    pub fn restored_reading(&self, now: &FileState) -> Reading {
        match self {
            FileState::Absent { .. } => Reading::Absent,
            FileState::Regular(Regular {
                content: FileContent::Text(_) | FileContent::Base64(_),
                ..
            }) => self.content_reading(),
            _ => now.content_reading(),
        }
    }
}

fn plan_file_removal(path: &str, folder: Option<&str>, now: &FileState) -> Vec<Action> {
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let below = folder.filter(|folder| {
        *folder != parent
            && *now
                != FileState::Absent {
                    folder: Some((*folder).to_owned()),
                }
    });
    if below.is_none() && matches!(now, FileState::Absent { .. }) {
        return Vec::new();
    }
    vec![Action::RemoveFile {
        path: path.to_owned(),
        below: below.map(str::to_owned),
    }]
}

fn restore_regular(path: &str, file: &Regular) -> (Vec<Action>, Option<String>) {
    let (path, mode, owner, group) = (
        path.to_owned(),
        file.mode.clone(),
        file.owner.clone(),
        file.group.clone(),
    );
    match &file.content {
        // What stood on a host is given back as it was: a mark in it is not ours, and no secret is
        // filled in there.
        FileContent::Text(content) if secret::find_mark_character(content).is_some() => (
            vec![Action::WriteBinaryFile {
                path,
                base64: base64::encode_base64_text(content.as_bytes()),
                mode,
                owner,
                group,
            }],
            None,
        ),
        FileContent::Text(content) => (
            vec![Action::WriteFile {
                path,
                content: content.clone(),
                mode,
                owner,
                group,
            }],
            None,
        ),
        FileContent::Base64(base64) => (
            vec![Action::WriteBinaryFile {
                path,
                base64: base64.clone(),
                mode,
                owner,
                group,
            }],
            None,
        ),
        FileContent::TooLarge { bytes, .. } => (
            Vec::new(),
            Some(format!(
                "{path} stays: its earlier content ({bytes} bytes) was too large to be kept"
            )),
        ),
        FileContent::Sealed(_) => (
            Vec::new(),
            Some(format!(
                "{path} stays, with the secret in it: its earlier content was not kept, because it \
                 may be a secret too; put it back or remove the file by hand"
            )),
        ),
    }
}

/// Writes a configuration file of ours: root's, readable by all.
pub fn build_config_file_action(path: &str, content: String) -> Action {
    Action::WriteFile {
        path: path.to_owned(),
        content,
        mode: "0644".to_owned(),
        owner: "root".to_owned(),
        group: "root".to_owned(),
    }
}

/// Four octal digits: `644` and `0644` are the same mode.
pub fn normal_mode(mode: &str) -> String {
    format!("{:0>4}", mode.trim_start_matches('0'))
}

/// The content as it is compared and shown. A function of the content alone, so that equal contents
/// look equal.
pub fn shown_content(content: &FileContent) -> String {
    match content {
        FileContent::Text(text) if is_showable(text) => text.clone(),
        FileContent::Text(text) => format!(
            "sha256:{} ({} bytes)",
            Digest::of_bytes(text.as_bytes()),
            text.len()
        ),
        FileContent::Base64(text) => {
            let bytes = base64::decode_base64_text(text).unwrap_or_default();
            format!(
                "sha256:{} ({} bytes)",
                Digest::of_bytes(&bytes),
                bytes.len()
            )
        }
        FileContent::TooLarge { sha256, bytes } => format!("sha256:{sha256} ({bytes} bytes)"),
        FileContent::Sealed(seal) => seal.clone(),
    }
}

fn is_showable(text: &str) -> bool {
    text.len() <= SHOWN_LIMIT_BYTES && railwright_base::text::sanitize_text(text) == text
}

/// The answer of `Read::File`: a line `mode owner group size type[, encoding]`, then the content.
fn parse_file_state(out: &str) -> FileState {
    let (head, body) = out.split_once('\n').unwrap_or((out, ""));
    let words: Vec<&str> = head.splitn(5, ' ').collect();
    let [mode, owner, group, bytes, what] = words[..] else {
        return FileState::Unknown {
            reason: "the answer makes no sense".into(),
        };
    };
    let (what, encoding) = what.split_once(", ").unwrap_or((what, ""));
    if !what.starts_with("regular") {
        return FileState::Other {
            what: railwright_base::text::one_line(what, 40),
        };
    }
    let content = match encoding {
        "base64" => decode_base64(body),
        "sealed" => Some(FileContent::Sealed(body.trim_end().to_owned())),
        "sha256" => Some(FileContent::TooLarge {
            sha256: body.trim().to_owned(),
            bytes: bytes.parse().unwrap_or(0),
        }),
        _ => Some(FileContent::Text(body.to_owned())),
    };
    match content {
        None => FileState::Unknown {
            reason: "the content came damaged".into(),
        },
        Some(content) => FileState::Regular(Regular {
            mode: normal_mode(mode),
            owner: owner.to_owned(),
            group: group.to_owned(),
            content,
        }),
    }
}

fn decode_base64(body: &str) -> Option<FileContent> {
    let bytes = base64::decode_base64_text(body)?;
    Some(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => FileContent::Text(text),
        _ => FileContent::Base64(body.split_whitespace().collect()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_every_form_of_the_answer() {
        let regular = |content| {
            FileState::Regular(Regular {
                mode: "0644".into(),
                owner: "root".into(),
                group: "root".into(),
                content,
            })
        };
        let other = |what: &str| FileState::Other { what: what.into() };
        for (out, found) in [
            (
                "644 root root 2 regular file\na\n",
                regular(FileContent::Text("a\n".into())),
            ),
            (
                "644 root root 0 regular empty file\n",
                regular(FileContent::Text(String::new())),
            ),
            (
                "644 root root 3 regular file, base64\nw7x4\n",
                regular(FileContent::Text("üx".into())),
            ),
            (
                "644 root root 2 regular file, base64\n/wA=\n",
                regular(FileContent::Base64("/wA=".into())),
            ),
            (
                "644 root root 9 regular file, sha256\nabc\n",
                regular(FileContent::TooLarge {
                    sha256: "abc".into(),
                    bytes: 9,
                }),
            ),
            ("755 root root 4096 directory\n", other("directory")),
            ("777 root root 4 symbolic link\n", other("symbolic link")),
        ] {
            assert_eq!(parse_file_state(out), found, "{out:?}");
            assert_eq!(FileState::remembered(Some(&found.remember())), found);
        }
        let unknown = parse_file_state("nonsense");
        assert!(matches!(unknown, FileState::Unknown { .. }));
        assert_eq!(FileState::remembered(Some(&unknown.remember())), unknown);
    }

    #[test]
    fn modes_are_the_same_with_and_without_zeros() {
        for (mode, normal) in [
            ("644", "0644"),
            ("0644", "0644"),
            ("0", "0000"),
            ("4755", "4755"),
            ("00600", "0600"),
        ] {
            assert_eq!(normal_mode(mode), normal);
        }
    }
}
