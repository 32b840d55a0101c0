//! Two runs on one host over OpenSSH: one that is stopped and goes on later, one whose lock is
//! taken by force, one from a copied folder. Whoever lost the lock writes nothing more.

use crate::machine::Machine;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A file, a step that goes on until it is let go, and a file after it.
const STEPS: &str = "  - id: first
    file: { path: /etc/first.conf, content: \"rails\\n\" }
  - id: slow
    command: { name: slow, run: 'echo start >>/etc/log; while ! [ -e /etc/go ]; do sleep 0.1; done', read: { probe: 'test -e /etc/go' } }
    after: [first]
  - id: last
    file: { path: /etc/last.conf, content: \"rails\\n\" }
    after: [slow]
";

/// What the other inventory wants besides.
const MORE: &str = "  - id: more
    file: { path: /etc/more.conf, content: \"rails\\n\" }
";

/// A run in the background, with a file for what it says. It ends with the value.
struct Run {
    child: Child,
    said: std::path::PathBuf,
}

impl Run {
    fn begin(machine: &Machine, inventory: &str) -> Run {
        let said = machine.place.path().join(format!("{inventory}.said"));
        let file = std::fs::File::create(&said).unwrap();
        let mut command = machine.place.command(&["apply", inventory, "--yes"]);
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Run { child, said }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    fn signal(&self, signal: &str) {
        assert!(
            Command::new("kill")
                .args([signal, &self.child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }

    fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Run) -> bool) {
        for _ in 0..2400 {
            if holds(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("it was waited for in vain: {what}: {}", self.said());
    }

    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        (code, self.said())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn copy(from: &Path, to: &Path, with_state: bool) {
    assert!(
        Command::new("cp")
            .arg("-a")
            .args([from, to])
            .status()
            .unwrap()
            .success()
    );
    if !with_state {
        std::fs::remove_dir_all(to.join(".railwright")).unwrap();
    }
}

#[test]
fn a_run_that_was_stopped_and_taken_over_by_force_writes_nothing_more() {
    let Some(machine) = Machine::start("a sleeper wakes up", STEPS, &[]) else {
        return;
    };
    let mut sleeper = Run::begin(&machine, "inv");
    sleeper.until("its slow step", |_| machine.file("/etc/log").is_some());
    sleeper.signal("-STOP");
    let inventory = machine.place.path().join("inv");
    copy(&inventory, &machine.place.path().join("other"), false);
    machine.place.write(
        "other/modules/story/module.yaml",
        format!("module: story\nsummary: more\nresources:\n{STEPS}{MORE}"),
    );
    // It lives on this machine: nothing is taken from it unless it is forced.
    let asked = machine.run(&["lock", "steal", "other", "--reason", "it hangs"]);
    assert!(
        asked.contains("NOT TAKEN: apply by ") && asked.ends_with("--- exit 4 ---\n"),
        "{asked}"
    );
    let forced = machine.run(&["lock", "steal", "other", "--reason", "it hangs", "--force"]);
    assert!(
        forced.contains("taken away from apply by ") && forced.ends_with("--- exit 0 ---\n"),
        "{forced}"
    );

    // The step of the stopped run still runs on the host: the next one waits for it.
    let mut next = Run::begin(&machine, "other");
    next.until("the step of the other run", |next| {
        next.said().contains("an earlier step")
    });
    assert_eq!(
        (
            machine.file("/etc/more.conf"),
            machine.file("/etc/log").as_deref()
        ),
        (None, Some("start\n"))
    );
    machine.host.must(": >/etc/go");
    let (code, said) = next.end();
    assert_eq!(code, Some(0), "{said}");
    let record = machine.file("/var/lib/railwright/record.json").unwrap();
    assert!(
        record.contains("more.conf") && record.contains("last.conf"),
        "{record}"
    );

    // What it would write now would be its own again.
    machine.host.must("rm /etc/last.conf");
    sleeper.signal("-CONT");
    let (code, said) = sleeper.end();
    assert!(
        code == Some(3) && said.contains("error RW0631: the host's lock is no longer this run's"),
        "{code:?}: {said}"
    );
    assert_eq!(machine.file("/etc/last.conf"), None, "{said}");
    assert_eq!(
        machine.file("/var/lib/railwright/record.json"),
        Some(record),
        "{said}"
    );
    assert_eq!(machine.file("/var/lib/railwright/lock"), None);
}

#[test]
fn a_copied_folder_is_nobody() {
    let Some(machine) = Machine::start("a folder is copied", STEPS, &[]) else {
        return;
    };
    let mut run = Run::begin(&machine, "inv");
    run.until("its slow step", |_| machine.file("/etc/log").is_some());
    copy(
        &machine.place.path().join("inv"),
        &machine.place.path().join("copy"),
        true,
    );
    // The lock that came along names a process that lives, and holds another file.
    for words in [&["apply", "copy", "--yes"][..], &["resume", "copy"]] {
        let refused = machine.run(words);
        assert!(
            refused.contains("error RW0704: the cluster is being changed already: apply by ")
                && refused.ends_with("--- exit 4 ---\n"),
            "{refused}"
        );
    }
    let stolen = machine.run(&["lock", "steal", "copy", "--reason", "a copy"]);
    assert!(
        stolen.contains("RW0711") && stolen.ends_with("--- exit 4 ---\n"),
        "{stolen}"
    );
    let status = machine.run(&["rollout", "status", "copy"]);
    assert!(!status.contains("its process is gone"), "{status}");
    // A copy without it is kept off by the hosts' own locks. One that took the lock over would wait
    // for the step, which waits for us.
    std::fs::remove_file(machine.place.path().join("copy/.railwright/lock")).unwrap();
    let mut second = Run::begin(&machine, "copy");
    second.until("its end", |second| {
        second.child.try_wait().unwrap().is_some()
    });
    let (code, refused) = second.end();
    assert!(
        code == Some(4)
            && refused
                .contains("error RW0608: the host is being changed from elsewhere: apply by "),
        "{refused}"
    );
    let resumed = machine.run(&["resume", "copy"]);
    assert!(
        resumed.contains("RW0608") && resumed.ends_with("--- exit 4 ---\n"),
        "{resumed}"
    );
    let stolen = machine.run(&["lock", "steal", "copy", "--reason", "a copy"]);
    assert!(
        stolen.contains("NOT TAKEN: apply by ") && stolen.ends_with("--- exit 4 ---\n"),
        "{stolen}"
    );
    machine.host.must(": >/etc/go");
    let (code, said) = run.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        (
            machine.file("/etc/last.conf").as_deref(),
            machine.file("/var/lib/railwright/lock")
        ),
        (Some("rails\n"), None)
    );
    // What a run leaves that was killed is taken over at once: its process is gone.
    machine.host.must("rm /etc/go /etc/log");
    let mut killed = Run::begin(&machine, "inv");
    killed.until("its slow step", |_| machine.file("/etc/log").is_some());
    killed.signal("-KILL");
    drop(killed.child.wait());
    machine.host.must(": >/etc/go");
    let after = machine.run(&["apply", "copy", "--yes"]);
    assert!(after.ends_with("--- exit 0 ---\n"), "{after}");
}
