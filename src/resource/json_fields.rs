//! Fields of JSON that others wrote: an API server, a program, a record.

use serde_json::Value;

/// A text field, where it is a text.
pub fn read_text_field<'v>(body: &'v Value, field: &str) -> Option<&'v str> {
    body.get(field).and_then(Value::as_str)
}

/// A boolean field.
pub fn read_flag_field(body: &Value, field: &str) -> Option<bool> {
    body.get(field).and_then(Value::as_bool)
}

/// A list of text.
pub fn read_text_list_field(body: &Value, field: &str) -> Vec<String> {
    let items = body
        .get(field)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The items of a list at a JSON pointer; none where no list is there.
pub fn list_items_at<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    match value.pointer(pointer) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

/// The text at a JSON pointer, where it is a text.
pub fn read_text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer).and_then(Value::as_str)
}
