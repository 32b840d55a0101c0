//! The files of an inventory as one tree: merged by top-level key, and searched by path
//! (`nodes[0].iommu`).

use super::source::SourceFile;
use super::source::{SourceText, Sources};
use super::yaml::{AliasBudget, NodeId, YamlDocument, YamlEntry, YamlNodeKind};
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Label, SourceLocation};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Top-level keys whose lists are joined over all files.
pub const LISTS: [&str; 4] = ["nodes", "repositories", "switches", "workloads"];
/// Top-level keys whose mappings are joined over all files.
pub const MAPS: [&str; 2] = ["modules", "secrets"];
/// Top-level keys that one file only may hold.
pub const SINGLE: [&str; 10] = [
    "cluster",
    "fabric",
    "ssh",
    "cabling",
    "kubernetes",
    "jobs",
    "rules",
    "rollout",
    "verify",
    "drift",
];

/// A node of one of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpecLocation {
    file: usize,
    /// The key before it, if it is a value of a mapping.
    key: Option<NodeId>,
    node: NodeId,
}

impl SpecLocation {
    /// The key before it, if it is a value of a mapping.
    pub fn key(self) -> Option<NodeId> {
        self.key
    }
}

/// All files.
#[derive(Debug, Clone, Default)]
pub struct SpecTree {
    documents: Vec<YamlDocument>,
    /// Every top-level key with the files that hold it.
    top: BTreeMap<String, Vec<SpecLocation>>,
    /// The items of joined lists, in the order of the model.
    items: BTreeMap<&'static str, Vec<SpecLocation>>,
    /// The entries of joined mappings, by name.
    named: BTreeMap<&'static str, HashMap<String, SpecLocation>>,
    /// True when a file could not be read to its end: what is missing may be in there.
    pub unreadable: bool,
}

/// Where a file is read as one of the spec that is none.
const NO_SPEC_FILE: &str = "a file of something else has another place than the top of the \
                            inventory, or another name than `*.yaml`";

fn list_known_keys() -> impl Iterator<Item = &'static str> {
    SINGLE.iter().chain(&LISTS).chain(&MAPS).copied()
}

fn find_near_key(name: &str) -> Option<&'static str> {
    find_nearest_word(name, list_known_keys())
}

/// A file none of whose keys is one of the spec, or like one, is something else: a kubeconfig, a
/// secret. No line of it is shown.
fn report_no_spec_file(document: &YamlDocument, entries: &[YamlEntry]) -> Option<Diagnostic> {
    let is_of_spec = |entry: &YamlEntry| {
        let name = document.text(entry.key);
        list_known_keys().any(|key| key == name)
    };
    let is_mistyped = |entry: &YamlEntry| find_near_key(document.text(entry.key)).is_some();
    if entries.is_empty() || entries.iter().any(is_of_spec) || entries.iter().all(is_mistyped) {
        return None;
    }
    Some(
        Diagnostic::error("RW0105", "a file of the inventory has no key of a spec")
            .on(document.source().name())
            .next(NO_SPEC_FILE),
    )
}

impl SpecTree {
    /// Parses and joins the files; whatever is wrong goes to `problems`.
    pub fn read(
        files: Vec<SourceFile>,
        sources: &mut Sources,
        problems: &mut Vec<Diagnostic>,
    ) -> SpecTree {
        let (mut tree, mut aliases) = (SpecTree::default(), AliasBudget::default());
        for file in files {
            let source = Arc::new(SourceText::new(file));
            sources.add(Arc::clone(&source));
            match YamlDocument::parse(source, &mut aliases, problems) {
                Some(document) => tree.join(document, problems),
                None => tree.unreadable = true,
            }
        }
        tree
    }

