//! Addresses of rails: every one a usable host address, and no two identical.

use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::hosts::{Host, Rail, list_placeholders};
use crate::spec::model::Spec;
use ipnet::IpNet;
use railwright_base::Diagnostic;
use railwright_base::nodeset::fold_node_set;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

/// Every address of every rail; needs all hosts.
pub fn check_rail_addresses(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: &[Host]) {
    let mut usable = vec![true; spec.nodes.len()];
    for (index, group) in spec.nodes.iter().enumerate() {
        let Some(template) = group.nics.as_ref().and_then(|nics| nics.address.as_deref()) else {
            continue;
        };
        let mut names = list_placeholders(template).into_iter();
        if let Some(unknown) = names.find(|name| !matches!(*name, "rail" | "index")) {
            usable[index] = false;
            let shown = truncate_user_text(unknown);
            let finding = new_address_error(format!("`{{{shown}}}` stands for nothing here"));
            let path = format!("nodes[{index}].nics.address");
            checker.find(&path, "unknown placeholder", finding);
        }
    }
    for host in hosts {
        if !usable[host.group] {
            continue;
        }
        if let Some(message) = describe_unusable_address(host) {
            usable[host.group] = false;
            let path = format!("nodes[{}].nics.address", host.group);
            let finding = new_address_error(message);
            checker.find(&path, "gives no usable address", finding);
        }
    }
    check_duplicate_addresses(checker, hosts, &usable);
}

/// The first rail of a host whose address is none.
fn describe_unusable_address(host: &Host) -> Option<String> {
    for rail in &host.netdevs {
        let Some(address) = &rail.address else {
            continue;
        };
        if let Some(why) = find_address_fault(address) {
            return Some(format!(
                "{} would get `{}` on rail {}: {why}",
                host.name,
                truncate_user_text(address),
                rail.rail
            ));
        }
    }
    None
}

fn new_address_error(message: String) -> Diagnostic {
    new_spec_error(
        "RW0114",
        message,
        "the link comes up without the address that RoCE takes its GID from",
        "write an address with its prefix length, such as `10.10.{rail}.{index}/24`",
    )
}

/// Why a text is no address for a host; nothing if it is one.
fn find_address_fault(text: &str) -> Option<String> {
    let Ok(net) = text.parse::<IpNet>() else {
        let bare = text.parse::<IpAddr>().is_ok();
        return Some(
            if bare {
                "the prefix length is missing"
            } else {
                "no IP address with prefix length"
            }
            .to_owned(),
        );
    };
    let address = net.addr();
    if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
        return Some("no host can be reached there".to_owned());
    }
    match net {
        IpNet::V4(v4) if v4.prefix_len() < 31 && v4.addr() == v4.network() => {
            Some(format!("that is the network {net} itself"))
        }
        IpNet::V4(v4) if v4.prefix_len() < 31 && v4.addr() == v4.broadcast() => {
            Some("that is the broadcast address of its network".to_owned())
        }
        _ => None,
    }
}

/// What the first clash of a pair of groups is, and all hosts with one.
struct Clash {
    message: String,
    hosts: BTreeSet<String>,
}

/// Rails may be networks of their own with the same addresses, so only two hosts on one rail, or
/// two rails of one host, collide.
fn check_duplicate_addresses(checker: &mut SpecChecker<'_>, hosts: &[Host], usable: &[bool]) {
    let hosts: Vec<&Host> = hosts.iter().filter(|host| usable[host.group]).collect();
    let mut clashes = AddressClashes::default();
    for host in &hosts {
        clashes.find_on_host(host);
    }
    let rails = hosts.iter().map(|host| host.netdevs.len()).max();
    for rail in 0..rails.unwrap_or(0) {
        clashes.find_on_rail(&hosts, rail);
    }
    for ((_, group), Clash { message, hosts }) in clashes.0 {
        let hosts: Vec<String> = hosts.into_iter().collect();
        report_address_clash(checker, group, &message, &hosts);
    }
}

/// Clashes by the groups of the two hosts.
#[derive(Default)]
struct AddressClashes(BTreeMap<(usize, usize), Clash>);

impl AddressClashes {
    fn find_on_host(&mut self, host: &Host) {
        let mut own: HashMap<IpAddr, u32> = HashMap::new();
        for rail in &host.netdevs {
            let Some(address) = address_of(rail) else {
                continue;
            };
            let rail = rail.rail;
            if let Some(other) = own.insert(address, rail) {
                let name = &host.name;
                let message = format!("rails {other} and {rail} of {name} both get {address}");
                self.add(host, host, message);
            }
        }
    }

    /// Rail by rail, so that the addresses of one rail only are in memory.
    fn find_on_rail(&mut self, hosts: &[&Host], rail: usize) {
        let mut taken: HashMap<IpAddr, &Host> = HashMap::with_capacity(hosts.len());
        for host in hosts {
            let Some(address) = host.netdevs.get(rail).and_then(address_of) else {
                continue;
            };
            if let Some(other) = taken.insert(address, host)
                && other.name != host.name
            {
                let (one, two) = (&other.name, &host.name);
                let message = format!("{one} and {two} both get {address} on rail {rail}");
                self.add(other, host, message);
            }
        }
    }

    /// The first message of a pair of groups stays.
    fn add(&mut self, first: &Host, second: &Host, message: String) {
        let clash = self.0.entry((first.group, second.group));
        let clash = clash.or_insert_with(|| Clash {
            message,
            hosts: BTreeSet::new(),
        });
        clash
            .hosts
            .extend([first.name.clone(), second.name.clone()]);
    }
}

fn address_of(rail: &Rail) -> Option<IpAddr> {
    rail.address
        .as_deref()?
        .parse::<IpNet>()
        .ok()
        .map(|net| net.addr())
}

fn report_address_clash(
    checker: &mut SpecChecker<'_>,
    group: usize,
    message: &str,
    hosts: &[String],
) {
    let more = if hosts.len() > 2 {
        format!(
            "; in all, {} share addresses",
            truncate_user_text(&fold_node_set(hosts))
        )
    } else {
        String::new()
    };
    let finding = new_spec_error(
        "RW0115",
        format!("{message}{more}"),
        "whichever answers last gets the traffic, and the other's connections break",
        "use `{index}` and `{rail}` in the address, or give each group its own network",
    );
    checker.find(
        &format!("nodes[{group}].nics.address"),
        "gives an address twice",
        finding,
    );
}
