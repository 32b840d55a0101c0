//! When targets write down what was applied to them. A host does so after each of its steps, of which it has few. A cluster may have ten
//! thousand objects, and its record is written whole each time, as one Secret: it is written before the first step, with the kinds that are
//! coming, now and then between, and at the end. What a crash leaves unwritten is in the journal, and is written when the run goes on.

use super::shared::{Shared, guard};
use super::trouble;
use crate::base::{Diagnostic, Digest, Target, TargetKind};
use crate::plan::NodeKind;
use crate::resource::kubernetes_object::applyset::is_member;
use crate::state::{Entry, HostRecord};
use crate::system::clock::{self, Deadline, Stopwatch};
use crate::transport::{RecordOutcome, TransportError, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Between two records of a cluster, at least.
const PAUSE: Duration = Duration::from_secs(5);
/// How much longer the pause is than the writing.
const SHARE: u32 = 10;

/// Clusters whose record is to be written at the end, with when it may be written next between.
pub(super) type Records = BTreeMap<Target, Deadline>;

/// The objects of a record that are members of the cluster's set.
pub(super) fn members(record: &HostRecord) -> Vec<String> {
    let made = record.resources.iter().filter(|(_, applied)| is_member(&applied.kind, &applied.body, &applied.before));
    made.map(|(address, _)| address.within_target()).collect()
}

impl Shared {
    /// Clusters write down what is coming, before the first step of this part of the run.
    pub(super) async fn begin_records(&self) {
        for target in self.clusters() {
            if let Ok(writer) = self.connect(&target.name).await {
                // Whatever is in the way of it is in the way of the next one too, which tells.
                let _ = self.write_record(&target, &writer, self.coming(&target)).await;
            }
            guard(&self.records).insert(target, Deadline::after(PAUSE));
        }
    }

    /// After a step on this target.
    pub(super) async fn note_record(&self, target: &Target, writer: &Writer) -> Option<Diagnostic> {
        let is_early = guard(&self.records).get(target).is_some_and(|next| !next.left().is_zero());
        if is_early {
            return None;
        }
        let watch = Stopwatch::start();
        let problem = self.write_record(target, writer, self.coming(target)).await;
        if let Some(next) = guard(&self.records).get_mut(target) {
            *next = Deadline::after(PAUSE.max(watch.elapsed() * SHARE));
        }
        problem
    }

    /// Clusters write down what was done, while their lock is still ours.
    pub(super) async fn end_records(&self) -> Vec<Diagnostic> {
        let targets: Vec<Target> = guard(&self.records).keys().cloned().collect();
        let mut problems = Vec::new();
        for target in targets {
            match self.connect(&target.name).await {
                Ok(writer) => match self.heart.confirm(&target.name, &writer).await {
                    Ok(()) => problems.extend(self.write_record(&target, &writer, Vec::new()).await),
                    Err(lost) => problems.push(*lost),
                },
                Err(error) => problems.push(trouble::record_not_written(&target, &error.to_string())),
            }
        }
        problems
    }

    /// Clusters that this run changes, and that are reached.
    fn clusters(&self) -> Vec<Target> {
        let changes = self.plan.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Change { .. }));
        let mut targets: Vec<Target> =
            changes.filter_map(|node| node.target.clone()).filter(|target| target.kind == TargetKind::Kube).collect();
        targets.sort();
        targets.dedup();
        targets.retain(|target| self.is_ready(&target.name));
        targets
    }

    /// Objects that the run is about to make on this target.
    fn coming(&self, target: &Target) -> Vec<String> {
        let nodes = self.plan.nodes.iter().filter(|node| node.target.as_ref() == Some(target));
        let members =
            nodes.flat_map(|node| node.members()).filter(|member| is_member(&member.wish.kind, &member.wish.body, &member.before));
        members.map(|member| member.wish.address.within_target()).collect()
    }

    /// Writes it, with what is coming among the members of the cluster's set.
    async fn write_record(&self, target: &Target, writer: &Writer, coming: Vec<String>) -> Option<Diagnostic> {
        let record = guard(&self.state).next_record(&self.cluster, &target.name, &self.run, &self.plan.digest, clock::now());
        let members = members(&record).into_iter().chain(coming).collect();
        let (json, replaces) = (record.to_json(), self.replaced_record(&target.name));
        let digest = Digest::of_bytes(format!("{json}\n").as_bytes()).as_str().to_owned();
        let written = writer.record(json, members, replaces.clone()).await;
        // What nobody knows of may stand there, or what was there before.
        let may_stand = match &written {
            Ok(RecordOutcome::Written) if !replaces.is_empty() => BTreeSet::from([digest]),
            Ok(RecordOutcome::Unknown(_)) | Err(_) if !replaces.is_empty() => replaces.into_iter().chain([digest]).collect(),
            _ => replaces,
        };
        guard(&self.recorded).insert(target.name.to_string(), may_stand);
        let reason = match written {
            Ok(RecordOutcome::Written) => {
                self.journal.note(Entry::HostRecordWritten { host: target.name.to_string(), serial: record.serial });
                return None;
            }
            // It has no place for a record: the folder alone remembers.
            Ok(RecordOutcome::NotKept) => return None,
            Ok(RecordOutcome::Moved) => return Some(trouble::record_moved(target, &self.next)),
            Err(TransportError::LockLost { holder, .. }) => return Some(self.heart.lost(&target.name, holder.as_deref())),
            Ok(RecordOutcome::Failed(reason) | RecordOutcome::Unknown(reason)) => reason,
            Err(error) => error.to_string(),
        };
        Some(trouble::record_not_written(target, &reason))
    }

    /// The digests of which one has to be that of the record which is replaced; none where the target tells none.
    fn replaced_record(&self, host: &str) -> BTreeSet<String> {
        guard(&self.recorded).get(host).cloned().unwrap_or_default()
    }
}
