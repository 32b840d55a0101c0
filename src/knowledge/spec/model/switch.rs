//! The switches of the fabric. Field docs become the JSON Schema's descriptions.

use super::api::{Api, ApiKind};
use super::fabric::Trust;
use super::reach::Ssh;
use railwright_resource::switch::SwitchSystem;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

/// The MTU of a port in bytes, whatever the system (sonic-net/sonic-buildimage:
/// src/sonic-yang-models/yang-models/sonic-port.yang).
pub const MTU_BYTES: RangeInclusive<u64> = 68..=9216;

/// Where a switch stands in the fabric.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum SwitchRole {
    /// Hosts are on it.
    Leaf,
    /// It joins leaves.
    Spine,
}

/// Identical switches.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SwitchGroup {
    /// A node-set: `leaf[1-8]`.
    pub name: String,
    /// The system: `sonic`, `cumulus`, `eos`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<SwitchSystem>,
    /// The model, as the catalogue names it (`railwright catalog switch`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it is reached over SSH: then it is read, planned for and changed like a host. Keys,
    /// pinned keys and jump hosts are those of the cluster unless said otherwise. A switch without
    /// it is what rules compare the hosts with, and nothing is done to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<Ssh>,
    /// How it is reached over the API of Arista EOS (eAPI, `management api http-commands`), where
    /// there is no SSH: port 443 unless said otherwise. The user may run `bash` there, and acts
    /// through `sudo -n` unless it is root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eapi: Option<Api>,
    /// A switch with Cumulus Linux over the API of NVUE: port 8765 unless said otherwise. It is
    /// read so and compared, and never changed: what `apply` keeps on a switch (its lock, its
    /// record, its rollback timer) are files there, which takes `ssh`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvue: Option<Api>,
    /// The ports of the fabric, a node-set: `Ethernet[0-60/4]`; those of `cabling` unless said
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<String>,
    /// Where it stands: `leaf` has hosts on it, `spine` joins leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<SwitchRole>,
    /// The speed of the ports to the hosts (of a spine: to the leaves), in Gb/s: 1, 10, 25, 40, 50,
    /// 100, 200, 400, 800 or 1600.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port_speed_gbps: Option<u32>,
    /// The longest cable at these ports in metres, 1 to 9999. It sizes the buffer for what is on
    /// its way when a pause is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cable_length_m: Option<u16>,
    /// The MTU of the ports in bytes, 68 to 9216 (Cumulus Linux: from 552; EOS: to 9214), as the
    /// system counts it: of the IP packet, without the Ethernet header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The priorities that PFC is on for, 0 to 7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pfc: Option<Vec<u8>>,
    /// Which priority a DSCP gets: `{ 26: 3, 48: 6 }`. What is not named has the map of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "dscp_map")]
    pub dscp: Option<BTreeMap<Dscp, u8>>,
    /// Whether packets are marked (ECN) before queues are full; a mapping says from where on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Ecn>,
    /// Whether a port that is paused for too long is taken out of the pause (PFC watchdog); a
    /// mapping says after how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<PfcWatchdogSpec>,
    /// Whether the ports send or heed pauses of the whole link (IEEE 802.3x).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<bool>,
    /// By what the ports tell the priority of a packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// True while somebody works on it by hand: it is left alone, and still compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub maintenance: bool,
}

impl SwitchGroup {
    /// The APIs that it is said to be reached over: one, where the spec is right.
    pub fn apis(&self) -> impl Iterator<Item = (ApiKind, &Api)> {
        [(ApiKind::Eapi, &self.eapi), (ApiKind::Nvue, &self.nvue)]
            .into_iter()
            .filter_map(|(kind, api)| Some((kind, api.as_ref()?)))
    }

    /// What the password of a group's API is called among the secrets: its place in the spec, which
    /// no name of `secrets` can be.
    pub fn password_name(group: usize, kind: ApiKind) -> String {
        format!("switches[{group}].{}.password", kind.key())
    }
}

/// A DSCP as a key: 0 to 63 (RFC 2474).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Dscp(pub u8);

impl<'de> Deserialize<'de> for Dscp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let plain = text == "0" || text.starts_with(|first: char| ('1'..='9').contains(&first));
        match text.parse::<u8>() {
            Ok(value @ 0..=63) if plain => Ok(Dscp(value)),
            _ => Err(de::Error::custom(format!(
                "there is no DSCP `{text}`: a DSCP is a whole number from 0 to 63"
            ))),
        }
    }
}

