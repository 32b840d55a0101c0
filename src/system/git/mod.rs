//! The commit that is checked out around a folder, and whether files that were read from it are
//! those of the commit.
//!
//! The folder is untrusted, so git itself is not run: filters, hooks, the file-system monitor,
//! included configuration and text conversion start programs that a repository names. Here nothing
//! of its configuration is read, nothing is run, and nothing outside the repository is opened.
//! HEAD, references, loose objects and packs are read with limits, and an object counts only when
//! its content has the hash that names it. What takes more than that (filters, linked work trees,
//! submodules, alternates, reference tables) is unknown.

mod attributes;
mod compare;
mod object;
mod pack;
mod repository;

pub use compare::{ReadFile, TrackedPath};
pub use railwright_base::GitRevision;

use railwright_base::WorkTreeState;
use repository::{Around, GitHead};
use std::path::Path;

/// What git's files say of these files of a folder, which is a path without links. `is_read` tells
/// of a path below the folder that the commit has whether it would have been read, if it were
/// there.
pub fn read_revision(
    folder: &Path,
    files: &[ReadFile<'_>],
    is_read: &dyn Fn(&TrackedPath<'_>) -> bool,
) -> GitRevision {
    let repository = match repository::find_enclosing_repository(folder) {
        Around::Nothing => return GitRevision::default(),
        Around::NotUnderstood => {
            return GitRevision {
                commit: None,
                state: WorkTreeState::Unknown,
            };
        }
        Around::Repository(repository) => repository,
    };
    match repository.head() {
        Some(GitHead::Unborn) => GitRevision {
            commit: None,
            state: WorkTreeState::Changed,
        },
        Some(GitHead::Commit(commit)) => {
            let state = compare::compare_with_commit(&repository, folder, &commit, files, is_read)
                .unwrap_or(WorkTreeState::Unknown);
            GitRevision {
                commit: Some(commit),
                state,
            }
        }
        None => GitRevision {
            commit: None,
            state: WorkTreeState::Unknown,
        },
    }
}

#[cfg(test)]
mod tests;
