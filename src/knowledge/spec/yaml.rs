//! One YAML file as an arena of nodes, each with its bytes in the file. Stricter than YAML, because
//! a spec is written by one person and read by another: no doubled keys, no tags, no second
//! document, keys are plain text.
//!
//! Nodes lie in the order of the text: the first child of a node is the next node, and `after`
//! leads past its last.

mod build;
mod syntax;

pub use build::AliasBudget;

use super::source::SourceText;
use railwright_base::Diagnostic;
use std::ops::Range;
use std::sync::Arc;

/// The place of a node in its document's arena.
pub type NodeId = u32;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YamlNodeKind {
    /// Text without quotes: it may stand for a number, a bool or nothing.
    Plain,
    /// Text in quotes or in a block: always text.
    Quoted,
    /// A list.
    Sequence,
    /// Keys and values by turns.
    Mapping,
    /// `*name`: another node of the document.
    Alias,
}

/// How the text of a scalar is found.
const TEXT_IS_SPAN: u32 = u32::MAX;
const TEXT_IS_SPAN_IN_QUOTES: u32 = u32::MAX - 1;

#[derive(Debug, Clone, Copy)]
struct YamlNode {
    kind: YamlNodeKind,
    /// True for a mapping with a merge key `<<`.
    merges: bool,
    start: u32,
    end: u32,
    after: NodeId,
    /// A scalar's index in `owned` or one of the constants above; an alias's target.
    extra: u32,
}

/// One parsed file.
#[derive(Debug, Clone)]
pub struct YamlDocument {
    source: Arc<SourceText>,
    nodes: Vec<YamlNode>,
    /// Texts that differ from the bytes in the file: escapes, folded blocks.
    owned: Vec<String>,
}

/// A key with its value.
#[derive(Debug, Clone, Copy)]
pub struct YamlEntry {
    /// The key's scalar.
    pub key: NodeId,
    /// The value as it stands there, possibly an alias.
    pub value: NodeId,
}

impl YamlDocument {
    /// Reads a file. What is wrong with it goes to `problems`; a document comes back even then, if
    /// there is any sense in reading on, so that one run shows all errors. Its aliases are paid
    /// from the budget of the files that are read together.
    pub fn parse(
        source: Arc<SourceText>,
        aliases: &mut AliasBudget,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<YamlDocument> {
        build::build_document(source, aliases, problems)
    }

    /// The file.
    pub fn source(&self) -> &Arc<SourceText> {
        &self.source
    }

    /// The top node; nothing in an empty file.
    pub fn root(&self) -> Option<NodeId> {
        (!self.nodes.is_empty()).then_some(0)
    }

    fn node(&self, id: NodeId) -> &YamlNode {
        &self.nodes[id as usize]
    }

    /// What a node is, aliases followed.
    pub fn kind(&self, id: NodeId) -> YamlNodeKind {
        self.node(self.resolved(id)).kind
    }

    /// The node that an alias stands for; any other node itself.
    pub fn resolved(&self, mut id: NodeId) -> NodeId {
        while self.node(id).kind == YamlNodeKind::Alias {
            id = self.node(id).extra;
        }
        id
    }

    /// The text of a scalar; empty for anything else.
    pub fn text(&self, id: NodeId) -> &str {
        let node = self.node(self.resolved(id));
        let (start, end) = (node.start as usize, node.end as usize);
        match (node.kind, node.extra) {
            (YamlNodeKind::Plain | YamlNodeKind::Quoted, TEXT_IS_SPAN) => {
                self.source.text().get(start..end).unwrap_or("")
            }
            (YamlNodeKind::Plain | YamlNodeKind::Quoted, TEXT_IS_SPAN_IN_QUOTES) => {
                self.source.text().get(start + 1..end - 1).unwrap_or("")
            }
            (YamlNodeKind::Plain | YamlNodeKind::Quoted, index) => {
                self.owned.get(index as usize).map_or("", String::as_str)
            }
            _ => "",
        }
    }

    /// True for a plain scalar that stands for nothing: empty, `~` or `null`.
    pub fn is_null(&self, id: NodeId) -> bool {
        self.kind(id) == YamlNodeKind::Plain
            && matches!(self.text(id), "" | "~" | "null" | "Null" | "NULL")
    }

    /// The bytes of a node where it stands (for an alias those of `*name`); never empty where there
    /// is text to show.
    pub fn span(&self, id: NodeId) -> Range<usize> {
        let node = self.node(id);
        node.start as usize..node.end as usize
    }

    /// Where a caret goes: a scalar in full, the start of anything larger.
    pub fn caret(&self, id: NodeId) -> Range<usize> {
        let span = self.span(id);
        match self.node(id).kind {
            YamlNodeKind::Mapping
                if self.source.text().as_bytes().get(span.start) != Some(&b'{')
                    && id + 1 < self.node(id).after =>
            {
                self.caret(id + 1)
            }
            YamlNodeKind::Sequence | YamlNodeKind::Mapping => {
                span.start..(span.start + 1).min(span.end)
            }
            _ => span,
        }
    }

    /// The bytes of a part of a scalar's text, if the text stands in the file as it is; else the
    /// whole scalar.
    pub fn span_within(&self, id: NodeId, part: Range<usize>) -> Range<usize> {
        let id = self.resolved(id);
        let node = self.node(id);
        let start = match node.extra {
            TEXT_IS_SPAN => node.start as usize,
            TEXT_IS_SPAN_IN_QUOTES => node.start as usize + 1,
            _ => return self.span(id),
        };
        start + part.start..start + part.end
    }

    /// The items of a list; nothing for other nodes.
    pub fn items(&self, id: NodeId) -> Children<'_> {
        let id = self.resolved(id);
        match self.node(id).kind {
            YamlNodeKind::Sequence => Children {
                document: self,
                next: id + 1,
                end: self.node(id).after,
            },
            _ => Children {
                document: self,
                next: id,
                end: id,
            },
        }
    }

