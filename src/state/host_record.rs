//! The record that each host keeps of itself: it survives the loss of the machine that railwright ran on, and tells a
//! second operator what was applied. It is never trusted over what is observed.

use super::StateFolder;
use super::last_applied_file::FORMAT_VERSION;
use super::recognition::ClusterIdentity;
use crate::base::{Address, Diagnostic, MachineId, Target, TargetKind, bounded};
use crate::plan::{Applied, Outage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the record stands on the host (`transport::upkeep` writes it).
pub const HOST_RECORD_PATH: &str = "/var/lib/railwright/record.json";

/// Beyond it a record was not written by counting: no later one could be newer.
const HIGHEST_SERIAL: u64 = 1 << 40;

/// What was applied to one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// `FORMAT_VERSION` of the writer.
    pub format_version: String,
    /// The cluster that applied to it.
    pub cluster: ClusterIdentity,
    /// The host's name in the spec.
    pub host: String,
    /// The machine that it was applied to, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineId>,
    /// The cluster that it was taken over from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<TakeOver>,
    /// Counts up with each write, wherever it is written from.
    pub serial: u64,
    /// The run that wrote it.
    pub run: String,
    /// The digest of that run's plan.
    pub plan: String,
    /// The version of railwright that wrote it.
    pub tool: String,
    /// When, RFC 3339.
    pub at: String,
    /// The host left service, and no gate has passed it since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// The host's resources as they were last applied.
    pub resources: BTreeMap<Address, Applied>,
}

/// A target was taken over from another cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TakeOver {
    /// From which.
    pub from: ClusterIdentity,
    /// Who decided it.
    pub who: String,
    /// On which machine.
    pub machine: String,
    /// When, RFC 3339.
    pub at: String,
    /// Why, in the user's words.
    pub reason: String,
    /// What the other cluster brought: it stays as it is and is not managed, unless the spec says something of it.
    pub resources: Vec<Address>,
}

impl HostRecord {
    /// As it is written to the host.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("our own types have string keys and serialise without fail")
    }
}

/// Reads a host's record. One that cannot be read or speaks of another host is left out with a warning: what we remember
/// ourselves stands.
pub fn parse(target: &Target, json: &str, folder: &StateFolder) -> Result<HostRecord, Diagnostic> {
    let unreadable = |what: &str| unreadable(target, what, folder);
    if !bounded::is_of_record(json) {
        return Err(unreadable(&format!("it holds more than {} values", bounded::RECORD_VALUES)));
    }
    let mut record: HostRecord = serde_json::from_str(json).map_err(|error| unreadable(&error.to_string()))?;
    if record.format_version.split('.').next() != FORMAT_VERSION.split('.').next() {
        return Err(unreadable(&format!("it has format {}", crate::base::text::one_line(&record.format_version, 20))));
    }
    if record.serial > HIGHEST_SERIAL {
        return Err(unreadable("no host was ever written to as often as it says"));
    }
    if record.host != *target.name {
        return Err(unreadable("it was written under another name"));
    }
    if record.resources.keys().any(|address| address.target != *target) {
        return Err(unreadable("it holds resources of another target"));
    }
    record.outage = record.outage.map(Outage::in_plain_lines);
    Ok(record)
}

fn unreadable(target: &Target, what: &str, folder: &StateFolder) -> Diagnostic {
    let (place, record) = match target.kind {
        TargetKind::Kube => ("cluster", "the record that the cluster keeps of us, a Secret in kube-system,"),
        TargetKind::Host | TargetKind::Switch => ("host", "the record that the host keeps of itself"),
    };
    Diagnostic::warning("RW0707", format!("{record} is left out: {what}"))
        .on(target.to_string())
        .effect(format!("if somebody else applied to this {place}, a removal may not know what was there before"))
        .state("what this side remembers is used instead; the record is written anew by the next apply")
        .next(format!("railwright state list {} {target} shows what this side remembers", folder.inventory()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(target: &Target, json: &str) -> Result<HostRecord, Diagnostic> {
        super::parse(target, json, &StateFolder::at("inventories/lab/.railwright"))
    }

    #[test]
    fn a_host_cannot_speak_for_another() {
        let record = |host: &str, address: &str| {
            let applied =
                r#"{"kind":"file","body":1,"digest":"0","module":"m","places":[],"before":null,"adopted":false,"run":"r","at":"t"}"#;
            format!(
                r#"{{"format_version":"2.0","cluster":{{"id":"0123456789abcdef0123456789abcdef","name":"c"}},"host":"{host}","serial":9,"run":"r","plan":"p","tool":"0","at":"t","resources":{{"{address}":{applied}}}}}"#
            )
        };
        assert!(parse(&Target::host("a"), &record("a", "host/a/file/x")).is_ok());
        assert!(parse(&Target::host("a"), &record("b", "host/b/file/x")).is_err());
        assert!(parse(&Target::host("a"), &record("a", "host/b/file/x")).is_err());
        assert!(parse(&Target::host("a"), "{").is_err());
        let bomb = record("a", "host/a/file/x").replace("\"body\":1", &format!("\"body\":[{}1]", "{},".repeat(bounded::RECORD_VALUES)));
        assert!(parse(&Target::host("a"), &bomb).unwrap_err().message.contains("it holds more than 500000 values"));
        let of_cluster = parse(&Target::kube("prod"), "{").unwrap_err();
        assert!(!format!("{of_cluster:?}").contains("host"), "{of_cluster:?}");
        assert!(of_cluster.message.contains("a Secret in kube-system"), "{of_cluster:?}");
        assert_eq!(of_cluster.next, ["railwright state list inventories/lab kube/prod shows what this side remembers"]);
        let last = record("a", "host/a/file/x").replace("\"serial\":9", &format!("\"serial\":{}", u64::MAX));
        assert!(parse(&Target::host("a"), &last).is_err(), "nobody could ever write a newer one");
    }
}
