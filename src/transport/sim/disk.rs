//! The disk of a simulated host: files with their owners, and the folders that hold them.

use super::host::{Answered, Done};
use railwright_resource::file::base64;
use railwright_resource::file::found::CONTENT_LIMIT_BYTES;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedFile {
    /// What is in it.
    pub content: Vec<u8>,
    /// Octal, without a leading zero: `644`.
    pub mode: String,
    /// The user.
    pub owner: String,
    /// The group.
    pub group: String,
    /// By the host's own clock, in seconds since 1970.
    pub modified_s: u64,
}

impl From<&str> for SimulatedFile {
    fn from(text: &str) -> Self {
        let (mode, root) = ("644".to_owned(), "root".to_owned());
        SimulatedFile {
            content: text.as_bytes().to_vec(),
            mode,
            owner: root.clone(),
            group: root,
            modified_s: 0,
        }
    }
}

impl fmt::Display for SimulatedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.content))
    }
}

/// All files and folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// By absolute path.
    pub files: BTreeMap<String, SimulatedFile>,
    /// Folders, absolute and without a slash at the end.
    pub folders: BTreeSet<String>,
    /// Writes fail for this many more calls.
    pub full_for: u32,
}

impl Disk {
    /// Puts a file there, with the folders above it.
    pub fn put(&mut self, path: &str, file: SimulatedFile) {
        self.folders.extend(list_parent_folders(path));
        self.files.insert(path.to_owned(), file);
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Option<String> {
        self.files.get(path).map(ToString::to_string)
    }

    /// The files right below a folder whose names end so, by path.
    pub fn below<'a>(
        &'a self,
        folder: &'a str,
        suffix: &'a str,
    ) -> impl Iterator<Item = (&'a String, String)> {
        self.files
            .iter()
            .filter(move |(path, _)| is_directly_below(path, folder) && path.ends_with(suffix))
            .map(|(path, file)| (path, file.to_string()))
    }

    /// The answer to `Read::File`.
    pub fn read(&self, path: &str) -> Answered {
        let Some(file) = self.files.get(path) else {
            if self.folders.contains(path) {
                return (0, "755 root root 4096 directory\n".to_owned());
            }
            let there = list_parent_folders(path)
                .into_iter()
                .find(|folder| self.folders.contains(folder));
            return (
                1,
                format!("folder {}\n", there.unwrap_or_else(|| "/".to_owned())),
            );
        };
        let head = format!(
            "{} {} {} {} regular file",
            file.mode,
            file.owner,
            file.group,
            file.content.len()
        );
        (
            0,
            match file.content.len() {
                size if size > CONTENT_LIMIT_BYTES => {
                    format!(
                        "{head}, sha256\n{}\n",
                        railwright_base::text::format_hex(&Sha256::digest(&file.content))
                    )
                }
                _ if is_plain_text(&file.content) => format!("{head}\n{file}"),
                _ => format!(
                    "{head}, base64\n{}\n",
                    base64::encode_base64_text(&file.content)
                ),
            },
        )
    }

    /// The answer to `Read::Modified`.
    pub fn modified(&self, paths: &[String]) -> Answered {
        let mut out = String::new();
        for path in paths {
            if let Some(file) = self.files.get(path) {
                out.push_str(&format!("{} {path}\n", file.modified_s));
            }
        }
        (0, out)
    }

    /// Writes a whole file. One that is so already is left alone, and one of which only mode or
    /// owner differ keeps its time.
    pub fn write(&mut self, path: &str, mut file: SimulatedFile) -> Done {
        self.room()?;
        if self.folders.contains(path) {
            return Err((
                1,
                format!("mv: cannot overwrite directory '{path}' with non-directory"),
            ));
        }
        if let Some(old) = self.files.get(path)
            && old.content == file.content
        {
            if (&old.mode, &old.owner, &old.group) == (&file.mode, &file.owner, &file.group) {
                return Ok(());
            }
            file.modified_s = old.modified_s;
        }
        self.put(path, file);
        Ok(())
    }

    /// Removes a file, and with `below` the folders above it up to, not with, that one, as long as
    /// they are empty.
    pub fn remove(&mut self, path: &str, below: Option<&str>) {
        self.files.remove(path);
        let (Some(below), Some((mut folder, _))) = (below, path.rsplit_once('/')) else {
            return;
        };
        while !folder.is_empty() && folder != below.trim_end_matches('/') {
            let inside = format!("{folder}/");
            let used = self
                .files
                .keys()
                .chain(&self.folders)
                .any(|other| other.starts_with(&inside));
            if used {
                return;
            }
            self.folders.remove(folder);
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
    }

    /// Why nothing can be written, if so.
    pub fn room(&self) -> Done {
        if self.full_for > 0 {
            Err((1, "write error: No space left on device".to_owned()))
        } else {
            Ok(())
        }
    }
}

fn is_directly_below(path: &str, folder: &str) -> bool {
    let below = path.strip_prefix(folder);
    let name = below.and_then(|rest| rest.strip_prefix('/'));
    name.is_some_and(|name| !name.contains('/'))
}

/// Printable ASCII, tabs and ends of lines.
fn is_plain_text(content: &[u8]) -> bool {
    content
        .iter()
        .all(|byte| matches!(byte, 9 | 10 | 13 | 32..=126))
}

/// `0644` as `stat` shows it.
pub fn plain_mode(mode: &str) -> String {
    let plain = mode.trim_start_matches('0');
    if plain.is_empty() {
        "0".to_owned()
    } else {
        plain.to_owned()
    }
}

/// The folders above a path, the deepest first, without the root.
fn list_parent_folders(path: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = path;
    while let Some((folder, _)) = rest
        .rsplit_once('/')
        .filter(|(folder, _)| !folder.is_empty())
    {
        all.push(folder.to_owned());
        rest = folder;
    }
    all
}
