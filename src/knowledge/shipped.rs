//! The data that comes with railwright, compiled into the binary once, so that one file is the
//! whole tool: modules, the catalogue, rules and translations.

use include_dir::{Dir, include_dir};

/// The folder `modules` of the repository.
pub static MODULES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../modules");

/// The YAML files at the top of a folder of it, by name, as `modules/rules/erdma.yaml` and text.
pub fn yaml_files(folder: &str) -> Vec<(String, String)> {
    let files = MODULES.get_dir(folder).into_iter().flat_map(Dir::files);
    let yaml = files.filter(|file| {
        file.path()
            .extension()
            .is_some_and(|ending| ending == "yaml")
    });
    let mut files: Vec<_> = yaml
        .map(|file| {
            (
                format!("modules/{}", file.path().display()),
                file.contents_utf8().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    files.sort();
    files
}
