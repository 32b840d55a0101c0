//! railwright on switches with EOS: plan, apply, drift, removal, what is refused, what others have
//! in hand, and bad days. What is the same over SSH and over eAPI is told of both; what only eAPI
//! has is in `eapi.rs`.

use crate::https::PASSWORD;
use crate::journeys::Fabric;
use crate::rig::Switch;
use crate::support::Place;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Two ports of a leaf, with all that the modules of switches declare.
pub const SPEC: &str = "cluster: fab
fabric: { kind: rocev2, mtu: 9000, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 }, cable_length_m: 5 } }
ssh: { host_keys: known_hosts, identities: [id] }
switches:
  - name: leaf1
    os: eos
    ssh: { user: root, address: 127.0.0.1, port: PORT }
    ports: \"Ethernet[2,3]/1\"
    mtu: 9214
    ecn: { min_bytes: 1000000, max_bytes: 2000000, probability_percent: 10 }
    watchdog: true
rollout: { switch_rollback_timer: TIMER }
";

/// How the switch is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Ssh,
    Eapi,
}

const WAYS: [Way; 2] = [Way::Ssh, Way::Eapi];
const OVER_SSH: &str = "ssh: { user: root, address: 127.0.0.1, port: PORT }";
const OVER_EAPI: &str = "eapi: { address: 127.0.0.1, port: PORT, user: operator, password: \
                         { file: password }, certificate: \"{name}.pem\" }";

impl Way {
    pub fn start(self, story: &str, timer: &str) -> Option<Fabric> {
        if self == Way::Ssh {
            return Some(Fabric::of(
                Switch::start_eos(&format!("eos-{story}"))?,
                SPEC,
                timer,
            ));
        }
        let switch = Switch::start_eapi(&format!("eapi-{story}"))?;
        let place = Place::new();
        let spec = SPEC.replace(OVER_SSH, OVER_EAPI).replace(
            "ssh: { host_keys: known_hosts, identities: [id] }\n",
            "# No host has keys.\n",
        );
        assert!(!spec.contains("ssh:"), "{spec}");
        place.write(
            "inv/cluster.yaml",
            spec.replace("PORT", &switch.api().port())
                .replace("TIMER", timer),
        );
        place
            .write("inv/leaf1.pem", switch.api().certificate())
            .write("inv/password", format!("{PASSWORD}\n"));
        Some(Fabric { switch, place })
    }
}

fn start(story: &str, timer: &str) -> Option<Fabric> {
    Way::Ssh.start(story, timer)
}

impl Fabric {
    pub fn runs(&self) -> Value {
        let state: Value =
            serde_json::from_str(&self.switch.must("cat /run/eos-fake/state.json")).unwrap();
        state["running"].clone()
    }

    pub fn flash(&self) -> Value {
        let ask = "PYTHONPATH=/opt/eos-fake/lib python3 -c 'import home, json; \
                   print(json.dumps(home.startup()))'";
        serde_json::from_str(&self.switch.must(ask)).unwrap()
    }

    /// Commands of somebody on the switch; the answer.
    pub fn cli(&self, lines: &[&str]) -> String {
        self.switch
            .must(&format!("FastCli -p 15 -c '{}'", lines.join("\n")))
    }

