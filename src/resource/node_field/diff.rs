//! Each node against the desired field: in sync, without it, with another value that is ours to
//! change, or with one that is not; and nodes that left the resource. Identical nodes are shown
//! together.
//!
//! A host that is no node yet has nothing to be wrong: it is passed over, and set once it has
//! joined.

use super::body::NodeFieldRequest;
use super::edit::{NodeEdit, NodeFieldChange};
use super::field::{FieldNow, NodeField};
use super::mark::NodeOwnershipAnnotation;
use crate::Provenance;
use crate::kubernetes_object::looks::read_object_list;
use crate::kubernetes_object::ownership::FieldManager;
use crate::kubernetes_object::request::KubernetesRead;
use crate::{Action, Attribute, Disruption, Plane, Read, ReadResults, Reading, ResourceDiff};
use railwright_base::Reason;
use railwright_base::nodeset;
use railwright_base::text::{format_count, one_line};
use serde_json::Value;
use std::collections::BTreeMap;

/// The longest name of nodes that are shown together.
const NAMES_LIMIT: usize = 200;
/// Of an annotation in the place of our mark.
const UNPROVEN: &str = "the annotation in the place of our mark bears no code of ours, and a \
                        kubelet may write such a one on its own node";

/// How one node stands. Nodes with equal cases are shown together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum NodeFieldCase {
    /// In sync, or changed to what is desired.
    Field {
        desired: Option<String>,
        actual: Option<String>,
        by: Option<String>,
        change: Option<NodeFieldChange>,
    },
    /// Only our mark goes: what it was about is somebody else's by now.
    Mark {
        value: Option<String>,
        by: Option<String>,
    },
    /// Not ours to change, in words.
    Theirs {
        desired: String,
        actual: Option<String>,
        by: Option<String>,
        why: &'static str,
    },
}

/// The nodes of a case, and who changed one of them last.
type Cases<'a> = BTreeMap<NodeFieldCase, (Vec<&'a str>, Option<&'a FieldManager>)>;

/// Compares the desired field with the nodes.
pub fn diff_node_field(asked: &NodeFieldRequest, answers: &ReadResults) -> ResourceDiff {
    let nodes = match decode_node_fields(&asked.field, answers) {
        Ok(nodes) => nodes,
        Err(reason) => return build_unknown_nodes_diff(reason),
    };
    let mut cases = Cases::new();
    for (name, value) in &asked.values {
        if let Some(now) = nodes.get(name) {
            add_node_to_case(
                &mut cases,
                name,
                classify_desired_node(asked, value, now),
                now,
            );
        }
    }
    for (name, now) in nodes
        .iter()
        .filter(|(name, _)| !asked.values.contains_key(*name))
    {
        if let Some(case) = classify_removed_node(&asked.cluster, now) {
            add_node_to_case(&mut cases, name, case, now);
        }
    }
    let mut diff = build_diff_from_cases(asked, &cases);
    let left = nodes
        .iter()
        .filter(|(name, _)| !asked.values.contains_key(*name));
    diff.residue.extend(list_unproven_marks(&asked.field, left));
    if asked.values.keys().all(|name| !nodes.contains_key(name)) {
        let names = shorten_node_set(&nodeset::fold_node_set(
            &asked.values.keys().collect::<Vec<_>>(),
        ));
        diff.refusal
            .get_or_insert_with(|| describe_missing_nodes(&names));
        diff.attributes.insert(
            names,
            Attribute::in_plane(Plane::Persisted, Reading::is("present"), Reading::Absent),
        );
        diff.actions.clear();
    } else {
        diff.out_of_reach = collect_missing_nodes(asked, &nodes);
    }
    diff
}

/// The nodes that are not there, by the value that they are to have. The others are compared and
/// changed nevertheless.
fn collect_missing_nodes(
    asked: &NodeFieldRequest,
    nodes: &BTreeMap<String, FieldNow>,
) -> BTreeMap<String, Attribute> {
    let mut by_value: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in &asked.values {
        if !nodes.contains_key(name) {
            by_value.entry(value).or_default().push(name);
        }
    }
    let mut attributes = BTreeMap::new();
    for (value, names) in by_value {
        let names = shorten_node_set(&nodeset::fold_node_set(&names));
        let desired = Reading::is(asked.field.value(value));
        let actual = Reading::Unknown(
            format!(
                "{}; once it has, the next apply sets it there",
                describe_missing_nodes(&names)
            )
            .into(),
        );
        attributes.insert(
            names,
            Attribute::in_plane(Plane::Persisted, desired, actual),
        );
    }
    attributes
}

fn describe_missing_nodes(names: &str) -> String {
    format!(
        "the cluster has no node {names}; if it is there under another name, `kubernetes_node` in \
         the spec has to say that"
    )
}

