//! Lossless classes, RDMA devices and rdma_cm defaults on a fake ConnectX: `dcb`, Soft-RoCE
//! and configfs of a real kernel, with reboots.

use crate::machine::{Machine, comes_back, differences, loop_law, resource};
use railwright_resource::configfs_value::ConfigfsValue;
use railwright_resource::link_qos::LinkQos;
use railwright_resource::rdma_link::{RdmaLink, device_on, rdma_devices};
use railwright_resource::{Read, ResourceKind};
use serde_json::json;

/// The (fake) ConnectX of the machine.
const NETDEV: &str = "ens1f0np0";
const KEPT: &str =
    "find /etc/railwright /etc/systemd/system /etc/udev/rules.d -type f 2>/dev/null | sort\n";

pub fn a_lossless_class_is_set_and_kept(machine: &Machine) {
    let shot = format!(
        "{KEPT}for o in pfc ets app; do dcb -j -N $o show dev {NETDEV}; done; ethtool -a {NETDEV}\n"
    );
    let body = json!({ "netdev": NETDEV, "pfc": [3], "dscp": { "26": 3, "48": 6 }, "ets": { "prio_tc": { "3": 3, "6": 6 }, "tsa": { "6": "strict" }, "bandwidth": { "0": 50, "3": 50 } } });
    // what the kernel forgets comes back with the unit that udev starts
    let forget = format!(
        "dcb pfc set dev {NETDEV} prio-pfc all:off; ethtool -A {NETDEV} rx on tx on; dcb app flush \
         dev {NETDEV}; udevadm control --reload; udevadm trigger -c add /sys/class/net/{NETDEV}; \
         udevadm settle\n"
    );
    loop_law(machine, &LinkQos, body, &shot, Some(&forget));
}

pub fn a_nic_without_dcb_is_refused_unless_that_is_accepted(machine: &Machine) {
    let found = machine.diff(
        &LinkQos,
        &resource(&LinkQos, json!({ "netdev": "eth0", "pfc": [3] })),
    );
    assert!(
        found
            .refusal
            .as_ref()
            .is_some_and(|text| text.contains("no data centre bridging")),
        "{}",
        differences(&found)
    );
    assert!(
        machine
            .diff(
                &LinkQos,
                &resource(
                    &LinkQos,
                    json!({ "netdev": "eth0", "pfc": [3], "optional": true })
                )
            )
            .is_met()
    );
}

pub fn soft_roce_comes_and_goes_and_its_defaults_with_it(machine: &Machine) {
    let tos = json!({ "netdev": NETDEV, "attribute": "default_roce_tos", "value": 104 });
    let early = machine.diff(&ConfigfsValue, &resource(&ConfigfsValue, tos.clone()));
    assert_eq!(
        early.known_after.as_deref(),
        Some("rdma_link/ens1f0np0"),
        "{}",
        differences(&early)
    );
    let shot = format!("{KEPT}ls /sys/class/infiniband\n");
    // a device that is lost comes back with the unit that udev starts
    let lose = format!(
        "for d in /sys/class/infiniband/*; do rdma link delete ${{d##*/}}; done; udevadm control \
         --reload; udevadm trigger -c add /sys/class/net/{NETDEV}; udevadm settle\n"
    );
    let body = json!({ "netdev": NETDEV, "type": "rxe", "name": "rxe0" });
    loop_law(machine, &RdmaLink, body.clone(), &shot, Some(&lose));

    machine.perform(
        &machine
            .diff(&RdmaLink, &resource(&RdmaLink, body.clone()))
            .actions,
    );
    let devices = rdma_devices(&machine.read(&[Read::RdmaLinks])).unwrap();
    let device = device_on(&devices, NETDEV).unwrap();
    assert!(
        device.is_soft_roce
            && device.ports[0].link_layer == "Ethernet"
            && device.ports[0].gids.iter().any(|gid| gid.kind == "RoCE v2"),
        "{device:?}"
    );

    let list_resources = resource(&ConfigfsValue, tos);
    let fresh = machine.diff(&ConfigfsValue, &list_resources);
    machine.perform(&fresh.actions);
    let done = machine.diff(&ConfigfsValue, &list_resources);
    assert!(
        done.is_met() && done.actions.is_empty(),
        "{}",
        differences(&done)
    );
    // a driver with many ports starts the unit for each of them
    let unit = format!("railwright-configfs-value@{NETDEV}.default_roce_tos.service");
    machine.sh(&format!(
        "for n in 1 2 3 4 5 6 7 8; do systemctl start {unit} || exit 1; done\n"
    ));
    machine.sh(&lose);
    let back = comes_back(machine, &ConfigfsValue, &list_resources);
    assert!(
        back.is_met(),
        "the unit did not bring the default back: {}",
        differences(&back)
    );
    let undo = ConfigfsValue.undo(
        &list_resources,
        &fresh.before,
        &machine.read(&ConfigfsValue.reads(&list_resources)),
    );
    machine.perform(&undo.actions);
    let device = resource(&RdmaLink, body);
    let undo = RdmaLink.undo(
        &device,
        &json!({ "device": null }),
        &machine.read(&RdmaLink.reads(&device)),
    );
    machine.perform(&undo.actions);
}

/// What the kernel forgets at a reboot is there again after it, all three kinds together.
pub fn a_reboot_brings_everything_back(machine: &Machine) {
    let resources: [(&dyn ResourceKind, _); 3] = [
        (
            &LinkQos,
            json!({ "netdev": NETDEV, "pfc": [3], "dscp": { "26": 3 } }),
        ),
        (&RdmaLink, json!({ "netdev": NETDEV, "type": "rxe" })),
        (
            &ConfigfsValue,
            json!({ "netdev": NETDEV, "attribute": "default_roce_tos", "value": 106 }),
        ),
    ];
    let resources = resources.map(|(kind, body)| (kind, resource(kind, body)));
    let befores: Vec<_> = resources
        .iter()
        .map(|(kind, resource)| {
            let fresh = machine.diff(*kind, resource);
            machine.perform(&fresh.actions);
            fresh.before
        })
        .collect();
    let boot = "cat /proc/sys/kernel/random/boot_id";
    let old = machine.sh(boot);
    machine.run("sync; systemctl start --no-block reboot.target");
    let mut tries = 0;
    while !matches!(machine.run(boot), (true, id) if id != old) {
        tries += 1;
        assert!(tries < 300, "the machine did not come back from its reboot");
        std::thread::sleep(std::time::Duration::from_secs(2));
    }
    machine.sh("systemctl is-system-running --wait >/dev/null || true; udevadm settle");
    for (kind, resource) in &resources {
        let booted = comes_back(machine, *kind, resource);
        assert!(booted.is_met(), "{} {}", kind.name(), differences(&booted));
    }
    for ((kind, resource), before) in resources.iter().zip(&befores).rev() {
        let undo = kind.undo(resource, before, &machine.read(&kind.reads(resource)));
        machine.perform(&undo.actions);
    }
    assert_eq!(
        machine.sh(
            "find /etc/railwright /etc/udev/rules.d /etc/systemd/system -name '*railwright*' -not \
             -name 'railwright-lab-*' -type f 2>/dev/null || true"
        ),
        ""
    );
}
