//! What the templates of a module for the Kubernetes cluster can name. The type is the language, as
//! of hosts.

use super::context::{HostNames, host_names, secret_marks};
use crate::catalog::Catalog;
use crate::solve::SolverAnswers;
use crate::spec::model::{Fabric, FabricKind, Kubernetes, NodeGroup};
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
    let rdma_pools = rdma_pools(loaded);
    let is_erdma = loaded.spec.fabric.kind == FabricKind::Erdma;
    let erdma = || {
        loaded
            .hosts
            .iter()
            .filter(|host| is_erdma && !host.netdevs.is_empty())
    };
    let is_one = |host: &&Host| {
        rdma_pools
            .iter()
            .any(|pool| pool.nodes.contains(&host.node))
    };
    ClusterNames {
        cluster: loaded.spec.cluster.clone(),
        fabric: loaded.spec.fabric.clone(),
        kubernetes: loaded.spec.kubernetes.clone().unwrap_or_default(),
        rdma_nodes: loaded
            .hosts
            .iter()
            .filter(is_one)
            .map(|host| host.node.clone())
            .collect(),
        rdma_pools,
        erdma_nodes: erdma().map(|host| host.node.clone()).collect(),
        erdma_devices: erdma()
            .map(|host| (host.node.clone(), host.netdevs.len()))
            .collect(),
        erdma_nodes_without_ssh: erdma()
            .filter(|host| host.ssh.is_none())
            .map(|host| host.node.clone())
            .collect(),
        erdma_netdevs: erdma()
            .map(|host| {
                (
                    host.node.clone(),
                    host.netdevs.iter().map(|rail| rail.port.clone()).collect(),
                )
            })
            .collect(),
        node_gpus: loaded
            .hosts
            .iter()
            .filter_map(|host| Some((host.node.clone(), loaded.group_of(host).gpu.as_ref()?.count)))
            .collect(),
        node_labels: node_labels(loaded),
        node_taints: node_taints(loaded),
        hosts: loaded
            .hosts
            .iter()
            .map(|host| host_names(loaded, catalog, answers, host))
            .collect(),
        secrets: secret_marks(loaded),
    }
}

fn rdma_pools(loaded: &LoadedSpec) -> Vec<PoolNames> {
    let resources = loaded
        .spec
        .kubernetes
        .iter()
        .filter_map(|kubernetes| kubernetes.rdma.as_ref())
        .flat_map(|rdma| &rdma.resources);
    let pool = |(resource, text): (&String, &String)| {
        let rails = pools::parse_rail_list(text).unwrap_or_default();
        let has = |host: &&Host| host.netdevs.iter().any(|rail| rails.contains(&rail.rail));
        let nodes = loaded
            .hosts
            .iter()
            .filter(has)
            .map(|host| host.node.clone())
            .collect();
        PoolNames {
            resource: resource.clone(),
            netdevs: pools::list_rail_netdevs(&loaded.hosts, &rails),
            nodes,
        }
    };
    resources.map(pool).collect()
}

fn node_labels(loaded: &LoadedSpec) -> Vec<NodeLabelNames> {
    let mut all: BTreeMap<&String, BTreeMap<String, String>> = BTreeMap::new();
    for host in &loaded.hosts {
        for (key, value) in &loaded.group_of(host).kubernetes_labels {
            all.entry(key)
                .or_default()
                .insert(host.node.clone(), value.clone());
        }
    }
    all.into_iter()
        .map(|(key, values)| NodeLabelNames {
            key: key.clone(),
            values,
        })
        .collect()
}

fn node_taints(loaded: &LoadedSpec) -> Vec<NodeTaintNames> {
    let mut all: BTreeMap<(&String, Effect), BTreeMap<String, String>> = BTreeMap::new();
    for host in &loaded.hosts {
        for taint in &loaded.group_of(host).kubernetes_taints {
            all.entry((&taint.key, taint.effect))
                .or_default()
                .insert(host.node.clone(), taint.value.clone());
        }
    }
    all.into_iter()
        .map(|((key, effect), values)| NodeTaintNames {
            key: key.clone(),
            effect,
            values,
        })
        .collect()
}

/// The path in the spec of a path of names for the cluster; `item` is the turn of the loop whose
/// elements are meant.
pub fn spec_path(loaded: &LoadedSpec, path: &[String], item: Option<usize>) -> String {
    let groups = || loaded.spec.nodes.iter().enumerate();
    match path.first().map(String::as_str) {
        // The first group that has it stands for all.
        Some("node_labels") => {
            let key = item
                .and_then(|item| node_labels(loaded).into_iter().nth(item))
                .map(|label| label.key);
            let of = |(index, group): (usize, &NodeGroup)| {
                let key = key
                    .as_ref()
                    .filter(|key| group.kubernetes_labels.contains_key(*key))?;
                Some(format!("nodes[{index}].kubernetes_labels[\"{key}\"]"))
            };
            groups().find_map(of).unwrap_or_else(|| "nodes".to_owned())
        }
        Some("node_taints") => {
            let taint = item
                .and_then(|item| node_taints(loaded).into_iter().nth(item))
                .map(|taint| (taint.key, taint.effect));
            let of = |(index, group): (usize, &NodeGroup)| {
                let (key, effect) = taint.as_ref()?;
                let at = group
                    .kubernetes_taints
                    .iter()
                    .position(|taint| (&taint.key, taint.effect) == (key, *effect))?;
                Some(format!("nodes[{index}].kubernetes_taints[{at}]"))
            };
            groups().find_map(of).unwrap_or_else(|| "nodes".to_owned())
        }
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
