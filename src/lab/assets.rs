//! The files that are compiled in: recipe, guest files, kernel module and fake source.

use super::Result;
use super::folder::new_folder_error;
use include_dir::{Dir, DirEntry, include_dir};
use railwright_system::files;
use std::path::Path;

static ASSETS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/assets");

/// All files below a folder of the assets ("" for all), with their path from there, in order of
/// path.
pub fn files_below(folder: &str) -> Vec<(String, &'static [u8])> {
    let start = if folder.is_empty() {
        Some(&ASSETS)
    } else {
        ASSETS.get_dir(folder)
    };
    let mut found = Vec::new();
    let mut open: Vec<&Dir<'static>> = start.into_iter().collect();
    while let Some(dir) = open.pop() {
        for entry in dir.entries() {
            match entry {
                DirEntry::Dir(inner) => open.push(inner),
                DirEntry::File(file) => {
                    let path = file.path().strip_prefix(folder).unwrap_or(file.path());
                    found.push((path.to_string_lossy().into_owned(), file.contents()));
                }
            }
        }
    }
    found.sort();
    found
}

/// A text file of the assets; empty when there is none of that name.
pub fn read_asset_text(path: &str) -> &'static str {
    ASSETS
        .get_file(path)
        .and_then(|file| file.contents_utf8())
        .unwrap_or_default()
}

/// Writes all assets below a folder, readable for every user: the image may be built in a user
/// namespace.
pub fn write_out(to: &Path) -> Result<()> {
    for (path, bytes) in files_below("") {
        let target = to.join(path);
        if let Some(parent) = target.parent() {
            files::make_folder(parent).map_err(|error| new_folder_error(parent, &error))?;
        }
        files::write_atomic(&target, bytes, 0o644)
            .map_err(|error| new_folder_error(&target, &error))?;
    }
    Ok(())
}
