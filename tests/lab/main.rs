//! The lab, on the real thing: QEMU machines are built, booted, looked at, changed, reset and ended.
//! Rig `lab`: QEMU and the programs that build a machine. Without them the test says that it is skipped, and fails when
//! RAILWRIGHT_REQUIRE_RIGS=1. RAILWRIGHT_TEST_LAB_CACHE names a folder that keeps built disks between runs.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};

/// A lab in a folder of its own, on ports of its own, that is ended when the test ends, however it ends.
struct Rig {
    folder: tempfile::TempDir,
    first_port: u16,
}

impl Rig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some(cache) = std::env::var_os("RAILWRIGHT_TEST_LAB_CACHE") {
            std::fs::create_dir_all(&cache).unwrap();
            std::os::unix::fs::symlink(cache, folder.path().join("cache")).unwrap();
        }
        Rig { folder, first_port: free_range() }
    }

    fn lab(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_railwright"));
        command.arg("lab").args(arguments).env("RAILWRIGHT_LAB_DIR", self.folder.path());
        command.env("RAILWRIGHT_LAB_PORT", self.first_port.to_string()).output().unwrap()
    }

    /// The command's standard output; it must end with 0.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.lab(arguments);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "lab {arguments:?}: {:?}\n{out}\n{err}", output.status);
        out.into_owned()
    }

    /// What a script in a machine says, whether it succeeds or not.
    fn said(&self, machine: &str, script: &str) -> String {
        String::from_utf8_lossy(&self.lab(&["ssh", machine, "--", script]).stdout).trim().to_owned()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.lab(&["down"]);
    }
}

/// The first port of a range in which those that the test needs are free just now.
fn free_range() -> u16 {
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    (30_000..60_000).step_by(100).find(|first| [1, 2, 80].iter().all(|offset| free(first + offset))).expect("some range is free")
}

/// Says why the rig is not there.
fn missing() -> Option<&'static str> {
    let here = |name: &str| ["/usr/bin", "/usr/sbin", "/bin", "/usr/local/bin"].iter().any(|folder| Path::new(folder).join(name).exists());
    let missing =
        ["qemu-system-x86_64", "qemu-img", "mmdebstrap", "grub-mkimage", "apt-ftparchive", "busybox"].into_iter().find(|name| !here(name));
    if missing.is_some() && std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_ok_and(|value| value == "1") {
        panic!("rig `lab` is required and {} is missing; `railwright lab up` names what to install", missing.unwrap_or_default());
    }
    missing
}

#[test]
fn two_bare_machines_come_up_are_changed_reset_and_ended() {
    if let Some(program) = missing() {
        eprintln!("skipped: rig `lab` needs {program}; RAILWRIGHT_REQUIRE_RIGS=1 makes this a failure");
        return;
    }
    let rig = Rig::new();
    let up = rig.done(&["up"]);
    assert!(up.contains("the lab is up") && up.contains("make-believe ConnectX-6"), "{up}");
    assert!(rig.done(&["up"]).contains("the lab is up already"));
    assert_eq!(rig.lab(&["up", "3"]).status.code(), Some(4), "another lab is refused while this one is up");

    they_are_bare(&rig);
    they_have_their_own_identity(&rig);
    packages_come_signed(&rig);
    pam_gives_limits_to_fresh_logins(&rig);
    rig.done(&["reset"]);
    assert_eq!(
        rig.said("node1", "command -v rping; ls /etc/apt/sources.list.d /etc/security/limits.d"),
        "/etc/apt/sources.list.d:\n\n/etc/security/limits.d:"
    );

    a_reboot_takes_up_a_boot_setting(&rig);
    assert!(rig.done(&["down"]).contains("2 machines ended"));
    assert_eq!(rig.lab(&["ssh", "node1", "--", "true"]).status.code(), Some(1));
    assert!(rig.done(&["up"]).contains("restored to its bare state"));
    assert!(!rig.said("node1", "cat /proc/cmdline").contains("iommu=pt"));
}

