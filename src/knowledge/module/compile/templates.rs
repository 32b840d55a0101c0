//! Every template of a manifest: read, its names checked against what it can name, and searched for
//! values that a shell could run.

use super::super::body::{Compiler, TemplateFiles};
use super::super::manifest::{CheckEntry, Manifest, ManifestText, ResourceEntry};
use super::super::shell_quoting;
use super::parameters::add_parameter_shapes;
use super::{CheckTemplate, ModuleResource};
use crate::template::engine::Engine;
use crate::template::names::{self, Local};
use crate::template::shape::{ContextShape, EACH};
use crate::template::snippet::{Makes, Snippet, TemplateOrigin};
use railwright_base::{Diagnostic, suggest};
use railwright_resource::{kind_named, list_resource_kinds};

/// The templates of a module, by what they are for.
pub(super) struct CompiledTemplates {
    pub when: Option<Snippet>,
    pub needs: Option<Snippet>,
    pub resources: Vec<ModuleResource>,
    pub checks: Vec<CheckTemplate>,
}

/// Reads the templates of a manifest. `names` are those of the target; resources and checks can
/// name the module's parameters as well. What is wrong goes to `problems`.
pub(super) fn compile_templates(
    manifest: &Manifest,
    files: &TemplateFiles,
    names: &ContextShape,
    problems: &mut Vec<Diagnostic>,
) -> CompiledTemplates {
    let with_parameters = add_parameter_shapes(names, manifest, problems);
    let mut compiler = TemplateCompiler {
        manifest,
        files,
        shape: names.clone(),
        problems,
        named: Vec::new(),
    };
    // Whether a module applies is decided before its parameters have values.
    let when = compiler.condition("when", manifest.when.as_ref(), &[]);
    let needs = compiler.condition("needs", manifest.needs.as_ref(), &[]);
    compiler.shape = with_parameters;
    let mut resources = Vec::new();
    for entry in &manifest.resources {
        resources.push(compiler.resource(entry));
    }
    let mut checks = Vec::new();
    for entry in &manifest.checks {
        checks.push(compiler.check(entry));
    }
    compiler.unused_templates();
    CompiledTemplates {
        when,
        needs,
        resources,
        checks,
    }
}

impl CompiledTemplates {
    /// The engine that renders all of them; nothing, with the errors noted, where it refuses one.
    pub(super) fn build_engine(
        &self,
        manifest: &Manifest,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Engine> {
        let mut snippets: Vec<&Snippet> = self.when.iter().chain(&self.needs).collect();
        for resource in &self.resources {
            snippets.extend(&resource.when);
            snippets.extend(resource.each.as_ref().map(|(_, list)| list));
            snippets.extend(resource.body.snippets());
        }
        for check in &self.checks {
            snippets.extend(&check.when);
            snippets.extend(check.each.as_ref().map(|(_, list)| list));
            snippets.push(&check.run);
            snippets.extend(&check.expect);
        }
        Engine::new(&snippets, &manifest.document)
            .map_err(|errors| problems.extend(errors))
            .ok()
    }
}

/// The variable and the list of `rail in host.rails`.
fn split_for_clause(text: &str) -> Option<(&str, &str)> {
    let (variable, list) = text.split_once(" in ")?;
    let (variable, list) = (variable.trim(), list.trim());
    if !variable.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    Some((variable, list))
}

fn new_unknown_kind_error(manifest: &Manifest, kind: &ManifestText) -> Diagnostic {
    let known: Vec<&str> = list_resource_kinds()
        .iter()
        .map(|kind| kind.name())
        .collect();
    let label = match suggest::find_nearest_word(&kind.text, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", known.join(", ")),
    };
    let document = &manifest.document;
    let message = format!("there is no resource kind `{}`", kind.text);
    Diagnostic::error("RW0202", message).at(
        document.source().name(),
        document.caret(kind.node),
        label,
    )
}

struct TemplateCompiler<'a> {
    manifest: &'a Manifest,
    files: &'a TemplateFiles,
    shape: ContextShape,
    problems: &'a mut Vec<Diagnostic>,
    named: Vec<String>,
}

