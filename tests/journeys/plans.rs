//! `plan`, `show`, `graph` and `drift` from a recorded observation: no machine, no root, no connection.

use crate::support::Place;
use std::fs;
use std::path::PathBuf;

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The lab's inventory and the recording of its bare machines, as in the repository.
fn lab() -> Place {
    let place = Place::new();
    place.write("inventories/lab/cluster.yaml", fs::read(repository("inventories/lab/cluster.yaml")).unwrap());
    place.write("plans/lab/fresh.json", fs::read(repository("plans/lab/fresh.json")).unwrap());
    place
}

const PLAN: [&str; 4] = ["plan", "inventories/lab", "--observations", "plans/lab/fresh.json"];

#[test]
fn the_first_plan_of_the_lab_is_the_one_that_is_kept() {
    let screen = lab().run(&PLAN);
    let kept = repository("plans/lab/fresh.txt");
    if std::env::var_os("RAILWRIGHT_UPDATE").is_some() {
        fs::write(&kept, &screen).unwrap();
    }
    assert_eq!(screen, fs::read_to_string(&kept).unwrap(), "RAILWRIGHT_UPDATE=1 writes it anew");
    let long: Vec<&str> = screen.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(long.is_empty(), "lines beyond 100 columns: {long:#?}");
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let place = lab();
    for file in ["a.plan", "b.plan"] {
        assert!(place.run(&[&PLAN[..], &["-o", file]].concat()).ends_with("--- exit 0 ---\n"));
    }
    let read = |file: &str| fs::read(place.path().join(file)).unwrap();
    assert!(read("a.plan") == read("b.plan"));
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(place.path().join("a.plan")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_saved_plan_is_shown_without_its_inventory() {
    let place = lab();
    place.run(&[&PLAN[..], &["-o", "lab.plan"]].concat());
    fs::remove_dir_all(place.path().join("inventories")).unwrap();
    let whole = place.run(&["show", "lab.plan"]);
    assert!(whole.contains("REBOOT") && whole.contains("railwright apply lab.plan"), "{whole}");
    let one = place.run(&["show", "lab.plan", "host/node1/kernel_parameter/iommu"]);
    assert!(one.contains("host/node1/kernel_parameter/iommu") && one.contains("write_file"), "{one}");
    assert!(place.run(&["show", "lab.plan", "host/node9"]).contains("RW0306"));
    assert!(place.run(&["graph", "lab.plan"]).starts_with("$ railwright graph lab.plan\ndigraph plan {"));
    assert!(place.run(&["graph", "lab.plan", "--format", "mermaid"]).contains("flowchart LR"));
    let json = place.run(&["show", "lab.plan", "--json"]);
    assert!(json.contains("\"format_version\": \"1.0\""));
}

#[test]
fn an_edited_plan_is_refused_and_nothing_is_applied() {
    let place = lab();
    place.run(&[&PLAN[..], &["-o", "lab.plan"]].concat());
    let text = fs::read_to_string(place.path().join("lab.plan")).unwrap();
    place.write("lab.plan", text.replace("\"mtu\": 9000", "\"mtu\": 1500"));
    for command in [&["show", "lab.plan"][..], &["apply", "lab.plan", "--yes"]] {
        let said = place.run(command);
        assert!(said.contains("RW0304") && said.contains("nothing was changed"), "{said}");
    }
    assert!(!place.path().join("inventories/lab/.railwright").exists());
}

#[test]
fn a_part_of_the_cluster_is_planned_and_said_to_be_a_part() {
    let place = lab();
    let said = place.run(&[&PLAN[..], &["--target", "host/node[2]", "--detailed-exitcode"]].concat());
    assert!(said.contains("narrowed to a part of the cluster: --target host/node2") && said.ends_with("--- exit 2 ---\n"), "{said}");
    assert!(!said.contains("node[1-2]"));
    assert!(place.run(&[&PLAN[..], &["--target", "host/node3"]].concat()).contains("RW0301"));
    assert!(place.run(&[&PLAN[..], &["--exclude", "rack/1"]].concat()).contains("RW1011"));
}

#[test]
fn a_broken_recording_is_told_from_a_newer_one() {
    let place = lab();
    place.write("cut.json", "{\"format_version\": \"1.0\", ");
    place.write("newer.json", "{\"format_version\": \"2.0\", \"recorded_at\": \"\", \"targets\": {}}");
    for file in ["cut.json", "newer.json"] {
        let said = place.run(&["plan", "inventories/lab", "--observations", file]);
        assert!(said.contains("RW1012") && said.ends_with("--- exit 1 ---\n"), "{said}");
    }
}

#[test]
fn drift_of_bare_machines_is_everything_and_exits_with_two() {
    let said = lab().run(&["drift", "inventories/lab", "--observations", "plans/lab/fresh.json"]);
    assert!(said.contains("link/ens1f0np0") && said.ends_with("--- exit 2 ---\n"), "{said}");
}
