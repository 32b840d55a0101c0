//! A file is one idea, a function fits on a screen, every public item says what it is.

use crate::{files, is_test, none, product_lines};

#[test]
fn files_are_short() {
    let mut lengths: Vec<(usize, String)> = files("src", ".rs")
        .into_iter()
        .map(|(path, text)| (product_lines(&text).count(), path))
        .collect();
    lengths.sort();
    let p90 = &lengths[lengths.len() * 9 / 10];
    assert!(
        p90.0 <= 400,
        "nine of ten files have at most 400 lines before their tests; {} has {}",
        p90.1,
        p90.0
    );
    let long: Vec<String> = lengths
        .iter()
        .filter(|(lines, _)| *lines > 600)
        .map(|(lines, path)| format!("{path}: {lines} lines: which two ideas?"))
        .collect();
    none(&long);
}

/// rustfmt closes a function at the indentation where it began.
#[test]
fn functions_are_short() {
    let mut findings = Vec::new();
    for (path, text) in files("src", ".rs")
        .into_iter()
        .filter(|(path, _)| !is_test(path))
    {
        let mut open: Vec<(usize, usize, String)> = Vec::new();
        for (line, code) in product_lines(&text) {
            let indent = code.len() - code.trim_start().len();
            let word = code.trim_start();
            let is_function = [
                "fn ",
                "pub fn ",
                "async fn ",
                "pub async fn ",
                "pub(crate) fn ",
                "pub(super) fn ",
                "const fn ",
                "pub const fn ",
            ]
            .iter()
            .any(|start| word.starts_with(start));
            if is_function && !code.trim_end().ends_with(';') && !code.trim_end().ends_with('}') {
                open.push((indent, line, word.to_owned()));
            }
            if word == "}" && open.last().is_some_and(|(at, ..)| *at == indent) {
                let (_, start, name) = open.pop().unwrap_or_default();
                if line - start + 1 > 60 {
                    findings.push(format!(
                        "{path}:{start}: {} lines: {name}",
                        line - start + 1
                    ));
                }
            }
        }
    }
    none(&findings);
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    let bare = |(_, text): &(String, String)| !text.starts_with("//!");
    let all = ["src", "tests", "benches"]
        .iter()
        .flat_map(|folder| files(folder, ".rs"));
    none(
        &all.filter(bare)
            .map(|(path, _)| format!("{path}: no `//!` at its top"))
            .collect::<Vec<_>>(),
    );
}

#[test]
fn public_items_are_documented() {
    let mut findings = Vec::new();
    for (path, text) in files("src", ".rs")
        .into_iter()
        .filter(|(path, _)| !is_test(path))
    {
        let lines: Vec<&str> = product_lines(&text).map(|(_, line)| line).collect();
        for (n, line) in lines.iter().enumerate() {
            let word = line.trim_start();
            let public = [
                "pub fn ",
                "pub async fn ",
                "pub const fn ",
                "pub struct ",
                "pub enum ",
                "pub trait ",
                "pub type ",
                "pub const ",
            ];
            if !public.iter().any(|start| word.starts_with(start)) {
                continue;
            }
            let before = last_line_before_attributes(&lines[..n]);
            if !before.is_some_and(|l| {
                l.trim_start().starts_with("///") || l.trim_start().starts_with("#[doc")
            }) {
                findings.push(format!("{path}:{}: {word}", n + 1));
            }
        }
    }
    none(&findings);
}

/// The last line that belongs to no attribute; one attribute may take several lines.
fn last_line_before_attributes<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let mut is_within = false;
    for line in lines.iter().rev() {
        let word = line.trim();
        if is_within {
            is_within = !word.starts_with("#[");
        } else if word == ")]" {
            is_within = true;
        } else if !is_attribute(line) {
            return Some(line);
        }
    }
    None
}

fn is_attribute(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("#[") && !line.starts_with("#[doc")
}
