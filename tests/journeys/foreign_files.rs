//! An inventory of somebody else, as a pull request brings it: what it names outside of its folder
//! is not shown, what is no file does not keep anybody waiting, and its templates come to an end.

use crate::support::Place;
use railwright_resource::Observation;
use std::os::unix::fs::symlink;
use std::process::Command;

const SPEC: &str = "cluster: c\n\
                    fabric: { kind: rocev2 }\n\
                    ssh: { user: root, host_keys: known_hosts }\n\
                    nodes: [{ name: n1, os: debian-12, nics: { model: soft-roce, netdev: rail0 } \
                    }]\n\
                    switches: [{ name: leaf1 }]\n";

/// What stands in every foreign file.
const POISON: &str = "P0ISON-token";

/// An inventory beside files that are none of its own.
fn place() -> Place {
    let place = Place::new();
    place.write("outside", format!("{POISON},Ethernet1,{POISON}\n"));
    place.write("inv/note", "");
    symlink("../outside", place.path().join("inv/link")).unwrap();
    pipe(&place, "inv/pipe.csv");
    place
}

/// A pipe into which nobody writes.
fn pipe(place: &Place, path: &str) {
    let path = place.path().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn validate(place: &Place) -> String {
    let output = place
        .command(&["validate", "inv"])
        .env("POISON", POISON)
        .output()
        .unwrap();
    [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .concat()
}

#[test]
fn the_cabling_is_a_file_of_the_inventory() {
    let place = place();
    for private in [".railwright/seal-key", "token", "token.csv", "id.csv"] {
        place.write(&format!("inv/{private}"), POISON);
    }
    symlink(".railwright/seal-key", place.path().join("inv/key.csv")).unwrap();
    symlink("token.csv", place.path().join("inv/again.csv")).unwrap();
    for (named, why) in [
        ("../outside", "lies outside of the inventory"),
        ("../gone.csv", "lies outside of the inventory"),
        ("link", "lies outside of the inventory"),
        ("/proc/self/environ", "lies outside of the inventory"),
        ("/dev/zero", "lies outside of the inventory"),
        ("~/outside", "lies outside of the inventory"),
        ("pipe.csv", "is no ordinary file"),
        (".railwright/seal-key", "is hidden"),
        ("key.csv", "is hidden"),
        ("token", "is no file *.csv"),
        ("token.csv", "is named as a secret"),
        ("again.csv", "is named as a secret"),
        ("id.csv", "is named as a secret"),
        ("gone.csv", "is not there"),
    ] {
        let spec = SPEC.replace(
            "host_keys: known_hosts",
            "host_keys: known_hosts, identities: [id.csv]",
        );
        place.write(
            "inv/cluster.yaml",
            format!("{spec}secrets: {{ t: {{ file: ./token.csv }} }}\ncabling: {named}\n"),
        );
        let said = validate(&place);
        assert!(
            said.contains("RW0148") && said.contains(why) && said.contains("named here"),
            "{named}: {said}"
        );
        assert!(!said.contains(POISON), "{named}: {said}");
    }
}

#[test]
fn a_signing_key_outside_is_neither_shown_nor_sent() {
    let place = place();
    let repository = |key: &str| {
        format!("repositories: [{{ name: x, url: 'https://x.example/', suite: ./, key: {key} }}]\n")
    };
    for key in [
        "../outside",
        "link",
        "/proc/self/environ",
        "/dev/zero",
        "~/outside",
        "gone",
    ] {
        place.write("inv/cluster.yaml", format!("{SPEC}{}", repository(key)));
        let said = validate(&place);
        assert!(!said.contains(POISON), "{key}: {said}");
    }
    for key in ["../outside", "link", "/proc/self/environ"] {
        place.write("inv/cluster.yaml", format!("{SPEC}{}", repository(key)));
        let said = place.run(&["plan", "inv"]);
        assert!(
            said.contains("RW0175") && said.contains("named here") && !said.contains(POISON),
            "{key}: {said}"
        );
    }
    // Nor what stands beside a public key; in the inventory there may be a vendor's words, and no
    // private key.
    let public =
        include_str!("../../modules/package-repositories/tests/apt-and-dnf/key.asc").trim();
    let private = public.replace("PUBLIC", "PRIVATE");
    for (path, key, text) in [
        ("outside", "../outside", format!("{POISON}\n{public}\n")),
        ("outside", "../outside", format!("{public}\n{POISON}\n")),
        (
            "inv/both.asc",
            "both.asc",
            format!("{public}\n{POISON}\n{private}\n"),
        ),
    ] {
        place
            .write(path, &text)
            .write("inv/cluster.yaml", format!("{SPEC}{}", repository(key)));
        let said = place.run(&["plan", "inv"]);
        assert!(
            said.contains("RW0175") && !said.contains(POISON),
            "{text}: {said}"
        );
    }
}

/// State is neither read nor written where a link of the inventory leads.
#[test]
fn a_state_folder_that_leads_elsewhere_is_refused() {
    for (link, to) in [
        (".railwright", "../elsewhere"),
        (".railwright/runs", "../../elsewhere"),
    ] {
        let place = place();
        place
            .write("inv/cluster.yaml", SPEC)
            .write("elsewhere/runs/x", POISON);
        std::fs::create_dir_all(place.path().join("inv").join(link).parent().unwrap()).unwrap();
        symlink(to, place.path().join("inv").join(link)).unwrap();
        for words in [
            &["state", "list", "inv"][..],
            &["rollout", "status", "inv"],
            &["rollout", "pause", "inv"],
            &["plan", "inv"],
        ] {
            let said = place.run(words);
            assert!(
                said.contains(&format!("RW0162: {link} is a link")) && !said.contains(POISON),
                "{words:?}: {said}"
            );
            assert!(!said.ends_with("--- exit 0 ---\n"), "{words:?}: {said}");
        }
        let left: Vec<_> = std::fs::read_dir(place.path().join("elsewhere"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["runs"], "{link}");
    }
}

/// Without a limit this one goes on for hours.
#[test]
fn a_template_that_would_not_end_is_told_with_its_line() {
    let place = Place::new();
    place.write(
        "inv/cluster.yaml",
        format!("{SPEC}modules: {{ m: {{ enabled: true }} }}\n"),
    );
    place.write(
        "inv/modules/m/module.yaml",
        "module: m\n\
         summary: a file\n\
         resources:\n  - id: x\n    file: { path: /etc/x, template: x.j2, mode: '0644' }\n",
    );
    let turns = "{% for a in range(end=99999) %}\n{% for b in range(end=99999) %}{% endfor %}{% endfor %}\n";
    place.write("inv/modules/m/templates/x.j2", format!("first\n{turns}"));
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("RW0217")
            && said.contains("templates/x.j2:3:1")
            && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
}

/// Each of these ends by itself in a tenth of a second; all of them on all hosts take minutes.
#[test]
fn many_templates_do_not_work_without_end_together() {
    let place = Place::new();
    place.write(
        "inv/cluster.yaml",
        format!("{SPEC}modules: {{ m: {{ enabled: true }} }}\n"),
    );
    let mut module = "module: m\nsummary: files\nresources:\n".to_owned();
    for n in 0..200 {
        module.push_str(&format!(
            "  - id: x{n}\n    file: {{ path: /etc/x{n}, template: x{n}.j2, mode: '0644' }}\n"
        ));
        place.write(
            &format!("inv/modules/m/templates/x{n}.j2"),
            "{% for a in range(end=99999) %}{% set b = a * 2 %}{% endfor %}\n",
        );
    }
    place.write("inv/modules/m/module.yaml", module);
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("all of them may take together") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
    let told = said.matches("RW0217").count();
    assert!(
        told == 1 && said.contains(".j2:1:1"),
        "one error that names a template and its line: {said}"
    );
}

/// The first would take five gigabytes, an address for each of 16,000 NICs; the second unfolds 200
/// million names.
#[test]
fn what_asks_for_all_memory_or_time_is_ended() {
    let place = Place::new();
    let nics = format!("nics: {{ rails: 32, address: '{}', ", "x".repeat(300_000));
    let wide = SPEC
        .replace("name: n1", "name: 'n[1-500]'")
        .replace("nics: { ", &nics);
    let waiver =
        "    - { code: RW1301, reason: r, owner: o, until: 2027-01-01, nodes: 'n[1-100000]' }\n";
    let long = format!("{SPEC}rules:\n  waive:\n{}", waiver.repeat(2000));
    for (spec, variable, number, taken) in [
        (&wide, "RAILWRIGHT_MEMORY_MIB", "400", "400 MiB of memory"),
        (
            &long,
            "RAILWRIGHT_PROCESSOR_S",
            "2",
            "2 seconds of processor time",
        ),
    ] {
        place.write("inv/cluster.yaml", spec);
        // A command that contacts targets has contacted none before it knows the spec.
        for command in [&["validate", "inv"][..], &["plan", "inv"]] {
            let output = place
                .command(command)
                .env(variable, number)
                .output()
                .unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(
                said.contains("RW1020") && said.contains(taken) && said.contains(variable),
                "{command:?}: {said}"
            );
            assert_eq!(output.status.code(), Some(1), "{said}");
        }
    }
    let refused = place
        .command(&["validate", "inv"])
        .env("RAILWRIGHT_MEMORY_MIB", "much")
        .output()
        .unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("RW1021") && refused.status.code() == Some(4),
        "{said}"
    );
}

/// Files of the inventory, some of them the operator's own: a link that git keeps would make their
/// content a file of hosts, which is shown.
#[test]
fn a_link_shows_no_other_file_of_the_inventory() {
    const MODULE: &str = "module: m\n\
                          summary: a file\n\
                          resources:\n  - { id: x, file: { path: /etc/x, template: s, mode: '0644' } }\n";
    let key = "repositories: [{ name: x, url: 'https://x.example/', suite: ./, key: token }]\n";
    for (link, to, more, why) in [
        (
            "modules/m/templates/s",
            "../../../.git/config",
            "",
            "RW1007",
        ),
        ("modules/m/templates/s", "../../../token", "", "RW1007"),
        ("modules/m/templates/s", "../../.hidden", "", "RW1007"),
        ("modules", ".git", "", "RW1007"),
        ("more.yaml", "token", "", "RW1007"),
        ("more.yaml", ".git/config", "", "RW1007"),
        ("unused", "token", key, "RW0175"),
    ] {
        let place = Place::new();
        place.write("inv/cluster.yaml", format!("{SPEC}{more}"));
        for private in ["token", ".git/config", ".git/m/module.yaml"] {
            place.write(&format!("inv/{private}"), format!("{POISON}: [\n"));
        }
        if link.starts_with("modules/") {
            place
                .write("inv/modules/m/module.yaml", MODULE)
                .write("inv/modules/.hidden", POISON);
            std::fs::create_dir(place.path().join("inv/modules/m/templates")).unwrap();
        }
        symlink(to, place.path().join("inv").join(link)).unwrap();
        for words in [
            &["validate", "inv"][..],
            &["explain", "host/n1", "inv"],
            &["explain", "host/n1/file/%2Fetc%2Fx", "inv"],
        ] {
            let said = place.run(words);
            assert!(
                said.contains(why) && !said.contains(POISON),
                "{link} -> {to}: {said}"
            );
        }
    }
}

/// As the kubelet makes it of a ConfigMap: of its hidden folder nothing is read but what has a
/// link, and of no other one anything.
#[test]
fn an_inventory_that_kubernetes_mounted_is_read() {
    let place = Place::new();
    let link = |to: &str, at: &str| symlink(to, place.path().join("inv").join(at)).unwrap();
    place.write(
        "inv/..2026_11_27.1/cluster.yaml",
        format!("{SPEC}cabling: cables.CSV\n"),
    );
    place.write(
        "inv/..2026_11_27.1/cables.CSV",
        "host,nic,switch,port\nn1,rail0,leaf1,Ethernet1\n",
    );
    link("..2026_11_27.1", "..data");
    link("..data/cluster.yaml", "cluster.yaml");
    link("..data/cables.CSV", "cables.CSV");
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("inv: valid.") && said.ends_with("--- exit 0 ---\n"),
        "{said}"
    );
    place
        .write("inv/.other/more.yaml", POISON)
        .write("inv/..2026_11_27.2/deep/more.yaml", POISON)
        .write("inv/..d/token", POISON);
    for to in [
        ".other/more.yaml",
        "..2026_11_27.2/deep/more.yaml",
        "..d/token",
        "..data/gone.yaml",
    ] {
        link(to, "more.yaml");
        let said = place.run(&["validate", "inv"]);
        assert!(
            said.contains("RW1007") && !said.contains(POISON),
            "{to}: {said}"
        );
        std::fs::remove_file(place.path().join("inv/more.yaml")).unwrap();
    }
    // What has no link of its own name is nothing that was mounted.
    place.write("inv/..data/token", POISON);
    assert!(place.run(&["validate", "inv"]).contains("inv: valid."));
    link("..data/token", "more.yaml");
    let said = place.run(&["validate", "inv"]);
    assert!(said.contains("RW1007") && !said.contains(POISON), "{said}");
}

/// Links to folders full of links: there are 40 to the power of seven ways.
#[test]
fn a_maze_of_links_comes_to_an_end() {
    let place = Place::new();
    place.write("inv/cluster.yaml", SPEC);
    for depth in 1..8 {
        let folder = place.path().join(format!("inv/modules/d{depth}"));
        std::fs::create_dir_all(&folder).unwrap();
        for link in 0..40 {
            symlink(format!("../d{}", depth + 1), folder.join(link.to_string())).unwrap();
        }
    }
    std::fs::create_dir(place.path().join("inv/modules/d8")).unwrap();
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("RW1006")
            && said.contains("inv/modules holds more than 10000 files and folders"),
        "{said}"
    );
}

