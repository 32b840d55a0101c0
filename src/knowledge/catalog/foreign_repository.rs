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

/// Systems whose packages are those of apt.
const APT_FAMILIES: [&str; 2] = ["ubuntu", "debian"];

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
        .filter_map(|entry| entry.content.name.rsplit_once('-'));
    let families: BTreeSet<&str> = names.map(|(family, _)| family).collect();
    let mut found = Vec::new();
    for (index, repository) in loaded.spec.repositories.iter().enumerate() {
        let Some((key, system)) = find_repository_system(repository, catalog, &families) else {
            continue;
        };
        let mut hosts: Vec<&str> = Vec::new();
        for host in &loaded.hosts {
            let os = loaded.spec.nodes[host.group].os.as_deref();
            if os.is_some_and(|os| system.is_other(os)) {
                hosts.push(&host.name);
            }
        }
        if hosts.is_empty() {
            continue;
        }
        let mut others: BTreeSet<String> = BTreeSet::new();
        for os in loaded
            .spec
            .nodes
            .iter()
            .filter_map(|group| group.os.as_deref())
        {
            if system.is_other(os) {
                others.insert(one_line(os, 40));
            }
        }
        let mut warning = describe_foreign_repository(repository, &system, &others);
        let path = format!("repositories[{index}].{key}");
        if let Some(label) = loaded.label(&path, "for another system") {
            warning = warning.labelled(label);
        }
        found.push(warning.on(nodeset::fold_node_set(&hosts)));
    }
    found
}

fn describe_foreign_repository(
    repository: &RepositorySpec,
    system: &RepositorySystem,
    others: &BTreeSet<String>,
) -> Diagnostic {
    let (name, word) = (one_line(&repository.name, 60), one_line(&system.word, 40));
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    Diagnostic::warning(
        CODE,
        format!(
            "the repository `{name}` is for another system (`{word}`) than nodes that get it ({})",
            others.join(", ")
        ),
    )
    .effect(
        "its packages need libraries and kernels of that system: they are not found, or break \
         what is there",
    )
    .next(
        "correct the address or the suite; every node gets every repository, so one for some \
         nodes alone belongs to a cluster of theirs",
    )
}

/// The system that the suite names by its code name, or the address in one of its parts; with the
/// key that says so.
fn find_repository_system(
    repository: &RepositorySpec,
    catalog: &Catalog,
    families: &BTreeSet<&str>,
) -> Option<(&'static str, RepositorySystem)> {
    let suite = repository.suite.as_deref().unwrap_or_default();
    let code_name = suite.split(['-', '/']).next().unwrap_or_default();
    let mut entries = catalog.os.entries();
    if let Some(entry) =
        entries.find(|entry| entry.content.aliases.iter().any(|it| it == code_name))
        && let Some((family, release)) = entry.content.name.rsplit_once('-')
    {
        let system = RepositorySystem {
            family: family.to_owned(),
            release: release.to_owned(),
            word: suite.to_owned(),
        };
        return Some(("suite", system));
    }
    let mut words = repository.url.split('/').skip(3);
    let system = words.find_map(|word| parse_system_word(word, families))?;
    Some(("url", system))
}

/// `ubuntu2204`, `ubuntu22.04`, `ubuntu-22.04`, `rhel8`, `rhel8.6`.
fn parse_system_word(word: &str, families: &BTreeSet<&str>) -> Option<RepositorySystem> {
    for family in families {
        if let Some(rest) = word.strip_prefix(*family)
            && let Some(release) = parse_release_suffix(rest)
        {
            return Some(RepositorySystem {
                family: (*family).to_owned(),
                release: release.to_owned(),
                word: word.to_owned(),
            });
        }
    }
    None
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
        let families = [family, self.family.as_str()];
        if family != self.family && !families.iter().all(|family| REBUILDS.contains(family)) {
            // what is made for one of the two big families is of no use in the other
            return families.iter().any(|family| APT_FAMILIES.contains(family));
        }
        if family == "ubuntu" {
            return first_digits(version) != first_digits(&self.release);
        }
        major_release(version) != major_release(&self.release)
    }
}

/// The year and month of a release of Ubuntu: `2204` of `22.04` and of `22.04.5`.
fn first_digits(release: &str) -> String {
    let digits = release.chars().filter(char::is_ascii_digit);
    digits.take(4).collect()
}

fn major_release(release: &str) -> Option<u64> {
    parse_release_numbers(release)?.first().copied()
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
            let system = parse_system_word(word, &families).unwrap();
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
            assert_eq!(parse_system_word(word, &families), None, "{word}");
        }
    }
}
