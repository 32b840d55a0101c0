//! Readings as words on a screen. What came from a machine is cleaned here.

use super::text_difference::count_changed_lines;
use railwright_base::seal;
use railwright_base::text::{format_count, one_line};
use railwright_resource::Reading;
use serde_json::Value;

/// The most characters of a value on a screen where two of them and a label share a line.
pub const NARROW: usize = 31;
/// The most characters of a value where it may wrap.
pub const WIDE: usize = 400;

/// Words for what has no value, or an empty one.
const ABSENT: &str = "absent";
const EMPTY: &str = "empty";

/// A text that would be read as one of our own words for having no value: it is shown in quotes.
fn is_read_as_none(text: &str) -> bool {
    [ABSENT, EMPTY].contains(&text)
        || ["unknown (", "not applicable ("]
            .iter()
            .any(|words| text.starts_with(words))
}

/// A reading on one line, cut at `width` characters.
pub fn format_reading(reading: &Reading, width: usize) -> String {
    match reading {
        Reading::Is(value) => self::format_value(value, width),
        Reading::Absent => ABSENT.to_owned(),
        Reading::NotApplicable(reason) => {
            format!("not applicable ({})", one_line(reason.as_words(), width))
        }
        Reading::Unknown(reason) => format!("unknown ({})", one_line(reason.as_words(), width)),
    }
}

fn format_value(value: &Value, width: usize) -> String {
    match value {
        Value::String(text) if text.trim_end_matches('\n').contains('\n') => {
            format!("{} of text", format_count(text.lines().count(), "line"))
        }
        Value::String(text) if text.is_empty() => EMPTY.to_owned(),
        Value::String(text) if seal::is_seal(text) => seal::VEIL.to_owned(),
        Value::String(text) if is_read_as_none(text) => format!("\"{}\"", one_line(text, width)),
        Value::String(text) => one_line(text, width),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => one_line(
            &items
                .iter()
                .map(|v| self::format_value(v, width))
                .collect::<Vec<_>>()
                .join(", "),
            width,
        ),
        Value::Object(map) if map.is_empty() => "none".to_owned(),
        Value::Object(map) => one_line(
            &map.iter()
                .map(|(k, v)| format!("{k}: {}", self::format_value(v, width)))
                .collect::<Vec<_>>()
                .join(", "),
            width,
        ),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        other => one_line(&other.to_string(), width),
    }
}

/// A change in words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeDescription {
    /// Both sides can be shown.
    Sides {
        /// What is there.
        actual: String,
        /// What is desired.
        desired: String,
    },
    /// What of it can be shown: secrets stay hidden, and a text of many lines is shown by what is
    /// added and removed.
    Whole(String),
}

impl std::fmt::Display for ChangeDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            ChangeDescription::Sides { actual, desired } => write!(f, "{actual} -> {desired}"),
            ChangeDescription::Whole(text) => f.write_str(text),
        }
    }
}

/// From the actual to the desired value, each cut at `width` characters.
pub fn describe_change(actual: &Reading, desired: &Reading, width: usize) -> ChangeDescription {
    if differ_unseen(actual, desired) {
        return ChangeDescription::Whole(format!("differs ({})", seal::VEIL));
    }
    if let (Some(Value::String(old)), Some(Value::String(new))) = (actual.value(), desired.value())
        && (old.contains('\n') || new.contains('\n'))
    {
        let (added, removed) = count_changed_lines(old, new);
        return ChangeDescription::Whole(format!("text changes: +{added} -{removed} lines"));
    }
    ChangeDescription::Sides {
        actual: self::format_reading(actual, width),
        desired: self::format_reading(desired, width),
    }
}

/// Both sides are known by their seals alone.
pub fn differ_unseen(one: &Reading, other: &Reading) -> bool {
    is_sealed(one) && is_sealed(other)
}

fn is_sealed(reading: &Reading) -> bool {
    reading
        .value()
        .and_then(Value::as_str)
        .is_some_and(seal::is_seal)
}

/// True for a word by which a kind says of something without a value that it is there, unless the
/// resource itself has the word: then it is a value like any other.
pub fn is_presence(text: &str, body: &Value) -> bool {
    ["present", "in place", "installed"].contains(&text) && !has_text_value(body, text)
}

fn has_text_value(body: &Value, text: &str) -> bool {
    match body {
        Value::String(own) => own == text,
        Value::Array(items) => items.iter().any(|item| has_text_value(item, text)),
        Value::Object(map) => map.values().any(|item| has_text_value(item, text)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_told_from_our_words_for_none() {
        let change = |actual: Reading, desired: Value| {
            describe_change(&actual, &Reading::Is(desired), NARROW).to_string()
        };
        assert_eq!(
            change(Reading::Absent, json!("absent")),
            "absent -> \"absent\""
        );
        assert_eq!(change(Reading::Absent, json!("")), "absent -> empty");
        assert_eq!(
            change(Reading::is(""), json!("empty")),
            "empty -> \"empty\""
        );
        assert_eq!(
            change(Reading::is("absently"), json!(["absent"])),
            "absently -> \"absent\""
        );
        assert_eq!(
            format_reading(&Reading::is("unknown (not asked)"), WIDE),
            "\"unknown (not asked)\""
        );
    }

    #[test]
    fn a_word_of_a_kind_is_a_value_where_the_resource_has_it() {
        assert!(is_presence("present", &json!({ "name": "a" })));
        assert!(!is_presence(
            "present",
            &json!({ "values": { "gpu-1": "present" } })
        ));
        assert!(!is_presence("8", &json!({})));
    }
}
