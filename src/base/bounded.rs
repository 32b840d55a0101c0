//! JSON of a target that nobody vouches for: a text of a few MiB may hold millions of values, each of which takes a hundred times its bytes.

use serde_json::Value;

/// More values are not taken of one answer: a page of 500 nodes with all their images, labels and managers has a third of them.
const VALUES: usize = 3_000_000;

/// The document; nothing where it is none, or holds too many values.
pub fn parse(bytes: &[u8]) -> Option<Value> {
    if values(bytes) > VALUES { None } else { serde_json::from_slice(bytes).ok() }
}

/// A record of more values is neither read nor written. What a Secret takes of a record has fewer.
pub const RECORD_VALUES: usize = 500_000;

/// Whether a text is short enough, in values, for a record.
pub fn is_of_record(text: &str) -> bool {
    values(text.as_bytes()) <= RECORD_VALUES
}

/// How many values and names a text holds, at most: each but the first comes after one of these. How deep they lie the parser limits itself.
fn values(bytes: &[u8]) -> usize {
    let (mut count, mut in_text, mut is_escaped) = (1, false, false);
    for byte in bytes {
        match (in_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'[' | b'{' | b',' | b':') => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        assert_eq!(values(br#"{"a":[1,2,{"b":"[,:{\"[,"}]}"#), 8);
    }

    /// 60 MB of them took 19 GB of memory.
    #[test]
    fn a_text_of_too_many_values_is_none() {
        let many = |count: usize| format!("[{}1]", "[],".repeat(count));
        assert!(parse(many(1000).as_bytes()).is_some());
        assert_eq!(parse(many(VALUES / 2).as_bytes()), None);
        assert_eq!(parse("[".repeat(1000).as_bytes()), None, "nor one that is too deep");
    }
}
