//! The one quoting function. Every value that reaches a shell passes here, and nowhere else.

use super::text::clean_line;
use std::path::Path;

/// A value as one word of POSIX sh, always in single quotes, so that no character of it is ever
/// read by a shell. NUL cannot be written in a shell word at all: it is dropped, because no path or
/// value of ours may hold one.
pub fn quote_for_shell(value: &str) -> String {
    let clean: String = value.chars().filter(|c| *c != '\0').collect();
    let mut out = String::with_capacity(clean.len() + 2);
    out.push('\'');
    out.push_str(&clean.replace('\'', r"'\''"));
    out.push('\'');
    out
}

/// Words joined to one command line.
pub fn sh_words<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words
        .into_iter()
        .map(quote_for_shell)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word of a command that people are told to type: in quotes only where a shell would read it
/// otherwise.
pub fn quote_word_if_needed(word: &str) -> String {
    let is_plain = !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_=./,:+@%^".contains(c));
    if is_plain {
        word.to_owned()
    } else {
        quote_for_shell(word)
    }
}

/// The path of a file or folder in such a command. One that begins with `-` would be an option
/// there.
pub fn quote_path(path: &Path) -> String {
    let text = clean_line(&path.display().to_string());
    quote_word_if_needed(&if text.starts_with('-') {
        format!("./{text}")
    } else {
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_command() {
        for (given, desired) in [
            ("inv/a.log", "inv/a.log"),
            ("my job.log", "'my job.log'"),
            ("-x.log", "./-x.log"),
            ("it's.log", r"'it'\''s.log'"),
            ("$(id).log", "'$(id).log'"),
            ("a\nb", "'a\u{fffd}b'"),
            ("", "''"),
        ] {
            assert_eq!(quote_path(Path::new(given)), desired);
        }
    }
}
