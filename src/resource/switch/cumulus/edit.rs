//! Edits of NVUE's tree as values, as the lines of `nv set` and `nv unset`, and as the documents
//! that `nv config patch` takes.

use super::OURS;
use super::config::{Nvue, parse_number_value};
use crate::switch::edit::Disturbance;
use crate::{Disruption, Fact};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What stands at the end of a path.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(untagged)]
pub enum Leaf {
    /// A number.
    Number(u64),
    /// A word.
    Word(String),
    /// Nothing but that it is there: `switch-priority 3`.
    Entry {},
}

impl Leaf {
    /// The leaf that a value is.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(n) => n.as_u64().map(Leaf::Number),
            Value::String(word) => Some(Leaf::Word(word.clone())),
            Value::Object(map) if map.is_empty() => Some(Leaf::Entry {}),
            _ => None,
        }
    }

    fn is(&self, value: &Value) -> bool {
        match self {
            Leaf::Number(n) => parse_number_value("", Some(value), 0..=u64::MAX) == Fact::Is(*n),
            Leaf::Word(word) => value.as_str() == Some(word),
            Leaf::Entry {} => value.is_object(),
        }
    }

    /// As `nv set` has it at the end of a line.
    pub fn word(&self) -> String {
        match self {
            Leaf::Number(n) => n.to_string(),
            Leaf::Word(word) => word.clone(),
            Leaf::Entry {} => String::new(),
        }
    }
}

/// One place that gets another value.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct CumulusEdit {
    /// The words of the path: `interface`, `swp1`, `link`, `mtu`.
    pub path: Vec<String>,
    /// The value; nothing takes away what is there, and all below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Leaf>,
    /// Only carried over from the profile before: what another desired setting says of the place
    /// goes before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied: bool,
    /// Is not there, and is not to come: it keeps away what another
    /// desired setting carries over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
}

impl CumulusEdit {
    /// The port that it is about alone: its interface, or the profile that has its name.
    pub fn port(&self) -> Option<&str> {
        match self.path.as_slice() {
            [of, port, ..] if of == "interface" => Some(port),
            [of, _, profile, ..] if of == "qos" => {
                let port = profile.strip_prefix(OURS)?.strip_prefix('_')?;
                port.starts_with("swp").then_some(port)
            }
            _ => None,
        }
    }
}

/// Collects edits against one revision; what is so already is no edit.
pub struct CumulusEditBuilder<'a> {
    nvue: &'a Nvue,
    edits: Vec<CumulusEdit>,
}

impl<'a> CumulusEditBuilder<'a> {
    /// None yet.
    pub fn of(nvue: &'a Nvue) -> Self {
        CumulusEditBuilder {
            nvue,
            edits: Vec::new(),
        }
    }

    /// Sets a place.
    pub fn set(&mut self, path: &[&str], value: Leaf) {
        self.put(path, value, false);
    }

    fn put(&mut self, path: &[&str], value: Leaf, copied: bool) {
        if !self.nvue.at(path).is_some_and(|there| value.is(there)) {
            self.push(path, Some(value), copied, false);
        }
    }

    /// Takes away what is at a place.
    pub fn unset(&mut self, path: &[&str]) {
        if self.nvue.at(path).is_some() {
            self.push(path, None, false, false);
        }
    }

    /// Takes away what is at a place, and keeps anything from being carried over to there.
    pub fn never(&mut self, path: &[&str]) {
        let missing = self.nvue.at(path).is_none();
        self.push(path, None, false, missing);
    }

    /// Makes a profile a copy of another one, but for some of its members.
    pub fn copy(&mut self, path: &[&str], from: &Map<String, Value>, except: &[&str]) {
        let desired = collect_leaves(from, except);
        if let Some(Value::Object(there)) = self.nvue.at(path) {
            for rest in collect_leaves(there, except).keys() {
                if !desired.contains_key(rest) {
                    self.push(&join_path(path, rest), None, true, false);
                }
            }
        }
        for (rest, leaf) in desired {
            self.put(&join_path(path, &rest), leaf, true);
        }
    }

    fn push(&mut self, path: &[&str], value: Option<Leaf>, copied: bool, missing: bool) {
        self.edits.push(CumulusEdit {
            path: path.iter().map(|word| (*word).to_owned()).collect(),
            value,
            copied,
            missing,
        });
    }

    /// The edits, each once.
    pub fn finish(mut self) -> Vec<CumulusEdit> {
        self.edits.sort();
        self.edits.dedup();
        self.edits
    }
}

