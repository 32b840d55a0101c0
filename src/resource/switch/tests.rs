//! The kinds of switches on configurations in the form of CONFIG_DB, and on what their own patches
//! make of those.

use super::buffer::SwitchBuffer;
use super::ecn::SwitchEcn;
use super::edit::SwitchEdit;
use super::port::SwitchPort;
use super::qos::SwitchQos;
use super::sonic::edit::build_json_patch;
use super::test_support::resource;
use crate::test_support::answered;
use crate::{Action, DesiredResource, Disruption, ReadResults, ResourceDiff, ResourceKind};
use proptest::prelude::*;
use railwright_base::Reason;
use serde_json::{Value, json};
use std::sync::Arc;

/// A port of a switch as it is delivered: SONiC's own maps.
fn delivered() -> Value {
    let identity: serde_json::Map<String, Value> = (0..8)
        .map(|n| (n.to_string(), json!(n.to_string())))
        .collect();
    json!({
        "PORT": { "Ethernet0": { "speed": "400000", "mtu": "9100", "admin_status": "up" } },
        "DSCP_TO_TC_MAP": { "AZURE": { "3": "3", "4": "4", "26": "1", "48": "6" } },
        "TC_TO_QUEUE_MAP": { "AZURE": identity }, "MAP_PFC_PRIORITY_TO_QUEUE": { "AZURE": identity },
        "TC_TO_PRIORITY_GROUP_MAP": { "AZURE": { "0": "0", "3": "3", "4": "4", "6": "0" } },
        "PORT_QOS_MAP": { "Ethernet0": { "dscp_to_tc_map": "[DSCP_TO_TC_MAP|AZURE]", "tc_to_queue_map": "AZURE", "tc_to_pg_map": "AZURE",
            "pfc_to_queue_map": "AZURE", "pfc_enable": "3,4" } },
        "SCHEDULER": { "scheduler.0": { "type": "DWRR", "weight": "14" } },
        "QUEUE": { "Ethernet0|3": { "wred_profile": "AZURE_LOSSLESS", "scheduler": "scheduler.0" }, "Ethernet0|6": { "scheduler": "scheduler.0" } },
        "WRED_PROFILE": { "AZURE_LOSSLESS": { "ecn": "ecn_all", "green_min_threshold": "1048576", "green_max_threshold": "2097152",
            "green_drop_probability": "5" } },
        "CABLE_LENGTH": { "AZURE": { "Ethernet0": "300m" } },
        "BUFFER_PROFILE": { "pg_lossless_400000_40m_profile": { "xoff": "177152" } },
        "BUFFER_PG": { "Ethernet0|3-4": { "profile": "pg_lossless_400000_40m_profile" } },
    })
}

fn qos() -> DesiredResource {
    let body = json!({ "system": "sonic", "port": "Ethernet0", "priority": 3, "dscp": 26, "cnp_priority": 6, "cnp_dscp": 48,
        "watchdog_detection_ms": 200, "watchdog_restoration_ms": 400 });
    resource(&SwitchQos, body)
}

fn answers(
    kind: &dyn ResourceKind,
    resource: &DesiredResource,
    running: &Value,
    saved: Option<&Value>,
) -> ReadResults {
    let reads = kind.reads(resource);
    let saved = saved.map_or((1, String::new()), |saved| (0, saved.to_string()));
    answered(&[
        (&reads[0], 0, &running.to_string()),
        (&reads[1], saved.0, &saved.1),
    ])
}

fn edits(diff: &ResourceDiff) -> &[SwitchEdit] {
    match diff.actions.as_slice() {
        [Action::EditSwitch { edits, .. }] => edits,
        other => panic!("{other:?}"),
    }
}

/// What `config apply-patch` makes of a configuration.
fn patched(config: &Value, edits: &[SwitchEdit]) -> Value {
    let mut out = config.clone();
    for operation in build_json_patch(&SwitchEdit::sonic(edits))
        .as_array()
        .unwrap()
    {
        let path = operation["path"].as_str().unwrap();
        let (parent, last) = path.rsplit_once('/').unwrap();
        let last = railwright_base::json_pointer::unescape_step(last);
        let parent = out
            .pointer_mut(parent)
            .and_then(Value::as_object_mut)
            .unwrap_or_else(|| panic!("{path}: its parent is not there"));
        match operation["op"].as_str().unwrap() {
            "add" => drop(parent.insert(last, operation["value"].clone())),
            "replace" => {
                *parent
                    .get_mut(&last)
                    .unwrap_or_else(|| panic!("{path} is not there")) = operation["value"].clone()
            }
            _ => assert!(parent.remove(&last).is_some(), "{path} is not there"),
        }
    }
    out
}

