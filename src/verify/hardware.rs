//! Facts of a host's machine: kernel modules that run and that are installed and default
//! routes, by the `machine` probe; GPUs and NICs with their places in the PCI tree, by
//! `Read::Hardware`.

use railwright_resource::hardware::{self as parts, PciFunctionCategory, PciFunctionFacts};
use serde_json::Value;
use std::collections::BTreeMap;

/// A kernel module that is loaded: `srcversion`, `version` or `build-id` to value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleVersions {
    /// Of what runs.
    pub running: BTreeMap<String, String>,
    /// Of the file that would be loaded next.
    pub installed: BTreeMap<String, String>,
}

/// The PCIe link of a function; `None` where the kernel does not know.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PcieLink {
    /// Transfers of a lane in GT/s.
    pub speed_gts: Option<f64>,
    /// Lanes.
    pub width: Option<u32>,
}

/// NVIDIA's number among the vendors of PCI devices.
const NVIDIA: &str = "10de:";

/// A PCI function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PciFunction {
    /// Its address, `0000:18:00.0`.
    pub address: String,
    /// Where it sits, from the host bridge down: `pci0000:17`, `0000:17:01.0`, `0000:18:00.0`.
    pub path: Vec<String>,
    /// The driver that has it.
    pub driver: Option<String>,
    /// Its NUMA node; `None` where the machine has none or does not say.
    pub numa: Option<u32>,
    /// The link as it is.
    pub current: PcieLink,
    /// What the function can do.
    pub max: PcieLink,
}

/// Facts of a host's hardware.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VerifyHardwareFacts {
    /// Loaded modules by name; those that are built into the kernel are left out.
    pub modules: BTreeMap<String, ModuleVersions>,
    /// NVIDIA's GPUs, by address.
    pub gpus: Vec<PciFunction>,
    /// The functions of netdevs, by netdev.
    pub nics: BTreeMap<String, PciFunction>,
    /// The version of NVIDIA's driver that runs.
    pub nvidia: Option<String>,
    /// Netdev and metric of each default route of IPv4; a route without a metric has 0.
    pub default_routes: Vec<(String, u64)>,
}

/// How near a GPU is to a NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearness {
    /// On another socket, or nobody knows.
    Far,
    /// On the same NUMA node, or below the same host bridge.
    SameNode,
    /// Below the same root port, of which only a switch makes two: nothing between them passes the
    /// CPU.
    SharedSwitch,
}

impl Nearness {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Nearness::Far => "far from the NIC",
            Nearness::SameNode => "on the NIC's NUMA node",
            Nearness::SharedSwitch => "on the NIC's PCIe switch",
        }
    }
}

impl VerifyHardwareFacts {
    /// With what the host is made of.
    pub fn with_parts(mut self, found: &parts::HardwareFacts) -> VerifyHardwareFacts {
        for function in &found.functions {
            let own = PciFunction::of(function);
            for netdev in &function.virtual_netdevs {
                // A virtual function sits where its NIC does, and the kernel knows no link of its
                // own.
                let virtual_function = PciFunction {
                    current: PcieLink::default(),
                    max: PcieLink::default(),
                    ..own.clone()
                };
                self.nics.insert(netdev.clone(), virtual_function);
            }
            for netdev in &function.netdevs {
                self.nics.insert(netdev.clone(), own.clone());
            }
            if function.sort == PciFunctionCategory::Gpu && function.id.starts_with(NVIDIA) {
                self.gpus.push(own);
            }
        }
        self.nvidia = Some(found.nvidia_driver.clone()).filter(|version| !version.is_empty());
        self
    }

    /// Reads the probe's output; what makes no sense is left out.
    pub fn parse(text: &str) -> VerifyHardwareFacts {
        let mut found = VerifyHardwareFacts::default();
        let mut section: Vec<&str> = Vec::new();
        for line in text.lines() {
            if let Some(head) = line.strip_prefix('@') {
                section = head.split_whitespace().collect();
                if let ["module", name] = section.as_slice() {
                    found
                        .modules
                        .insert((*name).to_owned(), ModuleVersions::default());
                }
                continue;
            }
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match section.as_slice() {
                ["module", name] => found.module_line(name, key, value),
                ["routes"] => found.default_routes.extend(parse_default_routes(line)),
                _ => {}
            }
        }
        found
    }

