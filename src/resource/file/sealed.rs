//! Files that hold a secret. Nobody above the transport sees what is in them: the host's answer
//! carries a keyed digest in the place of the content (`seal_answer`), and the resource carries
//! that of the desired content (`seal_resource`), so that the two can be compared, planned,
//! recorded and journalled without the secret.

use super::base64;
use super::found::{CONTENT_LIMIT_BYTES, FileContent, FileState, Regular};
use crate::{AnswerStatus, DesiredResource, Read, ReadResult, ReadResults, Reading};
use railwright_base::{Reason, SealKey, seal, secret};
use serde_json::{Value, json};
use std::sync::Arc;

/// The field of a resource's body that says that the file is sealed. No module can write it: it is
/// put in when a spec is turned into a plan.
const FIELD: &str = "sealed";
/// The field with the seal of what was there before, where that is known in plain.
const BEFORE: &str = "sealed_before";

/// True when this resource's file is read by its seal alone.
pub fn is_sealed(resource: &DesiredResource) -> bool {
    resource.body.get(FIELD).is_some()
        || !secret::list_secret_names(resource.text("content").unwrap_or_default()).is_empty()
}

/// What reads the file.
pub fn build_file_read(resource: &DesiredResource) -> Read {
    let path = resource.text("path").unwrap_or_default().to_owned();
    if is_sealed(resource) {
        Read::SealedFile { path }
    } else {
        Read::File { path }
    }
}

/// Puts the seal of the desired content into a resource, or why it is not known. `before` is what
/// was there before our first change, as the state has it.
pub fn seal_resource(
    resource: &mut DesiredResource,
    key: Option<&SealKey>,
    filled: Result<&str, Reason>,
    before: Option<&Value>,
) {
    let path = resource.text("path").unwrap_or_default().to_owned();
    let sealed = match (filled, key) {
        (Err(why), _) => json!({ "unknown": why }),
        (Ok(text), _) if text.len() > CONTENT_LIMIT_BYTES => {
            json!({ "unknown": format!("its content is longer than {} KiB", CONTENT_LIMIT_BYTES >> 10) })
        }
        (Ok(text), Some(key)) => Value::from(key.seal(&path, text.as_bytes())),
        (Ok(_), None) => json!({ "unknown": "the state folder has no key" }),
    };
    let mut sealed_before = None;
    if let FileState::Regular(file) = FileState::remembered(before)
        && let Some(bytes) = plain_bytes(&file.content)
        && let Some(key) = key
    {
        sealed_before = Some(key.seal(&path, &bytes));
    }
    if let Some(body) = Arc::make_mut(&mut resource.declaration)
        .body
        .as_object_mut()
    {
        body.insert(FIELD.to_owned(), sealed);
        if let Some(seal) = sealed_before {
            body.insert(BEFORE.to_owned(), Value::from(seal));
        }
    }
}

/// True when the two differ only in one having a seal: a file is sealed for one more run after its
/// secret left the template.
pub fn differ_in_being_sealed(resource: &DesiredResource, other: &DesiredResource) -> bool {
    resource.body.get(FIELD).is_some() != other.body.get(FIELD).is_some()
        && without_seals(&resource.body) == without_seals(&other.body)
}

/// A body without its seals: as a module wrote it.
pub fn without_seals(body: &Value) -> Value {
    let mut body = body.clone();
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|name, _| name != FIELD && name != BEFORE);
    }
    body
}

fn plain_bytes(content: &FileContent) -> Option<Vec<u8>> {
    match content {
        FileContent::Text(text) => Some(text.clone().into_bytes()),
        FileContent::Base64(text) => base64::decode_base64_text(text),
        FileContent::TooLarge { .. } | FileContent::Sealed(_) => None,
    }
}

/// The desired content of a sealed file: its seal, or why that is not known. None for a file that
/// is not sealed.
pub fn find_desired_seal(resource: &DesiredResource) -> Option<Result<&str, Reason>> {
    let said = match resource.body.get(FIELD) {
        Some(Value::String(seal)) => Ok(seal.as_str()),
        Some(other) => Err(other
            .get("unknown")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .into()),
        None if is_sealed(resource) => Err("its secret was not asked for".into()),
        None => return None,
    };
    Some(said)
}

/// The seal of the content that a file had before us, where the body has it.
pub fn find_earlier_content_seal(
    resource: &DesiredResource,
    earlier: &FileState,
) -> Option<Reading> {
    let seal = resource.text(BEFORE)?;
    matches!(
        earlier,
        FileState::Regular(Regular {
            content: FileContent::Text(_) | FileContent::Base64(_),
            ..
        })
    )
    .then(|| Reading::is(seal))
}

/// A reading of a sealed content beside the desired one: seals of two keys say nothing about each
/// other.
pub fn check_seal_comparability(desired: &Result<&str, Reason>, actual: Reading) -> Reading {
    match (desired, &actual) {
        (Err(why), Reading::Is(_)) => Reading::Unknown(why.clone()),
        (Ok(seal), Reading::Is(Value::String(text)))
            if seal::is_seal(text) && !seal::has_same_seal_key(seal, text) =>
        {
            Reading::Unknown("it was read with the key of another state folder".into())
        }
        _ => actual,
    }
}

