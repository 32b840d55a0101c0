//! The modules that come with railwright.

use super::compile::{ModuleFiles, RESERVED};
use crate::shipped::MODULES;
use include_dir::Dir;
use std::collections::BTreeMap;

/// The files of all shipped modules.
pub fn collect_shipped_modules() -> Vec<ModuleFiles> {
    let mut modules = Vec::new();
    for folder in MODULES.dirs() {
        let path = folder.path();
        if RESERVED.iter().any(|reserved| path.ends_with(reserved)) {
            continue;
        }
        let mut files = BTreeMap::new();
        collect_module_files(folder, folder, &mut files);
        modules.push(ModuleFiles {
            folder: format!("modules/{}", path.display()),
            files,
        });
    }
    modules
}

/// How many cases the shipped modules have: a spec and what must come of it.
pub fn shipped_cases() -> usize {
    let mut count = 0;
    for folder in MODULES.dirs() {
        if let Some(tests) = folder.get_dir(folder.path().join("tests")) {
            count += tests.dirs().count();
        }
    }
    count
}

fn collect_module_files(top: &Dir<'_>, folder: &Dir<'_>, files: &mut BTreeMap<String, String>) {
    for file in folder.files() {
        let path = file.path().strip_prefix(top.path()).unwrap_or(file.path());
        // Cases are tests of the module, not a part of it.
        if let Some(text) = file.contents_utf8().filter(|_| !path.starts_with("tests")) {
            files.insert(path.display().to_string(), text.to_owned());
        }
    }
    for below in folder.dirs() {
        collect_module_files(top, below, files);
    }
}
