//! The links of the cabling file, with what stands at their ends.

use railwright_knowledge::spec::model::SwitchRole;
use railwright_knowledge::spec::{LoadedSpec, SwitchNode};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Where a device stands in the fabric.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// It sends and takes the traffic.
    Host,
    /// A switch that the spec calls a leaf; where it says nothing, one with hosts on it.
    Leaf,
    /// A switch that the spec calls a spine; where it says nothing, one with switches alone on it.
    Spine,
}

impl Tier {
    /// The word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Tier::Host => "host",
            Tier::Leaf => "leaf",
            Tier::Spine => "spine",
        }
    }
}

/// One end of a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
pub struct EndPoint {
    /// A host or a switch.
    pub device: String,
    /// The netdev of a NIC, or the port of a switch.
    pub port: String,
    /// Where the device stands.
    pub tier: Tier,
}

/// A cable, with what it is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
pub struct FabricLink {
    /// The NIC, or the leaf; of two switches that stand alike the end that the cabling file names
    /// first.
    pub from: EndPoint,
    /// The port of the switch.
    pub to: EndPoint,
    /// The rail, from 0; nothing between switches.
    pub rail: Option<u32>,
}

/// Where the spec says that it stands.
fn find_switch_role(loaded: &LoadedSpec, switch: &SwitchNode) -> Option<SwitchRole> {
    loaded.spec.switches.get(switch.group)?.role
}

/// All links of these hosts, and those between switches; all where no hosts are named.
pub fn list_fabric_links(loaded: &LoadedSpec, only: Option<&BTreeSet<&str>>) -> Vec<FabricLink> {
    let Some(cabling) = &loaded.cabling else {
        return Vec::new();
    };
    let rails: BTreeMap<(&str, &str), u32> = loaded
        .hosts
        .iter()
        .flat_map(|host| {
            host.netdevs
                .iter()
                .map(|rail| ((host.name.as_str(), rail.port.as_str()), rail.rail))
        })
        .collect();
    let hosts: BTreeSet<&str> = loaded.hosts.iter().map(|host| host.name.as_str()).collect();
    let is_host = |device: &str| hosts.contains(device);
    let leaves: BTreeSet<&str> = cabling
        .cables
        .iter()
        .filter(|cable| is_host(&cable.from.device))
        .map(|cable| cable.to.device.as_str())
        .collect();
    let roles: BTreeMap<&str, SwitchRole> = loaded
        .switches
        .iter()
        .filter_map(|switch| Some((switch.name.as_str(), find_switch_role(loaded, switch)?)))
        .collect();
    let point = |end: &railwright_knowledge::spec::cabling::CableEnd| EndPoint {
        device: end.device.clone(),
        port: end.port.clone(),
        tier: match (
            is_host(&end.device),
            roles.get(end.device.as_str()),
            leaves.contains(end.device.as_str()),
        ) {
            (true, ..) => Tier::Host,
            (false, Some(SwitchRole::Leaf), _) | (false, None, true) => Tier::Leaf,
            (false, Some(SwitchRole::Spine), _) | (false, None, false) => Tier::Spine,
        },
    };
    let link = |cable: &railwright_knowledge::spec::cabling::Cable| {
        let (from, to) = (point(&cable.from), point(&cable.to));
        let rail = rails
            .get(&(cable.from.device.as_str(), cable.from.port.as_str()))
            .copied();
        // A spine stands above, whichever end the file names first.
        if from.tier > to.tier {
            FabricLink {
                from: to,
                to: from,
                rail,
            }
        } else {
            FabricLink { from, to, rail }
        }
    };
    let is_asked = |cable: &&railwright_knowledge::spec::cabling::Cable| {
        only.is_none_or(|only| {
            !is_host(&cable.from.device) || only.contains(cable.from.device.as_str())
        })
    };
    cabling.cables.iter().filter(is_asked).map(link).collect()
}
