//! Where the spec says what a resource was made from: for the plan's reasons, and for carets under
//! what a kind refuses.

use super::super::compile::{Module, ModuleResource};
use super::super::parameters;
use super::TargetBuilder;
use crate::template::names::TemplatePathUse;
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
        let is_parameter = |one: &&TemplatePathUse| {
            one.path
                .first()
                .is_some_and(|first| module.parameters.contains_key(first))
        };
        let uses = resource
            .body
            .snippet_at(pointer)?
            .uses
            .iter()
            .filter(|one| is_shipped || is_parameter(one));
        let paths: BTreeSet<String> = uses
            .filter_map(|one| self.path_of(module, one, None))
            .collect();
        let mut labels = paths
            .iter()
            .filter_map(|path| self.loaded.label(path, text));
        labels.next().filter(|_| labels.next().is_none())
    }

    /// Where the spec says what the body was made from; without such, where it says why the
    /// resource is wished for.
    pub(super) fn places(
        &self,
        module: &Module,
        resource: &ModuleResource,
        turn: Option<usize>,
    ) -> Vec<SourceLocation> {
        let body = resource
            .body
            .snippets()
            .into_iter()
            .flat_map(|snippet| &snippet.uses);
        let mut places = self.places_of(module, body, turn);
        if places.is_empty() {
            let conditions = module
                .when
                .iter()
                .chain(&resource.when)
                .chain(resource.each.iter().map(|(_, list)| list));
            places = self.places_of(module, conditions.flat_map(|snippet| &snippet.uses), turn);
        }
        if places.is_empty() {
            places.extend(self.loaded.nearest_place(&self.on.section()));
        }
        places.sort();
        places.dedup();
        places
    }

    fn places_of<'u>(
        &self,
        module: &Module,
        uses: impl Iterator<Item = &'u TemplatePathUse>,
        turn: Option<usize>,
    ) -> Vec<SourceLocation> {
        uses.filter_map(|one| self.loaded.place(&self.path_of(module, one, turn)?))
            .collect()
    }

    /// The path in the spec that a name of a template is about: of a parameter its override, else
    /// what it is taken from.
    fn path_of(
        &self,
        module: &Module,
        one: &TemplatePathUse,
        turn: Option<usize>,
    ) -> Option<String> {
        let Some((name, parameter)) = one
            .path
            .first()
            .and_then(|first| module.parameters.get_key_value(first))
        else {
            return Some(self.on.spec_path(self.loaded, &one.path, turn));
        };
        let overridden = parameters::override_path(&module.name, name);
        if self.loaded.place(&overridden).is_some() {
            return Some(overridden);
        }
        let from = parameter
            .from
            .as_ref()?
            .split('.')
            .map(str::to_owned)
            .collect::<Vec<_>>();
        Some(self.on.spec_path(self.loaded, &from, turn))
    }
}
