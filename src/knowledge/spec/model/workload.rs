//! Workloads that stay: pods that use the fabric and are declared like anything else of the
//! cluster. Field docs become the JSON Schema's descriptions. The words are those of `railwright
//! job render`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A workload that stays, as an object of the Kubernetes cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// What it is.
    pub kind: WorkloadKind,
    /// The object's name.
    pub name: String,
    /// Its namespace, which has to be there.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The image of its pods.
    pub image: String,
    /// When the image is pulled: `Always`, `IfNotPresent` or `Never`; left to the cluster when left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Variables of its processes, before what `jobs.environment` and the fabric say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// How many pods; with `ray` how many workers, and one pod more has the head.
    #[serde(default = "default_replicas")]
    pub replicas: u32,
    /// GPUs of a pod; those of the hosts, or with `acs` those of `jobs.acs`, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// The resource by which GPUs are asked for.
    #[serde(default = "default_gpu_resource")]
    pub gpu_resource: String,
    /// Processors of a pod, such as `128`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// Memory of a pod, such as `512Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// No RDMA: what another workload is compared with.
    #[serde(default)]
    pub without_rdma: bool,
    /// It is a trial: images of demonstrations are no finding.
    #[serde(default)]
    pub trial: bool,
    /// Takes an object of this name over that somebody else made. It is never deleted then.
    #[serde(default)]
    pub adopt: bool,
    /// `ray`: RDMA devices of each pod, by resource: `{ aliyun/erdma: 1 }`; those that the cluster
    /// of the spec gives when left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub devices: BTreeMap<String, u32>,
    /// `ray`: the hosts that it may run on, as a node-set; all when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<String>,
    /// `ray`: the pods have the network of their host, and with it the rails.
    #[serde(default)]
    pub host_network: bool,
    /// `ray`: a further network of the pods, by the name of its NetworkAttachmentDefinition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// `ray`: the release of Ray in the image; what is known of the image, or its tag says, when
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray_version: Option<String>,
    /// `acs`: the GPU model series, such as `GU8TF`; that of `jobs.acs` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `acs`: the compute class, `gpu` or `gpu-hpn`; that of `jobs.acs` when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_class: Option<String>,
    /// `acs`: what the container runs, word by word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// `acs`: the label `app` by which the Deployment knows its pods; its name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// `acs`: the container's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// What a workload is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// A Deployment on Alibaba Container Compute Service, whose pods get GPUs and RDMA by their
    /// labels.
    #[default]
    Acs,
    /// A RayCluster of KubeRay: a head and workers with GPUs and RDMA devices.
    Ray,
}

impl WorkloadKind {
    /// The word in the spec.
    pub fn word(self) -> &'static str {
        match self {
            WorkloadKind::Acs => "acs",
            WorkloadKind::Ray => "ray",
        }
    }
}

fn default_namespace() -> String {
    "default".to_owned()
}

fn default_gpu_resource() -> String {
    "nvidia.com/gpu".to_owned()
}

fn default_replicas() -> u32 {
    1
}
