//! One run at a time: a lock for the cluster on this side, with a number that only goes up. Each host keeps a lock of
//! its own with the highest number that it has seen, so that a run which slept through its successor is refused.

use super::fenced::Fenced;
use super::folder::StateFolder;
use super::journal_writer::JournalStore;
use crate::base::Diagnostic;
use crate::base::text::one_line;
use crate::system::lock_file::{LockFile, Tried};
use crate::system::{clock, files, identity};
use serde::{Deserialize, Serialize};

/// How often the holder of a lock gives a sign of life, in seconds.
pub const HEARTBEAT_S: u64 = 60;
/// A holder that gave one within so many seconds may well be alive.
pub const YOUNG_S: u64 = 3 * HEARTBEAT_S;
/// The file of the latest one on this side.
const BEAT: &str = "beat";

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

    /// Takes the lock, also from a process that holds it and gave no sign of life for a while, or is forced to give it up:
    /// that one can write no journal any more. With the holder that it was taken from.
    pub fn take_away(folder: &StateFolder, command: &str, force: bool) -> Result<(Self, Option<String>), Diagnostic> {
        folder.prepare()?;
        let path = folder.path().join("lock");
        let holder = Holder::here(folder, command)?;
        let unusable = |error| folder.unusable(&error);
        let line = match LockFile::try_take(&path, &holder.line()).map_err(unusable)? {
            Tried::Taken(file) => return Ok((ClusterLock { _file: file, holder, fence: folder.next_fence()? }, None)),
            Tried::Held(line) => line,
        };
        let from = Holder::parse(&line).map_or_else(|| one_line(&line, 120), |holder| holder.describe());
        let age = LocalLock::age_s(folder);
        if age.is_some_and(|age| age < YOUNG_S) && !force {
            return Err(young(&from, age.unwrap_or_default()));
        }
        LockFile::take_away(&path).map_err(unusable)?;
        Ok((Self::take(folder, command)?, Some(from)))
    }

    /// A journal that is written only while this lock is held.
    pub fn fenced(&self, folder: &StateFolder, store: Box<dyn JournalStore>) -> Result<Box<dyn JournalStore>, Diagnostic> {
        let token = self._file.token(&folder.path().join("lock")).map_err(|error| folder.unusable(&error))?;
        Ok(Box::new(Fenced::new(store, token)))
    }

    /// Whether a run goes on here at this moment.
    pub fn is_held(folder: &StateFolder) -> Result<bool, Diagnostic> {
        LockFile::is_held(&folder.path().join("lock")).map_err(|error| folder.unusable(&error))
    }
}

/// The lock on this side, for those who only look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalLock {
    /// Who has it, in words.
    pub holder: String,
    /// What it said with its latest sign of life.
    pub note: String,
    /// Seconds since then.
    pub age_s: Option<u64>,
}

impl LocalLock {
    /// The lock of a folder; nothing when nobody has it.
    pub fn read(folder: &StateFolder) -> Result<Option<Self>, Diagnostic> {
        if !ClusterLock::is_held(folder)? {
            return Ok(None);
        }
        let text = |name: &str| files::read_limited(&folder.path().join(name), 4096).unwrap_or_default();
        let line = String::from_utf8_lossy(&text("lock")).into_owned();
        let holder = Holder::parse(&line).map_or_else(|| one_line(&line, 120), |holder| holder.describe());
        let age = |name: &str| files::age_s(&folder.path().join(name));
        // One of an earlier holder says nothing of this one.
        let note = if age(BEAT) <= age("lock") { one_line(String::from_utf8_lossy(&text(BEAT)).trim(), 60) } else { String::new() };
        Ok(Some(LocalLock { holder, note, age_s: Self::age_s(folder) }))
    }

    /// A sign of life; one that cannot be given is not worth ending a run for.
    pub fn beat(folder: &StateFolder, note: &str) {
        let _ = files::write_atomic(&folder.path().join(BEAT), note.as_bytes(), 0o600);
    }

    /// Seconds since the lock was taken, or since the latest sign of life.
    fn age_s(folder: &StateFolder) -> Option<u64> {
        ["lock", BEAT].iter().filter_map(|name| files::age_s(&folder.path().join(name))).min()
    }
}

fn young(holder: &str, age: u64) -> Diagnostic {
    Diagnostic::error("RW0711", format!("the cluster's lock is held by a process that was seen alive {age} s ago: {holder}"))
        .effect("taken away from a run that goes on, hosts would be changed from two sides for a moment")
        .state("nothing was taken away")
        .next("end that process: the lock goes with it")
        .next(format!("or wait until it gave no sign of life for {YOUNG_S} s; --force does not wait"))
}

fn held(folder: &StateFolder, line: &str) -> Diagnostic {
    let who = Holder::parse(line).map_or_else(|| "another railwright, which did not say who it is".to_owned(), |holder| holder.describe());
    Diagnostic::error("RW0704", format!("the cluster is being changed already: {who}"))
        .on(folder.path().join("lock").display().to_string())
        .effect("two runs at once would undo each other's steps and take more hosts out of service than the budget allows")
        .state("this run changed nothing; the other one goes on")
        .next(format!("wait until it ends, then make a new plan: railwright plan {}", folder.inventory()))
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
