//! One port of Cumulus Linux in the fabric's words: what its profiles come to.

use super::config::{Nvue, build_unreadable_value, is_on, parse_number_value, parse_priority_keys};
use super::profile::{QosProfileKind, Roce};
use super::{POLLING_MS, ROBUSTNESS};
use crate::switch::configuration::SwitchPortSettings;
use crate::switch::parse_values::{ANY, MTUS, PERCENT};
use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings};
use crate::{Fact, Reading};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// A port of a revision.
pub struct CumulusPortView<'a> {
    nvue: &'a Nvue,
    port: &'a str,
}

/// The MTU of a port that says none (CumulusNetworks/docs:
/// content/nvue-reference/Set-and-Unset-Commands/Interface.md).
const MTU: u64 = 9216;

/// Metres of cable of a profile of PFC that says none (the manual, PFC).
const CABLE_M: u64 = 10;

/// Percent of marks of a profile that says none (the manual, Congestion Control).
const PROBABILITY: u64 = 100;

impl<'a> CumulusPortView<'a> {
    /// The port of this name, if the switch has it.
    pub fn of(nvue: &'a Nvue, port: &'a str) -> Option<Self> {
        nvue.has_port(port)
            .then_some(CumulusPortView { nvue, port })
    }

    fn own(&self, path: &[&str]) -> Option<&'a Value> {
        self.nvue.at(&[&["interface", self.port], path].concat())
    }

    fn known(&self, family: QosProfileKind) -> Fact<Map<String, Value>> {
        self.nvue.known(self.port, family)
    }

    /// What its profile says of a queue.
    fn of_queue(&self, family: QosProfileKind, queue: u64) -> Fact<Value> {
        self.known(family).and_then(|profile| {
            let Some(queues) = profile.get("traffic-class") else {
                return Fact::Absent;
            };
            match (queues, queues.get(queue.to_string())) {
                (Value::Object(_), None) => Fact::Absent,
                (_, Some(class @ Value::Object(_))) => Fact::Is(class.clone()),
                _ => build_unreadable_value(format!("{} of queue {queue}", family.word()), queues),
            }
        })
    }

    /// A setting of the watchdog of the whole switch.
    fn watchdog_number(&self, name: &str, default: u64) -> Fact<u64> {
        let number = self.nvue.number(&["qos", "pfc-watchdog", name], ANY);
        number.or(default)
    }
}

