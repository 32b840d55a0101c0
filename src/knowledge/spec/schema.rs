//! The JSON Schema of the spec, for editors.

use super::model::Spec;

/// The name under which editors know the schema.
pub const SCHEMA_ID: &str = "urn:railwright:spec";

/// `max_unavailable`: a count, or a share of all hosts.
pub(super) fn count_or_percent(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "oneOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": "^(100|[1-9]?[0-9])%$" },
        ]
    })
}

/// `batches`: a list of them.
pub(super) fn counts_or_percents(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "array", "items": count_or_percent(generator) })
}

/// One JSON document with a line break at its end.
pub fn render_spec_schema() -> String {
    let mut schema = schemars::schema_for!(Spec);
    // A spec is a folder: each file holds some of the keys, so none is required of a single file.
    schema.remove("required");
    render_named_schema(schema, SCHEMA_ID, "railwright cluster spec")
}

/// A schema with its name, title and the version of this program, as one JSON document with a line
/// break at its end.
pub fn render_named_schema(mut schema: schemars::Schema, id: &str, title: &str) -> String {
    schema.insert("$id".to_owned(), id.into());
    schema.insert("title".to_owned(), title.into());
    schema.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    let mut text =
        serde_json::to_string_pretty(&schema).expect("a JSON value serialises without fail");
    text.push('\n');
    text
}
