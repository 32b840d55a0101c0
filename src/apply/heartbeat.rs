//! Heartbeats: from the moment a command has the cluster's lock until it lets its locks go, those
//! here and on the hosts say so, also while it waits for a host before its first step. A step asks
//! first where the lock was not seen to be still ours for a while, so that whoever was asleep finds
//! out early; that nothing is written without the lock is the target's own matter.

use super::context::Context;
use super::host_locks::release_host_locks;
use super::preflight::connect_target;
use super::trouble;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::{Diagnostic, Target, TargetKind};
use railwright_observe::crowd;
use railwright_state::{ClusterLock, FencedFolder};
use railwright_system::clock::{Clock, Moment, Ticker};
use railwright_transport::{Fence, TransportError, Writer};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The cluster's lock and those of its hosts, which give heartbeats until they are let go.
pub(super) struct HeldLocks {
    pub cluster: ClusterLock,
    pub heart: Arc<Heart>,
    beats_here: JoinHandle<()>,
    beats_on_hosts: Option<JoinHandle<()>>,
}

impl HeldLocks {
    /// From now on. The note says what holds the locks.
    pub fn begin(cluster: ClusterLock, note: String, context: &Context) -> Self {
        let heart = Arc::new(Heart::new(cluster.folder().clone(), note, context));
        let on_hosts = heart.clone().beat_hosts(context.clone());
        HeldLocks {
            beats_here: tokio::spawn(heart.clone().beat_here()),
            beats_on_hosts: Some(tokio::spawn(on_hosts)),
            cluster,
            heart,
        }
    }

    /// Lets the locks of all hosts go.
    pub async fn release_hosts(&mut self, context: &Context) {
        if let Some(beating) = self.beats_on_hosts.take() {
            beating.abort();
            // Its end is waited for, so that no heartbeat comes after a lock is let go.
            let _ = beating.await;
        }
        let fences = self.heart.fences().clone();
        release_host_locks(fences, context).await;
    }
}

impl Drop for HeldLocks {
    fn drop(&mut self) {
        self.beats_here.abort();
        if let Some(beating) = &self.beats_on_hosts {
            beating.abort();
        }
    }
}

/// What gives the heartbeats.
#[derive(Debug)]
pub(super) struct Heart {
    folder: FencedFolder,
    note: String,
    clock: Clock,
    period: Duration,
    /// The fence of each host's lock.
    fences: Mutex<BTreeMap<String, Fence>>,
    /// When each was last seen to be ours.
    seen: Mutex<BTreeMap<String, Moment>>,
    /// What among the hosts is none: a cluster, switches.
    others: BTreeMap<String, Target>,
}

impl Heart {
    fn new(folder: FencedFolder, note: String, context: &Context) -> Self {
        let mut others = BTreeMap::new();
        for (name, access) in &context.hosts {
            let target = access.target();
            if target.kind != TargetKind::Host {
                others.insert(name.clone(), target);
            }
        }
        Heart {
            folder,
            note,
            clock: context.clock.clone(),
            period: context.patience.heartbeat,
            fences: Mutex::default(),
            seen: Mutex::default(),
            others,
        }
    }

    /// This host's lock was taken. It is seen for the first time by the host's first step, or by
    /// the next heartbeat, which also tells the host what has its lock.
    pub fn add(&self, host: &str, fence: Fence) {
        self.fences().insert(host.to_owned(), fence);
    }

    /// This host's lock is let go.
    pub fn remove(&self, host: &str) {
        self.fences().remove(host);
    }

    fn fences(&self) -> MutexGuard<'_, BTreeMap<String, Fence>> {
        lock_ignoring_poison(&self.fences)
    }

    /// The fence with which this host is written to; none that it takes where its lock was not had.
    pub fn fence(&self, host: &str) -> Fence {
        self.fences()
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

    /// Gives heartbeats on this side again and again, however long a round of the hosts takes.
    async fn beat_here(self: Arc<Self>) {
        let mut ticker = Ticker::every(self.period);
        loop {
            self.folder.beat(&self.note);
            ticker.tick().await;
        }
    }

    /// Goes round all hosts again and again.
    async fn beat_hosts(self: Arc<Self>, context: Context) {
        let mut ticker = Ticker::every(self.period);
        loop {
            ticker.tick().await;
            let hosts: Vec<String> = self.fences().keys().cloned().collect();
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