fn they_are_bare(rig: &Rig) {
    for machine in ["node1", "node2"] {
        let found = rig.said(machine, "command -v gcc make dkms python3 ibv_devinfo ib_write_bw rping; lsmod | grep -E '^(rdma_rxe|ib_uverbs|mlx5_core)'; ls /etc/apt/sources.list.d");
        assert_eq!(found, "", "{machine} is not bare");
        assert_eq!(rig.said(machine, "systemctl is-system-running; systemctl --failed --no-legend"), "running");
        let nic = rig.said(
            machine,
            "lspci -nn -s c1:00.0; cat /sys/class/net/ens1f0np0/mtu; dcb pfc show dev ens1f0np0; modinfo -F description fakecx",
        );
        for part in ["[15b3:101b]", "1500", "3:off", "make-believe ConnectX-6"] {
            assert!(nic.contains(part), "{part} not in {nic}");
        }
    }
    assert!(rig.said("node1", "ping -c 1 -W 20 192.168.77.2").contains(" 0% packet loss"));
}

fn they_have_their_own_identity(rig: &Rig) {
    let identity = |machine| rig.said(machine, "hostname; cat /etc/machine-id; cat /etc/ssh/ssh_host_ed25519_key.pub");
    let (one, two) = (identity("node1"), identity("node2"));
    assert!(one.starts_with("node1\n") && two.starts_with("node2\n"), "{one}\n{two}");
    assert!(one.lines().skip(1).zip(two.lines().skip(1)).all(|(a, b)| a != b && !a.is_empty()), "{one}\n{two}");
    let known_hosts = std::fs::read_to_string(rig.folder.path().join("known_hosts")).unwrap();
    let key = one.lines().nth(2).and_then(|line| line.split(' ').nth(1)).unwrap();
    assert!(known_hosts.contains(&format!("[127.0.0.1]:{} ssh-ed25519 {key}\n", rig.first_port + 1)), "{known_hosts}");
    // A machine under another machine's key is not talked to.
    std::fs::write(
        rig.folder.path().join("known_hosts"),
        known_hosts.replace(key, two.lines().nth(2).and_then(|l| l.split(' ').nth(1)).unwrap()),
    )
    .unwrap();
    assert_eq!(rig.said("node1", "hostname"), "");
    std::fs::write(rig.folder.path().join("known_hosts"), known_hosts).unwrap();
}

fn packages_come_signed(rig: &Rig) {
    let source = format!("deb [signed-by=/etc/apt/keyrings/lab.asc] http://10.0.2.2:{}/ ./", rig.first_port + 80);
    let update = format!("echo '{source}' > /etc/apt/sources.list.d/lab.list; apt-get -q update 2>&1");
    let unsigned = rig.said("node1", &update);
    assert!(unsigned.contains("NO_PUBKEY") || unsigned.contains("is not signed"), "without the key nothing is accepted: {unsigned}");
    let key = std::fs::read_to_string(rig.folder.path().join("repository.asc")).unwrap();
    let signed = rig.said(
        "node1",
        &format!(
            "mkdir -p /etc/apt/keyrings; cat > /etc/apt/keyrings/lab.asc <<'EOF'\n{key}\nEOF\n{update} && apt-get -qq -y install rdmacm-utils >/dev/null 2>&1; command -v rping"
        ),
    );
    assert!(signed.ends_with("/usr/bin/rping"), "{signed}");
}

fn pam_gives_limits_to_fresh_logins(rig: &Rig) {
    assert_ne!(rig.said("node1", "ulimit -l"), "unlimited");
    rig.said("node1", "echo 'root - memlock unlimited' > /etc/security/limits.d/90-test.conf");
    assert_eq!(rig.said("node1", "ulimit -l"), "unlimited");
}

fn a_reboot_takes_up_a_boot_setting(rig: &Rig) {
    let boot = || rig.said("node1", "cat /proc/sys/kernel/random/boot_id");
    let before = boot();
    let setting = r#"echo 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX iommu=pt"' > /etc/default/grub.d/90-test.cfg; update-grub 2>&1; systemctl reboot; echo "rc $?""#;
    assert!(rig.said("node1", setting).ends_with("rc 0"));
    let changed = |now: &str| !now.is_empty() && now != before;
    let came_back = (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(500));
        changed(&boot())
    });
    assert!(came_back, "node1 did not come back");
    assert!(rig.said("node1", "cat /proc/cmdline").ends_with("iommu=pt"));
}
