//! One script over one channel: start `/bin/sh -s`, feed it, take its output, wait for its exit
//! status.

use super::connect::{SshConnection, describe_ssh_error};
use crate::shell::{
    ERROR_KEPT, FramedScript, OUTPUT_KEPT, OUTPUT_TAKEN, Shell, ShellEnd, ShellOutput,
};
use crate::{BoxFuture, TransportError};
use memchr::memmem;
use railwright_base::Reason;
use railwright_system::fed::Capture;
use russh::{
    Channel, ChannelMsg, ChannelOpenFailure, ChannelReadHalf, ChannelWriteHalf, client::Msg,
};
use std::time::Duration;

/// A server that does not open a channel in this time does not answer.
const OPEN_LIMIT: Duration = Duration::from_secs(30);
/// After the exit status, how long the server may be silent before the end of the output: sshd
/// sends it before what it has not read yet (OpenSSH, session.c, `session_exit_message`), and a
/// network that loses packets keeps it back.
const LINGER: Duration = Duration::from_secs(30);

impl Shell for SshConnection {
    fn host(&self) -> &str {
        &self.destination.name
    }
    fn user(&self) -> &str {
        &self.destination.user
    }
    fn address(&self) -> &str {
        &self.destination.address
    }
    fn elevated(&self) -> bool {
        self.destination.user != "root" && !self.destination.read_only
    }
    fn read_only(&self) -> bool {
        self.destination.read_only
    }

    fn run<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>> {
        Box::pin(self.run_script(script, limit, self.elevated()))
    }

    fn run_in_login<'a>(
        &'a self,
        script: &'a FramedScript,
        limit: Duration,
    ) -> BoxFuture<'a, Result<ShellOutput, TransportError>> {
        Box::pin(self.run_script(script, limit, false))
    }
}

impl SshConnection {
    fn new_lost_error(&self, reason: Reason) -> TransportError {
        TransportError::Lost {
            host: self.destination.name.clone(),
            reason,
        }
    }

    async fn run_script(
        &self,
        script: &FramedScript,
        limit: Duration,
        elevated: bool,
    ) -> Result<ShellOutput, TransportError> {
        let _session = self
            .sessions
            .acquire()
            .await
            .map_err(|error| self.new_lost_error(error.to_string().into()))?;
        let channel = match tokio::time::timeout(OPEN_LIMIT, self.open_session()).await {
            Err(_) => {
                let host = self.destination.name.clone();
                return Err(TransportError::TimedOut { host, limit_s: 30 });
            }
            Ok(opened) => {
                opened.map_err(|error| self.new_lost_error(describe_ssh_error(&error).into()))?
            }
        };
        // `$SSH_CONNECTION` is expanded by the login shell, before sudo drops it.
        let command = if elevated {
            "sudo -n /bin/sh -s \"$SSH_CONNECTION\""
        } else {
            "/bin/sh -s"
        };
        let (mut from, to) = channel.split();
        let mut ran = ShellOutput {
            end: ShellEnd::NoStatus,
            stdout: Capture::new(OUTPUT_KEPT),
            stderr: Capture::new(ERROR_KEPT),
        };
        let talk = async {
            to.exec(true, command)
                .await
                .map_err(|error| self.new_lost_error(describe_ssh_error(&error).into()))?;
            let end = tokio::select! {
                end = collect_channel_output(&mut from, &mut ran, &script.end) => end,
                never = feed_channel(&to, &script.input) => match never {},
            };
            end.ok_or_else(|| self.new_lost_error("the server refused to run a command".into()))
        };
        let end = match tokio::time::timeout(limit, talk).await {
            Ok(end) => end?,
            Err(_) => ShellEnd::TimedOut,
        };
        ran.end = match end {
            ShellEnd::NoStatus if self.handle.is_closed() => {
                ShellEnd::Lost("no exit status came".to_owned())
            }
            other => other,
        };
        let _ = to.close().await;
        Ok(ran)
    }

    /// A server counts a session until it has seen both ends close, and may allow fewer than we
    /// hold: asked again then.
    async fn open_session(&self) -> Result<Channel<Msg>, russh::Error> {
        loop {
            match self.handle.channel_open_session().await {
                Err(russh::Error::ChannelOpenFailure(
                    ChannelOpenFailure::ConnectFailed | ChannelOpenFailure::ResourceShortage,
                )) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                other => return other,
            }
        }
    }
}

/// Feeds the script, then waits for ever: the end of a run is the end of its output. Written at the
/// same time as the output is taken, because a shell that prints while it is fed would block both.
async fn feed_channel(to: &ChannelWriteHalf<Msg>, input: &str) -> std::convert::Infallible {
    if to.data_bytes(input.as_bytes().to_vec()).await.is_ok() {
        let _ = to.eof().await;
    }
    std::future::pending().await
}

/// Takes output until the channel ends, or the shell's own is here: a daemon that the script left
/// behind can hold the channel open for ever. None when the server refused the command.
async fn collect_channel_output(
    from: &mut ChannelReadHalf,
    ran: &mut ShellOutput,
    last: &str,
) -> Option<ShellEnd> {
    let mut end = ShellEnd::NoStatus;
    let (mut out_ended, mut err_ended) = (false, false);
    loop {
        let message = match end {
            ShellEnd::NoStatus => from.wait().await,
            _ if out_ended && err_ended => return Some(end),
            _ => match tokio::time::timeout(LINGER, from.wait()).await {
                Ok(message) => message,
                Err(_) => return Some(ShellEnd::OutputCut),
            },
        };
        match message {
            Some(ChannelMsg::Data { data }) => {
                out_ended |= takes_last(&mut ran.stdout, &data, last)
            }
            Some(ChannelMsg::ExtendedData { data, .. }) => {
                err_ended |= takes_last(&mut ran.stderr, &data, last)
            }
            Some(ChannelMsg::ExitStatus { exit_status }) => {
                end = ShellEnd::Exit(i32::try_from(exit_status).unwrap_or(i32::MAX))
            }
            Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                end = ShellEnd::Killed(format!("{signal_name:?}"))
            }
            Some(ChannelMsg::Failure) => return None,
            Some(ChannelMsg::Close) => return Some(end),
            // The connection ended between the exit status and what the server had not sent yet.
            None => {
                return Some(if matches!(end, ShellEnd::NoStatus) {
                    end
                } else {
                    ShellEnd::OutputCut
                });
            }
            Some(_) => {}
        }
        if ran.stdout.seen().saturating_add(ran.stderr.seen()) > OUTPUT_TAKEN {
            return Some(ShellEnd::TooMuch);
        }
    }
}

/// Takes what has arrived; says whether the last line of all is in it or ends with it.
fn takes_last(output: &mut Capture, arrived: &[u8], last: &str) -> bool {
    let from = output.bytes().len().saturating_sub(last.len());
    output.take(arrived);
    memmem::find(&output.bytes()[from..], last.as_bytes()).is_some()
}
