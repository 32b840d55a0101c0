//! railwright on switches with Cumulus Linux: plan, apply, drift, removal, what is refused, what
//! others have in hand, and bad days.

use crate::journeys::Fabric;
use crate::rig::Switch;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Two ports of a leaf, with all that the modules of switches declare.
pub const SPEC: &str = "cluster: fab
fabric: { kind: rocev2, mtu: 9000, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } } }
ssh: { host_keys: known_hosts, identities: [id] }
switches:
  - name: leaf1
    os: cumulus
    ssh: { user: root, address: 127.0.0.1, port: PORT }
    ports: \"swp[2,3]\"
    mtu: 9000
    cable_length_m: 40
    ecn: { min_bytes: 1000000, max_bytes: 2000000, probability_percent: 10 }
    watchdog: true
rollout: { switch_rollback_timer: TIMER }
";

fn start(story: &str, timer: &str) -> Option<Fabric> {
    Some(Fabric::of(
        Switch::start_cumulus(&format!("cumulus-{story}"))?,
        SPEC,
        timer,
    ))
}

impl Fabric {
    pub fn applied(&self) -> Value {
        let state: Value =
            serde_json::from_str(&self.switch.must("cat /var/lib/cumulus-fake/state.json"))
                .unwrap();
        state["applied"].clone()
    }

    pub fn startup(&self) -> Value {
        let saved: Value =
            serde_json::from_str(&self.switch.must("cat /etc/nvue.d/startup.yaml")).unwrap();
        saved[1]["set"].clone()
    }

    pub fn nv(&self, words: &str) {
        self.switch.must(&format!("nv {words}"));
    }

    fn goes_on(&self) {
        self.is_resumed();
        self.has_no_changes();
        assert_eq!(self.applied(), self.startup());
    }
}

/// All but what stays when the classes are undone: profiles of ours that ports may share, and
/// the division of the buffers.
pub fn of_others(applied: &Value) -> Value {
    let mut applied = applied.clone();
    let Some(qos) = applied.get_mut("qos").and_then(Value::as_object_mut) else {
        return applied;
    };
    qos.remove("traffic-pool");
    for profiles in qos.values_mut().filter_map(Value::as_object_mut) {
        profiles.retain(|name, _| name != "railwright");
    }
    qos.retain(|_, profiles| profiles != &json!({}));
    if qos.is_empty() {
        applied.as_object_mut().unwrap().remove("qos");
    }
    applied
}

#[test]
fn a_leaf_is_planned_applied_found_changed_and_given_back() {
    let Some(fabric) = start("leaf", "60s") else {
        return;
    };
    let delivered = fabric.applied();
    insta::assert_snapshot!("cumulus_plan", fabric.run(&["plan", "inv"]));
    assert_eq!(fabric.applied(), delivered, "a plan changes nothing");
    insta::assert_snapshot!("cumulus_apply", fabric.run(&["apply", "inv", "--yes"]));
    assert_eq!(
        fabric.applied(),
        fabric.startup(),
        "what is applied is saved"
    );
    insta::assert_snapshot!("cumulus_nothing", fabric.run(&["plan", "inv"]));
    let leaked = std::process::Command::new("grep")
        .args(["-rl", "never-to-be-seen"])
        .arg(fabric.place.path())
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&leaked.stdout),
        "",
        "users and passwords stay on the switch"
    );

    fabric.nv("unset interface swp3 qos mapping profile");
    fabric.nv("set interface swp2 link mtu 1500");
    fabric.nv("config apply -y");
    insta::assert_snapshot!("cumulus_drift", fabric.run(&["drift", "inv"]));
    fabric.run(&["apply", "inv", "--yes"]);
    fabric.has_no_changes();
    assert_eq!(
        fabric.applied(),
        fabric.startup(),
        "what was fixed is saved"
    );

    fabric.without_class();
    insta::assert_snapshot!("cumulus_removal", fabric.run(&["apply", "inv", "--yes"]));
    let mut expected = delivered;
    for port in ["swp2", "swp3"] {
        expected["interface"][port]["link"]["mtu"] = json!(9000);
    }
    assert_eq!(of_others(&fabric.applied()), expected);
    assert_eq!(fabric.applied(), fabric.startup());
}

