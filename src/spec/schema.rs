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

/// One JSON document with a line break at its end.
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(Spec);
    schema.insert("$id".to_owned(), SCHEMA_ID.into());
    schema.insert("title".to_owned(), "railwright cluster spec".into());
    schema.insert("version".to_owned(), env!("CARGO_PKG_VERSION").into());
    // A spec is a folder: each file holds some of the keys, so none is required of a single file.
    schema.remove("required");
    let mut text = serde_json::to_string_pretty(&schema).expect("a JSON value serialises without fail");
    text.push('\n');
    text
}
