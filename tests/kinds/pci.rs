//! `pci_setting` and `interrupt_affinity` with the real `setpci`, `od` and `sh`. Configuration
//! spaces and the files of interrupts are plain files here, in the places where the kernel has
//! them: no register of this machine is touched.

use crate::rig::{Host, resource};
use railwright_resource::file::base64;
use railwright_resource::pci_setting::config::build_simulated_config_space;
use railwright_resource::{Action, ResourceDiff};
use serde_json::json;

/// A switch with a NIC below one port and a GPU below the other.
fn tree(host: &Host) {
    let functions = [
        ("0000:38:00.0", "", "0x060400", "0x8086", None),
        (
            "0000:39:00.0",
            "0000:38:00.0/",
            "0x060400",
            "0x1000",
            Some(0x1d),
        ),
        (
            "0000:39:01.0",
            "0000:38:00.0/",
            "0x060400",
            "0x1000",
            Some(0x5d),
        ),
        (
            "0000:3a:00.0",
            "0000:38:00.0/0000:39:00.0/",
            "0x020000",
            "0x15b3",
            None,
        ),
        (
            "0000:3b:00.0",
            "0000:38:00.0/0000:39:01.0/",
            "0x030200",
            "0x10de",
            None,
        ),
    ];
    let mut script =
        "mkdir -p /sys/bus/pci/devices /sys/bus/pci/drivers/vfio-pci /sys/class/net/ens1\n"
            .to_owned();
    for (address, above, class, vendor, acs) in functions {
        let config = base64::encode_base64_text(&build_simulated_config_space(0x2910, acs));
        script.push_str(&format!(
            "d=/sys/devices/pci0000:38/{above}{address}; mkdir -p $d; ln -s $d \
             /sys/bus/pci/devices/{address}\n\
             echo {class} >$d/class; echo {vendor} >$d/vendor; echo 0x1021 >$d/device; echo 0 \
             >$d/irq\n\
             for n in 0 1 2 3 4 5 6; do echo '0x0000000000000000 0x0000000000000000 \
             0x0000000000000000'; done >$d/resource\n\
             echo {config} | base64 -d >$d/config\n"
        ));
    }
    script.push_str(
        "ln -s /sys/devices/pci0000:38/0000:38:00.0/0000:39:00.0/0000:3a:00.0 \
         /sys/class/net/ens1/device\n",
    );
    host.must(&script);
}

/// All but what needs a running systemd.
fn perform(host: &Host, diff: &ResourceDiff) {
    let actions: Vec<Action> = diff
        .actions
        .iter()
        .filter(|action| action.word() != "reload_systemd")
        .cloned()
        .collect();
    assert!(!actions.is_empty(), "{diff:#?}");
    host.perform(&actions);
}

fn register(host: &Host, address: &str, name: &str) -> String {
    host.must(&format!("setpci -s {address} {name}"))
        .trim()
        .to_owned()
}

#[test]
fn a_read_request_is_set_kept_and_put_back() {
    let Some(host) = Host::start("a read request", &[]) else {
        return;
    };
    tree(&host);
    let control = || register(&host, "0000:3a:00.0", "CAP_EXP+8.w");
    for (name, body) in [
        (
            "ens1",
            json!({ "netdev": "ens1", "max_read_request": 4096 }),
        ),
        (
            "0000:3a:00.0",
            json!({ "address": "0000:3a:00.0", "max_read_request": 1024 }),
        ),
    ] {
        let resource = resource("pci_setting", body);
        let fresh = host.diff(&resource);
        assert_eq!(fresh.before, json!({ "running": 512 }), "{fresh:#?}");
        perform(&host, &fresh);
        let desired = if name == "ens1" { "5910" } else { "3910" };
        assert_eq!(control(), desired, "the other bits of the word stay");
        assert!(host.diff(&resource).is_met(), "{:#?}", host.diff(&resource));
        // what a boot does: the firmware's value, then the unit
        host.must("setpci -s 0000:3a:00.0 CAP_EXP+8.w=2910");
        assert!(!host.diff(&resource).is_met());
        host.must(&format!(
            "sh /etc/railwright/pci-setting/{name}.max_read_request.sh"
        ));
        assert_eq!(control(), desired);
        perform(&host, &host.undo(&resource, &fresh.before));
        assert_eq!(control(), "2910");
        assert!(host.undo(&resource, &fresh.before).is_met());
        host.must("[ ! -e /etc/railwright ]");
    }
}

