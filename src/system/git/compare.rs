//! Files that were read, beside the same files of a commit.

use super::attributes::{may_convert, with_unix_line_ends};
use super::object::{GitObjectKind, GitTreeEntryKind, Id, Objects, TreeEntry};
use super::repository::GitRepository;
use railwright_base::WorkTreeState;
use std::collections::BTreeMap;
use std::path::Path;

/// A file as it was read.
#[derive(Debug, Clone, Copy)]
pub struct ReadFile<'a> {
    /// Its path below the folder, with `/`.
    pub path: &'a str,
    /// All of it.
    pub bytes: &'a [u8],
}

/// A path below the folder that the commit has.
#[derive(Debug, Clone, Copy)]
pub struct TrackedPath<'a> {
    /// With `/`.
    pub path: &'a str,
    /// It is a folder there.
    pub is_folder: bool,
}

/// What was read of a folder.
#[derive(Default)]
struct ReadFolder<'a> {
    files: BTreeMap<&'a str, &'a [u8]>,
    folders: BTreeMap<&'a str, ReadFolder<'a>>,
}

struct CommitComparison<'a> {
    repository: &'a GitRepository,
    objects: Objects<'a>,
    /// The folder from the top of the work tree on, with `/` at its end unless it is the top.
    prefix: String,
    is_read: &'a dyn Fn(&TrackedPath<'_>) -> bool,
}

/// Whether these files of a folder are those of the commit; nothing where its objects cannot be
/// read.
pub fn compare_with_commit(
    repository: &GitRepository,
    folder: &Path,
    commit: &str,
    files: &[ReadFile<'_>],
    is_read: &dyn Fn(&TrackedPath<'_>) -> bool,
) -> Option<WorkTreeState> {
    let objects = Objects::new(&repository.files);
    let mut tree = objects.tree_of(&Id::parse(commit)?)?;
    let mut prefix = String::new();
    for name in folder.strip_prefix(&repository.top).ok()?.iter() {
        let name = name.to_str()?;
        match objects
            .tree(&tree)?
            .into_iter()
            .find(|(of, _)| of == name.as_bytes())
        {
            Some((
                _,
                TreeEntry {
                    kind: GitTreeEntryKind::Folder,
                    id,
                },
            )) => tree = id,
            Some((
                _,
                TreeEntry {
                    kind: GitTreeEntryKind::Link | GitTreeEntryKind::Submodule,
                    ..
                },
            )) => return Some(WorkTreeState::Unknown),
            Some(_) | None => return Some(WorkTreeState::Changed),
        }
        prefix.push_str(&format!("{name}/"));
    }
    let mut read = ReadFolder::default();
    for file in files {
        read.add(file.path, file.bytes);
    }
    Some(
        CommitComparison {
            repository,
            objects,
            prefix,
            is_read,
        }
        .folder(&tree, &read, ""),
    )
}

/// The last of these in the order of certainty; what comes after a change is not looked at.
fn find_worst_state(states: impl Iterator<Item = WorkTreeState>) -> WorkTreeState {
    let mut worst = WorkTreeState::AsCommitted;
    for state in states {
        worst = worst.max(state);
        if worst == WorkTreeState::Changed {
            break;
        }
    }
    worst
}

impl<'a> ReadFolder<'a> {
    fn add(&mut self, path: &'a str, bytes: &'a [u8]) {
        match path.split_once('/') {
            None => drop(self.files.insert(path, bytes)),
            Some((folder, below)) => self.folders.entry(folder).or_default().add(below, bytes),
        }
    }
}

impl CommitComparison<'_> {
    /// A folder beside a tree; `below` is its path with `/` at the end. What surely changed goes
    /// before what is unknown.
    fn folder(&self, tree: &Id, read: &ReadFolder<'_>, below: &str) -> WorkTreeState {
        let Some(entries) = self.objects.tree(tree) else {
            return WorkTreeState::Unknown;
        };
        let entries: BTreeMap<Vec<u8>, TreeEntry> = entries.into_iter().collect();
        let of_files = read
            .files
            .iter()
            .map(|(name, bytes)| match entries.get(name.as_bytes()) {
                Some(TreeEntry {
                    kind: GitTreeEntryKind::File,
                    id,
                }) => self.file(id, bytes, &format!("{below}{name}")),
                Some(TreeEntry {
                    kind: GitTreeEntryKind::Link | GitTreeEntryKind::Submodule,
                    ..
                }) => WorkTreeState::Unknown,
                Some(TreeEntry {
                    kind: GitTreeEntryKind::Folder,
                    ..
                })
                | None => WorkTreeState::Changed,
            });
        let of_folders =
            read.folders
                .iter()
                .map(|(name, read)| match entries.get(name.as_bytes()) {
                    Some(TreeEntry {
                        kind: GitTreeEntryKind::Folder,
                        id,
                    }) => self.folder(id, read, &format!("{below}{name}/")),
                    Some(TreeEntry {
                        kind: GitTreeEntryKind::Link | GitTreeEntryKind::Submodule,
                        ..
                    }) => WorkTreeState::Unknown,
                    Some(TreeEntry {
                        kind: GitTreeEntryKind::File,
                        ..
                    })
                    | None => WorkTreeState::Changed,
                });
        let of_missing = entries
            .iter()
            .map(|(name, entry)| self.unread(name, *entry, read, below));
        find_worst_state(of_files.chain(of_folders).chain(of_missing))
    }

    fn file(&self, id: &Id, bytes: &[u8], path: &str) -> WorkTreeState {
        let is_same = |bytes: &[u8]| Id::of(GitObjectKind::Blob, bytes) == *id;
        let is_converted = || with_unix_line_ends(bytes).is_some_and(|bytes| is_same(&bytes));
        match is_same(bytes) {
            true => WorkTreeState::AsCommitted,
            false
                if is_converted()
                    || may_convert(self.repository, &format!("{}{path}", self.prefix)) =>
            {
                WorkTreeState::Unknown
            }
            false => WorkTreeState::Changed,
        }
    }

    /// An entry of the commit that was not read, and should have been.
    fn unread(
        &self,
        name: &[u8],
        entry: TreeEntry,
        read: &ReadFolder<'_>,
        below: &str,
    ) -> WorkTreeState {
        let name = String::from_utf8_lossy(name);
        if read.files.contains_key(&*name) || read.folders.contains_key(&*name) {
            return WorkTreeState::AsCommitted;
        }
        let is_folder = matches!(
            entry.kind,
            GitTreeEntryKind::Folder | GitTreeEntryKind::Submodule
        );
        match (self.is_read)(&TrackedPath {
            path: &format!("{below}{name}"),
            is_folder,
        }) {
            true if entry.kind == GitTreeEntryKind::Submodule => WorkTreeState::Unknown,
            true => WorkTreeState::Changed,
            false => WorkTreeState::AsCommitted,
        }
    }
}
