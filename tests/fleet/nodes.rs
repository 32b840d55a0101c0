//! A fake API server beside a simulated fleet: it says how the nodes of the hosts are and what runs
//! on them, and has them emptied and given back. Its lock and its record are those of a simulated
//! host of its name.

use crate::room::Room;
use railwright_base::{Target, TargetKind};
use railwright_plan::ClusterNodes;
use railwright_resource::kubernetes_object::node_pods::PodNow;
use railwright_resource::kubernetes_object::nodes::{CORDONED, NodeNow};
use railwright_resource::kubernetes_object::request::{ABSENT, KubernetesRead, NOT_SAID};
use railwright_resource::probe::Probe;
use railwright_resource::{Action, AnswerStatus, Read, ReadResult, ReadResults};
use railwright_transport::sim::{Fleet, SimulatedHost};
use railwright_transport::{
    BoxFuture, ClusterAccess, Connector, ExecutionOutcome, Fence, HostLink, TargetAccess,
    TargetReach, TransportError, Upkeep,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The cluster's name.
const NAME: &str = "kube";

/// A node, and the pods on it.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeState {
    now: NodeNow,
    pods: Vec<PodNow>,
    /// Pods that were told to end stay, and whether they count as lost.
    keeps: Option<bool>,
    /// Nobody says which pods are on it.
    hides_pods: bool,
}

impl NodeState {
    /// A node with a pod of a job, and one of its own.
    fn new(ready: bool, schedulable: bool) -> Self {
        let gives = BTreeMap::from([("rdma/hca".to_owned(), json!("8"))]);
        let pod = |name: &str, owner: &str| PodNow {
            namespace: "ml".to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            owner: Some(format!("{owner}/{name}")),
            ..PodNow::default()
        };
        let pods = vec![pod("train", "Job"), pod("plugin", "DaemonSet")];
        NodeState {
            now: NodeNow {
                ready,
                schedulable,
                cordoned: None,
                gives,
                machine: None,
            },
            pods,
            keeps: None,
            hides_pods: false,
        }
    }

    /// As the API server has it.
    fn object(&self, name: &str) -> Value {
        json!({
            "metadata": { "name": name, "annotations": self.now.cordoned.as_ref().map(|mark| json!({ CORDONED: mark })) },
            "spec": { "unschedulable": !self.now.schedulable },
            "status": { "conditions": [{ "type": "Ready", "status": if self.now.ready { "True" } else { "False" } }], "allocatable": self.now.gives },
        })
    }
}

/// The nodes by name, as the API server has them now; and whether it lets nobody list them.
#[derive(Clone, Default)]
pub struct Nodes(Arc<Mutex<BTreeMap<String, NodeState>>>, Arc<AtomicBool>);

/// What a node's name has before its host's.
const NODE: &str = "node-";

fn node_of(host: &str) -> String {
    format!("{NODE}{host}")
}

impl Nodes {
    /// A cluster beside the hosts of a room, each of them a Ready node that takes pods.
    pub fn beside(room: &mut Room) -> Self {
        let nodes = Nodes::default();
        let is_host = |access: &&TargetAccess| access.target().kind == TargetKind::Host;
        let hosts: Vec<String> = room
            .context
            .hosts
            .values()
            .filter(is_host)
            .map(|access| access.name.clone())
            .collect();
        for host in &hosts {
            nodes.set(host, true, true);
        }
        let by_host: BTreeMap<Target, String> = hosts
            .iter()
            .map(|host| (Target::host(host), node_of(host)))
            .collect();
        room.context.nodes = by_host
            .iter()
            .map(|(host, node)| (node.clone(), host.clone()))
            .collect();
        room.nodes = Some(ClusterNodes {
            cluster: Target::kube(NAME),
            spec: "c".to_owned(),
            by_host,
        });
        let cluster = ClusterAccess {
            kubeconfig: None,
            context: None,
            keeps: "railwright".to_owned(),
            folder: PathBuf::new(),
        };
        room.context.hosts.insert(
            NAME.to_owned(),
            TargetAccess {
                name: NAME.to_owned(),
                reach: TargetReach::Cluster(cluster),
            },
        );
        let mut all = room.fleet.hosts();
        all.insert(NAME.to_owned(), SimulatedHost::fresh());
        room.fleet.replace(all);
        let connector = Beside {
            fleet: room.fleet.clone(),
            nodes: nodes.clone(),
        };
        room.context.connector = room.context.secrets.carried_by(Arc::new(connector));
        room.server = Some(nodes.clone());
        nodes
    }