/// As planned, then done, then saved: in sync; and undone it is as it was, but for what is ours and
/// unused.
fn round(kind: &dyn ResourceKind, resource: &DesiredResource, config: &Value) -> Value {
    let first = kind.diff(resource, &answers(kind, resource, config, Some(config)));
    let done = patched(config, edits(&first));
    let unsaved = kind.diff(resource, &answers(kind, resource, &done, Some(config)));
    assert!(
        matches!(unsaved.actions.as_slice(), [Action::SaveSwitch { .. }]),
        "{:?}",
        unsaved.actions
    );
    assert!(first.announced.contains(&unsaved.actions[0].word()));
    let saved = kind.diff(resource, &answers(kind, resource, &done, Some(&done)));
    assert!(saved.is_met() && saved.actions.is_empty(), "{saved:?}");
    assert!(kind.can_read_before(&first.before), "{}", first.before);
    let undo = kind.undo(
        resource,
        &first.before,
        &answers(kind, resource, &done, Some(&done)),
    );
    let back = patched(&done, edits(&undo));
    let undone = kind.undo(
        resource,
        &first.before,
        &answers(kind, resource, &back, Some(&back)),
    );
    assert!(undone.is_met() && undone.actions.is_empty(), "{undone:?}");
    back
}

#[test]
fn the_class_of_the_fabric_on_a_port_as_it_is_delivered() {
    let (config, resource) = (delivered(), qos());
    let first = SwitchQos.diff(
        &resource,
        &answers(&SwitchQos, &resource, &config, Some(&config)),
    );
    let rows: Vec<String> = first
        .attributes
        .iter()
        .flat_map(|(name, a)| {
            a.differences()
                .into_iter()
                .map(move |(plane, desired, actual)| {
                    format!("{name} {plane:?} {actual:?} {desired:?}")
                })
        })
        .filter(|row| row.contains("Running"))
        .collect();
    insta::assert_snapshot!(rows.join("\n"));
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&build_json_patch(&SwitchEdit::sonic(edits(&first)))).unwrap()
    );
    assert_eq!(
        (first.disruption, first.transaction.as_deref()),
        (Disruption::LinkBlip, Some("switch"))
    );
    let back = round(&SwitchQos, &resource, &config);
    assert_eq!(back["PORT_QOS_MAP"]["Ethernet0"]["dscp_to_tc_map"], "AZURE");
    assert_eq!(back["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"], "3,4");
    assert!(
        back["PFC_WD"].get("Ethernet0").is_none(),
        "a row that came with us goes"
    );
    assert_eq!(
        back["DSCP_TO_TC_MAP"]["AZURE"], config["DSCP_TO_TC_MAP"]["AZURE"],
        "what others brought is never edited"
    );
}

#[test]
fn a_port_that_is_down_loses_no_link_and_a_switch_without_tables_gets_them() {
    let resource = qos();
    let bare = json!({ "PORT": { "Ethernet0": { "speed": "100000" } } });
    let first = SwitchQos.diff(&resource, &answers(&SwitchQos, &resource, &bare, None));
    assert_eq!(
        (first.disruption, first.interrupts.as_slice()),
        (Disruption::Reload, &[][..])
    );
    round(&SwitchQos, &resource, &bare);
}

#[test]
fn the_other_kinds_go_round() {
    let config = delivered();
    let port = resource(
        &SwitchPort,
        json!({ "system": "sonic", "port": "Ethernet0", "mtu": 9216, "up": true }),
    );
    assert_eq!(round(&SwitchPort, &port, &config), config);
    let diffed = SwitchPort.diff(&port, &answers(&SwitchPort, &port, &config, Some(&config)));
    assert_eq!(
        diffed.disruption,
        Disruption::Reload,
        "an MTU takes no port down"
    );
    let ecn = json!({ "system": "sonic", "port": "Ethernet0", "priority": 3, "min_bytes": 1_000_000, "max_bytes": 2_000_000, "probability_percent": 10 });
    let ecn = resource(&SwitchEcn, ecn);
    let back = round(&SwitchEcn, &ecn, &config);
    assert_eq!(back["QUEUE"], config["QUEUE"]);
    let buffer = resource(
        &SwitchBuffer,
        json!({ "system": "sonic", "port": "Ethernet0", "cable_m": 40, "priority": 3 }),
    );
    assert_eq!(round(&SwitchBuffer, &buffer, &config), config);
}

