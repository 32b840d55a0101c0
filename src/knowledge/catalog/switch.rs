//! What an entry says of a switch or of the system of switches. The data is in
//! `modules/catalog/switch.yaml` and `switch-system.yaml`; each entry names the source that it was
//! taken from.

use super::table::CategoryEntry;
use crate::spec::model::{Cnp, Trust, WatchdogTimes};
use railwright_resource::Disruption;
use railwright_resource::switch::SwitchSystem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How SONiC comes to the buffers of a lossless priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BufferModel {
    /// From a table of speeds and cable lengths of the hardware SKU (`pg_profile_lookup.ini`).
    Traditional,
    /// From a formula of speed, cable length and MTU.
    Dynamic,
}

/// A model of switch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchModelEntry {
    /// The name that specs use, such as `SN5600`.
    pub name: String,
    /// Other names of the same model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Who makes it.
    pub vendor: String,
    /// The switch chip, such as `Spectrum-4`.
    pub asic: String,
    /// The systems that run on it.
    pub systems: Vec<SwitchSystem>,
    /// The speeds of its ports in Gb/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speeds_gbps: Vec<u32>,
    /// How many ports of the highest speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<u32>,
    /// Lanes of such a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<u32>,
    /// The packet buffer in 10^6 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_mb: Option<u32>,
    /// How SONiC comes to the buffers of a lossless priority.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_model: Option<BufferModel>,
    /// Bytes of a cell of the packet buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_bytes: Option<u32>,
    /// What is on its way inside the chip, in KiB (`pipeline_latency` of SONiC's ASIC_TABLE).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline_kib: Option<u32>,
    /// True where the chip is of tiles, which hold packets too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tiles: bool,
    /// What the formula adds beyond all else, in KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_kib: Option<u32>,
    /// The rows of `pg_profile_lookup.ini`, by hardware SKU; where none are named, none were at
    /// hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headroom: Vec<HeadroomRow>,
    /// The thresholds of ECN that its vendor's templates have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ecn: Vec<VendorEcn>,
    /// The hardware SKUs whose watchdog SONiC's patch tool (`config apply-patch`) changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patched_skus: Vec<String>,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where this is said.
    pub source: String,
}

/// A row of a SKU's `pg_profile_lookup.ini`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeadroomRow {
    /// The hardware SKU.
    pub sku: String,
    /// The speed of the port in Gb/s.
    pub speed_gbps: u32,
    /// The length of the cable in metres.
    pub cable_m: u32,
    /// The buffer for what comes after a pause was asked for, in bytes.
    pub xoff_bytes: u64,
}

/// From where on packets are marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CatalogEcnThresholds {
    /// Below so many bytes in the queue nothing is marked.
    pub min_bytes: u64,
    /// From so many bytes on everything is marked.
    pub max_bytes: u64,
    /// The share of packets that is marked just below, in percent.
    pub probability_percent: u8,
}

/// The thresholds that a vendor's templates have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VendorEcn {
    /// Ports of this speed in Gb/s; any where it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_gbps: Option<u32>,
    /// The thresholds.
    pub thresholds: CatalogEcnThresholds,
}

/// The system of switches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchSystemEntry {
    /// The name that specs use: `sonic`, `cumulus`, `eos`.
    pub name: String,
    /// The smallest MTU of a port in bytes, without the Ethernet header.
    pub mtu_min: u32,
    /// The largest one.
    pub mtu_max: u32,
    /// The one that a port has from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_default: Option<u32>,
    /// By what a port tells the priority from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Which priority a DSCP gets from the start.
    pub dscp: Vec<DscpRange>,
    /// Which one all others get; where it is not there nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dscp_other: Option<u8>,
    /// The thresholds of ECN that it comes with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<CatalogEcnThresholds>,
    /// How thresholds are chosen where the spec states none.
    pub choice: ThresholdChoice,
    /// The times of the PFC watchdog that it comes with.
    pub watchdog: WatchdogTimes,
    /// The class of congestion notifications by convention.
    pub cnp: Cnp,
    /// The packets that the formula of the buffers reckons with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<PacketPattern>,
    /// What a change of a part of the configuration disturbs, by the key of the spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub disrupts: BTreeMap<String, Disruption>,
    /// True where the numbers of models (`ecn`, `headroom`, the formula of the buffers) are those
    /// of this system.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub model_numbers: bool,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where this is said.
    pub source: String,
}

/// DSCPs that get one priority.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DscpRange {
    /// The first, 0 to 63.
    pub from: u8,
    /// The last.
    pub to: u8,
    /// Their priority, 0 to 7.
    pub priority: u8,
}

/// How thresholds of ECN are chosen: as shares of what is on its way on one port (its speed times
/// the round trip).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ThresholdChoice {
    /// The round trip across the idle fabric in microseconds.
    pub round_trip_us: u16,
    /// The lower threshold, in percent of what is on its way.
    pub min_percent: u16,
    /// The upper one.
    pub max_percent: u16,
    /// The share of packets that is marked just below the upper one, in percent.
    pub probability_percent: u8,
}

