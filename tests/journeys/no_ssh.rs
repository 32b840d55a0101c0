//! Hosts that nobody may log in to: how the spec says it, what is told of them, and that nothing is
//! asked of them.

use crate::support::Place;

/// One group is reached, the other is not.
const MIXED: &str = "cluster: pool
fabric: { kind: rocev2 }
ssh: { user: root, host_keys: known_hosts }
nodes:
  - { name: own1, os: debian-12, nics: { model: ConnectX-6, netdev: ens1 } }
  - { name: 'gpu[1-3]', os: debian-12, nics: { model: ConnectX-6, netdev: ens1 }, ssh: none }
";

/// None is.
fn none() -> String {
    MIXED
        .replace("ssh: { user: root, host_keys: known_hosts }", "ssh: none")
        .replace(", ssh: none }", " }")
}

fn place(spec: &str) -> Place {
    let place = Place::new();
    place
        .write("inv/cluster.yaml", spec)
        .write("inv/known_hosts", "");
    place
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_spec_says_how_hosts_are_reached_or_that_they_are_not() {
    for (spec, words) in [
        (none(), "4 hosts (gpu[1-3],own1), none with SSH"),
        (
            MIXED.to_owned(),
            "4 hosts (gpu[1-3],own1), 3 of them without SSH",
        ),
        // A group that says how is reached, whatever is said of the others.
        (
            none().replace(
                "netdev: ens1 } }\n  - { name: 'gpu",
                "netdev: ens1 }, ssh: {} }\n  - { name: 'gpu",
            ),
            "3 of them without SSH",
        ),
    ] {
        let said = place(&spec).run(&["validate", "inv"]);
        assert!(
            flat(&said).contains(words) && said.ends_with("--- exit 0 ---\n"),
            "{said}"
        );
    }
    for (ssh, at, words) in [
        (
            "off",
            "3:6",
            "`ssh` wants `none`, or a mapping (`user: root`)",
        ),
        (
            "[root]",
            "3:6",
            "`ssh` wants `none`, or a mapping (`user: root`)",
        ),
        (
            "22",
            "3:6",
            "`ssh` wants `none`, or a mapping (`user: root`)",
        ),
        ("", "3:4", "`ssh` wants `none`, or a mapping (`user: root`)"),
        ("{ usr: root }", "3:8", "unknown key `usr`"),
        (
            "{ port: ssh }",
            "3:14",
            "`port` wants a whole number from 0 to 65535",
        ),
    ] {
        let said =
            place(&none().replace("ssh: none", &format!("ssh: {ssh}"))).run(&["validate", "inv"]);
        assert!(
            said.contains(words) && said.contains(&format!("[inv/cluster.yaml:{at}]")),
            "{ssh}: {said}"
        );
    }
}

#[test]
fn nothing_is_planned_for_them_and_what_they_go_without_is_told() {
    let place = place(&none());
    let said = place.run(&["plan", "inv"]);
    let modules = "gpu[1-3],own1 without jumbo-mtu, memlock";
    assert!(
        said.contains("NO SSH, by the spec")
            && flat(&said).contains("without")
            && said.ends_with("--- exit 0 ---\n"),
        "{said} {modules}"
    );
    assert!(said.contains(" . gpu[1-3],own1 "), "{said}");
    let plan: serde_json::Value = serde_json::from_slice(
        &place
            .command(&["plan", "inv", "--json"])
            .output()
            .unwrap()
            .stdout,
    )
    .unwrap();
    assert_eq!(
        (&plan["no_ssh"][0]["hosts"], &plan["nodes"]),
        (&"gpu[1-3],own1".into(), &serde_json::json!([]))
    );
    assert!(
        plan["no_ssh"][0]["modules"]
            .as_array()
            .unwrap()
            .contains(&"memlock".into()),
        "{plan}"
    );

    let drift = place.run(&["drift", "inv"]);
    assert!(
        drift.contains("NO SSH, by the spec") && drift.ends_with("--- exit 0 ---\n"),
        "{drift}"
    );
    let explained = place.run(&["explain", "host/gpu1", "inv"]);
    assert!(
        explained.contains("NOT HERE: what needs SSH") && explained.contains("memlock"),
        "{explained}"
    );
    let facts = place.run(&["facts", "inv", "-o", "facts.json"]);
    assert!(
        facts.contains("not asked, because they have no SSH: gpu[1-3],own1"),
        "{facts}"
    );
}

#[test]
fn who_names_such_a_host_is_told_what_that_means() {
    let place = place(MIXED);
    for words in [
        &["plan", "inv", "--target", "host/gpu2"][..],
        &["plan", "inv", "--exclude", "gpu[1-2]"],
    ] {
        let said = place.run(words);
        assert!(
            said.contains("RW1041") && said.contains("has no SSH: the spec says `ssh: none` of it"),
            "{said}"
        );
    }
    let said = place.run(&["lock", "steal", "inv", "--host", "gpu3", "--reason", "dead"]);
    assert!(
        said.contains("RW1041") && said.contains("host/gpu3"),
        "{said}"
    );
    let place = self::place(&none());
    let said = place.run(&["verify", "inv"]);
    assert!(
        said.contains("RW1042") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
}

#[test]
fn a_module_that_is_enabled_by_name_and_cannot_be_there_is_a_warning() {
    let said = place(&format!(
        "{MIXED}modules:\n  numa-balancing: {{ enabled: true, parameters: {{ automatic: false }} }}\n"
    ))
    .run(&["validate", "inv"]);
    assert!(
        said.contains("warning RW0231")
            && said.contains("[inv/cluster.yaml:8:30]")
            && said.contains("gpu[1-3] cannot have it"),
        "{said}"
    );
}
