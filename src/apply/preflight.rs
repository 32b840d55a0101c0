//! The hosts of a plan are reached, read and locked before anything is changed on any of them.

use super::access;
use super::by_hand::may_be_off;
use super::context::{Context, EventSink, RunEvent};
use super::heartbeat::HeldLocks;
use super::host_locks::{NotLocked, take_lock};
use super::running_steps::{Busy, wait_until_idle};
use super::trouble::{self, NextCommands};
use super::unready::Unready;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::{Diagnostic, MachineId, Target, TargetKind};
use railwright_observe::crowd;
use railwright_plan::{NodeKind, Outage, Plan, PlanNode};
use railwright_resource::host::{MachineIdReading, RunningMachine, decode_host_facts};
use railwright_resource::rollback_scope::RollbackScope;
use railwright_resource::{AnswerStatus, Read, ReadResults};
use railwright_state::{LockHolder, TargetIdentity, TargetRecord};
use railwright_system::clock;
use railwright_transport::{
    Fence, Locker, Reader, RecordReading, TargetAccess, TransportError, Writer,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// What is known of a host that is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostNow {
    /// The netdevs that carry our own connection.
    pub ssh_netdevs: BTreeSet<String>,
    /// The boot that it is in.
    pub boot_id: Option<String>,
    /// The installation.
    pub machine_id: MachineIdReading,
    /// Which machine it is, in which boot.
    pub running: Option<RunningMachine>,
    /// The fencing token with which its lock was taken.
    pub token: u64,
    /// The digest of the record that it kept then, where it tells it.
    pub record: Option<String>,
    /// The outage in its record, as far as that is known to stand there.
    pub recorded_outage: Option<Outage>,
    /// Its record said for certain that it is out of service when it was locked.
    pub was_left_out: bool,
    /// Another folder's run seems to have given it back since it was left, and nothing was done to
    /// it in this part of the run.
    pub is_given_back: bool,
}

impl HostNow {
    /// What this holder shows when it writes there.
    pub fn fence(&self, holder: &LockHolder) -> Fence {
        Fence::new(&holder.line(), self.token)
    }
}

/// How the hosts are.
#[derive(Debug, Default)]
pub struct Preflight {
    /// Locked and ready.
    pub ready: BTreeMap<String, HostNow>,
    /// Not to be worked on, with the reason.
    pub unready: BTreeMap<Target, Unready>,
    /// What those that are ready say of themselves.
    pub identities: BTreeMap<Target, TargetIdentity>,
    /// Told, and no obstacle.
    pub warnings: Vec<Diagnostic>,
    /// Why nothing may be done.
    pub refusals: Vec<Diagnostic>,
}

struct ReadyHost {
    now: HostNow,
    record: TargetRecord,
    warnings: Vec<Diagnostic>,
}

enum HostReadiness {
    Ready(Box<ReadyHost>),
    Unready(Unready),
    Refused(Box<Diagnostic>),
}

impl From<NotLocked> for HostReadiness {
    fn from(why: NotLocked) -> Self {
        match why {
            NotLocked::Unready(unready) => HostReadiness::Unready(unready),
            NotLocked::Refused(refusal) => HostReadiness::Refused(refusal),
        }
    }
}

impl From<TransportError> for HostReadiness {
    fn from(error: TransportError) -> Self {
        HostReadiness::Unready(error.into())
    }
}

/// Which hosts to reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreflightScope {
    /// All of them.
    pub hosts: BTreeSet<String>,
    /// Those among them that may be on their way through a reboot that an earlier part of the run
    /// asked for.
    pub rebooting: BTreeSet<String>,
    /// The run that goes on: its own automatic rollbacks are left to its steps.
    pub run: Option<String>,
    /// Steps of the plan that need no more.
    pub done: BTreeSet<String>,
    /// The machine that each host was when the run began, where that is known.
    pub machines: BTreeMap<String, MachineId>,
}

/// What is the same for every host of a run.
#[derive(Clone, Copy)]
struct PreflightContext<'a> {
    plan: &'a Plan,
    desired: &'a PreflightScope,
    locks: &'a HeldLocks,
}

