//! From groups of switches to single ones: names, how each is reached, which of its ports are the fabric's.

use super::cabling::{Cabling, End};
use super::hosts::HostSsh;
use super::model::{Spec, Ssh};
use crate::base::nodeset::{expand, expand_ports, natural_order};
use std::collections::BTreeMap;

/// One switch of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchNode {
    /// Its name.
    pub name: String,
    /// The index of its group in `Spec::switches`.
    pub group: usize,
    /// How it is reached; nothing where the spec says of it what it is, and no more.
    pub ssh: Option<HostSsh>,
    /// The ports of the fabric.
    pub ports: Vec<String>,
}

impl SwitchNode {
    /// Whether it is read and changed: it can be reached, and nobody works on it.
    pub fn is_managed(&self) -> bool {
        self.ssh.is_some()
    }
}

/// All switches; names and ports that are no node-sets are told by the rules of the spec.
pub fn switches_of(spec: &Spec) -> Vec<SwitchNode> {
    let mut out: Vec<SwitchNode> = Vec::new();
    let common = spec.ssh.ssh().cloned().unwrap_or_default();
    for (group, switch) in spec.switches.iter().enumerate() {
        let ports = switch.ports.as_deref().and_then(|ports| expand_ports(ports).ok()).unwrap_or_default();
        for name in expand(&switch.name).unwrap_or_default() {
            let ssh = switch.ssh.as_ref().filter(|_| !switch.maintenance).map(|own| reached(&name, out.len() + 1, own, &common));
            out.push(SwitchNode { name, group, ssh, ports: ports.clone() });
        }
    }
    out
}

/// Where the spec names no ports of a switch, its ports are those that something is plugged into.
pub fn take_ports(switches: &mut [SwitchNode], spec: &Spec, cabling: &Cabling) {
    let mut ends: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for End { device, port } in cabling.cables.iter().flat_map(|cable| [&cable.from, &cable.to]) {
        ends.entry(device).or_default().push(port);
    }
    for switch in switches.iter_mut().filter(|switch| spec.switches[switch.group].ports.is_none()) {
        let mut ports: Vec<String> = ends.get(switch.name.as_str()).into_iter().flatten().map(|port| (*port).to_owned()).collect();
        ports.sort_by(|a, b| natural_order(a, b));
        switch.ports = ports;
    }
}

/// Keys, files of pinned keys and the way there are those of the cluster unless a group says others; its user and its port are of hosts.
fn reached(name: &str, index: usize, own: &Ssh, cluster: &Ssh) -> HostSsh {
    let common = Ssh { user: None, port: None, address: None, read_only: None, ..cluster.clone() };
    super::hosts::host_ssh(name, index, own, &common)
}
