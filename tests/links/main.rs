//! Links against the network managers of Debian 12, each in a box of its own. What needs a kernel
//! of its own (lossless classes, RDMA devices) is tested on a lab machine: tests/lab.

#![allow(clippy::unwrap_used, clippy::print_stderr)] // a test says what it skips, and ends where something is not as it must be

mod machine;
mod rig;

use machine::{differences, loop_law, resource};
use railwright_resource::bond::Bond;
use railwright_resource::link::{Link, Owner, decode_netdev_owner};
use railwright_resource::netdev_name::keyed::{RenameEffect, predict_rename_effect};
use railwright_resource::vlan::Vlan;
use railwright_resource::{Plane, Read, ResourceKind as _, sections};
use rig::{with_layers, with_manager};
use serde_json::json;

/// Configuration files, MTU, state and addresses of ens1; lines are
/// sorted and empty sections left out, because NetworkManager writes its files in its own form.
const SHOT: &str = "find /etc/systemd/network /etc/netplan /etc/network/interfaces* \
                    /etc/NetworkManager/system-connections -type f 2>/dev/null | sort | while IFS= \
                    read -r f; do echo \"$f\"; grep -vE \
                    '^(timestamp=.*|\\[ethernet\\]|\\[proxy\\]|)$' \"$f\" | sort; done\n\
                    cat /sys/class/net/ens1/mtu; ip -o addr show dev ens1 | awk '{ print $4 }' | \
                    grep -v ^fe80 | sort\n";

