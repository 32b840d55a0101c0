//! What the output of a probe has to hold, as data: lines that begin with some words, or rows of a
//! list in JSON.

use crate::body::{Body, BodyErrors};
use crate::kubernetes_object::exec::PodExecResult;
use crate::kubernetes_object::manifest::is_subdomain;
use crate::names::is_word;
use railwright_base::text::one_line;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A probe as a module declares it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeProbeBody {
    /// One word, for example erdma-devices.
    name: String,
    /// The nodes' names.
    pub nodes: Vec<String>,
    /// The agent: { namespace, daemon_set }.
    pub pod: Pod,
    /// Program and arguments: [rdma, -j, link, show].
    pub argv: Vec<String>,
    /// What an exit status says of the node, in words. Any other than these and 0 says nothing of
    /// it.
    #[serde(default)]
    pub exits: BTreeMap<String, String>,
    #[serde(default)]
    pub lines: Vec<ExpectedProbeLines>,
    pub rows: Option<Rows>,
    pub within_s: Option<u32>,
}

/// The agent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pod {
    pub namespace: String,
    pub daemon_set: String,
    pub selector: Option<String>,
    pub container: Option<String>,
}

/// Lines that begin with these words, whatever space is between them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedProbeLines {
    begin: String,
    /// How many there have to be; one at least unless said.
    count: Option<OfNode<usize>>,
}

/// Rows of a list in JSON.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Which rows are meant.
    of: ProbeRowSelector,
    /// How many there have to be.
    count: Option<OfNode<usize>>,
    /// What each of them has to say.
    #[serde(default)]
    each: BTreeMap<String, Value>,
    /// How they stand to the others.
    above: Option<Above>,
}

/// By one of their fields.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProbeRowSelector {
    field: String,
    begins: Option<String>,
    is: Option<OfNode<BTreeSet<String>>>,
}

/// Of the rows that are `within` the same, those that are meant have a greater number in this field
/// than all others, and no two of them share one. One that says none has 0, as a route without a
/// metric (ip-route(8)).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Above {
    field: String,
    within: String,
}

/// One for all nodes, or each node's own.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "one for all nodes, or each node's own")]
enum OfNode<T> {
    Each(BTreeMap<String, T>),
    All(T),
}

impl<T> OfNode<T> {
    fn of(&self, node: &str) -> Option<&T> {
        match self {
            OfNode::Each(each) => each.get(node),
            OfNode::All(all) => Some(all),
        }
    }
}

impl Body for NodeProbeBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.require(
            is_word(&self.name, "._-"),
            "/name",
            "`name` is one word",
            "for example erdma-devices",
        );
        errors.check_range("within_s", self.within_s, 1..=86_400);
        errors.require(
            !self.nodes.is_empty(),
            "/nodes",
            "no node is named",
            "a list of the nodes' names",
        );
        errors.require(
            self.argv.first().is_some_and(|program| !program.is_empty())
                && !self.argv.iter().any(|word| word.contains('\0')),
            "/argv",
            "it names no program",
            "program and arguments: [rdma, -j, link, show]",
        );
        for (pointer, name) in [
            ("/pod/namespace", &self.pod.namespace),
            ("/pod/daemon_set", &self.pod.daemon_set),
        ] {
            let message = format!("`{}` is no name of an object", one_line(name, 60));
            errors.require(is_subdomain(name), pointer, &message, "");
        }
    }
}

/// What a node's answer comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum NodeProbeVerdict {
    InSync,
    Wrong(String),
    Unknown(String),
}

/// Evaluates what the program of a probe said on a node.
pub fn evaluate_probe_output(
    body: &NodeProbeBody,
    node: &str,
    ran: &PodExecResult,
) -> NodeProbeVerdict {
    if ran.code != 0 {
        let said = [&ran.err, &ran.out]
            .into_iter()
            .find_map(|text| text.lines().rev().find(|line| !line.trim().is_empty()));
        let said = match said {
            Some(line) => one_line(line.trim(), 160),
            None => "it says nothing".to_owned(),
        };
        return match body.exits.get(&ran.code.to_string()) {
            Some(words) => NodeProbeVerdict::Wrong(words.clone()),
            None => NodeProbeVerdict::Unknown(format!(
                "`{}` ended with exit status {}: {said}",
                one_line(&body.argv.join(" "), 60),
                ran.code
            )),
        };
    }
    let of_lines = body
        .lines
        .iter()
        .map(|lines| lines.evaluate(node, &ran.out));
    let of_rows = body.rows.iter().map(|rows| rows.evaluate(node, &ran.out));
    of_lines
        .chain(of_rows)
        .find(|verdict| *verdict != NodeProbeVerdict::InSync)
        .unwrap_or(NodeProbeVerdict::InSync)
}

