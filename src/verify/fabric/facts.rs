//! What one end of a link says of itself, decoded of what its device answered.

use super::DesiredFabricSettings;
use super::topology::EndPoint;
use railwright_base::text::one_line;
use railwright_resource::counters::{
    self, CounterSampleOrdinal, Movement, PortCounterIncrease, names,
};
use railwright_resource::link::state::link_state;
use railwright_resource::switch::configuration::{SwitchConfiguration, SwitchPortSettings};
use railwright_resource::switch::{
    EcnMarkingThresholds, SwitchSystem, decode_running_configuration,
};
use railwright_resource::{Fact, Read, ReadResults, link_qos};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why nothing is known of counters that an observation does not have.
pub const NO_COUNTERS: &str = "the observation has no counters";

/// Characters of a reason, which may be a device's own words.
const WHY_MAX: usize = 300;

/// What a device answered.
#[derive(Debug, Clone)]
pub enum FabricDevice {
    /// A host.
    Host(ReadResults),
    /// A switch.
    Switch(SwitchSystem, ReadResults),
    /// Nothing came from it: why, alike for all with the same trouble.
    Silent(String),
}

/// The devices that were asked, by name.
pub type Devices = BTreeMap<String, FabricDevice>;

/// From where on a queue marks packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Marking {
    /// Bytes in the queue from which on some are marked.
    pub min_bytes: u64,
    /// Bytes in the queue from which on all are.
    pub max_bytes: u64,
    /// The share at `max_bytes`, in percent.
    pub probability_percent: u64,
}

/// How much a counter rose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Rise {
    /// What it counts.
    pub meter: names::Meter,
    /// Of which priority; nothing where it is of the whole port.
    pub priority: Option<u8>,
    /// By how much.
    pub rose: Fact<u64>,
}

/// What the counters of an end did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EndCounterChanges {
    /// Each, in a fixed order; what is not counted there is not in it.
    pub rises: Vec<Rise>,
    /// The priorities whose queues a watchdog holds down.
    pub stormed: BTreeSet<u8>,
}

impl EndCounterChanges {
    fn of(moved: &PortCounterIncrease) -> Self {
        let rise = |(key, rose): (&names::CounterKey, &Fact<u64>)| Rise {
            meter: key.meter,
            priority: key.priority,
            rose: rose.clone(),
        };
        EndCounterChanges {
            rises: moved.by.iter().map(rise).collect(),
            stormed: moved.stormed.clone(),
        }
    }

    /// Where no watchdog is set none can have cut off anything, whether or not the switch tells of
    /// it.
    fn without_watchdog(mut self) -> Self {
        self.rises
            .retain(|rise| rise.meter != names::Meter::Storms || rise.rose.why_unknown().is_none());
        self
    }

    /// The rises of one sort.
    pub fn of_meter(&self, meter: names::Meter) -> impl Iterator<Item = &Rise> {
        self.rises.iter().filter(move |rise| rise.meter == meter)
    }
}

/// What an end says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct EndFacts {
    /// Why nothing at all is known of it.
    pub silent: Option<String>,
    /// Whether it is up; of a NIC, with somebody at the other end.
    pub up: Fact<bool>,
    /// Bytes of an IP packet.
    pub mtu: Fact<u64>,
    /// The priorities that the DSCPs of the spec get; all, where it names none.
    pub dscp: Fact<BTreeMap<u8, u8>>,
    /// The priorities with PFC.
    pub pfc: Fact<BTreeSet<u8>>,
    /// How the queue of the lossless class is marked.
    pub marking: Fact<Marking>,
    /// What its counters did.
    pub counted: Fact<EndCounterChanges>,
}

impl EndFacts {
    /// Of an end of which nothing is known.
    pub fn silent(why: &str) -> Self {
        let why = one_line(why, WHY_MAX);
        EndFacts {
            silent: Some(why.clone()),
            ..Self::all(&why)
        }
    }

