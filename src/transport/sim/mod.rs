//! `sim`: a fleet of hosts in memory, behind the same handles as SSH. It takes typed reads and
//! actions as values, and never sees a shell. Time is tokio's: in a runtime whose clock is paused,
//! a rollout of hours takes no time at all and goes the same way every time. What goes wrong is
//! told beforehand (`Fault`).
//!
//! A host has the three planes: a disk (`disk`), a running kernel with modules, settings, units,
//! netdevs, PCI registers and interrupts (`modules`, `units`, `links`, `pci`), and a boot loader
//! (`loader`) that decides what the next boot runs. `steps` is what it does over time; with
//! `switch` it is one. It has no RDMA devices, no `dcb` and no compiler; it says so when it is
//! asked for them.

pub mod disk;
pub mod fault;
pub mod firmware;
pub mod host;
pub mod links;
pub mod loader;
pub mod modules;
pub mod names;
pub mod pace;
pub mod packages;
pub mod pci;
pub mod rollback_timer;
pub mod steps;
pub mod switch;
pub mod units;

pub use fault::{SimulatedFault, SimulatedTrouble};
pub use host::SimulatedHost;

use super::access::CONNECT_TIMEOUT_S;
use super::target_lock::lock_lost;
use super::{
    BoxFuture, Connector, ExecutionOutcome, Fence, FencedWrite, HostLink, SshAccess, TargetAccess,
    TargetReach, TransportError, Upkeep,
};
use fault::SimulatedCall;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_resource::complaint::LOCKED;
use railwright_resource::probe::Probe;
use railwright_resource::{Action, AnswerStatus, Read, ReadResult, ReadResults};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use steps::SimulatedStepStart;
use tokio::time::Instant;

/// How a simulated host is reached: by its name.
pub fn new_simulated_access(name: &str) -> TargetAccess {
    TargetAccess {
        name: name.to_owned(),
        reach: TargetReach::Host(new_simulated_login(name)),
    }
}

/// How a simulated switch is reached: by its name.
pub fn new_simulated_switch_access(name: &str) -> TargetAccess {
    TargetAccess {
        name: name.to_owned(),
        reach: TargetReach::SwitchShell(new_simulated_login(name)),
    }
}

fn new_simulated_login(name: &str) -> SshAccess {
    SshAccess {
        address: name.to_owned(),
        port: 22,
        user: "root".to_owned(),
        identities: Vec::new(),
        known_hosts: String::new(),
        jump: Vec::new(),
        ssh_config: false,
        connect_timeout_s: CONNECT_TIMEOUT_S,
        read_only: false,
    }
}

/// A write that a host took: an action, or a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedLoggedWrite {
    /// Virtual time since the fleet's start.
    pub at: Duration,
    /// When it has ended.
    pub until: Duration,
    /// The host.
    pub host: String,
    /// The action's word, or `record`.
    pub word: String,
    /// Whose it was.
    pub fence: Fence,
}

#[derive(Debug, Default)]
struct World {
    hosts: BTreeMap<String, SimulatedHost>,
    began: Option<Instant>,
    dead: bool,
    log: Vec<SimulatedLoggedWrite>,
}

/// All hosts. Clones are the same fleet.
#[derive(Debug, Clone, Default)]
pub struct Fleet(Arc<Mutex<World>>);

impl Fleet {
    /// Hosts by name.
    pub fn of(hosts: BTreeMap<String, SimulatedHost>) -> Self {
        Fleet(Arc::new(Mutex::new(World {
            hosts,
            ..World::default()
        })))
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock_ignoring_poison(&self.0)
    }

    /// Looks at a host, or changes it as somebody else would. The result of `change`, if there is
    /// such a host.
    pub fn with<T>(&self, host: &str, change: impl FnOnce(&mut SimulatedHost) -> T) -> Option<T> {
        self.world().hosts.get_mut(host).map(change)
    }

    /// All hosts as they are.
    pub fn hosts(&self) -> BTreeMap<String, SimulatedHost> {
        self.world().hosts.clone()
    }

    /// Puts other hosts in the place of these.
    pub fn replace(&self, hosts: BTreeMap<String, SimulatedHost>) {
        self.world().hosts = hosts;
    }

