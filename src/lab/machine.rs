//! One machine: its QEMU command line, its start and end.

use super::accelerator::Accelerator;
use super::folder::{self, LabFolder, machine_name, new_folder_error};
use super::image::Image;
use super::keys;
use super::monitor::SOCKET;
use super::{HOST_AS_SEEN_FROM_MACHINES, MOST_MACHINES, Result};
use railwright_base::{Diagnostic, Digest, text};
use railwright_system::{background, files, process::Program};
use std::path::{Path, PathBuf};

/// Where SSH connections come from, as the machines see it; nothing answers there.
const ALIAS: &str = "10.0.2.9";

/// One processor, and room for another that never comes. With room for one only, QEMU leaves the
/// memory barriers and the locks out of the translated code, although its own threads read the same
/// queues: a busy computer then loses the notice that the fabric's NIC has something to send, and
/// its queue stands still for good (`mttcg_start_vcpu_thread`, CF_PARALLEL; the barriers come back
/// with QEMU 8.1, c914d46d of qemu/qemu, the locks do not).
const PROCESSORS: &str = "1,maxcpus=2";

const DISK: &str = "if=none,id=disk,file=disk.qcow2,format=qcow2,cache=unsafe,aio=threads";

/// The snapshot of the bare state.
pub const BARE: &str = "bare";

/// How the fabric's wire is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Two machines send to each other.
    Direct,
    /// More machines send to our learning switch.
    Switch,
}

/// One machine of a lab.
#[derive(Debug, Clone)]
pub struct LabMachine<'a> {
    /// The lab's folder.
    pub lab: &'a LabFolder,
    /// From 1.
    pub number: u8,
    /// How instructions are run.
    pub accelerator: Accelerator,
    /// MiB.
    pub memory_mib: u32,
    /// How frames travel.
    pub wire: Wire,
    /// It is a node: its kubelet is reached, and it reaches the API server.
    pub kubernetes: bool,
}

