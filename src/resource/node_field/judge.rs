//! Each node against the wish: as wished, without it, with another value that is ours to change, or with one that is not; and nodes that
//! left the wish. Nodes that are alike are told together.
//!
//! A host that is no node yet has nothing to be wrong: it is passed over, and set once it has joined.

use super::body::Asked;
use super::edit::{Change, NodeEdit};
use super::field::{FieldNow, NodeField};
use super::mark::Mark;
use crate::assessment::SET_BY;
use crate::kubernetes_object::looks::listed;
use crate::kubernetes_object::request::KubernetesRead;
use crate::{Action, Answers, Assessment, Attribute, Disruption, Plane, Read, Reading};
use railwright_base::nodeset;
use railwright_base::text::{counted, one_line};
use serde_json::Value;
use std::collections::BTreeMap;

/// The longest name of nodes that are told together.
const NAMES_LIMIT: usize = 200;

/// How one node stands. Nodes of the same are told together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Case {
    /// As wished, or changed to what is wished.
    Field { wanted: Option<String>, found: Option<String>, by: Option<String>, change: Option<Change> },
    /// Only our mark goes: what it was about is somebody else's by now.
    Mark { value: Option<String>, by: Option<String> },
    /// Not ours to change, in words.
    Theirs { wanted: String, found: Option<String>, by: Option<String>, why: &'static str },
}

/// The nodes of a case, and when one of them was changed last.
type Cases<'a> = BTreeMap<Case, (Vec<&'a str>, String)>;

/// The wish against the nodes.
pub fn assess(asked: &Asked, answers: &Answers) -> Assessment {
    let nodes = match nodes(&asked.field, answers) {
        Ok(nodes) => nodes,
        Err(reason) => return unknown(reason),
    };
    let mut cases = Cases::new();
    for (name, value) in &asked.values {
        if let Some(now) = nodes.get(name) {
            note(&mut cases, name, wished(asked, value, now), now);
        }
    }
    for (name, now) in nodes.iter().filter(|(name, _)| !asked.values.contains_key(*name)) {
        if let Some(case) = left(&asked.cluster, now) {
            note(&mut cases, name, case, now);
        }
    }
    let mut assessment = told(asked, &cases);
    if asked.values.keys().all(|name| !nodes.contains_key(name)) {
        let names = short(&nodeset::fold(&asked.values.keys().collect::<Vec<_>>()));
        assessment.refusal.get_or_insert_with(|| no_node(&names));
        assessment.attributes.insert(names, Attribute::in_plane(Plane::Persisted, Reading::is("present"), Reading::Absent));
        assessment.actions.clear();
    } else {
        assessment.out_of_reach = missing(asked, &nodes);
    }
    assessment
}

/// The nodes that are not there, by the value that they are to have. The others are judged and changed all the same.
fn missing(asked: &Asked, nodes: &BTreeMap<String, FieldNow>) -> BTreeMap<String, Attribute> {
    let mut by_value: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in asked.values.iter().filter(|(name, _)| !nodes.contains_key(*name)) {
        by_value.entry(value).or_default().push(name);
    }
    let one = |(value, names): (&str, Vec<&str>)| {
        let names = short(&nodeset::fold(&names));
        let found = Reading::Unknown(format!("{}; once it has, the next apply sets it there", no_node(&names)));
        (names, Attribute::in_plane(Plane::Persisted, Reading::is(asked.field.value(value)), found))
    };
    by_value.into_iter().map(one).collect()
}

fn no_node(names: &str) -> String {
    format!("the cluster has no node {names}; if it is there under another name, `kubernetes_node` in the spec has to say that")
}

/// The wish was taken out: what bears our mark is as it was before us, and what somebody changed since stays.
pub fn undo(asked: &Asked, answers: &Answers) -> Assessment {
    let nodes = match nodes(&asked.field, answers) {
        Ok(nodes) => nodes,
        Err(reason) => return unknown(reason),
    };
    let mut cases = Cases::new();
    for (name, now) in &nodes {
        if let Some(case) = left(&asked.cluster, now) {
            note(&mut cases, name, case, now);
        }
    }
    told(asked, &cases)
}

/// What each node says; why it is not known.
fn nodes(field: &NodeField, answers: &Answers) -> Result<BTreeMap<String, FieldNow>, String> {
    let all = listed(&Read::Kubernetes(KubernetesRead::NodeField(field.clone())), answers)?;
    serde_json::from_value(Value::Object(all)).map_err(|_| "the server's answer is no list of nodes".to_owned())
}

fn unknown(reason: String) -> Assessment {
    let mut assessment = Assessment::default();
    assessment
        .attributes
        .insert("nodes".to_owned(), Attribute::in_plane(Plane::Persisted, Reading::is("as wished"), Reading::Unknown(reason)));
    assessment
}

fn note<'a>(cases: &mut Cases<'a>, name: &'a str, case: Case, now: &FieldNow) {
    let (names, last) = cases.entry(case).or_default();
    names.push(name);
    if let Some((_, time)) = now.by.as_ref().filter(|(_, time)| time > last) {
        last.clone_from(time);
    }
}

fn who(now: &FieldNow) -> Option<String> {
    now.by.as_ref().map(|(manager, _)| one_line(manager, 60))
}

