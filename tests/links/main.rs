//! Links, lossless classes and RDMA devices against real programs: the network managers of Debian 12 in boxes of their own,
//! and, where a machine with a (make-believe) ConnectX is named, `dcb`, Soft-RoCE and configfs of a real kernel.

mod rig;

use railwright::resource::configfs_value::ConfigfsValue;
use railwright::resource::link::{Link, Owner, owner};
use railwright::resource::link_qos::LinkQos;
use railwright::resource::rdma_link::{RdmaLink, device_on, rdma_devices};
use railwright::resource::{Kind, Read};
use rig::{Machine, differences, loop_law, wish};
use serde_json::json;

/// Configuration files, MTU, state and addresses of ens1; lines are
/// sorted and empty sections left out, because NetworkManager writes its files in its own form.
const SHOT: &str = "find /etc/systemd/network /etc/netplan /etc/network/interfaces* /etc/NetworkManager/system-connections -type f 2>/dev/null | sort | while IFS= read -r f; do echo \"$f\"; grep -vE '^(timestamp=.*|\\[ethernet\\]|\\[proxy\\]|)$' \"$f\" | sort; done\n\
                    cat /sys/class/net/ens1/mtu; ip -o addr show dev ens1 | awk '{ print $4 }' | grep -v ^fe80 | sort\n";

fn law(test: &str, manager: &str, body: serde_json::Value) {
    if let Some(machine) = Machine::with_manager(test, manager) {
        loop_law(&machine, &Link, body, SHOT, Some(&format!("sh /tmp/managers.sh boot {manager} </dev/null >/dev/null 2>&1")));
    }
}

#[test]
fn systemd_networkd_keeps_mtu_and_addresses() {
    law(
        "systemd_networkd_keeps_mtu_and_addresses",
        "networkd",
        json!({ "netdev": "ens1", "mtu": 9000, "up": true, "addresses": ["10.0.0.2/24", "fd00::2/64"] }),
    );
}

#[test]
fn network_manager_keeps_an_exclusive_list() {
    law(
        "network_manager_keeps_an_exclusive_list",
        "networkmanager",
        json!({ "netdev": "ens1", "addresses": ["10.0.5.2/24"], "exclusive": true }),
    );
}

#[test]
fn systemd_networkd_takes_over_a_link_that_nobody_manages() {
    law(
        "systemd_networkd_takes_over_a_link_that_nobody_manages",
        "nobody",
        json!({ "netdev": "ens1", "mtu": 4200, "addresses": ["10.0.0.2/24"] }),
    );
}

#[test]
fn network_manager_keeps_mtu_and_addresses() {
    law(
        "network_manager_keeps_mtu_and_addresses",
        "networkmanager",
        json!({ "netdev": "ens1", "mtu": 9000, "addresses": ["10.0.0.2/24", "fd00::2/64"] }),
    );
}

#[test]
fn netplan_keeps_mtu_and_addresses() {
    law("netplan_keeps_mtu_and_addresses", "netplan", json!({ "netdev": "ens1", "mtu": 9000, "addresses": ["10.0.0.2/24"] }));
}

#[test]
fn ifupdown_keeps_an_mtu_that_another_stanza_sets() {
    law(
        "ifupdown_keeps_an_mtu_that_another_stanza_sets",
        "ifupdown",
        json!({ "netdev": "ens1", "mtu": 9000, "addresses": ["10.0.0.2/24", "fd00::2/64"] }),
    );
}

#[test]
fn ifupdown_keeps_mtu_in_a_stanza_of_ours() {
    law("ifupdown_keeps_mtu_in_a_stanza_of_ours", "ifupdown-plain", json!({ "netdev": "ens1", "mtu": 9000 }));
}

#[test]
fn a_drop_in_that_comes_after_ours_is_named_and_not_fought() {
    let Some(machine) = Machine::with_manager("a_drop_in_that_comes_after_ours_is_named_and_not_fought", "networkd") else { return };
    let wish = wish(&Link, json!({ "netdev": "ens1", "mtu": 9000 }));
    machine.perform(&machine.assess(&Link, &wish).actions);
    machine.sh("printf '[Link]\\nMTUBytes=1500\\n' >/etc/systemd/network/10-ens1.network.d/99-hand.conf");
    let found = machine.assess(&Link, &wish);
    assert!(found.refusal.as_ref().is_some_and(|text| text.contains("a drop-in that comes after it")), "{}", differences(&found));
}

#[test]
fn network_manager_does_not_own_a_link_that_somebody_else_configured() {
    let Some(machine) = Machine::with_manager("network_manager_does_not_own_a_link_that_somebody_else_configured", "networkmanager") else {
        return;
    };
    machine.sh("nmcli connection delete 'rail: 0' >/dev/null; sleep 1; ip addr flush dev ens1; ip addr add 10.0.0.1/24 dev ens1; ip link set ens1 up; sleep 3");
    let read = Read::LinkManager { netdev: "ens1".to_owned() };
    let answers = machine.read(std::slice::from_ref(&read));
    assert_eq!(owner(&answers, "ens1"), Ok(Owner::Nobody { networkd_runs: false }), "{}", answers.output(&read).unwrap().1);
}