/// Reaches and locks these hosts. With refusals the locks are for its caller to let go again.
pub(super) async fn run_preflight(
    plan: &Plan,
    desired: PreflightScope,
    context: &Context,
    locks: &HeldLocks,
    sink: &EventSink,
) -> Preflight {
    let actual = Mutex::new(Preflight::default());
    let run = PreflightContext {
        plan,
        desired: &desired,
        locks,
    };
    let hosts: Vec<String> = desired.hosts.iter().cloned().collect();
    crowd::run_each_bounded(hosts, context.patience.parallel, &|host| {
        Box::pin(prepare_host(host, context, run, sink, &actual))
    })
    .await;
    let mut actual = std::mem::take(&mut *lock_ignoring_poison(&actual));
    actual.refusals.extend(cut_connections(plan, &actual.ready));
    if context.is_interrupted() {
        actual.refusals = vec![trouble::interrupted_early()];
    }
    actual
}

async fn prepare_host(
    host: String,
    context: &Context,
    run: PreflightContext<'_>,
    sink: &EventSink,
    actual: &Mutex<Preflight>,
) {
    let readiness = match run.desired.rebooting.contains(&host) {
        true => after_reboot(&host, context, run, sink).await,
        false => check_host(&host, context, run, sink).await,
    };
    let actual = &mut lock_ignoring_poison(actual);
    add_host_result(actual, context, &host, readiness, sink);
}

fn add_host_result(
    found: &mut Preflight,
    context: &Context,
    host: &str,
    readiness: HostReadiness,
    sink: &EventSink,
) {
    let target = context.target(host);
    match readiness {
        HostReadiness::Ready(ready) => {
            let ReadyHost {
                now,
                record,
                warnings,
            } = *ready;
            let locked = context
                .hosts
                .get(host)
                .is_none_or(TargetAccess::keeps_locks);
            let host = host.to_owned();
            sink(RunEvent::HostReady {
                host: host.clone(),
                locked,
            });
            let (machine_id, boot_id, running) = (
                now.machine_id.clone(),
                now.boot_id.clone(),
                now.running.clone(),
            );
            found.identities.insert(
                target,
                TargetIdentity {
                    machine_id,
                    boot_id,
                    running,
                    record,
                },
            );
            found.warnings.extend(warnings);
            found.ready.insert(host, now);
        }
        HostReadiness::Unready(unready) => {
            found.unready.insert(target, unready);
        }
        HostReadiness::Refused(diagnostic) => found.refusals.push(*diagnostic),
    }
}

/// A new connection to a target.
pub async fn connect_target(host: &str, context: &Context) -> Result<Locker, TransportError> {
    let access = context
        .hosts
        .get(host)
        .ok_or_else(|| TransportError::Local {
            reason: format!("{host} is not in the inventory").into(),
        })?;
    context.connector.connect(access).await.map(Locker::new)
}

/// How often a host that reboots may go down while it is being looked at: one that was asked for
/// its reboot a moment ago still answers.
const GOES_DOWN: u32 = 3;

/// A host that may be on its way through a reboot: waited for, and again where it went down under
/// our hands.
async fn after_reboot(
    host: &str,
    context: &Context,
    run: PreflightContext<'_>,
    sink: &EventSink,
) -> HostReadiness {
    let mut left = GOES_DOWN;
    loop {
        let Some(back) = context
            .unless_interrupted(come_back(host, context, sink))
            .await
        else {
            return HostReadiness::Unready(Busy::Interrupted.into());
        };
        let readiness = check_host(host, context, run, sink).await;
        left -= 1;
        if !back
            || left == 0
            || !matches!(
                readiness,
                HostReadiness::Unready(
                    Unready::NotReached(_) | Unready::Unfit(_) | Unready::NotLockable(..)
                )
            )
        {
            return readiness;
        }
    }
}

/// Waits for a host that reboots, for as long as a reboot may take. False when it did not come.
async fn come_back(host: &str, context: &Context, sink: &EventSink) -> bool {
    let patience = &context.patience;
    let back = async {
        for look in 0u32.. {
            if connect_target(host, context).await.is_ok() {
                return true;
            }
            if look == 0 {
                sink(RunEvent::Rebooting {
                    host: host.to_owned(),
                });
            }
            clock::sleep_for(patience.reboot_poll).await;
        }
        false
    };
    // Whoever is not back by then is reported as unreachable.
    clock::await_with_timeout(patience.reboot, back)
        .await
        .unwrap_or(false)
}

