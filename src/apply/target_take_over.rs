//! Takes targets over from another cluster: the record on each names this cluster from then on, and
//! what the other one brought stays as it is. Each is looked at once more under its lock: only what
//! was decided about is taken.

use super::context::Context;
use super::heartbeat::HeldLocks;
use super::host_locks::lock_one;
use super::preflight::{connect_target, host_now, read_record};
use super::records::{list_record_members, too_large};
use super::trouble::{NextCommands, not_workable};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, MachineId, Target, TargetKind};
use railwright_resource::Read;
use railwright_state::lineage::RunPart;
use railwright_state::{
    ClusterIdentity, ClusterLock, ClusterState, IdentityConflict, TakeOver, TargetRecord,
};
use railwright_system::{clock, identity};
use railwright_transport::{RecordOutcome, TransportError, Writer};
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
struct TakeOverCandidate {
    writer: Writer,
    /// The digest of its record, where the target tells it.
    replaces: BTreeSet<String>,
    record: TargetRecord,
    machine: Option<MachineId>,
    entry: TakeOver,
}

/// Why a target was not taken over.
struct NotTakenOver {
    problem: Diagnostic,
    /// Its record was not written; else it may have been.
    is_certain: bool,
}

/// Takes them over. What is decided is written down on this side before anything is written on a
/// target, and undone where the target did not write it.
pub async fn take_over_targets(
    decision: &TakeOverDecision,
    context: &Context,
) -> Result<TakenOver, Diagnostic> {
    let lock = ClusterLock::take(&context.folder, "state take-over")?;
    let mut locks = HeldLocks::begin(lock, String::new(), context);
    let taken_over = take_over_with_locks(decision, context, &locks).await;
    locks.release_hosts(context).await;
    taken_over
}

async fn take_over_with_locks(
    decision: &TakeOverDecision,
    context: &Context,
    locks: &HeldLocks,
) -> Result<TakenOver, Diagnostic> {
    let folder = locks.cluster.folder();
    let mut state = ClusterState::load(&context.folder)?;
    state.cluster = decision.cluster.clone().or(state.cluster.take());
    let cluster = context.folder.identify(&mut state, None, &decision.name)?;
    let mut out = TakenOver::new();
    let mut candidates = BTreeMap::new();
    for (target, conflict) in &decision.targets {
        match lock_and_read_target(target, conflict, decision, context, locks).await {
            Ok(candidate) => drop(candidates.insert(target.clone(), candidate)),
            Err(problem) => drop(out.insert(target.clone(), Err(problem))),
        }
    }
    if candidates.is_empty() {
        return Ok(out);
    }
    let mut noted = state.clone();
    for (target, candidate) in &mut candidates {
        note_take_over(target, candidate, &cluster, decision, &mut noted);
    }
    noted.store(folder)?;
    state.serial = noted.serial;
    // Whoever knows more than the records say did not write this.
    let by = locks.cluster.holder.part();
    for (target, candidate) in &mut candidates {
        let written = write_take_over_record(target, candidate, &cluster, &by, &mut noted).await;
        if !matches!(&written, Err(failed) if failed.is_certain) {
            note_take_over(target, candidate, &cluster, decision, &mut state);
            let host = target.name.to_string();
            let lineage = noted.lineages.get(&host).cloned().unwrap_or_default();
            state.lineages.insert(host, lineage);
        }
        out.insert(target.clone(), written.map_err(|failed| failed.problem));
    }
    state.store(folder)?;
    Ok(out)
}

/// Takes a target over in the state. What this side remembers itself stays managed, unless another
/// cluster brought it.
fn note_take_over(
    target: &Target,
    candidate: &mut TakeOverCandidate,
    cluster: &ClusterIdentity,
    decision: &TakeOverDecision,
    state: &mut ClusterState,
) {
    let theirs = candidate.record.cluster();
    if theirs.is_some_and(|theirs| theirs.id == cluster.id) {
        let ours = &state.last_applied.resources;
        let resources = &mut candidate.entry.resources;
        resources.retain(|address| !ours.contains_key(address));
    }
    state.take_over(
        target,
        candidate.record.read(),
        candidate.machine.as_ref(),
        decision.keep_record,
        candidate.entry.clone(),
    );
}

fn new_take_over_entry(record: &TargetRecord, decision: &TakeOverDecision) -> TakeOver {
    let at = clock::read_current_time();
    let not_managed = record.read().filter(|_| !decision.keep_record);
    let mut set_aside = None;
    if record.read().is_none() {
        // A name of its own for each, of letters and digits alone.
        let time: String = at.chars().filter(char::is_ascii_alphanumeric).collect();
        set_aside = Some(format!("record-{time}.json"));
    }
    TakeOver {
        from: record.cluster().cloned(),
        who: identity::find_user_name(),
        machine: identity::read_machine_name(),
        reason: decision.reason.clone(),
        resources: not_managed
            .map(|record| record.resources.keys().cloned().collect())
            .unwrap_or_default(),
        set_aside,
        at,
    }
}

