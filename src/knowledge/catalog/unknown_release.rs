//! A spec that names a release of which the catalogue says nothing: an error where there can be
//! none, because the entries of its line are all there are or because it lies far beyond the newest
//! one, else a warning with the nearest and the lines that add it.

use super::load::Catalog;
use super::release::HostComponent;
use crate::spec::LoadedSpec;
use crate::spec::model::{NodeGroup, RdmaFlavour};
use railwright_base::Diagnostic;
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_base::version::parse_release_numbers;
use std::collections::{BTreeMap, BTreeSet};

/// The code of a release that nobody knows.
const CODE: &str = "RW0128";

/// A release to come has a number near the newest one; what begins with more than this many times
/// that number is mistyped.
const BEYOND: u64 = 2;

/// Every release of the spec that the catalogue does not know, once each.
pub fn unknown_releases(loaded: &LoadedSpec, catalog: &Catalog) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut seen: BTreeSet<(HostComponent, &str)> = BTreeSet::new();
    for (index, group) in loaded.spec.nodes.iter().enumerate() {
        for (part, key, release) in list_stated_releases(group, catalog) {
            if !seen.insert((part, release)) {
                continue;
            }
            let Some(mut diagnostic) = diagnose_unknown_release(catalog, part, release) else {
                continue;
            };
            let path = format!("nodes[{index}].{key}");
            if let Some(label) = loaded.label(&path, "no such release is known") {
                diagnostic = diagnostic.labelled(label);
            }
            found.push(diagnostic);
        }
    }
    found
}

/// The releases that a group of nodes states, each with its part and its key.
fn list_stated_releases<'a>(
    group: &'a NodeGroup,
    catalog: &Catalog,
) -> Vec<(HostComponent, &'static str, &'a str)> {
    let mut releases = Vec::new();
    if let Some(gpu) = &group.gpu {
        let entry = catalog.gpu.get(&gpu.model);
        let is_nvidia = entry.is_none_or(|entry| entry.vendor == "nvidia");
        if let Some(driver) = gpu.driver.as_deref().filter(|_| is_nvidia) {
            releases.push((HostComponent::Driver, "gpu.driver", driver));
        }
        if let Some(cuda) = gpu.cuda.as_deref().filter(|_| is_nvidia) {
            releases.push((HostComponent::Cuda, "gpu.cuda", cuda));
        }
    }
    if let Some(stack) = &group.rdma_stack
        && let Some(version) = stack.version.as_deref()
    {
        match stack.flavour {
            RdmaFlavour::Inbox => {}
            RdmaFlavour::Doca => {
                releases.push((HostComponent::Doca, "rdma_stack.version", version));
            }
            RdmaFlavour::MlnxOfed => {
                releases.push((HostComponent::MlnxOfed, "rdma_stack.version", version));
            }
        }
    }
    releases
}

/// How many numbers tell releases of a part apart: a branch of the driver has more of them than
/// anybody lists.
fn count_distinct_numbers(part: HostComponent) -> usize {
    if part == HostComponent::Driver { 1 } else { 2 }
}

fn diagnose_unknown_release(
    catalog: &Catalog,
    part: HostComponent,
    release: &str,
) -> Option<Diagnostic> {
    let mut desired = parse_release_numbers(release)?;
    desired.truncate(count_distinct_numbers(part));
    let known = collect_known_releases(catalog, part);
    let newest = *known.last_key_value()?.0.first()?;
    if known.keys().any(|known| known.starts_with(&desired))
        || is_own_release_line(catalog, part, &desired)
    {
        return None;
    }
    let complete = has_release_line(catalog, part, &desired, |entry, _| entry.complete);
    let beyond = desired[0] > newest.saturating_mul(BEYOND);
    let what = part.with(&one_line(release, 40));
    let near = find_near_releases(&known, &desired, release);
    let diagnostic = if complete {
        Diagnostic::error(CODE, format!("there is no such release: {what}")).effect(
            "the catalogue names every release of this line, and it is not among them: its \
             packages would not be found",
        )
    } else if beyond {
        Diagnostic::error(CODE, format!("there is no such release: {what}")).effect(format!(
            "the newest one that the catalogue knows begins with {newest}, and none to come is \
             that far off: its packages would not be found"
        ))
    } else {
        let message = format!("no such release is known to the catalogue: {what}");
        Diagnostic::warning(CODE, message).effect(
            "what it needs of the other parts is not checked; where there is none, its packages \
             are not found",
        )
    };
    let diagnostic = diagnostic.next(format!(
        "nearest: {}; `railwright catalog release` lists what is known",
        near.join(", ")
    ));
    Some(diagnostic.next(suggest_release_entry(part, release)))
}

