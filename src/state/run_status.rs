//! The fold of a journal: what a run has done so far. Pure.

use super::journal::{GateFailure, JournalEntry, MemberIntent, Record};
use super::lineage::{LatestWrite, RunPart, WriteStatus};
use super::order::OrderKind;
use super::outcome::NodeOutcome;
use super::recognition::ClusterIdentity;
use super::run_outages::OutageMark;
use railwright_base::{Address, Digest, MachineId, Target, TargetKind};
use railwright_plan::model::InventoryOrigin;
use railwright_plan::{AppliedResource, OutageCause, Unavailable};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A step that was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct StepIntent {
    /// Counts from 1 within the run.
    pub attempt: u32,
    /// The token of the latest attempt.
    pub token: String,
    /// Digest of the actions of the latest attempt.
    pub actions: Digest,
    /// What the resources were like at the *first* attempt: that is what was there before us.
    pub first: Vec<MemberIntent>,
    /// What they were like at the latest.
    pub latest: Vec<MemberIntent>,
    /// The boot that the host was in at the latest.
    pub boot_id: Option<String>,
    /// The record of the latest attempt.
    pub sequence: u64,
}

/// One node of the plan in the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeStatus {
    /// The intent, if it was begun.
    pub intent: Option<StepIntent>,
    /// The host that it works on, once it was begun.
    pub host: Option<String>,
    /// It takes its host out of service.
    pub disruptive: bool,
    /// It empties the node of its host.
    pub drains: bool,
    /// Its latest attempt ended without anything done to its host.
    pub left_as_it_was: bool,
    /// The automatic rollback that was armed last, as long as nobody knows its end.
    pub armed_rollback: Option<String>,
    /// The hosts attached to the switch passed their gate before an attempt.
    pub hosts_passed: bool,
    /// The outcome; nothing while the latest attempt has none.
    pub outcome: Option<NodeOutcome>,
    /// What it applied.
    pub applied: Vec<(Address, AppliedResource)>,
    /// What it removed.
    pub removed: Vec<Address>,
    /// The record of its latest outcome.
    pub finished: u64,
    /// The record by which it last failed or nobody knew how it ended, also where it was done
    /// since; 0 where it never was so.
    pub lost: u64,
    /// When the latest attempt began, RFC 3339.
    pub begun_at: Option<String>,
    /// When its outcome came.
    pub over_at: Option<String>,
}

/// A gate in the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GateStatus {
    /// Since when it is being checked; nothing when it is not.
    pub checking_since: Option<String>,
    /// How the latest check ended, and when.
    pub checked: Option<(bool, String)>,
}

impl NodeStatus {
    /// True when it was begun and nobody knows how it ended.
    pub fn is_open(&self) -> bool {
        self.intent.is_some() && self.outcome.is_none()
    }

    /// Nobody knows how it ended, or whether.
    pub fn ended_unknown(&self) -> bool {
        self.is_open() || matches!(self.outcome, Some(NodeOutcome::Unknown { .. }))
    }

    /// The record since which its host is out of service because of it: it was begun, where that
    /// `counts`, or it was lost, and then a gate has to prove the host even where the step was done
    /// since. 0 where its host is not out.
    pub fn out_since(&self, counts: bool) -> u64 {
        if self.left_as_it_was {
            return 0;
        }
        match &self.intent {
            Some(intent) if counts => intent.sequence.max(self.lost),
            _ => self.lost,
        }
    }

    fn finish(&mut self, record: &Record, host: Option<String>, outcome: NodeOutcome) {
        let is_lost = matches!(
            outcome,
            NodeOutcome::Failed { .. } | NodeOutcome::Unknown { .. }
        );
        if is_lost || matches!(outcome, NodeOutcome::LockLost { .. }) {
            self.lost = record.sequence;
        }
        // Who lost a lock before it began anything has left the host as it was.
        if is_lost {
            self.host = self.host.take().or(host);
        }
        self.outcome = Some(outcome);
        self.finished = record.sequence;
        self.over_at = Some(record.at.clone());
    }
}

/// The latest record that was written to a host, or may have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenRecord {
    /// The write.
    pub write: LatestWrite,
    /// What of the journal says so.
    pub sequence: u64,
}

