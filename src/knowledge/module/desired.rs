//! From a spec and modules to wishes: which modules apply to which host, what each wants there, in
//! which order, and why.

mod left_out;
mod places;

pub use self::left_out::LeftOut;

use self::left_out::{NEEDS_SSH, enabled_in_vain};
use super::body::span_of;
use super::compile::{CheckTemplate, Module, ModuleResource, Modules};
use super::context::{self, Texts, value_at};
use super::findings::ModuleFindings;
use super::kept;
use super::merge;
use super::order::{MadeWish, ModuleHostResources};
use super::subject::ModuleSubject;
use super::{cluster_context, nic_owners, parameters, secrets, share, switch_context};
use crate::catalog::Catalog;
use crate::solve::SolverAnswers;
use crate::spec::LoadedSpec;
use crate::spec::yaml::NodeId;
use crate::template::engine::{self, Rendered, Snippet};
use railwright_base::{Address, Diagnostic, Digest, SourceLocation, TargetKind, secret};
use railwright_resource::{DesiredResource, Want, kind_named};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tera::Context;

/// The most resources that one `for` makes for one target.
const TURNS_MAX: usize = 10_000;

/// All that the spec and its modules wish for.
#[derive(Debug, Clone, Default)]
pub struct DesiredState {
    /// Sorted by address.
    pub wishes: Vec<DesiredResource>,
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

/// A check that a module brings, for one host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostModuleCheck {
    /// The host.
    pub host: String,
    /// The module and the id of the check: `memlock/limit`.
    pub name: String,
    /// A POSIX sh script, to be run in a fresh login.
    pub run: String,
    /// What it must print, white space at the ends left out; without it, it must exit with 0.
    pub expect: Option<String>,
    /// Its time limit in seconds.
    pub limit_s: u32,
}

/// Why a resource is wished for.
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

/// One wish before order and merging.
pub(super) struct ResourceDraft {
    pub module: usize,
    pub resource: usize,
    pub turn: Option<(String, usize)>,
    pub wish: DesiredResource,
    pub why: ResourceProvenance,
}

/// The wishes of all hosts. `answers` are the releases that go together, `texts` holds the files of
/// `context::files`.
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
    let (mut found, mut places) = (ModuleFindings::default(), PlacesSeen::new());
    let (mut out, mut unseen) = (DesiredState::default(), ModuleFindings::default());
    let mut of = |on: ModuleSubject,
                  names: serde_json::Result<Value>,
                  found: &mut ModuleFindings,
                  out: &mut DesiredState| {
        let values = names.and_then(serde_json::from_value::<BTreeMap<String, Value>>);
        let Ok(values) = values else { return };
        let context = engine::build_context(&values);
        let (drafts, made) = (Vec::new(), Vec::new());
        OfSubject {
            loaded,
            modules: &modules.modules,
            on,
            values: &values,
            context,
            found,
            places: &mut places,
            drafts,
            made,
        }
        .all(out);
    };
    for host in &loaded.hosts {
        let names = serde_json::to_value(context::build_host_template_names(
            loaded,
            catalog,
            answers,
            host,
            &repositories,
        ));
        if host.ssh.is_some() {
            of(ModuleSubject::Host(host), names, &mut found, &mut out);
            continue;
        }
        // Only to say what is left out: what a module lacks on a host that it does not come to is
        // no error.
        let mut never = DesiredState::default();
        of(ModuleSubject::Host(host), names, &mut unseen, &mut never);
        out.left_out
            .extend(never.modules().into_iter().map(|module| LeftOut {
                host: host.name.clone(),
                module,
                needs: NEEDS_SSH.to_owned(),
            }));
    }
    for switch in loaded.managed_switches() {
        let names = serde_json::to_value(switch_context::build_switch_context(
            loaded, catalog, switch,
        ));
        of(ModuleSubject::Switch(switch), names, &mut found, &mut out);
    }
    if let Some(name) = loaded.kubernetes_name() {
        let names = serde_json::to_value(cluster_context::build_cluster_names(
            loaded, catalog, answers,
        ));
        of(ModuleSubject::Cluster(name), names, &mut found, &mut out);
    }
    out.warnings = enabled_in_vain(loaded, &out.left_out);
    let errors = found.into_diagnostics();
    if !errors.is_empty() {
        return Err(errors);
    }
    let errors = nic_owners::check_nic_owners(loaded, catalog, &out.wishes);
    if !errors.is_empty() {
        return Err(errors);
    }
    out.wishes.sort_by(|a, b| a.address.cmp(&b.address));
    share::share_equal_values(&mut out.wishes);
    Ok(out)
}

impl DesiredState {
    /// The modules that wish for something or bring a check.
    fn modules(&self) -> BTreeSet<String> {
        let of_checks = self.checks.iter().map(|check| &check.name);
        let all = self
            .why
            .values()
            .flatten()
            .map(|why| &why.module)
            .chain(of_checks);
        all.filter_map(|name| name.split('/').next().map(str::to_owned))
            .collect()
    }
}

/// Places by sort of target, group of them, module, resource and turn: the same for all hosts of a
/// group.
type PlacesSeen =
    BTreeMap<(TargetKind, Option<usize>, usize, usize, Option<usize>), Vec<SourceLocation>>;

