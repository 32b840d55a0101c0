//! Values that are there and make no sense, on all three systems: each is unknown with its raw
//! text, and never the default, the desired value or wrong.

use super::SwitchSystem;
use super::buffer::SwitchBuffer;
use super::ecn::SwitchEcn;
use super::port::SwitchPort;
use super::qos::SwitchQos;
use super::test_support::resource;
use crate::test_support::answered;
use crate::{Action, DesiredResource, Plane, Reading, ResourceDiff, ResourceKind};
use serde_json::{Value, json};

/// Where a value stands, and what stands there: a pointer into JSON, or the commands that lead to
/// one of EOS.
type Bend = (SwitchSystem, &'static str, Value);

/// A configuration in which all is in sync.
fn in_sync(system: SwitchSystem) -> String {
    match system {
        SwitchSystem::Sonic => sonic().to_string(),
        SwitchSystem::Cumulus => json!({ "ports": ["swp1"], "set": cumulus() }).to_string(),
        SwitchSystem::Eos => eos(&[]),
    }
}

fn sonic() -> Value {
    json!({
        "PORT": { "Ethernet0": { "speed": "400000", "mtu": "9216", "admin_status": "up" } },
        "DSCP_TO_TC_MAP": { "A": { "26": "3", "48": "6" } }, "TC_TO_QUEUE_MAP": { "A": { "3": "3", "6": "6" } },
        "MAP_PFC_PRIORITY_TO_QUEUE": { "A": { "3": "3" } }, "TC_TO_PRIORITY_GROUP_MAP": { "A": { "3": "3" } },
        "PORT_QOS_MAP": { "Ethernet0": { "dscp_to_tc_map": "A", "tc_to_queue_map": "A", "tc_to_pg_map": "A", "pfc_to_queue_map": "A",
            "pfc_enable": "3", "pfcwd_sw_enable": "3" } },
        "PFC_WD": { "Ethernet0": { "action": "drop", "detection_time": "200", "restoration_time": "200" } },
        "SCHEDULER": { "S": { "type": "STRICT" } }, "QUEUE": { "Ethernet0|3": { "wred_profile": "W" }, "Ethernet0|6": { "scheduler": "S" } },
        "WRED_PROFILE": { "W": { "ecn": "ecn_all", "green_min_threshold": "1000", "green_max_threshold": "2000", "green_drop_probability": "5" } },
        "CABLE_LENGTH": { "A": { "Ethernet0": "40m" } },
        "BUFFER_PROFILE": { "pg_lossless_400000_40m_profile": { "xoff": "177152" } },
        "BUFFER_PG": { "Ethernet0|3": { "profile": "pg_lossless_400000_40m_profile" } },
    })
}

fn cumulus() -> Value {
    json!({
        "interface": { "swp1": { "link": { "mtu": 9216, "state": { "up": {} } }, "qos": { "mapping": { "profile": "M" }, "pfc": { "profile": "P" },
            "congestion-control": { "profile": "C" }, "egress-scheduler": { "profile": "S" }, "pfc-watchdog": {} } } },
        "qos": {
            "mapping": { "M": { "trust": "l3", "dscp": { "26": { "switch-priority": 3 }, "48": { "switch-priority": 6 } } } },
            "pfc": { "P": { "switch-priority": { "3": {} }, "cable-length": 40 } },
            "congestion-control": { "C": { "traffic-class": { "3": { "min-threshold": 1000, "max-threshold": 2000, "probability": 5 } } } },
            "egress-scheduler": { "S": { "traffic-class": { "6": { "mode": "strict" } } } },
            "egress-queue-mapping": { "default-global": { "switch-priority": { "3": { "traffic-class": 3 } } } },
            "traffic-pool": { "default-lossless": { "memory-percent": 50 } },
            "pfc-watchdog": { "polling-interval": 100, "robustness": 2 },
        },
    })
}

/// With these lines in the place of those that have their beginning.
fn eos(bends: &[&str]) -> String {
    let lines = [
        "qos map dscp 26 to traffic-class 3",
        "qos map traffic-class 3 to tx-queue 3",
        "interface Ethernet1",
        "   mtu 9214",
        "   no shutdown",
        "   qos trust dscp",
        "   priority-flow-control on",
        "   priority-flow-control priority 3 no-drop",
        "   priority-flow-control pause watchdog",
        "   priority-flow-control pause watchdog port action drop",
        "   priority-flow-control pause watchdog port timer timeout 0.2 polling-interval auto \
         recovery-time 0.2",
        "   tx-queue 3",
        "      bandwidth guaranteed 100",
        "      random-detect ecn minimum-threshold 1000 bytes maximum-threshold 2000 bytes \
         max-mark-probability 5",
        "   tx-queue 6",
        "      priority strict",
    ];
    let mut out = "! railwright running\n".to_owned();
    for line in lines {
        let bent = bends.iter().find_map(|bend| {
            bend.split_once(" => ")
                .filter(|(from, _)| *from == line.trim())
        });
        out.push_str(&format!(
            "{}\n",
            bent.map_or_else(|| line.to_owned(), |(from, to)| line.replace(from, to))
        ));
    }
    out + "end\n"
}

fn bent((system, place, value): &Bend) -> String {
    let put = |mut whole: Value, pointer: &str| {
        *whole
            .pointer_mut(pointer)
            .unwrap_or_else(|| panic!("{pointer}")) = value.clone();
        whole
    };
    match system {
        SwitchSystem::Sonic => put(sonic(), place).to_string(),
        SwitchSystem::Cumulus => {
            json!({ "ports": ["swp1"], "set": put(cumulus(), place) }).to_string()
        }
        SwitchSystem::Eos => eos(&[&format!("{place} => {}", value.as_str().unwrap())]),
    }
}

fn resources(system: SwitchSystem) -> Vec<(&'static dyn ResourceKind, DesiredResource)> {
    let (port, mtu) = match system {
        SwitchSystem::Sonic => ("Ethernet0", 9216),
        SwitchSystem::Cumulus => ("swp1", 9216),
        SwitchSystem::Eos => ("Ethernet1", 9214),
    };
    let of = |body: Value| {
        let mut whole = json!({ "system": system, "port": port });
        whole
            .as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        whole
    };
    let qos = json!({ "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48, "watchdog_detection_ms": 200 });
    let marking =
        json!({ "priority": 3, "min_bytes": 1000, "max_bytes": 2000, "probability_percent": 5 });
    let mut all: Vec<(&'static dyn ResourceKind, Value)> = vec![
        (&SwitchPort, json!({ "mtu": mtu, "up": true })),
        (&SwitchQos, qos),
        (&SwitchEcn, marking),
    ];
    if system.has_cables() {
        all.push((&SwitchBuffer, json!({ "cable_m": 40, "priority": 3 })));
    }
    all.into_iter()
        .map(|(kind, body)| (kind, resource(kind, of(body))))
        .collect()
}

fn diff(system: SwitchSystem, config: &str) -> Vec<ResourceDiff> {
    let of = |(kind, resource): (&dyn ResourceKind, DesiredResource)| {
        let reads = kind.reads(&resource);
        kind.diff(
            &resource,
            &answered(&[(&reads[0], 0, config), (&reads[1], 1, "")]),
        )
    };
    resources(system).into_iter().map(of).collect()
}

/// Attributes that run and are not as desired, with their actual values.
fn running(diffs: &[ResourceDiff]) -> Vec<(&str, &Reading)> {
    let all = diffs.iter().flat_map(|diff| &diff.attributes);
    all.filter_map(|(name, attribute)| {
        let (_, _, found) = attribute
            .differences()
            .into_iter()
            .find(|(plane, ..)| *plane == Plane::Running)?;
        Some((name.as_str(), found))
    })
    .collect()
}

#[test]
fn in_these_configurations_all_is_in_sync() {
    for system in [
        SwitchSystem::Sonic,
        SwitchSystem::Cumulus,
        SwitchSystem::Eos,
    ] {
        assert_eq!(running(&diff(system, &in_sync(system))), [], "{system:?}");
    }
}

/// What stands somewhere, and the attribute that nobody can compare then.
fn nonsense() -> Vec<(Bend, &'static str)> {
    use SwitchSystem::{Cumulus, Eos, Sonic};
    let marking = "random-detect ecn minimum-threshold 1000 bytes maximum-threshold 2000 bytes \
                   max-mark-probability 5";
    vec![
        ((Sonic, "/PORT/Ethernet0/mtu", json!("-1")), "mtu"),
        ((Sonic, "/PORT/Ethernet0/mtu", json!(null)), "mtu"),
        (
            (Sonic, "/PORT/Ethernet0/mtu", json!("99999999999999999999")),
            "mtu",
        ),
        (
            (Sonic, "/PORT/Ethernet0/admin_status", json!("sideways")),
            "up",
        ),
        ((Sonic, "/DSCP_TO_TC_MAP/A/26", json!("three")), "dscp"),
        ((Sonic, "/TC_TO_QUEUE_MAP/A/3", json!("x")), "queue"),
        (
            (Sonic, "/MAP_PFC_PRIORITY_TO_QUEUE/A/3", json!("x")),
            "queue",
        ),
        (
            (Sonic, "/TC_TO_PRIORITY_GROUP_MAP/A/3", json!("x")),
            "queue",
        ),
        (
            (Sonic, "/PORT_QOS_MAP/Ethernet0/pfc_enable", json!("3,x")),
            "pfc",
        ),
        (
            (
                Sonic,
                "/PORT_QOS_MAP/Ethernet0/pfcwd_sw_enable",
                json!("3,9"),
            ),
            "watchdog",
        ),
        (
            (Sonic, "/PFC_WD/Ethernet0/detection_time", json!("soon")),
            "watchdog",
        ),
        (
            (Sonic, "/PFC_WD/Ethernet0/action", json!("explode")),
            "watchdog",
        ),
        ((Sonic, "/SCHEDULER/S/type", json!("MAYBE")), "strict"),
        (
            (Sonic, "/WRED_PROFILE/W/ecn", json!("ecn_perhaps")),
            "min_bytes",
        ),
        (
            (Sonic, "/WRED_PROFILE/W/green_min_threshold", json!("1 MB")),
            "min_bytes",
        ),
        (
            (Sonic, "/WRED_PROFILE/W/green_max_threshold", json!("-2")),
            "max_bytes",
        ),
        (
            (
                Sonic,
                "/WRED_PROFILE/W/green_drop_probability",
                json!("101"),
            ),
            "probability_percent",
        ),
        ((Sonic, "/CABLE_LENGTH/A/Ethernet0", json!("40")), "cable_m"),
        (
            (
                Sonic,
                "/BUFFER_PROFILE/pg_lossless_400000_40m_profile/xoff",
                json!("lots"),
            ),
            "lossless_buffer",
        ),
        ((Cumulus, "/interface/swp1/link/mtu", json!(-1)), "mtu"),
        ((Cumulus, "/interface/swp1/link/mtu", json!({})), "mtu"),
        (
            (Cumulus, "/interface/swp1/link/state", json!("sideways")),
            "up",
        ),
        ((Cumulus, "/qos/mapping/M/trust", json!("nobody")), "dscp"),
        ((Cumulus, "/qos/mapping/M/dscp", json!(26)), "dscp"),
        (
            (
                Cumulus,
                "/qos/mapping/M/dscp/26/switch-priority",
                json!(3.5),
            ),
            "dscp",
        ),
        (
            (Cumulus, "/interface/swp1/qos/mapping/profile", json!(5)),
            "dscp",
        ),
        (
            (
                Cumulus,
                "/qos/egress-queue-mapping/default-global/switch-priority/3/traffic-class",
                json!("x"),
            ),
            "queue",
        ),
        (
            (
                Cumulus,
                "/qos/pfc/P/switch-priority",
                json!({ "3": {}, "x": {} }),
            ),
            "pfc",
        ),
        (
            (Cumulus, "/qos/pfc/P/cable-length", json!("forty")),
            "cable_m",
        ),
        (
            (
                Cumulus,
                "/qos/pfc-watchdog/polling-interval",
                json!("often"),
            ),
            "watchdog",
        ),
        (
            (Cumulus, "/qos/pfc-watchdog/robustness", json!(-2)),
            "watchdog",
        ),
        (
            (
                Cumulus,
                "/qos/traffic-pool/default-lossless/memory-percent",
                json!("half"),
            ),
            "lossless_pool",
        ),
        (
            (
                Cumulus,
                "/qos/egress-scheduler/S/traffic-class/6/mode",
                json!("maybe"),
            ),
            "strict",
        ),
        (
            (
                Cumulus,
                "/qos/congestion-control/C/traffic-class/3/min-threshold",
                json!("1k"),
            ),
            "min_bytes",
        ),
        (
            (
                Cumulus,
                "/qos/congestion-control/C/traffic-class/3",
                json!({ "ecn": "perhaps" }),
            ),
            "min_bytes",
        ),
        (
            (
                Cumulus,
                "/qos/congestion-control/C/traffic-class/3/probability",
                json!(1e9),
            ),
            "probability_percent",
        ),
        ((Eos, "mtu 9214", json!("mtu -5")), "mtu"),
        ((Eos, "mtu 9214", json!("l2 mtu huge")), "mtu"),
        ((Eos, "no shutdown", json!("shutdown perhaps")), "up"),
        ((Eos, "qos trust dscp", json!("qos trust nobody")), "dscp"),
        (
            (
                Eos,
                "qos trust dscp",
                json!("service-policy type qos input P"),
            ),
            "dscp",
        ),
        (
            (
                Eos,
                "qos map dscp 26 to traffic-class 3",
                json!("qos map dscp 0-999999999 to traffic-class 3"),
            ),
            "dscp",
        ),
        (
            (
                Eos,
                "qos map dscp 26 to traffic-class 3",
                json!("qos map dscp 30-20 to traffic-class 3"),
            ),
            "dscp",
        ),
        (
            (
                Eos,
                "qos map dscp 26 to traffic-class 3",
                json!("qos map dscp 26 to traffic-class 31"),
            ),
            "dscp",
        ),
        (
            (
                Eos,
                "qos map traffic-class 3 to tx-queue 3",
                json!("qos map traffic-class 3 x to tx-queue 3"),
            ),
            "queue",
        ),
        (
            (
                Eos,
                "priority-flow-control on",
                json!("priority-flow-control mode on"),
            ),
            "pfc",
        ),
        (
            (
                Eos,
                "priority-flow-control priority 3 no-drop",
                json!("priority-flow-control priority 33 no-drop"),
            ),
            "pfc",
        ),
        (
            (
                Eos,
                "priority-flow-control pause watchdog port action drop",
                json!("priority-flow-control pause watchdog port action sing"),
            ),
            "watchdog",
        ),
        (
            (
                Eos,
                "priority-flow-control pause watchdog port timer timeout 0.2 polling-interval auto \
                 recovery-time 0.2",
                json!(
                    "priority-flow-control pause watchdog port timer timeout NaN polling-interval \
                     auto recovery-time 0.2"
                ),
            ),
            "watchdog",
        ),
        (
            (Eos, "priority strict", json!("priority perhaps")),
            "strict",
        ),
        (
            (Eos, marking, json!(marking.replace("1000", "-1"))),
            "min_bytes",
        ),
        (
            (Eos, marking, json!(marking.replace("bytes", "segments"))),
            "min_bytes",
        ),
        (
            (Eos, marking, json!(marking.replace(" 5", " 500"))),
            "probability_percent",
        ),
    ]
}

#[test]
fn a_value_that_makes_no_sense_is_unknown_and_its_text_is_said() {
    for (bend, attribute) in nonsense() {
        let diffs = diff(bend.0, &bent(&bend));
        let found = running(&diffs);
        let Some((_, Reading::Unknown(why))) = found.iter().find(|(name, _)| *name == attribute)
        else {
            panic!("{bend:?}\n{found:#?}")
        };
        let text = bend
            .2
            .as_str()
            .map_or_else(|| bend.2.to_string(), str::to_owned);
        let is_said = why.as_words().contains('`')
            && (text.contains(' ') || bend.2.is_object() || why.as_words().contains(&text));
        assert!(is_said && why.as_words().len() < 300, "{bend:?} {why}");
        // Nothing beside it is taken for wrong.
        let others = found
            .iter()
            .filter(|(_, found)| !found.is_unknown())
            .collect::<Vec<_>>();
        assert!(others.is_empty(), "{bend:?} {others:?}");
    }
}

/// Where the resource says what has to be there, it is set, as `sysctl` does; where that would go
/// by what nobody knows, it is refused.
#[test]
fn what_nobody_can_read_is_set_anew_or_refused() {
    for (bend, attribute) in nonsense() {
        let diffs = diff(bend.0, &bent(&bend));
        let owner = diffs
            .iter()
            .find(|diff| diff.attributes.contains_key(attribute))
            .unwrap();
        let edits = matches!(owner.actions.as_slice(), [Action::EditSwitch { edits, .. }] if !edits.is_empty());
        assert!(
            edits || owner.refusal.is_some() || attribute == "lossless_buffer",
            "{bend:?} {owner:#?}"
        );
    }
}
