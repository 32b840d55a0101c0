//! What a program and its children did, as `strace` tells it.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// What counts of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// A program with its arguments, the first one being its path; also one that could not be run.
    Ran(Vec<String>),
    /// A file or folder, by the path that it really has.
    Opened(PathBuf),
    /// One that could not be opened, by the path that it was tried at.
    TriedToOpen(PathBuf),
    /// A connection, over a network or to a socket of this machine.
    Connected(String),
}

/// All calls of a run, but for the start of the program itself.
pub struct Trace {
    pub calls: Vec<Call>,
}

impl Trace {
    /// Runs a program; its trace, its exit code, and what it said.
    pub fn of(
        program: impl AsRef<OsStr>,
        words: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> (Trace, i32, String) {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("/usr/bin/strace");
        // A file for each process: no call is cut in two by another's.
        command.args([
            "-ff",
            "-qq",
            "-y",
            "--seccomp-bpf",
            "-f",
            "-s",
            "4096",
            "-e",
            "signal=none",
        ]);
        command
            .args([
                "-e",
                "trace=execve,execveat,open,openat,openat2,creat,connect",
                "-o",
            ])
            .arg(folder.path().join("trace"));
        command
            .arg(program.as_ref())
            .args(words)
            .stdin(Stdio::null());
        prepare(&mut command);
        let output = command.output().unwrap();
        let mut calls = Vec::new();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            calls.extend(text.lines().filter_map(parsed));
        }
        let own = calls.iter().position(
            |call| matches!(call, Call::Ran(ran) if *ran[0] == *program.as_ref().to_string_lossy()),
        );
        if let Some(own) = own {
            calls.remove(own);
        }
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (Trace { calls }, output.status.code().unwrap_or(-1), said)
    }
}

/// A line `NAME(ARGUMENTS) = RESULT`.
fn parsed(line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let result = rest.rsplit_once(" = ").map_or("?", |(_, result)| result);
    match name {
        "execve" | "execveat" => Some(Call::Ran(quoted(rest))),
        "connect" => Some(Call::Connected(rest.to_owned())),
        "open" | "openat" | "openat2" | "creat" => {
            let named = quoted(rest).into_iter().next()?;
            // `3</real/path>`
            let real = result
                .split_once('<')
                .and_then(|(_, path)| path.strip_suffix('>'));
            Some(match real {
                Some(real) => Call::Opened(PathBuf::from(real.trim_end_matches("(deleted)"))),
                None => Call::TriedToOpen(plain(&at(rest).join(named))),
            })
        }
        _ => None,
    }
}

/// The folder that a relative path is below: `AT_FDCWD</folder>` or `3</folder>`.
fn at(arguments: &str) -> PathBuf {
    let first = arguments.split(',').next().unwrap_or_default();
    let folder = first
        .split_once('<')
        .and_then(|(_, folder)| folder.strip_suffix('>'));
    PathBuf::from(folder.unwrap_or("/"))
}

/// The texts in quotes, up to the environment.
fn quoted(arguments: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = arguments;
    while let Some((before, after)) = rest.split_once('"') {
        // The arguments of a program end where its environment begins.
        if before.contains(']') {
            break;
        }
        let mut end = 0;
        let bytes = after.as_bytes();
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        texts.push(after[..end.min(after.len())].to_owned());
        rest = after.get(end + 1..).unwrap_or_default();
    }
    // `execve(PATH, [ARGUMENT 0, ...])`: the name that a program is given does not count.
    if texts.len() > 1 {
        texts.remove(1);
    }
    texts
}

/// Without `..`, as the words have it.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
