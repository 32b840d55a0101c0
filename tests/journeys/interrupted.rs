//! A run that was killed in the middle of a step: the step goes on on the host, and is not done a
//! second time beside itself.

use crate::machine::Machine;
use std::process::Stdio;
use std::time::Duration;

fn slow(probe: &str) -> String {
    let run = "echo start >>/etc/log; while ! [ -e /etc/go ]; do sleep 0.1; done; sleep 1; echo \
               end >>/etc/log";
    format!(
        "  - id: slow\n    command: {{ name: slow, run: \"{run}\", read: {{ probe: \"{probe}\" }} }}\n"
    )
}

/// Begins to apply, and kills the program while the step runs.
fn killed(machine: &Machine) {
    let mut child = machine
        .place
        .command(&["apply", "inv", "--yes"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while machine.file("/etc/log").is_none() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before the step began"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Runs the program; the step may end once it was said that it is waited for, or when it was begun
/// a second time.
fn waits(machine: &Machine, words: &[&str]) -> String {
    let errors = machine.place.path().join("errors");
    let file = std::fs::File::create(&errors).unwrap();
    let mut child = machine
        .place
        .command(words)
        .stdout(Stdio::null())
        .stderr(file)
        .spawn()
        .unwrap();
    let said = || std::fs::read_to_string(&errors).unwrap();
    while !said().contains("waiting")
        && machine.file("/etc/log").as_deref() == Some("start\n")
        && child.try_wait().unwrap().is_none()
    {
        std::thread::sleep(Duration::from_millis(50));
    }
    machine.host.must(": >/etc/go");
    child.wait().unwrap();
    said()
}

#[test]
fn a_step_that_outlives_its_run_is_waited_for_by_resume_and_by_a_new_apply() {
    let done = "grep -q end /etc/log";
    for words in [&["resume", "inv"][..], &["apply", "inv", "--yes"]] {
        let Some(machine) = Machine::start("a run is killed", &slow(done), &[]) else {
            return;
        };
        killed(&machine);
        let plan = machine.run(&["plan", "inv"]);
        assert!(
            plan.contains("run RUN was interrupted with 1 step open: railwright resume inv\n"),
            "{plan}"
        );
        let said = waits(&machine, words);
        assert!(
            said.contains("n1  an earlier step is still running on it; waiting\n"),
            "{said}"
        );
        assert_eq!(
            machine.file("/etc/log").as_deref(),
            Some("start\nend\n"),
            "{said}"
        );
        let plan = machine.run(&["plan", "inv"]);
        assert!(
            !plan.contains("interrupted") && plan.ends_with("--- exit 0 ---\n"),
            "{plan}"
        );
    }
}

#[test]
fn what_is_done_again_begins_after_the_end_of_what_ran() {
    // Only the second time brings the resource in sync.
    let twice = "test $(cat /etc/log 2>/dev/null | grep -c end) -ge 2";
    let Some(machine) = Machine::start("a run is killed", &slow(twice), &[]) else {
        return;
    };
    killed(&machine);
    let said = waits(&machine, &["apply", "inv", "--yes"]);
    assert_eq!(
        machine.file("/etc/log").as_deref(),
        Some("start\nend\nstart\nend\n"),
        "{said}"
    );
}

/// The program by a clock of this time: what it printed, and how it ended.
fn at(machine: &Machine, time: &str, words: &[&str]) -> (String, Option<i32>) {
    let output = machine
        .place
        .command(words)
        .env("RAILWRIGHT_TEST_CLOCK", time)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8(bytes).unwrap())
        .concat();
    (text, output.status.code())
}

#[test]
fn a_clock_that_went_back_between_a_run_and_its_end_harms_nothing() {
    let later = "  - id: x\n    command: { name: x, run: \"test -e /etc/ready && : >/etc/done\", read: \
                 { probe: \"test -e /etc/done\" } }\n";
    let Some(machine) = Machine::start("the clock goes back", later, &[]) else {
        return;
    };
    let (said, code) = at(&machine, "2026-06-01T12:00:00Z", &["apply", "inv", "--yes"]);
    assert_eq!(code, Some(1), "{said}");
    machine.host.must(": >/etc/ready");
    let earlier = "2026-01-01T00:00:00Z";
    let (said, code) = at(&machine, earlier, &["resume", "inv"]);
    assert_eq!(code, Some(0), "{said}");
    for words in [
        &["plan", "inv"][..],
        &["rollout", "status", "inv"],
        &["state", "list", "inv"],
        &["drift", "inv"],
        &["lock", "list", "inv"],
    ] {
        let (said, code) = at(&machine, earlier, words);
        assert_eq!(code, Some(0), "{words:?}: {said}");
    }
}

/// A terminal or an SSH session that goes away ends a run as SIGTERM does: nobody holds the host
/// after it.
#[test]
fn a_terminal_that_goes_away_leaves_no_lock() {
    let Some(machine) = Machine::start(
        "a run loses its terminal",
        &slow("grep -q end /etc/log"),
        &[],
    ) else {
        return;
    };
    let mut child = machine
        .place
        .command(&["apply", "inv", "--yes"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while machine.file("/etc/log").is_none() {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before the step began"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(machine.file("/var/lib/railwright/lock").is_some());
    assert!(
        std::process::Command::new("kill")
            .args(["-HUP", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    machine.host.must(": >/etc/go");
    assert!(
        child.wait().unwrap().code().is_some(),
        "it came to an end by itself"
    );
    assert_eq!(machine.file("/var/lib/railwright/lock"), None);
}
