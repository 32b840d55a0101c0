//! The wish for a label or a taint, as a module's manifest has it.

use super::field::{Effect, NodeField};
use crate::BodyError;
use crate::body::{read_text_field, read_text_list_field};
use crate::fields::Fields;
use crate::kubernetes_object::labels::{KEY_HELP, OF_THE_KUBELET, VALUE_HELP, is_key, is_value};
use crate::kubernetes_object::manifest::is_subdomain;
use serde_json::Value;
use std::collections::BTreeMap;

/// Which of the two is wished for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeFieldKind {
    Label,
    Taint,
}

impl NodeFieldKind {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            NodeFieldKind::Label => "label",
            NodeFieldKind::Taint => "taint",
        }
    }

    fn fields(self) -> &'static [&'static str] {
        match self {
            NodeFieldKind::Label => &[
                "label",
                "value",
                "values",
                "nodes",
                "adopt",
                "adopt_with",
                "cluster",
            ],
            NodeFieldKind::Taint => &[
                "key",
                "effect",
                "value",
                "values",
                "nodes",
                "adopt",
                "adopt_with",
                "cluster",
            ],
        }
    }

    fn key(self) -> &'static str {
        match self {
            NodeFieldKind::Label => "label",
            NodeFieldKind::Taint => "key",
        }
    }
}

/// A wish as a question.
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
    pub fn of(sort: NodeFieldKind, body: &Value) -> Option<Self> {
        let cluster = read_text_field(body, "cluster")
            .unwrap_or_default()
            .to_owned();
        let adopts = body.get("adopt") == Some(&Value::Bool(true));
        let adopt_with = read_text_field(body, "adopt_with")
            .unwrap_or("adopt: true")
            .to_owned();
        Some(NodeFieldRequest {
            field: parse_node_field(sort, body)?,
            values: parse_values_by_node(sort, body)?,
            adopts,
            adopt_with,
            cluster,
        })
    }
}

/// The label or the taint that a body is about.
pub fn parse_node_field(sort: NodeFieldKind, body: &Value) -> Option<NodeField> {
    let key = body.get(sort.key())?.as_str()?.to_owned();
    match sort {
        NodeFieldKind::Label => Some(NodeField::Label { key }),
        NodeFieldKind::Taint => Some(NodeField::Taint {
            key,
            effect: parse_taint_effect(body)?,
        }),
    }
}

fn parse_taint_effect(body: &Value) -> Option<Effect> {
    serde_json::from_value(body.get("effect")?.clone()).ok()
}

/// `nodes` with one `value`, or `values` by node. A taint needs none.
fn parse_values_by_node(sort: NodeFieldKind, body: &Value) -> Option<BTreeMap<String, String>> {
    match (body.get("values"), body.get("nodes"), body.get("value")) {
        (Some(Value::Object(values)), None, None) => values
            .iter()
            .map(|(node, value)| Some((node.clone(), value.as_str()?.to_owned())))
            .collect(),
        (None, Some(Value::Array(nodes)), value) if nodes.iter().all(Value::is_string) => {
            let none = if sort == NodeFieldKind::Taint {
                Some("")
            } else {
                None
            };
            let value = value.map_or(none, Value::as_str)?;
            Some(
                read_text_list_field(body, "nodes")
                    .into_iter()
                    .map(|node| (node, value.to_owned()))
                    .collect(),
            )
        }
        _ => None,
    }
}

/// A number or a truth where a text has to stand, and its field.
fn find_unquoted_value(body: &Value) -> Option<(&'static str, &Value)> {
    if let Some(value @ (Value::Number(_) | Value::Bool(_))) = body.get("value") {
        return Some(("value", value));
    }
    let mut values = body.get("values")?.as_object()?.values();
    let value = values.find(|value| value.is_number() || value.is_boolean())?;
    Some(("values", value))
}

/// All that is wrong with a body.
pub fn check_node_field_body(sort: NodeFieldKind, body: &Value) -> Vec<BodyError> {
    let mut fields = Fields::of(body, sort.fields());
    check_key(sort, &mut fields);
    if sort == NodeFieldKind::Taint
        && fields.text("effect", true).is_some()
        && parse_taint_effect(body).is_none()
    {
        let help = "NoSchedule, PreferNoSchedule or NoExecute";
        fields.error(
            "/effect",
            "the API server takes no taint of this effect",
            Some(help.to_owned()),
        );
    }
    fields.flag("adopt");
    fields.text("adopt_with", false);
    match (parse_values_by_node(sort, body), find_unquoted_value(body)) {
        (None, Some((field, value))) => {
            let help = format!("write it in quotes: \"{value}\"");
            fields.error(
                &format!("/{field}"),
                format!("the value {value} is no text"),
                Some(help),
            );
        }
        (None, None) => {
            let help = "{ nodes: [gpu-001], value: \"true\" }, or { values: \
                        { gpu-001: \"a\", gpu-002: \"b\" } }; numbers and `true` in quotes";
            fields.error(
                "",
                "which nodes have which value is not said",
                Some(help.to_owned()),
            );
        }
        (Some(values), _) if values.is_empty() => fields.error(
            "",
            "no node is named",
            Some("leave the resource out: `when`".to_owned()),
        ),
        (Some(values), _) => check_values_by_node(sort, &values, &mut fields),
    }
    fields.finish()
}

fn check_key(sort: NodeFieldKind, fields: &mut Fields<'_>) {
    let key = sort.key();
    if let Some(text) = fields.text(key, true).filter(|text| !is_key(text)) {
        let message = format!(
            "the API server takes no {} with the key {}",
            sort.word(),
            Value::from(text)
        );
        fields.error(&format!("/{key}"), message, Some(KEY_HELP.to_owned()));
    }
    if let Some(text) = fields
        .text(key, false)
        .filter(|text| sort == NodeFieldKind::Label && OF_THE_KUBELET.contains(text))
    {
        let message = format!(
            "the label {} is the kubelet's own: each sets it anew when it starts",
            Value::from(text)
        );
        fields.error(
            "/label",
            message,
            Some("choose a key of your own".to_owned()),
        );
    }
}

/// Checks the first value and the first node that the API server would not take.
fn check_values_by_node(
    sort: NodeFieldKind,
    values: &BTreeMap<String, String>,
    fields: &mut Fields<'_>,
) {
    let (of_value, of_node) = match fields.get("values") {
        Some(_) => ("/values", "/values"),
        None => ("/value", "/nodes"),
    };
    if let Some(value) = values.values().find(|value| !is_value(value)) {
        let message = format!(
            "the API server takes no {} with the value {}",
            sort.word(),
            Value::from(value.as_str())
        );
        fields.error(of_value, message, Some(VALUE_HELP.to_owned()));
    }
    if let Some(node) = values.keys().find(|node| !is_subdomain(node)) {
        let message = format!("no node can be named {}", Value::from(node.as_str()));
        fields.error(of_node, message, None);
    }
}