    pub fn sessions(&self) -> Vec<String> {
        let said: Value =
            serde_json::from_str(&self.cli(&["show configuration sessions detail | json"]))
                .unwrap();
        said["sessions"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    }

    /// What railwright says, without what is of this run.
    pub fn says(&self, words: &[&str]) -> String {
        let said = self.run(words);
        match &self.switch.api {
            Some(api) => said
                .replace(&format!(":{}", api.port()), ":PORT")
                .replace(&api.fingerprint(), "FINGERPRINT"),
            None => said,
        }
    }

    /// The files of the inventory's folder, and of what railwright remembers beside it, that hold a
    /// text.
    fn found(&self, poison: &str) -> String {
        let grep = std::process::Command::new("grep")
            .args(["-rlF", poison])
            .arg(self.place.path())
            .output()
            .unwrap();
        String::from_utf8(grep.stdout)
            .unwrap()
            .replace(&self.place.path().display().to_string(), "")
    }

    pub fn rewrite(&self, change: impl Fn(String) -> String) {
        let spec = std::fs::read_to_string(self.place.path().join("inv/cluster.yaml")).unwrap();
        self.place.write("inv/cluster.yaml", change(spec));
    }

    pub fn comes_to(&self, desired: &Value) {
        let since = Instant::now();
        while self.runs() != *desired || self.flash() != *desired {
            assert!(
                since.elapsed() < Duration::from_secs(180),
                "the switch was not taken back: {}",
                self.runs()
            );
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    pub fn resumes(&self) {
        self.is_resumed();
        self.has_no_changes();
        assert_eq!(self.runs(), self.flash());
    }
}

/// Both ways say the same, to the letter.
#[test]
fn a_leaf_is_planned_applied_found_changed_and_given_back() {
    for way in WAYS {
        let Some(fabric) = way.start("leaf", "60s") else {
            return;
        };
        let delivered = fabric.runs();
        insta::assert_snapshot!("eos_plan", fabric.says(&["plan", "inv"]));
        assert_eq!(
            (fabric.runs(), fabric.sessions().len()),
            (delivered.clone(), 0),
            "a plan changes nothing"
        );
        insta::assert_snapshot!("eos_apply", fabric.says(&["apply", "inv", "--yes"]));
        assert_eq!(fabric.runs(), fabric.flash(), "what runs is saved");
        assert_eq!(fabric.sessions(), [""; 0], "nothing of ours waits");
        insta::assert_snapshot!("eos_nothing", fabric.says(&["plan", "inv"]));

        // Somebody changes two ports by hand, and saves one of the changes.
        fabric.cli(&[
            "configure",
            "interface Ethernet3/1",
            "qos trust cos",
            "end",
            "write memory",
        ]);
        fabric.cli(&["configure", "interface Ethernet2/1", "mtu 1500"]);
        insta::assert_snapshot!("eos_drift", fabric.says(&["drift", "inv"]));
        fabric.says(&["apply", "inv", "--yes"]);
        assert_eq!(fabric.runs(), fabric.flash(), "what was fixed is saved");

        fabric.without_class();
        fabric.rewrite(|spec| {
            spec.replace(
                ", lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 }, \
                 cable_length_m: 5 }",
                "",
            )
        });
        insta::assert_snapshot!("eos_removal", fabric.says(&["apply", "inv", "--yes"]));
        let mut expected = delivered;
        expected["interface Ethernet2/1"] = json!({ "mtu 9214": {} });
        expected["interface Ethernet3/1"] = json!({ "mtu 9214": {} });
        assert_eq!(
            (fabric.runs(), fabric.flash()),
            (expected.clone(), expected)
        );
        // Secrets of the switch stay on it, and the password is where the spec finds it, and
        // nowhere else: not in plan, state, journal or log.
        assert_eq!(fabric.found("never-to-be-seen"), "");
        assert_eq!(
            fabric.found(PASSWORD),
            if way == Way::Eapi {
                "/inv/password\n"
            } else {
                ""
            }
        );
        if way == Way::Eapi {
            fabric.sent_no_password();
        }
    }
}

/// What only runs is lost at the next reload, and is told so; saving it is no change of what runs.
#[test]
fn what_is_not_saved_is_told_and_saved() {
    let Some(mut fabric) = start("saved", "60s") else {
        return;
    };
    let before = fabric.switch.must("cat /mnt/flash/startup-config");
    assert!(
        fabric
            .run(&["apply", "inv", "--yes"])
            .contains("--- exit 0 ---")
    );
    fabric.switch.write("/mnt/flash/startup-config", &before);
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
        "nothing was committed"
    );
    fabric.switch.reboot();
    fabric.has_no_changes();
}

/// The beginning of a configuration says nothing of what comes after it: nothing is compared with
/// it, and nothing changed.
#[test]
fn a_configuration_that_is_cut_off_is_not_compared() {
    let Some(fabric) = start("cut-off", "60s") else {
        return;
    };
    let before = fabric.runs();
    for lines in ["6", "14", "20"] {
        fabric.switch.fault("cut-off", lines);
        let plan = fabric.run(&["plan", "inv"]);
        let is_told = plan.contains("the configuration is cut off before its `end`")
            && plan.contains("(RW0849)");
        assert!(
            is_told && !plan.contains(" ~ switch/leaf1") && plan.ends_with("--- exit 3 ---\n"),
            "{plan}"
        );
        let applied = fabric.run(&["apply", "inv", "--yes"]);
        assert!(
            !applied.contains("--- exit 0 ---") && fabric.runs() == before,
            "{applied}"
        );
    }
    fabric.switch.fix("cut-off");
    assert!(
        fabric
            .run(&["plan", "inv"])
            .contains("mtu (running)          1500 -> 9214")
    );
}

/// A port that has no link any more after a change is no proof of it: it is rolled back.
#[test]
#[ignore = "long: make test-deep"]
fn a_port_that_does_not_come_up_again_is_taken_back() {
    let Some(fabric) = start("dark", "120s") else {
        return;
    };
    let before = fabric.runs();
    fabric.switch.fault("unplugged-Ethernet2-1", "");
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("--- exit 1 ---") && said.contains("not up again 60 s after it: Ethernet2/1"),
        "{said}"
    );
    fabric.comes_to(&before);
}

/// What EOS refuses changes nothing, its own words are told, and no session of ours is left.
#[test]
fn a_change_that_is_refused_changes_nothing() {
    let Some(fabric) = start("refused", "60s") else {
        return;
    };
    fabric.switch.fault(
        "refuse",
        "Unavailable command (not supported on this hardware platform)",
    );
    let before = fabric.runs();
    insta::assert_snapshot!("eos_refused", fabric.run(&["apply", "inv", "--yes"]));
    assert_eq!(
        (fabric.runs(), fabric.flash(), fabric.sessions().len()),
        (before.clone(), before, 0)
    );
}

/// Somebody's session that waits, and a commit that waits for its confirmation, stop us; both stay
/// as they are.
#[test]
fn what_somebody_else_has_in_hand_is_left_alone() {
    let Some(fabric) = start("pending", "60s") else {
        return;
    };
    let before = fabric.runs();
    fabric.cli(&[
        "configure session night-shift",
        "interface Ethernet4/1",
        "mtu 1500",
    ]);
    insta::assert_snapshot!("eos_pending", fabric.run(&["apply", "inv", "--yes"]));
    assert_eq!(
        (fabric.runs(), fabric.sessions()),
        (before, vec!["night-shift".to_owned()])
    );
    fabric.cli(&["configure session night-shift", "commit timer 01:00:00"]);
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("somebody's configuration session waits")
            && said.contains("nothing was changed: night-shift"),
        "{said}"
    );
    fabric.cli(&["configure session night-shift commit"]);
    // One that an earlier try of ours left is dropped.
    fabric.cli(&[
        "configure session railwright-1",
        "interface Ethernet4/1",
        "mtu 1600",
    ]);
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(said.contains("--- exit 0 ---"), "{said}");
    assert_eq!(
        (
            &fabric.runs()["interface Ethernet4/1"],
            fabric.sessions().len()
        ),
        (&json!({ "mtu 1500": {} }), 0)
    );
}