    fn join(&mut self, document: YamlDocument, problems: &mut Vec<Diagnostic>) {
        let file = self.documents.len();
        let Some(root) = document.root().filter(|root| !document.is_null(*root)) else {
            return;
        };
        if document.kind(root) != YamlNodeKind::Mapping {
            self.unreadable = true;
            problems.push(
                Diagnostic::error("RW0106", "a spec file is a mapping (`key: value`)")
                    .on(document.source().name())
                    .next("start with a key, such as `cluster: NAME`")
                    .next(NO_SPEC_FILE),
            );
            return;
        }
        let entries: Vec<YamlEntry> = document.entries(root).collect();
        if let Some(problem) = report_no_spec_file(&document, &entries) {
            problems.push(problem);
            return;
        }
        self.documents.push(document);
        for YamlEntry { key, value } in entries {
            self.join_entry(
                SpecLocation {
                    file,
                    key: Some(key),
                    node: value,
                },
                key,
                problems,
            );
        }
    }

    fn join_entry(&mut self, location: SpecLocation, key: NodeId, problems: &mut Vec<Diagnostic>) {
        let name = self.documents[location.file].text(key).to_owned();
        let joined = LISTS.contains(&name.as_str()) || MAPS.contains(&name.as_str());
        if !joined && !SINGLE.contains(&name.as_str()) {
            let key = SpecLocation {
                node: key,
                ..location
            };
            problems.push(self.unknown_key(&name, key));
            return;
        }
        if !joined
            && let Some(first) = self.sections(&name).first()
            && first.file != location.file
        {
            problems.push(
                Diagnostic::error("RW0109", format!("`{name}` stands in two files"))
                    .labelled(self.key_label(location, "again here"))
                    .labelled(self.key_label(*first, "first here"))
                    .next(
                        "keep one; only nodes, repositories, switches, workloads, modules and \
                         secrets are joined over files",
                    ),
            );
            return;
        }
        if let Some(map) = MAPS.iter().find(|map| **map == name) {
            let entries = self.entries(location);
            let named = self.named.entry(map).or_default();
            for (name, entry) in entries {
                named.entry(name).or_insert(entry);
            }
        }
        self.top.entry(name).or_default().push(location);
    }

    fn unknown_key(&self, name: &str, key: SpecLocation) -> Diagnostic {
        let name = one_line(name, 60);
        let label = match find_near_key(&name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "nothing reads this".to_owned(),
        };
        let known: Vec<&str> = list_known_keys().collect();
        Diagnostic::error("RW0105", format!("unknown key `{name}`"))
            .labelled(self.label(key, &label))
            .next(format!("keys that can stand here: {}", known.join(", ")))
    }

    /// Points at the start of the first file: for what is in none of them.
    pub fn at_first_file(&self, diagnostic: Diagnostic) -> Diagnostic {
        match self.documents.first() {
            Some(document) => {
                let span = document.root().map_or(0..0, |root| document.caret(root));
                diagnostic.at(document.source().name(), span, "for example here")
            }
            None => diagnostic,
        }
    }

    /// The files that hold a top-level key.
    pub fn sections(&self, key: &str) -> &[SpecLocation] {
        self.top.get(key).map_or(&[], Vec::as_slice)
    }

    /// Notes where an item of a joined list came from; called in the order of the model's list.
    pub fn note_item(&mut self, list: &'static str, item: SpecLocation) {
        self.items.entry(list).or_default().push(item);
    }

    /// The file of a location and the node in it.
    pub fn document(&self, location: SpecLocation) -> (&YamlDocument, NodeId) {
        (&self.documents[location.file], location.node)
    }

    /// The items of the list at a location.
    pub fn items(&self, location: SpecLocation) -> Vec<SpecLocation> {
        let (document, node) = self.document(location);
        document
            .items(node)
            .map(|node| SpecLocation {
                file: location.file,
                key: None,
                node,
            })
            .collect()
    }

    /// The entries of the mapping at a location.
    pub fn entries(&self, location: SpecLocation) -> Vec<(String, SpecLocation)> {
        let (document, node) = self.document(location);
        let mut entries = Vec::new();
        for entry in document.entries(node) {
            let location = SpecLocation {
                file: location.file,
                key: Some(entry.key),
                node: entry.value,
            };
            entries.push((document.text(entry.key).to_owned(), location));
        }
        entries
    }

