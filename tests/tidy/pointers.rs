//! Paths in comments, such as `plan::file::parse_plan_file`, lead to what is there.

use crate::{files, is_comment, none};
use std::collections::{BTreeMap, BTreeSet};

/// The words of a file's code, without those of its comments.
fn words_of_code(text: &str) -> BTreeSet<&str> {
    let code = text.lines().filter(|line| !is_comment(line));
    code.flat_map(|line| line.split(|c: char| !is_word_character(c)))
        .collect()
}

fn is_word_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The modules that a file is in: its folders below `src`, and itself.
fn modules_of(path: &str) -> impl Iterator<Item = &str> {
    let inside = path.trim_start_matches("src/").trim_end_matches(".rs");
    inside
        .split('/')
        .filter(|name| !matches!(*name, "mod" | "lib"))
}

/// The paths between backticks: words of code, joined by `::`.
fn paths_in(line: &str) -> impl Iterator<Item = Vec<&str>> {
    let spans = line.split('`').skip(1).step_by(2);
    spans.filter_map(|span| {
        let path: Vec<&str> = span.trim_end_matches("()").split("::").collect();
        let is_path = path.len() > 1
            && path
                .iter()
                .all(|name| !name.is_empty() && name.chars().all(is_word_character));
        is_path.then_some(path)
    })
}

#[test]
fn paths_in_comments_lead_to_what_is_there() {
    let sources = files("src", ".rs");
    let mut words: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut all = BTreeSet::new();
    for (path, text) in &sources {
        let code = words_of_code(text);
        let modules: Vec<&str> = modules_of(path).collect();
        for module in &modules {
            let known = words.entry(module).or_default();
            known.extend(&code);
            known.extend(&modules);
        }
        all.extend(code);
    }
    let mut findings = Vec::new();
    for (path, text) in &sources {
        for (n, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| is_comment(line))
        {
            for mut names in paths_in(line) {
                names.retain(|name| *name != "crate");
                let [.., owner, last] = names[..] else {
                    continue;
                };
                // A path of somebody else's.
                if !words.contains_key(names[0]) {
                    continue;
                }
                let is_there = match words.get(owner) {
                    Some(known) => known.contains(last),
                    None => all.contains(owner) && all.contains(last),
                };
                if !is_there {
                    findings.push(format!(
                        "{path}:{}: `{}` is not there",
                        n + 1,
                        names.join("::")
                    ));
                }
            }
        }
    }
    none(&findings);
}
