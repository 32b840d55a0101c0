//! What the fake refuses, each seen once. Its data (`tests/fakes/sonic/refusals`) is what
//! the real updater refuses, with the source; a refusal that nobody provokes here would be a word
//! that nobody has tried.

use crate::rig::{Outcome, SN5600, Switch, TOMAHAWK};
use serde_json::{Value, json};

fn data(name: &str) -> Value {
    let path = format!(
        "{}/tests/fakes/sonic/refusals/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn refuses(switch: &Switch, operations: &Value, why: &str) {
    let before = switch.config();
    let outcome = switch.patch(operations);
    assert_eq!(outcome.code, Some(2), "{operations}: {outcome:?}");
    assert!(
        outcome.err.starts_with("Failed to apply patch due to: "),
        "{operations}: {outcome:?}"
    );
    assert!(outcome.err.contains(why), "{operations}: {}", outcome.err);
    assert_eq!(
        switch.config(),
        before,
        "{operations} was refused and did something"
    );
}

fn takes(outcome: &Outcome) {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(
        outcome.out.ends_with("Patch applied successfully.\n"),
        "{outcome:?}"
    );
}

fn illegal(table: &str) -> String {
    let function = data("allowed")["tables"][table]["function"]
        .as_str()
        .unwrap()
        .to_owned();
    format!(
        "Failed to apply patch on the following scopes:\n\
         - localhost: Modification of {table} table is illegal- validating function {function} \
         returned False"
    )
}

#[test]
fn operations_that_the_allow_list_does_not_have() {
    let Some(switch) = Switch::start("allowed", TOMAHAWK) else {
        return;
    };
    for path in data("allowed")["never_removed"].as_array().unwrap() {
        let path = path.as_str().unwrap();
        refuses(
            &switch,
            &json!([{"op": "remove", "path": path}]),
            &format!("Operation: remove is illegal on field: {path}"),
        );
    }
    let pool =
        json!([{"op": "replace", "path": "/BUFFER_POOL/ingress_lossless_pool/size", "value": "1"}]);
    refuses(&switch, &pool, &illegal("BUFFER_POOL"));
    let size = json!([{"op": "replace", "path": "/BUFFER_PROFILE/egress_lossy_profile/size", "value": "1"}]);
    refuses(&switch, &size, &illegal("BUFFER_PROFILE"));
    let slow = json!([{"op": "replace", "path": "/PORT/Ethernet0/speed", "value": "10000"}]);
    refuses(&switch, &slow, &illegal("PORT"));
    // what the same lists have
    takes(&switch.patch(&json!([{"op": "replace", "path": "/BUFFER_PROFILE/egress_lossy_profile/dynamic_th", "value": "2"}])));
    takes(&switch.patch(&json!([{"op": "add", "path": "/PFC_WD/Ethernet0", "value": {"action": "drop", "detection_time": "200", "restoration_time": "400"}}])));
    takes(
        &switch.patch(&json!([{"op": "replace", "path": "/PORT/Ethernet0/fec", "value": "none"}])),
    );
}

#[test]
fn a_sku_or_a_version_that_the_allow_list_does_not_have() {
    let Some(switch) = Switch::start("sku", TOMAHAWK) else {
        return;
    };
    let watch = json!([{"op": "replace", "path": "/PFC_WD/GLOBAL/POLL_INTERVAL", "value": "100"}]);
    switch.must("sed -i 's/20240531/20180531/' /etc/sonic/sonic_version.yml");
    refuses(&switch, &watch, &illegal("PFC_WD"));
    // a build of the community has no date to compare
    switch.must("sed -i 's/20180531.20/202305.1234-abc/' /etc/sonic/sonic_version.yml");
    takes(&switch.patch(&watch));
    switch.must("sonic-db-cli CONFIG_DB hset 'DEVICE_METADATA|localhost' hwsku Unlisted-32");
    let back = json!([{"op": "replace", "path": "/PFC_WD/GLOBAL/POLL_INTERVAL", "value": "200"}]);
    refuses(&switch, &back, &illegal("PFC_WD"));
}

#[test]
fn patches_that_do_not_fit_what_is_there() {
    let Some(switch) = Switch::start("fit", SN5600) else {
        return;
    };
    let reasons = [
        (
            json!([{"op": "remove", "path": "/DSCP_TO_TC_MAP/NOPE"}]),
            "can't remove a non-existent object 'NOPE'",
        ),
        (
            json!([{"op": "replace", "path": "/WRED_PROFILE/NOPE/ecn", "value": "ecn_all"}]),
            "member 'NOPE' not found",
        ),
        (
            json!([{"op": "replace", "path": "/PORT/Ethernet0/description", "value": "x"}]),
            "can't replace a non-existent object 'description'",
        ),
        (
            json!([{"op": "test", "path": "/PORT/Ethernet0/mtu", "value": "9000"}, {"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}]),
            "is not equal to tested value",
        ),
        (
            json!([{"op": "remove", "path": "/CABLE_LENGTH/AZURE"}]),
            "it will result in empty tables",
        ),
        (
            json!([{"op": "add", "path": "/NO_SUCH_TABLE/x", "value": {"a": "b"}}]),
            "changes to tables without YANG models",
        ),
    ];
    for (operations, why) in reasons {
        refuses(&switch, &operations, why);
    }
    let tested = json!([{"op": "test", "path": "/PORT/Ethernet0/mtu", "value": "9100"}, {"op": "replace", "path": "/PORT/Ethernet0/mtu", "value": "9216"}]);
    takes(&switch.patch(&tested));
    assert_eq!(switch.row(4, "PORT|Ethernet0")["mtu"], "9216");
}

/// A value that a rule of the models refuses.
fn bad(rule: &Value) -> String {
    match rule["range"].as_array() {
        Some(range) => (range[1].as_i64().map_or(i128::from(u64::MAX), i128::from) + 1).to_string(),
        None => "no such thing!".to_owned(),
    }
}

/// A row that is there, with one field that its rule refuses.
fn mistakes(config: &Value) -> Vec<(String, Value)> {
    let models = data("models");
    let mut mistakes = Vec::new();
    for (table, model) in models["tables"].as_object().unwrap() {
        let row = config[table]
            .as_object()
            .and_then(|rows| rows.keys().find(|key| *key != "global" && *key != "GLOBAL"));
        let rules = model["fields"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(field, rule)| (field.clone(), bad(rule), rule));
        let field = model
            .get("any_field")
            .map(|rule| (bad(rule), "1".to_owned(), rule));
        let value = model
            .get("any_value")
            .map(|rule| ("3".to_owned(), bad(rule), rule));
        for (field, value, rule) in rules.chain(field).chain(value) {
            // anything goes
            if rule["pattern"] == ".*" {
                continue;
            }
            let (key, row) = row.map_or_else(
                || ("Ethernet0".to_owned(), json!({})),
                |key| (key.clone(), config[table][key].clone()),
            );
            let mut row = row;
            row[&field] = json!(
                if rule["pattern"] == ".{0,255}" || rule["pattern"] == ".{1,128}" {
                    "x".repeat(256)
                } else {
                    value
                }
            );
            mistakes.push((
                format!("{table}|{key} {field}"),
                json!([{"op": "add", "path": format!("/{table}/{key}"), "value": row}]),
            ));
        }
    }
    mistakes
}

#[test]
fn values_that_the_models_do_not_take() {
    let Some(switch) = Switch::start("models", SN5600) else {
        return;
    };
    let reasons = [
        (
            "/PORT/Ethernet0/mtu",
            "9300",
            "Value \"9300\" does not satisfy the constraint \"68..9216\"",
        ),
        (
            "/PORT_QOS_MAP/Ethernet0/pfc_enable",
            "3, 4",
            "does not satisfy the constraint \"([0-7](,[0-7])*)?\"",
        ),
        (
            "/PORT_QOS_MAP/Ethernet0/dscp_to_tc_map",
            "NOPE",
            "Leafref \"DSCP_TO_TC_MAP\" of value \"NOPE\" points to a non-existing leaf",
        ),
        (
            "/WRED_PROFILE/AZURE_LOSSLESS/green_max_threshold",
            "1",
            "green_max_threshold must be greater than or equal",
        ),
        (
            "/CABLE_LENGTH/AZURE/Ethernet0",
            "40",
            "does not satisfy the constraint \"[0-9]+m\"",
        ),
        (
            "/PORT_QOS_MAP/Ethernet1",
            "",
            "of value \"Ethernet1\" points to a non-existing leaf",
        ),
    ];
    for (path, value, why) in reasons {
        let value = if value.is_empty() {
            json!({"pfc_enable": "3"})
        } else {
            json!(value)
        };
        refuses(
            &switch,
            &json!([{"op": "add", "path": path, "value": value}]),
            why,
        );
    }
    let early = json!([{"op": "add", "path": "/PFC_WD/Ethernet0", "value": {"action": "drop", "detection_time": "100", "restoration_time": "400"}}]);
    refuses(
        &switch,
        &early,
        "detection_time must be greater than or equal to POLL_INTERVAL",
    );
    // every rule of the data, in one process: a command each would take a minute
    let mistakes = mistakes(&switch.config());
    assert!(mistakes.len() > 80, "{}", mistakes.len());
    switch.write("/tmp/mistakes.json", &json!(mistakes).to_string());
    let script = "import json, updater\n\
                  from database import Config\n\
                  config = Config().read()\n\
                  for name, ops in json.load(open('/tmp/mistakes.json')):\n\
                  \x20   try: updater.validated(updater.with_missing_tables(ops, config), config)\n\
                  \x20   except updater.Refused as error: assert 'Data Loading Failed' in \
                  str(error), error\n\
                  \x20   else: print(name)\n";
    switch.write("/tmp/try.py", script);
    assert_eq!(
        switch.must("PYTHONPATH=/opt/sonic-fake/lib python3 /tmp/try.py"),
        "",
        "these were taken"
    );
}
