//! The bodies of resources: the fields of each kind as a type, and everything wrong with one
//! reported at its place.

use super::BodyError;
use super::names::is_netdev;
use railwright_base::json_pointer::escape_step;
use railwright_base::suggest::find_nearest_word;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;

type TypeError = serde_path_to_error::Error<serde_json::Error>;

/// The fields of a kind as a type. Its derived schema says what they are called, and the comment on
/// a field what helps where it holds something else.
pub trait Body: DeserializeOwned + JsonSchema + Default {
    /// Notes what is wrong beyond the names and types of the fields.
    fn find_errors(&self, errors: &mut BodyErrors);
}

/// The type of a kind's bodies, for whoever knows the kind by its name alone.
#[derive(Debug, Clone, Copy)]
pub struct BodyType {
    check: fn(&Value) -> Vec<BodyError>,
}

impl BodyType {
    /// Bodies of this type.
    pub fn of<B: Body>() -> Self {
        BodyType {
            check: check_body::<B>,
        }
    }

    /// All that is wrong with a body.
    pub fn check(self, body: &Value) -> Vec<BodyError> {
        (self.check)(body)
    }
}

/// Any body: of made-up kinds.
impl Body for Value {
    fn find_errors(&self, _: &mut BodyErrors) {}
}

/// All that is wrong with a body. Names and types of fields come first: nothing else is reported
/// before they are right.
pub fn check_body<B: Body>(body: &Value) -> Vec<BodyError> {
    let mut errors = BodyErrors::default();
    match serde_path_to_error::deserialize::<_, B>(body) {
        Ok(body) => body.find_errors(&mut errors),
        Err(error) => BodySchema::of::<B>().find_errors(body, &error, &mut errors),
    }
    errors.0
}

/// The body of a resource that can be read; one without fields where it cannot be
/// ([`super::readability::is_readable`]).
pub fn read_body<B: Body>(body: &Value) -> B {
    B::deserialize(body).unwrap_or_default()
}

/// What is wrong with one body, in the order in which it was found.
#[derive(Debug, Default)]
pub struct BodyErrors(Vec<BodyError>);

impl BodyErrors {
    /// Notes an error at a JSON pointer.
    pub fn add(&mut self, pointer: &str, message: impl Into<String>, help: &str) {
        self.0.push(BodyError {
            pointer: pointer.to_owned(),
            message: message.into(),
            help: (!help.is_empty()).then(|| help.to_owned()),
        });
    }

    /// Notes an error unless the condition holds.
    pub fn require(&mut self, holds: bool, pointer: &str, message: &str, help: &str) {
        if !holds {
            self.add(pointer, message, help);
        }
    }

    /// A field that names a netdev.
    pub fn check_netdev(&mut self, pointer: &str, name: &str) {
        if !is_netdev(name) {
            self.add(
                pointer,
                format!("`{name}` cannot be the name of a netdev"),
                "1 to 15 of letters, digits, `.`, `_`, `-`, `@`",
            );
        }
    }

    /// A text that must not be empty.
    pub fn check_not_empty(&mut self, field: &str, text: &str) {
        if text.is_empty() {
            self.add(
                &format!("/{field}"),
                format!("`{field}` must be a text that is not empty"),
                "",
            );
        }
    }

    /// A number within bounds, where there is one.
    pub fn check_range<N: Into<u64>>(
        &mut self,
        field: &str,
        number: Option<N>,
        bounds: std::ops::RangeInclusive<u64>,
    ) {
        if number.is_some_and(|number| !bounds.contains(&number.into())) {
            let (least, most) = (bounds.start(), bounds.end());
            self.add(
                &format!("/{field}"),
                format!("`{field}` must be a whole number from {least} to {most}"),
                "",
            );
        }
    }

    /// `known_after`: another resource of the same target, as `kind/name`.
    pub fn check_known_after(&mut self, known_after: Option<&str>) {
        let Some(text) = known_after else { return };
        let names = text
            .split_once('/')
            .is_some_and(|(kind, name)| !kind.is_empty() && !name.is_empty());
        if !names {
            self.add(
                "/known_after",
                format!("`{text}` names no resource"),
                "write kind/name, such as kernel_module/mlx5_ib",
            );
        }
    }
}

/// Text, a number or a boolean; kept as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scalar(pub String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let text = scalar_text(&value);
        text.map(Scalar)
            .ok_or_else(|| serde::de::Error::custom("text, a number or a boolean"))
    }
}

/// A scalar value as text.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

impl JsonSchema for Scalar {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

/// Whether something is to be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It is.
    #[default]
    Present,
    /// It is not.
    Absent,
}

/// The derived schema of a body.
struct BodySchema(Value);

