//! Every RDMA device of a host with its ports and GIDs: one section of sh, and its decoder. Devices
//! are found by their netdev: names change when udev or a driver renames them (`rxe0` becomes
//! `rocep193s0`).

use crate::sections::{self, SHELL};
use crate::{Read, ReadResults};
use railwright_base::Reason;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// One entry of a port's GID table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GidTableEntry {
    /// Its place in the table; places are used again, so it says nothing by itself.
    pub index: u32,
    /// The address; an IPv4 address where the GID is a mapped one.
    pub address: IpAddr,
    /// `RoCE v2`, `IB/RoCE v1`; empty on InfiniBand.
    pub kind: String,
    /// The netdev that it belongs to (`eth0.100` for a VLAN).
    pub netdev: Option<String>,
}

/// One port of an RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RdmaPort {
    /// Its number, from 1.
    pub number: u32,
    /// `ACTIVE`, `DOWN`, `INIT`, `ARMED`.
    pub state: String,
    /// `LinkUp`, `Polling`, `Disabled`.
    pub physical_state: String,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: String,
    /// `100 Gb/sec (4X EDR)`.
    pub rate: String,
    /// The MTU of RDMA packets in bytes (256 to 4096), where `ibv_devinfo` is on the host; sysfs
    /// does not have it.
    pub active_mtu: Option<u32>,
    /// The entries that are in use.
    pub gids: Vec<GidTableEntry>,
}

/// One RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RdmaDevice {
    /// Its name now.
    pub name: String,
    /// The netdev of its first port; none on InfiniBand without IPoIB.
    pub netdev: Option<String>,
    /// `5054:00ff:fe12:3456`.
    pub node_guid: String,
    /// The firmware's version; empty on soft devices.
    pub firmware: String,
    /// A Soft-RoCE device (it alone has a file `parent`).
    pub is_soft_roce: bool,
    /// The device below: a PCI address; none on soft devices.
    pub device: Option<String>,
    /// Its ports.
    pub ports: Vec<RdmaPort>,
}

