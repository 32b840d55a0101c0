//! Text that came from a machine is hostile: terminal escapes and control characters never reach a
//! screen.

/// The text with control characters made visible; newline and tab stay. What runners of pipelines
/// take for an order in a log is broken.
pub fn sanitize_text(text: &str) -> String {
    let seen = text.chars().map(|c| match c {
        '\n' | '\t' => c,
        c if c.is_control() || is_unseen(c) => '\u{fffd}',
        c => c,
    });
    without_orders(seen.collect())
}

fn without_orders(mut text: String) -> String {
    for place in orders(&text).into_iter().rev() {
        text.insert(place, '\u{fffd}');
    }
    text
}

/// Where the second character of each order to a pipeline's runner is, in bytes. `##[error]` and
/// `##vso[...]` are orders anywhere in a line, `::error::` at its begin, where a word, or what
/// comes after a comma or a dot, may come to stand when a line is wrapped (actions/runner:
/// src/Runner.Common/ActionCommand.cs; microsoft/azure-pipelines-agent: Command.cs).
pub fn orders(text: &str) -> Vec<usize> {
    let is_order = |place: usize, sign: &str| {
        let after = &text[place + sign.len()..];
        if sign == "##" {
            return after
                .trim_start_matches(|c: char| c.is_ascii_alphanumeric())
                .starts_with('[');
        }
        let may_begin = text[..place]
            .chars()
            .next_back()
            .is_none_or(|before| !before.is_alphanumeric());
        let is_closed = || {
            after
                .find("::")
                .is_some_and(|end| !after[..end].contains('\n'))
        };
        may_begin && after.starts_with(|c: char| c.is_ascii_alphabetic()) && is_closed()
    };
    let pairs = text.as_bytes().windows(2).enumerate();
    let signs = pairs.filter_map(|(place, pair)| {
        Some((
            place,
            ["##", "::"]
                .into_iter()
                .find(|sign| sign.as_bytes() == pair)?,
        ))
    });
    signs
        .filter(|(place, sign)| is_order(*place, sign))
        .map(|(place, _)| place + 1)
        .collect()
}

/// Characters that show nothing and change how others are shown or read: separators of lines and
/// paragraphs, and what a screen may leave out (Unicode: DerivedCoreProperties.txt,
/// Default_Ignorable_Code_Point).
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text as one line and with all its blanks: a line end in it is made visible too, so that no
/// name can begin a line of its own.
pub fn clean_line(text: &str) -> String {
    sanitize_text(text).replace(['\n', '\t'], "\u{fffd}")
}

/// `1 host`, `2 hosts`, `2 switches`.
pub fn format_count(count: usize, word: &str) -> String {
    let (stem, ending) = match (count, word.strip_suffix("ry")) {
        (1, _) => (word, ""),
        (_, Some(stem)) => (stem, "ries"),
        _ if word.ends_with("ch") => (word, "es"),
        _ => (word, "s"),
    };
    format!("{count} {stem}{ending}")
}

/// Seconds as people say them, in at most two units: `45 s`, `4 min`, `1 h 30 min`, `2 d 3 h`.
pub fn format_duration(seconds: u64) -> String {
    let parts = |high: u64, one: &str, low: u64, other: &str| match low {
        0 => format!("{high} {one}"),
        low => format!("{high} {one} {low} {other}"),
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => parts(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => parts(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => parts(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// The seconds that a plain number with one of these units stands for, `30s`; without a unit it is
/// seconds.
pub fn parse_seconds(text: &str, units: &[(char, u64)]) -> Option<u64> {
    let (number, unit) = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)))
        .unwrap_or((text, 1));
    let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number
        .parse::<u64>()
        .ok()
        .filter(|_| is_plain)?
        .checked_mul(unit)
}

/// Bytes in lower-case hexadecimal.
pub fn format_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first bytes of the text, at most so many, that are whole characters.
pub fn start_of(text: &str, length: usize) -> &str {
    let mut ends = (0..=length.min(text.len())).rev();
    &text[..ends
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or_default()]
}

/// One line of at most `limit` characters, for a table or a message.
pub fn one_line(text: &str, limit: usize) -> String {
    let flat = sanitize_text(text)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    if flat.chars().count() <= limit {
        return flat;
    }
    let mut cut: String = flat.chars().take(limit.saturating_sub(3)).collect();
    cut.push_str("...");
    cut
}

/// Words that YAML, in its old version or its new one, takes for something else than text.
const NO_TEXT: [&str; 10] = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan",
];

/// A text: as it is where nobody takes it for anything else, else as JSON has it, which is YAML.
/// What a terminal would act upon is written as its number, which is the same text to who reads the
/// YAML.
pub fn format_yaml_text(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '/' | '_');
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain);
    match is_word && !NO_TEXT.contains(&text.to_ascii_lowercase().as_str()) {
        true => text.to_owned(),
        false => escape_unseen(&serde_json::Value::from(text).to_string()),
    }
}

/// A JSON document in which what a terminal would act upon is written as its number, which is the
/// same document to who reads it. Line ends stay: no text in it has one.
pub fn escape_unseen(document: &str) -> String {
    let acts = |c: char| (c.is_control() && c != '\n') || is_unseen(c);
    let mut escaped = String::with_capacity(document.len());
    for c in document.chars() {
        match acts(c) {
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    escaped.push_str(&format!("\\u{unit:04x}"));
                }
            }
            false => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_gives_orders_to_a_pipeline() {
        for order in [
            "##[add-mask]e",
            "a ##vso[task.setvariable variable=X]y",
            "###vso[x]",
            "x ::error file=a::z",
            "::add-mask::e",
            "a\n\t::error::z",
            "a,::add-mask::e",
            "a.::error::z",
        ] {
            let seen = sanitize_text(order);
            assert!(
                !seen.contains("##[")
                    && !seen.contains("##vso[")
                    && !seen.contains("::error")
                    && !seen.contains("::add"),
                "{seen:?}"
            );
            assert_eq!(sanitize_text(&seen), seen);
        }
        for text in [
            "a::b",
            "::ffff:10.0.0.1",
            "fd00::1 ::",
            "## heading [x]",
            "#[test]",
            "std::a::b",
        ] {
            assert_eq!(sanitize_text(text), text);
        }
    }

    #[test]
    fn a_document_acts_on_no_terminal_and_says_the_same() {
        let said = serde_json::json!({ "a\u{9b}": "x\u{7f}\u{202e}\u{61c}\u{1b}[2J\nß" });
        let document = serde_json::to_string_pretty(&said).unwrap();
        let escaped = escape_unseen(&document);
        assert_eq!(
            escaped,
            "{\n  \"a\\u009b\": \"x\\u007f\\u202e\\u061c\\u001b[2J\\nß\"\n}"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&escaped).unwrap(),
            said
        );
    }
}