/// The resource was taken out of the spec: what bears our mark is as it was before us, and what
/// somebody changed since stays.
pub fn plan_node_field_undo(asked: &NodeFieldRequest, answers: &ReadResults) -> ResourceDiff {
    let nodes = match decode_node_fields(&asked.field, answers) {
        Ok(nodes) => nodes,
        Err(reason) => return build_unknown_nodes_diff(reason),
    };
    let mut cases = Cases::new();
    for (name, now) in &nodes {
        if let Some(case) = classify_removed_node(&asked.cluster, now) {
            add_node_to_case(&mut cases, name, case, now);
        }
    }
    let mut diff = build_diff_from_cases(asked, &cases);
    diff.residue
        .extend(list_unproven_marks(&asked.field, nodes.iter()));
    diff
}

/// What stays on nodes that are not to have it, though an annotation there says that it is ours.
fn list_unproven_marks<'a>(
    field: &NodeField,
    nodes: impl Iterator<Item = (&'a String, &'a FieldNow)>,
) -> Vec<String> {
    let mut by_value: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, now) in nodes.filter(|(_, now)| now.unproven_mark) {
        if let Some(value) = &now.value {
            by_value.entry(value).or_default().push(name);
        }
    }
    let mut out = Vec::new();
    for (value, names) in by_value {
        let names = shorten_node_set(&nodeset::fold_node_set(&names));
        let value = one_line(&field.shown(value), 80);
        out.push(format!("{names}: {value} stays: {UNPROVEN}"));
    }
    out
}

/// What each node says; why it is unknown.
fn decode_node_fields(
    field: &NodeField,
    answers: &ReadResults,
) -> Result<BTreeMap<String, FieldNow>, Reason> {
    let all = read_object_list(
        &Read::Kubernetes(KubernetesRead::NodeField(field.clone())),
        answers,
    )?;
    let nodes: BTreeMap<String, FieldNow> = serde_json::from_value(Value::Object(all))
        .map_err(|_| Reason::from("the server's answer is no list of nodes"))?;
    match nodes.values().find_map(|now| now.unread_mark.clone()) {
        Some(reason) => Err(reason),
        None => Ok(nodes),
    }
}

fn build_unknown_nodes_diff(reason: Reason) -> ResourceDiff {
    let mut diff = ResourceDiff::default();
    diff.attributes.insert(
        "nodes".to_owned(),
        Attribute::in_plane(
            Plane::Persisted,
            Reading::is("in sync"),
            Reading::Unknown(reason),
        ),
    );
    diff
}

fn add_node_to_case<'a>(
    cases: &mut Cases<'a>,
    name: &'a str,
    case: NodeFieldCase,
    now: &'a FieldNow,
) {
    let (names, last) = cases.entry(case).or_default();
    names.push(name);
    let both = last.iter().copied().chain(&now.by);
    *last = both.max_by_key(|by| (&by.time, by.with_ours));
}

fn describe_field_manager(now: &FieldNow) -> Option<String> {
    now.by.as_ref().map(|by| one_line(&by.manager, 60))
}

/// A node that is to have this value.
fn classify_desired_node(asked: &NodeFieldRequest, value: &str, now: &FieldNow) -> NodeFieldCase {
    let (desired, actual, by) = (
        value.to_owned(),
        now.value.clone(),
        describe_field_manager(now),
    );
    if actual.as_deref() == Some(value) {
        return NodeFieldCase::Field {
            desired: Some(desired),
            actual,
            by: None,
            change: None,
        };
    }
    let ours = now.mark.as_ref().filter(|mark| mark.spec == asked.cluster);
    let of_another = now.mark.is_some() && ours.is_none();
    let why = match &actual {
        _ if asked.adopts || ours.is_some() => None,
        _ if of_another => Some("another spec of railwright keeps it"),
        _ if now.unproven_mark => Some(UNPROVEN),
        Some(_) => Some("it was never ours"),
        None => None,
    };
    if let Some(why) = why {
        return NodeFieldCase::Theirs {
            desired,
            actual,
            by,
            why,
        };
    }
    let was = ours.map_or_else(|| actual.clone(), |mark| mark.was.clone());
    let mark = NodeOwnershipAnnotation {
        spec: asked.cluster.clone(),
        set: desired.clone(),
        was,
    };
    let change = NodeFieldChange {
        old: actual.clone(),
        new: Some(desired.clone()),
        mark: Some(mark),
    };
    NodeFieldCase::Field {
        desired: Some(desired),
        actual,
        by,
        change: Some(change),
    }
}

