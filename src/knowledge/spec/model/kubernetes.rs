//! The Kubernetes cluster that the hosts are nodes of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A Kubernetes cluster, reached over its API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kubernetes {
    /// Its name in addresses (`kube/NAME/...`): letters, digits, `-`; no host has the same. The
    /// cluster's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The kubeconfig file: absolute, below `~/`, or relative to the inventory. `$KUBECONFIG`, then
    /// `~/.kube/config`, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
    /// The context of that file. Its current one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Whose cluster it is.
    #[serde(default)]
    pub platform: KubernetesPlatform,
    /// How pods get RDMA devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma: Option<KubernetesRdma>,
    /// The eRDMA controller of Alibaba Cloud, which gives nodes their eRDMA devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erdma: Option<KubernetesErdma>,
    /// Said where the cluster's network plugin is Alibaba Cloud's Terway: how it leaves eRDMA
    /// interfaces alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terway: Option<KubernetesTerway>,
}

/// How pods get RDMA devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesRdma {
    /// The device plugin.
    #[serde(default)]
    pub plugin: RdmaPlugin,
    /// Pools by their resource names (below `rdma/` those of the shared plugin, `nvidia.com/` those
    /// of SR-IOV's): the rails whose NICs each hands out, such as `rail 0-3` or `rail 0,2`.
    #[serde(default)]
    pub resources: BTreeMap<String, String>,
    /// `shared`: how many pods of a node may hold a unit of one pool at the same time, each with
    /// every NIC of the pool. `sriov`: how many virtual functions the NICs of a pool have on each
    /// node, all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// The plugin's image, where it does not come from its own registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// The eRDMA controller of Alibaba Cloud: how it is installed and configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesErdma {
    /// Who installs it, and so who owns its settings.
    #[serde(default)]
    pub install: ErdmaInstall,
    /// `helm-chart`: the chart, as a folder or an archive relative to the inventory, or as an
    /// `oci://` or `https://` reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<String>,
    /// The version of the chart; any when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The chart archive's SHA-256, as 64 hexadecimal digits. A folder has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The driver that the agent installs on the nodes. Left out, the agent takes `ofed` on nodes
    /// with a GPU, and else `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer_driver: Option<ErdmaDriver>,
    /// Whether a pod gets all eRDMA devices of its node, or one by NUMA topology.
    #[serde(default)]
    pub allocate_all_devices: bool,
    /// The MTU of eRDMA NICs on instances that have jumbo frames on. The chart's own, 8500, when
    /// left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jumbo_mtu: Option<u32>,
    /// The region of the instances. The controller asks the instance when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// How the controller proves to the cloud's API who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<ErdmaCredentials>,
}

/// How the eRDMA controller proves to the cloud's API who it is: a role, or the names of two
/// secrets of the spec.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErdmaCredentials {
    /// The RAM role of its service account (RRSA).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The secret that holds the AccessKey's ID, by its name below `secrets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// The secret that holds the AccessKey's secret, by its name below `secrets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_secret: Option<String>,
}

/// Who installs the eRDMA controller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErdmaInstall {
    /// The add-on "ACK eRDMA Controller" of the console, in the namespace `ack-erdma-controller`:
    /// done by hand there, and checked here.
    #[default]
    AckAddon,
    /// The chart of the open-source project, in `kube-system`.
    HelmChart,
}

/// A driver that the eRDMA agent installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ErdmaDriver {
    /// RDMA connections by its own connection manager.
    Default,
    /// Compatible with RoCE.
    Compat,
    /// On top of the OFED stack, for instances with GPUs.
    Ofed,
}

/// Alibaba Cloud's network plugin Terway.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesTerway {
    /// How it knows which interfaces are its own.
    #[serde(default)]
    pub whitelist: TerwayWhitelist,
}

/// How Terway knows which network interfaces are its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TerwayWhitelist {
    /// Only those with its own tag, by its configuration: what every release and mode from V1.5.5
    /// on knows.
    #[default]
    TagFilter,
    /// By the block list that newer releases bring, in the mode in which a controller gives out
    /// addresses for all nodes.
    BuiltIn,
}

/// A device plugin for RDMA devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RdmaPlugin {
    /// The RDMA shared device plugin: all pods of a node share its NICs.
    #[default]
    Shared,
    /// The SR-IOV network device plugin: a pod gets virtual functions of its own, which somebody
    /// else makes.
    Sriov,
}

/// Whose cluster it is, and so what may be asked of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KubernetesPlatform {
    /// A managed cluster of Alibaba Cloud's Container Service: its nodes are ECS or bare metal
    /// instances.
    AckManaged,
    /// Alibaba Container Compute Service: pods without nodes.
    Acs,
    /// Any other.
    #[default]
    Generic,
}