    fn module_line(&mut self, name: &str, key: &str, value: &str) {
        let (Some(module), Some((what, value))) =
            (self.modules.get_mut(name), value.split_once(' '))
        else {
            return;
        };
        let side = match key {
            "running" => &mut module.running,
            "installed" => &mut module.installed,
            _ => return,
        };
        side.insert(what.to_owned(), value.trim().to_owned());
    }

    /// The GPU nearest to a netdev's NIC, among those that NVIDIA's driver has; of equals the one
    /// with the lowest address.
    pub fn nearest_gpu(&self, netdev: &str) -> Option<(&PciFunction, Nearness)> {
        let nic = self.nics.get(netdev);
        let mut best: Option<(&PciFunction, (Nearness, usize))> = None;
        for gpu in &self.gpus {
            if gpu.driver.as_deref() != Some("nvidia") {
                continue;
            }
            let rank = match nic {
                Some(nic) => (nic.nearness(gpu), nic.common(gpu)),
                None => (Nearness::Far, 0),
            };
            if best.is_none_or(|(_, known)| rank > known) {
                best = Some((gpu, rank));
            }
        }
        let (gpu, (nearness, _)) = best?;
        Some((gpu, nearness))
    }
}

impl PciFunction {
    fn of(function: &PciFunctionFacts) -> PciFunction {
        PciFunction {
            address: function.address.clone(),
            path: function.path.clone(),
            driver: Some(function.driver.clone()).filter(|driver| !driver.is_empty()),
            numa: function.numa_node.parse().ok(),
            current: parse_pcie_link(&function.link_speed.0, &function.link_width.0),
            max: parse_pcie_link(&function.link_speed.1, &function.link_width.1),
        }
    }

    /// Parts of the way down from the host bridge that both share.
    fn common(&self, other: &PciFunction) -> usize {
        self.path
            .iter()
            .zip(&other.path)
            .take_while(|(a, b)| a == b)
            .count()
    }

    fn nearness(&self, other: &PciFunction) -> Nearness {
        match self.common(other) {
            2.. => Nearness::SharedSwitch,
            1 => Nearness::SameNode,
            _ if self.numa.is_some() && self.numa == other.numa => Nearness::SameNode,
            _ => Nearness::Far,
        }
    }
}

fn parse_pcie_link(speed: &str, width: &str) -> PcieLink {
    PcieLink {
        speed_gts: parse_link_speed(speed),
        width: parse_link_width(width),
    }
}

/// `16.0 GT/s PCIe`, `8 GT/s`; `Unknown` of a virtual function.
fn parse_link_speed(text: &str) -> Option<f64> {
    let speed: f64 = text.split(' ').next()?.parse().ok()?;
    (speed.is_finite() && speed > 0.0).then_some(speed)
}

/// The kernel writes 0 or 255 for a width that it does not know.
fn parse_link_width(text: &str) -> Option<u32> {
    text.parse().ok().filter(|lanes| (1..=32).contains(lanes))
}

