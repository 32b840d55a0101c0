//! The fold of a journal: what a run has done so far. Pure.

use super::journal::{Entry, MemberIntent, Record};
use super::order::OrderKind;
use super::outcome::Outcome;
use crate::base::{Address, Digest};
use crate::plan::model::InventoryOrigin;
use crate::plan::{Applied, LastApplied};
use std::collections::BTreeMap;

/// A step that was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
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
    pub intent: Option<Intent>,
    /// The outcome; nothing while the latest attempt has none.
    pub outcome: Option<Outcome>,
    /// What it applied.
    pub applied: Vec<(Address, Applied)>,
    /// What it removed.
    pub removed: Vec<Address>,
    /// The record of its latest outcome.
    pub finished: u64,
    /// The record by which it last failed or nobody knew how it ended, also where it was done since; 0 where it never was so.
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

    /// The record since which its host is out of service because of it: it was begun, where that `counts`, or it was lost, and then a
    /// gate has to prove the host even where the step was done since. 0 where its host is not out.
    pub fn out_since(&self, counts: bool) -> u64 {
        let begun = self.intent.as_ref().filter(|_| counts).map_or(0, |intent| intent.sequence);
        begun.max(self.lost)
    }
}

/// A whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunStatus {
    /// Its name.
    pub run: String,
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
    /// Hosts whose record was written, with the latest serial.
    pub host_serials: BTreeMap<String, u64>,
    /// Hosts that passed a gate, with the record that says so.
    pub proven: BTreeMap<String, u64>,
    /// The boots that each host was seen in, one after the other, with the record that first says so.
    pub boots: BTreeMap<String, Vec<(String, u64)>>,
    /// Since when it is paused.
    pub paused: Option<String>,
    /// How it ended, when it ended in order.
    pub ending: Option<String>,
    /// The last sequence number.
    pub sequence: u64,
    /// When the last record was written.
    pub latest_at: String,
}

impl RunStatus {
    /// How many steps were begun of which nobody knows how they ended.
    pub fn open(&self) -> usize {
        let unknown = |node: &NodeStatus| matches!(node.outcome, Some(Outcome::Unknown { .. }));
        self.nodes.values().filter(|node| node.is_open() || unknown(node)).count()
    }

    /// The boot that a host was in when this record was written, as far as it was seen.
    pub fn boot_at(&self, host: &str, sequence: u64) -> Option<&str> {
        let boots = self.boots.get(host)?;
        boots.iter().rev().find(|(_, since)| *since <= sequence).map(|(boot, _)| boot.as_str())
    }

    /// Whether a host was found in another boot than before, this one or an earlier one that was seen, and no gate has proven
    /// it since.
    pub fn rebooted_unproven(&self, host: &str, now: Option<&str>) -> bool {
        let Some((latest, since)) = self.boots.get(host).and_then(|boots| boots.last()) else { return false };
        let is_first = self.boots.get(host).is_some_and(|boots| boots.len() == 1);
        let unproven = !is_first && self.proven.get(host).is_none_or(|proven| proven < since);
        unproven || now.is_some_and(|now| now != latest)
    }

    fn seen_in(&mut self, host: String, boot: String, sequence: u64) {
        let boots = self.boots.entry(host).or_default();
        if boots.last().is_none_or(|(latest, _)| *latest != boot) {
            boots.push((boot, sequence));
        }
    }

    /// Puts what the run applied and removed after this record over a state that goes as far: what was forgotten since is
    /// not brought back. Each resource belongs to one node, so order does not matter.
    pub fn absorb_into(&self, state: &mut LastApplied, after: u64) {
        for node in self.nodes.values().filter(|node| node.finished > after) {
            for (address, applied) in &node.applied {
                state.resources.insert(address.clone(), applied.clone());
            }
            for address in &node.removed {
                state.resources.remove(address);
            }
        }
    }
}

/// Folds a journal.
pub fn fold(records: &[Record]) -> RunStatus {
    let mut status = RunStatus::default();
    for record in records {
        take(&mut status, record);
        (status.sequence, status.latest_at) = (record.sequence, record.at.clone());
    }
    status
}

