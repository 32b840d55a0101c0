//! JSON of a target that nobody vouches for: a text of a few MiB may hold millions of values, each
//! of which takes a hundred times its bytes.

use serde_json::Value;

/// More values are not taken of one answer: a page of 500 nodes with all their images, labels and
/// managers has a third of them.
const VALUES: usize = 3_000_000;

/// A map takes as much memory as so many values, however little is in it: it has room for eleven.
const OF_MAP: usize = 6;

/// The document; nothing where it is none, or holds too many values.
pub fn parse_bounded_json(bytes: &[u8]) -> Option<Value> {
    if count_json_values(bytes, OF_MAP) > VALUES {
        None
    } else {
        serde_json::from_slice(bytes).ok()
    }
}

/// A record of more values is neither read nor written. What a Secret takes of a record has fewer.
pub const RECORD_VALUES: usize = 500_000;

/// Whether a text is short enough, in values, for a record.
pub fn is_of_record(text: &str) -> bool {
    count_json_values(text.as_bytes(), 1) <= RECORD_VALUES
}

/// How many values and names a text holds, at most: each but the first comes after one of these.
/// How deep they lie the parser limits itself. A map counts for as many as `of_map` says.
fn count_json_values(bytes: &[u8], of_map: usize) -> usize {
    let (mut count, mut in_text, mut is_escaped) = (1, false, false);
    for byte in bytes {
        match (in_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'{') => count += of_map,
            (false, b'[' | b',' | b':') => count += 1,
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
        let text = br#"{"a":[1,2,{"b":"[,:{\"[,"}]}"#;
        assert_eq!(
            (count_json_values(text, 1), count_json_values(text, OF_MAP)),
            (8, 18)
        );
    }

    /// 60 MB of them took 19 GB of memory.
    #[test]
    fn a_text_of_too_many_values_is_none() {
        let many = |count: usize| format!("[{}1]", "[],".repeat(count));
        assert!(parse_bounded_json(many(1000).as_bytes()).is_some());
        assert_eq!(parse_bounded_json(many(VALUES / 2).as_bytes()), None);
        // Each of them takes 600 bytes.
        assert_eq!(
            parse_bounded_json(format!("[{}1]", r#"{"a":1},"#.repeat(VALUES / 8)).as_bytes()),
            None
        );
        assert_eq!(
            parse_bounded_json("[".repeat(1000).as_bytes()),
            None,
            "nor one that is too deep"
        );
    }
}
