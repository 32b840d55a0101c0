//! The answers of `Read::PciDevice` and `Read::PciBridges`, decoded.

use super::config::{PciConfigSpace, is_address};
use crate::sections::{Section, parse_sections};
use crate::{Read, ReadResults};
use railwright_base::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// How a resource names a PCI function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PciFunctionSelector<'a> {
    /// By the netdev on it.
    Netdev(&'a str),
    /// By its address.
    Address(&'a str),
}

impl<'a> PciFunctionSelector<'a> {
    /// No netdev's name has a colon.
    pub fn of(text: &'a str) -> Self {
        if is_address(text) {
            PciFunctionSelector::Address(text)
        } else {
            PciFunctionSelector::Netdev(text)
        }
    }

    /// Named by its netdev.
    pub fn is_netdev(self) -> bool {
        matches!(self, PciFunctionSelector::Netdev(_))
    }
}

/// What writing takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Means {
    /// `setpci` is on the host.
    pub setpci: bool,
    /// The kernel lets root write configuration spaces.
    pub unlocked: bool,
}

impl Means {
    /// Writing can be tried.
    pub fn can_write(self) -> bool {
        self.setpci && self.unlocked
    }

    /// `lockdown none [integrity] confidentiality`: the word in brackets counts.
    fn of(out: &str) -> Self {
        let locked = out
            .lines()
            .filter_map(|line| line.strip_prefix("lockdown "))
            .any(|modes| !modes.contains("[none]"));
        Means {
            setpci: out.lines().any(|line| line == "setpci"),
            unlocked: !locked,
        }
    }
}

/// One function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FoundDevice {
    /// No such device.
    Missing,
    /// It is on no PCI bus.
    NotPci,
    /// It is there.
    There {
        /// Its address.
        address: String,
        /// A virtual function of another one.
        is_virtual_function: bool,
        /// The maximum read request in bytes; none without PCI Express.
        max_read_request: Result<Option<u32>, Reason>,
        /// What writing takes.
        means: Means,
    },
}

/// The function that a resource names; the error fits after "unknown:".
pub fn read_pci_device(answers: &ReadResults, device: &str) -> Result<FoundDevice, Reason> {
    let (code, out) = answers.output(&Read::PciDevice {
        device: device.to_owned(),
    })?;
    if code == 1 {
        return Ok(FoundDevice::Missing);
    }
    if out.lines().any(|line| line == "none") {
        return Ok(FoundDevice::NotPci);
    }
    let address = out
        .lines()
        .find_map(|line| line.strip_prefix("address "))
        .filter(|address| is_address(address));
    let address = address.ok_or_else(|| "the host gave no address for it".to_owned())?;
    let sections = parse_sections(out);
    Ok(FoundDevice::There {
        address: address.to_owned(),
        is_virtual_function: out.lines().any(|line| line == "virtual-function"),
        max_read_request: find_config_space(&sections, address)
            .map(|config| config.max_read_request()),
        means: Means::of(out),
    })
}

fn find_config_space(sections: &[Section<'_>], address: &str) -> Result<PciConfigSpace, Reason> {
    let section = sections
        .iter()
        .find(|section| section.word == "config" && section.rest == address);
    PciConfigSpace::of_dump(
        &section
            .ok_or_else(|| format!("the configuration space of {address} was not read"))?
            .lines,
    )
}

/// The bridges of a host and what hangs below them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciBridgeTree {
    /// The ACS control word of each bridge; none without the capability.
    bridges: BTreeMap<String, Result<Option<u16>, Reason>>,
    /// The way from the root to each GPU of NVIDIA, and to each NIC: addresses, the device itself
    /// last.
    gpus: Vec<Vec<String>>,
    nics: Vec<Vec<String>>,
    /// Addresses by netdev.
    netdevs: BTreeMap<String, String>,
    /// The ways to devices that a virtual machine or a program of its own has.
    passed: Vec<Vec<String>>,
    /// What writing takes.
    pub means: Means,
}

/// The tree; the error fits after "unknown:".
pub fn read_bridge_tree(answers: &ReadResults) -> Result<PciBridgeTree, Reason> {
    let (code, out) = answers.output(&Read::PciBridges)?;
    if code != 0 {
        return Err(format!("the PCI devices could not be read (status {code})").into());
    }
    let mut tree = PciBridgeTree {
        bridges: BTreeMap::new(),
        gpus: vec![],
        nics: vec![],
        netdevs: BTreeMap::new(),
        passed: vec![],
        means: Means::of(out),
    };
    let sections = parse_sections(out);
    for line in out.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["device", class, "0x10de", path] if class.starts_with("0x03") => {
                tree.gpus.push(parse_device_path(path))
            }
            ["device", class, _, path] if class.starts_with("0x02") => {
                tree.nics.push(parse_device_path(path))
            }
            ["device", class, _, path] if class.starts_with("0x0604") => {
                if let Some(address) = parse_device_path(path).pop() {
                    let acs = find_config_space(&sections, &address).map(|config| config.acs());
                    tree.bridges.insert(address, acs);
                }
            }
            ["passed", path] => tree.passed.push(parse_device_path(path)),
            ["netdev", netdev, address] if is_address(address) => {
                tree.netdevs
                    .insert((*netdev).to_owned(), (*address).to_owned());
            }
            _ => {}
        }
    }
    Ok(tree)
}

/// The addresses on a path of sysfs.
fn parse_device_path(path: &str) -> Vec<String> {
    let addresses = path.split('/').filter(|part| is_address(part));
    addresses.map(str::to_owned).collect()
}

impl PciBridgeTree {
    /// The first of these netdevs that is on no PCI bus, or not there.
    pub fn lacks<'n>(&self, netdevs: &'n [String]) -> Option<&'n str> {
        netdevs
            .iter()
            .find(|netdev| !self.netdevs.contains_key(*netdev))
            .map(String::as_str)
    }

    /// The bridges on the way to the GPUs and to these netdevs.
    pub fn above(&self, netdevs: &[String]) -> BTreeSet<String> {
        let desired: BTreeSet<&String> = netdevs
            .iter()
            .filter_map(|netdev| self.netdevs.get(netdev))
            .collect();
        let nics = self
            .nics
            .iter()
            .filter(|way| way.last().is_some_and(|address| desired.contains(address)));
        let ways = self.gpus.iter().chain(nics);
        ways.flatten()
            .filter(|address| self.bridges.contains_key(*address))
            .cloned()
            .collect()
    }

    /// The ACS words of these bridges; those without the capability are left out. An error where
    /// one could not be read.
    pub fn acs(&self, bridges: &BTreeSet<String>) -> Result<BTreeMap<String, u16>, Reason> {
        let mut words = BTreeMap::new();
        for bridge in bridges {
            match self.bridges.get(bridge) {
                Some(Ok(Some(word))) => drop(words.insert(bridge.clone(), *word)),
                Some(Err(reason)) => return Err(format!("{bridge}: {reason}").into()),
                Some(Ok(None)) | None => {}
            }
        }
        Ok(words)
    }

    /// True when there is such a bridge.
    pub fn has(&self, bridge: &str) -> bool {
        self.bridges.contains_key(bridge)
    }

    /// A device below one of these bridges that is passed through.
    pub fn passed_below(&self, bridges: &BTreeSet<String>) -> Option<&str> {
        let below = self
            .passed
            .iter()
            .find(|way| way.iter().any(|address| bridges.contains(address)));
        below.and_then(|way| way.last()).map(String::as_str)
    }
}
