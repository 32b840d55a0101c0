//! Changes that cut us off for real, on a real machine: a wrong MTU, a wrong address, a packet
//! filter. The machine puts them back by itself, also when railwright is dead and when the machine
//! boots in between.

use crate::machine::Machine;
use crate::rig::{Rig, monitor};
use crate::simulated;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const INVENTORY: &str = "inventories/rollback";
/// What configures the interface over which the machine is reached.
const NETWORK: &str = "/etc/systemd/network/10-management.network";

/// What an automatic rollback has to leave as it was: the management interface, what configures it,
/// and units that start at boot.
const SHOT: &str = "ip -o link show eth0 | sed 's/qlen.*//'; ip -o addr show eth0; ip route show table all dev eth0 | sort
find /etc/systemd /etc/nftables.conf -type f -o -type l 2>/dev/null | sort | xargs ls -ld --time-style=+
cat /etc/systemd/network/10-management.network; ls /var/lib/railwright/rollbacks/*/kept 2>/dev/null; systemctl list-timers --all --no-legend | grep railwright; :";

/// An inventory of node1 alone, whose one module declares this.
fn resources(rig: &Rig, seconds: u32, resources: &str) {
    let folder = rig.folder().join(INVENTORY);
    std::fs::create_dir_all(folder.join("modules/path")).unwrap();
    let port = rig.first_port() + 1;
    let cluster = format!(
        "cluster: rollback\n\
         ssh: {{ user: root, host_keys: ../../.lab/known_hosts, identities: [../../.lab/id] }}\n\
         nodes:\n  - {{ name: node1, os: debian-12, ssh: {{ address: 127.0.0.1, port: {port} }} }}\n\
         rollout: {{ rollback_timer: {seconds}s }}\n"
    );
    let module = format!(
        "module: path\n\
         summary: What lies on the path of our own connection\n\
         when: \"true\"\n\
         resources:\n\
         {resources}"
    );
    std::fs::write(folder.join("cluster.yaml"), cluster).unwrap();
    std::fs::write(folder.join("modules/path/module.yaml"), module).unwrap();
}

fn link(what: &str) -> String {
    format!("  - id: management\n    link: {{ netdev: eth0, {what} }}\n")
}

fn shot(machine: &Machine) -> String {
    machine.run(SHOT).1
}

/// Whether the machine's SSH server says its name. A busy one is slow, and not cut off.
fn answers(rig: &Rig) -> bool {
    let mut banner = [0; 4];
    let address = SocketAddr::from(([127, 0, 0, 1], rig.first_port() + 1));
    let patience = Some(Duration::from_secs(20));
    TcpStream::connect(address).is_ok_and(|mut stream| {
        stream.set_read_timeout(patience).is_ok()
            && stream.read_exact(&mut banner).is_ok()
            && banner == *b"SSH-"
    })
}

/// Waits until it does, or does not; QEMU itself takes the connection in any case.
fn wait_until(rig: &Rig, desired: bool) {
    let begun = Instant::now();
    while answers(rig) != desired {
        assert!(
            begun.elapsed() < Duration::from_secs(300),
            "the machine answers: {}",
            !desired
        );
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// `apply`, killed with signal 9 once this has come about.
fn killed_once(rig: &Rig, come_about: impl FnOnce()) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_railwright"));
    command
        .args(["apply", INVENTORY, "--yes"])
        .current_dir(rig.folder())
        .stdin(Stdio::null());
    let mut child = command
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    come_about();
    child.kill().unwrap();
    child.wait().unwrap();
    rig.hang_up();
}

/// sshd reads its configuration when it is told to: what it does not take, and what shuts us out
/// once it was read, is put back, and the server has read that, too.
pub fn a_server_that_would_not_let_us_in_is_put_back(rig: &Rig, machine: &Machine) {
    const FILE: &str = "/etc/ssh/sshd_config.d/50-lab.conf";
    let before = shot(machine);
    for (line, why) in [
        ("BogusKey yes", "does not take its configuration"),
        ("DenyUsers root", "no new connection could be made"),
    ] {
        resources(
            rig,
            40,
            &format!("  - id: server\n    file: {{ path: {FILE}, content: \"{line}\\n\" }}\n"),
        );
        let (_, err) = rig.told(1, &["apply", INVENTORY, "--yes"]);
        let flat = err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(why) && flat.contains("RW0641"), "{err}");
        rig.hang_up();
        assert_eq!(
            machine.sh(&format!(
                "ls {FILE} 2>/dev/null; sshd -T | grep -c '^denyusers'; :"
            )),
            "0\n"
        );
        assert_eq!(shot(machine), before);
    }
    resources(
        rig,
        40,
        &format!("  - id: server\n    file: {{ path: {FILE}, content: \"MaxSessions 77\\n\" }}\n"),
    );
    rig.told(0, &["apply", INVENTORY, "--yes"]);
    assert_eq!(
        machine.sh("sshd -T | grep '^maxsessions'"),
        "maxsessions 77\n"
    );
    resources(rig, 40, "  []\n");
    rig.told(0, &["apply", INVENTORY, "--yes"]);
    rig.hang_up();
    assert_eq!(shot(machine), before);
}

/// The machine's own configuration, with an address to which nothing is forwarded, and the restart
/// that it owes: both are recognised by their names, and go out together.
pub fn a_wrong_address_is_put_back(rig: &Rig, machine: &Machine) {
    let right = machine.sh(&format!("cat {NETWORK}"));
    assert!(right.contains("10.0.2.15/24"), "{right}");
    let wrong = serde_json::Value::from(right.replace("10.0.2.15", "10.0.2.99"));
    let file = format!("  - id: network\n    file: {{ path: {NETWORK}, content: {wrong} }}\n");
    let unit = format!(
        "  - id: networkd\n    systemd_unit: {{ name: systemd-networkd.service, active: true, restart_on: \
         [{NETWORK}] }}\n"
    );
    resources(rig, 60, &format!("{file}{unit}"));
    let before = shot(machine);
    machine.sh("systemd-run -q --unit=seen sh -c 'exec ip -4 monitor address >/run/seen'");
    let (screen, _) = rig.told(0, &["plan", INVENTORY]);
    assert!(
        screen.contains("reverts by itself after 60 s unless confirmed"),
        "{screen}"
    );
    let (out, err) = rig.told(1, &["apply", INVENTORY, "--yes"]);
    assert!(
        err.contains("automatic rollback armed") && err.contains("rolled back automatically"),
        "{err}"
    );
    assert!(
        err.contains("error RW0641") && err.contains("node1 is as it was before the change"),
        "{out}\n{err}"
    );
    rig.hang_up();
    assert_eq!(
        machine
            .sh("systemctl stop seen; grep -c 10.0.2.99/24 /run/seen >/dev/null && echo seen")
            .trim(),
        "seen"
    );
    assert_eq!(shot(machine), before);
}

/// The smallest MTU that there is, and the run is dead before it could confirm it: the machine
/// comes back by the clock. The right MTU is then confirmed over a new connection.
pub fn a_wrong_mtu_is_put_back_for_a_dead_run(rig: &Rig, machine: &Machine) {
    resources(rig, 60, &link("mtu: 68"));
    let before = shot(machine);
    killed_once(rig, || {
        drop(machine.sh(
            "timeout 200 sh -c 'until [ $(cat /sys/class/net/eth0/mtu) = 68 ]; do sleep 0.1; done'",
        ))
    });
    wait_until(rig, true);
    machine.sh(
        "timeout 200 sh -c 'until [ $(cat /sys/class/net/eth0/mtu) = 1500 ]; do sleep 0.5; done'",
    );
    // Its service is `activating` until it has ended, which `is-active` does not count.
    machine.sh(
        "while systemctl list-units --all --plain --no-legend 'railwright-rollback-*.service' | grep \
         -qw activating; do sleep 0.5; done",
    );
    assert_eq!(shot(machine), before);
    resources(rig, 180, &link("mtu: 1400"));
    let (_, err) = rig.told(0, &["apply", INVENTORY, "--yes"]);
    assert!(err.contains("confirmed over a new connection"), "{err}");
    assert_eq!(
        machine
            .sh("cat /sys/class/net/eth0/mtu; ls /var/lib/railwright/rollbacks")
            .trim(),
        "1400"
    );
    assert!(rig.told(0, &["plan", INVENTORY]).0.contains("No changes."));
}

/// Rules that shut us out are loaded at boot as well; nobody is left who could confirm them, and it
/// is the boot that puts back what was there.
pub fn a_packet_filter_is_put_back_by_a_boot(rig: &Rig, machine: &Machine) {
    simulated::with_packages(rig, machine);
    machine.sh(
        "DEBIAN_FRONTEND=noninteractive apt-get -qq install -y nftables </dev/null >/dev/null && \
         systemctl enable -q --now nftables && nft list ruleset",
    );
    let rules = "flush ruleset\\ntable inet t { chain c \
                 { type filter hook input priority 0; tcp dport 22 drop; }; }\\n";
    let file = format!(
        "  - id: rules\n    file: {{ path: /etc/nftables.conf, content: \"{rules}\", mode: \"0755\" }}\n"
    );
    let unit = "  - id: filter\n    systemd_unit: \
                { name: nftables.service, active: true, enabled: true, restart_on: [/etc/nftables.conf] }\n";
    resources(rig, 3600, &format!("{}{file}{unit}", link("mtu: 1400")));
    let look = format!("{SHOT}; cat /etc/nftables.conf; nft list ruleset");
    let before = machine.sh(&look);
    let boot = machine.sh("cat /proc/sys/kernel/random/boot_id");
    killed_once(rig, || wait_until(rig, false));
    assert_eq!(
        monitor(&rig.lab_folder().join("machines/node1"), "system_reset"),
        ""
    );
    // The boot of before drops every packet, so whoever answers is the next one. It may be up
    // before `answers` gives one try up.
    wait_until(rig, true);
    machine.sh("timeout 120 systemctl is-system-running --wait >/dev/null; :");
    assert_ne!(machine.sh("cat /proc/sys/kernel/random/boot_id"), boot);
    assert_eq!(machine.sh(&look), before);
    assert_eq!(
        machine
            .sh("ls /var/lib/railwright/rollbacks/*/reverted | wc -l")
            .trim(),
        "1"
    );
}
