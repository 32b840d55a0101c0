//! The configuration by the REST API of NVUE, whose trees are those of `nv config show`
//! (CumulusNetworks/docs, NVUE-API.md: the CLI and the API are of one object model). Only
//! `interface` and `qos` are asked for: what holds users and passwords never leaves the switch.

use serde_json::{Map, Value, json};

/// What is asked of a revision, below `/nvue_v1`: `applied` runs, `startup` is what a boot begins
/// with; only what somebody set is in it.
pub fn list_revision_paths(revision: &str) -> [String; 2] {
    ["interface", "qos"].map(|tree| format!("/{tree}?rev={revision}&filled=false"))
}

/// What is asked for the ports that the switch has: without a revision it is how things are.
pub const PORTS: &str = "/interface";

/// The text of a revision, as `nvue.py` prints it, from both trees and, of what runs, the ports.
pub fn render_revision_text(interfaces: &Value, qos: &Value, ports: Option<&Value>) -> String {
    let set = select_compared_settings(interfaces, qos);
    match ports {
        Some(ports) => json!({ "ports": front_panel(ports), "set": set }),
        None => json!({ "set": set }),
    }
    .to_string()
}

/// What of a revision is compared.
pub fn select_compared_settings(interfaces: &Value, qos: &Value) -> Value {
    let mut set = Map::new();
    let mut compared = Map::new();
    for (name, tree) in interfaces.as_object().into_iter().flatten() {
        if let Some(settings) = select_interface_settings(tree) {
            compared.insert(name.clone(), settings);
        }
    }
    if !compared.is_empty() {
        set.insert("interface".to_owned(), compared.into());
    }
    if qos.as_object().is_some_and(|qos| !qos.is_empty()) {
        set.insert("qos".to_owned(), without_null(qos));
    }
    set.into()
}

/// MTU and state of its link, and all of its QoS; nothing where none of it is set.
fn select_interface_settings(tree: &Value) -> Option<Value> {
    let mut kept = Map::new();
    let mut link = Map::new();
    for key in ["mtu", "state"] {
        if let Some(value) = tree.get("link").and_then(|link| link.get(key)) {
            link.insert(key.to_owned(), without_null(value));
        }
    }
    if !link.is_empty() {
        kept.insert("link".to_owned(), link.into());
    }
    if let Some(qos) = tree.get("qos") {
        kept.insert("qos".to_owned(), without_null(qos));
    }
    (!kept.is_empty()).then(|| kept.into())
}

/// What is there and has no value is an empty tree, as the CLI's own reader has it.
fn without_null(value: &Value) -> Value {
    match value {
        Value::Object(tree) => tree
            .iter()
            .map(|(key, value)| (key.clone(), without_null(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Null => json!({}),
        other => other.clone(),
    }
}

/// `swp1`, `swp8s0`: not `eth0`, bonds and bridges.
fn front_panel(interfaces: &Value) -> Vec<&str> {
    let mut names = Vec::new();
    for (name, _) in interfaces.as_object().into_iter().flatten() {
        let number = name.strip_prefix("swp").unwrap_or_default();
        if !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == 's') {
            names.push(name.as_str());
        }
    }
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::cumulus::Nvue;

    #[test]
    fn is_what_the_command_line_gives() {
        let interfaces = json!({
            "eth0": { "ip": { "vrf": "mgmt" }, "type": "eth" },
            "swp1": { "link": { "mtu": 9000, "speed": "400G", "state": { "up": {} } }, "type": "swp", "qos": { "pfc": { "profile": "p" } } },
            "swp2": { "link": { "state": { "up": null } } },
        });
        let qos = json!({ "pfc": { "p": { "switch-priority": { "3": null } } } });
        let ports = json!({ "eth0": {}, "lo": {}, "swp1": {}, "swp2": {}, "swp8s0": {}, "swpx": {}, "swp": {} });
        let said = render_revision_text(&interfaces, &qos, Some(&ports));
        let nvue = Nvue::parse(&said).unwrap();
        assert_eq!(nvue.port_names(), ["swp1", "swp2", "swp8s0"]);
        assert_eq!(
            nvue.at(&["interface"]),
            Some(&json!({
                "swp1": { "link": { "mtu": 9000, "state": { "up": {} } }, "qos": { "pfc": { "profile": "p" } } },
                "swp2": { "link": { "state": { "up": {} } } },
            }))
        );
        assert_eq!(
            nvue.at(&["qos", "pfc", "p", "switch-priority", "3"]),
            Some(&json!({}))
        );
        // Whatever comes, nothing is made up of it.
        for odd in [json!(null), json!([1]), json!("x"), json!({ "swp1": [] })] {
            assert!(
                !render_revision_text(&odd, &odd, None).contains("mtu"),
                "{odd}"
            );
        }
    }
}
