//! A step of a switch on the plan's screen: ports with the same to say are one entry, and below
//! them stands what the switch itself is told, in its own words.

use super::entry::{render_member, wrap_entry_line};
use indexmap::IndexMap;
use railwright_base::json_pointer::unescape_step;
use railwright_base::nodeset;
use railwright_base::text::{clean_line, format_count};
use railwright_plan::{Member, PlanNode};
use railwright_resource::Action;
use railwright_resource::json_fields::read_text_field;
use railwright_resource::switch::edit::SwitchEdit;
use railwright_resource::switch::sonic::edit::build_json_patch;
use railwright_resource::switch::{SwitchSystem, cumulus, eos};
use serde_json::Value;

/// How many lines of a patch a plan shows.
const LINES: usize = 12;

/// The entries of a step's resources, each with all ports that have the same to say.
pub fn render_switch_members(nodes: &[&PlanNode], called: &dyn Fn(&str) -> String) -> String {
    let mut alike: IndexMap<String, Vec<usize>> = IndexMap::new();
    for n in 0..nodes[0].members().len() {
        let shape: String = nodes
            .iter()
            .map(|node| build_port_shape(&node.members()[n]))
            .collect();
        alike.entry(shape).or_default().push(n);
    }
    let mut out = String::new();
    for places in alike.values() {
        out.push_str(&render_alike_members(nodes, places, called));
    }
    out
}

/// All that is said of a resource but its name.
fn build_port_shape(member: &Member) -> String {
    let differences = serde_json::to_string(&member.differences).unwrap_or_default();
    format!(
        "{}|{:?}|{}|{differences}|{:?}",
        member.wish.kind, member.reason, member.removal, member.since
    )
}

/// The resources at these places as one entry.
fn render_alike_members(
    nodes: &[&PlanNode],
    places: &[usize],
    called: &dyn Fn(&str) -> String,
) -> String {
    let members = nodes[0].members();
    let names: Vec<&str> = places
        .iter()
        .map(|n| members[*n].wish.address.name())
        .collect();
    let folded = fold_port_names(&names);
    render_member(nodes, places[0], &|text: &str| match names[..] {
        [_] => called(text),
        _ => called(&text.replace(names[0], &folded)),
    })
}

/// A node-set of ports that is longer than this says less than its ends do.
const PORTS_WIDTH: usize = 48;

/// Ports as a node-set, or the first and the last of ports that count on in no way.
fn fold_port_names(names: &[&str]) -> String {
    let folded = nodeset::fold_node_set(names);
    let mut sorted = names.to_vec();
    sorted.sort_by(|a, b| nodeset::natural_order(a, b));
    match sorted.as_slice() {
        [first, .., last] if folded.chars().count() > PORTS_WIDTH => format!("{first}...{last}"),
        _ => folded,
    }
}

/// What interrupts each port is said once, with all ports.
pub fn format_port_interrupts(interrupts: &[String]) -> String {
    let mut alike: IndexMap<(String, String), Vec<&str>> = IndexMap::new();
    for text in interrupts {
        let (port, rest) = text.split_once(' ').unwrap_or((text, ""));
        alike
            .entry((nodeset::mask_numbers(port), rest.to_owned()))
            .or_default()
            .push(port);
    }
    let mut texts = Vec::new();
    for ((_, rest), ports) in &alike {
        // What is said of the same ports twice is said once, in the longer words.
        let is_said_longer = alike.iter().any(|((_, longer), others)| {
            longer.len() > rest.len() && ports.iter().all(|port| others.contains(port))
        });
        if is_said_longer {
            continue;
        }
        texts.push(match ports.len() {
            1 => format!("{} {rest}", ports[0]),
            many => format!(
                "{} ({}) {}",
                fold_port_names(ports),
                format_count(many, "port"),
                rest.replacen("goes", "go", 1).replacen("comes", "come", 1)
            ),
        });
    }
    texts.join("; ")
}

/// What the switch is told, line by line, equal ports as one.
pub fn render_switch_edits(actions: &[Action]) -> String {
    let mut label = "patch    ";
    let mut lines = Vec::new();
    for action in actions {
        let Action::EditSwitch { system, edits } = action else {
            continue;
        };
        match system {
            SwitchSystem::Sonic => lines.extend(list_sonic_patch_lines(edits)),
            SwitchSystem::Cumulus => {
                label = "nv       ";
                lines.extend(list_nvue_lines(edits));
            }
            SwitchSystem::Eos => {
                label = "eos      ";
                lines.extend(list_eos_command_lines(edits));
            }
        }
    }
    let mut out = String::new();
    for line in lines.iter().take(LINES) {
        out.push_str(&wrap_entry_line(label, line));
        label = "         ";
    }
    if lines.len() > LINES {
        out.push_str(&wrap_entry_line(
            "         ",
            &format!(
                "... {} more: `show PLAN --json` has the patch",
                lines.len() - LINES
            ),
        ));
    }
    out
}

