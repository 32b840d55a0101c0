//! `module.yaml` as it was written: fields with their nodes in the document, nothing compiled yet.

use crate::spec::decode::{DecodeError, decode_value};
use crate::spec::yaml::{NodeId, YamlDocument, YamlNodeKind};
use railwright_base::{Diagnostic, suggest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a parameter holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterType {
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list.
    List,
    /// A map.
    Map,
}

impl ParameterType {
    /// True for a value of this type.
    pub fn fits(self, value: &Value) -> bool {
        match self {
            ParameterType::String => value.is_string(),
            ParameterType::Integer => value.is_i64() || value.is_u64(),
            ParameterType::Number => value.is_number(),
            ParameterType::Boolean => value.is_boolean(),
            ParameterType::List => value.is_array(),
            ParameterType::Map => value.is_object(),
        }
    }

    /// The type in words.
    pub fn words(self) -> &'static str {
        match self {
            ParameterType::String => "text",
            ParameterType::Integer => "a whole number",
            ParameterType::Number => "a number",
            ParameterType::Boolean => "true or false",
            ParameterType::List => "a list",
            ParameterType::Map => "a map",
        }
    }
}

/// A parameter: where its value comes from unless the spec overrides it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleParameter {
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// The path of the spec that it is taken from: `fabric.mtu`, `host.gpu.direct.source`.
    #[serde(default)]
    pub from: Option<String>,
    /// The value where the spec says nothing.
    #[serde(default)]
    pub default: Option<Value>,
    /// What it is, for the user.
    pub doc: String,
    /// Without a value the module cannot be used; true unless it is said otherwise or there is a
    /// default.
    #[serde(default)]
    pub required: Option<bool>,
}

impl ModuleParameter {
    /// True when the module cannot be used without a value.
    pub fn is_required(&self) -> bool {
        self.required.unwrap_or(self.default.is_none())
    }
}

/// The manifest's plain fields; what has templates in it is found by its node.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestHeader {
    module: String,
    summary: String,
    #[serde(default, rename = "when")]
    _when: Option<String>,
    #[serde(default, rename = "needs")]
    _needs: Option<String>,
    #[serde(default)]
    parameters: BTreeMap<String, ModuleParameter>,
    #[serde(default, rename = "resources")]
    _resources: Vec<Value>,
    #[serde(default, rename = "verify")]
    _verify: Vec<Value>,
    #[serde(default)]
    after: Vec<String>,
    #[serde(default)]
    provides: Vec<String>,
}

/// Text of the manifest and its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestText {
    /// The text.
    pub text: String,
    /// Where it stands.
    pub node: NodeId,
}

/// One entry of `resources`.
#[derive(Debug, Clone)]
pub struct ResourceEntry {
    /// Its name within the module.
    pub id: ManifestText,
    /// The condition.
    pub when: Option<ManifestText>,
    /// `rail in host.rails`: once for each.
    pub each: Option<ManifestText>,
    /// The resource kind.
    pub kind: ManifestText,
    /// The body.
    pub body: NodeId,
    /// What comes first: a resource of this module by its id, a module, a capability.
    pub after: Vec<ManifestText>,
}

/// One entry of `verify`.
#[derive(Debug, Clone)]
pub struct CheckEntry {
    /// Its name within the module.
    pub id: ManifestText,
    /// The condition.
    pub when: Option<ManifestText>,
    /// Once for each.
    pub each: Option<ManifestText>,
    /// The script, run in a fresh login.
    pub run: ManifestText,
    /// What it must print, white space at the ends left out.
    pub expect: Option<ManifestText>,
    /// Its time limit in seconds.
    pub limit_s: u32,
}

/// A whole manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The file.
    pub document: YamlDocument,
    /// The module's name.
    pub name: ManifestText,
    /// One line for `explain`.
    pub summary: String,
    /// The condition.
    pub when: Option<ManifestText>,
    /// What a host has to have, whatever the spec enables.
    pub needs: Option<ManifestText>,
    /// By name.
    pub parameters: BTreeMap<String, ModuleParameter>,
    /// In the order of the file.
    pub resources: Vec<ResourceEntry>,
    /// In the order of the file.
    pub checks: Vec<CheckEntry>,
    /// Modules or capabilities that come first.
    pub after: Vec<ManifestText>,
    /// Capabilities that other modules can come after.
    pub provides: Vec<String>,
}

