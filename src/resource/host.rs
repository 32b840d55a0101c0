//! `Read::Host`: who a host is. The one read that every host is asked, whatever is declared.
//!
//! The answer is text of lines `word value`, ended by a line `end` so that a truncated one is seen;
//! the os-release file travels as lines `os KEY=value`. Its ID is no reliable guide by letter case
//! (`openEuler` has a capital E) and ID_LIKE is not everywhere (Source: os-release(5); openEuler
//! 22.03 has no ID_LIKE).

use super::action::PackageManager;
use super::{Read, ReadResults};
use railwright_base::{MachineId, Reason};
use std::collections::{BTreeMap, BTreeSet};

/// Programs whose presence decides how a kind reads or acts.
const TOOLS: &[&str] = &[
    "apt-get",
    "bridge",
    "busybox",
    "cma_roce_tos",
    "curl",
    "dcb",
    "depmod",
    "devlink",
    "dkms",
    "dnf",
    "dpkg-query",
    "dracut",
    "eadm",
    "ethtool",
    "gcc",
    "git",
    "grub-mkconfig",
    "grub2-mkconfig",
    "grubby",
    "ib_read_lat",
    "ib_write_bw",
    "ibstat",
    "ibv_devinfo",
    "ifquery",
    "ifreload",
    "ifup",
    "ip",
    "kmod",
    "lspci",
    "make",
    "mlnx_qos",
    "mlxconfig",
    "modinfo",
    "modprobe",
    "mstconfig",
    "netplan",
    "networkctl",
    "nmcli",
    "nvidia-smi",
    "ofed_info",
    "ping",
    "rdma",
    "resolvectl",
    "rpm",
    "setsid",
    "show_gids",
    "stat",
    "sysctl",
    "systemctl",
    "systemd-run",
    "tar",
    "tc",
    "timeout",
    "udevadm",
    "update-grub",
    "update-initramfs",
    "yum",
];

/// The section. Below a root prefix only files of the recorded tree are asked, never the machine
/// that reads them, except for its architecture.
pub fn read_script() -> String {
    format!(
        "echo version 1\n\
         for f in \"$R/etc/os-release\" \"$R/usr/lib/os-release\"; do [ -r \"$f\" ] && {{ sed \
         's/^/os /' \"$f\"; echo; break; }}; done\n\
         one() {{ [ -r \"$R$2\" ] && printf '%s %s\\n' \"$1\" \"$(head -c 8192 \"$R$2\" | tr '\\n' \
         ' ')\"; }}\n\
         one kernel /proc/sys/kernel/osrelease\n\
         one boot_id /proc/sys/kernel/random/boot_id\n\
         one cmdline /proc/cmdline\n\
         echo \"architecture $(uname -m)\"\n\
         echo \"uid $(id -u)\"\n\
         [ -d \"$R/run/systemd/system\" ] && echo 'init systemd'\n\
         for t in {tools}; do\n\
         if [ -z \"$R\" ]; then command -v \"$t\" >/dev/null 2>&1 && echo \"tool $t\"; continue; \
         fi\n\
         for d in usr/bin usr/sbin bin sbin usr/local/bin usr/local/sbin; do [ -x \"$R/$d/$t\" ] \
         && {{ echo \"tool $t\"; break; }}; done\n\
         done\n\
         {VIRTUALIZATION}{MACHINE}{CONNECTION}echo end\n",
        tools = TOOLS.join(" "),
    )
}

/// `systemd-detect-virt` prints `none` and fails on bare metal; without it the CPU's hypervisor
/// flag has to do.
const VIRTUALIZATION: &str = "v=\n\
                              if [ -z \"$R\" ] && command -v systemd-detect-virt >/dev/null 2>&1; \
                              then v=$(systemd-detect-virt 2>/dev/null)\n\
                              elif [ -e \"$R/.dockerenv\" ] || [ -e \"$R/run/.containerenv\" ]; \
                              then v=container\n\
                              elif grep -q '^flags.* hypervisor' \"$R/proc/cpuinfo\" 2>/dev/null; \
                              then v=vm\n\
                              fi\n\
                              [ -n \"$v\" ] && echo \"virtualization $v\"\n";

