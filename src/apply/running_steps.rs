//! Waits until no step of ours runs on a host any more: one that lost its connection goes on by
//! itself, and what it is doing must neither be read as its result nor be begun a second time.

use super::context::{Context, EventSink, RunEvent};
use railwright_system::clock;
use railwright_transport::{ExecutionOutcome, TransportError, Writer};
use std::time::Duration;

/// Why a host is not idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Busy {
    /// It was not there to be asked.
    NotAsked(TransportError),
    /// The answer is of no use.
    UnclearAnswer(String),
    /// The step ran for all the time that we waited; in seconds.
    Runs(u64),
    /// An automatic rollback of another run was armed for all that time; in seconds.
    RollbackPending(u64),
    /// The user asked to stop meanwhile.
    Interrupted,
}

/// Asks until the host is idle, for at most so long: no short step runs, no long one but those of
/// this run, none of that attempt, and no automatic rollback is armed but those of this run, which
/// its own steps settle. Whether there was something to wait for.
pub async fn wait_until_idle(
    host: &str,
    writer: &Writer,
    context: &Context,
    sink: &EventSink,
    limit: Duration,
    run: Option<&str>,
    attempt: Option<&str>,
) -> Result<bool, Busy> {
    let mut rollback_pending = false;
    let poll = context.patience.settle_poll;
    let looks = limit.as_millis() / poll.as_millis().max(1);
    for look in 0..=looks {
        match writer.idle(attempt, run).await.map_err(Busy::NotAsked)? {
            ExecutionOutcome::Ended { code: 0, .. } => return Ok(look > 0),
            ExecutionOutcome::Ended { code: 77, .. } => rollback_pending = false,
            ExecutionOutcome::Ended {
                code: 78, stdout, ..
            } if stdout.lines().all(|line| is_of_run(line, run)) => return Ok(look > 0),
            ExecutionOutcome::Ended { code: 78, .. } => rollback_pending = true,
            ExecutionOutcome::Ended { code, stderr, .. } => {
                return Err(Busy::UnclearAnswer(format!("exit status {code}: {stderr}")));
            }
            ExecutionOutcome::Unknown { reason } => {
                return Err(Busy::UnclearAnswer(reason.to_string()));
            }
        }
        if context.is_interrupted() {
            return Err(Busy::Interrupted);
        }
        if look == 0 {
            let host = host.to_owned();
            sink(if rollback_pending {
                RunEvent::RollbackPending { host }
            } else {
                RunEvent::HostBusy { host }
            });
        }
        clock::sleep_for(poll).await;
    }
    Err(if rollback_pending {
        Busy::RollbackPending(limit.as_secs())
    } else {
        Busy::Runs(limit.as_secs())
    })
}

/// Whether an automatic rollback's token is one of this run.
fn is_of_run(token: &str, run: Option<&str>) -> bool {
    let rest = run.and_then(|run| token.strip_prefix(run));
    rest.is_some_and(|rest| rest.starts_with('-'))
}

impl Busy {
    /// In one line.
    pub fn reason(&self) -> String {
        match self {
            Busy::NotAsked(error) => error.one_line(),
            Busy::UnclearAnswer(reason) => {
                format!("whether an earlier step still runs is not known: {reason}")
            }
            Busy::Runs(seconds) => {
                format!("an earlier step is still running on it after {seconds} s")
            }
            Busy::RollbackPending(seconds) => {
                format!(
                    "a rollback of an earlier run is still armed on it after {seconds} s \
                     (systemctl list-timers 'railwright-rollback-*')"
                )
            }
            Busy::Interrupted => "the run was interrupted while it was waited for".to_owned(),
        }
    }
}