/// `dscp`: from texts of numbers to priorities.
fn dscp_map(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": ["object", "null"],
        "propertyNames": { "pattern": "^(6[0-3]|[1-5]?[0-9])$" },
        "additionalProperties": { "type": "integer", "minimum": 0, "maximum": 7 },
    })
}

/// Whether and from where on packets are marked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Ecn {
    /// On with thresholds that are chosen by the speed of the ports (`railwright catalog
    /// switch-system`), or off.
    On(bool),
    /// On from here.
    From(EcnThresholds),
}

impl Ecn {
    /// Whether packets are marked.
    pub fn is_on(&self) -> bool {
        !matches!(self, Ecn::On(false))
    }

    /// What is said of the thresholds.
    pub fn thresholds(&self) -> Option<&EcnThresholds> {
        match self {
            Ecn::From(thresholds) => Some(thresholds),
            Ecn::On(_) => None,
        }
    }
}

/// From where on packets are marked; what is left out is chosen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EcnThresholds {
    /// Below so many bytes in the queue nothing is marked; goes with `max_bytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<u64>,
    /// From so many bytes on everything is marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// The share of packets that is marked just below `max_bytes`, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability_percent: Option<u8>,
    /// How long a packet and its answer take across the idle fabric, in microseconds, 1 to 1000:
    /// the thresholds are chosen by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<u16>,
}

/// Whether and after how long a paused port is taken out of the pause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum PfcWatchdogSpec {
    /// On with the times of the system (`railwright catalog switch-system`), or off.
    On(bool),
    /// On with these.
    Of(WatchdogTimes),
}

impl PfcWatchdogSpec {
    /// Whether it watches.
    pub fn is_on(&self) -> bool {
        !matches!(self, PfcWatchdogSpec::On(false))
    }

    /// What is said of its times.
    pub fn times(&self) -> Option<&WatchdogTimes> {
        match self {
            PfcWatchdogSpec::Of(times) => Some(times),
            PfcWatchdogSpec::On(_) => None,
        }
    }
}

/// What the watchdog does with a queue that is paused for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WatchdogAction {
    /// Its packets are dropped until the pauses end.
    Drop,
    /// Its packets are sent in spite of the pauses.
    Forward,
    /// It is logged, and nothing else.
    Alert,
}

/// The times of the watchdog; what is left out is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchdogTimes {
    /// Paused for so many milliseconds is too long: 100 to 5000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detection_ms: Option<u32>,
    /// Without a pause for so many milliseconds it is over: 100 to 60000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restoration_ms: Option<u32>,
    /// How often it looks, in milliseconds: 100 to 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling_ms: Option<u32>,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<WatchdogAction>,
}

impl<'de> Deserialize<'de> for Ecn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrMapping::<Ecn, EcnThresholds> {
            example: "min_bytes: 500000, max_bytes: 2000000",
            of: PhantomData,
        })
    }
}

impl<'de> Deserialize<'de> for PfcWatchdogSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrMapping::<PfcWatchdogSpec, WatchdogTimes> {
            example: "detection_ms: 200, restoration_ms: 200",
            of: PhantomData,
        })
    }
}

impl From<bool> for Ecn {
    fn from(on: bool) -> Self {
        Ecn::On(on)
    }
}

impl From<EcnThresholds> for Ecn {
    fn from(thresholds: EcnThresholds) -> Self {
        Ecn::From(thresholds)
    }
}

impl From<bool> for PfcWatchdogSpec {
    fn from(on: bool) -> Self {
        PfcWatchdogSpec::On(on)
    }
}

impl From<WatchdogTimes> for PfcWatchdogSpec {
    fn from(times: WatchdogTimes) -> Self {
        PfcWatchdogSpec::Of(times)
    }
}

/// `true`, `false`, or a mapping. By hand, because an untagged enum would tell no more than that
/// neither form fits, without the place of what is wrong.
struct WordOrMapping<T, M> {
    example: &'static str,
    of: PhantomData<(T, M)>,
}

impl<'de, T: From<bool> + From<M>, M: Deserialize<'de>> Visitor<'de> for WordOrMapping<T, M> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`true`, `false`, or a mapping (`{}`)", self.example)
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<T, E> {
        Ok(T::from(on))
    }

    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Err(E::invalid_type(Unexpected::Other("nothing"), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        M::deserialize(MapAccessDeserializer::new(map)).map(T::from)
    }
}
