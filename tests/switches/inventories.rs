//! The first plan of an inventory whose switches are reached: recorded of a fake as it is
//! delivered and of the hosts that another inventory was recorded of (`plans/NAME/bare.json`), and
//! the plan that it must give (`plans/NAME/bare.txt`). With RAILWRIGHT_UPDATE=1 in the environment
//! both are written anew; read the difference.

use crate::rig::Switch;
use crate::support::Place;
use railwright_base::{Target, TargetKind, nodeset};
use railwright_resource::Observation;
use std::fs;
use std::path::{Path, PathBuf};

/// An inventory whose switches are reached.
struct Recorded {
    inventory: &'static str,
    /// The inventory whose host was recorded; all hosts are as it is.
    hosts: &'static str,
    /// How each group of switches is reached, as the spec has it; its system, and the model that
    /// stands in for all of them.
    groups: &'static [(&'static str, &'static str, &'static str)],
    /// How many switches there are.
    switches: usize,
}

const RAIL_OPTIMISED: Recorded = Recorded {
    inventory: "rail-optimised",
    hosts: "roce-h100-rail",
    groups: &[("ssh: &login ", "sonic", "sn5600-128")],
    switches: 24,
};

const TWO_VENDORS: Recorded = Recorded {
    inventory: "two-vendors",
    hosts: "roce-h100-rail",
    groups: &[
        ("ssh: { user: admin }", "sonic", "tomahawk5-128"),
        ("ssh: { user: cumulus }", "cumulus", "sn4700-32"),
    ],
    switches: 8,
};

const EOS_PAIR: Recorded = Recorded {
    inventory: "eos-pair",
    hosts: "roce-h100-rail",
    groups: &[("ssh: { user: admin }", "eos", "7060x6-64")],
    switches: 2,
};

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

/// The inventory with one fake in the place of every switch of a group, and without a way to
/// its hosts.
fn with_switches_alone(recorded: &Recorded, switches: &[Switch]) -> Place {
    let place = Place::new();
    let folder = format!("inventories/{}", recorded.inventory);
    let spec = text(&format!("{folder}/cluster.yaml"));
    let login = |n: usize| {
        format!(
            "{{ user: root, address: 127.0.0.1, port: {}, identities: [id{n}] }}",
            switches[n].server.port
        )
    };
    let line = |line: &str| match recorded
        .groups
        .iter()
        .position(|(ssh, ..)| line.trim_start().starts_with(ssh))
    {
        Some(group) if line.contains("&login") => format!("    ssh: &login {}\n", login(group)),
        Some(group) => format!("    ssh: {}\n", login(group)),
        None if line.starts_with("  - name: gpu") => format!("{line}\n    ssh: none\n"),
        None => format!("{line}\n"),
    };
    place.write(
        &format!("{folder}/cluster.yaml"),
        spec.lines().map(line).collect::<String>(),
    );
    place.write(
        &format!("{folder}/cabling.csv"),
        text(&format!("{folder}/cabling.csv")),
    );
    let key = include_str!("../../modules/package-repositories/tests/no-os/key.asc");
    place
        .write(&format!("{folder}/keys/mellanox.asc"), key)
        .write(&format!("{folder}/keys/cuda.asc"), key);
    place.write(
        &format!("{folder}/known_hosts"),
        switches
            .iter()
            .map(|switch| switch.known_hosts() + "\n")
            .collect::<String>(),
    );
    for (n, switch) in switches.iter().enumerate() {
        place.write(&format!("{folder}/id{n}"), switch.identity());
    }
    place
}

/// What was recorded of one host, of all hosts of an inventory.
fn hosts_of(recorded: &Recorded) -> Observation {
    let mut found = observation(&text(&format!("plans/{}/bare.json", recorded.hosts)));
    let one = found.targets.values().next().unwrap().clone();
    let spec = text(&format!("inventories/{}/cluster.yaml", recorded.inventory));
    let names: Vec<&str> = spec
        .lines()
        .filter_map(|line| line.strip_prefix("  - name: gpu"))
        .collect();
    let names = names
        .iter()
        .flat_map(|name| nodeset::expand_node_set(&format!("gpu{name}")).unwrap());
    found.targets = names
        .map(|name| (Target::host(&name), one.clone()))
        .collect();
    found
}

