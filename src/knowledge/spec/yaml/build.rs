//! From the parser's events to the arena. Limits are enforced here, before anything is built on a
//! hostile file; the parser crate is named here and in `syntax` only.

use super::syntax;
use super::{NodeId, TEXT_IS_SPAN, TEXT_IS_SPAN_IN_QUOTES, YamlDocument, YamlNode, YamlNodeKind};
use crate::spec::source::SourceText;
use granit_parser::{Event, Parser, ScalarStyle, Span};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The most bytes of one file; also keeps every offset within 32 bits.
const BYTES_MAX: usize = 64 << 20;
/// The most nodes of one file, counted with every alias unfolded: 64 MiB of an ordinary spec have 7
/// million.
const NODES_MAX: u64 = 8_000_000;
/// The deepest nesting, counted with every alias unfolded; a spec needs six levels.
const DEPTH_MAX: u32 = 64;

/// The most nodes that the aliases of all files stand for together: 10,000 groups of hosts that
/// share all their values have 500,000.
const ALIAS_NODES_MAX: u64 = 2_000_000;
/// The most bytes of text that they stand for: a value is decoded anew wherever its alias stands.
const ALIAS_BYTES_MAX: u64 = 16 << 20;

/// What an anchor or an open collection stands for, with every alias unfolded.
#[derive(Clone, Copy)]
struct YamlExpandedSize {
    nodes: u64,
    bytes: u64,
    levels: u32,
}

/// A node with nothing below it, without its text.
const NODE: YamlExpandedSize = YamlExpandedSize {
    nodes: 1,
    bytes: 0,
    levels: 1,
};

/// What aliases may still stand for, in all files that are read together.
#[derive(Debug, Clone)]
pub struct AliasBudget {
    nodes: u64,
    bytes: u64,
}

impl Default for AliasBudget {
    fn default() -> Self {
        AliasBudget {
            nodes: ALIAS_NODES_MAX,
            bytes: ALIAS_BYTES_MAX,
        }
    }
}

/// An open list or mapping.
struct Frame {
    id: NodeId,
    /// In a mapping: a key comes next.
    key_next: bool,
    /// Itself and what is below it so far.
    size: YamlExpandedSize,
    anchor: usize,
}

struct YamlDocumentBuilder<'a> {
    document: YamlDocument,
    frames: Vec<Frame>,
    anchors: HashMap<usize, (NodeId, YamlExpandedSize)>,
    documents: usize,
    aliases: &'a mut AliasBudget,
    problems: &'a mut Vec<Diagnostic>,
}

/// The file cannot be read any further; the reason is among the problems.
struct YamlBuildAbort;

pub(super) fn build_document(
    source: Arc<SourceText>,
    aliases: &mut AliasBudget,
    problems: &mut Vec<Diagnostic>,
) -> Option<YamlDocument> {
    if let Some(diagnostic) = check_size(&source).or_else(|| check_control_characters(&source)) {
        problems.push(diagnostic);
        return None;
    }
    let document = YamlDocument {
        source: Arc::clone(&source),
        nodes: Vec::new(),
        owned: Vec::new(),
    };
    let mut builder = YamlDocumentBuilder {
        document,
        frames: Vec::new(),
        anchors: HashMap::new(),
        documents: 0,
        aliases,
        problems,
    };
    let options = granit_parser::options! {
        flow_nesting_limit: DEPTH_MAX as usize,
        block_nesting_limit: DEPTH_MAX as usize
    };
    for next in Parser::new_from_str_with_options(source.text(), options) {
        match next {
            Ok((event, span)) => builder.take_event(event, &span).ok()?,
            Err(error) => {
                let at = error.marker().byte_offset().unwrap_or(0);
                let at = at.min(source.text().len());
                builder
                    .problems
                    .push(syntax::diagnose_syntax_error(&source, at, error.kind()));
                return None;
            }
        }
    }
    Some(builder.document)
}

