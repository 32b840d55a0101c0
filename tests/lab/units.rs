//! `systemd_unit` and `kernel_module` on a live systemd and a live kernel.

use crate::machine::{Machine, differences, loop_law, resource};
use railwright_resource::kernel_module::KernelModule;
use railwright_resource::systemd_unit::SystemdUnit;
use railwright_resource::{Action, ResourceKind};
use serde_json::json;

const CONTENT: &str = "[Unit]\n\
                       Description=A service of the test\n\
                       [Service]\n\
                       ExecStart=/bin/sleep infinity\n\
                       [Install]\n\
                       WantedBy=multi-user.target\n";

/// Files of systemd, and how a unit stands.
fn unit_shot(unit: &str) -> String {
    format!(
        "find /etc/systemd/system -printf '%p %l\\n' | sort; systemctl show -p \
         LoadState,ActiveState,UnitFileState {unit}\n"
    )
}

/// `write_file`, `restart`: the verb, where an action has one.
fn words(actions: &[Action]) -> Vec<String> {
    let word = |action: &Action| match action {
        Action::Unit { verb, .. } => format!("{verb:?}").to_lowercase(),
        other => other.word(),
    };
    actions.iter().map(word).collect()
}

pub fn a_unit_of_ours_comes_and_goes(machine: &Machine) {
    let body = json!({
        "name": "lab-probe.service", "content": CONTENT, "enabled": true, "active": true,
        "dropins": { "10-memlock": "[Service]\nLimitMEMLOCK=infinity\n" }
    });
    // What a boot does: the target starts what was enabled for it. The drop-in is in effect by
    // then.
    let boot = "systemctl stop lab-probe.service; systemctl start multi-user.target\n\
                systemctl show -p LimitMEMLOCK lab-probe.service | grep -qx LimitMEMLOCK=infinity\n";
    loop_law(
        machine,
        &SystemdUnit,
        body,
        &unit_shot("lab-probe.service"),
        Some(boot),
    );
}

pub fn a_restart_is_pending_until_it_is_done(machine: &Machine) {
    let pid = || machine.sh("systemctl show -p MainPID --value lab-probe.service");
    // systemd looks for drop-ins only in folders that it knew at its last reload.
    machine.sh("echo 1 >/etc/lab-probe.conf; mkdir -p /etc/systemd/system/lab-probe.service.d");
    let resource = resource(
        &SystemdUnit,
        json!({ "name": "lab-probe.service", "content": CONTENT, "active": true, "restart_on": ["/etc/lab-probe.conf"] }),
    );
    let fresh = machine.diff(&SystemdUnit, &resource);
    machine.perform(&fresh.actions);
    assert!(machine.diff(&SystemdUnit, &resource).is_met());

    let first = pid();
    // File times have whole seconds here, so the change has to lie in a later one.
    machine.sh("sleep 2; echo 2 >/etc/lab-probe.conf");
    let pending = machine.diff(&SystemdUnit, &resource);
    assert_eq!(
        words(&pending.actions),
        ["restart"],
        "{}",
        differences(&pending)
    );
    assert_eq!(pid(), first, "a read restarted it");
    machine.perform(&pending.actions);
    assert!(machine.diff(&SystemdUnit, &resource).is_met());
    assert_ne!(pid(), first);

    // Somebody writes a drop-in and does not tell systemd.
    machine
        .sh("printf '[Service]\\nNice=5\\n' >/etc/systemd/system/lab-probe.service.d/20-hand.conf");
    let unread = machine.diff(&SystemdUnit, &resource);
    assert_eq!(
        words(&unread.actions),
        ["reload_systemd"],
        "{}",
        differences(&unread)
    );
    machine.perform(&unread.actions);
    assert!(machine.diff(&SystemdUnit, &resource).is_met());

    let undo = SystemdUnit.undo(
        &resource,
        &fresh.before,
        &machine.read(&SystemdUnit.reads(&resource)),
    );
    machine.perform(&undo.actions);
    let gone = "systemctl show -p LoadState,ActiveState lab-probe.service; rm -r \
                /etc/systemd/system/lab-probe.service.d /etc/lab-probe.conf; systemctl \
                daemon-reload";
    assert_eq!(
        machine.sh(gone),
        "LoadState=not-found\nActiveState=inactive\n"
    );
}

pub fn a_unit_of_the_distribution_is_stopped_and_masked(machine: &Machine) {
    let timer = "systemd-tmpfiles-clean.timer";
    loop_law(
        machine,
        &SystemdUnit,
        json!({ "name": timer, "active": false, "masked": true }),
        &unit_shot(timer),
        None,
    );
    let target = "remote-fs.target";
    loop_law(
        machine,
        &SystemdUnit,
        json!({ "name": target, "active": false, "enabled": false }),
        &unit_shot(target),
        None,
    );
}

const MODULE_SHOT: &str = "find /etc/modprobe.d /etc/modules-load.d -type f | sort; cut -d' ' -f1 \
                           /proc/modules | grep -x null_blk; ls /dev/nullb* 2>/dev/null; true\n";

