//! The kinds of switches on revisions of NVUE, and on what their own documents make of those.

use super::edit::{build_patch_documents, select_effective_edits};
use crate::switch::buffer::SwitchBuffer;
use crate::switch::ecn::SwitchEcn;
use crate::switch::edit::SwitchEdit;
use crate::switch::port::SwitchPort;
use crate::switch::qos::SwitchQos;
use crate::switch::test_support::{edits, resource};
use crate::test_support::answered;
use crate::{Action, DesiredResource, Disruption, ReadResults, ResourceDiff, ResourceKind};
use proptest::prelude::*;
use serde_json::{Value, json};

fn qos() -> DesiredResource {
    let body = json!({ "system": "cumulus", "port": "swp1", "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48, "watchdog_detection_ms": 300 });
    resource(&SwitchQos, body)
}

fn ecn(min: u64, max: u64, probability: u64) -> DesiredResource {
    let body = json!({ "system": "cumulus", "port": "swp1", "priority": 3, "min_bytes": min, "max_bytes": max, "probability_percent": probability });
    resource(&SwitchEcn, body)
}

fn buffer(cable_m: u64) -> DesiredResource {
    resource(
        &SwitchBuffer,
        json!({ "system": "cumulus", "port": "swp1", "cable_m": cable_m, "priority": 3 }),
    )
}

fn answers(resource: &DesiredResource, running: &Value, saved: Option<&Value>) -> ReadResults {
    let reads = SwitchPort.reads(resource);
    let running = json!({ "ports": ["swp1", "swp2"], "set": running }).to_string();
    let saved = saved.map_or((1, String::new()), |saved| {
        (0, json!({ "set": saved }).to_string())
    });
    answered(&[(&reads[0], 0, &running), (&reads[1], saved.0, &saved.1)])
}

fn diff(kind: &dyn ResourceKind, resource: &DesiredResource, running: &Value) -> ResourceDiff {
    kind.diff(resource, &answers(resource, running, Some(running)))
}

fn unset(tree: &mut Value, gone: &Value) {
    for (key, below) in gone.as_object().unwrap() {
        match below.is_object() {
            true => unset(
                tree.get_mut(key)
                    .unwrap_or_else(|| panic!("{key} is not there")),
                below,
            ),
            false => assert!(
                tree.as_object_mut()
                    .is_some_and(|tree| tree.remove(key).is_some()),
                "{key} is not there"
            ),
        }
    }
}

fn set(tree: &mut Value, desired: &Value) {
    for (key, below) in desired.as_object().unwrap() {
        if !tree.is_object() {
            *tree = json!({});
        }
        match below {
            Value::Object(map) if !map.is_empty() => set(&mut tree[key.as_str()], below),
            Value::Object(_) if tree.get(key).is_some_and(Value::is_object) => {}
            other => tree[key.as_str()] = other.clone(),
        }
    }
}

/// What NVUE makes of a revision with the documents patched into it.
fn patched(config: &Value, edits: &[SwitchEdit]) -> Value {
    let mut out = config.clone();
    for document in build_patch_documents(&SwitchEdit::cumulus(edits)) {
        let operation = document[0].as_object().unwrap();
        match operation.get("unset") {
            Some(gone) => unset(&mut out, gone),
            None => set(&mut out, &operation["set"]),
        }
    }
    out
}

/// Without what has nothing in it, which NVUE has no use for.
fn pruned(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().map(|(key, value)| (key.clone(), pruned(value)));
            Value::Object(
                kept.filter(|(key, value)| {
                    value != &json!({}) || key.parse::<u64>().is_ok() || key == "up"
                })
                .collect(),
            )
        }
        other => other.clone(),
    }
}

/// As planned, then done, then saved: in sync; and undone it is as it was, but for what the switch
/// has for all its ports.
fn round(kind: &dyn ResourceKind, resource: &DesiredResource, config: &Value) -> Value {
    let first = diff(kind, resource, config);
    assert_eq!(first.refusal, None);
    let done = patched(config, &edits(&first));
    let unsaved = kind.diff(resource, &answers(resource, &done, Some(config)));
    assert!(
        matches!(unsaved.actions.as_slice(), [Action::SaveSwitch { .. }]),
        "{:?}",
        unsaved.actions
    );
    let saved = diff(kind, resource, &done);
    assert!(saved.is_met() && saved.actions.is_empty(), "{saved:?}");
    assert!(kind.can_read_before(&first.before), "{}", first.before);
    let undo = kind.undo(
        resource,
        &first.before,
        &answers(resource, &done, Some(&done)),
    );
    let back = patched(&done, &edits(&undo));
    let undone = kind.undo(
        resource,
        &first.before,
        &answers(resource, &back, Some(&back)),
    );
    assert!(undone.is_met() && undone.actions.is_empty(), "{undone:?}");
    pruned(&back)
}

