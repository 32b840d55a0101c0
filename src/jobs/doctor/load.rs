//! From the files of symptoms to symptoms that can be looked for: every text there, every code its
//! own.

use super::layer::Layer;
use railwright_base::{Diagnostic, Severity};
use railwright_knowledge::shipped::yaml_files;
use railwright_knowledge::spec::decode::decode_or_report;
use railwright_knowledge::spec::source::{SourceFile, SourceText, Sources};
use railwright_knowledge::spec::yaml::{AliasBudget, NodeId, YamlDocument};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The folder below the folder of modules that holds symptoms.
pub const SYMPTOMS_FOLDER: &str = "catalog/symptoms";

/// One symptom. Everything that it states must hold.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Symptom {
    /// Its name.
    pub id: String,
    /// What `railwright explain` knows it by.
    pub code: String,
    /// What is wrong, in a sentence.
    pub title: String,
    /// Its layer, which is its file's.
    #[serde(skip, default = "default_layer")]
    pub layer: Layer,
    /// Words of the log: one of the groups must be there whole, each pattern in a line of its own.
    /// `*` in a pattern is any text.
    #[serde(default)]
    pub seen: Vec<Vec<String>>,
    /// Words that speak against it.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Codes of `job prove`, of which one must be its verdict.
    #[serde(default)]
    pub verdict: Vec<String>,
    /// Codes of `job prove`, of which one must have disproved the job.
    #[serde(default)]
    pub failed: Vec<String>,
    /// It is reported only where no other symptom holds.
    #[serde(default)]
    pub last: bool,
    /// Variables that NCCL obeyed, with their values; `?*` is any that is not empty.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Variables that must not be set, or be empty.
    #[serde(default)]
    pub unless_environment: Vec<String>,
    /// Why it is so.
    pub cause: String,
    /// What it does to the job.
    pub means: String,
    /// What to run or to edit, in order.
    pub next: Vec<String>,
    /// What is reported instead of a pod of Alibaba Container Compute Service.
    #[serde(default)]
    pub on_acs: Option<OnAcs>,
    /// Where that is said.
    pub source: String,
    /// A log with this symptom as its first cause.
    pub case: String,
    /// What that log is compared with.
    #[serde(default)]
    pub against: SymptomCaseExpectations,
}

/// Where there is no host and no device plugin to look at.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OnAcs {
    /// Why it is so.
    pub cause: String,
    /// What to run or to edit, in order.
    pub next: Vec<String>,
}

/// What a log of a case is compared with, where it shows its symptom by that alone.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SymptomCaseExpectations {
    /// What the NICs of one node carry, in Gb/s.
    pub gbps: Option<f64>,
    /// It is of a pod of Alibaba Container Compute Service.
    pub acs: bool,
}

fn default_layer() -> Layer {
    Layer::Host
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct SymptomFileHeader {
    layer: Layer,
    #[serde(rename = "summary")]
    _summary: String,
    #[serde(rename = "symptoms")]
    _symptoms: Vec<Value>,
}

/// The shipped symptoms, the lowest layer first; what is wrong with them, and the files that it
/// points into, where they are not sound.
pub fn load_symptoms() -> Result<Vec<Symptom>, (Vec<Diagnostic>, Sources)> {
    parse_symptom_files(yaml_files(SYMPTOMS_FOLDER))
}

/// Symptoms of these files, each with its name.
pub(super) fn parse_symptom_files(
    files: Vec<(String, String)>,
) -> Result<Vec<Symptom>, (Vec<Diagnostic>, Sources)> {
    let mut reading = SymptomLoader::default();
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
    // within a layer the order of its file counts: what says more stands first
    reading.symptoms.sort_by_key(|symptom| symptom.layer);
    Ok(reading.symptoms)
}

#[derive(Default)]
struct SymptomLoader {
    aliases: AliasBudget,
    symptoms: Vec<Symptom>,
    sources: Sources,
    problems: Vec<Diagnostic>,
    names: BTreeSet<String>,
}

impl SymptomLoader {
    fn file(&mut self, name: String, text: String) {
        let source = Arc::new(SourceText::new(SourceFile { name, text }));
        self.sources.add(Arc::clone(&source));
        let Some(document) = YamlDocument::parse(source, &mut self.aliases, &mut self.problems)
        else {
            return;
        };
        let Some(root) = document.root() else { return };
        let Some(head) = decode_or_report::<SymptomFileHeader>(&document, root, &mut self.problems)
        else {
            return;
        };
        let Some(list) = document.entry(root, "symptoms") else {
            return;
        };
        let nodes: Vec<NodeId> = document.items(list.value).collect();
        for node in nodes {
            let Some(symptom) = decode_or_report::<Symptom>(&document, node, &mut self.problems)
            else {
                continue;
            };
            let symptom = Symptom {
                layer: head.layer,
                ..symptom
            };
            match self.fault(&symptom) {
                None => self.symptoms.push(symptom),
                Some(why) => {
                    let problem =
                        Diagnostic::error("RW1217", "a symptom is not written as it must be");
                    self.problems.push(problem.at(
                        document.source().name(),
                        document.caret(node),
                        why,
                    ));
                }
            }
        }
    }

    fn fault(&mut self, symptom: &Symptom) -> Option<String> {
        let texts = [
            &symptom.title,
            &symptom.cause,
            &symptom.means,
            &symptom.source,
            &symptom.case,
        ];
        let lacks_acs_text = match &symptom.on_acs {
            Some(told) => told.cause.trim().is_empty() || told.next.is_empty(),
            None => false,
        };
        let lacks_text = texts.iter().any(|text| text.trim().is_empty());
        if lacks_text || symptom.next.is_empty() || lacks_acs_text {
            return Some("a text of it is empty".to_owned());
        }
        for pattern in symptom.seen.iter().flatten().chain(&symptom.unless) {
            let head = pattern.split('*').next().unwrap_or_default();
            if head.len() < 4 {
                return Some(format!(
                    "`{pattern}` begins with fewer than four characters, which every log has"
                ));
            }
        }
        let says_nothing =
            symptom.seen.is_empty() && symptom.verdict.is_empty() && symptom.failed.is_empty();
        if says_nothing || symptom.seen.iter().any(Vec::is_empty) {
            return Some("neither words of a log nor a verdict".to_owned());
        }
        let is_new =
            self.names.insert(symptom.id.clone()) & self.names.insert(symptom.code.clone());
        (!is_new).then(|| "two symptoms have this id or code".to_owned())
    }
}
