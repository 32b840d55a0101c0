//! What stays and what goes: checkpoints, the saved file, a reload, a reboot, and a timer on the
//! switch.

use crate::rig::{Switch, TOMAHAWK};
use serde_json::{Value, json};

fn mtu(switch: &Switch) -> String {
    switch.row(4, "PORT|Ethernet0")["mtu"].clone()
}

fn set(switch: &Switch, mtu: &str) {
    let outcome =
        switch.patch(&json!([{"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": mtu}]));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[test]
fn only_what_was_saved_survives_a_reload_and_a_reboot() {
    let Some(mut switch) = Switch::start("saved", TOMAHAWK) else {
        return;
    };
    let before = switch.must("cat /proc/sys/kernel/random/boot_id");
    set(&switch, "9000");
    assert_eq!(switch.over_ssh("config reload -y -f").code, Some(0));
    assert_eq!(mtu(&switch), "9100");
    set(&switch, "9000");
    assert_eq!(switch.over_ssh("config save -y").code, Some(0));
    let saved: Value = serde_json::from_str(&switch.must("cat /etc/sonic/config_db.json")).unwrap();
    assert_eq!(saved, switch.config());
    set(&switch, "9216");
    switch.reboot();
    assert_eq!(mtu(&switch), "9000");
    assert_ne!(
        switch.over_ssh("cat /proc/sys/kernel/random/boot_id").out,
        before
    );
    // somebody on it asks for one
    switch.must("setsid reboot >/dev/null 2>&1 &");
    switch.wait_for("reboot");
    assert!(switch.wants_reboot());
    switch.reboot();
    assert!(!switch.wants_reboot());
}

#[test]
fn checkpoints_come_back_and_are_written_over_without_a_word() {
    let Some(switch) = Switch::start("checkpoints", TOMAHAWK) else {
        return;
    };
    assert_eq!(switch.must("config list-checkpoints"), "[]\n");
    assert_eq!(switch.over_ssh("config checkpoint one").code, Some(0));
    set(&switch, "9000");
    assert_eq!(switch.over_ssh("config rollback one").code, Some(0));
    assert_eq!(mtu(&switch), "9100");
    // as in `FileSystemConfigRollbacker.checkpoint`
    set(&switch, "9000");
    assert_eq!(switch.over_ssh("config checkpoint one").code, Some(0));
    set(&switch, "9216");
    assert_eq!(switch.over_ssh("config rollback one").code, Some(0));
    assert_eq!(mtu(&switch), "9000");
    assert_eq!(
        switch.must("config list-checkpoints"),
        "[\n    \"one\"\n]\n"
    );
    assert_eq!(
        switch.over_ssh("config delete-checkpoint one").code,
        Some(0)
    );
    for command in ["rollback", "delete-checkpoint"] {
        let lacking = switch.over_ssh(&format!("config {command} one"));
        assert_eq!(lacking.code, Some(2));
        assert!(
            lacking
                .err
                .ends_with("Error: Checkpoint 'one' does not exist\n"),
            "{lacking:?}"
        );
    }
}

#[test]
fn a_timer_on_the_switch_takes_a_patch_back() {
    let Some(mut switch) = Switch::start("timer", TOMAHAWK) else {
        return;
    };
    switch.must("config checkpoint before");
    let arm = |seconds: u32| {
        format!(
            "systemd-run --quiet --unit=rollback --on-active={seconds} -p Type=oneshot /bin/sh -c \
             'config rollback before'"
        )
    };
    set(&switch, "9000");
    assert_eq!(switch.over_ssh(&arm(1)).code, Some(0));
    let since = std::time::Instant::now();
    while mtu(&switch) != "9100" {
        assert!(since.elapsed().as_secs() < 60, "nobody took it back");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    // one that is stopped does nothing, and a reboot forgets it; a unit that is enabled runs then
    switch.sh("until ! systemctl is-active -q rollback.service; do sleep 0.1; done");
    assert_eq!(switch.over_ssh(&arm(600)).code, Some(0));
    assert_eq!(
        switch.over_ssh("systemctl is-active rollback.timer").code,
        Some(0)
    );
    assert_eq!(
        switch.over_ssh("systemctl stop rollback.timer").code,
        Some(0)
    );
    assert_eq!(switch.over_ssh(&arm(600)).code, Some(0));
    let unit = "[Service]\n\
                Type=oneshot\n\
                ExecStart=/bin/sh -c \"echo booted >/etc/booted\"\n\
                [Install]\n\
                WantedBy=multi-user.target";
    switch.write("/etc/systemd/system/late.service", unit);
    switch.must("systemctl enable late.service");
    switch.reboot();
    assert_ne!(
        switch.over_ssh("systemctl is-active rollback.timer").code,
        Some(0)
    );
    assert_eq!(switch.must("cat /etc/booted"), "booted\n");
}
