//! The record that each host keeps of itself: it survives the loss of the machine that railwright
//! ran on, and shows a second operator what was applied. It is never trusted over what is observed.

use super::last_applied_file::FORMAT_VERSION;
use super::lineage::{Lineage, RunPart};
use super::recognition::ClusterIdentity;
use railwright_base::text::one_line;
use railwright_base::{Address, ClusterId, MachineId, Reason, Target, bounded_json};
use railwright_plan::{AppliedResource, Outage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the record stands on the host (`transport::fenced_script` writes it).
pub const HOST_RECORD_PATH: &str = "/var/lib/railwright/record.json";

/// Beyond it a record was not written by counting. None is written beyond it either: where a target
/// says this much already, its lineage alone tells what came after what.
pub(super) const HIGHEST_SERIAL: u64 = 1 << 40;

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
    /// Which part of it.
    #[serde(default)]
    pub part: String,
    /// What was written before it.
    #[serde(default)]
    pub earlier: Lineage,
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
    pub resources: BTreeMap<Address, AppliedResource>,
}

/// A target was taken over from another cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TakeOver {
    /// From which, where its record told.
    pub from: Option<ClusterIdentity>,
    /// Who decided it.
    pub who: String,
    /// On which machine.
    pub machine: String,
    /// When, RFC 3339.
    pub at: String,
    /// Why, in the user's words.
    pub reason: String,
    /// What the other cluster brought: it stays as it is and is not managed, unless the spec says
    /// something of it.
    pub resources: Vec<Address>,
    /// Where its record is kept that could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<String>,
}

impl HostRecord {
    /// Which runs wrote it and what came before it.
    pub fn lineage(&self) -> Lineage {
        let mut lineage = self.earlier.clone();
        lineage.note(&self.by(), self.serial);
        lineage
    }

    /// Who wrote it.
    pub fn by(&self) -> RunPart {
        RunPart {
            run: self.run.clone(),
            part: self.part.clone(),
        }
    }

    /// Whether it was written of another machine than this one, as far as both are known.
    pub fn is_of_another(&self, machine: Option<&MachineId>) -> bool {
        self.machine
            .as_ref()
            .zip(machine)
            .is_some_and(|(of, now)| of != now)
    }

    /// As it is written to the host.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self)
            .expect("our own types have string keys and serialise without fail")
    }
}

/// What was found in the place of a target's record.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum TargetRecord {
    /// There is none, or it is not for us to read.
    #[default]
    Absent,
    /// A record of this target.
    Read {
        /// What it says, with the target under the name that it has in the spec.
        record: Box<HostRecord>,
        /// The name that the target had when the record was written, where that was another one.
        former_name: Option<String>,
    },
    /// Something is there that cannot be read as a record of this target.
    Unreadable {
        /// The cluster that it names all the same.
        cluster: Option<ClusterIdentity>,
        /// Why it cannot be read.
        reason: String,
    },
}

impl TargetRecord {
    /// What a target keeps as its record. Its cluster is known whatever else cannot be read.
    pub fn parse(target: &Target, json: &str) -> Self {
        match parse_host_record(target, json) {
            Ok((record, former_name)) => TargetRecord::Read {
                record: Box::new(record),
                former_name,
            },
            Err(reason) => TargetRecord::Unreadable {
                cluster: named_cluster(json),
                reason: reason.into(),
            },
        }
    }

    /// Something that is no text of a record.
    pub fn unreadable(reason: impl Into<String>) -> Self {
        TargetRecord::Unreadable {
            cluster: None,
            reason: reason.into(),
        }
    }

    /// The cluster that applied to the target last.
    pub fn cluster(&self) -> Option<&ClusterIdentity> {
        match self {
            TargetRecord::Absent => None,
            TargetRecord::Read { record, .. } => Some(&record.cluster),
            TargetRecord::Unreadable { cluster, .. } => cluster.as_ref(),
        }
    }

    /// The record, where it could be read.
    pub fn read(&self) -> Option<&HostRecord> {
        if let TargetRecord::Read { record, .. } = self {
            Some(record)
        } else {
            None
        }
    }
}

/// The cluster in a record of any format.
fn named_cluster(json: &str) -> Option<ClusterIdentity> {
    #[derive(Deserialize)]
    struct AnyRecord {
        cluster: AnyCluster,
    }
    #[derive(Deserialize)]
    struct AnyCluster {
        id: ClusterId,
        #[serde(default)]
        name: String,
    }
    let AnyRecord {
        cluster: AnyCluster { id, name },
    } = serde_json::from_str(json).ok()?;
    Some(ClusterIdentity { id, name })
}

