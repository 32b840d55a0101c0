//! One run at a time: a lock for the cluster on this side, with a number that only goes up. Each host keeps a lock of
//! its own with the highest number that it has seen, so that a run which slept through its successor is refused.

use super::folder::StateFolder;
use crate::base::Diagnostic;
use crate::base::text::one_line;
use crate::system::lock_file::{LockFile, Tried};
use crate::system::{clock, identity};
use serde::{Deserialize, Serialize};

/// Who holds a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The user.
    pub who: String,
    /// The machine that railwright runs on.
    pub machine: String,
    /// Its process.
    pub process: u32,
    /// Since when, RFC 3339.
    pub since: String,
    /// The identity of the state folder.
    pub folder: String,
    /// What it does: `apply`, `resume`.
    pub command: String,
}

impl Holder {
    /// This process, now.
    pub fn here(folder: &StateFolder, command: &str) -> Result<Self, Diagnostic> {
        Ok(Holder {
            who: identity::user(),
            machine: identity::machine(),
            process: identity::process(),
            since: clock::now(),
            folder: folder.identity()?,
            command: command.to_owned(),
        })
    }

    /// One line of JSON, as locks keep it.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("our own types have string keys and serialise without fail")
    }

    /// The holder in a lock, if it can be read.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line.trim()).ok()
    }

    /// For people: `apply by ann on laptop (process 4711) since 2026-01-02T03:04:05Z`.
    pub fn describe(&self) -> String {
        let text = format!("{} by {} on {} (process {}) since {}", self.command, self.who, self.machine, self.process, self.since);
        one_line(&text, 200)
    }
}

/// The cluster's lock; let go when it is dropped.
#[derive(Debug)]
pub struct ClusterLock {
    _file: LockFile,
    /// Who we are.
    pub holder: Holder,
    /// The number of this taking, higher than any before.
    pub fence: u64,
}

impl ClusterLock {
    /// Takes the lock or says who has it.
    pub fn take(folder: &StateFolder, command: &str) -> Result<Self, Diagnostic> {
        folder.prepare()?;
        let holder = Holder::here(folder, command)?;
        let tried = LockFile::try_take(&folder.path().join("lock"), &holder.line()).map_err(|error| folder.unusable(&error))?;
        match tried {
            Tried::Taken(file) => Ok(ClusterLock { _file: file, holder, fence: folder.next_fence()? }),
            Tried::Held(line) => Err(held(folder, &line)),
        }
    }

    /// Whether a run goes on here at this moment.
    pub fn is_held(folder: &StateFolder) -> Result<bool, Diagnostic> {
        LockFile::is_held(&folder.path().join("lock")).map_err(|error| folder.unusable(&error))
    }
}

fn held(folder: &StateFolder, line: &str) -> Diagnostic {
    let who = Holder::parse(line).map_or_else(|| "another railwright, which did not say who it is".to_owned(), |holder| holder.describe());
    Diagnostic::error("RW0704", format!("the cluster is being changed already: {who}"))
        .on(folder.path().join("lock").display().to_string())
        .effect("two runs at once would undo each other's steps and take more hosts out of service than the budget allows")
        .state("this run changed nothing; the other one goes on")
        .next("wait until it ends, then make a new plan: `railwright plan`")
        .next("the lock goes away with its process; nothing has to be removed by hand")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_the_first_is_and_numbers_go_up() {
        let folder = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(folder.path());
        let first = ClusterLock::take(&folder, "apply").unwrap();
        let refused = ClusterLock::take(&folder, "apply").unwrap_err();
        assert_eq!(refused.code, "RW0704");
        assert!(refused.message.contains(&first.holder.describe()), "{}", refused.message);
        let fence = first.fence;
        assert!(ClusterLock::is_held(&folder).unwrap());
        drop(first);
        assert!(!ClusterLock::is_held(&folder).unwrap());
        assert_eq!(ClusterLock::take(&folder, "resume").unwrap().fence, fence + 1);
    }
}