/// `ip -j route show default`; each hop of a route with several is a route here.
fn parse_default_routes(json: &str) -> Vec<(String, u64)> {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let mut routes = Vec::new();
    for route in value.as_array().into_iter().flatten() {
        let metric = route["metric"].as_u64().unwrap_or(0);
        let hops = route["nexthops"].as_array().into_iter().flatten();
        for hop in std::iter::once(route).chain(hops) {
            if let Some(netdev) = hop["dev"].as_str() {
                routes.push((netdev.to_owned(), metric));
            }
        }
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use proptest::prelude::*;

    #[test]
    fn a_machine_with_two_sockets_and_a_switch_below_each() {
        let found = samples::load_machine_sample();
        assert_eq!(
            found.modules["mlx5_core"].running["srcversion"],
            found.modules["mlx5_core"].installed["srcversion"]
        );
        assert_eq!(
            (found.gpus.len(), found.nvidia.as_deref()),
            (3, Some("535.216.03"))
        );
        let nic = &found.nics["ens1f0np0"];
        assert_eq!(
            (nic.address.as_str(), nic.numa, nic.driver.as_deref()),
            ("0000:1a:00.0", Some(0), Some("mlx5_core"))
        );
        assert_eq!(
            (nic.current.speed_gts, nic.current.width, nic.max.width),
            (Some(16.0), Some(16), Some(16))
        );
        assert_eq!(found.default_routes, [("eno1".to_owned(), 100)]);
    }

    #[test]
    fn the_nearest_gpu_shares_the_switch_and_else_the_socket() {
        let mut found = samples::load_machine_sample();
        let (gpu, nearness) = found.nearest_gpu("ens1f0np0").unwrap();
        assert_eq!(
            (gpu.address.as_str(), nearness),
            ("0000:1b:00.0", Nearness::SharedSwitch)
        );
        // The one on the switch belongs to a virtual machine now.
        found.gpus[0].driver = Some("vfio-pci".to_owned());
        let (gpu, nearness) = found.nearest_gpu("ens1f0np0").unwrap();
        assert_eq!(
            (gpu.address.as_str(), nearness),
            ("0000:3b:00.0", Nearness::SameNode)
        );
        found.gpus.remove(1);
        assert_eq!(found.nearest_gpu("ens1f0np0").unwrap().1, Nearness::Far);
        assert_eq!(
            VerifyHardwareFacts::default().nearest_gpu("ens1f0np0"),
            None
        );
    }

    #[test]
    fn a_virtual_function_sits_where_its_nic_does_and_has_no_link_of_its_own() {
        let mut found = parts::HardwareFacts::default();
        let nic = PciFunctionFacts {
            address: "0000:1a:00.0".into(),
            link_speed: ("16.0 GT/s PCIe".into(), "Unknown".into()),
            ..PciFunctionFacts::default()
        };
        let width = ("0".to_owned(), "16".to_owned());
        let netdevs = (vec!["ens1".to_owned()], vec!["ens1v0".to_owned()]);
        let (netdevs, virtual_netdevs) = netdevs;
        let path = vec!["pci0000:17".to_owned(), "0000:1a:00.0".to_owned()];
        found.functions = vec![PciFunctionFacts {
            link_width: width,
            netdevs,
            virtual_netdevs,
            path,
            numa_node: "-1".into(),
            ..nic
        }];
        let found = VerifyHardwareFacts::default().with_parts(&found);
        let (nic, virtual_one) = (&found.nics["ens1"], &found.nics["ens1v0"]);
        assert_eq!(
            (nic.numa, nic.current, nic.max.width),
            (
                None,
                PcieLink {
                    speed_gts: Some(16.0),
                    width: None
                },
                Some(16)
            )
        );
        assert_eq!(
            (virtual_one.current, virtual_one.max, &virtual_one.path),
            (PcieLink::default(), PcieLink::default(), &nic.path)
        );
    }

    #[test]
    fn each_hop_of_a_default_route_counts() {
        let text = "@routes\n[{\"dst\":\"default\",\"metric\":50,\"nexthops\":[{\"dev\":\"eth0\"},{\"dev\":\"eth1\"}]},{\"dst\":\"default\",\"dev\":\"eth2\"}]\n";
        let names: Vec<_> = VerifyHardwareFacts::parse(text).default_routes;
        assert_eq!(
            names,
            [
                ("eth0".to_owned(), 50),
                ("eth1".to_owned(), 50),
                ("eth2".to_owned(), 0)
            ]
        );
    }

    proptest! {
        #[test]
        fn no_output_panics(text in "(@module|@routes|running|installed|\\[\\{\"dev\":|[ -~\n\
                                     ]|é){0,60}") {
            let found = VerifyHardwareFacts::parse(&text);
            prop_assert_eq!(found.nearest_gpu("a"), None);
        }
    }
}
