//! What a journal records: one entry for each thing that happened in a run.

use crate::order::OrderKind;
use crate::outcome::NodeOutcome;
use crate::recognition::ClusterIdentity;
use railwright_base::{Address, Digest, MachineId};
use railwright_plan::model::InventoryOrigin;
use railwright_plan::{AppliedResource, Unavailable};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one resource was like when its step began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberIntent {
    /// The resource.
    pub address: Address,
    /// It was in sync already.
    pub met: bool,
    /// What was found.
    pub fingerprint: Digest,
    /// What undoing needs to know.
    pub before: Value,
}

/// The first check of a gate that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateFailure {
    /// Its code.
    pub code: String,
    /// What it found, in one line.
    pub check: String,
}

/// One thing that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum JournalEntry {
    /// The run began; always the first record.
    RunStarted {
        /// `FORMAT_VERSION` of the writer.
        format_version: String,
        /// The run's name.
        run: String,
        /// The cluster.
        cluster: ClusterIdentity,
        /// The plan that is executed.
        plan: String,
        /// Where the spec came from, with its commit.
        inventory: InventoryOrigin,
        /// The user.
        who: String,
        /// The machine that railwright runs on.
        machine: String,
        /// Its process.
        process: u32,
        /// The serial of the state that it was begun with.
        state_serial: u64,
        /// Its plan has power cycles by hand.
        power_cycles: bool,
        /// The version of railwright.
        tool: String,
    },
    /// The run goes on after an interruption.
    RunResumed {
        /// The user.
        who: String,
        /// The machine.
        machine: String,
        /// Its process.
        process: u32,
        /// Resources to be done again whatever they look like.
        redo: Vec<Address>,
        /// Resources taken for done as they are.
        accept: Vec<Address>,
        /// The order that lay there, by its nonce: it is none for this part.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_order: Option<String>,
    },
    /// The cluster's lock was taken.
    LockTaken {
        /// The fencing number.
        fence: u64,
        /// Random: which part of the run begins with it.
        #[serde(default)]
        part: String,
    },
    /// A host was reached and locked.
    HostLocked {
        /// The host.
        host: String,
        /// The boot that it is in.
        boot_id: Option<String>,
        /// The machine, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine_id: Option<MachineId>,
    },
    /// The intent: durable before anything is done.
    NodeStarted {
        /// The node's id.
        node: String,
        /// The host that it works on, where it works on one.
        host: Option<String>,
        /// It takes its host out of service until a gate has passed.
        disruptive: bool,
        /// It empties the node of its host: until that is done, pods are on it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        drains: bool,
        /// Counts from 1 within the run.
        attempt: u32,
        /// The token under which the target knows the step.
        token: String,
        /// Digest of the actions that will be executed.
        actions: Digest,
        /// What the resources were like.
        members: Vec<MemberIntent>,
        /// The boot that the host was in.
        boot_id: Option<String>,
    },
    /// The host watches over a step: unless that is confirmed, it rolls it back by itself.
    RollbackTimerArmed {
        /// The node's id.
        node: String,
        /// The name of the automatic rollback on the host.
        token: String,
        /// After so many seconds.
        seconds: u32,
        /// The hosts attached to the switch passed their gate before it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hosts_passed: bool,
    },
    /// An automatic rollback is over.
    RollbackTimerEnded {
        /// The node's id.
        node: String,
        /// The name of the automatic rollback on the host.
        token: String,
        /// It was confirmed over a new connection; otherwise the host rolled back.
        confirmed: bool,
        /// What could not be rolled back.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        failed: String,
    },
    /// An action goes out.
    ActionSent {
        /// The node's id.
        node: String,
        /// Its place among the node's actions, from 0.
        index: usize,
        /// The action's word.
        word: String,
    },
    /// An action ended.
    ActionEnded {
        /// The node's id.
        node: String,
        /// Its place among the node's actions, from 0.
        index: usize,
        /// The exit status; nothing when it is unknown.
        code: Option<i32>,
    },
    /// A step ends without anything done to its host, which is in service as it was: its node could
    /// not be emptied, and takes pods again.
    HostLeftAsItWas {
        /// The node's id.
        node: String,
    },
    /// The outcome, after the resources were read again.
    NodeFinished {
        /// The node's id.
        node: String,
        /// The host that it works on, also where it was never begun.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        /// How it ended.
        outcome: NodeOutcome,
        /// What is to be remembered as applied.
        applied: Vec<(Address, AppliedResource)>,
        /// What is to be forgotten.
        removed: Vec<Address>,
    },
    /// A host came back from a reboot, or was found to be back from a power cycle.
    Rebooted {
        /// The host.
        host: String,
        /// The boot before.
        from: String,
        /// The boot after.
        to: String,
    },
    /// The functional check of some hosts begins.
    GateStarted {
        /// The gate's id.
        node: String,
        /// The hosts that are checked.
        hosts: Vec<String>,
    },
    /// The functional check of some hosts.
    GateChecked {
        /// The gate's id.
        node: String,
        /// The hosts that were checked.
        hosts: Vec<String>,
        /// Why it did not pass; nothing where it did.
        failure: Option<GateFailure>,
    },
    /// Somebody decided that hosts are in service, whatever a gate says.
    ReturnedToService {
        /// The user.
        who: String,
        /// The machine.
        machine: String,
        /// Why, in the user's words.
        reason: String,
        /// The hosts.
        hosts: Vec<String>,
    },
    /// The host's own record was written.
    HostRecordWritten {
        /// The host.
        host: String,
        /// The record's serial.
        serial: u64,
    },
    /// Nobody knows whether the host's own record was written.
    HostRecordTried {
        /// The host.
        host: String,
        /// The record's serial.
        serial: u64,
    },
    /// The Kubernetes cluster said otherwise than before which hosts' nodes are out of service.
    NodesSeen {
        /// The hosts.
        out: Vec<Unavailable>,
    },
    /// Somebody ordered the run something.
    Ordered {
        /// What.
        order: OrderKind,
        /// The user.
        who: String,
        /// The machine that it was ordered on.
        machine: String,
    },
    /// Locks were taken over from whoever had them.
    LockStolen {
        /// The user.
        who: String,
        /// The machine.
        machine: String,
        /// Why, in the user's words.
        reason: String,
        /// The fencing number from then on.
        fence: u64,
        /// From whom.
        from: Vec<String>,
        /// On these hosts; the cluster's own lock besides.
        hosts: Vec<String>,
    },
    /// The run ended in order; it may still be resumed when not all is done.
    RunFinished {
        /// How, in one word.
        ending: String,
    },
}

#[cfg(test)]
impl JournalEntry {
    /// The first record of a run of this name.
    pub fn first_of(run: &str) -> Self {
        JournalEntry::RunStarted {
            format_version: super::FORMAT_VERSION.to_owned(),
            run: run.to_owned(),
            cluster: ClusterIdentity {
                id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
                name: "c".to_owned(),
            },
            plan: String::new(),
            inventory: InventoryOrigin::default(),
            who: "a \"quoted\" name".to_owned(),
            machine: String::new(),
            process: 1,
            state_serial: 0,
            power_cycles: false,
            tool: "0.1.0".to_owned(),
        }
    }
}