/// Replaces the content in the host's answer about a sealed file. Whatever the answer is: nothing
/// of it but its head gets past here, and that without the length. Without a key nothing can be
/// said of it.
pub fn seal_answer(path: &str, answer: ReadResult, key: Option<&SealKey>) -> ReadResult {
    let (head, body) = answer.out.split_once('\n').unwrap_or((&answer.out, ""));
    let words: Vec<&str> = head.splitn(5, ' ').collect();
    let regular = matches!(words[..], [_, _, _, _, what] if what.starts_with("regular"));
    let out = match (&answer.status, &words[..]) {
        (AnswerStatus::Exit(1), ["folder", ..]) => format!("{}\n", head),
        (AnswerStatus::Exit(0), [mode, owner, group, _, what]) if regular => {
            let (what, encoding) = what.split_once(", ").unwrap_or((what, ""));
            if encoding == "sealed" && seal::is_seal(body.trim_end()) {
                return answer;
            }
            let bytes = if encoding == "base64" {
                base64::decode_base64_text(body)
            } else {
                None
            };
            let bytes = bytes.unwrap_or_else(|| body.as_bytes().to_vec());
            let Some(seal) = key.map(|key| key.seal(path, &bytes)) else {
                return build_missing_seal_answer();
            };
            format!("{mode} {owner} {group} 0 {what}, sealed\n{seal}\n")
        }
        // What is missing, in our own words.
        (AnswerStatus::Denied, _) => format!("reads {path}\n"),
        (AnswerStatus::Exit(0), [_, _, _, _, _]) => format!("{head}\n"),
        _ => String::new(),
    };
    ReadResult { out, ..answer }
}

/// The answer about a file that turned out to hold a secret, for whoever shows or keeps it: all but
/// the content and its length.
pub fn veil_answer(answer: &ReadResult) -> ReadResult {
    let head = answer.out.split('\n').next().unwrap_or_default();
    let words: Vec<&str> = head.splitn(5, ' ').collect();
    let out = match words[..] {
        [mode, owner, group, _, what] if what.starts_with("regular") => {
            format!(
                "{mode} {owner} {group} 0 {}, sealed\n{}\n",
                what.split(", ").next().unwrap_or(what),
                seal::VEIL
            )
        }
        _ => String::new(),
    };
    ReadResult {
        status: answer.status.clone(),
        out,
    }
}

/// The host's answer about a file with its content as text, where it is text that came as base64.
pub fn in_plain(answer: ReadResult) -> ReadResult {
    let plain = answer
        .out
        .split_once(", base64\n")
        .and_then(|(head, body)| {
            let text = String::from_utf8(base64::decode_base64_text(body)?)
                .ok()
                .filter(|text| !text.contains('\0') && !head.contains('\n'))?;
            Some(format!("{head}\n{text}"))
        });
    ReadResult {
        out: plain.unwrap_or(answer.out),
        ..answer
    }
}

fn build_missing_seal_answer() -> ReadResult {
    ReadResult {
        status: AnswerStatus::Exit(2),
        out: String::new(),
    }
}

