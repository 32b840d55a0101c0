//! Reads an inventory folder into what every command needs: the checked spec, the user's modules as
//! raw files, where it all came from, and absolute paths.

use super::inventory_files::{missing_files, private_files};
use super::knowledge::Knowledge;
use super::outside::{self, NotOpened};
use super::pipeline::file_problem;
use railwright_base::text::{clean_line, one_line};
use railwright_base::{Diagnostic, quote};
use railwright_knowledge::module::context;
use railwright_knowledge::spec::{
    self, Host, LoadedSpec, Problems, SourceFile, Sources, SwitchNode, cabling,
};
use railwright_plan::model::InventoryOrigin;
use railwright_resource::switch::SwitchSystem;
use railwright_system::folder::{self, FolderEntry, FolderEntryKind};
use railwright_system::{environment, files, git};
use railwright_transport::{self as transport, HostAccess};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// All spec files together, and all files of user modules together, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// Files and folders of user modules, each as often as a link leads to it.
const MODULE_ENTRIES_MAX: usize = 10_000;
/// Folders inside each other below `modules`.
const MODULE_DEPTH_MAX: usize = 8;
/// A signing key, in bytes.
pub(super) const KEY_BYTES_MAX: u64 = 1 << 20;

/// An inventory that was read and found valid.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// The folder, as it was given.
    pub path: String,
    /// The same as one word of a command that people are told to type.
    pub word: String,
    /// The folder, absolute and without links.
    pub folder: PathBuf,
    /// The checked spec.
    pub loaded: LoadedSpec,
    /// Files of the user's modules below `modules/`: path (`NAME/module.yaml`) and text, by path.
    pub modules: Vec<(String, String)>,
    /// The signing keys that lie in the inventory, by path as the spec has it; one that is not
    /// there is left out.
    pub keys: BTreeMap<String, Result<String, Diagnostic>>,
    /// The catalogue and the rules, the user's own among them.
    pub knowledge: Knowledge,
    /// Where the spec came from.
    pub origin: InventoryOrigin,
    /// What is allowed but looks wrong, the spec's own warnings among it.
    pub warnings: Vec<Diagnostic>,
    /// Hosts are read as this user, who may do nothing else, whoever the spec names.
    pub read_as: Option<String>,
}

impl Inventory {
    /// A path of the spec as an absolute one: relative to the inventory, or from the home folder
    /// with `~/`.
    pub fn absolute(&self, path: &str) -> String {
        resolve_inventory_path(&self.folder, path)
    }

    /// Where a file of the inventory lies that the spec names, below its folder.
    pub fn find(&self, named: &str) -> Result<PathBuf, NotOpened> {
        outside::find_inventory_file(&self.folder, &self.absolute(named))
    }

    /// How to reach a host, where it is reached.
    pub fn access(&self, host: &Host) -> Option<HostAccess> {
        HostAccess::from_spec(
            host,
            &self.folder,
            environment::find_home_folder().as_deref(),
        )
        .map(|access| self.as_reader(access))
    }

    /// How to reach a switch, where it is reached.
    pub fn access_of_switch(&self, switch: &SwitchNode) -> Option<HostAccess> {
        HostAccess::of_switch(
            switch,
            &self.folder,
            environment::find_home_folder().as_deref(),
        )
        .map(|access| self.as_reader(access))
    }

    /// The system of a switch that railwright reads; nothing where it reads none such.
    pub fn system_of(&self, switch: &str) -> Option<SwitchSystem> {
        let node = self
            .loaded
            .switches
            .iter()
            .find(|node| node.name == switch)?;
        let word = self.loaded.spec.switches.get(node.group)?.os?.word();
        serde_json::from_value(serde_json::Value::from(word)).ok()
    }

    /// As who reads, where somebody else than the spec names does.
    fn as_reader(&self, access: HostAccess) -> HostAccess {
        match &self.read_as {
            Some(user) => access.read_as(user),
            None => access,
        }
    }

