//! Faults that a test lays: a patch that hangs, a line that breaks, a flash that is full, somebody
//! else who writes.

use crate::rig::{Switch, TOMAHAWK};
use serde_json::{Value, json};

/// Three ports, in six steps and three more between them: down, bind, up each.
fn three_ports() -> Value {
    let bind = |port: &str| json!({"op": "replace", "path": format!("/PORT_QOS_MAP/{port}/pfc_enable"), "value": "3"});
    json!([bind("Ethernet0"), bind("Ethernet4"), bind("Ethernet8")])
}

fn pfc(switch: &Switch, port: &str) -> String {
    switch.row(4, &format!("PORT_QOS_MAP|{port}"))["pfc_enable"].clone()
}

#[test]
fn a_patch_that_hangs_has_done_half_of_it() {
    let Some(switch) = Switch::start("hangs", TOMAHAWK) else {
        return;
    };
    switch.fault("hang-after", "5");
    std::thread::scope(|scope| {
        let patch = scope.spawn(|| switch.patch(&three_ports()));
        switch.wait_for("hanging");
        assert_eq!(
            ["Ethernet0", "Ethernet4", "Ethernet8"].map(|port| pfc(&switch, port)),
            ["3", "3", "3,4"]
        );
        assert_eq!(switch.row(0, "PORT_TABLE:Ethernet4")["oper_status"], "down");
        switch.fix("hang-after");
        assert_eq!(patch.join().unwrap().code, Some(0));
    });
    assert_eq!(pfc(&switch, "Ethernet8"), "3");
}

#[test]
fn a_line_that_breaks_leaves_half_of_a_patch() {
    let Some(switch) = Switch::start("breaks", TOMAHAWK) else {
        return;
    };
    let outcome = switch.cut_after(4, || switch.patch(&three_ports()));
    assert_eq!(outcome.code, Some(255), "{outcome:?}");
    // the next line that it says has no reader, and that ends it
    let since = std::time::Instant::now();
    while switch
        .sh("grep -lq apply-patch /proc/[0-9]*/cmdline 2>/dev/null")
        .code
        == Some(0)
        && since.elapsed().as_secs() < 30
    {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(
        ["Ethernet0", "Ethernet8"].map(|port| pfc(&switch, port)),
        ["3", "3,4"]
    );
    assert_eq!(switch.row(0, "PORT_TABLE:Ethernet4")["oper_status"], "down");
    // one that speaks to a file goes on
    switch.write("/tmp/patch.json", &three_ports().to_string());
    let outcome = switch.cut_after(1, || {
        switch.over_ssh("config apply-patch /tmp/patch.json >/tmp/said 2>&1")
    });
    assert_eq!(outcome.code, Some(255), "{outcome:?}");
    let since = std::time::Instant::now();
    while pfc(&switch, "Ethernet8") != "3" {
        assert!(
            since.elapsed().as_secs() < 60,
            "{}",
            switch.must("cat /tmp/said")
        );
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn a_rollback_may_be_refused() {
    let Some(switch) = Switch::start("refused", TOMAHAWK) else {
        return;
    };
    switch.must("config checkpoint before");
    assert_eq!(switch.patch(&three_ports()).code, Some(0));
    switch.fault(
        "refuse-rollback",
        "Modification of BUFFER_PROFILE table is illegal- validating function f returned False",
    );
    let refused = switch.over_ssh("config rollback before");
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.err.starts_with("Failed to rollback config\n")
            && refused.err.contains("table is illegal"),
        "{refused:?}"
    );
    assert_eq!(pfc(&switch, "Ethernet0"), "3");
    switch.fix("refuse-rollback");
    assert_eq!(switch.over_ssh("config rollback before").code, Some(0));
    assert_eq!(pfc(&switch, "Ethernet0"), "3,4");
}

#[test]
fn a_full_flash_leaves_an_empty_file_and_a_bare_switch_after_the_next_boot() {
    let Some(mut switch) = Switch::start("full", TOMAHAWK) else {
        return;
    };
    switch.fault("full-flash", "");
    let failed = switch.over_ssh("config checkpoint one");
    assert_eq!(
        (failed.code, failed.err.contains("No space left on device")),
        (Some(2), true),
        "{failed:?}"
    );
    let failed = switch.over_ssh("config save -y");
    assert_eq!(
        (failed.code, failed.err.contains("No space left on device")),
        (Some(1), true),
        "{failed:?}"
    );
    assert_eq!(switch.must("cat /etc/sonic/config_db.json"), "");
    switch.reboot();
    assert_eq!(switch.config(), json!({}));
}

#[test]
fn somebody_else_who_writes_in_between_is_found_at_the_end_or_not_at_all() {
    let Some(switch) = Switch::start("writer", TOMAHAWK) else {
        return;
    };
    let writer = |after: u32, table: &str, key: &str, fields: Value| {
        switch.fault(
            "second-writer",
            &json!({"after": after, "table": table, "key": key, "fields": fields}).to_string(),
        );
    };
    let mut other = switch.config()["PORT"]["Ethernet100"].clone();
    other["mtu"] = json!("1500");
    writer(2, "PORT", "Ethernet100", other);
    let outcome = switch.patch(&three_ports());
    assert_eq!(outcome.code, Some(2));
    assert!(
        outcome
            .err
            .contains("after applying patch to config, there are still some parts not updated"),
        "{outcome:?}"
    );
    assert_eq!(
        (
            pfc(&switch, "Ethernet8").as_str(),
            switch.row(4, "PORT|Ethernet100")["mtu"].as_str()
        ),
        ("3", "1500")
    );
    // a row that the patch writes later is lost without a word, fields that it does not name
    // included
    let mut other = switch.config()["PORT_QOS_MAP"]["Ethernet8"].clone();
    other["scheduler"] = json!("scheduler.0");
    writer(1, "PORT_QOS_MAP", "Ethernet8", other);
    let back = json!([{"op": "replace", "path": "/PORT_QOS_MAP/Ethernet4/pfc_enable", "value": "3,4"}, {"op": "replace", "path": "/PORT_QOS_MAP/Ethernet8/pfc_enable", "value": "3,4"}]);
    assert_eq!(switch.patch(&back).code, Some(0));
    assert!(
        !switch
            .row(4, "PORT_QOS_MAP|Ethernet8")
            .contains_key("scheduler")
    );
}
