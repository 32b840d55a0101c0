//! From the files of modules to compiled modules: every template read, every name checked, before
//! any host is looked at.

use super::body::{BodyTemplate, Compiler, TemplateFiles};
use super::manifest::{self, CheckEntry, Manifest, ManifestText, ModuleParameter, ResourceEntry};
use super::subject::target_of;
use super::{cluster_context, context, order, shell_quoting, switch_context};
use crate::spec::source::{SourceFile, SourceText, Sources};
use crate::spec::yaml::{AliasBudget, NodeId, YamlDocument};
use crate::template::engine::{Engine, Makes, Snippet, TemplateOrigin};
use crate::template::names::{self, Local};
use crate::template::shape::{ContextShape, EACH};
use railwright_base::{Diagnostic, Digest, TargetKind, secret, suggest};
use railwright_resource::{kind_named, list_resource_kinds};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The files of one module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFiles {
    /// The folder as messages name it: `modules/memlock`.
    pub folder: String,
    /// Text by path below the folder: `module.yaml`, `templates/limits.conf.tera`.
    pub files: BTreeMap<String, String>,
}

/// Folders below a folder of modules that are no modules: the catalogue, templates of jobs, rules
/// and translations.
pub(super) const RESERVED: [&str; 4] = ["catalog", "jobs", "rules", "translations"];

impl ModuleFiles {
    /// The modules among the files of a folder, given as `NAME/module.yaml` and text; `folder` is
    /// what messages call it.
    pub fn below(
        folder: &str,
        files: impl IntoIterator<Item = (String, String)>,
    ) -> Vec<ModuleFiles> {
        let mut modules: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for (path, text) in files {
            // A file beside the module folders, such as a README, is no module's.
            if let Some((name, below)) = path
                .split_once('/')
                .filter(|(name, _)| !RESERVED.contains(name))
            {
                modules
                    .entry(name.to_owned())
                    .or_default()
                    .insert(below.to_owned(), text);
            }
        }
        modules
            .into_iter()
            .map(|(name, files)| ModuleFiles {
                folder: format!("{folder}/{name}"),
                files,
            })
            .collect()
    }
}

/// A resource that a module wants.
#[derive(Debug, Clone)]
pub struct ModuleResource {
    /// As it was written.
    pub entry: ResourceEntry,
    /// The condition.
    pub when: Option<Snippet>,
    /// The variable and list of its `for`.
    pub each: Option<(String, Snippet)>,
    /// The body.
    pub body: BodyTemplate,
}

/// A check that a module brings.
#[derive(Debug, Clone)]
pub struct CheckTemplate {
    /// As it was written.
    pub entry: CheckEntry,
    /// The condition.
    pub when: Option<Snippet>,
    /// The variable and list of its `for`.
    pub each: Option<(String, Snippet)>,
    /// The script.
    pub run: Snippet,
    /// What it must print.
    pub expect: Option<Snippet>,
}

/// A module, ready to be used.
#[derive(Debug, Clone)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// One line.
    pub summary: String,
    /// Digest of the manifest and the templates.
    pub digest: Digest,
    /// What sort of target it is for.
    pub on: TargetKind,
    /// By name.
    pub parameters: BTreeMap<String, ModuleParameter>,
    pub(super) manifest: Manifest,
    pub(super) when: Option<Snippet>,
    pub(super) needs: Option<Snippet>,
    pub(super) resources: Vec<ModuleResource>,
    pub(super) checks: Vec<CheckTemplate>,
    pub(super) engine: Engine,
}

impl Module {
    pub(super) fn document(&self) -> &YamlDocument {
        &self.manifest.document
    }

    /// A diagnostic at a node of the manifest.
    pub(super) fn at(
        &self,
        diagnostic: Diagnostic,
        node: NodeId,
        text: impl Into<String>,
    ) -> Diagnostic {
        diagnostic.at(
            self.document().source().name(),
            self.document().caret(node),
            text,
        )
    }
}

/// All modules of a run, in an order in which each comes after those that it names.
#[derive(Debug, Clone)]
pub struct Modules {
    /// The modules.
    pub modules: Vec<Module>,
    /// Their files, for diagnostics that point into them.
    pub sources: Sources,
}

