//! The git commit that an inventory is of, and whether what was read of it is what that commit
//! holds.

use super::inventory::resolve_inventory_path;
use super::source_files::is_spec_name;
use railwright_base::Diagnostic;
use railwright_knowledge::spec::LoadedSpec;
use railwright_plan::model::InventoryOrigin;
use railwright_system::{folder, git};
use std::collections::BTreeMap;
use std::path::Path;

/// What was read of an inventory and can be part of a commit: the spec, its modules and its keys.
pub(crate) struct CommittedFiles<'a> {
    /// The inventory's folder, as it was given.
    pub(crate) shown: &'a str,
    /// The inventory's folder, absolute and without links.
    pub(crate) folder: &'a Path,
    /// The checked spec with its source files.
    pub(crate) loaded: &'a LoadedSpec,
    /// Files of the user's modules: path below `modules/` and text.
    pub(crate) modules: &'a [(String, String)],
    /// The signing keys, by path as the spec has it.
    pub(crate) keys: &'a BTreeMap<String, Result<String, Diagnostic>>,
}

impl CommittedFiles<'_> {
    /// Compares what was read with the commit that is checked out around the inventory.
    pub(crate) fn determine_origin(&self) -> InventoryOrigin {
        let texts = self.list_texts();
        let read: Vec<git::ReadFile<'_>> = texts
            .iter()
            .map(|(path, text)| git::ReadFile {
                path,
                bytes: text.as_bytes(),
            })
            .collect();
        let keys = self.list_key_paths();
        let git::GitRevision { commit, state } =
            git::read_revision(self.folder, &read, &|tracked| {
                is_read(tracked) || keys.iter().any(|key| is_at_or_around(tracked, key))
            });
        InventoryOrigin {
            path: self.shown.to_owned(),
            commit,
            dirty: state,
        }
    }

    /// Each file that was read: its path below the inventory's folder, and its text.
    fn list_texts(&self) -> Vec<(String, &str)> {
        let mut texts = Vec::new();
        for source in self.loaded.sources.files() {
            if let Some(path) = self.resolve_source_path(source.name()) {
                texts.push((path, source.text()));
            }
        }
        for (path, text) in self.modules {
            texts.push((format!("modules/{path}"), text.as_str()));
        }
        for (named, text) in self.keys {
            if let (Some(path), Ok(text)) = (self.resolve_key_path(named), text) {
                texts.push((path, text.as_str()));
            }
        }
        texts
    }

    /// Where the signing keys of the spec lie below the inventory's folder, read or not.
    fn list_key_paths(&self) -> Vec<String> {
        let repositories = self.loaded.spec.repositories.iter();
        repositories
            .filter_map(|repository| self.resolve_key_path(&repository.key))
            .collect()
    }

    /// The path of a source file; its name begins with the inventory's folder as that was given.
    fn resolve_source_path(&self, name: &str) -> Option<String> {
        match Path::new(name).strip_prefix(self.shown) {
            Ok(named) => self.strip_folder(&self.folder.join(named)),
            Err(_) => self.strip_folder(Path::new(name)),
        }
    }

    fn resolve_key_path(&self, named: &str) -> Option<String> {
        self.strip_folder(Path::new(&resolve_inventory_path(self.folder, named)))
    }

    /// A path as one below the inventory's folder; nothing for one that leads elsewhere.
    fn strip_folder(&self, path: &Path) -> Option<String> {
        let plain = folder::without_parents(path)?;
        let below = plain.strip_prefix(self.folder).ok()?;
        Some(below.to_str()?.to_owned())
    }
}

/// Whether a path of a commit is that of a file, or of a folder around it.
fn is_at_or_around(tracked: &git::TrackedPath<'_>, file: &str) -> bool {
    match file.strip_prefix(tracked.path) {
        Some(rest) if tracked.is_folder => rest.starts_with('/'),
        Some(rest) => rest.is_empty(),
        None => false,
    }
}

/// Whether a path of a commit is one that is read where it is there: YAML at the top, everything
/// below `modules`.
fn is_read(tracked: &git::TrackedPath<'_>) -> bool {
    match tracked.path.split_once('/') {
        None if tracked.is_folder => tracked.path == "modules",
        None => is_spec_name(tracked.path),
        Some((first, below)) => {
            first == "modules" && below.split('/').all(|part| !part.starts_with('.'))
        }
    }
}
