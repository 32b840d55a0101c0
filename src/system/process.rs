//! Processes of this machine: run to the end, run with a time limit and a log, hand over the
//! terminal.

use super::clock::Stopwatch;
use std::io::{self, BufRead as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// Runs a program to its end with no input, its output captured.
pub fn run_program(program: &str, arguments: &[&str]) -> io::Result<Output> {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
}

/// A program with its arguments, environment and folder: built as a value, started by one of its
/// methods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    name: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    folder: Option<PathBuf>,
}

/// How a limited run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnding {
    /// Exit code 0.
    Success,
    /// Another exit code, or a signal.
    Failure,
    /// Ended by us when its time was over.
    TimedOut,
}

/// Folders of system programs that a plain user's PATH may lack.
const SYSTEM_FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin";

impl Program {
    /// A program by name (looked up in PATH and the system folders) or path.
    pub fn new(name: impl Into<String>) -> Self {
        Program {
            name: name.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            folder: None,
        }
    }

    /// Adds one argument.
    pub fn argument(mut self, value: impl Into<String>) -> Self {
        self.arguments.push(value.into());
        self
    }

    /// Adds arguments.
    pub fn arguments<I, S>(mut self, values: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        self.arguments.extend(values.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    pub fn environment(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// The folder to run in.
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// The arguments so far.
    pub fn words(&self) -> &[String] {
        &self.arguments
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.name);
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .env("PATH", search_path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }

    /// Runs it to its end, its output captured.
    pub fn output(&self) -> io::Result<Output> {
        self.command().output()
    }

    /// Runs it to its end with these bytes as its input, its output captured.
    pub fn output_of(&self, input: &[u8]) -> io::Result<Output> {
        let mut child = self
            .command()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut pipe = child
            .stdin
            .take()
            .ok_or_else(|| io::Error::other("no pipe to the program"))?;
        std::thread::scope(|scope| {
            // A program that ends without reading its input is no error of ours.
            scope.spawn(move || pipe.write_all(input).or(io::Result::Ok(())));
            child.wait_with_output()
        })
    }

    /// What it prints on standard output, at most `most` bytes, if it ends well within `limit`.
    /// What it says on standard error is thrown away: a program that is asked for a secret may say
    /// it there.
    pub fn answer(&self, most: usize, limit: Duration) -> io::Result<Vec<u8>> {
        use std::io::Read as _;
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipe = child
            .stdout
            .take()
            .ok_or_else(|| io::Error::other("no pipe from the program"))?;
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = pipe.take(most as u64 + 1).read_to_end(&mut bytes);
            let _ = sender.send(read.map(|_| bytes));
        });
        let watch = Stopwatch::start();
        let bytes = match receiver.recv_timeout(limit) {
            Ok(read) => read?,
            Err(_) => {
                stop_child(&mut child)?;
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("it did not end within {} s", limit.as_secs()),
                ));
            }
        };
        if bytes.len() > most {
            stop_child(&mut child)?;
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it printed more than {} KiB", most >> 10),
            ));
        }
        while child.try_wait()?.is_none() {
            if watch.elapsed() > limit {
                stop_child(&mut child)?;
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("it did not end within {} s", limit.as_secs()),
                ));
            }
            super::clock::block_for(5);
        }
        let status = child.wait()?;
        if status.success() {
            Ok(bytes)
        } else {
            Err(io::Error::other(format!("it failed ({status})")))
        }
    }

    /// Runs it with this process's terminal; gives its exit code (128 + signal when one ended it).
    pub fn with_terminal(&self) -> io::Result<i32> {
        use std::os::unix::process::ExitStatusExt as _;
        let status = self.command().stdin(Stdio::inherit()).status()?;
        Ok(status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }

    /// Runs it to its end or until `limit`; each line of both outputs goes to the log and to
    /// `each`.
    pub fn run_logged(
        &self,
        log: &Path,
        limit: Duration,
        each: &mut dyn FnMut(&str),
    ) -> io::Result<ProgramEnding> {
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)?;
        let (reader, writer) = io::pipe()?;
        let mut child = self
            .command()
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .spawn()?;
        let lines = lines_of(reader);
        let watch = Stopwatch::start();
        loop {
            let Some(left) = limit.checked_sub(watch.elapsed()) else {
                stop_child(&mut child)?;
                return Ok(ProgramEnding::TimedOut);
            };
            match lines.recv_timeout(left) {
                Ok(line) => {
                    writeln!(file, "{line}")?;
                    each(&line);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(if child.wait()?.success() {
                        ProgramEnding::Success
                    } else {
                        ProgramEnding::Failure
                    });
                }
            }
        }
    }
}

