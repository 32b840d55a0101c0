//! `Read::LldpNeighbours` and `Read::SwitchNeighbours`: whom a host hears on its netdevs, or a
//! switch on its ports, as lldpd reports. What neighbours say of themselves is hostile: it is kept
//! short and without control characters.

pub mod script;

use super::json_fields::read_text_field;
use super::sections;
use super::{Read, ReadResults};
use railwright_base::Reason;
use railwright_base::text::one_line;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most neighbours that are looked at; lldpd itself keeps 32 a netdev.
pub(crate) const NEIGHBOURS_MAX: usize = 4096;
/// The most characters of what a neighbour says of itself (IEEE 802.1AB-2016, 8.5: a TLV has 255
/// bytes).
pub(crate) const LENGTH_MAX: usize = 255;

/// What a host reports of its netdevs, and of who is on them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lldp {
    /// Whether a netdev has a link; nothing where it is down and nobody can tell.
    pub links: BTreeMap<String, Option<bool>>,
    /// Neighbours by netdev; on one netdev there may be several.
    pub neighbours: BTreeMap<String, Vec<LldpNeighbour>>,
}

/// Somebody who is heard on a netdev.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LldpNeighbour {
    /// Its name for itself; empty where it says none.
    pub system: String,
    /// Its chassis, by which a nameless one is called: mostly a MAC address.
    pub chassis: String,
    /// Its name for its port.
    pub port: String,
    /// That name is only a MAC address.
    pub port_is_mac: bool,
    /// Its description of its port: with some systems the port's other name.
    pub description: String,
}

/// Why nobody is heard on any netdev of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// lldpd is not on the host.
    Absent,
    /// lldpd did not answer: its words.
    NoAnswer(Reason),
    /// The read itself did not come to its end, in words that fit after "unknown:".
    Unread(Reason),
}

/// Decodes the answer of a host.
pub fn decode_host_neighbours(answers: &ReadResults) -> Result<Lldp, Silence> {
    let (_, out) = answers
        .output(&Read::LldpNeighbours)
        .map_err(Silence::Unread)?;
    parse_lldpctl_answer(out)
}

/// What the script printed that asks lldpd.
pub fn parse_lldpctl_answer(out: &str) -> Result<Lldp, Silence> {
    let (mut lldp, mut said) = (Lldp::default(), None);
    for section in sections::parse_sections(out) {
        match section.word {
            "netdev" => {
                let carrier = section
                    .value("carrier")
                    .and_then(|value| match value.trim() {
                        "1" => Some(true),
                        "0" => Some(false),
                        _ => None,
                    });
                lldp.links.insert(section.rest.to_owned(), carrier);
            }
            "lldpctl" => said = Some((section.code(), section.text())),
            _ => {}
        }
    }
    match said {
        None => Err(Silence::Unread("the answer has no end".into())),
        Some((Some(127), _)) => Err(Silence::Absent),
        Some((code, text)) => {
            // A warning of lldpctl may stand before its answer.
            let json = text
                .find('{')
                .filter(|_| code == Some(0))
                .and_then(|at| serde_json::from_str::<Value>(&text[at..]).ok());
            let json = json.ok_or_else(|| Silence::NoAnswer(one_line(&text, 160).into()))?;
            lldp.neighbours = parse_lldpctl_neighbours(&json);
            Ok(lldp)
        }
    }
}

/// The neighbours of `lldpctl -f json0`, whose members are always lists. Plain `json` makes an
/// object of a list of one, and a key of the neighbour's name, so that neither can be read for
/// certain.
fn parse_lldpctl_neighbours(json: &Value) -> BTreeMap<String, Vec<LldpNeighbour>> {
    let mut all: BTreeMap<String, Vec<LldpNeighbour>> = BTreeMap::new();
    let interfaces =
        list_array_members(json, "lldp").flat_map(|lldp| list_array_members(lldp, "interface"));
    for interface in interfaces.take(NEIGHBOURS_MAX) {
        let Some(netdev) = read_text_field(interface, "name") else {
            continue;
        };
        let chassis = list_array_members(interface, "chassis").next();
        let chassis = chassis.unwrap_or(&Value::Null);
        let port = list_array_members(interface, "port").next();
        let port = port.unwrap_or(&Value::Null);
        let port_id = list_array_members(port, "id").next();
        all.entry(one_line(netdev, LENGTH_MAX))
            .or_default()
            .push(LldpNeighbour {
                system: extract_first_value(chassis, "name"),
                chassis: extract_first_value(chassis, "id"),
                port: extract_first_value(port, "id"),
                port_is_mac: port_id.is_some_and(|id| read_text_field(id, "type") == Some("mac")),
                description: extract_first_value(port, "descr"),
            });
    }
    all.values_mut().for_each(|of_netdev| {
        of_netdev.sort();
        of_netdev.dedup();
    });
    all
}

fn list_array_members<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn extract_first_value(member: &Value, key: &str) -> String {
    let text = list_array_members(member, key)
        .next()
        .and_then(|first| first.get("value"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    one_line(text, LENGTH_MAX)
}

#[cfg(test)]
mod tests;
