//! Really broken hosts: each check of `verify` fails on one, with the right finding, and a rollout
//! stops at its gate.

use crate::journey::applied;
use crate::rig::Rig;
use serde_json::Value;
use std::collections::BTreeSet;

const LAB: &str = "inventories/lab";

/// What `verify` says is not as it must be: `netdev node1 RW0803`.
fn failures(rig: &Rig) -> BTreeSet<String> {
    let report = rig.json(1, &["verify", LAB, "--json"]);
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let hosts = |result: &Value| {
        result["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .map(word)
            .collect::<Vec<_>>()
            .join(">")
    };
    let bad = report["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|result| result["verdict"] == "failed" || result["verdict"] == "unknown");
    bad.map(|result| {
        format!(
            "{} {} {}",
            word(&result["check"]),
            hosts(result),
            word(&result["code"])
        )
    })
    .collect()
}

fn expect(rig: &Rig, desired: &[&str]) {
    assert_eq!(
        failures(rig),
        desired.iter().map(|&text| text.to_owned()).collect()
    );
}

/// Each round breaks what does not hide the others; between rounds the pair goes back to what had
/// passed.
pub fn verify_finds_what_is_broken(rig: &Rig) {
    rig.go_back();
    rig.said("node1", "ip link set ens1f0np0 mtu 4200");
    rig.said(
        "node2",
        "echo 0 >/sys/kernel/config/rdma_cm/rocep193s0/ports/1/default_roce_tos && echo 'root - \
         memlock 64' >/etc/security/limits.d/99-site.conf",
    );
    expect(
        rig,
        &[
            "netdev node1 RW0803",
            "path mtu node1>node2 RW0806",
            "module memlock/limit node2 RW0813",
            "dscp node2>node1 RW0807",
        ],
    );

    rig.go_back();
    rig.said("node1", "rdma link delete rocep193s0");
    rig.said("node2", "ip address del 192.168.77.2/24 dev ens1f0np0");
    expect(rig, &["rdma link node1 RW0804", "gid node2 RW0805"]);

    rig.go_back();
    rig.said("node1", "ip link set ens1f0np0 down");
    // systemd-networkd takes the address from a link that is down some time after it went, and its
    // GID goes with it.
    let mut found = failures(rig);
    found.remove("gid node1 RW0805");
    assert_eq!(
        found,
        ["netdev node1 RW0802", "rdma link node1 RW0804"]
            .map(str::to_owned)
            .into()
    );
}

/// What a rollout changes in these stories; what breaks lies elsewhere, where it is not fixed on
/// the way.
const SYSCTL: &str = "net.ipv4.neigh.default.gc_thresh1";

/// A setting has drifted on both hosts, somebody breaks the first one, and the rollout gets no
/// further than there.
pub fn a_broken_canary_stops_the_rollout(rig: &Rig) {
    rig.go_back();
    stopped(
        rig,
        "ip link set ens1f0np0 down",
        "netdev on node1 failed: ens1f0np0 is down",
    );
    // It is fixed, and the run goes on where it was stopped.
    rig.said("node1", "ip link set ens1f0np0 up");
    rig.told(0, &["resume", LAB]);
    assert_eq!(values(rig), ["4096", "4096"]);
    rig.told(0, &["plan", LAB, "--detailed-exitcode"]);

    stopped(
        rig,
        "echo 'root - memlock 64' >/etc/security/limits.d/99-site.conf",
        "module memlock/limit on node1 failed: 64",
    );
    rig.said("node1", "rm /etc/security/limits.d/99-site.conf");
    rig.told(0, &["resume", LAB]);

    stopped(
        rig,
        "ip address del 192.168.77.1/24 dev ens1f0np0",
        "gid on node1 failed",
    );
}

fn values(rig: &Rig) -> [String; 2] {
    rig.both_said(&format!("sysctl -n {SYSCTL}"))
}

fn stopped(rig: &Rig, breaking: &str, reason: &str) {
    rig.both_said(&format!("sysctl -q -w {SYSCTL}=111"));
    rig.said("node1", breaking);
    let lines = applied(
        rig,
        5,
        &[
            LAB,
            "--yes",
            "--target",
            &format!("host/node[1-2]/sysctl/{SYSCTL}"),
        ],
    );
    let said = lines.join("\n");
    assert!(said.contains("RW0650") && said.contains(reason), "{said}");
    assert_eq!(values(rig), ["4096", "111"], "the second host is untouched");
}
