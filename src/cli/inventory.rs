//! Reads an inventory folder into what every command needs: the checked spec, the user's modules as raw files, where
//! it all came from, and absolute paths.

use super::inventory_files::missing_files;
use super::knowledge::Knowledge;
use super::outside::{self, NotOpened};
use crate::base::{Diagnostic, quote};
use crate::plan::model::InventoryOrigin;
use crate::resource::switch::System;
use crate::spec::{self, Host, Loaded, Problems, SourceFile, Sources, SwitchNode, cabling};
use crate::system::folder::{self, Entry, EntryKind};
use crate::system::{environment, files, git};
use crate::transport::{self, HostAccess, TargetContact};
use std::path::{Path, PathBuf};

/// All spec files together, and all files of user modules together, in bytes.
const BYTES_MAX: u64 = 64 << 20;
/// Files of user modules.
const MODULE_FILES_MAX: usize = 10_000;
/// Folders inside each other below `modules`.
const MODULE_DEPTH_MAX: usize = 8;

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
    pub loaded: Loaded,
    /// Files of the user's modules below `modules/`: path (`NAME/module.yaml`) and text, by path.
    pub modules: Vec<(String, String)>,
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
    /// A path of the spec as an absolute one: relative to the inventory, or from the home folder with `~/`.
    pub fn absolute(&self, path: &str) -> String {
        absolute(&self.folder, path)
    }

    /// Where a file lies that the spec names, for somebody who opens it: within the folder, links followed, or anywhere once targets are contacted.
    pub fn opened(&self, named: &str, contact: Option<TargetContact>) -> Result<PathBuf, NotOpened> {
        outside::opened(&self.folder, &self.absolute(named), contact)
    }

    /// How to reach a host, where it is reached.
    pub fn access(&self, host: &Host) -> Option<HostAccess> {
        HostAccess::from_spec(host, &self.folder, environment::home().as_deref()).map(|access| self.as_reader(access))
    }

    /// How to reach a switch, where it is reached.
    pub fn access_of_switch(&self, switch: &SwitchNode) -> Option<HostAccess> {
        HostAccess::of_switch(switch, &self.folder, environment::home().as_deref()).map(|access| self.as_reader(access))
    }

    /// The system of a switch that railwright reads; nothing where it reads none such.
    pub fn system_of(&self, switch: &str) -> Option<System> {
        let node = self.loaded.switches.iter().find(|node| node.name == switch)?;
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
        let kubernetes = self.loaded.kubernetes_name().zip(self.loaded.spec.kubernetes.as_ref());
        let cluster = kubernetes.map(|(name, kubernetes)| {
            HostAccess::of_cluster(name, &self.loaded.spec, kubernetes, &self.folder, environment::home().as_deref())
        });
        let switches = self.loaded.managed_switches().filter_map(|switch| self.access_of_switch(switch));
        self.loaded.hosts.iter().filter_map(|host| self.access(host)).chain(switches).chain(cluster)
    }

    /// The name by which a user may be called on the command line and in sudoers: nothing in it has a meaning of its own.
    pub fn user_name(text: &str) -> Result<String, String> {
        let fine = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c));
        if fine && text != "root" {
            Ok(text.to_owned())
        } else {
            Err("a user other than root, in lower case letters, digits, `_`, `-` and `.`".to_owned())
        }
    }
}

/// Reads and checks an inventory; all errors of all its files come back in one go.
pub fn read(path: &Path) -> Result<Inventory, Problems> {
    read_with(path, cabled)
}

/// The same without the cabling file, for the command that writes it.
pub fn read_uncabled(path: &Path) -> Result<Inventory, Problems> {
    read_with(path, |_, _, loaded| Ok(loaded))
}

fn read_with(path: &Path, cabled: impl FnOnce(&str, &Path, Loaded) -> Result<Loaded, Problems>) -> Result<Inventory, Problems> {
    let shown = path.display().to_string();
    let alone = |diagnostic: Box<Diagnostic>| Problems { diagnostics: vec![*diagnostic], sources: Sources::default() };
    let folder = folder(path).map_err(alone)?;
    outside::state_is_within(&folder).map_err(alone)?;
    let mut problems = Vec::new();
    let files = spec_files(path, &folder, &mut problems);
    if !problems.is_empty() {
        let rest = spec::problems_of_rest(files);
        problems.extend(rest.diagnostics);
        return Err(Problems { diagnostics: problems, sources: rest.sources });
    }
    let mut loaded = cabled(&shown, &folder, spec::load(files)?)?;
    let modules = modules(path, &folder).map_err(alone)?;
    let knowledge = Knowledge::read(&shown, &modules)?;
    // The spec's files are looked at only now, because a missing file is worth no word in a spec that is wrong.
    let mut warnings = std::mem::take(&mut loaded.warnings);
    warnings.extend(missing_files(&folder, &loaded));
    let origin = origin(&shown, &folder, &loaded, &modules);
    Ok(Inventory { path: shown, word: quote::path(path), folder, loaded, modules, knowledge, origin, warnings, read_as: None })
}