fn loaded(machine: &Machine) -> String {
    machine
        .sh("cut -d' ' -f1 /proc/modules | grep -cx null_blk || true")
        .trim()
        .to_owned()
}

pub fn a_module_is_loaded_with_options_and_at_boot(machine: &Machine) {
    let body = json!({ "name": "null_blk", "loaded": true, "at_boot": true, "options": { "nr_devices": 2, "gb": 1 } });
    let boot = "udevadm settle; modprobe -r null_blk; systemctl restart \
                systemd-modules-load.service; udevadm settle; test -b /dev/nullb1\n";
    loop_law(machine, &KernelModule, body, MODULE_SHOT, Some(boot));
}

/// udev opens what a module brought, here for longer than usual; that is not a use that a change
/// has to give way to.
pub fn a_module_that_udev_looks_at_is_unloaded(machine: &Machine) {
    machine.sh("mkdir -p /run/udev/rules.d; rm -f /run/lab-looks\n\
                printf '#!/bin/sh\\nexec 3</dev/nullb0; touch /run/lab-looks; sleep 3\\n' \
                >/run/lab-look; chmod +x /run/lab-look\n\
                echo 'ACTION==\"add\", KERNEL==\"nullb0\", RUN+=\"/bin/sh /run/lab-look\"' \
                >/run/udev/rules.d/99-lab-looks.rules; udevadm control --reload\n");
    machine.perform(&[Action::LoadModule {
        name: "null_blk".into(),
        parameters: [("nr_devices".into(), "1".into())].into(),
    }]);
    machine.sh(
        "for i in $(seq 100); do [ ! -e /run/lab-looks ] || break; sleep 0.1; done; ! rmmod \
         null_blk 2>/dev/null",
    );
    machine.perform(&[Action::UnloadModule {
        name: "null_blk".into(),
    }]);
    assert_eq!(loaded(machine), "0");
    machine.sh("rm /run/udev/rules.d/99-lab-looks.rules /run/lab-look*; udevadm control --reload");
}

pub fn options_of_a_module_in_use_wait_for_a_reboot(machine: &Machine) {
    machine.sh(
        "modprobe null_blk nr_devices=1 gb=1; udevadm settle; systemd-run --quiet --unit=lab-user \
         -p StandardInput=file:/dev/nullb0 sleep infinity",
    );
    let resource = resource(
        &KernelModule,
        json!({ "name": "null_blk", "loaded": true, "options": { "nr_devices": 3, "gb": 1 } }),
    );
    let used = machine.diff(&KernelModule, &resource);
    assert!(
        used.needs_reboot && words(&used.actions) == ["write_file"],
        "{:?}",
        used.actions
    );
    machine.perform(&used.actions);
    let waiting = machine.diff(&KernelModule, &resource);
    let rows = waiting.attributes.iter().flat_map(|(name, a)| {
        a.differences()
            .into_iter()
            .map(move |(plane, ..)| (name.as_str(), plane.word()))
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [("option nr_devices", "running")],
        "written, and not in effect"
    );
    assert!(waiting.needs_reboot && waiting.actions.is_empty());

    machine.sh("systemctl stop lab-user.service");
    let free = machine.diff(&KernelModule, &resource);
    assert_eq!(words(&free.actions), ["unload_module", "load_module"]);
    machine.perform(&free.actions);
    assert!(machine.diff(&KernelModule, &resource).is_met());
    assert_eq!(
        machine.sh("cat /sys/module/null_blk/parameters/nr_devices"),
        "3\n"
    );

    let undo = KernelModule.undo(
        &resource,
        &used.before,
        &machine.read(&KernelModule.reads(&resource)),
    );
    machine.perform(&undo.actions);
    assert_eq!(loaded(machine), "1", "it was loaded before");
    machine.sh("udevadm settle; modprobe -r null_blk");
}

pub fn a_blacklisted_module_stays_away(machine: &Machine) {
    machine.sh("modprobe null_blk nr_devices=1 gb=1");
    let resource = resource(
        &KernelModule,
        json!({ "name": "null_blk", "loaded": false, "blacklist": true }),
    );
    let fresh = machine.diff(&KernelModule, &resource);
    machine.perform(&fresh.actions);
    assert!(machine.diff(&KernelModule, &resource).is_met());
    // The way that hardware asks for its driver.
    machine.run("modprobe -b null_blk");
    assert_eq!(loaded(machine), "0");
    let undo = KernelModule.undo(
        &resource,
        &fresh.before,
        &machine.read(&KernelModule.reads(&resource)),
    );
    machine.perform(&undo.actions);
    assert_eq!(loaded(machine), "1");
    machine.sh(
        "modprobe -b null_blk; udevadm settle; modprobe -r null_blk; ! ls \
         /etc/modprobe.d/*null_blk* 2>/dev/null",
    );
}