/// Why the modules cannot be used.
#[derive(Debug, Clone)]
pub struct ModuleProblems {
    /// All errors of all modules.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that they point into.
    pub sources: Sources,
}

/// Loads modules; of two with the same folder name the later one counts, so that a user's own comes
/// after the shipped ones.
pub fn load_modules(modules: Vec<ModuleFiles>) -> Result<Modules, ModuleProblems> {
    let mut sources = Sources::default();
    let mut diagnostics = Vec::new();
    let mut by_name: BTreeMap<String, ModuleFiles> = BTreeMap::new();
    for files in modules {
        by_name.insert(
            files
                .folder
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .to_owned(),
            files,
        );
    }
    let names = ModuleShapes {
        host: context::build_host_shape(),
        switch: switch_context::build_switch_shape(),
        cluster: cluster_context::build_cluster_shape(),
    };
    let (mut loaded, mut aliases) = (Vec::new(), AliasBudget::default());
    for (name, files) in by_name {
        loaded.extend(compile_module(
            &name,
            files,
            &names,
            &mut aliases,
            &mut sources,
            &mut diagnostics,
        ));
    }
    let ordered = order::sort_modules(loaded, &mut diagnostics);
    if diagnostics.is_empty() {
        Ok(Modules {
            modules: ordered,
            sources,
        })
    } else {
        Err(ModuleProblems {
            diagnostics,
            sources,
        })
    }
}

/// The names that templates know, by what the module is for.
struct ModuleShapes {
    host: ContextShape,
    switch: ContextShape,
    cluster: ContextShape,
}

fn compile_module(
    name: &str,
    files: ModuleFiles,
    names: &ModuleShapes,
    aliases: &mut AliasBudget,
    sources: &mut Sources,
    problems: &mut Vec<Diagnostic>,
) -> Option<Module> {
    let ModuleFiles { folder, files } = files;
    let source = |path: &str, text: &String| {
        Arc::new(SourceText::new(SourceFile {
            name: format!("{folder}/{path}"),
            text: text.clone(),
        }))
    };
    let Some(text) = files.get("module.yaml") else {
        problems.push(
            Diagnostic::error("RW0201", format!("{folder} has no module.yaml"))
                .next(format!("write {folder}/module.yaml, or remove the folder")),
        );
        return None;
    };
    let manifest_source = source("module.yaml", text);
    let templates: TemplateFiles = files
        .iter()
        .filter_map(|(path, text)| {
            Some((
                path.strip_prefix("templates/")?.to_owned(),
                source(path, text),
            ))
        })
        .collect();
    for file in std::iter::once(&manifest_source).chain(templates.values()) {
        sources.add(Arc::clone(file));
        problems.extend(find_reserved_character(file));
    }
    let document = YamlDocument::parse(manifest_source, aliases, problems)?;
    let manifest = manifest::parse_manifest(document, problems)?;
    let digest = compute_module_digest(&files);
    let before = problems.len();
    if manifest.name.text != name {
        let said = format!("the folder is named `{name}`");
        problems.push(
            Diagnostic::error("RW0201", "a module has the name of its folder").at(
                manifest.document.source().name(),
                manifest.document.caret(manifest.name.node),
                said,
            ),
        );
    }
    let on = sort_of_target(&manifest, problems);
    // What templates can name goes by the kinds: where one is misspelt, that is all that is wrong.
    let names = match on {
        _ if manifest
            .resources
            .iter()
            .any(|entry| kind_named(&entry.kind.text).is_none()) =>
        {
            &ContextShape::Any
        }
        TargetKind::Kube => &names.cluster,
        TargetKind::Switch => &names.switch,
        TargetKind::Host => &names.host,
    };
    let with_parameters = with_parameters(names, &manifest, problems);
    let mut building = Building {
        manifest: &manifest,
        files: &templates,
        shape: names.clone(),
        problems,
        named: Vec::new(),
    };
    // Whether a module applies is decided before its parameters have values.
    let when = building.condition("when", manifest.when.as_ref(), &[]);
    let needs = building.condition("needs", manifest.needs.as_ref(), &[]);
    building.shape = with_parameters;
    let resources: Vec<ModuleResource> = manifest
        .resources
        .iter()
        .map(|entry| building.resource(entry))
        .collect();
    let checks: Vec<CheckTemplate> = manifest
        .checks
        .iter()
        .map(|entry| building.check(entry))
        .collect();
    building.unused_templates();
    let engine = build_engine(
        &manifest,
        when.iter().chain(&needs),
        &resources,
        &checks,
        problems,
    )?;
    let (name, summary, parameters) = (
        manifest.name.text.clone(),
        manifest.summary.clone(),
        manifest.parameters.clone(),
    );
    (problems.len() == before).then_some(Module {
        name,
        summary,
        digest,
        on,
        parameters,
        manifest,
        when,
        needs,
        resources,
        checks,
        engine,
    })
}

