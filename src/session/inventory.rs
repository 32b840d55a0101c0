//! Reads an inventory folder into what every command needs: the checked spec, the user's modules as
//! raw files, where it all came from, and absolute paths.

use super::cabling_file::add_cabling;
use super::error::describe_file_error;
use super::inventory_file::{self, NotOpened};
use super::knowledge::Knowledge;
use super::missing_files::missing_files;
use super::origin::CommittedFiles;
use super::source_files::{read_module_files, read_spec_files};
use railwright_base::{Diagnostic, Reason, quote};
use railwright_knowledge::module::context;
use railwright_knowledge::spec::{self, Host, LoadedSpec, Problems, Sources, SwitchNode};
use railwright_plan::model::InventoryOrigin;
use railwright_resource::switch::SwitchSystem;
use railwright_system::{environment, folder};
use railwright_transport::{self as transport, TargetAccess};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A signing key, in bytes.
pub(crate) const KEY_BYTES_MAX: u64 = 1 << 20;

/// An inventory that was read and found valid.
#[derive(Debug, Clone)]
pub struct Inventory {
    /// The folder, as it was given.
    pub path: String,
    /// The folder as one word of a command line, quoted where a shell needs it.
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
        inventory_file::find_inventory_file(&self.folder, &self.absolute(named))
    }

    /// How to reach a host, where it is reached.
    pub fn access(&self, host: &Host) -> Option<TargetAccess> {
        TargetAccess::of_host(
            host,
            &self.folder,
            environment::find_home_folder().as_deref(),
        )
        .map(|access| self.as_reader(access))
    }

    /// How to reach a switch, where it is reached.
    pub fn access_of_switch(&self, switch: &SwitchNode) -> Option<TargetAccess> {
        TargetAccess::of_switch(
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
        self.loaded.spec.switches.get(node.group)?.os
    }

    /// As who reads, where somebody else than the spec names does.
    fn as_reader(&self, access: TargetAccess) -> TargetAccess {
        match &self.read_as {
            Some(user) => access.read_as(user),
            None => access,
        }
    }

    /// How to reach every target, in the spec's order.
    pub fn accesses(&self) -> impl Iterator<Item = TargetAccess> {
        let kubernetes = self
            .loaded
            .kubernetes_name()
            .zip(self.loaded.spec.kubernetes.as_ref());
        let cluster = kubernetes.map(|(name, kubernetes)| {
            TargetAccess::of_cluster(
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
    pub fn user_name(text: &str) -> Result<String, Reason> {
        let fine = text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c));
        if fine && text != "root" {
            Ok(text.to_owned())
        } else {
            Err("a user other than root, in lower case letters, digits, `_`, `-` and `.`".into())
        }
    }
}

/// Reads and checks an inventory; all errors of all its files come back in one go.
pub fn read_inventory(path: &Path) -> Result<Inventory, Problems> {
    read_with(path, add_cabling)
}

/// Reads and checks an inventory without its cabling file, for the command that writes that file.
pub fn read_uncabled(path: &Path) -> Result<Inventory, Problems> {
    read_with(path, |_, _, loaded| Ok(loaded))
}

fn read_with(
    path: &Path,
    cabled: impl FnOnce(&str, &Path, LoadedSpec) -> Result<LoadedSpec, Problems>,
) -> Result<Inventory, Problems> {
    let shown = path.display().to_string();
    let folder = resolve_inventory_folder(path).map_err(|problem| single_problem(*problem))?;
    inventory_file::state_is_within(&folder).map_err(|problem| single_problem(*problem))?;
    let mut problems = Vec::new();
    let files = read_spec_files(path, &folder, &mut problems);
    if !problems.is_empty() {
        let rest = spec::problems_of_rest(files);
        problems.extend(rest.diagnostics);
        return Err(Problems {
            diagnostics: problems,
            sources: rest.sources,
        });
    }
    let mut loaded = cabled(&shown, &folder, spec::load_spec(files)?)?;
    let modules = read_module_files(path, &folder).map_err(|problem| single_problem(*problem))?;
    let knowledge = Knowledge::read(&shown, &modules)?;
    // The spec's files are looked at only now, because a missing file is worth no word in a spec
    // that is wrong.
    let mut warnings = std::mem::take(&mut loaded.warnings);
    warnings.extend(missing_files(&folder, &loaded));
    let keys = read_signing_keys(&folder, &loaded);
    let origin = CommittedFiles {
        shown: &shown,
        folder: &folder,
        loaded: &loaded,
        modules: &modules,
        keys: &keys,
    }
    .determine_origin();
    Ok(Inventory {
        path: shown,
        word: quote::quote_path(path),
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

fn single_problem(diagnostic: Diagnostic) -> Problems {
    Problems {
        diagnostics: vec![diagnostic],
        sources: Sources::default(),
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
        let key = match inventory_file::read_inventory_file(
            folder,
            &resolve_inventory_path(folder, &named),
            KEY_BYTES_MAX,
        ) {
            Ok(bytes) => size
                .add(loaded, index, bytes.len())
                .map(|()| String::from_utf8_lossy(&bytes).into_owned()),
            Err(NotOpened::Unreadable(error)) if error.kind() != io::ErrorKind::NotFound => {
                Err(describe_file_error(Path::new(&named), &error))
            }
            Err(NotOpened::Unreadable(_) | NotOpened::Outside | NotOpened::Hidden) => continue,
        };
        keys.insert(named, key);
    }
    keys
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

/// A path of the spec as an absolute one, of an inventory in this folder.
pub(crate) fn resolve_inventory_path(folder: &Path, path: &str) -> String {
    transport::resolve_spec_path(path, folder, environment::find_home_folder().as_deref())
}
