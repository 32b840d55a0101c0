//! What may be in Cargo.lock, by `deny.toml`: licences that may be shipped, no crate twice without
//! a reason, none that nobody keeps, all from crates.io; and what binaries hold of others is in
//! THIRD-PARTY. `make deny` tries more, with cargo-deny.

use crate::{none, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use toml_edit::DocumentMut;

static DENY: LazyLock<DocumentMut> = LazyLock::new(|| configuration("deny.toml"));

/// What is built for the systems of `deny.toml`.
static METADATA: LazyLock<Value> = LazyLock::new(|| {
    let platforms = words(&DENY["graph"]["targets"])
        .into_iter()
        .flat_map(|target| ["--filter-platform".to_owned(), target]);
    let said = cargo(
        ["metadata", "--format-version", "1"]
            .into_iter()
            .map(str::to_owned)
            .chain(platforms),
    );
    serde_json::from_str(&said).expect("cargo metadata prints JSON")
});

fn cargo(arguments: impl Iterator<Item = String>) -> String {
    let mut command = std::process::Command::new(env!("CARGO"));
    let output = command
        .args(arguments)
        .arg("--locked")
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

fn configuration(file: &str) -> DocumentMut {
    std::fs::read_to_string(root().join(file))
        .expect(file)
        .parse()
        .expect(file)
}

fn words(list: &toml_edit::Item) -> Vec<String> {
    list.as_array()
        .expect("a list")
        .iter()
        .filter_map(|word| Some(word.as_str()?.to_owned()))
        .collect()
}

/// The field of each table in a list of `deny.toml`; a table of the bans says why it is there.
fn field<'a>(list: &'a toml_edit::Item, name: &'a str) -> impl Iterator<Item = &'a str> {
    list.as_array().expect("a list").iter().map(move |table| {
        table
            .as_inline_table()
            .and_then(|table| table.get(name)?.as_str())
            .expect(name)
    })
}

fn packages() -> impl Iterator<Item = (&'static str, &'static str, &'static Value)> {
    let packages = METADATA["packages"].as_array().expect("packages").iter();
    packages.map(|package| (text(&package["name"]), text(&package["version"]), package))
}

fn text(value: &'static Value) -> &'static str {
    value.as_str().unwrap_or_default()
}

#[test]
fn a_second_version_of_a_crate_has_a_reason() {
    assert!(field(&DENY["bans"]["skip"], "reason").all(|reason| !reason.is_empty()));
    let mut known: BTreeSet<(&str, &str)> = field(&DENY["bans"]["skip"], "crate")
        .filter_map(|skipped| skipped.split_once('@'))
        .collect();
    let skips = known.clone();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, version, _) in packages() {
        match skips.iter().find(|(skipped, of)| {
            *skipped == name && format!("{version}.").starts_with(&format!("{of}."))
        }) {
            Some(skip) => drop(known.remove(skip)),
            None => drop(versions.entry(name).or_default().insert(version)),
        }
    }
    let mut findings: Vec<String> = versions
        .iter()
        .filter(|(_, all)| all.len() > 1)
        .map(|(name, all)| format!("{name}: {all:?} in Cargo.lock"))
        .collect();
    findings.extend(known.iter().map(|(name, version)| {
        format!("{name} {version}: no longer there; take it out of deny.toml")
    }));
    none(&findings);
}

#[test]
fn no_banned_crates_and_all_from_crates_io() {
    let banned: BTreeSet<&str> = field(&DENY["bans"]["deny"], "crate").collect();
    let index = "registry+https://github.com/rust-lang/crates.io-index";
    let wrong = |name: &str, package: &Value| {
        banned.contains(name)
            || package["source"]
                .as_str()
                .is_some_and(|source| source != index)
    };
    let wrong = packages().filter(|(name, _, package)| wrong(name, package));
    none(
        &wrong
            .map(|(name, version, package)| format!("{name} {version} of {}", package["source"]))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn licences_may_be_shipped() {
    let allowed = words(&DENY["licenses"]["allow"]);
    let exceptions = DENY["licenses"]["exceptions"].as_array().expect("a list");
    let mut findings = Vec::new();
    for (name, version, package) in packages() {
        let own = exceptions
            .iter()
            .filter_map(|table| table.as_inline_table())
            .filter(|table| table["crate"].as_str() == Some(name));
        let own: Vec<&str> = own
            .flat_map(|table| table["allow"].as_array())
            .flatten()
            .filter_map(|one| one.as_str())
            .collect();
        let licence = text(&package["license"])
            .replace('/', " OR ")
            .replace(['(', ')'], "");
        let fine = |one: &str| {
            own.contains(&one.trim()) || allowed.iter().any(|allowed| allowed == one.trim())
        };
        // An `OR` needs one of them, an `AND` all.
        if !licence
            .split(" AND ")
            .all(|part| part.split(" OR ").any(fine))
        {
            findings.push(format!("{name} {version}: licence `{licence}`"));
        }
    }
    none(&findings);
}

#[test]
fn third_parties_are_those_of_the_program() {
    let about = configuration("about.toml");
    let set = |list: &toml_edit::Item| words(list).into_iter().collect::<BTreeSet<_>>();
    assert_eq!(set(&about["accepted"]), set(&DENY["licenses"]["allow"]));
    assert_eq!(set(&about["targets"]), set(&DENY["graph"]["targets"]));
    let third_party = std::fs::read_to_string(root().join("THIRD-PARTY")).expect("THIRD-PARTY");
    let lines = third_party
        .lines()
        .filter(|line| line.contains("  https://"));
    let listed: BTreeSet<String> = lines
        .filter_map(|line| Some(line.trim().split_once("  ")?.0.to_owned()))
        .collect();
    let shipped = shipped();
    let findings = shipped
        .symmetric_difference(&listed)
        .map(|one| format!("{one}: `make third-party` makes THIRD-PARTY anew"));
    none(&findings.collect::<Vec<_>>());
}

/// Name and version of each crate that the program is built of.
fn shipped() -> BTreeSet<String> {
    let mut shipped = BTreeSet::new();
    for target in words(&DENY["graph"]["targets"]) {
        let arguments = [
            "tree", "--edges", "normal", "--prefix", "none", "--format", "{p}", "--target", &target,
        ];
        for line in cargo(arguments.into_iter().map(str::to_owned)).lines() {
            let mut words = line.split(' ');
            shipped.extend(
                words
                    .next()
                    .zip(words.next())
                    .map(|(name, version)| format!("{name} {}", version.trim_start_matches('v'))),
            );
        }
    }
    shipped
}
