//! The locks of the targets of a run: taken before its first step, with those of the dead and the
//! silent taken over, and let go after its last.

use super::context::Context;
use super::heartbeat::HeldLocks;
use super::lock_steal::HeldLock;
use super::preflight::connect_target;
use super::running_steps::Busy;
use super::trouble::{self, LockedTarget, NextCommands};
use super::unready::Unready;
use railwright_base::{Diagnostic, Reason, TargetKind};
use railwright_observe::crowd;
use railwright_state::{ClusterLock, LockHolder};
use railwright_system::identity::ProcessLiveness;
use railwright_transport::{
    Fence, Grounds, LockOutcome, Locker, StealOutcome, TransportError, Writer,
};
use std::collections::{BTreeMap, BTreeSet};

/// Why a target's lock was not taken.
pub(super) enum NotLocked {
    /// The target cannot be worked on.
    Unready(Unready),
    /// The run must not begin.
    Refused(Box<Diagnostic>),
}

impl From<TransportError> for NotLocked {
    fn from(error: TransportError) -> Self {
        NotLocked::Unready(error.into())
    }
}

/// How many runs a host may have seen that this folder knows nothing of.
const FURTHEST_AHEAD: u64 = 1_000_000;

/// Why a target whose fencing number is this one cannot be worked on, where ours is so far behind
/// that no runs came to it.
pub(super) fn beyond_reach(seen: u64, ours: u64, of: &LockedTarget) -> Option<String> {
    if seen.saturating_sub(ours) <= FURTHEST_AHEAD {
        return None;
    }
    Some(format!(
        "its fencing number {seen} is higher than any number of runs; see {}",
        of.fence()
    ))
}

/// Lets the locks of these hosts go; a host that cannot be reached keeps a lock that a later run
/// takes over once this process is gone.
pub(super) async fn release_host_locks(fences: BTreeMap<String, Fence>, context: &Context) {
    let fences: Vec<(String, Fence)> = fences.into_iter().collect();
    crowd::run_each_bounded(fences, context.patience.parallel, &|(host, fence)| {
        Box::pin(release_host_lock(host, fence, context))
    })
    .await;
}

async fn release_host_lock(host: String, fence: Fence, context: &Context) {
    if let Ok(locker) = connect_target(&host, context).await {
        // Whoever took it over meanwhile keeps it.
        let _ = locker.writer(fence).unlock().await;
    }
}

/// Lets go of locks that a dead run left on hosts where nothing is left to do. Whoever cannot be
/// reached keeps its lock until a run from here works on it again.
pub async fn release_dead_locks(hosts: BTreeSet<String>, context: &Context, lock: &ClusterLock) {
    let hosts: Vec<String> = hosts.into_iter().collect();
    crowd::run_each_bounded(hosts, context.patience.parallel, &|host| {
        Box::pin(release_dead_lock(host, context, lock))
    })
    .await;
}

async fn release_dead_lock(host: String, context: &Context, lock: &ClusterLock) {
    let Ok(locker) = connect_target(&host, context).await else {
        return;
    };
    let Ok(Ok(Some(reading))) = locker.reader().lock().await else {
        return;
    };
    let held = HeldLock::from_reading(reading.clone(), &context.folder.process());
    if held.life == ProcessLiveness::Dead {
        let _ = locker
            .steal(&reading.holder, lock.fence, Grounds::Dead)
            .await;
    }
}

/// Takes the lock of one target for something short: what writes there in its name, and the digest
/// of the record that stood there.
pub(super) async fn lock_one(
    name: &str,
    context: &Context,
    locker: &Locker,
    locks: &HeldLocks,
) -> Result<(Writer, Option<String>), Diagnostic> {
    let lock = &locks.cluster;
    match take_lock(name, context, locker, &lock.holder, lock.fence).await {
        Ok((number, record)) => {
            let fence = Fence::new(&lock.holder.line(), number);
            locks.heart.add(name, fence.clone());
            Ok((locker.writer(fence), record))
        }
        Err(NotLocked::Refused(refusal)) => Err(*refusal),
        Err(NotLocked::Unready(unready)) => Err(unready.diagnostic(
            &context.target(name),
            &NextCommands::beside(&context.folder),
        )),
    }
}