/// A whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunStatus {
    /// Its name.
    pub run: String,
    /// The cluster.
    pub cluster: Option<ClusterIdentity>,
    /// The digest of its plan.
    pub plan: String,
    /// Where the spec came from.
    pub inventory: InventoryOrigin,
    /// Who began it.
    pub who: String,
    /// Where.
    pub machine: String,
    /// When, RFC 3339.
    pub started_at: String,
    /// The latest fencing number.
    pub fence: u64,
    /// By node id.
    pub nodes: BTreeMap<String, NodeStatus>,
    /// Gates by node id.
    pub gates: BTreeMap<String, GateStatus>,
    /// The serial of the state that it was begun with.
    pub state_serial: u64,
    /// Its plan has power cycles by hand.
    pub power_cycles: bool,
    /// Which part of it came last.
    pub part: String,
    /// The latest record that was written to each host, by the host's name.
    pub host_records: BTreeMap<String, WrittenRecord>,
    /// Hosts that passed a gate, with the record that says so.
    pub proven: BTreeMap<String, u64>,
    /// Hosts that somebody returned to service, with the record that says so.
    pub returned: BTreeMap<String, u64>,
    /// Hosts that a gate did not pass, with the latest record that says so.
    pub not_passed: BTreeMap<String, OutageMark>,
    /// Hosts that were rebooted, with the latest record that says so.
    pub rebooted: BTreeMap<String, OutageMark>,
    /// The boots that each host was seen in, one after the other, with the record that first says
    /// so.
    pub boots: BTreeMap<String, Vec<(String, u64)>>,
    /// The machine that each host was, with the latest record that says so.
    pub machines: BTreeMap<String, (MachineId, u64)>,
    /// The hosts whose nodes are out of service, as the Kubernetes cluster said last; nothing where
    /// it did not say.
    pub nodes_seen: Option<Vec<Unavailable>>,
    /// Since when it is paused.
    pub paused: Option<String>,
    /// Somebody, or a signal, ordered its end, and it was not resumed since.
    pub is_aborted: bool,
    /// How it ended, when it ended in order.
    pub ending: Option<String>,
    /// The last sequence number.
    pub sequence: u64,
    /// When the last record was written.
    pub latest_at: String,
}

impl RunStatus {
    /// The part of it that came last.
    pub fn by(&self) -> RunPart {
        RunPart {
            run: self.run.clone(),
            part: self.part.clone(),
        }
    }

    fn note_host_record(&mut self, host: String, serial: u64, status: WriteStatus, sequence: u64) {
        self.host_records.insert(
            host,
            WrittenRecord {
                write: LatestWrite::new(self.by(), serial, status),
                sequence,
            },
        );
    }

    /// The hosts and clusters of which the journal says more after this record than was written to
    /// them since. A switch keeps none.
    pub fn behind(&self, after: u64) -> BTreeSet<String> {
        let mut behind = BTreeSet::new();
        for node in self.nodes.values() {
            // The resources of a node are those of one target.
            let applied = node.applied.first().map(|(address, _)| address);
            if let Some(address) = applied.or(node.removed.first())
                && self.is_behind(&address.target, node.finished, after)
            {
                behind.insert(address.target.name.to_string());
            }
        }
        for address in self.begun().into_keys() {
            if self.is_behind(&address.target, self.sequence, after) {
                behind.insert(address.target.name.to_string());
            }
        }
        behind
    }

    fn is_behind(&self, target: &Target, sequence: u64, after: u64) -> bool {
        let written = self.host_records.get(&*target.name);
        let written = written.map_or(0, |written| written.sequence);
        target.kind != TargetKind::Switch && sequence > written.max(after)
    }

    /// How many steps were begun of which nobody knows how they ended.
    pub fn open(&self) -> usize {
        self.nodes
            .values()
            .filter(|node| node.ended_unknown())
            .count()
    }