/// A module is for hosts, for switches or for the Kubernetes cluster: what its templates can name
/// differs.
fn sort_of_target(manifest: &Manifest, problems: &mut Vec<Diagnostic>) -> TargetKind {
    let mut known = manifest
        .resources
        .iter()
        .filter(|entry| kind_named(&entry.kind.text).is_some());
    let on = known
        .next()
        .map_or(TargetKind::Host, |first| target_of(&first.kind.text));
    let mut told = |message: &str, node: NodeId, label: &str| {
        let error = Diagnostic::error("RW0227", message).at(
            manifest.document.source().name(),
            manifest.document.caret(node),
            label,
        );
        problems.push(error.next("make two modules of it"));
    };
    if let Some(other) = known.find(|entry| target_of(&entry.kind.text) != on) {
        told(
            "a module is for hosts, for switches or for the Kubernetes cluster, and for one of \
             them alone",
            other.kind.node,
            "the first resource is of the other sort",
        );
    }
    if let Some(check) = manifest.checks.first().filter(|_| on != TargetKind::Host) {
        let whose = if on == TargetKind::Kube {
            "the Kubernetes cluster"
        } else {
            "switches"
        };
        told(
            &format!("the checks of a module run on hosts, and this module is for {whose}"),
            check.id.node,
            "a check",
        );
    }
    on
}

/// README and test cases change nothing on a host, so they are no part of the digest.
fn compute_module_digest(files: &BTreeMap<String, String>) -> Digest {
    let parts: BTreeMap<&str, &str> = files
        .iter()
        .filter(|(path, _)| path.as_str() == "module.yaml" || path.starts_with("templates/"))
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    Digest::of(&parts)
}

fn find_reserved_character(source: &SourceText) -> Option<Diagnostic> {
    let at = secret::find_mark_character(source.text())?;
    Some(
        Diagnostic::error("RW0215", "this character is kept for the marks of secrets")
            .at(source.name(), at..at + 3, "here")
            .next("remove it"),
    )
}

/// The names of the context and the module's parameters beside them.
fn with_parameters(
    names: &ContextShape,
    manifest: &Manifest,
    problems: &mut Vec<Diagnostic>,
) -> ContextShape {
    let ContextShape::Map(mut fields) = names.clone() else {
        return names.clone();
    };
    let document = &manifest.document;
    let nodes = document
        .root()
        .and_then(|root| document.entry(root, "parameters"))
        .map(|entry| entry.value);
    for (name, parameter) in &manifest.parameters {
        let node = nodes.and_then(|node| document.entry(node, name));
        let mut problem = |code, message: String, key: &str, label: String| {
            let node = node.map_or(0, |entry| {
                document
                    .entry(entry.value, key)
                    .map_or(entry.key, |entry| entry.value)
            });
            problems.push(Diagnostic::error(code, message).at(
                document.source().name(),
                document.caret(node),
                label,
            ));
        };
        if matches!(names, ContextShape::Map(known) if known.contains_key(name)) {
            problem(
                "RW0201",
                format!("a parameter cannot be named `{name}`"),
                "",
                "templates know another thing by this name".into(),
            );
            continue;
        }
        if parameter
            .default
            .as_ref()
            .is_some_and(|value| !parameter.kind.fits(value))
        {
            problem(
                "RW0213",
                format!("the default of `{name}` is not {}", parameter.kind.words()),
                "default",
                "of another type".into(),
            );
        }
        let path: Vec<String> = parameter
            .from
            .iter()
            .flat_map(|from| from.split('.'))
            .map(str::to_owned)
            .collect();
        let shape = match names.at(&path) {
            Ok(shape) if parameter.from.is_some() => shape.clone(),
            Ok(_) => ContextShape::Any,
            Err(error) => {
                let wrong = path.get(error.segment).map_or("", String::as_str);
                let near =
                    suggest::find_nearest_word(wrong, error.known.iter().map(String::as_str));
                let label = near.map_or(format!("there are: {}", error.known.join(", ")), |near| {
                    format!("did you mean `{near}`?")
                });
                problem(
                    "RW0203",
                    format!("there is no `{wrong}` on the path of `{name}`"),
                    "from",
                    label,
                );
                ContextShape::Any
            }
        };
        fields.insert(name.clone(), shape);
    }
    ContextShape::Map(fields)
}

