//! Where the spec says what a resource was made from: for the plan's reasons, and for carets under
//! what a kind refuses.

use super::super::compile::{Module, ModuleResource};
use super::super::parameters;
use super::TargetBuilder;
use crate::template::names::TemplatePathUse;
use crate::template::snippet::Snippet;
use railwright_base::{Label, SourceLocation};
use std::collections::BTreeSet;

impl TargetBuilder<'_> {
    /// Where the spec says the one thing that a part of a body was made from. What an operator's
    /// own module makes of anything but its parameters is for that module to answer for.
    pub(super) fn said_in_spec(
        &self,
        module: &Module,
        resource: &ModuleResource,
        pointer: &str,
        text: &str,
    ) -> Option<Label> {
        let is_shipped =
            module.document().source().name() == format!("modules/{}/module.yaml", module.name);
        let mut paths = BTreeSet::new();
        for path_use in &resource.body.snippet_at(pointer)?.uses {
            let name = path_use.path.first();
            if is_shipped || name.is_some_and(|name| module.parameters.contains_key(name)) {
                paths.extend(self.path_of(module, path_use, None));
            }
        }
        let paths = paths.iter();
        let mut labels = paths.filter_map(|path| self.loaded.label(path, text));
        match (labels.next(), labels.next()) {
            (label, None) => label,
            _ => None,
        }
    }

    /// Where the spec says what the body was made from; without such, where it says why the
    /// resource is declared.
    pub(super) fn places(
        &self,
        module: &Module,
        resource: &ModuleResource,
        turn: Option<usize>,
    ) -> Vec<SourceLocation> {
        let mut places = self.places_of(module, &resource.body.snippets(), turn);
        if places.is_empty() {
            let mut conditions: Vec<&Snippet> = Vec::new();
            conditions.extend(&module.when);
            conditions.extend(&resource.when);
            conditions.extend(resource.each.as_ref().map(|(_, list)| list));
            places = self.places_of(module, &conditions, turn);
        }
        if places.is_empty() {
            places.extend(self.loaded.nearest_place(&self.on.section()));
        }
        places.sort();
        places.dedup();
        places
    }

    fn places_of(
        &self,
        module: &Module,
        snippets: &[&Snippet],
        turn: Option<usize>,
    ) -> Vec<SourceLocation> {
        let mut places = Vec::new();
        for path_use in snippets.iter().flat_map(|snippet| &snippet.uses) {
            if let Some(path) = self.path_of(module, path_use, turn) {
                places.extend(self.loaded.place(&path));
            }
        }
        places
    }

    /// The path in the spec that a name of a template is about: of a parameter its override, else
    /// what it is taken from.
    fn path_of(
        &self,
        module: &Module,
        path_use: &TemplatePathUse,
        turn: Option<usize>,
    ) -> Option<String> {
        let name = path_use.path.first();
        let Some((name, parameter)) = name.and_then(|name| module.parameters.get_key_value(name))
        else {
            return Some(self.on.spec_path(self.loaded, &path_use.path, turn));
        };
        let overridden = parameters::override_path(&module.name, name);
        if self.loaded.place(&overridden).is_some() {
            return Some(overridden);
        }
        let from = parameters::split_path(parameter)?;
        Some(self.on.spec_path(self.loaded, &from, turn))
    }
}