/// Locks a target and reads what it is once more.
async fn lock_and_read_target(
    target: &Target,
    conflict: &IdentityConflict,
    decision: &TakeOverDecision,
    context: &Context,
    locks: &HeldLocks,
) -> Result<TakeOverCandidate, Diagnostic> {
    let next = NextCommands::beside(&context.folder);
    let locker = connect_target(&target.name, context)
        .await
        .map_err(|error| error.diagnostic())?;
    let answers = locker
        .reader()
        .read(&[Read::Host])
        .await
        .map_err(|error| error.diagnostic())?;
    let machine = host_now(target, &answers)
        .map_err(|unready| unready.diagnostic(target, &next))?
        .machine_id
        .known()
        .cloned();
    let (writer, replaced) = lock_one(&target.name, context, &locker, locks).await?;
    let record = read_record(target, &writer.reader())
        .await
        .map_err(|error| error.diagnostic())?;
    if let Some(reason) = find_unfit_reason(&record, target, conflict, decision, machine.as_ref()) {
        return Err(not_workable(target, reason, &next));
    }
    Ok(TakeOverCandidate {
        entry: new_take_over_entry(&record, decision),
        writer,
        replaces: replaced.into_iter().collect(),
        record,
        machine,
    })
}

/// Why a target with this record, on this machine, is not what was decided about.
fn find_unfit_reason(
    record: &TargetRecord,
    target: &Target,
    conflict: &IdentityConflict,
    decision: &TakeOverDecision,
    machine: Option<&MachineId>,
) -> Option<&'static str> {
    match record {
        TargetRecord::Absent => Some("it has no record any more"),
        _ if !conflict.is_about(record) => Some("meanwhile it has another record"),
        TargetRecord::Read { record, .. }
            if decision.keep_record && record.is_of_another(machine) =>
        {
            Some(
                "its record is of another machine, so what was there before says nothing of this \
                 one: take it over without --keep-record",
            )
        }
        TargetRecord::Unreadable { .. } if decision.keep_record => {
            Some("its record cannot be read, so nothing of it can be kept")
        }
        TargetRecord::Unreadable { .. } if target.kind == TargetKind::Kube => Some(
            "its record cannot be read, and a cluster keeps no other beside it: take the Secret \
             away by hand",
        ),
        _ => None,
    }
}

async fn write_take_over_record(
    target: &Target,
    candidate: &TakeOverCandidate,
    cluster: &ClusterIdentity,
    by: &RunPart,
    state: &mut ClusterState,
) -> Result<TakeOver, NotTakenOver> {
    let plan = candidate
        .record
        .read()
        .map(|record| record.plan.clone())
        .unwrap_or_default();
    let record = state.next_record(cluster, &target.name, by, &plan, clock::read_current_time());
    let json = record.to_json();
    if let Some(too_large) = too_large(target, &record, &json) {
        return Err(NotTakenOver {
            problem: Diagnostic {
                next: too_large.next,
                ..report_not_taken_over(target, &too_large.message)
            },
            is_certain: true,
        });
    }
    let written = match candidate.entry.set_aside.clone() {
        Some(name) => {
            candidate
                .writer
                .record_beside(json, candidate.replaces.clone(), name)
                .await
        }
        None => {
            candidate
                .writer
                .record(
                    json,
                    list_record_members(&record),
                    candidate.replaces.clone(),
                )
                .await
        }
    };
    check_written_record(target, written)?;
    state
        .lineages
        .entry(target.name.to_string())
        .or_default()
        .note(by, record.serial);
    Ok(candidate.entry.clone())
}

fn check_written_record(
    target: &Target,
    written: Result<RecordOutcome, TransportError>,
) -> Result<(), NotTakenOver> {
    let (reason, is_certain) = match written {
        Ok(RecordOutcome::Written) => return Ok(()),
        Ok(RecordOutcome::NotKept) => ("it keeps no record".to_owned(), true),
        Ok(RecordOutcome::Moved) => ("meanwhile another record stands there".to_owned(), true),
        Ok(RecordOutcome::Failed(reason)) => {
            (format!("its record could not be written: {reason}"), true)
        }
        Ok(RecordOutcome::Unknown(reason)) => (reason, false),
        Err(error) => {
            let is_certain = matches!(error, TransportError::LockLost { .. });
            (error.to_string(), is_certain)
        }
    };
    let problem = if is_certain {
        report_not_taken_over(target, &reason)
    } else {
        report_perhaps_taken_over(target, &reason)
    };
    Err(NotTakenOver {
        problem,
        is_certain,
    })
}

fn report_not_taken_over(target: &Target, reason: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0622",
        format!("{target} was not taken over: {}", one_line(reason, 240)),
    )
    .on(target.to_string())
    .effect("its record names the other cluster still: no plan of this one touches it")
    .state("nothing was changed there, and nothing of the take-over is remembered on this side")
    .next("make room or fix what is in the way there, then the same command once more")
}

fn report_perhaps_taken_over(target: &Target, reason: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0622",
        format!(
            "it is not known whether {target} was taken over: {}",
            one_line(reason, 240)
        ),
    )
    .on(target.to_string())
    .effect("as long as its record names the other cluster, no plan of this one touches it")
    .state("its record may have been written; this side remembers the take-over")
    .next(
        "once it answers, the same command once more: RW0728 says that it belongs to this cluster \
         already",
    )
}