/// A node that is no longer to have it, where it bears our mark.
fn classify_removed_node(cluster: &str, now: &FieldNow) -> Option<NodeFieldCase> {
    let mark = now.mark.as_ref().filter(|mark| mark.spec == cluster)?;
    if now.value.as_ref() != Some(&mark.set) {
        return Some(NodeFieldCase::Mark {
            value: now.value.clone(),
            by: describe_field_manager(now),
        });
    }
    let change = NodeFieldChange {
        old: now.value.clone(),
        new: mark.was.clone(),
        mark: None,
    };
    Some(NodeFieldCase::Field {
        desired: mark.was.clone(),
        actual: now.value.clone(),
        by: None,
        change: Some(change),
    })
}

fn shorten_node_set(names: &str) -> String {
    match names.split_once(',') {
        Some((first, _)) if names.len() > NAMES_LIMIT => format!("{first} and more"),
        _ => names.to_owned(),
    }
}

/// All cases as attributes, with what fixes them.
fn build_diff_from_cases(asked: &NodeFieldRequest, cases: &Cases) -> ResourceDiff {
    let field = &asked.field;
    let mut diff = ResourceDiff::default();
    let (mut edits, mut refusals): (Vec<NodeEdit>, Vec<String>) = (Vec::new(), Vec::new());
    for (case, (names, last)) in cases {
        let set = shorten_node_set(&nodeset::fold_node_set(names));
        let nodes: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let (name, attribute) = build_case_attribute(field, case, &set, *last);
        diff.attributes.insert(name, attribute);
        match case {
            NodeFieldCase::Field { change, .. } => {
                if let Some(change) = change.clone() {
                    edits.push(NodeEdit { nodes, change });
                }
            }
            NodeFieldCase::Mark { value, by } => {
                let who = by.as_deref().unwrap_or("somebody else");
                if let Some(now) = value {
                    let now = one_line(&field.shown(now), 80);
                    diff.residue
                        .push(format!("{set}: {now} stays, which {who} set since"));
                }
                let change = NodeFieldChange {
                    old: value.clone(),
                    new: value.clone(),
                    mark: None,
                };
                edits.push(NodeEdit { nodes, change });
            }
            NodeFieldCase::Theirs {
                actual, by, why, ..
            } => {
                let is = match actual {
                    Some(actual) => one_line(&field.shown(actual), 80),
                    None => "absent".to_owned(),
                };
                let by_whom = match by {
                    Some(by) => format!(", which {by} set"),
                    None => String::new(),
                };
                refusals.push(format!("{set}: {is}{by_whom}; {why}"));
            }
        }
    }
    if !refusals.is_empty() {
        diff.refusal = Some(format!(
            "{}; `{}` takes it over",
            one_line(&refusals.join("; "), 600),
            asked.adopt_with
        ));
    } else if !edits.is_empty() {
        record_taint_disruption(field, &edits, &mut diff);
        diff.actions = vec![Action::EditNodes {
            field: field.clone(),
            edits,
        }];
    }
    diff
}

/// The attribute of a case, by its name. `last` changed one of the nodes last.
fn build_case_attribute(
    field: &NodeField,
    case: &NodeFieldCase,
    set: &str,
    last: Option<&FieldManager>,
) -> (String, Attribute) {
    let (desired, actual, by) = match case {
        NodeFieldCase::Field {
            desired,
            actual,
            by,
            ..
        } => (desired.as_ref(), actual, by),
        NodeFieldCase::Theirs {
            desired,
            actual,
            by,
            ..
        } => (Some(desired), actual, by),
        NodeFieldCase::Mark { .. } => {
            let attribute =
                Attribute::in_plane(Plane::Persisted, Reading::Absent, Reading::is("ours"));
            return (format!("mark on {set}"), attribute);
        }
    };
    let [desired, actual] = [desired, actual.as_ref()].map(|value| match value {
        Some(value) => Reading::is(field.value(value)),
        None => Reading::Absent,
    });
    let attribute = Attribute {
        by: by
            .as_ref()
            .zip(last)
            .map(|(by, last)| Provenance::set_by(by, &last.time, last.with_ours)),
        ..Attribute::in_plane(Plane::Persisted, desired, actual)
    };
    (set.to_owned(), attribute)
}

/// Pods that do not tolerate a taint that evicts end at once, on all its nodes.
fn record_taint_disruption(field: &NodeField, edits: &[NodeEdit], diff: &mut ResourceDiff) {
    for NodeEdit { nodes, change } in edits
        .iter()
        .filter(|edit| field.evicts() && edit.change.new != edit.change.old)
    {
        let Some(new) = &change.new else { continue };
        diff.disruption = Disruption::Drain;
        let who = match nodes.len() {
            1 => nodes[0].clone(),
            count => format!(
                "all {} {}",
                format_count(count, "node"),
                shorten_node_set(&nodeset::fold_node_set(nodes))
            ),
        };
        diff.interrupts.push(format!(
            "pods that do not tolerate {} are evicted at once from {who}",
            field.shown(new)
        ));
    }
}