fn join_path<'w>(path: &[&'w str], rest: &'w [String]) -> Vec<&'w str> {
    let rest = rest.iter().map(String::as_str);
    path.iter().copied().chain(rest).collect()
}

/// The ends of a tree, but for some of its members, by the words that lead there.
pub(super) fn collect_leaves(
    tree: &Map<String, Value>,
    except: &[&str],
) -> BTreeMap<Vec<String>, Leaf> {
    let mut leaves = BTreeMap::new();
    for (name, value) in tree {
        if except.contains(&name.as_str()) {
            continue;
        }
        if let Some(leaf) = Leaf::of(value) {
            leaves.insert(vec![name.clone()], leaf);
        } else if let Value::Object(below) = value {
            for (path, leaf) in collect_leaves(below, &[]) {
                leaves.insert([vec![name.clone()], path].concat(), leaf);
            }
        }
    }
    leaves
}

/// The edits that take effect, of all of a step: what is desired goes before what is carried over,
/// and both before what is only not to come.
pub fn select_effective_edits(edits: &[CumulusEdit]) -> Vec<&CumulusEdit> {
    let mut places: BTreeMap<&[String], &CumulusEdit> = BTreeMap::new();
    for edit in edits {
        let goes_before = match places.get(edit.path.as_slice()) {
            Some(there) => {
                (edit.copied, edit.value.is_none()) < (there.copied, there.value.is_none())
            }
            None => true,
        };
        if goes_before {
            places.insert(&edit.path, edit);
        }
    }
    // What is taken away as a whole takes along what is below it; a map in order has that right
    // behind it.
    let mut gone: Option<&[String]> = None;
    let mut effective = Vec::new();
    for edit in places.into_values().filter(|edit| !edit.missing) {
        let is_below = gone.is_some_and(|gone| edit.path.starts_with(gone));
        if edit.value.is_none() && !is_below {
            gone = Some(&edit.path);
        }
        if edit.value.is_some() || !is_below {
            effective.push(edit);
        }
    }
    effective
}

/// The documents of all edits of a step, one to be patched after the other: NVUE takes no `unset`
/// and `set` of the same object in one patch (CumulusNetworks/docs:
/// content/cumulus-linux-516/System-Configuration/NVIDIA-User-Experience-NVUE/NVUE-CLI.md).
pub fn build_patch_documents(edits: &[CumulusEdit]) -> Vec<Value> {
    let (mut gone, mut set) = (Map::new(), Map::new());
    for edit in select_effective_edits(edits) {
        match &edit.value {
            None => insert_tree_value(&mut gone, &edit.path, Value::Null),
            Some(leaf) => insert_tree_value(&mut set, &edit.path, json!(leaf)),
        }
    }
    let mut documents = Vec::new();
    for (word, tree) in [("unset", gone), ("set", set)] {
        if !tree.is_empty() {
            documents.push(json!([{ word: tree }]));
        }
    }
    documents
}

/// An entry may have more below it.
pub(super) fn insert_tree_value(tree: &mut Map<String, Value>, path: &[String], value: Value) {
    let [word, rest @ ..] = path else { return };
    if rest.is_empty() {
        let has_more = value.is_object() && tree.get(word).is_some_and(Value::is_object);
        if !has_more {
            tree.insert(word.clone(), value);
        }
        return;
    }
    let below = tree
        .entry(word.clone())
        .or_insert_with(|| Value::Object(Map::new()));
    if !below.is_object() {
        *below = Value::Object(Map::new());
    }
    if let Value::Object(below) = below {
        insert_tree_value(below, rest, value);
    }
}

/// What edits do to a port: NVUE has switchd read its files again, which changes nothing for
/// packets on their way but where buffers change (the manual, switchd and QoS).
pub fn compute_cumulus_disruption(edits: &[CumulusEdit], port: &str, is_up: bool) -> Disturbance {
    let effective = select_effective_edits(edits);
    let mut interrupts = Vec::new();
    if is_up && effective.iter().any(|edit| has_words(edit, ["qos", "pfc"])) {
        interrupts.push(format!(
            "{port} may lose packets for a moment: switchd changes its buffers for PFC"
        ));
    }
    if effective
        .iter()
        .any(|edit| has_words(edit, ["qos", "traffic-pool"]))
    {
        interrupts.push(
            "all ports may lose packets for a moment: switchd divides the buffers of the switch \
             anew"
                .to_owned(),
        );
    }
    Disturbance {
        disruption: Disruption::Reload,
        interrupts,
    }
}

fn has_words(edit: &CumulusEdit, words: [&str; 2]) -> bool {
    let path = &edit.path;
    words
        .iter()
        .all(|word| path.iter().any(|there| there == word))
}
