//! What the output of a probe has to hold, as data: lines that begin with some words, or rows of a
//! list in JSON.

use crate::kubernetes_object::exec::PodExecResult;
use railwright_base::text::one_line;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A probe as a module wishes it.
pub struct NodeProbeBody {
    pub nodes: Vec<String>,
    pub pod: Pod,
    pub argv: Vec<String>,
    /// What an exit status says of the node, in words. Any other than these and 0 says nothing of
    /// it.
    pub exits: BTreeMap<String, String>,
    pub lines: Vec<ExpectedProbeLines>,
    pub rows: Option<Rows>,
    pub within_s: Option<u32>,
}

/// The agent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pod {
    pub namespace: String,
    pub daemon_set: String,
    #[serde(default)]
    pub selector: Option<String>,
    #[serde(default)]
    pub container: Option<String>,
}

/// Lines that begin with these words, whatever space is between them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedProbeLines {
    begin: String,
    /// How many there have to be; one at least unless said.
    #[serde(default)]
    count: Option<OfNode<usize>>,
}

/// Rows of a list in JSON.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Which rows are meant.
    of: ProbeRowSelector,
    /// How many there have to be.
    #[serde(default)]
    count: Option<OfNode<usize>>,
    /// What each of them has to say.
    #[serde(default)]
    each: BTreeMap<String, Value>,
    /// How they stand to the others.
    #[serde(default)]
    above: Option<Above>,
}

/// By one of their fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeRowSelector {
    field: String,
    #[serde(default)]
    begins: Option<String>,
    #[serde(default)]
    is: Option<OfNode<BTreeSet<String>>>,
}

/// Of the rows that are `within` the same, those that are meant have a greater number in this field
/// than all others, and no two of them the same. One that says none has 0, as a route without a
/// metric (ip-route(8)).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Above {
    field: String,
    within: String,
}

/// One for all nodes, or each node's own.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
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

impl NodeProbeBody {
    /// The probe that a body describes, or where it is wrong and how.
    pub fn of(body: &Value) -> Result<Self, (String, String)> {
        Ok(NodeProbeBody {
            nodes: parse_body_field(body, "nodes")?.unwrap_or_default(),
            pod: parse_body_field(body, "pod")?.ok_or_else(|| {
                (
                    "".to_owned(),
                    "`pod` is missing: { namespace, daemon_set }".to_owned(),
                )
            })?,
            argv: parse_body_field(body, "argv")?.unwrap_or_default(),
            exits: parse_body_field(body, "exits")?.unwrap_or_default(),
            lines: parse_body_field(body, "lines")?.unwrap_or_default(),
            rows: parse_body_field(body, "rows")?,
            within_s: parse_body_field(body, "within_s")?,
        })
    }
}

fn parse_body_field<T: DeserializeOwned>(
    body: &Value,
    field: &str,
) -> Result<Option<T>, (String, String)> {
    let Some(value) = body.get(field).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    T::deserialize(value).map(Some).map_err(|error| {
        (
            format!("/{field}"),
            format!("`{field}`: {}", one_line(&error.to_string(), 200)),
        )
    })
}

/// What a node's answer comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum NodeProbeVerdict {
    AsWished,
    Wrong(String),
    Unknown(String),
}

/// Judges what the program of a probe said on a node.
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
    let of_lines = body.lines.iter().map(|lines| lines.judge(node, &ran.out));
    let of_rows = body.rows.iter().map(|rows| rows.judge(node, &ran.out));
    of_lines
        .chain(of_rows)
        .find(|verdict| *verdict != NodeProbeVerdict::AsWished)
        .unwrap_or(NodeProbeVerdict::AsWished)
}

impl ExpectedProbeLines {
    fn judge(&self, node: &str, out: &str) -> NodeProbeVerdict {
        let wanted = normalize_whitespace(&self.begin);
        let lines = out.lines().map(normalize_whitespace);
        let found = lines.filter(|line| line.starts_with(&wanted)).count();
        let many = match self.count.as_ref().map(|count| count.of(node).copied()) {
            None if found > 0 => return NodeProbeVerdict::AsWished,
            Some(Some(count)) if found == count => return NodeProbeVerdict::AsWished,
            None => "one at least".to_owned(),
            Some(Some(count)) => count.to_string(),
            Some(None) => return NodeProbeVerdict::Unknown(NOT_SAID.to_owned()),
        };
        NodeProbeVerdict::Wrong(format!(
            "{found} lines begin with `{}` instead of {many}",
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
    fn judge(&self, node: &str, out: &str) -> NodeProbeVerdict {
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
            for (field, wanted) in &self.each {
                let found = match row.get(field) {
                    Some(found) if found == wanted => continue,
                    Some(found) => format_plain_value(found),
                    None => "not said".to_owned(),
                };
                return NodeProbeVerdict::Wrong(format!(
                    "{} has {field} {found} instead of {}",
                    format_row_field(row, &self.of.field),
                    format_plain_value(wanted)
                ));
            }
        }
        match &self.above {
            Some(above) => above.judge(&all, &self.of, node),
            None => NodeProbeVerdict::AsWished,
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
    fn judge(&self, all: &[Row], meant: &ProbeRowSelector, node: &str) -> NodeProbeVerdict {
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
        NodeProbeVerdict::AsWished
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