#[test]
fn no_name_of_a_file_acts_on_the_terminal() {
    let name = "\u{1b}[31mX\nSPOOF: valid";
    for path in [
        format!("{name}.yaml"),
        format!("modules/{name}/module.yaml"),
        format!("modules/rules/{name}.yaml"),
    ] {
        let place = Place::new();
        place
            .write("inv/cluster.yaml", SPEC)
            .write(&format!("inv/{path}"), "no: [");
        let said = place.run(&["validate", "inv"]);
        let acts = said.contains('\u{1b}') || said.lines().any(|line| line.starts_with("SPOOF"));
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("RW1007") && words.contains("has a name with characters") && !acts,
            "{path:?}: {said}"
        );
    }
    // Nor a line of a file that is quoted.
    let place = Place::new();
    place.write("inv/cluster.yaml", format!("{SPEC}no\u{61c}thing: 1\n"));
    let said = place.run(&["validate", "inv"]);
    assert!(
        said.contains("thing: 1") && !said.contains('\u{61c}'),
        "{said}"
    );
}

/// What is no file in a state folder, or is named on the command line, keeps nobody waiting.
#[test]
fn pipes_are_not_waited_for() {
    for (at, words) in [
        ("inv/.railwright/state.json", &["state", "list", "inv"][..]),
        (
            "inv/.railwright/runs/r0001-abcdef/plan.json",
            &["rollout", "status", "inv"],
        ),
        (
            "inv/.railwright/runs/r0001-abcdef/journal.jsonl",
            &["rollout", "status", "inv"],
        ),
        (
            "inv/.railwright/runs/r0001-abcdef/journal.jsonl",
            &["state", "list", "inv"],
        ),
        ("plan", &["show", "plan"]),
        (
            "inv/.railwright/state.previous.json",
            &["state", "forget", "inv", "host/n1/file/x"],
        ),
        (
            "inv/.railwright/beat",
            &["state", "return-to-service", "inv", "n1", "--reason", "x"],
        ),
        ("inv/.railwright/fence", &["rollout", "pause", "inv"]),
        (
            "inv/.railwright/runs/r0001-abcdef/order.json",
            &["rollout", "pause", "inv"],
        ),
    ] {
        let place = Place::new();
        place
            .write("inv/cluster.yaml", SPEC)
            .write("inv/.railwright/runs/r0001-abcdef/journal.jsonl", "");
        let _ = std::fs::remove_file(place.path().join(at));
        pipe(&place, at);
        let said = place.run(words);
        let is_refused = at == "plan" || said.contains("error RW0162");
        assert!(
            is_refused && said.contains("no ordinary file") && said.contains("error RW"),
            "{at}, {words:?}: {said}"
        );
    }
}

