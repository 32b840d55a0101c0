//! `Read::Hardware`: what a host is made of. No resource declares any of it; hosts of one class are
//! compared by it, and what only the machine's setup program can change is known from it.

pub mod platform;
pub mod script;

use super::sections::{self, Section};
use super::{Read, ReadResults};
pub use platform::{IommuState, PlatformFacts};
use railwright_base::Reason;
use std::collections::BTreeMap;

/// The parts of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HardwareFacts {
    /// Which machine it is.
    pub platform: PlatformFacts,
    /// The processor's model.
    pub processor: String,
    /// The revision of its microcode.
    pub microcode: String,
    /// The processors that run, as the kernel lists them: `0-127`.
    pub processors_online: String,
    /// Simultaneous multithreading: `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub smt: String,
    /// The NUMA nodes that run, as the kernel lists them: `0-1`.
    pub numa_nodes: String,
    /// Bytes of memory, by the blocks that the kernel manages; what it keeps for itself is in it.
    pub memory_bytes: Option<u64>,
    /// The version of NVIDIA's driver that runs.
    pub nvidia_driver: String,
    /// Network controllers, display controllers and NVSwitches, in the order of their addresses; no
    /// virtual functions.
    pub functions: Vec<PciFunctionFacts>,
    /// RDMA devices with their ports.
    pub rdma: Vec<RdmaHardware>,
    /// GPUs as NVIDIA's driver reports them.
    pub gpus: Vec<GpuHardware>,
}

/// A PCI function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PciFunctionFacts {
    /// Domain, bus, device and function: `0000:c1:00.0`.
    pub address: String,
    /// What it is.
    pub sort: PciFunctionCategory,
    /// Vendor and device: `15b3:101b`.
    pub id: String,
    /// Where it sits, from the host bridge down: `pci0000:c0`, `0000:c0:01.1`, `0000:c1:00.0`.
    pub path: Vec<String>,
    /// Its NUMA node; -1 where the machine has none.
    pub numa_node: String,
    /// The driver that is bound.
    pub driver: String,
    /// Current and greatest speed of its link, as sysfs words them: `16.0 GT/s PCIe`.
    pub link_speed: (String, String),
    /// Current and greatest number of lanes.
    pub link_width: (String, String),
    /// The most virtual functions that it offers; empty where it offers none.
    pub most_virtual_functions: String,
    /// Its netdevs.
    pub netdevs: Vec<String>,
    /// The netdevs of its virtual functions.
    pub virtual_netdevs: Vec<String>,
}

/// What a PCI function is, by its class code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PciFunctionCategory {
    /// Class 02.
    #[default]
    Nic,
    /// Class 03.
    Gpu,
    /// NVIDIA's bridges of class 06 80.
    NvSwitch,
}

/// An RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RdmaHardware {
    /// Its name.
    pub name: String,
    /// The version of its firmware.
    pub firmware: String,
    /// The board's identifier, which NVIDIA calls PSID.
    pub board: String,
    /// Its ports.
    pub ports: Vec<RdmaPortFacts>,
}

/// A port of an RDMA device.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RdmaPortFacts {
    /// `4: ACTIVE`.
    pub state: String,
    /// `200 Gb/sec (4X HDR)`.
    pub rate: String,
    /// `Ethernet` or `InfiniBand`.
    pub link_layer: String,
    /// Indexes of GIDs of IPv4 addresses, each with its type: `3 RoCE v2`.
    pub ipv4_gids: Vec<String>,
}

/// A GPU as its driver reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuHardware {
    /// The model's name.
    pub model: String,
    /// The version of its video BIOS.
    pub video_bios: String,
    /// The version of its firmware.
    pub firmware: String,
}

/// What the module in the cage of a NIC reports of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CageModule {
    /// The netdev.
    pub netdev: String,
    /// Vendor and part number; empty where nothing is plugged in, or the module does not say.
    pub part: String,
}

/// Decodes the answer to `Read::Hardware`; the error is a reason that fits after "unknown:".
pub fn read_hardware_facts(answers: &ReadResults) -> Result<HardwareFacts, Reason> {
    let mut out = HardwareFacts::default();
    for section in parse_complete_sections(answers, &Read::Hardware)? {
        match (section.word, out.rdma.last_mut()) {
            ("platform", _) => of_machine(&section, &mut out),
            ("pci", _) => out.functions.push(parse_pci_function(&section)),
            ("rdma", _) => out.rdma.push(RdmaHardware {
                name: section.rest.to_owned(),
                firmware: find_section_text(&section, "fw_ver"),
                board: find_section_text(&section, "board_id"),
                ports: Vec::new(),
            }),
            ("port", Some(device)) => device.ports.push(RdmaPortFacts {
                state: find_section_text(&section, "state"),
                rate: find_section_text(&section, "rate"),
                link_layer: find_section_text(&section, "link_layer"),
                ipv4_gids: collect_section_values(&section, "gid_ipv4"),
            }),
            ("gpu", _) => out.gpus.push(GpuHardware {
                model: find_section_text(&section, "model"),
                video_bios: find_section_text(&section, "video_bios"),
                firmware: find_section_text(&section, "firmware"),
            }),
            _ => {}
        }
    }
    Ok(out)
}

