//! Runs the real program in a place of its own: an empty environment, a fresh folder, a fixed
//! clock.

use crate::server::APART;
use std::path::Path;
use std::process::{Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_railwright");

/// A folder that is removed at the end of the test.
pub struct Place(tempfile::TempDir);

impl Place {
    /// An empty one.
    pub fn new() -> Self {
        Place(tempfile::tempdir().unwrap())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// The program with its environment, ready to run in this folder.
    pub fn command(&self, words: &[&str]) -> Command {
        // What a run of somebody else left on this machine is not the test's.
        let is_seen = std::fs::read_dir("/var/lib/railwright").is_ok();
        let mut command = Command::new(if is_seen { "/usr/bin/unshare" } else { PROGRAM });
        if is_seen {
            command.args([
                "--mount",
                "--propagation",
                "private",
                "/bin/sh",
                "-c",
                APART,
                "sh",
                PROGRAM,
            ]);
        }
        command
            .args(words)
            .current_dir(self.path())
            .stdin(Stdio::null());
        command
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", "/usr/bin:/bin")
            .env("RAILWRIGHT_TEST_CLOCK", "2026-01-01T00:00:00Z");
        command
    }

    /// Runs the program and gives back what it said, in one text: stdout, stderr after a rule, the
    /// exit code at the end.
    pub fn run(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        let (stdout, stderr) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        let rule = if stderr.is_empty() {
            ""
        } else {
            "--- stderr ---\n"
        };
        let code = output
            .status
            .code()
            .map_or("killed".to_owned(), |code| code.to_string());
        let text = format!(
            "$ railwright {}\n{stdout}{rule}{stderr}--- exit {code} ---\n",
            words.join(" ")
        );
        text.replace(&self.path().display().to_string(), "[place]")
    }
}
