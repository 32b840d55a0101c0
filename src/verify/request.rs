//! What is to be checked, as plain values made from the spec.

use railwright_knowledge::catalog::entries::BandwidthEntry;
use railwright_transport::TargetAccess;

/// The sort of GID that traffic must leave with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GidKind {
    /// RoCE version 2, bound to the rail's address.
    RoceV2,
    /// InfiniBand: the port's own GID at index 0.
    Infiniband,
}

/// The marks of RoCE traffic that the fabric is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedMarks {
    /// The DSCP, 0 to 63; 26 by convention.
    pub dscp: u8,
    /// The priority that the DSCP maps to, 0 to 7.
    pub priority: u8,
}

/// What holds for the whole fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricFacts {
    /// The sort of GID.
    pub gid: GidKind,
    /// The marks; `None` where the fabric has no lossless class.
    pub marks: Option<ExpectedMarks>,
}

/// What a pair must deliver; without a value a check only reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expectations {
    /// The least average of `ib_write_bw`, in Gb/s.
    pub write_bandwidth_gbps: Option<f64>,
    /// The least average from GPU memory to GPU memory, in Gb/s.
    pub gpu_bandwidth_gbps: Option<f64>,
    /// The greatest typical latency of `ib_read_lat`, in microseconds.
    pub read_latency_us: Option<f64>,
    /// Seconds of each bandwidth run.
    pub duration_s: u32,
}

/// One rail of a host, as the spec has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedRail {
    /// Its number, from 0; only equal rails are paired.
    pub rail: u32,
    /// The netdev.
    pub netdev: String,
    /// The netdev of the NIC's port, which counts packets: the parent of a VLAN, or the same.
    pub port: String,
    /// The address, with or without `/prefix`; `None` takes the first one that the netdev has.
    pub address: Option<String>,
    /// The MTU in bytes; `None`: not checked.
    pub mtu: Option<u32>,
    /// The largest MTU that the NIC's model takes; `None` where nobody says.
    pub mtu_max: Option<u32>,
    /// The driver of the NIC's model, as the catalogue has it; `None` for a model that it does not
    /// know.
    pub driver: Option<String>,
}

/// The GPUs of a host, as the spec has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedGpus {
    /// The model by its name in the catalogue.
    pub model: String,
    /// How many.
    pub count: usize,
    /// The driver's branch or version; `None`: not checked.
    pub driver: Option<String>,
    /// Whether GPUDirect goes through DMA-BUF, or through a peer memory module; `None` where the
    /// spec has no path for it.
    pub dmabuf: Option<bool>,
}

/// A proof that a module's manifest declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleCheck {
    /// `memlock/limit`: the module and the check's id.
    pub id: String,
    /// A script, run in a fresh login of the host's user (so write `sudo -n` where it needs root).
    pub run: String,
    /// What it must print, white space at both ends aside; `None`: that it ends with success is
    /// enough.
    pub expect: Option<String>,
}

/// One host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyHost {
    /// How it is reached; also its name.
    pub access: TargetAccess,
    /// Its rails.
    pub rails: Vec<ExpectedRail>,
    /// Its GPUs.
    pub gpus: Option<ExpectedGpus>,
    /// Proofs of its modules.
    pub checks: Vec<ModuleCheck>,
}

impl VerifyHost {
    /// The host's name in the spec.
    pub fn name(&self) -> &str {
        &self.access.name
    }
}

/// All that is to be checked in one go.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifyRequest {
    /// The inventory as the user named it, for the commands that are suggested.
    pub inventory: String,
    /// What holds for all.
    pub fabric: FabricFacts,
    /// What a pair must deliver.
    pub expectations: Expectations,
    /// What the catalogue knows of pairs, where the spec states nothing.
    pub bandwidths: Vec<BandwidthEntry>,
    /// The hosts.
    pub hosts: Vec<VerifyHost>,
    /// Rounds of pairs per rail at most; `None` is every pair for few hosts and a sample for many
    /// (`schedule`).
    pub rounds_per_rail: Option<usize>,
}
