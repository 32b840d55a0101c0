//! The locks of a cluster, seen and taken away: the one on this side and those on the hosts.

use super::context::Context;
use super::preflight::connect;
use super::trouble;
use crate::base::Diagnostic;
use crate::base::text::one_line;
use crate::observe::crowd;
use crate::state::journal_writer::JournalError;
use crate::state::lock::{HEARTBEAT_S, YOUNG_S};
use crate::state::{ClusterLock, Entry, Holder, StateFolder};
use crate::system::identity;
use crate::transport::{BoxFuture, Performed, Upkeep};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// How it stands with a host's lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostLock {
    /// Nobody has it.
    Free,
    /// The target keeps none.
    NotKept,
    /// Somebody has.
    Held(HeldLock),
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
    pub holder: Option<Holder>,
    /// What it said with its latest sign of life.
    pub note: String,
    /// Seconds since then, by the host's own clock.
    pub age_s: u64,
    /// The highest fencing number that the host has seen.
    pub fence: u64,
}

impl HeldLock {
    /// For people.
    pub fn describe(&self) -> String {
        let who = self.holder.as_ref().map_or_else(|| format!("`{}`", one_line(&self.line, 120)), Holder::describe);
        if self.note.is_empty() { who } else { format!("{who}, {}", one_line(&self.note, 60)) }
    }

    /// True when its holder may well be alive.
    pub fn is_young(&self) -> bool {
        self.age_s < YOUNG_S
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
    /// Its holder was seen alive not long ago.
    Young(HeldLock),
    /// It could not be done.
    Unknown {
        /// In one line.
        reason: String,
    },
}

/// The locks of these hosts.
pub async fn list(hosts: &[String], context: &Context) -> BTreeMap<String, HostLock> {
    let found = Mutex::new(BTreeMap::new());
    let work = |host: String| -> BoxFuture<'_, ()> {
        let found = &found;
        Box::pin(async move {
            let lock = read(&host, context).await;
            found.lock().unwrap_or_else(PoisonError::into_inner).insert(host, lock);
        })
    };
    crowd::each(hosts.to_vec(), context.patience.parallel, &work).await;
    std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner))
}

async fn read(host: &str, context: &Context) -> HostLock {
    if context.hosts.get(host).is_some_and(|access| !access.keeps_locks()) {
        return HostLock::NotKept;
    }
    let performed = match connect(host, context).await {
        Ok(writer) => writer.reader().lock().await,
        Err(error) => Err(error),
    };
    match performed {
        Ok(Performed::Ended { code: 0, stdout, .. }) => {
            let mut lines = stdout.lines();
            let mut line = || lines.next().unwrap_or_default().to_owned();
            let (line, note, age, fence) = (line(), line(), line(), line());
            // A clock that was set back says that the sign of life is still to come.
            let age_s = age.trim().parse::<i64>().ok().and_then(|age| u64::try_from(age).ok()).unwrap_or_default();
            HostLock::Held(HeldLock { holder: Holder::parse(&line), line, note, age_s, fence: fence.trim().parse().unwrap_or_default() })
        }
        Ok(Performed::Ended { code: 1, .. }) => HostLock::Free,
        Ok(Performed::Ended { code, stderr, .. }) => HostLock::Unknown { reason: one_line(&format!("exit status {code}: {stderr}"), 200) },
        Ok(Performed::Unknown { reason }) => HostLock::Unknown { reason: one_line(&reason, 200) },
        Err(error) => HostLock::Unknown { reason: error.one_line() },
    }
}