struct OfSubject<'a> {
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

impl OfSubject<'_> {
    fn all(&mut self, out: &mut DesiredState) {
        for value in self
            .values
            .iter()
            .filter(|(name, _)| *name != "secrets")
            .map(|(_, value)| value)
        {
            if let Some(text) = context::reserved_text(value) {
                let said = railwright_base::text::one_line(text, 60);
                self.found.add(
                    Diagnostic::error(
                        "RW0215",
                        format!("`{said}` holds a character that is kept for the marks of secrets"),
                    ),
                    self.on.name(),
                );
                return;
            }
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
            for (index, resource) in module.resources.iter().enumerate() {
                self.resource(at, index, resource, &scope);
            }
            for check in &module.checks {
                self.check(module, check, &scope, out);
            }
            out.digests
                .insert(module.name.clone(), module.digest.clone());
        }
        let drafts = std::mem::take(&mut self.drafts);
        let mut wishes =
            merge::merge_host_resources(drafts, &self.made, modules, self.found, self.on.name());
        merge::edited_and_whole(&wishes, self.found, self.on.name());
        super::order::after_names(wishes.iter_mut().map(|(wish, _)| wish));
        super::order::after_what_they_are_in(wishes.iter_mut().map(|(wish, _)| wish));
        for (wish, why) in wishes {
            out.why.insert(wish.address.clone(), why);
            out.wishes.push(wish);
        }
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
            .and_then(|wanted| wanted.enabled);
        if enabled == Some(false) {
            return None;
        }
        let mut conditions = Vec::new();
        if let (Some(needs), Some(said)) = (&module.needs, &module.manifest.needs) {
            let result = module.engine.holds(needs, &self.context, module.document());
            if !self.note(result)? {
                if enabled == Some(true) {
                    out.left_out.push(LeftOut {
                        host: self.on.name().to_owned(),
                        module: module.name.clone(),
                        needs: said.text.clone(),
                    });
                }
                return None;
            }
        }
        if enabled == Some(true) {
            conditions.push(format!("modules.{}.enabled is true", module.name));
        } else if let Some(when) = &module.when {
            let result = module.engine.holds(when, &self.context, module.document());
            if !self.note(result)? {
                return None;
            }
            conditions.extend(module.manifest.when.iter().map(|when| when.text.clone()));
        }
        let parameters =
            match parameters::resolve_parameters(module, self.values, self.loaded, self.on) {
                Ok(parameters) => parameters,
                Err(errors) => {
                    errors
                        .into_iter()
                        .for_each(|error| self.found.add(error, self.on.name()));
                    return None;
                }
            };
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
        let turn = |(at, item): (usize, Value)| {
            let mut context = scope.context.clone();
            engine::add_context_value(&mut context, variable, &item);
            (Some(at), context)
        };
        Some(Box::new(items.into_iter().enumerate().map(turn)))
    }

    /// Takes what is kept of one turn from the shared allowance; false, with an error, when it is
    /// used up.
    fn keep(&mut self, module: &Module, part: NodeId, bytes: usize) -> bool {
        self.note(kept::take_bytes(module, part, bytes)).is_some()
    }

    fn resource(
        &mut self,
        at: usize,
        index: usize,
        resource: &ModuleResource,
        scope: &ModuleScope,
    ) {
        let module = &self.modules[at];
        let Some(turns) = self.turns(module, resource.each.as_ref(), scope) else {
            return;
        };
        for (turn, context) in turns {
            if engine::is_allowance_used_up() {
                return;
            }
            if let Some(when) = &resource.when {
                match self.note(module.engine.holds(when, &context, module.document())) {
                    Some(true) => {}
                    _ => continue,
                }
            }
            let body = resource
                .body
                .render(&module.engine, &context, module.document());
            let Some(mut body) = self.note(body) else {
                continue;
            };
            let names_cluster =
                kind_named(&resource.entry.kind.text).is_some_and(|kind| kind.names_cluster());
            if let Some(fields) = body.as_object_mut().filter(|_| names_cluster) {
                fields.insert(
                    "cluster".to_owned(),
                    Value::from(self.loaded.spec.cluster.clone()),
                );
            }
            let Some(address) = self.address(module, resource, &body) else {
                continue;
            };
            let mut conditions = scope.conditions.clone();
            conditions.extend(resource.entry.when.iter().map(|when| when.text.clone()));
            let why = ResourceProvenance {
                module: format!("{}/{}", module.name, resource.entry.id.text),
                summary: module.summary.clone(),
                conditions,
                facts: self.facts(module, resource, scope),
            };
            if !self.keep(
                module,
                resource.entry.id.node,
                kept::size_of_resource(&body, &why),
            ) {
                return;
            }
            let seen = (self.on.kind(), self.on.group(), at, index, turn);
            let places = match self.places.get(&seen) {
                Some(places) => places.clone(),
                None => self.places(module, resource, turn),
            };
            self.places.entry(seen).or_insert_with(|| places.clone());
            let wish = DesiredResource {
                address: address.clone(),
                after: Vec::new(),
                want: Arc::new(Want {
                    kind: resource.entry.kind.text.clone(),
                    body,
                    module: why.module.clone(),
                    places,
                }),
            };
            let turn = resource
                .entry
                .each
                .as_ref()
                .zip(turn)
                .map(|(each, turn)| (list_of(&each.text), turn));
            let made = MadeWish {
                address,
                turn: turn.clone(),
            };
            self.made[at]
                .by_id
                .entry(resource.entry.id.text.clone())
                .or_default()
                .push(made);
            self.drafts.push(ResourceDraft {
                module: at,
                resource: index,
                turn,
                wish,
                why,
            });
        }
    }

    /// The address of a body that its kind accepts.
    fn address(
        &mut self,
        module: &Module,
        resource: &ModuleResource,
        body: &Value,
    ) -> Option<Address> {
        let kind = kind_named(&resource.entry.kind.text)?;
        let errors = kind.check(body);
        let (file, name) = (
            module.document().source().name(),
            format!("{}/{}", module.name, resource.entry.id.text),
        );
        for error in &errors {
            let span = span_of(module.document(), resource.entry.body, &error.pointer);
            let value = body
                .pointer(&error.pointer)
                .filter(|value| !value.is_object() && !value.is_null());
            let said = match value {
                Some(value) => format!(
                    "on {} this is {}",
                    self.on.name(),
                    secret::render_secret_marks(&value.to_string())
                ),
                None => format!("it is this part of the body, on {}", self.on.name()),
            };
            let label = railwright_base::text::one_line(&said, 80);
            let diagnostic = Diagnostic::error("RW0208", format!("{name}: {}", error.message));
            let diagnostic = match self.said_in_spec(module, resource, &error.pointer, &label) {
                Some(said) => diagnostic.labelled(said),
                None => diagnostic.at(file, span, label),
            };
            let diagnostic = error
                .help
                .iter()
                .fold(diagnostic, |diagnostic, help| diagnostic.next(help.clone()));
            self.found.add(diagnostic, self.on.name());
        }
        let misplaced = secrets::find_misplaced_secrets(module, resource, kind, body);
        if !errors.is_empty() || !misplaced.is_empty() {
            misplaced
                .into_iter()
                .for_each(|error| self.found.add(error, self.on.name()));
            return None;
        }
        let address = self.on.address(kind, body);
        if address.is_none() {
            let span = span_of(module.document(), resource.entry.body, "");
            self.found.add(
                Diagnostic::error(
                    "RW0208",
                    format!("{name}: the body does not say what it is about"),
                )
                .at(file, span, "no field of it does"),
                self.on.name(),
            );
        }
        address
    }

    /// The paths that the conditions look at, with their values.
    fn facts(
        &self,
        module: &Module,
        resource: &ModuleResource,
        scope: &ModuleScope,
    ) -> BTreeMap<String, Value> {
        let uses = module
            .when
            .iter()
            .chain(&resource.when)
            .flat_map(|when| &when.uses);
        uses.filter_map(|one| {
            let value = value_at(&scope.parameters, &one.path)
                .or_else(|| value_at(self.values, &one.path))?;
            Some((one.path.join("."), summarize_fact(value)))
        })
        .collect()
    }

    fn check(
        &mut self,
        module: &Module,
        check: &CheckTemplate,
        scope: &ModuleScope,
        out: &mut DesiredState,
    ) {
        let Some(turns) = self.turns(module, check.each.as_ref(), scope) else {
            return;
        };
        for (_, context) in turns {
            if engine::is_allowance_used_up() {
                return;
            }
            if let Some(when) = &check.when {
                match self.note(module.engine.holds(when, &context, module.document())) {
                    Some(true) => {}
                    _ => continue,
                }
            }
            let Some(run) = self.note(module.engine.text(&check.run, &context, module.document()))
            else {
                continue;
            };
            if let Some(error) =
                secrets::in_check(module, &check.entry.id.text, check.entry.run.node, &run)
            {
                self.found.add(error, self.on.name());
                continue;
            }
            let expect = match &check.expect {
                None => None,
                Some(expect) => {
                    match self.note(module.engine.value(expect, &context, module.document())) {
                        Some(Value::String(text)) => Some(text),
                        Some(other) => Some(other.to_string()),
                        None => continue,
                    }
                }
            };
            if !self.keep(
                module,
                check.entry.id.node,
                run.len() + expect.as_ref().map_or(0, String::len),
            ) {
                return;
            }
            let name = format!("{}/{}", module.name, check.entry.id.text);
            out.checks.push(HostModuleCheck {
                host: self.on.name().to_owned(),
                name,
                run,
                expect,
                limit_s: check.entry.limit_s,
            });
        }
    }
}

/// The list of a `for`, as it is written.
fn list_of(each: &str) -> String {
    each.split_once(" in ")
        .map_or(each, |(_, list)| list)
        .trim()
        .to_owned()
}

/// A fact as `explain` shows it: of lists and maps only that they are there.
fn summarize_fact(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::from(format!("{} of them", items.len())),
        Value::Object(_) => Value::from("set"),
        plain => plain.clone(),
    }
}
