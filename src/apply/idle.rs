//! Waits until no short step runs on a host any more: one that lost its connection goes on by itself, and what it is
//! doing must neither be read as its result nor be begun a second time.

use super::context::{Context, Event, EventSink};
use crate::system::clock;
use crate::transport::{Performed, TransportError, Upkeep, Writer};
use std::time::Duration;

/// Why a host is not idle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Busy {
    /// It was not there to be asked.
    NotAsked(TransportError),
    /// The answer is of no use.
    NotTold(String),
    /// The step ran for all the time that we waited; in seconds.
    Runs(u64),
    /// The user asked to stop while it ran.
    Interrupted,
}

/// Asks until the host is idle, for at most so long.
pub async fn idle(host: &str, writer: &Writer, context: &Context, sink: &EventSink, limit: Duration) -> Result<(), Busy> {
    let poll = context.patience.settle_poll;
    let looks = limit.as_millis() / poll.as_millis().max(1);
    for look in 0..=looks {
        match writer.upkeep(&Upkeep::Idle).await.map_err(Busy::NotAsked)? {
            Performed::Ended { code: 0, .. } => return Ok(()),
            Performed::Ended { code: 77, .. } => {}
            Performed::Ended { code, stderr, .. } => return Err(Busy::NotTold(format!("exit status {code}: {stderr}"))),
            Performed::Unknown { reason } => return Err(Busy::NotTold(reason)),
        }
        if *context.interrupts.borrow() > 0 {
            return Err(Busy::Interrupted);
        }
        if look == 0 {
            sink(Event::HostBusy { host: host.to_owned() });
        }
        clock::pause(poll).await;
    }
    Err(Busy::Runs(limit.as_secs()))
}

impl Busy {
    /// In one line.
    pub fn reason(&self) -> String {
        match self {
            Busy::NotAsked(error) => error.one_line(),
            Busy::NotTold(reason) => format!("whether an earlier step still runs is not known: {reason}"),
            Busy::Runs(seconds) => format!("an earlier step is still running on it after {seconds} s"),
            Busy::Interrupted => "an earlier step is still running on it, and the run was interrupted".to_owned(),
        }
    }
}
