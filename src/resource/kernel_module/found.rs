//! The answer of `Read::KernelModule`, decoded: how a module is loaded, with which parameters, and
//! what the disk says.

use crate::sections::of_file;
use crate::{Read, ReadResults};
use railwright_base::Reason;
use std::collections::{BTreeMap, BTreeSet};

/// A line of a configuration file that names the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationLine {
    /// The file.
    pub path: String,
    /// The line.
    pub text: String,
}

/// How a module stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundModule {
    /// In /proc/modules.
    pub loaded: bool,
    /// How many uses keep it from being unloaded.
    pub references: u64,
    /// The modules among them.
    pub users: Vec<String>,
    /// Part of the kernel image itself.
    pub builtin: bool,
    /// Below /lib/modules of the running kernel.
    pub on_disk: bool,
    /// The running kernel's release.
    pub kernel: String,
    /// Parameters below /sys/module.
    pub parameters: BTreeMap<String, String>,
    /// Parameters there that we may not read.
    pub hidden: BTreeSet<String>,
    /// Netdevs that its driver serves.
    pub netdevs: Vec<String>,
    /// The host boots with an initial RAM disk, which holds a copy of modprobe.d.
    pub ram_disk: bool,
    /// Lines of modules-load.d, in the order in which they are read.
    pub at_boot: Vec<ConfigurationLine>,
    /// Lines of modprobe.d, in the order in which they are read.
    pub modprobe: Vec<ConfigurationLine>,
}

/// The kernel writes `_` where file names may have `-`.
pub fn normal_name(name: &str) -> String {
    name.replace('-', "_")
}

impl FoundModule {
    /// The module by the answers; the error fits after "unknown:".
    pub fn of(name: &str, answers: &ReadResults) -> Result<Self, Reason> {
        match answers.output(&Read::KernelModule {
            name: normal_name(name),
        })? {
            (0, out) => Ok(parse_module_facts(&normal_name(name), out)),
            (code, _) => Err(format!("the module could not be read (exit {code})").into()),
        }
    }

    /// Loaded, or part of the kernel.
    pub fn is_there(&self) -> bool {
        self.loaded || self.builtin
    }

    /// As it stands once a file of modprobe.d holds this text, or is gone.
    pub fn with_modprobe_file(&self, path: &str, text: &str) -> Self {
        let mut module = self.clone();
        module.modprobe.retain(|line| line.path != path);
        module
            .modprobe
            .extend(text.lines().map(|line| ConfigurationLine {
                path: path.to_owned(),
                text: line.to_owned(),
            }));
        module
    }

    /// The value that the options of modprobe.d give a parameter, and the file that decides.
    pub fn option(&self, module: &str, key: &str) -> Option<(String, String)> {
        let mut found = None;
        for line in &self.modprobe {
            let mut words = line.text.split_whitespace();
            if words.next() != Some("options")
                || words.next().map(normal_name) != Some(normal_name(module))
            {
                continue;
            }
            for word in words {
                let (name, value) = word.split_once('=').unwrap_or((word, ""));
                if normal_name(name) == normal_name(key) {
                    found = Some((value.trim_matches('"').to_owned(), line.path.clone()));
                }
            }
        }
        found
    }

    /// A file with options of the module that go on in the next line; what stands there is not
    /// read.
    pub fn goes_on(&self, module: &str) -> Option<&str> {
        let mut lines = self.modprobe.iter();
        let line =
            lines.find(|line| line.is_about("options", module) && line.text.ends_with('\\'))?;
        Some(&line.path)
    }

    /// The file that blacklists the module.
    pub fn blacklisted_by(&self, module: &str) -> Option<&str> {
        let mut lines = self.modprobe.iter();
        let line = lines.find(|line| line.is_about("blacklist", module))?;
        Some(&line.path)
    }
}

impl ConfigurationLine {
    /// True for a line `COMMAND MODULE ...` of modprobe.d.
    fn is_about(&self, command: &str, module: &str) -> bool {
        let mut words = self.text.split_whitespace();
        words.next() == Some(command) && words.next().map(normal_name) == Some(normal_name(module))
    }
}

