//! Somebody else at work on the hosts between any two calls of ours; and a witness, who keeps in
//! order what was seen of the hosts, what the run did and what the others did.

use super::case::{Case, name};
use super::ensure;
use crate::nodes::Nodes;
use crate::room::Room;
use railwright_apply::{EventSink, RunEvent};
use railwright_base::{Address, Digest};
use railwright_plan::by_hand::is_by_hand;
use railwright_plan::{ChangeReason, Member, NodeKind, Plan, PlanNode};
use railwright_resource::action::{PackageManager, PackageVersion, UnitVerb};
use railwright_resource::interrupt_affinity::script::InterruptBinding;
use railwright_resource::probe::Probe;
use railwright_resource::{Action, DesiredResource, Plane, Read, ReadResults, kind_named};
use railwright_transport::sim::{Fleet, SimulatedTrouble};
use railwright_transport::{
    BoxFuture, Connector, ExecutionOutcome, Fence, HostLink, TargetAccess, TransportError, Upkeep,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// An edit by somebody else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Edited {
    /// The host's number.
    pub host: usize,
    /// Calls to the host before it.
    pub after: u32,
    /// Which, below `EDITS`.
    pub edit: usize,
}

/// How many edits there are.
pub const EDITS: usize = 22;

/// What somebody else does, and which resources (by `CaseResource::what`) are about that.
pub fn edit(number: usize) -> (Action, &'static [usize]) {
    let text = str::to_owned;
    let write = |path: &str, content: &str| Action::WriteFile {
        path: text(path),
        content: text(content),
        mode: text("0644"),
        owner: text("root"),
        group: text("root"),
    };
    let remove = |path: &str| Action::RemoveFile {
        path: text(path),
        below: None,
    };
    let sysctl = |key: &str, value: &str| Action::SetSysctl {
        key: text(key),
        value: text(value),
    };
    let unit = |name: &str, verb| Action::Unit {
        name: text(name),
        verb,
    };
    let link = |netdev: &str, mtu, up| {
        let (add_addresses, remove_addresses) = (Vec::new(), Vec::new());
        Action::SetLink {
            netdev: text(netdev),
            mtu,
            up,
            add_addresses,
            remove_addresses,
        }
    };
    let packages = |name: &str| {
        vec![PackageVersion {
            name: text(name),
            version: None,
        }]
    };
    let manager = PackageManager::Apt;
    match number {
        0 => (sysctl("net.core.a", "99"), &[2]),
        1 => (sysctl("vm.c", "9 9 9"), &[3]),
        2 => (remove("/etc/sysctl.d/90-railwright-net.core.a.conf"), &[2]),
        3 => (write("/etc/a.conf", "theirs\n"), &[0, 9]),
        4 => (remove("/etc/a.conf"), &[0, 9]),
        5 => (write("/etc/a.conf", ""), &[0, 9]),
        6 => (write("/opt/tool/etc/c.conf", "theirs\n"), &[1]),
        7 => (unit("svc.service", UnitVerb::Stop), &[9]),
        8 => (unit("svc.service", UnitVerb::Disable), &[9]),
        9 => (unit("own.service", UnitVerb::Stop), &[10]),
        10 => (
            write(
                "/etc/systemd/system/own.service",
                "[Service]\nExecStart=/bin/false\n",
            ),
            &[10],
        ),
        11 => (
            Action::InstallPackages {
                manager,
                packages: packages("lib"),
            },
            &[8],
        ),
        12 => (
            Action::RemovePackages {
                manager,
                names: vec![text("tool")],
            },
            &[7],
        ),
        13 => (
            Action::UnloadModule {
                name: text("m_two"),
            },
            &[4],
        ),
        14 => (
            Action::UnloadModule {
                name: text("m_par"),
            },
            &[5],
        ),
        15 => (
            Action::LoadModule {
                name: text("m_par"),
                parameters: [(text("size"), text("8"))].into(),
            },
            &[5],
        ),
        16 => (link("eth1", Some(1500), None), &[11]),
        17 => (link("eth2", None, Some(false)), &[12]),
        18 => (
            Action::SetInterrupts {
                interrupts: vec![InterruptBinding {
                    number: 41,
                    cpus: text("7"),
                }],
            },
            &[15],
        ),
        19 => (remove("/opt/thing"), &[17]),
        20 => (write("/opt/thing", "theirs\n"), &[17]),
        _ => (remove("/etc/default/grub.d/90-railwright-iommu.cfg"), &[6]),
    }
}

