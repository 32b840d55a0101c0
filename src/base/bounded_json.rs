//! JSON of a target that nobody vouches for: a text of a few MiB may hold millions of values, each
//! of which takes a hundred times its bytes.

use serde_json::Value;

/// More values are not taken of one answer: a page of 500 nodes with all their images, labels and
/// managers has a third of them.
const VALUES: usize = 3_000_000;

/// A map takes as much memory as so many values, however little is in it: it has room for eleven.
const OF_MAP: usize = 6;

/// Deeper values are not taken of an answer. What is written of one (a record, the state file, a
/// journal, a plan) has up to ten levels around it, and serde_json reads 127.
const LEVELS: usize = 100;

/// The document; nothing where it is none, or holds too many values, or too deep ones.
pub fn parse_bounded_json(bytes: &[u8]) -> Option<Value> {
    let size = measure_json(bytes, OF_MAP);
    if size.values > VALUES || size.levels > LEVELS {
        None
    } else {
        serde_json::from_slice(bytes).ok()
    }
}

/// Whether values of this text lie no deeper than those of an answer.
pub fn is_shallow(text: &str) -> bool {
    measure_json(text.as_bytes(), 1).levels <= LEVELS
}

/// A record of more values is neither read nor written. What a Secret takes of a record has fewer.
pub const RECORD_VALUES: usize = 500_000;

/// Nor is one of more levels. What was taken of an answer fits; what is written of a record has up
/// to four levels more.
pub const RECORD_LEVELS: usize = 110;

/// Whether a text is short enough, in values and in levels, for a record.
pub fn is_of_record(text: &str) -> bool {
    let size = measure_json(text.as_bytes(), 1);
    size.values <= RECORD_VALUES && size.levels <= RECORD_LEVELS
}

struct JsonSize {
    /// Values and names, at most.
    values: usize,
    /// Lists and maps around one value, at most.
    levels: usize,
}

/// How many values and names a text holds: each but the first comes after one of these. A map
/// counts for as many as `of_map` says.
fn measure_json(bytes: &[u8], of_map: usize) -> JsonSize {
    let (mut count, mut in_text, mut is_escaped) = (1, false, false);
    let (mut level, mut levels) = (0usize, 0);
    for byte in bytes {
        if !in_text {
            match byte {
                b'{' | b'[' => level += 1,
                b'}' | b']' => level = level.saturating_sub(1),
                _ => {}
            }
            levels = levels.max(level);
        }
        match (in_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_text = !in_text,
            (false, b'{') => count += of_map,
            (false, b'[' | b',' | b':') => count += 1,
            _ => {}
        }
    }
    JsonSize {
        values: count,
        levels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_texts() {
        let text = br#"{"a":[1,2,{"b":"[,:{\"[,"}],"c":[[]]}"#;
        let (plain, of_maps) = (measure_json(text, 1), measure_json(text, OF_MAP));
        assert_eq!((plain.values, of_maps.values, plain.levels), (12, 22, 3));
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
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(is_shallow(&deep(LEVELS)) && !is_shallow(&deep(LEVELS + 1)));
        assert_eq!(parse_bounded_json(deep(LEVELS + 1).as_bytes()), None);
        assert!(is_of_record(&deep(RECORD_LEVELS)) && !is_of_record(&deep(RECORD_LEVELS + 1)));
    }
}