    /// How to reach every target, in the spec's order.
    pub fn accesses(&self) -> impl Iterator<Item = HostAccess> {
        let kubernetes = self
            .loaded
            .kubernetes_name()
            .zip(self.loaded.spec.kubernetes.as_ref());
        let cluster = kubernetes.map(|(name, kubernetes)| {
            HostAccess::of_cluster(
                name,
                &self.loaded.spec,
                kubernetes,
                &self.folder,
                environment::find_home_folder().as_deref(),
            )
        });
        let switches = self
            .loaded
            .managed_switches()
            .filter_map(|switch| self.access_of_switch(switch));
        self.loaded
            .hosts
            .iter()
            .filter_map(|host| self.access(host))
            .chain(switches)
            .chain(cluster)
    }

    /// The name by which a user may be called on the command line and in sudoers: nothing in it has
    /// a meaning of its own.
    pub fn user_name(text: &str) -> Result<String, String> {
        let fine = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c));
        if fine && text != "root" {
            Ok(text.to_owned())
        } else {
            Err(
                "a user other than root, in lower case letters, digits, `_`, `-` and `.`"
                    .to_owned(),
            )
        }
    }
}

/// Reads and checks an inventory; all errors of all its files come back in one go.
pub fn read_inventory(path: &Path) -> Result<Inventory, Problems> {
    read_with(path, add_cabling)
}

/// The same without the cabling file, for the command that writes it.
pub fn read_uncabled(path: &Path) -> Result<Inventory, Problems> {
    read_with(path, |_, _, loaded| Ok(loaded))
}

fn read_with(
    path: &Path,
    cabled: impl FnOnce(&str, &Path, LoadedSpec) -> Result<LoadedSpec, Problems>,
) -> Result<Inventory, Problems> {
    let shown = path.display().to_string();
    let alone = |diagnostic: Box<Diagnostic>| Problems {
        diagnostics: vec![*diagnostic],
        sources: Sources::default(),
    };
    let folder = resolve_inventory_folder(path).map_err(alone)?;
    outside::state_is_within(&folder).map_err(alone)?;
    let mut problems = Vec::new();
    let files = spec_files(path, &folder, &mut problems);
    if !problems.is_empty() {
        let rest = spec::problems_of_rest(files);
        problems.extend(rest.diagnostics);
        return Err(Problems {
            diagnostics: problems,
            sources: rest.sources,
        });
    }
    let mut loaded = cabled(&shown, &folder, spec::load_spec(files)?)?;
    let modules = read_module_files(path, &folder).map_err(alone)?;
    let knowledge = Knowledge::read(&shown, &modules)?;
    // The spec's files are looked at only now, because a missing file is worth no word in a spec
    // that is wrong.
    let mut warnings = std::mem::take(&mut loaded.warnings);
    warnings.extend(missing_files(&folder, &loaded));
    let keys = read_signing_keys(&folder, &loaded);
    let origin = determine_origin(&shown, &folder, &loaded, &modules, &keys);
    let word = quote::quote_path(path);
    Ok(Inventory {
        path: shown,
        word,
        folder,
        loaded,
        modules,
        keys,
        knowledge,
        origin,
        warnings,
        read_as: None,
    })
}

/// The commit that all is of that was read: the spec, its modules and its keys.
fn determine_origin(
    shown: &str,
    folder: &Path,
    loaded: &LoadedSpec,
    modules: &[(String, String)],
    keys: &BTreeMap<String, Result<String, Diagnostic>>,
) -> InventoryOrigin {
    let of_modules: Vec<(String, &str)> = modules
        .iter()
        .map(|(path, text)| (format!("modules/{path}"), text.as_str()))
        .collect();
    let below = |named: &Path| {
        Some(
            folder::without_parents(named)?
                .strip_prefix(folder)
                .ok()?
                .to_str()?
                .to_owned(),
        )
    };
    // Names begin with the folder as it was given.
    let of_name = |name: &str| match Path::new(name).strip_prefix(shown) {
        Ok(named) => below(&folder.join(named)),
        Err(_) => below(Path::new(name)),
    };
    let of_spec: Vec<(String, &str)> = loaded
        .sources
        .files()
        .filter_map(|source| Some((of_name(source.name())?, source.text())))
        .collect();
    let of_key = |named: &str| below(Path::new(&resolve_inventory_path(folder, named)));
    let of_keys: Vec<(String, &str)> = keys
        .iter()
        .filter_map(|(named, text)| Some((of_key(named)?, text.as_deref().ok()?)))
        .collect();
    let named_keys: Vec<String> = loaded
        .spec
        .repositories
        .iter()
        .filter_map(|repository| of_key(&repository.key))
        .collect();
    let read: Vec<git::ReadFile<'_>> = of_spec
        .iter()
        .chain(&of_modules)
        .chain(&of_keys)
        .map(|(path, text)| git::ReadFile {
            path,
            bytes: text.as_bytes(),
        })
        .collect();
    let is_of_key = |tracked: &git::TrackedPath<'_>| {
        let rest = |key: &String| {
            key.strip_prefix(tracked.path).map(|rest| {
                if tracked.is_folder {
                    rest.starts_with('/')
                } else {
                    rest.is_empty()
                }
            })
        };
        named_keys.iter().any(|key| rest(key) == Some(true))
    };
    let git::GitRevision { commit, state } = git::read_revision(folder, &read, &|tracked| {
        is_read(tracked) || is_of_key(tracked)
    });
    InventoryOrigin {
        path: shown.to_owned(),
        commit,
        dirty: state,
    }
}