    /// What came of everything, host by host.
    pub fn effects(&self) -> BTreeMap<String, SimulatedHost> {
        self.world()
            .hosts
            .iter()
            .map(|(name, host)| (name.clone(), host.effect()))
            .collect()
    }

    /// The machine that railwright runs on loses its power (true), or is back: nothing of ours
    /// reaches a host in between.
    pub fn cut_off(&self, dead: bool) {
        self.world().dead = dead;
    }

    /// Every write that was taken, in order.
    pub fn log(&self) -> Vec<SimulatedLoggedWrite> {
        self.world().log.clone()
    }

    /// Virtual time since the first call.
    pub fn now(&self) -> Duration {
        self.world().now()
    }

    fn call<T>(
        &self,
        link: &At<'_>,
        call: SimulatedCall<'_>,
        what: impl FnOnce(&mut SimulatedHost, Duration, Option<SimulatedTrouble>) -> T,
    ) -> Result<T, TransportError> {
        let mut world = self.world();
        if world.dead {
            return Err(new_lost_error(link.host, "railwright is dead"));
        }
        let now = world.now();
        let host = world
            .hosts
            .get_mut(link.host)
            .ok_or_else(|| new_lost_error(link.host, "there is no such host"))?;
        host.calls += 1;
        host.disk.full_for = host.disk.full_for.saturating_sub(1);
        host.settle(now);
        let mut of_call = None;
        while let Some(place) = host
            .faults
            .iter()
            .position(|fault| fault.comes(host.calls, call))
        {
            let trouble = host.faults.remove(place).trouble;
            if trouble.is_of_call() {
                of_call = Some(trouble);
                break;
            }
            host.suffer(trouble, now);
        }
        if host.is_cut_off()
            || now < host.down_until
            || link.boot.is_some_and(|boot| boot != host.boot)
        {
            return Err(new_lost_error(link.host, "reset by the peer"));
        }
        Ok(what(host, now, of_call))
    }

    /// What was taken just now, and ends then.
    fn note(&self, host: &str, word: &str, fence: &Fence, until: Option<Duration>) {
        let mut world = self.world();
        let at = world.now();
        let until = until.unwrap_or(at);
        world.log.push(SimulatedLoggedWrite {
            at,
            until,
            host: host.to_owned(),
            word: word.to_owned(),
            fence: fence.clone(),
        });
    }
}

fn new_lost_error(host: &str, reason: &str) -> TransportError {
    TransportError::Lost {
        host: host.to_owned(),
        reason: reason.to_owned().into(),
    }
}

impl World {
    fn now(&mut self) -> Duration {
        let now = Instant::now();
        now - *self.began.get_or_insert(now)
    }
}

/// A host as one connection sees it: a boot ends the connection.
struct At<'a> {
    host: &'a str,
    boot: Option<u32>,
}

struct SimulatedHostLink {
    fleet: Fleet,
    host: String,
    boot: u32,
}

impl SimulatedHostLink {
    fn at(&self) -> At<'_> {
        At {
            host: &self.host,
            boot: Some(self.boot),
        }
    }

    async fn wait_for(
        &self,
        until: Duration,
        token: &str,
        lost_after: bool,
    ) -> Result<ExecutionOutcome, TransportError> {
        loop {
            let now = self.fleet.now();
            if now >= until {
                break;
            }
            tokio::time::sleep(until - now).await;
        }
        let mut world = self.fleet.world();
        let now = world.now();
        let dead = world.dead;
        let host = world
            .hosts
            .get_mut(&self.host)
            .ok_or_else(|| new_lost_error(&self.host, "reset by the peer"))?;
        host.settle(now);
        if dead || host.boot != self.boot || now < host.down_until || host.is_cut_off() {
            return Err(new_lost_error(&self.host, "reset by the peer"));
        }
        Ok(host.outcome(token, lost_after))
    }
}

