//! The resources that a module makes for one target: bodies rendered, checked by their kinds, and
//! noted with what made them.

use super::super::body::span_of;
use super::super::compile::{Module, ModuleResource};
use super::super::context::value_at;
use super::super::order::MadeResource;
use super::super::{kept, secrets};
use super::{ModuleScope, ResourceDraft, ResourceProvenance, TargetBuilder};
use crate::template::engine;
use railwright_base::{Address, Diagnostic, SourceLocation, secret};
use railwright_resource::{DesiredResource, ResourceDeclaration, kind_named};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tera::Context;

impl TargetBuilder<'_> {
    /// Makes the resource with this index of the module `at`, once for each turn of its `for`. What
    /// is wrong goes to the findings; it stops where the shared allowance is used up.
    pub(super) fn resource(&mut self, at: usize, index: usize, scope: &ModuleScope) {
        let module = &self.modules[at];
        let resource = &module.resources[index];
        let Some(turns) = self.turns(module, resource.each.as_ref(), scope) else {
            return;
        };
        for (turn, context) in turns {
            if engine::is_allowance_used_up() {
                return;
            }
            let Some(body) = self.render_body(module, resource, &context) else {
                continue;
            };
            let Some(address) = self.address(module, resource, &body) else {
                continue;
            };
            let why = self.build_provenance(module, resource, scope);
            let bytes = kept::size_of_resource(&body, &why);
            if !self.keep(module, resource.entry.id.node, bytes) {
                return;
            }
            let declaration = ResourceDeclaration {
                kind: resource.entry.kind.text.clone(),
                body,
                module: why.module.clone(),
                places: self.find_places(at, index, turn),
            };
            self.add_draft(ResourceDraft {
                module: at,
                index,
                turn: name_turn(resource, turn),
                resource: DesiredResource {
                    address,
                    after: Vec::new(),
                    declaration: Arc::new(declaration),
                },
                why,
            });
        }
    }

    /// The body in one turn; nothing where its condition does not hold or a template fails.
    fn render_body(
        &mut self,
        module: &Module,
        resource: &ModuleResource,
        context: &Context,
    ) -> Option<Value> {
        if !self.is_met(module, resource.when.as_ref(), context) {
            return None;
        }
        let body = resource
            .body
            .render(&module.engine, context, module.document());
        let mut body = self.note(body)?;
        let kind = kind_named(&resource.entry.kind.text);
        if kind.is_some_and(|kind| kind.names_cluster())
            && let Some(fields) = body.as_object_mut()
        {
            let cluster = self.loaded.spec.cluster.clone();
            fields.insert("cluster".to_owned(), Value::from(cluster));
        }
        Some(body)
    }

    fn build_provenance(
        &self,
        module: &Module,
        resource: &ModuleResource,
        scope: &ModuleScope,
    ) -> ResourceProvenance {
        let mut conditions = scope.conditions.clone();
        conditions.extend(resource.entry.when.iter().map(|when| when.text.clone()));
        ResourceProvenance {
            module: format!("{}/{}", module.name, resource.entry.id.text),
            summary: module.summary.clone(),
            conditions,
            facts: self.facts(module, resource, scope),
        }
    }

    /// Looked up once for all hosts of a group.
    fn find_places(&mut self, at: usize, index: usize, turn: Option<usize>) -> Vec<SourceLocation> {
        let seen = (self.on.kind(), self.on.group(), at, index, turn);
        if let Some(places) = self.places.get(&seen) {
            return places.clone();
        }
        let module = &self.modules[at];
        let places = self.places(module, &module.resources[index], turn);
        self.places.insert(seen, places.clone());
        places
    }

    fn add_draft(&mut self, draft: ResourceDraft) {
        let resource = &self.modules[draft.module].resources[draft.index];
        let made = MadeResource {
            address: draft.resource.address.clone(),
            turn: draft.turn.clone(),
        };
        self.made[draft.module]
            .by_id
            .entry(resource.entry.id.text.clone())
            .or_default()
            .push(made);
        self.drafts.push(draft);
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
            let value = match body.pointer(&error.pointer) {
                Some(value) if !value.is_object() && !value.is_null() => {
                    let value = secret::render_secret_marks(&value.to_string());
                    format!("on {} this is {value}", self.on.name())
                }
                _ => format!("it is this part of the body, on {}", self.on.name()),
            };
            let label = railwright_base::text::one_line(&value, 80);
            let mut diagnostic = Diagnostic::error("RW0208", format!("{name}: {}", error.message));
            diagnostic = match self.said_in_spec(module, resource, &error.pointer, &label) {
                Some(label) => diagnostic.labelled(label),
                None => {
                    let body = resource.entry.body;
                    let span = span_of(module.document(), body, &error.pointer);
                    diagnostic.at(file, span, label)
                }
            };
            if let Some(help) = &error.help {
                diagnostic = diagnostic.next(help.clone());
            }
            self.found.add(diagnostic, self.on.name());
        }
        let misplaced = secrets::find_misplaced_secrets(module, resource, kind, body);
        if !errors.is_empty() || !misplaced.is_empty() {
            for error in misplaced {
                self.found.add(error, self.on.name());
            }
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
        let mut facts = BTreeMap::new();
        for when in module.when.iter().chain(&resource.when) {
            for path_use in &when.uses {
                let path = &path_use.path;
                let value = match value_at(&scope.parameters, path) {
                    Some(value) => Some(value),
                    None => value_at(self.values, path),
                };
                if let Some(value) = value {
                    facts.insert(path.join("."), summarize_fact(value));
                }
            }
        }
        facts
    }
}

/// The list that a `for` goes through, as it is written, and the turn.
fn name_turn(resource: &ModuleResource, turn: Option<usize>) -> Option<(String, usize)> {
    let each = &resource.entry.each.as_ref()?.text;
    let list = match each.split_once(" in ") {
        Some((_, list)) => list,
        None => each.as_str(),
    };
    Some((list.trim().to_owned(), turn?))
}

/// A fact as `explain` shows it: of lists and maps only that they are there.
fn summarize_fact(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::from(format!("{} of them", items.len())),
        Value::Object(_) => Value::from("set"),
        plain => plain.clone(),
    }
}