fn check_size(source: &SourceText) -> Option<Diagnostic> {
    (source.text().len() > BYTES_MAX).then(|| {
        Diagnostic::error(
            "RW0104",
            format!("{} has more than {} MiB", source.name(), BYTES_MAX >> 20),
        )
        .next("split it into several files")
    })
}

/// Escape sequences and the like have no business in a spec, and would reach the reader's terminal.
fn check_control_characters(source: &SourceText) -> Option<Diagnostic> {
    let text = source.text();
    // Nearly every file passes this look at its bytes: 0xC2 starts the control characters beyond
    // ASCII, 0xEF the byte order mark.
    if !text.bytes().any(|b| {
        (b < 0x20 && !matches!(b, b'\n' | b'\r' | b'\t')) || matches!(b, 0x7F | 0xC2 | 0xEF)
    }) {
        return None;
    }
    let (at, c) = text.char_indices().find(|(at, c)| {
        (c.is_control() && !matches!(c, '\n' | '\r' | '\t')) || (*c == '\u{feff}' && *at > 0)
    })?;
    Some(
        Diagnostic::error(
            "RW0101",
            format!("the file holds the control character U+{:04X}", c as u32),
        )
        .at(source.name(), at..at + c.len_utf8(), "here")
        .next("remove it"),
    )
}

