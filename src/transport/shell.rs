//! One script on one host: how it is framed, and what its end means. SSH and `local` differ in
//! nothing but how they start `/bin/sh -s` and feed it.
//!
//! The frame: a line with a fresh nonce first, so that we know that *our* shell began (a login
//! shell that refuses, a `sudo` that asks, a chatty `.bashrc` are all told apart from it); then the
//! whole script as one group that reads nothing, so that no command in it can swallow the rest of
//! the script; at the shell's exit a line with the nonce on both outputs, so that we know that all
//! of them is here: what a daemon says that the script left behind is not the script's.

use super::target_lock::LOCK_LOST;
use super::{BoxFuture, ExecutionOutcome, TransportError};
use memchr::memmem;
use railwright_base::text::one_line;
use railwright_resource::program::ENVIRONMENT;
use railwright_system::clock;
use railwright_system::fed::Capture;
use std::time::Duration;

/// Bytes of standard output that are kept.
pub const OUTPUT_KEPT: usize = 8 << 20;
/// Bytes of standard error that are kept.
pub const ERROR_KEPT: usize = 1 << 20;
/// A host that sends more than this for one script is let go.
pub const OUTPUT_TAKEN: usize = 64 << 20;

/// How a script's shell ended, as far as we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellEnd {
    /// With an exit status.
    Exit(i32),
    /// By a signal; its name.
    Killed(String),
    /// The channel was closed in good order, but no exit status came.
    NoStatus,
    /// With an exit status, but not all of its output came.
    OutputCut,
    /// The connection ended; why.
    Lost(String),
    /// Our time limit passed.
    TimedOut,
    /// More output than we take.
    TooMuch,
}

/// What a shell left behind.
#[derive(Debug)]
pub struct ShellOutput {
    /// How it ended.
    pub end: ShellEnd,
    /// Standard output.
    pub stdout: Capture,
    /// Standard error.
    pub stderr: Capture,
}

/// Something that starts `/bin/sh -s` on one host: as root, or as a user who may only read.
pub trait Shell: Send + Sync {
    /// The host's name in the spec.
    fn host(&self) -> &str;
    /// The user that we came as.
    fn user(&self) -> &str;
    /// What was connected to, for messages.
    fn address(&self) -> &str;
    /// True when the shell is started through `sudo -n`.
    fn elevated(&self) -> bool;
    /// True for a user without rights, who is only asked to read.
    fn read_only(&self) -> bool;
    /// Starts the shell, feeds it the script and waits. Errors mean that the shell was certainly
    /// not started.
    fn run<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>>;
    /// As `run`, in the login itself, without `sudo`.
    fn run_in_login<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>>;
}

/// A host's shell without `sudo`: the login as its user gets it.
pub struct AsLogin<'s>(pub &'s dyn Shell);

impl Shell for AsLogin<'_> {
    fn host(&self) -> &str {
        self.0.host()
    }
    fn user(&self) -> &str {
        self.0.user()
    }
    fn address(&self) -> &str {
        self.0.address()
    }
    fn elevated(&self) -> bool {
        false
    }
    fn read_only(&self) -> bool {
        self.0.read_only()
    }
    fn run<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>> {
        self.0.run_in_login(script, limit)
    }
    fn run_in_login<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>> {
        self.0.run_in_login(script, limit)
    }
}

/// A script's end and output, after the frame was taken off.
#[derive(Debug)]
pub struct ScriptResult {
    /// How it ended.
    pub end: ShellEnd,
    /// Standard output of the script itself, not cleaned.
    pub stdout: Vec<u8>,
    /// Standard error, not cleaned.
    pub stderr: String,
}

/// Runs a script. An error means that it did certainly not begin.
pub async fn run_framed_script(
    shell: &dyn Shell,
    script: &str,
    limit: Duration,
) -> Result<ScriptResult, TransportError> {
    let nonce = clock::generate_nonce().map_err(|error| TransportError::Local {
        reason: format!("no randomness: {error}").into(),
    })?;
    let framed = FramedScript::new(script, &nonce);
    let ran = shell.run(&framed, limit).await?;
    let stderr =
        String::from_utf8_lossy(take_before_line(ran.stderr.bytes(), &framed.end)).into_owned();
    let begin = memmem::find(ran.stdout.bytes(), framed.begin.as_bytes());
    match (begin, &ran.end) {
        (None, ShellEnd::Exit(_)) => Err(not_started(shell, &stderr)),
        (begin, end) => {
            let own = begin
                .map(|at| &ran.stdout.bytes()[at + framed.begin.len()..])
                .unwrap_or_default();
            Ok(ScriptResult {
                end: end.clone(),
                stdout: take_before_line(own, &framed.end).to_vec(),
                stderr,
            })
        }
    }
}

