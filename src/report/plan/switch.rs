//! A step of a switch on the plan's screen: ports with the same to say are one entry, and below
//! them stands what is sent to the switch, in its own words.

use super::entry::{render_member, wrap_entry_line};
use indexmap::IndexMap;
use railwright_base::nodeset;
use railwright_base::text::{clean_line, format_count};
use railwright_plan::{Member, PlanNode};
use railwright_resource::Action;
use railwright_resource::switch::edit_line::{NUMBER_SIGN, PORT_SIGN, SwitchEditLine};

/// How many lines of a patch a plan shows.
const LINES: usize = 12;

/// The entries of a step's resources, each with all ports that have the same to say.
pub fn render_switch_members(nodes: &[&PlanNode], called: &dyn Fn(&str) -> String) -> String {
    let mut identical: IndexMap<String, Vec<usize>> = IndexMap::new();
    for n in 0..nodes[0].members().len() {
        let shape: String = nodes
            .iter()
            .map(|node| build_port_shape(&node.members()[n]))
            .collect();
        identical.entry(shape).or_default().push(n);
    }
    let mut out = String::new();
    for places in identical.values() {
        out.push_str(&render_identical_members(nodes, places, called));
    }
    out
}

/// All that is shown of a resource but its name.
fn build_port_shape(member: &Member) -> String {
    let differences = serde_json::to_string(&member.differences).unwrap_or_default();
    format!(
        "{}|{:?}|{}|{differences}|{:?}",
        member.resource.kind, member.reason, member.removal, member.since
    )
}

/// The resources at these places as one entry.
fn render_identical_members(
    nodes: &[&PlanNode],
    places: &[usize],
    called: &dyn Fn(&str) -> String,
) -> String {
    let members = nodes[0].members();
    let names: Vec<&str> = places
        .iter()
        .map(|n| members[*n].resource.address.name())
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

/// What interrupts each port is shown once, with all ports.
pub fn format_port_interrupts(interrupts: &[String]) -> String {
    let mut identical: IndexMap<(String, String), Vec<&str>> = IndexMap::new();
    for text in interrupts {
        let (port, rest) = text.split_once(' ').unwrap_or((text, ""));
        identical
            .entry((nodeset::mask_numbers(port), rest.to_owned()))
            .or_default()
            .push(port);
    }
    let mut texts = Vec::new();
    for ((_, rest), ports) in &identical {
        // What is shown of the same ports twice is shown once, in the longer words.
        let is_said_longer = identical.iter().any(|((_, longer), others)| {
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

/// What is sent to the switch, line by line, equal ports as one.
pub fn render_switch_edits(actions: &[Action]) -> String {
    let mut label = "";
    let mut lines = Vec::new();
    for action in actions {
        if let Action::EditSwitch { system, edits } = action {
            label = system.edit_lines_label();
            lines.extend(fold_edit_lines(system.edit_lines(edits)));
        }
    }
    let mut out = String::new();
    for line in lines.iter().take(LINES) {
        out.push_str(&wrap_entry_line(&format!("{label:<9}"), line));
        label = "";
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

/// Equal lines of several ports as one line, and then of several numbers (`dscp 0-7`).
fn fold_edit_lines(lines: Vec<SwitchEditLine>) -> Vec<String> {
    let mut of_ports: IndexMap<(String, Option<u64>), Vec<String>> = IndexMap::new();
    for line in lines {
        let ports = of_ports.entry((line.text, line.number)).or_default();
        ports.extend(line.port);
    }
    let mut of_numbers: IndexMap<String, Vec<u64>> = IndexMap::new();
    for ((text, number), ports) in of_ports {
        let ports: Vec<&str> = ports.iter().map(String::as_str).collect();
        let text = text.replace(PORT_SIGN, &fold_port_names(&ports));
        of_numbers.entry(text).or_default().extend(number);
    }
    let mut folded = Vec::new();
    for (text, numbers) in of_numbers {
        let text = text.replace(NUMBER_SIGN, &format_number_ranges(numbers));
        folded.push(clean_line(text.trim_end()));
    }
    folded
}

/// `0-7,10`.
fn format_number_ranges(mut numbers: Vec<u64>) -> String {
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