/// What happened.
enum Happened {
    /// We read these answers of a host.
    Looked(String, ReadResults),
    /// Somebody else did this on a host.
    Edited(String, usize),
    /// The run told of something.
    Told(RunEvent),
    /// When an action went out, pods were on the nodes of these hosts, or were put there.
    InUse(BTreeSet<String>),
}

#[derive(Default)]
struct Log {
    closed: bool,
    happened: Vec<Happened>,
    calls: BTreeMap<String, u32>,
    edits: Vec<(String, u32, usize)>,
}

/// Stands between railwright and the fleet.
#[derive(Clone)]
pub struct Witness {
    fleet: Fleet,
    connector: Arc<dyn Connector>,
    nodes: Option<Nodes>,
    log: Arc<Mutex<Log>>,
}

impl Witness {
    /// One who sees all that goes on in a room from now on.
    pub fn of(room: &mut Room) -> Self {
        let (fleet, connector, nodes) = (
            room.fleet.clone(),
            room.context.connector.clone(),
            room.server.clone(),
        );
        let witness = Witness {
            fleet,
            connector,
            nodes,
            log: Arc::default(),
        };
        room.context.connector = Arc::new(witness.clone());
        witness
    }

    /// From now on the others are at work as the case has it.
    pub fn let_in(&self, case: &Case) {
        let mut log = self.log.lock().unwrap();
        log.calls.clear();
        log.edits = case
            .edits
            .iter()
            .map(|edited| (name(edited.host), edited.after, edited.edit))
            .collect();
    }

    /// Keeps what the run tells of.
    pub fn sink(&self) -> EventSink {
        let witness = self.clone();
        Arc::new(move |event| {
            let acts = matches!(event, RunEvent::ActionStarted { .. });
            witness.keep(Happened::Told(event));
            if let Some(nodes) = witness.nodes.as_ref().filter(|_| acts) {
                witness.keep(Happened::InUse(nodes.in_use()));
            }
        })
    }

    /// The others go away, and nothing more is kept.
    pub fn go_away(&self) {
        let mut log = self.log.lock().unwrap();
        (log.closed, log.edits) = (true, Vec::new());
    }

    fn keep(&self, happened: Happened) {
        let mut log = self.log.lock().unwrap();
        if !log.closed {
            log.happened.push(happened);
        }
    }

    /// All edits of which the host was another one after.
    pub fn edits(&self) -> BTreeSet<usize> {
        let log = self.log.lock().unwrap();
        log.happened
            .iter()
            .filter_map(|happened| {
                if let Happened::Edited(_, edit) = happened {
                    Some(*edit)
                } else {
                    None
                }
            })
            .collect()
    }

    /// The others do what they do before this call to the host.
    fn call(&self, host: &str) {
        let mut log = self.log.lock().unwrap();
        let calls = log.calls.entry(host.to_owned()).or_default();
        *calls += 1;
        let calls = *calls;
        let (due, later) = std::mem::take(&mut log.edits)
            .into_iter()
            .partition(|(of, after, _)| of == host && calls > *after);
        log.edits = later;
        for (_, _, number) in due {
            let now = self.fleet.now();
            let changed = self.fleet.with(host, |host| {
                let before = host.clone();
                host.suffer(SimulatedTrouble::Stranger(Box::new(edit(number).0)), now);
                *host != before
            });
            if changed == Some(true) {
                log.happened.push(Happened::Edited(host.to_owned(), number));
            }
        }
    }
}