/// Reads a manifest; all that is wrong with its form goes to `problems`.
pub fn parse_manifest(document: YamlDocument, problems: &mut Vec<Diagnostic>) -> Option<Manifest> {
    let root = find_root_mapping(&document, problems)?;
    let before = problems.len();
    let head: Option<ManifestHeader> = decode_node(&document, root, problems);
    let mut reader = ManifestReader {
        document: &document,
        problems,
    };
    let resources = reader.resources(root);
    let checks = reader.checks(root);
    reader.twice(resources.iter().map(|resource| &resource.id));
    reader.twice(checks.iter().map(|check| &check.id));
    let (name, when, needs) = (
        reader.noted(root, "module"),
        reader.noted(root, "when"),
        reader.noted(root, "needs"),
    );
    let after = reader.list(root, "after");
    let (head, name) = (head?, name?);
    if problems.len() > before {
        return None;
    }
    debug_assert_eq!((&head.module, head.after.len()), (&name.text, after.len()));
    Some(Manifest {
        document,
        name,
        summary: head.summary,
        when,
        needs,
        parameters: head.parameters,
        resources,
        checks,
        after,
        provides: head.provides,
    })
}

fn find_root_mapping(document: &YamlDocument, problems: &mut Vec<Diagnostic>) -> Option<NodeId> {
    let root = document
        .root()
        .filter(|root| document.kind(*root) == YamlNodeKind::Mapping);
    if root.is_none() {
        problems.push(Diagnostic::error("RW0201", "a manifest is a mapping").at(
            document.source().name(),
            0..0,
            "nothing of the kind is here",
        ));
    }
    root
}

fn decode_node<T: DeserializeOwned>(
    document: &YamlDocument,
    node: NodeId,
    problems: &mut Vec<Diagnostic>,
) -> Option<T> {
    let mut failures: Vec<DecodeError> = Vec::new();
    let value = decode_value(document, None, node, &mut failures);
    problems.extend(failures.iter().map(|failure| failure.diagnostic(document)));
    value
}

struct ManifestReader<'a> {
    document: &'a YamlDocument,
    problems: &'a mut Vec<Diagnostic>,
}

const RESOURCE_KEYS: [&str; 4] = ["id", "when", "for", "after"];
const CHECK_KEYS: [&str; 6] = ["id", "when", "for", "run", "expect", "limit_s"];
/// Seconds that a check may take unless it says otherwise.
const CHECK_LIMIT_S: u32 = 30;