    /// The value at a path such as `fabric.mtu`, `nodes[0].nics.netdev` or
    /// `modules["a.b"].enabled`; nothing where the files do not say it.
    pub fn find(&self, path: &str) -> Option<SpecLocation> {
        let (first, rest) = first_segment(path)?;
        let Segment::Key(name) = first else {
            return None;
        };
        let (start, mut rest) = match first_segment(rest) {
            None => (*self.sections(&name).first()?, rest),
            Some((Segment::Index(index), after)) if LISTS.contains(&name.as_str()) => {
                (*self.items.get(name.as_str())?.get(index)?, after)
            }
            Some((Segment::Key(key), after)) if MAPS.contains(&name.as_str()) => {
                (*self.named.get(name.as_str())?.get(&key)?, after)
            }
            Some(_) => (*self.sections(&name).first()?, rest),
        };
        let mut location = start;
        while let Some((segment, after)) = first_segment(rest) {
            location = self.child(location, &segment)?;
            rest = after;
        }
        rest.is_empty().then_some(location)
    }

    fn child(&self, location: SpecLocation, segment: &Segment) -> Option<SpecLocation> {
        let (document, node) = self.document(location);
        match segment {
            Segment::Index(index) => document.items(node).nth(*index).map(|node| SpecLocation {
                key: None,
                node,
                ..location
            }),
            Segment::Key(key) => {
                let entry = document.entry(node, key)?;
                Some(SpecLocation {
                    key: Some(entry.key),
                    node: entry.value,
                    ..location
                })
            }
        }
    }

    /// The bytes that a caret marks for a location, and their file: a scalar in full, the key or
    /// start of anything larger.
    pub fn caret(&self, location: SpecLocation) -> (&YamlDocument, Range<usize>) {
        let (document, node) = self.document(location);
        let collection = matches!(
            document.kind(node),
            YamlNodeKind::Mapping | YamlNodeKind::Sequence
        );
        let node = if collection {
            location.key.unwrap_or(node)
        } else {
            node
        };
        (document, document.caret(node))
    }

    /// A caret at a location.
    pub fn label(&self, location: SpecLocation, text: &str) -> Label {
        let (document, span) = self.caret(location);
        Label {
            file: document.source().name().to_owned(),
            span,
            text: text.to_owned(),
        }
    }

    /// A caret at the key of a location.
    pub fn key_label(&self, location: SpecLocation, text: &str) -> Label {
        self.label(
            SpecLocation {
                node: location.key.unwrap_or(location.node),
                key: None,
                ..location
            },
            text,
        )
    }

    /// A caret at a part of the text of the scalar at a location.
    pub fn label_within(&self, location: SpecLocation, part: Range<usize>, text: &str) -> Label {
        let (document, node) = self.document(location);
        Label {
            file: document.source().name().to_owned(),
            span: document.span_within(node, part),
            text: text.to_owned(),
        }
    }

    /// Line and column of a path.
    pub fn place(&self, path: &str) -> Option<SourceLocation> {
        let (document, span) = self.caret(self.find(path)?);
        let (line, column) = document.source().line_column(span.start);
        Some(SourceLocation {
            file: document.source().name().to_owned(),
            line,
            column,
            path: path.to_owned(),
        })
    }
}

enum Segment {
    Key(String),
    Index(usize),
}

/// The first step of a path and the rest of it: `a`, `.a`, `[0]` or `["a.b"]`.
fn first_segment(path: &str) -> Option<(Segment, &str)> {
    if let Some(inside) = path.strip_prefix("[\"") {
        let (key, rest) = inside.split_once("\"]")?;
        return Some((Segment::Key(key.to_owned()), rest));
    }
    if let Some(inside) = path.strip_prefix('[') {
        let (index, rest) = inside.split_once(']')?;
        return Some((Segment::Index(index.parse().ok()?), rest));
    }
    let path = path.strip_prefix('.').unwrap_or(path);
    let end = path.find(['.', '[']).unwrap_or(path.len());
    (end > 0).then(|| (Segment::Key(path[..end].to_owned()), &path[end..]))
}