impl HostLink for SimulatedHostLink {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
        Box::pin(async move {
            tokio::time::sleep(pace::ROUND_TRIP).await;
            self.fleet
                .call(&self.at(), SimulatedCall::Read, |host, _, trouble| {
                    let cut_off = match trouble {
                        Some(SimulatedTrouble::CutOff(place)) => place,
                        _ => usize::MAX,
                    };
                    let mut answers = ReadResults::default();
                    for (place, read) in reads.iter().enumerate() {
                        let answer = if place < cut_off {
                            let (code, out) = host.answer(read);
                            ReadResult {
                                status: AnswerStatus::Exit(code),
                                out,
                            }
                        } else {
                            ReadResult {
                                status: AnswerStatus::CutOff,
                                out: String::new(),
                            }
                        };
                        answers.insert(read.key(), answer);
                    }
                    answers
                })
        })
    }

    fn perform<'a>(
        &'a self,
        action: &'a Action,
        token: &'a str,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async move {
            tokio::time::sleep(pace::ROUND_TRIP).await;
            let fence = fence.ok_or_else(|| lock_lost(&self.host, None))?;
            let (begun, lost_after) = self
                .fleet
                .call(
                    &self.at(),
                    SimulatedCall::Act(action),
                    |host, now, trouble| {
                        let lost_after = trouble == Some(SimulatedTrouble::LostAfter);
                        host.lock
                            .check(fence)
                            .map(|()| (host.begin(action, token, now, trouble), lost_after))
                    },
                )?
                .map_err(|holder| lock_lost(&self.host, holder.as_deref()))?;
            let is_refused = matches!(
                &begun,
                SimulatedStepStart::Over(ExecutionOutcome::Ended { code: LOCKED, .. })
            );
            if !is_refused {
                let until = self
                    .fleet
                    .with(&self.host, |host| {
                        host.running.as_ref().map(|running| running.until)
                    })
                    .flatten();
                self.fleet.note(&self.host, &action.word(), fence, until);
            }
            match begun {
                SimulatedStepStart::Lost => Ok(ExecutionOutcome::Unknown {
                    reason: "the connection ended: reset by the peer".into(),
                }),
                SimulatedStepStart::Over(performed) => Ok(performed),
                SimulatedStepStart::Until(until) => self.wait_for(until, token, lost_after).await,
            }
        })
    }

    fn probe<'a>(
        &'a self,
        _: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async {
            Ok(ExecutionOutcome::Unknown {
                reason: "a simulated host carries no traffic".into(),
            })
        })
    }

    fn upkeep<'a>(
        &'a self,
        upkeep: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async move {
            tokio::time::sleep(pace::ROUND_TRIP).await;
            let (kept, trouble) = self.fleet.call(
                &self.at(),
                SimulatedCall::Upkeep(upkeep),
                |host, now, trouble| (host.upkeep(upkeep, now), trouble),
            )?;
            let (code, stdout) = kept.map_err(|holder| lock_lost(&self.host, holder.as_deref()))?;
            if trouble == Some(SimulatedTrouble::ArmedUnsaid) {
                return Err(new_lost_error(&self.host, "reset by the peer"));
            }
            if let (
                Upkeep::Write {
                    fence,
                    write: FencedWrite::Record { .. },
                },
                0,
            ) = (upkeep, code)
            {
                self.fleet.note(&self.host, "record", fence, None);
            }
            Ok(ExecutionOutcome::Ended {
                code,
                stdout,
                stderr: String::new(),
            })
        })
    }
}

impl Connector for Fleet {
    fn connect<'a>(
        &'a self,
        access: &'a TargetAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        Box::pin(async move {
            tokio::time::sleep(pace::ROUND_TRIP).await;
            let at = At {
                host: &access.name,
                boot: None,
            };
            match self.call(&at, SimulatedCall::Connect, |host, _, _| host.boot) {
                Ok(boot) => Ok(Arc::new(SimulatedHostLink {
                    fleet: self.clone(),
                    host: access.name.clone(),
                    boot,
                }) as Arc<dyn HostLink>),
                Err(_) => {
                    tokio::time::sleep(Duration::from_secs(CONNECT_TIMEOUT_S.into())).await;
                    let (host, address) = (access.name.clone(), access.address().to_owned());
                    Err(TransportError::Unreachable {
                        host,
                        address,
                        reason: "no route to it".into(),
                    })
                }
            }
        })
    }
}
