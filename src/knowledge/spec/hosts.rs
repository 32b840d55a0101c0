//! From groups of hosts to single hosts: names, rails with their netdevs and addresses, how each is
//! reached.

use super::model::{NicFirmware, Nics, NodeGroup, Reach, Ssh};
use railwright_base::nodeset::NodeSetError;
use railwright_base::nodeset::expand_node_set;
use std::sync::Arc;

/// One host of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Its place in the cluster, from 1, in the order of the spec.
    pub index: usize,
    /// The index of its group in `Spec::nodes`.
    pub group: usize,
    /// The RDMA netdevs, by rail.
    pub netdevs: Vec<Rail>,
    /// Its name as a node of the Kubernetes cluster; its own in small letters unless the spec says
    /// it.
    pub node: String,
    /// How it is reached: the cluster's `ssh` with what the group says over it. Nothing where
    /// nobody may log in to it: it has no steps, and is no target.
    pub ssh: Option<HostSsh>,
}

/// One RDMA NIC of a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Rail {
    /// The rail, from 0.
    pub rail: u32,
    /// The netdev that carries the address.
    pub netdev: String,
    /// The netdev of the NIC's port: the parent of the rail's VLAN, or the same.
    pub port: String,
    /// The rail's VLAN, if it has one.
    pub vlan: Option<u16>,
    /// Its address in CIDR form, if the spec sets one.
    pub address: Option<String>,
    /// The NIC's model.
    pub model: String,
    /// Settings of its firmware, shared by all NICs of a group.
    pub firmware: Option<Arc<NicFirmware>>,
    /// The PCI address or MAC address whose netdev gets the name, if the spec names one.
    pub device: Option<String>,
}

/// How a host is reached; paths are as they stand in the spec. What the spec leaves open stays open
/// here, so that `~/.ssh/config` can fill it in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSsh {
    /// The remote user.
    pub user: Option<String>,
    /// The TCP port.
    pub port: Option<u16>,
    /// What to connect to: the host's own name unless the spec says otherwise; `local` is this
    /// machine itself.
    pub address: String,
    /// The known_hosts file with the pinned keys.
    pub host_keys: Option<String>,
    /// Private key files, shared by all hosts of a group.
    pub identities: Arc<[String]>,
    /// Jump hosts, first hop first; shared as well.
    pub jump: Arc<[String]>,
    /// Ask `ssh -G` for what is left open.
    pub config: bool,
    /// The user may only read.
    pub read_only: bool,
}

/// The hosts of a group, without regard to other groups; `first_index` is the place of its first
/// host.
pub fn hosts_of(
    group: &NodeGroup,
    group_index: usize,
    first_index: usize,
    cluster: &Reach,
) -> Result<Vec<Host>, NodeSetError> {
    let names = expand_node_set(&group.name)?;
    let shared = resolve_host_ssh(group.ssh.as_ref(), cluster);
    let nics = group.nics.as_ref();
    let firmware = nics.and_then(|nics| nics.firmware.clone()).map(Arc::new);
    let mut hosts = Vec::with_capacity(names.len());
    for (index, name) in (first_index..).zip(names) {
        let netdevs = match nics {
            Some(nics) => build_rails(nics, firmware.as_ref(), &name, index),
            None => Vec::new(),
        };
        let ssh = shared.as_ref().map(|shared| shared.for_host(&name, index));
        // A kubelet that is given no name makes small letters of its host's (kubernetes/kubernetes:
        // pkg/util/node, `GetHostname`).
        let node = match &group.kubernetes_node {
            Some(pattern) => fill_host_template(pattern, &name, index),
            None => name.to_lowercase(),
        };
        hosts.push(Host {
            name,
            index,
            group: group_index,
            netdevs,
            node,
            ssh,
        });
    }
    Ok(hosts)
}

/// The most rails of a host; machines with sixteen exist. Beyond it the number is an error, and is
/// not unfolded.
pub const RAILS_MAX: u32 = 32;

fn build_port_name(nics: &Nics, rail: u32) -> String {
    fill_template(&nics.netdev, &[("rail", u64::from(rail))])
}

