//! A machine behind a command that feeds `sh -s`, and the loop law that every kind must keep on it.

use railwright_resource::{
    Action, DesiredResource, Read, ReadResults, ResourceDiff, ResourceKind, program,
};
use serde_json::{Value, json};
use std::any::Any;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

/// Something that runs shell scripts.
pub struct Machine {
    words: Vec<String>,
    _kept: Box<dyn Any>,
}

impl Machine {
    /// The machine behind these words; what is `kept` is dropped with it.
    pub fn new(words: Vec<String>, kept: impl Any) -> Machine {
        Machine {
            words,
            _kept: Box::new(kept),
        }
    }

    /// Runs a script; its standard output, and whether it ended with 0.
    pub fn run(&self, text: &str) -> (bool, String) {
        let mut child = Command::new(&self.words[0])
            .args(&self.words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let mut out = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        (child.wait().unwrap().success(), out)
    }

    /// Runs a script that must end well.
    pub fn sh(&self, text: &str) -> String {
        let (ok, out) = self.run(text);
        assert!(ok, "{text}\n{out}");
        out
    }

    /// All reads of a resource, as one program.
    pub fn read(&self, reads: &[Read]) -> ReadResults {
        let out = self.sh(&program::render_read_program(reads, "", "c0ffee"));
        program::parse_program_answers(reads, "c0ffee", out.as_bytes())
    }

    /// The resource compared with what the machine reports now.
    pub fn diff(&self, kind: &dyn ResourceKind, resource: &DesiredResource) -> ResourceDiff {
        kind.diff(resource, &self.read(&kind.reads(resource)))
    }

    /// Carries out actions; each must end well.
    pub fn perform(&self, actions: &[Action]) {
        for action in actions {
            let (ok, out) = self.run(&action.script());
            assert!(ok, "{action:?}\n{out}");
        }
    }
}

/// A checked resource of this kind.
pub fn resource(kind: &dyn ResourceKind, body: Value) -> DesiredResource {
    assert_eq!(kind.check(&body), [], "{body}");
    let name = kind.address_name(&body).unwrap();
    let address = railwright_base::Address::host("n1", kind.name(), &name);
    DesiredResource::of(address, kind.name(), body)
}

/// What is different, in a form that a failed assertion shows well.
pub fn differences(diff: &ResourceDiff) -> Value {
    let list: Vec<_> = diff
        .attributes
        .iter()
        .filter(|(_, a)| !a.differences().is_empty())
        .collect();
    json!({ "attributes": list, "refusal": diff.refusal, "known_after": diff.known_after })
}

/// What udev and systemd bring back comes in its own time, on a busy machine after half a minute.
pub fn comes_back(
    machine: &Machine,
    kind: &dyn ResourceKind,
    resource: &DesiredResource,
) -> ResourceDiff {
    for _ in 0..30 {
        let found = machine.diff(kind, resource);
        if found.is_met() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
    machine.diff(kind, resource)
}

/// The loop law: what differs is fixed, then nothing differs and nothing is left to do; taking it
/// back leaves the machine as `shot` saw it before. `boot` in the middle proves the persisted
/// plane.
pub fn loop_law(
    machine: &Machine,
    kind: &dyn ResourceKind,
    body: Value,
    shot: &str,
    boot: Option<&str>,
) {
    let resource = resource(kind, body);
    let before_shot = machine.sh(shot);
    let fresh = machine.diff(kind, &resource);
    assert!(
        !fresh.is_met() && !fresh.has_unknown() && fresh.refusal.is_none(),
        "{}",
        differences(&fresh)
    );
    assert_eq!(machine.sh(shot), before_shot, "a read changed something");
    machine.perform(&fresh.actions);
    let done = machine.diff(kind, &resource);
    assert!(
        done.is_met() && done.actions.is_empty(),
        "{}\n{:?}",
        differences(&done),
        done.actions
    );
    if let Some(boot) = boot {
        machine.sh(boot);
        let booted = comes_back(machine, kind, &resource);
        assert!(booted.is_met(), "after a boot: {}", differences(&booted));
    }
    machine.perform(&fresh.actions);
    assert!(
        machine.diff(kind, &resource).is_met(),
        "the actions are not convergent"
    );
    let undo = kind.undo(
        &resource,
        &fresh.before,
        &machine.read(&kind.reads(&resource)),
    );
    assert!(!undo.is_met(), "{undo:?}");
    machine.perform(&undo.actions);
    let undone = kind.undo(
        &resource,
        &fresh.before,
        &machine.read(&kind.reads(&resource)),
    );
    assert!(undone.is_met(), "{}", differences(&undone));
    let after: Vec<String> = machine.sh(shot).lines().map(str::to_owned).collect();
    assert_eq!(
        after,
        before_shot.lines().collect::<Vec<_>>(),
        "taking it back left something"
    );
}