fn parse_module_facts(module: &str, out: &str) -> FoundModule {
    let mut found = FoundModule::default();
    let mut paths: BTreeSet<&str> = BTreeSet::new();
    let mut files: BTreeMap<(&'static str, String), (usize, String, Vec<String>)> = BTreeMap::new();
    for line in out.lines() {
        let (word, rest) = line.split_once('\t').unwrap_or((line, ""));
        match word {
            "kernel" => found.kernel = rest.to_owned(),
            "loaded" => take_loaded(rest, &mut found),
            "builtin" => found.builtin = true,
            "disk" => found.on_disk = true,
            "ram_disk" => found.ram_disk = true,
            "netdev" => found.netdevs.push(rest.to_owned()),
            "parameter" => {
                if let Some((key, value)) = rest.split_once('\t') {
                    found.parameters.insert(normal_name(key), value.to_owned());
                }
            }
            "hidden" => drop(found.hidden.insert(normal_name(rest))),
            "boot" | "modprobe" => {
                let (path, text) = rest.split_once('\t').unwrap_or((rest, ""));
                paths.insert(path);
                take_line(path, text, &mut files);
            }
            "line" => {
                if let Some((path, text)) = of_file(rest, |path| paths.contains(path)) {
                    take_line(path, text, &mut files);
                }
            }
            _ => {}
        }
    }
    for ((kind, _), (_, path, lines)) in files {
        for text in lines {
            let line = ConfigurationLine {
                path: path.clone(),
                text,
            };
            match kind {
                "boot" if normal_name(line.text.trim()) == module => found.at_boot.push(line),
                "boot" => {}
                _ => found.modprobe.push(line),
            }
        }
    }
    found
}

/// `name size references users state address` of /proc/modules; users end with a comma, `-` is
/// none.
fn take_loaded(rest: &str, found: &mut FoundModule) {
    let fields: Vec<&str> = rest.split_whitespace().collect();
    found.loaded = true;
    found.references = fields
        .get(2)
        .and_then(|count| count.parse().ok())
        .unwrap_or(0);
    let users = fields.get(3).copied().unwrap_or("-");
    found.users = users
        .split(',')
        .filter(|user| !user.is_empty() && *user != "-")
        .map(str::to_owned)
        .collect();
}

/// Both directories families have the rule of systemd: a file name in an earlier folder hides it in
/// a later one, and files are read by name.
fn take_line(
    path: &str,
    text: &str,
    files: &mut BTreeMap<(&'static str, String), (usize, String, Vec<String>)>,
) {
    let Some((folder, file)) = path.rsplit_once('/') else {
        return;
    };
    let kind = if folder.ends_with("/modules-load.d") {
        "boot"
    } else {
        "modprobe"
    };
    let rank = ["/etc/", "/run/", "/usr/local/", "/usr/", "/lib/"]
        .iter()
        .position(|start| folder.starts_with(start))
        .unwrap_or(9);
    let slot = files
        .entry((kind, file.to_owned()))
        .or_insert_with(|| (rank, path.to_owned(), Vec::new()));
    if rank < slot.0 {
        *slot = (rank, path.to_owned(), Vec::new());
    }
    let text = text.trim();
    if slot.1 == path && !text.is_empty() && !text.starts_with(['#', ';']) {
        slot.2.push(text.to_owned());
    }
}

/// The values of a parameter are the same when their texts are, or when both are the same boolean
/// (the kernel shows `Y` where `1` was written).
pub fn same_value(desired: &str, actual: &str) -> bool {
    desired == actual
        || match desired {
            "Y" | "y" | "1" | "true" | "on" => actual == "Y",
            "N" | "n" | "0" | "false" | "off" => actual == "N",
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    // /proc/modules and /sys/module of Linux 6.1 (Debian 12)
    const LOADED: &str = "kernel\t6.1.0-37-amd64\n\
                          loaded\tib_core 450560 8 rdma_rxe,rdma_cm,iw_cm,ib_cm, Live \
                          0xffffffffc0a00000\n\
                          disk\tkernel/drivers/infiniband/core/ib_core.ko\n\
                          parameter\tnetns_mode\tY\n\
                          parameter\trecv_queue_size\t512\n\
                          boot\t/etc/modules-load.d/railwright-ib_core.conf\tib-core\n\
                          boot\t/etc/modules-load.d/modules.conf\t# a comment\n\
                          modprobe\t/usr/lib/modprobe.d/rdma.conf\toptions ib_core netns_mode=1\n\
                          modprobe\t/etc/modprobe.d/rdma.conf\toptions ib-core netns-mode=0 x=1\n\
                          modprobe\t/etc/modprobe.d/zz.conf\tblacklist ib_core\n";

    #[test]
    fn decodes_names_users_and_the_order_of_files() {
        let found = parse_module_facts("ib_core", LOADED);
        assert_eq!(
            (found.loaded, found.references, found.on_disk, found.builtin),
            (true, 8, true, false)
        );
        assert_eq!(found.users, ["rdma_rxe", "rdma_cm", "iw_cm", "ib_cm"]);
        assert_eq!(found.at_boot.len(), 1);
        assert_eq!(
            found.option("ib_core", "netns_mode"),
            Some(("0".into(), "/etc/modprobe.d/rdma.conf".into()))
        );
        assert_eq!(
            found.blacklisted_by("ib-core"),
            Some("/etc/modprobe.d/zz.conf")
        );
        assert!(!parse_module_facts("x", "kernel\t6.1\nbuiltin\n").loaded);
    }

    #[test]
    fn booleans_are_the_same_however_they_are_written() {
        for (desired, actual, same) in [
            ("1", "Y", true),
            ("0", "N", true),
            ("1", "N", false),
            ("512", "512", true),
            ("1", "1", true),
            ("Y", "1", false),
        ] {
            assert_eq!(same_value(desired, actual), same, "{desired} {actual}");
        }
    }
}