    /// Leaves only these DSCPs, where there are any.
    pub fn watched(mut self, dscps: &BTreeMap<u8, u8>) -> Self {
        if let Fact::Is(map) = &mut self.dscp {
            map.retain(|dscp, _| dscps.is_empty() || dscps.contains_key(dscp));
        }
        self
    }

    fn all(why: &str) -> Self {
        fn unknown<T>(why: &str) -> Fact<T> {
            Fact::Unknown(why.to_owned())
        }
        EndFacts {
            silent: None,
            up: unknown(why),
            mtu: unknown(why),
            dscp: unknown(why),
            pfc: unknown(why),
            marking: unknown(why),
            counted: unknown(why),
        }
    }

    /// Of a port that is not there.
    fn absent() -> Self {
        EndFacts {
            silent: None,
            up: Fact::Absent,
            mtu: Fact::Absent,
            dscp: Fact::Absent,
            pfc: Fact::Absent,
            marking: Fact::Absent,
            counted: Fact::Absent,
        }
    }
}

/// What a device said, decoded once for all of its ends.
pub enum DecodedDevice<'d> {
    /// A host.
    Host(&'d ReadResults, Counters),
    /// A switch, with what runs on it.
    Switch(Result<Arc<Box<dyn SwitchConfiguration>>, String>, Counters),
    /// Nothing.
    Silent(&'d str),
}

/// The counters of a device; nothing where they are not looked at.
type Counters = Option<Result<Movement, String>>;

impl<'d> DecodedDevice<'d> {
    /// Decodes it.
    pub fn of(device: &'d FabricDevice, counts: bool) -> Self {
        match device {
            FabricDevice::Host(answers) => {
                let read = |sample| Read::LinkCounters {
                    netdevs: Vec::new(),
                    sample,
                };
                DecodedDevice::Host(
                    answers,
                    counts.then(|| find_counter_movement(answers, &names::of_host(), read)),
                )
            }
            FabricDevice::Switch(system, answers) => {
                let read = |sample| Read::SwitchCounters {
                    system: *system,
                    ports: Vec::new(),
                    sample,
                };
                let counters =
                    counts.then(|| find_counter_movement(answers, names::of_switch(*system), read));
                DecodedDevice::Switch(decode_running_configuration(*system, answers), counters)
            }
            FabricDevice::Silent(why) => DecodedDevice::Silent(why),
        }
    }

    /// Seconds between its readings.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            DecodedDevice::Host(_, Some(Ok(movement)))
            | DecodedDevice::Switch(_, Some(Ok(movement))) => movement.seconds,
            _ => None,
        }
    }

    /// What one of its ends is.
    pub fn end(&self, end: &EndPoint, wanted: &DesiredFabricSettings) -> EndFacts {
        match self {
            DecodedDevice::Host(answers, counters) => EndFacts {
                counted: summarize_port_counters(counters, &end.port),
                ..host_end(answers, &end.port)
            },
            DecodedDevice::Switch(Err(why), _) => EndFacts::silent(why),
            DecodedDevice::Switch(Ok(configuration), counters) => switch_end(
                configuration.as_ref().as_ref(),
                &end.port,
                wanted,
                summarize_port_counters(counters, &end.port),
            ),
            DecodedDevice::Silent(why) => EndFacts::silent(why),
        }
    }
}

/// Of a device whose counters nobody read, as `facts` records it, no reading is missed.
fn find_counter_movement(
    answers: &ReadResults,
    rows: &[names::VendorCounter],
    read: impl Fn(CounterSampleOrdinal) -> Read,
) -> Result<Movement, String> {
    match [CounterSampleOrdinal::First, CounterSampleOrdinal::Second]
        .iter()
        .any(|sample| answers.by_key(&read(*sample).key()).is_some())
    {
        true => counters::diff_counter_samples(answers, rows, read),
        false => Err(NO_COUNTERS.to_owned()),
    }
}