async fn check_host(
    host: &str,
    context: &Context,
    run: PreflightContext<'_>,
    sink: &EventSink,
) -> HostReadiness {
    let ready = match lock_and_read_host(host, context, run, sink).await {
        Ok(ready) => ready,
        Err(readiness) => return readiness,
    };
    HostReadiness::Ready(Box::new(ready))
}

async fn lock_and_read_host(
    host: &str,
    context: &Context,
    run: PreflightContext<'_>,
    sink: &EventSink,
) -> Result<ReadyHost, HostReadiness> {
    let (locker, mut now) = identify_host(host, context).await?;
    if let Some(before) = run.desired.machines.get(host)
        && now.machine_id.is_another_than(before)
    {
        return Err(HostReadiness::Unready(Unready::Reinstalled));
    }
    let warning = match context.target(host).kind {
        TargetKind::Kube => check_cluster_rights(host, context, &locker, run).await?,
        _ => None,
    };
    let lock = &run.locks.cluster;
    (now.token, now.record) = take_lock(host, context, &locker, &lock.holder, lock.fence).await?;
    let fence = now.fence(&lock.holder);
    run.locks.heart.add(host, fence.clone());
    let writer = locker.writer(fence);
    let record = match await_record(host, context, &writer, run, sink).await {
        Ok(record) => record,
        Err(unready) => {
            run.locks.heart.remove(host);
            let _ = writer.unlock().await;
            return Err(HostReadiness::Unready(unready));
        }
    };
    let outage = record.read().and_then(|record| record.outage.clone());
    now.was_left_out = (outage.as_ref()).is_some_and(|outage| !outage.cause.is_in_doubt());
    now.recorded_outage = outage;
    Ok(ReadyHost {
        now,
        record,
        warnings: warning.into_iter().collect(),
    })
}

/// Waits until a host that was locked is idle. What it is like is read after that, its record too:
/// nobody begins another step now, and whoever had the lock before has written it.
async fn await_record(
    host: &str,
    context: &Context,
    writer: &Writer,
    run: PreflightContext<'_>,
    sink: &EventSink,
) -> Result<TargetRecord, Unready> {
    let earlier = context.patience.earlier_step;
    let of_run = run.desired.run.as_deref();
    wait_until_idle(host, writer, context, sink, earlier, of_run, None).await?;
    Ok(read_record(&context.target(host), &writer.reader()).await?)
}

/// Reaches a host and reads who it is, unless the user asks to stop meanwhile.
async fn identify_host(host: &str, context: &Context) -> Result<(Locker, HostNow), HostReadiness> {
    let look = async {
        let locker = connect_target(host, context).await?;
        let answers = locker.reader().read(&[Read::Host]).await?;
        Ok((locker, answers))
    };
    let Some(looked) = context.unless_interrupted(look).await else {
        return Err(HostReadiness::Unready(Busy::Interrupted.into()));
    };
    let (locker, answers) =
        looked.map_err(|error: TransportError| HostReadiness::Unready(error.into()))?;
    let now = host_now(&context.target(host), &answers).map_err(HostReadiness::Unready)?;
    Ok((locker, now))
}

/// Refuses to begin where rights on a cluster are missing. Gives back a warning where its server did
/// not say.
async fn check_cluster_rights(
    cluster: &str,
    context: &Context,
    locker: &Locker,
    run: PreflightContext<'_>,
) -> Result<Option<Diagnostic>, HostReadiness> {
    let reader = locker.reader();
    let has_record = matches!(reader.record().await?, RecordReading::Text(_));
    let done = &run.desired.done;
    let actual =
        access::check_access_rights(run.plan, done, cluster, context, &reader, has_record).await?;
    match actual.refusal {
        Some(refusal) => Err(HostReadiness::Refused(Box::new(refusal))),
        None => Ok(actual.warning),
    }
}

/// The record that a target keeps of itself. Where nobody knows what it keeps, the connection
/// counts as lost.
pub(super) async fn read_record(
    target: &Target,
    reader: &Reader,
) -> Result<TargetRecord, TransportError> {
    Ok(match reader.record().await? {
        RecordReading::Text(json) => TargetRecord::parse(target, &json),
        RecordReading::Absent => TargetRecord::Absent,
        RecordReading::Unreadable(reason) => TargetRecord::unreadable(reason),
        RecordReading::Unknown(reason) => {
            return Err(TransportError::Lost {
                host: target.name.to_string(),
                reason: reason.into(),
            });
        }
    })
}

