//! The body of a resource: YAML in which every text may be a template.

use crate::spec::decode::decode_value;
use crate::spec::source::SourceText;
use crate::spec::yaml::{NodeId, YamlDocument, YamlNodeKind};
use crate::template::engine::{Engine, Rendered};
use crate::template::snippet::{Makes, Snippet, TemplateOrigin};
use crate::template::token;
use railwright_base::Diagnostic;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tera::Context;

/// A compiled body, or a part of one.
#[derive(Debug, Clone)]
pub enum BodyTemplate {
    /// No template in it.
    Constant(Value),
    /// A template.
    Rendered(Snippet),
    /// A list; items that become null are left out.
    List(Vec<BodyTemplate>),
    /// A map; entries whose value becomes null or whose key becomes empty are left out.
    Map(Vec<(BodyTemplate, BodyTemplate)>),
}

/// The template files of a module, by their name below `templates/`.
pub type TemplateFiles = BTreeMap<String, Arc<SourceText>>;

/// Compiles the body at a node. Paths of text that a shell will run make `Makes::Shell` of it.
pub struct Compiler<'a> {
    /// The manifest.
    pub document: &'a YamlDocument,
    /// Its template files.
    pub files: &'a TemplateFiles,
    /// What is wrong.
    pub problems: &'a mut Vec<Diagnostic>,
    /// Template files that some body names.
    pub named: &'a mut Vec<String>,
}

/// Fields of the kind `command` whose text is run by a shell.
const SHELL_FIELDS: [(&str, &str); 2] = [("command", "/run"), ("command", "/read/probe")];

impl Compiler<'_> {
    /// The body of a resource of this kind; `name` is unique in the module's engine.
    pub fn body(&mut self, kind: &str, name: &str, node: NodeId) -> BodyTemplate {
        self.part(kind, name, "", node)
    }

    fn part(&mut self, kind: &str, name: &str, pointer: &str, node: NodeId) -> BodyTemplate {
        match self.document.kind(node) {
            YamlNodeKind::Mapping => BodyTemplate::Map(self.entries(kind, name, pointer, node)),
            YamlNodeKind::Sequence => {
                let document = self.document;
                let mut items = Vec::new();
                for (at, item) in document.items(node).enumerate() {
                    items.push(self.part(kind, name, &format!("{pointer}/{at}"), item));
                }
                BodyTemplate::List(items)
            }
            _ => self.scalar(kind, name, pointer, node),
        }
    }

    fn scalar(&mut self, kind: &str, name: &str, pointer: &str, node: NodeId) -> BodyTemplate {
        let text = self.document.text(node);
        if !token::is_template(text) {
            let mut failures = Vec::new();
            let value: Option<Value> = decode_value(self.document, None, node, &mut failures);
            self.problems.extend(
                failures
                    .iter()
                    .map(|failure| failure.diagnostic(self.document)),
            );
            return BodyTemplate::Constant(value.unwrap_or_default());
        }
        let makes = if SHELL_FIELDS.contains(&(kind, pointer)) {
            Makes::Shell
        } else {
            Makes::Text
        };
        BodyTemplate::Rendered(Snippet::new(
            &format!("{name}{pointer}"),
            text,
            TemplateOrigin::Manifest(node),
            makes,
        ))
    }

    fn entries(
        &mut self,
        kind: &str,
        name: &str,
        pointer: &str,
        node: NodeId,
    ) -> Vec<(BodyTemplate, BodyTemplate)> {
        let entries: Vec<_> = self.document.entries(node).collect();
        let mut out = Vec::new();
        for entry in entries {
            let key = self.document.text(entry.key).to_owned();
            let below = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
            if pointer.is_empty() && key == "template" {
                if let Some(content) = self.template(name, entry.value) {
                    out.push((BodyTemplate::Constant("content".into()), content));
                }
                continue;
            }
            let key = if token::is_template(&key) {
                BodyTemplate::Rendered(Snippet::verbatim(
                    &format!("{name}{below}#key"),
                    &key,
                    TemplateOrigin::Manifest(entry.key),
                ))
            } else {
                BodyTemplate::Constant(Value::String(key))
            };
            let value = self.part(kind, name, &below, entry.value);
            out.push((key, value));
        }
        out
    }

    /// The file that a `template:` names, always as text; a `.sh.tera` is shell.
    fn template(&mut self, name: &str, node: NodeId) -> Option<BodyTemplate> {
        let file = self.document.text(node).to_owned();
        let Some(source) = self.files.get(&file) else {
            let files = self.files.keys().map(String::as_str);
            let label = match railwright_base::suggest::find_nearest_word(&file, files) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "it is not in the folder `templates`".to_owned(),
            };
            let diagnostic =
                Diagnostic::error("RW0207", format!("the template `{file}` is not there"));
            self.problems.push(diagnostic.at(
                self.document.source().name(),
                self.document.caret(node),
                label,
            ));
            return None;
        };
        self.named.push(file.clone());
        let (name, origin) = (
            format!("{name}/content"),
            TemplateOrigin::File(Arc::clone(source)),
        );
        Some(BodyTemplate::Rendered(match file.ends_with(".sh.tera") {
            true => Snippet::new(&name, source.text(), origin, Makes::Shell),
            false => Snippet::verbatim(&name, source.text(), origin),
        }))
    }
}