/// The key of seals comes with the inventory, so its author could find out a weak secret by its
/// seal.
#[test]
fn nothing_of_a_secret_is_printed_where_no_target_is_contacted() {
    let place = Place::new();
    let spec = "cluster: c\n\
                fabric: { kind: none }\n\
                ssh: { user: root, host_keys: known_hosts }\n\
                nodes: [{ name: n1 }]\n";
    place.write(
        "inv/cluster.yaml",
        format!(
            "{spec}secrets: {{ t: {{ env: TOKEN }} }}\nmodules: {{ m: {{ enabled: true }} }}\n"
        ),
    );
    place
        .write("inv/.railwright/seal-key", "k".repeat(64))
        .write("inv/known_hosts", "");
    place.write(
        "inv/modules/m/module.yaml",
        "module: m\n\
         summary: a file\n\
         resources:\n  - { id: x, file: { path: /etc/x, content: '{{ secrets.t }}', mode: '0600' } }\n",
    );
    let mut observation =
        serde_json::to_value(Observation::at("2026-01-01T00:00:00Z".to_owned())).unwrap();
    let absent = |folder: &str| serde_json::json!({ "status": { "exit": 1 }, "out": format!("folder {folder}\n") });
    let answers = serde_json::json!({ "sealed_file:/etc/x": absent("/etc"), "file:/var/lib/railwright/record.json": absent("/var/lib") });
    observation["targets"] = serde_json::json!({ "host/n1": { "answers": answers } });
    place.write("observations.json", observation.to_string());
    let planned = |token: &str| {
        let words = [
            "plan",
            "inv",
            "--observations",
            "observations.json",
            "--json",
        ];
        let output = place.command(&words).env("TOKEN", token).output().unwrap();
        [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8(bytes).unwrap())
            .concat()
    };
    let (one, other) = (planned("weak-pin-1234"), planned("weak-pin-4321"));
    assert!(
        one == other && one.contains("\"sealed\"") && one.contains("no target is contacted here"),
        "{one}\n{other}"
    );
}