fn summarize_port_counters(counters: &Counters, port: &str) -> Fact<EndCounterChanges> {
    match counters {
        None => Fact::NotApplicable("counters were not looked at".to_owned()),
        Some(Err(why)) => Fact::Unknown(one_line(why, WHY_MAX)),
        Some(Ok(movement)) => match movement.ports.get(port) {
            None => Fact::Unknown("its counters were not told".to_owned()),
            Some(moved) => moved.clone().map(|moved| EndCounterChanges::of(&moved)),
        },
    }
}

fn host_end(answers: &ReadResults, netdev: &str) -> EndFacts {
    let state = match link_state(answers, netdev) {
        Err(why) => return EndFacts::silent(&why),
        Ok(None) => return EndFacts::absent(),
        Ok(Some(state)) => state,
    };
    let told = |what: &str| format!("the kernel did not tell its {what}");
    let qos = link_qos::decode_running_qos(answers, netdev);
    let of_qos = |what: &str| format!("the program that tells PFC did not tell its {what}");
    EndFacts {
        silent: None,
        // Without a carrier nobody is there; where the kernel tells none the link is down, or of a
        // driver that has none.
        up: state.up.map_or_else(
            || Fact::Unknown(told("state")),
            |up| Fact::Is(up && state.carrier != Some(false)),
        ),
        mtu: state
            .mtu
            .map_or_else(|| Fact::Unknown(told("MTU")), |mtu| Fact::Is(mtu.into())),
        dscp: match &qos {
            Fact::Is(settings) => settings
                .dscp
                .clone()
                .map_or_else(|| Fact::Unknown(of_qos("DSCPs")), Fact::Is),
            other => other.clone().map(|_| BTreeMap::new()),
        },
        pfc: match qos {
            Fact::Is(settings) => settings
                .pfc
                .map_or_else(|| Fact::Unknown(of_qos("priorities")), Fact::Is),
            other => other.map(|_| BTreeSet::new()),
        },
        marking: Fact::NotApplicable("a NIC marks nothing".to_owned()),
        counted: Fact::Absent,
    }
}

fn priority_from_number(priority: u64) -> Option<u8> {
    u8::try_from(priority).ok().filter(|priority| *priority < 8)
}

/// The priorities of the DSCPs of the spec, or of all where it names none. One that nobody knows
/// leaves them unknown.
fn map_dscp_priorities(
    port: &dyn SwitchPortSettings,
    wanted: &DesiredFabricSettings,
) -> Fact<BTreeMap<u8, u8>> {
    let dscps = (0..64u8).filter(|dscp| wanted.dscp.is_empty() || wanted.dscp.contains_key(dscp));
    dscps.fold(Fact::Is(BTreeMap::new()), |all, dscp| {
        all.and_then(|mut all| match port.priority(dscp.into()) {
            Fact::Unknown(why) => Fact::Unknown(why),
            found => {
                all.extend(
                    found
                        .value()
                        .and_then(|priority| Some((dscp, priority_from_number(*priority)?))),
                );
                Fact::Is(all)
            }
        })
    })
}

fn switch_end(
    configuration: &dyn SwitchConfiguration,
    name: &str,
    wanted: &DesiredFabricSettings,
    counted: Fact<EndCounterChanges>,
) -> EndFacts {
    let Some(port) = configuration.port(name) else {
        return EndFacts::absent();
    };
    let marking = |EcnMarkingThresholds {
                       min_bytes,
                       max_bytes,
                       probability_percent,
                   }| Marking {
        min_bytes,
        max_bytes,
        probability_percent,
    };
    EndFacts {
        silent: None,
        up: port.up(),
        mtu: port.mtu(),
        dscp: map_dscp_priorities(port.as_ref(), wanted),
        pfc: port
            .pfc()
            .map(|pfc| pfc.into_iter().filter_map(priority_from_number).collect()),
        marking: match wanted.lossless {
            None => Fact::NotApplicable("the spec has no lossless class".to_owned()),
            Some(priority) => port
                .queue(priority.into())
                .and_then(|queue| port.marking(queue))
                .map(marking),
        },
        counted: match port.watchdog() {
            Fact::Absent => counted.map(EndCounterChanges::without_watchdog),
            _ => counted,
        },
    }
}
