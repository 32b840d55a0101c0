//! What a run needs besides its plan, and what it tells while it goes on.

use super::gatekeeper::{GateResult, Gatekeeper};
use super::trouble::LockedTarget;
use railwright_base::{Digest, Target};
use railwright_plan::{GateCoverage, RolloutPolicy};
use railwright_resource::DesiredResource;
use railwright_state::lock::HEARTBEAT_S;
use railwright_state::{NodeOutcome, OrderKind, Skip, StateFolder};
use railwright_system::clock::Clock;
use railwright_system::signals;
use railwright_transport::{Connector, Secrets, TargetAccess};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How much at once, and how long to wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionOptions {
    /// Steps at the same time, and connections at the start.
    pub parallel: usize,
    /// How long a host may take to come back from a reboot. A server with eight GPUs needs ten
    /// minutes and more.
    pub reboot: Duration,
    /// Between two looks at a host that reboots.
    pub reboot_poll: Duration,
    /// How long a resource may take to be in sync after its last action (a service that starts, a
    /// link that comes up).
    pub settle: Duration,
    /// Between two looks at a resource that settles, and between two attempts to get a lost
    /// connection back.
    pub settle_poll: Duration,
    /// How long a short step of an earlier run may still run on a host; none has a longer limit of
    /// its own.
    pub earlier_step: Duration,
    /// Between two looks at the clock and at what was ordered.
    pub watch: Duration,
    /// Between two heartbeats of the locks that a run holds.
    pub heartbeat: Duration,
}

impl Default for ExecutionOptions {
    fn default() -> Self {
        ExecutionOptions {
            parallel: 32,
            reboot: Duration::from_secs(20 * 60),
            reboot_poll: Duration::from_secs(5),
            settle: Duration::from_secs(30),
            settle_poll: Duration::from_secs(1),
            earlier_step: Duration::from_secs(10 * 60),
            watch: Duration::from_secs(1),
            heartbeat: Duration::from_secs(HEARTBEAT_S),
        }
    }
}

impl ExecutionOptions {
    /// How many looks a resource gets to settle; at least one.
    pub fn looks(&self) -> u32 {
        let looks = self.settle.as_millis() / self.settle_poll.as_millis().max(1);
        u32::try_from(looks).unwrap_or(u32::MAX).saturating_add(1)
    }
}

/// What a plan may do: the spec, as its modules understand it.
#[derive(Default)]
pub struct DesiredSpec {
    /// Every desired resource.
    pub resources: Vec<DesiredResource>,
    /// The spec's limits.
    pub rollout: RolloutPolicy,
    /// Digests of the modules, by name.
    pub modules: BTreeMap<String, Digest>,
    /// What gates prove.
    pub proof: GateCoverage,
}

/// What a run needs besides its plan.
#[derive(Clone)]
pub struct Context {
    /// Where railwright remembers.
    pub folder: StateFolder,
    /// Opens connections.
    pub connector: Arc<dyn Connector>,
    /// The secrets that the connections carry.
    pub secrets: Arc<Secrets>,
    /// How to reach each host, by its name in the spec.
    pub hosts: BTreeMap<String, TargetAccess>,
    /// Hosts of the spec without SSH: nothing is done to them, and what earlier runs left of them
    /// counts.
    pub without_ssh: BTreeSet<String>,
    /// Hosts by the names of their nodes in the cluster.
    pub nodes: BTreeMap<String, Target>,
    /// Proves hosts.
    pub gatekeeper: Arc<dyn Gatekeeper>,
    /// The spec's digest now; a plan that was made from another is refused. None where there is no
    /// spec to compare.
    pub spec_digest: Option<Digest>,
    /// What the spec declares now. None where there is no spec to compare.
    pub desired: Option<Arc<DesiredSpec>>,
    /// How much and how long.
    pub patience: ExecutionOptions,
    /// What time it is, for maintenance windows and the deadline.
    pub clock: Clock,
    /// How many times the user has asked to stop.
    pub interrupts: watch::Receiver<u32>,
}

impl Context {
    /// The target of this name.
    pub fn target(&self, name: &str) -> Target {
        self.hosts
            .get(name)
            .map_or_else(|| Target::host(name), TargetAccess::target)
    }

