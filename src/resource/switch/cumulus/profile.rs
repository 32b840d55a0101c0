//! Profiles of a port: the one that it is bound to, or `default-global` on top of what the switch
//! has from the start or by `qos roce`.

use super::config::{Nvue, build_unreadable_value, is_on, parse_number_value};
use crate::Fact;
use crate::switch::parse_values::{ANY, PRIORITIES};
use railwright_base::text::one_line;
use serde_json::{Map, Value, json};

/// The profile of all ports that are bound to none.
pub(super) const DEFAULT: &str = "default-global";

/// What a profile is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QosProfileKind {
    /// Which priority packets have.
    Mapping,
    /// Which priorities pause, and the cable.
    Pfc,
    /// Where queues mark packets.
    Marking,
    /// In which order queues are served.
    Scheduler,
}

impl QosProfileKind {
    /// Its word in the tree, the same below `qos` and `interface PORT qos`.
    pub fn word(self) -> &'static str {
        match self {
            QosProfileKind::Mapping => "mapping",
            QosProfileKind::Pfc => "pfc",
            QosProfileKind::Marking => "congestion-control",
            QosProfileKind::Scheduler => "egress-scheduler",
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
    /// Set to something whose classes are others, or are not known: the words below `qos roce`.
    Other(String),
}

impl Roce {
    fn of_unknown(word: &str, value: &Value) -> Self {
        let value = value.to_string().replace('"', "");
        Roce::Other(format!("{word} {}", one_line(&value, 40)))
    }
}

impl Nvue {
    /// `nv set qos roce` alone switches it on, as lossless (CumulusNetworks/docs:
    /// content/cumulus-linux-512/Layer-1-and-Switch-Ports/
    /// Quality-of-Service/RDMA-over-Converged-Ethernet-RoCE.md); `enable` became `state` with 5.15
    /// (nvue-reference, QoS.md).
    pub fn roce(&self) -> Roce {
        let Some(roce) = self.at(&["qos", "roce"]) else {
            return Roce::Off;
        };
        for word in ["enable", "state"] {
            let Some(value) = roce.get(word) else {
                continue;
            };
            match is_on("", Some(value)) {
                Fact::Is(true) => {}
                Fact::Is(false) => return Roce::Off,
                _ => return Roce::of_unknown(word, value),
            }
        }
        let Some(mode) = roce.get("mode") else {
            return Roce::Lossless;
        };
        match mode.as_str() {
            Some("lossless" | "lossless-single-ipool") => Roce::Lossless,
            Some("lossy") => Roce::Lossy,
            _ => Roce::of_unknown("mode", mode),
        }
    }

    /// The profile that a port is bound to by its own name.
    pub fn bound(&self, port: &str, family: QosProfileKind) -> Option<&str> {
        self.text(&["interface", port, "qos", family.word(), "profile"])
            .filter(|name| *name != DEFAULT && !name.is_empty())
    }

    /// What its profile comes to, where that is known: not where the macro has set classes that are
    /// not known, nor where what the port is bound to is no name.
    pub fn known(&self, port: &str, family: QosProfileKind) -> Fact<Map<String, Value>> {
        let path = ["interface", port, "qos", family.word(), "profile"];
        match (self.at(&path), self.bound(port, family), self.roce()) {
            (Some(bound), ..) if !bound.is_string() => {
                build_unreadable_value(format_args!("{} profile", family.word()), bound)
            }
            (_, None, Roce::Other(words)) => Fact::Unknown(describe_roce(&words).into()),
            _ => Fact::Is(self.effective(port, family)),
        }
    }

    /// The members of its profile as far as they are known, to be copied.
    pub fn effective(&self, port: &str, family: QosProfileKind) -> Map<String, Value> {
        let bound = self.bound(port, family);
        let path = ["qos", family.word(), bound.unwrap_or(DEFAULT)];
        let members = self.at(&path).and_then(Value::as_object);
        let members = members.cloned().unwrap_or_default();
        if bound.is_some() {
            return members;
        }
        let mut profile = self.at_the_start(family);
        merge_json_maps(&mut profile, members);
        profile
    }

