//! The management network of a host: ports that are one netdev (a bond), and the VLAN on it.

use railwright_base::units::Milliseconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the management network of a host is built.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Management {
    /// Ports that are one netdev. Compared and checked, made and changed by hand: it carries the
    /// connection that we come by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bond: Option<ManagementBond>,
    /// The VLAN that the host's address is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<ManagementVlan>,
}

/// Ports that are one netdev.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManagementBond {
    /// The netdev, such as `bond0`.
    pub name: String,
    /// Its ports, such as `[eno1, eno2]`.
    pub members: Vec<String>,
    /// How packets are spread over them.
    pub mode: BondMode,
    /// How often the links of the ports are looked at, in milliseconds; not compared unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miimon: Option<Milliseconds>,
    /// `802.3ad`: how often the switch is asked for signs of life; not compared unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp_rate: Option<LacpRate>,
    /// What of a packet chooses its port; not compared unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xmit_hash_policy: Option<XmitHashPolicy>,
    /// The port that is used whenever its link is up; not compared unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
}

/// Modes of a bond, by the names that the kernel has for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BondMode {
    /// Packets in turn.
    #[default]
    BalanceRr,
    /// One port carries all, the others wait.
    ActiveBackup,
    /// By a hash of the addresses.
    BalanceXor,
    /// Every packet on every port.
    Broadcast,
    /// Link aggregation with the switch (LACP).
    #[serde(rename = "802.3ad")]
    Lacp,
    /// By load, without the switch, for what is sent.
    BalanceTlb,
    /// By load, without the switch, both ways.
    BalanceAlb,
}

/// How often the switch is asked for signs of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LacpRate {
    /// Every 30 seconds.
    Slow,
    /// Every second.
    Fast,
}

/// What of a packet chooses its port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum XmitHashPolicy {
    /// MAC addresses.
    #[serde(rename = "layer2")]
    Layer2,
    /// MAC and IP addresses.
    #[serde(rename = "layer2+3")]
    Layer23,
    /// IP addresses and ports.
    #[serde(rename = "layer3+4")]
    Layer34,
    /// Like `layer2+3`, of the packet within a tunnel.
    #[serde(rename = "encap2+3")]
    Encap23,
    /// Like `layer3+4`, of the packet within a tunnel.
    #[serde(rename = "encap3+4")]
    Encap34,
    /// The VLAN and the MAC address of the source.
    #[serde(rename = "vlan+srcmac")]
    VlanSourceMac,
}

/// The VLAN that the host's address is on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ManagementVlan {
    /// Its number, 1 to 4094.
    pub id: u16,
    /// The netdev that it sits on; the bond unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Its netdev; parent and number, as in `bond0.20`, unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Management {
    /// Fills in the parent and the name that a VLAN leaves to their defaults; a VLAN on nothing has
    /// no name either.
    pub fn resolved(&self) -> Management {
        let mut all = self.clone();
        if let Some(vlan) = &mut all.vlan {
            vlan.parent = vlan
                .parent
                .take()
                .or_else(|| self.bond.as_ref().map(|bond| bond.name.clone()));
            let name = vlan
                .parent
                .as_ref()
                .map(|parent| format!("{parent}.{}", vlan.id));
            vlan.name = vlan.name.take().or(name);
        }
        all
    }
}
