//! `netdev_name` by its real scripts, on a host whose sysfs, udev database and initial RAM disk are
//! folders and files that were made up: no NIC of its own is here. `update-initramfs` is a fake
//! that only makes the file anew.

use crate::rig::{Host, changes, resource};
use railwright_resource::kernel_module::found::FoundModule;
use railwright_resource::{Action, Plane, Read, Reading};
use serde_json::json;

/// `ens1` at 0000:19:00.0 with a VLAN and a bond that bear its MAC address, and a virtio NIC `ens2`
/// below 0000:00:03.0.
fn host(story: &str) -> Option<Host> {
    let host = Host::start(story, &[])?;
    host.must(
        "cd /sys; mkdir -p class/net devices/pci0000:00/0000:19:00.0 \
         devices/pci0000:00/0000:00:03.0/virtio0 devices/virtual/net/ens1.100 \
         devices/virtual/net/bond0 devices/pci0000:00/0000:19:00.0/net/ens1 \
         devices/pci0000:00/0000:00:03.0/virtio0/net/ens2\n\
         ln -s ../../../0000:19:00.0 devices/pci0000:00/0000:19:00.0/net/ens1/device; ln -s \
         ../../../virtio0 devices/pci0000:00/0000:00:03.0/virtio0/net/ens2/device\n\
         for d in devices/pci0000:00/0000:19:00.0/net/ens1 \
         devices/pci0000:00/0000:00:03.0/virtio0/net/ens2 devices/virtual/net/ens1.100 \
         devices/virtual/net/bond0; do\n\
         ln -s ../../$d class/net/; echo b8:ce:f6:00:00:01 >$d/address; echo 7 >$d/ifindex; done\n\
         echo 9 >class/net/ens2/ifindex; echo 52:54:00:00:00:02 >class/net/ens2/address; echo x \
         >class/net/bonding_masters\n\
         mkdir -p /run/udev/data /etc/udev/rules.d /etc/systemd/network /usr/lib/systemd/network \
         /boot /lib/modules/6.1.0-test\n\
         printf \
         'I:1\\nE:ID_PATH=pci-0000:19:00.0\\nE:ID_NET_LINK_FILE=/usr/lib/systemd/network/99-default.link\\n' \
         >/run/udev/data/n7\n\
         printf 'E:ID_PATH=pci-0000:00:03.0\\n' >/run/udev/data/n9\n\
         printf '[Match]\\nOriginalName=*\\n[Link]\\nNamePolicy=keep kernel\\n' \
         >/usr/lib/systemd/network/99-default.link\n\
         printf '#!/bin/sh\\nsleep 0.1; cat /etc/systemd/network/*.link \
         >/boot/initrd.img-6.1.0-test 2>/dev/null || :\\n' >/usr/sbin/update-initramfs\n\
         chmod 755 /usr/sbin/update-initramfs; touch -d '2020-01-01' /boot/initrd.img-6.1.0-test\n",
    );
    Some(host)
}

/// The boot: udev names the NIC by what the initial RAM disk holds.
const BOOT: &str = "n=$(sed -n 's/^Name=//p' /boot/initrd.img-6.1.0-test); n=${n:-ens1}; [ -e \
                    /sys/class/net/$n ] || mv /sys/class/net/ens1 /sys/class/net/$n";

#[test]
fn a_name_is_persisted_comes_with_a_boot_and_goes_again() {
    let Some(host) = host("netdev name") else {
        return;
    };
    let resource = resource(
        "netdev_name",
        json!({ "name": "rail0", "device": "0000:19:00.0" }),
    );
    let tree = host.tree();
    let fresh = host.diff(&resource);
    assert_eq!(
        changes(&tree, &host.tree()),
        [] as [&str; 0],
        "reading changed the host"
    );
    assert_eq!(fresh.refusal, None);
    let found = &fresh.attributes["name"].actual;
    let planes = [Plane::Persisted, Plane::Running, Plane::NextBoot]
        .map(|plane| found.get(plane).cloned().unwrap());
    assert_eq!(
        planes,
        [Reading::Absent, Reading::is("ens1"), Reading::is("ens1")]
    );
    host.perform(&fresh.actions);
    let waits = host.diff(&resource);
    let left: Vec<Plane> = waits.attributes["name"]
        .differences()
        .into_iter()
        .map(|(plane, ..)| plane)
        .collect();
    assert_eq!(
        (left, waits.actions.len(), waits.needs_reboot),
        (vec![Plane::Running], 0, true)
    );
    host.must("touch -d 2020-01-01 /boot/initrd.img-6.1.0-test");
    assert_eq!(
        host.diff(&resource).actions,
        [Action::UpdateInitialRamDisks],
        "one that is older than the file does not hold it"
    );
    host.perform(&[Action::UpdateInitialRamDisks]);
    host.must(BOOT);
    assert!(host.diff(&resource).is_met());

    let undo = host.undo(&resource, &fresh.before);
    assert!(undo.needs_reboot);
    host.perform(&undo.actions);
    host.must(
        "grep -q Name /boot/initrd.img-6.1.0-test && exit 1; mv /sys/class/net/rail0 \
         /sys/class/net/ens1",
    );
    assert!(host.undo(&resource, &fresh.before).is_met());
}

