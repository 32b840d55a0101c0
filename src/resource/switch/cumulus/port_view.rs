//! One port of Cumulus Linux in the fabric's words: what its profiles come to.

use super::config::{Nvue, build_unreadable_value, is_on, parse_number_value, parse_priority_keys};
use super::profile::{QosProfileKind, Roce};
use super::{POLLING_MS, ROBUSTNESS};
use crate::switch::configuration::SwitchPortSettings;
use crate::switch::unreadable::{ANY, MTUS, PERCENT};
use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings};
use crate::{Fact, Reading};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

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
            match profile
                .get("traffic-class")
                .map(|all| (all, all.get(queue.to_string())))
            {
                None | Some((Value::Object(_), None)) => Fact::Absent,
                Some((_, Some(class @ Value::Object(_)))) => Fact::Is(class.clone()),
                Some((other, _)) => build_unreadable_value(
                    format_args!("{} of queue {queue}", family.word()),
                    other,
                ),
            }
        })
    }
}

impl SwitchPortSettings for CumulusPortView<'_> {
    fn mtu(&self) -> Fact<u64> {
        parse_number_value("link mtu", self.own(&["link", "mtu"]), MTUS).or(MTU)
    }

    /// Only what is said counts: a port that NVUE knows nothing of is left down.
    fn up(&self) -> Fact<bool> {
        let Some(state) = self.own(&["link", "state"]) else {
            return Fact::Is(false);
        };
        let is = |word: &str| state.as_str() == Some(word) || state.get(word).is_some();
        let is_empty = state.as_object().is_some_and(Map::is_empty);
        if is("up") || is("down") || is_empty {
            Fact::Is(is("up") && !is("down"))
        } else {
            build_unreadable_value("link state", state)
        }
    }

    fn priority(&self, dscp: u64) -> Fact<u64> {
        self.nvue.priority(self.port, dscp)
    }

    fn queue(&self, priority: u64) -> Fact<u64> {
        self.nvue.queue(priority)
    }

    /// A pause frame names a priority, which has one queue.
    fn paused_queue(&self, priority: u64) -> Fact<u64> {
        self.queue(priority)
    }

    /// The switch holds paused packets apart by itself; nothing says where.
    fn group(&self, priority: u64) -> Fact<u64> {
        self.queue(priority)
    }

    /// Pause frames have to be both sent and heard.
    fn pfc(&self) -> Fact<BTreeSet<u64>> {
        self.known(QosProfileKind::Pfc).and_then(|profile| {
            let ways = is_on("pfc tx", profile.get("tx"))
                .and_then(|tx| is_on("pfc rx", profile.get("rx")).map(|rx| tx && rx));
            let all = parse_priority_keys("pfc switch-priority", profile.get("switch-priority"));
            ways.and_then(|both| if both { all } else { Fact::Is(BTreeSet::new()) })
        })
    }

    /// It looks at all that pause, wants so many looks, drops, and comes back after one look
    /// without a pause (the manual, PFC Watchdog).
    fn watchdog(&self) -> Fact<(BTreeSet<u64>, PfcWatchdogSettings)> {
        let Some(own) = self.own(&["qos", "pfc-watchdog"]) else {
            return Fact::Absent;
        };
        let of_all = |name: &str, default| {
            self.nvue
                .number(&["qos", "pfc-watchdog", name], ANY)
                .or(default)
        };
        is_on("pfc-watchdog state", own.get("state"))
            .and_then(|is_on| if is_on { self.pfc() } else { Fact::Absent })
            .and_then(|pfc| {
                of_all("polling-interval", POLLING_MS).and_then(|polling| {
                    of_all("robustness", ROBUSTNESS).map(|robustness| {
                        let detection_ms = polling.saturating_mul(robustness);
                        (
                            pfc,
                            PfcWatchdogSettings {
                                detection_ms,
                                restoration_ms: polling,
                                action: "drop".to_owned(),
                            },
                        )
                    })
                })
            })
    }

    /// A queue that a profile names is marked unless it says otherwise (the manual, ECN: the
    /// examples say thresholds alone).
    fn marking(&self, queue: u64) -> Fact<EcnMarkingThresholds> {
        self.of_queue(QosProfileKind::Marking, queue)
            .and_then(|class| {
                let of = |name: &str, bounds| {
                    parse_number_value(
                        format_args!("{name} of queue {queue}"),
                        class.get(name),
                        bounds,
                    )
                };
                match is_on(format_args!("ecn of queue {queue}"), class.get("ecn")) {
                    Fact::Is(true) => of("min-threshold", ANY).and_then(|min_bytes| {
                        of("max-threshold", ANY).and_then(|max_bytes| {
                            let probability = of("probability", PERCENT).or(PROBABILITY);
                            probability.map(|probability_percent| EcnMarkingThresholds {
                                min_bytes,
                                max_bytes,
                                probability_percent,
                            })
                        })
                    }),
                    Fact::Unknown(why) => Fact::Unknown(why),
                    _ => Fact::Absent,
                }
            })
    }

    fn is_strict(&self, queue: u64) -> Fact<bool> {
        let mode = self
            .of_queue(QosProfileKind::Scheduler, queue)
            .and_then(|class| class.get("mode").cloned().into());
        let is_strict = mode.and_then(|mode: Value| match mode.as_str() {
            Some("strict") => Fact::Is(true),
            Some("dwrr") => Fact::Is(false),
            _ => build_unreadable_value(format_args!("mode of queue {queue}"), &mode),
        });
        is_strict.or(false)
    }

    fn cable_m(&self) -> Fact<u64> {
        self.known(QosProfileKind::Pfc).and_then(|profile| {
            let is_there =
                !profile.is_empty() || self.nvue.bound(self.port, QosProfileKind::Pfc).is_some();
            let said = parse_number_value("cable-length", profile.get("cable-length"), ANY);
            if is_there { said.or(CABLE_M) } else { said }
        })
    }

    /// A lossless pool, of which a switch has one: `roce-lossless` with RoCE, which brings it
    /// along, else `default-lossless` (the manual, Traffic Pools).
    fn has_lossless_pool(&self) -> Fact<bool> {
        let percent = |pool: &str| {
            self.nvue
                .number(&["qos", "traffic-pool", pool, "memory-percent"], PERCENT)
        };
        match self.nvue.roce() {
            Roce::Lossless => percent("roce-lossless")
                .map(|percent| percent != 0)
                .or(true),
            _ => percent("default-lossless")
                .map(|percent| percent > 0)
                .or(false),
        }
    }

    /// It works the buffer out from the cable, and says nothing of it.
    fn made_buffer(&self, _priority: u64, _cable_m: u64) -> (Reading, Option<String>) {
        (
            Reading::NotApplicable("Cumulus Linux works it out from the cable".to_owned()),
            None,
        )
    }
}
