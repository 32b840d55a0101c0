//! What every system of switches answers in the fabric's words, and the edits that it plans: all
//! that the four kinds know of one.

use super::body::Qos;
use super::edit::SwitchEdit;
use super::{EcnMarkingThresholds, PfcWatchdogSettings, SwitchError};
use crate::{Fact, Reading};
use railwright_base::text::one_line;
use serde_json::{Map, Value};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// The desired setting of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesiredPortSetting {
    /// How large its packets may be, and whether it is up.
    Port {
        /// Bytes of an IP packet.
        mtu: Option<u64>,
        /// To be up, or down.
        up: Option<bool>,
    },
    /// Its classes.
    Qos(Qos),
    /// Where a queue marks packets.
    Marking {
        /// The queue.
        queue: u64,
        /// From where on.
        thresholds: EcnMarkingThresholds,
    },
    /// How long its cable is.
    Cable {
        /// Metres.
        metres: u64,
    },
}

/// What of a port is put back, and how it stands.
pub struct RestorableSetting {
    /// What it is called, identical for all ports.
    pub called: String,
    /// As it was before us.
    pub was: Reading,
    /// As it is.
    pub is: Reading,
}

/// One configuration of a switch.
pub trait SwitchConfiguration: Any + Send + Sync {
    /// The names of the ports.
    fn ports(&self) -> Vec<&str>;

    /// A port, if the switch has it.
    fn port<'a>(&'a self, name: &'a str) -> Option<Box<dyn SwitchPortSettings + 'a>>;

    /// The edits that bring a port in sync; none where it is. The error says why it cannot be.
    fn edits(
        &self,
        port: &str,
        desired: &DesiredPortSetting,
    ) -> Result<Vec<SwitchEdit>, SwitchError>;

    /// What stands where these edits may come to write that is of the port alone.
    fn before(&self, port: &str, desired: &DesiredPortSetting) -> Value;

    /// What `before` says, beside what is there now.
    fn kept(&self, port: &str, before: &Value) -> Vec<RestorableSetting>;

    /// The edits after which what `before` says is there again.
    fn put_back(&self, port: &str, before: &Value) -> Vec<SwitchEdit>;

    /// What stays nevertheless, because the whole switch has it, in words.
    fn stays(&self, before: &Value) -> Vec<String>;

    /// The ports of which another switch of the same system says something else, as far as anything
    /// above depends on it; nothing where it is not of single ports.
    fn unlike(&self, other: &dyn SwitchConfiguration) -> Option<BTreeSet<String>>;
}

/// No port where both are equal, and else all of them.
pub fn unlike_as_a_whole<T: SwitchConfiguration + PartialEq>(
    one: &T,
    other: &dyn SwitchConfiguration,
) -> Option<BTreeSet<String>> {
    let other = (other as &dyn Any).downcast_ref::<T>()?;
    (other == one).then(BTreeSet::new)
}

/// Below it `before` has what all ports of the switch share, which is not put back.
pub const SHARED: &str = "shared";

/// What `before` has of the whole switch, with the value of each place.
pub fn list_shared_settings(before: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let shared = before.get(SHARED).and_then(Value::as_object);
    shared.into_iter().flat_map(Map::iter)
}

/// True where every DSCP has the priority of its class.
pub fn has_desired_dscps(port: &dyn SwitchPortSettings, desired: &Qos) -> bool {
    let mut dscps = desired.dscps().into_iter();
    dscps.all(|(dscp, priority)| port.priority(dscp) == Fact::Is(priority))
}

