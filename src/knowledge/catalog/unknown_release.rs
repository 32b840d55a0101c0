//! A spec that names a release of which the catalogue says nothing: an error where there can be
//! none, because the rows of its line are all there are or because it lies far beyond the newest
//! one, else a warning with the nearest and the lines that add it.

use super::load::Catalog;
use super::release::HostComponent;
use crate::spec::LoadedSpec;
use crate::spec::model::RdmaFlavour;
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
        let nvidia = |model: &str| {
            catalog
                .gpu
                .get(model)
                .is_none_or(|row| row.vendor == "nvidia")
        };
        let gpu = group.gpu.as_ref().filter(|gpu| nvidia(&gpu.model));
        let stack = group.rdma_stack.as_ref().and_then(|stack| {
            let part = match stack.flavour {
                RdmaFlavour::Inbox => return None,
                RdmaFlavour::Doca => HostComponent::Doca,
                RdmaFlavour::MlnxOfed => HostComponent::MlnxOfed,
            };
            Some((part, "rdma_stack.version", stack.version.as_deref()?))
        });
        let driver =
            gpu.and_then(|gpu| Some((HostComponent::Driver, "gpu.driver", gpu.driver.as_deref()?)));
        let cuda =
            gpu.and_then(|gpu| Some((HostComponent::Cuda, "gpu.cuda", gpu.cuda.as_deref()?)));
        for (part, key, release) in [driver, cuda, stack].into_iter().flatten() {
            if seen.insert((part, release)) {
                let label =
                    || loaded.label(&format!("nodes[{index}].{key}"), "no such release is known");
                found.extend(
                    diagnose_unknown_release(catalog, part, release).map(|diagnostic| {
                        label().into_iter().fold(diagnostic, Diagnostic::labelled)
                    }),
                );
            }
        }
    }
    found
}

/// How many numbers tell releases of a part apart: a branch of the driver has more of them than
/// anybody lists.
fn told_apart(part: HostComponent) -> usize {
    if part == HostComponent::Driver { 1 } else { 2 }
}

fn diagnose_unknown_release(
    catalog: &Catalog,
    part: HostComponent,
    release: &str,
) -> Option<Diagnostic> {
    let mut wanted = parse_release_numbers(release)?;
    wanted.truncate(told_apart(part));
    let known = collect_known_releases(catalog, part);
    let newest = *known.last_key_value()?.0.first()?;
    if known.keys().any(|known| known.starts_with(&wanted)) || own_line(catalog, part, &wanted) {
        return None;
    }
    let complete = has_release_line(catalog, part, &wanted, |row, _| row.complete);
    let beyond = wanted
        .first()
        .is_some_and(|first| *first > newest.saturating_mul(BEYOND));
    let what = part.with(&one_line(release, 40));
    let near = find_near_releases(&known, &wanted, release);
    let diagnostic = match (complete, beyond) {
        (false, false) => Diagnostic::warning(
            CODE,
            format!("no such release is known to the catalogue: {what}"),
        )
        .effect(
            "what it needs of the other parts is not checked; where there is none, its packages \
             are not found",
        ),
        (true, _) => Diagnostic::error(CODE, format!("there is no such release: {what}")).effect(
            "the catalogue names every release of this line, and it is not among them: its \
             packages would not be found",
        ),
        (false, true) => Diagnostic::error(CODE, format!("there is no such release: {what}"))
            .effect(format!(
                "the newest one that the catalogue knows begins with {newest}, and none to come is \
                 that far off: its packages would not be found"
            )),
    };
    let (key, shown) = (part.key(), one_line(release, 40));
    let row = format!(
        "release: [{{ name: {key}-{shown}, part: {key}, release: \"{shown}\", source: ... }}]"
    );
    Some(
        diagnostic
            .next(format!(
                "nearest: {}; `railwright catalog release` lists what is known",
                near.join(", ")
            ))
            .next(format!(
                "or, where there is such a release, add a row in modules/catalog/release.yaml of \
                 the inventory: {row}"
            )),
    )
}

/// Whether some line that the release belongs to is so; the second value is true for a row of the
/// user's own.
fn has_release_line(
    catalog: &Catalog,
    part: HostComponent,
    wanted: &[u64],
    is: impl Fn(&super::release::ReleaseRow, bool) -> bool,
) -> bool {
    let lines = catalog
        .release
        .entries()
        .filter(|entry| entry.row.part == part && entry.row.line);
    let mut of = lines.filter(|entry| {
        parse_release_numbers(&entry.row.release).is_some_and(|begins| wanted.starts_with(&begins))
    });
    of.any(|entry| is(&entry.row, entry.own))
}

/// The user's own rows may speak of a line as a whole.
fn own_line(catalog: &Catalog, part: HostComponent, wanted: &[u64]) -> bool {
    has_release_line(catalog, part, wanted, |row, own| own && !row.complete)
}

/// Every release of a part that some row names, as far as its numbers tell releases apart, in their
/// order, as it is written.
fn collect_known_releases(catalog: &Catalog, part: HostComponent) -> BTreeMap<Vec<u64>, String> {
    let mut texts: Vec<Option<String>> = Vec::new();
    for row in catalog.release.entries().map(|entry| &entry.row) {
        texts.push((row.part == part && !row.line).then(|| row.release.clone()));
        texts.push(row.brings.get(&part).cloned());
        let needs = row.needs.iter().filter(|need| need.part == part);
        texts.extend(needs.flat_map(|need| [need.from.clone(), need.to.clone()]));
    }
    for row in catalog.os.entries().map(|entry| &entry.row) {
        texts.extend(of_part(
            part,
            [&row.cuda_min, &row.cuda_max],
            [&row.doca_min, &row.doca_max],
            &row.mlnx_ofed_max,
        ));
    }
    for row in catalog.nic.entries().map(|entry| &entry.row) {
        texts.extend(of_part(
            part,
            [&None, &None],
            [&row.doca_min, &row.doca_max],
            &row.mlnx_ofed_max,
        ));
    }
    for row in catalog
        .gpu
        .entries()
        .map(|entry| &entry.row)
        .filter(|_| part == HostComponent::Driver)
    {
        texts.extend(
            [row.driver_branch_min, row.driver_branch_max].map(|branch| Some(branch?.to_string())),
        );
    }
    let told = |text: String| {
        let short = shorten_release(&text, part);
        parse_release_numbers(&short).map(|numbers| (numbers, short))
    };
    texts.into_iter().flatten().filter_map(told).collect()
}

/// What a row says of one part.
fn of_part(
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
        .take(told_apart(part))
        .collect::<Vec<_>>()
        .join(".")
}

/// What it may have been meant for: the one that is written alike, and its neighbours in the order
/// of releases.
fn find_near_releases(
    known: &BTreeMap<Vec<u64>, String>,
    wanted: &[u64],
    written: &str,
) -> Vec<String> {
    let begun = known
        .values()
        .rev()
        .find(|known| written.starts_with(known.as_str()))
        .map(String::as_str);
    let alike = begun.or_else(|| find_nearest_word(written, known.values().map(String::as_str)));
    let before = known
        .iter()
        .rev()
        .find(|(known, _)| known.as_slice() < wanted);
    let after = known.iter().find(|(known, _)| known.as_slice() > wanted);
    let mut near: Vec<String> = Vec::new();
    for name in alike.into_iter().chain(
        [before, after]
            .into_iter()
            .flatten()
            .map(|(_, name)| name.as_str()),
    ) {
        if !near.iter().any(|known| known == name) {
            near.push(name.to_owned());
        }
    }
    near
}
