//! Kernel modules and kernel settings of a simulated host: what is loaded, what lies on the disk,
//! and what a boot makes of modules-load.d, modprobe.d and sysctl.d.

use super::disk::Disk;
use super::host::{Answered, Done};
use railwright_resource::complaint::MISSING;
use railwright_resource::kernel_module::found::normal_name;
use railwright_resource::sysctl::settings::{FOLDERS, key_path};
use std::collections::{BTreeMap, BTreeSet};

/// Folders of modprobe.d and modules-load.d, the strongest first.
const CONFIGURATION: [&str; 5] = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"];

/// A module on the disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleFile {
    /// Its parameters with their defaults.
    pub parameters: BTreeMap<String, String>,
    /// What is loaded with it and before it.
    pub needs: BTreeSet<String>,
}

/// The running kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kernel {
    /// Settings below /proc/sys by their dotted name, with the value that a boot gives them.
    pub sysctls: BTreeMap<String, String>,
    /// The values that a boot begins with.
    pub defaults: BTreeMap<String, String>,
    /// Modules below /lib/modules.
    pub on_disk: BTreeMap<String, ModuleFile>,
    /// Modules in use, with the parameters that they were loaded with.
    pub loaded: BTreeMap<String, BTreeMap<String, String>>,
    /// Modules that something on the host uses, so that they cannot be unloaded.
    pub used: BTreeSet<String>,
}

/// The dotted name, however the key was written.
pub fn format_dotted_key(key: &str) -> String {
    key_path(key).replace('/', ".")
}

impl Kernel {
    /// The answer to `Read::Sysctl`.
    pub fn read_sysctl(&self, key: &str, disk: &Disk) -> Answered {
        let mut out = self
            .sysctls
            .get(&format_dotted_key(key))
            .map_or("none\n".to_owned(), |value| format!("running\t{value}\n"));
        let path = key_path(key);
        let last = path.rsplit('/').next().unwrap_or_default();
        for folder in FOLDERS {
            for (file, text) in disk.below(folder, ".conf") {
                out.push_str(&format!("file\t{file}\n"));
                for line in text.lines() {
                    if line.contains(last) || line.contains(['*', '?']) {
                        out.push_str(&format!("line\t{file}:{line}\n"));
                    }
                }
            }
        }
        (0, out)
    }

    /// Writes a setting. Where a number stands, the kernel takes nothing but numbers (EINVAL).
    pub fn set_sysctl(&mut self, key: &str, value: &str) -> Done {
        let Some(slot) = self.sysctls.get_mut(&format_dotted_key(key)) else {
            return Err((
                MISSING,
                format!("railwright: the kernel has no setting {key}"),
            ));
        };
        if holds_only_numbers(slot) && !holds_only_numbers(value) {
            return Err((
                1,
                format!("railwright: the kernel refused the value {value} for {key}"),
            ));
        }
        *slot = value.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(())
    }

    /// The answer to `Read::KernelModule`.
    pub fn read_module(&self, name: &str, release: &str, disk: &Disk) -> Answered {
        let mut out = format!("kernel\t{release}\n");
        if let Some(parameters) = self.loaded.get(name) {
            let users: Vec<&str> = self.users(name).collect();
            let count = users.len() + usize::from(self.used.contains(name));
            let users = if users.is_empty() {
                "-".to_owned()
            } else {
                format!("{},", users.join(","))
            };
            out.push_str(&format!(
                "loaded\t{name} 16384 {count} {users} Live 0x0000000000000000\n"
            ));
            for (key, value) in parameters {
                out.push_str(&format!("parameter\t{key}\t{value}\n"));
            }
        }
        if self.on_disk.contains_key(name) {
            out.push_str("disk\n");
        }
        for (word, folder) in [("boot", "modules-load.d"), ("modprobe", "modprobe.d")] {
            for above in CONFIGURATION {
                for (path, text) in disk.below(&format!("{above}/{folder}"), ".conf") {
                    out.push_str(&format!("{word}\t{path}\t\n"));
                    for line in text.lines() {
                        if normal_name(line).contains(name) {
                            out.push_str(&format!("{word}\t{path}\t{line}\n"));
                        }
                    }
                }
            }
        }
        (0, out)
    }

