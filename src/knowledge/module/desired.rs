//! From a spec and modules to desired resources: which modules apply to which host, what each
//! declares there, in which order, and why.

mod checks;
mod left_out;
mod places;
mod resources;

pub use self::checks::HostModuleCheck;
pub use self::left_out::LeftOut;

use self::left_out::{NEEDS_SSH, enabled_in_vain};
use super::compile::{Module, Modules};
use super::context::{self, RepositoryNames, Texts};
use super::findings::ModuleFindings;
use super::kept;
use super::merge;
use super::order::ModuleHostResources;
use super::subject::ModuleSubject;
use super::{cluster_context, nic_owners, parameters, share, switch_context};
use crate::catalog::Catalog;
use crate::solve::SolverAnswers;
use crate::spec::LoadedSpec;
use crate::spec::yaml::NodeId;
use crate::template::engine::{self, Rendered};
use crate::template::snippet::Snippet;
use railwright_base::{Address, Diagnostic, Digest, SourceLocation, TargetKind};
use railwright_resource::DesiredResource;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tera::Context;

/// The most resources that one `for` makes for one target.
const TURNS_MAX: usize = 10_000;

/// All that the spec and its modules declare.
#[derive(Debug, Clone, Default)]
pub struct DesiredState {
    /// Sorted by address.
    pub resources: Vec<DesiredResource>,
    /// Checks that modules bring, by host and module.
    pub checks: Vec<HostModuleCheck>,
    /// Digests of all modules that some host uses.
    pub digests: BTreeMap<String, Digest>,
    /// Which modules want a resource, and what made them.
    pub why: BTreeMap<Address, Vec<ResourceProvenance>>,
    /// Modules that the spec enables and a host cannot use, and all that would be for a host that
    /// has no SSH.
    pub left_out: Vec<LeftOut>,
    /// What is allowed but looks wrong.
    pub warnings: Vec<Diagnostic>,
}

/// Why a resource is declared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResourceProvenance {
    /// The module and the id of the resource in its manifest.
    pub module: String,
    /// What the module is for.
    pub summary: String,
    /// The conditions that hold, as they are written; the spec's `enabled: true` stands for the
    /// module's own.
    pub conditions: Vec<String>,
    /// The facts that the conditions look at, with their values here.
    pub facts: BTreeMap<String, Value>,
}

/// One resource before order and merging.
pub(super) struct ResourceDraft {
    pub module: usize,
    pub index: usize,
    pub turn: Option<(String, usize)>,
    pub resource: DesiredResource,
    pub why: ResourceProvenance,
}

/// The resources and checks of all targets. `answers` are the releases that go together, `texts`
/// holds the files of `context::list_referenced_files`. All errors of all modules come back
/// together.
pub fn compute_desired_state(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    answers: &SolverAnswers,
    modules: &Modules,
    texts: &Texts,
) -> Result<DesiredState, Vec<Diagnostic>> {
    let mut errors = parameters::check_overrides(modules, loaded);
    let repositories = context::collect_repositories(loaded, texts)
        .map_err(|more| errors.extend(more))
        .unwrap_or_default();
    if !errors.is_empty() {
        return Err(errors);
    }
    let targets = loaded.hosts.len()
        + loaded.managed_switches().count()
        + usize::from(loaded.kubernetes_name().is_some());
    let _allowance = engine::share_allowance(targets);
    let mut builder = DesiredStateBuilder {
        loaded,
        catalog,
        answers,
        modules: &modules.modules,
        places: PlacesSeen::new(),
    };
    let mut results = ModuleResults::default();
    builder.add_hosts(&repositories, &mut results);
    builder.add_switches(&mut results);
    builder.add_cluster(&mut results);
    let ModuleResults { mut state, found } = results;
    state.warnings = enabled_in_vain(loaded, &state.left_out);
    let errors = found.into_diagnostics();
    if !errors.is_empty() {
        return Err(errors);
    }
    let errors = nic_owners::check_nic_owners(loaded, catalog, &state.resources);
    if !errors.is_empty() {
        return Err(errors);
    }
    state.resources.sort_by(|a, b| a.address.cmp(&b.address));
    share::share_equal_values(&mut state.resources);
    Ok(state)
}

/// What the modules make, and what is wrong with them.
#[derive(Default)]
struct ModuleResults {
    state: DesiredState,
    found: ModuleFindings,
}

/// Asks every module about every target.
struct DesiredStateBuilder<'a> {
    loaded: &'a LoadedSpec,
    catalog: &'a Catalog,
    answers: &'a SolverAnswers,
    modules: &'a [Module],
    places: PlacesSeen,
}

