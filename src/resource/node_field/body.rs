//! A desired label or taint, as a module's manifest has it.

use super::field::{Effect, NodeField};
use crate::body::{Body, BodyErrors, read_body};
use crate::kubernetes_object::labels::{KEY_HELP, OF_THE_KUBELET, VALUE_HELP, is_key, is_value};
use crate::kubernetes_object::manifest::is_subdomain;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Which of the two is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeFieldKind {
    Label,
    Taint,
}

/// A label of nodes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeLabelBody {
    label: String,
    /// A text, numbers and `true` in quotes: "true".
    value: Option<String>,
    /// The text of each node, such as { gpu-001: "a", gpu-002: "b" }; numbers and `true` in quotes.
    values: Option<BTreeMap<String, String>>,
    /// Names of nodes, such as [gpu-001, gpu-002].
    nodes: Option<Vec<String>>,
    #[serde(default)]
    adopt: bool,
    adopt_with: Option<String>,
    cluster: Option<String>,
}

/// A taint of nodes.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeTaintBody {
    key: String,
    effect: Effect,
    /// A text, numbers and `true` in quotes: "true".
    value: Option<String>,
    /// The text of each node, such as { gpu-001: "a", gpu-002: "b" }; numbers and `true` in quotes.
    values: Option<BTreeMap<String, String>>,
    /// Names of nodes, such as [gpu-001, gpu-002].
    nodes: Option<Vec<String>>,
    #[serde(default)]
    adopt: bool,
    adopt_with: Option<String>,
    cluster: Option<String>,
}

impl Body for NodeLabelBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        check_key(errors, "label", "label", &self.label);
        if OF_THE_KUBELET.contains(&self.label.as_str()) {
            let key = Value::from(self.label.as_str());
            let message =
                format!("the label {key} is the kubelet's own: each sets it anew when it starts");
            errors.add("/label", message, "choose a key of your own");
        }
        check_adopt_with(errors, self.adopt_with.as_deref());
        let values = self.combine_values();
        check_values(errors, "label", values, self.values.is_some());
    }
}

impl Body for NodeTaintBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        check_key(errors, "taint", "key", &self.key);
        check_adopt_with(errors, self.adopt_with.as_deref());
        let values = self.combine_values();
        check_values(errors, "taint", values, self.values.is_some());
    }
}

impl NodeLabelBody {
    fn combine_values(&self) -> Option<BTreeMap<String, String>> {
        combine_values(
            self.values.as_ref(),
            self.nodes.as_ref(),
            self.value.as_deref(),
        )
    }
}

impl NodeTaintBody {
    /// A taint needs no value.
    fn combine_values(&self) -> Option<BTreeMap<String, String>> {
        let value = self
            .value
            .as_deref()
            .or(self.values.is_none().then_some(""));
        combine_values(self.values.as_ref(), self.nodes.as_ref(), value)
    }
}

/// A resource as a read.
pub struct NodeFieldRequest {
    /// What it is about.
    pub field: NodeField,
    /// The value that each node is to have.
    pub values: BTreeMap<String, String>,
    /// Taken over, whoever set it.
    pub adopts: bool,
    /// What its author writes to have it taken over: a module whose parameter says so names that.
    pub adopt_with: String,
    /// The spec's cluster, whose mark ours have.
    pub cluster: String,
}

impl NodeFieldRequest {
    /// Of a body that was checked.
    pub fn of(sort: NodeFieldKind, body: &Value) -> Self {
        let (field, values, adopts, adopt_with, cluster) = match sort {
            NodeFieldKind::Label => {
                let body = read_body::<NodeLabelBody>(body);
                let values = body.combine_values();
                let field = NodeField::Label { key: body.label };
                (field, values, body.adopt, body.adopt_with, body.cluster)
            }
            NodeFieldKind::Taint => {
                let body = read_body::<NodeTaintBody>(body);
                let values = body.combine_values();
                let (key, effect) = (body.key, body.effect);
                let field = NodeField::Taint { key, effect };
                (field, values, body.adopt, body.adopt_with, body.cluster)
            }
        };
        NodeFieldRequest {
            field,
            values: values.unwrap_or_default(),
            adopts,
            adopt_with: adopt_with.unwrap_or_else(|| "adopt: true".to_owned()),
            cluster: cluster.unwrap_or_default(),
        }
    }
}

/// `nodes` with one `value`, or `values` by node.
fn combine_values(
    values: Option<&BTreeMap<String, String>>,
    nodes: Option<&Vec<String>>,
    value: Option<&str>,
) -> Option<BTreeMap<String, String>> {
    match (values, nodes, value) {
        (Some(values), None, None) => Some(values.clone()),
        (None, Some(nodes), Some(value)) => {
            let nodes = nodes.iter();
            Some(nodes.map(|node| (node.clone(), value.to_owned())).collect())
        }
        _ => None,
    }
}

fn check_key(errors: &mut BodyErrors, word: &str, field: &str, key: &str) {
    let message = format!(
        "the API server takes no {word} with the key {}",
        Value::from(key)
    );
    errors.require(is_key(key), &format!("/{field}"), &message, KEY_HELP);
}

fn check_adopt_with(errors: &mut BodyErrors, adopt_with: Option<&str>) {
    if let Some(adopt_with) = adopt_with {
        errors.check_not_empty("adopt_with", adopt_with);
    }
}

/// Checks the first value and the first node that the API server would not take.
fn check_values(
    errors: &mut BodyErrors,
    word: &str,
    values: Option<BTreeMap<String, String>>,
    is_by_node: bool,
) {
    let Some(values) = values else {
        let help = "{ nodes: [gpu-001], value: \"true\" }, or { values: \
                    { gpu-001: \"a\", gpu-002: \"b\" } }; numbers and `true` in quotes";
        return errors.add("", "which nodes have which value is not said", help);
    };
    if values.is_empty() {
        return errors.add("", "no node is named", "leave the resource out: `when`");
    }
    let (of_value, of_node) = match is_by_node {
        true => ("/values", "/values"),
        false => ("/value", "/nodes"),
    };
    if let Some(value) = values.values().find(|value| !is_value(value)) {
        let value = Value::from(value.as_str());
        let message = format!("the API server takes no {word} with the value {value}");
        errors.add(of_value, message, VALUE_HELP);
    }
    if let Some(node) = values.keys().find(|node| !is_subdomain(node)) {
        let message = format!("no node can be named {}", Value::from(node.as_str()));
        errors.add(of_node, message, "");
    }
}
