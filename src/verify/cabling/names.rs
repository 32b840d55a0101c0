//! Whom a neighbour means by the names that it says. A system is called with its domain or without,
//! in any case of letters; a port by its name, an alias (`Eth1/1` of `Ethernet0`), its MAC address,
//! with the name in the description.

use railwright_base::nodeset::mask_numbers;
use railwright_knowledge::spec::LoadedSpec;
use railwright_knowledge::spec::cabling::{Cable, CableEnd};
use railwright_resource::lldp::LldpNeighbour;
use std::collections::{BTreeMap, BTreeSet};

/// The devices of a cluster with their ports.
#[derive(Debug, Clone, Default)]
pub struct CablingNames {
    /// By name in small letters.
    devices: BTreeMap<String, CablingDevice>,
    /// Devices by the first part of their names, in small letters; several may share it.
    short: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Default)]
struct CablingDevice {
    name: String,
    /// By name in small letters.
    ports: BTreeMap<String, String>,
    /// Their names without numbers.
    stems: BTreeSet<String>,
}

/// Who is at the other end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spot {
    /// This port of a device of the spec.
    At(CableEnd),
    /// A device that the spec does not have, and the port as it says it.
    Stranger(CableEnd),
    /// A device of the spec, with a name of its port that is of another sort than the file's.
    Unclear { device: String, said: String },
    /// Somebody who says no name.
    Nameless(String),
}

impl CablingNames {
    /// Of the spec's hosts and switches, with the ports that the cables name.
    pub fn of(loaded: &LoadedSpec, cables: &[Cable]) -> CablingNames {
        let mut names = CablingNames::default();
        for switch in &loaded.switches {
            names.add(&switch.name);
        }
        for host in &loaded.hosts {
            names.add(&host.name);
            for rail in &host.netdevs {
                names.add_port(&host.name, &rail.port);
            }
        }
        for cable in cables {
            names.add_port(&cable.from.device, &cable.from.port);
            names.add_port(&cable.to.device, &cable.to.port);
        }
        names
    }

    fn add(&mut self, name: &str) {
        let lower = name.to_lowercase();
        let short = lower.split('.').next().unwrap_or_default().to_owned();
        self.short.entry(short).or_default().push(lower.clone());
        self.devices.insert(
            lower,
            CablingDevice {
                name: name.to_owned(),
                ..CablingDevice::default()
            },
        );
    }

    fn add_port(&mut self, device: &str, port: &str) {
        if let Some(device) = self.devices.get_mut(&device.to_lowercase()) {
            device.stems.insert(mask_numbers(port).to_lowercase());
            device.ports.insert(port.to_lowercase(), port.to_owned());
        }
    }

    fn device(&self, said: &str) -> Option<&CablingDevice> {
        let lower = said.to_lowercase();
        if let Some(device) = self.devices.get(&lower) {
            return Some(device);
        }
        match self.short.get(lower.split('.').next()?)?.as_slice() {
            // Two domains with the same name in them are two devices.
            [only] if !only.contains('.') || !lower.contains('.') => self.devices.get(only),
            _ => None,
        }
    }

    /// Who a neighbour is.
    pub fn spot(&self, neighbour: &LldpNeighbour) -> Spot {
        let said = match neighbour {
            LldpNeighbour {
                port_is_mac: true,
                description,
                ..
            } if !description.is_empty() => description,
            // SONiC's own name of a port stands in the description, an alias before it.
            LldpNeighbour {
                port, description, ..
            } if mask_numbers(description) == "Ethernet#" && mask_numbers(port) != "Ethernet#" => {
                description
            }
            other => &other.port,
        };
        if neighbour.system.is_empty() {
            return Spot::Nameless(neighbour.chassis.clone());
        }
        let Some(device) = self.device(&neighbour.system) else {
            return Spot::Stranger(CableEnd::new(&neighbour.system, said));
        };
        for name in [&neighbour.port, &neighbour.description] {
            if let Some(port) = device.ports.get(&name.to_lowercase()) {
                return Spot::At(CableEnd::new(&device.name, port));
            }
        }
        let is_named = !neighbour.port_is_mac || !neighbour.description.is_empty();
        if is_named && device.may_have_port(said) {
            return Spot::At(CableEnd::new(&device.name, said));
        }
        Spot::Unclear {
            device: device.name.clone(),
            said: said.clone(),
        }
    }
}

impl CablingDevice {
    /// Whether a name is of the same sort as those of its ports.
    fn may_have_port(&self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        self.stems.is_empty() || self.stems.contains(&mask_numbers(name).to_lowercase())
    }
}
