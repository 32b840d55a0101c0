//! How much is kept of what modules make, until all targets are done: counted, so that a small
//! module cannot fill the memory.

use super::compile::Module;
use super::desired::ResourceProvenance;
use crate::spec::yaml::NodeId;
use crate::template::engine::{self, Rendered};
use crate::template::template_error::too_much_kept;
use serde_json::Value;

/// Bytes that are kept of a resource or check besides its texts.
const KEPT_BYTES_MIN: usize = 512;

/// Takes the bytes of one resource or check, made by this part of the module, from the shared
/// allowance; an error when it is used up.
pub(super) fn take_bytes(module: &Module, part: NodeId, bytes: usize) -> Rendered<()> {
    if engine::take_kept_bytes(KEPT_BYTES_MIN + bytes) {
        return Ok(());
    }
    let document = module.document();
    Err(Box::new(too_much_kept((
        document.source().name().to_owned(),
        document.caret(part),
    ))))
}

/// About how many bytes a resource takes, with why it is there.
pub(super) fn size_of_resource(body: &Value, why: &ResourceProvenance) -> usize {
    let facts: usize = why
        .facts
        .iter()
        .map(|(path, value)| path.len() + size_of_json(value))
        .sum();
    let conditions: usize = why.conditions.iter().map(String::len).sum();
    size_of_json(body) + why.summary.len() + conditions + facts
}

fn size_of_json(value: &Value) -> usize {
    let below = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size_of_json).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| name.len() + size_of_json(value))
            .sum(),
        _ => 0,
    };
    size_of::<Value>() + below
}
