//! railwright itself on switches: plan, apply, drift, removal; and days on which a switch goes away
//! in the middle.

use crate::machine::scrub;
use crate::rig::{Switch, TOMAHAWK};
use crate::support::Place;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Two ports of a leaf, with all that the modules of switches declare.
const SPEC: &str = "cluster: fab
fabric: { kind: rocev2, mtu: 9000, lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } } }
ssh: { host_keys: known_hosts, identities: [id] }
switches:
  - name: leaf1
    os: sonic
    ssh: { user: root, address: 127.0.0.1, port: PORT }
    ports: \"Ethernet[0,4]\"
    mtu: 9216
    cable_length_m: 40
    ecn: { min_bytes: 1000000, max_bytes: 2000000, probability_percent: 10 }
    watchdog: true
rollout: { switch_rollback_timer: TIMER }
";

/// A switch with an inventory of it.
pub struct Fabric {
    pub switch: Switch,
    pub place: Place,
}

impl Fabric {
    pub fn start(story: &str, timer: &str) -> Option<Fabric> {
        Some(Self::of(Switch::start(story, TOMAHAWK)?, SPEC, timer))
    }

    /// An inventory of this switch.
    pub fn of(switch: Switch, spec: &str, timer: &str) -> Fabric {
        let place = Place::new();
        place.write(
            "inv/cluster.yaml",
            spec.replace("PORT", &switch.server.port.to_string())
                .replace("TIMER", timer),
        );
        place
            .write("inv/known_hosts", switch.known_hosts() + "\n")
            .write("inv/id", switch.identity());
        Fabric { switch, place }
    }

    pub fn run(&self, words: &[&str]) -> String {
        let said = scrub(
            &self
                .place
                .run(words)
                .replace(&format!(":{}", self.switch.server.port), ":PORT"),
        );
        // How far it is comes every so often, and how long it will take is told by how long it
        // took: both as this machine is slow.
        let mut in_time = false;
        let is_kept = |line: &&str| {
            in_time = line.starts_with("time ") || (in_time && line.starts_with("         "));
            let is_progress =
                line.starts_with("CLOCK") && line.contains(" of ") && line.contains("; ");
            !(in_time || is_progress)
        };
        said.split_inclusive('\n').filter(is_kept).collect()
    }
}

impl Fabric {
    /// The spec without what the switches get from it, but for their MTU.
    pub fn without_class(&self) {
        let spec = std::fs::read_to_string(self.place.path().join("inv/cluster.yaml")).unwrap();
        let kept = spec.lines().filter(|line| {
            !line.contains("ecn:")
                && !line.contains("watchdog:")
                && !line.contains("cable_length_m")
        });
        let kept: String = kept.map(|line| format!("{line}\n")).collect();
        let without = kept.replace(
            ", lossless: { priority: 3, dscp: 26, cnp: { priority: 6, dscp: 48 } }",
            "",
        );
        self.place.write("inv/cluster.yaml", without);
    }