fn build_engine<'a>(
    manifest: &Manifest,
    conditions: impl Iterator<Item = &'a Snippet>,
    resources: &'a [ModuleResource],
    checks: &'a [CheckTemplate],
    problems: &mut Vec<Diagnostic>,
) -> Option<Engine> {
    let mut all: Vec<&Snippet> = conditions.collect();
    for resource in resources {
        all.extend(
            resource
                .when
                .iter()
                .chain(resource.each.iter().map(|(_, list)| list)),
        );
        all.extend(resource.body.snippets());
    }
    for check in checks {
        all.extend(
            check
                .when
                .iter()
                .chain(check.each.iter().map(|(_, list)| list))
                .chain([&check.run])
                .chain(check.expect.iter()),
        );
    }
    Engine::new(&all, &manifest.document)
        .map_err(|errors| problems.extend(errors))
        .ok()
}

struct Building<'a> {
    manifest: &'a Manifest,
    files: &'a TemplateFiles,
    shape: ContextShape,
    problems: &'a mut Vec<Diagnostic>,
    named: Vec<String>,
}

impl Building<'_> {
    fn lint(&mut self, snippet: &mut Snippet, locals: &[Local]) {
        let (uses, problems) = names::check_template_names(snippet.text(), &self.shape, locals);
        let document = &self.manifest.document;
        self.problems.extend(
            problems
                .iter()
                .map(|problem| snippet.diagnostic(document, problem)),
        );
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
        let parts = noted
            .text
            .split_once(" in ")
            .map(|(variable, list)| (variable.trim(), list.trim()));
        let Some((variable, list)) =
            parts.filter(|(variable, _)| variable.chars().all(|c| c.is_alphanumeric() || c == '_'))
        else {
            let document = &self.manifest.document;
            let diagnostic = Diagnostic::error("RW0201", "a `for` reads `name in list`").at(
                document.source().name(),
                document.caret(noted.node),
                "such as `rail in host.rails`",
            );
            self.problems.push(diagnostic);
            return (None, Vec::new());
        };
        let snippet = self.snippet(
            name,
            &ManifestText {
                text: list.to_owned(),
                node: noted.node,
            },
            Makes::Value,
            &[],
        );
        let path: Vec<String> = list.split('.').map(str::to_owned).collect();
        let shape = match self.shape.at(&path) {
            Ok(ContextShape::List(element)) => (**element).clone(),
            _ => ContextShape::Any,
        };
        let path = Some(path.into_iter().chain([EACH.to_owned()]).collect());
        (
            Some((variable.to_owned(), snippet)),
            vec![Local {
                name: variable.to_owned(),
                path,
                shape,
            }],
        )
    }

    fn resource(&mut self, entry: &ResourceEntry) -> ModuleResource {
        let name = format!("resources/{}", entry.id.text);
        let (each, locals) = self.each(&format!("{name}#for"), entry.each.as_ref());
        let when = self.condition(&format!("{name}#when"), entry.when.as_ref(), &locals);
        if kind_named(&entry.kind.text).is_none() {
            let known = list_resource_kinds().iter().map(|kind| kind.name());
            let near = suggest::find_nearest_word(&entry.kind.text, known.clone())
                .map(|near| format!("did you mean `{near}`?"));
            let label = near
                .unwrap_or_else(|| format!("there are: {}", known.collect::<Vec<_>>().join(", ")));
            let document = &self.manifest.document;
            let diagnostic = Diagnostic::error(
                "RW0202",
                format!("there is no resource kind `{}`", entry.kind.text),
            );
            self.problems.push(diagnostic.at(
                document.source().name(),
                document.caret(entry.kind.node),
                label,
            ));
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
        let expect = entry
            .expect
            .as_ref()
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
