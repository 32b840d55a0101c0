//! The commands of EOS as lines, each behind its sections.

use super::edit::{EosEdit, group_commands_by_section};
use crate::switch::edit_line::{SwitchEditLine, mask_port};

/// A command is a line.
pub fn list_eos_command_lines(edits: &[EosEdit]) -> Vec<SwitchEditLine> {
    let mut lines = Vec::new();
    for (section, commands) in group_commands_by_section(edits) {
        let port = section
            .first()
            .and_then(|first| first.strip_prefix("interface "));
        for command in commands {
            let mut words: Vec<String> = section.iter().map(|word| mask_port(word, port)).collect();
            words.push(command.to_owned());
            lines.push(SwitchEditLine {
                text: words.join(": "),
                port: port.map(str::to_owned),
                number: None,
            });
        }
    }
    lines
}