/// machine-id(5): absent, empty or the word `uninitialized` on an image that was not booted yet.
/// One that is mounted over the file is regenerated at every boot, or is that of the machine below
/// a container: it identifies no installation. Two containers from one image may have the same one
/// in the same boot; their process namespaces differ.
const MACHINE: &str = "m=none\n\
                       for f in \"$R/etc/machine-id\" \"$R/var/lib/dbus/machine-id\"; do\n\
                       [ -s \"$f\" ] || continue\n\
                       m=; [ -r \"$f\" ] && m=$(head -c 64 \"$f\" | tr '\\n' ' ')\n\
                       break\n\
                       done\n\
                       [ -z \"$R\" ] && grep -q ' /etc/machine-id ' /proc/self/mountinfo \
                       2>/dev/null && m=none\n\
                       [ -n \"$m\" ] && echo \"machine_id $m\"\n\
                       [ -z \"$R\" ] && n=$(readlink /proc/self/ns/pid 2>/dev/null) && echo \
                       \"pid_namespace $n\"\n";

/// The netdev that carries our own connection, and all that lie below it (the ports of a bond, the
/// parent of a VLAN): `SSH_CONNECTION` is `client port server port`; a zone (`fe80::1%eth0`) names
/// the netdev itself.
const CONNECTION: &str = "if [ -z \"$R\" ] && [ -n \"${SSH_CONNECTION:-}\" ]; then\n\
                          set -f; set -- $SSH_CONNECTION; set +f\n\
                          case ${1:-} in *%*) n=${1#*%} ;; *)\n\
                          r=$(ip -o route get \"${1:-}\" from \"${3:-}\" 2>/dev/null || ip route \
                          get \"${1:-}\" 2>/dev/null)\n\
                          n=$(printf '%s\\n' \"$r\" | sed -n 's/.* dev \\([^ ]*\\).*/\\1/p' | head \
                          -n 1) ;;\n\
                          esac\n\
                          [ -n \"$n\" ] && echo \"ssh $n\"\n\
                          below() { for l in \"/sys/class/net/$1\"/lower_*; do [ -e \"$l\" ] || \
                          continue; l=${l##*/lower_}; echo \"ssh_below $l\"; below \"$l\"; done; \
                          }\n\
                          case $n in ''|*/*) ;; *) below \"$n\" ;; esac\n\
                          fi\n";

/// What a host reports of its machine-id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum MachineIdReading {
    /// It has this one.
    Known(MachineId),
    /// It has none that stays, or what stands there is none.
    Absent,
    /// It did not report one.
    #[default]
    Unknown,
}

impl MachineIdReading {
    /// True where this is certainly not the earlier machine: one without a machine-id was installed
    /// anew from an image.
    pub fn is_another_than(&self, before: &MachineId) -> bool {
        *self != MachineIdReading::Unknown && self.known() != Some(before)
    }

    fn parse(text: &str) -> Self {
        text.parse()
            .map_or(MachineIdReading::Absent, MachineIdReading::Known)
    }

    /// The identifier, where there is one.
    pub fn known(&self) -> Option<&MachineId> {
        if let MachineIdReading::Known(machine) = self {
            Some(machine)
        } else {
            None
        }
    }
}

/// One running machine. Cloned images share a machine-id and differ in the boot; containers of one
/// kernel share the boot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunningMachine {
    /// The installation.
    pub machine_id: MachineId,
    /// The boot of its kernel.
    pub boot_id: String,
    /// Its process namespace; empty when unknown.
    pub pid_namespace: String,
}