/// A profile is of many ports: what contradicts a resource in it is blocked, with what to write
/// there.
#[test]
fn a_port_whose_profile_says_otherwise_is_held() {
    let Some(fabric) = start("profile", "60s") else {
        return;
    };
    let text = fabric.switch.must("cat /mnt/flash/startup-config");
    let profile = "!\n\
                   qos profile ROCE\n   qos trust cos\n\
                   !\n\
                   interface Ethernet2/1\n   service-profile ROCE\n";
    fabric.switch.write(
        "/tmp/with-profile",
        &text.replace("interface Ethernet2/1\n", profile),
    );
    fabric.cli(&["configure replace file:/tmp/with-profile", "write memory"]);
    let said = fabric.run(&["plan", "inv"]);
    assert!(
        said.contains("Ethernet2/1 has the QoS profile ROCE, which says"),
        "{said}"
    );
}

/// A signing key of hosts that is not there stops what needs it, and nothing else.
#[test]
fn what_a_switch_does_not_need_does_not_stop_its_plan() {
    let Some(fabric) = start("keys", "60s") else {
        return;
    };
    let repositories = "repositories: \
                        [{ name: ours, url: \"https://example.invalid/\", suite: ./, key: keys/absent.asc }]\n";
    // A host that nobody answers for.
    fabric.rewrite(|spec| {
        format!(
            "{spec}nodes: [{{ name: gpu1, os: ubuntu-22.04, ssh: {{ user: root, address: \
             127.0.0.1, port: 1 }} }}]\n\
             {repositories}"
        )
    });
    let said = fabric.run(&["plan", "inv"]);
    assert!(
        said.contains("RW0214") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    let said = fabric.run(&["plan", "inv", "--target", "switch/leaf1", "-o", "leaf.plan"]);
    assert!(
        !said.contains("RW0214")
            && said.contains("1500 -> 9214")
            && said.ends_with("--- exit 0 ---\n"),
        "{said}"
    );
    let said = fabric.run(&["apply", "leaf.plan", "--yes"]);
    assert!(said.ends_with("--- exit 0 ---\n"), "{said}");
    assert_eq!(fabric.runs(), fabric.flash());
}

/// Ports that the switch does not have, a port that is divided, and a map of the whole switch.
#[test]
fn ports_and_maps_of_a_switch_are_what_it_has() {
    let Some(fabric) = start("ports", "60s") else {
        return;
    };
    fabric.rewrite(|spec| spec.replace("Ethernet[2,3]/1", "Ethernet[2,9]/1"));
    let said = fabric.run(&["plan", "inv"]);
    assert!(
        said.contains("the switch has no port Ethernet9/1; it has Ethernet"),
        "{said}"
    );
    fabric.rewrite(|spec| {
        spec.replace("Ethernet[2,9]/1", "Ethernet8/[1-4]")
            .replace("dscp: 26", "dscp: 10")
    });
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("--- exit 0 ---") && said.contains("all ports that trust DSCP"),
        "{said}"
    );
    assert_eq!(
        fabric.runs()["qos map dscp 10 to traffic-class 3"],
        json!({})
    );
    let divided = &fabric.runs()["interface Ethernet8/3"];
    assert!(
        divided.get("mtu 9214").is_some()
            && divided["uc-tx-queue 3"]
                .get("bandwidth guaranteed 100")
                .is_some(),
        "{divided}"
    );
}

