//! What is asked of a target while a guard watches over a step: over the connection that there is, or over a new one.

use super::guarded::Watch;
use super::{Halt, Step};
use railwright_system::clock;
use railwright_transport::{Performed, TransportError};
use std::time::Duration;

/// How long a question about a guard may take.
pub(super) const QUESTION: Duration = Duration::from_secs(20);

/// What is asked of the target of a guard.
#[derive(Clone, Copy)]
pub(super) enum Question {
    Standing,
    Disarm,
    Fire,
    ServerReads,
}

/// How it stands with a guard.
pub(super) enum Standing {
    Armed,
    Reverting,
    /// What could not be put back.
    Reverted(String),
    None,
    NotTold,
}

impl Step<'_> {
    pub(super) fn no_connection(&self) -> TransportError {
        TransportError::Lost { host: self.host.to_owned(), reason: "there is no connection".to_owned() }
    }

    /// A question over the connection that there is.
    async fn ask(&self, question: Question, watch: &Watch) -> Result<Performed, TransportError> {
        let Some(writer) = &self.writer else { return Err(self.no_connection()) };
        match question {
            Question::Standing => writer.guard(&watch.token).await,
            Question::Disarm => writer.disarm(&watch.token).await,
            Question::Fire => writer.fire(&watch.token).await,
            Question::ServerReads => writer.server_reads().await,
        }
    }

    /// The same over a new one where there is none; one that gives no answer is dropped.
    pub(super) async fn ask_anew(&mut self, question: Question, watch: &Watch) -> Result<Option<(i32, String)>, Halt> {
        if self.writer.is_none() {
            self.writer = clock::within(QUESTION, self.shared.connect(self.host)).await.and_then(Result::ok);
        }
        match clock::within(QUESTION, self.ask(question, watch)).await {
            Some(Ok(Performed::Ended { code, stdout, .. })) => Ok(Some((code, stdout))),
            Some(Err(TransportError::LockLost { holder, .. })) => Err(self.lock_lost(holder.as_deref())),
            _ => {
                self.writer = None;
                Ok(None)
            }
        }
    }

    /// How it stands with the guard.
    pub(super) async fn standing(&mut self, watch: &Watch) -> Standing {
        match self.ask_anew(Question::Standing, watch).await.unwrap_or_default() {
            None => Standing::NotTold,
            Some((0, said)) => match said.trim().split_once(' ').unwrap_or((said.trim(), "")) {
                ("armed", _) => Standing::Armed,
                ("reverting", _) => Standing::Reverting,
                ("reverted", failed) => Standing::Reverted(failed.trim().to_owned()),
                _ => Standing::NotTold,
            },
            Some(_) => Standing::None,
        }
    }
}