/// Empty slots of the GID table read as zeros, and their type fails with EINVAL: both are left out
/// on the host, because Soft-RoCE has 1024 slots. `rdma` is only asked where RDMA is loaded
/// already: its netlink family would load it.
pub fn read_script() -> String {
    format!(
        r#"{SHELL}cd "$R/sys/class/infiniband" 2>/dev/null || exit 1
for d in *; do [ -d "$d/ports" ] || continue
printf '\n== device %s\n' "$d"
p=$(cd -P "$d/device" 2>/dev/null && pwd -P) && printf '|device=%s\n' "${{p##*/}}"
for a in node_guid fw_ver parent; do v=; {{ read -r v <"$d/$a"; }} 2>/dev/null; [ -n "$v" ] && printf '|%s=%s\n' "$a" "$v"; done
for q in "$d"/ports/*; do [ -d "$q" ] || continue; printf '\n== port %s\n' "${{q##*/}}"
(cd "$q" && grep -s . state phys_state link_layer rate gids/* gid_attrs/types/* gid_attrs/ndevs/* /dev/null) | sed '/:0000:0000:0000:0000:0000:0000:0000:0000$/d; s/^/|/'
done; done
command -v rdma >/dev/null 2>&1 && said rdma rdma -j link
command -v ibv_devinfo >/dev/null 2>&1 && {{ printf '\n== ibv 0\n'; ibv_devinfo 2>/dev/null | grep -E 'hca_id:|port:|active_mtu:' | sed 's/^/|/'; }}
exit 0
"#
    )
}

/// Every RDMA device; none where the host has no RDMA at all.
pub fn rdma_devices(answers: &ReadResults) -> Result<Vec<RdmaDevice>, Reason> {
    match answers.output(&Read::RdmaLinks)? {
        (0, out) => Ok(parse_rdma_devices(out)),
        (1, _) => Ok(Vec::new()),
        (code, _) => Err(format!("the read of RDMA devices ended with status {code}").into()),
    }
}

/// The device on a netdev.
pub fn device_on<'a>(devices: &'a [RdmaDevice], netdev: &str) -> Option<&'a RdmaDevice> {
    devices
        .iter()
        .find(|device| device.netdev.as_deref() == Some(netdev))
}

fn parse_rdma_devices(out: &str) -> Vec<RdmaDevice> {
    let sections = sections::parse_sections(out);
    let mut devices: Vec<RdmaDevice> = Vec::new();
    for section in &sections {
        match (section.word, devices.last_mut()) {
            ("device", _) => devices.push(RdmaDevice {
                name: section.rest.to_owned(),
                netdev: section.value("parent").map(str::to_owned),
                node_guid: section.value("node_guid").unwrap_or_default().to_owned(),
                firmware: section.value("fw_ver").unwrap_or_default().to_owned(),
                is_soft_roce: section.value("parent").is_some(),
                device: section.value("device").map(str::to_owned),
                ports: Vec::new(),
            }),
            ("port", Some(device)) => {
                let port =
                    parse_rdma_port(section.rest.parse().unwrap_or_default(), &section.lines);
                let first = port.gids.iter().find_map(|gid| gid.netdev.clone());
                device.netdev = device.netdev.take().or(first);
                device.ports.push(port);
            }
            _ => {}
        }
    }
    for section in &sections {
        match section.word {
            "rdma" if section.code() == Some(0) => name_netdevs(&mut devices, &section.text()),
            "ibv" => active_mtus(&mut devices, &section.lines),
            _ => {}
        }
    }
    devices
}

/// Lines `gids/1:0000:...`, `gid_attrs/types/1:RoCE v2`, `state:4: ACTIVE`.
fn parse_rdma_port(number: u32, lines: &[&str]) -> RdmaPort {
    let mut port = RdmaPort {
        number,
        ..RdmaPort::default()
    };
    let (mut kinds, mut netdevs, mut addresses) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for line in lines {
        let Some((path, value)) = line.split_once(':') else {
            continue;
        };
        let (folder, name) = path.rsplit_once('/').unwrap_or((path, ""));
        match (folder, name.parse::<u32>()) {
            ("state", _) => port.state = strip_state_number(value).to_owned(),
            ("phys_state", _) => port.physical_state = strip_state_number(value).to_owned(),
            ("link_layer", _) => port.link_layer = value.to_owned(),
            ("rate", _) => port.rate = value.to_owned(),
            ("gids", Ok(index)) => {
                if let Ok(address) = value.parse::<Ipv6Addr>() {
                    addresses.insert(index, address);
                }
            }
            ("gid_attrs/types", Ok(index)) => drop(kinds.insert(index, value.to_owned())),
            ("gid_attrs/ndevs", Ok(index)) => drop(netdevs.insert(index, value.to_owned())),
            _ => {}
        }
    }
    for (index, address) in addresses {
        port.gids.push(GidTableEntry {
            index,
            address: address
                .to_ipv4_mapped()
                .map_or(IpAddr::V6(address), IpAddr::V4),
            kind: kinds.remove(&index).unwrap_or_default(),
            netdev: netdevs.remove(&index),
        });
    }
    port
}

/// `4: ACTIVE` without its number.
fn strip_state_number(value: &str) -> &str {
    let (_, word) = value.split_once(": ").unwrap_or(("", value));
    word.trim()
}

/// `rdma -j link` knows the netdev where a port has no GID yet.
fn name_netdevs(devices: &mut [RdmaDevice], text: &str) {
    let list: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
    for device in devices.iter_mut().filter(|device| device.netdev.is_none()) {
        let mine = list
            .iter()
            .find(|entry| entry.get("ifname").and_then(|name| name.as_str()) == Some(&device.name));
        device.netdev = mine
            .and_then(|entry| entry.get("netdev")?.as_str())
            .map(str::to_owned);
    }
}

/// `hca_id: rxe0`, `port: 1`, `active_mtu: 4096 (5)`.
fn active_mtus(devices: &mut [RdmaDevice], lines: &[&str]) {
    let (mut name, mut number) = ("", 0);
    for line in lines {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some("hca_id:"), Some(value)) => name = value,
            (Some("port:"), Some(value)) => number = value.parse().unwrap_or_default(),
            (Some("active_mtu:"), Some(value)) => {
                let device = devices.iter_mut().find(|device| device.name == name);
                let port = device
                    .and_then(|device| device.ports.iter_mut().find(|port| port.number == number));
                if let Some(port) = port {
                    port.active_mtu = value.parse().ok();
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hardware_and_infiniband_are_told_apart_from_soft_roce() {
        let out = "== device mlx5_0\n\
                   |device=0000:c1:00.0\n\
                   |node_guid=1070:fd03:0012:3456\n\
                   |fw_ver=20.39.2048\n\
                   \n\
                   == port 1\n\
                   |state:4: ACTIVE\n\
                   |phys_state:5: LinkUp\n\
                   |link_layer:InfiniBand\n\
                   |rate:200 Gb/sec (4X HDR)\n\
                   |gids/0:fe80:0000:0000:0000:1070:fd03:0012:3456\n\
                   \n\
                   == rdma 0\n\
                   |[{\"ifname\":\"mlx5_0\",\"port\":1,\"netdev\":\"ib0\"}]\n\
                   \n\
                   == ibv 0\n\
                   |hca_id:\tmlx5_0\n\
                   |\tport:\t1\n\
                   |\t\tactive_mtu:\t4096 (5)\n";
        let [device] = &parse_rdma_devices(out)[..] else {
            panic!()
        };
        assert_eq!(
            (
                device.is_soft_roce,
                device.netdev.as_deref(),
                device.ports[0].active_mtu
            ),
            (false, Some("ib0"), Some(4096))
        );
        assert_eq!(
            (
                device.ports[0].state.as_str(),
                device.ports[0].gids[0].kind.as_str()
            ),
            ("ACTIVE", "")
        );
    }

    proptest! {
        #[test]
        fn no_output_panics(out in "(== device |== port |== rdma 0|== ibv 0|\\|gids/0:|\\|state:|\n\
                                    |[0-9:a-f]){0,40}") {
            parse_rdma_devices(&out);
        }
    }
}