/// Seals the answer about a file that was read in plain before anybody knew that it holds a secret.
pub fn seal_plain(path: &str, answers: &mut ReadResults, key: Option<&SealKey>) {
    let plain = Read::File {
        path: path.to_owned(),
    };
    if let Some(answer) = answers.remove(&plain) {
        answers.insert(
            Read::SealedFile {
                path: path.to_owned(),
            }
            .key(),
            seal_answer(path, answer, key),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::File;
    use crate::test_support::{answered, resource};
    use crate::{Action, ResourceKind as _};
    use proptest::prelude::*;

    const POISON: &str = "p0is0n-Ünd";

    fn key() -> SealKey {
        SealKey::new(b"k")
    }

    fn sealed(
        content: &str,
        filled: Result<&str, Reason>,
        before: Option<&Value>,
    ) -> DesiredResource {
        let mut resource = resource(
            &File,
            json!({ "path": "/etc/a", "content": content, "mode": "0600" }),
        );
        seal_resource(&mut resource, Some(&key()), filled, before);
        resource
    }

    fn with_secret() -> DesiredResource {
        sealed(
            &format!("t={}\n", secret::new_secret_mark("token")),
            Ok(&format!("t={POISON}\n")),
            None,
        )
    }

    fn said(out: &str) -> ReadResults {
        let read = Read::SealedFile {
            path: "/etc/a".to_owned(),
        };
        let answer = ReadResult {
            status: AnswerStatus::Exit(0),
            out: out.to_owned(),
        };
        let mut answers = ReadResults::default();
        answers.insert(read.key(), seal_answer("/etc/a", answer, Some(&key())));
        answers
    }

    #[test]
    fn it_is_compared_without_being_seen() {
        let resource = with_secret();
        // the same bytes, once as the host sends what is not ASCII
        for out in [
            format!("600 root root 14 regular file\nt={POISON}\n"),
            "600 root root 14 regular file, base64\ndD1wMGlzMG4tw5xuZAo=\n".into(),
        ] {
            let met = File.diff(&resource, &said(&out));
            assert!(met.is_met(), "{met:?}");
            assert!(!format!("{met:?}{resource:?}").contains("p0is0n"));
        }
        let differs = File.diff(&resource, &said("600 root root 14 regular file\nt=old\n"));
        assert_eq!(
            differs.actions.iter().map(Action::word).collect::<Vec<_>>(),
            ["write_file"]
        );
        assert!(!format!("{differs:?}").contains("old"), "{differs:?}");
    }

    #[test]
    fn text_that_came_in_base64_is_the_same_text() {
        let answer = |out: &str| ReadResult {
            status: AnswerStatus::Exit(0),
            out: out.to_owned(),
        };
        let found = |out: &str| {
            FileState::at(
                "/etc/a",
                &answered(&[(
                    &Read::File {
                        path: "/etc/a".into(),
                    },
                    0,
                    out,
                )]),
            )
        };
        for (out, same) in [
            (
                "600 root root 14 regular file, base64\ndD1wMGlzMG4tw5xuZAo=\n",
                "600 root root 14 regular file\nt=p0is0n-Ünd\n",
            ),
            (
                "644 root root 2 regular file, base64\n/wA=\n",
                "644 root root 2 regular file, base64\n/wA=\n",
            ),
            (
                "644 root root 9 regular file\nx, base64\nZg==",
                "644 root root 9 regular file\nx, base64\nZg==",
            ),
        ] {
            assert_eq!(in_plain(answer(out)).out, same);
            assert_eq!(found(out), found(same));
        }
    }

    #[test]
    fn without_the_secret_what_is_there_is_unknown_and_nothing_is_done() {
        let resource = sealed(
            &secret::new_secret_mark("token"),
            Err("TOKEN is not set".into()),
            None,
        );
        let there = File.diff(&resource, &said("600 root root 4 regular file\nt=x\n"));
        assert!(
            there.has_unknown()
                && there.refusal.unwrap().contains("TOKEN is not set")
                && there.actions.is_empty()
        );
        let absent = ReadResult {
            status: AnswerStatus::Exit(1),
            out: "folder /etc\n".into(),
        };
        let mut answers = ReadResults::default();
        answers.insert("sealed_file:/etc/a", absent);
        let absent = File.diff(&resource, &answers);
        assert!(absent.is_absent() && absent.refusal.is_some() && absent.actions.is_empty());
        let mut foreign = resource.clone();
        seal_resource(
            &mut foreign,
            Some(&SealKey::new(b"other")),
            Ok("t=x\n"),
            None,
        );
        assert!(
            File.diff(&foreign, &said("600 root root 4 regular file\nt=x\n"))
                .only_unknown()
        );
    }

    #[test]
    fn what_was_there_before_is_put_back_where_it_is_known() {
        let now = said(&format!("600 root root 14 regular file\nt={POISON}\n"));
        let absent = FileState::Absent {
            folder: Some("/etc".into()),
        }
        .remember();
        assert_eq!(
            File.undo(&with_secret(), &absent, &now).actions,
            [Action::RemoveFile {
                path: "/etc/a".into(),
                below: None
            }]
        );
        // It was no secret file then, so its content is known; afterwards it is read by its seal
        // all the same.
        let plain = FileState::at(
            "/etc/a",
            &answered(&[(
                &Read::File {
                    path: "/etc/a".into(),
                },
                0,
                "644 root root 4 regular file\nold\n",
            )]),
        );
        let resource = sealed(
            &secret::new_secret_mark("token"),
            Ok(POISON),
            Some(&plain.remember()),
        );
        let undo = File.undo(&resource, &plain.remember(), &now);
        assert_eq!(
            undo.actions.iter().map(Action::word).collect::<Vec<_>>(),
            ["write_file"]
        );
        assert!(
            File.undo(
                &resource,
                &plain.remember(),
                &said("644 root root 4 regular file\nold\n")
            )
            .is_met()
        );
        // Its earlier content was never kept: the file stays, and that is reported.
        let unknown =
            FileState::at_sealed("/etc/a", &said("600 root root 4 regular file\nold\n")).remember();
        let undo = File.undo(&with_secret(), &unknown, &now);
        assert!(
            undo.actions.is_empty() && undo.is_met() && undo.residue[0].contains("was not kept"),
            "{undo:?}"
        );
    }

    proptest! {
        #[test]
        fn law_8_nothing_of_a_sealed_answer_is_kept(head in ".{0,40}", code in 0..4, text in "[a-z\n ]{0,20}") {
            let status = if code == 3 { AnswerStatus::TooLong } else { AnswerStatus::Exit(code) };
            for out in [format!("{head}\n{text}poison{text}"), format!("600 root root 9 regular \
                                                                        file{head}\n\
                                                                        {text}poison\n")] {
                let sealed = seal_answer("/etc/a", ReadResult { status: status.clone(), out }, Some(&key()));
                prop_assert!(!sealed.out.contains("poison"), "{}", sealed.out);
            }
        }
    }
}
