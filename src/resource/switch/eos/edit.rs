//! Edits of an EOS configuration as values, and as the commands of a configure session.

use super::key::{EosSettingKey, OF_PORT};
use crate::Disruption;
use crate::switch::edit::Disturbance;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The section of a queue on a switch of which nobody knows yet by which word it has queues; it is
/// asked when it is told.
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
    let of = |edit: &EosEdit| {
        let opposite = OF_PORT
            .iter()
            .find(|key| key.words == edit.key)
            .and_then(|key: &EosSettingKey| key.opposite);
        let sections =
            edit.section
                .iter()
                .flat_map(|section| match section.strip_prefix(ANY_QUEUE) {
                    Some(rest) => super::port_view::QUEUE_WORDS
                        .iter()
                        .map(|word| format!("{word}{rest}"))
                        .collect(),
                    None => vec![section.clone()],
                });
        sections
            .chain([edit.key.clone()])
            .chain(opposite.map(str::to_owned))
            .collect::<Vec<_>>()
    };
    edits.iter().flat_map(of).collect()
}

/// The sections with what is told in each: what is taken away first, longer words before the ones
/// that they begin with.
pub fn group_commands_by_section(edits: &[EosEdit]) -> BTreeMap<&[String], Vec<&str>> {
    let mut sections: BTreeMap<&[String], Vec<&EosEdit>> = BTreeMap::new();
    for edit in edits {
        sections.entry(&edit.section).or_default().push(edit);
    }
    sections
        .into_iter()
        .map(|(section, edits)| (section, in_order(edits)))
        .collect()
}

fn in_order(mut edits: Vec<&EosEdit>) -> Vec<&str> {
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
        let entered: String = section
            .iter()
            .map(|section| format!("{section}\n"))
            .collect();
        let told: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let text = format!("{entered}{told}{}", "exit\n".repeat(section.len()));
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
    if is_up
        && edits.iter().any(|edit| {
            edit.port() == Some(port)
                && (edit.key == super::key::PFC.words || edit.line.contains("no-drop"))
        })
    {
        interrupts.push(format!(
            "{port} may lose packets for a moment: nothing says that EOS changes PFC of a port \
             without a loss"
        ));
    }
    let of_all = edits
        .iter()
        .filter(|edit| edit.section.is_empty())
        .map(|edit| edit.line.as_str())
        .collect::<BTreeSet<_>>();
    interrupts.extend(
        of_all
            .into_iter()
            .map(|line| format!("all ports that trust DSCP go by the new map: {line}")),
    );
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
        let wanted = "interface Ethernet1\n\
                      no priority-flow-control pause watchdog port timer\n\
                      no priority-flow-control pause watchdog\n\
                      mtu 9000\n\
                      exit\n\
                      interface Ethernet1\n\
                      [uc-]tx-queue 3\n\
                      no bandwidth guaranteed\n\
                      exit\n\
                      exit\n";
        assert_eq!(render_command_chunks(&edits), [wanted]);
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
