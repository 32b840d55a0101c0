//! The fabric. Field docs become the JSON Schema's descriptions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The sort of fabric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FabricKind {
    /// RDMA over Converged Ethernet, version 2.
    Rocev2,
    /// RDMA over Converged Ethernet, version 1: within one layer-2 network only.
    Rocev1,
    /// iWARP: RDMA over TCP.
    Iwarp,
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
    /// The MTU of every RDMA netdev in bytes, 68 to 9978. RDMA itself needs no more than 4200
    /// (active MTU 4096).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The lossless class; without it no PFC, ETS or DSCP map is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossless: Option<Lossless>,
    /// True where the RDMA networks of two hosts are joined by routers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routed: Option<bool>,
    /// InfiniBand: who runs the subnet manager: a node of this cluster, or text such as `switch` or
    /// `ufm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subnet_manager: Option<String>,
}

/// By what a NIC and a switch tell the priority of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// The DSCP of the IP header.
    Dscp,
    /// The priority code point of the VLAN tag.
    Pcp,
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
    /// The share of the link that the lossless class is promised, in percent; 50 unless said
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_percent: Option<u8>,
    /// What the priority goes by; `dscp` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// The longest cable between a host and its switch, in metres, 1 to 999; where it is not said,
    /// NICs keep the length that their driver assumes (7 with mlx5). It sizes the buffer that a
    /// paused priority needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cable_length_m: Option<u16>,
}

/// Congestion notification packets: their priority is strict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cnp {
    /// 0 to 7; 6 by convention.
    pub priority: u8,
    /// 0 to 63; 48 by convention.
    pub dscp: u8,
}