struct Watched {
    inner: Arc<dyn HostLink>,
    host: String,
    witness: Witness,
}

impl HostLink for Watched {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
        Box::pin(async move {
            self.witness.call(&self.host);
            let answers = self.inner.read(reads).await?;
            self.witness
                .keep(Happened::Looked(self.host.clone(), answers.clone()));
            Ok(answers)
        })
    }

    fn perform<'a>(
        &'a self,
        action: &'a Action,
        token: &'a str,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        self.witness.call(&self.host);
        self.inner.perform(action, token, fence)
    }

    fn probe<'a>(
        &'a self,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        self.inner.probe(probe)
    }

    fn upkeep<'a>(
        &'a self,
        upkeep: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        self.witness.call(&self.host);
        self.inner.upkeep(upkeep)
    }
}

impl Connector for Witness {
    fn connect<'a>(
        &'a self,
        access: &'a TargetAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        Box::pin(async move {
            self.call(&access.name);
            let inner = self.connector.connect(access).await?;
            let (host, witness) = (access.name.clone(), self.clone());
            Ok(Arc::new(Watched {
                inner,
                host,
                witness,
            }) as Arc<dyn HostLink>)
        })
    }
}

/// Whether these answers are all that a resource depends on.
fn tell_of(answers: &ReadResults, resource: &DesiredResource) -> bool {
    kind_named(&resource.kind)
        .unwrap()
        .reads(resource)
        .iter()
        .all(|read| answers.get(read).is_some())
}

/// The latest answers about a resource, and when they came.
fn last_look<'a>(
    happened: &'a [Happened],
    resource: &DesiredResource,
) -> Option<(usize, &'a ReadResults)> {
    let latest = |(n, happened): (usize, &'a Happened)| match happened {
        Happened::Looked(host, answers)
            if **host == *resource.address.target.name && tell_of(answers, resource) =>
        {
            Some((n, answers))
        }
        _ => None,
    };
    happened.iter().enumerate().rev().find_map(latest)
}

/// The actual state of the resource, where it differs from the spec, and what still has to be
/// done to it is more than a boot.
fn differs_as(member: &Member, answers: &ReadResults) -> Option<Digest> {
    let found = kind_named(&member.resource.kind)
        .unwrap()
        .diff(&member.resource, answers);
    let differs = |plane: Plane| {
        found
            .attributes
            .values()
            .flat_map(|of| of.differences())
            .any(|(of, ..)| of == plane)
    };
    let waits_for_boot =
        found.needs_reboot && !differs(Plane::Persisted) && !differs(Plane::NextBoot);
    (!found.is_met() && !waits_for_boot).then(|| found.fingerprint())
}

/// It differs, and not as the plan saw it.
fn has_moved(member: &Member, answers: &ReadResults) -> bool {
    differs_as(member, answers).is_some_and(|found| found != member.fingerprint)
}

/// The resource is compared again in the run, as the plan says; or it is undone, by what it was
/// before.
fn is_compared_later(member: &Member) -> bool {
    member.removal
        || matches!(
            member.reason,
            ChangeReason::Disturbed { .. } | ChangeReason::KnownAfter { .. }
        )
}

