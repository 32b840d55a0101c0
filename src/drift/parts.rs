//! What a host is made of, in words by which hosts of one class can be compared: each part with how
//! often it is there, so that the same NIC in another slot is no difference, and a seventh one of
//! eight is.

use railwright_resource::ReadResults;
use railwright_resource::hardware::{
    HardwareFacts, IommuState, PciFunctionCategory, PciFunctionFacts, RdmaPortFacts, cage_modules,
    format_part_counts, read_hardware_facts,
};

/// What each part is called, and what a host has of it. Nothing where the host was not asked, or
/// has none.
pub fn describe_host_parts(answers: &ReadResults) -> Vec<(&'static str, String)> {
    let Some(found) = read_hardware_facts(answers)
        .ok()
        .filter(|found| *found != HardwareFacts::default())
    else {
        return Vec::new();
    };
    let modules = cage_modules(answers).unwrap_or_default();
    let cables = (!modules.is_empty()).then(|| {
        (
            "cables",
            format_part_counts(modules.into_iter().map(|module| module.part)),
        )
    });
    let parts = of_functions(&found)
        .into_iter()
        .chain(of_rdma(&found))
        .chain(cables);
    // A host that has lost all of something differs from the others as much as one that has lost a
    // part of it.
    let or_none = |value: Option<String>| {
        value
            .filter(|value| !value.is_empty())
            .unwrap_or_else(|| "none".to_owned())
    };
    let machine = of_machine(&found)
        .into_iter()
        .map(|(name, value)| (name, Some(value)));
    machine
        .chain(parts)
        .map(|(name, value)| (name, or_none(value)))
        .collect()
}

fn of_machine(found: &HardwareFacts) -> Vec<(&'static str, String)> {
    let iommu = match found.platform.iommu {
        IommuState::Unknown => "",
        IommuState::NoTable => "not offered by the BIOS",
        IommuState::Unused => "offered by the BIOS, not used",
        IommuState::Used => "used",
    };
    vec![
        ("machine", found.platform.machine.clone()),
        ("BIOS", found.platform.bios.clone()),
        ("processor", found.processor.clone()),
        ("microcode", found.microcode.clone()),
        ("processors online", found.processors_online.clone()),
        ("simultaneous multithreading", found.smt.clone()),
        ("NUMA nodes", found.numa_nodes.clone()),
        (
            "memory",
            found
                .memory_bytes
                .map(|bytes| format!("{} GiB", bytes >> 30))
                .unwrap_or_default(),
        ),
        ("IOMMU", iommu.to_owned()),
        ("NVIDIA driver that runs", found.nvidia_driver.clone()),
    ]
}

fn of_functions(found: &HardwareFacts) -> Vec<(&'static str, Option<String>)> {
    let of = |sort: PciFunctionCategory, words: fn(&PciFunctionFacts) -> String| {
        format_part_counts(
            found
                .functions
                .iter()
                .filter(|function| function.sort == sort)
                .map(words),
        )
    };
    let id = |function: &PciFunctionFacts| function.id.clone();
    // A GPU that has nothing to do runs its link at a lower speed, but not with fewer lanes.
    let lanes = |function: &PciFunctionFacts| prefix_nonempty_text("x", &function.link_width.0);
    vec![
        ("NICs", of(PciFunctionCategory::Nic, id)),
        (
            "NIC driver",
            of(PciFunctionCategory::Nic, |nic| nic.driver.clone()),
        ),
        (
            "NIC PCIe link",
            of(PciFunctionCategory::Nic, |nic| {
                [
                    nic.link_speed.0.as_str(),
                    &prefix_nonempty_text("x", &nic.link_width.0),
                ]
                .join(" ")
                .trim()
                .to_owned()
            }),
        ),
        (
            "NIC virtual functions at most",
            of(PciFunctionCategory::Nic, |nic| {
                nic.most_virtual_functions.clone()
            }),
        ),
        ("GPUs", of(PciFunctionCategory::Gpu, id)),
        (
            "GPU model",
            format_part_counts(found.gpus.iter().map(|gpu| gpu.model.clone())),
        ),
        ("GPU PCIe lanes", of(PciFunctionCategory::Gpu, lanes)),
        (
            "GPU video BIOS",
            format_part_counts(found.gpus.iter().map(|gpu| gpu.video_bios.clone())),
        ),
        (
            "GPU firmware",
            format_part_counts(found.gpus.iter().map(|gpu| gpu.firmware.clone())),
        ),
        ("NVSwitches", of(PciFunctionCategory::NvSwitch, id)),
    ]
}