/// Who a host is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// `ID` of os-release, as it is written there: `debian`, `openEuler`.
    pub os_id: String,
    /// `VERSION_ID` of os-release; empty for rolling releases.
    pub os_version: String,
    /// `ID_LIKE` of os-release, nearest relative first.
    pub os_id_like: Vec<String>,
    /// The running kernel's release.
    pub kernel: String,
    /// The machine as `uname -m` names it: `x86_64`, `aarch64`.
    pub architecture: String,
    /// Fresh at every boot: the proof of a reboot.
    pub boot_id: String,
    /// Fresh with every installation.
    pub machine_id: MachineIdReading,
    /// The namespace in which its processes are numbered; empty when unknown.
    pub pid_namespace: String,
    /// The user that reads; 0 unless something is wrong.
    pub uid: u32,
    /// The running kernel's command line.
    pub cmdline: String,
    /// Which of the programs that we ask for are in the path.
    pub tools: BTreeSet<String>,
    /// systemd is the init that runs.
    pub init_systemd: bool,
    /// What `systemd-detect-virt` says: `none`, `kvm`, `qemu`, `docker`; empty when unknown.
    pub virtualization: String,
    /// The netdev that carries our own connection. None when there is no SSH, or it could not be
    /// found out.
    pub ssh_netdev: Option<String>,
    /// That netdev and everything below it: changing any of them can cut us off.
    pub ssh_netdevs: BTreeSet<String>,
    /// The program that keeps packages.
    pub package_manager: Option<PackageManager>,
}

impl HostFacts {
    /// The boot that it is in, where that is known.
    pub fn boot(&self) -> Option<String> {
        Some(self.boot_id.clone()).filter(|boot_id| !boot_id.is_empty())
    }

    /// Which machine it is, in which boot; nothing where one of the two is unknown.
    pub fn running_machine(&self) -> Option<RunningMachine> {
        let machine_id = self.machine_id.known()?.clone();
        Some(RunningMachine {
            machine_id,
            boot_id: self.boot()?,
            pid_namespace: self.pid_namespace.clone(),
        })
    }
}

/// The lines of the answer to `Read::Host` that name the netdevs of our own connection, and nothing
/// else of it.
pub fn ssh_lines(answers: &ReadResults) -> impl Iterator<Item = &str> {
    let text = answers.output(&Read::Host).map_or("", |(_, text)| text);
    text.lines().filter(|line| line.starts_with("ssh"))
}

/// Decodes the answer to `Read::Host`; the error is a reason that fits after "unknown:".
pub fn decode_host_facts(answers: &ReadResults) -> Result<HostFacts, Reason> {
    let (_, text) = answers.output(&Read::Host)?;
    if !text.lines().any(|line| line == "end") {
        return Err("the answer of the host is not complete".into());
    }
    let mut facts = HostFacts::default();
    let mut os = BTreeMap::new();
    for line in text.lines() {
        let (word, value) = line.split_once(' ').unwrap_or((line, ""));
        let value = value.trim();
        match word {
            "os" => os.extend(parse_os_release_line(value)),
            "kernel" => facts.kernel = value.to_owned(),
            "architecture" => facts.architecture = value.to_owned(),
            "boot_id" => facts.boot_id = value.to_owned(),
            "machine_id" => facts.machine_id = MachineIdReading::parse(value),
            "pid_namespace" => facts.pid_namespace = value.to_owned(),
            "uid" => {
                facts.uid = value
                    .parse()
                    .map_err(|_| "the user's number could not be read".to_owned())?
            }
            "cmdline" => facts.cmdline = value.to_owned(),
            "tool" => drop(facts.tools.insert(value.to_owned())),
            "init" => facts.init_systemd = value == "systemd",
            "virtualization" => facts.virtualization = value.to_owned(),
            "ssh" => {
                facts.ssh_netdev = Some(value.to_owned());
                facts.ssh_netdevs.insert(value.to_owned());
            }
            "ssh_below" => drop(facts.ssh_netdevs.insert(value.to_owned())),
            _ => {}
        }
    }
    facts.os_id = os.get("ID").cloned().unwrap_or_else(|| "linux".to_owned());
    facts.os_version = os.get("VERSION_ID").cloned().unwrap_or_default();
    facts.os_id_like = os
        .get("ID_LIKE")
        .map(|like| like.split_whitespace().map(str::to_owned).collect())
        .unwrap_or_default();
    facts.package_manager = package_manager(&facts);
    Ok(facts)
}

