//! One run at a time: a lock for the cluster on this side, with a number that only goes up. Each
//! host keeps a lock of its own with the highest number that it has seen, so that a run which slept
//! through its successor is refused.

use super::fenced_folder::FencedFolder;
use super::folder::StateFolder;
use super::lineage::RunPart;
use railwright_base::Diagnostic;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::text::one_line;
use railwright_system::identity::{ProcessIdentity, ProcessLiveness, process_now};
use railwright_system::lock_file::{LockAttempt, LockFile};
use railwright_system::{clock, identity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

/// How often the holder of a lock gives a heartbeat, in seconds.
pub const HEARTBEAT_S: u64 = 60;
/// A holder that gave one within so many seconds may well be alive.
pub const SILENCE_LIMIT_S: u64 = 3 * HEARTBEAT_S;

/// Locks that this process has taken and not let go: it may be used as a library, by several runs
/// at once.
static TAKINGS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn lock_taking_ids() -> MutexGuard<'static, BTreeSet<String>> {
    // Poisoned, another task panicked; a set is whole between statements.
    lock_ignoring_poison(&TAKINGS)
}

/// Who holds a lock. What proves whether it lives is its process; the rest is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The user.
    pub who: String,
    /// The process that railwright runs in.
    #[serde(flatten)]
    pub identity: ProcessIdentity,
    /// Since when, RFC 3339.
    pub since: String,
    /// What it does: `apply`, `resume`.
    pub command: String,
    /// Random, new with each taking: no two have the same line.
    pub taking: String,
}

impl LockHolder {
    /// This process, now.
    pub fn here(folder: &StateFolder, command: &str) -> Result<Self, Diagnostic> {
        Ok(LockHolder {
            who: identity::find_user_name(),
            identity: folder.process(),
            since: clock::read_current_time(),
            command: command.to_owned(),
            taking: clock::generate_nonce().map_err(|error| folder.unusable(&error))?,
        })
    }

    /// Who decides something under the lock without a run.
    pub fn part(&self) -> RunPart {
        RunPart {
            run: self.command.clone(),
            part: self.taking.clone(),
        }
    }

    /// One line of JSON, as locks keep it.
    pub fn line(&self) -> String {
        serde_json::to_string(self)
            .expect("our own types have string keys and serialise without fail")
    }

    /// The holder in a lock, if it can be read.
    pub fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line.trim()).ok()
    }

    /// Whether it lives, as far as `here` can tell. Where its state folder lies says nothing of
    /// that: folders are copied.
    pub fn life(&self, here: &ProcessIdentity) -> ProcessLiveness {
        match self.identity.life(here, process_now) {
            ProcessLiveness::Alive
                if self.identity == *here && !lock_taking_ids().contains(&self.taking) =>
            {
                ProcessLiveness::Dead
            }
            life => life,
        }
    }

    /// For people: `apply by ann on laptop (process 4711) since 2026-01-02T03:04:05Z`.
    pub fn describe(&self) -> String {
        let (machine, process) = (&self.identity.machine, self.identity.process);
        let text = format!(
            "{} by {} on {machine} (process {process}) since {}",
            self.command, self.who, self.since
        );
        one_line(&text, 200)
    }
}

/// A lock that this process has.
#[derive(Debug)]
struct Taking(String);

impl Taking {
    fn begin(holder: &LockHolder) -> Self {
        lock_taking_ids().insert(holder.taking.clone());
        Taking(holder.taking.clone())
    }
}

impl Drop for Taking {
    fn drop(&mut self) {
        lock_taking_ids().remove(&self.0);
    }
}

/// The cluster's lock; let go when it is dropped.
#[derive(Debug)]
pub struct ClusterLock {
    _file: LockFile,
    folder: FencedFolder,
    _taking: Taking,
    /// Who we are.
    pub holder: LockHolder,
    /// The number of this taking, higher than any before.
    pub fence: u64,
}

impl ClusterLock {
    /// Takes the lock or says who has it.
    pub fn take(folder: &StateFolder, command: &str) -> Result<Self, Diagnostic> {
        folder.prepare()?;
        if let Some(other) = find_copied_holder(folder)? {
            return Err(report_held_lock(folder, &other.line()));
        }
        let holder = LockHolder::here(folder, command)?;
        match LockFile::try_take(&lock_path(folder), &holder.line())
            .map_err(|error| folder.unusable(&error))?
        {
            LockAttempt::Taken(file) => Self::taken(folder, file, holder),
            LockAttempt::Held(line) => Err(report_held_lock(folder, &line)),
        }
    }