/// A script in its frame.
#[derive(Debug)]
pub struct FramedScript {
    /// What `/bin/sh -s` reads.
    pub input: String,
    /// What it prints first.
    begin: String,
    /// What it prints on both outputs when it exits.
    pub end: String,
}

impl FramedScript {
    /// `$1` is what `SSH_CONNECTION` was before `sudo` dropped it.
    pub fn new(script: &str, nonce: &str) -> Self {
        let input = format!(
            "printf '\\n@{nonce} started\\n'\n\
             trap \"printf '\\n@{nonce} ended\\n'; printf '\\n@{nonce} ended\\n' >&2\" EXIT\n\
             {ENVIRONMENT}SSH_CONNECTION=${{SSH_CONNECTION:-${{1:-}}}}; export SSH_CONNECTION; \
             HOME=${{HOME:-/root}}; export HOME; umask 022; cd /; set --\n\
             {{\n\
             {script}\n\
             }} </dev/null\n"
        );
        FramedScript {
            input,
            begin: format!("@{nonce} started\n"),
            end: format!("\n@{nonce} ended\n"),
        }
    }
}

/// What stands before a line, or all where it is not there.
fn take_before_line<'o>(output: &'o [u8], line: &str) -> &'o [u8] {
    &output[..memmem::find(output, line.as_bytes()).unwrap_or(output.len())]
}

fn not_started(shell: &dyn Shell, stderr: &str) -> TransportError {
    let (host, user) = (shell.host().to_owned(), shell.user().to_owned());
    if shell.elevated() {
        return TransportError::SudoRefused { host, user };
    }
    let said = one_line(stderr, 160);
    let reason = format!(
        "the login of {user} did not start /bin/sh: {}",
        if said.is_empty() {
            "it said nothing"
        } else {
            &said
        }
    );
    TransportError::Unreachable {
        host,
        address: shell.address().to_owned(),
        reason: reason.into(),
    }
}

impl ShellEnd {
    /// Why the outcome is not known; None when there is an exit status.
    pub fn doubt(&self, limit: Duration) -> Option<String> {
        match self {
            ShellEnd::Exit(_) => None,
            ShellEnd::Killed(signal) => Some(format!(
                "its shell was ended by the signal {}",
                one_line(signal, 20)
            )),
            ShellEnd::NoStatus => Some("the host sent no exit status".to_owned()),
            ShellEnd::OutputCut => {
                Some("the host sent an exit status, and not all of the output".to_owned())
            }
            ShellEnd::Lost(reason) => {
                Some(format!("the connection ended: {}", one_line(reason, 160)))
            }
            ShellEnd::TimedOut => Some(format!(
                "it did not end within {} s and may still run",
                limit.as_secs()
            )),
            ShellEnd::TooMuch => Some(format!(
                "it sent more than {} MiB of output and was let go",
                OUTPUT_TAKEN >> 20
            )),
        }
    }
}

impl ScriptResult {
    /// The line of the holder that a script printed behind this nonce before it ended because the
    /// lock is not its writer's.
    pub fn lock_lost(&self, nonce: &str) -> Option<String> {
        if self.end != ShellEnd::Exit(LOCK_LOST) {
            return None;
        }
        let text = String::from_utf8_lossy(&self.stdout).into_owned();
        let (_, holder) = text.split_once(&format!("@{nonce} lost\n"))?;
        Some(holder.trim().to_owned())
    }

    /// As the outcome of an action: an exit status, or unknown. A script whose shell was killed has
    /// no outcome.
    pub fn performed(self, limit: Duration) -> ExecutionOutcome {
        match (&self.end, self.end.doubt(limit)) {
            (ShellEnd::Exit(code), _) => ExecutionOutcome::Ended {
                code: *code,
                stdout: String::from_utf8_lossy(&self.stdout).into_owned(),
                stderr: self.stderr,
            },
            (_, doubt) => ExecutionOutcome::Unknown {
                reason: doubt.unwrap_or_default().into(),
            },
        }
    }
}
