//! A switch with Cumulus Linux over the REST API of NVUE: it is read and compared as over SSH, and never changed.

use crate::cumulus::SPEC;
use crate::https::{PASSWORD, USER};
use crate::journeys::Fabric;
use crate::rig::Switch;
use crate::support::Place;

const OVER_SSH: &str = "ssh: { user: root, address: 127.0.0.1, port: PORT }";
const OVER_NVUE: &str =
    "nvue: { address: 127.0.0.1, port: PORT, user: operator, password: { file: password }, certificate: \"{name}.pem\" }";

fn start(story: &str) -> Option<Fabric> {
    let switch = Switch::start_nvue(&format!("nvue-{story}"))?;
    let place = Place::new();
    place.write("inv/known_hosts", switch.known_hosts() + "\n").write("inv/id", switch.identity());
    place.write("inv/leaf1.pem", switch.api().certificate()).write("inv/password", format!("{PASSWORD}\n"));
    let fabric = Fabric { switch, place };
    fabric.goes_over("nvue");
    Some(fabric)
}

impl Fabric {
    /// From now on the spec reaches the switch so.
    fn goes_over(&self, way: &str) {
        let ssh = self.switch.server.port.to_string();
        let spec = match way {
            "nvue" => SPEC.replace(OVER_SSH, OVER_NVUE).replace("PORT", &self.switch.api().port()),
            _ => SPEC.replace("PORT", &ssh),
        };
        self.place.write("inv/cluster.yaml", spec.replace("GUARD", "60s"));
    }

    fn tells(&self, words: &[&str]) -> String {
        self.run(words).replace(&format!(":{}", self.switch.api().port()), ":PORT")
    }

    fn asked(&self) -> Vec<String> {
        self.switch.api().read("asked").lines().map(str::to_owned).collect()
    }
}

/// What a plan says of the resources, without what is said of the way and of the guard.
fn resources(plan: &str) -> Vec<&str> {
    plan.lines().filter(|line| line.contains(" -> ") || line.starts_with(" ~ ") || line.starts_with(" + ")).collect()
}