/// Where `qos roce` gives the port what is desired, nothing of it is changed.
#[test]
fn a_switch_with_roce_is_left_as_it_is() {
    let Some(fabric) = start("roce", "60s") else {
        return;
    };
    let spec = SPEC
        .replace("    mtu: 9000\n", "")
        .replace("cable_length_m: 40", "cable_length_m: 100")
        .replace("    watchdog: true\n", "");
    let spec = spec.replace(
        "min_bytes: 1000000, max_bytes: 2000000, probability_percent: 10",
        "min_bytes: 150000, max_bytes: 1500000, probability_percent: 100",
    );
    fabric.place.write(
        "inv/cluster.yaml",
        spec.replace("PORT", &fabric.switch.server.port.to_string())
            .replace("TIMER", "60s"),
    );
    fabric.nv("set qos roce");
    fabric.nv("config apply -y");
    let said = fabric.run(&["plan", "inv"]);
    assert!(said.contains("No changes."), "{said}");
    fabric.nv("set qos roce mode lossy");
    fabric.nv("config apply -y");
    let said = fabric.run(&["plan", "inv"]);
    assert!(
        said.contains("`qos roce mode lossy` pauses nothing"),
        "{said}"
    );
}

/// What NVUE refuses changes nothing, its own words are told, and nothing of ours waits.
#[test]
fn a_change_that_is_refused_changes_nothing() {
    let Some(fabric) = start("refused", "60s") else {
        return;
    };
    fabric.switch.fault(
        "refuse",
        "the ASIC of this switch has no room for another profile",
    );
    let before = fabric.applied();
    insta::assert_snapshot!("cumulus_refused", fabric.run(&["apply", "inv", "--yes"]));
    assert_eq!(
        (fabric.applied(), fabric.startup()),
        (before.clone(), before)
    );
    assert_eq!(fabric.switch.must("nv config diff -o json"), "");
}

/// Somebody's changes that wait are neither applied along nor dropped.
#[test]
fn what_somebody_else_has_in_hand_is_left_alone() {
    let Some(fabric) = start("pending", "60s") else {
        return;
    };
    let before = fabric.applied();
    fabric.nv("set interface swp5 link mtu 1500");
    insta::assert_snapshot!("cumulus_pending", fabric.run(&["apply", "inv", "--yes"]));
    assert_eq!(fabric.applied(), before);
    assert!(
        fabric
            .switch
            .sh("nv config diff -o json")
            .out
            .contains("1500"),
        "it still waits"
    );
    fabric.nv("config detach");
    assert!(
        fabric
            .run(&["apply", "inv", "--yes"])
            .contains("--- exit 0 ---")
    );
    assert!(fabric.applied()["interface"].get("swp5").is_none());
}

/// Without auto-save what is applied is saved after it was confirmed; what is not saved is
/// reported.
#[test]
fn what_is_not_saved_is_told_and_saved() {
    let Some(mut fabric) = start("saved", "60s") else {
        return;
    };
    fabric.nv("set system config auto-save state disabled");
    fabric.nv("config apply -y");
    fabric.nv("config save");
    let unsaved = fabric.switch.must("cat /etc/nvue.d/startup.yaml");
    assert!(
        fabric
            .run(&["apply", "inv", "--yes"])
            .contains("--- exit 0 ---")
    );
    assert_eq!(fabric.applied(), fabric.startup());
    fabric.switch.write("/etc/nvue.d/startup.yaml", &unsaved);
    let drift = fabric.run(&["drift", "inv"]);
    assert!(
        drift.contains(", persisted:") && !drift.contains(", running:"),
        "{drift}"
    );
    let steps = fabric.switch.log("steps").len();
    assert!(
        fabric
            .run(&["apply", "inv", "--yes"])
            .contains("--- exit 0 ---")
    );
    assert_eq!(
        fabric.switch.log("steps").len(),
        steps,
        "nothing was applied"
    );
    fabric.switch.reboot();
    fabric.has_no_changes();
}

/// Every connection breaks in the middle: NVUE goes on with it, and we find it again over a new
/// one.
#[test]
fn a_connection_that_breaks_in_the_middle_is_found_again() {
    let Some(fabric) = start("cut", "60s") else {
        return;
    };
    let said = fabric
        .switch
        .cut_after(1, || fabric.run(&["apply", "inv", "--yes"]));
    assert!(said.contains("--- exit 0 ---"), "{said}");
    fabric.has_no_changes();
    assert_eq!(fabric.applied(), fabric.startup());
}