    /// The node of this host is like this now.
    pub fn set(&self, host: &str, ready: bool, schedulable: bool) {
        self.0
            .lock()
            .unwrap()
            .insert(node_of(host), NodeState::new(ready, schedulable));
    }

    /// The host is no node of the cluster.
    pub fn remove(&self, host: &str) {
        self.0.lock().unwrap().remove(&node_of(host));
    }

    /// An earlier run cordoned the node of this host and did not give it back.
    pub fn leave_cordoned(&self, host: &str) {
        self.leave_cordoned_by(host, "r0001");
    }

    /// This run cordoned the node of this host and did not give it back.
    pub fn leave_cordoned_by(&self, host: &str, run: &str) {
        self.set(host, true, false);
        let cordon =
            |node: &mut NodeState| node.now.cordoned = Some(node.now.cordon_of(run, "c").text());
        self.0
            .lock()
            .unwrap()
            .entry(node_of(host))
            .and_modify(cordon);
    }

    /// The node of this host is not Ready, and the pods on it that are told to end stay; whether
    /// they are lost.
    pub fn keep_ended(&self, host: &str, lost: bool) {
        self.0
            .lock()
            .unwrap()
            .entry(node_of(host))
            .and_modify(|node| (node.now.ready, node.keeps) = (false, Some(lost)));
    }

    /// A pod that names the node of this host itself, as no cordon keeps away.
    pub fn bind_pod(&self, host: &str) {
        let pod = PodNow {
            namespace: "ml".to_owned(),
            name: "late".to_owned(),
            uid: "late".to_owned(),
            ..PodNow::default()
        };
        self.0
            .lock()
            .unwrap()
            .entry(node_of(host))
            .and_modify(|node| node.pods.push(pod));
    }

    /// Somebody has pods put on the node of this host again.
    pub fn uncordon(&self, host: &str) {
        self.0
            .lock()
            .unwrap()
            .entry(node_of(host))
            .and_modify(|node| node.now.schedulable = true);
    }

    /// Whether nobody says which nodes there are.
    pub fn hide_all(&self, hides: bool) {
        self.1.store(hides, Ordering::SeqCst);
    }

    /// Nobody says any more which pods are on the node of this host.
    pub fn hide_pods(&self, host: &str) {
        self.0
            .lock()
            .unwrap()
            .entry(node_of(host))
            .and_modify(|node| node.hides_pods = true);
    }

    /// The pods that belong to the node of this host have devices of it.
    pub fn give_devices(&self, host: &str) {
        let give = |pod: &mut PodNow| pod.devices = vec!["rdma/hca".to_owned()];
        self.0
            .lock()
            .unwrap()
            .entry(node_of(host))
            .and_modify(|node| {
                node.pods
                    .iter_mut()
                    .filter(|pod| pod.is_exempt_from_drain())
                    .for_each(give)
            });
    }

    /// All of them as they are.
    pub fn states(&self) -> BTreeMap<String, NodeState> {
        self.0.lock().unwrap().clone()
    }

    /// The hosts on whose nodes pods are put, or are that would have to go first.
    pub fn in_use(&self) -> BTreeSet<String> {
        let all = self.0.lock().unwrap();
        let is_in_use = |node: &NodeState| {
            node.now.schedulable
                || node
                    .pods
                    .iter()
                    .any(|pod| !pod.is_exempt_from_drain() && !pod.ends)
        };
        let names = all
            .iter()
            .filter(|(_, node)| is_in_use(node))
            .filter_map(|(name, _)| name.strip_prefix(NODE));
        names.map(str::to_owned).collect()
    }

