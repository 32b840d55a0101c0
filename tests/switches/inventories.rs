//! The first plan of an inventory whose switches are reached: recorded of a stand-in as it is delivered and of the hosts that another
//! inventory was recorded of (`plans/NAME/bare.json`), and the plan that it must give (`plans/NAME/bare.txt`). With RAILWRIGHT_UPDATE=1
//! in the environment both are written anew; read the difference.

use crate::rig::Switch;
use crate::support::Place;
use railwright::base::TargetKind;
use railwright::resource::Observation;
use std::fs;
use std::path::{Path, PathBuf};

/// An inventory, the one whose hosts it has, and the model of all its switches.
const RECORDED: (&str, &str, &str) = ("rail-optimised", "roce-h100-rail", "sn5600-128");

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn text(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap_or_default()
}

fn observation(text: &str) -> Observation {
    serde_json::from_str(text).unwrap()
}

/// The kept text, or this one in its place.
fn keep(path: &str, text: &str) -> String {
    if std::env::var_os("RAILWRIGHT_UPDATE").is_some() {
        fs::create_dir_all(repository(path).parent().unwrap()).unwrap();
        fs::write(repository(path), text).unwrap();
    }
    fs::read_to_string(repository(path)).unwrap_or_default()
}

/// The inventory with one stand-in in the place of every switch, and without a way to its hosts.
fn with_switches_alone(switch: &Switch, inventory: &str) -> Place {
    let place = Place::new();
    let spec = text(&format!("inventories/{inventory}/cluster.yaml"));
    let login = format!("{{ user: root, address: 127.0.0.1, port: {}, identities: [id] }}", switch.server.port);
    let line = |line: &str| match line {
        node if node.starts_with("  - name: gpu") => format!("{node}\n    ssh: none\n"),
        anchor if anchor.contains("ssh: &login") => format!("    ssh: &login {login}\n"),
        other => format!("{other}\n"),
    };
    let folder = format!("inventories/{inventory}");
    place.write(&format!("{folder}/cluster.yaml"), spec.lines().map(line).collect::<String>());
    place.write(&format!("{folder}/cabling.csv"), text(&format!("{folder}/cabling.csv")));
    let key = include_str!("../../modules/package-repositories/tests/no-os/key.asc");
    place.write(&format!("{folder}/keys/mellanox.asc"), key).write(&format!("{folder}/keys/cuda.asc"), key);
    place.write(&format!("{folder}/known_hosts"), switch.known_hosts() + "\n").write(&format!("{folder}/id"), switch.identity());
    place
}

/// A boot id is of one boot alone, and the kernel with its command line of the machine that this runs on.
fn of_any_machine(answer: &str) -> String {
    let line = |line: &str| match line.split(' ').next() {
        Some("boot_id") => "boot_id 00000000-0000-4000-8000-000000000000\n".to_owned(),
        Some("kernel") => "kernel 6.1.0-22-2-amd64\n".to_owned(),
        Some("cmdline") => "cmdline quiet\n".to_owned(),
        _ => line.to_owned(),
    };
    answer.split_inclusive('\n').map(line).collect()
}

#[test]
fn switches_say_what_is_recorded_of_them() {
    let (inventory, hosts, model) = RECORDED;
    let Some(switch) = Switch::start("recorded", model) else { return };
    let place = with_switches_alone(&switch, inventory);
    let said = place.run(&["facts", &format!("inventories/{inventory}"), "-o", "bare.json"]);
    assert!(said.ends_with("--- exit 0 ---\n"), "{said}");
    let mut recorded = observation(&fs::read_to_string(place.path().join("bare.json")).unwrap());
    recorded.targets.values_mut().for_each(|found| found.answers.rewrite(of_any_machine));
    assert_eq!(recorded.targets.keys().filter(|target| target.kind == TargetKind::Switch).count(), 24, "{said}");
    let of_hosts = observation(&text(&format!("plans/{hosts}/bare.json")));
    recorded.targets.extend(of_hosts.targets);
    recorded.texts.extend(of_hosts.texts);
    let recorded = serde_json::to_string_pretty(&recorded).unwrap() + "\n";
    assert_eq!(recorded, keep(&format!("plans/{inventory}/bare.json"), &recorded), "RAILWRIGHT_UPDATE=1 writes it anew");
}

#[test]
fn the_first_plan_of_hosts_and_switches_is_the_one_that_is_kept() {
    let (inventory, ..) = RECORDED;
    let (place, bare) = (Place::new(), format!("plans/{inventory}/bare.json"));
    for file in ["cluster.yaml", "cabling.csv"] {
        let path = format!("inventories/{inventory}/{file}");
        place.write(&path, text(&path));
    }
    place.write(&bare, text(&bare));
    let screen = place.run(&["plan", &format!("inventories/{inventory}"), "--observations", &bare]);
    assert_eq!(screen, keep(&format!("plans/{inventory}/bare.txt"), &screen), "RAILWRIGHT_UPDATE=1 writes it anew");
    let long: Vec<&str> = screen.lines().filter(|line| line.chars().count() > 100).collect();
    assert_eq!(long, [""; 0], "beyond 100 columns");
}
