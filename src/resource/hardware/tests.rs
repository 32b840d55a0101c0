//! Hardware from the trees of sysfs and procfs, read by real shells, and from answers that no host
//! would give.

use super::*;
use crate::{AnswerStatus, ReadResult, program};
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A machine with a ConnectX-6, one of its virtual functions, an A100 and a display controller of
/// the board.
fn tree(root: &Path) {
    let nic = "sys/bus/pci/devices/0000:c1:00.0";
    let gpu = "sys/bus/pci/devices/0000:07:00.0";
    let rdma = "sys/class/infiniband/mlx5_0";
    let at = |folder: &str, file: &str| format!("{folder}/{file}");
    let files = [
        ("sys/class/dmi/id/sys_vendor".to_owned(), "NVIDIA\n"),
        (
            "sys/class/dmi/id/product_name".to_owned(),
            "DGXA100 920-23687-2530-000\n",
        ),
        ("sys/class/dmi/id/bios_version".to_owned(), "1.21\n"),
        (
            "proc/cpuinfo".to_owned(),
            "processor\t: 0\n\
             model name\t: AMD EPYC 7742 64-Core Processor\n\
             microcode\t: 0x830107b\n\
             \n\
             processor\t: 1\n\
             model name\t: another\n",
        ),
        (
            "sys/devices/system/memory/block_size_bytes".to_owned(),
            "80000000\n",
        ),
        ("sys/devices/system/memory/memory0/online".to_owned(), "1\n"),
        ("sys/devices/system/memory/memory1/online".to_owned(), "1\n"),
        ("sys/firmware/acpi/tables/IVRS".to_owned(), ""),
        ("sys/kernel/iommu_groups/0/type".to_owned(), "identity\n"),
        (at(nic, "class"), "0x020000\n"),
        (at(nic, "vendor"), "0x15b3\n"),
        (at(nic, "device"), "0x101b\n"),
        (at(nic, "current_link_speed"), "16.0 GT/s PCIe\n"),
        (at(nic, "current_link_width"), "16\n"),
        (at(nic, "max_link_width"), "16\n"),
        (at(nic, "net/ens1f0np0/mtu"), "9000\n"),
        (
            "sys/bus/pci/devices/0000:c1:00.2/class".to_owned(),
            "0x020000\n",
        ),
        (
            "sys/bus/pci/devices/0000:c1:00.2/physfn/vendor".to_owned(),
            "0x15b3\n",
        ),
        (at(gpu, "class"), "0x030200\n"),
        (at(gpu, "vendor"), "0x10de\n"),
        (at(gpu, "device"), "0x20b2\n"),
        (at(rdma, "fw_ver"), "20.31.1014\n"),
        (at(rdma, "board_id"), "MT_0000000223\n"),
        (at(rdma, "ports/1/state"), "4: ACTIVE\n"),
        (at(rdma, "ports/1/rate"), "200 Gb/sec (4X HDR)\n"),
        (
            at(rdma, "ports/1/gids/0"),
            "fe80:0000:0000:0000:0ac0:ebff:fe00:0001\n",
        ),
        (
            at(rdma, "ports/1/gids/1"),
            "0000:0000:0000:0000:0000:ffff:0a0a:0001\n",
        ),
        (at(rdma, "ports/1/gid_attrs/types/1"), "RoCE v2\n"),
        (
            "proc/driver/nvidia/gpus/0000:07:00.0/information".to_owned(),
            "Model: \t\t NVIDIA A100-SXM4-80GB\n\
             Video BIOS: \t 92.00.45.00.03\n\
             GPU Firmware: \t N/A\n",
        ),
    ];
    write(
        root,
        &files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect::<Vec<_>>(),
    );
}

fn read(shell: &[&str], root: &Path) -> HardwareFacts {
    let text = program::render_read_program(&[Read::Hardware], &root.display().to_string(), "f00d");
    let mut child = Command::new(shell[0])
        .args(&shell[1..])
        .arg("-s")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    read_hardware_facts(&program::parse_program_answers(
        &[Read::Hardware],
        "f00d",
        &output,
    ))
    .unwrap()
}

