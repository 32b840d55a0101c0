//! The `+` and `-` lines of a text that changes.

use railwright_base::text::sanitize_text;
use railwright_resource::Reading;
use serde_json::Value;

/// A text change as a unified difference, every line cleaned and indented.
pub(crate) fn render_text_difference(
    actual: &Reading,
    desired: &Reading,
    indent: &str,
) -> Option<String> {
    let (old, new) = (read_as_text(actual)?, read_as_text(desired)?);
    if !old.contains('\n') && !new.contains('\n') {
        return None;
    }
    let diff = similar::TextDiff::from_lines(&old, &new);
    let mut out = String::new();
    for line in diff.unified_diff().context_radius(2).to_string().lines() {
        out.push_str(indent);
        out.push_str(&sanitize_text(line));
        out.push('\n');
    }
    Some(out)
}

/// How many lines were added, and how many removed.
pub(crate) fn count_changed_lines(old: &str, new: &str) -> (usize, usize) {
    let diff = similar::TextDiff::from_lines(old, new);
    let (mut added, mut removed) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            similar::ChangeTag::Insert => added += 1,
            similar::ChangeTag::Delete => removed += 1,
            similar::ChangeTag::Equal => {}
        }
    }
    (added, removed)
}

/// The text of a reading, empty where nothing is there; nothing where it is no text.
pub(crate) fn read_as_text(reading: &Reading) -> Option<String> {
    match reading {
        Reading::Is(Value::String(text)) => Some(text.clone()),
        Reading::Absent => Some(String::new()),
        _ => None,
    }
}