impl Witness {
    /// Before the first action of a run on a host, nothing of the host that the run would change is
    /// another than when it was planned: what the others did since is not written over.
    pub fn nothing_was_written_over(&self, plan: &Plan) -> Result<(), String> {
        let log = self.log.lock().unwrap();
        let mut acted = BTreeSet::new();
        let run_from = log
            .happened
            .iter()
            .position(|happened| matches!(happened, Happened::Told(_)))
            .unwrap_or_default();
        for (n, happened) in log.happened.iter().enumerate() {
            let Happened::Told(RunEvent::ActionStarted { node, index: 0, .. }) = happened else {
                continue;
            };
            let Some(target) = plan
                .nodes
                .iter()
                .find(|other| other.id == *node)
                .and_then(|node| node.target.as_ref())
            else {
                continue;
            };
            if !acted.insert(target) {
                continue;
            }
            let of_host = |other: &&PlanNode| {
                other.is_change()
                    && other.blocked.is_none()
                    && other.target.as_ref() == Some(target)
            };
            for member in plan
                .nodes
                .iter()
                .filter(of_host)
                .flat_map(PlanNode::members)
                .filter(|member| !is_compared_later(member))
            {
                let Some((_, answers)) = last_look(&log.happened[run_from..n], &member.resource)
                else {
                    return Err(format!(
                        "{node} began without a look at {}",
                        member.resource.address
                    ));
                };
                ensure!(
                    !has_moved(member, answers),
                    "{node} began, and {} is not as it was planned",
                    member.resource.address
                );
            }
        }
        Ok(())
    }

    /// Whatever needs an empty node finds it empty and cordoned: at every action of it, not only at
    /// the first.
    pub fn nobody_was_disturbed(&self, plan: &Plan) -> Result<(), String> {
        let log = self.log.lock().unwrap();
        let from = plan.rollout.drain.as_ref().map(|drain| drain.from);
        let needs_empty = |node: &&PlanNode| {
            let acts = matches!(node.kind, NodeKind::Change { .. } | NodeKind::Reboot);
            acts && !is_by_hand(node) && from.is_some_and(|from| node.disruption >= from)
        };
        for pair in log.happened.windows(2) {
            let [
                Happened::Told(RunEvent::ActionStarted { node, .. }),
                Happened::InUse(hosts),
            ] = pair
            else {
                continue;
            };
            let target = plan
                .nodes
                .iter()
                .filter(needs_empty)
                .find(|step| step.id == *node)
                .and_then(|step| step.target.as_ref());
            ensure!(
                !target.is_some_and(|target| hosts.contains(&*target.name)),
                "{node} began with pods on its node"
            );
        }
        Ok(())
    }

    /// What cannot be done twice is tried again only where it is as it was before the attempt that
    /// nobody knows the end of.
    pub fn nothing_was_done_twice(&self, plan: &Plan) -> Result<(), String> {
        let log = self.log.lock().unwrap();
        let mut tried: BTreeMap<&Address, Digest> = BTreeMap::new();
        for (n, happened) in log.happened.iter().enumerate() {
            let Happened::Told(RunEvent::ActionStarted { node, index: 0, .. }) = happened else {
                continue;
            };
            let members = plan
                .nodes
                .iter()
                .filter(|other| other.id == *node)
                .flat_map(PlanNode::members);
            for member in members.filter(|member| {
                !member.removal && !kind_named(&member.resource.kind).unwrap().convergent()
            }) {
                let address = &member.resource.address;
                let found = last_look(&log.happened[..n], &member.resource)
                    .and_then(|(_, answers)| differs_as(member, answers));
                let Some(found) = found else { continue };
                let is_as_before = tried
                    .insert(address, found.clone())
                    .is_none_or(|before| before == found);
                ensure!(
                    is_as_before || found == member.fingerprint,
                    "{node} began again, and {address} is not as it was before it"
                );
            }
        }
        Ok(())
    }

    /// What the others did to a resource of the case since we looked at it last.
    pub fn is_touched_unseen(&self, case: &Case, address: &Address) -> bool {
        let log = self.log.lock().unwrap();
        let Some((what, resource)) =
            case.desired(&BTreeSet::new())
                .into_iter()
                .find_map(|resource| {
                    let what = case.what_is(&resource.address)?;
                    (resource.address == *address).then_some((what, resource))
                })
        else {
            return false;
        };
        let since = last_look(&log.happened, &resource).map_or(0, |(n, _)| n);
        log.happened[since..].iter().any(|happened| match happened {
            Happened::Edited(host, number) => {
                **host == *address.target.name && edit(*number).1.contains(&what)
            }
            _ => false,
        })
    }
}
