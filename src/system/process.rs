//! Processes of this machine.

use std::io;
use std::process::{Command, Output, Stdio};

/// Runs a program to its end with no input, its output captured.
pub fn run(program: &str, arguments: &[&str]) -> io::Result<Output> {
    Command::new(program).args(arguments).stdin(Stdio::null()).output()
}
