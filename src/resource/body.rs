//! The body of a wish, checked field by field: unknown names with a suggestion, types, what is
//! missing.

use super::BodyError;
use railwright_base::json_pointer::escape_step;
use serde_json::Value;

/// What a field may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldShape {
    /// Text.
    Text,
    /// Text, a number or a boolean; kept as text.
    Scalar,
    /// A scalar, or null.
    ScalarOrNull,
    /// `true` or `false`.
    Flag,
    /// A whole number that is not negative.
    Number,
    /// A list of text.
    Texts,
    /// A map whose values are scalars.
    Map,
    /// A map with fields of its own, which the kind checks.
    Fields,
}

impl FieldShape {
    fn words(self) -> &'static str {
        match self {
            FieldShape::Text => "text",
            FieldShape::Scalar => "text or a number",
            FieldShape::ScalarOrNull => "text, a number or null",
            FieldShape::Flag => "true or false",
            FieldShape::Number => "a whole number",
            FieldShape::Texts => "a list of text",
            FieldShape::Map => "a map of text or numbers",
            FieldShape::Fields => "a map",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            FieldShape::Text => value.is_string(),
            FieldShape::Scalar => is_scalar(value),
            FieldShape::ScalarOrNull => is_scalar(value) || value.is_null(),
            FieldShape::Flag => value.is_boolean(),
            FieldShape::Number => value.is_u64(),
            FieldShape::Texts => value
                .as_array()
                .is_some_and(|items| items.iter().all(Value::is_string)),
            FieldShape::Map => value
                .as_object()
                .is_some_and(|map| map.values().all(is_scalar)),
            FieldShape::Fields => value.is_object(),
        }
    }
}

fn is_scalar(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

/// One field of a body.
#[derive(Debug, Clone, Copy)]
pub struct BodyField {
    /// Its name.
    pub name: &'static str,
    /// What it may hold.
    pub shape: FieldShape,
    /// It must be there.
    pub required: bool,
}

/// A field that must be there.
pub const fn new_required_field(name: &'static str, shape: FieldShape) -> BodyField {
    BodyField {
        name,
        shape,
        required: true,
    }
}

/// A field that may be left out.
pub const fn new_optional_field(name: &'static str, shape: FieldShape) -> BodyField {
    BodyField {
        name,
        shape,
        required: false,
    }
}

/// All that is wrong with the fields of a map; `at` is the JSON pointer of the map itself, empty
/// for the body.
pub fn check_fields(body: &Value, at: &str, fields: &[BodyField]) -> Vec<BodyError> {
    let Some(map) = body.as_object() else {
        return vec![new_body_error(
            at,
            "this must be a map",
            Some(&fields_help(fields)),
        )];
    };
    let mut errors = Vec::new();
    for (name, value) in map {
        let pointer = format!("{at}/{}", escape_step(name));
        match fields.iter().find(|field| field.name == name) {
            None => errors.push(unknown_field(&pointer, name, fields)),
            Some(field) if !field.shape.fits(value) => {
                errors.push(new_body_error(
                    &pointer,
                    &format!("`{name}` must be {}", field.shape.words()),
                    None,
                ));
            }
            Some(_) => {}
        }
    }
    for field in fields
        .iter()
        .filter(|field| field.required && !map.contains_key(field.name))
    {
        errors.push(new_body_error(
            at,
            &format!("`{}` is missing", field.name),
            Some(&format!("add `{}`: {}", field.name, field.shape.words())),
        ));
    }
    errors
}

fn unknown_field(pointer: &str, name: &str, fields: &[BodyField]) -> BodyError {
    let near = fields
        .iter()
        .map(|f| (compute_edit_distance(name, f.name), f.name))
        .min()
        .filter(|(d, _)| *d <= 2.max(name.len() / 3));
    let help = near.map_or_else(
        || fields_help(fields),
        |(_, near)| format!("did you mean `{near}`?"),
    );
    new_body_error(pointer, &format!("unknown field `{name}`"), Some(&help))
}

fn fields_help(fields: &[BodyField]) -> String {
    let names: Vec<_> = fields.iter().map(|f| format!("`{}`", f.name)).collect();
    format!("the fields are {}", names.join(", "))
}

/// One error.
pub fn new_body_error(pointer: &str, message: &str, help: Option<&str>) -> BodyError {
    BodyError {
        pointer: pointer.to_owned(),
        message: message.to_owned(),
        help: help.map(str::to_owned),
    }
}

/// An error at `pointer` unless the condition holds.
pub fn require_condition(
    errors: &mut Vec<BodyError>,
    holds: bool,
    pointer: &str,
    message: &str,
    help: &str,
) {
    if !holds {
        errors.push(new_body_error(pointer, message, Some(help)));
    }
}

/// An absolute path without `..`, control characters or a trailing slash.
pub fn is_clean_path(path: &str) -> bool {
    path.starts_with('/')
        && path.len() > 1
        && !path.ends_with('/')
        && !path.chars().any(char::is_control)
        && path
            .split('/')
            .skip(1)
            .all(|part| !part.is_empty() && part != "." && part != "..")
}

/// A name of letters, digits and these further characters, not beginning with `-`.
pub fn is_word(text: &str, further: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || further.contains(c))
}

/// A scalar field as text.
pub fn read_scalar_field(body: &Value, field: &str) -> Option<String> {
    scalar_text(body.get(field)?)
}

/// A scalar value as text.
pub fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// A text field, where it is a text.
pub fn read_text_field<'v>(body: &'v Value, field: &str) -> Option<&'v str> {
    body.get(field).and_then(Value::as_str)
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

/// The edit distance of two names (Levenshtein).
fn compute_edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_what_is_wrong_and_what_would_be_right() {
        let fields = [
            new_required_field("path", FieldShape::Text),
            new_optional_field("mode", FieldShape::Text),
        ];
        let errors = check_fields(&json!({ "mod": "0644", "mode": 644 }), "", &fields);
        let found: Vec<_> = errors
            .iter()
            .map(|e| (e.pointer.as_str(), e.message.as_str(), e.help.as_deref()))
            .collect();
        assert_eq!(
            found,
            [
                ("/mod", "unknown field `mod`", Some("did you mean `mode`?")),
                ("/mode", "`mode` must be text", None),
                ("", "`path` is missing", Some("add `path`: text")),
            ]
        );
        assert_eq!(
            check_fields(&json!([]), "", &fields)[0].help.as_deref(),
            Some("the fields are `path`, `mode`")
        );
    }

    #[test]
    fn paths_that_could_leave_their_place_are_not_clean() {
        assert!(is_clean_path("/etc/a b.conf"));
        for path in ["etc/a", "/", "/etc/", "/etc/../a", "/etc//a", "/a\nb", ""] {
            assert!(!is_clean_path(path), "{path:?}");
        }
    }
}