fn take(status: &mut RunStatus, record: &Record) {
    match record.entry.clone() {
        Entry::RunStarted { run, plan, inventory, who, machine, .. } => {
            *status = RunStatus { run, plan, inventory, who, machine, started_at: record.at.clone(), sequence: 1, ..RunStatus::default() };
        }
        Entry::RunResumed { .. } => (status.ending, status.paused) = (None, None),
        Entry::Ordered { order, .. } => status.paused = (order == OrderKind::Pause).then(|| record.at.clone()),
        Entry::LockTaken { fence } => status.fence = fence,
        Entry::NodeStarted { node, attempt, token, actions, members, boot_id } => {
            let node = status.nodes.entry(node).or_default();
            let first = node.intent.take().map_or_else(|| members.clone(), |earlier| earlier.first);
            node.intent = Some(Intent { attempt, token, actions, first, latest: members, boot_id, sequence: record.sequence });
            node.outcome = None;
            (node.begun_at, node.over_at) = (Some(record.at.clone()), None);
        }
        Entry::NodeFinished { node, outcome, applied, removed } => {
            let node = status.nodes.entry(node).or_default();
            if matches!(outcome, Outcome::Failed { .. } | Outcome::Unknown { .. }) {
                node.lost = record.sequence;
            }
            node.outcome = Some(outcome);
            node.applied = applied;
            node.removed = removed;
            node.finished = record.sequence;
            node.over_at = Some(record.at.clone());
        }
        Entry::GateStarted { node, .. } => status.gates.entry(node).or_default().checking_since = Some(record.at.clone()),
        Entry::GateChecked { node, hosts, passed } => {
            let gate = status.gates.entry(node).or_default();
            (gate.checking_since, gate.checked) = (None, Some((passed, record.at.clone())));
            if passed {
                status.proven.extend(hosts.into_iter().map(|host| (host, record.sequence)));
            }
        }
        Entry::HostRecordWritten { host, serial } => {
            status.host_serials.insert(host, serial);
        }
        Entry::RunFinished { ending } => status.ending = Some(ending),
        Entry::LockStolen { fence, .. } => status.fence = status.fence.max(fence),
        Entry::HostLocked { host, boot_id: Some(boot) } | Entry::Rebooted { host, to: boot, .. } => {
            status.seen_in(host, boot, record.sequence);
        }
        Entry::GuardArmed { .. } | Entry::GuardOver { .. } => {}
        Entry::HostLocked { boot_id: None, .. } | Entry::ActionSent { .. } | Entry::ActionEnded { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold_of(entries: Vec<Entry>) -> RunStatus {
        let records: Vec<_> =
            entries.into_iter().zip(1..).map(|(entry, sequence)| Record { sequence, at: "t".to_owned(), entry }).collect();
        fold(&records)
    }

    fn started(attempt: u32, before: i32) -> Entry {
        let member =
            MemberIntent { address: "host/a/file/x".parse().unwrap(), met: false, fingerprint: Digest::of(&before), before: before.into() };
        Entry::NodeStarted {
            node: "n".to_owned(),
            attempt,
            token: format!("t{attempt}"),
            actions: Digest::of(&0),
            members: vec![member],
            boot_id: None,
        }
    }

    #[test]
    fn an_intent_is_open_until_its_own_outcome() {
        let finished =
            Entry::NodeFinished { node: "n".to_owned(), outcome: Outcome::Done { changed: true }, applied: vec![], removed: vec![] };
        assert!(fold_of(vec![started(1, 0)]).nodes["n"].is_open());
        assert!(!fold_of(vec![started(1, 0), finished.clone()]).nodes["n"].is_open());
        assert!(fold_of(vec![started(1, 0), finished, started(2, 1)]).nodes["n"].is_open(), "a second attempt has no outcome yet");
        let unknown = Outcome::Unknown { reason: "the connection ended".to_owned() };
        let unknown = Entry::NodeFinished { node: "n".to_owned(), outcome: unknown, applied: vec![], removed: vec![] };
        assert_eq!((fold_of(vec![started(1, 0)]).open(), fold_of(vec![started(1, 0), unknown]).open()), (1, 1));
    }

    #[test]
    fn who_was_lost_is_out_until_a_gate_says_otherwise_though_the_step_was_done_since() {
        let ended = |outcome| Entry::NodeFinished { node: "n".to_owned(), outcome, applied: vec![], removed: vec![] };
        let (lost, done) = (Outcome::Unknown { reason: "gone".to_owned() }, Outcome::Done { changed: true });
        let twice = fold_of(vec![started(1, 0), ended(lost), started(2, 0), ended(done.clone())]);
        assert_eq!((twice.nodes["n"].out_since(false), twice.nodes["n"].out_since(true)), (2, 3));
        assert_eq!(fold_of(vec![started(1, 0), ended(done)]).nodes["n"].out_since(false), 0);
    }

    #[test]
    fn the_boots_of_a_host_are_told_apart_and_a_new_one_has_to_be_proven() {
        let locked = |boot: &str| Entry::HostLocked { host: "a".to_owned(), boot_id: Some(boot.to_owned()) };
        let gate = |passed| Entry::GateChecked { node: "g".to_owned(), hosts: vec!["a".to_owned()], passed };
        let status = fold_of(vec![locked("1"), started(1, 0), locked("1"), locked("2")]);
        assert_eq!((status.boot_at("a", 2), status.boot_at("a", 9), status.boot_at("b", 9)), (Some("1"), Some("2"), None));
        assert!(!fold_of(vec![locked("1")]).rebooted_unproven("a", Some("1")) && !status.rebooted_unproven("b", Some("1")));
        assert!(fold_of(vec![locked("1")]).rebooted_unproven("a", Some("2")), "it is in another boot now");
        assert!(status.rebooted_unproven("a", Some("2")) && status.rebooted_unproven("a", None));
        assert!(fold_of(vec![locked("1"), gate(true), locked("2"), gate(false)]).rebooted_unproven("a", Some("2")));
        assert!(!fold_of(vec![locked("1"), locked("2"), gate(true), locked("2")]).rebooted_unproven("a", Some("2")));
    }

    #[test]
    fn what_was_there_before_is_that_of_the_first_attempt() {
        let status = fold_of(vec![started(1, 10), started(2, 20)]);
        let intent = status.nodes["n"].intent.as_ref().unwrap();
        assert_eq!((intent.first[0].before.clone(), intent.latest[0].before.clone(), intent.attempt), (10.into(), 20.into(), 2));
    }

    #[test]
    fn resources_of_any_target_pass_through_unchanged() {
        use crate::state::journal::{self, Chain};
        let applied = Applied {
            kind: "made_up".to_owned(),
            body: serde_json::json!({ "deep": [1.5, { "text": "a\nb" }] }),
            digest: Digest::of(&1),
            module: "m/x".to_owned(),
            places: Vec::new(),
            after: Vec::new(),
            before: serde_json::json!({ "was": null }),
            adopted: true,
            unfinished: false,
            run: "r".to_owned(),
            at: "t".to_owned(),
        };
        let addresses = ["kube/prod/DaemonSet.apps/kube-system/rdma", "switch/leaf1/port/Ethernet1%2F1", "host/a/file/%2Fx"];
        let applied: Vec<(Address, Applied)> = addresses.iter().map(|text| (text.parse().unwrap(), applied.clone())).collect();
        let finished = Entry::NodeFinished {
            node: "n".to_owned(),
            outcome: Outcome::Done { changed: true },
            applied: applied.clone(),
            removed: vec!["switch/leaf2/port/Ethernet1".parse().unwrap()],
        };
        let mut chain = Chain::default();
        let started = Entry::RunStarted {
            format_version: journal::FORMAT_VERSION.to_owned(),
            run: "r".to_owned(),
            plan: String::new(),
            inventory: InventoryOrigin::default(),
            who: String::new(),
            machine: String::new(),
            process: 0,
            tool: String::new(),
        };
        let text = chain.seal("t".to_owned(), started) + &chain.seal("t".to_owned(), finished);
        let mut state = LastApplied::default();
        state.resources.insert("switch/leaf2/port/Ethernet1".parse().unwrap(), applied[0].1.clone());
        fold(&journal::read("j", text.as_bytes()).unwrap().records).absorb_into(&mut state, 0);
        assert_eq!(state.resources.into_iter().collect::<BTreeMap<_, _>>(), applied.into_iter().collect());
    }
}