/// The record, and the target's name in it where that is another one; or why it cannot be read.
/// What it says of other targets is never believed.
fn parse_host_record(target: &Target, json: &str) -> Result<(HostRecord, Option<String>), Reason> {
    if !bounded_json::is_of_record(json) {
        return Err(format!(
            "it holds more than {} values, or more than {} levels of them",
            bounded_json::RECORD_VALUES,
            bounded_json::RECORD_LEVELS
        )
        .into());
    }
    let mut record: HostRecord = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if record.format_version.split('.').next() != FORMAT_VERSION.split('.').next() {
        return Err(format!("it has format {}", one_line(&record.format_version, 20)).into());
    }
    if record.serial.max(record.earlier.highest_serial()) > HIGHEST_SERIAL {
        return Err("no host was ever written to as often as it says".into());
    }
    let written = Target {
        name: record.host.as_str().into(),
        ..target.clone()
    };
    if record
        .resources
        .keys()
        .any(|address| address.target != written)
    {
        return Err("it holds resources of another target".into());
    }
    record.outage = record.outage.map(Outage::in_plain_lines);
    if written == *target {
        return Ok((record, None));
    }
    for (mut address, applied) in std::mem::take(&mut record.resources) {
        address.target = target.clone();
        record.resources.insert(address, applied);
    }
    let former_name = std::mem::replace(&mut record.host, target.name.to_string());
    Ok((record, Some(former_name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_cannot_speak_for_another() {
        let record = |host: &str, address: &str| {
            let applied = r#"{"kind":"file","body":1,"digest":"0","module":"m","places":[],"before":null,"adopted":false,"run":"r","at":"t"}"#;
            format!(
                r#"{{"format_version":"2.0","cluster":{{"id":"0123456789abcdef0123456789abcdef","name":"c"}},"host":"{host}","serial":9,"run":"r","plan":"p","tool":"0","at":"t","resources":{{"{address}":{applied}}}}}"#
            )
        };
        let a = Target::host("a");
        let own = record("a", "host/a/file/x");
        assert!(matches!(
            TargetRecord::parse(&a, &own),
            TargetRecord::Read {
                former_name: None,
                ..
            }
        ));
        let TargetRecord::Read {
            record: renamed,
            former_name: Some(former_name),
        } = TargetRecord::parse(&a, &record("b", "host/b/file/x"))
        else {
            panic!("it speaks of itself alone")
        };
        assert_eq!((former_name.as_str(), renamed.host.as_str()), ("b", "a"));
        assert!(renamed.resources.keys().all(|address| address.target == a));
        let last = own.replace("\"serial\":9", &format!("\"serial\":{}", u64::MAX));
        let after_last = own.replace(
            "\"plan\":",
            &format!(r#""earlier":[{{"run":"r","serial":{}}}],"plan":"#, u64::MAX),
        );
        let newer = own.replace("\"format_version\":\"2.0\"", "\"format_version\":\"99.0\"");
        let lacking = own.replace("\"run\":\"r\",", "");
        assert!(last != own && after_last != own && newer != own && lacking != own);
        let bomb = own.replace(
            "\"body\":1",
            &format!("\"body\":[{}1]", "{},".repeat(bounded_json::RECORD_VALUES)),
        );
        let nested = |levels: usize| {
            let value = format!("\"body\":{}1{}", "[".repeat(levels), "]".repeat(levels));
            own.replace("\"body\":1", &value)
        };
        // The record, its resources and the resource are around it.
        let deepest = bounded_json::RECORD_LEVELS - 3;
        assert!(TargetRecord::parse(&a, &nested(deepest)).read().is_some());
        for unreadable in [
            nested(deepest + 1),
            record("a", "host/b/file/x"),
            last,
            after_last,
            newer,
            lacking,
            bomb,
        ] {
            let found = TargetRecord::parse(&a, &unreadable);
            assert!(
                matches!(&found, TargetRecord::Unreadable { cluster: Some(cluster), .. } if cluster.name == "c"),
                "{found:?}"
            );
        }
        for no_record in ["{", "", "[]", &own[..own.len() - 9]] {
            assert!(
                matches!(
                    TargetRecord::parse(&a, no_record),
                    TargetRecord::Unreadable { cluster: None, .. }
                ),
                "{no_record}"
            );
        }
    }
}