/// The lines of `nv` for these edits.
fn lines(diff: &ResourceDiff) -> String {
    let edits = SwitchEdit::cumulus(&edits(diff));
    let line = |edit: &&super::edit::CumulusEdit| match &edit.value {
        Some(leaf) => format!("nv set {} {}", edit.path.join(" "), leaf.word())
            .trim_end()
            .to_owned(),
        None => format!("nv unset {}", edit.path.join(" ")),
    };
    select_effective_edits(&edits)
        .iter()
        .map(line)
        .filter(|line| !line.contains(" dscp ") || line.ends_with("26 switch-priority 3"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_class_of_the_fabric_on_a_port_as_it_is_delivered() {
    let config = json!({});
    let first = diff(&SwitchQos, &qos(), &config);
    insta::assert_snapshot!(lines(&first));
    assert_eq!(
        (first.disruption, first.transaction.as_deref()),
        (Disruption::Reload, Some("switch"))
    );
    let back = round(&SwitchQos, &qos(), &config);
    assert_eq!(
        back["qos"]["traffic-pool"]["default-lossless"]["memory-percent"],
        50
    );
    let shared = |family: &str, profile: &str| {
        back["qos"]
            .get(family)
            .is_some_and(|all| all.get(profile).is_some())
    };
    assert!(
        shared("mapping", "railwright") && shared("egress-scheduler", "railwright"),
        "what other ports may use stays: {back}"
    );
    assert!(
        !shared("pfc", "railwright_swp1") && back.get("interface").is_none(),
        "what is the port's alone goes: {back}"
    );
    let undo = SwitchQos.undo(
        &qos(),
        &first.before,
        &answers(&qos(), &patched(&config, &edits(&first)), None),
    );
    assert_eq!(undo.residue.len(), 1, "{:?}", undo.residue);
    assert!(
        undo.residue[0].starts_with("qos traffic-pool default-lossless memory-percent stays 50"),
        "{:?}",
        undo.residue
    );
}

#[test]
fn with_roce_the_class_is_there_and_only_what_differs_is_told() {
    for roce in [
        json!({}),
        json!({ "enable": "on" }),
        json!({ "state": "enabled", "mode": "lossless-single-ipool" }),
    ] {
        let config = json!({ "qos": { "roce": roce }, "interface": { "swp1": { "qos": { "pfc-watchdog": {} } } } });
        for (kind, resource) in [
            (&SwitchQos as &dyn ResourceKind, qos()),
            (&SwitchEcn, ecn(150_000, 1_500_000, 100)),
            (&SwitchBuffer, buffer(100)),
        ] {
            let found = diff(kind, &resource, &config);
            assert!(
                found.is_met() && found.actions.is_empty(),
                "{roce} {found:?}"
            );
        }
        let marking = diff(&SwitchEcn, &ecn(1_000_000, 2_000_000, 10), &config);
        let cable = diff(&SwitchBuffer, &buffer(40), &config);
        if roce == json!({}) {
            insta::assert_snapshot!(format!("{}\n{}", lines(&marking), lines(&cable)));
        }
        round(&SwitchEcn, &ecn(1_000_000, 2_000_000, 10), &config);
        round(&SwitchBuffer, &buffer(40), &config);
    }
}

#[test]
fn what_others_set_is_copied_and_never_edited() {
    let config = json!({
        "interface": { "swp1": { "link": { "mtu": 9000, "state": { "up": {} } }, "qos": { "pfc": { "profile": "theirs" }, "mapping": { "profile": "theirs" } } } },
        "qos": {
            "mapping": { "theirs": { "trust": "l2", "pcp": { "3": { "switch-priority": 1 } }, "dscp": { "10": { "switch-priority": 2 } } } },
            "pfc": { "theirs": { "switch-priority": { "3": {}, "4": {} }, "rx": "disable", "xoff-threshold": 75_000, "cable-length": 5 } },
            "traffic-pool": { "default-lossless": { "memory-percent": 30 }, "default-lossy": { "memory-percent": 70 } },
        },
    });
    let first = diff(&SwitchQos, &qos(), &config);
    insta::assert_snapshot!(lines(&first));
    let done = patched(&config, &edits(&first));
    assert_eq!(
        (
            &done["qos"]["mapping"]["theirs"],
            &done["qos"]["pfc"]["theirs"]
        ),
        (
            &config["qos"]["mapping"]["theirs"],
            &config["qos"]["pfc"]["theirs"]
        )
    );
    let back = round(&SwitchQos, &qos(), &config);
    assert_eq!(back["interface"], config["interface"]);
    assert!(
        first.interrupts[0].starts_with("swp1 may lose packets"),
        "{:?}",
        first.interrupts
    );
}

/// Ours is a copy of the profile that a port has now, and not of the one that another port had once.
#[test]
fn a_profile_that_changed_since_ours_was_copied_is_copied_anew_or_holds_a_further_port() {
    let further = || {
        let body = json!({ "system": "cumulus", "port": "swp2", "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48 });
        resource(&SwitchQos, body)
    };
    let port =
        json!({ "qos": { "mapping": { "profile": "p" }, "egress-scheduler": { "profile": "p" } } });
    let config = json!({
        "interface": { "swp1": port, "swp2": port },
        "qos": {
            "mapping": { "p": { "trust": "l3", "dscp": { "46": { "switch-priority": 5 } } } },
            "egress-scheduler": { "p": { "traffic-class": { "0": { "mode": "dwrr", "bw-percent": 40 }, "6": { "mode": "dwrr", "bw-percent": 60 } } } },
        },
    });
    let done = patched(&config, &edits(&diff(&SwitchQos, &qos(), &config)));
    assert_eq!(diff(&SwitchQos, &further(), &done).refusal, None);
    for (family, place, value, words) in [
        (
            "mapping",
            "/dscp/46/switch-priority",
            json!(2),
            "dscp 46 switch-priority: 2 -> 5; ",
        ),
        ("mapping", "/trust", json!("both"), "trust: both -> l3; "),
        (
            "egress-scheduler",
            "/traffic-class/0/bw-percent",
            json!(30),
            "traffic-class 0 bw-percent: 30 -> 40; ",
        ),
    ] {
        let mut changed = done.clone();
        *changed
            .pointer_mut(&format!("/qos/{family}/p{place}"))
            .unwrap() = value.clone();
        assert!(
            diff(&SwitchQos, &qos(), &changed).is_met(),
            "who has it is not blocked"
        );
        let held = diff(&SwitchQos, &further(), &changed);
        let why = held.refusal.clone().unwrap_or_default();
        let names = format!("qos {family} railwright_p");
        assert!(
            held.actions.is_empty() && why.contains(&names) && why.contains(words),
            "{why}"
        );
        // Nobody has it any more.
        changed["interface"]["swp1"]["qos"] = port["qos"].clone();
        changed["qos"][family]["railwright_p"]["left"] = json!(1);
        let again = patched(&changed, &edits(&diff(&SwitchQos, &further(), &changed)));
        let ours = &again["qos"][family]["railwright_p"];
        assert_eq!(ours.pointer(place), Some(&value), "{ours}");
        assert!(ours.get("left").is_none(), "{ours}");
        assert!(diff(&SwitchQos, &further(), &again).is_met());
    }
}

/// The resources of one port go out together: what one copies gives way to what the other says.
#[test]
fn the_resources_of_a_port_fit_together() {
    let config = json!({ "interface": { "swp1": { "qos": { "pfc": { "profile": "theirs" } } } },
        "qos": { "pfc": { "theirs": { "switch-priority": { "4": {} }, "rx": "disable", "cable-length": 5 } } } });
    let firsts = [
        diff(&SwitchQos, &qos(), &config),
        diff(&SwitchBuffer, &buffer(40), &config),
    ];
    for order in [[0, 1], [1, 0]] {
        let all: Vec<SwitchEdit> = order.iter().flat_map(|at| edits(&firsts[*at])).collect();
        let done = patched(&config, &all);
        assert_eq!(
            done["qos"]["pfc"]["railwright_swp1"],
            json!({ "cable-length": 40, "switch-priority": { "3": {} } })
        );
        for (kind, resource) in [
            (&SwitchQos as &dyn ResourceKind, qos()),
            (&SwitchBuffer, buffer(40)),
        ] {
            assert!(diff(kind, &resource, &done).is_met());
        }
        // Taken back one after the other, the cable first.
        let mut back = done;
        for (kind, resource, first) in [
            (&SwitchBuffer as &dyn ResourceKind, buffer(40), &firsts[1]),
            (&SwitchQos, qos(), &firsts[0]),
        ] {
            back = patched(
                &back,
                &edits(&kind.undo(
                    &resource,
                    &first.before,
                    &answers(&resource, &back, Some(&back)),
                )),
            );
        }
        assert_eq!(
            back["interface"]["swp1"]["qos"]["pfc"],
            config["interface"]["swp1"]["qos"]["pfc"]
        );
        assert_eq!(back["qos"]["pfc"], config["qos"]["pfc"]);
    }
}

/// What a later resource finds in a profile of ours is nothing to come back to.
#[test]
fn other_thresholds_later_leave_nothing_behind() {
    let (first, second) = (ecn(1_000_000, 2_000_000, 10), ecn(1_000_000, 3_000_000, 10));
    let planned = diff(&SwitchEcn, &first, &json!({}));
    let done = patched(&json!({}), &edits(&planned));
    let changed = diff(&SwitchEcn, &second, &done);
    assert_eq!(
        select_effective_edits(&SwitchEdit::cumulus(&edits(&changed))).len(),
        1,
        "{changed:?}"
    );
    let before = SwitchEcn.remembered(&planned.before, &changed.before);
    let done = patched(&done, &edits(&changed));
    let back = patched(
        &done,
        &edits(&SwitchEcn.undo(&second, &before, &answers(&second, &done, Some(&done)))),
    );
    assert_eq!(pruned(&back), json!({}));
}

#[test]
fn a_port_that_does_not_run_is_gone_only_where_nothing_of_it_is_saved() {
    let (resource, config) = (ecn(1_000_000, 2_000_000, 10), json!({}));
    let first = diff(&SwitchEcn, &resource, &config);
    let done = patched(&config, &edits(&first));
    let undo = |ports: Value, saved: &Value| {
        let reads = SwitchEcn.reads(&resource);
        let running = json!({ "ports": ports, "set": {} }).to_string();
        let saved = json!({ "set": saved }).to_string();
        let answers = answered(&[(&reads[0], 0, &running), (&reads[1], 0, &saved)]);
        SwitchEcn.undo(&resource, &first.before, &answers)
    };
    for (ports, saved) in [(json!([]), &config), (json!(["swp2"]), &done)] {
        let undo = undo(ports, saved);
        assert!(undo.only_unknown() && undo.residue.is_empty(), "{undo:?}");
    }
    let undo = undo(json!(["swp2"]), &config);
    assert!(undo.is_met() && undo.residue.len() == 1, "{undo:?}");
}

#[test]
fn ports_go_round_and_stay_up() {
    let port = resource(
        &SwitchPort,
        json!({ "system": "cumulus", "port": "swp1", "mtu": 9000, "up": true }),
    );
    let config =
        json!({ "interface": { "swp1": { "link": { "mtu": 1500, "state": { "down": {} } } } } });
    let back = round(&SwitchPort, &port, &config);
    assert_eq!(
        back,
        json!({ "interface": { "swp1": { "link": { "mtu": 1500, "state": { "up": {} } } } } })
    );
    assert_eq!(
        SwitchPort
            .check(&json!({ "system": "cumulus", "port": "swp1", "mtu": 551 }))
            .len(),
        1
    );
    let largest = resource(
        &SwitchPort,
        json!({ "system": "cumulus", "port": "swp1", "mtu": 9216 }),
    );
    assert!(
        diff(&SwitchPort, &largest, &json!({})).is_met(),
        "a port that says none has it"
    );
}

#[test]
fn what_cannot_be_had_is_held_with_its_reason() {
    let said = |kind: &dyn ResourceKind, resource: &DesiredResource, config: Value| {
        diff(kind, resource, &config).refusal.unwrap_or_default()
    };
    let of_qos = |config: Value| said(&SwitchQos, &qos(), config);
    let lossy = of_qos(json!({ "qos": { "roce": { "mode": "lossy" } } }));
    assert!(lossy.contains("mode lossy` pauses nothing"), "{lossy}");
    assert!(
        of_qos(json!({ "qos": { "roce": { "mode": "lossy-multi-tc" } } }))
            .contains("`qos roce mode lossy-multi-tc` rules")
    );
    let queues = json!({ "qos": { "egress-queue-mapping": { "default-global": { "switch-priority": { "3": { "traffic-class": 0 } } } } } });
    assert!(of_qos(queues).starts_with("packets of priority 3 leave by queue 0"));
    let pause = json!({ "interface": { "swp1": { "qos": { "link-pause": { "profile": "p" } } } } });
    assert!(of_qos(pause).contains("link pause (profile p)"));
    let pools =
        json!({ "qos": { "traffic-pool": { "default-lossy": { "memory-percent": 100 } } } });
    assert!(of_qos(pools).starts_with("the buffers of this switch are divided already"));
    let times = |detection: u64, restoration: u64, action: &str| {
        let body = json!({ "system": "cumulus", "port": "swp1", "priority": 3, "dscp": 26, "watchdog_detection_ms": detection,
            "watchdog_restoration_ms": restoration, "watchdog_action": action });
        said(&SwitchQos, &resource(&SwitchQos, body), json!({}))
    };
    assert!(
        times(300, 200, "drop").contains("200 ms do not go into 300 ms")
            && times(300, 100, "forward").contains("cannot be set to forward")
    );
    assert_eq!(times(400, 200, "drop"), "");
    let other = resource(
        &SwitchPort,
        json!({ "system": "cumulus", "port": "swp3", "mtu": 9000 }),
    );
    assert_eq!(
        said(&SwitchPort, &other, json!({})),
        "the switch has no port swp3; it has swp[1-2]"
    );
    let reads = SwitchPort.reads(&other);
    let unknown = SwitchPort.diff(
        &other,
        &answered(&[(&reads[0], 69, ""), (&reads[1], 0, "{")]),
    );
    assert!(
        unknown.only_unknown() && unknown.actions.is_empty(),
        "{unknown:?}"
    );
}

fn pick<'a>(words: &[&'a str], n: u64) -> &'a str {
    words[n as usize % words.len()]
}

/// Any tree in the form of NVUE's.
fn configs() -> impl Strategy<Value = Value> {
    let family = proptest::sample::select(vec![
        "mapping",
        "pfc",
        "congestion-control",
        "egress-scheduler",
    ]);
    let profile = proptest::sample::select(vec![
        "default-global",
        "theirs",
        "railwright",
        "railwright_swp1",
        "railwright_theirs",
    ]);
    let place = (family, profile, 0u64..12, 0u64..9).prop_map(|(family, profile, kind, n)| {
        let number = n.to_string();
        let class = |name: &str, value: Value| json!({ "traffic-class": { &number: { name: value } } });
        let of_qos = |tree: Value| json!({ "qos": { family: { profile: tree } } });
        match kind {
            0 | 1 => json!({ "interface": { "swp1": { "qos": { family: { "profile": profile } } } } }),
            2 => of_qos(json!({ "trust": pick(&["l2", "l3", "both", "port"], n) })),
            3 => of_qos(json!({ "dscp": { (n * 8 + 2).to_string(): { "switch-priority": n % 8 } } })),
            4 => of_qos(json!({ "switch-priority": { &number: {} } })),
            5 => of_qos(
                json!({ (pick(&["tx", "rx", "cable-length", "xoff-threshold"], n)): if n % 4 < 2 { json!("disable") } else { json!(n) } }),
            ),
            6 => of_qos(class(pick(&["min-threshold", "max-threshold", "probability"], n), json!(n * 1000))),
            7 => of_qos(class(pick(&["ecn", "mode"], n), json!(pick(&["disable", "strict"], n)))),
            8 => json!({ "qos": { "pfc-watchdog": { "robustness": n } } }),
            9 => json!({ "interface": { "swp1": { "qos": { "pfc-watchdog": { "state": pick(&["enable", "disabled"], n) } } } } }),
            10 => json!({ "qos": { "roce": { "mode": pick(&["lossless", "lossy"], n) } } }),
            _ => json!({ "qos": { "traffic-pool": { (pick(&["default-lossless", "default-lossy"], n)): { "memory-percent": 50 } } } }),
        }
    });
    proptest::collection::vec(place, 0..12).prop_map(|all| {
        let mut config = json!({});
        all.iter().for_each(|place| set(&mut config, place));
        config
    })
}

proptest! {
    /// Whatever is there: the documents fit, what they make is in sync, and what is undone is the
    /// port's as it was.
    #[test]
    fn what_is_done_is_in_sync(config in configs()) {
        for (kind, resource) in [(&SwitchQos as &dyn ResourceKind, qos()), (&SwitchEcn, ecn(1_000_000, 2_000_000, 10)), (&SwitchBuffer, buffer(40))] {
            let first = diff(kind, &resource, &config);
            if first.refusal.is_none() && !first.is_met() {
                let done = patched(&config, &edits(&first));
                let after = diff(kind, &resource, &done);
                prop_assert!(after.is_met(), "{after:?}");
                for family in ["mapping", "pfc", "congestion-control", "egress-scheduler"] {
                    for others in ["theirs", "default-global"] {
                        prop_assert_eq!(done.pointer(&format!("/qos/{family}/{others}")), config.pointer(&format!("/qos/{family}/{others}")));
                    }
                }
                let back = patched(&done, &edits(&kind.undo(&resource, &first.before, &answers(&resource, &done, Some(&done)))));
                let undone = kind.undo(&resource, &first.before, &answers(&resource, &back, Some(&back)));
                prop_assert!(undone.is_met(), "{undone:?}");
            }
        }
    }
}
