//! Where the source of an out-of-tree module comes from, and what builds it.

use crate::body::BodyErrors;
use crate::names::{is_clean_path, is_word};
use serde::{Deserialize, Serialize};

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

/// The desired state of a source: `git` and `revision`, or `archive` and `sha256`.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceBody {
    git: Option<String>,
    revision: Option<String>,
    archive: Option<String>,
    sha256: Option<String>,
}

impl SourceBody {
    /// The source, of a body that was checked.
    pub fn to_source(&self) -> Option<ModuleSource> {
        match &self.git {
            Some(url) => Some(ModuleSource::Git {
                url: url.clone(),
                revision: self.revision.clone()?,
            }),
            None => Some(ModuleSource::Archive {
                location: self.archive.clone()?,
                sha256: self.sha256.as_ref()?.to_lowercase(),
            }),
        }
    }

    /// Notes what is wrong with `source`.
    pub fn find_errors(&self, errors: &mut BodyErrors) {
        errors.require(
            self.git.is_some() != self.archive.is_some(),
            "/source",
            "no source is given, or two",
            "`git` and `revision`, or `archive` and `sha256`",
        );
        for (place, proof, name) in [
            (&self.git, &self.revision, "revision"),
            (&self.archive, &self.sha256, "sha256"),
        ] {
            let message = match place {
                Some(_) => format!("`{name}` is missing"),
                None => format!("`{name}` is of another sort of source"),
            };
            let help = "`git` and `revision`, or `archive` and `sha256`";
            errors.require(
                place.is_some() == proof.is_some(),
                "/source",
                &message,
                help,
            );
        }
        for (field, place) in [("git", &self.git), ("archive", &self.archive)] {
            errors.require(
                place.as_deref().is_none_or(is_place),
                &format!("/source/{field}"),
                "this is no place that can be fetched",
                "https://, http://, file:/// or an absolute path",
            );
        }
        let revision = self.revision.as_deref();
        errors.require(
            revision.is_none_or(|revision| is_word(revision, "._/-")),
            "/source/revision",
            "this is no revision",
            "a commit, tag or branch",
        );
        let sha256 = self.sha256.as_deref();
        errors.require(
            sha256.is_none_or(|sum| sum.len() == 64 && sum.chars().all(|c| c.is_ascii_hexdigit())),
            "/source/sha256",
            "this is no SHA-256",
            "64 hexadecimal digits, as sha256sum prints them",
        );
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
