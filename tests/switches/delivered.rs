//! A switch as it is delivered, read the ways that railwright reads.

use crate::rig::{SN5600, Switch, TOMAHAWK};
use crate::support::Place;
use railwright_resource::{Read, host};

#[test]
fn a_leaf_of_32_ports_has_what_the_vendor_renders() {
    let Some(switch) = Switch::start("delivered", TOMAHAWK) else {
        return;
    };
    let config = switch.config();
    let rows = |table: &str| config[table].as_object().unwrap().len();
    assert_eq!(
        (
            rows("PORT"),
            rows("PORT_QOS_MAP"),
            rows("QUEUE"),
            rows("BUFFER_QUEUE")
        ),
        (32, 33, 32 * 7, 32 * 3)
    );
    assert_eq!(config["PORT_QOS_MAP"]["Ethernet124"]["pfc_enable"], "3,4");
    assert_eq!(config["DSCP_TO_TC_MAP"]["AZURE"]["26"], "1");
    // a list in Redis has `@` in its name, an entry without fields has one that says so
    assert_eq!(switch.row(4, "ACL_TABLE|SSH_ONLY")["services@"], "SSH");
    assert_eq!(
        config["ACL_TABLE"]["SSH_ONLY"]["services"],
        serde_json::json!(["SSH"])
    );
    assert_eq!(
        switch.row(4, "LOOPBACK_INTERFACE|Loopback0")["NULL"],
        "NULL"
    );
    assert_eq!(
        config["LOOPBACK_INTERFACE"]["Loopback0"],
        serde_json::json!({})
    );
    // what the buffer manager made of it
    assert_eq!(
        switch.row(4, "BUFFER_PG|Ethernet0|3-4")["profile"],
        "pg_lossless_100000_40m_profile"
    );
    assert_eq!(switch.row(0, "PORT_TABLE:Ethernet0")["oper_status"], "up");
    let oid = &switch.row(2, "COUNTERS_PORT_NAME_MAP")["Ethernet0"];
    assert_eq!(
        switch.row(2, &format!("COUNTERS:{oid}"))["SAI_PORT_STAT_PFC_3_RX_PKTS"],
        "0"
    );
    assert!(
        switch
            .must("cat /etc/sonic/sonic_version.yml")
            .contains("asic_type: broadcom\n")
    );
}

#[test]
fn a_leaf_of_64_ports_computes_its_headroom_outside_of_the_configuration() {
    let Some(switch) = Switch::start("delivered", SN5600) else {
        return;
    };
    let config = switch.config();
    assert_eq!(config["PORT"].as_object().unwrap().len(), 64);
    assert_eq!(config["BUFFER_PG"]["Ethernet504|3-4"]["profile"], "NULL");
    assert!(
        !config["BUFFER_PROFILE"]
            .as_object()
            .unwrap()
            .keys()
            .any(|name| name.starts_with("pg_lossless"))
    );
    assert_eq!(
        switch.row(0, "BUFFER_PG_TABLE:Ethernet0:3-4")["profile"],
        "pg_lossless_800000_5m_8lane_profile"
    );
}

#[test]
fn the_commands_speak_as_those_of_sonic_over_ssh() {
    let Some(switch) = Switch::start("commands", TOMAHAWK) else {
        return;
    };
    let says = |command: &str| switch.over_ssh(command).out;
    assert_eq!(
        says("sonic-db-cli CONFIG_DB hget 'PORT|Ethernet0' mtu"),
        "9100\n"
    );
    assert_eq!(
        says("sonic-db-cli CONFIG_DB hgetall 'BUFFER_PG|Ethernet0|0'"),
        "{'profile': 'ingress_lossy_profile'}\n"
    );
    assert_eq!(
        says("sonic-db-cli CONFIG_DB keys 'BUFFER_PG|Ethernet0|*'"),
        "BUFFER_PG|Ethernet0|0\nBUFFER_PG|Ethernet0|3-4\n"
    );
    assert_eq!(
        says("sonic-db-cli CONFIG_DB exists 'PORT|Ethernet1'"),
        "0\n"
    );
    assert_eq!(
        says("sonic-db-cli STATE_DB hget 'PORT_TABLE|Ethernet0' supported_fecs"),
        "none,rs,fc\n"
    );
    assert_eq!(
        says("sonic-cfggen -d -v DEVICE_METADATA.localhost.hwsku"),
        "Arista-7060CX-32S-C32\n"
    );
    let lacking = switch.over_ssh("config no-such-command");
    assert_eq!(lacking.code, Some(2), "{lacking:?}");
}

#[test]
fn the_read_of_a_plain_host_works() {
    let Some(switch) = Switch::start("host", TOMAHAWK) else {
        return;
    };
    let facts = host::decode_host_facts(&switch.host.read(&[Read::Host])).unwrap();
    assert_eq!(
        (facts.os_id.as_str(), facts.os_version.as_str(), facts.uid),
        ("debian", "12", 0)
    );
    assert!(
        facts.init_systemd
            && facts.tools.contains("systemd-run")
            && facts.tools.contains("systemctl")
    );
    assert_eq!(
        facts.boot_id,
        switch.must("cat /proc/sys/kernel/random/boot_id").trim()
    );
}

#[test]
fn four_switches_run_side_by_side() {
    let switches: Vec<Switch> = (0..4)
        .filter_map(|_| Switch::start("four", TOMAHAWK))
        .collect();
    for (n, switch) in switches.iter().enumerate() {
        switch.must(&format!(
            "sonic-db-cli CONFIG_DB hset 'PORT|Ethernet0' description 'switch {n}'"
        ));
    }
    for (n, switch) in switches.iter().enumerate() {
        assert_eq!(
            switch
                .over_ssh("sonic-db-cli CONFIG_DB hget 'PORT|Ethernet0' description")
                .out,
            format!("switch {n}\n")
        );
    }
}

#[test]
fn railwright_reads_and_writes_it_as_a_plain_host() {
    let Some(switch) = Switch::start("railwright", TOMAHAWK) else {
        return;
    };
    let place = Place::new();
    place
        .write("inv/id", switch.identity())
        .write("inv/known_hosts", switch.known_hosts() + "\n");
    let ssh = "ssh: { user: root, host_keys: known_hosts, identities: [id] }";
    place.write(
        "inv/cluster.yaml",
        format!(
            "cluster: here\n{ssh}\nnodes:\n  - {{ name: leaf1, os: debian-12, ssh: {} }}\n",
            switch.ssh()
        ),
    );
    let note = "  - id: note\n    file: { path: /etc/note.conf, content: \"rails\\n\" }\n";
    place.write(
        "inv/modules/story/module.yaml",
        format!("module: story\nsummary: a note\nresources:\n{note}"),
    );
    let applied = place.run(&["apply", "inv", "--yes"]);
    assert!(applied.ends_with("--- exit 0 ---\n"), "{applied}");
    assert_eq!(switch.must("cat /etc/note.conf"), "rails\n");
    let again = place.run(&["plan", "inv", "--detailed-exitcode"]);
    assert!(again.ends_with("--- exit 0 ---\n"), "{again}");
}