/// Decodes the answer to `Read::CageModules`.
pub fn cage_modules(answers: &ReadResults) -> Result<Vec<CageModule>, Reason> {
    let sections = parse_complete_sections(answers, &Read::CageModules)?;
    let modules = sections.iter().filter(|section| section.word == "module");
    Ok(modules.map(parse_cage_module).collect())
}

fn parse_cage_module(section: &Section<'_>) -> CageModule {
    let vendor = find_section_text(section, "Vendor name");
    let part = format!("{vendor} {}", find_section_text(section, "Vendor PN"));
    CageModule {
        netdev: section.rest.to_owned(),
        part: part.trim().to_owned(),
    }
}

/// The sections of an answer that was not cut off.
fn parse_complete_sections<'a>(
    answers: &'a ReadResults,
    read: &Read,
) -> Result<Vec<Section<'a>>, Reason> {
    let (_, out) = answers.output(read)?;
    let sections = sections::parse_sections(out);
    if sections.last().is_some_and(|last| last.word == "end") || out.is_empty() {
        return Ok(sections);
    }
    Err("the answer of the host is not complete".into())
}

fn find_section_text(section: &Section<'_>, key: &str) -> String {
    section.value(key).unwrap_or_default().trim().to_owned()
}

fn collect_section_values(section: &Section<'_>, key: &str) -> Vec<String> {
    let pairs = section.lines.iter().filter_map(|line| line.split_once('='));
    pairs
        .filter(|(name, _)| *name == key)
        .map(|(_, value)| value.trim().to_owned())
        .collect()
}

fn of_machine(section: &Section<'_>, out: &mut HardwareFacts) {
    out.platform = PlatformFacts::of(section);
    for (key, text) in [
        ("processor", &mut out.processor),
        ("microcode", &mut out.microcode),
        ("processors_online", &mut out.processors_online),
        ("smt", &mut out.smt),
        ("numa_nodes", &mut out.numa_nodes),
        ("nvidia_driver", &mut out.nvidia_driver),
    ] {
        *text = find_section_text(section, key);
    }
    // hexadecimal without a prefix (Source: Linux, Documentation/admin-guide/mm/memory-hotplug.rst)
    let block = u64::from_str_radix(&find_section_text(section, "memory_block_bytes"), 16).ok();
    out.memory_bytes = block
        .zip(find_section_text(section, "memory_blocks").parse().ok())
        .and_then(|(bytes, blocks)| bytes.checked_mul(blocks));
}

fn parse_pci_function(section: &Section<'_>) -> PciFunctionFacts {
    let vendor = find_section_text(section, "vendor");
    let device = find_section_text(section, "device");
    let class = find_section_text(section, "class");
    PciFunctionFacts {
        address: section.rest.to_owned(),
        sort: match class.get(..4) {
            Some("0x02") => PciFunctionCategory::Nic,
            Some("0x03") => PciFunctionCategory::Gpu,
            _ => PciFunctionCategory::NvSwitch,
        },
        id: format!(
            "{}:{}",
            vendor.trim_start_matches("0x"),
            device.trim_start_matches("0x")
        ),
        path: find_section_text(section, "path")
            .split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect(),
        numa_node: find_section_text(section, "numa_node"),
        driver: find_section_text(section, "driver"),
        link_speed: (
            find_section_text(section, "current_link_speed"),
            find_section_text(section, "max_link_speed"),
        ),
        link_width: (
            find_section_text(section, "current_link_width"),
            find_section_text(section, "max_link_width"),
        ),
        most_virtual_functions: find_section_text(section, "sriov_totalvfs"),
        netdevs: collect_section_values(section, "netdev"),
        virtual_netdevs: collect_section_values(section, "virtual"),
    }
}

/// How often each thing is there, by its words: what two hosts with the same parts in other places
/// have in common.
pub fn format_part_counts(parts: impl Iterator<Item = String>) -> Option<String> {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for part in parts.filter(|part| !part.is_empty()) {
        *count.entry(part).or_default() += 1;
    }
    let words: Vec<String> = count
        .into_iter()
        .map(|(part, count)| format!("{count} x {part}"))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests;
