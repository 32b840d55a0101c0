//! Boxes in which a real network manager owns a link.

use crate::machine::Machine;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// True when a missing rig is a failure and not a skip.
fn required() -> bool {
    std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_ok_and(|value| value == "1")
}

/// Names a skipped test on the screen, or fails where rigs are required.
fn skip(test: &str, why: &str) {
    assert!(!required(), "{test} needs a rig: {why}");
    eprintln!("skipped: {test}: {why}");
}

/// A box ends when its standard input does.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/links/managers.sh")
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|out| out.stdout.starts_with(b"0\n"))
}

/// A box in which this manager owns ens1; `None` where the rig is not there.
pub fn with_manager(test: &str, manager: &str) -> Option<Machine> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/rigs/managers/root");
    if !is_root() {
        skip(test, "network namespaces need root");
        return None;
    }
    if !root.join("ready").exists() && !required() {
        skip(
            test,
            "run `sh tests/links/managers.sh build target/rigs/managers/root` once (needs \
             mmdebstrap)",
        );
        return None;
    }
    let built = Command::new("sh")
        .arg(script())
        .arg("build")
        .arg(&root)
        .status()
        .unwrap();
    assert!(built.success(), "the root file system could not be built");
    let mut child = Command::new("sh")
        .arg(script())
        .arg("box")
        .arg(&root)
        .arg(manager)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n", "the box with {manager} did not come up");
    let inner =
        std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let words = [
        "nsenter",
        "-t",
        inner.trim(),
        "-m",
        "-n",
        "-p",
        "-u",
        "-r",
        "-w",
        "sh",
        "-s",
    ]
    .map(str::to_owned)
    .to_vec();
    Some(Machine::new(words, Guard(child)))
}

/// Starts a machine where the kernel of this machine also has bonds and VLANs. One that has not is
/// no fault of the rig: it is named and passed over.
pub fn with_layers(test: &str, manager: &str) -> Option<Machine> {
    if !is_root() {
        return with_manager(test, manager);
    }
    let layers =
        "ip link add bond7 type bond && ip link add link bond7 name bond7.5 type vlan id 5";
    if !Command::new("unshare")
        .args(["-n", "sh", "-c", layers])
        .output()
        .is_ok_and(|out| out.status.success())
    {
        eprintln!(
            "skipped: {test}: the kernel of this machine has no bonds or no VLANs (modules bonding \
             and 8021q)"
        );
        return None;
    }
    with_manager(test, manager)
}
