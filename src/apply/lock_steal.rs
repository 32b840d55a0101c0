//! The locks of a cluster, seen and taken away: the one on this side and those on the hosts.

use super::context::Context;
use super::heartbeat::HeldLocks;
use super::host_locks::beyond_reach;
use super::preflight::connect_target;
use super::trouble;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Redaction};
use railwright_observe::crowd;
use railwright_state::journal_writer::JournalError;
use railwright_state::lock::{HEARTBEAT_S, SILENCE_LIMIT_S};
use railwright_state::{ClusterLock, JournalEntry, LockHolder, StateFolder};
use railwright_system::identity::{self, ProcessIdentity, ProcessLiveness};
use railwright_transport::{Grounds, LockReading, StealOutcome};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// How it stands with a host's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostLock {
    /// Nobody has it.
    Free,
    /// The target keeps none.
    NotKept,
    /// Somebody has.
    Held(Box<HeldLock>),
    /// It could not be found out.
    Unknown {
        /// In one line.
        reason: String,
    },
}

/// A lock that somebody has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    /// The holder's line, as it stands in the lock.
    pub line: String,
    /// The holder, if the line can be read.
    pub holder: Option<LockHolder>,
    /// What came with its latest heartbeat.
    pub note: String,
    /// Seconds since then, by the host's own monotonic clock.
    pub age_s: u64,
    /// Whether its process lives, as far as this machine can tell.
    pub life: ProcessLiveness,
    /// The highest fencing number that the host has seen.
    pub fence: u64,
}

impl HeldLock {
    /// For people.
    pub fn describe(&self) -> String {
        let who = self.holder.as_ref().map_or_else(
            || format!("`{}`", one_line(&self.line, 120)),
            LockHolder::describe,
        );
        if self.note.is_empty() {
            who
        } else {
            format!("{who}, {}", one_line(&self.note, 60))
        }
    }

    /// True when its holder lives, or may well.
    pub fn may_be_alive(&self) -> bool {
        self.grounds().is_none()
    }

    /// On which grounds it may be taken without being forced.
    pub fn grounds(&self) -> Option<Grounds> {
        match self.life {
            ProcessLiveness::Dead => Some(Grounds::Dead),
            ProcessLiveness::Alive => None,
            ProcessLiveness::Unknown => {
                (self.age_s >= SILENCE_LIMIT_S).then_some(Grounds::Silent(SILENCE_LIMIT_S))
            }
        }
    }

    /// As it may be shown: what stands in a lock is compared as it is, and is the target's own word.
    pub(super) fn redacted(mut self, redaction: Option<&Redaction>) -> Self {
        if let Some(redaction) = redaction {
            self.line = redaction.apply(&self.line);
            self.holder = LockHolder::parse(&self.line);
            self.note = redaction.apply(&self.note);
        }
        self
    }

    /// As it was read; `here` is this process.
    pub(super) fn from_reading(reading: LockReading, here: &ProcessIdentity) -> Self {
        let LockReading {
            holder: line,
            note,
            silence_s,
            highest,
        } = reading;
        let holder = LockHolder::parse(&line);
        let life = holder
            .as_ref()
            .map_or(ProcessLiveness::Unknown, |holder| holder.life(here));
        HeldLock {
            holder,
            line,
            note,
            age_s: silence_s,
            life,
            fence: highest,
        }
    }
}

/// What became of a host's lock that was to be taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stolen {
    /// It was taken from this holder.
    Taken(HeldLock),
    /// There was nothing to take.
    Free,
    /// The target keeps none.
    NotKept,
    /// Its holder lives, or was seen alive not long ago.
    MayBeAlive(HeldLock),
    /// It could not be done.
    Unknown {
        /// In one line.
        reason: String,
    },
}

/// The locks of these hosts.
pub async fn list_host_locks(hosts: &[String], context: &Context) -> BTreeMap<String, HostLock> {
    let found = Mutex::new(BTreeMap::new());
    crowd::run_each_bounded(hosts.to_vec(), context.patience.parallel, &|host| {
        Box::pin(add_host_lock(host, context, &found))
    })
    .await;
    std::mem::take(&mut *lock_ignoring_poison(&found))
}

async fn add_host_lock(host: String, context: &Context, found: &Mutex<BTreeMap<String, HostLock>>) {
    let lock = read_host_lock(&host, context).await;
    lock_ignoring_poison(found).insert(host, lock);
}

async fn read_host_lock(host: &str, context: &Context) -> HostLock {
    if context
        .hosts
        .get(host)
        .is_some_and(|access| !access.keeps_locks())
    {
        return HostLock::NotKept;
    }
    let reading = match connect_target(host, context).await {
        Ok(locker) => locker.reader().lock().await,
        Err(error) => Err(error),
    };
    match reading {
        Ok(Ok(Some(reading))) => HostLock::Held(Box::new(HeldLock::from_reading(
            reading,
            &context.folder.process(),
        ))),
        Ok(Ok(None)) => HostLock::Free,
        Ok(Err(reason)) => HostLock::Unknown {
            reason: one_line(reason.as_words(), 200),
        },
        Err(error) => HostLock::Unknown {
            reason: error.one_line(),
        },
    }
}

