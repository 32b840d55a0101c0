//! Decodes what the `rails` probe says of a host: netdevs, RDMA ports with their GIDs, test
//! programs.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A netdev.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RailNetdev {
    /// False when there is none of that name.
    pub present: bool,
    /// `up`, `down`, `unknown` (virtual devices that do not say).
    pub operstate: String,
    /// `None` while the device is down: the kernel then refuses to say.
    pub carrier: Option<bool>,
    /// Bytes.
    pub mtu: Option<u32>,
    /// Addresses.
    pub addresses: Vec<IpAddr>,
}

/// One GID of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RailGid {
    /// Its index, which depends on the order in which addresses came and is re-used: never assumed.
    pub index: u32,
    /// Its value as an address; RoCE v2 GIDs of IPv4 addresses are IPv4-mapped and given as IPv4
    /// here.
    pub address: IpAddr,
    /// `RoCE v2`, `IB/RoCE v1`.
    pub kind: String,
    /// The netdev that it is bound to.
    pub netdev: String,
}

/// One port of an RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RailRdmaPort {
    /// The device.
    pub device: String,
    /// The port, from 1.
    pub number: u8,
    /// `4: ACTIVE`, `1: DOWN`.
    pub state: String,
    /// `5: LinkUp`, `3: Disabled`, `2: Polling`.
    pub phys_state: String,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: String,
    /// `200 Gb/sec (4X HDR)`.
    pub rate: String,
    /// The netdev below it.
    pub netdev: Option<String>,
    /// RDMA in software: only the rxe driver says whose child its device is (torvalds/linux:
    /// drivers/infiniband/sw/rxe/rxe_verbs.c, `parent_show`). It tells the rate of its netdev,
    /// which it does not reach.
    pub in_software: bool,
    /// Its GIDs, empty slots left out.
    pub gids: Vec<RailGid>,
    function_netdevs: Vec<String>,
}

/// Facts of a host's rails.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RailFacts {
    /// By name.
    pub netdevs: BTreeMap<String, RailNetdev>,
    /// All ports.
    pub ports: Vec<RailRdmaPort>,
    /// Programs that are there: `ib_write_bw`, `nft`.
    pub tools: BTreeSet<String>,
}

impl RailFacts {
    /// Reads the probe's output; what makes no sense is left out.
    pub fn parse(text: &str) -> RailFacts {
        let mut facts = RailFacts::default();
        let mut section: Vec<&str> = Vec::new();
        let mut rdma = String::new();
        for line in text.lines() {
            if let Some(head) = line.strip_prefix('@') {
                section = head.split_whitespace().collect();
                facts.begin(&section);
            } else {
                match section.as_slice() {
                    ["netdev", name, ..] => facts.netdev_line(name, line),
                    ["port", ..] => facts.port_line(line),
                    ["rdma", ..] => rdma.push_str(line),
                    ["tools", ..] => drop(facts.tools.insert(line.trim().to_owned())),
                    _ => {}
                }
            }
        }
        facts.bind_netdevs(&rdma);
        facts
    }

    /// The port of a netdev. That of a VLAN is the port which has its GIDs, or sits on what the
    /// VLAN is named for.
    pub fn port_of(&self, netdev: &str) -> Option<&RailRdmaPort> {
        if let Some(port) = self.find_port_on(netdev) {
            return Some(port);
        }
        for port in &self.ports {
            if port.gids.iter().any(|gid| gid.netdev == netdev) {
                return Some(port);
            }
        }
        self.find_port_on(netdev.rsplit_once('.')?.0)
    }

    fn find_port_on(&self, netdev: &str) -> Option<&RailRdmaPort> {
        self.ports
            .iter()
            .find(|port| port.netdev.as_deref() == Some(netdev))
    }

    fn begin(&mut self, section: &[&str]) {
        match section {
            ["netdev", name] => {
                self.netdevs.insert(
                    (*name).to_owned(),
                    RailNetdev {
                        present: true,
                        ..RailNetdev::default()
                    },
                );
            }
            ["port", device, number] => {
                self.ports.push(RailRdmaPort {
                    device: (*device).to_owned(),
                    number: number.parse().unwrap_or(1),
                    ..RailRdmaPort::default()
                });
            }
            _ => {}
        }
    }

