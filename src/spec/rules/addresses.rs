//! Addresses of rails: every one a usable host address, and no two alike.

use super::{Checker, error, shown};
use crate::base::Diagnostic;
use crate::base::nodeset::fold;
use crate::spec::hosts::{Host, placeholders};
use crate::spec::model::Spec;
use ipnet::IpNet;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

pub fn check(checker: &mut Checker<'_>, spec: &Spec, hosts: &[Host]) {
    let mut usable = vec![true; spec.nodes.len()];
    for (index, group) in spec.nodes.iter().enumerate() {
        let Some(template) = group.nics.as_ref().and_then(|nics| nics.address.as_deref()) else { continue };
        if let Some(unknown) = placeholders(template).into_iter().find(|name| !matches!(*name, "rail" | "index")) {
            usable[index] = false;
            let finding = not_usable(format!("`{{{}}}` stands for nothing here", shown(unknown)));
            checker.find(&format!("nodes[{index}].nics.address"), "unknown placeholder", finding);
        }
    }
    for host in hosts {
        for rail in host.netdevs.iter().filter(|_| usable[host.group]) {
            let Some(why) = rail.address.as_deref().and_then(|address| why_not(address).map(|why| (address, why))) else { continue };
            usable[host.group] = false;
            let message = format!("{} would get `{}` on rail {}: {}", host.name, shown(why.0), rail.rail, why.1);
            checker.find(&format!("nodes[{}].nics.address", host.group), "gives no usable address", not_usable(message));
            break;
        }
    }
    doubled(checker, hosts, &usable);
}

fn not_usable(message: String) -> Diagnostic {
    error(
        "RW0114",
        message,
        "the link comes up without the address that RoCE takes its GID from",
        "write an address with its prefix length, such as `10.10.{rail}.{index}/24`",
    )
}

/// Why a text is no address for a host; nothing if it is one.
fn why_not(text: &str) -> Option<String> {
    let Ok(net) = text.parse::<IpNet>() else {
        let bare = text.parse::<IpAddr>().is_ok();
        return Some(if bare { "the prefix length is missing" } else { "no IP address with prefix length" }.to_owned());
    };
    let address = net.addr();
    if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
        return Some("no host can be reached there".to_owned());
    }
    match net {
        IpNet::V4(v4) if v4.prefix_len() < 31 && v4.addr() == v4.network() => Some(format!("that is the network {net} itself")),
        IpNet::V4(v4) if v4.prefix_len() < 31 && v4.addr() == v4.broadcast() => {
            Some("that is the broadcast address of its network".to_owned())
        }
        _ => None,
    }
}

/// Rails may be networks of their own with the same addresses, so alike are two hosts on one rail, or two rails of one host.
fn doubled(checker: &mut Checker<'_>, hosts: &[Host], usable: &[bool]) {
    let mut taken: HashMap<(u32, IpAddr), usize> = HashMap::new();
    let mut clashes: BTreeMap<(usize, usize), (String, Vec<&str>)> = BTreeMap::new();
    for (index, host) in hosts.iter().enumerate().filter(|(_, host)| usable[host.group]) {
        let mut own: HashMap<IpAddr, u32> = HashMap::new();
        for rail in &host.netdevs {
            let Some(net) = rail.address.as_deref().and_then(|text| text.parse::<IpNet>().ok()) else { continue };
            let address = net.addr();
            let other_rail = own.insert(address, rail.rail);
            let other_host = taken.insert((rail.rail, address), index).map(|other| &hosts[other]);
            let text = match (other_rail, other_host) {
                (Some(other), _) => format!("rails {other} and {} of {} both get {address}", rail.rail, host.name),
                (None, Some(other)) if other.name != host.name => {
                    format!("{} and {} both get {address} on rail {}", other.name, host.name, rail.rail)
                }
                _ => continue,
            };
            let groups = (other_host.map_or(host.group, |other| other.group), host.group);
            clashes.entry(groups).or_insert_with(|| (text, Vec::new())).1.push(&host.name);
        }
    }
    for ((_, group), (message, names)) in clashes {
        let more = if names.len() > 1 { format!("; hosts with such addresses: {}", shown(&fold(&names))) } else { String::new() };
        let finding = error(
            "RW0115",
            format!("{message}{more}"),
            "whichever answers first gets the traffic, and the other's connections break",
            "use `{index}` and `{rail}` in the address, or give each group its own network",
        );
        checker.find(&format!("nodes[{group}].nics.address"), "gives an address twice", finding);
    }
}
