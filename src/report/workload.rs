//! A rendered job: as YAML for `kubectl apply -f -`, as a screen that gives the reason and the cost
//! of everything, and as JSON.

use super::diagnostic::{self, DiagnosticDocument};
use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use super::yaml;
use railwright_base::text::{format_count, sanitize_text};
use railwright_base::{Diagnostic, quote};
use railwright_knowledge::rules::WaivedFinding;
use railwright_knowledge::spec::Sources;
use railwright_workload::{Argument, JobRequestKind, RenderedJob, Variable, VariableOrigin};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// `job render --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobDocument<'a> {
    format_version: &'static str,
    /// Its kind.
    kind: JobRequestKind,
    /// Its name.
    name: &'a str,
    /// Its namespace.
    namespace: &'a str,
    /// False where rules refuse it: it is not to be applied then.
    lawful: bool,
    /// The objects, in the order in which they are to be applied.
    objects: &'a [Map<String, Value>],
    /// The environment of its processes.
    environment: &'a [Variable],
    /// Arguments of mpirun and of the test behind it.
    arguments: &'a [Argument],
    /// What rules say of it.
    findings: Vec<DiagnosticDocument>,
    /// Findings that are accepted for a while.
    waived: &'a [WaivedFinding],
}

impl<'a> JobDocument<'a> {
    /// Of a job.
    pub fn of(rendered: &'a RenderedJob, sources: &Sources) -> Self {
        JobDocument {
            format_version: "1.0",
            kind: rendered.kind,
            name: &rendered.name,
            namespace: &rendered.namespace,
            lawful: rendered.is_lawful(),
            objects: &rendered.objects,
            environment: &rendered.variables,
            arguments: &rendered.arguments,
            findings: diagnostic::build_diagnostic_documents(&rendered.told(), sources),
            waived: &rendered.evaluation.waived,
        }
    }
}

/// `job render --json` of a job that could not be rendered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RefusedJobDocument {
    format_version: &'static str,
    /// False, as of a rendered job that rules refuse.
    lawful: bool,
    /// Why it was not rendered.
    findings: Vec<DiagnosticDocument>,
}

impl RefusedJobDocument {
    /// Of what is wrong with it.
    pub fn of(diagnostics: &[Diagnostic], sources: &Sources) -> Self {
        RefusedJobDocument {
            format_version: "1.0",
            lawful: false,
            findings: diagnostic::build_diagnostic_documents(diagnostics, sources),
        }
    }
}

/// The objects, one document each.
pub fn render_job_objects(rendered: &RenderedJob) -> String {
    let documents: Vec<String> = rendered
        .objects
        .iter()
        .map(|object| yaml::render_yaml_document(object, &yaml::Comments::new()))
        .collect();
    documents.join("---\n")
}

/// Every variable and every argument with its reason and its cost.
pub fn render_job_explanation(rendered: &RenderedJob) -> String {
    let kinds: Vec<&str> = rendered
        .objects
        .iter()
        .filter_map(|object| object.get("kind")?.as_str())
        .collect();
    let mut out = format!(
        "{} {}/{}: {}\n",
        rendered.kind.word(),
        rendered.namespace,
        rendered.name,
        kinds.join(", ")
    );
    if !rendered.variables.is_empty() {
        out.push_str(&render_heading(&format!(
            "ENVIRONMENT: {}",
            format_count(rendered.variables.len(), "variable")
        )));
        rendered
            .variables
            .iter()
            .for_each(|one| out.push_str(&render_variable(one)));
    }
    if !rendered.arguments.is_empty() {
        out.push_str(&render_heading(&format!(
            "MPIRUN AND THE TEST BEHIND IT: {}",
            format_count(rendered.arguments.len(), "argument")
        )));
        let mut environment_told = false;
        for one in &rendered.arguments {
            let passes = one.words.first().is_some_and(|word| word == "-x");
            if !passes || !environment_told {
                out.push_str(&render_argument(one, passes));
            }
            environment_told |= passes;
        }
    }
    sanitize_text(&out)
}

fn render_variable(variable: &Variable) -> String {
    let value = if variable.value.is_empty() {
        "(empty)".to_owned()
    } else {
        variable.value.clone()
    };
    let from = match variable.origin {
        VariableOrigin::Asked => "yours",
        VariableOrigin::Spec => "spec",
        VariableOrigin::Table => "table",
        VariableOrigin::Derived => "derived",
        VariableOrigin::Arena => "Arena",
        VariableOrigin::Pair => "pair",
    };
    let mut out = wrap_labelled_text(
        &format!(" {from:<8} "),
        &format!("{}={value}", variable.name),
        COLUMNS,
    );
    let instead = variable
        .instead_of
        .as_ref()
        .map(|before| match before.is_empty() {
            true => "the empty value".to_owned(),
            false => before.clone(),
        });
    let rows = [
        ("is", variable.meaning.clone()),
        ("why", Some(variable.reason.clone())),
        ("instead", instead),
        ("cost", variable.cost.clone()),
        ("default", variable.default.clone()),
        ("advice", variable.advice.clone()),
        ("source", variable.source.clone()),
    ];
    for (label, text) in rows {
        out.extend(text.map(|text| wrap_labelled_text(&format!("   {label:<8} "), &text, COLUMNS)));
    }
    out
}

fn render_argument(argument: &Argument, passes: bool) -> String {
    let words = if passes {
        "-x NAME=VALUE, for each variable above".to_owned()
    } else {
        format_shell_words(&argument.words)
    };
    let mut out = wrap_labelled_text(" ", &words, COLUMNS);
    for (label, text) in [
        ("why", &argument.reason),
        ("cost", &argument.cost),
        ("source", &argument.source),
    ] {
        out.push_str(&wrap_labelled_text(
            &format!("   {label:<8} "),
            text,
            COLUMNS,
        ));
    }
    out
}

/// Words as people type them: in quotes only where a shell would read them otherwise.
pub(super) fn format_shell_words(words: &[String]) -> String {
    words
        .iter()
        .map(|word| quote::quote_word_if_needed(word))
        .collect::<Vec<_>>()
        .join(" ")
}
