//! What the templates of a module for the Kubernetes cluster can name. The type is the language, as
//! of hosts.

use super::context::{HostNames, host_names, secret_marks};
use crate::catalog::Catalog;
use crate::solve::SolverAnswers;
use crate::spec::model::{Fabric, FabricKind, Kubernetes};
use crate::spec::{Host, LoadedSpec, pools};
use crate::template::shape::ContextShape;
use railwright_resource::node_field::Effect;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// All that a template of a module for the Kubernetes cluster can name, besides the module's own
/// parameters.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClusterNames {
    /// The cluster's name.
    pub cluster: String,
    /// The fabric, as the spec has it; what the spec leaves out is not there.
    pub fabric: Fabric,
    /// The Kubernetes cluster, as the spec has it.
    pub kubernetes: Kubernetes,
    /// Pools of RDMA devices.
    pub rdma_pools: Vec<PoolNames>,
    /// Nodes with a NIC of some pool.
    pub rdma_nodes: Vec<String>,
    /// Nodes with eRDMA devices.
    pub erdma_nodes: Vec<String>,
    /// How many eRDMA devices each of them has.
    pub erdma_devices: BTreeMap<String, usize>,
    /// Those of them whose hosts have no SSH.
    pub erdma_nodes_without_ssh: Vec<String>,
    /// The netdevs of each node's eRDMA devices.
    pub erdma_netdevs: BTreeMap<String, Vec<String>>,
    /// How many GPUs each node has, where the spec says so.
    pub node_gpus: BTreeMap<String, u32>,
    /// Labels of nodes.
    pub node_labels: Vec<NodeLabelNames>,
    /// Taints of nodes.
    pub node_taints: Vec<NodeTaintNames>,
    /// The hosts.
    pub hosts: Vec<HostNames>,
    /// Each secret of the spec, as a mark that is filled in on the way to the cluster.
    pub secrets: BTreeMap<String, String>,
}

/// A pool of RDMA devices.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PoolNames {
    /// The resource's name below `rdma/`.
    pub resource: String,
    /// The netdevs of its rails on all hosts, by their ports.
    pub netdevs: Vec<String>,
    /// The nodes that have such rails.
    pub nodes: Vec<String>,
}

/// A label of nodes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NodeLabelNames {
    /// Its key.
    pub key: String,
    /// Its value by node.
    pub values: BTreeMap<String, String>,
}

/// A taint of nodes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct NodeTaintNames {
    /// Its key.
    pub key: String,
    /// Its effect.
    pub effect: Effect,
    /// Its value by node, which may be empty.
    pub values: BTreeMap<String, String>,
}

/// The shape of `ClusterNames`.
pub fn build_cluster_shape() -> ContextShape {
    ContextShape::of_schema(schemars::schema_for!(ClusterNames).as_value())
}

/// What templates can name for the Kubernetes cluster.
pub fn build_cluster_names(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    answers: &SolverAnswers,
) -> ClusterNames {
    let mut names = ClusterNames {
        cluster: loaded.spec.cluster.clone(),
        fabric: loaded.spec.fabric.clone(),
        kubernetes: loaded.spec.kubernetes.clone().unwrap_or_default(),
        rdma_nodes: Vec::new(),
        rdma_pools: rdma_pools(loaded),
        erdma_nodes: Vec::new(),
        erdma_devices: BTreeMap::new(),
        erdma_nodes_without_ssh: Vec::new(),
        erdma_netdevs: BTreeMap::new(),
        node_gpus: BTreeMap::new(),
        node_labels: node_labels(loaded),
        node_taints: node_taints(loaded),
        hosts: Vec::new(),
        secrets: secret_marks(loaded),
    };
    for host in &loaded.hosts {
        let node = &host.node;
        names.hosts.push(host_names(loaded, catalog, answers, host));
        if let Some(gpu) = &loaded.group_of(host).gpu {
            names.node_gpus.insert(node.clone(), gpu.count);
        }
        let mut pools = names.rdma_pools.iter();
        if pools.any(|pool| pool.nodes.contains(node)) {
            names.rdma_nodes.push(node.clone());
        }
        if loaded.spec.fabric.kind == FabricKind::Erdma && !host.netdevs.is_empty() {
            names.add_erdma_host(host);
        }
    }
    names
}

