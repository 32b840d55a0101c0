//! A spec that names a model that no row is about: nothing can be chosen or checked for it, so it is an error with the
//! nearest names and with the lines that add it.

use super::load::Catalog;
use super::table::{Row, Table};
use crate::base::text::one_line;
use crate::base::{Diagnostic, Label, Severity};
use crate::spec::Loaded;
use std::collections::BTreeSet;

/// The code of a model that nobody knows.
const CODE: &str = "RW0127";

/// Every GPU, NIC and instance of the spec that the catalogue does not know, once each.
pub fn unknown_models(loaded: &Loaded, catalog: &Catalog) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, group) in loaded.spec.nodes.iter().enumerate() {
        let label = |key: &str| loaded.label(&format!("nodes[{index}].{key}"), "not in the catalogue");
        if let Some(model) = group.gpu.as_ref().map(|gpu| gpu.model.as_str())
            && catalog.gpu.get(model).is_none()
            && seen.insert(("gpu", model))
        {
            let lines = "architecture: ..., gpudirect: true";
            found.push(unknown(&catalog.gpu, "GPU", model, label("gpu.model"), lines));
        }
        if let Some(model) = group.nics.as_ref().map(|nics| nics.model.as_str())
            && catalog.nic.get(model).is_none()
            && seen.insert(("nic", model))
        {
            let lines = "driver: ..., fabrics: [rocev2]";
            found.push(unknown(&catalog.nic, "NIC", model, label("nics.model"), lines));
        }
        if let Some(name) = group.instance.as_deref()
            && catalog.instance_of(name).is_none()
            && seen.insert(("instance", name))
        {
            let lines = "virtual: false, erdma: true";
            // Other clouds have thousands of them; what a rule needs of one is missing, and nothing else is.
            let unknown = unknown(&catalog.instance, "instance", name, label("instance"), lines);
            found.push(Diagnostic { severity: Severity::Warning, ..unknown });
        }
    }
    found
}

fn unknown<R: Row>(table: &Table<R>, what: &str, name: &str, label: Option<Label>, more: &str) -> Diagnostic {
    let (shown, key) = (one_line(name, 60), R::KEY);
    let owner = if key == "instance" { "cloud" } else { "vendor" };
    let near = table.near(name);
    let mut diagnostic = Diagnostic::error(CODE, format!("the catalogue knows no {what} `{shown}`"))
        .effect("no module would be chosen for it and no rule could check it");
    if !near.is_empty() {
        let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
        diagnostic = diagnostic.next(format!("did you mean {}?", names.join(" or ")));
    }
    diagnostic = diagnostic.next(format!("see what is known: railwright catalog {key}")).next(format!(
        "or add it, in modules/catalog/{key}.yaml of the inventory: {key}: [{{ name: {shown}, {owner}: ..., {more}, source: ... }}]"
    ));
    match label {
        Some(label) => diagnostic.labelled(label),
        None => diagnostic,
    }
}