impl YamlDocumentBuilder<'_> {
    fn problem(
        &mut self,
        code: &'static str,
        message: impl Into<String>,
        span: Range<usize>,
        label: &str,
        fix: &str,
    ) {
        self.problems.push(
            Diagnostic::error(code, message)
                .at(self.document.source.name(), span, label)
                .next(fix),
        );
    }

    fn take_event(&mut self, event: Event<'_>, span: &Span) -> Result<(), YamlBuildAbort> {
        let bytes = span.byte_range().unwrap_or(0..0);
        let bytes = bytes.start..bytes.end.max(bytes.start);
        match event {
            Event::DocumentStart(..) => self.start_document(bytes),
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span);
                self.scalar(&text, style, anchor, bytes)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span);
                self.open(YamlNodeKind::Sequence, anchor, bytes)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span);
                self.open(YamlNodeKind::Mapping, anchor, bytes)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&bytes),
            Event::Alias(anchor) => self.alias(anchor, bytes),
            _ => Ok(()),
        }
    }

    fn start_document(&mut self, bytes: Range<usize>) -> Result<(), YamlBuildAbort> {
        self.documents += 1;
        if self.documents > 1 {
            self.problem(
                "RW0103",
                "a spec file holds one document",
                bytes,
                "a second one starts here",
                "move it to a file of its own",
            );
            return Err(YamlBuildAbort);
        }
        Ok(())
    }

    fn refuse_tag(&mut self, tagged: bool, span: &Span) {
        if tagged {
            let tag = span.tag_start.and_then(|marker| marker.byte_offset());
            let node = span.byte_range().map_or(0, |bytes| bytes.start);
            let start = tag.unwrap_or(node);
            let rest = self.document.source.text().get(start..).unwrap_or("");
            let end = start + rest.find(char::is_whitespace).unwrap_or(rest.len());
            self.problem(
                "RW0103",
                "tags are not used in a spec",
                start..end,
                "a tag",
                "remove it; quote the value if it is meant as text",
            );
        }
    }

    /// Adds a node with nothing below it yet, and counts it where it stands.
    fn push(
        &mut self,
        kind: YamlNodeKind,
        size: YamlExpandedSize,
        bytes: Range<usize>,
        extra: u32,
    ) -> Result<NodeId, YamlBuildAbort> {
        self.weigh(size, &bytes)?;
        let id = self.document.nodes.len() as NodeId;
        let (start, end) = (bytes.start as u32, bytes.end as u32);
        self.document.nodes.push(YamlNode {
            kind,
            merges: false,
            start,
            end,
            after: id + 1,
            extra,
        });
        Ok(id)
    }

    /// Counts nodes and levels towards the innermost open collection; both limits hold for the
    /// unfolded document.
    fn weigh(
        &mut self,
        size: YamlExpandedSize,
        bytes: &Range<usize>,
    ) -> Result<(), YamlBuildAbort> {
        let depth = self.frames.len() as u32;
        let mut nodes = self.document.nodes.len() as u64;
        if let Some(frame) = self.frames.last_mut() {
            frame.size.nodes = frame.size.nodes.saturating_add(size.nodes);
            frame.size.bytes = frame.size.bytes.saturating_add(size.bytes);
            frame.size.levels = frame.size.levels.max(size.levels.saturating_add(1));
            nodes = nodes.max(frame.size.nodes);
        }
        let what = match (
            nodes > NODES_MAX,
            depth.saturating_add(size.levels) > DEPTH_MAX,
        ) {
            (true, _) => format!("more than {NODES_MAX} values"),
            (_, true) => format!("more than {DEPTH_MAX} levels"),
            _ => return Ok(()),
        };
        let message = format!("the file holds {what}, aliases unfolded");
        self.problem(
            "RW0104",
            message,
            bytes.clone(),
            "the limit is passed here",
            "split the file, or use fewer aliases",
        );
        Err(YamlBuildAbort)
    }

    /// A value, or a key where one is due: only scalars can be keys.
    fn turn(&mut self, scalar: bool, bytes: &Range<usize>) -> Result<(), YamlBuildAbort> {
        let Some(frame) = self.frames.last_mut() else {
            return Ok(());
        };
        let is_key = frame.key_next;
        if self.document.nodes[frame.id as usize].kind == YamlNodeKind::Mapping {
            frame.key_next = !is_key;
        }
        if is_key && !scalar {
            let fix = "quote it if it is meant as text, for example a template in braces";
            self.problem(
                "RW0103",
                "a key is plain text",
                bytes.clone(),
                "this is no text",
                fix,
            );
            return Err(YamlBuildAbort);
        }
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        bytes: Range<usize>,
    ) -> Result<(), YamlBuildAbort> {
        self.turn(true, &bytes)?;
        let kind = if style == ScalarStyle::Plain {
            YamlNodeKind::Plain
        } else {
            YamlNodeKind::Quoted
        };
        let source = self.document.source.text();
        let extra = if source.get(bytes.clone()) == Some(text) {
            TEXT_IS_SPAN
        } else if kind == YamlNodeKind::Quoted
            && bytes.len() >= 2
            && source.get(bytes.start + 1..bytes.end - 1) == Some(text)
        {
            TEXT_IS_SPAN_IN_QUOTES
        } else {
            self.own_text(text, &bytes)
        };
        let size = YamlExpandedSize {
            bytes: text.len() as u64,
            ..NODE
        };
        let id = self.push(kind, size, bytes, extra)?;
        if anchor > 0 {
            self.anchors.insert(anchor, (id, size));
        }
        Ok(())
    }

    /// Keeps a text that does not stand in the file as it is, and returns its index.
    fn own_text(&mut self, text: &str, bytes: &Range<usize>) -> u32 {
        let mut characters = text.chars();
        if characters.any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            self.problem(
                "RW0101",
                "the text holds a control character",
                bytes.clone(),
                "by an escape in here",
                "remove the escape",
            );
        }
        self.document.owned.push(text.to_owned());
        self.document.owned.len() as u32 - 1
    }

    fn open(
        &mut self,
        kind: YamlNodeKind,
        anchor: usize,
        bytes: Range<usize>,
    ) -> Result<(), YamlBuildAbort> {
        self.turn(false, &bytes)?;
        let id = self.push(kind, NODE, bytes, 0)?;
        self.frames.push(Frame {
            id,
            key_next: kind == YamlNodeKind::Mapping,
            size: NODE,
            anchor,
        });
        Ok(())
    }

    fn close(&mut self, bytes: &Range<usize>) -> Result<(), YamlBuildAbort> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        let after = self.document.nodes.len() as NodeId;
        // A block collection ends with its last value; the event for its end stands at the start of
        // whatever follows.
        let last_end = self.document.nodes.last().map_or(0, |node| node.end);
        let node = &mut self.document.nodes[frame.id as usize];
        node.after = after;
        node.end = if bytes.is_empty() {
            last_end
        } else {
            bytes.end as u32
        }
        .max(node.start);
        if node.kind == YamlNodeKind::Mapping {
            self.check_keys(frame.id);
        }
        if frame.anchor > 0 {
            self.anchors.insert(frame.anchor, (frame.id, frame.size));
        }
        // The collection itself was counted when it was opened.
        self.weigh(
            YamlExpandedSize {
                nodes: frame.size.nodes - 1,
                ..frame.size
            },
            bytes,
        )
    }

    fn alias(&mut self, anchor: usize, bytes: Range<usize>) -> Result<(), YamlBuildAbort> {
        self.turn(false, &bytes)?;
        let Some((target, size)) = self.anchors.get(&anchor).copied() else {
            self.problem(
                "RW0103",
                "the alias stands inside of what it names",
                bytes,
                "it would never end",
                "write the value out",
            );
            return Err(YamlBuildAbort);
        };
        self.push(YamlNodeKind::Alias, NODE, bytes.clone(), target)?;
        self.pay(size, &bytes)?;
        self.weigh(size, &bytes)
    }

    /// Takes what an alias stands for from the budget of all files.
    fn pay(&mut self, size: YamlExpandedSize, bytes: &Range<usize>) -> Result<(), YamlBuildAbort> {
        let what = match (
            self.aliases.nodes.checked_sub(size.nodes),
            self.aliases.bytes.checked_sub(size.bytes),
        ) {
            (Some(nodes), Some(bytes)) => {
                *self.aliases = AliasBudget { nodes, bytes };
                return Ok(());
            }
            (None, _) => format!("{ALIAS_NODES_MAX} values"),
            (_, None) => format!("{} MiB of text", ALIAS_BYTES_MAX >> 20),
        };
        let message = format!("the files hold more than {what}, aliases unfolded");
        self.problem(
            "RW0104",
            message,
            bytes.clone(),
            "with what this alias stands for",
            "use fewer aliases, or of smaller values",
        );
        Err(YamlBuildAbort)
    }

    /// Doubled keys, and merge keys that merge no mapping. All are noted; reading goes on.
    fn check_keys(&mut self, mapping: NodeId) {
        let document = &self.document;
        let mut keys: Vec<NodeId> = document
            .own_entries(mapping)
            .map(|entry| entry.key)
            .collect();
        let merged = document
            .own_entries(mapping)
            .find(|entry| document.is_merge_key(entry.key))
            .map(|entry| entry.value);
        keys.sort_by(|a, b| document.text(*a).cmp(document.text(*b)).then(a.cmp(b)));
        let doubled = keys
            .windows(2)
            .filter(|pair| document.text(pair[0]) == document.text(pair[1]));
        for pair in doubled {
            let name = document.source.name();
            let key = one_line(document.text(pair[0]), 60);
            self.problems.push(
                Diagnostic::error("RW0102", format!("the key `{key}` comes twice"))
                    .at(name, document.span(pair[1]), "again here")
                    .at(name, document.span(pair[0]), "first here")
                    .effect("readers of YAML disagree on which of the two counts")
                    .next("keep one of them"),
            );
        }
        if let Some(value) = merged {
            self.document.nodes[mapping as usize].merges = true;
            self.check_merged(value);
        }
    }

    fn check_merged(&mut self, value: NodeId) {
        let document = &self.document;
        let is_sound = match document.kind(value) {
            YamlNodeKind::Mapping => true,
            YamlNodeKind::Sequence => document
                .items(value)
                .all(|item| document.kind(item) == YamlNodeKind::Mapping),
            _ => false,
        };
        if !is_sound {
            let span = document.caret(value);
            let fix = "name an anchor of a mapping, or a list of such";
            self.problem(
                "RW0103",
                "`<<` merges mappings only",
                span,
                "this is none",
                fix,
            );
        }
    }
}