#[test]
fn a_nic_is_found_by_its_mac_address_and_behind_virtio() {
    let Some(host) = host("netdev name by MAC") else {
        return;
    };
    for (device, netdev, line) in [
        (
            "b8:ce:f6:00:00:01",
            "ens1",
            "MACAddress=b8:ce:f6:00:00:01\nPath=*",
        ),
        ("0000:00:03.0", "ens2", "Path=pci-0000:00:03.0"),
    ] {
        let found = host.diff(&resource(
            "netdev_name",
            json!({ "name": "rail0", "device": device }),
        ));
        assert_eq!(
            found.attributes["name"].actual.get(Plane::Running),
            Some(&Reading::is(netdev)),
            "{device}: {found:?}"
        );
        assert!(
            matches!(&found.actions[0], Action::WriteFile { content, .. } if content.contains(line)),
            "{:?}",
            found.actions
        );
    }
}

#[test]
fn what_somebody_else_names_is_found_and_its_secrets_stay_there() {
    let Some(host) = host("netdev name of others") else {
        return;
    };
    let resource = resource(
        "netdev_name",
        json!({ "name": "rail0", "device": "0000:19:00.0" }),
    );
    host.must(
        "printf '%s\\n' 'SUBSYSTEM==\"net\", ACTION==\"add\", DRIVERS==\"?*\", \
         ATTR{address}==\"B8:CE:F6:00:00:01\", NAME=\"fab0\"' \
         >/etc/udev/rules.d/70-persistent-net.rules",
    );
    assert!(
        host.diff(&resource)
            .refusal
            .unwrap()
            .contains("70-persistent-net.rules names it fab0")
    );
    host.must(
        "rm /etc/udev/rules.d/70-persistent-net.rules; sed -i \
         's|=/usr/.*|=/run/systemd/network/10-netplan-a.link|' /run/udev/data/n7; mkdir -p \
         /run/systemd/network\n\
         printf \
         '[Match]\\nOriginalName=ens1\\n[Link]\\nWakeOnLanPassword=hunter2\\nMTUBytes=9000\\n' \
         >/run/systemd/network/10-netplan-a.link",
    );
    let (_, out, _) = host.sh(&railwright_resource::Read::NetdevName {
        device: "0000:19:00.0".into(),
        name: "rail0".into(),
    }
    .script());
    assert!(
        out.contains("|WakeOnLanPassword=\n") && !out.contains("hunter2"),
        "{out}"
    );
    let found = host.diff(&resource);
    assert!(
        found.interrupts[0]
            .contains("10-netplan-a.link does not set WakeOnLanPassword, MTUBytes of it"),
        "{:?}",
        found.interrupts
    );
    host.must("echo Name=fab1 >>/run/systemd/network/10-netplan-a.link");
    assert!(
        host.diff(&resource)
            .refusal
            .unwrap()
            .contains("10-netplan-a.link names it fab1")
    );
}

/// They go with the module, whatever uses them.
#[test]
fn a_module_of_a_link_type_names_its_netdevs() {
    let Some(host) = host("netdevs of a module") else {
        return;
    };
    host.must(
        "mkdir -p /sys/class/net/vx0 /sys/class/net/vlan0; echo DEVTYPE=vxlan \
         >/sys/class/net/vx0/uevent; echo DEVTYPE=vlan >/sys/class/net/vlan0/uevent",
    );
    for (module, netdevs) in [
        ("vxlan", &["vx0"][..]),
        ("8021q", &["vlan0"]),
        ("bonding", &[]),
    ] {
        let answers = host.read(&[Read::KernelModule {
            name: module.to_owned(),
        }]);
        assert_eq!(
            FoundModule::of(module, &answers).unwrap().netdevs,
            netdevs,
            "{module}"
        );
    }
}