#[test]
fn other_thresholds_later_edit_our_profile_alone() {
    let body = |max: u64| json!({ "system": "sonic", "port": "Ethernet0", "priority": 3, "min_bytes": 1_000_000, "max_bytes": max, "probability_percent": 10 });
    let (first, second) = (
        resource(&SwitchEcn, body(2_000_000)),
        resource(&SwitchEcn, body(3_000_000)),
    );
    let config = delivered();
    let done = patched(
        &config,
        edits(&SwitchEcn.diff(&first, &answers(&SwitchEcn, &first, &config, Some(&config)))),
    );
    let changed = SwitchEcn.diff(&second, &answers(&SwitchEcn, &second, &done, Some(&done)));
    assert_eq!(
        (changed.disruption, edits(&changed).len()),
        (Disruption::Reload, 1),
        "{changed:?}"
    );
}

/// Ours is a copy of the map that a port has now, and not of the one that another port had once.
#[test]
fn a_map_that_changed_since_ours_was_copied_is_copied_anew_or_holds_a_further_port() {
    let diff = |port: &str, config: &Value| {
        let mut body = qos().body.clone();
        body["port"] = json!(port);
        let resource = resource(&SwitchQos, body);
        SwitchQos.diff(
            &resource,
            &answers(&SwitchQos, &resource, config, Some(config)),
        )
    };
    let mut config = delivered();
    for table in ["PORT", "PORT_QOS_MAP"] {
        config[table]["Ethernet4"] = config[table]["Ethernet0"].clone();
    }
    let mut done = patched(&config, edits(&diff("Ethernet0", &config)));
    assert_eq!(diff("Ethernet4", &done).refusal, None);
    let theirs = json!({ "3": "3", "4": "2", "26": "0", "46": "5", "48": "6" });
    done["DSCP_TO_TC_MAP"]["AZURE"] = theirs.clone();
    assert!(
        diff("Ethernet0", &done).is_met(),
        "who has it is not blocked"
    );
    let further = diff("Ethernet4", &done);
    let why = further.refusal.clone().unwrap_or_default();
    assert!(further.actions.is_empty(), "{further:?}");
    for words in [
        "DSCP_TO_TC_MAP|railwright",
        "DSCP_TO_TC_MAP|AZURE",
        ": 4: 2 -> 4, 46: 5 -> none; ",
    ] {
        assert!(why.contains(words), "{why}");
    }
    let mut both = done.clone();
    both["DSCP_TO_TC_MAP"]["railwright"]["4"] = json!("2");
    both["DSCP_TO_TC_MAP"]["railwright"]["46"] = json!("5");
    assert_eq!(diff("Ethernet4", &both).refusal, None, "the remedy is one");
    // Nobody has it any more.
    done["PORT_QOS_MAP"]["Ethernet0"] = config["PORT_QOS_MAP"]["Ethernet0"].clone();
    done["DSCP_TO_TC_MAP"]["railwright"]["9"] = json!("1");
    let again = patched(&done, edits(&diff("Ethernet4", &done)));
    let mut expected = theirs;
    expected["26"] = json!("3");
    assert_eq!(again["DSCP_TO_TC_MAP"]["railwright"], expected);
    assert!(diff("Ethernet4", &again).is_met());
}

