//! Licences that may be shipped, no crate twice without a reason, none that nobody keeps.

use crate::{none, root};
use std::collections::{BTreeMap, BTreeSet};

/// Licences that a user of an Apache-2.0 program can live with; an `OR` needs one of them, an `AND` all.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "CC0-1.0",
    "MIT-0",
    "0BSD",
    "BSL-1.0",
    "Unlicense",
    "CDLA-Permissive-2.0",
    "MPL-2.0",
];

/// Crates that nobody keeps, or that brought trouble; the test tools' own dependencies are not shipped.
const BANNED: &[&str] = &["serde_yml", "openssl", "openssl-sys", "native-tls", "aws-lc-rs", "atty", "ansi_term"];

fn packages() -> Vec<(String, String)> {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock is committed");
    let field = |block: &str, name: &str| {
        block
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} = \"")).map(|rest| rest.trim_end_matches('"').to_owned()))
            .unwrap_or_default()
    };
    lock.split("[[package]]").skip(1).map(|block| (field(block, "name"), field(block, "version"))).collect()
}

#[test]
fn no_new_doubled_versions() {
    let allowed: BTreeSet<String> = std::fs::read_to_string(root().join("tests/tidy/doubled.txt"))
        .expect("the list of known doubles")
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_owned)
        .collect();
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version) in packages() {
        versions.entry(name).or_default().insert(version);
    }
    let doubled: BTreeSet<String> = versions.into_iter().filter(|(_, v)| v.len() > 1).map(|(name, _)| name).collect();
    let mut findings: Vec<String> = doubled.difference(&allowed).map(|name| format!("{name}: two versions in Cargo.lock")).collect();
    findings.extend(allowed.difference(&doubled).map(|name| format!("{name}: no longer doubled; take it out of doubled.txt")));
    none(&findings);
}

#[test]
fn no_banned_crates() {
    none(
        &packages()
            .into_iter()
            .filter(|(name, _)| BANNED.contains(&name.as_str()))
            .map(|(name, v)| format!("{name} {v}"))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn licences_may_be_shipped() {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let licence = package["license"].as_str().unwrap_or_default().replace('/', " OR ").replace(['(', ')'], "");
        let fine = !licence.is_empty() && licence.split(" AND ").all(|part| part.split(" OR ").any(|one| LICENCES.contains(&one.trim())));
        if !fine {
            findings.push(format!("{} {}: licence `{licence}`", package["name"], package["version"]));
        }
    }
    none(&findings);
}
