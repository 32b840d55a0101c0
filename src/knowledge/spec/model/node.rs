//! A group of identical hosts: how they are reached, their operating system, GPUs and NICs.
//! Field docs become the JSON Schema's descriptions.

use super::Reach;
use railwright_resource::node_field::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Identical hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    /// A node-set: `gpu[001-064]`, `n1,n2`, `r[1-4]n[1-16/2]`.
    pub name: String,
    /// The GPUs of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuSpec>,
    /// The RDMA NICs of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nics: Option<Nics>,
    /// How the management network is built; left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub management: Option<super::Management>,
    /// The operating system, such as `debian-12` or `ubuntu-22.04`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// The cloud's instance type or family, such as `ecs.ebmgn8v.48xlarge`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The kernel that must run, as `uname -r` prints it: checked, never installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The release of containerd that runs there, such as `1.6.28`: checked, never installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containerd: Option<String>,
    /// Whether Secure Boot is on: checked, never changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secure_boot: Option<bool>,
    /// Where the RDMA drivers and libraries come from; left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma_stack: Option<RdmaStack>,
    /// Alibaba Cloud's eRDMA driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erdma: Option<Erdma>,
    /// Settings for steady speed; each is left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tuning: Option<Tuning>,
    /// IOMMU mode of the kernel command line; left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iommu: Option<IommuMode>,
    /// How these hosts are reached, where it differs from the cluster's `ssh`; `none` for hosts
    /// that nobody may log in to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ssh: Option<Reach>,
    /// The names of these hosts as nodes of the Kubernetes cluster, such as
    /// `cn-hangzhou.10.0.0.{index}`; their own names in small letters, as kubelets make them,
    /// unless said. `{name}` is the host's name, `{index}` its place in the cluster from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_node: Option<String>,
    /// Labels of the nodes of these hosts in the Kubernetes cluster, such as `railwright.io/rdma:
    /// "true"`; others stay as they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kubernetes_labels: BTreeMap<String, String>,
    /// Taints of the nodes of these hosts, such as `{ key: nvidia.com/gpu, effect: NoSchedule }`;
    /// others stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kubernetes_taints: Vec<KubernetesTaint>,
    /// Failure domains and anything else to select by: `rack: r1`, `leaf: leaf1`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// A taint of a node: pods that do not tolerate it stay away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesTaint {
    /// Its key.
    pub key: String,
    /// Its value; none unless said.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// What it does to pods that do not tolerate it.
    pub effect: Effect,
}

/// IOMMU mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IommuMode {
    /// Passthrough (`iommu=pt`): what GPUDirect RDMA wants on bare metal.
    Pt,
    /// Off (`iommu=off`).
    Off,
    /// Every access is translated (`iommu=nopt`): for virtual machines; it slows GPUDirect RDMA
    /// down or breaks it.
    Nopt,
}

/// Where the RDMA drivers and libraries come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RdmaStack {
    /// The sort.
    pub flavour: RdmaFlavour,
    /// The release: of DOCA such as `2.9.1`, of MLNX_OFED such as `24.10`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// DOCA: the profile, `doca-ofed` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// Sorts of RDMA stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RdmaFlavour {
    /// What the operating system brings.
    Inbox,
    /// NVIDIA's DOCA for hosts, the successor of MLNX_OFED.
    Doca,
    /// NVIDIA's MLNX_OFED, up to 24.10.
    MlnxOfed,
}

/// Alibaba Cloud's eRDMA driver.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Erdma {
    /// How connections are made; `compat` and `ofed` cannot talk to `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ErdmaMode>,
    /// The metric that the routes over its netdevs have: checked by rules (the controller uses 200
    /// and more), never set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_metric: Option<u32>,
}

/// Modes of the eRDMA driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ErdmaMode {
    /// Connections are made by the kernel's RDMA connection manager.
    Default,
    /// Out-of-band connections too, as NCCL makes them.
    Compat,
    /// Out-of-band connections too, with MLNX_OFED installed.
    Ofed,
}