impl ManifestReader<'_> {
    fn problem(&mut self, node: NodeId, message: String, label: String) {
        self.problems.push(Diagnostic::error("RW0201", message).at(
            self.document.source().name(),
            self.document.caret(node),
            label,
        ));
    }

    fn noted(&mut self, mapping: NodeId, key: &str) -> Option<ManifestText> {
        let node = self.document.entry(mapping, key)?.value;
        match self.document.kind(node) {
            YamlNodeKind::Plain | YamlNodeKind::Quoted if !self.document.is_null(node) => {
                Some(ManifestText {
                    text: self.document.text(node).to_owned(),
                    node,
                })
            }
            _ => {
                self.problem(node, format!("`{key}` is text"), "this is none".to_owned());
                None
            }
        }
    }

    fn list(&mut self, mapping: NodeId, key: &str) -> Vec<ManifestText> {
        let Some(entry) = self.document.entry(mapping, key) else {
            return Vec::new();
        };
        if self.document.kind(entry.value) != YamlNodeKind::Sequence {
            self.problem(
                entry.value,
                format!("`{key}` is a list"),
                "this is none".to_owned(),
            );
        }
        self.document
            .items(entry.value)
            .map(|node| ManifestText {
                text: self.document.text(node).to_owned(),
                node,
            })
            .collect()
    }

    fn named(&mut self, node: NodeId, what: &str) -> Option<ManifestText> {
        if self.document.kind(node) != YamlNodeKind::Mapping {
            self.problem(
                node,
                format!("a {what} is a mapping"),
                "this is none".to_owned(),
            );
            return None;
        }
        let id = self.noted(node, "id");
        if id.is_none() {
            self.problem(
                node,
                format!("this {what} has no `id`"),
                "add `id: name`: plans and errors name it so".to_owned(),
            );
        }
        id
    }

    fn resources(&mut self, root: NodeId) -> Vec<ResourceEntry> {
        let nodes = self.items(root, "resources").into_iter();
        nodes.filter_map(|node| self.resource(node)).collect()
    }

    fn checks(&mut self, root: NodeId) -> Vec<CheckEntry> {
        let nodes = self.items(root, "verify").into_iter();
        nodes.filter_map(|node| self.check(node)).collect()
    }

    fn items(&self, root: NodeId, key: &str) -> Vec<NodeId> {
        let Some(entry) = self.document.entry(root, key) else {
            return Vec::new();
        };
        self.document.items(entry.value).collect()
    }

    fn resource(&mut self, node: NodeId) -> Option<ResourceEntry> {
        let id = self.named(node, "resource");
        let kinds: Vec<_> = self
            .document
            .entries(node)
            .filter(|entry| !RESOURCE_KEYS.contains(&self.document.text(entry.key)))
            .collect();
        let (when, each, after) = (
            self.noted(node, "when"),
            self.noted(node, "for"),
            self.list(node, "after"),
        );
        match kinds.as_slice() {
            [entry] => {
                let kind = ManifestText {
                    text: self.document.text(entry.key).to_owned(),
                    node: entry.key,
                };
                Some(ResourceEntry {
                    id: id?,
                    when,
                    each,
                    kind,
                    body: entry.value,
                    after,
                })
            }
            [] => {
                self.problem(
                    node,
                    "this resource has no kind".to_owned(),
                    "add one, such as `file: { ... }`".to_owned(),
                );
                None
            }
            [_, second, ..] => {
                let (mut node, mut label) = (second.key, "one too many".to_owned());
                for entry in &kinds {
                    let key = self.document.text(entry.key);
                    if let Some(near) = suggest::find_nearest_word(key, RESOURCE_KEYS) {
                        (node, label) = (entry.key, format!("did you mean `{near}`?"));
                        break;
                    }
                }
                self.problem(node, "a resource has one kind".to_owned(), label);
                None
            }
        }
    }

    fn check(&mut self, node: NodeId) -> Option<CheckEntry> {
        let id = self.named(node, "check");
        let unknown = self
            .document
            .entries(node)
            .find(|entry| !CHECK_KEYS.contains(&self.document.text(entry.key)));
        if let Some(entry) = unknown {
            let word = self.document.text(entry.key).to_owned();
            let near = match suggest::find_nearest_word(&word, CHECK_KEYS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "nothing reads this".to_owned(),
            };
            self.problem(entry.key, format!("unknown key `{word}`"), near);
        }
        let (when, each, expect) = (
            self.noted(node, "when"),
            self.noted(node, "for"),
            self.noted(node, "expect"),
        );
        let limit = self
            .document
            .entry(node, "limit_s")
            .map(|entry| entry.value);
        let limit_s = limit
            .and_then(|node| decode_node(self.document, node, self.problems))
            .unwrap_or(CHECK_LIMIT_S);
        let run = self.noted(node, "run");
        if run.is_none() {
            self.problem(
                node,
                "this check has no `run`".to_owned(),
                "add the command that it runs".to_owned(),
            );
        }
        Some(CheckEntry {
            id: id?,
            when,
            each,
            run: run?,
            expect,
            limit_s,
        })
    }

    fn twice<'b>(&mut self, ids: impl Iterator<Item = &'b ManifestText>) {
        let mut seen: BTreeMap<&str, NodeId> = BTreeMap::new();
        for id in ids {
            if let Some(first) = seen.insert(&id.text, id.node) {
                let name = self.document.source().name();
                self.problems.push(
                    Diagnostic::error(
                        "RW0201",
                        format!("`{}` comes twice in this module", id.text),
                    )
                    .at(name, self.document.caret(id.node), "again here")
                    .at(name, self.document.caret(first), "first here"),
                );
            }
        }
    }
}
