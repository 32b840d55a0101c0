//! Who is out of service by nobody's doing here: hosts of the spec that do not answer, those that
//! another run works on or, by their own records, left out of service, and nodes of its cluster
//! that are NotReady or cordoned by others. Asked before a run disturbs one more host. The cluster
//! is asked each time; its hosts are all asked again only when the last time is a while ago, by how
//! long that took, and those that were silent then each time.

use super::by_hand::{awaited_power_cycle, note_boot};
use super::lock_steal::HeldLock;
use super::preflight::{connect_target, read_record};
use super::shared::RunContext;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::text::one_line;
use railwright_base::{Target, TargetKind};
use railwright_observe::crowd;
use railwright_plan::{Unavailability, Unavailable};
use railwright_resource::Read;
use railwright_resource::host::decode_host_facts;
use railwright_resource::kubernetes_object::nodes::read_cluster_nodes;
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_state::{JournalEntry, TargetIdentity};
use railwright_system::clock::{self, Moment, Stopwatch};
use railwright_transport::TransportError;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

/// Between two times that all hosts are asked, at least.
const PAUSE: Duration = Duration::from_secs(30);
/// How much longer the pause is than the asking.
const SHARE: u32 = 10;
/// A host that says nothing for so long is out of service.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// What was seen so far.
pub(super) struct Lookout(Mutex<ExternalOutageState>);

#[derive(Default)]
struct ExternalOutageState {
    /// Hosts that did not answer, that another run has, or that it left.
    silent: BTreeMap<Target, Unavailability>,
    /// Hosts that answered, and whose own records say that a run left them out of service.
    left_out: BTreeSet<Target>,
    /// Hosts whose nodes this run empties; it cordons no others.
    emptied: BTreeSet<Target>,
    /// Hosts whose nodes are out of service, as the cluster said last.
    of_nodes: Vec<Unavailable>,
    /// Power cycles by hand, by the numbers of their steps, that were made since this part of the
    /// run began and are not reported yet.
    power_cycles: BTreeSet<usize>,
    /// When all hosts were asked, and after how long they are asked again. A machine that sleeps
    /// meanwhile has seen nothing.
    all: Option<(Moment, Duration)>,
}

impl Lookout {
    /// What the cluster said in an earlier part of the run, or else when the plan was made, until
    /// it says something else; and what the records of the hosts said when they were locked.
    pub fn new(shared: &RunContext) -> Self {
        let of_nodes = shared.earlier.nodes_seen.clone().unwrap_or_else(|| {
            let unavailable = shared.plan.unavailable.iter();
            let of_nodes = unavailable.filter(|hosts| hosts.why.is_of_node());
            of_nodes.cloned().collect()
        });
        let left_out = shared.recorded_out().into_iter();
        let nodes = shared.plan.nodes.iter();
        let emptied = nodes.filter(|node| node.cluster().is_some());
        Lookout(Mutex::new(ExternalOutageState {
            of_nodes,
            left_out: left_out.map(|host| Target::host(&host)).collect(),
            emptied: emptied.filter_map(|node| node.target.clone()).collect(),
            ..ExternalOutageState::default()
        }))
    }

    /// The hosts that were out of service at the last look, each by what is surest of it.
    pub fn out(&self) -> BTreeMap<Target, Unavailability> {
        let seen = lock_ignoring_poison(&self.0);
        let mut out = seen.silent.clone();
        for some in &seen.of_nodes {
            for host in some.names() {
                let known = out.entry(Target::host(host));
                let known = known.or_insert_with(|| some.why.clone());
                if known.certainty() < some.why.certainty() {
                    *known = some.why.clone();
                }
            }
        }
        out
    }