/// Each suggestion compares a name with all modules, and 40,000 names are a few hundred kilobytes.
#[test]
fn not_every_unknown_name_is_worth_a_suggestion() {
    let place = Place::new();
    let names: String = ('a'..='z')
        .chain('0'..='9')
        .map(|c| format!("  package-repositorys{c}: {{ enabled: true }}\n"))
        .collect();
    place.write("inv/cluster.yaml", format!("{SPEC}modules:\n{names}"));
    let said = place.run(&["validate", "inv", "--json"]);
    assert_eq!(
        (
            said.matches("\"RW0212\"").count(),
            said.matches("did you mean").count()
        ),
        (36, 30),
        "{said}"
    );
    let names: String = ('a'..='z')
        .chain('0'..='9')
        .map(|c| format!("parameters{c}: 1, "))
        .collect();
    place.write(
        "inv/modules/m/module.yaml",
        "module: m\n\
         summary: one\n\
         parameters: { parameters: { type: integer, default: 1, doc: one } }\n\
         resources: []\n",
    );
    place.write(
        "inv/cluster.yaml",
        format!("{SPEC}modules: {{ m: {{ enabled: true, parameters: {{ {names}}} }} }}\n"),
    );
    let said = place.run(&["validate", "inv", "--json"]);
    assert_eq!(
        (
            said.matches("\"RW0212\"").count(),
            said.matches("did you mean").count()
        ),
        (36, 30),
        "{said}"
    );
}

