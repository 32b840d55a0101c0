//! What was found in a root, and where a loader looks.

use super::machine::{self, ElfMachine};
use std::collections::{BTreeMap, BTreeSet};

/// The library that knows providers.
pub const VERBS: &str = "libibverbs.so.1";

/// Where it looks for their names, unless it says otherwise itself.
pub const DRIVERS: &str = "/etc/libibverbs.d";

/// Programs that every image with a shell has: they are of the machine that the image is for.
/// Without one of them its libc says it.
pub const PROGRAMS: [&str; 3] = ["/bin/sh", "/usr/bin/env", "/bin/busybox"];

/// The C library, by the name that the loader knows it by.
pub const LIBC: &str = "libc.so.6";

/// What stands for a provider's name where libibverbs says how its file is called.
pub const NAME: &str = "%s";

/// A root, as far as RDMA is concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageContents {
    /// Folders that the environment names to the loader (`LD_LIBRARY_PATH`); of a pod alone.
    pub of_environment: Vec<String>,
    /// Folders that /etc/ld.so.conf and the files of /etc/ld.so.conf.d name.
    pub of_configuration: Vec<String>,
    /// Ordinary files that were looked for, by path, with their first bytes.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The paths of libraries that the loader's cache holds; nothing where there is no cache.
    pub cache: Option<BTreeSet<String>>,
    /// How a libibverbs says that files of providers are called:
    /// `/usr/lib/x86_64-linux-gnu/libibverbs/lib%s-rdmav34.so`, by its own path.
    pub patterns: BTreeMap<String, String>,
    /// The folder in which a libibverbs says that it looks for names of drivers, by its own path.
    pub driver_folders: BTreeMap<String, String>,
    /// Names of drivers, as files of such a folder have them, by folder.
    pub drivers: BTreeMap<String, BTreeSet<String>>,
    /// Words of ID and ID_LIKE in os-release.
    pub distribution: Vec<String>,
    /// What only a pod has.
    pub pod: Option<PodSeen>,
}

/// What a pod was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodSeen {
    /// Names in /dev/infiniband, with whether each is a device.
    pub devices: BTreeMap<String, bool>,
    /// How much memory its processes may lock, as `ulimit -l` says it.
    pub memory_lock: String,
    /// The capabilities of its processes, as CapEff of /proc/self/status.
    pub capabilities: Option<u64>,
}

/// How a folder comes to be looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoaderFolderOrigin {
    /// The environment names it.
    Environment,
    /// A configuration names it: what is in it counts once the cache holds it.
    Configuration,
    /// The loader knows it.
    Standard,
}

/// What a loader makes of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Loads {
    /// It loads this one.
    This(String),
    /// It would find this one if ldconfig had been run.
    NotCached(String),
    /// A file of that name is there, and it is no library of 64 bits.
    NoLibrary(String),
    /// A library of that name is there, for another machine than the image.
    OfAnother(String, ElfMachine),
    /// It finds none.
    Nothing,
}

impl ImageContents {
    /// Every folder that some loader looks into, the first one first: where files are looked for
    /// before it is known which loader it is.
    pub fn every_folder(&self) -> Vec<String> {
        [
            self.of_environment.clone(),
            self.of_configuration.clone(),
            machine::list_all_standard_folders(),
        ]
        .concat()
    }

    /// The machine that the image is for; nothing where neither a program nor a libc says it.
    pub fn machine(&self) -> Option<ElfMachine> {
        for program in PROGRAMS {
            if let Some(machine) = self.find_file_machine(program) {
                return Some(machine);
            }
        }
        let mut of_libc = None;
        for folder in machine::list_all_standard_folders() {
            let Some(machine) = self.find_file_machine(&join_path(&folder, LIBC)) else {
                continue;
            };
            if of_libc.is_some_and(|known| known != machine) {
                return None;
            }
            of_libc = Some(machine);
        }
        of_libc
    }

    fn find_file_machine(&self, path: &str) -> Option<ElfMachine> {
        ElfMachine::of(self.files.get(path)?)
    }

    /// A library for the image's machine, or for any where that is not known.
    pub fn is_ours(&self, first: &[u8]) -> bool {
        let Some(machine) = ElfMachine::of(first) else {
            return false;
        };
        self.machine().is_none_or(|ours| ours == machine)
    }

    /// Every folder that the image's loader looks into, the first one first.
    fn folders(&self) -> (Vec<(String, LoaderFolderOrigin)>, Vec<String>) {
        let standard = machine::list_standard_folders(&self.distribution, self.machine());
        let by_origin = [
            (&self.of_environment, LoaderFolderOrigin::Environment),
            (&self.of_configuration, LoaderFolderOrigin::Configuration),
            (&standard, LoaderFolderOrigin::Standard),
        ];
        let mut folders = Vec::new();
        for (named, origin) in by_origin {
            for folder in named {
                folders.push((folder.clone(), origin));
            }
        }
        (folders, standard)
    }

    /// What a loader finds for a name. What is no library for its machine is passed over, as ld.so
    /// does.
    pub fn loads(&self, name: &str) -> Loads {
        let mut best = Loads::Nothing;
        let (folders, standard) = self.folders();
        for (folder, way) in folders {
            let path = join_path(&folder, name);
            let Some(first) = self.files.get(&path) else {
                continue;
            };
            let is_known = way != LoaderFolderOrigin::Configuration
                || self.is_cached(&path)
                || standard.contains(&folder);
            match (ElfMachine::of(first), is_known) {
                (Some(_), true) if self.is_ours(first) => return Loads::This(path),
                (Some(_), false) if self.is_ours(first) => best = Loads::NotCached(path),
                (Some(machine), _) if matches!(best, Loads::Nothing | Loads::NoLibrary(_)) => {
                    best = Loads::OfAnother(path, machine)
                }
                (None, _) if best == Loads::Nothing => best = Loads::NoLibrary(path),
                _ => {}
            }
        }
        best
    }

    /// Where /lib is a link to /usr/lib the cache has either.
    fn is_cached(&self, path: &str) -> bool {
        let Some(cache) = &self.cache else {
            return false;
        };
        cache
            .iter()
            .any(|cached| without_usr(cached) == without_usr(path))
    }
}

/// `/lib/x` of `/usr/lib/x`.
fn without_usr(path: &str) -> &str {
    path.strip_prefix("/usr").unwrap_or(path)
}

/// A file of a folder.
pub fn join_path(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// The folder that a line of /etc/ld.so.conf names; `include` and comments name none.
pub fn folder_of(line: &str) -> Option<&str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    (line.starts_with('/') && line.len() < 4096).then_some(line)
}