/// Who the host is, from its answers. Answers that break off mean that the connection was lost
/// under them: a host on its way down for a reboot is no host that cannot be worked on.
pub fn host_now(target: &Target, answers: &ReadResults) -> Result<HostNow, Unready> {
    let host = &*target.name;
    if target.kind != TargetKind::Host {
        let (machine_id, running) = decode_host_facts(answers)
            .map(|facts| (facts.machine_id.clone(), facts.running_machine()))
            .unwrap_or_default();
        return Ok(HostNow {
            machine_id,
            running,
            ..HostNow::default()
        });
    }
    let facts = decode_host_facts(answers).map_err(|reason| {
        match answers.get(&Read::Host).map(|answer| &answer.status) {
            Some(AnswerStatus::CutOff) => TransportError::Lost {
                host: host.to_owned(),
                reason,
            }
            .into(),
            _ => Unready::Unfit(format!("who it is could not be read: {reason}")),
        }
    })?;
    let (running, boot_id) = (facts.running_machine(), facts.boot());
    Ok(HostNow {
        ssh_netdevs: facts.ssh_netdevs,
        boot_id,
        machine_id: facts.machine_id,
        running,
        ..HostNow::default()
    })
}

/// What can cut our own connection and cannot be rolled back by the host itself is refused.
fn cut_connections(plan: &Plan, ready: &BTreeMap<String, HostNow>) -> Vec<Diagnostic> {
    plan.nodes
        .iter()
        .filter(|node| node.blocked.is_none())
        .filter_map(|node| find_cut_connection(node, ready))
        .collect()
}

fn find_cut_connection(node: &PlanNode, ready: &BTreeMap<String, HostNow>) -> Option<Diagnostic> {
    let NodeKind::Change {
        interrupts_netdevs,
        actions,
        members,
        automatic_rollback,
        ..
    } = &node.kind
    else {
        return None;
    };
    let host = &node.target.as_ref()?.name;
    let ours = &ready.get(&**host)?.ssh_netdevs;
    let mut netdevs = interrupts_netdevs.iter();
    let netdev = netdevs.find(|netdev| ours.contains(*netdev));
    if netdev.is_none() && automatic_rollback.is_none() {
        return None;
    }
    let not_rolled_back =
        RollbackScope::over(actions, members.iter().map(|member| &member.resource)).err()?;
    let netdev = netdev.map(String::as_str);
    Some(trouble::cuts_connection(
        &node.id,
        host,
        netdev,
        &not_rolled_back.0,
    ))
}

impl Preflight {
    /// Reports the targets that cannot be worked on; some of them wait for a power cycle.
    pub fn report_unready(
        &self,
        next: &NextCommands,
        power_cycled: &BTreeSet<&Target>,
    ) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        for (target, unready) in &self.unready {
            let problem = unready.diagnostic(target, next);
            problems.push(match unready {
                Unready::NotReached(_) if power_cycled.contains(target) => may_be_off(problem),
                _ => problem,
            });
        }
        problems
    }

    /// Where no host of the plan can be reached, why: a run of it could do nothing but tell so once
    /// a step.
    pub fn nobody_there(&self) -> Vec<Diagnostic> {
        let mut identical: BTreeMap<String, (&TransportError, Vec<&Target>)> = BTreeMap::new();
        for (target, unready) in &self.unready {
            let Unready::NotReached(error) = unready else {
                return Vec::new();
            };
            identical
                .entry(error.trouble().shared_message)
                .or_insert_with(|| (error, Vec::new()))
                .1
                .push(target);
        }
        if identical.is_empty() || !self.ready.is_empty() {
            return Vec::new();
        }
        trouble::nobody_there(self.unready.len(), &identical)
    }

    /// Why each of the targets that are left alone is not worked on, in one line.
    pub fn reasons(&self) -> BTreeMap<Target, String> {
        self.unready
            .iter()
            .map(|(target, unready)| (target.clone(), unready.reason()))
            .collect()
    }
}
