//! Where a repository is, and what is checked out of it (gitrepository-layout(5)).

use crate::rooted::RootedFolder;
use std::fs;
use std::path::{Path, PathBuf};

/// HEAD and a reference hold one line.
const REFERENCE_LIMIT_BYTES: u64 = 4096;
/// A repository with 300,000 packed references.
const PACKED_LIMIT_BYTES: u64 = 32 << 20;
/// Symbolic references that lead to each other; git follows as many.
const SYMBOLIC_MAX: usize = 5;

/// What is found around a folder.
pub enum Around {
    /// No repository.
    Nothing,
    /// A `.git` that is a link, or a file that names another place (a linked work tree, a
    /// submodule): it is not followed.
    NotUnderstood,
    Repository(GitRepository),
}

/// A folder `.git` and the work tree that it is in.
pub struct GitRepository {
    /// The files below `.git`.
    pub files: RootedFolder,
    /// The work tree.
    pub top: PathBuf,
}

/// What is checked out.
pub enum GitHead {
    /// A branch without a commit.
    Unborn,
    /// A commit, by its id.
    Commit(String),
}

/// The nearest repository at or above a folder. A folder that looks like a bare repository is a
/// folder: its files may have come from whoever wrote the rest of it.
pub fn find_enclosing_repository(folder: &Path) -> Around {
    for top in folder.ancestors() {
        let git = top.join(".git");
        let Ok(found) = fs::symlink_metadata(&git) else {
            continue;
        };
        if !found.is_dir() {
            return Around::NotUnderstood;
        }
        let Ok(files) = RootedFolder::open(&git) else {
            return Around::NotUnderstood;
        };
        if matches!(files.beginning("HEAD", 1), Ok(Some(_))) {
            return Around::Repository(GitRepository {
                files,
                top: top.to_owned(),
            });
        }
    }
    Around::Nothing
}

impl GitRepository {
    /// What HEAD leads to; nothing where that is unknown.
    pub fn head(&self) -> Option<GitHead> {
        let mut name = "HEAD".to_owned();
        for _ in 0..SYMBOLIC_MAX {
            let Some(said) = self.reference(&name)? else {
                return self.unborn();
            };
            match said.strip_prefix("ref:").map(str::trim) {
                Some(next) if next.starts_with("refs/") => name = next.to_owned(),
                Some(_) => return None,
                None => return is_id(&said).then_some(GitHead::Commit(said)),
            }
        }
        None
    }

    /// What a reference holds: an id, or `ref: NAME`; nothing where it is not there.
    fn reference(&self, name: &str) -> Option<Option<String>> {
        let loose = self.files.beginning(name, REFERENCE_LIMIT_BYTES).ok()?;
        match loose {
            Some(bytes) => Some(Some(String::from_utf8(bytes).ok()?.trim().to_owned())),
            None => self.packed(name),
        }
    }

    /// Lines `ID NAME` of `packed-refs`.
    fn packed(&self, name: &str) -> Option<Option<String>> {
        let Some(bytes) = self
            .files
            .beginning("packed-refs", PACKED_LIMIT_BYTES)
            .ok()?
        else {
            return Some(None);
        };
        if bytes.len() as u64 == PACKED_LIMIT_BYTES {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let found = text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(_, named)| *named == name);
        Some(found.map(|(id, _)| id.to_owned()))
    }

    /// Where references are kept in tables, that one has no file says nothing.
    fn unborn(&self) -> Option<GitHead> {
        (!self.files.is_folder("reftable")).then_some(GitHead::Unborn)
    }
}

/// A hash in hexadecimal digits: SHA-1, or SHA-256 of newer repositories.
fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
