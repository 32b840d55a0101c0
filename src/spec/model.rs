//! The spec as plain values, after decoding: no spans here (`spec::Loaded` finds the span of a path).
//! Field docs become the JSON Schema's descriptions, so they are written for the user.

use super::window::Window;
use crate::resource::{Disruption, Plane};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A cluster as it should be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The cluster's name: letters, digits, `-`.
    pub cluster: String,
    /// What the RDMA fabric is.
    #[serde(default)]
    pub fabric: Fabric,
    /// How hosts are reached, unless a node says otherwise.
    #[serde(default)]
    pub ssh: Ssh,
    /// The hosts.
    #[serde(default)]
    pub nodes: Vec<NodeGroup>,
    /// Package repositories that every host gets.
    #[serde(default)]
    pub repositories: Vec<Repository>,
    /// How changes are rolled out.
    #[serde(default)]
    pub rollout: Rollout,
    /// What the fabric must deliver.
    #[serde(default)]
    pub verify: Verify,
    /// How drift is judged.
    #[serde(default)]
    pub drift: Drift,
    /// Secrets by name: only references, never the secret itself.
    #[serde(default)]
    pub secrets: BTreeMap<String, SecretReference>,
    /// Overrides of modules, by module name. Normally modules are chosen from the facts above.
    #[serde(default)]
    pub modules: BTreeMap<String, ModuleOverride>,
}

/// The sort of fabric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FabricKind {
    /// RDMA over Converged Ethernet, version 2.
    Rocev2,
    /// InfiniBand.
    Infiniband,
    /// Alibaba Cloud elastic RDMA.
    Erdma,
    /// Alibaba Container Compute Service.
    Acs,
    /// No RDMA.
    #[default]
    None,
}

/// What the RDMA fabric is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// The sort of fabric.
    #[serde(default)]
    pub kind: FabricKind,
    /// The MTU of every RDMA netdev in bytes, 68 to 9978. RDMA itself needs no more than 4200 (active MTU 4096).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The lossless class; without it no PFC, ETS or DSCP map is wished for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossless: Option<Lossless>,
}

/// The lossless class of RoCE traffic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lossless {
    /// The priority with PFC on, 0 to 7; 3 by convention.
    pub priority: u8,
    /// The DSCP of RoCE traffic, 0 to 63; 26 by convention.
    pub dscp: u8,
    /// Congestion notification packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cnp: Option<Cnp>,
    /// The share of the link that the lossless class is promised, in percent; 50 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_percent: Option<u8>,
}

/// Congestion notification packets: their priority is strict.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cnp {
    /// 0 to 7; 6 by convention.
    pub priority: u8,
    /// 0 to 63; 48 by convention.
    pub dscp: u8,
}

/// How hosts are reached over SSH.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ssh {
    /// The remote user; `root` unless said otherwise. Others act through `sudo -n`, unless they are `read_only`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The TCP port; 22 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What to connect to; the node's name unless said otherwise. `{name}` is the node's name, `{index}` its place in the
    /// cluster from 1. `local` is this machine itself, without SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The known_hosts file with the pinned host keys, relative to the inventory. Host keys are always checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_keys: Option<String>,
    /// Private key files, relative to the inventory or from `~/`; the agent is asked first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identities: Vec<String>,
    /// Jump hosts, first hop first, each `[user@]host[:port]`; their keys are checked like any other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jump: Vec<String>,
    /// Ask `ssh -G` for what is left open here (`~/.ssh/config`); what this file says wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<bool>,
    /// The user has no rights but those that `railwright sudoers` prints: `plan`, `drift` and `facts` read what the world may
    /// read and what those lines allow, the rest is unknown; whatever would change a host is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// Hosts that are alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeGroup {
    /// A node-set: `gpu[001-064]`, `n1,n2`, `r[1-4]n[1-16/2]`.
    pub name: String,
    /// The GPUs of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<Gpu>,
    /// The RDMA NICs of each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nics: Option<Nics>,
    /// The operating system, such as `debian-12` or `ubuntu-22.04`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// IOMMU mode of the kernel command line; left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iommu: Option<Iommu>,
    /// How these hosts are reached, where it differs from the cluster's `ssh`.
    #[serde(default)]
    pub ssh: Ssh,
    /// Failure domains and anything else to select by: `rack: r1`, `leaf: leaf1`.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// IOMMU mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Iommu {
    /// Passthrough (`iommu=pt`): what GPUDirect RDMA wants on bare metal.
    Pt,
    /// Off (`iommu=off`).
    Off,
}

