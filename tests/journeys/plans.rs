//! `plan`, `show`, `graph` and `drift` from a recorded observation: no machine, no root, no
//! connection.

use crate::support::Place;
use std::fs;
use std::path::PathBuf;

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The lab's inventory and the recording of its bare machines, as in the repository.
fn lab() -> Place {
    let place = Place::new();
    place.write(
        "inventories/lab/cluster.yaml",
        fs::read(repository("inventories/lab/cluster.yaml")).unwrap(),
    );
    place.write(
        "plans/lab/fresh.json",
        fs::read(repository("plans/lab/fresh.json")).unwrap(),
    );
    place
}

const PLAN: [&str; 4] = [
    "plan",
    "inventories/lab",
    "--observations",
    "plans/lab/fresh.json",
];

#[test]
fn the_first_plan_of_the_lab_is_the_one_that_is_kept() {
    let screen = lab().run(&PLAN);
    let kept = repository("plans/lab/fresh.txt");
    if std::env::var_os("RAILWRIGHT_UPDATE").is_some() {
        fs::write(&kept, &screen).unwrap();
    }
    assert_eq!(
        screen,
        fs::read_to_string(&kept).unwrap(),
        "RAILWRIGHT_UPDATE=1 writes it anew"
    );
    let long: Vec<&str> = screen
        .lines()
        .filter(|line| line.chars().count() > 100)
        .collect();
    assert!(long.is_empty(), "lines beyond 100 columns: {long:#?}");
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let place = lab();
    for file in ["a.plan", "b.plan"] {
        assert!(
            place
                .run(&[&PLAN[..], &["-o", file]].concat())
                .ends_with("--- exit 0 ---\n")
        );
    }
    let read = |file: &str| fs::read(place.path().join(file)).unwrap();
    assert!(read("a.plan") == read("b.plan"));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(
        fs::metadata(place.path().join("a.plan"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o600
    );
}

#[test]
fn a_saved_plan_is_shown_without_its_inventory() {
    let place = lab();
    place.run(&[&PLAN[..], &["-o", "lab.plan"]].concat());
    fs::remove_dir_all(place.path().join("inventories")).unwrap();
    let whole = place.run(&["show", "lab.plan"]);
    assert!(
        whole.contains("REBOOT") && whole.contains("railwright apply lab.plan"),
        "{whole}"
    );
    let one = place.run(&["show", "lab.plan", "host/node1/kernel_parameter/iommu"]);
    assert!(
        one.contains("host/node1/kernel_parameter/iommu") && one.contains("write_file"),
        "{one}"
    );
    assert!(
        place
            .run(&["show", "lab.plan", "host/node9"])
            .contains("RW0306")
    );
    assert!(
        place
            .run(&["graph", "lab.plan"])
            .starts_with("$ railwright graph lab.plan\ndigraph plan {")
    );
    assert!(
        place
            .run(&["graph", "lab.plan", "--format", "mermaid"])
            .contains("flowchart LR")
    );
    let json = place.run(&["show", "lab.plan", "--json"]);
    assert!(json.contains("\"format_version\": \"6.0\""));
}

#[test]
fn an_edited_plan_is_refused_and_nothing_is_applied() {
    let place = lab();
    place.run(&[&PLAN[..], &["-o", "lab.plan"]].concat());
    let text = fs::read_to_string(place.path().join("lab.plan")).unwrap();
    place.write("lab.plan", text.replace("\"mtu\": 9000", "\"mtu\": 1500"));
    for command in [&["show", "lab.plan"][..], &["apply", "lab.plan", "--yes"]] {
        let said = place.run(command);
        assert!(
            said.contains("RW0304") && said.contains("nothing was changed"),
            "{said}"
        );
    }
    assert!(!place.path().join("inventories/lab/.railwright").exists());
}

#[test]
fn a_part_of_the_cluster_is_planned_and_said_to_be_a_part() {
    let place = lab();
    let said = place.run(
        &[
            &PLAN[..],
            &["--target", "host/node[2]", "--detailed-exitcode"],
        ]
        .concat(),
    );
    assert!(
        said.contains("narrowed to a part of the cluster: --target host/node2")
            && said.ends_with("--- exit 2 ---\n"),
        "{said}"
    );
    assert!(!said.contains("node[1-2]"));
    assert!(
        place
            .run(&[&PLAN[..], &["--target", "host/node3"]].concat())
            .contains("RW0301")
    );
    assert!(
        place
            .run(&[&PLAN[..], &["--exclude", "rack/1"]].concat())
            .contains("RW1011")
    );
}

#[test]
fn what_the_screen_prints_can_be_named_on_the_command_line() {
    let place = lab();
    let members = |words: &[&str]| {
        let said = place.run(&[&PLAN[..], words, &["--json"]].concat());
        let json: serde_json::Value = serde_json::from_str(
            said.split_once('\n')
                .unwrap()
                .1
                .split("--- ")
                .next()
                .unwrap(),
        )
        .unwrap();
        let nodes = json["nodes"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|node| node["members"].as_array().cloned().unwrap_or_default());
        nodes
            .map(|member| member["resource"]["address"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let file = "host/node1/file/%2Fetc%2Fsecurity%2Flimits.d%2F90-rdma.conf";
    assert_eq!(
        members(&["--target", "node1 file /etc/security/limits.d/90-rdma.conf"]),
        [file]
    );
    assert_eq!(members(&["--target", file]), [file]);
    assert_eq!(
        members(&["--target", "file /etc/security/limits.d/90-rdma.conf"]),
        [file, &file.replace("node1", "node2")]
    );
    place.run(&[&PLAN[..], &["-o", "lab.plan"]].concat());
    let one = place.run(&[
        "show",
        "lab.plan",
        "node1",
        "file",
        "/etc/security/limits.d/90-rdma.conf",
    ]);
    assert!(
        one.contains(file) && !one.contains("node2") && one.ends_with("--- exit 0 ---\n"),
        "{one}"
    );
    assert!(
        place
            .run(&["show", "lab.plan", "node[1-2] link ens1f0np0"])
            .contains("host/node2/link/ens1f0np0")
    );
}

#[test]
fn a_recording_of_nobody_does_not_take_the_place_of_a_good_one() {
    let place = Place::new();
    // Nothing listens there: the connection is refused at once.
    place.write(
        "inv/cluster.yaml",
        "cluster: a\n\
         ssh: { user: root, host_keys: k }\n\
         nodes: [{ name: n1, ssh: { address: 127.0.0.1, port: 1 } }]\n",
    );
    place.write("inv/k", "").write("facts.json", "good");
    let said = place.run(&["facts", "inv", "-o", "facts.json"]);
    assert!(
        said.contains("RW1030") && said.contains("? n1") && said.ends_with("--- exit 3 ---\n"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(place.path().join("facts.json")).unwrap(),
        "good"
    );
}

#[test]
fn nothing_to_resume_names_the_inventory_and_is_a_refusal() {
    let place = Place::new();
    place.write("inv/cluster.yaml", "cluster: a\n");
    let said = place.run(&["resume", "inv"]);
    assert!(
        said.contains("RW1014")
            && said.contains("railwright plan inv")
            && said.ends_with("--- exit 4 ---\n"),
        "{said}"
    );
}

#[test]
fn a_broken_recording_is_told_from_a_newer_one() {
    let place = lab();
    place.write("cut.json", "{\"format_version\": \"3.0\", ");
    place.write(
        "newer.json",
        "{\"format_version\": \"4.0\", \"recorded_at\": \"\", \"targets\": {}}",
    );
    for file in ["cut.json", "newer.json"] {
        let said = place.run(&["plan", "inventories/lab", "--observations", file]);
        assert!(
            said.contains("RW1012") && said.ends_with("--- exit 1 ---\n"),
            "{said}"
        );
    }
}

#[test]
fn drift_of_bare_machines_is_everything_and_exits_with_two() {
    let said = lab().run(&[
        "drift",
        "inventories/lab",
        "--observations",
        "plans/lab/fresh.json",
    ]);
    assert!(
        said.contains("as recorded 2026-11-21T15:41:13Z in plans/lab/fresh.json\n"),
        "{said}"
    );
    assert!(
        said.contains("link/ens1f0np0") && said.ends_with("--- exit 2 ---\n"),
        "{said}"
    );
}

/// Of two answers to one question nobody knows which is true.
#[test]
fn a_recording_with_a_key_twice_is_refused() {
    let place = lab();
    let text = fs::read_to_string(place.path().join("plans/lab/fresh.json")).unwrap();
    let at = text.find("\"host/").unwrap();
    let doubled = format!(
        "{}\"host/node[1-2]\": {{}}, \"host/node[1-2]\": {{}}, {}",
        &text[..at],
        &text[at..]
    );
    place.write("doubled.json", doubled);
    let said = place.run(&["plan", "inventories/lab", "--observations", "doubled.json"]);
    assert!(
        said.contains("RW1012")
            && said.contains("stands there twice")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
}