impl BodySchema {
    fn of<B: JsonSchema>() -> Self {
        BodySchema(schemars::schema_for!(B).to_value())
    }

    /// The fields, with what each may hold.
    fn fields(&self) -> Map<String, Value> {
        let fields = self.0.get("properties").and_then(Value::as_object);
        fields.cloned().unwrap_or_default()
    }

    /// Unknown fields and missing ones; where there is none, the one that is of another type.
    fn find_errors(&self, body: &Value, error: &TypeError, errors: &mut BodyErrors) {
        let fields = self.fields();
        let Some(map) = body.as_object() else {
            return errors.add("", "the body must be a map", &list_fields(&fields));
        };
        for name in map.keys().filter(|name| !fields.contains_key(*name)) {
            let pointer = format!("/{}", escape_step(name));
            add_unknown_field(&pointer, name, &fields, errors);
        }
        let required = self.0.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if map.get(name).is_none_or(Value::is_null) {
                let help = self.describe(&fields[name]);
                errors.add("", format!("`{name}` is missing"), &help);
            }
        }
        if errors.0.is_empty() {
            self.add_type_error(body, error, errors);
        }
    }

    fn add_type_error(&self, body: &Value, error: &TypeError, errors: &mut BodyErrors) {
        let (mut pointer, mut at, mut help) = (String::new(), self.0.clone(), String::new());
        for segment in error.path().iter() {
            let (step, within) = match segment {
                Segment::Map { key } => (escape_step(key).to_string(), self.field_of(&at, key)),
                Segment::Seq { index } => (index.to_string(), self.resolve(&at)["items"].clone()),
                _ => continue,
            };
            pointer = format!("{pointer}/{step}");
            if within == false
                && let Some(fields) = self.resolve(&at)["properties"].as_object()
            {
                return add_unknown_field(&pointer, &step, fields, errors);
            }
            at = within;
            help = read_description(&at).unwrap_or(help);
        }
        let name = pointer.trim_start_matches('/');
        let message = match body.pointer(&pointer) {
            Some(_) if at.is_null() => error.inner().to_string(),
            Some(value @ Value::Number(_)) if self.takes_type_of(&at, value) => {
                format!("`{name}`: {value} is too large")
            }
            Some(value) if self.takes_type_of(&at, value) => format!("`{name}`: {}", error.inner()),
            _ => format!("`{name}` must be {}", self.name_type(&at)),
        };
        errors.add(&pointer, message, &help);
    }

    fn field_of(&self, schema: &Value, key: &str) -> Value {
        let schema = self.resolve(schema);
        let field = schema.get("properties").and_then(|all| all.get(key));
        let any = schema.get("additionalProperties");
        field.or(any).cloned().unwrap_or_default()
    }

    /// What stands behind a reference, or behind the choice between it and nothing.
    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        self.list_choices(schema).first().copied().unwrap_or(schema)
    }

    /// What a field may be, but for nothing: the schemas that stand behind its references.
    fn list_choices<'s>(&'s self, schema: &'s Value) -> Vec<&'s Value> {
        let choices = schema.get("anyOf").or(schema.get("oneOf"));
        if let Some(choices) = choices.and_then(Value::as_array) {
            let all = choices.iter().flat_map(|choice| self.list_choices(choice));
            return all.filter(|choice| choice["type"] != "null").collect();
        }
        let name = schema.get("$ref").and_then(Value::as_str);
        match name.and_then(|name| self.0.pointer(name.trim_start_matches('#'))) {
            Some(defined) => self.list_choices(defined),
            None => vec![schema],
        }
    }

    /// What a field has to hold and what it says, for one who left it out.
    fn describe(&self, field: &Value) -> String {
        match read_description(field) {
            Some(what) => format!("{what} ({})", self.name_type(field)),
            None => self.name_type(field),
        }
    }

    /// A type in words: `text`, `a list of text`, `one of present, absent`.
    fn name_type(&self, schema: &Value) -> String {
        let choices = self.list_choices(schema);
        let words: Vec<_> = choices
            .iter()
            .flat_map(|choice| list_words(choice))
            .collect();
        if !words.is_empty() {
            return format!("one of {}", words.join(", "));
        }
        let names: Vec<_> = choices
            .iter()
            .map(|choice| self.name_plain_type(choice))
            .collect();
        names.join(" or ")
    }

    fn name_plain_type(&self, schema: &Value) -> String {
        let types = list_types(schema);
        let first = types.iter().find(|name| **name != "null");
        match first.copied() {
            Some("string") if types.contains(&"number") => "text or a number".to_owned(),
            Some("string") => "text".to_owned(),
            Some("boolean") => "true or false".to_owned(),
            Some("integer") => "a whole number".to_owned(),
            Some("number") => "a number".to_owned(),
            Some("array") => format!("a list of {}", self.name_type(&schema["items"])),
            Some("object") => "a map".to_owned(),
            _ => "any value".to_owned(),
        }
    }

    /// True where a value of this type may be right, so that it is the value that is wrong.
    fn takes_type_of(&self, schema: &Value, value: &Value) -> bool {
        let own = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_u64() => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let choices = self.list_choices(schema);
        choices
            .iter()
            .any(|choice| list_words(choice).is_empty() && list_types(choice).contains(&own))
    }
}

