//! Profiles of a port: the one that it is bound to, or `default-global` on top of what the switch has from the start or by `qos roce`.

use super::config::{Nvue, is_off, number};
use serde_json::{Map, Value, json};

/// The profile of all ports that are bound to none.
const DEFAULT: &str = "default-global";

/// What a profile is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Which priority packets have.
    Mapping,
    /// Which priorities pause, and the cable.
    Pfc,
    /// Where queues mark packets.
    Marking,
    /// In which order queues are served.
    Scheduler,
}

impl Family {
    /// Its word in the tree, the same below `qos` and `interface PORT qos`.
    pub fn word(self) -> &'static str {
        match self {
            Family::Mapping => "mapping",
            Family::Pfc => "pfc",
            Family::Marking => "congestion-control",
            Family::Scheduler => "egress-scheduler",
        }
    }
}

/// The macro that sets the classes of all ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Roce {
    /// It is off.
    Off,
    /// With PFC on priority 3 (`lossless`, `lossless-single-ipool`).
    Lossless,
    /// Without PFC.
    Lossy,
    /// A mode whose classes are others.
    Other(String),
}

impl Nvue {
    /// `nv set qos roce` alone switches it on, as lossless (CumulusNetworks/docs: content/cumulus-linux-512/Layer-1-and-Switch-Ports/
    /// Quality-of-Service/RDMA-over-Converged-Ethernet-RoCE.md); `enable` became `state` with 5.15 (nvue-reference, QoS.md).
    pub fn roce(&self) -> Roce {
        let Some(roce) = self.at(&["qos", "roce"]) else { return Roce::Off };
        if is_off(roce.get("enable")) || is_off(roce.get("state")) {
            return Roce::Off;
        }
        match roce.get("mode").and_then(Value::as_str) {
            None | Some("lossless" | "lossless-single-ipool") => Roce::Lossless,
            Some("lossy") => Roce::Lossy,
            Some(other) => Roce::Other(crate::base::text::one_line(other, 40)),
        }
    }

    /// The profile that a port is bound to by its own name.
    pub fn bound(&self, port: &str, family: Family) -> Option<&str> {
        self.text(&["interface", port, "qos", family.word(), "profile"]).filter(|name| *name != DEFAULT && !name.is_empty())
    }

    /// What its profile comes to.
    pub fn effective(&self, port: &str, family: Family) -> Map<String, Value> {
        let of = |name: &str| self.at(&["qos", family.word(), name]).and_then(Value::as_object).cloned().unwrap_or_default();
        match self.bound(port, family) {
            Some(name) => of(name),
            None => {
                let mut profile = self.at_the_start(family);
                merge(&mut profile, of(DEFAULT));
                profile
            }
        }
    }

    /// What `default-global` has where nobody said it: the manual, chapters Trust 802.1p Marking, Congestion Control, Egress Scheduler; with
    /// RoCE: RDMA-over-Converged-Ethernet-RoCE.md, Default RoCE Configuration and Verify RoCE Configuration.
    fn at_the_start(&self, family: Family) -> Map<String, Value> {
        let marking = json!({ "min-threshold": 150_000, "max-threshold": 1_500_000, "probability": 100 });
        let share = |percent: u64| json!({ "mode": "dwrr", "bw-percent": percent });
        let roce = self.roce();
        let with_roce = matches!(roce, Roce::Lossless | Roce::Lossy);
        let profile = match family {
            Family::Mapping => json!({ "trust": if with_roce { "both" } else { "l2" } }),
            Family::Pfc if roce == Roce::Lossless => {
                let cable = self.number(&["qos", "roce", "cable-length"]).unwrap_or(100);
                json!({ "switch-priority": { "3": {} }, "cable-length": cable })
            }
            Family::Pfc => json!({}),
            Family::Marking if with_roce => json!({ "traffic-class": { "0": marking, "3": marking } }),
            Family::Marking => json!({ "traffic-class": { "0": marking } }),
            Family::Scheduler if with_roce => json!({ "traffic-class": { "0": share(50), "3": share(50), "6": { "mode": "strict" } } }),
            Family::Scheduler => {
                let all: Map<String, Value> = (0..8).map(|n: u64| (n.to_string(), share(12 + n % 2))).collect();
                json!({ "traffic-class": all })
            }
        };
        if let Value::Object(profile) = profile { profile } else { Map::new() }
    }

    /// The priority of a DSCP in a profile; none where the profile looks at no DSCP, or where it says nothing of this one among others.
    pub fn priority(&self, port: &str, dscp: u64) -> Option<u64> {
        let profile = self.effective(port, Family::Mapping);
        if !matches!(profile.get("trust").and_then(Value::as_str), Some("l3" | "both")) {
            return None;
        }
        let said = profile.get("dscp").and_then(Value::as_object).filter(|all| !all.is_empty());
        let own = said.and_then(|all| number(all.get(&dscp.to_string())?.get("switch-priority")?));
        // A profile that names no DSCP has the map from the start, and so has `default-global` for those that it does not name (the manual,
        // Trust DSCP); what another one does with those is not said.
        let from_the_start = said.is_none() || self.bound(port, Family::Mapping).is_none();
        own.or_else(|| from_the_start.then_some(dscp / 8))
    }
}

fn merge(into: &mut Map<String, Value>, other: Map<String, Value>) {
    for (key, value) in other {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(into)), Value::Object(value)) => merge(into, value),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}