    /// The resources that differed from the spec when a step of theirs was begun of which nobody
    /// knows how it ended: what was there before, and when. A step that ended says itself what it
    /// left.
    pub fn begun(&self) -> BTreeMap<Address, (Value, String)> {
        let mut begun = BTreeMap::new();
        for node in self.nodes.values() {
            if let Some(intent) = &node.intent
                && node.ended_unknown()
            {
                let at = node.begun_at.clone().unwrap_or_default();
                for member in intent.first.iter().filter(|member| !member.met) {
                    let before = (member.before.clone(), at.clone());
                    begun.insert(member.address.clone(), before);
                }
            }
        }
        begun
    }

    /// The one of these steps that was done last; nothing where one of them is not done.
    pub fn last_done<'a>(&self, steps: impl Iterator<Item = &'a str>) -> Option<&NodeStatus> {
        let mut last: Option<&NodeStatus> = None;
        for id in steps {
            let node = self.nodes.get(id)?;
            if !node.outcome.as_ref()?.is_done() {
                return None;
            }
            if last.is_none_or(|last| last.finished <= node.finished) {
                last = Some(node);
            }
        }
        last
    }

    /// The boot that a host was in when this record was written, as far as it was seen.
    pub fn boot_at(&self, host: &str, sequence: u64) -> Option<&str> {
        let boots = self.boots.get(host)?;
        boots
            .iter()
            .rev()
            .find(|(_, since)| *since <= sequence)
            .map(|(boot, _)| boot.as_str())
    }

    /// The boot that a host was seen in last.
    pub fn latest_boot(&self, host: &str) -> Option<&str> {
        self.boots.get(host)?.last().map(|(boot, _)| boot.as_str())
    }

    fn from_start(record: &Record) -> Self {
        let JournalEntry::RunStarted {
            run,
            cluster,
            plan,
            inventory,
            who,
            machine,
            state_serial,
            power_cycles,
            ..
        } = record.entry.clone()
        else {
            return RunStatus::default();
        };
        RunStatus {
            run,
            cluster: Some(cluster),
            plan,
            inventory,
            who,
            machine,
            started_at: record.at.clone(),
            state_serial,
            power_cycles,
            sequence: 1,
            ..RunStatus::default()
        }
    }

    fn note_boot(&mut self, host: String, boot: String, sequence: u64) {
        let boots = self.boots.entry(host).or_default();
        if boots.last().is_none_or(|(latest, _)| *latest != boot) {
            boots.push((boot, sequence));
        }
    }

    fn note_gate_check(
        &mut self,
        record: &Record,
        gate: String,
        hosts: Vec<String>,
        failure: Option<GateFailure>,
    ) {
        let Some(GateFailure { code, check }) = failure else {
            for host in hosts {
                self.proven.insert(host, record.sequence);
            }
            return;
        };
        let mark = OutageMark::new(record, OutageCause::GateFailed { gate, code, check });
        for host in hosts {
            let since = self.in_service_since(&host);
            let before = self.not_passed.get(&host);
            let stays_out = before.is_some_and(|before| before.sequence > since);
            if mark.cause.is_of_check() || !stays_out {
                self.not_passed.insert(host, mark.clone());
            }
        }
    }
}

/// Folds a journal.
pub fn fold_journal_records(records: &[Record]) -> RunStatus {
    let mut status = RunStatus::default();
    for record in records {
        apply_journal_record(&mut status, record);
        (status.sequence, status.latest_at) = (record.sequence, record.at.clone());
    }
    status
}

