//! Whether git may have written a file otherwise than the commit holds it (gitattributes(5)): by a
//! filter, by line ends, by an encoding.

use super::repository::GitRepository;
use crate::rooted::RootedFolder;

/// Attributes that make a file of a work tree another one than its commit has.
const CONVERTING: &[&str] = &[
    "text",
    "eol",
    "crlf",
    "ident",
    "filter",
    "working-tree-encoding",
];
const LIMIT_BYTES: u64 = 1 << 20;

/// Whether some attribute of a file could. `path` is from the top of the work tree on. Patterns are
/// not matched: a file that is said to be changed has to be.
pub fn may_convert(repository: &GitRepository, path: &str) -> bool {
    let Ok(tree) = RootedFolder::open(&repository.top) else {
        return true;
    };
    let folders = path.match_indices('/').map(|(at, _)| &path[..=at]);
    let mut of_tree = std::iter::once("")
        .chain(folders)
        .map(|folder| tree.beginning(&format!("{folder}.gitattributes"), LIMIT_BYTES));
    let own = repository.files.beginning("info/attributes", LIMIT_BYTES);
    of_tree.any(|read| names_conversion(read.as_ref())) || names_conversion(own.as_ref())
}

/// A file that cannot be read may say anything.
fn names_conversion(read: Result<&Option<Vec<u8>>, &std::io::Error>) -> bool {
    let Ok(read) = read else { return true };
    let text = String::from_utf8_lossy(read.as_deref().unwrap_or_default());
    let mut words = text
        .lines()
        .flat_map(|line| line.split_whitespace().skip(1));
    let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    words.any(|word| CONVERTING.contains(&name(word).as_str()))
}

/// A text with the line ends of Unix; nothing where it has no others.
pub fn with_unix_line_ends(bytes: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| text.contains("\r\n"))?;
    Some(text.replace("\r\n", "\n").into_bytes())
}