    /// The entries of a mapping in the order of the text, merged ones last; an own key hides a
    /// merged one.
    pub fn entries(&self, id: NodeId) -> Entries<'_> {
        let id = self.resolved(id);
        match self.node(id) {
            YamlNode {
                kind: YamlNodeKind::Mapping,
                merges: false,
                ..
            } => self.own_entries(id),
            YamlNode {
                kind: YamlNodeKind::Mapping,
                ..
            } => {
                let mut entries = Vec::new();
                let mut seen = std::collections::HashSet::new();
                self.merge_into(id, &mut entries, &mut seen);
                Entries::Merged(entries.into_iter())
            }
            _ => Entries::Merged(Vec::new().into_iter()),
        }
    }

    /// The entries of a mapping as they stand there, merge keys among them.
    fn own_entries(&self, mapping: NodeId) -> Entries<'_> {
        Entries::Own(Children {
            document: self,
            next: mapping + 1,
            end: self.node(mapping).after,
        })
    }

    /// `build` bounds how deep and how wide merging can go, so this recursion ends soon.
    fn merge_into<'a>(
        &'a self,
        mapping: NodeId,
        entries: &mut Vec<YamlEntry>,
        seen: &mut std::collections::HashSet<&'a str>,
    ) {
        let mut merged = Vec::new();
        for YamlEntry { key, value } in self.own_entries(mapping) {
            if self.is_merge_key(key) {
                let value = self.resolved(value);
                match self.node(value).kind {
                    YamlNodeKind::Mapping => merged.push(value),
                    _ => merged.extend(
                        self.items(value)
                            .map(|item| self.resolved(item))
                            .filter(|i| self.node(*i).kind == YamlNodeKind::Mapping),
                    ),
                }
            } else if seen.insert(self.text(key)) {
                entries.push(YamlEntry { key, value });
            }
        }
        for mapping in merged {
            self.merge_into(mapping, entries, seen);
        }
    }

    fn is_merge_key(&self, key: NodeId) -> bool {
        self.node(key).kind == YamlNodeKind::Plain && self.text(key) == "<<"
    }

    /// The entry with this key.
    pub fn entry(&self, mapping: NodeId, key: &str) -> Option<YamlEntry> {
        self.entries(mapping)
            .find(|entry| self.text(entry.key) == key)
    }
}

/// The direct children of a node.
#[derive(Debug, Clone)]
pub struct Children<'a> {
    document: &'a YamlDocument,
    next: NodeId,
    end: NodeId,
}

impl Iterator for Children<'_> {
    type Item = NodeId;
    fn next(&mut self) -> Option<NodeId> {
        if self.next >= self.end {
            return None;
        }
        let id = self.next;
        self.next = self.document.node(id).after;
        Some(id)
    }
}

/// The entries of a mapping.
#[derive(Debug, Clone)]
pub enum Entries<'a> {
    /// No merge key: straight from the arena.
    Own(Children<'a>),
    /// With what was merged in.
    Merged(std::vec::IntoIter<YamlEntry>),
}

impl Iterator for Entries<'_> {
    type Item = YamlEntry;
    fn next(&mut self) -> Option<YamlEntry> {
        match self {
            Entries::Own(children) => Some(YamlEntry {
                key: children.next()?,
                value: children.next()?,
            }),
            Entries::Merged(entries) => entries.next(),
        }
    }
}