fn suggest_release_entry(part: HostComponent, release: &str) -> String {
    let (key, shown) = (part.key(), one_line(release, 40));
    format!(
        "or, where there is such a release, add an entry in modules/catalog/release.yaml of the \
         inventory: release: [{{ name: {key}-{shown}, part: {key}, release: \"{shown}\", source: \
         ... }}]"
    )
}

/// Whether some line that the release belongs to is so; the second value is true for an entry of
/// the user's own.
fn has_release_line(
    catalog: &Catalog,
    part: HostComponent,
    desired: &[u64],
    is: impl Fn(&super::release::ReleaseEntry, bool) -> bool,
) -> bool {
    for entry in catalog.release.entries() {
        if entry.content.part != part || !entry.content.line {
            continue;
        }
        let Some(begins) = parse_release_numbers(&entry.content.release) else {
            continue;
        };
        if desired.starts_with(&begins) && is(&entry.content, entry.own) {
            return true;
        }
    }
    false
}

/// The user's own entries may speak of a line as a whole.
fn is_own_release_line(catalog: &Catalog, part: HostComponent, desired: &[u64]) -> bool {
    has_release_line(catalog, part, desired, |entry, own| own && !entry.complete)
}

/// Every release of a part that some entry names, as far as its numbers tell releases apart, in
/// their order, as it is written.
fn collect_known_releases(catalog: &Catalog, part: HostComponent) -> BTreeMap<Vec<u64>, String> {
    let mut texts: Vec<Option<String>> = Vec::new();
    for entry in catalog.release.entries().map(|entry| &entry.content) {
        if entry.part == part && !entry.line {
            texts.push(Some(entry.release.clone()));
        }
        texts.push(entry.brings.get(&part).cloned());
        for need in &entry.needs {
            if need.part == part {
                texts.extend([need.from.clone(), need.to.clone()]);
            }
        }
    }
    for entry in catalog.os.entries().map(|entry| &entry.content) {
        texts.extend(list_part_releases(
            part,
            [&entry.cuda_min, &entry.cuda_max],
            [&entry.doca_min, &entry.doca_max],
            &entry.mlnx_ofed_max,
        ));
    }
    for entry in catalog.nic.entries().map(|entry| &entry.content) {
        texts.extend(list_part_releases(
            part,
            [&None, &None],
            [&entry.doca_min, &entry.doca_max],
            &entry.mlnx_ofed_max,
        ));
    }
    if part == HostComponent::Driver {
        for entry in catalog.gpu.entries().map(|entry| &entry.content) {
            let branches = [entry.driver_branch_min, entry.driver_branch_max];
            texts.extend(branches.map(|branch| Some(branch?.to_string())));
        }
    }
    let mut releases = BTreeMap::new();
    for text in texts.into_iter().flatten() {
        let short = shorten_release(&text, part);
        if let Some(numbers) = parse_release_numbers(&short) {
            releases.insert(numbers, short);
        }
    }
    releases
}

/// What an entry says of one part.
fn list_part_releases(
    part: HostComponent,
    cuda: [&Option<String>; 2],
    doca: [&Option<String>; 2],
    ofed: &Option<String>,
) -> Vec<Option<String>> {
    match part {
        HostComponent::Cuda => cuda.into_iter().cloned().collect(),
        HostComponent::Doca => doca.into_iter().cloned().collect(),
        HostComponent::MlnxOfed => vec![ofed.clone()],
        _ => Vec::new(),
    }
}

/// A release as far as its numbers tell releases of the part apart: `24.07` of `24.07-1.1.4`.
fn shorten_release(release: &str, part: HostComponent) -> String {
    release
        .split(['.', '-', '_', '+', '~'])
        .take(count_distinct_numbers(part))
        .collect::<Vec<_>>()
        .join(".")
}

/// What it may have been meant for: the one written most like it, and its neighbours in the order
/// of releases.
fn find_near_releases(
    known: &BTreeMap<Vec<u64>, String>,
    desired: &[u64],
    written: &str,
) -> Vec<String> {
    let names: Vec<&str> = known.values().map(String::as_str).collect();
    let begun = names.iter().rev().find(|name| written.starts_with(**name));
    let identical = match begun {
        Some(name) => Some(*name),
        None => find_nearest_word(written, names.iter().copied()),
    };
    let (mut before, mut after) = (None, None);
    for (numbers, name) in known {
        if numbers.as_slice() < desired {
            before = Some(name.as_str());
        } else if numbers.as_slice() > desired {
            after = Some(name.as_str());
            break;
        }
    }
    let mut near: Vec<String> = Vec::new();
    for name in [identical, before, after].into_iter().flatten() {
        if !near.iter().any(|known| known == name) {
            near.push(name.to_owned());
        }
    }
    near
}