    fn taken(folder: &StateFolder, file: LockFile, holder: LockHolder) -> Result<Self, Diagnostic> {
        let token = file.token(&lock_path(folder));
        let folder = FencedFolder::new(folder, token.map_err(|error| folder.unusable(&error))?);
        folder.beat("");
        Ok(ClusterLock {
            fence: folder.write(StateFolder::next_fence)?,
            _file: file,
            folder,
            _taking: Taking::begin(&holder),
            holder,
        })
    }

    /// The folder of this lock, as its holder writes it.
    pub fn folder(&self) -> &FencedFolder {
        &self.folder
    }

    /// Takes the lock, also from a holder that is provably dead or silent, or is forced to give it
    /// up: that one can write no journal any more. With the holder that it was taken from.
    pub fn take_away(
        folder: &StateFolder,
        command: &str,
        force: bool,
    ) -> Result<(Self, Option<String>), Diagnostic> {
        folder.prepare()?;
        if let Some(other) = find_copied_holder(folder)?.filter(|_| !force) {
            check_holder_is_gone(folder, &other.describe(), Some(&other))?;
        }
        let (path, holder) = (lock_path(folder), LockHolder::here(folder, command)?);
        let attempt = LockFile::try_take(&path, &holder.line());
        let line = match attempt.map_err(|error| folder.unusable(&error))? {
            LockAttempt::Taken(file) => return Ok((Self::taken(folder, file, holder)?, None)),
            LockAttempt::Held(line) => line,
        };
        let other = LockHolder::parse(&line);
        let from = match &other {
            Some(other) => other.describe(),
            None => one_line(&line, 120),
        };
        if !force {
            check_holder_is_gone(folder, &from, other.as_ref())?;
        }
        let attempt = LockFile::take_over(&path, &holder.line(), &line);
        match attempt.map_err(|error| folder.unusable(&error))? {
            LockAttempt::Taken(file) => Ok((Self::taken(folder, file, holder)?, Some(from))),
            // It went, or went to another one, a moment ago.
            LockAttempt::Held(_) => Ok((Self::take(folder, command)?, Some(from))),
        }
    }

    /// Whether a run goes on here at this moment, and would read an order.
    pub fn is_held_here(folder: &StateFolder) -> Result<bool, Diagnostic> {
        LockFile::is_held(&lock_path(folder)).map_err(|error| folder.unusable(&error))
    }

    /// Whether a run goes on at this moment, here or in the folder that this one was copied from.
    pub fn is_held(folder: &StateFolder) -> Result<bool, Diagnostic> {
        Ok(Self::is_held_here(folder)? || find_living_holder(folder).is_some())
    }
}

/// The living process that the lock's file names. Where it does not hold the file, the folder was
/// copied from one whose run goes on: whoever lets go of a lock empties its file.
fn find_living_holder(folder: &StateFolder) -> Option<LockHolder> {
    LockHolder::parse(&read_lock_line(folder))
        .filter(|holder| holder.life(&folder.process()) == ProcessLiveness::Alive)
}

fn find_copied_holder(folder: &StateFolder) -> Result<Option<LockHolder>, Diagnostic> {
    Ok(match ClusterLock::is_held_here(folder)? {
        true => None,
        false => find_living_holder(folder),
    })
}

/// What the lock's file says, whoever holds it.
fn read_lock_line(folder: &StateFolder) -> String {
    String::from_utf8_lossy(&folder.read("lock", 4096).unwrap_or_default()).into_owned()
}

/// An error where the holder may live: its process does, or its latest heartbeat is not old.
fn check_holder_is_gone(
    folder: &StateFolder,
    shown: &str,
    holder: Option<&LockHolder>,
) -> Result<(), Diagnostic> {
    let life = match holder {
        Some(holder) => holder.life(&folder.process()),
        None => ProcessLiveness::Unknown,
    };
    let silence_s = LocalLock::silence_s(folder);
    let lives = match life {
        ProcessLiveness::Dead => return Ok(()),
        ProcessLiveness::Unknown
            if silence_s.is_some_and(|silence_s| silence_s >= SILENCE_LIMIT_S) =>
        {
            return Ok(());
        }
        ProcessLiveness::Unknown => None,
        ProcessLiveness::Alive => holder,
    };
    Err(report_lock_not_taken(folder, shown, lives, silence_s))
}