fn of_rdma(found: &HardwareFacts) -> Vec<(&'static str, Option<String>)> {
    let ports = || found.rdma.iter().flat_map(|device| &device.ports);
    let port = |port: &RdmaPortFacts| {
        [
            port.state.split(": ").last().unwrap_or_default(),
            &port.rate,
        ]
        .join(" ")
        .trim()
        .to_owned()
    };
    vec![
        (
            "NIC firmware",
            format_part_counts(found.rdma.iter().map(|device| device.firmware.clone())),
        ),
        (
            "NIC board",
            format_part_counts(found.rdma.iter().map(|device| device.board.clone())),
        ),
        ("RDMA ports", format_part_counts(ports().map(port))),
        (
            "RDMA link layer",
            format_part_counts(ports().map(|port| port.link_layer.clone())),
        ),
        (
            "GIDs of IPv4",
            format_part_counts(
                ports()
                    .flat_map(|port| &port.ipv4_gids)
                    .map(|gid| format!("index {gid}")),
            ),
        ),
    ]
}

fn prefix_nonempty_text(prefix: &str, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{prefix}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::{AnswerStatus, Read, ReadResult};

    fn answers(firmware: &str, lanes: &str) -> ReadResults {
        let nic = |n: u8, lanes: &str| {
            format!(
                "\n\
                 == pci 0000:c{n}:00.0\n\
                 |class=0x020000\n\
                 |vendor=0x15b3\n\
                 |device=0x101b\n\
                 |current_link_speed=16.0 GT/s PCIe\n\
                 |current_link_width={lanes}\n\
                 \n\
                 == rdma mlx5_{n}\n\
                 |fw_ver={firmware}\n\
                 \n\
                 == port 1\n\
                 |state=4: ACTIVE\n\
                 |rate=200 Gb/sec (4X HDR)\n\
                 |link_layer=Ethernet\n\
                 |gid_ipv4=3 RoCE v2\n"
            )
        };
        let out = format!(
            "\n== platform\n|bios_version=1.9\n{}{}\n== end\n",
            nic(0, "16"),
            nic(1, lanes)
        );
        let mut answers = ReadResults::default();
        answers.insert(
            Read::Hardware.key(),
            ReadResult {
                status: AnswerStatus::Exit(0),
                out,
            },
        );
        answers
    }

    fn said(answers: &ReadResults) -> String {
        describe_host_parts(answers)
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}\n"))
            .collect()
    }

    #[test]
    fn one_nic_of_two_with_fewer_lanes_changes_one_line() {
        insta::assert_snapshot!(said(&answers("20.31.1014", "8")), @r#"
    machine: none
    BIOS: 1.9
    processor: none
    microcode: none
    processors online: none
    simultaneous multithreading: none
    NUMA nodes: none
    memory: none
    IOMMU: none
    NVIDIA driver that runs: none
    NICs: 2 x 15b3:101b
    NIC driver: none
    NIC PCIe link: 1 x 16.0 GT/s PCIe x16, 1 x 16.0 GT/s PCIe x8
    NIC virtual functions at most: none
    GPUs: none
    GPU model: none
    GPU PCIe lanes: none
    GPU video BIOS: none
    GPU firmware: none
    NVSwitches: none
    NIC firmware: 2 x 20.31.1014
    NIC board: none
    RDMA ports: 2 x ACTIVE 200 Gb/sec (4X HDR)
    RDMA link layer: 2 x Ethernet
    GIDs of IPv4: 2 x index 3 RoCE v2
    "#);
        let differing = said(&answers("20.31.1014", "16"));
        assert_eq!(
            differing
                .lines()
                .zip(said(&answers("20.31.1014", "8")).lines())
                .filter(|(a, b)| a != b)
                .count(),
            1
        );
    }

    #[test]
    fn what_was_not_asked_or_was_cut_off_shows_nothing() {
        assert_eq!(describe_host_parts(&ReadResults::default()), []);
        let mut cut = answers("1", "8");
        let out = cut
            .output(&Read::Hardware)
            .unwrap()
            .1
            .replace("\n== end\n", "");
        cut.insert(
            Read::Hardware.key(),
            ReadResult {
                status: AnswerStatus::Exit(0),
                out,
            },
        );
        assert_eq!(describe_host_parts(&cut), []);
    }
}
