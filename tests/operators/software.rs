//! The operators that are built, and a process of one.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::{Child, Command};

/// One release of an operator: its program, and the manifests that its project ships.
pub struct Software {
    folder: PathBuf,
}

impl Software {
    /// `None`, and a line that says so, where the rig is missing and may be.
    pub fn find(name: &str) -> Option<Self> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/target/rigs/operators");
        let script = |word: &str| {
            let mut command = Command::new("sh");
            command.args([concat!(env!("CARGO_MANIFEST_DIR"), "/tests/operators/build.sh"), word, folder, name]);
            command
        };
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let required = std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_ok_and(|value| value == "1");
        if required {
            assert!(is_root, "rig `operators` needs root, for networks of its own");
            assert!(script("build").status().unwrap().success(), "rig `operators`: {name} could not be built");
        }
        let found = script("find").output().unwrap();
        if !found.status.success() || !is_root {
            eprintln!(
                "skipped: rig `operators` needs root, and `sh tests/operators/build.sh build target/rigs/operators {name}` once \
                 (Go 1.25 or python3-venv); RAILWRIGHT_REQUIRE_RIGS=1 makes this a failure"
            );
            return None;
        }
        Some(Software { folder: String::from_utf8(found.stdout).unwrap().trim_end().into() })
    }

    /// Its program, not started yet. It ends with the thread that starts it, also when this process is killed.
    pub fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(self.folder.join("operator"));
        command
    }
}

/// A process that is ended with the value.
pub struct Process(pub Child);

impl Drop for Process {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