fn law(test: &str, manager: &str, body: serde_json::Value) {
    if let Some(machine) = with_manager(test, manager) {
        loop_law(
            &machine,
            &Link,
            body,
            SHOT,
            Some(&format!(
                "sh /tmp/managers.sh boot {manager} </dev/null >/dev/null 2>&1"
            )),
        );
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
fn network_manager_takes_a_netdev_over_that_has_no_connection() {
    law(
        "network_manager_takes_a_netdev_over_that_has_no_connection",
        "networkmanager-idle",
        json!({ "netdev": "ens1", "mtu": 9000, "up": true, "addresses": ["10.0.0.2/24", "fd00::2/64"] }),
    );
}

#[test]
fn netplan_keeps_mtu_and_addresses() {
    law(
        "netplan_keeps_mtu_and_addresses",
        "netplan",
        json!({ "netdev": "ens1", "mtu": 9000, "addresses": ["10.0.0.2/24"] }),
    );
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
    law(
        "ifupdown_keeps_mtu_in_a_stanza_of_ours",
        "ifupdown-plain",
        json!({ "netdev": "ens1", "mtu": 9000 }),
    );
}

#[test]
fn a_drop_in_that_comes_after_ours_is_named_and_not_fought() {
    let Some(machine) = with_manager(
        "a_drop_in_that_comes_after_ours_is_named_and_not_fought",
        "networkd",
    ) else {
        return;
    };
    let resource = resource(&Link, json!({ "netdev": "ens1", "mtu": 9000 }));
    machine.perform(&machine.diff(&Link, &resource).actions);
    machine.sh(
        "printf '[Link]\\nMTUBytes=1500\\n' >/etc/systemd/network/10-ens1.network.d/99-hand.conf",
    );
    let found = machine.diff(&Link, &resource);
    assert!(
        found
            .refusal
            .as_ref()
            .is_some_and(|text| text.contains("a drop-in that comes after it")),
        "{}",
        differences(&found)
    );
}

#[test]
fn network_manager_does_not_own_a_link_that_somebody_else_configured() {
    let Some(machine) = with_manager(
        "network_manager_does_not_own_a_link_that_somebody_else_configured",
        "networkmanager",
    ) else {
        return;
    };
    machine.sh(
        "nmcli connection delete 'rail: 0' >/dev/null; sleep 1; ip addr flush dev ens1; ip addr \
         add 10.0.0.1/24 dev ens1; ip link set ens1 up; sleep 3",
    );
    let read = Read::LinkManager {
        netdev: "ens1".to_owned(),
    };
    let answers = machine.read(std::slice::from_ref(&read));
    assert_eq!(
        decode_netdev_owner(&answers, "ens1"),
        Ok(Owner::Nobody {
            able: None,
            left: None
        }),
        "{}",
        answers.output(&read).unwrap().1
    );
}

#[test]
fn a_profile_of_somebody_else_that_waits_is_named_and_not_fought() {
    let Some(machine) = with_manager(
        "a_profile_of_somebody_else_that_waits_is_named_and_not_fought",
        "networkmanager",
    ) else {
        return;
    };
    machine.sh(
        "nmcli connection modify 'rail: 0' connection.autoconnect no && nmcli --wait 30 connection \
         down 'rail: 0' >/dev/null",
    );
    let before = machine.sh(SHOT);
    let resource = resource(
        &Link,
        json!({ "netdev": "ens1", "mtu": 9000, "addresses": ["10.0.0.2/24"] }),
    );
    let found = machine.diff(&Link, &resource);
    let says =
        "/etc/NetworkManager/system-connections/rail: 0.nmconnection for ens1, which is not active";
    assert!(
        found.actions.is_empty() && found.has_unknown(),
        "{:?}",
        found.actions
    );
    assert!(
        differences(&found).to_string().contains(says),
        "{}",
        differences(&found)
    );
    assert_eq!(machine.sh(SHOT), before);
    // what the sentence says to do is what helps
    machine.sh("nmcli --wait 30 connection up 'rail: 0' >/dev/null");
    machine.perform(&machine.diff(&Link, &resource).actions);
    assert!(
        machine.diff(&Link, &resource).is_met(),
        "{}",
        differences(&machine.diff(&Link, &resource))
    );
}

/// No InfiniBand is here: the file of the netdev's hardware address has twenty bytes, as IP over
/// InfiniBand has them (RFC 4391, section
/// 9.1.1).
#[test]
fn network_manager_gets_no_connection_of_ours_for_infiniband() {
    let Some(machine) = with_manager(
        "network_manager_gets_no_connection_of_ours_for_infiniband",
        "networkmanager-idle",
    ) else {
        return;
    };
    let resource = resource(
        &Link,
        json!({ "netdev": "ens1", "mtu": 4092, "addresses": ["10.0.0.2/24"] }),
    );
    assert!(
        !machine.diff(&Link, &resource).actions.is_empty(),
        "an Ethernet netdev gets one"
    );
    let before = machine.sh(SHOT);
    let address = format!("00:00:10:49{}", ":fe".repeat(16));
    machine.sh(&format!(
        "echo {address} >/tmp/address; mount --bind /tmp/address /sys/class/net/ens1/address"
    ));
    let found = machine.diff(&Link, &resource);
    let refusal = found.refusal.clone().unwrap_or_default();
    assert!(
        refusal.contains("nmcli connection add type infiniband ifname ens1 transport-mode MODE"),
        "{refusal} {}",
        differences(&found)
    );
    assert!(found.actions.is_empty(), "{:?}", found.actions);
    assert_eq!(machine.sh(SHOT), before);
}

#[test]
fn a_connection_of_ours_that_is_not_active_is_taken_back_too() {
    let Some(machine) = with_manager(
        "a_connection_of_ours_that_is_not_active_is_taken_back_too",
        "networkmanager-idle",
    ) else {
        return;
    };
    let before = machine.sh(SHOT);
    let resource = resource(
        &Link,
        json!({ "netdev": "ens1", "mtu": 9000, "up": true, "addresses": ["10.0.0.2/24"] }),
    );
    let fresh = machine.diff(&Link, &resource);
    machine.perform(&fresh.actions);
    assert!(machine.diff(&Link, &resource).is_met());
    machine.sh("nmcli --wait 30 connection down railwright-ens1 >/dev/null");
    let undo = || {
        Link.undo(
            &resource,
            &fresh.before,
            &machine.read(&Link.reads(&resource)),
        )
    };
    machine.perform(&undo().actions);
    assert!(undo().is_met(), "{}", differences(&undo()));
    assert_eq!(
        machine.sh(
            "ls /etc/NetworkManager/system-connections; nmcli -t -f NAME connection show | grep -v \
             '^lo$' || :"
        ),
        ""
    );
    assert_eq!(machine.sh(SHOT), before);
}

/// The configuration of each manager, as it is and once it is about more than the old name.
#[test]
fn a_configuration_that_goes_by_a_name_is_told_from_one_that_follows() {
    for (manager, says, fix) in [
        (
            "networkd",
            "add rail0 to its Name=",
            "sed -i 's/^Name=ens1/& rail0/' /etc/systemd/network/10-ens1.network; networkctl \
             reload",
        ),
        (
            "netplan",
            "netplan's definition `rail0`",
            "sed -i 's/match: .*/match: {name: \"*\"}/' /etc/netplan/01-box.yaml",
        ),
        (
            "networkmanager",
            "is bound to the name ens1",
            "nmcli connection modify uuid a9a181c3-23e5-4b71-9fd8-148de69d2d06 \
             connection.interface-name new0",
        ),
        (
            "ifupdown",
            "knows it as ens1 only",
            "printf 'iface new0 inet static\\n    address 10.0.0.1/24\\n' \
             >>/etc/network/interfaces",
        ),
    ] {
        let Some(machine) = with_manager(
            "a_configuration_that_goes_by_a_name_is_told_from_one_that_follows",
            manager,
        ) else {
            return;
        };
        let name = if manager == "networkd" {
            "rail0"
        } else {
            "new0"
        };
        let told = || {
            let read = Read::LinkManager {
                netdev: "ens1".to_owned(),
            };
            let answers = machine.read(std::slice::from_ref(&read));
            predict_rename_effect(
                "ens1",
                name,
                &sections::parse_sections(answers.output(&read).unwrap().1),
            )
        };
        assert!(
            matches!(told(), Ok(RenameEffect::Loses(words)) if words.contains(says)),
            "{manager}: {:?}",
            told()
        );
        machine.sh(fix);
        assert_eq!(told(), Ok(RenameEffect::Follows), "{manager}");
    }
}

#[test]
fn a_host_without_gnu_tools_answers_the_same() {
    let Some(machine) = with_manager("a_host_without_gnu_tools_answers_the_same", "networkd")
    else {
        return;
    };
    let reads = Link.reads(&resource(&Link, json!({ "netdev": "ens1", "mtu": 9000 })));
    let gnu = machine.read(&reads);
    let text = railwright_resource::program::render_read_program(&reads, "", "c0ffee");
    let busybox = format!(
        "mkdir -p /tmp/bb && busybox --install -s /tmp/bb && rm -f /tmp/bb/ip && export \
         PATH=/tmp/bb:$PATH && cat >/tmp/program <<'EOF'\n\
         {text}EOF\n\
         exec busybox sh /tmp/program\n"
    );
    let other = railwright_resource::program::parse_program_answers(
        &reads,
        "c0ffee",
        machine.sh(&busybox).as_bytes(),
    );
    assert_eq!(gnu, other);
}

/// The files of all managers, and which VLANs there are.
const VLANS: &str = "find /etc/systemd/network /etc/netplan /etc/network/interfaces* -type f \
                     2>/dev/null | sort | while IFS= read -r f; do echo \"$f\"; cat \"$f\"; done\n\
                     ip -o addr show dev ens1 | awk '{ print $4 }' | grep -v ^fe80 | sort; ip -d \
                     -o link show type vlan | grep -o 'ens1.*vlan protocol [^ ]* id [0-9]*' | cut \
                     -d: -f1; exit 0\n";

#[test]
fn a_vlan_is_made_now_and_at_boot_and_taken_back() {
    for manager in ["networkd", "netplan", "ifupdown"] {
        let Some(machine) = with_layers("a_vlan_is_made_now_and_at_boot_and_taken_back", manager)
        else {
            return;
        };
        let boot = format!(
            "sh /tmp/managers.sh boot {manager} </dev/null >/dev/null 2>&1; [ {manager} != \
             ifupdown ] || ifup ens1.100"
        );
        loop_law(
            &machine,
            &Vlan,
            json!({ "netdev": "ens1.100", "parent": "ens1", "id": 100 }),
            VLANS,
            Some(&boot),
        );
    }
}

/// The one who sets the VLAN's addresses and MTU is the one who made it.
#[test]
fn a_link_keeps_what_a_vlan_of_ours_carries() {
    for manager in ["networkd", "netplan", "ifupdown"] {
        let Some(machine) = with_layers("a_link_keeps_what_a_vlan_of_ours_carries", manager) else {
            return;
        };
        let vlan = resource(
            &Vlan,
            json!({ "netdev": "ens1.100", "parent": "ens1", "id": 100 }),
        );
        machine.perform(&machine.diff(&Vlan, &vlan).actions);
        let link = resource(
            &Link,
            json!({ "netdev": "ens1.100", "up": true, "mtu": 1400, "addresses": ["10.1.0.2/24"] }),
        );
        let found = machine.diff(&Link, &link);
        assert!(
            found.refusal.is_none(),
            "{manager}: {}",
            differences(&found)
        );
        machine.perform(&found.actions);
        let boot = format!(
            "sh /tmp/managers.sh boot {manager} </dev/null >/dev/null 2>&1; [ {manager} != \
             ifupdown ] || ifup ens1.100"
        );
        machine.sh(&boot);
        for (kind, resource) in [
            (&Vlan as &dyn railwright_resource::ResourceKind, &vlan),
            (&Link, &link),
        ] {
            let booted = machine::comes_back(&machine, kind, resource);
            assert!(booted.is_met(), "{manager}: {}", differences(&booted));
        }
    }
}

#[test]
fn a_bond_is_compared_with_the_kernel_and_with_what_its_manager_wrote() {
    for (manager, rate) in [
        (
            "networkd-bond",
            "sed -i s/=fast/=slow/ /etc/systemd/network/10-bond0.netdev",
        ),
        (
            "netplan-bond",
            "sed -i 's/lacp-rate: fast/lacp-rate: slow/' /etc/netplan/01-box.yaml",
        ),
        (
            "networkmanager-bond",
            "nmcli connection modify bond0 bond.options mode=802.3ad,miimon=100,lacp_rate=slow",
        ),
    ] {
        let Some(machine) = with_layers(
            "a_bond_is_compared_with_the_kernel_and_with_what_its_manager_wrote",
            manager,
        ) else {
            return;
        };
        let mut body = json!({ "netdev": "bond0", "members": ["ens2", "ens1"], "mode": "802.3ad", "miimon": 100, "lacp_rate": "fast" });
        let found = machine::comes_back(&machine, &Bond, &resource(&Bond, body.clone()));
        assert!(found.is_met(), "{manager}: {}", differences(&found));
        let planes = |found: &railwright_resource::ResourceDiff, name: &str| {
            found.attributes[name]
                .differences()
                .into_iter()
                .map(|(plane, ..)| plane)
                .collect::<Vec<_>>()
        };
        // the policy is the kernel's own: nobody wrote it down
        body["xmit_hash_policy"] = json!("layer2");
        let resource = resource(&Bond, body);
        let found = machine.diff(&Bond, &resource);
        assert_eq!(
            planes(&found, "xmit_hash_policy"),
            [Plane::Persisted],
            "{manager}: {}",
            differences(&found)
        );
        machine.sh(rate);
        let found = machine.diff(&Bond, &resource);
        assert_eq!(
            planes(&found, "lacp_rate"),
            [Plane::Persisted],
            "{manager}: {}",
            differences(&found)
        );
        machine.sh("ip link set dev ens2 nomaster");
        let found = machine.diff(&Bond, &resource);
        assert_eq!(
            planes(&found, "members"),
            [Plane::Running],
            "{manager}: {}",
            differences(&found)
        );
        assert!(
            found.actions.is_empty()
                && found
                    .refusal
                    .is_some_and(|said| said.contains("changed by hand")),
            "{manager}"
        );
    }
}
