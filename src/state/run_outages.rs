//! Whom a run left out of service, as far as its journal goes. Pure.

use super::NodeOutcome;
use super::journal::Record;
use super::run_status::{NodeStatus, RunStatus};
use railwright_plan::{Outage, OutageCause};
use std::collections::BTreeMap;

/// What a record says of a host: it is out of service since then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutageMark {
    /// The record.
    pub sequence: u64,
    /// When, RFC 3339.
    pub at: String,
    /// Why.
    pub cause: OutageCause,
}

impl OutageMark {
    pub(super) fn new(record: &Record, cause: OutageCause) -> Self {
        OutageMark {
            sequence: record.sequence,
            at: record.at.clone(),
            cause,
        }
    }

    /// Of two marks the one with the higher rank says more, or is later.
    fn rank(&self) -> (u8, u64) {
        (self.cause.weight(), self.sequence)
    }

    /// The outage as it is remembered of a run.
    pub fn outage(&self, run: &str) -> Outage {
        Outage {
            cause: self.cause.clone(),
            since: self.at.clone(),
            run: run.to_owned(),
        }
    }
}

impl RunStatus {
    /// The record since which a host is in service again, by a gate or by somebody's decision; 0
    /// where none says so.
    pub fn in_service_since(&self, host: &str) -> u64 {
        let proven = self.proven.get(host).copied().unwrap_or_default();
        let returned = self.returned.get(host).copied().unwrap_or_default();
        proven.max(returned)
    }

    /// The hosts that the run left out of service, as far as it goes: begun and not passed since,
    /// failed, not passed by a gate. Each with the latest of the marks that say most of it.
    pub fn outages(&self) -> BTreeMap<&str, OutageMark> {
        let mut marks: Vec<(&str, OutageMark)> =
            self.nodes.iter().filter_map(mark_of_node).collect();
        for (host, mark) in self.not_passed.iter().chain(&self.rebooted) {
            marks.push((host, mark.clone()));
        }
        let mut outages: BTreeMap<&str, OutageMark> = BTreeMap::new();
        for (host, mark) in marks {
            if mark.sequence <= self.in_service_since(host) {
                continue;
            }
            let other = outages.get(host);
            if other.is_none_or(|other| other.rank() < mark.rank()) {
                outages.insert(host, mark);
            }
        }
        outages
    }

    /// Whether a host was found in another boot than before, this one or an earlier one that was
    /// seen, and no gate has passed it since.
    pub fn rebooted_unproven(&self, host: &str, now: Option<&str>) -> bool {
        let Some([earlier @ .., (latest, since)]) = self.boots.get(host).map(Vec::as_slice) else {
            return false;
        };
        let unproven = !earlier.is_empty() && self.in_service_since(host) < *since;
        unproven || now.is_some_and(|now| now != latest)
    }
}