impl ClusterNames {
    fn add_erdma_host(&mut self, host: &Host) {
        let node = &host.node;
        let ports = host.netdevs.iter().map(|rail| rail.port.clone());
        self.erdma_nodes.push(node.clone());
        self.erdma_devices.insert(node.clone(), host.netdevs.len());
        self.erdma_netdevs.insert(node.clone(), ports.collect());
        if host.ssh.is_none() {
            self.erdma_nodes_without_ssh.push(node.clone());
        }
    }
}

fn rdma_pools(loaded: &LoadedSpec) -> Vec<PoolNames> {
    let kubernetes = loaded.spec.kubernetes.as_ref();
    let Some(rdma) = kubernetes.and_then(|kubernetes| kubernetes.rdma.as_ref()) else {
        return Vec::new();
    };
    let mut pools = Vec::new();
    for (resource, text) in &rdma.resources {
        let rails = pools::parse_rail_list(text).unwrap_or_default();
        let mut nodes = Vec::new();
        for host in &loaded.hosts {
            if host.netdevs.iter().any(|rail| rails.contains(&rail.rail)) {
                nodes.push(host.node.clone());
            }
        }
        pools.push(PoolNames {
            resource: resource.clone(),
            netdevs: pools::list_rail_netdevs(&loaded.hosts, &rails),
            nodes,
        });
    }
    pools
}

fn node_labels(loaded: &LoadedSpec) -> Vec<NodeLabelNames> {
    let mut values_by_key: BTreeMap<&String, BTreeMap<String, String>> = BTreeMap::new();
    for host in &loaded.hosts {
        for (key, value) in &loaded.group_of(host).kubernetes_labels {
            values_by_key
                .entry(key)
                .or_default()
                .insert(host.node.clone(), value.clone());
        }
    }
    values_by_key
        .into_iter()
        .map(|(key, values)| NodeLabelNames {
            key: key.clone(),
            values,
        })
        .collect()
}

fn node_taints(loaded: &LoadedSpec) -> Vec<NodeTaintNames> {
    let mut values_by_taint: BTreeMap<(&String, Effect), BTreeMap<String, String>> =
        BTreeMap::new();
    for host in &loaded.hosts {
        for taint in &loaded.group_of(host).kubernetes_taints {
            values_by_taint
                .entry((&taint.key, taint.effect))
                .or_default()
                .insert(host.node.clone(), taint.value.clone());
        }
    }
    values_by_taint
        .into_iter()
        .map(|((key, effect), values)| NodeTaintNames {
            key: key.clone(),
            effect,
            values,
        })
        .collect()
}

/// The path of a label of nodes; the first group that has it stands for all.
fn find_label_path(loaded: &LoadedSpec, item: Option<usize>) -> Option<String> {
    let label = node_labels(loaded).into_iter().nth(item?)?;
    let key = &label.key;
    let mut groups = loaded.spec.nodes.iter();
    let index = groups.position(|group| group.kubernetes_labels.contains_key(key))?;
    Some(format!("nodes[{index}].kubernetes_labels[\"{key}\"]"))
}

/// The path of a taint of nodes; the first group that has it stands for all.
fn find_taint_path(loaded: &LoadedSpec, item: Option<usize>) -> Option<String> {
    let desired = node_taints(loaded).into_iter().nth(item?)?;
    for (index, group) in loaded.spec.nodes.iter().enumerate() {
        for (at, taint) in group.kubernetes_taints.iter().enumerate() {
            if taint.key == desired.key && taint.effect == desired.effect {
                return Some(format!("nodes[{index}].kubernetes_taints[{at}]"));
            }
        }
    }
    None
}

/// The path in the spec of a path of names for the cluster; `item` is the turn of the loop whose
/// elements are meant.
pub fn spec_path(loaded: &LoadedSpec, path: &[String], item: Option<usize>) -> String {
    match path.first().map(String::as_str) {
        Some("node_labels") => match find_label_path(loaded, item) {
            Some(path) => path,
            None => "nodes".to_owned(),
        },
        Some("node_taints") => match find_taint_path(loaded, item) {
            Some(path) => path,
            None => "nodes".to_owned(),
        },
        Some(
            "hosts"
            | "erdma_nodes"
            | "erdma_nodes_without_ssh"
            | "erdma_devices"
            | "erdma_netdevs"
            | "node_gpus",
        ) => "nodes".to_owned(),
        Some("rdma_pools" | "rdma_nodes") => "kubernetes.rdma.resources".to_owned(),
        _ => path.join("."),
    }
}