/// What a host says stands in documents too, which a terminal reads as well.
#[test]
fn no_document_acts_on_the_terminal() {
    let place = Place::new();
    let spec = "cluster: c\n\
                fabric: { kind: none }\n\
                ssh: { user: root, host_keys: known_hosts }\n\
                nodes: [{ name: n1 }]\n";
    place.write(
        "inv/cluster.yaml",
        format!("{spec}modules: {{ m: {{ enabled: true }} }}\n"),
    );
    place.write(
        "inv/modules/m/module.yaml",
        "module: m\n\
         summary: a file\n\
         resources:\n  - { id: x, file: { path: /etc/x, content: ours, mode: '0644' } }\n",
    );
    let mut observation =
        serde_json::to_value(Observation::at("2026-01-01T00:00:00Z".to_owned())).unwrap();
    let theirs = "a\u{9b}31m\u{61c}b";
    let found = serde_json::json!({ "status": { "exit": 0 }, "out": format!("644 root root {} regular file\n{theirs}", theirs.len()) });
    let absent = serde_json::json!({ "status": { "exit": 1 }, "out": "folder /var/lib\n" });
    let answers =
        serde_json::json!({ "file:/etc/x": found, "file:/var/lib/railwright/record.json": absent });
    observation["targets"] = serde_json::json!({ "host/n1": { "answers": answers } });
    place.write("observations.json", observation.to_string());
    for words in [
        &[
            "plan",
            "inv",
            "--observations",
            "observations.json",
            "--json",
        ][..],
        &[
            "plan",
            "inv",
            "--observations",
            "observations.json",
            "-o",
            "p",
        ],
        &["show", "p"],
        &["show", "p", "--json"],
    ] {
        let said = place.run(words);
        assert!(
            !said.contains(['\u{9b}', '\u{61c}']) && said.ends_with("--- exit 0 ---\n"),
            "{words:?}: {said:?}"
        );
        assert_eq!(
            words.contains(&"--json"),
            said.contains(r"a\u009b31m\u061cb"),
            "{words:?}: {said}"
        );
    }
}