/// The packets of the lossless class that the formula of the buffers reckons with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PacketPattern {
    /// The largest, in bytes.
    pub mtu_bytes: u32,
    /// How many of a hundred are of 64 bytes.
    pub small_percent: u32,
}

impl SwitchSystemEntry {
    /// The priority that a DSCP gets from the start, where that is known.
    pub fn priority_of(&self, dscp: u8) -> Option<u8> {
        let named = self
            .dscp
            .iter()
            .find(|range| (range.from..=range.to).contains(&dscp));
        named.map(|range| range.priority).or(self.dscp_other)
    }
}

impl CategoryEntry for SwitchModelEntry {
    const KEY: &'static str = "switch";
    fn name(&self) -> &str {
        &self.name
    }
    fn aliases(&self) -> &[String] {
        &self.aliases
    }
    fn source(&self) -> &str {
        &self.source
    }
    fn in_words(&self, field: &str) -> Option<String> {
        let words: Vec<String> = match field {
            "headroom" => self.headroom.iter().map(HeadroomRow::in_words).collect(),
            "ecn" => self.ecn.iter().map(VendorEcn::in_words).collect(),
            _ => return None,
        };
        Some(words.join("; "))
    }
    fn find_fault(&self) -> Option<String> {
        let numbers = [
            (self.cell_bytes, 1024),
            (self.pipeline_kib, 1024),
            (self.more_kib, 1024),
            (self.ports, 4096),
            (self.lanes, 16),
        ];
        let mut numbers = numbers.into_iter();
        if numbers.any(|(number, most)| number.is_some_and(|number| number == 0 || number > most)) {
            return Some(
                "a cell is at most 1024 bytes, what is in the chip at most 1024 KiB, and of ports \
                 and lanes it has at least one"
                    .to_owned(),
            );
        }
        let of_headroom = self.headroom.iter().map(|row| &row.speed_gbps);
        let mut speeds = self.speeds_gbps.iter().chain(of_headroom);
        if !speeds.all(|speed| (1..=10_000).contains(speed)) {
            return Some("a speed is 1 to 10000 Gb/s".to_owned());
        }
        self.ecn.iter().find_map(|ecn| ecn.thresholds.find_fault())
    }
}

impl HeadroomRow {
    fn in_words(&self) -> String {
        format!(
            "{} Gb/s {} m: {} ({})",
            self.speed_gbps, self.cable_m, self.xoff_bytes, self.sku
        )
    }
}

impl VendorEcn {
    fn in_words(&self) -> String {
        let thresholds = self.thresholds.in_words();
        match self.speed_gbps {
            Some(speed) => format!("{speed} Gb/s {thresholds}"),
            None => thresholds,
        }
    }
}

impl DscpRange {
    fn in_words(&self) -> String {
        if self.from == self.to {
            format!("{}: {}", self.from, self.priority)
        } else {
            format!("{}-{}: {}", self.from, self.to, self.priority)
        }
    }
}

impl CatalogEcnThresholds {
    /// `150000 to 1500000 bytes, 100 %`.
    pub fn in_words(&self) -> String {
        format!(
            "{} to {} bytes, {} %",
            self.min_bytes, self.max_bytes, self.probability_percent
        )
    }

    fn find_fault(&self) -> Option<String> {
        let sound = self.min_bytes < self.max_bytes && self.probability_percent <= 100;
        (!sound).then(|| {
            "the lower threshold is below the upper one, and a share is at most 100 %".to_owned()
        })
    }
}

impl CategoryEntry for SwitchSystemEntry {
    const KEY: &'static str = "switch-system";
    fn name(&self) -> &str {
        &self.name
    }
    fn source(&self) -> &str {
        &self.source
    }
    fn in_words(&self, field: &str) -> Option<String> {
        match field {
            "dscp" => {
                let ranges: Vec<String> = self.dscp.iter().map(DscpRange::in_words).collect();
                Some(ranges.join(", "))
            }
            "ecn" => self.ecn.map(|ecn| ecn.in_words()),
            _ => None,
        }
    }
    fn find_fault(&self) -> Option<String> {
        let choice = self.choice;
        let chosen = (1..=1000).contains(&choice.round_trip_us)
            && choice.min_percent < choice.max_percent
            && choice.max_percent <= 1000;
        if !chosen || choice.probability_percent > 100 {
            return Some(
                "thresholds are chosen by a round trip of 1 to 1000 us, the lower one below the \
                 upper, at most 1000 %"
                    .to_owned(),
            );
        }
        let ranges = self
            .dscp
            .iter()
            .all(|range| range.from <= range.to && range.to <= 63 && range.priority <= 7);
        if !ranges || self.cnp.dscp > 63 || self.cnp.priority > 7 || self.mtu_min > self.mtu_max {
            return Some(
                "a DSCP is 0 to 63, a priority 0 to 7, and the smallest MTU is not above the \
                 largest"
                    .to_owned(),
            );
        }
        if let Some(pattern) = self.pattern
            && (!(64..=9216).contains(&pattern.mtu_bytes) || pattern.small_percent > 100)
        {
            return Some(
                "packets are of 64 to 9216 bytes, and at most 100 of a hundred are small"
                    .to_owned(),
            );
        }
        self.ecn.and_then(|ecn| ecn.find_fault())
    }
}