/// One host keeps nobody from the others. Without its cluster a run does not begin, as without the
/// rights on it.
fn not_lockable(of: &LockedTarget, why: &str, context: &Context) -> NotLocked {
    let unready = Unready::NotLockable(of.clone(), why.to_owned());
    match of.target.kind {
        TargetKind::Kube => {
            let next = NextCommands::beside(&context.folder);
            NotLocked::Refused(Box::new(unready.diagnostic(&of.target, &next)))
        }
        TargetKind::Host | TargetKind::Switch => NotLocked::Unready(unready),
    }
}

/// Takes the lock of a host or a cluster: with which fencing token, and the digest of the record
/// that stood there. One whose holder is provably dead or silent is taken over. A higher token on
/// the host only means that the one for it has to go beyond: no other host's does.
pub(super) async fn take_lock(
    host: &str,
    context: &Context,
    locker: &Locker,
    holder: &LockHolder,
    ours: u64,
) -> Result<(u64, Option<String>), NotLocked> {
    let of = &context.locked(host);
    let (mut number, mut taken_from) = (ours, None);
    for _ in 0..4 {
        match locker.lock(&Fence::new(&holder.line(), number)).await? {
            LockOutcome::Taken(record) => return Ok((number, record)),
            LockOutcome::Held(line) => {
                // Whoever lost it does not take it again.
                if taken_from.as_ref() == Some(&line) {
                    let why = "it was taken away from its holder, and is that holder's as before: \
                               what is written there is not kept";
                    return Err(not_lockable(of, why, context));
                }
                if steal_lock(of, context, locker, &line, number, ours).await? {
                    taken_from = Some(line);
                }
            }
            LockOutcome::Behind(seen) => match beyond_reach(seen, ours, of) {
                Some(reason) => return Err(NotLocked::Unready(Unready::Unfit(reason))),
                None => number = seen.saturating_add(1),
            },
            LockOutcome::Impossible(why) => return Err(not_lockable(of, &why, context)),
            LockOutcome::Unknown(reason) => return Err(lock_unknown(reason.into())),
        }
    }
    let why = "it is taken and let go by others all the time";
    Err(not_lockable(of, why, context))
}

/// Takes the lock away from the holder of this line, where that is provably dead or silent. True
/// when it was taken away; false where it is not that holder's any more.
async fn steal_lock(
    of: &LockedTarget,
    context: &Context,
    locker: &Locker,
    line: &str,
    number: u64,
    ours: u64,
) -> Result<bool, NotLocked> {
    // How long a holder is silent is watched for minutes.
    let Some(look) = context.unless_interrupted(locker.reader().lock()).await else {
        return Err(NotLocked::Unready(Busy::Interrupted.into()));
    };
    // Another one is re-checked, and so is one that was let go meanwhile.
    let Some(reading) = look?.map_err(lock_unknown)? else {
        return Ok(false);
    };
    if reading.holder != line {
        return Ok(false);
    }
    let held = HeldLock::from_reading(reading, &context.folder.process());
    let Some(grounds) = held.grounds() else {
        return Err(lock_refused(of, held, context));
    };
    if let Some(reason) = beyond_reach(held.fence, ours, of) {
        return Err(NotLocked::Unready(Unready::Unfit(reason)));
    }
    let stealing = locker.steal(line, number, grounds);
    let Some(stolen) = context.unless_interrupted(stealing).await else {
        return Err(NotLocked::Unready(Busy::Interrupted.into()));
    };
    match stolen? {
        StealOutcome::Taken => Ok(true),
        StealOutcome::Free | StealOutcome::Other(_) => Ok(false),
        StealOutcome::Alive(age_s) => Err(lock_refused(of, HeldLock { age_s, ..held }, context)),
        StealOutcome::Impossible(why) => Err(not_lockable(of, &why, context)),
        StealOutcome::Unknown(reason) => Err(lock_unknown(reason.into())),
    }
}

fn lock_unknown(reason: Reason) -> NotLocked {
    NotLocked::Unready(Unready::Unfit(format!(
        "whether its lock was taken is not known: {reason}"
    )))
}

/// Somebody else works on the target.
fn lock_refused(of: &LockedTarget, held: HeldLock, context: &Context) -> NotLocked {
    let next = NextCommands::beside(&context.folder);
    let held = held.redacted(context.secrets.redaction());
    NotLocked::Refused(Box::new(trouble::report_locked_target(
        &of.target, &held, &next,
    )))
}
