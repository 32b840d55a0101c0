//! What the template of a job can name. The types are the language: their schema is what names are
//! checked against.

use super::amount::Amount;
use super::environment::Variable;
use super::pytorch_names::PytorchNames;
use super::request::JobRequestKind;
use railwright_knowledge::template::shape::ContextShape;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What pods of every kind have.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct PodNames {
    /// The job's name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The image.
    pub image: String,
    /// When it is pulled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// What a pod gets, as requests and as limits: GPUs, RDMA devices, processors, memory.
    pub resources: BTreeMap<String, Amount>,
    /// Variables with their values, in the form of a container's `env`.
    pub environment: Vec<ContainerVariable>,
    /// Where pods may run, in the form of an `affinity`; empty for anywhere.
    pub affinity: BTreeMap<String, serde_json::Value>,
    /// Annotations of the pods: a further network.
    pub annotations: BTreeMap<String, String>,
    /// The pods have the network of their host.
    pub host_network: bool,
}

/// A variable of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct ContainerVariable {
    pub name: String,
    pub value: String,
}

impl From<&Variable> for ContainerVariable {
    fn from(variable: &Variable) -> Self {
        ContainerVariable {
            name: variable.name.clone(),
            value: variable.value.clone(),
        }
    }
}

/// NCCL's tests.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct NcclTestNames {
    /// The pods.
    pub pod: PodNames,
    /// How many workers.
    pub workers: u32,
    /// Processes of a worker.
    pub slots: u32,
    /// The words that the launcher runs.
    pub launcher: Vec<String>,
    /// The words that a worker runs.
    pub worker: Vec<String>,
    /// Memory that ranks of a worker share.
    pub shared_memory: String,
}

/// A cluster of Ray.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct RayNames {
    /// The pods of head and workers.
    pub pod: PodNames,
    /// How many workers.
    pub replicas: u32,
    /// The release of Ray in the image.
    pub ray_version: String,
}

/// Pods on Alibaba Container Compute Service.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct AcsNames {
    /// The pods.
    pub pod: PodNames,
    /// How many.
    pub replicas: u32,
    /// The label by which the Deployment knows its pods.
    pub app: String,
    /// The container's name.
    pub container: String,
    /// Labels of the pods, by which they get GPUs and RDMA.
    pub labels: BTreeMap<String, String>,
    /// Labels of the node; empty for any.
    pub node_selector: BTreeMap<String, String>,
    /// What the container runs.
    pub command: Vec<String>,
}

/// RDMA traffic between two pods.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(super) struct PerftestNames {
    /// The pods.
    pub pod: PodNames,
    /// What the pod runs that listens, in sh.
    pub server: String,
    /// What the pod runs that sends, in sh.
    pub client: String,
    /// The TCP port on which they meet.
    pub port: u16,
}

/// The shape of what the template of a kind can name.
pub(super) fn build_template_shape(kind: JobRequestKind) -> ContextShape {
    let schema = match kind {
        JobRequestKind::NcclTest => schemars::schema_for!(NcclTestNames),
        JobRequestKind::Pytorch => schemars::schema_for!(PytorchNames),
        JobRequestKind::Ray => schemars::schema_for!(RayNames),
        JobRequestKind::Acs => schemars::schema_for!(AcsNames),
        JobRequestKind::PerftestPods => schemars::schema_for!(PerftestNames),
    };
    ContextShape::of_schema(schema.as_value())
}
