//! From the files of translations to entries that can be asked: every pattern read, every place of
//! a template taken by it.

use super::pattern::{Captures, CommandPattern, PatternWord};
use crate::shipped::yaml_files;
use crate::spec::decode::decode_or_report;
use crate::spec::source::{SourceFile, SourceText, Sources};
use crate::spec::yaml::{AliasBudget, NodeId, YamlDocument};
use railwright_base::{Diagnostic, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The folder below the folder of modules that holds translations.
pub const TRANSLATIONS_FOLDER: &str = "translations";

/// What in railwright does what a command did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Covers {
    /// Modules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<String>,
    /// Codes of rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Checks of `verify`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verify: Vec<String>,
    /// Kinds of resources whose drift `drift` finds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<String>,
}

/// What a command is to the spec.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TranslationKind {
    /// It sets something.
    #[default]
    Set,
    /// It only looks.
    Look,
    /// It changes nothing that a spec is about.
    Aside,
    /// It says too little.
    Open,
}

/// A command as an example, and what must come of it.
#[cfg_attr(
    not(test),
    allow(
        dead_code,
        reason = "read by the tests that hold each entry to its own example"
    )
)]
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TranslationCase {
    /// The command, or several.
    pub input: String,
    /// The spec lines.
    #[serde(default)]
    pub spec: Value,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTranslation {
    id: String,
    #[serde(default)]
    kind: TranslationKind,
    #[serde(default)]
    words: Vec<Vec<String>>,
    #[serde(default)]
    steps: Vec<Vec<String>>,
    #[serde(default)]
    items: Vec<String>,
    #[serde(default)]
    aside: Vec<String>,
    #[serde(default)]
    spec: Value,
    #[serde(default)]
    better: Value,
    does: String,
    why: String,
    source: String,
    #[serde(default)]
    covers: Covers,
    case: TranslationCase,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct EachWordRule {
    head: String,
    #[serde(default)]
    valued: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TranslationFileHeader {
    #[serde(rename = "family")]
    _family: String,
    #[serde(rename = "summary")]
    _summary: String,
    #[serde(default)]
    each: Option<EachWordRule>,
    #[serde(rename = "translations")]
    _translations: Vec<Value>,
}

/// One translation.
#[derive(Debug, Clone)]
pub struct TranslationEntry {
    /// Its name.
    pub id: String,
    /// What railwright does instead.
    pub does: String,
    /// Why it does so.
    pub why: String,
    /// Where that is said.
    pub source: String,
    /// What does it.
    pub covers: Covers,
    pub(super) kind: TranslationKind,
    /// Patterns of one command, of which one must hold.
    pub(super) words: Vec<CommandPattern>,
    /// Patterns of commands that follow each other, of which the first must hold and another one.
    pub(super) steps: Vec<CommandPattern>,
    /// Patterns of one word of a command that says the same of each word.
    pub(super) items: Vec<PatternWord>,
    /// Words that say nothing to the spec.
    pub(super) aside: Vec<PatternWord>,
    pub(super) spec: Value,
    pub(super) better: Value,
    #[cfg_attr(not(test), allow(dead_code, reason = "read by the same tests"))]
    pub(super) case: TranslationCase,
}

/// A file of translations.
#[derive(Debug, Clone)]
pub(super) struct TranslationFamily {
    /// The words that begin its commands, where each further word is asked alone.
    pub head: Vec<PatternWord>,
    /// Options that take the next word.
    pub valued: Vec<String>,
    /// Its translations, the first that holds wins.
    pub entries: Vec<TranslationEntry>,
}

/// All translations.
#[derive(Debug, Clone, Default)]
pub struct Dictionary {
    pub(super) families: Vec<TranslationFamily>,
}

impl Dictionary {
    /// All of them.
    pub fn entries(&self) -> impl Iterator<Item = &TranslationEntry> {
        self.families.iter().flat_map(|family| &family.entries)
    }
}

/// The shipped translations; what is wrong with them, and the files that it points into, where they
/// are not sound.
pub fn load_translations() -> Result<Dictionary, (Vec<Diagnostic>, Sources)> {
    parse_translation_files(yaml_files(TRANSLATIONS_FOLDER))
}

/// Translations of these files, each with its name.
pub(super) fn parse_translation_files(
    files: Vec<(String, String)>,
) -> Result<Dictionary, (Vec<Diagnostic>, Sources)> {
    let mut reading = TranslationLoader::default();
    for (name, text) in files {
        reading.file(name, text);
    }
    if reading
        .problems
        .iter()
        .any(|problem| problem.severity == Severity::Error)
    {
        return Err((reading.problems, reading.sources));
    }
    Ok(reading.dictionary)
}

#[derive(Default)]
struct TranslationLoader {
    aliases: AliasBudget,
    dictionary: Dictionary,
    sources: Sources,
    problems: Vec<Diagnostic>,
    ids: BTreeSet<String>,
}

impl TranslationLoader {
    fn file(&mut self, name: String, text: String) {
        let source = Arc::new(SourceText::new(SourceFile { name, text }));
        self.sources.add(Arc::clone(&source));
        let Some(document) = YamlDocument::parse(source, &mut self.aliases, &mut self.problems)
        else {
            return;
        };
        let Some(root) = document.root() else { return };
        let Some(head) =
            decode_or_report::<TranslationFileHeader>(&document, root, &mut self.problems)
        else {
            return;
        };
        let each = head.each.map(|each| {
            (
                each.head
                    .split_whitespace()
                    .map(PatternWord::read)
                    .collect::<Result<Vec<_>, _>>(),
                each.valued,
            )
        });
        let (words, valued) = each.unwrap_or((Ok(Vec::new()), Vec::new()));
        let Some(words) = self.sound(&document, root, words) else {
            return;
        };
        let list = document
            .entry(root, "translations")
            .map(|entry| entry.value);
        let nodes: Vec<NodeId> = list
            .map(|list| document.items(list).collect())
            .unwrap_or_default();
        let entries = nodes
            .into_iter()
            .filter_map(|node| self.entry(&document, node))
            .collect();
        self.dictionary.families.push(TranslationFamily {
            head: words,
            valued,
            entries,
        });
    }

    fn sound<T>(
        &mut self,
        document: &YamlDocument,
        node: NodeId,
        read: Result<T, String>,
    ) -> Option<T> {
        read.map_err(|why| {
            let problem = Diagnostic::error("RW1035", "a translation is not written as it must be");
            self.problems
                .push(problem.at(document.source().name(), document.caret(node), why));
        })
        .ok()
    }

    fn entry(&mut self, document: &YamlDocument, node: NodeId) -> Option<TranslationEntry> {
        let written: RawTranslation = decode_or_report(document, node, &mut self.problems)?;
        let known = !self.ids.insert(written.id.clone());
        let entry = compile_translation(written).and_then(|entry| {
            if known {
                Err("two translations have this id".to_owned())
            } else {
                Ok(entry)
            }
        });
        self.sound(document, node, entry)
    }
}

fn compile_translation(written: RawTranslation) -> Result<TranslationEntry, String> {
    let patterns = |groups: &[Vec<String>]| {
        groups
            .iter()
            .map(|groups| CommandPattern::read(groups))
            .collect::<Result<Vec<_>, _>>()
    };
    let words = |texts: &[String]| {
        texts
            .iter()
            .map(|text| PatternWord::read(text))
            .collect::<Result<Vec<_>, _>>()
    };
    for (key, text) in [
        ("id", &written.id),
        ("does", &written.does),
        ("why", &written.why),
        ("source", &written.source),
    ] {
        if text.trim().is_empty() {
            return Err(format!("`{key}` is empty"));
        }
    }
    Ok(TranslationEntry {
        words: patterns(&written.words)?,
        steps: patterns(&written.steps)?,
        items: words(&written.items)?,
        aside: words(&written.aside)?,
        id: written.id,
        kind: written.kind,
        spec: written.spec,
        better: written.better,
        does: written.does,
        why: written.why,
        source: written.source,
        covers: written.covers,
        case: written.case,
    })
}

/// A template with what a pattern took in its places: a text that is one place has the value's own
/// type, and one whose place took nothing is left out.
pub(super) fn fill_template_value(template: &Value, captures: &Captures) -> Option<Value> {
    match template {
        Value::String(text) => {
            let place = text
                .strip_prefix('{')
                .and_then(|text| text.strip_suffix('}'))
                .filter(|place| !place.contains('{'));
            match place {
                Some(place) if !place.ends_with(".said") => {
                    captures.get(place).map(|captured| captured.value.clone())
                }
                _ => text_of(text, captures).map(Value::from),
            }
        }
        Value::Array(items) => Some(
            items
                .iter()
                .filter_map(|item| fill_template_value(item, captures))
                .collect(),
        ),
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| {
                Some((
                    text_of(key, captures)?,
                    fill_template_value(value, captures)?,
                ))
            };
            Some(Value::Object(
                fields.iter().filter_map(field).collect::<Map<_, _>>(),
            ))
        }
        other => Some(other.clone()),
    }
}

/// A text with what a pattern took in its places; `{name.said}` is the word as it was written.
pub(super) fn text_of(template: &str, captures: &Captures) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (place, after) = after.split_once('}')?;
        match (
            place.strip_suffix(".said"),
            captures.get(place.trim_end_matches(".said")),
        ) {
            (Some(_), Some(captured)) => out.push_str(&captured.said),
            (None, Some(captured)) => out.push_str(
                captured
                    .value
                    .as_str()
                    .map_or_else(|| captured.value.to_string(), str::to_owned)
                    .as_str(),
            ),
            // a brace of YAML in a sentence
            (None, None) if place.contains([' ', ':']) => out.push_str(&format!("{{{place}}}")),
            _ => return None,
        }
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}