/// The signing keys of the inventory, read once, so that what is planned is what was looked up in
/// the commit.
fn read_signing_keys(
    folder: &Path,
    loaded: &LoadedSpec,
) -> BTreeMap<String, Result<String, Diagnostic>> {
    let (mut keys, mut size) = (BTreeMap::new(), context::KeysSize::default());
    for (index, (named, _)) in context::list_referenced_files(loaded)
        .into_iter()
        .enumerate()
    {
        if keys.contains_key(&named) || size.is_too_large() {
            continue;
        }
        let key = match outside::read_inventory_file(
            folder,
            &resolve_inventory_path(folder, &named),
            KEY_BYTES_MAX,
        ) {
            Ok(bytes) => size
                .add(loaded, index, bytes.len())
                .map(|()| String::from_utf8_lossy(&bytes).into_owned()),
            Err(NotOpened::Unreadable(error)) if error.kind() != io::ErrorKind::NotFound => {
                Err(file_problem(Path::new(&named), &error))
            }
            Err(NotOpened::Unreadable(_) | NotOpened::Outside | NotOpened::Hidden) => continue,
        };
        keys.insert(named, key);
    }
    keys
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

/// The name of a file of the spec.
fn is_spec_name(name: &str) -> bool {
    !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".yml"))
}

fn resolve_inventory_folder(path: &Path) -> Result<PathBuf, Box<Diagnostic>> {
    let shown = path.display();
    let next = "name the folder that holds the spec, such as `inventories/lab`";
    let real = folder::real_path(path).map_err(|error| {
        Diagnostic::error(
            "RW1001",
            format!("the inventory {shown} cannot be opened: {error}"),
        )
        .next(next)
    })?;
    if folder::is_folder(&real) {
        return Ok(real);
    }
    let around = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let next = around.map_or_else(
        || next.to_owned(),
        |parent| format!("name the folder: {}", parent.display()),
    );
    Err(Diagnostic::error(
        "RW1002",
        format!("the inventory {shown} is a file, not a folder"),
    )
    .next(next)
    .into())
}

/// The YAML files at the top of the folder.
fn spec_files(path: &Path, folder: &Path, problems: &mut Vec<Diagnostic>) -> Vec<SourceFile> {
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
    for entry in entries
        .into_iter()
        .filter(|entry| is_spec_name(&entry.name) && entry.kind != FolderEntryKind::Folder)
    {
        found = true;
        // A link leads to another spec file at the top, or to what Kubernetes mounted there.
        let is_spec = |below: &PathBuf| {
            (below.iter().count() == 1 || folder::is_hidden(below))
                && below
                    .file_name()
                    .and_then(OsStr::to_str)
                    .is_some_and(is_spec_name)
        };
        let below = match entry.kind {
            FolderEntryKind::LinkOutside => {
                outside::find_inventory_file(folder, &entry.path.to_string_lossy()).ok()
            }
            _ => entry.path.strip_prefix(folder).ok().map(Path::to_owned),
        };
        let entry = match below.filter(is_spec) {
            _ if entry.kind == FolderEntryKind::Special => entry,
            Some(below) => FolderEntry {
                path: folder.join(below),
                kind: FolderEntryKind::File,
                ..entry
            },
            None => FolderEntry {
                kind: FolderEntryKind::LinkOutside,
                ..entry
            },
        };
        match read_text_file(
            &path.join(&entry.name).display().to_string(),
            folder,
            &entry,
            left,
        ) {
            Ok(file) => {
                left -= file.text.len() as u64;
                read.push(file);
            }
            Err(problem) => problems.push(*problem),
        }
    }
    if !found {
        problems.push(
            Diagnostic::error(
                "RW1003",
                format!("the inventory {} holds no *.yaml file", path.display()),
            )
            .state("nothing was read")
            .next("write a spec there; a small one is inventories/lab in railwright's repository"),
        );
    }
    read
}