/// An apply that fails half way is rolled back.
#[test]
fn an_apply_that_fails_half_way_is_taken_back() {
    let Some(fabric) = start("half", "60s") else {
        return;
    };
    let before = fabric.applied();
    fabric.switch.fault("fail-after", "1");
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("--- exit 1 ---") && said.contains("switchd did not come back"),
        "{said}"
    );
    fabric.switch.fix("fail-after");
    let since = Instant::now();
    while fabric.applied() != before {
        assert!(
            since.elapsed() < Duration::from_secs(120),
            "the switch was not taken back: {}",
            fabric.applied()
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(fabric.startup(), before);
}

/// A port that has no link any more after a change is no proof of it: it is rolled back.
#[test]
#[ignore = "long: make test-deep"]
fn a_port_that_does_not_come_up_again_is_taken_back() {
    let Some(fabric) = start("dark", "120s") else {
        return;
    };
    let before = fabric.applied();
    fabric.switch.fault("unplugged-swp3", "");
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("--- exit 1 ---") && said.contains("not up again 60 s after it: swp3"),
        "{said}"
    );
    assert_eq!(
        (fabric.applied(), fabric.startup()),
        (before.clone(), before)
    );
}

/// railwright dies in the middle and nobody goes on: the switch takes everything back by itself,
/// and what others applied since stays.
#[test]
#[ignore = "long: make test-deep"]
fn a_switch_that_is_left_alone_comes_back_by_itself() {
    let Some(fabric) = start("left", "20s") else {
        return;
    };
    let mut before = fabric.applied();
    fabric.switch.fault("hang-after", "1");
    fabric.dies_in_the_middle();
    assert!(fabric.applied() != before, "it was in the middle");
    fabric.switch.fix("hang-after");
    fabric
        .switch
        .sh("until nv config diff applied startup -o json; do sleep 0.1; done");
    fabric.nv("set system hostname leaf9");
    fabric.nv("set interface swp5 link mtu 4321");
    fabric.nv("config apply -y");
    before["system"]["hostname"] = json!("leaf9");
    before["interface"]["swp5"]["link"]["mtu"] = json!(4321);
    let since = Instant::now();
    while fabric.applied() != before || fabric.startup() != before {
        assert!(
            since.elapsed() < Duration::from_secs(180),
            "the switch was not taken back: {}",
            fabric.applied()
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    fabric.goes_on();
}

/// NVUE takes nothing any more when the rollback timer fires: what others saved since stays saved.
#[test]
#[ignore = "long: make test-deep"]
fn what_others_saved_stays_where_nothing_can_be_taken_back() {
    let Some(fabric) = start("theirs", "20s") else {
        return;
    };
    fabric.switch.fault("hang-after", "1");
    fabric.dies_in_the_middle();
    fabric.switch.fix("hang-after");
    fabric
        .switch
        .sh("until nv config diff applied startup -o json; do sleep 0.1; done");
    fabric.nv("set interface swp6 link mtu 1300");
    fabric.nv("config apply -y");
    fabric.switch.fault("refuse", "after a breakout");
    let both = fabric.applied();
    fabric.switch.must(
        "t=0; until cat /var/lib/railwright/rollbacks/*/reverted || [ $t = 180 ]; do sleep 1; t=$((t \
         + 1)); done",
    );
    let resumed = fabric.run(&["resume", "inv"]);
    assert!(resumed.contains("NOT ALL ROLLED BACK"), "{resumed}");
    assert_eq!((fabric.applied(), fabric.startup()), (both.clone(), both));
}

/// The power goes in the middle: what was not saved is gone.
#[test]
#[ignore = "long: make test-deep"]
fn a_switch_without_power_in_the_middle_is_as_it_was() {
    let Some(mut fabric) = start("power", "60s") else {
        return;
    };
    let before = fabric.applied();
    fabric.switch.fault("hang-after", "1");
    let mut run = fabric.hangs_in_the_middle();
    fabric.switch.fix("hang-after");
    fabric.switch.reboot();
    run.wait().unwrap();
    assert_eq!(fabric.applied(), before);
    fabric.goes_on();
}

/// A flash that is full keeps what is applied from being saved, and the automatic rollback puts
/// both back.
#[test]
fn a_full_flash_loses_no_saved_configuration() {
    let Some(fabric) = start("flash", "60s") else {
        return;
    };
    let before = fabric.applied();
    fabric.switch.fault("full-flash", "1");
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("--- exit 1 ---") && said.contains("No space left on device"),
        "{said}"
    );
    fabric.switch.fix("full-flash");
    assert_eq!(
        (fabric.applied(), fabric.startup()),
        (before.clone(), before)
    );
}

/// A switch whose NVUE does not answer is unknown, and nothing is done to it.
#[test]
fn a_switch_whose_nvue_is_away_is_unknown() {
    let Some(fabric) = start("away", "60s") else {
        return;
    };
    fabric.switch.fault("nvued-away", "1");
    let said = fabric.run(&["plan", "inv"]);
    assert!(
        said.contains("Nothing could be compared with the spec")
            && said.contains("nv ended with status 1"),
        "{said}"
    );
}

/// What the fake refuses, each seen once, by its data.
#[test]
fn the_fake_refuses_what_its_data_says() {
    let Some(fabric) = start("data", "60s") else {
        return;
    };
    let refused = |operations: Value, why: &str| {
        fabric
            .switch
            .write("/tmp/x.yaml", &json!([{ "set": operations }]).to_string());
        let outcome = fabric
            .switch
            .sh("nv config patch /tmp/x.yaml && nv config apply -y");
        assert!(
            outcome.code == Some(1) && (outcome.out + &outcome.err).contains(why),
            "{operations} {why}"
        );
        fabric.switch.sh("nv config detach");
    };
    let rules = [
        "pools",
        "one-lossless-pool",
        "shares",
        "thresholds",
        "bound",
        "pause",
        "watchdog",
    ];
    let data = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fakes/cumulus/refusals/rules.json"
    ))
    .unwrap();
    let data: Value = serde_json::from_str(&data).unwrap();
    assert_eq!(
        data.as_object().unwrap().len(),
        rules.len() + 1,
        "a rule that nobody tries"
    );
    let of_port =
        |family: &str, name: &str| json!({ "swp1": { "qos": { family: { "profile": name } } } });
    let class = |family: &str, of_class: Value| json!({ "qos": { family: { "x": { "traffic-class": { "3": of_class } } } } });
    refused(
        json!({ "interface": { "swp1": { "link": { "mtu": 9300 } } } }),
        "Config invalid at interface.swp1.link.mtu: 9300 is not in the range 552..9216",
    );
    refused(
        json!({ "qos": { "no-such": { "x": 1 } } }),
        "is not one of the places",
    );
    refused(
        json!({ "qos": { "traffic-pool": { "default-lossy": { "memory-percent": 60 }, "mc-lossy": { "memory-percent": 41 } } } }),
        "101 percent",
    );
    refused(
        json!({ "qos": { "traffic-pool": { "default-lossless": { "memory-percent": 1 }, "roce-lossless": { "memory-percent": 1 } } } }),
        "one lossless",
    );
    let shares = json!({ "1": { "bw-percent": 60 }, "2": { "bw-percent": 50 } });
    refused(
        json!({ "qos": { "egress-scheduler": { "x": { "traffic-class": shares } } } }),
        "110 percent",
    );
    refused(
        class(
            "congestion-control",
            json!({ "min-threshold": 2, "max-threshold": 1 }),
        ),
        "above max-threshold",
    );
    refused(
        json!({ "interface": of_port("pfc", "nowhere") }),
        "profile nowhere, which is not defined",
    );
    let both = json!({ "swp1": { "qos": { "pfc": { "profile": "x" }, "link-pause": { "profile": "x" } } } });
    let profiles = json!({ "pfc": { "x": { "switch-priority": { "3": {} } } }, "link-pause": { "x": { "rx": "enable" } } });
    refused(
        json!({ "interface": both, "qos": profiles }),
        "link pause and PFC",
    );
    refused(
        json!({ "interface": { "swp1": { "qos": { "pfc-watchdog": {} } } } }),
        "no PFC",
    );
}
