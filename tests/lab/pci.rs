//! `interrupt_affinity` and `pci_setting` on a live kernel: interrupts of a virtio NIC are bound,
//! and what a virtual machine cannot have is told as that. The machine has one CPU, so that it
//! shows who may bind and what is kept, and not where interrupts go.

use crate::machine::{Machine, differences, loop_law, resource};
use railwright_resource::interrupt_affinity::InterruptAffinity;
use railwright_resource::pci_setting::PciSetting;
use railwright_resource::{Reading, ResourceDiff};
use serde_json::json;

/// The NIC that carries the connection: a virtio device of its own, with a function of its own.
const NETDEV: &str = "eth0";

pub fn interrupts_are_bound_and_their_unit_is_kept(machine: &Machine) {
    let shot = format!(
        "find /etc/railwright /etc/systemd/system /etc/udev/rules.d -type f 2>/dev/null | sort\n\
         d=$(readlink -f /sys/class/net/{NETDEV}/device); d=${{d%/virtio*}}; for i in \
         \"$d\"/msi_irqs/*; do cat /proc/irq/${{i##*/}}/smp_affinity_list; done\n"
    );
    // what a boot does: udev finds the netdev, and systemd starts the unit that is kept for it
    let unit = format!("railwright-interrupt-affinity@{NETDEV}.service");
    let boot = format!(
        "udevadm control --reload; udevadm trigger -c add /sys/class/net/{NETDEV}; udevadm settle\n\
         t=0; while [ \"$(systemctl show -p ExecMainExitTimestampMonotonic --value {unit})\" = 0 ] \
         && [ \"$t\" -lt 60 ]; do t=$((t + 1)); sleep 1; done\n\
         [ \"$(systemctl show -p Result --value {unit})\" = success ] && [ \"$t\" -lt 60 ]\n"
    );
    loop_law(
        machine,
        &InterruptAffinity,
        json!({ "netdev": NETDEV, "cpus": "numa-local" }),
        &shot,
        Some(&boot),
    );
    let second = machine.diff(
        &InterruptAffinity,
        &resource(&InterruptAffinity, json!({ "netdev": NETDEV, "cpus": "1" })),
    );
    assert_eq!(
        second.refusal.as_deref(),
        Some("CPU 1 is not online on this host"),
        "{}",
        differences(&second)
    );
}

/// The reasons why something does not apply.
fn reasons(diff: &ResourceDiff) -> Vec<&str> {
    let found = diff
        .attributes
        .values()
        .flat_map(|attribute| attribute.actual.iter());
    found
        .filter_map(|(_, reading)| {
            if let Reading::NotApplicable(why) = reading {
                Some(why.as_words())
            } else {
                None
            }
        })
        .collect()
}

pub fn what_a_guest_cannot_have_does_not_apply(machine: &Machine) {
    // a virtio function on the root bus of q35 is a conventional one
    let size = machine.diff(
        &PciSetting,
        &resource(
            &PciSetting,
            json!({ "netdev": NETDEV, "max_read_request": 4096 }),
        ),
    );
    assert!(
        reasons(&size)
            .iter()
            .any(|why| why.contains("no PCI Express")),
        "{}",
        differences(&size)
    );
    let acs = machine.diff(
        &PciSetting,
        &resource(&PciSetting, json!({ "netdevs": [NETDEV], "acs": "off" })),
    );
    assert!(
        reasons(&acs)
            .iter()
            .any(|why| why.contains("virtual machine")),
        "{}",
        differences(&acs)
    );
    assert!(size.is_met() && size.actions.is_empty() && acs.is_met() && acs.actions.is_empty());
    let lo = machine.diff(
        &PciSetting,
        &resource(
            &PciSetting,
            json!({ "netdev": "lo", "max_read_request": 4096 }),
        ),
    );
    assert!(
        reasons(&lo).iter().any(|why| why.contains("no PCI bus")),
        "{}",
        differences(&lo)
    );
}
