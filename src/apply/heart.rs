//! Signs of life: while a run goes on, its locks here and on the hosts say so, and a step begins only on a host whose lock
//! was seen to be still ours not long ago. Whoever was asleep while the lock was taken away finds out before it acts.

use super::context::Context;
use super::preflight::connect;
use super::trouble;
use crate::base::{Diagnostic, Target, TargetKind};
use crate::observe::crowd;
use crate::state::Holder;
use crate::system::clock::{Clock, Ticker};
use crate::transport::{BoxFuture, Performed, Upkeep, Writer};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The locks of a run on its hosts.
#[derive(Debug)]
pub(super) struct Heart {
    holder: String,
    note: String,
    clock: Clock,
    period: Duration,
    /// When each host's lock was last seen to be ours.
    seen: Mutex<BTreeMap<String, Timestamp>>,
    /// What among the hosts is none: a cluster, switches.
    others: BTreeMap<String, Target>,
}

impl Heart {
    /// For a run with the locks of these hosts. Each is seen for the first time by the host's first step, which also tells
    /// the host which run it is that has its lock.
    pub fn new<'a>(holder: &Holder, run: &str, context: &Context, hosts: impl Iterator<Item = &'a String>) -> Self {
        let others = context.hosts.iter().map(|(name, access)| (name.clone(), access.target()));
        Heart {
            holder: holder.line(),
            note: format!("run {run}"),
            clock: context.clock.clone(),
            period: context.patience.heartbeat,
            seen: Mutex::new(hosts.map(|host| (host.clone(), Timestamp::UNIX_EPOCH)).collect()),
            others: others.filter(|(_, target)| target.kind != TargetKind::Host).collect(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Timestamp>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before a step: the host's lock is still ours. Asked only when it was not seen for a while.
    pub async fn confirm(&self, host: &str, writer: &Writer) -> Result<(), Box<Diagnostic>> {
        let period = SignedDuration::try_from(self.period).unwrap_or(SignedDuration::MAX);
        let fresh = self.seen().get(host).is_some_and(|at| self.clock.now().duration_since(*at) < period);
        if fresh { Ok(()) } else { self.beat(host, writer).await }
    }

    /// One sign of life. What is no answer is left to the step itself to find out.
    async fn beat(&self, host: &str, writer: &Writer) -> Result<(), Box<Diagnostic>> {
        let beat = Upkeep::Beat { holder: self.holder.clone(), note: self.note.clone() };
        match writer.upkeep(&beat).await {
            Ok(Performed::Ended { code: 0, .. }) => {
                self.seen().insert(host.to_owned(), self.clock.now());
                Ok(())
            }
            Ok(Performed::Ended { code: 1, .. }) => Err(Box::new(trouble::lock_lost(&self.target(host), None))),
            Ok(Performed::Ended { code: 75, stdout, .. }) => Err(Box::new(trouble::lock_lost(&self.target(host), Some(&stdout)))),
            _ => Ok(()),
        }
    }

    /// No host has the name of the cluster (RW0138) or of a switch (RW0161).
    fn target(&self, name: &str) -> Target {
        self.others.get(name).cloned().unwrap_or_else(|| Target::host(name))
    }

    /// Goes round all hosts again and again, until it is given up.
    pub async fn go_on(self: Arc<Self>, context: Context) {
        let mut ticker = Ticker::every(self.period);
        let work = |host: String| -> BoxFuture<'_, ()> {
            let (heart, context) = (&self, &context);
            Box::pin(async move {
                // A host that reboots or is lost has no sign of life to give; its steps tell.
                if let Ok(writer) = connect(&host, context).await
                    && heart.beat(&host, &writer).await.is_err()
                {
                    heart.seen().insert(host, Timestamp::UNIX_EPOCH);
                }
            })
        };
        loop {
            ticker.tick().await;
            let hosts = self.seen().keys().cloned().collect();
            crowd::each(hosts, context.patience.parallel, &work).await;
        }
    }
}