    /// The lock of the host or cluster of this name.
    pub fn locked(&self, name: &str) -> LockedTarget {
        self.hosts
            .get(name)
            .map_or_else(|| LockedTarget::host(name), LockedTarget::of)
    }

    /// Whether the user has asked to stop.
    pub fn is_interrupted(&self) -> bool {
        *self.interrupts.borrow() > 0
    }

    /// What comes of this work; nothing once the user asks to stop, which leaves it where it is.
    pub async fn unless_interrupted<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut interrupts = self.interrupts.clone();
        tokio::select! {
            of_work = work => Some(of_work),
            () = signals::wait_for_interrupts(&mut interrupts, 1) => None,
        }
    }
}

/// What happens, as it happens.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// The run began; nothing was changed yet.
    RunStarted {
        /// Its name.
        run: String,
        /// Steps that are to be done.
        steps: usize,
    },
    /// A host was reached, and locked where it keeps a lock.
    HostReady {
        /// The host.
        host: String,
        /// It keeps one.
        locked: bool,
    },
    /// A step that nobody is connected to any more still runs on a host; it is waited for.
    HostBusy {
        /// The host.
        host: String,
    },
    /// A host could not be reached.
    HostUnreachable {
        /// The host.
        host: String,
        /// Why.
        reason: String,
    },
    /// A step began.
    StepStarted {
        /// The node's id.
        node: String,
    },
    /// An action of a step goes out.
    ActionStarted {
        /// The node's id.
        node: String,
        /// From 0.
        index: usize,
        /// How many the step has.
        count: usize,
        /// The action's word.
        word: String,
    },
    /// A step waits for what becomes ready by itself.
    StepWaits {
        /// The node's id.
        node: String,
        /// How it stands.
        words: String,
    },
    /// The host watches over a step from now on.
    RollbackTimerArmed {
        /// The node's id.
        node: String,
        /// After so many seconds it takes the step back by itself.
        seconds: u32,
    },
    /// A step was not confirmed; its automatic rollback acts within these seconds.
    RollbackTimerFires {
        /// The node's id.
        node: String,
        /// Those of the rollback timer.
        seconds: u32,
    },
    /// An automatic rollback is over: confirmed over a new connection, or rolled back.
    RollbackTimerEnded {
        /// The node's id.
        node: String,
        /// Which of the two.
        confirmed: bool,
        /// What could not be put back.
        failed: String,
    },
    /// An automatic rollback of another run is not over on a host; it is waited for.
    RollbackPending {
        /// The host.
        host: String,
    },
    /// A step ended.
    StepFinished {
        /// The node's id.
        node: String,
        /// How.
        outcome: NodeOutcome,
    },
    /// A host is rebooting.
    Rebooting {
        /// The host.
        host: String,
    },
    /// A host is back, with another boot id.
    Rebooted {
        /// The host.
        host: String,
    },
    /// A host was switched off and on by hand, and what waited for it is in effect.
    PowerCycled {
        /// The host.
        host: String,
    },
    /// Hosts are being checked by a gate.
    GateStarted {
        /// The gate's id.
        node: String,
        /// The hosts.
        hosts: Vec<String>,
    },
    /// Hosts passed their gate, or not.
    GateFinished {
        /// The gate's id.
        node: String,
        /// The hosts.
        hosts: Vec<String>,
        /// What was found.
        result: GateResult,
    },
    /// The hosts behind a switch were checked, before its change or after it.
    BehindChecked {
        /// The change's id.
        node: String,
        /// The hosts as a node-set.
        hosts: String,
        /// Before it.
        before: bool,
        /// Why they do not pass their gate, where they do not.
        failure: Option<String>,
    },
    /// Somebody ordered the run something.
    Ordered {
        /// What.
        order: OrderKind,
        /// Who.
        who: String,
    },
    /// The maintenance window closed or the deadline came; this many steps are still running.
    Halted {
        /// Which of the two.
        because: Skip,
        /// How many.
        running: usize,
    },
    /// The user asked to stop; these steps are still running, and are finished first.
    Interrupted {
        /// The nodes' ids.
        running: Vec<String>,
        /// How long a host may take to come back, where one of them is a reboot.
        reboot_limit: Option<Duration>,
    },
}

/// Where events go. Called from many tasks; must not block.
pub type EventSink = Arc<dyn Fn(RunEvent) + Send + Sync>;
