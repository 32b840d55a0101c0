//! `drift` for operators: documents for other programs, ages, accepted findings, outliers,
//! watching.

use crate::support::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

fn repository(path: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The lab's inventory and the recording of its bare machines.
fn lab() -> Place {
    let place = Place::new();
    place.write(
        "inventories/lab/cluster.yaml",
        repository("inventories/lab/cluster.yaml"),
    );
    place.write("fresh.json", repository("plans/lab/fresh.json"));
    place
}

const RECORDED: [&str; 4] = ["drift", "inventories/lab", "--observations", "fresh.json"];

#[test]
fn each_document_is_printed_or_written_whole() {
    let place = lab();
    for (format, begins, mode) in [
        ("text", "as recorded 20", 0o600),
        ("json", "{", 0o600),
        ("junit", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>", 0o600),
        ("sarif", "{\n  \"$schema\": ", 0o600),
        ("prometheus", "# HELP railwright_drift_findings ", 0o644),
        ("markdown", "### Drift of ", 0o600),
    ] {
        let words = [&RECORDED[..], &["--format", format]].concat();
        let printed = place.command(&words).output().unwrap();
        assert_eq!(
            printed.status.code(),
            Some(2),
            "{format}: {}",
            String::from_utf8_lossy(&printed.stderr)
        );
        let file = format!("out.{format}");
        let said = place.run(&[&words[..], &["-o", &file]].concat());
        assert!(
            said.ends_with(&format!("Written to {file}\n--- exit 2 ---\n"))
                && said.lines().count() == 4,
            "{said}"
        );
        let written = fs::read_to_string(place.path().join(&file)).unwrap();
        let same = |text: &str| {
            text.lines()
                .filter(|line| !line.starts_with("railwright_drift_check_duration"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert!(
            written.starts_with(begins)
                && same(&written) == same(&String::from_utf8_lossy(&printed.stdout)),
            "{written}"
        );
        assert_eq!(
            fs::metadata(place.path().join(&file))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            mode,
            "{format}"
        );
    }
    let left: Vec<_> = fs::read_dir(place.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().contains("tmp"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn json_has_its_short_form_and_a_file_that_cannot_be_written_is_told() {
    let place = lab();
    let short = place.run(&[&RECORDED[..], &["--json"]].concat());
    assert_eq!(
        short.replace("--json", ""),
        place
            .run(&[&RECORDED[..], &["--format", "json"]].concat())
            .replace("--format json", "")
    );
    assert!(
        place
            .run(&[&RECORDED[..], &["--json", "--format", "junit"]].concat())
            .ends_with("--- exit 64 ---\n")
    );
    let said = place.run(&[&RECORDED[..], &["-o", "none/out.txt"]].concat());
    assert!(
        said.contains("RW1010") && said.ends_with("--- exit 1 ---\n"),
        "{said}"
    );
}

/// Where nothing was applied yet, a list of all that differs is a plan, and a worse one.
#[test]
fn before_the_first_apply_drift_counts_and_points_to_the_plan() {
    let place = lab();
    let said = place.run(&RECORDED);
    let lines = said
        .lines()
        .skip_while(|line| !line.starts_with("NEVER APPLIED"))
        .take(4)
        .collect::<Vec<_>>()
        .join("\n");
    insta::assert_snapshot!(lines, @r#"
    NEVER APPLIED: all that an apply has yet to do; a plan shows it ---------------------------------
     + node[1-2]      file (2), kernel_module (3), kernel_module_build (1), kernel_parameter (1), link
                      (1), link_qos (1), package (8), package_repository (1), rdma_link (1), sysctl (3)
    "#);
    assert!(
        said.ends_with("next: railwright plan inventories/lab\n--- exit 2 ---\n")
            && said.lines().count() < 20,
        "{said}"
    );
}

/// Signing keys are for a plan; hosts are read without them, and a recording has none.
#[test]
fn facts_are_recorded_without_signing_keys() {
    let place = Place::new();
    let spec = "cluster: here\nssh: { address: local }\nnodes: [{ name: n1, os: debian-12 }]\n";
    let repository =
        "repositories: [{ name: x, url: 'https://x.example/', suite: ./, key: keys/none.asc }]\n";
    place.write("inv/cluster.yaml", format!("{spec}{repository}"));
    let said = place.run(&["facts", "inv", "-o", "facts.json"]);
    assert!(
        said.ends_with("1 of 1 host recorded in facts.json\n--- exit 0 ---\n"),
        "{said}"
    );
    let recorded = fs::read_to_string(place.path().join("facts.json")).unwrap();
    assert!(!recorded.contains("PGP PUBLIC KEY"), "{recorded}");
    let planned = place.run(&["plan", "inv", "--observations", "facts.json"]);
    assert!(planned.contains("keys/none.asc"), "{planned}");
}

/// An inventory of this machine itself with one file, which is only ever read.
fn here() -> Place {
    let place = Place::new();
    place.write(
        "inv/cluster.yaml",
        "cluster: here\nssh: { address: local }\nnodes: [{ name: n1 }]\n",
    );
    let path = place.path().join("note.conf").display().to_string();
    let resources = format!(
        "  - id: note\n    file: {{ path: \"{path}\", content: \"rails\\n\", mode: \"0644\" }}\n"
    );
    place.write(
        "inv/modules/story/module.yaml",
        format!("module: story\nsummary: a note\nresources:\n{resources}"),
    );
    place.write("note.conf", "other\n");
    fs::set_permissions(
        place.path().join("note.conf"),
        fs::Permissions::from_mode(0o644),
    )
    .unwrap();
    place
}

/// What `drift inv` says on stdout at this time of the day.
fn at(place: &Place, clock: &str, words: &[&str]) -> (String, String, Option<i32>) {
    let output = place
        .command(&[&["drift", "inv"], words].concat())
        .env("RAILWRIGHT_TEST_CLOCK", format!("2026-01-01T{clock}Z"))
        .output()
        .unwrap();
    (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
        output.status.code(),
    )
}

#[test]
fn a_finding_is_told_with_its_age_until_it_goes_away() {
    let place = here();
    let age = |clock: &str| {
        let said = at(&place, clock, &[]).0;
        let line = said
            .lines()
            .find(|line| line.contains("(never applied)"))
            .unwrap();
        line.rsplit("   ").next().unwrap().to_owned()
    };
    let ages = ["00:00:00", "00:03:00", "03:30:00"].map(age);
    assert_eq!(ages, ["new", "since 3 min", "since 3 h"]);
    let document: serde_json::Value =
        serde_json::from_str(&at(&place, "04:00:00", &["--json"]).0).unwrap();
    let seen = &document["findings"][0]["seen"];
    assert_eq!(
        (
            seen["first"].as_str(),
            seen["last"].as_str(),
            seen["age_s"].as_u64()
        ),
        (
            Some("2026-01-01T00:00:00Z"),
            Some("2026-01-01T04:00:00Z"),
            Some(14_400)
        )
    );
    let kept = place.path().join("inv/.railwright/drift.json");
    assert_eq!(
        fs::metadata(&kept).unwrap().permissions().mode() & 0o777,
        0o600
    );
    place.write("note.conf", "rails\n");
    let (said, _, code) = at(&place, "05:00:00", &[]);
    assert!(said.ends_with("\nNo drift.\n") && code == Some(0), "{said}");
    place.write("note.conf", "other\n");
    assert!(at(&place, "06:00:00", &[]).0.contains("   new\n"));
}

#[test]
fn a_state_folder_that_cannot_be_written_costs_the_ages_and_nothing_else() {
    let place = here();
    at(&place, "00:00:00", &[]);
    let mounted = "mount --bind inv inv && mount -o remount,bind,ro inv && exec \"$0\" \"$@\"";
    let ordinary = place.command(&["drift", "inv"]);
    let output = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", mounted])
        .arg(ordinary.get_program())
        .args(ordinary.get_args())
        .current_dir(place.path())
        .env("RAILWRIGHT_TEST_CLOCK", "2026-01-01T09:00:00Z")
        .output()
        .unwrap();
    let (said, told) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(2), "{said}{told}");
    assert!(
        said.contains("content, persisted: actual other, desired rails") && !said.contains("since"),
        "{said}"
    );
    assert_eq!(told.matches("RW0501").count(), 1, "{told}");
    assert!(told.contains("Read-only file system"), "{told}");
}

#[test]
fn a_recording_has_no_ages() {
    let place = lab();
    let said = place.run(&RECORDED);
    assert!(
        !said.contains("   new\n") && !place.path().join("inventories/lab/.railwright").exists(),
        "{said}"
    );
}

/// The inventory with these acceptances.
fn accepting(entries: &str) -> Place {
    let place = here();
    place.write("inv/drift.yaml", format!("drift:\n  accept:\n{entries}"));
    place
}

/// What was said, without the folder of this run.
fn in_place(place: &Place, text: &str) -> String {
    text.replace(&place.path().display().to_string(), "[place]")
}

#[test]
fn accepted_drift_is_told_apart_until_its_day_is_over() {
    let place = accepting(
        "    - \
         { nodes: n1, attribute: content, reason: written by hand for the trial, owner: ops, until: 2026-01-01 }\n",
    );
    let (said, told, code) = at(&place, "00:00:00", &[]);
    assert_eq!((told.as_str(), code), ("", Some(0)));
    insta::assert_snapshot!(in_place(&place, &said), @r"
    drift inv   1 resource on 1 target   not under version control

    ACCEPTED: known, and no drift until the day is over ---------------------------------------------
     ~ n1             file [place]/note.conf
           content, persisted: actual other, desired rails (never applied)   inv/cluster.yaml:3   new
             accepted by ops until 2026-01-01: written by hand for the trial

    No drift. 1 attribute accepted.
    ");
    let document: serde_json::Value =
        serde_json::from_str(&at(&place, "00:00:00", &["--json"]).0).unwrap();
    assert_eq!(
        (
            document["drift"].as_bool(),
            document["findings"][0]["accepted"]["expired"].as_bool()
        ),
        (Some(false), Some(false))
    );
    let next_day = place
        .command(&["drift", "inv"])
        .env("RAILWRIGHT_TEST_CLOCK", "2026-01-02T00:00:00Z")
        .output()
        .unwrap();
    let said = String::from_utf8(next_day.stdout).unwrap();
    assert!(
        said.contains(
            "accepted by ops until 2026-01-01, which is over: written by hand for the trial"
        ),
        "{said}"
    );
    assert_eq!(next_day.status.code(), Some(2));
}

#[test]
fn an_acceptance_that_is_about_nothing_is_a_warning_and_a_wrong_one_an_error() {
    let place = accepting(
        "    - \
         { address: host/n1/file/*, attribute: mode, reason: r, owner: o, until: 2026-01-31 }\n",
    );
    let (_, told, code) = at(&place, "00:00:00", &[]);
    assert_eq!(code, Some(2));
    insta::assert_snapshot!(told, @r"
    warning RW0502: this acceptance matches no drift
       ╭─[inv/drift.yaml:3:7]
     2 │   accept:
     3 │     - { address: host/n1/file/*, attribute: mode, reason: r, owner: o, until: 2026-01-31 }
       ·       ┬
       ·       ╰── nothing is found here
       ╰────
      effect: what it was written for is fixed, or it names another attribute than its author meant
      next:   remove it, or name the attribute as `drift` shows it
    ");
    let place = accepting(
        "    - { nodes: n2, attribute: mode, reason: r, owner: o, until: 2026-01-31 }
    - { attribute: mode, reason: r, owner: o, until: 2026-02-30 }
    - { address: host/n1/file/x#mode, attribute: mode, reason: '', owner: o, until: 2026-01-31 }
",
    );
    insta::assert_snapshot!(place.run(&["validate", "inv"]), @r#"
    $ railwright validate inv
    error RW0130: there is no host `n2`; did you mean `n1`?
       ╭─[inv/drift.yaml:3:16]
     2 │   accept:
     3 │     - { nodes: n2, attribute: mode, reason: r, owner: o, until: 2026-01-31 }
       ·                ─┬
       ·                 ╰── of this cluster
     4 │     - { attribute: mode, reason: r, owner: o, until: 2026-02-30 }
       ╰────
      effect: nothing would be accepted by it, and what it is meant for would count as drift
      next:   name hosts of `nodes`

    error RW0130: an acceptance is about an `address` or about `nodes`
       ╭─[inv/drift.yaml:4:7]
     3 │     - { nodes: n2, attribute: mode, reason: r, owner: o, until: 2026-01-31 }
     4 │     - { attribute: mode, reason: r, owner: o, until: 2026-02-30 }
       ·       ┬
       ·       ╰── neither, or both
     5 │     - { address: host/n1/file/x#mode, attribute: mode, reason: '', owner: o, until: 2026-01-31…
       ╰────
      effect: nothing would be accepted by it, and what it is meant for would count as drift
      next:   write one of the two

    error RW0130: `2026-02-30` is no date
       ╭─[inv/drift.yaml:4:54]
     3 │     - { nodes: n2, attribute: mode, reason: r, owner: o, until: 2026-01-31 }
     4 │     - { attribute: mode, reason: r, owner: o, until: 2026-02-30 }
       ·                                                      ─────┬────
       ·                                                           ╰── not year-month-day
     5 │     - { address: host/n1/file/x#mode, attribute: mode, reason: '', owner: o, until: 2026-01-31…
       ╰────
      effect: nothing would be accepted by it, and what it is meant for would count as drift
      next:   write the last day, such as 2026-12-31

    error RW0130: this is no address of resources
       ╭─[inv/drift.yaml:5:18]
     4 │     - { attribute: mode, reason: r, owner: o, until: 2026-02-30 }
     5 │     - { address: host/n1/file/x#mode, attribute: mode, reason: '', owner: o, until: 2026-01-31…
       ·                  ─────────┬─────────
       ·                           ╰── the attribute goes to `attribute`
       ╰────
      effect: nothing would be accepted by it, and what it is meant for would count as drift
      next:   write host/NODES/KIND/NAME, such as host/gpu[01-04]/link/ens4; NODES, KIND and NAME may be
              `*`

    error RW0130: `reason` says nothing, or more than a line
       ╭─[inv/drift.yaml:5:64]
     4 │     - { attribute: mode, reason: r, owner: o, until: 2026-02-30 }
     5 │     - { address: host/n1/file/x#mode, attribute: mode, reason: '', owner: o, until: 2026-01-31…
       ·                                                                ─┬
       ·                                                                 ╰── of this acceptance
       ╰────
      effect: nothing would be accepted by it, and what it is meant for would count as drift
      next:   write it as one line of text

    inv: not valid. 5 errors. `railwright explain CODE` tells more.
    --- exit 1 ---
    "#);
    let place = accepting(
        "    - \
         { nodes: n1, atribute: mode, plane: next, reason: r, owner: o, until: 2026-01-31 }\n",
    );
    let said = place.run(&["validate", "inv"]);
    for word in [
        "did you mean `attribute`?",
        "write one of persisted, running, next_boot",
        "not valid. 2 errors.",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn one_host_of_a_class_that_differs_is_told_and_is_no_drift() {
    let place = Place::new();
    place.write(
        "inv/cluster.yaml",
        "cluster: a\nnodes: [{ name: \"gpu[01-16]\" }, { name: \"login[1-2]\" }]\n",
    );
    let host = |name: &str, kernel: &str| {
        let out = format!(
            "version 1\n\
             os ID=debian\n\
             os VERSION_ID=12\n\
             kernel {kernel}\n\
             cmdline quiet\n\
             architecture x86_64\n\
             uid 0\n\
             end\n"
        );
        (
            format!("host/{name}"),
            serde_json::json!({ "answers": { "host": { "status": { "exit": 0 }, "out": out } } }),
        )
    };
    let gpus = (1..=16).map(|i| {
        host(
            &format!("gpu{i:02}"),
            if i == 16 { "6.1.0-17" } else { "6.1.0-18" },
        )
    });
    let logins = [host("login1", "5.10.0-1"), host("login2", "5.10.0-2")];
    let targets: serde_json::Map<String, serde_json::Value> = gpus.chain(logins).collect();
    let observation = serde_json::json!({ "format_version": "3.0", "recorded_at": "2026-01-01T00:00:00Z", "targets": targets });
    place.write("seen.json", observation.to_string());
    insta::assert_snapshot!(place.run(&["drift", "inv", "--observations", "seen.json"]), @r"
    $ railwright drift inv --observations seen.json
    as recorded 2026-01-01T00:00:00Z in seen.json
    drift inv   0 resources on 0 targets   not under version control

    OUTLIERS: a few hosts of a class differ in what is not managed; no drift ------------------------
     . kernel: 6.1.0-18 on gpu[01-15], 6.1.0-17 on gpu16

    No drift.
    --- exit 0 ---
    ");
    let metrics = place.run(&[
        "drift",
        "inv",
        "--observations",
        "seen.json",
        "--format",
        "prometheus",
    ]);
    assert!(
        metrics.contains(
            "railwright_drift_outliers{cluster=\"a\",class=\"gpu[01-16]\",what=\"kernel\"} 1\n"
        ),
        "{metrics}"
    );
}

/// A watching program; ended with the value.
struct Watch(std::process::Child);

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn watching_tells_what_changes_and_a_host_that_hangs_delays_nobody() {
    use std::io::BufRead as _;
    let place = here();
    // A server that takes connections and says nothing.
    let hung = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = hung.local_addr().unwrap().port();
    let nodes = format!(
        "nodes: [{{ name: n1 }}, {{ name: n2, ssh: {{ address: 127.0.0.1, port: {port}, host_keys: \
         keys }} }}]\n"
    );
    place
        .write(
            "inv/cluster.yaml",
            format!("cluster: here\nssh: {{ address: local }}\n{nodes}"),
        )
        .write("inv/keys", "");
    let mut command = place.command(&["drift", "inv", "--watch", "1"]);
    let mut watch = Watch(
        command
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap(),
    );
    let mut lines = std::io::BufReader::new(watch.0.stdout.take().unwrap())
        .lines()
        .map(|line| line.unwrap());
    let first = lines.next().unwrap();
    assert!(
        first.starts_with("2026-01-01T00:00:00Z new  n1 file/")
            && first.contains("#content, persisted: actual other, desired rails"),
        "{first}"
    );
    place.write("note.conf", "rails\n");
    let second = lines.next().unwrap();
    assert!(
        second.starts_with("2026-01-01T00:00:00Z gone n1 file/"),
        "{second}"
    );
    // By now n1 was asked twice, and n2 still has not given up its first attempt.
    hung.set_nonblocking(true).unwrap();
    let attempts = std::iter::from_fn(|| hung.accept().ok()).count();
    assert_eq!(attempts, 1);
    let interrupt = |id: u32| {
        std::process::Command::new("kill")
            .args(["-INT", &id.to_string()])
            .status()
            .unwrap()
    };
    assert!(interrupt(watch.0.id()).success());
    // n1 is in sync; of n2 nothing is known.
    assert_eq!(watch.0.wait().unwrap().code(), Some(3));
}
