//! From the files of modules to compiled modules: every template read, every name checked, before
//! any host is looked at.

mod parameters;
mod templates;

use self::templates::{CompiledTemplates, compile_templates};
use super::body::{BodyTemplate, TemplateFiles};
use super::manifest::{self, CheckEntry, Manifest, ModuleParameter, ResourceEntry};
use super::subject::target_of;
use super::{cluster_context, context, order, switch_context};
use crate::spec::source::{SourceFile, SourceText, Sources};
use crate::spec::yaml::{AliasBudget, NodeId, YamlDocument};
use crate::template::engine::Engine;
use crate::template::shape::ContextShape;
use crate::template::snippet::Snippet;
use railwright_base::{Diagnostic, Digest, TargetKind, secret};
use railwright_resource::kind_named;
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

    fn source(&self, path: &str, text: &str) -> Arc<SourceText> {
        Arc::new(SourceText::new(SourceFile {
            name: format!("{}/{path}", self.folder),
            text: text.to_owned(),
        }))
    }

    fn templates(&self) -> TemplateFiles {
        let mut templates = TemplateFiles::new();
        for (path, text) in &self.files {
            if let Some(name) = path.strip_prefix("templates/") {
                templates.insert(name.to_owned(), self.source(path, text));
            }
        }
        templates
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
    let mut loader = ModuleLoader {
        shapes: ModuleShapes {
            host: context::build_host_shape(),
            switch: switch_context::build_switch_shape(),
            cluster: cluster_context::build_cluster_shape(),
        },
        aliases: AliasBudget::default(),
        sources: Sources::default(),
        problems: Vec::new(),
    };
    let mut loaded = Vec::new();
    for (name, files) in &by_name {
        loaded.extend(loader.compile(name, files));
    }
    let ModuleLoader {
        sources,
        problems: mut diagnostics,
        ..
    } = loader;
    let modules = order::sort_modules(loaded, &mut diagnostics);
    if diagnostics.is_empty() {
        Ok(Modules { modules, sources })
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

impl ModuleShapes {
    /// What templates can name goes by the kinds: where one is misspelt, that is all that is wrong.
    fn select(&self, manifest: &Manifest, on: TargetKind) -> &ContextShape {
        let mut kinds = manifest.resources.iter().map(|entry| &entry.kind.text);
        if kinds.any(|kind| kind_named(kind).is_none()) {
            return &ContextShape::Any;
        }
        match on {
            TargetKind::Kube => &self.cluster,
            TargetKind::Switch => &self.switch,
            TargetKind::Host => &self.host,
        }
    }
}

struct ModuleLoader {
    shapes: ModuleShapes,
    aliases: AliasBudget,
    sources: Sources,
    problems: Vec<Diagnostic>,
}

impl ModuleLoader {
    fn compile(&mut self, name: &str, files: &ModuleFiles) -> Option<Module> {
        let Some(text) = files.files.get("module.yaml") else {
            self.problems.push(new_absent_manifest_error(&files.folder));
            return None;
        };
        let manifest_source = files.source("module.yaml", text);
        let templates = files.templates();
        for file in std::iter::once(&manifest_source).chain(templates.values()) {
            self.sources.add(Arc::clone(file));
            self.problems.extend(find_reserved_character(file));
        }
        let document = YamlDocument::parse(manifest_source, &mut self.aliases, &mut self.problems)?;
        let manifest = manifest::parse_manifest(document, &mut self.problems)?;
        let before = self.problems.len();
        self.problems.extend(check_module_name(name, &manifest));
        let on = sort_of_target(&manifest, &mut self.problems);
        let shape = self.shapes.select(&manifest, on);
        let compiled = compile_templates(&manifest, &templates, shape, &mut self.problems);
        let engine = compiled.build_engine(&manifest, &mut self.problems)?;
        let CompiledTemplates {
            when,
            needs,
            resources,
            checks,
        } = compiled;
        (self.problems.len() == before).then(|| Module {
            name: manifest.name.text.clone(),
            summary: manifest.summary.clone(),
            digest: compute_module_digest(&files.files),
            on,
            parameters: manifest.parameters.clone(),
            manifest,
            when,
            needs,
            resources,
            checks,
            engine,
        })
    }
}

fn new_absent_manifest_error(folder: &str) -> Diagnostic {
    Diagnostic::error("RW0201", format!("{folder} has no module.yaml"))
        .next(format!("write {folder}/module.yaml, or remove the folder"))
}

fn check_module_name(folder: &str, manifest: &Manifest) -> Option<Diagnostic> {
    if manifest.name.text == folder {
        return None;
    }
    let error = Diagnostic::error("RW0201", "a module has the name of its folder");
    Some(error.at(
        manifest.document.source().name(),
        manifest.document.caret(manifest.name.node),
        format!("the folder is named `{folder}`"),
    ))
}

/// A module is for hosts, for switches or for the Kubernetes cluster: what its templates can name
/// differs.
fn sort_of_target(manifest: &Manifest, problems: &mut Vec<Diagnostic>) -> TargetKind {
    let mut known = manifest
        .resources
        .iter()
        .filter(|entry| kind_named(&entry.kind.text).is_some());
    let on = match known.next() {
        Some(first) => target_of(&first.kind.text),
        None => TargetKind::Host,
    };
    if let Some(other) = known.find(|entry| target_of(&entry.kind.text) != on) {
        let message = "a module is for hosts, for switches or for the Kubernetes cluster, and for \
                       one of them alone";
        let label = "the first resource is of the other sort";
        problems.push(new_two_targets_error(
            manifest,
            message,
            other.kind.node,
            label,
        ));
    }
    if let Some(check) = manifest.checks.first()
        && on != TargetKind::Host
    {
        let whose = if on == TargetKind::Kube {
            "the Kubernetes cluster"
        } else {
            "switches"
        };
        let message =
            format!("the checks of a module run on hosts, and this module is for {whose}");
        problems.push(new_two_targets_error(
            manifest,
            &message,
            check.id.node,
            "a check",
        ));
    }
    on
}

fn new_two_targets_error(
    manifest: &Manifest,
    message: &str,
    node: NodeId,
    label: &str,
) -> Diagnostic {
    let document = &manifest.document;
    Diagnostic::error("RW0227", message)
        .at(document.source().name(), document.caret(node), label)
        .next("make two modules of it")
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
