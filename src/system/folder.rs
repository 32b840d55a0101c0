//! Folders of this machine, read without surprises: bounded, sorted, and never out of the folder
//! through a link.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// What an entry of a folder is, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderEntryKind {
    /// An ordinary file.
    File,
    /// A folder.
    Folder,
    /// A link that leads out of the root, to something hidden below it, or nowhere.
    LinkOutside,
    /// A device, socket or pipe: opening it could hang.
    Special,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its name; what is not UTF-8 is replaced.
    pub name: String,
    /// Its path, without links unless it leads outside.
    pub path: PathBuf,
    /// What it is.
    pub kind: FolderEntryKind,
}

/// The path without links, if it exists.
pub fn real_path(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// True for an existing folder, links followed.
pub fn is_folder(path: &Path) -> bool {
    path.is_dir()
}

/// True for an existing ordinary file, links followed.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// True for a symbolic link, wherever it leads.
pub fn is_link(path: &Path) -> bool {
    path.is_symlink()
}

/// An absolute path without `.` and `..`, by its words alone; nothing for one that leads above `/`,
/// or that is not absolute.
pub fn without_parents(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir if !plain.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => plain.push(part),
        }
    }
    plain.is_absolute().then_some(plain)
}

/// The entries of a folder, no link followed: every link is one that leads outside.
pub fn own_entries(folder: &Path) -> io::Result<Vec<(PathBuf, FolderEntryKind)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.file_type()?;
        let kind = match (found.is_symlink(), found.is_dir(), found.is_file()) {
            (true, ..) => FolderEntryKind::LinkOutside,
            (_, true, _) => FolderEntryKind::Folder,
            (_, _, true) => FolderEntryKind::File,
            _ => FolderEntryKind::Special,
        };
        entries.push((entry.path(), kind));
    }
    Ok(entries)
}

/// True when a part of a path below a folder begins with `.`: what programs keep there is nobody
/// else's.
pub fn is_hidden(below: &Path) -> bool {
    below
        .iter()
        .any(|part| part.as_encoded_bytes().starts_with(b"."))
}

/// Whether a path below a folder is of a ConfigMap or Secret that Kubernetes mounted as that
/// folder: the files are in a folder `..TIME` of it, to which `..data` leads, and each has a link
/// of its name (`atomic_writer.go` of the kubelet).
pub fn is_mounted(root: &Path, below: &Path) -> bool {
    let parts: Vec<&std::ffi::OsStr> = below.iter().collect();
    let [kept, name] = parts[..] else {
        return false;
    };
    let leads_to = |link: &Path, path: &Path| {
        is_link(link) && fs::canonicalize(link).is_ok_and(|real| real == path)
    };
    let bytes = kept.as_encoded_bytes();
    bytes.starts_with(b"..")
        && bytes.len() > 2
        && !is_hidden(Path::new(name))
        && leads_to(&root.join("..data"), &root.join(kept))
        && leads_to(&root.join(name), &root.join(below))
}

/// The entries of a folder by name, hidden ones left out; `root` is the real path that links may
/// not leave.
pub fn list_folder_entries(folder: &Path, root: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with('.') {
            continue;
        }
        let (path, kind) = led_to(path, root);
        entries.push(FolderEntry { name, path, kind });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Where a path leads, and what is there.
fn led_to(path: PathBuf, root: &Path) -> (PathBuf, FolderEntryKind) {
    let Ok(real) = fs::canonicalize(&path) else {
        return (path, FolderEntryKind::LinkOutside);
    };
    if real.strip_prefix(root).map_or(true, is_hidden) {
        return (path, FolderEntryKind::LinkOutside);
    }
    let kind = match fs::symlink_metadata(&real) {
        Ok(metadata) if metadata.is_file() => FolderEntryKind::File,
        Ok(metadata) if metadata.is_dir() => FolderEntryKind::Folder,
        _ => FolderEntryKind::Special,
    };
    (real, kind)
}
