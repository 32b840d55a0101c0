//! The shape of what a template may name: maps with known fields, lists, choices. Made from the
//! JSON Schema of the context's own type, so that it cannot fall behind it.

use serde_json::Value;
use std::collections::BTreeMap;

/// What may stand at a path of the context.
#[derive(Debug, Clone, PartialEq)]
pub enum ContextShape {
    /// Anything: nothing below it is checked.
    Any,
    /// Text, number or boolean.
    Scalar,
    /// One of these words.
    Choice(Vec<String>),
    /// A list of such elements.
    List(Box<ContextShape>),
    /// A map with exactly these fields.
    Map(BTreeMap<String, ContextShape>),
    /// A map whose keys are the user's own.
    Open(Box<ContextShape>),
}

/// A name that the shape does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoSuchName {
    /// Which segment of the path it is.
    pub segment: usize,
    /// The names that are there instead; empty when nothing can be below.
    pub known: Vec<String>,
}

/// The segment that stands for every element of a list or every value of an open map.
pub const EACH: &str = "*";

impl ContextShape {
    /// The shape of a schema document with `$defs`.
    pub fn of_schema(schema: &Value) -> ContextShape {
        let definitions = schema.get("$defs").cloned().unwrap_or(Value::Null);
        build_shape(schema, &definitions, 0)
    }

    /// A map of these fields.
    pub fn map<'a>(fields: impl IntoIterator<Item = (&'a str, ContextShape)>) -> ContextShape {
        ContextShape::Map(
            fields
                .into_iter()
                .map(|(name, shape)| (name.to_owned(), shape))
                .collect(),
        )
    }

    /// The shape at a path below this one.
    pub fn at(&self, path: &[String]) -> Result<&ContextShape, NoSuchName> {
        let mut shape = self;
        for (segment, name) in path.iter().enumerate() {
            shape = match shape {
                ContextShape::Any => return Ok(&ContextShape::Any),
                ContextShape::Map(fields) => fields.get(name).ok_or_else(|| NoSuchName {
                    segment,
                    known: fields.keys().cloned().collect(),
                })?,
                ContextShape::Open(value) => value,
                ContextShape::List(element) if name == EACH => element,
                ContextShape::List(_) | ContextShape::Scalar | ContextShape::Choice(_) => {
                    return Err(NoSuchName {
                        segment,
                        known: Vec::new(),
                    });
                }
            };
        }
        Ok(shape)
    }
}

fn build_shape(schema: &Value, definitions: &Value, depth: usize) -> ContextShape {
    // Types of ours do not recurse; the limit keeps a strange schema from doing so.
    if depth > 16 {
        return ContextShape::Any;
    }
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or_default();
        return definitions.get(name).map_or(ContextShape::Any, |found| {
            build_shape(found, definitions, depth + 1)
        });
    }
    let mut words: Vec<String> = Vec::new();
    for word in list_schema_items(schema, "enum") {
        words.extend(word.as_str().map(str::to_owned));
    }
    if !words.is_empty() {
        return ContextShape::Choice(words);
    }
    if let Some(word) = schema.get("const").and_then(Value::as_str) {
        return ContextShape::Choice(vec![word.to_owned()]);
    }
    let any_of = list_schema_items(schema, "anyOf");
    let mut alternatives: Vec<ContextShape> = Vec::new();
    for alternative in any_of.iter().chain(list_schema_items(schema, "oneOf")) {
        if alternative.get("type").and_then(Value::as_str) != Some("null") {
            alternatives.push(build_shape(alternative, definitions, depth + 1));
        }
    }
    if !alternatives.is_empty() {
        return join_alternatives(alternatives);
    }
    build_structured_shape(schema, definitions, depth)
}

/// The list at a key of a schema; empty where there is none.
fn list_schema_items<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    match schema.get(key) {
        Some(Value::Array(items)) => items,
        _ => &[],
    }
}

fn build_structured_shape(schema: &Value, definitions: &Value, depth: usize) -> ContextShape {
    if has_type(schema, "array") {
        let element = match schema.get("items") {
            Some(items) => build_shape(items, definitions, depth + 1),
            None => ContextShape::Any,
        };
        return ContextShape::List(Box::new(element));
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let mut fields = BTreeMap::new();
        for (name, field) in properties {
            fields.insert(name.clone(), build_shape(field, definitions, depth + 1));
        }
        return ContextShape::Map(fields);
    }
    if has_type(schema, "object") {
        let value = match schema.get("additionalProperties") {
            Some(value) if value.is_object() => build_shape(value, definitions, depth + 1),
            _ => ContextShape::Any,
        };
        return ContextShape::Open(Box::new(value));
    }
    let mut scalars = ["string", "integer", "number", "boolean"].into_iter();
    if scalars.any(|word| has_type(schema, word)) {
        ContextShape::Scalar
    } else {
        ContextShape::Any
    }
}

/// Whether a schema names this type, alone or among others.
fn has_type(schema: &Value, word: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == word,
        Some(Value::Array(names)) => names.iter().any(|name| name == word),
        _ => false,
    }
}

fn join_alternatives(mut alternatives: Vec<ContextShape>) -> ContextShape {
    if alternatives.len() == 1 {
        return alternatives.remove(0);
    }
    let mut words = Vec::new();
    for alternative in alternatives {
        match alternative {
            ContextShape::Choice(more) => words.extend(more),
            _ => return ContextShape::Any,
        }
    }
    ContextShape::Choice(words)
}
