//! What of a page is text around the commands: a script has none of it, a wiki page is mostly that.
//! A line that some translation knows is a command, whatever it looks like; of the rest those are
//! text that no shell would find a program for.

use super::answer::{TranslationCategory, translate_command};
use super::load::Dictionary;
use super::script::ScriptCommand;

/// From so many plain words on that end like a sentence they are one.
const SENTENCE: usize = 4;

/// True for a line that is no command.
pub(super) fn is_prose(command: &ScriptCommand, dictionary: &Dictionary) -> bool {
    looks_like_text(&command.words)
        && translate_command(command, dictionary)
            .iter()
            .all(|answer| answer.sort == TranslationCategory::Unknown)
}

fn looks_like_text(words: &[String]) -> bool {
    let Some(first) = words.first() else {
        return false;
    };
    let is_marked = ["-", "*", "+", "|", "#"].contains(&first.as_str()) || first.starts_with("```");
    let is_numbered = first
        .strip_suffix(['.', ')', ':'])
        .is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()));
    // Programs have plain names in small letters; a path or an assignment may have any.
    let named = !first.contains(['/', '=', '$', '{']);
    let is_foreign = named && !first.is_ascii();
    let is_capital = named && first.starts_with(|c: char| c.is_ascii_uppercase());
    let is_key = named && first.ends_with([':', ',', ';', '?', '!']);
    is_marked || is_numbered || is_foreign || is_capital || is_key || is_sentence(words)
}

/// Plain words, the last of which ends a sentence.
fn is_sentence(words: &[String]) -> bool {
    let ends = words
        .last()
        .is_some_and(|word| word.len() > 1 && word.ends_with(['.', ':', '!', '?']));
    words.len() >= SENTENCE
        && ends
        && words.iter().all(|word| is_plain_word(word))
        && !words.iter().any(|word| word.starts_with('-'))
}

fn is_plain_word(word: &str) -> bool {
    let letters = word.trim_end_matches([',', '.', ':', ';', '!', '?']);
    letters
        .chars()
        .all(|c| c.is_alphabetic() || c == '-' || c == '\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_page_are_told_from_commands() {
        let text = |line: &str| {
            looks_like_text(
                &line
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>(),
            )
        };
        for line in [
            "更新時間",
            "Install the driver",
            "1. packages",
            "- a list",
            "apiVersion: v1",
            "then you go on with it.",
            "GU8TF",
            "```bash",
        ] {
            assert!(text(line), "{line}");
        }
        for line in [
            "ip link set dev eth0 mtu 9000",
            "NCCL_DEBUG=INFO",
            "./install.sh",
            "/opt/Some/Tool -x",
            "cma_roce_mode -d mlx5_0 -p 1",
            "reboot",
            "cat a.txt",
        ] {
            assert!(!text(line), "{line}");
        }
    }
}