/// The commit that the spec and its modules are of, if they are.
fn origin(shown: &str, folder: &Path, loaded: &Loaded, modules: &[(String, String)]) -> InventoryOrigin {
    let of_modules: Vec<(String, &str)> = modules.iter().map(|(path, text)| (format!("modules/{path}"), text.as_str())).collect();
    // Names begin with the folder as it was given.
    let below = |name: &str| {
        let named = Path::new(name).strip_prefix(shown).map_or_else(|_| PathBuf::from(name), |below| folder.join(below));
        Some(folder::without_parents(&named)?.strip_prefix(folder).ok()?.to_str()?.to_owned())
    };
    let of_spec: Vec<(String, &str)> = loaded.sources.files().filter_map(|source| Some((below(source.name())?, source.text()))).collect();
    let read: Vec<git::ReadFile<'_>> =
        of_spec.iter().chain(&of_modules).map(|(path, text)| git::ReadFile { path, bytes: text.as_bytes() }).collect();
    let git::Revision { commit, state } = git::revision(folder, &read, &is_read);
    InventoryOrigin { path: shown.to_owned(), commit, dirty: state }
}

/// Whether a path of a commit is one that is read where it is there: YAML at the top, everything below `modules`.
fn is_read(tracked: &git::TrackedPath<'_>) -> bool {
    match tracked.path.split_once('/') {
        None if tracked.is_folder => tracked.path == "modules",
        None => is_spec_name(tracked.path),
        Some((first, below)) => first == "modules" && below.split('/').all(|part| !part.starts_with('.')),
    }
}

/// The name of a file of the spec.
fn is_spec_name(name: &str) -> bool {
    !name.starts_with('.') && (name.ends_with(".yaml") || name.ends_with(".yml"))
}

fn folder(path: &Path) -> Result<PathBuf, Box<Diagnostic>> {
    let shown = path.display();
    let next = "name the folder that holds the spec, such as `inventories/lab`";
    let real = folder::real_path(path)
        .map_err(|error| Diagnostic::error("RW1001", format!("the inventory {shown} cannot be opened: {error}")).next(next))?;
    if folder::is_folder(&real) {
        return Ok(real);
    }
    let around = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let next = around.map_or_else(|| next.to_owned(), |parent| format!("name the folder: {}", parent.display()));
    Err(Diagnostic::error("RW1002", format!("the inventory {shown} is a file, not a folder")).next(next).into())
}

/// The YAML files at the top of the folder.
fn spec_files(path: &Path, folder: &Path, problems: &mut Vec<Diagnostic>) -> Vec<SourceFile> {
    let entries = match folder::entries(folder, folder) {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(unreadable(&path.display().to_string(), &error));
            return Vec::new();
        }
    };
    let mut left = BYTES_MAX;
    let mut read = Vec::new();
    let mut found = false;
    for entry in entries.into_iter().filter(|entry| is_spec_name(&entry.name) && entry.kind != EntryKind::Folder) {
        found = true;
        match text(&path.join(&entry.name).display().to_string(), &entry, left) {
            Ok(file) => {
                left -= file.text.len() as u64;
                read.push(file);
            }
            Err(problem) => problems.push(*problem),
        }
    }
    if !found {
        problems.push(
            Diagnostic::error("RW1003", format!("the inventory {} holds no *.yaml file", path.display()))
                .state("nothing was read")
                .next("write a spec there; a small one is inventories/lab in railwright's repository"),
        );
    }
    read
}