#[test]
fn a_host_without_gnu_tools_answers_the_same() {
    let Some(machine) = Machine::with_manager("a_host_without_gnu_tools_answers_the_same", "networkd") else { return };
    let reads = Link.reads(&wish(&Link, json!({ "netdev": "ens1", "mtu": 9000 })));
    let gnu = machine.read(&reads);
    let text = railwright::resource::program::render(&reads, "", "c0ffee");
    let busybox = format!(
        "mkdir -p /tmp/bb && busybox --install -s /tmp/bb && rm -f /tmp/bb/ip && export PATH=/tmp/bb:$PATH && cat >/tmp/program <<'EOF'\n{text}EOF\nexec busybox sh /tmp/program\n"
    );
    let other = railwright::resource::program::parse(&reads, "c0ffee", machine.sh(&busybox).as_bytes());
    assert_eq!(gnu, other);
}

/// The (make-believe) ConnectX of the machine.
const NETDEV: &str = "ens1f0np0";
const KEPT: &str = "find /etc/railwright /etc/systemd/system /etc/udev/rules.d -type f 2>/dev/null | sort\n";

#[test]
fn a_lossless_class_is_set_and_kept() {
    let Some(machine) = Machine::with_connectx("a_lossless_class_is_set_and_kept") else { return };
    let shot = format!("{KEPT}for o in pfc ets app; do dcb -j -N $o show dev {NETDEV}; done; ethtool -a {NETDEV}\n");
    let body = json!({ "netdev": NETDEV, "pfc": [3], "dscp": { "26": 3, "48": 6 }, "ets": { "prio_tc": { "3": 3, "6": 6 }, "tsa": { "6": "strict" }, "bandwidth": { "0": 50, "3": 50 } } });
    // what the kernel forgets comes back with the unit that udev starts
    let forget = format!(
        "dcb pfc set dev {NETDEV} prio-pfc all:off; ethtool -A {NETDEV} rx on tx on; dcb app flush dev {NETDEV}; udevadm control --reload; udevadm trigger -c add /sys/class/net/{NETDEV}; udevadm settle; sleep 3\n"
    );
    loop_law(&machine, &LinkQos, body, &shot, Some(&forget));
}

#[test]
fn a_nic_without_dcb_is_refused_unless_that_is_accepted() {
    let Some(machine) = Machine::with_connectx("a_nic_without_dcb_is_refused_unless_that_is_accepted") else { return };
    let found = machine.assess(&LinkQos, &wish(&LinkQos, json!({ "netdev": "eth0", "pfc": [3] })));
    assert!(found.refusal.as_ref().is_some_and(|text| text.contains("no data centre bridging")), "{}", differences(&found));
    assert!(machine.assess(&LinkQos, &wish(&LinkQos, json!({ "netdev": "eth0", "pfc": [3], "optional": true }))).is_met());
}

#[test]
fn soft_roce_comes_and_goes_and_its_defaults_with_it() {
    let Some(machine) = Machine::with_connectx("soft_roce_comes_and_goes_and_its_defaults_with_it") else { return };
    let tos = json!({ "netdev": NETDEV, "attribute": "default_roce_tos", "value": 104 });
    let early = machine.assess(&ConfigfsValue, &wish(&ConfigfsValue, tos.clone()));
    assert_eq!(early.known_after.as_deref(), Some("rdma_link/ens1f0np0"), "{}", differences(&early));
    let shot = format!("{KEPT}ls /sys/class/infiniband\n");
    // a device that is lost comes back with the unit that udev starts
    let lose = format!(
        "for d in /sys/class/infiniband/*; do rdma link delete ${{d##*/}}; done; udevadm control --reload; udevadm trigger -c add /sys/class/net/{NETDEV}; udevadm settle; sleep 3\n"
    );
    let body = json!({ "netdev": NETDEV, "type": "rxe", "name": "rxe0" });
    loop_law(&machine, &RdmaLink, body.clone(), &shot, Some(&lose));

    machine.perform(&machine.assess(&RdmaLink, &wish(&RdmaLink, body.clone())).actions);
    let devices = rdma_devices(&machine.read(&[Read::RdmaLinks])).unwrap();
    let device = device_on(&devices, NETDEV).unwrap();
    assert!(
        device.is_soft_roce && device.ports[0].link_layer == "Ethernet" && device.ports[0].gids.iter().any(|gid| gid.kind == "RoCE v2"),
        "{device:?}"
    );

    let wish_tos = wish(&ConfigfsValue, tos);
    let fresh = machine.assess(&ConfigfsValue, &wish_tos);
    machine.perform(&fresh.actions);
    let done = machine.assess(&ConfigfsValue, &wish_tos);
    assert!(done.is_met() && done.actions.is_empty(), "{}", differences(&done));
    machine.sh(&lose);
    assert!(machine.assess(&ConfigfsValue, &wish_tos).is_met(), "the unit did not bring the default back");
    let undo = ConfigfsValue.undo(&wish_tos, &fresh.before, &machine.read(&ConfigfsValue.reads(&wish_tos)));
    machine.perform(&undo.actions);
    let device = wish(&RdmaLink, body);
    let undo = RdmaLink.undo(&device, &json!({ "device": null }), &machine.read(&RdmaLink.reads(&device)));
    machine.perform(&undo.actions);
}
