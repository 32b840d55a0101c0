//! What was found in a root, and where a loader looks.

use std::collections::{BTreeMap, BTreeSet};

/// Folders that a loader looks into without being told: glibc's on Debian and on Red Hat's family (ld.so(8)), musl's among them.
pub const STANDARD: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The library that knows providers.
pub const VERBS: &str = "libibverbs.so.1";

/// Where it looks for their names, unless it says otherwise itself.
pub const DRIVERS: &str = "/etc/libibverbs.d";

/// What stands for a provider's name where libibverbs says how its file is called.
pub const NAME: &str = "%s";

/// A root, as far as RDMA is concerned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Folders that the environment names to the loader (`LD_LIBRARY_PATH`); of a pod alone.
    pub of_environment: Vec<String>,
    /// Folders that /etc/ld.so.conf and the files of /etc/ld.so.conf.d name.
    pub of_configuration: Vec<String>,
    /// Ordinary files that were looked for, by path, with their first bytes.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The paths of libraries that the loader's cache holds; nothing where there is no cache.
    pub cache: Option<BTreeSet<String>>,
    /// How a libibverbs says that files of providers are called: `/usr/lib/x86_64-linux-gnu/libibverbs/lib%s-rdmav34.so`, by its own path.
    pub patterns: BTreeMap<String, String>,
    /// Names of drivers, as files of libibverbs' folder have them.
    pub drivers: BTreeSet<String>,
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
pub enum Way {
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
    /// A file of that name is there, and it is no library of this sort of machine.
    NoLibrary(String),
    /// It finds none.
    Nothing,
}

impl Seen {
    /// Every folder that a loader looks into, the first one first.
    pub fn folders(&self) -> impl Iterator<Item = (&str, Way)> {
        let of = |folders, way| std::iter::repeat(way).zip(folders).map(|(way, folder): (Way, &String)| (folder.as_str(), way));
        let told = of(&self.of_environment, Way::Environment).chain(of(&self.of_configuration, Way::Configuration));
        told.chain(STANDARD.map(|folder| (folder, Way::Standard)))
    }

    /// What a loader finds for a name. What is no library is passed over, as ld.so does with other classes.
    pub fn loads(&self, name: &str) -> Loads {
        let mut best = Loads::Nothing;
        for (folder, way) in self.folders() {
            let path = below(folder, name);
            let Some(first) = self.files.get(&path) else { continue };
            let is_known = way != Way::Configuration || self.is_cached(&path) || STANDARD.contains(&folder);
            match (is_library(first), is_known) {
                (true, true) => return Loads::This(path),
                (true, false) => best = Loads::NotCached(path),
                (false, _) if best == Loads::Nothing => best = Loads::NoLibrary(path),
                (false, _) => {}
            }
        }
        best
    }

    /// Where /lib is a link to /usr/lib the cache has either.
    fn is_cached(&self, path: &str) -> bool {
        let bare = |path: &str| path.strip_prefix("/usr").unwrap_or(path).to_owned();
        self.cache.iter().flatten().any(|cached| bare(cached) == bare(path))
    }
}

/// A file of a folder.
pub fn below(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// A library of a machine of 64 bits (elf(5): magic and class).
pub fn is_library(first: &[u8]) -> bool {
    first.starts_with(b"\x7fELF\x02")
}

/// The folder that a line of /etc/ld.so.conf names; `include` and comments name none.
pub fn folder_of(line: &str) -> Option<&str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    (line.starts_with('/') && line.len() < 4096).then_some(line)
}
