//! When targets write down what was applied to them. A host does so after each of its steps, of
//! which it has few, before it leaves service, and when a gate has checked it. A cluster may have
//! ten thousand objects, and its record is written whole each time, as one Secret: it is written
//! before the first step, with the kinds that are coming, now and then between, and at the end.
//! What a crash leaves unwritten is in the journal, and is written when the run goes on.

use super::change::Finish;
use super::gatekeeper::GateResult;
use super::shared::{RunContext, lost_by};
use super::trouble;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::{Diagnostic, Digest, Target, TargetKind, bounded_json, nodeset};
use railwright_observe::crowd;
use railwright_plan::{NodeKind, Outage, OutageCause, note_outage};
use railwright_resource::kubernetes_object::applyset::is_member;
use railwright_state::journal::GateFailure;
use railwright_state::{HostRecord, JournalEntry, NodeOutcome};
use railwright_system::clock::{self, Deadline, Stopwatch};
use railwright_transport::{RECORD_LIMIT_BYTES, RecordOutcome, TransportError, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

/// Between two records of a cluster, at least.
const PAUSE: Duration = Duration::from_secs(5);
/// How much longer the pause is than the writing.
const SHARE: u32 = 10;

/// Somebody wants the run to end, and waits no longer than this for hosts to write down that it
/// left them.
const GIVEN_UP_LIMIT: Duration = Duration::from_secs(10);

/// Clusters whose record is to be written at the end, with when it may be written next between.
pub(super) type Records = BTreeMap<Target, Deadline>;

/// The objects of a record that are members of the cluster's set.
pub(super) fn list_record_members(record: &HostRecord) -> Vec<String> {
    let mut members = Vec::new();
    for (address, applied) in &record.resources {
        if is_member(&applied.kind, &applied.body, &applied.before) {
            members.push(address.within_target());
        }
    }
    members
}

/// A host would not read it again, and nobody could plan for the host any more. A cluster's record
/// has limits of its own.
pub(super) fn too_large(target: &Target, record: &HostRecord, json: &str) -> Option<Diagnostic> {
    if target.kind == TargetKind::Kube
        || (json.len() < RECORD_LIMIT_BYTES && bounded_json::is_of_record(json))
    {
        return None;
    }
    let sizes = record.resources.iter().map(|(address, applied)| {
        let json = serde_json::to_string(applied).unwrap_or_default();
        (json.len(), address)
    });
    let (size, largest) = sizes.max()?;
    Some(trouble::record_too_large(
        target,
        json.len() >> 10,
        RECORD_LIMIT_BYTES >> 10,
        &largest.to_string(),
        size >> 10,
    ))
}

/// Why a record was not written.
struct UnwrittenRecord {
    problem: Diagnostic,
    /// It is not there, and the target answers; else it may be there, or the lock is another one's.
    is_certain: bool,
}

impl RunContext {
    /// Clusters write down what is coming, before the first step of this part of the run.
    pub(super) async fn begin_records(&self) {
        for target in self.clusters() {
            if let Ok(writer) = self.connect(&target.name).await {
                // Whatever is in the way of it is in the way of the next one too, which tells.
                let _ = self
                    .write_record(&target, &writer, self.coming(&target))
                    .await;
            }
            lock_ignoring_poison(&self.records).insert(target, Deadline::after(PAUSE));
        }
    }

    /// After a step on this target.
    pub(super) async fn note_record(&self, target: &Target, writer: &Writer) -> Option<Diagnostic> {
        let is_early = lock_ignoring_poison(&self.records)
            .get(target)
            .is_some_and(|next| !next.left().is_zero());
        if is_early {
            return None;
        }
        let watch = Stopwatch::start();
        let problem = self.write_record(target, writer, self.coming(target)).await;
        if let Some(next) = lock_ignoring_poison(&self.records).get_mut(target) {
            *next = Deadline::after(PAUSE.max(watch.elapsed() * SHARE));
        }
        problem
    }

    /// A host writes down that it leaves service, before anything is done to it: so it is known
    /// where this folder is not. A first attempt does not begin where it certainly cannot; what
    /// happens to a host that gives no answer is told by its step.
    pub(super) async fn record_leaving(
        &self,
        n: usize,
        attempt: u32,
        writer: &Writer,
    ) -> Result<(), Box<Finish>> {
        let Some(host) = self.host_of(n).filter(|_| self.is_disruptive(n)) else {
            return Ok(());
        };
        let (id, target) = (&self.plan.nodes[n].id, Target::host(&host));
        let before = lock_ignoring_poison(&self.state)
            .outages
            .get(&host)
            .cloned();
        let was_given_back = self.host(&host).is_given_back;
        if !self.note_outage(&host, OutageCause::Unproven { node: id.clone() }) {
            return Ok(());
        }
        let Some(unwritten) = self.try_record(&target, writer, Vec::new()).await else {
            return Ok(());
        };
        if attempt > 1 || !unwritten.is_certain {
            return Ok(());
        }
        // It stays in service.
        self.note_given_back(&host, was_given_back);
        let outages = &mut lock_ignoring_poison(&self.state).outages;
        match before {
            Some(before) => drop(outages.insert(host, before)),
            None => drop(outages.remove(&host)),
        }
        let problem = trouble::leaving_not_recorded(id, &unwritten.problem.message, &self.next);
        let reason = problem.message.clone();
        let finish = Finish::with_problem(NodeOutcome::Stale { reason }, problem);
        Err(Box::new(finish))
    }

    /// Hosts write down what their gate found, which is journalled.
    pub(super) async fn record_gate(
        &self,
        gate: &str,
        hosts: &[String],
        failure: Option<&GateFailure>,
    ) -> Vec<Diagnostic> {
        let changed = hosts
            .iter()
            .filter(|host| self.note_gate_result(gate, host, failure));
        let mut problems = self.record_hosts(changed.cloned().collect()).await;
        if failure.is_some() {
            problems = problems
                .into_iter()
                .map(trouble::outage_not_recorded)
                .collect();
        }
        problems
    }

    /// Remembers what a gate found of this host. Says whether the host still has to write it down.
    fn note_gate_result(&self, gate: &str, host: &str, failure: Option<&GateFailure>) -> bool {
        let Some(GateFailure { code, check }) = failure else {
            let now = self.host(host);
            let is_news =
                lock_ignoring_poison(&self.state).end_outage(host, now.boot_id.as_deref());
            return is_news || now.recorded_outage.is_some();
        };
        let cause = OutageCause::GateFailed {
            gate: gate.to_owned(),
            code: code.clone(),
            check: check.clone(),
        };
        self.note_given_back(host, false);
        note_outage(
            &mut lock_ignoring_poison(&self.state).outages,
            host.to_owned(),
            self.outage(cause),
        );
        self.has_to_record_outage(host)
    }

    /// Hosts whose steps were given up write down that they are out of service, as far as they
    /// answer at once.
    pub(super) async fn record_given_up(&self, steps: Vec<usize>) -> Vec<Diagnostic> {
        let mut hosts = Vec::new();
        for n in steps {
            let Some(host) = self.host_of(n) else {
                continue;
            };
            if self.note_outage(&host, lost_by(&self.plan.nodes[n])) {
                hosts.push(host);
            }
        }
        clock::await_with_timeout(GIVEN_UP_LIMIT, self.record_hosts(hosts))
            .await
            .unwrap_or_default()
    }

    /// These hosts write down what is remembered of them now.
    pub(super) async fn record_hosts(&self, hosts: Vec<String>) -> Vec<Diagnostic> {
        let hosts: Vec<Target> = hosts
            .iter()
            .filter(|host| self.is_ready(host))
            .map(Target::host)
            .collect();
        let problems = Mutex::new(Vec::new());
        crowd::run_each_bounded(hosts, self.context.patience.parallel, &|target| {
            Box::pin(self.record_host(target, &problems))
        })
        .await;
        std::mem::take(&mut *lock_ignoring_poison(&problems))
    }

    async fn record_host(&self, target: Target, problems: &Mutex<Vec<Diagnostic>>) {
        let problem = match self.connect(&target.name).await {
            Ok(writer) => self.write_record(&target, &writer, Vec::new()).await,
            Err(error) => Some(trouble::record_not_written(&target, &error.to_string())),
        };
        lock_ignoring_poison(problems).extend(problem);
    }

    /// A gate without a check of a host ends no outage of it that a check began.
    pub(super) fn proves_nothing(
        &self,
        hosts: &[String],
        result: &GateResult,
    ) -> Option<Diagnostic> {
        if result.first_failure().is_some() {
            return None;
        }
        let state = lock_ignoring_poison(&self.state);
        let mut failed = Vec::new();
        for host in hosts {
            if let Some(outage) = state.outages.get(host)
                && outage.cause.is_of_check()
                && !result.checked.contains(host)
            {
                failed.push(host);
            }
        }
        (!failed.is_empty())
            .then(|| trouble::nothing_to_check(&nodeset::fold_node_set(&failed), &self.next))
    }

    /// The host is out of service, if it was not before, or only in doubt. Says whether the host
    /// still has to write it down: another folder's run may have written since that it is in
    /// service, or it could not write when this side came to know.
    pub(super) fn note_outage(&self, host: &str, cause: OutageCause) -> bool {
        if !cause.is_in_doubt() {
            self.note_given_back(host, false);
        }
        {
            let outages = &mut lock_ignoring_poison(&self.state).outages;
            let before = outages.get(host);
            if before.is_none_or(|before| before.cause.weight() < cause.weight()) {
                outages.insert(host.to_owned(), self.outage(cause));
            }
        }
        self.has_to_record_outage(host)
    }

    fn outage(&self, cause: OutageCause) -> Outage {
        Outage {
            cause,
            since: clock::read_current_time(),
            run: self.run.clone(),
        }
    }

    /// Clusters write down what was done, while their lock is still ours.
    pub(super) async fn end_records(&self) -> Vec<Diagnostic> {
        let targets: Vec<Target> = lock_ignoring_poison(&self.records)
            .keys()
            .cloned()
            .collect();
        let mut problems = Vec::new();
        for target in targets {
            match self.connect(&target.name).await {
                Ok(writer) => match self.heart.confirm(&target.name, &writer).await {
                    Ok(()) => {
                        problems.extend(self.write_record(&target, &writer, Vec::new()).await)
                    }
                    Err(lost) => problems.push(*lost),
                },
                Err(error) => {
                    problems.push(trouble::record_not_written(&target, &error.to_string()))
                }
            }
        }
        problems
    }

    /// Clusters that this run changes, and that are reached.
    fn clusters(&self) -> BTreeSet<Target> {
        let mut targets = BTreeSet::new();
        for node in &self.plan.nodes {
            if let (NodeKind::Change { .. }, Some(target)) = (&node.kind, &node.target)
                && target.kind == TargetKind::Kube
            {
                targets.insert(target.clone());
            }
        }
        targets.retain(|target| self.is_ready(&target.name));
        targets
    }

    /// Objects that the run is about to make on this target.
    fn coming(&self, target: &Target) -> Vec<String> {
        let mut coming = Vec::new();
        for node in &self.plan.nodes {
            if node.target.as_ref() != Some(target) {
                continue;
            }
            for member in node.members() {
                if is_member(&member.resource.kind, &member.resource.body, &member.before) {
                    coming.push(member.resource.address.within_target());
                }
            }
        }
        coming
    }

    /// Writes it, with what is coming among the members of the cluster's set.
    async fn write_record(
        &self,
        target: &Target,
        writer: &Writer,
        coming: Vec<String>,
    ) -> Option<Diagnostic> {
        let unwritten = self.try_record(target, writer, coming).await?;
        Some(unwritten.problem)
    }

    async fn try_record(
        &self,
        target: &Target,
        writer: &Writer,
        coming: Vec<String>,
    ) -> Option<UnwrittenRecord> {
        // A step and a gate may end at once on one host.
        let recorded = self.recorded(&target.name);
        let mut may_stand = recorded.lock().await;
        let outage = self.outage_to_record(&target.name);
        let record = HostRecord {
            outage,
            ..lock_ignoring_poison(&self.state).next_record(
                &self.cluster,
                &target.name,
                &self.by,
                &self.plan.digest,
                clock::read_current_time(),
            )
        };
        let mut members = list_record_members(&record);
        members.extend(coming);
        let (json, replaces) = (record.to_json(), may_stand.clone());
        if let Some(too_large) = too_large(target, &record, &json) {
            return Some(UnwrittenRecord {
                problem: too_large,
                is_certain: true,
            });
        }
        let digest = Digest::of_bytes(format!("{json}\n").as_bytes())
            .as_str()
            .to_owned();
        // What nobody knows of may stand there, or what was there before: also where nobody waits
        // for the end of it.
        if !replaces.is_empty() {
            may_stand.insert(digest.clone());
        }
        let written = writer.record(json, members, replaces.clone()).await;
        let is_written = matches!(written, Ok(RecordOutcome::Written));
        self.note_recorded_outage(&target.name, record.outage.filter(|_| is_written));
        match &written {
            Ok(RecordOutcome::Written) if !replaces.is_empty() => {
                *may_stand = BTreeSet::from([digest])
            }
            Ok(RecordOutcome::Unknown(_)) | Err(_) => {}
            _ => *may_stand = replaces,
        }
        let is_certain = matches!(written, Ok(RecordOutcome::Failed(_) | RecordOutcome::Moved));
        let problem = self.note_written_record(target, record.serial, written)?;
        Some(UnwrittenRecord {
            problem,
            is_certain,
        })
    }

    /// Journals what came of the record with this serial, and says what is in its way.
    fn note_written_record(
        &self,
        target: &Target,
        serial: u64,
        written: Result<RecordOutcome, TransportError>,
    ) -> Option<Diagnostic> {
        let host = target.name.to_string();
        let reason = match written {
            Ok(RecordOutcome::Written) => {
                self.journal
                    .note(JournalEntry::HostRecordWritten { host, serial });
                return None;
            }
            // It has no place for a record: the folder alone remembers.
            Ok(RecordOutcome::NotKept) => return None,
            Ok(RecordOutcome::Moved) => return Some(trouble::record_moved(target, &self.next)),
            Err(TransportError::LockLost { holder, .. }) => {
                return Some(self.heart.lost(&target.name, holder.as_deref()));
            }
            Ok(RecordOutcome::Failed(reason)) => {
                return Some(trouble::record_not_written(target, &reason));
            }
            Ok(RecordOutcome::Unknown(reason)) => reason,
            Err(error) => error.to_string(),
        };
        self.journal
            .note(JournalEntry::HostRecordTried { host, serial });
        Some(trouble::record_not_written(target, &reason))
    }
}
