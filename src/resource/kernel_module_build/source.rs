//! Where the source of an out-of-tree module comes from, and what builds it.

use crate::BodyError;
use crate::body::{
    FieldShape, check_fields, is_clean_path, is_word, new_body_error, new_required_field,
    read_text_field, require_condition,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a source comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleSource {
    /// A revision (commit, tag or branch) of a git repository.
    Git { url: String, revision: String },
    /// An archive that tar reads, at a URL or an absolute path on the host, with its SHA-256.
    Archive { location: String, sha256: String },
}

/// What builds a module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ModuleBuildTool {
    /// DKMS, which builds it anew for each kernel that comes.
    Dkms,
    /// The kernel's own make, for the running kernel alone.
    Make,
}

impl ModuleSource {
    /// The source in a body that has been checked.
    pub fn of(body: &Value) -> Option<Self> {
        let source = body.get("source")?;
        match read_text_field(source, "git") {
            Some(url) => Some(ModuleSource::Git {
                url: url.to_owned(),
                revision: read_text_field(source, "revision")?.to_owned(),
            }),
            None => Some(ModuleSource::Archive {
                location: read_text_field(source, "archive")?.to_owned(),
                sha256: read_text_field(source, "sha256")?.to_lowercase(),
            }),
        }
    }

    /// All that is wrong with `source`.
    pub fn check(source: &Value) -> Vec<BodyError> {
        let is_git = source.get("git").is_some();
        let fields = if is_git {
            [
                new_required_field("git", FieldShape::Text),
                new_required_field("revision", FieldShape::Text),
            ]
        } else {
            [
                new_required_field("archive", FieldShape::Text),
                new_required_field("sha256", FieldShape::Text),
            ]
        };
        if !is_git && source.get("archive").is_none() {
            return vec![new_body_error(
                "/source",
                "no source is given",
                Some("`git` and `revision`, or `archive` and `sha256`"),
            )];
        }
        let mut errors = check_fields(source, "/source", &fields);
        let url = read_text_field(source, "git");
        if let Some(url) = url.or_else(|| read_text_field(source, "archive")) {
            let pointer = if is_git {
                "/source/git"
            } else {
                "/source/archive"
            };
            require_condition(
                &mut errors,
                is_place(url),
                pointer,
                "this is no place that can be fetched",
                "https://, http://, file:/// or an absolute path",
            );
        }
        if let Some(revision) = read_text_field(source, "revision") {
            require_condition(
                &mut errors,
                is_word(revision, "._/-"),
                "/source/revision",
                "this is no revision",
                "a commit, tag or branch",
            );
        }
        if let Some(sha256) = read_text_field(source, "sha256") {
            let digest = sha256.len() == 64 && sha256.chars().all(|c| c.is_ascii_hexdigit());
            require_condition(
                &mut errors,
                digest,
                "/source/sha256",
                "this is no SHA-256",
                "64 hexadecimal digits, as sha256sum prints them",
            );
        }
        errors
    }
}

fn is_place(text: &str) -> bool {
    let scheme = ["https://", "http://", "file:///"]
        .iter()
        .any(|scheme| text.starts_with(scheme));
    let secret = text.split_once("://").is_some_and(|(_, rest)| {
        rest.split('/')
            .next()
            .is_some_and(|host| host.contains('@'))
    });
    (scheme || is_clean_path(text))
        && !secret
        && !text.chars().any(|c| c.is_control() || c.is_whitespace())
}
