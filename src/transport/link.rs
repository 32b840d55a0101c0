//! A host link over any shell: renders reads, actions, probes and upkeep, and says what the shell's
//! end means for each.

use super::shell::{AsLogin, Shell, ShellEnd, run_framed_script};
use super::target_lock::lock_lost;
use super::{
    BoxFuture, ExecutionOutcome, Fence, HostLink, TransportError, Upkeep, detached, fenced_script,
    probe_timeout, step,
};
use railwright_resource::probe::Probe;
use railwright_resource::{Action, Read, ReadResults, program};
use railwright_system::clock;
use std::time::Duration;

/// One program of reads never takes longer than this, in seconds, however many sections hang; what
/// was read by then counts, the rest is cut off.
const READ_LIMIT_S: u32 = 300;

/// Upkeep is a handful of file operations.
const UPKEEP_LIMIT: Duration = Duration::from_secs(60);

/// A connection to one host, over a shell.
pub struct ShellLink<S> {
    shell: S,
}

impl<S: Shell> ShellLink<S> {
    /// Everything this link does goes through this shell.
    pub fn new(shell: S) -> Self {
        ShellLink { shell }
    }

    async fn read_all(&self, reads: &[Read]) -> Result<ReadResults, TransportError> {
        if reads.is_empty() {
            return Ok(ReadResults::default());
        }
        let nonce = clock::generate_nonce().map_err(|error| TransportError::Local {
            reason: format!("no randomness: {error}").into(),
        })?;
        let limit_s = program::limit_s(reads, READ_LIMIT_S);
        let limit = Duration::from_secs(limit_s.into());
        let render = if self.shell.read_only() {
            program::render_for_others
        } else {
            program::render_read_program
        };
        let called = run_framed_script(&self.shell, &render(reads, "", &nonce), limit).await?;
        let host = self.shell.host().to_owned();
        match (called.end.doubt(limit), &called.end) {
            (Some(_), ShellEnd::TimedOut) if called.stdout.is_empty() => {
                Err(TransportError::TimedOut { host, limit_s })
            }
            (Some(reason), _) if called.stdout.is_empty() => Err(TransportError::Lost {
                host,
                reason: reason.into(),
            }),
            // What was read before the end counts; the sections after it are cut off.
            _ => Ok(program::parse_program_answers(
                reads,
                &nonce,
                &called.stdout,
            )),
        }
    }

    /// A user who may only read is asked nothing else, not even for what the host would refuse by
    /// itself.
    fn may_act(&self) -> Result<(), TransportError> {
        match self.shell.read_only() {
            true => Err(TransportError::ReadOnly {
                host: self.shell.host().to_owned(),
                user: self.shell.user().to_owned(),
            }),
            false => Ok(()),
        }
    }

    /// Nothing is done here in nobody's name.
    async fn act(
        &self,
        action: &Action,
        token: &str,
        fence: Option<&Fence>,
    ) -> Result<ExecutionOutcome, TransportError> {
        self.may_act()?;
        let fence = fence.ok_or_else(|| lock_lost(self.shell.host(), None))?;
        if action.is_long() {
            return detached::perform_detached_action(
                &self.shell,
                &action.script(),
                action.limit_s(),
                token,
                fence,
            )
            .await;
        }
        let limit = Duration::from_secs(action.limit_s().into());
        self.call_fenced(
            |nonce| {
                step::render_exclusive_step(&action.script(), fenced_script::FOLDER, fence, nonce)
            },
            limit,
        )
        .await
    }

    /// Runs a script that says behind the nonce where the lock is not its writer's any more.
    async fn call_fenced(
        &self,
        script: impl FnOnce(&str) -> String,
        limit: Duration,
    ) -> Result<ExecutionOutcome, TransportError> {
        let nonce = clock::generate_nonce().map_err(|error| TransportError::Local {
            reason: format!("no randomness: {error}").into(),
        })?;
        let called = run_framed_script(&self.shell, &script(&nonce), limit).await?;
        match called.lock_lost(&nonce) {
            Some(holder) => Err(lock_lost(self.shell.host(), Some(&holder))),
            None => Ok(called.performed(limit)),
        }
    }

    async fn run_probe(&self, probe: &Probe) -> Result<ExecutionOutcome, TransportError> {
        self.may_act()?;
        let nonce = clock::generate_nonce().map_err(|error| TransportError::Local {
            reason: format!("no randomness: {error}").into(),
        })?;
        // The host ends the probe itself; our own limit only covers a host that does not.
        let limit = Duration::from_secs(u64::from(probe.limit_s()) + 30);
        if probe.as_login_user() {
            // What is checked is the login: a unit or sudo would show limits of their own.
            return Ok(
                run_framed_script(&AsLogin(&self.shell), &probe.script(), limit)
                    .await?
                    .performed(limit),
            );
        }
        Ok(run_framed_script(
            &self.shell,
            &probe_timeout::render_probe_script(probe, &nonce[..12]),
            limit,
        )
        .await?
        .performed(limit))
    }
}

impl<S: Shell> HostLink for ShellLink<S> {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
        Box::pin(self.read_all(reads))
    }

    fn perform<'a>(
        &'a self,
        action: &'a Action,
        token: &'a str,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(self.act(action, token, fence))
    }

    fn probe<'a>(
        &'a self,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(self.run_probe(probe))
    }

    fn upkeep<'a>(
        &'a self,
        upkeep: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async {
            self.may_act()?;
            self.call_fenced(
                |nonce| fenced_script::render_upkeep_script(upkeep, nonce),
                UPKEEP_LIMIT,
            )
            .await
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::ExecutionOutcome;
    use crate::local::open_local_link;
    use railwright_resource::probe::Probe;

    /// A unit or sudo would show limits of their own: the probe must see those of the login.
    #[tokio::test]
    async fn a_login_is_checked_in_the_login_itself() {
        let link = open_local_link("here", false).unwrap();
        let probe = Probe::ModuleCheck {
            script: "ulimit -l".to_owned(),
        };
        let own = std::process::Command::new("sh")
            .args(["-c", "ulimit -l"])
            .output()
            .unwrap();
        let ExecutionOutcome::Ended { code, stdout, .. } = link.probe(&probe).await.unwrap() else {
            panic!()
        };
        assert_eq!((code, stdout.as_bytes()), (0, own.stdout.as_slice()));
    }
}
