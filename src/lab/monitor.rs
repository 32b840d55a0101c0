//! QEMU's control socket (QMP): snapshots are made and restored through it.

use super::Result;
use railwright_base::{Diagnostic, text};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The socket's name in a machine's folder.
pub const SOCKET: &str = "qmp.sock";

/// A conversation with one QEMU.
pub struct Monitor {
    stream: UnixStream,
    lines: io::Lines<BufReader<UnixStream>>,
}

impl Monitor {
    /// Connects to the socket in a machine's folder.
    pub fn connect(folder: &Path) -> io::Result<Self> {
        // A socket's path may have 107 bytes; through the open folder it is short wherever the lab
        // lies.
        let open = File::open(folder)?;
        let stream = UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", open.as_raw_fd()))?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        let lines = BufReader::new(stream.try_clone()?).lines();
        let mut monitor = Monitor { stream, lines };
        monitor.next_message()?; // the greeting
        monitor.execute(json!({"execute": "qmp_capabilities"}))?;
        Ok(monitor)
    }

    /// Runs a line of the human monitor; what it says is an error message, as a rule.
    pub fn line(&mut self, line: &str) -> io::Result<String> {
        let answer = self.execute(
            json!({"execute": "human-monitor-command", "arguments": {"command-line": line}}),
        )?;
        Ok(answer.as_str().unwrap_or_default().trim().to_owned())
    }

    fn execute(&mut self, request: Value) -> io::Result<Value> {
        writeln!(self.stream, "{request}")?;
        loop {
            let message = self.next_message()?;
            if let Some(answer) = message.get("return") {
                return Ok(answer.clone());
            }
            if let Some(error) = message.get("error") {
                return Err(io::Error::other(text::one_line(&error.to_string(), 200)));
            }
        }
    }

    fn next_message(&mut self) -> io::Result<Value> {
        let line = self.lines.next().ok_or_else(|| {
            io::Error::new(io::ErrorKind::UnexpectedEof, "QEMU closed its monitor")
        })??;
        serde_json::from_str(&line).map_err(io::Error::other)
    }
}

/// Runs a line of the monitor of a machine that must say nothing, as savevm and loadvm do when they
/// succeed.
pub fn run_silent_monitor_line(machine: &Path, name: &str, line: &str) -> Result<()> {
    let said = Monitor::connect(machine).and_then(|mut monitor| monitor.line(line));
    let why = match said {
        Ok(said) if said.is_empty() => return Ok(()),
        Ok(said) => said,
        Err(error) => error.to_string(),
    };
    Err(Diagnostic::error(
        "RW0909",
        format!("QEMU could not do `{line}`: {}", text::one_line(&why, 200)),
    )
    .on(format!("lab machine {name}"))
    .effect("the lab cannot be set back to its bare state in seconds")
    .next("railwright lab down")
    .next("railwright lab up")
    .into())
}