/// The operations of SONiC's patch.
fn list_sonic_patch_lines(edits: &[SwitchEdit]) -> Vec<String> {
    let mut alike: IndexMap<(String, String, String), Vec<String>> = IndexMap::new();
    for operation in build_json_patch(&SwitchEdit::sonic(edits))
        .as_array()
        .into_iter()
        .flatten()
    {
        let mut words = Vec::new();
        for word in read_text_field(operation, "path")
            .unwrap_or_default()
            .split('/')
            .skip(1)
        {
            words.push(unescape_step(word));
        }
        let value = match operation.get("value") {
            Some(value) => format_patch_value(value),
            None => String::new(),
        };
        let name = mask_port(&mut words);
        let key = (
            read_text_field(operation, "op")
                .unwrap_or_default()
                .to_owned(),
            words.join("/"),
            value,
        );
        alike.entry(key).or_default().push(name);
    }
    let mut lines = Vec::new();
    for ((op, path, value), ports) in &alike {
        let path = path.replace(PORT, &fold_nonempty_ports(ports));
        lines.push(clean_line(format!("{op:<7} /{path} {value}").trim_end()));
    }
    lines
}

/// Replaces the port in a path by a sign, and returns it; an empty text where there is none. Rows
/// of ports differ in the port alone: the table, what follows the port, and the value make them
/// one.
fn mask_port(words: &mut [String]) -> String {
    let key = words.get(1).map_or("", String::as_str);
    let port = key.split('|').next().unwrap_or_default().to_owned();
    if port.contains(|c: char| c.is_ascii_digit()) && nodeset::is_plain(&port) {
        words[1] = words[1].replacen(&port, PORT, 1);
        return port;
    }
    if words.len() == 3 && words[0] == "CABLE_LENGTH" {
        return std::mem::replace(&mut words[2], PORT.to_owned());
    }
    String::new()
}

fn replace_port(word: &str, port: &str) -> String {
    if port.is_empty() {
        word.to_owned()
    } else {
        word.replacen(port, PORT, 1)
    }
}

/// The lines of NVUE: equal ports are one line, and equal numbers of a collection (`dscp 0-7`).
fn list_nvue_lines(edits: &[SwitchEdit]) -> Vec<String> {
    let edits = SwitchEdit::cumulus(edits);
    let mut of_ports: IndexMap<(&str, Vec<String>, String), Vec<String>> = IndexMap::new();
    for edit in cumulus::edit::select_effective_edits(&edits) {
        let port = edit.port().unwrap_or_default();
        let verb = if edit.value.is_some() { "set" } else { "unset" };
        let value = match &edit.value {
            Some(value) => replace_port(&value.word(), port),
            None => String::new(),
        };
        let path = edit.path.iter().map(|word| replace_port(word, port));
        let key = (verb, path.collect(), value);
        of_ports.entry(key).or_default().push(port.to_owned());
    }
    let mut of_numbers: IndexMap<(&str, String, String), Vec<u64>> = IndexMap::new();
    for ((verb, mut words, value), ports) in of_ports {
        let mut number = None;
        for n in (1..words.len()).rev() {
            if NUMBERED.contains(&words[n - 1].as_str())
                && let Ok(parsed) = words[n].parse::<u64>()
            {
                number = Some(parsed);
                words[n] = NUMBER.to_owned();
                break;
            }
        }
        let ports = fold_nonempty_ports(&ports);
        let key = (
            verb,
            words.join(" ").replace(PORT, &ports),
            value.replace(PORT, &ports),
        );
        of_numbers.entry(key).or_default().extend(number);
    }
    let mut lines = Vec::new();
    for ((verb, words, value), numbers) in &of_numbers {
        let words = words.replace(NUMBER, &format_number_ranges(numbers));
        lines.push(clean_line(format!("{verb:<5} {words} {value}").trim_end()));
    }
    lines
}

/// The commands of EOS, each behind its sections; equal ports are one line.
fn list_eos_command_lines(edits: &[SwitchEdit]) -> Vec<String> {
    let edits = SwitchEdit::eos(edits);
    let mut alike: IndexMap<String, Vec<String>> = IndexMap::new();
    for (section, lines) in eos::edit::group_commands_by_section(&edits) {
        let port = section
            .first()
            .and_then(|first| first.strip_prefix("interface "))
            .unwrap_or_default();
        let sections: Vec<String> = section
            .iter()
            .map(|word| replace_port(word, port))
            .collect();
        for line in lines {
            let words = [&sections[..], &[line.to_owned()]].concat();
            let ports = alike.entry(words.join(": ")).or_default();
            ports.push(port.to_owned());
        }
    }
    let mut lines = Vec::new();
    for (words, ports) in &alike {
        lines.push(clean_line(
            &words.replace(PORT, &fold_nonempty_ports(ports)),
        ));
    }
    lines
}

fn fold_nonempty_ports(ports: &[String]) -> String {
    let mut names: Vec<&str> = ports.iter().map(String::as_str).collect();
    names.retain(|name| !name.is_empty());
    fold_port_names(&names)
}

/// `0-7,10`.
fn format_number_ranges(numbers: &[u64]) -> String {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if number <= *last + 1 => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let mut ranges = Vec::new();
    for (first, last) in runs {
        ranges.push(match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
    }
    ranges.join(",")
}

/// Collections whose members are numbers.
const NUMBERED: [&str; 4] = ["dscp", "pcp", "switch-priority", "traffic-class"];

/// Stands for the numbers.
const NUMBER: &str = "\u{4}";

/// Stands for the port; no key can hold a control character.
const PORT: &str = "\u{3}";

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
