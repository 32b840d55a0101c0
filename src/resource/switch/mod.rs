//! Switches in the fabric's own words: the priority that a DSCP has on a port, the priorities that
//! pause, the queue where packets are marked. The kinds `switch_port`, `switch_qos`, `switch_ecn`
//! and `switch_buffer` state and compare in these words alone; one folder a system says how that
//! system keeps them (`sonic`, `cumulus`, `eos`), behind what `os` and `configuration` ask of each.
//! How to add a system stands in the head of this crate.
//!
//! What only runs is lost at the next reload, so every attribute has two planes: *running*, and
//! *persisted* for what is saved. What runs is changed first, confirmed over a new connection, and
//! only then saved.

pub mod body;
pub mod buffer;
pub mod configuration;
pub mod cumulus;
mod diff;
pub mod ecn;
pub mod edit;
pub mod edit_line;
pub mod eos;
mod error;
pub mod links;
mod neighbours;
pub mod os;
mod parse_values;
pub mod port;
pub mod qos;
pub mod sonic;
mod system;

pub use diff::{decode_running_configuration, list_differing_ports};
pub use error::SwitchError;
pub use neighbours::decode_switch_neighbours;
pub use os::SwitchOs;
pub use system::SwitchSystem;

use crate::Fact;
use serde::{Deserialize, Serialize};

/// How an edit ends that the switch did not take: nothing of it was changed. The sections of the
/// program say so with `say 65` or `drop 65`.
pub const NOT_TAKEN: i32 = 65;

/// What is read from a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchRead {
    /// The configuration that runs.
    Running,
    /// The one that the next reload begins with.
    Saved,
}

impl SwitchRead {
    /// The word in the key of its answer.
    pub fn word(self) -> &'static str {
        match self {
            SwitchRead::Running => "running",
            SwitchRead::Saved => "saved",
        }
    }
}

/// How thresholds of marking are set: from `min_bytes` in a queue on packets are marked with a
/// growing share, which is `probability_percent` at `max_bytes`; above that all are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EcnMarkingThresholds {
    /// Bytes in the queue.
    pub min_bytes: u64,
    /// Bytes in the queue.
    pub max_bytes: u64,
    /// Percent.
    pub probability_percent: u64,
}

impl EcnMarkingThresholds {
    /// The thresholds, where all three are known; else why the first that is not is not.
    fn from_facts(min: Fact<u64>, max: Fact<u64>, probability: Fact<u64>) -> Fact<Self> {
        min.and_then(|min_bytes| {
            max.and_then(|max_bytes| {
                probability.map(|probability_percent| EcnMarkingThresholds {
                    min_bytes,
                    max_bytes,
                    probability_percent,
                })
            })
        })
    }
}

/// What a switch does with a priority that a peer pauses for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PfcWatchdogSettings {
    /// Milliseconds without a packet after which it acts.
    pub detection_ms: u64,
    /// Milliseconds without a pause after which it lets go.
    pub restoration_ms: u64,
    /// `drop`, `forward` or `alert`.
    pub action: String,
}

impl PfcWatchdogSettings {
    /// The settings, where both times are known; else why the first that is not is not.
    fn from_facts(detection: Fact<u64>, restoration: Fact<u64>, action: &str) -> Fact<Self> {
        detection.and_then(|detection_ms| {
            restoration.map(|restoration_ms| PfcWatchdogSettings {
                detection_ms,
                restoration_ms,
                action: action.to_owned(),
            })
        })
    }
}

impl std::fmt::Display for PfcWatchdogSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} after {} ms, back after {} ms",
            self.action, self.detection_ms, self.restoration_ms
        )
    }
}

#[cfg(test)]
mod nonsense_tests;
#[cfg(test)]
mod restore_tests;
#[cfg(test)]
mod test_support;
#[cfg(test)]
mod tests;