#[test]
fn acs_goes_off_on_the_way_and_comes_back() {
    let Some(host) = Host::start("access control services", &[]) else {
        return;
    };
    tree(&host);
    // the processor of a virtual machine says so, and there ACS is left alone
    host.mount(&["--bind", "/dev/null"], "/proc/cpuinfo");
    let words =
        || ["0000:39:00.0", "0000:39:01.0"].map(|address| register(&host, address, "ECAP_ACS+6.w"));
    for (body, left) in [
        (
            json!({ "netdevs": "ens1 ", "acs": "off" }),
            ["0000", "0000"],
        ),
        (
            json!({ "netdevs": ["ens1"], "acs": "redirect-off" }),
            ["0011", "0051"],
        ),
        (
            json!({ "bridges": ["0000:39:01.0"], "acs": "off" }),
            ["001d", "0000"],
        ),
    ] {
        let resource = resource("pci_setting", body.clone());
        let fresh = host.diff(&resource);
        perform(&host, &fresh);
        assert_eq!(words(), left, "{body}");
        assert!(host.diff(&resource).is_met(), "{:#?}", host.diff(&resource));
        host.must(
            "setpci -s 0000:39:00.0 ECAP_ACS+6.w=001d; setpci -s 0000:39:01.0 ECAP_ACS+6.w=005d",
        );
        host.must("sh /etc/railwright/pci-setting/acs.sh");
        assert_eq!(words(), left, "the unit does the same");
        perform(&host, &host.undo(&resource, &fresh.before));
        assert_eq!(words(), ["001d", "005d"]);
        assert!(host.undo(&resource, &fresh.before).is_met());
    }
}

#[test]
fn acs_of_a_virtual_machine_is_left_alone() {
    let Some(host) = Host::start("access control services of a guest", &[]) else {
        return;
    };
    tree(&host);
    let processor = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(processor.path(), "flags : fpu hypervisor\n").unwrap();
    host.mount(
        &["--bind", processor.path().to_str().unwrap()],
        "/proc/cpuinfo",
    );
    let found = host.diff(&resource(
        "pci_setting",
        json!({ "netdevs": ["ens1"], "acs": "off" }),
    ));
    assert!(found.is_met() && found.actions.is_empty(), "{found:#?}");
}

