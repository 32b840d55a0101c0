//! The templates of jobs, `modules/jobs/KIND.yaml.tera`, with the inventory's own in their place;
//! and from what a template makes to objects.

use super::names::build_template_shape;
use super::request::JobRequestKind;
use railwright_base::{Diagnostic, Digest, Label, Severity};
use railwright_knowledge::shipped::MODULES;
use railwright_knowledge::spec::decode::decode_or_report;
use railwright_knowledge::spec::yaml::{AliasBudget, YamlDocument};
use railwright_knowledge::spec::{SourceFile, SourceText, Sources};
use railwright_knowledge::template::engine::Engine;
use railwright_knowledge::template::names;
use railwright_knowledge::template::snippet::{Makes, Snippet, TemplateOrigin};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The folder below a folder of modules that holds templates of jobs.
pub const JOBS_FOLDER: &str = "jobs";

const ENDING: &str = ".yaml.tera";

/// The template of each kind.
#[derive(Debug, Clone)]
pub struct Templates {
    by_kind: BTreeMap<JobRequestKind, CompiledTemplate>,
    /// The files, for diagnostics that point into them.
    pub sources: Sources,
}

#[derive(Debug, Clone)]
struct CompiledTemplate {
    snippet: Snippet,
    engine: Engine,
    document: Arc<YamlDocument>,
    source: Arc<SourceText>,
}

impl Templates {
    /// The shipped ones with the inventory's (`pytorch.yaml.tera` and text) over them; `folder` is
    /// what messages call theirs.
    pub fn load(
        folder: &str,
        own: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Templates, (Vec<Diagnostic>, Sources)> {
        let own: BTreeMap<String, String> = own.into_iter().collect();
        let (mut by_kind, mut sources, mut problems) =
            (BTreeMap::new(), Sources::default(), Vec::new());
        for kind in JobRequestKind::ALL {
            let file = format!("{}{ENDING}", kind.word());
            let (name, text) = match own.get(&file) {
                Some(text) => (format!("{folder}/{file}"), text.clone()),
                None => (
                    format!("modules/{JOBS_FOLDER}/{file}"),
                    read_shipped_template(&file),
                ),
            };
            let source = Arc::new(SourceText::new(SourceFile { name, text }));
            sources.add(Arc::clone(&source));
            match compile_template(kind, source) {
                Ok(compiled) => drop(by_kind.insert(kind, compiled)),
                Err(found) => problems.extend(found),
            }
        }
        problems.extend(
            own.keys()
                .filter_map(|file| check_template_file(folder, file)),
        );
        if problems
            .iter()
            .any(|problem| problem.severity == Severity::Error)
        {
            return Err((problems, sources));
        }
        Ok(Templates { by_kind, sources })
    }

    /// The digest of the template of a kind.
    pub(super) fn digest(&self, kind: JobRequestKind) -> Digest {
        Digest::of_bytes(
            self.by_kind
                .get(&kind)
                .map_or("", |compiled| compiled.source.text())
                .as_bytes(),
        )
    }

    /// The objects that a template makes of these names.
    pub(super) fn objects(
        &self,
        kind: JobRequestKind,
        names: &impl Serialize,
    ) -> Result<Vec<Map<String, Value>>, Vec<Diagnostic>> {
        let compiled = self.by_kind.get(&kind);
        let context = tera::Context::from_serialize(names).ok();
        let (Some(compiled), Some(context)) = (compiled, context) else {
            return Err(vec![Diagnostic::error(
                "RW1228",
                format!("there is no template of {}", kind.word()),
            )]);
        };
        let text = compiled
            .engine
            .text(&compiled.snippet, &context, &compiled.document)
            .map_err(|problem| vec![*problem])?;
        let mut objects = Vec::new();
        for part in text.split("\n---") {
            if !part.trim().is_empty() {
                objects.push(compiled.object(part)?);
            }
        }
        if objects.is_empty() {
            return Err(compiled.makes_no_object("it makes nothing", Vec::new()));
        }
        Ok(objects)
    }
}

impl CompiledTemplate {
    /// What stands between two rules of the text.
    fn object(&self, text: &str) -> Result<Map<String, Value>, Vec<Diagnostic>> {
        let made = Arc::new(SourceText::new(SourceFile {
            name: format!("what {} makes", self.source.name()),
            text: text.to_owned(),
        }));
        let mut problems = Vec::new();
        let document = YamlDocument::parse(made, &mut AliasBudget::default(), &mut problems);
        let value = document.as_ref().and_then(|document| {
            decode_or_report::<Value>(document, document.root()?, &mut problems)
        });
        match value {
            Some(Value::Object(object))
                if problems.is_empty()
                    && ["apiVersion", "kind", "metadata"]
                        .iter()
                        .all(|key| object.contains_key(*key)) =>
            {
                Ok(object)
            }
            _ => Err(self.makes_no_object(
                "an object has `apiVersion`, `kind` and `metadata`",
                problems,
            )),
        }
    }

    fn makes_no_object(&self, why: &str, problems: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let file = self.source.name().to_owned();
        let label = Label {
            file,
            span: self.source.line_span(0),
            text: why.to_owned(),
        };
        let mut error = Diagnostic::error(
            "RW1228",
            "the template of a job makes no object of Kubernetes",
        )
        .labelled(label);
        if let Some(problem) = problems.first() {
            error = error.effect(railwright_base::text::one_line(&problem.message, 200));
        }
        vec![error.next("compare it with the shipped one in `modules/jobs`")]
    }
}

fn read_shipped_template(file: &str) -> String {
    MODULES
        .get_file(format!("{JOBS_FOLDER}/{file}"))
        .and_then(|file| file.contents_utf8())
        .unwrap_or_default()
        .to_owned()
}

fn compile_template(
    kind: JobRequestKind,
    source: Arc<SourceText>,
) -> Result<CompiledTemplate, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let empty = SourceText::new(SourceFile {
        name: source.name().to_owned(),
        text: "{}".to_owned(),
    });
    let document = YamlDocument::parse(Arc::new(empty), &mut AliasBudget::default(), &mut problems)
        .ok_or_else(|| problems.clone())?;
    let mut snippet = Snippet::verbatim(
        kind.word(),
        source.text(),
        TemplateOrigin::File(Arc::clone(&source)),
    );
    debug_assert!(snippet.makes == Makes::Text);
    let (uses, wrong) =
        names::check_template_names(snippet.text(), &build_template_shape(kind), &[]);
    problems.extend(
        wrong
            .iter()
            .map(|problem| snippet.diagnostic(&document, problem)),
    );
    snippet.uses = uses;
    if !problems.is_empty() {
        return Err(problems);
    }
    let engine = Engine::new(&[&snippet], &document)?;
    Ok(CompiledTemplate {
        snippet,
        engine,
        document: Arc::new(document),
        source,
    })
}

/// A file of the inventory that is the template of no kind.
fn check_template_file(folder: &str, file: &str) -> Option<Diagnostic> {
    let kind = file.strip_suffix(ENDING)?;
    let words = JobRequestKind::ALL.map(JobRequestKind::word);
    if words.contains(&kind) {
        return None;
    }
    let next = match railwright_base::suggest::find_nearest_word(kind, words) {
        Some(near) => format!("did you mean `{near}{ENDING}`?"),
        None => format!("templates are called {}", words.join(", ")),
    };
    Some(
        Diagnostic::error(
            "RW1228",
            format!("{folder}/{file} is the template of no kind of job"),
        )
        .next(next),
    )
}
