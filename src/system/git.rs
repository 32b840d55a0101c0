//! What git says about a folder. Best effort: no git, or no repository, is no error.

use super::process;
use std::path::Path;

/// The commit that is checked out around a folder.
pub fn commit(folder: &Path) -> Option<String> {
    git(folder, &["rev-parse", "--verify", "HEAD"]).map(|text| text.trim().to_owned()).filter(|commit| !commit.is_empty())
}

/// True when something below the folder is not as committed; what railwright itself keeps there does not count.
pub fn is_dirty(folder: &Path) -> bool {
    git(folder, &["status", "--porcelain", "--", ".", ":(exclude).railwright"]).is_some_and(|text| !text.trim().is_empty())
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let folder = folder.to_str()?;
    // A repository's own settings must not make us run its programs.
    let mut words = vec!["-c", "core.fsmonitor=false", "-C", folder];
    words.extend(arguments);
    let output = process::run("git", &words).ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}