    /// An apply that hangs in the middle, where a fault has it hang.
    pub fn hangs_in_the_middle(&self) -> Child {
        let run = self
            .place
            .command(&["apply", "inv", "--yes"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.switch.wait_for("hanging");
        run
    }

    /// Hangs in the middle, and is killed there.
    pub fn dies_in_the_middle(&self) {
        let mut run = self.hangs_in_the_middle();
        run.kill().unwrap();
        run.wait().unwrap();
    }

    /// The run is gone on with, and ends well.
    pub fn is_resumed(&self) {
        let resumed = self.run(&["resume", "inv"]);
        assert!(resumed.contains("--- exit 0 ---"), "{resumed}");
    }

    /// There is nothing to be done any more.
    pub fn has_no_changes(&self) {
        let plan = self.run(&["plan", "inv"]);
        assert!(plan.contains("No changes."), "{plan}");
    }

    fn saved(&self) -> Value {
        serde_json::from_str(&self.switch.must("cat /etc/sonic/config_db.json")).unwrap()
    }
}

/// All of a configuration but the maps and profiles of ours, which stay where nothing uses them any
/// more.
fn of_others(config: &Value) -> Value {
    let mut config = config.clone();
    for rows in config
        .as_object_mut()
        .unwrap()
        .values_mut()
        .filter_map(Value::as_object_mut)
    {
        rows.retain(|key, _| !key.starts_with("railwright"));
    }
    // What the switch works out by itself follows; the watchdog's global row cannot be taken away.
    for table in ["PFC_WD", "BUFFER_PG", "BUFFER_PROFILE"] {
        config[table] = Value::Null;
    }
    config
}

/// The rows in which two configurations differ.
fn differing(one: &Value, other: &Value) -> Vec<String> {
    let rows = |config: &Value| -> BTreeSet<String> {
        let table = |(table, rows): (&String, &Value)| {
            rows.as_object()
                .into_iter()
                .flatten()
                .map(|(key, row)| format!("{table}|{key} {row}"))
                .collect::<Vec<_>>()
        };
        config.as_object().unwrap().iter().flat_map(table).collect()
    };
    rows(one)
        .symmetric_difference(&rows(other))
        .cloned()
        .collect()
}

/// Nothing but maps and profiles of ours is other than it was.
fn as_it_was(now: &Value, before: &Value) {
    assert_eq!(differing(&of_others(now), &of_others(before)), [""; 0]);
}

pub fn a_leaf_is_planned_applied_found_changed_and_given_back() {
    let Some(fabric) = Fabric::start("leaf", "60s") else {
        return;
    };
    let delivered = fabric.switch.config();
    insta::assert_snapshot!("plan", fabric.run(&["plan", "inv"]));
    assert_eq!(
        differing(&fabric.switch.config(), &delivered),
        [""; 0],
        "a plan changes nothing"
    );
    insta::assert_snapshot!("apply", fabric.run(&["apply", "inv", "--yes"]));
    assert_eq!(
        differing(&fabric.switch.config(), &fabric.saved()),
        [""; 0],
        "what runs is saved"
    );
    insta::assert_snapshot!("nothing", fabric.run(&["plan", "inv"]));

    // Somebody changes a port by hand, and saves one of two changes.
    fabric.switch.must(
        "redis-cli -s /run/redis/redis.sock -n 4 hset 'PORT_QOS_MAP|Ethernet4' pfc_enable 3,4 && \
         config save -y",
    );
    fabric
        .switch
        .must("redis-cli -s /run/redis/redis.sock -n 4 hset 'PORT|Ethernet0' mtu 9100");
    insta::assert_snapshot!("drift", fabric.run(&["drift", "inv"]));
    fabric.run(&["apply", "inv", "--yes"]);
    assert_eq!(
        differing(&fabric.switch.config(), &fabric.saved()),
        [""; 0],
        "what was fixed is saved"
    );

    fabric.without_class();
    insta::assert_snapshot!("removal", fabric.run(&["apply", "inv", "--yes"]));
    let mut back = fabric.switch.config();
    for port in ["Ethernet0", "Ethernet4"] {
        back["PORT"][port]["mtu"] = delivered["PORT"][port]["mtu"].clone();
    }
    as_it_was(&back, &delivered);
    assert_eq!(differing(&fabric.switch.config(), &fabric.saved()), [""; 0]);
}

/// As before `config qos reload`: no table says anything of classes. SONiC takes no patch that
/// leaves a table empty.
pub fn a_switch_without_classes_of_its_own_has_none_again() {
    let Some(fabric) = Fabric::start("bare", "60s") else {
        return;
    };
    fabric.switch.must(
        "cli() { redis-cli -s /run/redis/redis.sock -n 4 \"$@\"; }\n\
         for t in PORT_QOS_MAP QUEUE SCHEDULER WRED_PROFILE DSCP_TO_TC_MAP TC_TO_QUEUE_MAP \
         TC_TO_PRIORITY_GROUP_MAP MAP_PFC_PRIORITY_TO_QUEUE PFC_WD; do\n\
         cli keys \"$t|*\" | while read -r row; do cli del \"$row\"; done; done; config save -y",
    );
    let bare = fabric.switch.config();
    assert_eq!(bare.get("PORT_QOS_MAP"), None);
    let spec = std::fs::read_to_string(fabric.place.path().join("inv/cluster.yaml")).unwrap();
    // It takes no first row of a watchdog in a patch.
    let spec = spec.replace("    watchdog: true\n", "");
    fabric.place.write("inv/cluster.yaml", &spec);
    let applied = fabric.run(&["apply", "inv", "--yes"]);
    assert!(applied.contains("--- exit 0 ---"), "{applied}");
    assert!(fabric.switch.config().get("PORT_QOS_MAP").is_some());

    fabric.without_class();
    let removed = fabric.run(&["apply", "inv", "--yes"]);
    assert!(removed.contains("--- exit 0 ---"), "{removed}");
    let mut back = fabric.switch.config();
    for port in ["Ethernet0", "Ethernet4"] {
        back["PORT"][port]["mtu"] = bare["PORT"][port]["mtu"].clone();
    }
    as_it_was(&back, &bare);
    assert_eq!(differing(&fabric.switch.config(), &fabric.saved()), [""; 0]);
    fabric.has_no_changes();
}

/// What a switch refuses changes nothing, and its own words are told.
pub fn a_patch_that_is_refused_changes_nothing() {
    let Some(fabric) = Fabric::start("refused", "60s") else {
        return;
    };
    // A model of which the updater does not know whether its watchdog may be changed.
    fabric.switch.must(
        "redis-cli -s /run/redis/redis.sock -n 4 hset 'DEVICE_METADATA|localhost' hwsku Nobody-1 \
         && config save -y",
    );
    let before = fabric.switch.config();
    insta::assert_snapshot!("refused", fabric.run(&["apply", "inv", "--yes"]));
    assert_eq!(
        (
            differing(&fabric.switch.config(), &before),
            differing(&fabric.saved(), &before)
        ),
        (vec![], vec![])
    );
}

/// A buffer that the switch has no row for does not come, and what was done for it is rolled back.
pub fn a_change_that_does_not_come_about_is_taken_back() {
    let Some(fabric) = Fabric::start("taken-back", "60s") else {
        return;
    };
    let spec = std::fs::read_to_string(fabric.place.path().join("inv/cluster.yaml")).unwrap();
    fabric.place.write(
        "inv/cluster.yaml",
        spec.replace("cable_length_m: 40", "cable_length_m: 47"),
    );
    let before = fabric.switch.config();
    insta::assert_snapshot!("taken_back", fabric.run(&["apply", "inv", "--yes"]));
    as_it_was(&fabric.switch.config(), &before);
    as_it_was(&fabric.saved(), &before);
}

/// A port that was up and stays dark after the patch has lost its host: all is rolled back.
pub fn a_port_that_does_not_come_up_again_is_taken_back() {
    let Some(fabric) = Fabric::start("dark", "120s") else {
        return;
    };
    let before = fabric.switch.config();
    fabric.switch.fault("unplugged-Ethernet4", "");
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("--- exit 1 ---") && said.contains("not up again 60 s after it: Ethernet4"),
        "{said}"
    );
    as_it_was(&fabric.switch.config(), &before);
    as_it_was(&fabric.saved(), &before);
}

/// The switch does not roll back. What others run and have not saved is there again all the same,
/// and not saved.
pub fn where_a_rollback_is_refused_what_others_run_comes_back() {
    let Some(fabric) = Fabric::start("no-rollback", "120s") else {
        return;
    };
    fabric.switch.must("config save -y");
    let saved = fabric.switch.config();
    let theirs = json!([{"op": "replace", "path": "/PORT/Ethernet8/mtu", "value": "4321"}, {"op": "add", "path": "/VLAN", "value": {"Vlan100": {"vlanid": "100"}}}]);
    assert_eq!(fabric.switch.patch(&theirs).code, Some(0));
    let before = fabric.switch.config();
    fabric.switch.fault("unplugged-Ethernet4", "");
    fabric.switch.fault(
        "refuse-rollback",
        "Modification of BUFFER_PROFILE table is illegal- validating function f returned False",
    );
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(said.contains("--- exit 1 ---"), "{said}");
    as_it_was(&fabric.switch.config(), &before);
    as_it_was(&fabric.saved(), &saved);
}

/// Every connection breaks in the middle of the patch: the switch goes on with it, and we find it
/// again over a new one.
pub fn a_connection_that_breaks_in_the_middle_is_found_again() {
    let Some(fabric) = Fabric::start("cut", "60s") else {
        return;
    };
    let said = fabric
        .switch
        .cut_after(3, || fabric.run(&["apply", "inv", "--yes"]));
    assert!(said.contains("--- exit 0 ---"), "{said}");
    fabric.has_no_changes();
    assert_eq!(differing(&fabric.switch.config(), &fabric.saved()), [""; 0]);
}

/// railwright dies in the middle and nobody goes on: the switch takes everything back by itself,
/// and what others did and saved stays.
pub fn a_switch_that_is_left_alone_comes_back_by_itself() {
    let Some(fabric) = Fabric::start("left", "20s") else {
        return;
    };
    let before = fabric.switch.config();
    fabric.switch.fault("hang-after", "3");
    fabric.dies_in_the_middle();
    assert!(fabric.switch.config() != before, "it was in the middle");
    fabric.switch.fix("hang-after");
    fabric.switch.must(
        "redis-cli -s /run/redis/redis.sock -n 4 hset 'PORT|Ethernet8' mtu 4321 && redis-cli -s \
         /run/redis/redis.sock -n 4 hset 'VLAN|Vlan100' vlanid 100 && config save -y",
    );
    let mut before = of_others(&before);
    before["PORT"]["Ethernet8"]["mtu"] = json!("4321");
    before["VLAN"] = json!({ "Vlan100": { "vlanid": "100" } });
    let since = Instant::now();
    while of_others(&fabric.switch.config()) != before || of_others(&fabric.saved()) != before {
        assert!(
            since.elapsed() < Duration::from_secs(180),
            "the switch was not taken back"
        );
        std::thread::sleep(Duration::from_millis(500));
    }
    fabric.is_resumed();
    fabric.has_no_changes();
}

/// The power goes in the middle: what was not saved is gone, and with the boot the automatic
/// rollback finds nothing confirmed.
pub fn a_switch_without_power_in_the_middle_is_as_it_was() {
    let Some(mut fabric) = Fabric::start("power", "60s") else {
        return;
    };
    let before = fabric.switch.config();
    fabric.switch.fault("hang-after", "3");
    let mut run = fabric.hangs_in_the_middle();
    fabric.switch.fix("hang-after");
    fabric.switch.reboot();
    run.wait().unwrap();
    as_it_was(&fabric.switch.config(), &before);
    fabric.is_resumed();
    assert_eq!(differing(&fabric.switch.config(), &fabric.saved()), [""; 0]);
}

/// A flash that is full empties the file that it saves to. The automatic rollback puts both back.
pub fn a_full_flash_loses_no_saved_configuration() {
    let Some(fabric) = Fabric::start("flash", "60s") else {
        return;
    };
    fabric.switch.must("config save -y");
    let before = fabric.switch.config();
    fabric.switch.fault("full-flash", "1");
    let said = fabric.run(&["apply", "inv", "--yes"]);
    assert!(
        said.contains("--- exit 1 ---") && said.contains("No space left on device"),
        "{said}"
    );
    fabric.switch.fix("full-flash");
    as_it_was(&fabric.saved(), &before);
    as_it_was(&fabric.switch.config(), &before);
}

/// A second inventory names a switch that the first one manages.
pub fn another_fabrics_switch_is_left_alone_until_it_is_taken_over() {
    let Some(fabric) = Fabric::start("taken-over", "60s") else {
        return;
    };
    let told = |code: i32, words: &[&str]| {
        let said = fabric.run(words);
        assert!(said.ends_with(&format!("--- exit {code} ---\n")), "{said}");
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    told(0, &["apply", "inv", "--yes"]);
    let applied = fabric.switch.config();
    let bare = "cluster: zzz
ssh: { host_keys: known_hosts, identities: [id] }
switches: [{ name: leaf1, os: sonic, ssh: { user: root, address: 127.0.0.1, port: PORT }, ports: \"Ethernet[0,4]\" }]
";
    fabric.place.write(
        "zzz/cluster.yaml",
        bare.replace("PORT", &fabric.switch.server.port.to_string()),
    );
    fabric
        .place
        .write("zzz/known_hosts", fabric.switch.known_hosts() + "\n")
        .write("zzz/id", fabric.switch.identity());
    let refused = told(4, &["plan", "zzz"]);
    assert!(
        refused.contains("leaf1 the whole target RW0720")
            && refused.contains("belongs to the cluster `fab`"),
        "{refused}"
    );
    assert!(
        refused.contains("railwright state take-over zzz 'switch/leaf1' --reason TEXT"),
        "{refused}"
    );
    told(4, &["apply", "zzz", "--yes"]);

    let taken = told(
        0,
        &[
            "state",
            "take-over",
            "zzz",
            "switch/leaf1",
            "--reason",
            "leaf1 moved to zzz",
        ],
    );
    assert!(
        taken.contains("switch/leaf1 taken over from the cluster `fab`")
            && taken.contains("Ethernet4"),
        "{taken}"
    );
    assert!(
        !told(0, &["plan", "zzz"]).contains("removed from spec"),
        "nothing of the other cluster is removed"
    );
    assert!(told(0, &["state", "list", "zzz"]).contains("leaf1 moved to zzz"));
    assert!(
        told(4, &["plan", "inv"]).contains("belongs to the cluster `zzz`"),
        "the first one is refused from then on"
    );
    told(
        0,
        &["state", "take-over", "inv", "leaf1", "--reason", "back"],
    );
    assert!(
        told(0, &["plan", "inv"]).contains("No changes."),
        "it remembers what it brought"
    );
    assert_eq!(
        differing(&fabric.switch.config(), &applied),
        [""; 0],
        "nobody wrote to it"
    );
}