/// The family decides where both programs are installed: Debian has a `dnf` package.
fn package_manager(facts: &HostFacts) -> Option<PackageManager> {
    let apt = facts.tools.contains("apt-get");
    let dnf = facts.tools.contains("dnf");
    let debian = facts.os_id == "debian"
        || facts
            .os_id_like
            .iter()
            .any(|like| like == "debian" || like == "ubuntu");
    match (apt, dnf) {
        (true, true) if debian => Some(PackageManager::Apt),
        (_, true) => Some(PackageManager::Dnf),
        (true, false) => Some(PackageManager::Apt),
        (false, false) => None,
    }
}

/// `KEY=value`, `KEY="value"` or `KEY='value'` of os-release; within double quotes a backslash
/// takes the next character literally (os-release(5)).
fn parse_os_release_line(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once('=')?;
    let value = value.trim();
    let value = match value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')) {
        Some(inner) => inner.to_owned(),
        None => {
            let inner = value
                .strip_prefix('"')
                .and_then(|v| v.strip_suffix('"'))
                .unwrap_or(value);
            let mut out = String::new();
            let mut characters = inner.chars();
            while let Some(c) = characters.next() {
                out.extend(if c == '\\' {
                    characters.next()
                } else {
                    Some(c)
                });
            }
            out
        }
    };
    (!key.starts_with('#')).then(|| (key.trim().to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnswerStatus, ReadResult};

    fn decode(out: &str) -> Result<HostFacts, Reason> {
        let mut answers = ReadResults::default();
        answers.insert(
            "host",
            ReadResult {
                status: AnswerStatus::Exit(0),
                out: out.to_owned(),
            },
        );
        decode_host_facts(&answers)
    }

    fn with_os(os_release: &str, tools: &[&str]) -> HostFacts {
        let os: String = os_release
            .lines()
            .map(|line| format!("os {line}\n"))
            .collect();
        let tools: String = tools.iter().map(|tool| format!("tool {tool}\n")).collect();
        decode(&format!(
            "version 1\n\
             {os}\n\
             kernel 6.1.0-28-amd64 \n\
             boot_id b0-07 \n\
             cmdline quiet iommu=pt \n\
             architecture x86_64\n\
             uid 0\n\
             init systemd\n\
             {tools}virtualization kvm\n\
             ssh bond0\n\
             ssh_below ens1f0\n\
             end\n"
        ))
        .unwrap()
    }

    // The os-release texts below are those that the distributions ship.
    const UBUNTU_2204: &str = "PRETTY_NAME=\"Ubuntu 22.04.4 LTS\"\n\
                               NAME=\"Ubuntu\"\n\
                               VERSION_ID=\"22.04\"\n\
                               VERSION=\"22.04.4 LTS (Jammy Jellyfish)\"\n\
                               ID=ubuntu\n\
                               ID_LIKE=debian\n\
                               UBUNTU_CODENAME=jammy";
    const DEBIAN_12: &str = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n\
                             NAME=\"Debian GNU/Linux\"\n\
                             VERSION_ID=\"12\"\n\
                             VERSION=\"12 (bookworm)\"\n\
                             ID=debian";
    const ROCKY_94: &str = "NAME=\"Rocky Linux\"\n\
                            VERSION=\"9.4 (Blue Onyx)\"\n\
                            ID=\"rocky\"\n\
                            ID_LIKE=\"rhel centos fedora\"\n\
                            VERSION_ID=\"9.4\"\n\
                            PLATFORM_ID=\"platform:el9\"";
    const OPENEULER_2203: &str = "NAME=\"openEuler\"\n\
                                  VERSION=\"22.03 (LTS-SP3)\"\n\
                                  ID=\"openEuler\"\n\
                                  VERSION_ID=\"22.03\"\n\
                                  PRETTY_NAME=\"openEuler 22.03 (LTS-SP3)\"";
    const ALINUX_3: &str = "NAME=\"Alibaba Cloud Linux\"\n\
                            VERSION=\"3 (OpenAnolis Edition)\"\n\
                            ID=\"alinux\"\n\
                            ID_LIKE=\"rhel fedora centos anolis\"\n\
                            VERSION_ID=\"3\"";

    #[test]
    fn tells_the_families_apart() {
        for (os, tools, id, version, manager) in [
            (
                UBUNTU_2204,
                &["apt-get"][..],
                "ubuntu",
                "22.04",
                Some(PackageManager::Apt),
            ),
            (
                DEBIAN_12,
                &["apt-get", "dnf"],
                "debian",
                "12",
                Some(PackageManager::Apt),
            ),
            (
                ROCKY_94,
                &["dnf", "yum"],
                "rocky",
                "9.4",
                Some(PackageManager::Dnf),
            ),
            (
                ROCKY_94,
                &["dnf", "apt-get"],
                "rocky",
                "9.4",
                Some(PackageManager::Dnf),
            ),
            (
                OPENEULER_2203,
                &["dnf"],
                "openEuler",
                "22.03",
                Some(PackageManager::Dnf),
            ),
            (ALINUX_3, &["dnf"], "alinux", "3", Some(PackageManager::Dnf)),
            ("", &[], "linux", "", None),
        ] {
            let facts = with_os(os, tools);
            assert_eq!(
                (
                    facts.os_id.as_str(),
                    facts.os_version.as_str(),
                    facts.package_manager
                ),
                (id, version, manager)
            );
        }
        assert_eq!(
            with_os(ALINUX_3, &[]).os_id_like,
            ["rhel", "fedora", "centos", "anolis"]
        );
    }

    #[test]
    fn decodes_the_rest() {
        let facts = with_os("NAME='a b'\nID=\"we\\\"ird\"", &["ip"]);
        assert_eq!(
            (
                facts.os_id.as_str(),
                facts.kernel.as_str(),
                facts.boot_id.as_str()
            ),
            ("we\"ird", "6.1.0-28-amd64", "b0-07")
        );
        assert_eq!(
            (
                facts.cmdline.as_str(),
                facts.init_systemd,
                facts.virtualization.as_str()
            ),
            ("quiet iommu=pt", true, "kvm")
        );
        assert_eq!(facts.ssh_netdev.as_deref(), Some("bond0"));
        assert_eq!(
            facts.ssh_netdevs,
            ["bond0", "ens1f0"].map(str::to_owned).into()
        );
    }

    #[test]
    fn a_machine_id_is_known_absent_or_unknown() {
        let id = "3d1219c7c4c5404aaa1f6d2a48adfda4";
        let tree = tempfile::tempdir().unwrap();
        let read = || read_here(&["sh"], &tree.path().display().to_string(), "").machine_id;
        assert_eq!(read(), MachineIdReading::Absent);
        for (file, text, expected) in [
            (
                "var/lib/dbus/machine-id",
                format!("{id}\n"),
                MachineIdReading::Known(id.parse().unwrap()),
            ),
            (
                "etc/machine-id",
                String::new(),
                MachineIdReading::Known(id.parse().unwrap()),
            ),
            (
                "etc/machine-id",
                "uninitialized\n".to_owned(),
                MachineIdReading::Absent,
            ),
            (
                "etc/machine-id",
                format!("{}\n", "0".repeat(32)),
                MachineIdReading::Absent,
            ),
            (
                "etc/machine-id",
                "no id\nend\n".to_owned(),
                MachineIdReading::Absent,
            ),
        ] {
            let path = tree.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
            assert_eq!(read(), expected, "{file}: {text:?}");
        }
        assert_eq!(
            decode("boot_id b\nend\n").unwrap().machine_id,
            MachineIdReading::Unknown,
            "an older recording"
        );
        assert!(
            decode(&format!("boot_id b\nmachine_id {id}\nend\n"))
                .unwrap()
                .running_machine()
                .is_some()
        );
        assert!(
            decode(&format!("machine_id {id}\nend\n"))
                .unwrap()
                .running_machine()
                .is_none()
        );
    }

    #[test]
    fn a_truncated_answer_is_unknown() {
        assert!(decode("version 1\nkernel 6.1.0\n").is_err());
        assert!(decode("uid x\nend\n").is_err());
        assert!(decode_host_facts(&ReadResults::default()).is_err());
    }

    fn read_here(shell: &[&str], root: &str, connection: &str) -> HostFacts {
        use std::io::Write as _;
        use std::process::{Command, Stdio};
        let program = crate::program::render_read_program(&[Read::Host], root, "f00d");
        let mut child = Command::new(shell[0]);
        let child = child
            .args(&shell[1..])
            .arg("-s")
            .env("SSH_CONNECTION", connection)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(program.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap().stdout;
        decode_host_facts(&crate::program::parse_program_answers(
            &[Read::Host],
            "f00d",
            &output,
        ))
        .unwrap()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn reads_this_machine() {
        for shell in [&["sh"][..], &["dash"], &["bash"], &["busybox", "sh"]] {
            if std::process::Command::new(shell[0])
                .arg("--help")
                .stdin(std::process::Stdio::null())
                .output()
                .is_err()
            {
                continue;
            }
            let facts = read_here(shell, "", "127.0.0.1 50000 127.0.0.1 22");
            assert_eq!(
                facts.boot_id,
                std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
                    .unwrap()
                    .trim(),
                "{shell:?}"
            );
            assert!(
                !facts.kernel.is_empty()
                    && !facts.architecture.is_empty()
                    && !facts.os_id.is_empty(),
                "{shell:?}"
            );
            assert_eq!(
                facts.ssh_netdev.as_deref(),
                facts.tools.contains("ip").then_some("lo"),
                "{shell:?}"
            );
            assert_eq!(
                read_here(shell, "", "fe80::1%ens4 50000 fe80::2%ens4 22")
                    .ssh_netdev
                    .as_deref(),
                Some("ens4")
            );
        }
    }

    #[test]
    fn a_recorded_tree_is_read_instead_of_the_machine() {
        let tree = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("etc/os-release", ROCKY_94),
            ("proc/sys/kernel/osrelease", "5.14.0-427.el9.x86_64\n"),
            ("proc/sys/kernel/random/boot_id", "feed\n"),
            ("proc/cmdline", "root=/dev/sda1 ro\n"),
            ("usr/bin/dnf", ""),
        ] {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
        }
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(
            tree.path().join("usr/bin/dnf"),
            std::fs::Permissions::from_mode(0o755),
        )
        .unwrap();
        let facts = read_here(
            &["sh"],
            &tree.path().display().to_string(),
            "127.0.0.1 1 127.0.0.1 2",
        );
        assert_eq!(
            (
                facts.os_id.as_str(),
                facts.kernel.as_str(),
                facts.boot_id.as_str()
            ),
            ("rocky", "5.14.0-427.el9.x86_64", "feed")
        );
        assert_eq!(
            (facts.package_manager, facts.ssh_netdev, facts.init_systemd),
            (Some(PackageManager::Dnf), None, false)
        );
        assert_eq!(facts.tools, ["dnf".to_owned()].into());
    }
}