/// Since when the host of a step is out of service because of it.
fn mark_of_node<'a>((id, node): (&String, &'a NodeStatus)) -> Option<(&'a str, OutageMark)> {
    let is_done = node.outcome.as_ref().is_some_and(NodeOutcome::is_done);
    let (host, sequence) = (
        node.host.as_deref()?,
        node.out_since(node.disruptive || !is_done),
    );
    let at = if sequence == node.lost {
        &node.over_at
    } else {
        &node.begun_at
    };
    let cause = match (node.disruptive, sequence == node.lost) {
        _ if node.drains && !is_done => OutageCause::Emptying { node: id.clone() },
        (false, _) => OutageCause::InDoubt { node: id.clone() },
        (true, true) => OutageCause::StepFailed { node: id.clone() },
        (true, false) => OutageCause::Unproven { node: id.clone() },
    };
    Some((
        host,
        OutageMark {
            sequence,
            at: at.clone().unwrap_or_default(),
            cause,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::GateFailure;
    use crate::run_status::tests::{fold_of, started};
    use crate::{ClusterState, JournalEntry};

    #[test]
    fn a_run_leaves_hosts_out_of_service_until_a_gate_or_somebody_says_otherwise() {
        let begun = |node: &str, host: &str, disruptive: bool| match started(1, 0) {
            JournalEntry::NodeStarted {
                drains,
                attempt,
                token,
                actions,
                members,
                boot_id,
                ..
            } => {
                let (node, host) = (node.to_owned(), Some(host.to_owned()));
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
                }
            }
            other => other,
        };
        let ended = |node: &str, outcome| JournalEntry::NodeFinished {
            node: node.to_owned(),
            host: None,
            outcome,
            applied: vec![],
            removed: vec![],
        };
        let (done, failed) = (
            NodeOutcome::Done { changed: true },
            NodeOutcome::Failed {
                reason: "x".to_owned(),
            },
        );
        let hosts = |hosts: &[&str]| {
            hosts
                .iter()
                .map(|host| (*host).to_owned())
                .collect::<Vec<_>>()
        };
        let gate = |of: &[&str], passed: bool| {
            let failure = GateFailure {
                code: "RW0650".to_owned(),
                check: "slow".to_owned(),
            };
            JournalEntry::GateChecked {
                node: "gate/0".to_owned(),
                hosts: hosts(of),
                failure: Some(failure).filter(|_| !passed),
            }
        };
        let out = |entries: &[JournalEntry]| -> Vec<String> {
            let word = |cause: &OutageCause| match cause {
                OutageCause::GateFailed { .. } => "gate",
                OutageCause::StepFailed { .. } => "failed",
                OutageCause::Unproven { .. } => "unproven",
                OutageCause::InDoubt { .. }
                | OutageCause::SwitchedOffAndOn { .. }
                | OutageCause::GivenBack { .. } => "in doubt",
                OutageCause::Emptying { .. } => "emptying",
            };
            fold_of(entries.to_vec())
                .outages()
                .iter()
                .map(|(host, mark)| format!("{host} {}", word(&mark.cause)))
                .collect()
        };
        let mut drain = begun("d", "a", true);
        if let JournalEntry::NodeStarted { drains, .. } = &mut drain {
            *drains = true;
        }
        assert_eq!(out(std::slice::from_ref(&drain)), ["a emptying"]);
        assert_eq!(out(&[drain, ended("d", done.clone())]), ["a unproven"]);
        let mut run = vec![begun("a1", "a", true), begun("b1", "b", false)];
        assert_eq!(
            out(&run),
            ["a unproven", "b in doubt"],
            "a crash here leaves both"
        );
        run.extend([ended("a1", done.clone()), ended("b1", done.clone())]);
        assert_eq!(
            out(&run),
            ["a unproven"],
            "what disturbs nobody and was done needs no gate"
        );
        run.extend([
            gate(&["a", "b"], false),
            begun("c1", "c", false),
            ended("c1", failed.clone()),
        ]);
        assert_eq!(out(&run), ["a gate", "b gate", "c in doubt"]);
        let decided = JournalEntry::ReturnedToService {
            who: String::new(),
            machine: String::new(),
            reason: String::new(),
            hosts: hosts(&["b"]),
        };
        run.extend([gate(&["a"], true), decided]);
        assert_eq!(out(&run), ["c in doubt"]);
        run.push(begun("a2", "a", true));
        assert_eq!(out(&run), ["a unproven", "c in doubt"]);
        // A node that could not be emptied and takes pods again.
        run.extend([
            JournalEntry::HostLeftAsItWas {
                node: "a2".to_owned(),
            },
            ended("a2", failed),
        ]);
        assert_eq!(out(&run), ["c in doubt"]);
        let mut state = ClusterState::default();
        fold_of(run.clone()).absorb_into(&mut state, &RunStatus::default());
        assert_eq!(state.outages.keys().collect::<Vec<_>>(), ["c"]);
        // What was decided on the state since then is not brought back by the same records.
        state.outages.clear();
        let status = fold_of(run.clone());
        status.clone().absorb_into(&mut state, &status);
        assert!(state.outages.is_empty());
    }

    #[test]
    fn the_boots_of_a_host_are_told_apart_and_a_new_one_has_to_be_proven() {
        let locked = |boot: &str| JournalEntry::HostLocked {
            host: "a".to_owned(),
            boot_id: Some(boot.to_owned()),
            machine_id: None,
        };
        let failed = GateFailure {
            code: "RW0650".to_owned(),
            check: "slow".to_owned(),
        };
        let gate = |passed: bool| JournalEntry::GateChecked {
            node: "g".to_owned(),
            hosts: vec!["a".to_owned()],
            failure: Some(failed.clone()).filter(|_| !passed),
        };
        let status = fold_of(vec![locked("1"), started(1, 0), locked("1"), locked("2")]);
        assert_eq!(
            (
                status.boot_at("a", 2),
                status.boot_at("a", 9),
                status.boot_at("b", 9)
            ),
            (Some("1"), Some("2"), None)
        );
        assert!(
            !fold_of(vec![locked("1")]).rebooted_unproven("a", Some("1"))
                && !status.rebooted_unproven("b", Some("1"))
        );
        assert!(
            fold_of(vec![locked("1")]).rebooted_unproven("a", Some("2")),
            "it is in another boot now"
        );
        assert!(status.rebooted_unproven("a", Some("2")) && status.rebooted_unproven("a", None));
        assert!(
            fold_of(vec![locked("1"), gate(true), locked("2"), gate(false)])
                .rebooted_unproven("a", Some("2"))
        );
        assert!(
            !fold_of(vec![locked("1"), locked("2"), gate(true), locked("2")])
                .rebooted_unproven("a", Some("2"))
        );
    }
}
