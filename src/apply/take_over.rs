//! Takes targets over from another cluster: the record on each names this cluster from then on, and what the other one brought
//! stays as it is. Each is looked at once more under its lock: only what was decided about is taken.

use super::context::Context;
use super::host_locks::lock_one;
use super::preflight::{connect, host_now, read_record};
use super::records::members;
use super::trouble::{Next, not_workable, record_not_written};
use crate::base::{Diagnostic, MachineId, Target};
use crate::resource::Read;
use crate::state::{ClusterIdentity, ClusterLock, HostRecord, IdentityConflict, State, TakeOver, host_record};
use crate::system::{clock, identity};
use crate::transport::{RecordOutcome, Writer};
use std::collections::{BTreeMap, BTreeSet};

/// What somebody decided.
#[derive(Debug, Clone)]
pub struct TakeOverDecision {
    /// Which targets, with the cluster that each belongs to.
    pub targets: BTreeMap<Target, IdentityConflict>,
    /// Why, in the user's words.
    pub reason: String,
    /// What their records say counts as this cluster's.
    pub keep_record: bool,
    /// This cluster, by the spec and by what the targets say.
    pub cluster: Option<ClusterIdentity>,
    /// Its name in the spec.
    pub name: String,
}

/// What came of it, by target.
pub type TakenOver = BTreeMap<Target, Result<TakeOver, Diagnostic>>;

/// A target that is locked and may be taken over.
struct Taken {
    writer: Writer,
    /// The digest of its record, where the target tells it.
    replaces: BTreeSet<String>,
    record: HostRecord,
    machine: Option<MachineId>,
}

/// Takes them over. What is decided is written down on this side before anything is written on a target.
pub async fn take_over(decision: &TakeOverDecision, context: &Context) -> Result<TakenOver, Diagnostic> {
    let lock = ClusterLock::take(&context.folder, "state take-over")?;
    let mut state = State::load(&context.folder)?;
    state.cluster = decision.cluster.clone().or(state.cluster.take());
    let cluster = context.folder.identify(&mut state, None, &decision.name)?;
    let mut out = TakenOver::new();
    let mut taken = BTreeMap::new();
    for (target, conflict) in &decision.targets {
        match look(target, conflict, context, &lock).await {
            Ok(one) => drop(taken.insert(target.clone(), one)),
            Err(problem) => drop(out.insert(target.clone(), Err(problem))),
        }
    }
    for (target, one) in &taken {
        state.take_over(target, &one.record, one.machine.as_ref(), decision.keep_record, entry(&one.record, decision));
    }
    state.store(&context.folder)?;
    for (target, one) in &taken {
        out.insert(target.clone(), write(target, one, &cluster, &mut state).await);
    }
    state.store(&context.folder)?;
    for one in taken.values() {
        let _ = one.writer.unlock().await;
    }
    Ok(out)
}

fn entry(record: &HostRecord, decision: &TakeOverDecision) -> TakeOver {
    TakeOver {
        from: record.cluster.clone(),
        who: identity::user(),
        machine: identity::machine(),
        at: clock::now(),
        reason: decision.reason.clone(),
        resources: if decision.keep_record { Vec::new() } else { record.resources.keys().cloned().collect() },
    }
}

/// Locks a target and reads what it is once more.
async fn look(target: &Target, conflict: &IdentityConflict, context: &Context, lock: &ClusterLock) -> Result<Taken, Diagnostic> {
    let next = Next::beside(&context.folder);
    let unfit = |reason: &str| not_workable(target, reason, &next);
    let locker = connect(&target.name, context).await.map_err(|error| error.diagnostic())?;
    let answers = locker.reader().read(&[Read::Host]).await.map_err(|error| error.diagnostic())?;
    let machine = host_now(target, &answers).map_err(|unready| unready.told(target, &next))?.machine_id.known().cloned();
    let (writer, replaced) = lock_one(&target.name, context, &locker, lock).await?;
    let decided = async {
        let text = read_record(&writer.reader()).await.map_err(|error| error.diagnostic())?;
        let record = host_record::parse(target, &text.ok_or_else(|| unfit("it has no record any more"))?, &context.folder)?;
        let is_same = conflict.other_cluster().is_some_and(|theirs| theirs.id == record.cluster.id);
        if is_same { Ok(record) } else { Err(unfit("meanwhile its record names another cluster")) }
    };
    match decided.await {
        Ok(record) => Ok(Taken { writer, replaces: replaced.into_iter().collect(), record, machine }),
        Err(problem) => {
            let _ = writer.unlock().await;
            Err(problem)
        }
    }
}

async fn write(target: &Target, one: &Taken, cluster: &ClusterIdentity, state: &mut State) -> Result<TakeOver, Diagnostic> {
    let record = state.next_record(cluster, &target.name, &one.record.run, &one.record.plan, clock::now());
    let written = one.writer.record(record.to_json(), members(&record), one.replaces.clone()).await;
    let reason = match written {
        Ok(RecordOutcome::Written) => {
            return record.taken_over.ok_or_else(|| record_not_written(target, "it names no take-over"));
        }
        Ok(RecordOutcome::NotKept) => "it keeps no record".to_owned(),
        Ok(RecordOutcome::Moved) => "meanwhile another record stands there".to_owned(),
        Ok(RecordOutcome::Failed(reason) | RecordOutcome::Unknown(reason)) => reason,
        Err(error) => error.to_string(),
    };
    Err(record_not_written(target, &reason))
}
