//! A spec that names a model that no row is about: nothing can be chosen or checked for it, so it
//! is an error with the nearest names and with the lines that add it.

use super::load::Catalog;
use super::table::{CatalogRow, CatalogTable};
use crate::spec::LoadedSpec;
use railwright_base::suggest::suggest_correction;
use railwright_base::text::one_line;
use railwright_base::version::parse_release_numbers;
use railwright_base::{Diagnostic, Label, Severity};
use std::collections::BTreeSet;

/// The code of a model that nobody knows.
const CODE: &str = "RW0127";

/// `ID` of /etc/os-release, beside those of the rows: what is near to one of them and not the same
/// is mistyped.
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
    let mut found = Vec::new();
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (index, group) in loaded.spec.nodes.iter().enumerate() {
        let label =
            |key: &str| loaded.label(&format!("nodes[{index}].{key}"), "not in the catalogue");
        if let Some(model) = group.gpu.as_ref().map(|gpu| gpu.model.as_str())
            && catalog.gpu.get(model).is_none()
            && seen.insert(("gpu", model))
        {
            let lines = "architecture: ..., gpudirect: true";
            found.push(diagnose_unknown_name(
                &catalog.gpu,
                "GPU",
                model,
                label("gpu.model"),
                lines,
            ));
        }
        if let Some(model) = group.nics.as_ref().map(|nics| nics.model.as_str())
            && catalog.nic.get(model).is_none()
            && seen.insert(("nic", model))
        {
            let lines = "driver: ..., fabrics: [rocev2]";
            found.push(diagnose_unknown_name(
                &catalog.nic,
                "NIC",
                model,
                label("nics.model"),
                lines,
            ));
        }
        if let Some(name) = group.instance.as_deref()
            && catalog.instance_of(name).is_none()
            && seen.insert(("instance", name))
        {
            let lines = "virtual: false, erdma: true";
            // Other clouds have thousands of them; what a rule needs of one is missing, and nothing
            // else is.
            let unknown = diagnose_unknown_name(
                &catalog.instance,
                "instance",
                name,
                label("instance"),
                lines,
            );
            found.push(Diagnostic {
                severity: Severity::Warning,
                ..unknown
            });
        }
        if let Some(name) = group.os.as_deref()
            && catalog.system(name).is_none()
            && seen.insert(("os", name))
        {
            found.push(diagnose_unknown_system(catalog, name, label("os")));
        }
    }
    for (index, switch) in loaded.spec.switches.iter().enumerate() {
        if let Some(model) = switch.model.as_deref()
            && catalog.switch.get(model).is_none()
            && seen.insert(("switch", model))
        {
            let label = loaded.label(&format!("switches[{index}].model"), "not in the catalogue");
            let unknown = diagnose_unknown_name(
                &catalog.switch,
                "switch",
                model,
                label,
                "asic: ..., systems: [sonic]",
            );
            found.push(unknown.effect(
                "no rule could check what depends on its chip, and no number could be chosen for \
                 it",
            ));
        }
    }
    found
}

/// A system that is like a known one is mistyped; another one may be right, and then little is
/// known of it.
fn diagnose_unknown_system(catalog: &Catalog, name: &str, label: Option<Label>) -> Diagnostic {
    let of_rows = catalog
        .os
        .entries()
        .filter_map(|entry| Some(entry.row.name.rsplit_once('-')?.0));
    let families: BTreeSet<&str> = of_rows.chain(KNOWN_SYSTEMS).collect();
    let (own, version) = name.rsplit_once('-').unwrap_or((name, ""));
    let near = match families.contains(own) {
        true => written_otherwise(catalog, own, version),
        false => suggest_correction(own, families.iter().copied()).map(|near| {
            let meant = format!("{near}-{version}");
            if catalog.system(&meant).is_some() {
                meant
            } else {
                near.to_owned()
            }
        }),
    };
    let Some(known) = near else {
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

/// The system of a family whose release has the same numbers or the same digits, written as
/// /etc/os-release has it: `22.4` and `2204` are no releases of Ubuntu beside `22.04`.
fn written_otherwise(catalog: &Catalog, family: &str, version: &str) -> Option<String> {
    let digits = |text: &str| {
        text.chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
    };
    let known = catalog
        .os
        .entries()
        .filter_map(|entry| entry.row.name.rsplit_once('-'));
    let mut alike = known.filter(|(of, release)| {
        let same = parse_release_numbers(release)
            .is_some_and(|known| parse_release_numbers(version) == Some(known));
        *of == family && (same || !digits(version).is_empty() && digits(release) == digits(version))
    });
    alike.next().map(|(of, release)| format!("{of}-{release}"))
}

fn diagnose_unknown_name<R: CatalogRow>(
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