/// The spec with the cabling file that it names, if it names one.
fn cabled(shown: &str, folder: &Path, loaded: Loaded) -> Result<Loaded, Problems> {
    let Some(named) = loaded.spec.cabling.clone() else { return Ok(loaded) };
    let name = if named.starts_with(['/', '~']) { named.clone() } else { format!("{}/{named}", shown.trim_end_matches('/')) };
    let write = format!("correct the path, which is relative to the inventory; or railwright discover cabling {shown} -o {name}");
    let path = match outside::opened(folder, &absolute(folder, &named), None) {
        Ok(path) => path,
        Err(NotOpened::NotThere(_)) => return Err(cabling::unreadable(loaded, "is not there", &write)),
        Err(NotOpened::Outside) => {
            let next = "copy it into the inventory, where its changes are reviewed with the rest of the spec";
            return Err(cabling::unreadable(loaded, "lies outside of the inventory, so it is not read", next));
        }
    };
    if !folder::is_file(&path) {
        return Err(cabling::unreadable(loaded, "is no ordinary file", &write));
    }
    let bytes = match files::read_limited(&path, cabling::BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
            let why = format!("has more than {} MiB", cabling::BYTES_MAX >> 20);
            return Err(cabling::unreadable(loaded, &why, "fold its lines with node-sets, or split the cluster into several inventories"));
        }
        Err(error) => return Err(cabling::unreadable(loaded, &format!("cannot be read: {error}"), "check its permissions")),
    };
    match String::from_utf8(bytes) {
        Ok(text) => cabling::read(loaded, SourceFile { name, text }),
        Err(error) => {
            let why = format!("is not UTF-8 from byte {} on", error.utf8_error().valid_up_to());
            Err(cabling::unreadable(loaded, &why, "save the file as UTF-8"))
        }
    }
}

/// One file as text; `limit` in bytes.
fn text(name: &str, entry: &Entry, limit: u64) -> Result<SourceFile, Box<Diagnostic>> {
    let refused = |why: &str, next: &str| Err(Diagnostic::error("RW1007", format!("{name} {why}")).next(next).into());
    match entry.kind {
        EntryKind::LinkOutside => {
            return refused("is a link that leads out of the inventory or nowhere", "copy the file into the inventory");
        }
        EntryKind::Special | EntryKind::Folder => return refused("is no ordinary file", "remove it, or write a file in its place"),
        EntryKind::File => {}
    }
    let bytes = files::read_limited(&entry.path, limit).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge => {
            Diagnostic::error("RW1006", format!("with {name} the inventory has more than {} MiB", BYTES_MAX >> 20))
                .next("split the cluster into several inventories")
        }
        _ => unreadable(name, &error),
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Diagnostic::error("RW1004", format!("{name} is not UTF-8 from byte {} on", error.utf8_error().valid_up_to()))
            .next("save the file as UTF-8")
    })?;
    Ok(SourceFile { name: name.to_owned(), text })
}

fn unreadable(name: &str, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error("RW1004", format!("{name} cannot be read: {error}")).next("check the file and its permissions")
}

/// All files below `modules`, by path.
fn modules(path: &Path, folder: &Path) -> Result<Vec<(String, String)>, Box<Diagnostic>> {
    let root = folder.join("modules");
    let mut modules = Vec::new();
    match folder::real_path(&root) {
        Ok(real) if !real.starts_with(folder) => {
            let message = format!("{} is a link that leads out of the inventory", path.join("modules").display());
            return Err(Diagnostic::error("RW1007", message).next("copy the folder into the inventory").into());
        }
        Ok(real) if folder::is_folder(&real) => {}
        _ => return Ok(modules),
    }
    let mut left = BYTES_MAX;
    let mut open = vec![(root, String::new(), 0)];
    while let Some((below, prefix, depth)) = open.pop() {
        let shown = |name: &str| path.join("modules").join(format!("{prefix}{name}")).display().to_string();
        for entry in folder::entries(&below, folder).map_err(|error| unreadable(&shown(""), &error))? {
            if entry.name.starts_with('.') {
                continue;
            }
            let inner = format!("{prefix}{}", entry.name);
            if entry.kind == EntryKind::Folder && depth < MODULE_DEPTH_MAX {
                open.push((entry.path, format!("{inner}/"), depth + 1));
                continue;
            }
            let file = text(&shown(&entry.name), &entry, left)?;
            left -= file.text.len() as u64;
            modules.push((inner, file.text));
            if modules.len() > MODULE_FILES_MAX {
                let message = format!("{} holds more than {MODULE_FILES_MAX} files", shown(""));
                return Err(Diagnostic::error("RW1006", message).next("keep only modules there").into());
            }
        }
    }
    modules.sort();
    Ok(modules)
}

/// A path of the spec as an absolute one, of an inventory in this folder.
pub(super) fn absolute(folder: &Path, path: &str) -> String {
    transport::absolute(path, folder, environment::home().as_deref())
}