/// What somebody else wrote is neither lost in a copy of ours nor guessed at.
#[test]
fn an_entry_of_others_that_makes_no_sense_holds_the_port() {
    let refusal = |bend: &dyn Fn(&mut Value)| {
        let mut config = delivered();
        bend(&mut config);
        let diffed = SwitchQos.diff(&qos(), &answers(&SwitchQos, &qos(), &config, Some(&config)));
        assert!(
            diffed.refusal.is_none() || diffed.actions.is_empty(),
            "{diffed:?}"
        );
        diffed.refusal.unwrap_or_default()
    };
    for odd in ["soon", "-200", "", "200.5", "2e2"] {
        let said =
            refusal(&|config| config["PFC_WD"] = json!({ "GLOBAL": { "POLL_INTERVAL": odd } }));
        assert!(
            said.contains(&format!(
                "PFC_WD|GLOBAL POLL_INTERVAL makes no sense: `{odd}`"
            )),
            "{said}"
        );
    }
    assert!(
        refusal(&|config| config["PFC_WD"] = json!({ "GLOBAL": { "POLL_INTERVAL": "400" } }))
            .contains("looks every 400 ms")
    );
    assert_eq!(
        refusal(&|config| config["PFC_WD"] = json!({ "GLOBAL": { "POLL_INTERVAL": "200" } })),
        ""
    );
    for (from, to) in [("46", "x"), ("voice", "5"), ("46", "-1"), ("4 6", "5")] {
        let said = refusal(&|config| config["DSCP_TO_TC_MAP"]["AZURE"][from] = json!(to));
        assert!(
            said.contains(&format!("`DSCP_TO_TC_MAP|AZURE {from}: {to}`")),
            "{said}"
        );
    }
    // What is desired is written anew, and of a map of ours nothing is copied.
    assert_eq!(
        refusal(&|config| config["TC_TO_PRIORITY_GROUP_MAP"]["AZURE"]["6"] = json!(" 0")),
        ""
    );
    let ours = refusal(&|config| {
        config["DSCP_TO_TC_MAP"]["railwright"] = json!({ "26": "1", "46": "x" });
        config["PORT_QOS_MAP"]["Ethernet0"]["dscp_to_tc_map"] = json!("railwright");
    });
    assert_eq!(ours, "");
}

#[test]
fn what_cannot_be_is_refused_and_what_nobody_knows_is_unknown() {
    let mut config = delivered();
    let other = resource(
        &SwitchPort,
        json!({ "system": "sonic", "port": "Ethernet1", "mtu": 9216 }),
    );
    let refused = SwitchPort
        .diff(
            &other,
            &answers(&SwitchPort, &other, &config, Some(&config)),
        )
        .refusal;
    assert_eq!(
        refused.as_deref(),
        Some("the switch has no port Ethernet1; it has Ethernet0")
    );
    config["QUEUE"] = json!({ "Ethernet0|3-4": { "scheduler": "scheduler.0" } });
    let ecn = json!({ "system": "sonic", "port": "Ethernet0", "priority": 3, "min_bytes": 1, "max_bytes": 2, "probability_percent": 10 });
    let ecn = resource(&SwitchEcn, ecn);
    let refused = SwitchEcn
        .diff(&ecn, &answers(&SwitchEcn, &ecn, &config, Some(&config)))
        .refusal
        .unwrap();
    assert!(refused.contains("QUEUE|Ethernet0|3-4"), "{refused}");
    let reads = SwitchPort.reads(&other);
    // What is saved is compared with what runs, and not by itself.
    for saved in ["{", &delivered().to_string()] {
        let unknown = SwitchPort.diff(
            &other,
            &answered(&[(&reads[0], 69, ""), (&reads[1], 0, saved)]),
        );
        assert!(
            unknown.only_unknown() && unknown.actions.is_empty(),
            "{unknown:?}"
        );
    }
}

/// `config reload` empties CONFIG_DB, and loads what is saved after that.
#[test]
fn a_port_that_does_not_run_is_gone_only_where_nothing_of_it_is_saved() {
    let (config, resource) = (delivered(), qos());
    let first = SwitchQos.diff(
        &resource,
        &answers(&SwitchQos, &resource, &config, Some(&config)),
    );
    let done = patched(&config, edits(&first));
    let (empty, without) = (
        json!({}),
        json!({ "PORT": { "Ethernet4": { "mtu": "9100" } } }),
    );
    let mut rows = done.clone();
    rows["PORT"] = without["PORT"].clone();
    for (running, saved) in [
        (&empty, Some(&done)),
        (&empty, Some(&without)),
        (&without, Some(&done)),
        (&without, Some(&rows)),
        (&without, None),
    ] {
        let answers = answers(&SwitchQos, &resource, running, saved);
        let undo = SwitchQos.undo(&resource, &first.before, &answers);
        assert!(undo.only_unknown(), "{undo:?}");
        assert!(undo.actions.is_empty() && undo.residue.is_empty());
        let desired = SwitchQos.diff(&resource, &answers);
        assert!(desired.refusal.is_some() && desired.actions.is_empty());
    }
    let answers = answers(&SwitchQos, &resource, &without, Some(&without));
    let undo = SwitchQos.undo(&resource, &first.before, &answers);
    let gone = ["nothing is left of Ethernet0: the switch has no such port any more"];
    assert!(undo.is_met() && undo.residue == gone, "{undo:?}");
}

