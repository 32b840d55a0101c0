//! The operations of SONiC's patch as lines.

use super::edit::{SonicEdit, build_json_patch};
use crate::json_fields::read_text_field;
use crate::switch::edit_line::{PORT_SIGN, SwitchEditLine};
use railwright_base::json_pointer::unescape_step;
use railwright_base::nodeset;
use railwright_base::text::format_count;
use serde_json::Value;

/// An operation is a line.
pub fn list_sonic_patch_lines(edits: &[SonicEdit]) -> Vec<SwitchEditLine> {
    let mut lines = Vec::new();
    for operation in build_json_patch(edits).as_array().into_iter().flatten() {
        let path = read_text_field(operation, "path").unwrap_or_default();
        let mut words: Vec<String> = path.split('/').skip(1).map(unescape_step).collect();
        let value = match operation.get("value") {
            Some(value) => format_patch_value(value),
            None => String::new(),
        };
        let port = take_port_out(&mut words);
        let op = read_text_field(operation, "op").unwrap_or_default();
        lines.push(SwitchEditLine {
            text: format!("{op:<7} /{} {value}", words.join("/")),
            port,
            number: None,
        });
    }
    lines
}

/// Replaces the port in a path by its sign, and returns it. Rows of ports differ in the port alone:
/// the table, what follows the port, and the value make them one.
fn take_port_out(words: &mut [String]) -> Option<String> {
    let key = words.get(1).map_or("", String::as_str);
    let port = key.split('|').next().unwrap_or_default().to_owned();
    if port.contains(|c: char| c.is_ascii_digit()) && nodeset::is_plain(&port) {
        words[1] = words[1].replacen(&port, PORT_SIGN, 1);
        return Some(port);
    }
    if words.len() == 3 && words[0] == "CABLE_LENGTH" {
        return Some(std::mem::replace(&mut words[2], PORT_SIGN.to_owned()));
    }
    None
}

/// A value, or how many there are.
fn format_patch_value(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{text}\""),
        Value::Object(map) if map.values().any(Value::is_object) => {
            let fields: usize = map
                .values()
                .filter_map(Value::as_object)
                .map(serde_json::Map::len)
                .sum();
            let rows: Vec<&String> = map.keys().collect();
            format!(
                "{}, {}",
                nodeset::fold_node_set(&rows),
                format_count(fields, "field")
            )
        }
        Value::Object(map) if map.len() > 6 => format_count(map.len(), "field"),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(", "),
        other => other.to_string(),
    }
}
