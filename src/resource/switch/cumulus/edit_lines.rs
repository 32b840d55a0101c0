//! The edits of NVUE as lines of `nv`.

use super::edit::{CumulusEdit, select_effective_edits};
use crate::switch::edit_line::{NUMBER_SIGN, SwitchEditLine, mask_port};

/// Collections whose members are numbers.
const NUMBERED: [&str; 4] = ["dscp", "pcp", "switch-priority", "traffic-class"];

/// An edit that takes effect is a line.
pub fn list_nvue_lines(edits: &[CumulusEdit]) -> Vec<SwitchEditLine> {
    let mut lines = Vec::new();
    for edit in select_effective_edits(edits) {
        let port = edit.port();
        let verb = if edit.value.is_some() { "set" } else { "unset" };
        let value = match &edit.value {
            Some(value) => mask_port(&value.word(), port),
            None => String::new(),
        };
        let path = edit.path.iter().map(|word| mask_port(word, port));
        let mut words: Vec<String> = path.collect();
        let number = take_number_out(&mut words);
        lines.push(SwitchEditLine {
            text: format!("{verb:<5} {} {value}", words.join(" ")),
            port: port.map(str::to_owned),
            number,
        });
    }
    lines
}

/// Replaces the last number of a collection by its sign, and returns it.
fn take_number_out(words: &mut [String]) -> Option<u64> {
    for n in (1..words.len()).rev() {
        if NUMBERED.contains(&words[n - 1].as_str())
            && let Ok(number) = words[n].parse::<u64>()
        {
            words[n] = NUMBER_SIGN.to_owned();
            return Some(number);
        }
    }
    None
}