    fn netdev_line(&mut self, name: &str, line: &str) {
        let Some(netdev) = self.netdevs.get_mut(name) else {
            return;
        };
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "absent" => netdev.present = false,
            "operstate" => netdev.operstate = value.to_owned(),
            "carrier" => netdev.carrier = Some(value == "1"),
            "mtu" => netdev.mtu = value.parse().ok(),
            "inet" | "inet6" => netdev.addresses.extend(bare_address(value)),
            _ => {}
        }
    }

    fn port_line(&mut self, line: &str) {
        let Some(port) = self.ports.last_mut() else {
            return;
        };
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match key {
            "state" => port.state = value.to_owned(),
            "phys_state" => port.phys_state = value.to_owned(),
            "link_layer" => port.link_layer = value.to_owned(),
            "rate" => port.rate = value.to_owned(),
            "netdev" => (port.netdev, port.in_software) = (Some(value.to_owned()), true),
            "function-netdev" => port.function_netdevs.push(value.to_owned()),
            "gid" => port.gids.extend(parse_gid(value)),
            _ => {}
        }
    }

    /// Which netdev a port sits on: what `rdma -j link` says; else the parent of a software device;
    /// else the netdev that its GIDs name; else the only netdev of its PCI function.
    fn bind_netdevs(&mut self, rdma_json: &str) {
        let links: Vec<Value> = serde_json::from_str(rdma_json).unwrap_or_default();
        for port in &mut self.ports {
            if let Some(netdev) = find_link_netdev(&links, port) {
                port.netdev = Some(netdev);
            } else if port.netdev.is_none() {
                port.netdev = find_gid_netdev(port).or_else(|| port.only_function_netdev());
            }
        }
    }
}

impl RailRdmaPort {
    fn only_function_netdev(&self) -> Option<String> {
        match self.function_netdevs.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    }
}

/// The netdev of a port by `rdma -j link`.
fn find_link_netdev(links: &[Value], port: &RailRdmaPort) -> Option<String> {
    let link = links.iter().find(|link| {
        link["ifname"].as_str() == Some(port.device.as_str())
            && link["port"].as_u64() == Some(u64::from(port.number))
    })?;
    Some(link["netdev"].as_str()?.to_owned())
}

/// The netdev that the GIDs of a port name.
fn find_gid_netdev(port: &RailRdmaPort) -> Option<String> {
    let mut netdevs = port.gids.iter().map(|gid| &gid.netdev);
    netdevs
        .find(|netdev| !netdev.is_empty() && *netdev != "-")
        .cloned()
}

/// `192.0.2.1/24` or `192.0.2.1`.
pub fn bare_address(text: &str) -> Option<IpAddr> {
    text.split('/').next()?.trim().parse().ok()
}

/// `1 0000:...:ffff:c0a8:4d01 eth1 RoCE v2`.
fn parse_gid(value: &str) -> Option<RailGid> {
    let mut words = value.splitn(4, ' ');
    let index = words.next()?.parse().ok()?;
    let address: std::net::Ipv6Addr = words.next()?.parse().ok()?;
    let netdev = words.next()?.to_owned();
    Some(RailGid {
        index,
        address: address.to_canonical(),
        netdev,
        kind: words.next().unwrap_or_default().trim().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_soft_roce_port_below_a_make_believe_nic() {
        let facts = RailFacts::parse(crate::samples::RAILS);
        let netdev = &facts.netdevs["ens1f0np0"];
        assert_eq!(
            (netdev.operstate.as_str(), netdev.carrier, netdev.mtu),
            ("up", Some(true), Some(9000))
        );
        let port = facts.port_of("ens1f0np0").unwrap();
        assert_eq!(
            (port.device.as_str(), port.number, port.state.as_str()),
            ("rocep193s0", 1, "4: ACTIVE")
        );
        let gid = port.gids.iter().find(|g| g.address.is_ipv4()).unwrap();
        assert_eq!(
            (
                gid.index,
                gid.kind.as_str(),
                gid.address.to_string().as_str()
            ),
            (1, "RoCE v2", "192.168.77.1")
        );
        assert!(facts.tools.contains("ib_write_bw"));
    }

    #[test]
    fn without_the_rdma_tool_the_netdev_comes_from_the_gids_or_the_function() {
        let text = "@port mlx5_0 1\n\
                    gid 3 0000:0000:0000:0000:0000:ffff:c000:0201 ens4 RoCE v2\n\
                    @port mlx5_1 1\n\
                    function-netdev ens5\n\
                    @rdma\n";
        let facts = RailFacts::parse(text);
        assert_eq!(facts.port_of("ens4").unwrap().device, "mlx5_0");
        assert_eq!(facts.port_of("ens5").unwrap().device, "mlx5_1");
    }

    proptest! {
        #[test]
        fn no_output_panics(text in "(@netdev|@port|@rdma|gid|mtu|[ -~\n]){0,60}") {
            RailFacts::parse(&text);
        }
    }
}