    /// Those that we cordoned and did not give back.
    pub fn cordoned(&self) -> Vec<String> {
        let all = self.0.lock().unwrap();
        all.iter()
            .filter(|(_, node)| node.now.cordoned.is_some())
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn answer(&self, read: &KubernetesRead) -> (i32, String) {
        let mut all = self.0.lock().unwrap();
        match read {
            KubernetesRead::Nodes if self.1.load(Ordering::SeqCst) => {
                (NOT_SAID, "what answers there is no API server".to_owned())
            }
            KubernetesRead::Nodes => {
                let now: BTreeMap<&String, &NodeNow> =
                    all.iter().map(|(name, node)| (name, &node.now)).collect();
                (0, serde_json::to_string(&now).unwrap())
            }
            KubernetesRead::Object(object) if object.kind == "Node" => all
                .get(&object.name)
                .map_or((ABSENT, String::new()), |node| {
                    (0, node.object(&object.name).to_string())
                }),
            KubernetesRead::PodsOn(name) if all.get(name).is_some_and(|node| node.hides_pods) => {
                (NOT_SAID, "it is too busy".to_owned())
            }
            // Those that were told to end do so when they are looked at.
            KubernetesRead::PodsOn(name) => {
                let keeps = all.get(name).and_then(|node| node.keeps);
                let pods = all
                    .get_mut(name)
                    .map(|node| std::mem::take(&mut node.pods))
                    .unwrap_or_default();
                let now = |pod: PodNow| PodNow {
                    lost: pod.ends && keeps == Some(true),
                    ..pod
                };
                let stay: Vec<PodNow> = pods
                    .into_iter()
                    .filter(|pod| keeps.is_some() || !pod.ends)
                    .map(now)
                    .collect();
                let out = serde_json::to_string(&stay).unwrap();
                all.entry(name.clone()).and_modify(|node| node.pods = stay);
                (0, out)
            }
            KubernetesRead::Access(_) | KubernetesRead::Object(_) => (0, String::new()),
            _ => (NOT_SAID, "this is a fake".to_owned()),
        }
    }

    fn perform(&self, action: &Action) -> Option<()> {
        let mut all = self.0.lock().unwrap();
        match action {
            Action::CordonNode { node, mark } => {
                let now = &mut all.get_mut(node)?.now;
                if now.schedulable {
                    (now.schedulable, now.cordoned) = (false, Some(mark.clone()));
                }
            }
            Action::UncordonNode { node } => {
                let now = &mut all.get_mut(node)?.now;
                if now.cordoned.take().is_some() {
                    now.schedulable = true;
                }
            }
            Action::EvictPod { uid, .. } => {
                all.values_mut()
                    .flat_map(|node| &mut node.pods)
                    .filter(|pod| pod.uid == *uid)
                    .for_each(|pod| pod.ends = true);
            }
            _ => return None,
        }
        Some(())
    }
}

struct Beside {
    fleet: Fleet,
    nodes: Nodes,
}

impl Connector for Beside {
    fn connect<'a>(
        &'a self,
        access: &'a TargetAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        Box::pin(async {
            let link = self.fleet.connect(access).await?;
            if access.cluster().is_none() {
                return Ok(link);
            }
            Ok(Arc::new(Server {
                keeper: link,
                fleet: self.fleet.clone(),
                nodes: self.nodes.clone(),
            }) as Arc<dyn HostLink>)
        })
    }
}

struct Server {
    /// What keeps its lock and its record.
    keeper: Arc<dyn HostLink>,
    fleet: Fleet,
    nodes: Nodes,
}

fn ended(code: i32) -> ExecutionOutcome {
    ExecutionOutcome::Ended {
        code,
        stdout: String::new(),
        stderr: String::new(),
    }
}

impl HostLink for Server {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
        Box::pin(async move {
            let (asked, others): (Vec<Read>, Vec<Read>) = reads
                .iter()
                .cloned()
                .partition(|read| matches!(read, Read::Kubernetes(_) | Read::Host));
            let mut answers = self.keeper.read(&others).await?;
            for read in asked {
                let (code, out) = if let Read::Kubernetes(read) = &read {
                    self.nodes.answer(read)
                } else {
                    (0, String::new())
                };
                answers.insert(
                    read.key(),
                    ReadResult {
                        status: AnswerStatus::Exit(code),
                        out,
                    },
                );
            }
            Ok(answers)
        })
    }

    fn perform<'a>(
        &'a self,
        action: &'a Action,
        _: &'a str,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async move {
            self.keeper.read(&[]).await?;
            let is_holder = fence.is_some_and(|fence| {
                self.fleet.with(NAME, |host| host.lock.check(fence).is_ok()) == Some(true)
            });
            assert!(is_holder, "{} without the lock", action.word());
            Ok(ended(if self.nodes.perform(action).is_some() {
                0
            } else {
                1
            }))
        })
    }

    fn probe<'a>(
        &'a self,
        _: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async {
            Ok(ExecutionOutcome::Unknown {
                reason: "it only says how its nodes are".into(),
            })
        })
    }

    fn upkeep<'a>(
        &'a self,
        upkeep: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        self.keeper.upkeep(upkeep)
    }
}