impl BodyTemplate {
    /// Every template of the body.
    pub fn snippets_mut(&mut self) -> Vec<&mut Snippet> {
        match self {
            BodyTemplate::Constant(_) => Vec::new(),
            BodyTemplate::Rendered(snippet) => vec![snippet],
            BodyTemplate::List(items) => items
                .iter_mut()
                .flat_map(BodyTemplate::snippets_mut)
                .collect(),
            BodyTemplate::Map(entries) => entries
                .iter_mut()
                .flat_map(|(key, value)| [key, value])
                .flat_map(BodyTemplate::snippets_mut)
                .collect(),
        }
    }

    /// Every template of the body.
    pub fn snippets(&self) -> Vec<&Snippet> {
        match self {
            BodyTemplate::Constant(_) => Vec::new(),
            BodyTemplate::Rendered(snippet) => vec![snippet],
            BodyTemplate::List(items) => items.iter().flat_map(BodyTemplate::snippets).collect(),
            BodyTemplate::Map(entries) => entries
                .iter()
                .flat_map(|(key, value)| [key, value])
                .flat_map(BodyTemplate::snippets)
                .collect(),
        }
    }

    fn is_text(&self, text: &str) -> bool {
        matches!(self, BodyTemplate::Constant(Value::String(own)) if own == text)
    }

    /// The template that a JSON pointer into the body leads to, if it is one.
    pub fn snippet_at(&self, pointer: &str) -> Option<&Snippet> {
        let Some(rest) = pointer.strip_prefix('/') else {
            return match self {
                BodyTemplate::Rendered(snippet) => Some(snippet),
                _ => None,
            };
        };
        let (step, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let step = step.replace("~1", "/").replace("~0", "~");
        match self {
            // A whole that is one template was filled by it, parts and all.
            BodyTemplate::Rendered(snippet) => Some(snippet),
            BodyTemplate::List(items) => items.get(step.parse::<usize>().ok()?)?.snippet_at(below),
            BodyTemplate::Map(entries) => {
                let (_, value) = entries.iter().find(|(key, _)| key.is_text(&step))?;
                value.snippet_at(below)
            }
            BodyTemplate::Constant(_) => None,
        }
    }

    /// The body for one context.
    pub fn render(
        &self,
        engine: &Engine,
        context: &Context,
        document: &YamlDocument,
    ) -> Rendered<Value> {
        match self {
            BodyTemplate::Constant(value) => Ok(value.clone()),
            BodyTemplate::Rendered(snippet) => engine.value(snippet, context, document),
            BodyTemplate::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    let value = item.render(engine, context, document)?;
                    if !value.is_null() {
                        values.push(value);
                    }
                }
                Ok(Value::Array(values))
            }
            BodyTemplate::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    let key = key.render(engine, context, document)?;
                    let value = value.render(engine, context, document)?;
                    if let Some(key) = key.as_str()
                        && !key.is_empty()
                        && !value.is_null()
                    {
                        map.insert(key.to_owned(), value);
                    }
                }
                Ok(Value::Object(map))
            }
        }
    }
}

/// The bytes in the manifest that a JSON pointer into the body leads to, or the closest thing
/// around it.
pub fn span_of(document: &YamlDocument, body: NodeId, pointer: &str) -> Range<usize> {
    let mut node = body;
    for (depth, step) in pointer.split('/').skip(1).enumerate() {
        let step = step.replace("~1", "/").replace("~0", "~");
        let content = depth == 0 && step == "content";
        let next = match document.kind(node) {
            YamlNodeKind::Sequence => match step.parse::<usize>() {
                Ok(at) => document.items(node).nth(at),
                Err(_) => None,
            },
            _ => {
                let entry = match document.entry(node, &step) {
                    None if content => document.entry(node, "template"),
                    entry => entry,
                };
                entry.map(|entry| entry.value)
            }
        };
        match next {
            Some(next) => node = next,
            None => break,
        }
    }
    document.caret(node)
}
