//! From the files of translations to entries that can be asked: every pattern read, every place of
//! a template taken by it.

use super::pattern::{Captures, CommandPattern, PatternWord};
use crate::shipped::yaml_files;
use crate::spec::decode::decode_or_report;
use crate::spec::source::{SourceFile, SourceText, Sources};
use crate::spec::yaml::{AliasBudget, NodeId, YamlDocument};
use railwright_base::{Diagnostic, Reason, Severity};
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

#[derive(Debug, Clone, Default, Deserialize)]
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
        reading.read_file(name, text);
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
    fn read_file(&mut self, name: String, text: String) {
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
        let EachWordRule { head, valued } = head.each.unwrap_or_default();
        let words = head.split_whitespace().map(PatternWord::read).collect();
        let Some(head) = self.accept::<Vec<PatternWord>>(&document, root, words) else {
            return;
        };
        let mut entries = Vec::new();
        if let Some(list) = document.entry(root, "translations") {
            for node in document.items(list.value) {
                entries.extend(self.read_entry(&document, node));
            }
        }
        self.dictionary.families.push(TranslationFamily {
            head,
            valued,
            entries,
        });
    }

    /// The value that was read, or nothing, with the reason among the problems.
    fn accept<T>(
        &mut self,
        document: &YamlDocument,
        node: NodeId,
        read: Result<T, Reason>,
    ) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(why) => {
                let message = "a translation is not written as it must be";
                let problem = Diagnostic::error("RW1035", message);
                self.problems
                    .push(problem.at(document.source().name(), document.caret(node), why));
                None
            }
        }
    }

    fn read_entry(&mut self, document: &YamlDocument, node: NodeId) -> Option<TranslationEntry> {
        let written: RawTranslation = decode_or_report(document, node, &mut self.problems)?;
        let is_new = self.ids.insert(written.id.clone());
        let entry = match compile_translation(written) {
            Ok(_) if !is_new => Err("two translations have this id".into()),
            entry => entry,
        };
        self.accept(document, node, entry)
    }
}

fn compile_translation(written: RawTranslation) -> Result<TranslationEntry, Reason> {
    for (key, text) in [
        ("id", &written.id),
        ("does", &written.does),
        ("why", &written.why),
        ("source", &written.source),
    ] {
        if text.trim().is_empty() {
            return Err(format!("`{key}` is empty").into());
        }
    }
    Ok(TranslationEntry {
        words: read_command_patterns(&written.words)?,
        steps: read_command_patterns(&written.steps)?,
        items: read_pattern_words(&written.items)?,
        aside: read_pattern_words(&written.aside)?,
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

fn read_command_patterns(patterns: &[Vec<String>]) -> Result<Vec<CommandPattern>, Reason> {
    let patterns = patterns.iter();
    patterns
        .map(|groups| CommandPattern::read(groups))
        .collect()
}

fn read_pattern_words(texts: &[String]) -> Result<Vec<PatternWord>, Reason> {
    texts.iter().map(|text| PatternWord::read(text)).collect()
}

/// A template with what a pattern took in its places: a text that is one place has the value's own
/// type, and one whose place took nothing is left out.
pub(super) fn fill_template_value(template: &Value, captures: &Captures) -> Option<Value> {
    match template {
        Value::String(text) => match find_lone_place(text) {
            Some(place) if !place.ends_with(".said") => {
                captures.get(place).map(|captured| captured.value.clone())
            }
            _ => fill_text(text, captures).map(Value::from),
        },
        Value::Array(items) => Some(
            items
                .iter()
                .filter_map(|item| fill_template_value(item, captures))
                .collect(),
        ),
        Value::Object(fields) => {
            let mut filled = Map::new();
            for (key, value) in fields {
                let key = fill_text(key, captures);
                let value = fill_template_value(value, captures);
                if let (Some(key), Some(value)) = (key, value) {
                    filled.insert(key, value);
                }
            }
            Some(Value::Object(filled))
        }
        other => Some(other.clone()),
    }
}

/// The place that a text consists of: `name` of `{name}`.
fn find_lone_place(text: &str) -> Option<&str> {
    let place = text.strip_prefix('{')?.strip_suffix('}')?;
    (!place.contains('{')).then_some(place)
}

/// A text with what a pattern took in its places; `{name.said}` is the word as it was written.
pub(super) fn fill_text(template: &str, captures: &Captures) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (place, after) = after.split_once('}')?;
        let is_as_written = place.ends_with(".said");
        match captures.get(place.trim_end_matches(".said")) {
            Some(captured) if is_as_written => out.push_str(&captured.written),
            Some(captured) => match &captured.value {
                Value::String(text) => out.push_str(text),
                value => out.push_str(&value.to_string()),
            },
            // a brace of YAML in a sentence
            None if !is_as_written && place.contains([' ', ':']) => {
                out.push_str(&format!("{{{place}}}"));
            }
            None => return None,
        }
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}