#[test]
fn every_shell_reads_the_same_parts() {
    let folder = tempfile::tempdir().unwrap();
    tree(folder.path());
    for shell in [&["sh"][..], &["dash"], &["bash"], &["busybox", "sh"]] {
        if Command::new(shell[0])
            .arg("--help")
            .stdin(Stdio::null())
            .output()
            .is_err()
        {
            continue;
        }
        let found = read(shell, folder.path());
        assert_eq!(
            found.platform.machine, "NVIDIA DGXA100 920-23687-2530-000",
            "{shell:?}"
        );
        assert_eq!(
            (found.processor.as_str(), found.microcode.as_str()),
            ("AMD EPYC 7742 64-Core Processor", "0x830107b")
        );
        assert_eq!(
            (found.memory_bytes, found.platform.iommu),
            (Some(4 << 30), IommuState::Used)
        );
        let functions: Vec<_> = found
            .functions
            .iter()
            .map(|f| (f.sort, f.id.as_str(), f.link_width.0.as_str()))
            .collect();
        assert_eq!(
            functions,
            [
                (PciFunctionCategory::Gpu, "10de:20b2", ""),
                (PciFunctionCategory::Nic, "15b3:101b", "16")
            ]
        );
        assert_eq!(found.functions[1].netdevs, ["ens1f0np0"]);
        assert_eq!(found.rdma[0].firmware, "20.31.1014");
        assert_eq!(found.rdma[0].ports[0].ipv4_gids, ["1 RoCE v2"]);
        assert_eq!(found.gpus[0].video_bios, "92.00.45.00.03");
    }
}

#[test]
fn where_a_function_sits_and_whose_netdevs_are_below_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let nic = "sys/devices/pci0000:c0/0000:c0:01.1/0000:c1:00.0";
    for file in [
        "net/ens1f0np0/mtu",
        "virtfn0/net/ens1f0v0/mtu",
        "virtfn1/net/ens1f0v1/mtu",
    ] {
        write(folder.path(), &[(&format!("{nic}/{file}"), "9000\n")]);
    }
    write(
        folder.path(),
        &[
            (&format!("{nic}/class"), "0x020000\n"),
            (&format!("{nic}/numa_node"), "1\n"),
        ],
    );
    let virtio = "sys/devices/pci0000:00/0000:00:03.0";
    write(
        folder.path(),
        &[
            (&format!("{virtio}/class"), "0x020000\n"),
            (&format!("{virtio}/virtio0/net/eth0/mtu"), "1500\n"),
        ],
    );
    let bus = folder.path().join("sys/bus/pci/devices");
    fs::create_dir_all(&bus).unwrap();
    for place in [nic, virtio] {
        std::os::unix::fs::symlink(
            format!("../../../../{place}"),
            bus.join(place.rsplit('/').next().unwrap()),
        )
        .unwrap();
    }
    let found = read(&["sh"], folder.path());
    let seen: Vec<_> = found
        .functions
        .iter()
        .map(|f| {
            (
                f.path.join(" "),
                f.netdevs.join(" "),
                f.virtual_netdevs.join(" "),
            )
        })
        .collect();
    let told = |path: &str, netdevs: &str, virtual_netdevs: &str| {
        (
            path.to_owned(),
            netdevs.to_owned(),
            virtual_netdevs.to_owned(),
        )
    };
    assert_eq!(
        seen,
        [
            told("pci0000:00 0000:00:03.0", "eth0", ""),
            told(
                "pci0000:c0 0000:c0:01.1 0000:c1:00.0",
                "ens1f0np0",
                "ens1f0v0 ens1f0v1"
            )
        ]
    );
    assert_eq!(found.functions[1].numa_node, "1");
}

#[test]
fn the_bios_that_offers_no_iommu_is_told_from_a_kernel_that_does_not_use_it() {
    let iommu = |files: &[(&str, &str)]| {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), files);
        read(&["sh"], folder.path()).platform.iommu
    };
    let (acpi, known) = (
        ("sys/firmware/acpi/tables/FACP", ""),
        ("sys/kernel/iommu_groups/.keep", ""),
    );
    assert_eq!(iommu(&[]), IommuState::Unknown);
    assert_eq!(
        iommu(&[acpi]),
        IommuState::Unknown,
        "a kernel without the subsystem says nothing"
    );
    assert_eq!(iommu(&[acpi, known]), IommuState::NoTable);
    assert_eq!(
        iommu(&[acpi, known, ("sys/firmware/acpi/tables/DMAR", "")]),
        IommuState::Unused
    );
    assert_eq!(
        iommu(&[("sys/kernel/iommu_groups/0/type", "DMA\n")]),
        IommuState::Used
    );
}

#[test]
fn this_machine_is_read_without_a_failure() {
    read(&["sh"], Path::new(""));
}

proptest::proptest! {
    #[test]
    fn no_answer_panics(lines in proptest::collection::vec("(== \
                                                            (platform|pci|rdma|port|gpu|module|end)?|\\|(class=0x|vendor=|memory_blocks=|memory_block_bytes=|gid_ipv4=|Vendor \
                                                            PN=)?)[ -~\u{e4}]{0,24}", 0..20)) {
        let out = lines.join("\n") + "\n== end\n";
        let mut answers = ReadResults::default();
        for read in [Read::Hardware, Read::CageModules] {
            answers.insert(read.key(), ReadResult { status: AnswerStatus::Exit(0), out: out.clone() });
        }
        proptest::prop_assert!(read_hardware_facts(&answers).is_ok());
        proptest::prop_assert!(cage_modules(&answers).is_ok());
    }
}