    fn users<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.loaded.keys().map(String::as_str).filter(move |other| {
            let file = self.on_disk.get(*other);
            file.is_some_and(|file| file.needs.contains(name))
        })
    }

    /// Loads a module and what it needs, with the options of modprobe.d; one that is loaded stays
    /// as it is.
    pub fn load(
        &mut self,
        name: &str,
        given: &BTreeMap<String, String>,
        release: &str,
        disk: &Disk,
    ) -> Done {
        let name = normal_name(name);
        let Some(file) = self.on_disk.get(&name).cloned() else {
            return Err((
                MISSING,
                format!("railwright: the kernel {release} has no module {name}"),
            ));
        };
        if self.loaded.contains_key(&name) {
            return Ok(());
        }
        for needed in &file.needs {
            self.load(needed, &BTreeMap::new(), release, disk)?;
        }
        let mut parameters = file.parameters.clone();
        let mut options = collect_module_options(&name, disk);
        options.extend(given.clone());
        // What a module does not know is reported by the kernel and ignored.
        options.retain(|(key, _)| file.parameters.contains_key(key));
        parameters.extend(options);
        self.loaded.insert(name, parameters);
        Ok(())
    }

    /// Unloads a module that nobody uses.
    pub fn unload(&mut self, name: &str) -> Done {
        let name = normal_name(name);
        if !self.loaded.contains_key(&name) {
            return Ok(());
        }
        let users: Vec<&str> = self.users(&name).collect();
        if !users.is_empty() || self.used.contains(&name) {
            let by = if users.is_empty() {
                String::new()
            } else {
                format!(" by: {}", users.join(" "))
            };
            return Err((
                1,
                format!(
                    "railwright: the module {name} does not unload: rmmod: ERROR: Module {name} is \
                     in use{by}"
                ),
            ));
        }
        self.loaded.remove(&name);
        Ok(())
    }

    /// What a boot makes of the running kernel.
    pub fn boot(&mut self, release: &str, disk: &Disk) {
        self.loaded.clear();
        self.used.clear();
        for (_, text) in select_effective_files(disk, "modules-load.d") {
            for name in list_effective_lines(&text) {
                // systemd-modules-load goes on when one is missing.
                let _ = self.load(name, &BTreeMap::new(), release, disk);
            }
        }
        self.sysctls = self.defaults.clone();
        for (_, text) in effective_in(disk, &FOLDERS.map(str::to_owned)) {
            for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
                let _ = self.set_sysctl(key.trim().trim_start_matches('-'), value.trim());
            }
        }
    }
}

/// The lines of a text that are neither empty nor comments.
fn list_effective_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
}

fn holds_only_numbers(text: &str) -> bool {
    text.split_whitespace()
        .all(|word| word.parse::<i64>().is_ok())
}

/// The options that modprobe.d gives a module, in the order of the files.
fn collect_module_options(name: &str, disk: &Disk) -> Vec<(String, String)> {
    let mut options = Vec::new();
    for (_, text) in select_effective_files(disk, "modprobe.d") {
        for line in list_effective_lines(&text) {
            let mut words = line.split_whitespace();
            if words.next() != Some("options")
                || words.next().map(normal_name).as_deref() != Some(name)
            {
                continue;
            }
            for (key, value) in words.filter_map(|word| word.split_once('=')) {
                options.push((normal_name(key), value.trim_matches('"').to_owned()));
            }
        }
    }
    options
}

/// The files that count: by name, and of each name the one in the strongest folder (sysctl.d(5),
/// modules-load.d(5)).
fn select_effective_files(disk: &Disk, folder: &str) -> Vec<(String, String)> {
    effective_in(
        disk,
        &CONFIGURATION.map(|above| format!("{above}/{folder}")),
    )
}

fn effective_in(disk: &Disk, folders: &[String]) -> Vec<(String, String)> {
    let mut by_name: BTreeMap<String, (String, String)> = BTreeMap::new();
    for folder in folders {
        for (path, text) in disk.below(folder, ".conf") {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            by_name.entry(name).or_insert_with(|| (path.clone(), text));
        }
    }
    by_name.into_values().collect()
}
