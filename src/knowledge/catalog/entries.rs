//! What an entry of the catalogue says. The data is in `modules/catalog/*.yaml`; each entry names
//! the source that it was taken from, and a user's entries in `<inventory>/modules/catalog` stand
//! over the shipped ones.

use crate::spec::model::GpuModules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A GPU model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuModelEntry {
    /// The name that specs use, such as `A100-SXM4-80GB`.
    pub name: String,
    /// Other names of the same model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Who makes it: `nvidia`.
    pub vendor: String,
    /// The architecture, such as `ampere`.
    pub architecture: String,
    /// Memory in GB, as the maker's name of the model counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_gb: Option<u32>,
    /// True where GPUs are joined by NVSwitch: CUDA does not start before Fabric Manager runs.
    #[serde(default)]
    pub nvswitch: bool,
    /// The kinds of kernel modules that drive it.
    #[serde(default)]
    pub modules: Vec<GpuModules>,
    /// The first driver branch that knows it, such as 450.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_branch_min: Option<u32>,
    /// The last driver branch that knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_branch_max: Option<u32>,
    /// The first CUDA toolkit whose compiler makes code for it, where that is a later one than for
    /// its architecture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda_min: Option<String>,
    /// How many a machine has, where machines of this model come in fixed sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<u32>,
    /// Whether GPUDirect RDMA works with it.
    #[serde(default)]
    pub gpudirect: bool,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where this is said.
    pub source: String,
}

/// An RDMA NIC.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NicModelEntry {
    /// The name that specs use, such as `ConnectX-6`.
    pub name: String,
    /// Other names of the same model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Who makes it.
    pub vendor: String,
    /// The kernel driver of its netdev, such as `mlx5_core`.
    pub driver: String,
    /// `vendor:device` of PCI, in lower case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pci_ids: Vec<String>,
    /// The speeds of a port in Gb/s, as sold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub speeds_gbps: Vec<u32>,
    /// The kinds of fabric that it can be part of, in the words of `fabric.kind`.
    pub fabrics: Vec<String>,
    /// The largest MTU of its netdev, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_max: Option<u32>,
    /// True where PFC, ETS and the DSCP map can be set on the port (data centre bridging).
    #[serde(default)]
    pub dcb: bool,
    /// True where its firmware's settings are read and written with mlxconfig.
    #[serde(default)]
    pub mlxconfig: bool,
    /// The last release of MLNX_OFED that knows it; not there where every release does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mlnx_ofed_max: Option<String>,
    /// The first release of DOCA that knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doca_min: Option<String>,
    /// The last release of DOCA that knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doca_max: Option<String>,
    /// True where its kernel module works against the ib_core of DOCA and MLNX_OFED.
    #[serde(default)]
    pub works_with_ofed: bool,
    /// Why railwright knows it but sets nothing up for it; not there where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_provisioned: Option<String>,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where this is said.
    pub source: String,
}

/// A cloud's instance type or family.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstanceEntry {
    /// The name that specs use: a family such as `ebmgn8v`, which also stands for its types
    /// (`ecs.ebmgn8v.48xlarge`).
    pub name: String,
    /// Other names of the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The cloud.
    pub cloud: String,
    /// The GPU model as the catalogue names it, where it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// True for a virtual machine: its host's PCIe switches and firmware are out of reach.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// True where elastic RDMA can be had.
    #[serde(default)]
    pub erdma: bool,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where this is said.
    pub source: String,
}

/// An operating system.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperatingSystemEntry {
    /// ID and VERSION_ID of os-release, such as `ubuntu-22.04`; a version without its minor stands
    /// for all of them.
    pub name: String,
    /// Other names of the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// `apt` or `dnf`.
    pub package_manager: String,
    /// The version of its first kernel, such as `5.15`.
    pub kernel: String,
    /// Further kernels that it is run with, such as the HWE kernel.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_kernels: Vec<String>,
    /// The version of iproute2; `dcb` is part of it from 5.11 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iproute2: Option<String>,
    /// The version of its own rdma-core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma_core: Option<String>,
    /// True where its own rdma-core has the provider of eRDMA.
    #[serde(default)]
    pub erdma_provider: bool,
    /// True where Alibaba Cloud supports eRDMA on it.
    #[serde(default)]
    pub erdma: bool,
    /// The last release of MLNX_OFED for it; not there where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mlnx_ofed_max: Option<String>,
    /// The first release of DOCA for it; not there where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doca_min: Option<String>,
    /// The last release of DOCA for it; not there where the newest still has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doca_max: Option<String>,
    /// The first release of CUDA with packages for it; not there where none are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda_min: Option<String>,
    /// The last release of CUDA with packages for it; not there where the newest still has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda_max: Option<String>,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where this is said.
    pub source: String,
}

/// What a pair of ports delivers in `ib_write_bw`, by their rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BandwidthEntry {
    /// A name, such as `HDR`.
    pub name: String,
    /// The kernel driver of the NICs that it was found with, as in their entries.
    pub driver: String,
    /// The rate of the ports in Gb/s, as sysfs says it; any rate where it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_gbps: Option<u32>,
    /// From and to memory of these GPU models; memory of the hosts where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<String>,
    /// What a sound pair reaches at least, in Gb/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_gbps: Option<f64>,
    /// What somebody measured, in Gb/s, where nobody states a minimum: shown, and never compared
    /// with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_gbps: Option<f64>,
    /// Bytes of a message in the runs that the numbers come from.
    pub message_bytes: u32,
    /// Queue pairs in them.
    pub queue_pairs: u32,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where this is said.
    pub source: String,
}

/// What Alibaba Container Compute Service offers: a GPU model in a compute class.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComputeClassEntry {
    /// The GPU model series, such as `GU8TF`.
    pub name: String,
    /// The compute class: `gpu` or `gpu-hpn`.
    pub compute_class: String,
    /// The GPU counts of a pod that can have RDMA.
    pub rdma_gpus: Vec<u32>,
    /// The type of RDMA NIC in the words of the page, 1 or 2.
    pub nic_type: u32,
    /// The NCCL environment of this NIC type.
    pub environment: BTreeMap<String, String>,
    /// Where this is said.
    pub source: String,
}
