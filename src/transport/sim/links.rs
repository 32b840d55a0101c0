//! The netdevs of a simulated host. systemd-networkd owns those that a file names; the others are
//! nobody's.

use super::disk::Disk;
use super::host::{Answered, Done};
use std::collections::{BTreeMap, BTreeSet};

/// The MTU that a boot gives a netdev for which no file says another, in bytes.
const USUAL_MTU: u32 = 1500;

/// A netdev.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedNetdev {
    /// Bytes, running.
    pub mtu: u32,
    /// The largest that the driver takes, in bytes.
    pub max_mtu: u32,
    /// Administratively up.
    pub up: bool,
    /// Running addresses, in CIDR form.
    pub addresses: BTreeSet<String>,
    /// The file of systemd-networkd that matches it.
    pub network_file: Option<String>,
    /// The parent and the number of a VLAN.
    pub vlan: Option<(String, u16)>,
}

impl SimulatedNetdev {
    /// Up, with the usual MTU.
    pub fn of(max_mtu: u32, network_file: Option<&str>) -> Self {
        SimulatedNetdev {
            mtu: USUAL_MTU,
            max_mtu,
            up: true,
            addresses: BTreeSet::new(),
            network_file: network_file.map(str::to_owned),
            vlan: None,
        }
    }
}

/// All netdevs, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Links(pub BTreeMap<String, SimulatedNetdev>);

impl Links {
    /// The answer to `Read::Link`.
    pub fn read(&self, netdev: &str) -> Answered {
        let Some(link) = self.0.get(netdev) else {
            return (
                1,
                self.0
                    .keys()
                    .map(|name| format!("netdev={name}\n"))
                    .collect(),
            );
        };
        let index = self
            .0
            .keys()
            .position(|name| name == netdev)
            .unwrap_or_default()
            + 2;
        let flags = if link.up { "0x1003" } else { "0x1002" };
        let state = if link.up { "up" } else { "down" };
        let mut out = format!(
            "ifindex={index}\nmtu={}\nflags={flags}\noperstate={state}\n",
            link.mtu
        );
        if link.up {
            out.push_str("carrier=1\nspeed=100000\n");
        }
        out.push_str("driver=mlx5_core\nip=1\n");
        if let Some((parent, _)) = &link.vlan {
            out.push_str(&format!(
                "kind=vlan\nlower={parent} {}\n",
                self.0.get(parent).map_or(0, |parent| parent.mtu)
            ));
        }
        for address in &link.addresses {
            let family = if address.contains(':') {
                "inet6"
            } else {
                "inet"
            };
            out.push_str(&format!(
                "addr={index}: {netdev}    {family} {address} scope global {netdev}\n"
            ));
        }
        (0, format!("{out}max_mtu={}\n", link.max_mtu))
    }

    /// The answer to `Read::LinkCounters`: nothing is ever paused here, and nothing lost.
    pub fn read_counters(&self, netdevs: &[String]) -> Answered {
        let counters: String = (0..8)
            .map(|priority| format!("rx_prio{priority}_pause 0\ntx_prio{priority}_pause 0\n"))
            .collect();
        let mut out = String::new();
        for name in netdevs {
            out.push_str(&match self.0.contains_key(name) {
                true => format!("port {name}\n{counters}rx_discards_phy 0\n"),
                false => format!("port {name}\nabsent\n"),
            });
        }
        (0, out)
    }

    /// The answer to `Read::RailTraffic`: simulated netdevs have no RDMA device on them.
    pub fn read_traffic(&self, netdevs: &[String]) -> Answered {
        let mut out = String::new();
        for name in netdevs {
            out.push_str(&format!("port {name}\n"));
            if !self.0.contains_key(name) {
                out.push_str("absent\n");
            }
        }
        (0, out)
    }

    /// The answer to `Read::LinkManager`.
    pub fn read_manager(&self, netdev: &str, disk: &Disk) -> Answered {
        let mut out =
            "\n== networkd-state 644 root root /run/systemd/netif/state\n|OPER_STATE=routable\n"
                .to_owned();
        let Some(file) = self
            .0
            .get(netdev)
            .and_then(|link| find_network_file(netdev, link, disk))
        else {
            out.push_str(
                "\n== networkd 644 root root /run/systemd/netif/links/2\n|ADMIN_STATE=unmanaged\n",
            );
            return (0, out);
        };
        out.push_str(&format!(
            "\n\
             == networkd 644 root root /run/systemd/netif/links/2\n\
             |ADMIN_STATE=configured\n\
             |NETWORK_FILE={file}\n"
        ));
        for (word, path) in list_network_files(&file, disk) {
            let lines = mark_lines(&disk.text(&path).unwrap_or_default());
            out.push_str(&format!("\n== {word} 644 root root {path}\n{lines}"));
        }
        (0, out)
    }

    /// The answer to `Read::LinkLayers`. There are no bonds.
    pub fn read_layers(&self, netdev: &str, disk: &Disk) -> Answered {
        let mut out = String::new();
        if let Some(link) = self.0.get(netdev) {
            out.push_str("\n== netdev 0\n");
            if let Some((parent, id)) = &link.vlan {
                out.push_str(&format!("|kind=vlan\n|lower={parent}\n|id={id}\n"));
            }
        }
        for (path, text) in disk.below("/etc/systemd/network", ".netdev") {
            if is_netdev_file_for(&text, netdev) {
                let lines = mark_lines(&text);
                out.push_str(&format!("\n== netdev-file 644 root root {path}\n{lines}"));
            }
        }
        (0, out)
    }

