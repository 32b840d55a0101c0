//! A rollout from other terminals: windows, a run that is watched, paused and let go on, and locks
//! that outlive their holder.

use crate::machine::Machine;
use std::process::{Child, Stdio};
use std::time::Duration;

/// A step that goes on until it is let go, and one after it.
const TWO_STEPS: &str = "  - id: slow
    command: { name: slow, run: 'echo start >>/etc/log; while ! [ -e /etc/go ]; do sleep 0.1; done', read: { probe: 'test -e /etc/go' } }
  - id: note
    file: { path: /etc/note.conf, content: \"rails\\n\" }
    after: [slow]
";

/// Begins to apply; comes back when the slow step runs.
fn begun(machine: &Machine) -> Child {
    let errors = std::fs::File::create(machine.place.path().join("errors")).unwrap();
    let mut child = machine
        .place
        .command(&["apply", "inv", "--yes"])
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .unwrap();
    while machine.file("/etc/log").is_none() {
        assert!(child.try_wait().unwrap().is_none(), "{}", said(machine));
        std::thread::sleep(Duration::from_millis(50));
    }
    child
}

fn said(machine: &Machine) -> String {
    std::fs::read_to_string(machine.place.path().join("errors")).unwrap()
}

/// The status, without the name of this machine and of whoever runs the test.
fn status(machine: &Machine) -> String {
    let text = machine.run(&["rollout", "status", "inv"]);
    let (before, rest) = text.split_once(" begun by ").unwrap();
    format!(
        "{before} begun by WHOM at {}",
        rest.split_once(" at ").unwrap().1
    )
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it was waited for in vain: {what}");
}

#[test]
fn outside_of_the_maintenance_windows_nothing_is_changed() {
    let Some(machine) = Machine::start("maintenance windows", TWO_STEPS, &[]) else {
        return;
    };
    let windows = "rollout:\n  windows: [{ days: [sat, sun], from: 22:00, for: 6h, zone: Europe/Berlin }]\n  windows_for: none\n";
    machine.place.write("inv/rollout.yaml", windows);
    insta::assert_snapshot!(machine.run(&["apply", "inv", "--yes"]), @r#"
    $ railwright apply inv --yes
    refused: nothing was changed
    --- stderr ---
    cluster night   inv   read 2026-01-01T00:00:00Z
    spec     DIGEST (not under version control)

    LIVE: what runs goes on; new files and packages, values, first starts of services ---------------
     ~ n1             command slow
           probe (running)        exit 1 -> exit 0
           because  not managed yet, and differs from the spec: module story/slow
     + n1             file /etc/note.conf
           content rails, mode 0644
           because  new: module story/note, nodes[0] (inv/cluster.yaml:4)

    planes   persisted: written to disk; running: in effect now; next boot: waits for a boot
    order    a host, one step at a time: command, file
    waves    n1   at most 1 out of service   then a gate with nothing to check (no rails, no checks)
    windows  sat, sun from 22:00 for 6h (Europe/Berlin); for every step
    time     no estimate yet (no completed run)
    summary  2 resources change, 0 in sync
    digest   DIGEST
    error RW0628: no maintenance window is open now, and the plan has steps that wait for one (every
              step)
      effect: jobs run on these hosts; what disturbs them waits for a window (rollout.windows)
      state:  nothing was changed
      next:   from Sat 2026-01-03 22:00 CET on: run the same command again
      next:   or leave out what disturbs: --exclude ADDRESS
    --- exit 4 ---
    "#);
    assert_eq!(machine.file("/etc/note.conf"), None);
    assert_eq!(machine.file("/var/lib/railwright/lock"), None);
}

#[test]
fn a_run_is_watched_paused_and_let_go_on_from_another_terminal() {
    let Some(machine) = Machine::start("a rollout is watched", TWO_STEPS, &[]) else {
        return;
    };
    insta::assert_snapshot!(["status", "pause"].map(|word| machine.run(&["rollout", word, "inv"])).concat(), @r##"
    $ railwright rollout status inv
    --- stderr ---
    error RW1018: no run was ever begun here
      state:  nothing was changed
      next:   railwright apply inv begins one
    --- exit 1 ---
    $ railwright rollout pause inv
    --- stderr ---
    error RW0710: there is nothing to pause: no run goes on here
      on:     inv/.railwright
      effect: a run that is still reaching its hosts, or is over, takes no orders
      state:  nothing was changed
      next:   railwright rollout status inv shows the latest run
    --- exit 4 ---
    "##);
    let mut child = begun(&machine);
    insta::assert_snapshot!(status(&machine), @r##"
    $ railwright rollout status inv
    run      RUN running, begun by WHOM at 2026-01-01T00:00:00Z (0 s ago)
    steps    0 of 2 over
    budget   0 of at most 1 out of service; 0 of 1 lost
    wave     1       n1 running   gate waiting

    NOW: what goes on -------------------------------------------------------------------------------
     . n1  command slow   running (0 s ago)

    left     no estimate yet (no completed run)
    next     railwright rollout pause inv, or rollout abort inv
    --- exit 0 ---
    "##);
    insta::assert_snapshot!(machine.run(&["rollout", "pause", "inv"]), @r##"
    $ railwright rollout pause inv
    --- stderr ---
    ordered: run RUN: it finishes what it is doing and starts nothing new; railwright rollout status inv shows it
    --- exit 0 ---
    "##);
    until("the pause", || said(&machine).contains("PAUSED by "));
    machine.host.must(": >/etc/go");
    until("the end of the step", || {
        machine
            .run(&["rollout", "status", "inv"])
            .contains("steps    1 of 2 over\n")
    });
    let paused = machine.run(&["rollout", "status", "inv"]);
    assert!(
        paused.contains("run      RUN paused, ") && !paused.contains("NOW: "),
        "{paused}"
    );
    assert_eq!(machine.file("/etc/note.conf"), None);
    assert!(
        machine
            .run(&["rollout", "continue", "inv"])
            .ends_with("--- exit 0 ---\n")
    );
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", said(&machine));
    assert_eq!(machine.file("/etc/note.conf").as_deref(), Some("rails\n"));
    insta::assert_snapshot!(status(&machine), @r##"
    $ railwright rollout status inv
    run      RUN over, done, begun by WHOM at 2026-01-01T00:00:00Z (0 s ago)
    steps    2 of 2 over
    budget   0 of at most 1 out of service; 0 of 1 lost
    wave     1       n1 done   gate passed (0 s ago)

    next     railwright verify inv
    --- exit 0 ---
    "##);
    machine.host.must("rm /etc/note.conf");
    let plan = machine.run(&["plan", "inv"]);
    assert!(
        plan.contains("\ntime     under a minute, by the journals of 1 run\n"),
        "{plan}"
    );
}

#[test]
fn a_run_that_was_told_to_end_says_so_while_its_step_goes_on() {
    let Some(machine) = Machine::start("a rollout is ended", TWO_STEPS, &[]) else {
        return;
    };
    let mut child = begun(&machine);
    let ordered = machine.run(&["rollout", "abort", "inv"]);
    assert!(ordered.ends_with("--- exit 0 ---\n"), "{ordered}");
    until("the order", || {
        status(&machine).contains("run      RUN ending, ")
    });
    let ending = status(&machine);
    assert!(
        ending
            .contains("\nnext     it starts nothing new; once it is over, railwright resume inv\n"),
        "{ending}"
    );
    machine.host.must(": >/etc/go");
    assert_eq!(
        child.wait().unwrap().code(),
        Some(130),
        "{}",
        said(&machine)
    );
    assert!(status(&machine).contains("run      RUN over, interrupted, "));
    assert_eq!(machine.file("/etc/note.conf"), None);
}

#[test]
fn locks_of_a_run_that_died_are_seen_and_taken_away() {
    let Some(machine) = Machine::start("a run dies with its locks", TWO_STEPS, &[]) else {
        return;
    };
    let mut child = begun(&machine);
    let live = machine.run(&["lock", "list", "inv"]);
    assert!(
        live.contains("\nn1             apply by ") && live.contains("here           apply by "),
        "{live}"
    );
    let refused = machine.run(&["lock", "steal", "inv", "--reason", "I am in a hurry"]);
    assert!(
        refused.contains(
            "error RW0711: the cluster's lock is held by a process that lives on this machine: \
             apply by "
        ),
        "{refused}"
    );
    assert!(refused.ends_with("--- exit 4 ---\n"), "{refused}");
    assert!(
        refused.contains("railwright lock steal ")
            && refused.contains("/inv --force --reason 'why'\n"),
        "{refused}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let status = machine.run(&["rollout", "status", "inv"]);
    assert!(
        status.contains("run      RUN dead, ") && status.contains("n1 running   gate waiting"),
        "{status}"
    );
    // Somebody else's lock is not taken away while that one lives.
    let other = r#"{"who":"bob","machine":"ops2","machine_id":"m2","boot_id":"b","pid_namespace":"p","process":7,"started":1,"since":"2026-01-01T00:00:00Z","command":"apply","taking":"t"}"#;
    machine.host.must(&format!(
        "cd /var/lib/railwright && {{ echo '{other}'; sed 1d lock; }} >theirs && mv theirs lock && \
         rm -f beat"
    ));
    // How long ago it was seen is the machine's own haste.
    let refused = machine.run(&["lock", "steal", "inv", "--reason", "ops2 is gone"]);
    let (seen, rest) = refused.split_once("ago\n").unwrap();
    assert!(
        seen.contains(
            "\n\
             n1             NOT TAKEN: apply by bob on ops2 (process PROCESS) since \
             2026-01-01T00:00:00Z; seen alive"
        ),
        "{seen}"
    );
    insta::assert_snapshot!(rest, @r##"

    a holder gives a heartbeat every 60 s, and is taken for dead after 180 s without
    --force does not ask
    next: railwright lock list inv shows who has the locks that were not taken
    --- exit 4 ---
    "##);
    // The time of day of a file says nothing; a heartbeat of another boot was silent since the
    // host's own.
    machine.host.must(
        "cd /var/lib/railwright && touch -d '1 hour ago' lock && printf 'x\\nanother-boot\\n1\\n' \
         >beat",
    );
    until("a silence of three minutes", || {
        machine
            .run(&["lock", "list", "inv"])
            .contains("likely dead")
    });
    insta::assert_snapshot!(machine.run(&["lock", "steal", "inv", "--reason", "ops2 is gone"]), @r##"
    $ railwright lock steal inv --reason ops2 is gone
    n1             taken away from apply by bob on ops2 (process PROCESS) since 2026-01-01T00:00:00Z, x
    next: railwright plan inv shows what that run left to be done
    --- exit 0 ---
    "##);
    assert_eq!(machine.file("/var/lib/railwright/lock"), None);
    let runs = machine.place.path().join("inv/.railwright/runs");
    let run = std::fs::read_dir(&runs)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let journal = std::fs::read_to_string(run.join("journal.jsonl")).unwrap();
    assert!(
        journal.contains("\"record\":\"lock_stolen\"") && journal.contains("ops2 is gone"),
        "{journal}"
    );
    // The run itself goes on as ever.
    machine.host.must(": >/etc/go");
    assert!(
        machine
            .run(&["resume", "inv"])
            .ends_with("--- exit 0 ---\n")
    );
    assert_eq!(
        machine.run(&["lock", "list", "inv"]),
        "$ railwright lock list inv\nhere           free\nn1             free\n--- exit 0 ---\n"
    );
}
