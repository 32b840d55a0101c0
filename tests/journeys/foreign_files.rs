//! An inventory of somebody else, as a pull request brings it: what it names outside of its folder is not shown, what is no file does
//! not keep anybody waiting, and its templates come to an end.

use crate::support::Place;
use std::os::unix::fs::symlink;
use std::process::Command;

const SPEC: &str = "cluster: c\nfabric: { kind: rocev2 }\nssh: { user: root, host_keys: known_hosts }\n\
                    nodes: [{ name: n1, os: debian-12, nics: { model: soft-roce, netdev: rail0 } }]\nswitches: [{ name: leaf1 }]\n";

/// What stands in every foreign file.
const POISON: &str = "P0ISON-token";

/// An inventory beside files that are none of its own.
fn place() -> Place {
    let place = Place::new();
    place.write("outside", format!("{POISON},Ethernet1,{POISON}\n"));
    place.write("inv/note", "");
    symlink("../outside", place.path().join("inv/link")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path().join("inv/pipe")).status().unwrap().success());
    place
}

fn validate(place: &Place) -> String {
    let output = place.command(&["validate", "inv"]).env("POISON", POISON).output().unwrap();
    [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat()
}

#[test]
fn the_cabling_is_a_file_of_the_inventory() {
    let place = place();
    for (named, why) in [
        ("../outside", "lies outside of the inventory"),
        ("link", "lies outside of the inventory"),
        ("/proc/self/environ", "lies outside of the inventory"),
        ("/dev/zero", "lies outside of the inventory"),
        ("~/outside", "lies outside of the inventory"),
        ("pipe", "is no ordinary file"),
        ("gone.csv", "is not there"),
    ] {
        place.write("inv/cluster.yaml", format!("{SPEC}cabling: {named}\n"));
        let said = validate(&place);
        assert!(said.contains("RW0148") && said.contains(why) && said.contains("named here"), "{named}: {said}");
        assert!(!said.contains(POISON), "{named}: {said}");
    }
}

#[test]
fn a_signing_key_outside_is_neither_shown_nor_sent() {
    let place = place();
    let repository = |key: &str| format!("repositories: [{{ name: x, url: 'https://x.example/', suite: ./, key: {key} }}]\n");
    for key in ["../outside", "link", "/proc/self/environ", "/dev/zero", "~/outside", "gone"] {
        place.write("inv/cluster.yaml", format!("{SPEC}{}", repository(key)));
        let said = validate(&place);
        assert!(!said.contains(POISON), "{key}: {said}");
    }
    for key in ["../outside", "link", "/proc/self/environ"] {
        place.write("inv/cluster.yaml", format!("{SPEC}{}", repository(key)));
        let said = place.run(&["plan", "inv"]);
        assert!(said.contains("RW0175") && said.contains("named here") && !said.contains(POISON), "{key}: {said}");
    }
}

/// State is neither read nor written where a link of the inventory leads.
#[test]
fn a_state_folder_that_leads_elsewhere_is_refused() {
    for (link, to) in [(".railwright", "../elsewhere"), (".railwright/runs", "../../elsewhere")] {
        let place = place();
        place.write("inv/cluster.yaml", SPEC).write("elsewhere/runs/x", POISON);
        std::fs::create_dir_all(place.path().join("inv").join(link).parent().unwrap()).unwrap();
        symlink(to, place.path().join("inv").join(link)).unwrap();
        for words in [&["state", "list", "inv"][..], &["rollout", "status", "inv"], &["rollout", "pause", "inv"], &["plan", "inv"]] {
            let said = place.run(words);
            assert!(said.contains(&format!("RW0162: {link} is a link")) && !said.contains(POISON), "{words:?}: {said}");
            assert!(!said.ends_with("--- exit 0 ---\n"), "{words:?}: {said}");
        }
        let left: Vec<_> = std::fs::read_dir(place.path().join("elsewhere")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["runs"], "{link}");
    }
}

/// Without a limit this one goes on for hours.
#[test]
fn a_template_that_would_not_end_is_told_with_its_line() {
    let place = Place::new();
    place.write("inv/cluster.yaml", format!("{SPEC}modules: {{ m: {{ enabled: true }} }}\n"));
    place.write(
        "inv/modules/m/module.yaml",
        "module: m\nsummary: a file\nresources:\n  - id: x\n    file: { path: /etc/x, template: x.j2, mode: '0644' }\n",
    );
    let turns = "{% for a in range(end=99999) %}\n{% for b in range(end=99999) %}{% endfor %}{% endfor %}\n";
    place.write("inv/modules/m/templates/x.j2", format!("first\n{turns}"));
    let said = place.run(&["validate", "inv"]);
    assert!(said.contains("RW0217") && said.contains("templates/x.j2:3:1") && said.ends_with("--- exit 1 ---\n"), "{said}");
}

/// Each of these ends by itself in a tenth of a second; all of them on all hosts take minutes.
#[test]
fn many_templates_do_not_work_without_end_together() {
    let place = Place::new();
    place.write("inv/cluster.yaml", format!("{SPEC}modules: {{ m: {{ enabled: true }} }}\n"));
    let mut module = "module: m\nsummary: files\nresources:\n".to_owned();
    for n in 0..200 {
        module.push_str(&format!("  - id: x{n}\n    file: {{ path: /etc/x{n}, template: x{n}.j2, mode: '0644' }}\n"));
        place.write(&format!("inv/modules/m/templates/x{n}.j2"), "{% for a in range(end=99999) %}{% set b = a * 2 %}{% endfor %}\n");
    }
    place.write("inv/modules/m/module.yaml", module);
    let said = place.run(&["validate", "inv"]);
    assert!(said.contains("all of them may take together") && said.ends_with("--- exit 1 ---\n"), "{said}");
    let told = said.matches("RW0217").count();
    assert!(told == 1 && said.contains(".j2:1:1"), "one error that names a template and its line: {said}");
}