    /// `ip link add link PARENT name NETDEV type vlan id ID`.
    pub fn add_vlan(&mut self, netdev: &str, parent: &str, id: u16) -> Done {
        let below = self
            .0
            .get(parent)
            .ok_or_else(|| (1, format!("Cannot find device \"{parent}\"")))?;
        let vlan = SimulatedNetdev {
            up: false,
            vlan: Some((parent.to_owned(), id)),
            ..SimulatedNetdev::of(below.max_mtu, None)
        };
        self.0.entry(netdev.to_owned()).or_insert(vlan);
        Ok(())
    }

    /// `ip link del dev NETDEV`.
    pub fn remove_vlan(&mut self, netdev: &str) -> Done {
        self.0
            .retain(|name, link| name != netdev || link.vlan.is_none());
        Ok(())
    }

    /// networkd makes the VLANs that the file of a parent names, of which a file says what they
    /// are.
    fn make_vlans(&mut self, disk: &Disk) {
        let mut desired = Vec::new();
        for (parent, link) in &self.0 {
            let Some(file) = find_network_file(parent, link, disk) else {
                continue;
            };
            for (_, path) in list_network_files(&file, disk) {
                let text = disk.text(&path).unwrap_or_default();
                for name in text.lines().filter_map(|line| line.strip_prefix("VLAN=")) {
                    desired.push((parent.clone(), name.to_owned()));
                }
            }
        }
        for (parent, name) in desired {
            if let Some(id) = find_vlan_id(&name, disk) {
                // The parent is there: its file named the VLAN.
                let _ = self.add_vlan(&name, &parent, id);
            }
        }
    }

    /// `ip link set` and `ip addr`.
    pub fn set(
        &mut self,
        netdev: &str,
        mtu: Option<u32>,
        up: Option<bool>,
        add: &[String],
        remove: &[String],
    ) -> Done {
        let link = self
            .0
            .get_mut(netdev)
            .ok_or_else(|| (1, format!("Cannot find device \"{netdev}\"")))?;
        if let Some(mtu) = mtu {
            if !(68..=link.max_mtu).contains(&mtu) {
                return Err((2, "Error: mtu greater than device maximum.".to_owned()));
            }
            link.mtu = mtu;
        }
        link.up = up.unwrap_or(link.up);
        link.addresses.extend(add.iter().cloned());
        link.addresses.retain(|address| !remove.contains(address));
        Ok(())
    }

    /// `networkctl reload`: every netdev gets what its files say; an address that no file has goes.
    pub fn reload(&mut self, disk: &Disk) {
        self.make_vlans(disk);
        for (name, link) in &mut self.0 {
            let Some(file) = find_network_file(name, link, disk) else {
                continue;
            };
            let settings = SimulatedNetworkSettings::read(&file, disk);
            link.mtu = settings.mtu.unwrap_or(link.mtu).min(link.max_mtu);
            link.up = settings.up.unwrap_or(link.up);
            if !settings.keeps {
                link.addresses.clear();
            }
            link.addresses.extend(settings.addresses);
        }
    }

    /// What a boot gives them.
    pub fn boot(&mut self, disk: &Disk) {
        self.0.retain(|_, link| link.vlan.is_none());
        self.make_vlans(disk);
        for link in self.0.values_mut() {
            (link.mtu, link.up) = (USUAL_MTU, link.network_file.is_some());
            link.addresses.clear();
        }
        for (name, link) in &mut self.0 {
            link.up |= find_network_file(name, link, disk).is_some();
        }
        self.reload(disk);
    }
}

/// The file that networkd applies: one that matches it from the start, or one of ours.
fn find_network_file(netdev: &str, link: &SimulatedNetdev, disk: &Disk) -> Option<String> {
    let own = format!("/etc/systemd/network/90-railwright-{netdev}.network");
    let mut candidates = link.network_file.iter().chain([&own]);
    candidates
        .find(|path| disk.files.contains_key(*path))
        .cloned()
}

/// The number that the file about a VLAN gives it.
fn find_vlan_id(netdev: &str, disk: &Disk) -> Option<u16> {
    let mut files = disk.below("/etc/systemd/network", ".netdev");
    let (_, text) = files.find(|(_, text)| is_netdev_file_for(text, netdev))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Id=")?.parse().ok())
}

fn is_netdev_file_for(text: &str, netdev: &str) -> bool {
    text.lines()
        .any(|line| line.strip_prefix("Name=") == Some(netdev))
}

/// The lines of a file, each behind a bar, as the read scripts print them.
pub(super) fn mark_lines(text: &str) -> String {
    text.lines().map(|line| format!("|{line}\n")).collect()
}

fn list_network_files(file: &str, disk: &Disk) -> Vec<(&'static str, String)> {
    let name = file.rsplit('/').next().unwrap_or_default();
    let folder = format!("/etc/systemd/network/{name}.d");
    let mut files = vec![("network-file", file.to_owned())];
    for (path, _) in disk.below(&folder, ".conf") {
        files.push(("network-drop-in", path.clone()));
    }
    files
}

/// What the files of a netdev say.
#[derive(Default)]
struct SimulatedNetworkSettings {
    mtu: Option<u32>,
    up: Option<bool>,
    addresses: BTreeSet<String>,
    keeps: bool,
}

impl SimulatedNetworkSettings {
    fn read(file: &str, disk: &Disk) -> Self {
        let mut settings = SimulatedNetworkSettings::default();
        for (_, path) in list_network_files(file, disk) {
            let text = disk.text(&path).unwrap_or_default();
            for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
                match key.trim() {
                    "MTUBytes" => settings.mtu = value.trim().parse().ok(),
                    "ActivationPolicy" => settings.up = Some(value.trim() == "up"),
                    "Address" => drop(settings.addresses.insert(value.trim().to_owned())),
                    "KeepConfiguration" => settings.keeps = value.trim() == "yes",
                    _ => {}
                }
            }
        }
        settings
    }
}