    /// What `default-global` has where nothing sets it: the manual, chapters Trust 802.1p Marking,
    /// Congestion Control, Egress Scheduler; with RoCE: RDMA-over-Converged-Ethernet-RoCE.md,
    /// Default RoCE Configuration and Verify RoCE Configuration.
    fn at_the_start(&self, family: QosProfileKind) -> Map<String, Value> {
        let marking =
            json!({ "min-threshold": 150_000, "max-threshold": 1_500_000, "probability": 100 });
        let roce = self.roce();
        let with_roce = matches!(roce, Roce::Lossless | Roce::Lossy);
        let profile = match family {
            QosProfileKind::Mapping => json!({ "trust": if with_roce { "both" } else { "l2" } }),
            QosProfileKind::Pfc if roce == Roce::Lossless => {
                let cable = self.at(&["qos", "roce", "cable-length"]);
                let cable = cable.cloned().unwrap_or(json!(100));
                json!({ "switch-priority": { "3": {} }, "cable-length": cable })
            }
            QosProfileKind::Pfc => json!({}),
            QosProfileKind::Marking if with_roce => {
                json!({ "traffic-class": { "0": marking, "3": marking } })
            }
            QosProfileKind::Marking => json!({ "traffic-class": { "0": marking } }),
            QosProfileKind::Scheduler if with_roce => {
                let half = build_share(50);
                json!({ "traffic-class": { "0": half, "3": half, "6": { "mode": "strict" } } })
            }
            QosProfileKind::Scheduler => {
                let mut queues = Map::new();
                for queue in 0..8 {
                    queues.insert(queue.to_string(), build_share(12 + queue % 2));
                }
                json!({ "traffic-class": queues })
            }
        };
        if let Value::Object(profile) = profile {
            profile
        } else {
            Map::new()
        }
    }

    /// The priority of a DSCP in a profile; absent where the profile looks at no DSCP, or where it
    /// says nothing of this one among others.
    pub fn priority(&self, port: &str, dscp: u64) -> Fact<u64> {
        self.known(port, QosProfileKind::Mapping)
            .and_then(|profile| {
                let Some(trust) = profile.get("trust") else {
                    return Fact::Absent;
                };
                match trust.as_str() {
                    Some("l3" | "both") => self.find_dscp_priority(port, &profile, dscp),
                    Some("l2" | "port") => Fact::Absent,
                    _ => build_unreadable_value("trust", trust),
                }
            })
    }

    fn find_dscp_priority(&self, port: &str, profile: &Map<String, Value>, dscp: u64) -> Fact<u64> {
        let all = match profile.get("dscp") {
            Some(Value::Object(all)) => Some(all).filter(|all| !all.is_empty()),
            None => None,
            Some(other) => return build_unreadable_value("dscp", other),
        };
        let own = match all.and_then(|all| all.get(&dscp.to_string())) {
            Some(entry @ Value::Object(_)) => parse_number_value(
                format_args!("dscp {dscp} switch-priority"),
                entry.get("switch-priority"),
                PRIORITIES,
            ),
            Some(other) => return build_unreadable_value(format_args!("dscp {dscp}"), other),
            None => Fact::Absent,
        };
        // A profile that names no DSCP has the map from the start, and so has `default-global` for
        // those that it does not name (the manual, Trust DSCP); what another one does with those is
        // not said.
        let from_the_start = all.is_none() || self.bound(port, QosProfileKind::Mapping).is_none();
        if from_the_start {
            own.or(dscp / 8)
        } else {
            own
        }
    }

    /// The queue of a priority. One map for all ports of the switch: "NVUE only supports the
    /// default-global profile" (the manual, Egress Queues).
    pub fn queue(&self, priority: u64) -> Fact<u64> {
        let path = [
            "qos",
            "egress-queue-mapping",
            "default-global",
            "switch-priority",
            &priority.to_string(),
            "traffic-class",
        ];
        match (self.number(&path, ANY), self.roce()) {
            (Fact::Absent, Roce::Other(words)) => Fact::Unknown(describe_roce(&words).into()),
            (Fact::Absent, Roce::Lossless | Roce::Lossy) if ![3, 6].contains(&priority) => {
                Fact::Is(0)
            }
            (queue, _) => queue.or(priority),
        }
    }
}

fn build_share(percent: u64) -> Value {
    json!({ "mode": "dwrr", "bw-percent": percent })
}

fn describe_roce(words: &str) -> String {
    format!("`qos roce {words}` rules the classes of all ports, and is not known")
}

fn merge_json_maps(into: &mut Map<String, Value>, other: Map<String, Value>) {
    for (key, value) in other {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(into)), Value::Object(value)) => merge_json_maps(into, value),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}
