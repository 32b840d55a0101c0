//! What a patch does besides what it says: ports that go down and up, and rows that the daemons
//! write.

use crate::rig::{SN5600, Switch, TOMAHAWK};
use serde_json::{Value, json};

fn apply(switch: &Switch, operations: &Value) {
    let outcome = switch.patch(operations);
    assert_eq!(outcome.code, Some(0), "{operations}: {outcome:?}");
}

#[test]
fn a_port_that_is_up_flaps_when_its_bindings_change() {
    let Some(switch) = Switch::start("flaps", TOMAHAWK) else {
        return;
    };
    let bind = |port: &str| {
        json!([
            {"op": "add", "path": "/DSCP_TO_TC_MAP/own", "value": {"26": "3"}},
            {"op": "replace", "path": format!("/PORT_QOS_MAP/{port}/dscp_to_tc_map"), "value": "own"},
        ])
    };
    switch.fault("flap-ms", "1500");
    std::thread::scope(|scope| {
        let seen = scope.spawn(|| {
            (0..200).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(50));
                switch.row(0, "PORT_TABLE:Ethernet0")["oper_status"] == "down"
            })
        });
        apply(&switch, &bind("Ethernet0"));
        assert!(seen.join().unwrap(), "nobody could see the link down");
    });
    switch.fault("flap-ms", "0");
    assert_eq!(switch.log("flaps"), ["Ethernet0"]);
    assert_eq!(switch.row(0, "PORT_TABLE:Ethernet0")["oper_status"], "up");
    assert_eq!(switch.row(4, "PORT|Ethernet0")["admin_status"], "up");
    // a port that is down has nothing to lose; profiles, maps and cables belong to no port
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/PORT/Ethernet4/admin_status", "value": "down"}]),
    );
    let flaps = switch.log("flaps").len();
    apply(&switch, &bind("Ethernet4"));
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/WRED_PROFILE/AZURE_LOSSLESS/green_min_threshold", "value": "150000"}]),
    );
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/CABLE_LENGTH/AZURE/Ethernet8", "value": "5m"}]),
    );
    assert_eq!(switch.log("flaps").len(), flaps);
    assert_eq!(switch.row(4, "PORT|Ethernet4")["admin_status"], "down");
    // every table of the sorter's list does it
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/QUEUE/Ethernet8|3/scheduler", "value": "scheduler.0"}]),
    );
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/BUFFER_QUEUE/Ethernet12|0-2/profile", "value": "egress_lossless_profile"}]),
    );
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/BUFFER_PG/Ethernet16|0/profile", "value": "egress_lossless_profile"}]),
    );
    assert_eq!(
        switch.log("flaps")[flaps..],
        ["Ethernet8", "Ethernet12", "Ethernet16"]
    );
    // what was loaded past the updater flaps nothing and is not checked
    switch.write(
        "/tmp/more.json",
        &json!({"PORT_QOS_MAP": {"Ethernet20": {"dscp_to_tc_map": "no such map"}}}).to_string(),
    );
    assert_eq!(
        switch.over_ssh("config load -y /tmp/more.json").code,
        Some(0)
    );
    assert_eq!(switch.log("flaps").len(), flaps + 3);
    assert_eq!(
        switch.row(4, "PORT_QOS_MAP|Ethernet20")["dscp_to_tc_map"],
        "no such map"
    );
}

#[test]
fn the_buffer_manager_writes_rows_of_its_own_where_its_table_has_the_cable() {
    let Some(switch) = Switch::start("derived", TOMAHAWK) else {
        return;
    };
    assert_eq!(
        switch.keys(4, "BUFFER_PROFILE|pg_lossless*"),
        ["BUFFER_PROFILE|pg_lossless_100000_40m_profile"]
    );
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/CABLE_LENGTH/AZURE/Ethernet0", "value": "5m"}]),
    );
    assert_eq!(
        switch.row(4, "BUFFER_PG|Ethernet0|3-4")["profile"],
        "pg_lossless_100000_5m_profile"
    );
    assert_eq!(
        switch.row(4, "BUFFER_PROFILE|pg_lossless_100000_5m_profile")["xoff"],
        "165568"
    );
    assert_eq!(
        switch.row(0, "BUFFER_PG_TABLE:Ethernet0:3-4")["profile"],
        "pg_lossless_100000_5m_profile"
    );
    // a cable that the table does not have: a line in a log, and the groups of before
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/CABLE_LENGTH/AZURE/Ethernet4", "value": "300m"}]),
    );
    let line = "No PG profile configured for speed 100000 and cable length 300m";
    assert!(
        switch
            .log("syslog")
            .iter()
            .any(|said| said.contains("Ethernet4") && said.ends_with(line)),
        "{:?}",
        switch.log("syslog")
    );
    assert_eq!(
        switch.row(4, "BUFFER_PG|Ethernet4|3-4")["profile"],
        "pg_lossless_100000_40m_profile"
    );
    // the groups of another `pfc_enable` come beside the old ones, which nobody takes away
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/PORT_QOS_MAP/Ethernet8/pfc_enable", "value": "3"}]),
    );
    assert_eq!(
        switch.keys(4, "BUFFER_PG|Ethernet8|*"),
        [
            "BUFFER_PG|Ethernet8|0",
            "BUFFER_PG|Ethernet8|3",
            "BUFFER_PG|Ethernet8|3-4"
        ]
    );
    // a rollback meets rows that came since, and takes them away whole
    switch.must("config checkpoint before");
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/PORT_QOS_MAP/Ethernet12/pfc_enable", "value": "2,3,4,6"}]),
    );
    assert_eq!(switch.keys(4, "BUFFER_PG|Ethernet12|*").len(), 4);
    let back = switch.over_ssh("config rollback before");
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(
        switch.row(4, "PORT_QOS_MAP|Ethernet12")["pfc_enable"],
        "3,4"
    );
    assert_eq!(
        switch.keys(4, "BUFFER_PG|Ethernet12|*"),
        ["BUFFER_PG|Ethernet12|0", "BUFFER_PG|Ethernet12|3-4"]
    );
}

#[test]
fn the_dynamic_model_follows_cable_and_mtu() {
    let Some(switch) = Switch::start("dynamic", SN5600) else {
        return;
    };
    // the shipped table of the SN5600: 800G and 40 m have 362496 bytes, computed for frames of 9216
    apply(
        &switch,
        &json!([
            {"op": "replace", "path": "/CABLE_LENGTH/AZURE/Ethernet0", "value": "40m"},
            {"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"},
        ]),
    );
    let profile = &switch.row(0, "BUFFER_PG_TABLE:Ethernet0:3-4")["profile"];
    assert_eq!(profile, "pg_lossless_800000_40m_mtu9216_8lane_profile");
    assert_eq!(
        switch.row(0, &format!("BUFFER_PROFILE_TABLE:{profile}"))["xoff"],
        "362496"
    );
    apply(
        &switch,
        &json!([{"op": "replace", "path": "/PORT/Ethernet0/admin_status", "value": "down"}]),
    );
    assert!(switch.row(0, "BUFFER_PG_TABLE:Ethernet0:3-4").is_empty());
}
