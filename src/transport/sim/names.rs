//! The names of a simulated host's netdevs: udev gives them at boot, by the files of the initial
//! RAM disk where there is one.

use super::disk::Disk;
use super::host::Answered;
use super::links::{Links, mark_lines};
use railwright_resource::netdev_name::script::build_link_file_path;
use std::collections::BTreeMap;

/// The folder of the files.
const FOLDER: &str = "/etc/systemd/network";

/// A NIC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nic {
    /// Its name where no file gives it one.
    pub usual: String,
    /// Its name now.
    pub name: String,
}

/// NICs and the initial RAM disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimulatedNetdevNames {
    /// By their PCI addresses.
    pub nics: BTreeMap<String, Nic>,
    /// What the initial RAM disk holds of the files, by path; nothing where the host boots without
    /// one.
    pub ram_disk: Option<BTreeMap<String, String>>,
}

impl SimulatedNetdevNames {
    /// Puts a NIC of this name there.
    pub fn put(&mut self, device: &str, name: &str) {
        self.nics.insert(
            device.to_owned(),
            Nic {
                usual: name.to_owned(),
                name: name.to_owned(),
            },
        );
    }

    /// The answer to `Read::NetdevName`.
    pub fn read(&self, device: &str, name: &str, links: &Links, disk: &Disk) -> Answered {
        let mut out = String::new();
        for netdev in links.0.keys() {
            let nic = self.nics.iter().find(|(_, nic)| nic.name == *netdev);
            let device = nic.map_or("-", |(device, _)| device.as_str());
            out.push_str(&format!("netdev {netdev} {device} - -\n"));
        }
        let own = build_link_file_path(name);
        if let Some(text) = disk.text(&own) {
            let lines = mark_lines(&text);
            out.push_str(&format!("\n== own-link 644 root root {own}\n{lines}"));
        }
        if let Some(copies) = &self.ram_disk {
            let age = if disk
                .text(&own)
                .is_some_and(|text| copies.get(&own) == Some(&text))
            {
                "newer"
            } else {
                "older"
            };
            out.push_str(&format!(
                "\n== ram-disk {age} /boot/initrd.img-6.1.0-37-amd64\n"
            ));
        }
        if let Some(Nic { name: netdev, .. }) = self.nics.get(device) {
            out.push_str(&format!(
                "\n== udev\n|ID_PATH=pci-{device}\n\n== rules\n{}",
                links.read_manager(netdev, disk).1
            ));
        }
        (0, out)
    }

    /// `update-initramfs`.
    pub fn update(&mut self, disk: &Disk) {
        if let Some(copies) = &mut self.ram_disk {
            *copies = copy_link_files(disk);
        }
    }

    /// Every NIC gets the name that the first file about it says. Those who know it by the old one
    /// learn the new one.
    pub fn boot(&mut self, disk: &Disk, links: &mut Links, ssh_netdev: &mut Option<String>) {
        let files = match &self.ram_disk {
            Some(copies) => copies.clone(),
            None => copy_link_files(disk),
        };
        let mut fresh = BTreeMap::new();
        for (device, nic) in &mut self.nics {
            let by = format!("Path=pci-{device}");
            let file = files
                .values()
                .find(|text| text.lines().any(|line| line == by));
            let given = file
                .and_then(|text| text.lines().find_map(|line| line.strip_prefix("Name=")))
                .unwrap_or(&nic.usual)
                .to_owned();
            fresh.extend(links.0.remove(&nic.name).map(|link| (given.clone(), link)));
            if ssh_netdev.as_ref() == Some(&nic.name) {
                *ssh_netdev = Some(given.clone());
            }
            nic.name = given;
        }
        links.0.append(&mut fresh);
    }
}

/// The files about netdevs on a disk, by path.
fn copy_link_files(disk: &Disk) -> BTreeMap<String, String> {
    disk.below(FOLDER, ".link")
        .map(|(path, text)| (path.clone(), text))
        .collect()
}