#[test]
fn what_forbids_to_write_is_told_before_anything_is_written() {
    let Some(host) = Host::start("forbidden registers", &[]) else {
        return;
    };
    tree(&host);
    let acs = resource(
        "pci_setting",
        json!({ "bridges": ["0000:39:01.0"], "acs": "off" }),
    );
    let size = resource(
        "pci_setting",
        json!({ "netdev": "ens1", "max_read_request": 4096 }),
    );
    let refusal = |resource| host.diff(resource).refusal.unwrap_or_default();
    host.must(
        "ln -s /sys/devices/pci0000:38/0000:38:00.0/0000:39:01.0/0000:3b:00.0 \
         /sys/bus/pci/drivers/vfio-pci/0000:3b:00.0",
    );
    assert!(
        refusal(&acs).contains("0000:3b:00.0 is lent"),
        "{:#?}",
        host.diff(&acs)
    );
    let kept = host.diff(&size).actions;
    host.must(
        "rm /sys/bus/pci/drivers/vfio-pci/0000:3b:00.0; mkdir -p /sys/kernel/security; echo 'none \
         [integrity] confidentiality' >/sys/kernel/security/lockdown",
    );
    assert!(refusal(&acs).contains("locked down") && refusal(&size).contains("locked down"));
    host.must(
        "echo '[none] integrity confidentiality' >/sys/kernel/security/lockdown; mv \
         /usr/bin/setpci /usr/bin/setpci.away",
    );
    assert!(refusal(&acs).contains("pciutils") && refusal(&size).contains("pciutils"));
    // a plan from before meets the host as it is now
    let write = kept
        .iter()
        .find(|action| action.word() == "set_pci")
        .unwrap();
    let (code, _, told) = host.sh(&write.script());
    assert!(
        code == 69 && told.contains("railwright: setpci (package pciutils) is not on the host"),
        "{code} {told}"
    );
    host.must("mv /usr/bin/setpci.away /usr/bin/setpci; rm /sys/bus/pci/devices/0000:3a:00.0");
    let (code, _, told) = host.sh(&write.script());
    assert!(
        code == 66 && told.contains("has no register"),
        "{code} {told}"
    );
    // a device that keeps its register: a write that ends well and changes nothing
    host.must(
        "ln -s /sys/devices/pci0000:38/0000:38:00.0/0000:39:00.0/0000:3a:00.0 \
         /sys/bus/pci/devices/0000:3a:00.0; mv /usr/bin/setpci /usr/bin/setpci.real",
    );
    host.must(
        "printf '#!/bin/sh\\ncase \"$*\" in *=*) exit 0 ;; esac\\nexec setpci.real \"$@\"\\n' \
         >/usr/bin/setpci; chmod +x /usr/bin/setpci",
    );
    let (code, _, told) = host.sh(&write.script());
    assert!(code == 1 && told.contains("keeps it"), "{code} {told}");
}

#[test]
fn interrupts_go_to_the_cpus_that_are_near() {
    let Some(host) = Host::start("interrupts", &[]) else {
        return;
    };
    tree(&host);
    host.mount(&["-t", "tmpfs", "interrupts"], "/proc/irq");
    host.must(
        "d=/sys/devices/pci0000:38/0000:38:00.0/0000:39:00.0/0000:3a:00.0; mkdir -p $d/msi_irqs \
         /sys/devices/system/cpu\n\
         echo 0-1,4 >$d/local_cpulist; echo 0-7 >/sys/devices/system/cpu/online; echo 0x1003 \
         >/sys/class/net/ens1/flags\n\
         for i in 9 40 41 42 43 100; do : >$d/msi_irqs/$i; mkdir -p /proc/irq/$i; echo 0-7 \
         >/proc/irq/$i/smp_affinity_list; done\n\
         for i in 9 40 41 43 100; do mkdir /proc/irq/$i/mlx5_comp$i@pci:0000:3a:00.0; done\n\
         chmod 444 /proc/irq/41/smp_affinity_list\n",
    );
    let lists = || {
        host.must("cd /proc/irq; for i in 9 40 41 42 43 100; do cat $i/smp_affinity_list; done")
            .replace('\n', " ")
    };
    let resource = resource(
        "interrupt_affinity",
        json!({ "netdev": "ens1", "cpus": "numa-local" }),
    );
    let fresh = host.diff(&resource);
    perform(&host, &fresh);
    // by number, not by name; 41 is the kernel's, and nobody has asked for 42
    assert_eq!(lists(), "0 1 0-7 0-7 4 0 ");
    assert!(host.diff(&resource).is_met(), "{:#?}", host.diff(&resource));
    host.must("for i in 9 40 43 100; do echo 0-7 >/proc/irq/$i/smp_affinity_list; done");
    assert!(!host.diff(&resource).is_met());
    host.must("sh /etc/railwright/interrupt-affinity/ens1.sh");
    assert_eq!(
        lists(),
        "0 1 0-7 0-7 4 0 ",
        "the unit spreads them in the same way"
    );
    perform(&host, &host.undo(&resource, &fresh.before));
    assert_eq!(lists(), "0-7 0-7 0-7 0-7 0-7 0-7 ");
    assert!(host.undo(&resource, &fresh.before).is_met());
}
