//! What is asked of a target while an automatic rollback is armed for a step: over the connection
//! that there is, or over a new one.

use super::with_rollback::ArmedRollbackTimer;
use super::{ChangeStep, Halt};
use railwright_system::clock;
use railwright_transport::{ExecutionOutcome, TransportError};
use std::time::Duration;

/// How long a question about an automatic rollback may take.
pub(super) const QUESTION: Duration = Duration::from_secs(20);

/// What is asked of the target of an automatic rollback.
#[derive(Clone, Copy)]
pub(super) enum RollbackTimerQuery {
    Standing,
    Disarm,
    Fire,
    ServerReads,
}

/// The state of an automatic rollback.
pub(super) enum RollbackTimerState {
    Armed,
    Reverting,
    /// What could not be put back.
    Reverted(String),
    None,
    Unknown,
}

impl ChangeStep<'_> {
    pub(super) fn no_connection(&self) -> TransportError {
        TransportError::Lost {
            host: self.host.to_owned(),
            reason: "there is no connection".into(),
        }
    }

    /// A question over the connection that there is.
    async fn ask(
        &self,
        question: RollbackTimerQuery,
        watch: &ArmedRollbackTimer,
    ) -> Result<ExecutionOutcome, TransportError> {
        let Some(writer) = &self.writer else {
            return Err(self.no_connection());
        };
        match question {
            RollbackTimerQuery::Standing => writer.rollback_status(&watch.token).await,
            RollbackTimerQuery::Disarm => writer.disarm(&watch.token).await,
            RollbackTimerQuery::Fire => writer.fire(&watch.token).await,
            RollbackTimerQuery::ServerReads => writer.server_reads().await,
        }
    }

    /// Asks over a new connection where there is none. A connection that gives no answer is dropped,
    /// and nothing is given back.
    pub(super) async fn ask_anew(
        &mut self,
        question: RollbackTimerQuery,
        watch: &ArmedRollbackTimer,
    ) -> Result<Option<(i32, String)>, Halt> {
        if self.writer.is_none() {
            self.writer = clock::await_with_timeout(QUESTION, self.shared.connect(self.host))
                .await
                .and_then(Result::ok);
        }
        match clock::await_with_timeout(QUESTION, self.ask(question, watch)).await {
            Some(Ok(ExecutionOutcome::Ended { code, stdout, .. })) => Ok(Some((code, stdout))),
            Some(Err(TransportError::LockLost { holder, .. })) => {
                Err(self.lock_lost(holder.as_deref()))
            }
            _ => {
                self.writer = None;
                Ok(None)
            }
        }
    }

    /// Reads the state of the automatic rollback.
    pub(super) async fn standing(&mut self, watch: &ArmedRollbackTimer) -> RollbackTimerState {
        match self
            .ask_anew(RollbackTimerQuery::Standing, watch)
            .await
            .unwrap_or_default()
        {
            None => RollbackTimerState::Unknown,
            Some((0, said)) => match said.trim().split_once(' ').unwrap_or((said.trim(), "")) {
                ("armed", _) => RollbackTimerState::Armed,
                ("reverting", _) => RollbackTimerState::Reverting,
                ("reverted", failed) => RollbackTimerState::Reverted(failed.trim().to_owned()),
                _ => RollbackTimerState::Unknown,
            },
            Some(_) => RollbackTimerState::None,
        }
    }
}
