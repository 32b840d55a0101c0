//! The text files of an inventory folder: YAML files of the spec at its top, and files of user
//! modules below `modules`.

use super::inventory_file;
use railwright_base::Diagnostic;
use railwright_base::text::{clean_line, one_line};
use railwright_knowledge::spec::SourceFile;
use railwright_system::files;
use railwright_system::folder::{self, FolderEntry, FolderEntryKind};
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// All spec files together, and all files of user modules together, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// Files and folders of user modules, each as often as a link leads to it.
const MODULE_ENTRIES_MAX: usize = 10_000;
/// Folders inside each other below `modules`.
const MODULE_DEPTH_MAX: usize = 8;

/// Reads the YAML files at the top of the folder; what cannot be read is added to `problems`.
pub(crate) fn read_spec_files(
    path: &Path,
    folder: &Path,
    problems: &mut Vec<Diagnostic>,
) -> Vec<SourceFile> {
    let entries = match folder::list_folder_entries(folder, folder) {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(report_unreadable_file(&path.display().to_string(), &error));
            return Vec::new();
        }
    };
    let mut left = BYTES_MAX;
    let mut read = Vec::new();
    let mut found = false;
    for entry in entries {
        if !is_spec_name(&entry.name) || entry.kind == FolderEntryKind::Folder {
            continue;
        }
        found = true;
        let name = path.join(&entry.name).display().to_string();
        match read_text_file(&name, folder, &resolve_spec_entry(folder, entry), left) {
            Ok(file) => {
                left -= file.text.len() as u64;
                read.push(file);
            }
            Err(problem) => problems.push(*problem),
        }
    }
    if !found {
        problems.push(report_no_spec_files(path));
    }
    read
}

/// Follows an entry that is a link. It leads to another spec file at the top, or to what Kubernetes
/// mounted there; every other link counts as one that leads outside.
fn resolve_spec_entry(folder: &Path, entry: FolderEntry) -> FolderEntry {
    let below = match entry.kind {
        FolderEntryKind::Special => return entry,
        FolderEntryKind::LinkOutside => {
            inventory_file::find_inventory_file(folder, &entry.path.to_string_lossy()).ok()
        }
        _ => entry.path.strip_prefix(folder).ok().map(Path::to_owned),
    };
    match below.filter(|below| is_spec_path(below)) {
        Some(below) => FolderEntry {
            path: folder.join(below),
            kind: FolderEntryKind::File,
            ..entry
        },
        None => FolderEntry {
            kind: FolderEntryKind::LinkOutside,
            ..entry
        },
    }
}

/// Whether a path below the inventory's folder is that of a spec file.
fn is_spec_path(below: &Path) -> bool {
    let is_at_top = below.iter().count() == 1 || folder::is_hidden(below);
    let name = below.file_name().and_then(OsStr::to_str);
    is_at_top && name.is_some_and(is_spec_name)
}

/// Whether this is the name of a file of the spec.
pub(crate) fn is_spec_name(name: &str) -> bool {
    !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".yml"))
}

fn report_no_spec_files(path: &Path) -> Diagnostic {
    Diagnostic::error(
        "RW1003",
        format!("the inventory {} holds no *.yaml file", path.display()),
    )
    .state("nothing was read")
    .next("write a spec there; a small one is inventories/lab in railwright's repository")
}

/// Reads all files below `modules`, by path.
pub(crate) fn read_module_files(
    path: &Path,
    folder: &Path,
) -> Result<Vec<(String, String)>, Box<Diagnostic>> {
    let root = folder.join("modules");
    let mut modules = Vec::new();
    if folder::is_link(&root) {
        let message = format!("{} is a link", path.join("modules").display());
        return Err(Diagnostic::error("RW1007", message)
            .next("copy the folder into the inventory")
            .into());
    }
    if !folder::is_folder(&root) {
        return Ok(modules);
    }
    let (mut left, mut entries) = (BYTES_MAX, 0);
    let mut open = vec![(root.clone(), String::new(), 0)];
    while let Some((below, prefix, depth)) = open.pop() {
        let shown = |name: &str| {
            path.join("modules")
                .join(format!("{prefix}{name}"))
                .display()
                .to_string()
        };
        for entry in folder::list_folder_entries(&below, &root)
            .map_err(|error| report_unreadable_file(&shown(""), &error))?
        {
            entries += 1;
            if entries > MODULE_ENTRIES_MAX {
                let message = format!(
                    "{} holds more than {MODULE_ENTRIES_MAX} files and folders",
                    path.join("modules").display()
                );
                return Err(Diagnostic::error("RW1006", message)
                    .next("keep only modules there")
                    .into());
            }
            check_name(&shown(&entry.name), &entry)?;
            let inner = format!("{prefix}{}", entry.name);
            if entry.kind == FolderEntryKind::Folder && depth < MODULE_DEPTH_MAX {
                open.push((entry.path, format!("{inner}/"), depth + 1));
                continue;
            }
            let file = read_text_file(&shown(&entry.name), folder, &entry, left)?;
            left -= file.text.len() as u64;
            modules.push((inner, file.text));
        }
    }
    modules.sort();
    Ok(modules)
}

/// One file of the inventory as text; `limit` in bytes.
fn read_text_file(
    name: &str,
    folder: &Path,
    entry: &FolderEntry,
    limit: u64,
) -> Result<SourceFile, Box<Diagnostic>> {
    check_name(name, entry)?;
    let refused = |why: &str, next: &str| {
        Err(Diagnostic::error("RW1007", format!("{name} {why}"))
            .next(next)
            .into())
    };
    match entry.kind {
        FolderEntryKind::LinkOutside => {
            return refused(
                "is a link that leads to no file that is read there",
                "copy the file into the inventory",
            );
        }
        FolderEntryKind::Special | FolderEntryKind::Folder => {
            return refused(
                "is no ordinary file",
                "remove it, or write a file in its place",
            );
        }
        FolderEntryKind::File => {}
    }
    let below = entry.path.strip_prefix(folder).unwrap_or(&entry.path);
    let bytes = files::read_beneath(folder, below, limit).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => Diagnostic::error(
            "RW1006",
            format!(
                "with {name} the inventory has more than {} MiB",
                BYTES_MAX >> 20
            ),
        )
        .next("split the cluster into several inventories"),
        _ => report_unreadable_file(name, &error),
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Diagnostic::error(
            "RW1004",
            format!(
                "{name} is not UTF-8 from byte {} on",
                error.utf8_error().valid_up_to()
            ),
        )
        .next("save the file as UTF-8")
    })?;
    Ok(SourceFile {
        name: name.to_owned(),
        text,
    })
}

/// Names stand on screens, as they are.
fn check_name(shown: &str, entry: &FolderEntry) -> Result<(), Box<Diagnostic>> {
    if clean_line(&entry.name) == entry.name {
        return Ok(());
    }
    let what = format!(
        "{} has a name with characters that a terminal obeys or hides",
        one_line(&clean_line(shown), 120)
    );
    Err(Diagnostic::error("RW1007", what).next("rename it").into())
}

fn report_unreadable_file(name: &str, error: &io::Error) -> Diagnostic {
    Diagnostic::error("RW1004", format!("{name} cannot be read: {error}"))
        .next("check the file and its permissions")
}