/// Each class has to leave by the queue of its number, by a map that all ports of the switch share.
/// `priority` and `map` are the system's words for them, `of_whom` whose queues are not known.
pub fn check_queue_numbers(
    port: &dyn SwitchPortSettings,
    desired: &Qos,
    [priority, map, of_whom]: [&str; 3],
) -> Result<(), SwitchError> {
    for class in desired.classes.iter().map(|class| class.priority) {
        match port.queue(class) {
            Fact::Is(queue) if queue != class => {
                return Err(SwitchError::Conflict(format!(
                    "packets of {priority} {class} leave by queue {queue} ({map}, one for all \
                     ports of the switch): take a priority that has the queue of its number, or \
                     change the map for all ports"
                )));
            }
            Fact::Unknown(why) => {
                return Err(SwitchError::Unreadable(format!(
                    "by which queue packets of {priority} {class} leave is not known{of_whom}: \
                     {why}"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A map of ours begins as a copy of the one that a port has, and ports share it. The error names
/// what a further port has and would lose: a port gets no other class than the spec says.
pub fn check_shared_map<K: Ord + Display, V: PartialEq + Display>(
    [theirs, ours]: [&str; 2],
    actual: &BTreeMap<K, V>,
    shared: &BTreeMap<K, V>,
) -> Result<(), SwitchError> {
    let keys: BTreeSet<&K> = actual.keys().chain(shared.keys()).collect();
    let mut changes = Vec::new();
    for key in keys {
        let [is, becomes] = [actual, shared].map(|map| map.get(key));
        if is != becomes {
            let [is, becomes] =
                [is, becomes].map(|value| value.map_or("none".to_owned(), V::to_string));
            changes.push(format!("{key}: {is} -> {becomes}"));
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    let changes = one_line(&changes.join(", "), 800);
    let [theirs, ours] = [theirs, ours].map(|map| one_line(map, 80));
    Err(SwitchError::Conflict(format!(
        "the port would share our map {ours} with ports that have it already, and it differs from \
         {theirs}, which the port has: {changes}; set these to one value in both maps first, so \
         that no port changes more than the spec says"
    )))
}

/// What a port's settings come to. A setting that is there and makes no sense is unknown, whatever
/// the default is.
pub trait SwitchPortSettings {
    /// Bytes of an IP packet.
    fn mtu(&self) -> Fact<u64>;

    /// Whether it is to be up.
    fn up(&self) -> Fact<bool>;

    /// True where it may carry traffic: what nobody knows is not taken for idle.
    fn is_up(&self) -> bool {
        self.up() != Fact::Is(false)
    }

    /// The priority that packets of a DSCP get; absent where the port looks at no DSCP.
    fn priority(&self, dscp: u64) -> Fact<u64>;

    /// The queue that packets of a priority leave by.
    fn queue(&self, priority: u64) -> Fact<u64>;

    /// The queue that a pause frame of a priority stops: its only one, where no map says otherwise.
    fn paused_queue(&self, priority: u64) -> Fact<u64> {
        self.queue(priority)
    }

    /// The priority group that received packets of a priority are stored in. Where the switch keeps
    /// paused packets apart by itself, nothing says where.
    fn group(&self, priority: u64) -> Fact<u64> {
        self.queue(priority)
    }

    /// The priorities with PFC.
    fn pfc(&self) -> Fact<BTreeSet<u64>>;

    /// The priorities that the watchdog looks at, with what it does.
    fn watchdog(&self) -> Fact<(BTreeSet<u64>, PfcWatchdogSettings)>;

    /// Where packets of a queue are marked; absent where they are not.
    fn marking(&self, queue: u64) -> Fact<EcnMarkingThresholds>;

    /// Whether a queue goes before all others.
    fn is_strict(&self, queue: u64) -> Fact<bool>;

    /// Metres; absent where it says none.
    fn cable_m(&self) -> Fact<u64>;

    /// Whether buffers that paused packets need are set aside, where that is a setting of the
    /// switch.
    fn has_lossless_pool(&self) -> Fact<bool> {
        Fact::Is(true)
    }

    /// Whether the switch made the buffer of a paused priority, where it makes that by itself a
    /// moment later, and why it never will.
    fn made_buffer(&self, priority: u64, cable_m: u64) -> (Reading, Option<String>);
}