impl TemplateCompiler<'_> {
    fn lint(&mut self, snippet: &mut Snippet, locals: &[Local]) {
        let (uses, problems) = names::check_template_names(snippet.text(), &self.shape, locals);
        let document = &self.manifest.document;
        for problem in &problems {
            self.problems.push(snippet.diagnostic(document, problem));
        }
        (snippet.uses, snippet.faulty) = (uses, !problems.is_empty());
        if snippet.makes == Makes::Shell {
            for (span, message) in shell_quoting::find_unsafe_outputs(snippet.text()) {
                let (file, span) = snippet.place(document, &span);
                let diagnostic =
                    Diagnostic::error("RW0206", "a value stands where a shell could run it")
                        .at(file, span, message);
                self.problems.push(diagnostic.next(
                    "write the value outside of quotes: `echo {{ name }}`, `--option={{ value }}`",
                ));
            }
        }
    }

    fn snippet(
        &mut self,
        name: &str,
        noted: &ManifestText,
        makes: Makes,
        locals: &[Local],
    ) -> Snippet {
        let mut snippet = Snippet::new(
            name,
            &noted.text,
            TemplateOrigin::Manifest(noted.node),
            makes,
        );
        self.lint(&mut snippet, locals);
        snippet
    }

    fn condition(
        &mut self,
        name: &str,
        noted: Option<&ManifestText>,
        locals: &[Local],
    ) -> Option<Snippet> {
        noted.map(|noted| self.snippet(name, noted, Makes::Condition, locals))
    }

    /// `rail in host.rails`: the variable, the list, and what the body sees under the variable's
    /// name.
    fn each(
        &mut self,
        name: &str,
        noted: Option<&ManifestText>,
    ) -> (Option<(String, Snippet)>, Vec<Local>) {
        let Some(noted) = noted else {
            return (None, Vec::new());
        };
        let Some((variable, list)) = split_for_clause(&noted.text) else {
            let document = &self.manifest.document;
            let diagnostic = Diagnostic::error("RW0201", "a `for` reads `name in list`").at(
                document.source().name(),
                document.caret(noted.node),
                "such as `rail in host.rails`",
            );
            self.problems.push(diagnostic);
            return (None, Vec::new());
        };
        let noted_list = ManifestText {
            text: list.to_owned(),
            node: noted.node,
        };
        let snippet = self.snippet(name, &noted_list, Makes::Value, &[]);
        let mut path: Vec<String> = list.split('.').map(str::to_owned).collect();
        let shape = match self.shape.at(&path) {
            Ok(ContextShape::List(element)) => (**element).clone(),
            _ => ContextShape::Any,
        };
        path.push(EACH.to_owned());
        let local = Local {
            name: variable.to_owned(),
            path: Some(path),
            shape,
        };
        (Some((variable.to_owned(), snippet)), vec![local])
    }

    fn resource(&mut self, entry: &ResourceEntry) -> ModuleResource {
        let name = format!("resources/{}", entry.id.text);
        let (each, locals) = self.each(&format!("{name}#for"), entry.each.as_ref());
        let when = self.condition(&format!("{name}#when"), entry.when.as_ref(), &locals);
        if kind_named(&entry.kind.text).is_none() {
            let error = new_unknown_kind_error(self.manifest, &entry.kind);
            self.problems.push(error);
        }
        let mut compiler = Compiler {
            document: &self.manifest.document,
            files: self.files,
            problems: self.problems,
            named: &mut self.named,
        };
        let mut body = compiler.body(&entry.kind.text, &name, entry.body);
        for snippet in body.snippets_mut() {
            self.lint(snippet, &locals);
        }
        ModuleResource {
            entry: entry.clone(),
            when,
            each,
            body,
        }
    }

    fn check(&mut self, entry: &CheckEntry) -> CheckTemplate {
        let name = format!("verify/{}", entry.id.text);
        let (each, locals) = self.each(&format!("{name}#for"), entry.each.as_ref());
        let when = self.condition(&format!("{name}#when"), entry.when.as_ref(), &locals);
        let run = self.snippet(&format!("{name}/run"), &entry.run, Makes::Shell, &locals);
        let expect = entry.expect.as_ref();
        let expect = expect
            .map(|expect| self.snippet(&format!("{name}/expect"), expect, Makes::Text, &locals));
        CheckTemplate {
            entry: entry.clone(),
            when,
            each,
            run,
            expect,
        }
    }

    fn unused_templates(&mut self) {
        for (file, source) in self.files {
            if !self.named.contains(file) {
                let diagnostic =
                    Diagnostic::error("RW0207", format!("no resource uses the template `{file}`"))
                        .at(source.name(), 0..0, "this file");
                self.problems.push(
                    diagnostic.next("name it in a resource with `template:`, or remove the file"),
                );
            }
        }
    }
}
