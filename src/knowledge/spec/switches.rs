//! From groups of switches to single ones: names, how each is reached, which of its ports are the
//! fabric's.

use super::cabling::{CableEnd, Cabling};
use super::hosts::{HostSsh, fill_host_template, group_ssh};
use super::model::{Api, ApiKind, Spec, Ssh, SwitchGroup};
use railwright_base::nodeset::{expand_node_set, expand_ports, natural_order};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One switch of the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct SwitchNode {
    /// Its name.
    pub name: String,
    /// The index of its group in `Spec::switches`.
    pub group: usize,
    /// How it is reached; nothing where the spec says of it what it is, and no more.
    pub reach: Option<SwitchReach>,
    /// The ports of the fabric, shared by all switches of a group that names them.
    pub ports: Arc<[String]>,
}

/// How a switch is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SwitchReach {
    /// Over SSH, like a host.
    Ssh(HostSsh),
    /// Over its API.
    Api(SwitchApi),
}

/// How the API of a switch is reached; paths are as they stand in the spec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchApi {
    /// Which.
    pub kind: ApiKind,
    /// What to connect to.
    pub address: String,
    /// The TCP port.
    pub port: u16,
    /// The user there.
    pub user: String,
    /// What the user's password is called among the secrets.
    pub password: String,
    /// The PEM file that pins the certificate, or `sha256:` and its fingerprint.
    pub certificate: String,
}

/// Where the certificate of a switch is pinned that the spec says nothing of.
const CERTIFICATE_DEFAULT: &str = "certificates/{name}.pem";

impl SwitchNode {
    /// Whether it is read and changed: it can be reached, and nobody works on it.
    pub fn is_managed(&self) -> bool {
        self.reach.is_some()
    }
}

/// All switches; names and ports that are no node-sets are reported by the rules of the spec.
pub fn switches_of(spec: &Spec) -> Vec<SwitchNode> {
    let mut out: Vec<SwitchNode> = Vec::new();
    let common = spec.ssh.ssh().cloned().unwrap_or_default();
    for (group, switch) in spec.switches.iter().enumerate() {
        let ports: Arc<[String]> = match &switch.ports {
            Some(ports) => expand_ports(ports).unwrap_or_default().into(),
            None => Arc::default(),
        };
        let ssh = switch.ssh.as_ref();
        let ssh = ssh.map(|own| resolve_switch_ssh(own, &common));
        for name in expand_node_set(&switch.name).unwrap_or_default() {
            let reach = if switch.maintenance {
                None
            } else {
                resolve_switch_reach(switch, group, &name, out.len() + 1, ssh.as_ref())
            };
            out.push(SwitchNode {
                name,
                group,
                reach,
                ports: Arc::clone(&ports),
            });
        }
    }
    out
}

/// Where the spec names no ports of a switch, its ports are those that something is plugged into.
pub fn take_ports(switches: &mut [SwitchNode], spec: &Spec, cabling: &Cabling) {
    let mut ends: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for cable in &cabling.cables {
        for CableEnd { device, port } in [&cable.from, &cable.to] {
            ends.entry(device).or_default().push(port);
        }
    }
    for switch in switches {
        if spec.switches[switch.group].ports.is_some() {
            continue;
        }
        let mut ports = ends.get(&*switch.name).cloned().unwrap_or_default();
        ports.sort_by(|a, b| natural_order(a, b));
        switch.ports = ports.into_iter().map(str::to_owned).collect();
    }
}

fn resolve_switch_reach(
    switch: &SwitchGroup,
    group: usize,
    name: &str,
    index: usize,
    ssh: Option<&HostSsh>,
) -> Option<SwitchReach> {
    if let Some(ssh) = ssh {
        return Some(SwitchReach::Ssh(ssh.for_host(name, index)));
    }
    let (kind, api) = switch.apis().next()?;
    Some(SwitchReach::Api(api_of(
        kind,
        api,
        SwitchGroup::password_name(group, kind),
        name,
        index,
    )))
}

fn api_of(kind: ApiKind, api: &Api, password: String, name: &str, index: usize) -> SwitchApi {
    SwitchApi {
        kind,
        address: api.address.as_ref().map_or_else(
            || name.to_owned(),
            |template| fill_host_template(template, name, index),
        ),
        port: api.port.unwrap_or(kind.port()),
        user: api.user.clone(),
        password,
        certificate: fill_host_template(
            api.certificate.as_deref().unwrap_or(CERTIFICATE_DEFAULT),
            name,
            index,
        ),
    }
}

/// Keys, files of pinned keys and the way there are those of the cluster unless a group says
/// others; its user and its port are of hosts.
fn resolve_switch_ssh(own: &Ssh, cluster: &Ssh) -> HostSsh {
    let common = Ssh {
        user: None,
        port: None,
        address: None,
        read_only: None,
        ..cluster.clone()
    };
    group_ssh(own, &common)
}