/// The lock on this side, for those who only look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalLock {
    /// Who has it, in words.
    pub holder: String,
    /// What it said with its latest heartbeat.
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
        let line = read_lock_line(folder);
        let holder = LockHolder::parse(&line)
            .map_or_else(|| one_line(&line, 120), |holder| holder.describe());
        let beat = folder.read_heartbeat();
        let note = one_line(beat.lines().next().unwrap_or_default(), 60);
        Ok(Some(LocalLock {
            holder,
            note,
            age_s: Self::silence_s(folder),
        }))
    }

    /// Seconds since the lock was taken, or since the latest heartbeat, by the clock of this
    /// machine that nobody sets. Nothing where another machine or another boot gave it.
    fn silence_s(folder: &StateFolder) -> Option<u64> {
        let beat = folder.read_heartbeat();
        let mut lines = beat.lines().skip(1);
        let (boot, seconds) = (lines.next()?, lines.next()?.parse::<u64>().ok()?);
        if boot.is_empty() || boot != identity::boot_id() {
            None
        } else {
            clock::uptime_s()?.checked_sub(seconds)
        }
    }
}

fn lock_path(folder: &StateFolder) -> std::path::PathBuf {
    folder.path().join("lock")
}

/// `lives` is the holder whose process was found on this machine.
fn report_lock_not_taken(
    folder: &StateFolder,
    holder: &str,
    lives: Option<&LockHolder>,
    silence_s: Option<u64>,
) -> Diagnostic {
    let why = match (lives, silence_s) {
        (Some(_), _) => "a process that lives on this machine".to_owned(),
        (None, Some(silence_s)) => format!("a process that was seen alive {silence_s} s ago"),
        (None, None) => "a process that nobody can prove dead from here".to_owned(),
    };
    let problem = Diagnostic::error(
        "RW0711",
        format!("the cluster's lock is held by {why}: {holder}"),
    )
    .effect(
        "taken away from a run that goes on, hosts would be changed from two sides for a moment",
    )
    .state("nothing was taken away");
    match lives {
        Some(holder) => problem
            .next(format!(
                "end that process, and the lock goes with it: kill {}",
                holder.identity.process
            ))
            .next(format!(
                "or take it all the same: railwright lock steal {} --force --reason 'why'",
                folder.inventory()
            )),
        None => problem
            .next("end that process: the lock goes with it")
            .next(format!(
                "or wait until it sent no heartbeat for {SILENCE_LIMIT_S} s; lock steal --force does not \
                 wait"
            )),
    }
}

fn report_held_lock(folder: &StateFolder, line: &str) -> Diagnostic {
    let who = LockHolder::parse(line).map_or_else(
        || "another railwright, which did not say who it is".to_owned(),
        |holder| holder.describe(),
    );
    Diagnostic::error(
        "RW0704",
        format!("the cluster is being changed already: {who}"),
    )
    .on(folder.path().join("lock").display().to_string())
    .effect(
        "two runs at once would undo each other's steps and take more hosts out of service than \
         the budget allows",
    )
    .state("this run changed nothing; the other one goes on")
    .next(format!(
        "wait until it ends, then make a new plan: railwright plan {}",
        folder.inventory()
    ))
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
        assert!(
            refused.message.contains(&first.holder.describe()),
            "{}",
            refused.message
        );
        // A copy that was made meanwhile has the same lock.
        let copied = tempfile::tempdir().unwrap();
        std::fs::copy(folder.path().join("lock"), copied.path().join("lock")).unwrap();
        let copy = StateFolder::at(copied.path());
        assert_eq!(
            ClusterLock::take(&copy, "apply").unwrap_err().code,
            "RW0704"
        );
        let kept = ClusterLock::take_away(&copy, "lock steal", false).unwrap_err();
        assert_eq!(kept.code, "RW0711");
        assert!(ClusterLock::is_held(&copy).unwrap());
        let fence = first.fence;
        assert!(ClusterLock::is_held(&folder).unwrap());
        drop(first);
        assert!(!ClusterLock::is_held(&copy).unwrap());
        drop(ClusterLock::take(&copy, "apply").unwrap());
        assert!(!ClusterLock::is_held(&folder).unwrap());
        assert_eq!(
            ClusterLock::take(&folder, "resume").unwrap().fence,
            fence + 1
        );
    }
}
