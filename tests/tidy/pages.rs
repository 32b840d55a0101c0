//! Every error code has its page, every module its README and cases, and no text speaks of anything
//! but the project.

use crate::{files, none, root};
use std::collections::{BTreeMap, BTreeSet};

fn codes(text: &str) -> impl Iterator<Item = String> {
    text.match_indices("\"RW").filter_map(|(at, _)| {
        let code: String = text[at + 1..]
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        (code.len() == 6 && code[2..].bytes().all(|b| b.is_ascii_digit())).then_some(code)
    })
}

#[test]
fn every_code_has_a_page_and_every_page_a_code() {
    // rules have their long text in their own files: `shipped_rules` holds them
    let rules = railwright_knowledge::rules::load_rules("", [])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let used: BTreeMap<String, String> = files("src", ".rs")
        .into_iter()
        .filter(|(path, _)| !path.starts_with("src/knowledge/rules/evaluation/tests"))
        .flat_map(|(path, text)| {
            codes(&text)
                .map(|code| (code, path.clone()))
                .collect::<Vec<_>>()
        })
        .filter(|(code, _)| !rules.rules.contains_key(code))
        .collect();
    let pages: BTreeSet<String> = files("docs/codes", ".md")
        .into_iter()
        .map(|(path, text)| {
            assert!(
                text.starts_with("# "),
                "{path} does not begin with `# ` and a title"
            );
            path.trim_start_matches("docs/codes/")
                .trim_end_matches(".md")
                .to_owned()
        })
        .collect();
    let mut findings: Vec<String> = used
        .iter()
        .filter(|(code, _)| !pages.contains(*code))
        .map(|(code, path)| format!("{path}: {code} has no page in docs/codes"))
        .collect();
    findings.extend(
        pages
            .iter()
            .filter(|page| !used.contains_key(*page))
            .map(|page| format!("docs/codes/{page}.md: no such code in src")),
    );
    none(&findings);
}

/// Pages that are lists: of symptoms, of lines of guides, of claims with the tests that hold them.
const LONG_PAGES: [&str; 3] = [
    "docs/security.md",
    "docs/reference-guides.md",
    "docs/symptoms.md",
];

#[test]
fn pages_are_short_are_listed_and_link_to_what_there_is() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap_or_default();
    let mut findings = Vec::new();
    let (readme, index) = (read("README.md"), read("docs/index.md"));
    if readme.lines().count() > 150 {
        findings.push(format!(
            "README.md: {} lines, at most 150",
            readme.lines().count()
        ));
    }
    let pages = files("docs", ".md")
        .into_iter()
        .filter(|(path, _)| path.matches('/').count() == 1);
    let all = pages.chain(
        ["README.md", "CONTRIBUTING.md", "SECURITY.md"].map(|path| (path.to_owned(), read(path))),
    );
    for (path, text) in all {
        if let Some(name) = path.strip_prefix("docs/") {
            if text.lines().count() > 200 && !LONG_PAGES.contains(&path.as_str()) {
                findings.push(format!(
                    "{path}: {} lines, at most 200",
                    text.lines().count()
                ));
            }
            if name != "index.md" && !index.contains(&format!("({name})")) {
                findings.push(format!("{path}: docs/index.md does not list it"));
            }
        }
        let folder = root()
            .join(&path)
            .parent()
            .map(std::path::Path::to_path_buf)
            .unwrap_or_default();
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split([')', '#']).next())
        {
            if !link.is_empty() && !link.contains("://") && !folder.join(link).exists() {
                findings.push(format!("{path}: nothing is at `{link}`"));
            }
        }
    }
    none(&findings);
}

#[test]
fn every_module_has_a_readme_with_sources_and_a_case() {
    let mut findings = Vec::new();
    let modules = std::fs::read_dir(root().join("modules"))
        .map(|d| d.flatten().map(|e| e.path()).collect::<Vec<_>>())
        .unwrap_or_default();
    let reserved = |path: &std::path::Path| {
        ["catalog", "jobs", "rules", "translations"]
            .iter()
            .any(|name| path.ends_with(name))
    };
    for module in modules
        .into_iter()
        .filter(|path| path.is_dir() && !reserved(path))
    {
        let readme = std::fs::read_to_string(module.join("README.md")).unwrap_or_default();
        if !readme.to_lowercase().contains("source") {
            findings.push(format!("{}: README.md names no source", module.display()));
        }
        if !std::fs::read_dir(module.join("tests")).is_ok_and(|mut cases| cases.next().is_some()) {
            findings.push(format!("{}: no case in tests/", module.display()));
        }
    }
    none(&findings);
}

/// Sixty at least, each with a code of its family's hundred, and none that asks what another asks
/// already. That each has a source, a fix and cases that hold is asked where rules are loaded and
/// evaluated.
#[test]
fn shipped_rules_are_many_and_different() {
    let rules = railwright_knowledge::rules::load_rules("", [])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    assert!(rules.rules.len() >= 60, "{}", rules.rules.len());
    let mut findings = Vec::new();
    let mut conditions: BTreeMap<String, &str> = BTreeMap::new();
    let mut families: BTreeMap<&str, &str> = BTreeMap::new();
    for (code, rule) in &rules.rules {
        let condition: String = rule.condition.split_whitespace().collect();
        if let Some(other) = conditions.insert(condition, code) {
            findings.push(format!("{code} asks what {other} asks"));
        }
        if families
            .insert(&rule.family, &code[..4])
            .is_some_and(|hundred| hundred != &code[..4])
        {
            findings.push(format!("{code} is not of the hundred of `{}`", rule.family));
        }
        if rule.passes == rule.fails {
            findings.push(format!("{code}: the two cases are one"));
        }
    }
    none(&findings);
}

#[test]
fn the_project_speaks_of_itself_alone() {
    // Put together here so that this file does not hold what it looks for.
    let banned = [
        ["/wo", "rk/"].concat(),
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
        ["unimple", "mented!"].concat(),
        ["to", "do!("].concat(),
    ];
    let mut findings = Vec::new();
    for (folder, extension) in [
        ("src", ".rs"),
        ("tests", ".rs"),
        ("modules", ""),
        ("inventories", ""),
        ("docs", ".md"),
        ("benches", ".rs"),
    ] {
        for (path, text) in files(folder, extension) {
            for (n, line) in text.lines().enumerate() {
                for word in banned.iter().filter(|word| line.contains(word.as_str())) {
                    findings.push(format!("{path}:{}: `{word}`", n + 1));
                }
            }
        }
    }
    none(&findings);
}

#[test]
fn the_page_of_the_library_shows_its_example() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let (page, example) = (
        read("docs/library.md"),
        read("src/session/examples/plan_inventory.rs"),
    );
    let (_, rest) = page.split_once("```rust\n").unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    assert!(
        example.contains(shown),
        "the example has no such text:\n{shown}"
    );
}