/// The lines that come out of a pipe, read by a thread of their own.
fn lines_of(pipe: io::PipeReader) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in io::BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            if sender
                .send(String::from_utf8_lossy(&line).into_owned())
                .is_err()
            {
                return;
            }
        }
    });
    receiver
}

/// Asks a child to end, so that it can clean up, and kills it when it does not within ten seconds.
fn stop_child(child: &mut Child) -> io::Result<()> {
    send_signal("TERM", child.id())?;
    for _ in 0..100 {
        if child.try_wait()?.is_some() {
            return Ok(());
        }
        super::clock::block_for(100);
    }
    child.kill()?;
    child.wait().map(|_| ())
}

/// Sends a signal by name to one process. The shell's own `kill`: there is no signal call in the
/// standard library.
pub(super) fn send_signal(name: &str, pid: u32) -> io::Result<()> {
    run_program(
        "/bin/sh",
        &["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid.to_string()],
    )
    .map(|_| ())
}

fn search_path() -> String {
    match std::env::var("PATH") {
        Ok(path) if !path.is_empty() => format!("{path}:{SYSTEM_FOLDERS}"),
        _ => SYSTEM_FOLDERS.to_owned(),
    }
}

/// Where a program lies, in PATH or the system folders.
pub fn find_program(name: &str) -> Option<PathBuf> {
    search_path()
        .split(':')
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.is_file())
}

/// Whether this process has root's rights.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;
    // The owner of our own entry in /proc is the effective user.
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// The path of this program, to be started again for a task in the background.
pub fn this_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// A variable of the environment, when it is set and not empty.
pub fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Program {
        Program::new("sh").arguments(["-c", script])
    }

    #[test]
    fn a_logged_run_hands_out_and_keeps_the_lines_of_both_outputs() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let mut lines = Vec::new();
        let ending = sh("echo one; echo two >&2; echo three").run_logged(
            &log,
            Duration::from_secs(60),
            &mut |l| lines.push(l.to_owned()),
        );
        assert_eq!(ending.unwrap(), ProgramEnding::Success);
        assert_eq!(lines, ["one", "two", "three"]);
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "one\ntwo\nthree\n");
        assert_eq!(
            sh("exit 3")
                .run_logged(&log, Duration::from_secs(60), &mut |_| ())
                .unwrap(),
            ProgramEnding::Failure
        );
    }

    #[test]
    fn a_run_past_its_limit_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let ending = Program::new("sleep").argument("600").run_logged(
            &log,
            Duration::from_millis(50),
            &mut |_| (),
        );
        assert_eq!(ending.unwrap(), ProgramEnding::TimedOut);
    }

    #[test]
    fn an_answer_is_bounded_in_bytes_and_time_and_says_nothing_of_what_was_printed() {
        let minute = Duration::from_secs(60);
        assert_eq!(
            sh("printf '%s' answer; echo aside >&2")
                .answer(6, minute)
                .unwrap(),
            b"answer"
        );
        let told =
            |script: &str, most, limit| sh(script).answer(most, limit).unwrap_err().to_string();
        assert_eq!(
            told("yes poison", 2048, minute),
            "it printed more than 2 KiB"
        );
        assert_eq!(
            told("echo poison; echo poison >&2; exit 3", 99, minute),
            "it failed (exit status: 3)"
        );
        assert_eq!(
            told("exec sleep 600", 99, Duration::from_millis(20)),
            "it did not end within 0 s"
        );
        assert_eq!(
            told("exec >&-; exec sleep 600", 99, Duration::from_millis(20)),
            "it did not end within 0 s"
        );
    }

    #[test]
    fn input_reaches_the_program_and_may_be_ignored() {
        assert_eq!(
            Program::new("cat").output_of(b"text").unwrap().stdout,
            b"text"
        );
        assert!(
            sh("exit 0")
                .output_of(&vec![0; 1 << 20])
                .unwrap()
                .status
                .success()
        );
    }
}
