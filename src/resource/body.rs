//! The body of a wish, checked field by field: unknown names with a suggestion, types, what is missing.

use super::BodyError;
use serde_json::Value;

/// What a field may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
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

impl Shape {
    fn words(self) -> &'static str {
        match self {
            Shape::Text => "text",
            Shape::Scalar => "text or a number",
            Shape::ScalarOrNull => "text, a number or null",
            Shape::Flag => "true or false",
            Shape::Number => "a whole number",
            Shape::Texts => "a list of text",
            Shape::Map => "a map of text or numbers",
            Shape::Fields => "a map",
        }
    }

    fn fits(self, value: &Value) -> bool {
        match self {
            Shape::Text => value.is_string(),
            Shape::Scalar => is_scalar(value),
            Shape::ScalarOrNull => is_scalar(value) || value.is_null(),
            Shape::Flag => value.is_boolean(),
            Shape::Number => value.is_u64(),
            Shape::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Shape::Map => value.as_object().is_some_and(|map| map.values().all(is_scalar)),
            Shape::Fields => value.is_object(),
        }
    }
}

fn is_scalar(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

/// One field of a body.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What it may hold.
    pub shape: Shape,
    /// It must be there.
    pub required: bool,
}

/// A field that must be there.
pub const fn required(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true }
}

/// A field that may be left out.
pub const fn optional(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false }
}

/// All that is wrong with the fields of a map; `at` is the JSON pointer of the map itself, empty for the body.
pub fn check_fields(body: &Value, at: &str, fields: &[Field]) -> Vec<BodyError> {
    let Some(map) = body.as_object() else {
        return vec![error(at, "this must be a map", Some(&fields_help(fields)))];
    };
    let mut errors = Vec::new();
    for (name, value) in map {
        let pointer = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        match fields.iter().find(|field| field.name == name) {
            None => errors.push(unknown_field(&pointer, name, fields)),
            Some(field) if !field.shape.fits(value) => {
                errors.push(error(&pointer, &format!("`{name}` must be {}", field.shape.words()), None));
            }
            Some(_) => {}
        }
    }
    for field in fields.iter().filter(|field| field.required && !map.contains_key(field.name)) {
        errors.push(error(at, &format!("`{}` is missing", field.name), Some(&format!("add `{}`: {}", field.name, field.shape.words()))));
    }
    errors
}

fn unknown_field(pointer: &str, name: &str, fields: &[Field]) -> BodyError {
    let near = fields.iter().map(|f| (distance(name, f.name), f.name)).min().filter(|(d, _)| *d <= 2.max(name.len() / 3));
    let help = near.map_or_else(|| fields_help(fields), |(_, near)| format!("did you mean `{near}`?"));
    error(pointer, &format!("unknown field `{name}`"), Some(&help))
}

fn fields_help(fields: &[Field]) -> String {
    let names: Vec<_> = fields.iter().map(|f| format!("`{}`", f.name)).collect();
    format!("the fields are {}", names.join(", "))
}

/// One error.
pub fn error(pointer: &str, message: &str, help: Option<&str>) -> BodyError {
    BodyError { pointer: pointer.to_owned(), message: message.to_owned(), help: help.map(str::to_owned) }
}

/// An error at `pointer` unless the condition holds.
pub fn demand(errors: &mut Vec<BodyError>, holds: bool, pointer: &str, message: &str, help: &str) {
    if !holds {
        errors.push(error(pointer, message, Some(help)));
    }
}

/// An absolute path without `..`, control characters or a trailing slash.
pub fn is_clean_path(path: &str) -> bool {
    path.starts_with('/')
        && path.len() > 1
        && !path.ends_with('/')
        && !path.chars().any(char::is_control)
        && path.split('/').skip(1).all(|part| !part.is_empty() && part != "." && part != "..")
}

/// A name of letters, digits and these further characters, not beginning with `-`.
pub fn is_word(text: &str, further: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && text.chars().all(|c| c.is_ascii_alphanumeric() || further.contains(c))
}

/// A scalar field as text.
pub fn scalar(body: &Value, field: &str) -> Option<String> {
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

/// A boolean field.
pub fn flag(body: &Value, field: &str) -> Option<bool> {
    body.get(field).and_then(Value::as_bool)
}

/// A list of text.
pub fn texts(body: &Value, field: &str) -> Vec<String> {
    let items = body.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The edit distance of two names (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
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
        let fields = [required("path", Shape::Text), optional("mode", Shape::Text)];
        let errors = check_fields(&json!({ "mod": "0644", "mode": 644 }), "", &fields);
        let found: Vec<_> = errors.iter().map(|e| (e.pointer.as_str(), e.message.as_str(), e.help.as_deref())).collect();
        assert_eq!(
            found,
            [
                ("/mod", "unknown field `mod`", Some("did you mean `mode`?")),
                ("/mode", "`mode` must be text", None),
                ("", "`path` is missing", Some("add `path`: text")),
            ]
        );
        assert_eq!(check_fields(&json!([]), "", &fields)[0].help.as_deref(), Some("the fields are `path`, `mode`"));
    }

    #[test]
    fn paths_that_could_leave_their_place_are_not_clean() {
        assert!(is_clean_path("/etc/a b.conf"));
        for path in ["etc/a", "/", "/etc/", "/etc/../a", "/etc//a", "/a\nb", ""] {
            assert!(!is_clean_path(path), "{path:?}");
        }
    }
}