/// A boot id is of one boot alone, and the kernel with its command line and the processor are of
/// the machine that this runs on.
fn of_any_machine(answer: &str) -> String {
    let line = |line: &str| match line.split([' ', '=']).next() {
        Some("boot_id") => "boot_id 00000000-0000-4000-8000-000000000000\n".to_owned(),
        Some("kernel") => "kernel 6.1.0-22-2-amd64\n".to_owned(),
        Some("cmdline") => "cmdline quiet\n".to_owned(),
        Some("machine_id" | "pid_namespace") => String::new(),
        Some("|processor_vendor") => "|processor_vendor=AuthenticAMD\n".to_owned(),
        Some("|processor") => "|processor=AMD EPYC\n".to_owned(),
        Some("|microcode") => "|microcode=0x1000065\n".to_owned(),
        _ => line.to_owned(),
    };
    answer.split_inclusive('\n').map(line).collect()
}

fn switches_say_what_is_recorded_of_them(recorded: &Recorded) {
    let Recorded { inventory, .. } = recorded;
    let start = |(_, system, model): &(&str, &str, &str)| {
        Switch::start_as(&format!("recorded-{inventory}-{system}"), system, model)
    };
    let Some(switches) = recorded
        .groups
        .iter()
        .map(start)
        .collect::<Option<Vec<Switch>>>()
    else {
        return;
    };
    let place = with_switches_alone(recorded, &switches);
    let said = place.run(&[
        "facts",
        &format!("inventories/{inventory}"),
        "-o",
        "bare.json",
    ]);
    assert!(said.ends_with("--- exit 0 ---\n"), "{said}");
    let mut found = observation(&fs::read_to_string(place.path().join("bare.json")).unwrap());
    found
        .targets
        .values_mut()
        .for_each(|found| found.answers.rewrite(of_any_machine));
    assert_eq!(
        found
            .targets
            .keys()
            .filter(|target| target.kind == TargetKind::Switch)
            .count(),
        recorded.switches,
        "{said}"
    );
    let of_hosts = hosts_of(recorded);
    found.targets.extend(of_hosts.targets);
    found.texts.extend(of_hosts.texts);
    let found = serde_json::to_string_pretty(&found).unwrap() + "\n";
    assert!(
        !found.contains("never-to-be-seen"),
        "secrets of a switch stay on it"
    );
    assert_eq!(
        found,
        keep(&format!("plans/{inventory}/bare.json"), &found),
        "RAILWRIGHT_UPDATE=1 writes it anew"
    );
}

#[test]
fn switches_of_the_rail_optimised_fabric_say_what_is_recorded_of_them() {
    switches_say_what_is_recorded_of_them(&RAIL_OPTIMISED);
}

#[test]
fn switches_of_two_vendors_say_what_is_recorded_of_them() {
    switches_say_what_is_recorded_of_them(&TWO_VENDORS);
}

#[test]
fn a_pair_with_eos_says_what_is_recorded_of_it() {
    switches_say_what_is_recorded_of_them(&EOS_PAIR);
}

#[test]
fn the_first_plan_of_hosts_and_switches_is_the_one_that_is_kept() {
    for Recorded { inventory, .. } in [RAIL_OPTIMISED, TWO_VENDORS, EOS_PAIR] {
        let (place, bare) = (Place::new(), format!("plans/{inventory}/bare.json"));
        for file in ["cluster.yaml", "cabling.csv"] {
            let path = format!("inventories/{inventory}/{file}");
            place.write(&path, text(&path));
        }
        place.write(&bare, text(&bare));
        let screen = place.run(&[
            "plan",
            &format!("inventories/{inventory}"),
            "--observations",
            &bare,
        ]);
        assert!(!screen.contains("\nerror RW"), "{screen}");
        assert_eq!(
            screen,
            keep(&format!("plans/{inventory}/bare.txt"), &screen),
            "RAILWRIGHT_UPDATE=1 writes it anew"
        );
        let long: Vec<&str> = screen
            .lines()
            .filter(|line| line.chars().count() > 100)
            .collect();
        assert_eq!(long, [""; 0], "beyond 100 columns");
    }
}