/// Settings for steady speed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    /// The CPU frequency governor, such as `performance`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_governor: Option<String>,
    /// Huge pages of 2 MiB, how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<u32>,
    /// Whether irqbalance runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irqbalance: Option<bool>,
    /// Whether the kernel moves memory between NUMA nodes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_balancing: Option<bool>,
    /// True: lldpd runs, so that cabling can be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lldp: Option<bool>,
    /// The maximum read request of every RDMA NIC in bytes: 128, 256, 512, 1024, 2048 or 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_read_request: Option<u32>,
    /// ACS on the PCIe bridges above GPUs and RDMA NICs. It takes away the isolation between
    /// devices: never where some are lent to virtual machines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie_acs: Option<PcieAcs>,
    /// The CPUs that handle the interrupts of RDMA NICs: `numa-local` for those near each NIC, or a
    /// list such as `0-7,16`. Goes with `irqbalance: false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub irq_affinity: Option<String>,
}

/// What becomes of ACS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PcieAcs {
    /// All its bits are cleared.
    Off,
    /// Request redirect, completion redirect and egress control are cleared, the others stay.
    RedirectOff,
}

/// The GPUs of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuSpec {
    /// The model, such as `A100-SXM4-80GB`.
    pub model: String,
    /// How many.
    pub count: u32,
    /// The driver branch or version, such as `535`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// Which of NVIDIA's kernel modules; `proprietary` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modules: Option<GpuModules>,
    /// The CUDA toolkit, such as `12.4`; left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// How GPU memory is reached by the NIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<GpuDirect>,
}

/// NVIDIA's kernel modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GpuModules {
    /// The open ones.
    Open,
    /// The proprietary ones.
    Proprietary,
}

/// How GPU memory is reached by the NIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuDirect {
    /// The path.
    pub path: GpuDirectPath,
    /// For `nv-peer-mem`: the source, a git URL with revision (`https://...git#1.0-9`), or a
    /// tarball by its URL or its path on the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// For a tarball: its SHA-256, 64 hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The version of the source, such as `1.0-9`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Paths of GPUDirect RDMA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GpuDirectPath {
    /// DMA-BUF: nothing to install.
    Dmabuf,
    /// `nvidia-peermem` of the driver.
    Peermem,
    /// The legacy out-of-tree module.
    NvPeerMem,
}

/// The RDMA NICs of a host: one per rail.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nics {
    /// The model, such as `ConnectX-6`; `soft-roce` makes RDMA devices of plain Ethernet ones.
    pub model: String,
    /// How many rails; 1 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rails: Option<u32>,
    /// The netdev of each rail; `{rail}` counts from 0.
    pub netdev: String,
    /// The address of each rail in CIDR form; `{rail}` counts from 0, `{index}` is the host's place
    /// in the cluster from 1. Left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The VLAN of every rail, 1 to 4094: its netdev (`ens1f0np0.100`) carries the address then.
    /// Where priorities go by the tag (`lossless: { trust: pcp }`), this is where the tag
    /// comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// Settings of the NICs' firmware (nvconfig); left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<NicFirmware>,
    /// What the NICs are to be named at boot; left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub naming: Option<Naming>,
}

/// Names of NICs that stay whatever driver comes. The netdev of each rail gets the name that
/// `netdev` says, with the next boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Naming {
    /// The PCI address of each rail, in their order, such as `0000:3b:00.0`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pci: Vec<String>,
    /// Or the MAC address of each rail, in their order, by host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mac: BTreeMap<String, Vec<String>>,
    /// How RDMA devices are named; left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma: Option<RdmaNaming>,
}

/// The policies of rdma-core for the names of RDMA devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RdmaNaming {
    /// As the driver names them: `mlx5_0`.
    Kernel,
    /// By the place on the PCI bus: `rocep193s0f0`.
    Pci,
    /// By the GUID: `rocex0c42a103001a2b3c`.
    Guid,
    /// By the number on the board, else by the place on the PCI bus: what rdma-core does by itself.
    Fallback,
}

/// Settings of the firmware of NVIDIA's NICs, in the words of `mlxconfig`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NicFirmware {
    /// Names and values, such as `SRIOV_EN: 1` or `LINK_TYPE_P1: ETH`.
    pub settings: BTreeMap<String, serde_json::Value>,
    /// Those that a card may lack: one with a single protocol has no `LINK_TYPE_P1`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub may_lack: Vec<String>,
    /// When they take effect; with a reboot unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes_effect: Option<TakesEffect>,
}

/// What brings a setting of firmware into effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TakesEffect {
    /// The card boots with the host.
    Reboot,
    /// The card has to lose its power.
    PowerCycle,
}
