//! A switch with Cumulus Linux over the REST API of NVUE: it is read and compared as over SSH, and
//! changed in revisions that wait to be confirmed.

use crate::cumulus::{SPEC, of_others};
use crate::https::{PASSWORD, USER};
use crate::journeys::Fabric;
use crate::rig::Switch;
use crate::support::Place;
use serde_json::json;
use std::time::{Duration, Instant};

const OVER_SSH: &str = "ssh: { user: root, address: 127.0.0.1, port: PORT }";
const OVER_NVUE: &str = "nvue: { address: 127.0.0.1, port: PORT, user: operator, password: \
                         { file: password }, certificate: \"{name}.pem\" }";

pub fn start(story: &str) -> Option<Fabric> {
    let switch = Switch::start_nvue(&format!("nvue-{story}"))?;
    let place = Place::new();
    place
        .write("inv/known_hosts", switch.known_hosts() + "\n")
        .write("inv/id", switch.identity());
    place
        .write("inv/leaf1.pem", switch.api().certificate())
        .write("inv/password", format!("{PASSWORD}\n"));
    let fabric = Fabric { switch, place };
    fabric.goes_over("nvue");
    Some(fabric)
}

impl Fabric {
    /// From now on the spec reaches the switch so.
    fn goes_over(&self, way: &str) {
        let ssh = self.switch.server.port.to_string();
        let spec = match way {
            "nvue" => SPEC
                .replace(OVER_SSH, OVER_NVUE)
                .replace("PORT", &self.switch.api().port()),
            _ => SPEC.replace("PORT", &ssh),
        };
        self.place
            .write("inv/cluster.yaml", spec.replace("TIMER", "60s"));
    }

    fn tells(&self, words: &[&str]) -> String {
        self.run(words)
            .replace(&format!(":{}", self.switch.api().port()), ":PORT")
    }

