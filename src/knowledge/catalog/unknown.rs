//! A spec that names a model that no entry is about: nothing can be chosen or checked for it, so it
//! is an error with the nearest names and with the lines that add it.

use super::load::Catalog;
use super::table::{CatalogTable, CategoryEntry};
use crate::spec::LoadedSpec;
use crate::spec::model::{NodeGroup, SwitchGroup};
use railwright_base::suggest::suggest_correction;
use railwright_base::text::one_line;
use railwright_base::version::parse_release_numbers;
use railwright_base::{Diagnostic, Label, Severity};
use std::collections::BTreeSet;

/// The code of a model that nobody knows.
const CODE: &str = "RW0127";

/// `ID` of /etc/os-release, beside those of the entries: what is near to one of them and not the
/// same is mistyped.
const KNOWN_SYSTEMS: [&str; 16] = [
    "almalinux",
    "alinux",
    "amzn",
    "anolis",
    "centos",
    "debian",
    "fedora",
    "ol",
    "openEuler",
    "opensuse-leap",
    "rhel",
    "rocky",
    "sled",
    "sles",
    "tencentos",
    "ubuntu",
];

/// Every GPU, NIC, instance, operating system and switch of the spec that the catalogue does not
/// know, once each.
pub fn unknown_models(loaded: &LoadedSpec, catalog: &Catalog) -> Vec<Diagnostic> {
    let mut unknown = UnknownModels {
        loaded,
        catalog,
        seen: BTreeSet::new(),
        found: Vec::new(),
    };
    for (index, group) in loaded.spec.nodes.iter().enumerate() {
        unknown.add_group(index, group);
    }
    for (index, switch) in loaded.spec.switches.iter().enumerate() {
        unknown.add_switch(index, switch);
    }
    unknown.found
}

/// The names that were looked up so far.
struct UnknownModels<'a> {
    loaded: &'a LoadedSpec,
    catalog: &'a Catalog,
    seen: BTreeSet<(&'static str, &'a str)>,
    found: Vec<Diagnostic>,
}

impl<'a> UnknownModels<'a> {
    fn label(&self, path: &str) -> Option<Label> {
        self.loaded.label(path, "not in the catalogue")
    }

    fn add_group(&mut self, index: usize, group: &'a NodeGroup) {
        let (catalog, at) = (self.catalog, format!("nodes[{index}]"));
        if let Some(model) = group.gpu.as_ref().map(|gpu| gpu.model.as_str())
            && catalog.gpu.get(model).is_none()
            && self.seen.insert(("gpu", model))
        {
            let label = self.label(&format!("{at}.gpu.model"));
            let lines = "architecture: ..., gpudirect: true";
            let error = diagnose_unknown_name(&catalog.gpu, "GPU", model, label, lines);
            self.found.push(error);
        }
        if let Some(model) = group.nics.as_ref().map(|nics| nics.model.as_str())
            && catalog.nic.get(model).is_none()
            && self.seen.insert(("nic", model))
        {
            let label = self.label(&format!("{at}.nics.model"));
            let lines = "driver: ..., fabrics: [rocev2]";
            let error = diagnose_unknown_name(&catalog.nic, "NIC", model, label, lines);
            self.found.push(error);
        }
        if let Some(name) = group.instance.as_deref()
            && catalog.instance_of(name).is_none()
            && self.seen.insert(("instance", name))
        {
            let label = self.label(&format!("{at}.instance"));
            let lines = "virtual: false, erdma: true";
            let error = diagnose_unknown_name(&catalog.instance, "instance", name, label, lines);
            // Other clouds have thousands of them; what a rule needs of one is missing, and nothing
            // else is.
            self.found.push(Diagnostic {
                severity: Severity::Warning,
                ..error
            });
        }
        if let Some(name) = group.os.as_deref()
            && catalog.system(name).is_none()
            && self.seen.insert(("os", name))
        {
            let label = self.label(&format!("{at}.os"));
            self.found
                .push(diagnose_unknown_system(catalog, name, label));
        }
    }

