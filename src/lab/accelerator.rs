//! Whether hardware virtualisation can be used. That /dev/kvm exists proves nothing (nested and
//! para-virtual ones stop in the middle of a boot), so a small machine has to reach user space with
//! it first.

use super::Result;
use super::event::{LabEvent, LabStep, Listener, run_timed_step};
use super::folder::{LabFolder, new_folder_error};
use super::image::Image;
use railwright_base::text;
use railwright_system::process::Program;
use railwright_system::{background, clock, files};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What the initramfs says when it was started for a probe.
const PROOF: &str = "railwright-user-space";

/// How QEMU runs the machines' instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Accelerator {
    /// By the processor.
    Kvm,
    /// By translation.
    Tcg,
}

impl Accelerator {
    /// QEMU's words. Of all TCG variants tried, one thread per machine with this small buffer and
    /// the plain 64-bit processor booted fastest and moved most RDMA data.
    pub fn arguments(self) -> [&'static str; 4] {
        match self {
            Accelerator::Kvm => ["-accel", "kvm", "-cpu", "host"],
            Accelerator::Tcg => ["-accel", "tcg,thread=multi,tb-size=64", "-cpu", "qemu64"],
        }
    }

    /// Its word on the screen.
    pub fn word(self) -> &'static str {
        match self {
            Accelerator::Kvm => "KVM",
            Accelerator::Tcg => "emulation (TCG)",
        }
    }
}

/// The accelerator to use; the probe's answer is kept until this computer or the image changes.
pub fn choose_accelerator(
    folder: &LabFolder,
    image: &Image,
    listener: Listener<'_>,
) -> Result<Accelerator> {
    if !device_opens() {
        return Ok(Accelerator::Tcg);
    }
    let record = folder.path("accelerator");
    let key = format!("{} {}", boot_of_this_computer(), image.build);
    let known = files::read_limited(&record, 1 << 10).unwrap_or_default();
    let known = String::from_utf8_lossy(&known).into_owned();
    if let Some(answer) = known.strip_prefix(&format!("{key} ")) {
        return Ok(if answer == "kvm" {
            Accelerator::Kvm
        } else {
            Accelerator::Tcg
        });
    }
    let works = run_timed_step(listener, LabStep::Probe, || probe_kvm(folder, image))?;
    listener(LabEvent::Note(if works {
        "KVM works".to_owned()
    } else {
        "KVM does not reach user space here: using emulation".to_owned()
    }));
    let answer = format!("{key} {}", if works { "kvm" } else { "tcg" });
    files::write_atomic(&record, answer.as_bytes(), 0o644)
        .map_err(|error| new_folder_error(&record, &error))?;
    Ok(if works {
        Accelerator::Kvm
    } else {
        Accelerator::Tcg
    })
}

fn device_opens() -> bool {
    files::opens_for_writing(Path::new("/dev/kvm"))
}

fn boot_of_this_computer() -> String {
    let bytes =
        files::read_limited(Path::new("/proc/sys/kernel/random/boot_id"), 100).unwrap_or_default();
    text::one_line(&String::from_utf8_lossy(&bytes), 40)
}

/// Boots kernel and initramfs alone. A fault, an end or silence for ten seconds all mean no.
fn probe_kvm(folder: &LabFolder, image: &Image) -> Result<bool> {
    let (log, serial, record) = (
        folder.path("probe.log"),
        folder.path("probe.serial"),
        folder.path("probe.pid"),
    );
    files::remove_path(&serial).map_err(|error| new_folder_error(&serial, &error))?;
    let program = Program::new("qemu-system-x86_64")
        .folder(folder.root())
        .arguments(Accelerator::Kvm.arguments())
        .arguments([
            "-M",
            "q35",
            "-smp",
            "1",
            "-m",
            "256",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-kernel",
        ])
        .argument(image.folder.join("vmlinuz").to_string_lossy())
        .argument("-initrd")
        .argument(image.folder.join("initrd").to_string_lossy())
        .arguments([
            "-append",
            "console=ttyS0 quiet panic=-1 lab.probe",
            "-serial",
            "file:probe.serial",
        ]);
    background::start_background_process(&program, &log, &record)
        .map_err(|error| new_folder_error(&record, &error))?;
    let mut reached = false;
    for _ in 0..100 {
        clock::block_for(100);
        let gone = background::find_background_process(&record).is_none();
        reached = files::read_file_tail(&serial, 4096).is_ok_and(|text| text.contains(PROOF));
        if reached || gone {
            break;
        }
    }
    background::end_background_process(&record)
        .map_err(|error| new_folder_error(&record, &error))?;
    Ok(reached)
}
