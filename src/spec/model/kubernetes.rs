//! The Kubernetes cluster that the hosts are nodes of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A Kubernetes cluster, reached over its API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Kubernetes {
    /// Its name in addresses (`kube/NAME/...`): letters, digits, `-`; no host has the same. The cluster's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The kubeconfig file: absolute, below `~/`, or relative to the inventory. `$KUBECONFIG`, then `~/.kube/config`, when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubeconfig: Option<String>,
    /// The context of that file. Its current one when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Whose cluster it is.
    #[serde(default)]
    pub platform: Platform,
    /// How pods get RDMA devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma: Option<KubernetesRdma>,
}

/// How pods get RDMA devices.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesRdma {
    /// The device plugin.
    #[serde(default)]
    pub plugin: RdmaPlugin,
    /// Pools by their resource names below `rdma/`: the rails whose NICs each hands out, such as `rail 0-3` or `rail 0,2`.
    #[serde(default)]
    pub resources: BTreeMap<String, String>,
    /// How many pods of a node may hold a unit of one pool at the same time. Each gets every NIC of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// The plugin's image, where it does not come from its own registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

/// A device plugin for RDMA devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RdmaPlugin {
    /// The RDMA shared device plugin: all pods of a node share its NICs.
    #[default]
    Shared,
}

/// Whose cluster it is, and so what may be asked of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    /// A managed cluster of Alibaba Cloud's Container Service: its nodes are ECS or bare metal instances.
    AckManaged,
    /// Alibaba Container Compute Service: pods without nodes.
    Acs,
    /// Any other.
    #[default]
    Generic,
}