fn apply_journal_record(status: &mut RunStatus, record: &Record) {
    match record.entry.clone() {
        JournalEntry::RunStarted { .. } => *status = RunStatus::from_start(record),
        JournalEntry::RunResumed { .. } => {
            (status.ending, status.paused, status.is_aborted) = (None, None, false)
        }
        JournalEntry::Ordered { order, .. } => {
            status.paused = (order == OrderKind::Pause).then(|| record.at.clone());
            status.is_aborted |= order == OrderKind::Abort;
        }
        JournalEntry::NodesSeen { out } => status.nodes_seen = Some(out),
        JournalEntry::LockTaken { fence, part } => (status.fence, status.part) = (fence, part),
        JournalEntry::LockStolen { fence, .. } => status.fence = status.fence.max(fence),
        JournalEntry::RunFinished { ending } => status.ending = Some(ending),
        entry @ (JournalEntry::NodeStarted { .. }
        | JournalEntry::NodeFinished { .. }
        | JournalEntry::HostLeftAsItWas { .. }) => apply_step_entry(status, record, entry),
        entry @ (JournalEntry::GateStarted { .. } | JournalEntry::GateChecked { .. }) => {
            apply_gate_entry(status, record, entry)
        }
        entry @ (JournalEntry::ReturnedToService { .. }
        | JournalEntry::HostRecordWritten { .. }
        | JournalEntry::HostRecordTried { .. }
        | JournalEntry::HostLocked { .. }
        | JournalEntry::Rebooted { .. }) => apply_host_entry(status, record, entry),
        entry @ (JournalEntry::RollbackTimerArmed { .. }
        | JournalEntry::RollbackTimerEnded { .. }) => apply_rollback_timer_entry(status, entry),
        JournalEntry::ActionSent { .. } | JournalEntry::ActionEnded { .. } => {}
    }
}

/// Does nothing with an entry that is not about a step.
fn apply_step_entry(status: &mut RunStatus, record: &Record, entry: JournalEntry) {
    match entry {
        JournalEntry::NodeStarted {
            node,
            host,
            disruptive,
            drains,
            attempt,
            token,
            actions,
            members,
            boot_id,
        } => {
            let node = status.nodes.entry(node).or_default();
            (node.host, node.disruptive, node.drains) = (host, disruptive, drains);
            node.left_as_it_was = false;
            let first = match node.intent.take() {
                Some(earlier) => earlier.first,
                None => members.clone(),
            };
            node.intent = Some(StepIntent {
                attempt,
                token,
                actions,
                first,
                latest: members,
                boot_id,
                sequence: record.sequence,
            });
            node.outcome = None;
            (node.begun_at, node.over_at) = (Some(record.at.clone()), None);
        }
        JournalEntry::NodeFinished {
            node,
            host,
            outcome,
            applied,
            removed,
        } => {
            let node = status.nodes.entry(node).or_default();
            (node.applied, node.removed) = (applied, removed);
            node.finish(record, host, outcome);
        }
        JournalEntry::HostLeftAsItWas { node } => {
            status.nodes.entry(node).or_default().left_as_it_was = true
        }
        _ => {}
    }
}

/// Does nothing with an entry that is not about an automatic rollback.
fn apply_rollback_timer_entry(status: &mut RunStatus, entry: JournalEntry) {
    match entry {
        JournalEntry::RollbackTimerArmed {
            node,
            token,
            hosts_passed,
            ..
        } => {
            let node = status.nodes.entry(node).or_default();
            node.armed_rollback = Some(token);
            node.hosts_passed |= hosts_passed;
        }
        JournalEntry::RollbackTimerEnded { node, token, .. } => {
            let node = status.nodes.entry(node).or_default();
            if node.armed_rollback.as_ref() == Some(&token) {
                node.armed_rollback = None;
            }
        }
        _ => {}
    }
}

/// Does nothing with an entry that is not about a gate.
fn apply_gate_entry(status: &mut RunStatus, record: &Record, entry: JournalEntry) {
    match entry {
        JournalEntry::GateStarted { node, .. } => {
            status.gates.entry(node).or_default().checking_since = Some(record.at.clone())
        }
        JournalEntry::GateChecked {
            node,
            hosts,
            failure,
        } => {
            let gate = status.gates.entry(node.clone()).or_default();
            (gate.checking_since, gate.checked) =
                (None, Some((failure.is_none(), record.at.clone())));
            status.note_gate_check(record, node, hosts, failure);
        }
        _ => {}
    }
}

