//! The commit that is checked out around a folder, and whether files that were read from it are those of the commit.
//!
//! The folder is untrusted, so git itself is not run: filters, hooks, the file-system monitor, included configuration and text conversion
//! start programs that a repository names. Here nothing of its configuration is read, nothing is run, and nothing outside the repository
//! is opened. HEAD, references, loose objects and packs are read with limits, and an object counts only when its content has the hash
//! that names it. What takes more than that (filters, linked work trees, submodules, alternates, reference tables) is not known.

mod attributes;
mod compare;
mod object;
mod pack;
mod repository;

pub use compare::{ReadFile, TrackedPath};
pub use railwright_base::Revision;

use railwright_base::WorkTreeState;
use repository::{Around, Head};
use std::path::Path;

/// What git's files say of these files of a folder, which is a path without links. `is_read` tells of a path below the folder that the
/// commit has whether it would have been read, if it were there.
pub fn revision(folder: &Path, files: &[ReadFile<'_>], is_read: &dyn Fn(&TrackedPath<'_>) -> bool) -> Revision {
    let repository = match repository::around(folder) {
        Around::Nothing => return Revision::default(),
        Around::NotUnderstood => return Revision { commit: None, state: WorkTreeState::Unknown },
        Around::Repository(repository) => repository,
    };
    match repository.head() {
        Some(Head::Unborn) => Revision { commit: None, state: WorkTreeState::Changed },
        Some(Head::Commit(commit)) => {
            let state = compare::state(&repository, folder, &commit, files, is_read).unwrap_or(WorkTreeState::Unknown);
            Revision { commit: Some(commit), state }
        }
        None => Revision { commit: None, state: WorkTreeState::Unknown },
    }
}

#[cfg(test)]
mod tests;