    /// Hosts that may carry jobs, whatever runs did to them: their records say of no outage, or their
    /// nodes of no cordon of a run.
    pub fn may_serve(&self, shared: &RunContext) -> BTreeSet<Target> {
        let seen = lock_ignoring_poison(&self.0);
        let by_runs = |some: &&Unavailable| matches!(some.why, Unavailability::LeftCordoned { .. });
        let cordoned: BTreeSet<String> = (seen.of_nodes.iter().filter(by_runs))
            .flat_map(Unavailable::names)
            .collect();
        let nodes: BTreeSet<&Target> = shared.context.nodes.values().collect();
        let hosts = shared.context.hosts.values().map(|access| access.target());
        let hosts = hosts.filter(|host| host.kind == TargetKind::Host);
        hosts
            .filter(|host| {
                let is_given_back = nodes.contains(host)
                    && !cordoned.contains(&*host.name)
                    && (seen.emptied.contains(host) || !shared.is_outage_of_run(&host.name));
                is_given_back || !seen.left_out.contains(host)
            })
            .collect()
    }

    /// The power cycles by hand of this run that somebody made meanwhile, once.
    pub fn power_cycles(&self) -> BTreeSet<usize> {
        std::mem::take(&mut lock_ignoring_poison(&self.0).power_cycles)
    }

    /// Looks at these hosts, by name, and at the nodes of the cluster.
    pub async fn look(&self, shared: &RunContext, hosts: BTreeMap<String, Target>) {
        self.look_at_nodes(shared).await;
        let (all, silent) = {
            let mut seen = lock_ignoring_poison(&self.0);
            // Whoever is not asked any more counts by what the run did.
            seen.silent
                .retain(|host, _| hosts.contains_key(&*host.name));
            let is_fresh = match seen.all {
                Some((at, pause)) => shared.context.clock.moment().since(at) < pause,
                None => false,
            };
            (!is_fresh, seen.silent.clone())
        };
        let asked = hosts
            .into_iter()
            .filter(|(_, host)| all || silent.contains_key(host))
            .collect();
        let watch = Stopwatch::start();
        self.ask(shared, asked).await;
        let switched: Vec<String> = lock_ignoring_poison(&self.0)
            .power_cycles
            .iter()
            .filter_map(|n| shared.host_of(*n))
            .collect();
        // Whatever is in the way of it is in the way of the next step too, which tells.
        let _ = shared.record_hosts(switched).await;
        if all {
            lock_ignoring_poison(&self.0).all = Some((
                shared.context.clock.moment(),
                PAUSE.max(watch.elapsed() * SHARE),
            ));
        }
    }

    async fn ask(&self, shared: &RunContext, hosts: Vec<(String, Target)>) {
        crowd::run_each_bounded(hosts, shared.context.patience.parallel, &|(name, host)| {
            Box::pin(self.ask_one(shared, name, host))
        })
        .await;
    }

    async fn ask_one(&self, shared: &RunContext, name: String, host: Target) {
        let look = self.look_at_host(shared, &name);
        let out = match clock::await_with_timeout(ANSWER_LIMIT, look).await {
            Some(out) => out,
            None => Some(Unavailability::Unreachable {
                reason: "it can be reached and answers nothing".to_owned(),
            }),
        };
        let silent = &mut lock_ignoring_poison(&self.0).silent;
        match out {
            None => drop(silent.remove(&host)),
            Some(why) => drop(silent.insert(host, why)),
        }
    }

    /// What a host that answers says of itself: whether a run left it out of service, for certain.
    /// What this run has it say is no word of its own: that stays as it was before.
    fn note_own_word(&self, run: &str, name: &str, identity: &TargetIdentity) {
        let outage = identity
            .record
            .read()
            .and_then(|record| record.outage.as_ref());
        let mut seen = lock_ignoring_poison(&self.0);
        match outage.filter(|outage| !outage.cause.is_in_doubt()) {
            Some(outage) if outage.run == run => {}
            Some(_) => drop(seen.left_out.insert(Target::host(name))),
            None => drop(seen.left_out.remove(&Target::host(name))),
        }
    }