/// A node that is to have this value.
fn wished(asked: &Asked, value: &str, now: &FieldNow) -> Case {
    let (wanted, found, by) = (value.to_owned(), now.value.clone(), who(now));
    if found.as_deref() == Some(value) {
        return Case::Field { wanted: Some(wanted), found, by: None, change: None };
    }
    let ours = now.mark.as_ref().filter(|mark| mark.spec == asked.cluster);
    let of_another = now.mark.is_some() && ours.is_none();
    match &found {
        _ if asked.adopts || ours.is_some() => {}
        _ if of_another => return Case::Theirs { wanted, found, by, why: "another spec of railwright keeps it" },
        Some(_) => return Case::Theirs { wanted, found, by, why: "it was never ours" },
        None => {}
    }
    let was = ours.map_or_else(|| found.clone(), |mark| mark.was.clone());
    let mark = Mark { spec: asked.cluster.clone(), set: wanted.clone(), was };
    let change = Change { old: found.clone(), new: Some(wanted.clone()), mark: Some(mark) };
    Case::Field { wanted: Some(wanted), found, by, change: Some(change) }
}

/// A node that is no longer to have it, where it bears our mark.
fn left(cluster: &str, now: &FieldNow) -> Option<Case> {
    let mark = now.mark.as_ref().filter(|mark| mark.spec == cluster)?;
    if now.value.as_ref() != Some(&mark.set) {
        return Some(Case::Mark { value: now.value.clone(), by: who(now) });
    }
    let change = Change { old: now.value.clone(), new: mark.was.clone(), mark: None };
    Some(Case::Field { wanted: mark.was.clone(), found: now.value.clone(), by: None, change: Some(change) })
}

fn short(names: &str) -> String {
    match names.split_once(',') {
        Some((first, _)) if names.len() > NAMES_LIMIT => format!("{first} and more"),
        _ => names.to_owned(),
    }
}

/// All cases as attributes, with what mends them.
fn told(asked: &Asked, cases: &Cases) -> Assessment {
    let field = &asked.field;
    let mut assessment = Assessment::default();
    let (mut edits, mut refusals): (Vec<NodeEdit>, Vec<String>) = (Vec::new(), Vec::new());
    let value = |value: &Option<String>| value.as_ref().map_or(Reading::Absent, |value| Reading::is(field.value(value)));
    let mut attributes = BTreeMap::new();
    let mut put = |name: String, wanted: Reading, found: Reading, by: Option<String>| {
        attributes.insert(name, Attribute { by, ..Attribute::in_plane(Plane::Persisted, wanted, found) });
    };
    for (case, (names, last)) in cases {
        let set = short(&nodeset::fold(names));
        let set_by = |by: &Option<String>| by.as_ref().map(|by| format!("{SET_BY}{by} at {last}"));
        let nodes: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        match case {
            Case::Field { wanted, found, by, change } => {
                put(set, value(wanted), value(found), set_by(by));
                edits.extend(change.iter().map(|change| NodeEdit { nodes: nodes.clone(), change: change.clone() }));
            }
            Case::Mark { value: now, by } => {
                put(format!("mark on {set}"), Reading::Absent, Reading::is("ours"), None);
                let stays = now.as_ref().map(|now| field.shown(now));
                let who = by.as_ref().map_or_else(|| "somebody else".to_owned(), Clone::clone);
                assessment.residue.extend(stays.map(|now| format!("{set}: {} stays, which {who} set since", one_line(&now, 80))));
                edits.push(NodeEdit { nodes, change: Change { old: now.clone(), new: now.clone(), mark: None } });
            }
            Case::Theirs { wanted, found, by, why } => {
                let is = found.as_ref().map_or_else(|| "absent".to_owned(), |found| one_line(&field.shown(found), 80));
                let by_whom = by.as_ref().map(|by| format!(", which {by} set")).unwrap_or_default();
                refusals.push(format!("{set}: {is}{by_whom}; {why}"));
                put(set, value(&Some(wanted.clone())), value(found), set_by(by));
            }
        }
    }
    assessment.attributes = attributes;
    if !refusals.is_empty() {
        assessment.refusal = Some(format!("{}; `{}` takes it over", one_line(&refusals.join("; "), 600), asked.adopt_with));
    } else if !edits.is_empty() {
        disturb(field, &edits, &mut assessment);
        assessment.actions = vec![Action::EditNodes { field: field.clone(), edits }];
    }
    assessment
}

/// Pods that do not tolerate a taint that evicts end at once, on all its nodes.
fn disturb(field: &NodeField, edits: &[NodeEdit], assessment: &mut Assessment) {
    for NodeEdit { nodes, change } in edits.iter().filter(|edit| field.evicts() && edit.change.new != edit.change.old) {
        let Some(new) = &change.new else { continue };
        assessment.disruption = Disruption::Drain;
        let who = match nodes.len() {
            1 => nodes[0].clone(),
            count => format!("all {} {}", counted(count, "node"), short(&nodeset::fold(nodes))),
        };
        assessment.interrupts.push(format!("pods that do not tolerate {} are evicted at once from {who}", field.shown(new)));
    }
}
