//! What one end of a link says of itself, decoded of what its device answered.

use super::DesiredFabricSettings;
use super::topology::EndPoint;
use railwright_base::Reason;
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

/// Characters of a reason, which may be a device's own words.
const WHY_MAX: usize = 300;

/// What a device answered.
#[derive(Debug, Clone)]
pub enum FabricDevice {
    /// A host.
    Host(ReadResults),
    /// A switch.
    Switch(SwitchSystem, ReadResults),
    /// Nothing came from it: why, in identical words for all with the same trouble.
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

impl From<EcnMarkingThresholds> for Marking {
    fn from(thresholds: EcnMarkingThresholds) -> Self {
        Marking {
            min_bytes: thresholds.min_bytes,
            max_bytes: thresholds.max_bytes,
            probability_percent: thresholds.probability_percent,
        }
    }
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
        let mut rises = Vec::new();
        for (key, rose) in &moved.by {
            rises.push(Rise {
                meter: key.meter,
                priority: key.priority,
                rose: rose.clone(),
            });
        }
        EndCounterChanges {
            rises,
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
    pub silent: Option<Reason>,
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
            silent: Some(why.clone().into()),
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
        EndFacts {
            silent: None,
            up: known_or(None, why),
            mtu: known_or(None, why),
            dscp: known_or(None, why),
            pfc: known_or(None, why),
            marking: known_or(None, why),
            counted: known_or(None, why),
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
    Switch(Result<Arc<Box<dyn SwitchConfiguration>>, Reason>, Counters),
    /// Nothing.
    Silent(&'d str),
}

/// The counters of a device; nothing where they are not looked at.
type Counters = Option<Result<Movement, Reason>>;

impl<'d> DecodedDevice<'d> {
    /// Decodes it.
    pub fn of(device: &'d FabricDevice, counts: bool) -> Self {
        match device {
            FabricDevice::Host(answers) => {
                let counters = counts
                    .then(|| find_counter_movement(answers, &names::of_host(), read_link_counters));
                DecodedDevice::Host(answers, counters)
            }
            FabricDevice::Switch(system, answers) => {
                let counters = counts.then(|| {
                    find_counter_movement(answers, system.counter_names(), |sample| {
                        read_switch_counters(*system, sample)
                    })
                });
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
    pub fn end(&self, end: &EndPoint, desired: &DesiredFabricSettings) -> EndFacts {
        match self {
            DecodedDevice::Host(answers, counters) => EndFacts {
                counted: summarize_port_counters(counters, &end.port),
                ..host_end(answers, &end.port)
            },
            DecodedDevice::Switch(Err(why), _) => EndFacts::silent(why.as_words()),
            DecodedDevice::Switch(Ok(configuration), counters) => switch_end(
                configuration.as_ref().as_ref(),
                &end.port,
                desired,
                summarize_port_counters(counters, &end.port),
            ),
            DecodedDevice::Silent(why) => EndFacts::silent(why),
        }
    }
}

fn read_link_counters(sample: CounterSampleOrdinal) -> Read {
    Read::LinkCounters {
        netdevs: Vec::new(),
        sample,
    }
}

fn read_switch_counters(system: SwitchSystem, sample: CounterSampleOrdinal) -> Read {
    Read::SwitchCounters {
        system,
        ports: Vec::new(),
        sample,
    }
}

/// Of a device whose counters nobody read, as `facts` records it, no reading is missed.
fn find_counter_movement(
    answers: &ReadResults,
    rows: &[names::VendorCounter],
    read: impl Fn(CounterSampleOrdinal) -> Read,
) -> Result<Movement, Reason> {
    for sample in [CounterSampleOrdinal::First, CounterSampleOrdinal::Second] {
        if answers.by_key(&read(sample).key()).is_some() {
            return counters::diff_counter_samples(answers, rows, read);
        }
    }
    Err("the observation has no counters".into())
}

fn summarize_port_counters(counters: &Counters, port: &str) -> Fact<EndCounterChanges> {
    match counters {
        None => Fact::NotApplicable("counters were not looked at".into()),
        Some(Err(why)) => Fact::Unknown(one_line(why.as_words(), WHY_MAX).into()),
        Some(Ok(movement)) => match movement.ports.get(port) {
            None => Fact::Unknown("its counters were not read".into()),
            Some(moved) => moved.clone().map(|moved| EndCounterChanges::of(&moved)),
        },
    }
}

/// A value, or why there is none.
fn known_or<T>(value: Option<T>, why: &str) -> Fact<T> {
    match value {
        Some(value) => Fact::Is(value),
        None => Fact::Unknown(why.to_owned().into()),
    }
}

fn host_end(answers: &ReadResults, netdev: &str) -> EndFacts {
    let state = match link_state(answers, netdev) {
        Err(why) => return EndFacts::silent(why.as_words()),
        Ok(None) => return EndFacts::absent(),
        Ok(Some(state)) => state,
    };
    // Without a carrier nobody is there; where the kernel tells none the link is down, or of a
    // driver that has none.
    let up = state.up.map(|up| up && state.carrier != Some(false));
    let qos = link_qos::decode_running_qos(answers, netdev);
    EndFacts {
        silent: None,
        up: known_or(up, "the kernel did not tell its state"),
        mtu: known_or(state.mtu.map(u64::from), "the kernel did not tell its MTU"),
        dscp: qos.clone().and_then(|settings| {
            known_or(
                settings.dscp,
                "the program that tells PFC did not tell its DSCPs",
            )
        }),
        pfc: match qos {
            // A driver without data centre bridging heeds the pause of no priority.
            Fact::Absent => Fact::Is(BTreeSet::new()),
            qos => qos.and_then(|settings| {
                known_or(
                    settings.pfc,
                    "the program that tells PFC did not tell its priorities",
                )
            }),
        },
        marking: Fact::NotApplicable("a NIC marks nothing".into()),
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
    desired: &DesiredFabricSettings,
) -> Fact<BTreeMap<u8, u8>> {
    let mut priorities = BTreeMap::new();
    for dscp in 0..64u8 {
        if !desired.dscp.is_empty() && !desired.dscp.contains_key(&dscp) {
            continue;
        }
        match port.priority(dscp.into()) {
            Fact::Is(number) => {
                if let Some(priority) = priority_from_number(number) {
                    priorities.insert(dscp, priority);
                }
            }
            Fact::Unknown(why) => return Fact::Unknown(why),
            Fact::Absent | Fact::NotApplicable(_) => {}
        }
    }
    Fact::Is(priorities)
}

fn switch_end(
    configuration: &dyn SwitchConfiguration,
    name: &str,
    desired: &DesiredFabricSettings,
    counted: Fact<EndCounterChanges>,
) -> EndFacts {
    let Some(port) = configuration.port(name) else {
        return EndFacts::absent();
    };
    EndFacts {
        silent: None,
        up: port.up(),
        mtu: port.mtu(),
        dscp: map_dscp_priorities(port.as_ref(), desired),
        pfc: port
            .pfc()
            .map(|pfc| pfc.into_iter().filter_map(priority_from_number).collect()),
        marking: match desired.lossless {
            None => Fact::NotApplicable("the spec has no lossless class".into()),
            Some(priority) => port
                .queue(priority.into())
                .and_then(|queue| port.marking(queue))
                .map(Marking::from),
        },
        counted: match port.watchdog() {
            Fact::Absent => counted.map(EndCounterChanges::without_watchdog),
            _ => counted,
        },
    }
}
