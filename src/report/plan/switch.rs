//! A step of a switch on the plan's screen: ports with the same to say are one entry, and below
//! them stands what the switch itself is told, in its own words.

use super::entry::{one_member, wrap_entry_line};
use indexmap::IndexMap;
use railwright_base::nodeset;
use railwright_base::text::{clean_line, format_count};
use railwright_plan::{Member, PlanNode};
use railwright_resource::Action;
use railwright_resource::switch::edit::SwitchEdit;
use railwright_resource::switch::sonic::edit::build_json_patch;
use railwright_resource::switch::{SwitchSystem, cumulus, eos};
use serde_json::Value;

/// How many lines of a patch a plan shows.
const LINES: usize = 12;

/// The entries of a step's resources, each with all ports that have the same to say.
pub fn render_switch_members(nodes: &[&PlanNode], called: &dyn Fn(&str) -> String) -> String {
    let of = |n: usize| nodes.iter().map(move |node| &node.members()[n]);
    let mut alike: IndexMap<String, Vec<usize>> = IndexMap::new();
    for n in 0..nodes[0].members().len() {
        let said = |member: &Member| {
            let differences = serde_json::to_string(&member.differences).unwrap_or_default();
            format!(
                "{}|{:?}|{}|{differences}|{:?}",
                member.wish.kind, member.reason, member.removal, member.since
            )
        };
        alike.entry(of(n).map(said).collect()).or_default().push(n);
    }
    let entry = |(_, all): (&String, &Vec<usize>)| {
        let names: Vec<&str> = all
            .iter()
            .map(|n| nodes[0].members()[*n].wish.address.name())
            .collect();
        let own = nodes[0].members()[all[0]].wish.address.name().to_owned();
        let folded = fold_port_names(&names);
        one_member(nodes, all[0], &|text| {
            if all.len() > 1 {
                called(&text.replace(&own, &folded))
            } else {
                called(text)
            }
        })
    };
    alike.iter().map(entry).collect()
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
    let mut alike: Vec<_> = alike.iter().collect();
    // What is said of the same ports twice is said once, in the longer words.
    let longer = |ports: &[&str], rest: &str, other: &(&(String, String), &Vec<&str>)| {
        other.0.1.len() > rest.len() && ports.iter().all(|p| other.1.contains(p))
    };
    let all = alike.clone();
    alike.retain(|((_, rest), ports)| !all.iter().any(|other| longer(ports, rest, other)));
    let one = |((_, rest), ports): (&(String, String), &Vec<&str>)| match ports.len() {
        1 => format!("{} {rest}", ports[0]),
        many => {
            format!(
                "{} ({}) {}",
                self::fold_port_names(ports),
                format_count(many, "port"),
                rest.replacen("goes", "go", 1).replacen("comes", "come", 1)
            )
        }
    };
    alike.into_iter().map(one).collect::<Vec<_>>().join("; ")
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
    let mut out: String = lines
        .iter()
        .take(LINES)
        .enumerate()
        .map(|(n, line)| wrap_entry_line(if n == 0 { label } else { "         " }, line))
        .collect();
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
        let text = |key: &str| {
            operation
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let mut words: Vec<String> = text("path")
            .split('/')
            .skip(1)
            .map(|word| word.replace("~1", "/").replace("~0", "~"))
            .collect();
        let value = operation.get("value").map_or_else(String::new, of_value);
        // Rows of ports differ in the port alone: the table, what follows the port, and the value
        // make them one.
        let port = words
            .get(1)
            .map(|key| key.split('|').next().unwrap_or_default().to_owned())
            .unwrap_or_default();
        let is_port = port.chars().any(|c| c.is_ascii_digit()) && nodeset::is_plain(&port);
        let (key, name) = match is_port {
            true => {
                words[1] = words[1].replacen(&port, PORT, 1);
                (words.join("/"), port)
            }
            false if words.len() == 3 && words[0] == "CABLE_LENGTH" => {
                let port = std::mem::replace(&mut words[2], PORT.to_owned());
                (words.join("/"), port)
            }
            false => (words.join("/"), String::new()),
        };
        alike
            .entry((text("op").to_owned(), key, value))
            .or_default()
            .push(name);
    }
    let line = |((op, path, value), ports): (&(String, String, String), &Vec<String>)| {
        clean_line(
            format!(
                "{op:<7} /{} {value}",
                path.replace(PORT, &fold_nonempty_ports(ports))
            )
            .trim_end(),
        )
    };
    alike.iter().map(line).collect()
}

