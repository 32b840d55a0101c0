//! What every system of switches answers in the fabric's words, and what it is asked to make so:
//! all that the four kinds know of one.

use super::body::Qos;
use super::edit::SwitchEdit;
use super::{EcnMarkingThresholds, PfcWatchdogSettings};
use crate::{Fact, Reading};
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeSet;

/// What is wished of a port.
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
    /// What it is called, alike for all ports.
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

    /// What has to be told to it, so that a port is as wished; nothing where it is. The error says
    /// why it cannot be.
    fn edits(&self, port: &str, wanted: &DesiredPortSetting) -> Result<Vec<SwitchEdit>, String>;

    /// What stands where these edits may come to write that is of the port alone.
    fn before(&self, port: &str, wanted: &DesiredPortSetting) -> Value;

    /// What `before` says, beside what is there now.
    fn kept(&self, port: &str, before: &Value) -> Vec<RestorableSetting>;

    /// What has to be told to it, so that what `before` says is there again.
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
    (other as &dyn Any)
        .downcast_ref::<T>()
        .filter(|other| *other == one)
        .map(|_| BTreeSet::new())
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

    /// The queue that a pause frame of a priority stops.
    fn paused_queue(&self, priority: u64) -> Fact<u64>;

    /// The priority group that packets of a priority are held in when they come.
    fn group(&self, priority: u64) -> Fact<u64>;

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
    fn has_lossless_pool(&self) -> Fact<bool>;

    /// Whether the switch made the buffer of a paused priority, where it makes that by itself a
    /// moment later, and why it never will.
    fn made_buffer(&self, priority: u64, cable_m: u64) -> (Reading, Option<String>);
}