fn add_unknown_field(
    pointer: &str,
    name: &str,
    known: &Map<String, Value>,
    errors: &mut BodyErrors,
) {
    let help = match find_nearest_word(name, known.keys().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => list_fields(known),
    };
    errors.add(pointer, format!("unknown field `{name}`"), &help);
}

fn list_fields(known: &Map<String, Value>) -> String {
    let names: Vec<_> = known.keys().map(|name| format!("`{name}`")).collect();
    format!("the fields are {}", names.join(", "))
}

/// The comment on a field, as one line.
fn read_description(schema: &Value) -> Option<String> {
    let comment = schema.get("description").and_then(Value::as_str);
    comment.map(|comment| comment.replace('\n', " "))
}

fn list_types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => Vec::from_iter(one.as_str()),
    }
}

/// The words that a field may hold, where it holds one of some.
fn list_words(schema: &Value) -> Vec<&str> {
    let words = schema.get("enum").and_then(Value::as_array);
    let word = schema.get("const");
    words
        .into_iter()
        .flatten()
        .chain(word)
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Debug, Default, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only checked")]
    struct TestBody {
        path: String,
        /// Octal digits in quotes.
        mode: Option<String>,
        limit: Option<u32>,
        #[serde(default)]
        state: Presence,
        #[serde(default)]
        values: BTreeMap<String, Scalar>,
        #[serde(default)]
        nodes: Vec<String>,
        probe: Option<TestProbe>,
    }

    #[derive(Debug, Default, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only checked")]
    struct TestProbe {
        run: String,
    }

    impl Body for TestBody {
        fn find_errors(&self, errors: &mut BodyErrors) {
            errors.require(self.path != "/", "/path", "this is the root", "");
            errors.check_range("limit", self.limit, 1..=9);
        }
    }

    fn say(body: Value) -> Vec<String> {
        let errors = check_body::<TestBody>(&body).into_iter();
        let all = errors.map(|e| {
            let help = e.help.map(|help| format!(" ({help})"));
            format!("{}: {}{}", e.pointer, e.message, help.unwrap_or_default())
        });
        all.collect()
    }

    #[test]
    fn each_error_stands_at_its_place_and_says_what_would_be_right() {
        let with = |field: &str, value: Value| {
            let mut body = json!({ "path": "/etc/a" });
            body[field] = value;
            say(body)
        };
        let fields = "the fields are `limit`, `mode`, `nodes`, `path`, `probe`, `state`, `values`";
        assert_eq!(
            say(json!([])),
            [format!(": the body must be a map ({fields})")]
        );
        assert_eq!(
            say(json!({ "colour": 1, "mod": "0644", "mode": 644 })),
            [
                format!("/colour: unknown field `colour` ({fields})"),
                "/mod: unknown field `mod` (did you mean `mode`?)".to_owned(),
                ": `path` is missing (text)".to_owned(),
            ]
        );
        for (field, value, said) in [
            (
                "mode",
                json!(644),
                "/mode: `mode` must be text (Octal digits in quotes.)",
            ),
            ("limit", json!(-1), "/limit: `limit` must be a whole number"),
            (
                "limit",
                json!(5_000_000_000_u64),
                "/limit: `limit`: 5000000000 is too large",
            ),
            (
                "limit",
                json!(10),
                "/limit: `limit` must be a whole number from 1 to 9",
            ),
            (
                "state",
                json!("gone"),
                "/state: `state` must be one of present, absent",
            ),
            (
                "values",
                json!({ "a/b": [] }),
                "/values/a~1b: `values/a~1b` must be text or a number",
            ),
            ("nodes", json!(["a", 1]), "/nodes/1: `nodes/1` must be text"),
            (
                "nodes",
                json!("a"),
                "/nodes: `nodes` must be a list of text",
            ),
            (
                "probe",
                json!({ "run": "x", "rum": 1 }),
                "/probe/rum: unknown field `rum` (did you mean `run`?)",
            ),
            ("probe", json!({}), "/probe: `probe`: missing field `run`"),
            ("path", json!("/"), "/path: this is the root"),
        ] {
            assert_eq!(with(field, value), [said], "{field}");
        }
        assert!(with("mode", Value::Null).is_empty());
    }
}
