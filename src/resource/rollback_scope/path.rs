//! What lies on the path of our own connection: a change of it can end in a host that nobody
//! reaches any more.

use crate::sysctl::settings::key_path;
use crate::{Action, DesiredResource, ResourceDiff, kind_named};
use std::collections::BTreeSet;

const SERVER: &str = "the SSH server lets us in by it";
const FILTER: &str = "a packet filter can shut us out";
const NETWORK: &str = "the host's network is configured by it";
const LOGIN: &str = "our login becomes root by it";

/// The configuration that the SSH server reads on a reload.
pub const SERVER_FOLDER: &str = "/etc/ssh/";

/// Files, by how their paths begin: those of OpenSSH, of the four network managers that `link`
/// knows, of the packet filters that distributions start at boot, and of what decides about a login
/// (sshd_config(5), netplan(5), systemd.network(5), NetworkManager.conf(5), interfaces(5), nft(8),
/// firewalld(1), ufw(8), pam.conf(5), sudoers(5)).
const FILES: &[(&str, &str)] = &[
    (SERVER_FOLDER, SERVER),
    ("/etc/default/ssh", SERVER),
    ("/etc/sysconfig/sshd", SERVER),
    ("/etc/hosts.allow", SERVER),
    ("/etc/hosts.deny", SERVER),
    ("/etc/nftables", FILTER),
    ("/etc/sysconfig/nftables", FILTER),
    ("/etc/iptables", FILTER),
    ("/etc/sysconfig/iptables", FILTER),
    ("/etc/sysconfig/ip6tables", FILTER),
    ("/etc/firewalld/", FILTER),
    ("/etc/ufw/", FILTER),
    ("/etc/default/ufw", FILTER),
    ("/etc/netplan/", NETWORK),
    ("/etc/systemd/network/", NETWORK),
    ("/etc/systemd/networkd.conf", NETWORK),
    ("/etc/NetworkManager/", NETWORK),
    ("/etc/network/", NETWORK),
    ("/etc/sysconfig/network-scripts/", NETWORK),
    ("/etc/pam.d/", LOGIN),
    ("/etc/security/access", LOGIN),
    ("/etc/sudoers", LOGIN),
];

/// Units, by their names without the suffix.
const UNITS: &[(&str, &str)] = &[
    ("ssh", SERVER),
    ("sshd", SERVER),
    ("nftables", FILTER),
    ("iptables", FILTER),
    ("ip6tables", FILTER),
    ("netfilter-persistent", FILTER),
    ("firewalld", FILTER),
    ("ufw", FILTER),
    ("systemd-networkd", NETWORK),
    ("NetworkManager", NETWORK),
    ("networking", NETWORK),
    ("network", NETWORK),
];

/// Where systemd looks for units that an administrator wrote or changed, each with its folder of
/// drop-ins (systemd.unit(5)).
const UNIT_FOLDERS: [&str; 2] = ["/etc/systemd/system/", "/usr/local/lib/systemd/system/"];

/// Packages whose absence nobody can log in to fix. No package is rolled back by itself, so that is
/// refused.
const PACKAGES: &[(&str, &str)] = &[
    ("openssh-server", SERVER),
    ("sudo", LOGIN),
    ("netplan.io", NETWORK),
    ("network-manager", NETWORK),
    ("NetworkManager", NETWORK),
    ("ifupdown", NETWORK),
];

/// Why a change of this resource needs an automatic rollback; nothing where it needs none. `ours`
/// are the netdevs that carry our own connection.
pub fn find_rollback_reason(
    resource: &DesiredResource,
    diff: &ResourceDiff,
    ours: &BTreeSet<String>,
) -> Option<String> {
    let interrupted = diff
        .interrupts_netdevs
        .iter()
        .map(String::as_str)
        .find(|netdev| ours.contains(*netdev));
    let own = resource
        .text("netdev")
        .filter(|netdev| resource.kind == "link" && ours.contains(*netdev));
    if let Some(netdev) = interrupted.or(own) {
        return Some(format!("{netdev} carries our own connection"));
    }
    if kind_named(&resource.kind).is_some_and(|kind| kind.needs_rollback_timer(resource)) {
        return Some("its module asks for an automatic rollback".to_owned());
    }
    let of_switch = diff.actions.iter().find_map(|action| match action {
        Action::EditSwitch { system, .. } | Action::SaveSwitch { system } => Some(*system),
        _ => None,
    });
    if let Some(system) = of_switch {
        return Some(system.automatic_rollback_reason().to_owned());
    }
    let (name, reason) = find_reason_by_kind(resource, ours)?;
    Some(format!("{name}: {reason}"))
}

/// The file, unit, setting or package by which we reach the host, and how.
fn find_reason_by_kind<'w>(
    resource: &'w DesiredResource,
    ours: &BTreeSet<String>,
) -> Option<(&'w str, &'static str)> {
    match resource.kind.as_str() {
        "file" => {
            let path = resource.text("path")?;
            Some((path, find_file_reason(path)?))
        }
        "systemd_unit" => {
            let name = resource.text("name")?;
            let bare = name.rsplit_once('.').map_or(name, |(bare, _)| bare);
            Some((name, find_unit_reason(bare)?))
        }
        "sysctl" => {
            let key = resource.text("key")?;
            let path = key_path(key);
            let (netdev, _) = ["net/ipv4/conf/", "net/ipv6/conf/"]
                .iter()
                .find_map(|start| path.strip_prefix(start))?
                .split_once('/')?;
            let reason = "it holds for the netdev that carries our own connection";
            (netdev == "all" || ours.contains(netdev)).then_some((key, reason))
        }
        "package" if resource.text("state") == Some("absent") => {
            let name = resource.text("name")?;
            let bare = name.split(':').next()?;
            let (_, reason) = PACKAGES.iter().find(|(package, _)| *package == bare)?;
            Some((name, *reason))
        }
        _ => None,
    }
}

fn find_file_reason(path: &str) -> Option<&'static str> {
    if path.ends_with("/.ssh/authorized_keys") {
        return Some(SERVER);
    }
    // `ssh.service` as well as `ssh.service.d/own.conf`.
    let of_unit = UNIT_FOLDERS
        .iter()
        .find_map(|folder| path.strip_prefix(folder))
        .and_then(|rest| rest.split_once('.'));
    let of_unit = of_unit.and_then(|(bare, _)| find_unit_reason(bare));
    of_unit.or_else(|| {
        FILES
            .iter()
            .find(|(start, _)| path.starts_with(start))
            .map(|(_, reason)| *reason)
    })
}

fn find_unit_reason(bare: &str) -> Option<&'static str> {
    UNITS
        .iter()
        .find(|(unit, _)| *unit == bare)
        .map(|(_, reason)| *reason)
}
