//! The links of the cabling file, with what stands at their ends.

use railwright_knowledge::spec::cabling::{Cable, CableEnd};
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
    /// The NIC, or the leaf; of two switches of one rank the end that the cabling file names
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

/// What says where a device stands.
struct FabricTiers<'a> {
    hosts: BTreeSet<&'a str>,
    /// Switches with hosts on them.
    leaves: BTreeSet<&'a str>,
    /// What the spec says of switches.
    roles: BTreeMap<&'a str, SwitchRole>,
}

impl<'a> FabricTiers<'a> {
    fn of(loaded: &'a LoadedSpec, cables: &'a [Cable]) -> Self {
        let hosts: BTreeSet<&str> = loaded.hosts.iter().map(|host| host.name.as_str()).collect();
        let leaves = cables
            .iter()
            .filter(|cable| hosts.contains(cable.from.device.as_str()))
            .map(|cable| cable.to.device.as_str())
            .collect();
        let mut roles = BTreeMap::new();
        for switch in &loaded.switches {
            if let Some(role) = find_switch_role(loaded, switch) {
                roles.insert(switch.name.as_str(), role);
            }
        }
        FabricTiers {
            hosts,
            leaves,
            roles,
        }
    }

    fn is_host(&self, device: &str) -> bool {
        self.hosts.contains(device)
    }

    fn find_tier(&self, device: &str) -> Tier {
        if self.is_host(device) {
            return Tier::Host;
        }
        match (self.roles.get(device), self.leaves.contains(device)) {
            (Some(SwitchRole::Leaf), _) | (None, true) => Tier::Leaf,
            (Some(SwitchRole::Spine), _) | (None, false) => Tier::Spine,
        }
    }

    fn build_end_point(&self, end: &CableEnd) -> EndPoint {
        EndPoint {
            device: end.device.clone(),
            port: end.port.clone(),
            tier: self.find_tier(&end.device),
        }
    }

    fn build_link(&self, cable: &Cable, rail: Option<u32>) -> FabricLink {
        let from = self.build_end_point(&cable.from);
        let to = self.build_end_point(&cable.to);
        // A spine stands above, whichever end the file names first.
        let (from, to) = if from.tier > to.tier {
            (to, from)
        } else {
            (from, to)
        };
        FabricLink { from, to, rail }
    }
}

/// All links of these hosts, and those between switches; all where no hosts are named.
pub fn list_fabric_links(loaded: &LoadedSpec, only: Option<&BTreeSet<&str>>) -> Vec<FabricLink> {
    let Some(cabling) = &loaded.cabling else {
        return Vec::new();
    };
    let tiers = FabricTiers::of(loaded, &cabling.cables);
    let mut rails: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for host in &loaded.hosts {
        for rail in &host.netdevs {
            rails.insert((host.name.as_str(), rail.port.as_str()), rail.rail);
        }
    }
    let mut links = Vec::new();
    for cable in &cabling.cables {
        let (device, port) = (cable.from.device.as_str(), cable.from.port.as_str());
        if tiers.is_host(device) && only.is_some_and(|only| !only.contains(device)) {
            continue;
        }
        let rail = rails.get(&(device, port)).copied();
        links.push(tiers.build_link(cable, rail));
    }
    links
}
