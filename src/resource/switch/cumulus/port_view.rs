//! One port of Cumulus Linux in the fabric's words: what its profiles come to.

use super::config::{Nvue, is_off, keys, number};
use super::profile::{Family, Roce};
use super::{POLLING_MS, ROBUSTNESS};
use crate::resource::Reading;
use crate::resource::switch::configuration::Port;
use crate::resource::switch::{Thresholds, Watchdog};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A port of a revision.
pub struct PortView<'a> {
    nvue: &'a Nvue,
    port: &'a str,
}

/// The MTU of a port that says none (CumulusNetworks/docs: content/nvue-reference/Set-and-Unset-Commands/Interface.md).
const MTU: u64 = 9216;

/// Metres of cable of a profile of PFC that says none (the manual, PFC).
const CABLE_M: u64 = 10;

/// Percent of marks of a profile that says none (the manual, Congestion Control).
const PROBABILITY: u64 = 100;

impl<'a> PortView<'a> {
    /// The port of this name, if the switch has it.
    pub fn of(nvue: &'a Nvue, port: &'a str) -> Option<Self> {
        nvue.has_port(port).then_some(PortView { nvue, port })
    }

    fn own(&self, path: &[&str]) -> Option<&'a Value> {
        self.nvue.at(&[&["interface", self.port], path].concat())
    }

    fn effective(&self, family: Family) -> Map<String, Value> {
        self.nvue.effective(self.port, family)
    }
}

impl Port for PortView<'_> {
    fn mtu(&self) -> u64 {
        self.own(&["link", "mtu"]).and_then(number).unwrap_or(MTU)
    }

    /// Only what is said counts: a port that NVUE knows nothing of is left down.
    fn is_up(&self) -> bool {
        let state = self.own(&["link", "state"]);
        let is = |word: &str| state.is_some_and(|state| state.as_str() == Some(word) || state.get(word).is_some());
        is("up") && !is("down")
    }

    fn priority(&self, dscp: u64) -> Option<u64> {
        self.nvue.priority(self.port, dscp)
    }

    /// One map for all ports of the switch: "NVUE only supports the default-global profile" (the manual, Egress Queues).
    fn queue(&self, priority: u64) -> Option<u64> {
        let said =
            self.nvue.number(&["qos", "egress-queue-mapping", "default-global", "switch-priority", &priority.to_string(), "traffic-class"]);
        said.or(match self.nvue.roce() {
            Roce::Lossless | Roce::Lossy if ![3, 6].contains(&priority) => Some(0),
            _ => Some(priority),
        })
    }

    /// A pause frame names a priority, which has one queue.
    fn paused_queue(&self, priority: u64) -> Option<u64> {
        self.queue(priority)
    }

    /// The switch holds paused packets apart by itself; nothing says where.
    fn group(&self, priority: u64) -> Option<u64> {
        self.queue(priority)
    }

    /// Pause frames have to be both sent and heard.
    fn pfc(&self) -> BTreeSet<u64> {
        let profile = self.effective(Family::Pfc);
        let one_way = is_off(profile.get("tx")) || is_off(profile.get("rx"));
        keys(profile.get("switch-priority")).filter(|_| !one_way).collect()
    }

    /// It looks at all that pause, wants so many looks, drops, and comes back after one look without a pause (the manual, PFC Watchdog).
    fn watchdog(&self) -> Option<(BTreeSet<u64>, Watchdog)> {
        let own = self.own(&["qos", "pfc-watchdog"])?;
        let number = |name: &str, default| self.nvue.number(&["qos", "pfc-watchdog", name]).unwrap_or(default);
        let polling = number("polling-interval", POLLING_MS);
        let watchdog = Watchdog {
            detection_ms: polling.saturating_mul(number("robustness", ROBUSTNESS)),
            restoration_ms: polling,
            action: "drop".to_owned(),
        };
        (!is_off(own.get("state"))).then(|| (self.pfc(), watchdog))
    }

    /// A queue that a profile names is marked unless it says otherwise (the manual, ECN: the examples say thresholds alone).
    fn marking(&self, queue: u64) -> Option<Thresholds> {
        let profile = self.effective(Family::Marking);
        let class = profile.get("traffic-class")?.get(queue.to_string())?;
        let thresholds = Thresholds {
            min_bytes: number(class.get("min-threshold")?)?,
            max_bytes: number(class.get("max-threshold")?)?,
            probability_percent: class.get("probability").map_or(Some(PROBABILITY), number)?,
        };
        (!is_off(class.get("ecn"))).then_some(thresholds)
    }

    fn is_strict(&self, queue: u64) -> bool {
        let profile = self.effective(Family::Scheduler);
        let class = profile.get("traffic-class").and_then(|all| all.get(queue.to_string()));
        class.and_then(|class| class.get("mode")?.as_str()) == Some("strict")
    }

    fn cable_m(&self) -> Option<u64> {
        let profile = self.effective(Family::Pfc);
        let is_there = !profile.is_empty() || self.nvue.bound(self.port, Family::Pfc).is_some();
        profile.get("cable-length").map_or_else(|| is_there.then_some(CABLE_M), number)
    }

    /// A lossless pool, of which a switch has one: `roce-lossless` with RoCE, which brings it along, else `default-lossless` (the manual,
    /// Traffic Pools).
    fn has_lossless_pool(&self) -> bool {
        let percent = |pool: &str| self.nvue.number(&["qos", "traffic-pool", pool, "memory-percent"]);
        match self.nvue.roce() {
            Roce::Lossless => percent("roce-lossless") != Some(0),
            _ => percent("default-lossless").is_some_and(|percent| percent > 0),
        }
    }

    /// It works the buffer out from the cable, and says nothing of it.
    fn made_buffer(&self, _priority: u64, _cable_m: u64) -> (Reading, Option<String>) {
        (Reading::NotApplicable("Cumulus Linux works it out from the cable".to_owned()), None)
    }
}