#[test]
fn a_buffer_that_the_switch_has_no_row_for_is_never_in_sync() {
    let mut config = delivered();
    config["BUFFER_PG"] = json!({});
    let buffer = resource(
        &SwitchBuffer,
        json!({ "system": "sonic", "port": "Ethernet0", "cable_m": 300, "priority": 3 }),
    );
    let diffed = SwitchBuffer.diff(
        &buffer,
        &answers(&SwitchBuffer, &buffer, &config, Some(&config)),
    );
    assert!(!diffed.is_met() && diffed.only_waits());
}

/// Any configuration in the form of CONFIG_DB.
fn configs() -> impl Strategy<Value = Value> {
    let table = proptest::sample::select(vec![
        "PORT",
        "PORT_QOS_MAP",
        "DSCP_TO_TC_MAP",
        "TC_TO_QUEUE_MAP",
        "QUEUE",
        "SCHEDULER",
        "WRED_PROFILE",
        "CABLE_LENGTH",
        "PFC_WD",
        "BUFFER_PG",
    ]);
    let key = proptest::sample::select(vec![
        "Ethernet0",
        "Ethernet0|3",
        "Ethernet0|6",
        "AZURE",
        "railwright",
        "railwright_0",
        "GLOBAL",
        "a/b~",
    ]);
    let field = proptest::sample::select(vec![
        "Ethernet0",
        "26",
        "3",
        "mtu",
        "dscp_to_tc_map",
        "pfc_enable",
        "scheduler",
        "type",
        "profile",
        "action",
        "admin_status",
    ]);
    let value = proptest::sample::select(vec![
        "AZURE",
        "railwright",
        "3",
        "3,4",
        "",
        "40m",
        "STRICT",
        "[X|AZURE]",
        "up",
        "\u{0}",
    ]);
    proptest::collection::vec((table, key, field, value), 0..40).prop_map(|all| {
        let mut config = json!({ "PORT": { "Ethernet0": { "speed": "100000" } } });
        for (table, key, field, value) in all {
            config[table][key][field] = json!(value);
        }
        config
    })
}

proptest! {
    /// Whatever is there: the patch fits, and what it makes is in sync.
    #[test]
    fn what_is_done_is_in_sync(config in configs()) {
        let resource = qos();
        let first = SwitchQos.diff(&resource, &answers(&SwitchQos, &resource, &config, Some(&config)));
        if first.refusal.is_none() && !first.is_met() {
            let done = patched(&config, edits(&first));
            let after = SwitchQos.diff(&resource, &answers(&SwitchQos, &resource, &done, Some(&done)));
            prop_assert!(after.is_met(), "{after:?}");
        }
    }
}

#[test]
fn a_configuration_is_read_once_for_all_resources() {
    let (config, resource) = (delivered(), qos());
    let answers = answers(&SwitchQos, &resource, &config, Some(&config));
    let read = &SwitchQos.reads(&resource)[0];
    let first = answers
        .decoded(read, |_, out| Ok::<_, Reason>(out.len()))
        .unwrap();
    let again: Arc<usize> = answers
        .decoded(read, |_, _| panic!("decoded again"))
        .unwrap();
    assert!(Arc::ptr_eq(&first, &again));
}

#[test]
fn a_system_that_cannot_be_reached_is_told_with_those_that_can() {
    let errors = SwitchPort.check(&json!({ "system": "nos", "port": "Ethernet0", "up": true }));
    assert_eq!(
        (errors[0].pointer.as_str(), errors[0].message.as_str()),
        ("/system", "`system` must be one of sonic, cumulus, eos")
    );
}