    fn add_switch(&mut self, index: usize, switch: &'a SwitchGroup) {
        if let Some(model) = switch.model.as_deref()
            && self.catalog.switch.get(model).is_none()
            && self.seen.insert(("switch", model))
        {
            let label = self.label(&format!("switches[{index}].model"));
            let lines = "asic: ..., systems: [sonic]";
            let error = diagnose_unknown_name(&self.catalog.switch, "switch", model, label, lines);
            self.found.push(error.effect(
                "no rule could check what depends on its chip, and no number could be chosen for \
                 it",
            ));
        }
    }
}

/// A system that is like a known one is mistyped; another one may be right, and then little is
/// known of it.
fn diagnose_unknown_system(catalog: &Catalog, name: &str, label: Option<Label>) -> Diagnostic {
    let Some(known) = find_near_system(catalog, name) else {
        let unknown =
            diagnose_unknown_name(&catalog.os, "operating system", name, label, "kernel: ...");
        return Diagnostic {
            severity: Severity::Warning,
            ..unknown
        }
        .effect(
            "no rule can check it, and releases are chosen without a look at its packages: what \
             does not fit is found on the host",
        );
    };
    let error = Diagnostic::error(
        "RW0120",
        format!(
            "`{}` is no operating system that railwright knows",
            one_line(name, 60)
        ),
    )
    .effect(
        "no module that names a system would be chosen for these hosts, and no rule could check it",
    )
    .next(format!("did you mean `{known}`?"))
    .next("write ID and VERSION_ID of /etc/os-release; `railwright catalog os` lists what is known")
    .next("or, where there is such a system, add it in modules/catalog/os.yaml of the inventory");
    label.into_iter().fold(error, Diagnostic::labelled)
}

/// The system that was meant, where the family or the release is mistyped; the family alone where
/// it has no such release.
fn find_near_system(catalog: &Catalog, name: &str) -> Option<String> {
    let mut families: BTreeSet<&str> = BTreeSet::from(KNOWN_SYSTEMS);
    for entry in catalog.os.entries() {
        if let Some((family, _)) = entry.content.name.rsplit_once('-') {
            families.insert(family);
        }
    }
    let (family, version) = name.rsplit_once('-').unwrap_or((name, ""));
    if families.contains(family) {
        return find_same_release(catalog, family, version);
    }
    let near = suggest_correction(family, families.iter().copied())?;
    let meant = format!("{near}-{version}");
    if catalog.system(&meant).is_some() {
        Some(meant)
    } else {
        Some(near.to_owned())
    }
}

/// The system of a family whose release has the same numbers or the same digits, written as
/// /etc/os-release has it: `22.4` and `2204` are no releases of Ubuntu beside `22.04`.
fn find_same_release(catalog: &Catalog, family: &str, version: &str) -> Option<String> {
    let numbers = parse_release_numbers(version);
    let digits = keep_digits(version);
    for entry in catalog.os.entries() {
        let Some((known_family, release)) = entry.content.name.rsplit_once('-') else {
            continue;
        };
        let has_same_numbers = numbers.is_some() && parse_release_numbers(release) == numbers;
        let has_same_digits = !digits.is_empty() && keep_digits(release) == digits;
        if known_family == family && (has_same_numbers || has_same_digits) {
            return Some(entry.content.name.clone());
        }
    }
    None
}

fn keep_digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

fn diagnose_unknown_name<R: CategoryEntry>(
    table: &CatalogTable<R>,
    what: &str,
    name: &str,
    label: Option<Label>,
    more: &str,
) -> Diagnostic {
    let (shown, key) = (one_line(name, 60), R::KEY);
    let owner = match key {
        "instance" => "cloud",
        "os" => "package_manager",
        _ => "vendor",
    };
    let near = table.near(name);
    let mut diagnostic =
        Diagnostic::error(CODE, format!("the catalogue knows no {what} `{shown}`"))
            .effect("no module would be chosen for it and no rule could check it");
    if !near.is_empty() {
        let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
        diagnostic = diagnostic.next(format!("did you mean {}?", names.join(" or ")));
    }
    diagnostic = diagnostic
        .next(format!("see what is known: railwright catalog {key}"))
        .next(format!(
            "or add it, in modules/catalog/{key}.yaml of the inventory: {key}: [{{ name: {shown}, \
             {owner}: ..., {more}, source: ... }}]"
        ));
    match label {
        Some(label) => diagnostic.labelled(label),
        None => diagnostic,
    }
}