/// Takes the cluster's lock, and those of these hosts, away from whoever has them, with a number that is higher than any
/// before. Holders that were seen alive not long ago keep them unless it is forced. All of it is journalled.
pub async fn steal(hosts: &[String], reason: &str, force: bool, context: &Context) -> Result<BTreeMap<String, Stolen>, Vec<Diagnostic>> {
    let (lock, from) = ClusterLock::take_away(&context.folder, "lock steal", force).map_err(|problem| vec![problem])?;
    let found = list(hosts, context).await;
    let highest = found.values().map(|lock| if let HostLock::Held(held) = lock { held.fence } else { 0 }).max().unwrap_or_default();
    let fence = context.folder.raise_fence(lock.fence.max(highest.saturating_add(1))).map_err(|problem| vec![problem])?;
    let mut stolen = BTreeMap::new();
    let mut taken = BTreeMap::new();
    for (host, lock_of_host) in found {
        match lock_of_host {
            HostLock::Free => drop(stolen.insert(host, Stolen::Free)),
            HostLock::NotKept => drop(stolen.insert(host, Stolen::NotKept)),
            HostLock::Unknown { reason } => drop(stolen.insert(host, Stolen::Unknown { reason })),
            // A run of this folder is dead: we hold the lock that it would need.
            HostLock::Held(held) => {
                let dead = held.holder.as_ref().is_some_and(|other| other.folder == lock.holder.folder);
                if dead || force || !held.is_young() {
                    taken.insert(host, held);
                } else {
                    stolen.insert(host, Stolen::Young(held));
                }
            }
        }
    }
    let entry = Entry::LockStolen {
        who: identity::user(),
        machine: identity::machine(),
        reason: reason.to_owned(),
        fence,
        from: from.iter().cloned().chain(taken.values().map(HeldLock::describe)).collect(),
        hosts: taken.keys().cloned().collect(),
    };
    // The record comes first: what is taken away is taken away for a reason that stays.
    if from.is_some() || !taken.is_empty() {
        journal(entry, &lock, &context.folder, trouble::steal_not_recorded).await.map_err(|problem| vec![problem])?;
    }
    let stolen = Mutex::new(stolen);
    let work = |(host, held): (String, HeldLock)| -> BoxFuture<'_, ()> {
        let stolen = &stolen;
        Box::pin(async move {
            let one = take_one(&host, held, fence, context).await;
            stolen.lock().unwrap_or_else(PoisonError::into_inner).insert(host, one);
        })
    };
    crowd::each(taken.into_iter().collect(), context.patience.parallel, &work).await;
    Ok(std::mem::take(&mut *stolen.lock().unwrap_or_else(PoisonError::into_inner)))
}

async fn take_one(host: &str, held: HeldLock, fence: u64, context: &Context) -> Stolen {
    let writer = match connect(host, context).await {
        Ok(writer) => writer,
        Err(error) => return Stolen::Unknown { reason: error.one_line() },
    };
    match writer.upkeep(&Upkeep::Steal { holder: held.line.clone(), fence }).await {
        Ok(Performed::Ended { code: 0, .. }) => Stolen::Taken(held),
        Ok(Performed::Ended { code: 1, .. }) => Stolen::Free,
        Ok(Performed::Ended { code: 75, stdout, .. }) => {
            Stolen::Unknown { reason: format!("meanwhile another one has it: {}", one_line(&stdout, 160)) }
        }
        Ok(Performed::Ended { code, stderr, .. }) => Stolen::Unknown { reason: one_line(&format!("exit status {code}: {stderr}"), 200) },
        Ok(Performed::Unknown { reason }) => Stolen::Unknown { reason: one_line(&reason, 200) },
        Err(error) => Stolen::Unknown { reason: error.one_line() },
    }
}

/// Into the journal of the newest run, which is the one that somebody may ask about; false where there is none.
pub(super) async fn journal(
    entry: Entry,
    lock: &ClusterLock,
    folder: &StateFolder,
    not_recorded: fn(&str) -> Diagnostic,
) -> Result<bool, Diagnostic> {
    let Some(run) = folder.newest_run()? else { return Ok(false) };
    let journal = folder.read_journal(&run)?;
    if journal.records.is_empty() {
        return Ok(false);
    }
    let store = folder.continue_run(&run, &journal)?;
    let writer = folder.writer(lock.fenced(folder, store)?, journal.chain)?;
    writer.commit(entry).await.map(|()| true).map_err(|JournalError(reason)| not_recorded(&reason))
}

/// How long after its last sign of life a holder is taken for dead, in words.
pub fn rule() -> String {
    format!("a holder gives a sign of life every {HEARTBEAT_S} s, and is taken for dead after {YOUNG_S} s without")
}