/// A host that is no switch with EOS, and one whose command line is away, are unknown.
#[test]
fn a_switch_that_does_not_answer_is_unknown() {
    let Some(fabric) = start("away", "60s") else {
        return;
    };
    fabric.switch.fault("cli-away", "1");
    let said = fabric.run(&["plan", "inv"]);
    assert!(said.contains("FastCli ended with status 65"), "{said}");
    fabric
        .switch
        .must("mv /usr/local/bin/FastCli /usr/local/bin/away");
    let said = fabric.run(&["plan", "inv"]);
    assert!(
        said.contains("FastCli is not on this host; is it a switch with EOS?"),
        "{said}"
    );
}

/// Every connection breaks in the middle of the commit: the switch goes on with it, and we find it
/// again over a new one.
#[test]
fn a_connection_that_breaks_in_the_commit_is_found_again() {
    for way in WAYS {
        let Some(fabric) = way.start("cut", "60s") else {
            return;
        };
        let said = fabric
            .switch
            .cut_after(1, || fabric.run(&["apply", "inv", "--yes"]));
        assert!(said.contains("--- exit 0 ---"), "{said}");
        fabric.has_no_changes();
        assert_eq!(fabric.runs(), fabric.flash());
    }
}

/// A commit that fails half way is rolled back.
#[test]
fn a_commit_that_fails_half_way_is_taken_back() {
    let Some(fabric) = start("half", "60s") else {
        return;
    };
    let before = fabric.runs();
    fabric.switch.fault("fail-after", "1");
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("--- exit 1 ---") && said.contains("an agent of the hardware did not answer"),
        "{said}"
    );
    fabric.switch.fix("fail-after");
    fabric.comes_to(&before);
}

/// What came into the DSCP map of the whole switch goes again with the ports, and is not in the way
/// of the next try.
#[test]
fn what_came_into_the_map_of_the_switch_is_taken_back() {
    let Some(fabric) = start("map", "60s") else {
        return;
    };
    fabric.rewrite(|spec| spec.replace("dscp: 26", "dscp: 10"));
    let before = fabric.runs();
    fabric.switch.fault("fail-after", "5");
    let said = fabric.run(&["apply", "inv", "--yes"]);
    let told = |line: &String| line.contains("qos map dscp 10");
    assert!(
        said.contains("--- exit 1 ---") && fabric.switch.log("steps").iter().any(told),
        "{said}"
    );
    fabric.switch.fix("fail-after");
    fabric.comes_to(&before);
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(said.contains("--- exit 0 ---"), "{said}");
    fabric.has_no_changes();
}

