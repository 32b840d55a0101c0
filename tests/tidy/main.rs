//! The house rules as a test: layering, banned calls, sizes, documentation, pointers in comments,
//! error codes, licences, doubled versions. It reads the repository's own files and nothing else.

mod dependencies;
mod layering;
mod pages;
mod pointers;
mod reference_guides;
mod sizes;
mod symptoms;

use std::path::{Path, PathBuf};

/// The repository.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder that end in `extension`, sorted, with their text.
fn files(folder: &str, extension: &str) -> Vec<(String, String)> {
    fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, extension, found);
            } else if path.to_string_lossy().ends_with(extension) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), extension, &mut found);
    found.sort();
    let name = |path: &Path| {
        path.strip_prefix(root())
            .unwrap_or(path)
            .to_string_lossy()
            .into_owned()
    };
    found
        .iter()
        .map(|path| {
            (
                name(path),
                std::fs::read_to_string(path).unwrap_or_default(),
            )
        })
        .collect()
}

/// Files that hold nothing but unit tests.
fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("tests/")
}

/// A line that is a comment as a whole.
fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// The lines before the file's unit tests, with their numbers from 1.
fn product_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(n, line)| (n + 1, line))
        .take_while(|(_, line)| *line != "#[cfg(test)]" && !line.starts_with("#![cfg(test)]"))
}

/// Fails with every finding on its own line.
fn none(findings: &[String]) {
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}