/// The netdev that carries the address of a rail: its VLAN, or the port itself.
pub fn rail_netdev(nics: &Nics, rail: u32) -> String {
    let port = build_port_name(nics, rail);
    match nics.vlan {
        Some(id) => format!("{port}.{id}"),
        None => port,
    }
}

/// The numbers of the rails.
fn rail_numbers(nics: &Nics) -> std::ops::Range<u32> {
    0..nics.rails.unwrap_or(1).min(RAILS_MAX)
}

/// The netdevs of the rails of a group, each with its port.
pub fn rail_netdevs(group: &NodeGroup) -> Vec<(String, String)> {
    let Some(nics) = &group.nics else {
        return Vec::new();
    };
    rail_numbers(nics)
        .map(|rail| (rail_netdev(nics, rail), build_port_name(nics, rail)))
        .collect()
}

fn build_rails(
    nics: &Nics,
    firmware: Option<&Arc<NicFirmware>>,
    host: &str,
    index: usize,
) -> Vec<Rail> {
    let naming = nics.naming.as_ref();
    let devices = naming.map(|naming| naming.mac.get(host).unwrap_or(&naming.pci));
    let mut rails = Vec::new();
    for rail in rail_numbers(nics) {
        let values = [("rail", u64::from(rail)), ("index", index as u64)];
        let address = nics.address.as_ref();
        let device = devices.and_then(|devices| devices.get(rail as usize));
        rails.push(Rail {
            rail,
            netdev: rail_netdev(nics, rail),
            port: build_port_name(nics, rail),
            vlan: nics.vlan,
            address: address.map(|template| fill_template(template, &values)),
            model: nics.model.clone(),
            firmware: firmware.cloned(),
            device: device.map(|device| device.to_ascii_lowercase()),
        });
    }
    rails
}

/// A group that says how it is reached is reached so, whatever is said of the others.
fn resolve_host_ssh(group: Option<&Reach>, cluster: &Reach) -> Option<HostSsh> {
    let (own, common) = (
        group.unwrap_or(cluster).ssh()?,
        cluster.ssh().cloned().unwrap_or_default(),
    );
    Some(group_ssh(own, &common))
}

/// How the hosts of a group are reached. The address is a template still: `for_host` fills it in.
pub(super) fn group_ssh(group: &Ssh, cluster: &Ssh) -> HostSsh {
    let address = group.address.as_deref().or(cluster.address.as_deref());
    let host_keys = group.host_keys.as_ref().or(cluster.host_keys.as_ref());
    HostSsh {
        user: group.user.as_ref().or(cluster.user.as_ref()).cloned(),
        port: group.port.or(cluster.port),
        address: address.unwrap_or("{name}").to_owned(),
        host_keys: host_keys.cloned(),
        identities: first_not_empty(&group.identities, &cluster.identities).into(),
        jump: first_not_empty(&group.jump, &cluster.jump).into(),
        config: group.config.or(cluster.config).unwrap_or(false),
        read_only: group.read_only.or(cluster.read_only).unwrap_or(false),
    }
}

fn first_not_empty<'a>(own: &'a [String], common: &'a [String]) -> &'a [String] {
    if own.is_empty() { common } else { own }
}

impl HostSsh {
    /// How one host of the group is reached.
    pub(super) fn for_host(&self, name: &str, index: usize) -> HostSsh {
        HostSsh {
            address: fill_host_template(&self.address, name, index),
            ..self.clone()
        }
    }
}

/// The names in braces of a template, such as `rail` of `ens{rail}f0np0`.
pub fn list_placeholders(template: &str) -> Vec<&str> {
    template
        .split('{')
        .skip(1)
        .map(|part| part.split('}').next().unwrap_or(part))
        .collect()
}

pub(super) fn fill_host_template(template: &str, name: &str, index: usize) -> String {
    fill_template(template, &[("index", index as u64)]).replace("{name}", name)
}

fn fill_template(template: &str, values: &[(&str, u64)]) -> String {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("{{{name}}}"), &value.to_string());
    }
    text
}
