//! A repository whose address or suite names a system, and nodes of another one that get it: its
//! packages are made against other libraries, or no list of theirs is found.

use super::load::Catalog;
use crate::spec::LoadedSpec;
use crate::spec::model::RepositorySpec;
use railwright_base::text::one_line;
use railwright_base::version::parse_release_numbers;
use railwright_base::{Diagnostic, nodeset};
use std::collections::BTreeSet;

/// The code of a repository of another system.
const CODE: &str = "RW0136";

/// Systems that run each other's packages within a major release: those that are rebuilt from Red
/// Hat's sources.
const REBUILDS: [&str; 5] = ["rhel", "rocky", "almalinux", "centos", "ol"];

/// What a repository says of the system that it is for: `ubuntu` and `22.04`.
#[derive(Debug, Clone, PartialEq)]
struct RepositorySystem {
    family: String,
    release: String,
    /// The word that says so, as it is written.
    word: String,
}

/// Every repository of the spec that is plainly of another system than nodes that get it.
pub fn foreign_repositories(loaded: &LoadedSpec, catalog: &Catalog) -> Vec<Diagnostic> {
    let names = catalog
        .os
        .entries()
        .filter_map(|entry| entry.row.name.rsplit_once('-'));
    let families: BTreeSet<&str> = names.map(|(family, _)| family).collect();
    let mut found = Vec::new();
    for (index, repository) in loaded.spec.repositories.iter().enumerate() {
        let Some((key, system)) = system_of(repository, catalog, &families) else {
            continue;
        };
        let others: Vec<&str> = loaded
            .spec
            .nodes
            .iter()
            .filter_map(|group| group.os.as_deref())
            .filter(|os| system.is_other(os))
            .collect();
        let hosts = loaded.hosts.iter().filter(|host| {
            loaded.spec.nodes[host.group]
                .os
                .as_deref()
                .is_some_and(|os| others.contains(&os))
        });
        let hosts: Vec<&str> = hosts.map(|host| host.name.as_str()).collect();
        if hosts.is_empty() {
            continue;
        }
        let unlike: BTreeSet<String> = others.iter().map(|os| one_line(os, 40)).collect();
        let unlike = unlike.into_iter().collect::<Vec<_>>().join(", ");
        let (name, word) = (one_line(&repository.name, 60), one_line(&system.word, 40));
        let label = loaded.label(
            &format!("repositories[{index}].{key}"),
            "for another system",
        );
        let warning = Diagnostic::warning(
            CODE,
            format!(
                "the repository `{name}` is for another system (`{word}`) than nodes that get it \
                 ({unlike})"
            ),
        )
        .effect(
            "its packages need libraries and kernels of that system: they are not found, or break \
             what is there",
        )
        .next(
            "correct the address or the suite; every node gets every repository, so one for some \
             nodes alone belongs to a cluster of theirs",
        );
        found.push(
            label
                .into_iter()
                .fold(warning, Diagnostic::labelled)
                .on(nodeset::fold_node_set(&hosts)),
        );
    }
    found
}

/// The system that the suite names by its code name, or the address in one of its parts; with the
/// key that says so.
fn system_of(
    repository: &RepositorySpec,
    catalog: &Catalog,
    families: &BTreeSet<&str>,
) -> Option<(&'static str, RepositorySystem)> {
    let suite = repository.suite.as_deref().unwrap_or_default();
    let code_name = suite.split(['-', '/']).next().unwrap_or_default();
    let named = catalog
        .os
        .entries()
        .map(|entry| &entry.row)
        .find(|row| row.aliases.iter().any(|alias| alias == code_name));
    if let Some((family, release)) = named.and_then(|row| row.name.rsplit_once('-')) {
        return Some((
            "suite",
            RepositorySystem {
                family: family.to_owned(),
                release: release.to_owned(),
                word: suite.to_owned(),
            },
        ));
    }
    let words = repository.url.split('/').skip(3);
    words
        .filter_map(|word| in_word(word, families))
        .next()
        .map(|system| ("url", system))
}

/// `ubuntu2204`, `ubuntu22.04`, `ubuntu-22.04`, `rhel8`, `rhel8.6`.
fn in_word(word: &str, families: &BTreeSet<&str>) -> Option<RepositorySystem> {
    let family = families.iter().find(|family| {
        word.strip_prefix(**family)
            .is_some_and(|rest| parse_release_suffix(rest).is_some())
    })?;
    let release = parse_release_suffix(word.strip_prefix(*family)?)?;
    Some(RepositorySystem {
        family: (*family).to_owned(),
        release: release.to_owned(),
        word: word.to_owned(),
    })
}

/// Numbers and nothing else, after a dash or at once.
fn parse_release_suffix(rest: &str) -> Option<&str> {
    let release = rest.strip_prefix('-').unwrap_or(rest);
    let is_release = release.starts_with(|c: char| c.is_ascii_digit())
        && release.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_release.then_some(release)
}

impl RepositorySystem {
    /// Whether packages for it are plainly none for this one. Of systems that nobody can compare
    /// nothing is said.
    fn is_other(&self, os: &str) -> bool {
        let Some((family, version)) = os.rsplit_once('-') else {
            return false;
        };
        let is_rebuild = |family: &str| REBUILDS.contains(&family);
        if family != self.family && !(is_rebuild(family) && is_rebuild(&self.family)) {
            // what is made for one of the two big families is of no use in the other
            let packs = |family: &str| ["ubuntu", "debian"].contains(&family);
            return packs(family) || packs(&self.family);
        }
        if family == "ubuntu" {
            let digits = |text: &str| {
                text.chars()
                    .filter(char::is_ascii_digit)
                    .take(4)
                    .collect::<String>()
            };
            return digits(version) != digits(&self.release);
        }
        let major =
            |text: &str| parse_release_numbers(text).and_then(|numbers| numbers.first().copied());
        major(version) != major(&self.release)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_read_from_one_word() {
        let families = BTreeSet::from(["ubuntu", "rhel", "debian"]);
        for (word, other, same) in [
            (
                "ubuntu2404",
                vec!["ubuntu-22.04", "debian-12", "rocky-9"],
                vec!["ubuntu-24.04"],
            ),
            ("ubuntu22.04", vec!["ubuntu-20.04"], vec!["ubuntu-22.04"]),
            (
                "rhel8.6",
                vec!["rocky-9", "rhel-9.4", "ubuntu-22.04"],
                vec!["rhel-8.6", "rocky-8", "alinux-3"],
            ),
            ("debian12.5", vec!["debian-11"], vec!["debian-12"]),
        ] {
            let system = in_word(word, &families).unwrap();
            assert!(
                other.iter().all(|os| system.is_other(os))
                    && !same.iter().any(|os| system.is_other(os)),
                "{word}"
            );
        }
        for word in [
            "ubuntu",
            "rhel-mirror",
            "x86_64",
            "debian-security",
            "rhel8x",
        ] {
            assert_eq!(in_word(word, &families), None, "{word}");
        }
    }
}
