//! What the managers of a host have written about a bond or a VLAN, in the words of its settings:
//! systemd-networkd, netplan, NetworkManager, ifupdown.

use super::layers::{
    BOND, Settings, build_sorted_name_list, build_vlan_settings, parse_setting_value, parse_vlan_id,
};
use super::netplan;
use super::networkd::{self, is_network_file, list_key_values};
use crate::json_fields::read_text_field;
use crate::sections::{Section, find_section};
use railwright_base::Reason;
use serde_json::{Value, json};

/// The members of a bond, or the parent of a VLAN, each with what was read about its manager.
pub(super) type LowerNetdevs<'a> = [(&'a str, Vec<Section<'a>>)];

/// systemd.netdev(5) says what it is, and the files of those below which of them belong to it
/// (systemd.network(5)).
pub(super) fn read_networkd_settings(
    netdev: &str,
    kind: &str,
    layers: &[Section<'_>],
    below: &LowerNetdevs<'_>,
) -> Settings {
    let mut all = Settings::new();
    let Some(file) = find_section(layers, "netdev-file") else {
        return all;
    };
    if find_last_value(file, "[NetDev]", "Kind").as_deref() != Some(kind) {
        return all;
    }
    if kind == "vlan" {
        let id = find_last_value(file, "[VLAN]", "Id").and_then(|id| parse_vlan_id(&id));
        let parent = list_attached_netdevs(netdev, "VLAN", below)
            .into_iter()
            .next();
        return build_vlan_settings(id, parent);
    }
    for [word, _, key, ..] in BOND {
        let Some(text) = find_last_value(file, "[Bond]", key).filter(|_| !key.is_empty()) else {
            continue;
        };
        let value = match word {
            "miimon" => parse_systemd_milliseconds(&text),
            _ => parse_setting_value(word, &text),
        };
        all.insert(word.to_owned(), value);
    }
    let members = list_attached_netdevs(netdev, "Bond", below);
    for (name, parts) in below {
        if members.iter().any(|member| member == name)
            && list_network_words(parts, "PrimarySlave")
                .iter()
                .any(|value| value == "true" || value == "yes")
        {
            all.insert("primary".to_owned(), json!(name));
            break;
        }
    }
    let members = build_sorted_name_list(members.into_iter());
    all.insert("members".to_owned(), members);
    all
}

fn find_last_value(file: &Section<'_>, heading: &str, key: &str) -> Option<String> {
    let values = list_key_values([file], heading, key);
    values.last().map(|text| (*text).to_owned())
}

/// The netdevs below whose files put them into this one by the key.
fn list_attached_netdevs(netdev: &str, key: &str, below: &LowerNetdevs<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for (name, parts) in below {
        let values = list_network_words(parts, key);
        if values.iter().any(|value| value == netdev) {
            names.push((*name).to_owned());
        }
    }
    names
}

fn list_network_words(parts: &[Section<'_>], key: &str) -> Vec<String> {
    let files = parts.iter().filter(|part| is_network_file(part));
    list_key_values(files, "[Network]", key)
        .iter()
        .flat_map(|value| value.split_whitespace())
        .map(str::to_owned)
        .collect()
}

/// A time span of systemd as milliseconds; a bare number is seconds (systemd.time(7)).
fn parse_systemd_milliseconds(text: &str) -> Value {
    let (digits, factor) = match text.strip_suffix("ms") {
        Some(digits) => (digits, 1.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1000.0),
    };
    match digits.trim().parse::<f64>() {
        Ok(number) if (0.0..1e9).contains(&number) && (number * factor).fract() == 0.0 => {
            json!((number * factor) as u64)
        }
        _ => json!(text),
    }
}

/// netplan names those below by its own names of them.
pub(super) fn read_netplan_settings(
    netdev: &str,
    kind: &str,
    own: &[Section<'_>],
    below: &LowerNetdevs<'_>,
) -> Result<Settings, Reason> {
    let mut definitions = netplan::definitions_in(own);
    for (_, parts) in below {
        definitions = definitions.or_else(|| netplan::definitions_in(parts));
    }
    let definitions = definitions.ok_or("netplan owns it, but `netplan get` gave no answer")??;
    let mut all = Settings::new();
    let Some(definition) = definitions
        .get(if kind == "vlan" { "vlans" } else { "bonds" })
        .and_then(|all| all.get(netdev))
    else {
        return Ok(all);
    };
    if kind == "vlan" {
        let id = definition.get("id").filter(|id| id.is_u64()).cloned();
        let parent = read_text_field(definition, "link");
        let parent = parent.map(|id| resolve_netplan_name(id, below));
        return Ok(build_vlan_settings(id, parent));
    }
    for [word, _, _, key, ..] in BOND {
        let found = definition
            .get("parameters")
            .and_then(|parameters| parameters.get(key));
        let text = match found {
            Some(Value::String(text)) => text.clone(),
            Some(number) if number.is_u64() => number.to_string(),
            _ => continue,
        };
        let value = match word {
            "primary" => json!(resolve_netplan_name(&text, below)),
            // a bare number is milliseconds (netplan(5))
            "miimon" if text.ends_with('s') => parse_systemd_milliseconds(&text),
            _ => parse_setting_value(word, &text),
        };
        all.insert(word.to_owned(), value);
    }
    let members = definition
        .get("interfaces")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(|id| resolve_netplan_name(id, below));
    all.insert("members".to_owned(), build_sorted_name_list(members));
    Ok(all)
}

/// The name of the netdev that netplan has under this name of its own.
fn resolve_netplan_name(id: &str, below: &LowerNetdevs<'_>) -> String {
    for (name, parts) in below {
        if networkd::rendered_by_netplan(parts).as_deref() == Some(id) {
            return (*name).to_owned();
        }
    }
    id.to_owned()
}

/// The connection that is active on the netdev, and those of its members.
pub(super) fn read_connection_settings(
    netdev: &str,
    kind: &str,
    own: &[Section<'_>],
    below: &LowerNetdevs<'_>,
) -> Settings {
    let mut all = Settings::new();
    if find_connection_value(own, "connection.type").as_deref() != Some(kind) {
        return all;
    }
    if kind == "vlan" {
        let id = find_connection_value(own, "vlan.id").and_then(|id| parse_vlan_id(&id));
        let parent = find_connection_value(own, "vlan.parent")
            .map(|parent| resolve_connection_parent(parent, below));
        return build_vlan_settings(id, parent);
    }
    let options = find_connection_value(own, "bond.options").unwrap_or_default();
    for [word, _, _, _, key, _] in BOND {
        let mut options = options
            .split(',')
            .filter_map(|option| option.split_once('='));
        if let Some((_, text)) = options.find(|(name, _)| *name == key) {
            all.insert(word.to_owned(), parse_setting_value(word, text));
        }
    }
    let uuid = find_connection_value(own, "connection.uuid");
    let mut members = Vec::new();
    for (name, parts) in below {
        let Some(master) = find_connection_value(parts, "connection.master") else {
            continue;
        };
        if master == netdev || Some(&master) == uuid.as_ref() {
            members.push((*name).to_owned());
        }
    }
    let members = build_sorted_name_list(members.into_iter());
    all.insert("members".to_owned(), members);
    all
}

/// The name of a VLAN's parent, which its connection may give by the UUID of the parent's.
fn resolve_connection_parent(parent: String, below: &LowerNetdevs<'_>) -> String {
    for (name, parts) in below {
        if find_connection_value(parts, "connection.uuid").as_ref() == Some(&parent) {
            return (*name).to_owned();
        }
    }
    parent
}

fn find_connection_value(parts: &[Section<'_>], key: &str) -> Option<String> {
    let section =
        find_section(parts, "nm-connection").filter(|section| section.code() == Some(0))?;
    section
        .lines
        .iter()
        .find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.to_owned()))
}

/// The options of ifenslave and of the vlan package, which take `_` for `-`; a VLAN's number stands
/// in its name unless an option gives it.
pub(super) fn read_ifupdown_settings(netdev: &str, kind: &str, own: &[Section<'_>]) -> Settings {
    let mut all = Settings::new();
    let Some(query) = find_section(own, "ifquery").filter(|section| section.code() == Some(0))
    else {
        return all;
    };
    if kind == "vlan" {
        let (parent, number) = netdev.rsplit_once('.').unzip();
        let number = find_ifupdown_option(query, "vlan-id")
            .or(number)
            .or_else(|| netdev.strip_prefix("vlan"));
        let id = number.and_then(|id| parse_vlan_id(id.trim_start_matches('0')));
        let parent = find_ifupdown_option(query, "vlan-raw-device").or(parent);
        return build_vlan_settings(id, parent.map(str::to_owned));
    }
    let members = find_ifupdown_option(query, "bond-slaves");
    let Some(members) = members.or_else(|| find_ifupdown_option(query, "bond-ports")) else {
        return all;
    };
    for [word, _, _, _, _, key] in BOND {
        if let Some(text) = find_ifupdown_option(query, key) {
            all.insert(word.to_owned(), parse_setting_value(word, text));
        }
    }
    let members = build_sorted_name_list(members.split_whitespace().map(str::to_owned));
    all.insert("members".to_owned(), members);
    all
}

/// The last one counts.
fn find_ifupdown_option<'a>(query: &Section<'a>, key: &str) -> Option<&'a str> {
    let mut found = None;
    for (name, value) in query.lines.iter().filter_map(|line| line.split_once(": ")) {
        if name.replace('_', "-") == key {
            found = Some(value.trim());
        }
    }
    found
}