/// railwright dies in the commit and nobody goes on: the switch takes its ports back by itself, and
/// what others did elsewhere stays.
#[test]
#[ignore = "long: make test-deep"]
fn a_switch_that_is_left_alone_comes_back_by_itself() {
    let Some(fabric) = start("left", "20s") else {
        return;
    };
    // A DSCP that the map of the whole switch does not name yet.
    fabric.rewrite(|spec| spec.replace("dscp: 26", "dscp: 10"));
    let mut before = fabric.runs();
    fabric.switch.fault("hang-after", "1");
    fabric.dies_in_the_middle();
    assert!(fabric.runs() != before, "it was in the middle");
    fabric.switch.fix("hang-after");
    fabric.switch.must(
        "until FastCli -p 15 -c 'show running-config' | grep -A9 Ethernet3/1 | grep -q 9214; do \
         sleep 0.1; done; sleep 1",
    );
    fabric.cli(&[
        "configure",
        "hostname leaf9",
        "interface Ethernet4/1",
        "mtu 4321",
        "end",
        "write memory",
    ]);
    let since = Instant::now();
    before.as_object_mut().unwrap().remove("hostname leaf1");
    before["hostname leaf9"] = json!({});
    before["interface Ethernet4/1"] = json!({ "mtu 4321": {} });
    let saved = || fabric.switch.must("cat /mnt/flash/startup-config");
    while fabric.runs() != before || saved().contains("mtu 9214") {
        assert!(
            since.elapsed() < Duration::from_secs(180),
            "the switch was not taken back: {}",
            fabric.runs()
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(
        fabric.switch.log("replaced"),
        [""; 0],
        "not all of the configuration was replaced"
    );
    assert!(
        saved().contains("mtu 4321") && saved().contains("leaf9"),
        "{}",
        saved()
    );
    fabric.is_resumed();
    fabric.has_no_changes();
}

/// The power goes in the middle: what was not saved is gone, and with it all that is not on the
/// flash.
#[test]
#[ignore = "long: make test-deep"]
fn a_switch_without_power_in_the_middle_is_as_it_was() {
    for way in WAYS {
        let Some(mut fabric) = way.start("power", "60s") else {
            return;
        };
        let before = fabric.runs();
        fabric.switch.fault("hang-after", "1");
        let mut run = fabric.hangs_in_the_middle();
        fabric.switch.fix("hang-after");
        fabric.switch.reboot();
        run.wait().unwrap();
        assert_eq!(fabric.runs(), before);
        fabric.resumes();
    }
}

/// A flash that is full keeps what runs from being saved, and the automatic rollback puts both
/// back.
#[test]
fn a_full_flash_loses_no_saved_configuration() {
    let Some(fabric) = start("flash", "60s") else {
        return;
    };
    let before = fabric.runs();
    fabric.switch.fault("full-flash", "1");
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("--- exit 1 ---") && said.contains("No space left on device"),
        "{said}"
    );
    fabric.switch.fix("full-flash");
    assert_eq!((fabric.runs(), fabric.flash()), (before.clone(), before));
}

/// What the fake refuses, each seen once, by its data; and that it forgets what was not saved,
/// and rolls back what nobody confirmed.
#[test]
fn the_fake_refuses_what_its_data_says() {
    let Some(mut fabric) = start("data", "60s") else {
        return;
    };
    let refused = |lines: &[&str], why: &str| {
        let said = fabric.cli(&[&["configure session x"], lines].concat());
        assert!(said.contains(why), "{lines:?}: {said}");
        fabric.cli(&["configure session x abort"]);
    };
    let port = "interface Ethernet1/1";
    refused(&[port, "mtu 9300"], "% Invalid input (at token 1: '9300')");
    refused(&["no such command"], "% Invalid input (at token 0: 'no')");
    refused(
        &[port, "tx-queue 3"],
        "% Invalid input (at token 0: 'tx-queue')",
    );
    refused(&["interface Ethernet77"], "! Interface does not exist.");
    refused(
        &["qos map traffic-class 7 to tx-queue 1"],
        "% Invalid input",
    );
    let ecn = "random-detect ecn minimum-threshold 2 bytes maximum-threshold 1 bytes";
    refused(
        &[port, "uc-tx-queue 3", ecn],
        "% Minimum threshold must not be above",
    );
    let many: Vec<String> = (0..6)
        .map(|n| format!("configure session s{n}\nend"))
        .collect();
    let said = fabric.cli(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(
        said.contains("% Maximum number of pending sessions has been reached"),
        "{said}"
    );
    let before = fabric.runs();
    fabric.cli(&[
        "configure session s1",
        port,
        "mtu 9000",
        "commit timer 00:00:01",
    ]);
    assert!(fabric.runs() != before);
    std::thread::sleep(Duration::from_secs(2));
    fabric.sessions();
    assert_eq!(fabric.runs(), before, "nobody confirmed it");
    fabric.cli(&["configure", port, "mtu 9000"]);
    fabric.switch.reboot();
    assert_eq!(
        (fabric.runs(), fabric.sessions().len()),
        (before, 0),
        "nobody saved it"
    );
}