impl DesiredStateBuilder<'_> {
    fn add_hosts(&mut self, repositories: &[RepositoryNames], results: &mut ModuleResults) {
        let loaded = self.loaded;
        for host in &loaded.hosts {
            let names = serde_json::to_value(context::build_host_template_names(
                loaded,
                self.catalog,
                self.answers,
                host,
                repositories,
            ));
            if host.ssh.is_some() {
                self.add_target(ModuleSubject::Host(host), names, results);
                continue;
            }
            // Only to say what is left out: what a module lacks on a host that it does not come to
            // is no error.
            let mut unused = ModuleResults::default();
            self.add_target(ModuleSubject::Host(host), names, &mut unused);
            let modules = unused.state.modules().into_iter();
            results.state.left_out.extend(modules.map(|module| LeftOut {
                host: host.name.clone(),
                module,
                needs: NEEDS_SSH.to_owned(),
            }));
        }
    }

    fn add_switches(&mut self, results: &mut ModuleResults) {
        let loaded = self.loaded;
        for switch in loaded.managed_switches() {
            let context = switch_context::build_switch_context(loaded, self.catalog, switch);
            let names = serde_json::to_value(context);
            self.add_target(ModuleSubject::Switch(switch), names, results);
        }
    }

    fn add_cluster(&mut self, results: &mut ModuleResults) {
        let loaded = self.loaded;
        if let Some(name) = loaded.kubernetes_name() {
            let context = cluster_context::build_cluster_names(loaded, self.catalog, self.answers);
            let names = serde_json::to_value(context);
            self.add_target(ModuleSubject::Cluster(name), names, results);
        }
    }

    /// Adds what all modules make for one target; `names` are what its templates can name.
    fn add_target(
        &mut self,
        on: ModuleSubject<'_>,
        names: serde_json::Result<Value>,
        results: &mut ModuleResults,
    ) {
        let values = names.and_then(serde_json::from_value::<BTreeMap<String, Value>>);
        let Ok(values) = values else { return };
        let mut target = TargetBuilder {
            loaded: self.loaded,
            modules: self.modules,
            on,
            values: &values,
            context: engine::build_context(&values),
            found: &mut results.found,
            places: &mut self.places,
            drafts: Vec::new(),
            made: Vec::new(),
        };
        target.add_modules(&mut results.state);
    }
}

impl DesiredState {
    /// The modules that declare something or bring a check.
    fn modules(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for why in self.why.values().flatten() {
            names.extend(why.module.split('/').next());
        }
        for check in &self.checks {
            names.extend(check.name.split('/').next());
        }
        names.into_iter().map(str::to_owned).collect()
    }
}

/// Places by sort of target, group of them, module, resource and turn: the same for all hosts of a
/// group.
type PlacesSeen =
    BTreeMap<(TargetKind, Option<usize>, usize, usize, Option<usize>), Vec<SourceLocation>>;

/// What the modules make for one target.
struct TargetBuilder<'a> {
    loaded: &'a LoadedSpec,
    modules: &'a [Module],
    on: ModuleSubject<'a>,
    values: &'a BTreeMap<String, Value>,
    context: Context,
    found: &'a mut ModuleFindings,
    places: &'a mut PlacesSeen,
    drafts: Vec<ResourceDraft>,
    made: Vec<ModuleHostResources>,
}

/// One module on one host.
struct ModuleScope {
    parameters: BTreeMap<String, Value>,
    context: Context,
    conditions: Vec<String>,
}

