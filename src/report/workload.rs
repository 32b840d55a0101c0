//! A rendered job: as YAML for `kubectl apply -f -`, as a screen that gives the reason and the cost of everything, and as JSON.

use super::diagnostic::{self, Finding};
use super::wrap::{COLUMNS, labelled, rule as heading};
use super::yaml;
use railwright_base::text::{clean, counted};
use railwright_base::{Diagnostic, quote};
use railwright_knowledge::rules::Waived;
use railwright_knowledge::spec::Sources;
use railwright_workload::{Argument, Kind, Origin, Rendered, Variable};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// `job render --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JobDocument<'a> {
    format_version: &'static str,
    /// Its kind.
    kind: Kind,
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
    findings: Vec<Finding>,
    /// Findings that are accepted for a while.
    waived: &'a [Waived],
}

impl<'a> JobDocument<'a> {
    /// Of a job.
    pub fn of(rendered: &'a Rendered, sources: &Sources) -> Self {
        JobDocument {
            format_version: "1.0",
            kind: rendered.kind,
            name: &rendered.name,
            namespace: &rendered.namespace,
            lawful: rendered.is_lawful(),
            objects: &rendered.objects,
            environment: &rendered.variables,
            arguments: &rendered.arguments,
            findings: diagnostic::findings(&rendered.told(), sources),
            waived: &rendered.judgement.waived,
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
    findings: Vec<Finding>,
}

impl RefusedJobDocument {
    /// Of what is wrong with it.
    pub fn of(diagnostics: &[Diagnostic], sources: &Sources) -> Self {
        RefusedJobDocument { format_version: "1.0", lawful: false, findings: diagnostic::findings(diagnostics, sources) }
    }
}

/// The objects, one document each.
pub fn objects(rendered: &Rendered) -> String {
    let documents: Vec<String> = rendered.objects.iter().map(|object| yaml::document(object, &yaml::Comments::new())).collect();
    documents.join("---\n")
}

/// Every variable and every argument with its reason and its cost.
pub fn explained(rendered: &Rendered) -> String {
    let kinds: Vec<&str> = rendered.objects.iter().filter_map(|object| object.get("kind")?.as_str()).collect();
    let mut out = format!("{} {}/{}: {}\n", rendered.kind.word(), rendered.namespace, rendered.name, kinds.join(", "));
    if !rendered.variables.is_empty() {
        out.push_str(&heading(&format!("ENVIRONMENT: {}", counted(rendered.variables.len(), "variable"))));
        rendered.variables.iter().for_each(|one| out.push_str(&variable(one)));
    }
    if !rendered.arguments.is_empty() {
        out.push_str(&heading(&format!("MPIRUN AND THE TEST BEHIND IT: {}", counted(rendered.arguments.len(), "argument"))));
        let mut environment_told = false;
        for one in &rendered.arguments {
            let passes = one.words.first().is_some_and(|word| word == "-x");
            if !passes || !environment_told {
                out.push_str(&argument(one, passes));
            }
            environment_told |= passes;
        }
    }
    clean(&out)
}

fn variable(variable: &Variable) -> String {
    let value = if variable.value.is_empty() { "(empty)".to_owned() } else { variable.value.clone() };
    let from = match variable.origin {
        Origin::Asked => "yours",
        Origin::Spec => "spec",
        Origin::Table => "table",
        Origin::Derived => "derived",
        Origin::Arena => "Arena",
        Origin::Pair => "pair",
    };
    let mut out = labelled(&format!(" {from:<8} "), &format!("{}={value}", variable.name), COLUMNS);
    let instead = variable.instead_of.as_ref().map(|before| match before.is_empty() {
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
        out.extend(text.map(|text| labelled(&format!("   {label:<8} "), &text, COLUMNS)));
    }
    out
}

fn argument(argument: &Argument, passes: bool) -> String {
    let words = if passes { "-x NAME=VALUE, for each variable above".to_owned() } else { shown(&argument.words) };
    let mut out = labelled(" ", &words, COLUMNS);
    for (label, text) in [("why", &argument.reason), ("cost", &argument.cost), ("source", &argument.source)] {
        out.push_str(&labelled(&format!("   {label:<8} "), text, COLUMNS));
    }
    out
}

/// Words as people type them: in quotes only where a shell would read them otherwise.
pub(super) fn shown(words: &[String]) -> String {
    words.iter().map(|word| quote::shown(word)).collect::<Vec<_>>().join(" ")
}