/// The GPUs of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// The model, such as `A100-SXM4-80GB`.
    pub model: String,
    /// How many.
    pub count: u32,
    /// The driver branch or version, such as `535`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// How GPU memory is reached by the NIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<GpuDirect>,
}

/// How GPU memory is reached by the NIC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GpuDirect {
    /// The path.
    pub path: GpuDirectPath,
    /// For `nv-peer-mem`: the source, a git URL with revision (`https://...git#1.0-9`), or a tarball by its URL or its path
    /// on the host.
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
    /// The address of each rail in CIDR form; `{rail}` counts from 0, `{index}` is the host's place in the cluster from 1.
    /// Left alone unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A package repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// A name for its files on the host: letters, digits, `-`.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// apt: the suite. A suite that ends in `/` needs no components. dnf: leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// apt: the components.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// The signing key's file, armoured, relative to the inventory. Unsigned repositories are refused.
    pub key: String,
    /// apt: pin priority for its packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// How changes are rolled out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rollout {
    /// Hosts of each hardware class (GPU model, NIC model, operating system) in the first wave; 1 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<u32>,
    /// Hosts that may be out of service at the same time: a number, or text like `10%`; 1 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::count_or_percent")]
    pub max_unavailable: Option<Value>,
    /// How many hosts each wave after the first has, the last repeated: numbers, or shares of all hosts like `10%`.
    /// As many as `max_unavailable` unless said otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::schema::counts_or_percents")]
    pub batches: Vec<Value>,
    /// The label of the nodes that names their failure domain, such as `rack` or `leaf`: a wave after the first has hosts
    /// of one domain only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// How many hosts may be lost (failed, unknown, unreachable) before nothing new is begun: a number, or a share of all
    /// hosts like `5%`; `max_unavailable` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::schema::count_or_percent")]
    pub failure_budget: Option<Value>,
    /// Changes that disturb more are held; `reboot` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_disruption: Option<Disruption>,
    /// Maintenance windows: what disturbs much begins only inside one of them. At any time unless said otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<Window>,
    /// What disturbs at least so much waits for a window; `link_blip` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_for: Option<Disruption>,
    /// How long a run may go on, such as `4h`; then nothing new is begun, and the rest is left to `resume`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
    /// After how long a host takes a change back by itself that can cut our own connection and was not confirmed over a new
    /// one: from `20s` to `1h`; `3m` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<String>,
}

/// What the fabric must deliver; checks without an expectation only report.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// The least `ib_write_bw` average of a pair, in Gb/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_bandwidth_gbps: Option<f64>,
    /// The greatest typical `ib_read_lat` of a pair, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_latency_us: Option<f64>,
    /// Seconds of each bandwidth run; 2 unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<u32>,
}

/// How drift is judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drift {
    /// Drift that is known and accepted for a while: it is told apart, and is no reason for exit code 2.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<Acceptance>,
}

/// Drift that is accepted, of an `address` or of `nodes`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The resources: `host/gpu[001-004]/link/ens4`; node-set, kind and name may each be `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// All resources of these nodes: a node-set, or `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<String>,
    /// The attribute, such as `mtu`.
    pub attribute: String,
    /// In this plane alone; in all of them unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plane: Option<Plane>,
    /// Why it is accepted.
    pub reason: String,
    /// Who accepted it.
    pub owner: String,
    /// The last day on which it is accepted, in UTC: `2026-12-31`. After it the drift counts again.
    pub until: String,
}

/// Where a secret is found; exactly one of the three.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretReference {
    /// The name of an environment variable of railwright.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// A file, relative to the inventory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A command of this machine and its arguments; what it prints is the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

/// An override of one module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleOverride {
    /// `false` leaves the module out, `true` takes it although its condition does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Values for its parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, Value>,
}
