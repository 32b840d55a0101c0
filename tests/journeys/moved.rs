//! Plans whose ground has moved, modules that are wrong, and two at once.

use crate::machine::Machine;
use crate::support::Place;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

const NOTE: &str = "  - id: note\n    file: { path: /etc/note.conf, content: \"rails\\n\" }\n";

#[test]
fn a_plan_whose_ground_has_moved() {
    let Some(machine) = Machine::start("stale plan", NOTE, &[]) else {
        return;
    };
    let plan = || {
        assert!(
            machine
                .run(&["plan", "inv", "-o", "a.plan"])
                .ends_with("--- exit 0 ---\n")
        )
    };
    plan();
    // the plan file
    let text = std::fs::read_to_string(machine.place.path().join("a.plan")).unwrap();
    machine
        .place
        .write("edited.plan", text.replace("rails", "roads"));
    machine.place.write(
        "newer.plan",
        text.replacen(
            "\"format_version\": \"6.0\"",
            "\"format_version\": \"7.0\"",
            1,
        ),
    );
    machine.place.write("cut.plan", &text[..text.len() / 2]);
    let screens = ["edited.plan", "newer.plan", "cut.plan"]
        .map(|file| machine.run(&["apply", file, "--yes"]))
        .concat();
    insta::assert_snapshot!(screens, @r##"
    $ railwright apply edited.plan --yes
    --- stderr ---
    error RW0304: edited.plan was changed after it was made: its content does not have the digest that
              it carries
      effect: what would be applied is not what was planned and reviewed
      state:  nothing was changed
      next:   make the plan again: railwright plan INVENTORY -o edited.plan
    --- exit 4 ---
    $ railwright apply newer.plan --yes
    --- stderr ---
    error RW0303: newer.plan has plan format 7.0; this railwright reads 6.0
      state:  nothing was changed
      next:   make the plan again with this railwright: railwright plan INVENTORY -o newer.plan
    --- exit 4 ---
    $ railwright apply cut.plan --yes
    --- stderr ---
    error RW0302: cut.plan is no plan file: EOF while parsing an object at line 58 column 32
      state:  nothing was changed
      next:   make a plan: railwright plan INVENTORY -o FILE
    --- exit 4 ---
    "##);
    // the host
    machine.host.must("echo somebody else >/etc/note.conf");
    insta::assert_snapshot!(machine.run(&["apply", "a.plan", "--yes"]), @r##"
    $ railwright apply a.plan --yes
    run RUN incomplete: 1 stale
    next: railwright plan inv
    --- stderr ---
    CLOCK  n1  reached and locked
    CLOCK  run RUN: 1 step
    CLOCK  n1  file /etc/note.conf  STALE
    error RW0610: the host is not as it was when the plan was made: file /etc/note.conf: content
              (persisted): desired rails, actual somebody else (when planned: content (persisted)
              absent; mode (persisted) absent; owner (persisted) absent)
      on:     host/n1/file/%2Fetc%2Fnote.conf
      effect: the plan's reasons and previews no longer hold for this host
      state:  this step and the rest of this host were left alone
      next:   railwright plan inv shows what is to be done now
    --- exit 3 ---
    "##);
    assert_eq!(
        machine.file("/etc/note.conf").as_deref(),
        Some("somebody else\n")
    );
    // the spec
    plan();
    let spec = std::fs::read_to_string(machine.place.path().join("inv/cluster.yaml")).unwrap();
    machine
        .place
        .write("inv/cluster.yaml", spec.replace("night", "day"));
    insta::assert_snapshot!(machine.run(&["apply", "a.plan", "--yes"]), @r##"
    $ railwright apply a.plan --yes
    refused: nothing was changed
    --- stderr ---
    error RW0603: the spec was changed after the plan was made
      on:     inv
      effect: the plan would bring the cluster to what the spec said then
      state:  nothing was changed
      next:   railwright plan inv -o FILE, look at it, then railwright apply FILE
    --- exit 4 ---
    "##);
    machine.place.write("inv/cluster.yaml", spec);
    assert_eq!(
        machine.file("/etc/note.conf").as_deref(),
        Some("somebody else\n")
    );
    // the state: the same plan twice
    assert!(
        machine
            .run(&["apply", "a.plan", "--yes"])
            .ends_with("--- exit 0 ---\n")
    );
    insta::assert_snapshot!(machine.run(&["apply", "a.plan", "--yes"]), @r##"
    $ railwright apply a.plan --yes
    refused: nothing was changed
    --- stderr ---
    CLOCK  n1  reached and locked
    error RW0604: something was applied or forgotten after the plan was made
      effect: what the plan calls new, changed or removed may no longer be so
      state:  nothing was changed
      next:   railwright plan inv -o FILE, look at it, then railwright apply FILE
    --- exit 4 ---
    "##);
}

#[test]
fn a_module_that_is_wrong_is_shown_before_any_host_is_asked() {
    let place = Place::new();
    place.write(
        "inv/cluster.yaml",
        "cluster: night\nnodes: [{ name: n1, ssh: { address: 127.0.0.1, port: 1 } }]\n",
    );
    place.write(
        "inv/modules/story/module.yaml",
        "module: story\n\
         summary: x\n\
         when: fabric.kid == \"rocev2\"\n\
         resources:\n  - id: note\n    file: { path: /etc/note.conf, content: \"{{ host.name\" }\n",
    );
    insta::assert_snapshot!(["plan", "validate"].map(|command| place.run(&[command, "inv"])).concat(), @r##"
    $ railwright plan inv
    --- stderr ---
    error RW0203: `fabric` has no `kid`
       ╭─[inv/modules/story/module.yaml:3:14]
     2 │ summary: x
     3 │ when: fabric.kid == "rocev2"
       ·              ─┬─
       ·               ╰── did you mean `kind`?
     4 │ resources:
       ╰────
      effect: Tera would take it for false or stop in the middle, and a resource would be missing
              without a word

    error RW0204: a template cannot be read
       ╭─[inv/modules/story/module.yaml:6:53]
     5 │   - id: note
     6 │     file: { path: /etc/note.conf, content: "{{ host.name" }
       ·                                                     ──┬─
       ·                                                       ╰── Unexpected end of input
       ╰────

    No host was asked or changed. `railwright explain CODE` tells more, `railwright validate` checks the files alone.
    --- exit 1 ---
    $ railwright validate inv
    error RW0203: `fabric` has no `kid`
       ╭─[inv/modules/story/module.yaml:3:14]
     2 │ summary: x
     3 │ when: fabric.kid == "rocev2"
       ·              ─┬─
       ·               ╰── did you mean `kind`?
     4 │ resources:
       ╰────
      effect: Tera would take it for false or stop in the middle, and a resource would be missing
              without a word

    error RW0204: a template cannot be read
       ╭─[inv/modules/story/module.yaml:6:53]
     5 │   - id: note
     6 │     file: { path: /etc/note.conf, content: "{{ host.name" }
       ·                                                     ──┬─
       ·                                                       ╰── Unexpected end of input
       ╰────

    inv: not valid. 2 errors. `railwright explain CODE` tells more.
    --- exit 1 ---
    "##);
}

#[test]
fn two_applies_at_once() {
    let slow = "  - id: slow\n    command: { name: slow, run: \"touch /begun; while [ ! -e /go ]; do sleep 0.1; \
                done; touch /etc/slow\", read: { probe: \"test -e /etc/slow\" } }\n";
    let Some(machine) = Machine::start("two at once", slow, &[]) else {
        return;
    };
    let mut first = machine
        .place
        .command(&["apply", "inv", "--yes"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(first.stderr.take().unwrap());
    while machine.file("/begun").is_none() {
        assert_eq!(
            first.try_wait().unwrap(),
            None,
            "the first has ended before its step"
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // from the same folder, and from a copy of it elsewhere, as a colleague would have it
    let here = machine.run(&["apply", "inv", "--yes"]);
    for file in [
        "cluster.yaml",
        "id",
        "known_hosts",
        "modules/story/module.yaml",
    ] {
        machine.place.write(
            &format!("copy/{file}"),
            std::fs::read(machine.place.path().join("inv").join(file)).unwrap(),
        );
    }
    let elsewhere = machine.run(&["apply", "copy", "--yes"]);
    // reading is not kept from anybody
    assert!(machine.run(&["plan", "inv"]).ends_with("--- exit 0 ---\n"));
    machine.host.must("touch /go");
    let mut rest = String::new();
    while stderr.read_line(&mut rest).unwrap() > 0 {}
    assert_eq!(first.wait().unwrap().code(), Some(0), "{rest}");
    // the names of this machine and its processes differ in length, so lines may break elsewhere
    let screens = format!("{here}{elsewhere}");
    let said = screens.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "error RW0704: the cluster is being changed already: apply by unknown on ",
        "state: this run changed nothing; the other one goes on next: wait until it ends, then \
         make a new plan",
        "error RW0608: the host is being changed from elsewhere: apply by unknown on ",
        "state: nothing was changed on any host next: wait until that run ends, then make a new \
         plan",
    ] {
        assert!(said.contains(part), "{part}\n{screens}");
    }
    assert_eq!(
        said.matches("refused: nothing was changed").count(),
        2,
        "{screens}"
    );
    assert_eq!(said.matches("--- exit 4 ---").count(), 2, "{screens}");
}
