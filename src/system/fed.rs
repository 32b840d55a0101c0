//! A program of this machine that is fed through standard input while its output is taken, bounded.

use super::process::Program;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// Bytes that arrive: the first ones are kept, the rest is counted and dropped.
#[derive(Debug, Clone)]
pub struct Capture {
    kept: Vec<u8>,
    limit: usize,
    seen: usize,
}

impl Capture {
    /// Keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Capture {
            kept: Vec::new(),
            limit,
            seen: 0,
        }
    }

    /// Takes what has arrived.
    pub fn take(&mut self, bytes: &[u8]) {
        self.seen = self.seen.saturating_add(bytes.len());
        let room = self.limit - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// What was kept.
    pub fn bytes(&self) -> &[u8] {
        &self.kept
    }

    /// How many bytes arrived in all.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// What was kept as text; bytes that are no UTF-8 are replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// What may come out of a program.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Bytes of standard output that are kept.
    pub output: usize,
    /// Bytes of standard error that are kept.
    pub error: usize,
    /// The program is let go when more than this arrives in all.
    pub total: usize,
    /// How long it may take.
    pub limit: Duration,
}

/// How a fed program ended.
#[derive(Debug)]
pub enum FedProgramEnding {
    /// By itself.
    Ended(ExitStatus),
    /// Past its time limit; it may still run.
    TimedOut,
    /// Past the total of output.
    TooMuch,
}

/// Runs a program in a process group of its own (Ctrl-C on our terminal does not reach it) and
/// feeds it `input`. Errors mean that it was not started.
pub async fn run_fed_program(
    program: &str,
    arguments: &[&str],
    input: &[u8],
    bounds: Bounds,
) -> io::Result<(FedProgramEnding, Capture, Capture)> {
    let mut command = Command::new(program);
    command.args(arguments);
    feed_command(command, input, bounds).await
}

/// Runs a program with an environment of its own in a process group of its own and feeds it
/// `input`. Errors mean that it was not started.
pub async fn run_program(
    program: &Program,
    input: &[u8],
    bounds: Bounds,
) -> io::Result<(FedProgramEnding, Capture, Capture)> {
    feed_command(Command::from(program.command()), input, bounds).await
}

async fn feed_command(
    mut command: Command,
    input: &[u8],
    bounds: Bounds,
) -> io::Result<(FedProgramEnding, Capture, Capture)> {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = command.spawn()?;
    let (mut output, mut error) = (Capture::new(bounds.output), Capture::new(bounds.error));
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let talk = async {
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program that ends early closes the pipe; its exit status says more than our
                // error would.
                let _ = stdin.write_all(input).await;
            }
        };
        let fine = tokio::join!(
            feed,
            drain_stream(stdout, &mut output, bounds.total),
            drain_stream(stderr, &mut error, bounds.total)
        );
        if fine.1 && fine.2 {
            child.wait().await.map(FedProgramEnding::Ended)
        } else {
            Ok(FedProgramEnding::TooMuch)
        }
    };
    let ending = match tokio::time::timeout(bounds.limit, talk).await {
        Ok(ending) => ending?,
        Err(_) => FedProgramEnding::TimedOut,
    };
    Ok((ending, output, error))
}

/// False when more than `total` bytes arrived.
async fn drain_stream(
    stream: Option<impl AsyncRead + Unpin>,
    into: &mut Capture,
    total: usize,
) -> bool {
    let Some(mut stream) = stream else {
        return true;
    };
    let mut buffer = vec![0; 64 << 10];
    while into.seen() <= total {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return true,
            Ok(count) => into.take(&buffer[..count]),
        }
    }
    false
}
