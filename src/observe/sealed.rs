//! Which files are read by their seal alone: those whose resource names a secret, and those that
//! may still hold one that was applied before. Decided in one place, for the resources, for what is
//! asked of the hosts, and for what came back.

use railwright_base::{Target, secret};
use railwright_plan::LastApplied;
use railwright_resource::file::sealed::{is_sealed, seal_plain, seal_resource};
use railwright_resource::readability::list_reads;
use railwright_resource::{DesiredResource, Observation, Read, kind_named};
use railwright_transport::Secrets;
use std::collections::{BTreeMap, BTreeSet};

/// True when the resource is a file whose content names a secret.
fn names_secret(resource: &DesiredResource) -> bool {
    resource.kind == "file"
        && !secret::list_secret_names(resource.text("content").unwrap_or_default()).is_empty()
}

/// By host, the names of the secrets that its resources hold, wherever they hold them.
pub fn named_by_host(resources: &[DesiredResource]) -> BTreeMap<String, BTreeSet<String>> {
    let mut of_host: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for resource in resources {
        let names = of_host
            .entry(resource.address.target.name.to_string())
            .or_default();
        names.extend(
            secret::names_in(&resource.body)
                .into_iter()
                .map(str::to_owned),
        );
    }
    of_host
}

/// True when something that was applied, and is remembered, is sealed.
pub fn remembers_sealed(last: &LastApplied) -> bool {
    last.resources
        .iter()
        .any(|(address, applied)| applied.kind == "file" && is_sealed(&applied.resource(address)))
}

/// Seals every resource that needs it: its content names a secret, or what was applied last at its
/// address did, so that the old secret may still stand on the host.
pub fn seal_resources(resources: &mut [DesiredResource], last: &LastApplied, secrets: &Secrets) {
    for resource in resources
        .iter_mut()
        .filter(|resource| resource.kind == "file")
    {
        let applied = last.resources.get(&resource.address);
        let held =
            applied.is_some_and(|applied| names_secret(&applied.resource(&resource.address)));
        if !held && !names_secret(resource) {
            continue;
        }
        let filled = secrets.fill(resource.text("content").unwrap_or_default());
        seal_resource(
            resource,
            secrets.key(),
            filled.as_deref().map_err(Clone::clone),
            applied.map(|applied| &applied.before),
        );
    }
}

/// What is asked of each host, by its name: for what is desired, and for what was applied. A file
/// that may hold a secret is never asked for in plain as well; once its resource names none any
/// more, and that was applied, it is a file like any other.
pub fn collect_reads_by_host(
    resources: &[DesiredResource],
    last: &LastApplied,
) -> BTreeMap<String, BTreeSet<Read>> {
    let mut reads: BTreeMap<String, BTreeSet<Read>> = BTreeMap::new();
    for resource in resources {
        let of_host = reads.entry(resource.address.target.name.to_string());
        if let Some(kind) = kind_named(&resource.kind) {
            of_host.or_default().extend(list_reads(kind, resource));
        }
    }
    let desired: BTreeMap<_, _> = reads
        .iter()
        .map(|(host, reads)| (host.clone(), plain_paths(reads)))
        .collect();
    let desired_at: BTreeMap<_, _> = resources
        .iter()
        .map(|resource| (&resource.address, resource))
        .collect();
    for (address, applied) in &last.resources {
        let host = &address.target.name;
        let is_asked = |resource: &&DesiredResource| resource.body == applied.body;
        let is_desired = applied.begun.is_empty() && desired_at.get(address).is_some_and(is_asked);
        let Some(kind) = kind_named(&applied.kind).filter(|_| !is_desired) else {
            continue;
        };
        let plain = |read: &Read| {
            sealed_path(read).is_some_and(|path| {
                desired
                    .get(&**host)
                    .is_some_and(|paths| paths.contains(&path))
            })
        };
        let asked = applied.list_reads_to_undo(address, kind);
        let asked = asked.into_iter().filter(|read| !plain(read));
        reads.entry(host.to_string()).or_default().extend(asked);
    }
    for of_host in reads.values_mut() {
        let sealed: BTreeSet<String> = of_host.iter().filter_map(sealed_path).collect();
        of_host.retain(|read| !matches!(read, Read::File { path } if sealed.contains(path)));
    }
    reads
}

/// What all hosts together are asked, each once, without a secret or its key: files that may hold
/// one are distinguished by their resources alone.
pub fn reads_of_all(resources: &[DesiredResource], last: &LastApplied) -> BTreeSet<Read> {
    let applied = last
        .resources
        .iter()
        .map(|(address, applied)| applied.resource(address));
    let held: BTreeSet<String> = resources
        .iter()
        .cloned()
        .chain(applied)
        .filter(|resource| {
            resource.kind == "file" && (names_secret(resource) || is_sealed(resource))
        })
        .filter_map(|resource| resource.text("path").map(str::to_owned))
        .collect();
    let sealed = |read: Read| match read {
        Read::File { path } if held.contains(&path) => Read::SealedFile { path },
        other => other,
    };
    collect_reads_by_host(resources, last)
        .into_values()
        .flatten()
        .map(sealed)
        .collect()
}

fn plain_paths(reads: &BTreeSet<Read>) -> BTreeSet<String> {
    let sealed: BTreeSet<String> = reads.iter().filter_map(sealed_path).collect();
    let plain = reads.iter().filter_map(|read| {
        if let Read::File { path } = read {
            Some(path.clone())
        } else {
            None
        }
    });
    plain.filter(|path| !sealed.contains(path)).collect()
}

fn sealed_path(read: &Read) -> Option<String> {
    match read {
        Read::SealedFile { path } => Some(path.clone()),
        _ => None,
    }
}

/// Seals what was read in plain before the host's own record showed that it holds a secret, and
/// what an old recording has.
pub fn seal_observation(
    observation: &mut Observation,
    resources: &[DesiredResource],
    last: &LastApplied,
    secrets: &Secrets,
) {
    for (host, reads) in collect_reads_by_host(resources, last) {
        let Some(found) = observation.targets.get_mut(&Target::host(&host)) else {
            continue;
        };
        reads
            .iter()
            .filter_map(sealed_path)
            .for_each(|path| seal_plain(&path, &mut found.answers, secrets.key()));
    }
}
