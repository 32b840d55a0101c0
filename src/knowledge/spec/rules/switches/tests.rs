//! Every value of a switch that no switch takes, and every name that stands for two devices.

use crate::spec::model::{Dscp, Ecn, PfcWatchdogSpec, SwitchGroup, SwitchRole, WatchdogAction};
use crate::spec::rules::tests::{check, problems};
use crate::spec::{SourceFile, load_spec};
use railwright_resource::switch::SwitchSystem;

#[test]
fn a_switch_takes_what_its_system_takes() {
    let switch = |keys: &str| format!("switches: [{{ name: s1, {keys} }}]");
    for (keys, expected) in [
        (
            "os: sonic, model: SN5600, role: leaf, port_speed_gbps: 400, cable_length_m: 40, mtu: \
             9216, pfc: [3], pause: false, trust: dscp",
            &[][..],
        ),
        ("os: sonik", &[("RW0108", "sonik")]),
        ("role: core", &[("RW0108", "core")]),
        ("trust: cos", &[("RW0108", "cos")]),
        ("speed: 400", &[("RW0105", "speed")]),
        ("model: ' '", &[("RW0160", "' '")]),
        ("mtu: 67", &[("RW0160", "67")]),
        ("mtu: 9217", &[("RW0160", "9217")]),
        ("os: eos, mtu: 9214", &[]),
        ("os: eos, mtu: 9215", &[("RW0160", "9215")]),
        ("os: cumulus, mtu: 551", &[("RW0160", "551")]),
        ("port_speed_gbps: 300", &[("RW0160", "300")]),
        ("cable_length_m: 0", &[("RW0160", "0")]),
        ("cable_length_m: 10000", &[("RW0160", "10000")]),
        ("pfc: [3, 8]", &[("RW0160", "8")]),
        ("pfc: [3, 4, 3]", &[("RW0160", "3")]),
        ("dscp: { 26: 3, 0: 0, 63: 7 }", &[]),
        ("dscp: { 26: 8 }", &[("RW0160", "8")]),
        ("dscp: { 64: 3 }", &[("RW0106", "64")]),
        ("dscp: { 026: 3 }", &[("RW0106", "026")]),
        ("dscp: { af31: 3 }", &[("RW0106", "af31")]),
        ("dscp: { '': 3 }", &[("RW0106", "''")]),
        ("dscp: [26]", &[("RW0106", "[")]),
        (
            "ecn: { min_bytes: 0, max_bytes: 1, probability_percent: 100, round_trip_us: 12 }",
            &[],
        ),
        ("ecn: 3", &[("RW0106", "3")]),
        ("ecn: {}", &[]),
        ("ecn: { min_bytes: 9, max_bytes: 9 }", &[("RW0160", "9")]),
        ("ecn: { min_bytes: 9 }", &[("RW0160", "9")]),
        ("ecn: { max_bytes: 9 }", &[("RW0160", "9")]),
        ("ecn: { min: 9 }", &[("RW0105", "min")]),
        ("ecn: { probability_percent: 101 }", &[("RW0160", "101")]),
        ("ecn: { round_trip_us: 0 }", &[("RW0160", "0")]),
        (
            "watchdog: { detection_ms: 200, restoration_ms: 200, polling_ms: 200, action: drop }",
            &[],
        ),
        ("watchdog: on", &[("RW0106", "on")]),
        ("watchdog: { action: kill }", &[("RW0108", "kill")]),
        ("watchdog: { detection_ms: 99 }", &[("RW0160", "99")]),
        ("watchdog: { detection_ms: 5001 }", &[("RW0160", "5001")]),
        (
            "watchdog: { restoration_ms: 60001 }",
            &[("RW0160", "60001")],
        ),
        ("watchdog: { polling_ms: 1001 }", &[("RW0160", "1001")]),
        (
            "watchdog: { detection_ms: 100, restoration_ms: 300, polling_ms: 200 }",
            &[("RW0160", "100")],
        ),
        (
            "watchdog: { detection_ms: 300, restoration_ms: 100, polling_ms: 200 }",
            &[("RW0160", "100")],
        ),
        ("maintenance: true", &[]),
    ] {
        check(&switch(keys), expected);
    }
    assert!(
        problems(&switch("os: sonik")).0[0].labels[0]
            .text
            .contains("did you mean `sonic`?")
    );
}

#[test]
fn a_switch_is_one_device() {
    check("switches: [{ name: 'leaf[1-' }]", &[("RW0110", "[1-")]);
    check(
        "switches: [{ name: 'leaf[1-4]' }, { name: 'spine1,leaf3' }]",
        &[("RW0161", "'spine1,leaf3'")],
    );
    check(
        "switches: [{ name: leaf1 }, { name: leaf1 }]",
        &[("RW0161", "leaf1")],
    );
    check(
        "nodes: [{ name: 'n[1-3]' }]\nswitches: [{ name: n2 }]",
        &[("RW0161", "n2")],
    );
    check(
        "switches: [{ name: 'a[1-60000]' }, { name: 'b[1-60000]' }]",
        &[("RW0104", "'b[1-60000]'")],
    );
    let message = |text: &str| problems(text).0[0].message.clone();
    assert_eq!(
        message("switches: [{ name: 'a[1-4]' }, { name: 'a[3-9]' }]"),
        "the switches a[3-4] are in two entries of `switches`"
    );
    assert_eq!(
        message("nodes: [{ name: n1 }]\nswitches: [{ name: n1 }]"),
        "the switch n1 is called like a host"
    );
}

#[test]
fn a_switch_is_written_as_it_is_read() {
    let text = "cluster: c\n\
                switches: [{ name: s1, os: eos, role: spine, dscp: { 26: 3, 48: 6 }, ecn: \
                { min_bytes: 1, max_bytes: 2 }, watchdog: { action: forward }, maintenance: true \
                }]\n";
    let loaded = load_spec(vec![SourceFile {
        name: "c.yaml".into(),
        text: text.into(),
    }])
    .unwrap();
    let switch = &loaded.spec.switches[0];
    assert_eq!(
        (switch.os, switch.role, switch.maintenance),
        (Some(SwitchSystem::Eos), Some(SwitchRole::Spine), true)
    );
    assert_eq!(switch.dscp.as_ref().unwrap().get(&Dscp(48)), Some(&6));
    assert_eq!(
        switch
            .ecn
            .as_ref()
            .and_then(Ecn::thresholds)
            .unwrap()
            .max_bytes,
        Some(2)
    );
    assert_eq!(
        switch
            .watchdog
            .as_ref()
            .and_then(PfcWatchdogSpec::times)
            .unwrap()
            .action,
        Some(WatchdogAction::Forward)
    );
    let json = serde_json::to_string(switch).unwrap();
    assert_eq!(&serde_json::from_str::<SwitchGroup>(&json).unwrap(), switch);
}