impl TargetBuilder<'_> {
    fn add_modules(&mut self, out: &mut DesiredState) {
        if let Some(error) = self.find_reserved_text() {
            self.found.add(error, self.on.name());
            return;
        }
        let modules = self.modules;
        for (at, module) in modules.iter().enumerate() {
            self.made.push(ModuleHostResources::default());
            if module.on != self.on.kind() || engine::is_allowance_used_up() {
                continue;
            }
            let Some(scope) = self.scope(module, out) else {
                continue;
            };
            for index in 0..module.resources.len() {
                self.resource(at, index, &scope);
            }
            for check in &module.checks {
                self.check(module, check, &scope, out);
            }
            out.digests
                .insert(module.name.clone(), module.digest.clone());
        }
        let drafts = std::mem::take(&mut self.drafts);
        let mut resources =
            merge::merge_host_resources(drafts, &self.made, modules, self.found, self.on.name());
        merge::edited_and_whole(&resources, self.found, self.on.name());
        super::order::after_names(resources.iter_mut().map(|(resource, _)| resource));
        super::order::after_what_they_are_in(resources.iter_mut().map(|(resource, _)| resource));
        for (resource, why) in resources {
            out.why.insert(resource.address.clone(), why);
            out.resources.push(resource);
        }
    }

    /// A value of the target that holds a character kept for the marks of secrets.
    fn find_reserved_text(&self) -> Option<Diagnostic> {
        for (name, value) in self.values {
            if name == "secrets" {
                continue;
            }
            if let Some(text) = context::reserved_text(value) {
                let text = railwright_base::text::one_line(text, 60);
                let message =
                    format!("`{text}` holds a character that is kept for the marks of secrets");
                return Some(Diagnostic::error("RW0215", message));
            }
        }
        None
    }

    fn note<T>(&mut self, result: Rendered<T>) -> Option<T> {
        result
            .map_err(|diagnostic| self.found.add(*diagnostic, self.on.name()))
            .ok()
    }

    /// The names of a module on this host, if it applies here.
    fn scope(&mut self, module: &Module, out: &mut DesiredState) -> Option<ModuleScope> {
        let enabled = self
            .loaded
            .spec
            .modules
            .get(&module.name)
            .and_then(|desired| desired.enabled);
        if enabled == Some(false) {
            return None;
        }
        let is_enabled = enabled == Some(true);
        if let (Some(needs), Some(noted)) = (&module.needs, &module.manifest.needs) {
            let result = module.engine.holds(needs, &self.context, module.document());
            if !self.note(result)? {
                if is_enabled {
                    out.left_out.push(LeftOut {
                        host: self.on.name().to_owned(),
                        module: module.name.clone(),
                        needs: noted.text.clone(),
                    });
                }
                return None;
            }
        }
        let mut conditions = Vec::new();
        if is_enabled {
            conditions.push(format!("modules.{}.enabled is true", module.name));
        } else if let Some(when) = &module.when {
            let result = module.engine.holds(when, &self.context, module.document());
            if !self.note(result)? {
                return None;
            }
            conditions.extend(module.manifest.when.iter().map(|when| when.text.clone()));
        }
        let parameters = self.resolve_parameters(module)?;
        let mut context = self.context.clone();
        for (name, value) in &parameters {
            engine::add_context_value(&mut context, name, value);
        }
        Some(ModuleScope {
            parameters,
            context,
            conditions,
        })
    }

    fn resolve_parameters(&mut self, module: &Module) -> Option<BTreeMap<String, Value>> {
        match parameters::resolve_parameters(module, self.values, self.loaded, self.on) {
            Ok(parameters) => Some(parameters),
            Err(errors) => {
                for error in errors {
                    self.found.add(error, self.on.name());
                }
                None
            }
        }
    }

    /// The contexts of each turn of a `for`, or the one without; each is made when its turn comes.
    fn turns<'s>(
        &mut self,
        module: &Module,
        each: Option<&'s (String, Snippet)>,
        scope: &'s ModuleScope,
    ) -> Option<Box<dyn Iterator<Item = (Option<usize>, Context)> + 's>> {
        let Some((variable, list)) = each else {
            return Some(Box::new(std::iter::once((None, scope.context.clone()))));
        };
        let list_value = self.note(module.engine.value(list, &scope.context, module.document()))?;
        let Value::Array(items) = list_value else {
            return Some(Box::new(std::iter::empty()));
        };
        if items.len() > TURNS_MAX {
            let (file, span) = list.place(module.document(), &(0..list.text().len()));
            let label = format!("this `for` makes {} resources for one target", items.len());
            let problem =
                Diagnostic::error("RW0217", "a template makes too much").at(file, span, label);
            return self.note(Err(Box::new(
                problem.next(format!("make at most {TURNS_MAX} with one `for`")),
            )));
        }
        let items = items.into_iter().enumerate();
        Some(Box::new(items.map(move |(at, item)| {
            let mut context = scope.context.clone();
            engine::add_context_value(&mut context, variable, &item);
            (Some(at), context)
        })))
    }

    /// True where a condition holds or there is none.
    fn is_met(&mut self, module: &Module, when: Option<&Snippet>, context: &Context) -> bool {
        let Some(when) = when else { return true };
        let result = module.engine.holds(when, context, module.document());
        self.note(result) == Some(true)
    }

    /// Takes what is kept of one turn from the shared allowance; false, with an error, when it is
    /// used up.
    fn keep(&mut self, module: &Module, part: NodeId, bytes: usize) -> bool {
        self.note(kept::take_bytes(module, part, bytes)).is_some()
    }
}