    fn asked(&self) -> Vec<String> {
        self.switch
            .api()
            .read("asked")
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// What it was asked to change, in order.
    fn changes(&self) -> Vec<String> {
        self.switch
            .api()
            .read("changes")
            .lines()
            .map(str::to_owned)
            .collect()
    }

    fn set_rollback_timer(&self, time: &str) {
        let spec = std::fs::read_to_string(self.place.path().join("inv/cluster.yaml")).unwrap();
        self.place.write(
            "inv/cluster.yaml",
            spec.replace(
                "switch_rollback_timer: 60s",
                &format!("switch_rollback_timer: {time}"),
            ),
        );
    }

    fn is_applied(&self) {
        let said = self.tells(&["apply", "inv", "--yes"]);
        assert!(said.contains("--- exit 0 ---"), "{said}");
    }

    /// An apply that ends with this exit code, as one line.
    fn apply_ends_with(&self, code: &str) -> String {
        let said = self.tells(&["apply", "inv", "--yes"]);
        assert!(said.contains(&format!("--- exit {code} ---")), "{said}");
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Runs it while something else happens.
    fn tells_while(&self, words: &[&str], meanwhile: impl FnOnce() + Send) -> String
    where
        Self: Sync,
    {
        std::thread::scope(|scope| {
            scope.spawn(meanwhile);
            self.tells(words)
        })
    }
}

/// What a plan says of the resources, without what is said of the way and of the automatic
/// rollback.
fn resources(plan: &str) -> Vec<&str> {
    plan.lines()
        .filter(|line| line.contains(" -> ") || line.starts_with(" ~ ") || line.starts_with(" + "))
        .collect()
}

/// It is planned as over SSH, applied in a revision that waits to be confirmed, and found changed
/// as over SSH.
#[test]
fn a_leaf_is_planned_applied_and_found_changed_as_over_ssh() {
    let Some(fabric) = start("leaf") else { return };
    let delivered = fabric.applied();
    let plan = fabric.tells(&["plan", "inv"]);
    insta::assert_snapshot!("nvue_plan", plan);
    fabric.goes_over("ssh");
    let over_ssh = fabric.tells(&["plan", "inv"]);
    assert!(resources(&plan).len() > 10);
    assert_eq!(resources(&plan), resources(&over_ssh));
    fabric.goes_over("nvue");
    assert_eq!(
        (fabric.applied(), fabric.changes()),
        (delivered, Vec::new()),
        "a plan changes nothing, and leaves no revision behind"
    );
    insta::assert_snapshot!("nvue_apply", fabric.tells(&["apply", "inv", "--yes"]));
    assert_eq!(
        fabric.applied(),
        fabric.startup(),
        "what was confirmed is saved"
    );
    let words = ["\"confirm\":", "railwright rollback ", "confirm_yes"];
    assert!(
        words
            .iter()
            .all(|word| fabric.changes().join("\n").contains(word)),
        "{:?}",
        fabric.changes()
    );
    assert!(
        !fabric.changes().join("\n").contains("\"save\""),
        "NVUE had saved it by itself"
    );

    // Both ways see what somebody does by hand, and what is not saved.
    fabric.has_no_changes();
    let saved = fabric.switch.must("cat /etc/nvue.d/startup.yaml");
    fabric.nv("set interface swp2 link mtu 1500 && nv config apply -y");
    fabric.switch.write("/etc/nvue.d/startup.yaml", &saved);
    let drift = fabric.tells(&["drift", "inv"]);
    insta::assert_snapshot!("nvue_drift", drift);
    fabric.goes_over("ssh");
    let over_ssh = fabric.tells(&["drift", "inv"]);
    let found = |text: &str| {
        text.lines()
            .filter(|line| line.contains("found "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(found(&drift), found(&over_ssh));
    fabric.goes_over("nvue");
    fabric.is_applied();
    assert_eq!(fabric.applied(), fabric.startup());

    // What has users and passwords in it is not even asked for, and what we know stays where it is.
    let starts = [
        "/nvue_v1/system",
        "/nvue_v1/interface",
        "/nvue_v1/qos",
        "/nvue_v1/revision",
    ];
    let asked = fabric.asked();
    assert!(
        asked
            .iter()
            .all(|path| starts.iter().any(|start| path.starts_with(start))),
        "{asked:?}"
    );
    assert!(
        asked
            .iter()
            .all(|path| !path.starts_with("/nvue_v1/system?")),
        "{asked:?}"
    );
    for poison in [PASSWORD, "never-to-be-seen"] {
        let grep = std::process::Command::new("grep")
            .args(["-rlF", poison])
            .arg(fabric.place.path())
            .output()
            .unwrap();
        let found = String::from_utf8(grep.stdout)
            .unwrap()
            .replace(&fabric.place.path().display().to_string(), "");
        assert_eq!(
            found,
            if poison == PASSWORD {
                "/inv/password\n"
            } else {
                ""
            }
        );
    }
}

/// What is taken out of the spec is undone on the switch.
#[test]
fn a_leaf_is_given_back() {
    let Some(fabric) = start("back") else { return };
    let mut expected = fabric.applied();
    fabric.is_applied();
    fabric.without_class();
    fabric.is_applied();
    for port in ["swp2", "swp3"] {
        expected["interface"][port]["link"]["mtu"] = json!(9000);
    }
    assert_eq!(of_others(&fabric.applied()), expected);
    assert_eq!(fabric.applied(), fabric.startup());
}

/// Without auto-save it is saved once it was confirmed, and what is not saved is told and saved.
#[test]
fn what_was_confirmed_is_saved() {
    let Some(mut fabric) = start("saved") else {
        return;
    };
    fabric.switch.fault("old-links", "");
    fabric.nv("set system config auto-save state disabled");
    fabric.nv("config apply -y");
    fabric.nv("config save");
    let unsaved = fabric.switch.must("cat /etc/nvue.d/startup.yaml");
    fabric.is_applied();
    assert_eq!(fabric.applied(), fabric.startup());
    let at = |word: &str| {
        fabric
            .changes()
            .iter()
            .position(|change| change.contains(word))
            .unwrap()
    };
    assert!(at("confirm_yes") < at("\"save\""), "{:?}", fabric.changes());
    fabric.switch.write("/etc/nvue.d/startup.yaml", &unsaved);
    let drift = fabric.tells(&["drift", "inv"]);
    assert!(
        drift.contains(", persisted:") && !drift.contains(", running:"),
        "{drift}"
    );
    let steps = fabric.switch.log("steps").len();
    fabric.is_applied();
    assert_eq!(
        fabric.switch.log("steps").len(),
        steps,
        "nothing was applied"
    );
    fabric.switch.reboot();
    fabric.goes_over("nvue");
    fabric.has_no_changes();
}

/// What NVUE refuses changes nothing, and its own words are told.
#[test]
fn a_change_that_is_refused_changes_nothing() {
    let Some(fabric) = start("refused") else {
        return;
    };
    let before = fabric.applied();
    fabric.switch.fault(
        "refuse",
        "the ASIC of this switch has no room for another profile",
    );
    let said = fabric.apply_ends_with("1");
    assert!(
        said.contains(
            "nothing was changed: the ASIC of this switch has no room for another profile"
        ),
        "{said}"
    );
    assert_eq!(
        (fabric.applied(), fabric.startup()),
        (before.clone(), before.clone())
    );
    fabric.switch.fix("refuse");
    // Whoever may only look changes nothing either, and is told so.
    fabric.switch.api().fault("may-only-look", "");
    let said = fabric.apply_ends_with("1");
    assert!(said.contains("operator may only read leaf1"), "{said}");
    assert_eq!(fabric.applied(), before);
}

/// Somebody's revision that waits to be confirmed stops it; one that nobody applied is left alone.
#[test]
fn what_somebody_else_has_in_hand_is_left_alone() {
    let Some(fabric) = start("pending") else {
        return;
    };
    fabric.nv("set interface swp5 link mtu 1500");
    let api = fabric.switch.api();
    let theirs = api.asks("POST", "/revision", "{}");
    let theirs = theirs.split('"').nth(1).unwrap().to_owned();
    api.asks(
        "PATCH",
        &format!("/?rev={theirs}"),
        r#"{"interface": {"swp6": {"link": {"mtu": 1600}}}}"#,
    );
    let confirm = r#"{"state": "apply", "auto-prompt": {"ays": "ays_yes"}, "state-controls": {"confirm": 600}}"#;
    api.asks("PATCH", &format!("/revision/{theirs}"), confirm);
    fabric.switch.wait_for("waits");
    let before = fabric.applied();
    let said = fabric.apply_ends_with("1");
    assert!(
        said.contains(&format!(
            "revision {theirs} (confirm) is not over: nv config apply {theirs} --confirm-yes"
        )),
        "{said}"
    );
    assert_eq!(fabric.applied(), before);
    api.asks(
        "PATCH",
        &format!("/revision/{theirs}"),
        r#"{"state": "confirm_yes"}"#,
    );
    fabric
        .switch
        .sh("until nv config diff applied startup -o json; do sleep 0.1; done");
    fabric.is_applied();
    assert!(
        fabric.applied()["interface"].get("swp5").is_none(),
        "nobody applied it"
    );
    assert_eq!(
        fabric.applied()["interface"]["swp6"]["link"]["mtu"],
        json!(1600)
    );
    assert!(
        fabric
            .switch
            .sh("nv config diff -o json")
            .out
            .contains("1500"),
        "it still waits"
    );
}

/// Answers get lost when NVUE has done what it was asked for: it is found again over a new
/// connection, and done once.
#[test]
fn answers_that_get_lost_are_found_again() {
    let Some(fabric) = start("lost") else { return };
    for word in ["state-controls", "confirm_yes"] {
        fabric.switch.api().fault("lose", word);
        let said = fabric.tells(&["apply", "inv", "--yes"]);
        assert!(said.contains("--- exit 0 ---"), "{word}\n{said}");
        fabric.has_no_changes();
        assert_eq!(fabric.applied(), fabric.startup());
        fabric.nv("set interface swp2 link mtu 1500 && nv config apply -y");
    }
    let applied = fabric
        .changes()
        .into_iter()
        .filter(|change| change.contains("state-controls"))
        .count();
    assert_eq!(applied, 2, "each was applied once");
}

/// A port that has no link any more after a change is no proof of it: it is not confirmed, and NVUE
/// is asked to roll it back at once.
#[test]
#[ignore = "long: make test-deep"]
fn a_port_that_does_not_come_up_again_is_taken_back() {
    let Some(fabric) = start("dark") else { return };
    let before = fabric.applied();
    fabric.set_rollback_timer("200s");
    fabric.switch.fault("unplugged-swp3", "");
    let said = fabric.apply_ends_with("1");
    assert!(said.contains("not up again 60 s after it: swp3"), "{said}");
    assert!(
        fabric.changes().last().unwrap().contains("confirm_no"),
        "{:?}",
        fabric.changes()
    );
    assert_eq!(
        (fabric.applied(), fabric.startup()),
        (before.clone(), before)
    );
}

/// Somebody confirms the revision while railwright waits for a link, and changes another port: the
/// rollback undoes what railwright changed alone.
#[test]
#[ignore = "long: make test-deep"]
fn what_others_confirmed_and_changed_elsewhere_stays() {
    let Some(fabric) = start("confirmed") else {
        return;
    };
    goes_back_but_for_what_others_change(
        &fabric,
        "until nv config diff applied startup -o json; do sleep 0.1; done; nv set interface swp5 \
         link mtu 4000 && nv config apply -y",
    );
}

/// Without auto-save, what they save has our change in it.
#[test]
#[ignore = "long: make test-deep"]
fn what_others_saved_with_a_change_that_goes_back_is_saved_again() {
    let Some(fabric) = start("saved-since") else {
        return;
    };
    fabric.nv("set system config auto-save state disabled");
    fabric.nv("config apply -y");
    fabric.nv("config save");
    goes_back_but_for_what_others_change(
        &fabric,
        "until nv set interface swp5 link mtu 4000 && nv config apply -y && nv config save; do \
         sleep 0.1; done",
    );
}

fn goes_back_but_for_what_others_change(fabric: &Fabric, change: &str) {
    let before = fabric.applied();
    fabric.set_rollback_timer("200s");
    fabric.switch.fault("unplugged-swp3", "");
    let said = fabric.tells_while(&["apply", "inv", "--yes"], || {
        fabric.switch.wait_for("waits");
        let changes = fabric.changes();
        let applies = changes.iter().find(|line| line.contains("state-controls"));
        let path = applies.and_then(|line| line.split(' ').nth(1)).unwrap();
        fabric.switch.api().asks(
            "PATCH",
            path.trim_start_matches("/nvue_v1"),
            r#"{"state": "confirm_yes"}"#,
        );
        fabric.switch.must(change);
    });
    assert!(
        said.contains("--- exit 1 ---") && said.contains("RW0641"),
        "{said}"
    );
    for mut now in [fabric.applied(), fabric.startup()] {
        let interfaces = now["interface"].as_object_mut().unwrap();
        let theirs = interfaces.remove("swp5").unwrap();
        assert_eq!(theirs["link"]["mtu"], json!(4000));
        assert_eq!(now, before);
    }
}

/// An apply that breaks down half way is no state of NVUE to go back from: what was is told again.
#[test]
fn an_apply_that_fails_half_way_is_told_again_as_it_was() {
    let Some(fabric) = start("half") else { return };
    let before = fabric.applied();
    fabric.switch.fault("fail-after", "1");
    let said = fabric.tells_while(&["apply", "inv", "--yes"], || {
        fabric.switch.wait_for_log("steps", 1);
        fabric.switch.fix("fail-after");
    });
    assert!(
        said.contains("--- exit 1 ---") && said.contains("switchd did not come back"),
        "{said}"
    );
    assert_eq!(
        (fabric.applied(), fabric.startup()),
        (before.clone(), before)
    );
}

/// A release that does not know of confirmations applies at once: what was is told again, and it is
/// said why.
#[test]
fn a_release_that_waits_for_nobody_is_put_back() {
    let Some(fabric) = start("no-confirm") else {
        return;
    };
    let before = fabric.applied();
    fabric.switch.fault("no-confirm", "");
    let said = fabric.apply_ends_with("1");
    assert!(
        said.contains("without waiting for its confirmation")
            && said.contains("reach the switch over SSH"),
        "{said}"
    );
    assert_eq!(
        (fabric.applied(), fabric.startup()),
        (before.clone(), before)
    );
}

/// railwright dies while it waits to be confirmed, and nobody goes on: NVUE rolls it back by
/// itself.
#[test]
#[ignore = "long: make test-deep"]
fn a_switch_that_is_left_alone_comes_back_by_itself() {
    let Some(fabric) = start("left") else { return };
    fabric.set_rollback_timer("20s");
    let before = fabric.applied();
    fabric.switch.fault("hang-after", "1");
    fabric.dies_in_the_middle();
    assert!(fabric.applied() != before, "it was in the middle");
    fabric.switch.fix("hang-after");
    let since = Instant::now();
    while fabric.applied() != before
        || !fabric
            .switch
            .sh("nv config revision")
            .out
            .contains("confirm_fail")
    {
        assert!(
            since.elapsed() < Duration::from_secs(120),
            "the switch was not taken back: {}",
            fabric.applied()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(fabric.startup(), before, "nothing of it was saved");
    fabric.is_resumed();
    fabric.has_no_changes();
    assert_eq!(fabric.applied(), fabric.startup());
}

/// Another process goes on while NVUE still waits: what nobody confirmed is rolled back first, and
/// then done again.
#[test]
fn what_waits_is_found_by_the_next_process() {
    let Some(fabric) = start("resumed") else {
        return;
    };
    fabric.set_rollback_timer("200s");
    fabric.switch.fault("hang-after", "1");
    fabric.dies_in_the_middle();
    fabric.switch.fix("hang-after");
    fabric.switch.wait_for("waits");
    fabric.is_resumed();
    fabric.has_no_changes();
    let words: Vec<String> = fabric.changes();
    let at = |word: &str| {
        words
            .iter()
            .position(|change| change.contains(word))
            .unwrap()
    };
    assert!(at("confirm_no") < at("confirm_yes"), "{words:?}");
}

/// The power goes while it waits to be confirmed: what was not confirmed was not saved.
#[test]
fn a_switch_without_power_in_the_middle_is_as_it_was() {
    let Some(mut fabric) = start("power") else {
        return;
    };
    let before = fabric.applied();
    fabric.switch.fault("hang-after", "1");
    let mut run = fabric.hangs_in_the_middle();
    fabric.switch.fix("hang-after");
    fabric.switch.reboot();
    fabric.goes_over("nvue");
    // A run that lives tries it again as long as its rollback timer lasts. One that gave up has
    // left nothing.
    if !run.wait().unwrap().success() {
        assert_eq!(fabric.applied(), before);
        fabric.is_resumed();
    }
    fabric.has_no_changes();
    assert_eq!(fabric.applied(), fabric.startup());
}

/// A flash that is full loses nothing that is saved: what was confirmed runs, that it is not saved
/// is told, and the next run saves it.
#[test]
fn a_full_flash_is_told_and_made_good() {
    let Some(fabric) = start("flash") else { return };
    let before = fabric.applied();
    fabric.switch.fault("full-flash", "1");
    let said = fabric.apply_ends_with("1");
    assert!(
        said.contains("No space left on device") && said.contains("checked and confirmed"),
        "{said}"
    );
    assert_eq!(fabric.startup(), before);
    fabric.switch.fix("full-flash");
    fabric.is_applied();
    assert_eq!(fabric.applied(), fabric.startup());
}

/// Counters over NVUE are those of `nv`; cables are not told.
#[test]
fn links_are_looked_at_over_nvue() {
    let Some(fabric) = start("look") else { return };
    fabric.nv("set qos roce && nv config apply -y");
    let spec = std::fs::read_to_string(fabric.place.path().join("inv/cluster.yaml")).unwrap();
    // Whose other end nobody reaches.
    let spec = spec.replace(
        "switches:\n",
        "switches:\n  - { name: spine1, os: cumulus, role: spine }\n",
    ) + "cabling: cabling.csv\n";
    fabric.place.write("inv/cluster.yaml", spec);
    fabric.place.write(
        "inv/cabling.csv",
        "host,nic,switch,port\nleaf1,swp2,spine1,swp3\n",
    );
    fabric
        .switch
        .fault("counters", r#"{"swp2  3 deadlock-count": 1}"#);
    let said = fabric.tells(&["verify", "fabric", "inv", "--for", "1s"]);
    assert!(
        !said.contains("RW04") && said.contains("pause frames: spine 0?   ECN-marked 0"),
        "{said}"
    );
    assert!(
        fabric
            .asked()
            .iter()
            .any(|path| path == "/nvue_v1/interface/swp2/counters/qos"),
        "{:?}",
        fabric.asked()
    );
    let said = fabric.tells(&["verify", "cabling", "inv"]);
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains(
            "not told over the NVUE API: LLDP is asked of lldpd on the switch, over `ssh`"
        ),
        "{said}"
    );
    fabric.switch.fault("nvued-away", "");
    let said = fabric.tells(&["verify", "fabric", "inv", "--for", "0"]);
    assert!(
        said.contains("RW0847") && said.contains("--- exit 3 ---"),
        "{said}"
    );
}

/// Nobody is let in, or nothing is there: the switch is unknown, and why.
#[test]
fn a_switch_that_does_not_tell_is_unknown() {
    let Some(fabric) = start("away") else { return };
    let fails = |what: &[&str]| {
        let said = fabric.tells(&["plan", "inv"]);
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.contains("--- exit 3 ---") && what.iter().all(|what| flat.contains(what)),
            "{what:?}\n{said}"
        );
    };
    let api = fabric.switch.api();
    fabric.place.write("inv/password", "another-password");
    fails(&["RW0419", &format!("leaf1 does not let {USER} in")]);
    fabric.place.write("inv/password", PASSWORD);
    api.fault("default-password", "");
    fails(&["RW0419", "Forbidden"]);
    api.fix("default-password");
    api.fault("elsewhere", "");
    fails(&[
        "RW0420",
        "leaf1 has no NVUE API at 127.0.0.1:PORT: it answers 404 for /nvue_v1/system",
        "nv set system api state enabled",
    ]);
    api.fix("elsewhere");
    api.fault("cut", "");
    fails(&["RW0408", "the server closed the connection"]);
    api.fix("cut");
    api.fault("status", "500");
    fails(&["RW0401", "NVUE answers 500: Internal Server Error"]);
    api.fix("status");
    // JSON of another shape is no switch without settings.
    for document in ["null", "[1, 2]", "\"text\"", "{}"] {
        api.fault("says", &format!("system {document}"));
        fails(&[
            "RW0401",
            if document == "{}" {
                "what answers for /nvue_v1/system tells nothing of a system"
            } else {
                "NVUE sent no object"
            },
        ]);
        api.fault("says", &format!("interface {document}"));
        let why = if document == "{}" {
            "NVUE tells of no interface"
        } else {
            "NVUE sent no object"
        };
        fails(&[
            "UNKNOWN: could not be found out",
            &format!("not told over the NVUE API: {why}"),
        ]);
    }
    api.fix("says");
    fabric.switch.fault("nvued-away", "");
    fails(&["RW0408", "the server before the NVUE API answers 502"]);
    fabric.switch.fix("nvued-away");
    api.makes_a_certificate();
    api.cut();
    fails(&["RW0418"]);
    api.go_down();
    fails(&["RW0420", "nobody listens there"]);
}