/// Does nothing with an entry that is not about a host by itself.
fn apply_host_entry(status: &mut RunStatus, record: &Record, entry: JournalEntry) {
    match entry {
        JournalEntry::ReturnedToService { hosts, .. } => {
            for host in hosts {
                status.returned.insert(host, record.sequence);
            }
        }
        JournalEntry::HostRecordWritten { host, serial } => {
            status.note_host_record(host, serial, WriteStatus::Done, record.sequence);
        }
        JournalEntry::HostRecordTried { host, serial } => {
            status.note_host_record(host, serial, WriteStatus::Tried, record.sequence)
        }
        JournalEntry::HostLocked {
            host,
            boot_id,
            machine_id,
        } => {
            if let Some(machine) = machine_id {
                let machine = (machine, record.sequence);
                status.machines.insert(host.clone(), machine);
            }
            if let Some(boot) = boot_id {
                status.note_boot(host, boot, record.sequence);
            }
        }
        JournalEntry::Rebooted { host, to: boot, .. } => {
            let mark = OutageMark::new(
                record,
                OutageCause::SwitchedOffAndOn {
                    node: format!("{}/reboot", Target::host(&host)),
                },
            );
            status.rebooted.insert(host.clone(), mark);
            status.note_boot(host, boot, record.sequence);
        }
        _ => {}
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn fold_of(entries: Vec<JournalEntry>) -> RunStatus {
        let records: Vec<_> = entries
            .into_iter()
            .zip(1..)
            .map(|(entry, sequence)| Record {
                sequence,
                at: "t".to_owned(),
                entry,
            })
            .collect();
        fold_journal_records(&records)
    }

    pub(crate) fn started(attempt: u32, before: i32) -> JournalEntry {
        let member = MemberIntent {
            address: "host/a/file/x".parse().unwrap(),
            met: false,
            fingerprint: Digest::of(&before),
            before: before.into(),
        };
        JournalEntry::NodeStarted {
            node: "n".to_owned(),
            host: None,
            disruptive: false,
            drains: false,
            attempt,
            token: format!("t{attempt}"),
            actions: Digest::of(&0),
            members: vec![member],
            boot_id: None,
        }
    }

    #[test]
    fn an_intent_is_open_until_its_own_outcome() {
        let finished = JournalEntry::NodeFinished {
            node: "n".to_owned(),
            host: None,
            outcome: NodeOutcome::Done { changed: true },
            applied: vec![],
            removed: vec![],
        };
        assert!(fold_of(vec![started(1, 0)]).nodes["n"].is_open());
        assert!(!fold_of(vec![started(1, 0), finished.clone()]).nodes["n"].is_open());
        assert!(
            fold_of(vec![started(1, 0), finished, started(2, 1)]).nodes["n"].is_open(),
            "a second attempt has no outcome yet"
        );
        let unknown = NodeOutcome::Unknown {
            reason: "the connection ended".to_owned(),
        };
        let unknown = JournalEntry::NodeFinished {
            node: "n".to_owned(),
            host: None,
            outcome: unknown,
            applied: vec![],
            removed: vec![],
        };
        assert_eq!(
            (
                fold_of(vec![started(1, 0)]).open(),
                fold_of(vec![started(1, 0), unknown]).open()
            ),
            (1, 1)
        );
    }

    #[test]
    fn who_was_lost_is_out_until_a_gate_says_otherwise_though_the_step_was_done_since() {
        let ended = |outcome| JournalEntry::NodeFinished {
            node: "n".to_owned(),
            host: None,
            outcome,
            applied: vec![],
            removed: vec![],
        };
        let (lost, done) = (
            NodeOutcome::Unknown {
                reason: "gone".to_owned(),
            },
            NodeOutcome::Done { changed: true },
        );
        let twice = fold_of(vec![
            started(1, 0),
            ended(lost),
            started(2, 0),
            ended(done.clone()),
        ]);
        assert_eq!(
            (
                twice.nodes["n"].out_since(false),
                twice.nodes["n"].out_since(true)
            ),
            (2, 3)
        );
        assert_eq!(
            fold_of(vec![started(1, 0), ended(done)]).nodes["n"].out_since(false),
            0
        );
    }

    #[test]
    fn what_was_there_before_is_that_of_the_first_attempt() {
        let status = fold_of(vec![started(1, 10), started(2, 20)]);
        let intent = status.nodes["n"].intent.as_ref().unwrap();
        assert_eq!(
            (
                intent.first[0].before.clone(),
                intent.latest[0].before.clone(),
                intent.attempt
            ),
            (10.into(), 20.into(), 2)
        );
    }
}