impl SwitchPortSettings for CumulusPortView<'_> {
    fn mtu(&self) -> Fact<u64> {
        parse_number_value("link mtu", self.own(&["link", "mtu"]), MTUS).or(MTU)
    }

    /// Only what is set counts: a port that NVUE knows nothing of is left down.
    fn up(&self) -> Fact<bool> {
        let Some(state) = self.own(&["link", "state"]) else {
            return Fact::Is(false);
        };
        let is_empty = state.as_object().is_some_and(Map::is_empty);
        match ["up", "down"].map(|word| state == word || state.get(word).is_some()) {
            [false, false] if !is_empty => build_unreadable_value("link state", state),
            [up, down] => Fact::Is(up && !down),
        }
    }

    fn priority(&self, dscp: u64) -> Fact<u64> {
        self.nvue.priority(self.port, dscp)
    }

    fn queue(&self, priority: u64) -> Fact<u64> {
        self.nvue.queue(priority)
    }

    /// Pause frames have to be both sent and heard.
    fn pfc(&self) -> Fact<BTreeSet<u64>> {
        self.known(QosProfileKind::Pfc).and_then(|profile| {
            let (tx, rx) = (profile.get("tx"), profile.get("rx"));
            let both = is_on("pfc tx", tx).and_then(|tx| is_on("pfc rx", rx).map(|rx| tx && rx));
            match both {
                Fact::Is(true) => {
                    parse_priority_keys("pfc switch-priority", profile.get("switch-priority"))
                }
                both => both.map(|_| BTreeSet::new()),
            }
        })
    }

    /// It looks at all that pause, wants so many looks, drops, and comes back after one look
    /// without a pause (the manual, PFC Watchdog).
    fn watchdog(&self) -> Fact<(BTreeSet<u64>, PfcWatchdogSettings)> {
        let Some(own) = self.own(&["qos", "pfc-watchdog"]) else {
            return Fact::Absent;
        };
        let pfc = match is_on("pfc-watchdog state", own.get("state")) {
            Fact::Is(true) => self.pfc(),
            Fact::Unknown(why) => Fact::Unknown(why),
            _ => Fact::Absent,
        };
        pfc.and_then(|pfc| {
            let polling = self.watchdog_number("polling-interval", POLLING_MS);
            let detection = polling.clone().and_then(|polling| {
                self.watchdog_number("robustness", ROBUSTNESS)
                    .map(|robustness| polling.saturating_mul(robustness))
            });
            let settings = PfcWatchdogSettings::from_facts(detection, polling, "drop");
            settings.map(|settings| (pfc, settings))
        })
    }

    /// A queue that a profile names is marked unless it says otherwise (the manual, ECN: the
    /// examples say thresholds alone).
    fn marking(&self, queue: u64) -> Fact<EcnMarkingThresholds> {
        self.of_queue(QosProfileKind::Marking, queue)
            .and_then(|class| parse_marking(&class, queue))
    }

    fn is_strict(&self, queue: u64) -> Fact<bool> {
        let class = self.of_queue(QosProfileKind::Scheduler, queue);
        let is_strict = class.and_then(|class| match class.get("mode") {
            None => Fact::Absent,
            Some(mode) if mode == "strict" => Fact::Is(true),
            Some(mode) if mode == "dwrr" => Fact::Is(false),
            Some(mode) => build_unreadable_value(format_args!("mode of queue {queue}"), mode),
        });
        is_strict.or(false)
    }

    fn cable_m(&self) -> Fact<u64> {
        self.known(QosProfileKind::Pfc).and_then(|profile| {
            let is_there =
                !profile.is_empty() || self.nvue.bound(self.port, QosProfileKind::Pfc).is_some();
            let length = parse_number_value("cable-length", profile.get("cable-length"), ANY);
            if is_there { length.or(CABLE_M) } else { length }
        })
    }

    /// A lossless pool, of which a switch has one: `roce-lossless` with RoCE, which brings it
    /// along, else `default-lossless` (the manual, Traffic Pools).
    fn has_lossless_pool(&self) -> Fact<bool> {
        let (pool, by_default) = match self.nvue.roce() {
            Roce::Lossless => ("roce-lossless", true),
            _ => ("default-lossless", false),
        };
        let path = ["qos", "traffic-pool", pool, "memory-percent"];
        let percent = self.nvue.number(&path, PERCENT);
        percent.map(|percent| percent > 0).or(by_default)
    }

    /// It works the buffer out from the cable, and says nothing of it.
    fn made_buffer(&self, _priority: u64, _cable_m: u64) -> (Reading, Option<String>) {
        (
            Reading::NotApplicable("Cumulus Linux works it out from the cable".into()),
            None,
        )
    }
}

/// Thresholds of a queue, by what a profile says of it.
fn parse_marking(class: &Value, queue: u64) -> Fact<EcnMarkingThresholds> {
    match is_on(format_args!("ecn of queue {queue}"), class.get("ecn")) {
        Fact::Is(true) => EcnMarkingThresholds::from_facts(
            parse_threshold(class, queue, "min-threshold", ANY),
            parse_threshold(class, queue, "max-threshold", ANY),
            parse_threshold(class, queue, "probability", PERCENT).or(PROBABILITY),
        ),
        Fact::Unknown(why) => Fact::Unknown(why),
        _ => Fact::Absent,
    }
}

fn parse_threshold(
    class: &Value,
    queue: u64,
    name: &str,
    bounds: RangeInclusive<u64>,
) -> Fact<u64> {
    let value = class.get(name);
    parse_number_value(format_args!("{name} of queue {queue}"), value, bounds)
}