impl ExpectedProbeLines {
    fn evaluate(&self, node: &str, out: &str) -> NodeProbeVerdict {
        let desired = normalize_whitespace(&self.begin);
        let lines = out.lines().map(normalize_whitespace);
        let actual = lines.filter(|line| line.starts_with(&desired)).count();
        let many = match self.count.as_ref().map(|count| count.of(node).copied()) {
            None if actual > 0 => return NodeProbeVerdict::InSync,
            Some(Some(count)) if actual == count => return NodeProbeVerdict::InSync,
            None => "one at least".to_owned(),
            Some(Some(count)) => count.to_string(),
            Some(None) => return NodeProbeVerdict::Unknown(NOT_SAID.to_owned()),
        };
        NodeProbeVerdict::Wrong(format!(
            "{actual} lines begin with `{}` instead of {many}",
            one_line(&self.begin, 60)
        ))
    }
}

/// The spec does not say how many a node has.
const NOT_SAID: &str = "what is expected of this node is not said";

fn normalize_whitespace(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

type Row = Map<String, Value>;

impl Rows {
    fn evaluate(&self, node: &str, out: &str) -> NodeProbeVerdict {
        let out = if out.trim().is_empty() { "[]" } else { out };
        let Ok(all) = serde_json::from_str::<Vec<Row>>(out) else {
            return NodeProbeVerdict::Unknown("its output is no list in JSON".to_owned());
        };
        if !self.of.is_given_for(node) {
            return NodeProbeVerdict::Unknown(NOT_SAID.to_owned());
        }
        let meant: Vec<&Row> = all
            .iter()
            .filter(|row| self.of.selects(row, node))
            .collect();
        if let Some(count) = &self.count {
            let Some(count) = count.of(node) else {
                return NodeProbeVerdict::Unknown(NOT_SAID.to_owned());
            };
            if meant.len() != *count {
                return NodeProbeVerdict::Wrong(format!(
                    "{} {} instead of {count}",
                    meant.len(),
                    self.of.words()
                ));
            }
        }
        for row in &meant {
            for (field, desired) in &self.each {
                let actual = match row.get(field) {
                    Some(actual) if actual == desired => continue,
                    Some(actual) => format_plain_value(actual),
                    None => "not said".to_owned(),
                };
                return NodeProbeVerdict::Wrong(format!(
                    "{} has {field} {actual} instead of {}",
                    format_row_field(row, &self.of.field),
                    format_plain_value(desired)
                ));
            }
        }
        match &self.above {
            Some(above) => above.evaluate(&all, &self.of, node),
            None => NodeProbeVerdict::InSync,
        }
    }
}

impl ProbeRowSelector {
    /// Whether the spec says which rows of this node are meant.
    fn is_given_for(&self, node: &str) -> bool {
        self.is.as_ref().is_none_or(|is| is.of(node).is_some())
    }

    fn selects(&self, row: &Row, node: &str) -> bool {
        let value = row.get(&self.field).and_then(Value::as_str);
        let value = value.unwrap_or_default();
        let is_named = match &self.is {
            Some(is) => is.of(node).is_some_and(|names| names.contains(value)),
            None => true,
        };
        let begins = self.begins.as_deref().unwrap_or_default();
        is_named && value.starts_with(begins)
    }

    fn words(&self) -> String {
        match &self.begins {
            Some(begins) => format!("{begins}*"),
            None => format!("rows with such a {}", self.field),
        }
    }
}

impl Above {
    /// The first row that is meant and not above the others, in words. A number that is written as
    /// something else is nobody's to compare.
    fn evaluate(&self, all: &[Row], meant: &ProbeRowSelector, node: &str) -> NodeProbeVerdict {
        let meant_rows = all.iter().filter(|row| meant.selects(row, node));
        let places: BTreeSet<String> = meant_rows
            .clone()
            .map(|row| format_row_field(row, &self.within))
            .collect();
        for row in all {
            let Some(value) = row.get(&self.field).filter(|value| !value.is_u64()) else {
                continue;
            };
            if places.contains(&format_row_field(row, &self.within)) {
                return NodeProbeVerdict::Unknown(format!(
                    "{} has {} {}, which is no number from 0 on",
                    format_row_field(row, &meant.field),
                    self.field,
                    one_line(&value.to_string(), 60)
                ));
            }
        }
        for row in meant_rows {
            let name = format_row_field(row, &meant.field);
            let place = format_row_field(row, &self.within);
            let number = self.read_number(row);
            for other in all {
                let other_name = format_row_field(other, &meant.field);
                let other_number = self.read_number(other);
                let collides = number == other_number
                    || (number < other_number && !meant.selects(other, node));
                if !collides || other_name == name || format_row_field(other, &self.within) != place
                {
                    continue;
                }
                let words = format!(
                    "{} {place}: {name} has {} {number}, and {other_name} has {} {other_number}",
                    self.within, self.field, self.field
                );
                return NodeProbeVerdict::Wrong(one_line(&words, 200));
            }
        }
        NodeProbeVerdict::InSync
    }

    fn read_number(&self, row: &Row) -> u64 {
        row.get(&self.field).and_then(Value::as_u64).unwrap_or(0)
    }
}

/// A field of a row in words; nothing where it is not there.
fn format_row_field(row: &Row, field: &str) -> String {
    row.get(field).map(format_plain_value).unwrap_or_default()
}

fn format_plain_value(value: &Value) -> String {
    one_line(
        &value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned),
        60,
    )
}
