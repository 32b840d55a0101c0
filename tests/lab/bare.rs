//! The machines as they come up: bare, each with its own identity, and served by a signed
//! repository.

use crate::rig::Rig;

pub fn they_are_bare(rig: &Rig) {
    for machine in ["node1", "node2"] {
        let found = rig.said(
            machine,
            "command -v gcc make dkms python3 ibv_devinfo ib_write_bw rping; lsmod | grep -E \
             '^(rdma_rxe|ib_uverbs|mlx5_core)'; ls /etc/apt/sources.list.d",
        );
        assert_eq!(found, "", "{machine} is not bare");
        assert_eq!(
            rig.said(
                machine,
                "systemctl is-system-running; systemctl --failed --no-legend"
            ),
            "running"
        );
        let nic = rig.said(
            machine,
            "lspci -nn -s c1:00.0; cat /sys/class/net/ens1f0np0/mtu; dcb pfc show dev ens1f0np0; \
             modinfo -F description fakecx",
        );
        for part in ["[15b3:101b]", "1500", "3:off", "make-believe ConnectX-6"] {
            assert!(nic.contains(part), "{part} not in {nic}");
        }
    }
    assert!(
        rig.said("node1", "ping -c 1 -W 20 192.168.77.2")
            .contains(" 0% packet loss")
    );
}

pub fn they_have_their_own_identity(rig: &Rig) {
    let identity = |machine| {
        rig.said(
            machine,
            "hostname; cat /etc/machine-id; cat /etc/ssh/ssh_host_ed25519_key.pub",
        )
    };
    let (one, two) = (identity("node1"), identity("node2"));
    assert!(
        one.starts_with("node1\n") && two.starts_with("node2\n"),
        "{one}\n{two}"
    );
    assert!(
        one.lines()
            .skip(1)
            .zip(two.lines().skip(1))
            .all(|(a, b)| a != b && !a.is_empty()),
        "{one}\n{two}"
    );
    let known_hosts = std::fs::read_to_string(rig.lab_folder().join("known_hosts")).unwrap();
    let key = one
        .lines()
        .nth(2)
        .and_then(|line| line.split(' ').nth(1))
        .unwrap();
    assert!(
        known_hosts.contains(&format!(
            "[127.0.0.1]:{} ssh-ed25519 {key}\n",
            rig.first_port() + 1
        )),
        "{known_hosts}"
    );
    // A machine under another machine's key is not talked to.
    std::fs::write(
        rig.lab_folder().join("known_hosts"),
        known_hosts.replace(
            key,
            two.lines()
                .nth(2)
                .and_then(|l| l.split(' ').nth(1))
                .unwrap(),
        ),
    )
    .unwrap();
    assert_eq!(rig.said("node1", "hostname"), "");
    std::fs::write(rig.lab_folder().join("known_hosts"), known_hosts).unwrap();
}

pub fn packages_come_signed(rig: &Rig) {
    let source = format!(
        "deb [signed-by=/etc/apt/keyrings/lab.asc] http://10.0.2.2:{}/ ./",
        rig.first_port() + 80
    );
    let update =
        format!("echo '{source}' > /etc/apt/sources.list.d/lab.list; apt-get -q update 2>&1");
    let unsigned = rig.said("node1", &update);
    assert!(
        unsigned.contains("NO_PUBKEY") || unsigned.contains("is not signed"),
        "without the key nothing is accepted: {unsigned}"
    );
    let key = std::fs::read_to_string(rig.lab_folder().join("repository.asc")).unwrap();
    let signed = rig.said(
        "node1",
        &format!(
            "mkdir -p /etc/apt/keyrings; cat > /etc/apt/keyrings/lab.asc <<'EOF'\n\
             {key}\n\
             EOF\n\
             {update} && apt-get -qq -y install rdmacm-utils >/dev/null 2>&1; command -v rping"
        ),
    );
    assert!(signed.ends_with("/usr/bin/rping"), "{signed}");
}

/// This computer's other ports are closed to the machines, under every address that it could have
/// there.
pub fn they_reach_nothing_but_their_repository(rig: &Rig) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = |address: &str, port: u16| {
        rig.said(
            "node1",
            &format!(
                "timeout 20 bash -c 'exec 3<>/dev/tcp/{address}/{port}' 2>/dev/null && echo reached"
            ),
        )
    };
    assert_eq!(reach("10.0.2.2", rig.first_port() + 80), "reached");
    for address in ["10.0.2.2", "10.0.2.9", "10.0.2.1"] {
        assert_eq!(reach(address, port), "", "{address}");
    }
}

pub fn pam_gives_limits_to_fresh_logins(rig: &Rig) {
    assert_ne!(rig.said("node1", "ulimit -l"), "unlimited");
    rig.said(
        "node1",
        "echo 'root - memlock unlimited' > /etc/security/limits.d/90-test.conf",
    );
    assert_eq!(rig.said("node1", "ulimit -l"), "unlimited");
}
