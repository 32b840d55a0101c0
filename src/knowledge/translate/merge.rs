//! Spec lines of several commands as one spec. Lists are merged entry by entry, because what
//! commands say of a host belongs into one group of nodes.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Two commands that say different things in the same place.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TranslationConflict {
    /// The place: `fabric.mtu`.
    pub path: String,
    /// What an earlier command said.
    pub earlier: Value,
    /// What a later one says; it stands.
    pub later: Value,
}

/// Puts `more` into `spec`; what it says stands over what was there.
pub(super) fn merge_spec_value(
    spec: &mut Value,
    more: &Value,
    path: &str,
    conflicts: &mut Vec<TranslationConflict>,
) {
    match (spec, more) {
        (Value::Object(spec), Value::Object(more)) => {
            for (key, value) in more {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                match spec.get_mut(key) {
                    Some(there) => merge_spec_value(there, value, &path, conflicts),
                    None => drop(spec.insert(key.clone(), value.clone())),
                }
            }
        }
        (Value::Array(spec), Value::Array(more)) => {
            for (at, value) in more.iter().enumerate() {
                match spec.get_mut(at) {
                    Some(there) => {
                        merge_spec_value(there, value, &format!("{path}[{at}]"), conflicts)
                    }
                    None => spec.push(value.clone()),
                }
            }
        }
        (spec, more) if spec == more => {}
        (spec, more) => {
            conflicts.push(TranslationConflict {
                path: path.to_owned(),
                earlier: spec.clone(),
                later: more.clone(),
            });
            *spec = more.clone();
        }
    }
}