/// The lines of NVUE: equal ports are one line, and equal numbers of a collection (`dscp 0-7`).
fn list_nvue_lines(edits: &[SwitchEdit]) -> Vec<String> {
    let edits = SwitchEdit::cumulus(edits);
    let mut of_ports: IndexMap<(&str, Vec<String>, String), Vec<String>> = IndexMap::new();
    for edit in cumulus::edit::select_effective_edits(&edits) {
        let port = edit.port().unwrap_or_default();
        let replace = |word: &String| {
            if port.is_empty() {
                word.clone()
            } else {
                word.replacen(port, PORT, 1)
            }
        };
        let verb = if edit.value.is_some() { "set" } else { "unset" };
        let value = edit
            .value
            .as_ref()
            .map(cumulus::edit::Leaf::word)
            .unwrap_or_default();
        let key = (
            verb,
            edit.path.iter().map(replace).collect(),
            replace(&value),
        );
        of_ports.entry(key).or_default().push(port.to_owned());
    }
    let mut of_numbers: IndexMap<(&str, String, String), Vec<u64>> = IndexMap::new();
    for ((verb, mut words, value), ports) in of_ports {
        let number = (1..words.len()).rev().find(|n| {
            NUMBERED.contains(&words[n - 1].as_str()) && words[*n].parse::<u64>().is_ok()
        });
        let number = number.and_then(|n| {
            std::mem::replace(&mut words[n], NUMBER.to_owned())
                .parse::<u64>()
                .ok()
        });
        let ports = fold_nonempty_ports(&ports);
        let key = (
            verb,
            words.join(" ").replace(PORT, &ports),
            value.replace(PORT, &ports),
        );
        of_numbers.entry(key).or_default().extend(number);
    }
    let line = |((verb, words, value), numbers): (&(&str, String, String), &Vec<u64>)| {
        clean_line(
            format!(
                "{verb:<5} {} {value}",
                words.replace(NUMBER, &format_number_ranges(numbers))
            )
            .trim_end(),
        )
    };
    of_numbers.iter().map(line).collect()
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
        let replace = |word: &String| {
            if port.is_empty() {
                word.clone()
            } else {
                word.replacen(port, PORT, 1)
            }
        };
        let sections: Vec<String> = section.iter().map(replace).collect();
        for line in lines {
            let words = sections
                .iter()
                .map(String::as_str)
                .chain([line])
                .collect::<Vec<_>>()
                .join(": ");
            alike.entry(words).or_default().push(port.to_owned());
        }
    }
    alike
        .iter()
        .map(|(words, ports)| clean_line(&words.replace(PORT, &fold_nonempty_ports(ports))))
        .collect()
}

fn fold_nonempty_ports(ports: &[String]) -> String {
    self::fold_port_names(
        &ports
            .iter()
            .map(String::as_str)
            .filter(|port| !port.is_empty())
            .collect::<Vec<_>>(),
    )
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
    let run = |(first, last): &(u64, u64)| {
        if first == last {
            first.to_string()
        } else {
            format!("{first}-{last}")
        }
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

/// Collections whose members are numbers.
const NUMBERED: [&str; 4] = ["dscp", "pcp", "switch-priority", "traffic-class"];

/// Stands for the numbers.
const NUMBER: &str = "\u{4}";

/// Stands for the port; no key can hold a control character.
const PORT: &str = "\u{3}";

/// A value, or how many there are.
fn of_value(value: &Value) -> String {
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
        Value::Object(map) => {
            let field = |(name, value): (&String, &Value)| {
                format!("{name}={}", value.as_str().unwrap_or_default())
            };
            map.iter().map(field).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
