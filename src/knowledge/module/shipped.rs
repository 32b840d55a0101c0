//! The modules that come with railwright.

use super::compile::{ModuleFiles, RESERVED};
use crate::shipped::MODULES;
use include_dir::Dir;
use std::collections::BTreeMap;

/// The files of all shipped modules.
pub fn collect_shipped_modules() -> Vec<ModuleFiles> {
    MODULES
        .dirs()
        .filter(|folder| {
            !RESERVED
                .iter()
                .any(|reserved| folder.path().ends_with(reserved))
        })
        .map(|folder| {
            let mut files = BTreeMap::new();
            collect_module_files(folder, folder, &mut files);
            ModuleFiles {
                folder: format!("modules/{}", folder.path().display()),
                files,
            }
        })
        .collect()
}

/// How many cases the shipped modules have: a spec and what must come of it.
pub fn shipped_cases() -> usize {
    let of = |folder: &Dir<'static>| {
        folder
            .get_dir(folder.path().join("tests"))
            .map_or(0, |tests| tests.dirs().count())
    };
    MODULES.dirs().map(of).sum()
}

fn collect_module_files(top: &Dir<'_>, folder: &Dir<'_>, files: &mut BTreeMap<String, String>) {
    for file in folder.files() {
        let path = file.path().strip_prefix(top.path()).unwrap_or(file.path());
        // Cases are tests of the module, not a part of it.
        if let Some(text) = file.contents_utf8().filter(|_| !path.starts_with("tests")) {
            files.insert(path.display().to_string(), text.to_owned());
        }
    }
    folder
        .dirs()
        .for_each(|below| collect_module_files(top, below, files));
}
