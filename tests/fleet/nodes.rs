//! A fake API server beside a simulated fleet: it says how the nodes of the hosts are, and does nothing.

use crate::room::Room;
use railwright::base::Target;
use railwright::plan::ClusterNodes;
use railwright::resource::kubernetes_object::nodes::NodeNow;
use railwright::resource::probe::Probe;
use railwright::resource::{Action, Answer, AnswerStatus, Answers, Read};
use railwright::transport::sim::{Fleet, access};
use railwright::transport::{BoxFuture, ClusterAccess, Connector, Fence, HostAccess, HostLink, Performed, TransportError, Upkeep};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The cluster's name.
const NAME: &str = "kube";

/// The nodes by name, as the API server has them now.
#[derive(Clone, Default)]
pub struct Nodes(Arc<Mutex<BTreeMap<String, NodeNow>>>);

impl Nodes {
    /// A cluster beside the hosts of a room, each of them a Ready node that takes pods.
    pub fn beside(room: &mut Room) -> Self {
        let nodes = Nodes::default();
        let hosts: Vec<String> = room.context.hosts.keys().cloned().collect();
        for host in &hosts {
            nodes.set(host, true, true);
        }
        let by_host: BTreeMap<Target, String> = hosts.iter().map(|host| (Target::host(host), format!("node-{host}"))).collect();
        room.context.nodes = by_host.iter().map(|(host, node)| (node.clone(), host.clone())).collect();
        room.nodes = Some(ClusterNodes { cluster: Target::kube(NAME), spec: "c".to_owned(), by_host });
        let cluster = ClusterAccess { kubeconfig: None, context: None, keeps: "railwright".to_owned(), folder: PathBuf::new() };
        room.context.hosts.insert(NAME.to_owned(), HostAccess { cluster: Some(cluster), ..access(NAME) });
        room.context.connector = room.context.secrets.carried_by(Arc::new(Beside { fleet: room.fleet.clone(), nodes: nodes.clone() }));
        nodes
    }

    /// The node of this host is like this now.
    pub fn set(&self, host: &str, ready: bool, schedulable: bool) {
        let now = NodeNow { ready, schedulable, cordoned: None, gives: BTreeMap::new() };
        self.0.lock().unwrap().insert(format!("node-{host}"), now);
    }
}

struct Beside {
    fleet: Fleet,
    nodes: Nodes,
}

impl Connector for Beside {
    fn connect<'a>(&'a self, access: &'a HostAccess) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        match access.cluster {
            Some(_) => Box::pin(async { Ok(Arc::new(Server(self.nodes.clone())) as Arc<dyn HostLink>) }),
            None => self.fleet.connect(access),
        }
    }
}

struct Server(Nodes);

impl HostLink for Server {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<Answers, TransportError>> {
        let out = serde_json::to_string(&*self.0.0.lock().unwrap()).unwrap();
        let mut answers = Answers::default();
        reads.iter().for_each(|read| answers.insert(read.key(), Answer { status: AnswerStatus::Exit(0), out: out.clone() }));
        Box::pin(async { Ok(answers) })
    }

    fn perform<'a>(&'a self, _: &'a Action, _: &'a str, _: Option<&'a Fence>) -> BoxFuture<'a, Result<Performed, TransportError>> {
        Box::pin(async { Ok(Performed::Unknown { reason: "it only says how its nodes are".to_owned() }) })
    }

    fn probe<'a>(&'a self, _: &'a Probe) -> BoxFuture<'a, Result<Performed, TransportError>> {
        Box::pin(async { Ok(Performed::Unknown { reason: "it only says how its nodes are".to_owned() }) })
    }

    fn upkeep<'a>(&'a self, _: &'a Upkeep) -> BoxFuture<'a, Result<Performed, TransportError>> {
        Box::pin(async { Ok(Performed::Unknown { reason: "it only says how its nodes are".to_owned() }) })
    }
}