impl LabMachine<'_> {
    /// `node1`.
    pub fn name(&self) -> String {
        machine_name(self.number)
    }

    /// Its folder.
    pub fn folder(&self) -> PathBuf {
        self.lab.machine(self.number)
    }

    /// The record of its process.
    pub fn record(&self) -> PathBuf {
        self.folder().join("qemu.pid")
    }

    /// What the machine wrote on its serial line.
    pub fn serial(&self) -> PathBuf {
        self.folder().join("serial.log")
    }

    /// The end of the serial line, for a diagnostic.
    pub fn last_words(&self, lines: usize) -> String {
        let tail = files::read_file_tail(&self.serial(), 8192).unwrap_or_default();
        let last: Vec<&str> = tail
            .lines()
            .filter(|line| !line.trim().is_empty())
            .rev()
            .take(lines)
            .collect();
        last.into_iter()
            .rev()
            .map(|line| format!("  {}", text::one_line(line, 140)))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Makes a fresh disk and the files that tell the machine who it is.
    pub fn make_fresh(&self, image: &Image) -> Result<()> {
        let folder = self.folder();
        files::remove_path(&folder).map_err(|error| new_folder_error(&folder, &error))?;
        files::make_folder(&folder).map_err(|error| new_folder_error(&folder, &error))?;
        let key = keys::host_key(self.lab, self.number);
        let read = |path: &Path| {
            files::read_limited(path, 1 << 14).map_err(|error| new_folder_error(path, &error))
        };
        let identity = [
            ("name", self.name().into_bytes()),
            ("address", folder::fabric_address(self.number).into_bytes()),
            ("hosts", render_hosts_file().into_bytes()),
            (
                "authorized_keys",
                read(&self.lab.identity().with_extension("pub"))?,
            ),
            ("host_key", read(&key)?),
            ("host_key.pub", read(&key.with_extension("pub"))?),
        ];
        for (name, bytes) in identity {
            let path = folder.join(name);
            files::write_atomic(&path, &bytes, 0o600)
                .map_err(|error| new_folder_error(&path, &error))?;
        }
        let base = image.folder.join("disk.qcow2");
        let create = Program::new("qemu-img")
            .arguments(["create", "-q", "-f", "qcow2", "-F", "qcow2", "-b"]);
        let create = create
            .argument(base.to_string_lossy())
            .argument("disk.qcow2")
            .folder(&folder);
        keys::expect_success("qemu-img", &create, b"").map(|_| ())
    }

    /// Whether a snapshot of the bare state is there that this very machine can be started from.
    pub fn has_bare(&self, image: &Image) -> bool {
        files::read_limited(&self.folder().join("bare"), 200)
            .is_ok_and(|text| text == self.shape(image).as_str().as_bytes())
    }

    /// Remembers that the bare state is in the disk.
    pub fn note_bare(&self, image: &Image) -> Result<()> {
        let path = self.folder().join("bare");
        files::write_atomic(&path, self.shape(image).as_str().as_bytes(), 0o600)
            .map_err(|error| new_folder_error(&path, &error))
    }

    /// A snapshot fits only the same QEMU with the same hardware, over the same image.
    fn shape(&self, image: &Image) -> Digest {
        let version = Program::new("qemu-system-x86_64")
            .argument("--version")
            .output()
            .map(|output| output.stdout)
            .unwrap_or_default();
        let hardware = self.program(image, None);
        Digest::of_bytes(
            format!(
                "{} {} {:?}",
                image.build,
                String::from_utf8_lossy(&version),
                hardware.words()
            )
            .as_bytes(),
        )
    }

    /// Starts QEMU, from the snapshot of that name when one is given. It outlives this command.
    pub fn start(&self, image: &Image, snapshot: Option<&str>) -> Result<()> {
        let folder = self.folder();
        for left in [SOCKET, "wire"] {
            let path = folder.join(left);
            files::remove_path(&path).map_err(|error| new_folder_error(&path, &error))?;
        }
        let log = folder.join("qemu.log");
        background::start_background_process(&self.program(image, snapshot), &log, &self.record())
            .map_err(|error| new_folder_error(&log, &error))
    }

    fn program(&self, image: &Image, snapshot: Option<&str>) -> Program {
        let number = self.number;
        let management = format!(
            "virtio-net-pci,netdev=management,romfile=,addr=0x3,mac=52:54:00:77:01:{number:02x}"
        );
        let wire =
            format!("virtio-net-pci,netdev=wire,romfile=,addr=0x4,mac=52:54:00:77:00:{number:02x}");
        let program = Program::new("qemu-system-x86_64")
            .folder(&self.folder())
            .arguments([
                "-name",
                &format!("railwright-lab-{}", self.name()),
                "-M",
                "q35",
                "-smp",
                PROCESSORS,
                "-m",
                &self.memory_mib.to_string(),
            ])
            .arguments(self.accelerator.arguments())
            .arguments(["-nodefaults", "-no-user-config", "-display", "none"])
            // So that the machine's own identifier (machine-id, product UUID) is its own and stays.
            .arguments([
                "-uuid",
                &format!("72616c77-7269-4768-8000-0000000000{number:02x}"),
            ])
            .argument("-kernel")
            .argument(image.folder.join("grub.lkrn").to_string_lossy())
            .arguments(identity_arguments())
            .arguments(["-drive", DISK])
            .arguments(["-device", "virtio-blk-pci,drive=disk,addr=0x2"])
            .arguments(["-netdev", &self.management_argument()])
            .arguments(["-device", &management])
            .arguments(["-netdev", &self.wire_argument()])
            .arguments(["-device", &wire])
            .arguments([
                "-device",
                "virtio-rng-pci,addr=0x5",
                "-serial",
                "file:serial.log",
            ])
            .arguments(["-qmp", &format!("unix:{SOCKET},server=on,wait=off")]);
        match snapshot {
            Some(name) => program.arguments(["-loadvm", name]),
            None => program,
        }
    }

    /// SSH comes in and the repository's server is reached, and with Kubernetes kubelet and API
    /// server; nothing else goes out, neither to this computer nor beyond. QEMU forwards no port of
    /// its own alias for this computer, so that lies elsewhere; a `tcp:` target would be one
    /// connection for all, a `cmd:` is run for each (QEMU's manual, "-netdev user": restrict, host,
    /// guestfwd).
    fn management_argument(&self) -> String {
        let (ssh, repository) = (self.lab.ssh_port(self.number), self.lab.repository_port());
        let reached = |port: u16| {
            format!(
                ",guestfwd=tcp:{HOST_AS_SEEN_FROM_MACHINES}:{port}-cmd:busybox nc 127.0.0.1 {port}"
            )
        };
        let node = || {
            let kubelet = self.lab.kubelet_port(self.number);
            format!(
                ",hostfwd=tcp:127.0.0.1:{kubelet}-:{kubelet}{}",
                reached(self.lab.api_port())
            )
        };
        format!(
            "user,id=management,ipv6=off,restrict=on,host={ALIAS},hostfwd=tcp:127.0.0.1:{ssh}-:22{}{}",
            reached(repository),
            if self.kubernetes {
                node()
            } else {
                String::new()
            }
        )
    }

    /// One frame is one datagram between unix sockets: no frame ever leaves this computer. Paths
    /// are relative to the machine's folder, because a socket's path may have only 107 bytes.
    fn wire_argument(&self) -> String {
        let remote = match self.wire {
            Wire::Direct => format!("../{}/wire", machine_name(3 - self.number.min(2))),
            Wire::Switch => format!("../port{}", self.number),
        };
        format!(
            "dgram,id=wire,local.type=unix,local.path=wire,remote.type=unix,remote.path={remote}"
        )
    }

    /// It is there and its QEMU runs, or the diagnostic with its last words.
    pub fn expect_running(&self) -> Result<()> {
        if background::find_background_process(&self.record()).is_some() {
            return Ok(());
        }
        let said = files::read_file_tail(&self.folder().join("qemu.log"), 600).unwrap_or_default();
        Err(Diagnostic::error(
            "RW0905",
            format!("its QEMU ended: {}", text::one_line(&said, 300)),
        )
        .on(format!("lab machine {}", self.name()))
        .state(format!(
            "the end of its serial line:\n{}",
            self.last_words(6)
        ))
        .next("railwright lab down")
        .next("railwright lab up")
        .into())
    }
}

fn identity_arguments() -> Vec<String> {
    let names = [
        "name",
        "address",
        "hosts",
        "authorized_keys",
        "host_key",
        "host_key.pub",
    ];
    names
        .iter()
        .flat_map(|name| {
            [
                "-fw_cfg".to_owned(),
                format!("name=opt/railwright/{name},file={name}"),
            ]
        })
        .collect()
}

/// /etc/hosts of every machine.
fn render_hosts_file() -> String {
    let machines =
        (1..=MOST_MACHINES).map(|n| format!("{} {}\n", folder::fabric_ip(n), machine_name(n)));
    std::iter::once("127.0.0.1 localhost\n".to_owned())
        .chain(machines)
        .collect()
}