/// Takes the cluster's lock, and those of these hosts, away from whoever has them, each with a
/// number that is higher than any that was seen there. Holders that are neither provably dead nor
/// silent keep them unless it is forced. All of it is journalled.
pub async fn steal_locks(
    hosts: &[String],
    reason: &str,
    force: bool,
    context: &Context,
) -> Result<BTreeMap<String, Stolen>, Vec<Diagnostic>> {
    let (lock, from) = ClusterLock::take_away(&context.folder, "lock steal", force)
        .map_err(|problem| vec![problem])?;
    let fence = lock.fence;
    let locks = HeldLocks::begin(lock, String::new(), context);
    let found = within_reach(list_host_locks(hosts, context).await, fence, context);
    let (taken, stolen) = select_locks(found, force);
    let mut holders: Vec<String> = from.iter().cloned().collect();
    holders.extend(taken.values().map(|(held, _)| held.describe()));
    let entry = JournalEntry::LockStolen {
        who: identity::find_user_name(),
        machine: identity::read_machine_name(),
        reason: reason.to_owned(),
        fence,
        from: holders,
        hosts: taken.keys().cloned().collect(),
    };
    // The record comes first: what is taken away is taken away for a reason that stays.
    if from.is_some() || !taken.is_empty() {
        append_to_newest_journal(
            entry,
            &locks.cluster,
            &context.folder,
            trouble::steal_not_recorded,
        )
        .await
        .map_err(|problem| vec![problem])?;
    }
    let stolen = Mutex::new(stolen);
    let taken: Vec<(String, (HeldLock, Grounds))> = taken.into_iter().collect();
    crowd::run_each_bounded(taken, context.patience.parallel, &|(host, selected)| {
        Box::pin(add_stolen(host, selected, fence, context, &stolen))
    })
    .await;
    Ok(std::mem::take(&mut *lock_ignoring_poison(&stolen)))
}

async fn add_stolen(
    host: String,
    (held, grounds): (HeldLock, Grounds),
    fence: u64,
    context: &Context,
    stolen: &Mutex<BTreeMap<String, Stolen>>,
) {
    let number = fence.max(held.fence.saturating_add(1));
    let outcome = take_one(&host, held, number, grounds, context).await;
    lock_ignoring_poison(stolen).insert(host, outcome);
}

/// Locks that are to be taken away, by host.
type SelectedLocks = BTreeMap<String, (HeldLock, Grounds)>;

/// The locks that are to be taken away, and what came of the others already.
fn select_locks(
    found: BTreeMap<String, HostLock>,
    force: bool,
) -> (SelectedLocks, BTreeMap<String, Stolen>) {
    let (mut taken, mut left) = (SelectedLocks::new(), BTreeMap::new());
    for (host, lock) in found {
        match lock {
            HostLock::Free => drop(left.insert(host, Stolen::Free)),
            HostLock::NotKept => drop(left.insert(host, Stolen::NotKept)),
            HostLock::Unknown { reason } => drop(left.insert(host, Stolen::Unknown { reason })),
            HostLock::Held(held) => match held.grounds() {
                Some(grounds) => drop(taken.insert(host, (*held, grounds))),
                None if force => drop(taken.insert(host, (*held, Grounds::Forced))),
                None => drop(left.insert(host, Stolen::MayBeAlive(*held))),
            },
        }
    }
    (taken, left)
}

/// Without the locks of hosts whose fencing number no runs came to: nothing is taken from them.
fn within_reach(
    mut found: BTreeMap<String, HostLock>,
    ours: u64,
    context: &Context,
) -> BTreeMap<String, HostLock> {
    for (host, lock) in &mut found {
        if let HostLock::Held(held) = &*lock
            && let Some(reason) = beyond_reach(held.fence, ours, &context.locked(host))
        {
            *lock = HostLock::Unknown { reason };
        }
    }
    found
}

async fn take_one(
    host: &str,
    held: HeldLock,
    fence: u64,
    grounds: Grounds,
    context: &Context,
) -> Stolen {
    let locker = match connect_target(host, context).await {
        Ok(locker) => locker,
        Err(error) => {
            return Stolen::Unknown {
                reason: error.one_line(),
            };
        }
    };
    match locker.steal(&held.line, fence, grounds).await {
        Ok(StealOutcome::Taken) => Stolen::Taken(held),
        Ok(StealOutcome::Free) => Stolen::Free,
        Ok(StealOutcome::Alive(age_s)) => Stolen::MayBeAlive(HeldLock { age_s, ..held }),
        Ok(StealOutcome::Other(line)) => Stolen::Unknown {
            reason: format!("meanwhile another one has it: {}", one_line(&line, 160)),
        },
        Ok(StealOutcome::Impossible(reason) | StealOutcome::Unknown(reason)) => Stolen::Unknown {
            reason: one_line(&reason, 200),
        },
        Err(error) => Stolen::Unknown {
            reason: error.one_line(),
        },
    }
}

/// Into the journal of the newest run, which is the one that somebody may ask about; false where
/// there is none.
pub(super) async fn append_to_newest_journal(
    entry: JournalEntry,
    lock: &ClusterLock,
    folder: &StateFolder,
    not_recorded: fn(&JournalError) -> Diagnostic,
) -> Result<bool, Diagnostic> {
    let Some(run) = folder.newest_run()? else {
        return Ok(false);
    };
    let journal = folder.read_journal(&run)?;
    let writer = lock.folder().continue_run(&run, &journal)?;
    writer
        .commit(entry)
        .await
        .map(|()| true)
        .map_err(|error| not_recorded(&error))
}

/// How long after its latest heartbeat a holder is taken for dead, in words.
pub fn describe_heartbeat_rule() -> String {
    format!(
        "a holder gives a heartbeat every {HEARTBEAT_S} s, and is taken for dead after {SILENCE_LIMIT_S} s \
         without"
    )
}
