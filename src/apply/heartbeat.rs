//! Heartbeats: while a run goes on, its locks here and on the hosts say so. A step asks first where
//! the lock was not seen to be still ours for a while, so that whoever was asleep finds out early;
//! that nothing is written without the lock is the target's own matter.

use super::context::Context;
use super::preflight::{HostNow, connect_target};
use super::trouble;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::{Diagnostic, Target, TargetKind};
use railwright_observe::crowd;
use railwright_state::LockHolder;
use railwright_system::clock::{Clock, Moment, Ticker};
use railwright_transport::{Fence, TransportError, Writer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The locks of a run on its hosts.
#[derive(Debug)]
pub(super) struct Heart {
    note: String,
    clock: Clock,
    period: Duration,
    /// The fence of each host's lock.
    fences: BTreeMap<String, Fence>,
    /// When each was last seen to be ours.
    seen: Mutex<BTreeMap<String, Moment>>,
    /// What among the hosts is none: a cluster, switches.
    others: BTreeMap<String, Target>,
}

impl Heart {
    /// For a run with these locks. Each is seen for the first time by the host's first step, which
    /// also tells the host which run it is that has its lock.
    pub fn new(
        holder: &LockHolder,
        run: &str,
        context: &Context,
        ready: &BTreeMap<String, HostNow>,
    ) -> Self {
        let mut others = BTreeMap::new();
        for (name, access) in &context.hosts {
            let target = access.target();
            if target.kind != TargetKind::Host {
                others.insert(name.clone(), target);
            }
        }
        Heart {
            fences: ready
                .iter()
                .map(|(host, now)| (host.clone(), now.fence(holder)))
                .collect(),
            note: format!("run {run}"),
            clock: context.clock.clone(),
            period: context.patience.heartbeat,
            seen: Mutex::default(),
            others,
        }
    }

    /// The fence with which this host is written to; none that it takes where its lock was not had.
    pub fn fence(&self, host: &str) -> Fence {
        self.fences
            .get(host)
            .cloned()
            .unwrap_or_else(|| Fence::new("", 0))
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<String, Moment>> {
        lock_ignoring_poison(&self.seen)
    }

    /// Before a step: the host's lock is still ours. Asked only when it was not seen for a while.
    pub async fn confirm(&self, host: &str, writer: &Writer) -> Result<(), Box<Diagnostic>> {
        let fresh = self
            .seen()
            .get(host)
            .is_some_and(|at| self.clock.moment().since(*at) < self.period);
        if fresh {
            Ok(())
        } else {
            self.beat(host, writer).await
        }
    }

    /// A heartbeat. What is no answer is left to the step itself to find out.
    async fn beat(&self, host: &str, writer: &Writer) -> Result<(), Box<Diagnostic>> {
        // By the moment before it: while it was on its way we may have slept.
        let moment = self.clock.moment();
        match writer.beat(&self.note).await {
            Ok(Ok(())) => drop(self.seen().insert(host.to_owned(), moment)),
            Err(TransportError::LockLost { holder, .. }) => {
                return Err(Box::new(self.lost(host, holder.as_deref())));
            }
            Ok(Err(_)) | Err(_) => (),
        }
        Ok(())
    }

    /// The lock of a target is not ours any more.
    pub fn lost(&self, host: &str, holder: Option<&str>) -> Diagnostic {
        self.seen().remove(host);
        trouble::lock_lost(&self.target(host), holder)
    }

    /// No host has the name of the cluster (RW0138) or of a switch (RW0161).
    fn target(&self, name: &str) -> Target {
        self.others
            .get(name)
            .cloned()
            .unwrap_or_else(|| Target::host(name))
    }

    /// Goes round all hosts again and again, until it is given up.
    pub async fn go_on(self: Arc<Self>, context: Context) {
        let mut ticker = Ticker::every(self.period);
        loop {
            ticker.tick().await;
            let hosts: Vec<String> = self.fences.keys().cloned().collect();
            crowd::run_each_bounded(hosts, context.patience.parallel, &|host| {
                Box::pin(self.beat_host(host, &context))
            })
            .await;
        }
    }

    async fn beat_host(&self, host: String, context: &Context) {
        // A host that reboots or is lost has no heartbeat to give; its steps tell.
        if let Ok(locker) = connect_target(&host, context).await {
            let _ = self.beat(&host, &locker.writer(self.fence(&host))).await;
        }
    }
}
