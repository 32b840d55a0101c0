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
    let list = |key: &str| {
        schema
            .get(key)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    };
    let words: Vec<String> = list("enum")
        .iter()
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect();
    if !words.is_empty() {
        return ContextShape::Choice(words);
    }
    if let Some(word) = schema.get("const").and_then(Value::as_str) {
        return ContextShape::Choice(vec![word.to_owned()]);
    }
    let alternatives: Vec<ContextShape> = list("anyOf")
        .iter()
        .chain(list("oneOf"))
        .filter(|one| one.get("type").and_then(Value::as_str) != Some("null"))
        .map(|one| build_shape(one, definitions, depth + 1))
        .collect();
    if !alternatives.is_empty() {
        return join_alternatives(alternatives);
    }
    build_structured_shape(schema, definitions, depth)
}

fn build_structured_shape(schema: &Value, definitions: &Value, depth: usize) -> ContextShape {
    let is = |word: &str| match schema.get("type") {
        Some(Value::String(one)) => one == word,
        Some(Value::Array(many)) => many.iter().any(|one| one == word),
        _ => false,
    };
    if is("array") {
        return ContextShape::List(Box::new(
            schema.get("items").map_or(ContextShape::Any, |items| {
                build_shape(items, definitions, depth + 1)
            }),
        ));
    }
    if let Some(fields) = schema.get("properties").and_then(Value::as_object) {
        return ContextShape::Map(
            fields
                .iter()
                .map(|(name, field)| (name.clone(), build_shape(field, definitions, depth + 1)))
                .collect(),
        );
    }
    if is("object") {
        let value = schema
            .get("additionalProperties")
            .filter(|value| value.is_object());
        return ContextShape::Open(Box::new(value.map_or(ContextShape::Any, |value| {
            build_shape(value, definitions, depth + 1)
        })));
    }
    if ["string", "integer", "number", "boolean"]
        .iter()
        .any(|word| is(word))
    {
        ContextShape::Scalar
    } else {
        ContextShape::Any
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
