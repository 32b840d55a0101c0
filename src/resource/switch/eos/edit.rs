//! Edits of an EOS configuration as values, and as the commands of a configure session. Their order
//! in it is that of `order_commands`, however they were planned.

use super::key::{EosSettingKey, OF_PORT, PFC};
use super::port_view::QUEUE_WORDS;
use crate::Disruption;
use crate::switch::edit::Disturbance;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The section of a queue on a switch of which nobody knows yet by which word it has queues; it is
/// asked when it is changed.
pub const ANY_QUEUE: &str = "[uc-]tx-queue";

/// How much goes into one call of the switch's command line: Linux takes 128 KiB in one argument
/// (execve(2), MAX_ARG_STRLEN).
const CHUNK: usize = 48 << 10;

/// One command.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct EosEdit {
    /// The sections that lead to it: `interface Ethernet1/1`, `tx-queue 3`; nothing for the whole
    /// switch.
    pub section: Vec<String>,
    /// The command.
    pub line: String,
    /// The words that name what it sets, whatever the value: `mtu`.
    pub key: String,
}

impl EosEdit {
    /// A command in the section of a port, or in that of one of its queues.
    pub fn of_port(port: &str, queue_section: Option<String>, key: &str, line: &str) -> Self {
        let mut section = vec![format!("interface {port}")];
        section.extend(queue_section);
        EosEdit {
            section,
            line: line.to_owned(),
            key: key.to_owned(),
        }
    }

    /// The port that it is about.
    pub fn port(&self) -> Option<&str> {
        self.section.first()?.strip_prefix("interface ")
    }

    /// True for a command that takes something away.
    fn takes_away(&self) -> bool {
        OF_PORT.iter().any(|key| key.without == self.line)
            || (self.line.starts_with("no ") && self.line.ends_with(" no-drop"))
    }
}

/// How the lines begin in which these edits show where two configurations are compared.
pub fn list_visible_line_prefixes(edits: &[EosEdit]) -> BTreeSet<String> {
    let mut prefixes = BTreeSet::new();
    for edit in edits {
        for section in &edit.section {
            match section.strip_prefix(ANY_QUEUE) {
                Some(rest) => prefixes.extend(QUEUE_WORDS.map(|word| format!("{word}{rest}"))),
                None => {
                    prefixes.insert(section.clone());
                }
            }
        }
        prefixes.insert(edit.key.clone());
        if let Some(key) = EosSettingKey::find(&edit.key) {
            prefixes.extend(key.opposite.map(str::to_owned));
        }
    }
    prefixes
}

/// The sections with the commands of each: what is taken away first, longer words before the ones
/// that they begin with.
pub fn group_commands_by_section(edits: &[EosEdit]) -> BTreeMap<&[String], Vec<&str>> {
    let mut sections: BTreeMap<&[String], Vec<&EosEdit>> = BTreeMap::new();
    for edit in edits {
        sections.entry(&edit.section).or_default().push(edit);
    }
    let sections = sections.into_iter();
    sections
        .map(|(section, edits)| (section, order_commands(edits)))
        .collect()
}

fn order_commands(mut edits: Vec<&EosEdit>) -> Vec<&str> {
    edits.sort_by(|a, b| {
        b.takes_away()
            .cmp(&a.takes_away())
            .then_with(|| if a.takes_away() { b.cmp(a) } else { a.cmp(b) })
    });
    edits.dedup();
    edits.into_iter().map(|edit| edit.line.as_str()).collect()
}

/// The commands as texts, each for one call.
pub fn render_command_chunks(edits: &[EosEdit]) -> Vec<String> {
    let mut out = vec![String::new()];
    for (section, lines) in group_commands_by_section(edits) {
        let mut text = String::new();
        for line in section.iter().map(String::as_str).chain(lines) {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(&"exit\n".repeat(section.len()));
        match out.last_mut() {
            Some(last) if last.len() + text.len() <= CHUNK => last.push_str(&text),
            _ => out.push(text),
        }
    }
    out.retain(|text| !text.is_empty());
    out
}

/// What edits do to a port. No source says that EOS changes PFC of a port without a loss, and none
/// that it does not.
pub fn compute_eos_disruption(edits: &[EosEdit], port: &str, is_up: bool) -> Disturbance {
    let mut interrupts = Vec::new();
    let changes_pfc = edits.iter().any(|edit| {
        edit.port() == Some(port) && (edit.key == PFC.words || edit.line.contains("no-drop"))
    });
    if is_up && changes_pfc {
        interrupts.push(format!(
            "{port} may lose packets for a moment: nothing says that EOS changes PFC of a port \
             without a loss"
        ));
    }
    let of_switch = edits.iter().filter(|edit| edit.section.is_empty());
    let lines: BTreeSet<&str> = of_switch.map(|edit| edit.line.as_str()).collect();
    for line in lines {
        interrupts.push(format!(
            "all ports that trust DSCP go by the new map: {line}"
        ));
    }
    Disturbance {
        disruption: Disruption::Reload,
        interrupts,
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::{GUARANTEED, WATCHDOG, WATCHDOG_TIMER};
    use super::*;

    fn edit(section: &[&str], line: &str, key: &str) -> EosEdit {
        EosEdit {
            section: section.iter().map(|word| (*word).to_owned()).collect(),
            line: line.to_owned(),
            key: key.to_owned(),
        }
    }

    #[test]
    fn what_is_taken_away_goes_first_and_a_call_has_its_limit() {
        let port = ["interface Ethernet1"];
        let edits = [
            edit(&port, "mtu 9000", "mtu"),
            edit(&port, WATCHDOG.without, WATCHDOG.words),
            edit(&port, WATCHDOG_TIMER.without, WATCHDOG_TIMER.words),
            edit(
                &["interface Ethernet1", "[uc-]tx-queue 3"],
                GUARANTEED.without,
                GUARANTEED.words,
            ),
        ];
        let desired = "interface Ethernet1\n\
                      no priority-flow-control pause watchdog port timer\n\
                      no priority-flow-control pause watchdog\n\
                      mtu 9000\n\
                      exit\n\
                      interface Ethernet1\n\
                      [uc-]tx-queue 3\n\
                      no bandwidth guaranteed\n\
                      exit\n\
                      exit\n";
        assert_eq!(render_command_chunks(&edits), [desired]);
        assert!(
            list_visible_line_prefixes(&edits).contains("uc-tx-queue 3")
                && list_visible_line_prefixes(&edits).contains("bandwidth guaranteed")
        );
        let many: Vec<EosEdit> = (0..2000)
            .map(|n| edit(&[&format!("interface Ethernet{n}")], "mtu 9000", "mtu"))
            .collect();
        let texts = render_command_chunks(&many);
        assert!(
            texts.len() == 2 && texts.iter().all(|text| text.len() <= CHUNK),
            "{}",
            texts.len()
        );
    }
}