#[test]
fn a_leaf_is_compared_as_over_ssh_and_held() {
    let Some(fabric) = start("leaf") else { return };
    let before = fabric.applied();
    let plan = fabric.tells(&["plan", "inv"]);
    insta::assert_snapshot!("nvue_plan", plan);
    fabric.goes_over("ssh");
    let over_ssh = fabric.tells(&["plan", "inv"]);
    assert!(resources(&plan).len() > 10);
    assert_eq!(resources(&plan), resources(&over_ssh));
    fabric.goes_over("nvue");
    insta::assert_snapshot!("nvue_apply", fabric.tells(&["apply", "inv", "--yes"]));
    assert_eq!(fabric.applied(), before, "nothing was changed");

    // It is changed over SSH; then both ways see what somebody does by hand, and what is not saved.
    fabric.goes_over("ssh");
    assert!(fabric.tells(&["apply", "inv", "--yes"]).contains("--- exit 0 ---"));
    fabric.goes_over("nvue");
    let said = fabric.tells(&["plan", "inv"]);
    assert!(said.contains("No changes.") && said.contains("--- exit 0 ---"), "{said}");
    // A folder that remembers nothing has nothing to do here, and nowhere to write that it is so.
    std::fs::rename(fabric.place.path().join("inv/.railwright"), fabric.place.path().join("memory")).unwrap();
    let said = fabric.tells(&["apply", "inv", "--yes"]);
    assert!(said.contains("No changes.") && said.contains("--- exit 0 ---") && !said.contains("not recorded yet"), "{said}");
    std::fs::rename(fabric.place.path().join("memory"), fabric.place.path().join("inv/.railwright")).unwrap();
    let saved = fabric.switch.must("cat /etc/nvue.d/startup.yaml");
    fabric.nv("set interface swp2 link mtu 1500 && nv config apply -y");
    fabric.switch.write("/etc/nvue.d/startup.yaml", &saved);
    let drift = fabric.tells(&["drift", "inv"]);
    insta::assert_snapshot!("nvue_drift", drift);
    fabric.goes_over("ssh");
    let over_ssh = fabric.tells(&["drift", "inv"]);
    let found = |text: &str| text.lines().filter(|line| line.contains("found ")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(found(&drift), found(&over_ssh));

    // What has users and passwords in it is not even asked for, and what we know stays where it is.
    let asked = fabric.asked();
    assert!(
        asked.iter().all(|path| ["/nvue_v1/system", "/nvue_v1/interface", "/nvue_v1/qos"].iter().any(|start| path.starts_with(start))),
        "{asked:?}"
    );
    assert!(asked.iter().all(|path| !path.starts_with("/nvue_v1/system?")), "{asked:?}");
    assert_eq!(fabric.switch.api().read("changes"), "", "nothing but GET was sent");
    for poison in [PASSWORD, "never-to-be-seen"] {
        let grep = std::process::Command::new("grep").args(["-rlF", poison]).arg(fabric.place.path()).output().unwrap();
        let found = String::from_utf8(grep.stdout).unwrap().replace(&fabric.place.path().display().to_string(), "");
        assert_eq!(found, if poison == PASSWORD { "/inv/password\n" } else { "" });
    }
}

/// Counters over NVUE are those of `nv`; cables are not told.
#[test]
fn links_are_looked_at_over_nvue() {
    let Some(fabric) = start("look") else { return };
    fabric.nv("set qos roce && nv config apply -y");
    let spec = std::fs::read_to_string(fabric.place.path().join("inv/cluster.yaml")).unwrap();
    // Whose other end nobody reaches.
    let spec = spec.replace("switches:\n", "switches:\n  - { name: spine1, os: cumulus, role: spine }\n") + "cabling: cabling.csv\n";
    fabric.place.write("inv/cluster.yaml", spec);
    fabric.place.write("inv/cabling.csv", "host,nic,switch,port\nleaf1,swp2,spine1,swp3\n");
    fabric.switch.fault("counters", r#"{"swp2  3 deadlock-count": 1}"#);
    let said = fabric.tells(&["verify", "fabric", "inv", "--for", "1s"]);
    assert!(!said.contains("RW04") && said.contains("told to wait: spine 0?   marked 0"), "{said}");
    assert!(fabric.asked().iter().any(|path| path == "/nvue_v1/interface/swp2/counters/qos"), "{:?}", fabric.asked());
    let said = fabric.tells(&["verify", "cabling", "inv"]);
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("not told over the NVUE API: LLDP is asked of lldpd on the switch, over `ssh`"), "{said}");
    fabric.switch.fault("nvued-away", "");
    let said = fabric.tells(&["verify", "fabric", "inv", "--for", "0"]);
    assert!(said.contains("RW0847") && said.contains("--- exit 3 ---"), "{said}");
}

/// Nobody is let in, or nothing is there: the switch is unknown, and why.
#[test]
fn a_switch_that_does_not_tell_is_unknown() {
    let Some(fabric) = start("away") else { return };
    let fails = |what: &[&str]| {
        let said = fabric.tells(&["plan", "inv"]);
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("--- exit 3 ---") && what.iter().all(|what| flat.contains(what)), "{what:?}\n{said}");
    };
    let api = fabric.switch.api();
    fabric.place.write("inv/password", "another-password");
    fails(&["RW0419", &format!("leaf1 does not let {USER} in")]);
    fabric.place.write("inv/password", PASSWORD);
    api.fault("default-password", "");
    fails(&["RW0419", "Forbidden"]);
    api.mend("default-password");
    api.fault("elsewhere", "");
    fails(&["RW0420", "leaf1 has no NVUE API at 127.0.0.1:PORT: it answers 404 for /nvue_v1/system", "nv set system api state enabled"]);
    api.mend("elsewhere");
    api.fault("cut", "");
    fails(&["RW0408", "the server closed the connection"]);
    api.mend("cut");
    api.fault("status", "500");
    fails(&["RW0401", "NVUE answers 500: Internal Server Error"]);
    api.mend("status");
    fabric.switch.fault("nvued-away", "");
    fails(&["RW0408", "the server before the NVUE API answers 502"]);
    fabric.switch.mend("nvued-away");
    api.makes_a_certificate();
    api.cut();
    fails(&["RW0418"]);
    api.go_down();
    fails(&["RW0420", "nobody listens there"]);
}