/// The spec with the cabling file that it names, if it names one.
fn add_cabling(shown: &str, folder: &Path, loaded: LoadedSpec) -> Result<LoadedSpec, Problems> {
    let Some(named) = loaded.spec.cabling.clone() else {
        return Ok(loaded);
    };
    let name = if named.starts_with(['/', '~']) {
        named.clone()
    } else {
        format!("{}/{named}", shown.trim_end_matches('/'))
    };
    let name = clean_line(&name);
    let write = format!(
        "correct the path, which is relative to the inventory; or railwright discover cabling \
         {shown} -o {name}"
    );
    let copy =
        "copy it into the inventory, where its changes are reviewed with the rest of the spec";
    let path = resolve_inventory_path(folder, &named);
    // Its lines are quoted where they are wrong, so no other file of the inventory may stand for
    // it.
    match outside::find_inventory_file(folder, &path) {
        Ok(below)
            if below
                .extension()
                .is_none_or(|ending| !ending.eq_ignore_ascii_case("csv")) =>
        {
            return Err(cabling::report_unreadable_cabling(
                loaded,
                "is no file *.csv, so it is not read",
                "name the file that holds the cables `NAME.csv`",
            ));
        }
        Ok(below)
            if private_files(&loaded).any(|file| {
                outside::find_inventory_file(folder, &resolve_inventory_path(folder, &file))
                    .is_ok_and(|file| file == below)
            }) =>
        {
            return Err(cabling::report_unreadable_cabling(
                loaded,
                "is named as a secret, so it is not read",
                "name the file that holds the cables",
            ));
        }
        _ => {}
    }
    let bytes = match outside::read_inventory_file(folder, &path, cabling::BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(NotOpened::Outside) => {
            return Err(cabling::report_unreadable_cabling(
                loaded,
                "lies outside of the inventory, so it is not read",
                copy,
            ));
        }
        Err(NotOpened::Hidden) => {
            return Err(cabling::report_unreadable_cabling(
                loaded,
                "is hidden, so it is not read",
                copy,
            ));
        }
        Err(NotOpened::Unreadable(error)) => {
            let (why, next) = match error.kind() {
                io::ErrorKind::NotFound => ("is not there".to_owned(), &*write),
                io::ErrorKind::InvalidInput => ("is no ordinary file".to_owned(), &*write),
                io::ErrorKind::FileTooLarge => (
                    format!("has more than {} MiB", cabling::BYTES_MAX >> 20),
                    "fold its lines with node-sets, or split the cluster into several inventories",
                ),
                _ => (format!("cannot be read: {error}"), "check its permissions"),
            };
            return Err(cabling::report_unreadable_cabling(loaded, &why, next));
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => cabling::load_cabling(loaded, SourceFile { name, text }),
        Err(error) => {
            let why = format!(
                "is not UTF-8 from byte {} on",
                error.utf8_error().valid_up_to()
            );
            Err(cabling::report_unreadable_cabling(
                loaded,
                &why,
                "save the file as UTF-8",
            ))
        }
    }
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

/// All files below `modules`, by path.
fn read_module_files(path: &Path, folder: &Path) -> Result<Vec<(String, String)>, Box<Diagnostic>> {
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

/// A path of the spec as an absolute one, of an inventory in this folder.
pub(super) fn resolve_inventory_path(folder: &Path, path: &str) -> String {
    transport::resolve_spec_path(path, folder, environment::find_home_folder().as_deref())
}