    /// Whether a host is out of service by others. One that was switched off and on for this run is
    /// so by the run.
    async fn look_at_host(&self, shared: &RunContext, name: &str) -> Option<Unavailability> {
        let (identity, other) = match ask_host(shared, name).await {
            Ok(found) => found,
            Err(why) => return Some(why),
        };
        let conflict = lock_ignoring_poison(&shared.state).refusal(
            &shared.plan.cluster,
            &Target::host(name),
            &identity,
        );
        if let Some(conflict) = conflict {
            return Some(Unavailability::Refused {
                reason: conflict.words(),
            });
        }
        if let Some(held) = other {
            return Some(Unavailability::WorkedOn {
                by: held.describe(),
            });
        }
        self.note_own_word(&shared.run, name, &identity);
        if let (Some(n), Some(boot)) = (awaited_power_cycle(shared, name), &identity.boot_id)
            && note_boot(shared, n, name, boot)
        {
            lock_ignoring_poison(&self.0).power_cycles.insert(n);
        }
        left_by_others(shared, name, &identity)
    }

    /// A cluster that does not say leaves what it said last.
    async fn look_at_nodes(&self, shared: &RunContext) {
        if shared.context.nodes.is_empty() {
            return;
        }
        for (cluster, access) in &shared.context.hosts {
            if access.target().kind != TargetKind::Kube {
                continue;
            }
            if let Some(out) = out_by_nodes(shared, cluster).await {
                let of_nodes = &mut lock_ignoring_poison(&self.0).of_nodes;
                if *of_nodes != out {
                    shared
                        .journal
                        .note(JournalEntry::NodesSeen { out: out.clone() });
                }
                *of_nodes = out;
            }
        }
    }
}

/// What a host says of itself, and who else holds its lock; why it is out of service where it says
/// nothing. A login is no answer yet, a host with a dead disk may give one.
async fn ask_host(
    shared: &RunContext,
    name: &str,
) -> Result<(TargetIdentity, Option<HeldLock>), Unavailability> {
    let look = async {
        let reader = connect_target(name, &shared.context).await?.reader();
        let answers = reader.read(&[Read::Host]).await?;
        // The lock first: whoever lets it go has written the record before.
        let lock = reader.lock().await?;
        Ok::<_, TransportError>((
            answers,
            lock,
            read_record(&Target::host(name), &reader).await?,
        ))
    };
    let (answers, lock, record) = look.await.map_err(|error| Unavailability::Unreachable {
        reason: error.trouble().shared_message,
    })?;
    let facts = decode_host_facts(&answers).map_err(|reason| Unavailability::Unreachable {
        reason: one_line(reason.as_words(), 200),
    })?;
    let mut other = None;
    if let Ok(Some(reading)) = lock {
        let held = HeldLock::from_reading(reading, &shared.context.folder.process());
        if held.line != shared.heart.fence(name).holder && held.may_be_alive() {
            other = Some(held);
        }
    }
    let (machine_id, boot_id, running) = (
        facts.machine_id.clone(),
        facts.boot(),
        facts.running_machine(),
    );
    Ok((
        TargetIdentity {
            machine_id,
            boot_id,
            running,
            record,
        },
        other,
    ))
}

/// What other runs left of a host that answers.
fn left_by_others(
    shared: &RunContext,
    name: &str,
    identity: &TargetIdentity,
) -> Option<Unavailability> {
    let mut outage =
        lock_ignoring_poison(&shared.state).outage_by_others(name, identity, &shared.run)?;
    outage.redact(shared.context.secrets.redaction());
    Some(Unavailability::LeftByRun(outage))
}

/// The hosts whose nodes the cluster says are out of service. Those that this run cordoned are
/// among them: another copy of its folder may have done that, and nothing counts twice.
async fn out_by_nodes(shared: &RunContext, cluster: &str) -> Option<Vec<Unavailable>> {
    let read = Read::Kubernetes(KubernetesRead::Nodes);
    let answers = shared.read_once(cluster, &read).await?;
    let known = read_cluster_nodes(&answers).ok()?;
    let mut out = Vec::new();
    for (name, host) in &shared.context.nodes {
        if let Some(node) = known.get(name)
            && let Some(why) = Unavailability::of_node(node, &shared.plan.cluster)
        {
            out.push((&*host.name, why));
        }
    }
    Some(Unavailable::fold(out))
}
