//! The packages of a simulated host, with apt's or dnf's manners: a lock that others may hold,
//! holds, and lists that must have been fetched.

use super::host::{Answered, Done};
use railwright_resource::action::{PackageManager, PackageVersion};
use railwright_resource::complaint::{LOCKED, MISSING};
use std::collections::{BTreeMap, BTreeSet};

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedInstalledPackage {
    /// Its version.
    pub version: String,
    /// Held at it.
    pub held: bool,
    /// Unpacked and not configured: the run was cut off.
    pub half: bool,
}

/// All packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    /// Who keeps them.
    pub manager: PackageManager,
    /// What is there, by name.
    pub installed: BTreeMap<String, SimulatedInstalledPackage>,
    /// Names whose configuration files stayed behind.
    pub left_over: BTreeSet<String>,
    /// Versions that the repositories have, by name, the newest last.
    pub offered: BTreeMap<String, Vec<String>>,
    /// Repositories of ours whose lists were fetched.
    pub fetched: BTreeSet<String>,
}

impl Packages {
    /// None installed.
    pub fn of(manager: PackageManager) -> Self {
        let (installed, offered) = (BTreeMap::new(), BTreeMap::new());
        Packages {
            manager,
            installed,
            left_over: BTreeSet::new(),
            offered,
            fetched: BTreeSet::new(),
        }
    }

    /// The answer to `Read::Packages`.
    pub fn read(&self, names: &[String]) -> Answered {
        let apt = self.manager == PackageManager::Apt;
        let mut out = format!("manager\t{}\n", if apt { "apt" } else { "dnf" });
        for name in names {
            match self.installed.get(name) {
                Some(SimulatedInstalledPackage {
                    version,
                    held,
                    half,
                }) if apt => {
                    let status = format!(
                        "{}{} ",
                        if *held { 'h' } else { 'i' },
                        if *half { 'U' } else { 'i' }
                    );
                    out.push_str(&format!("dpkg\t{status}\t{name}\t{version}\n"));
                }
                Some(SimulatedInstalledPackage { version, held, .. }) => {
                    out.push_str(&format!("rpm\t{name}\t{version}\n"));
                    if *held {
                        out.push_str(&format!("lock\t{name}-0:{version}.*\n"));
                    }
                }
                None if apt && self.left_over.contains(name) => {
                    out.push_str(&format!("dpkg\trc \t{name}\t0\n"))
                }
                None => {}
            }
        }
        (0, out)
    }

    /// The answer to `Read::RepositoryLists`.
    pub fn read_lists(&self, manager: PackageManager, name: &str) -> Answered {
        let word = match (manager == self.manager, self.fetched.contains(name)) {
            (false, _) => "no manager",
            (true, true) => "fetched",
            (true, false) => "absent",
        };
        (0, format!("{word}\n"))
    }

    /// What another program's lock makes of a run.
    pub fn locked(&self) -> (i32, String) {
        (
            LOCKED,
            "railwright: the package manager is locked by pid 4242 (unattended-upgr); nothing was \
             changed"
                .to_owned(),
        )
    }

    /// Fetches the lists of one repository; none of ours has to be told apart where all are
    /// fetched.
    pub fn refresh(&mut self, repository: Option<&str>) -> Done {
        self.fetched.extend(repository.map(str::to_owned));
        Ok(())
    }

    /// Installs all of them or none.
    pub fn install(&mut self, packages: &[PackageVersion]) -> Done {
        for package in packages {
            self.check_available(package)?;
        }
        // What an earlier run left half done is finished first (`dpkg --configure -a`).
        for installed in self.installed.values_mut() {
            installed.half = false;
        }
        for PackageVersion { name, version } in packages {
            let newest = self.offered.get(name).and_then(|versions| versions.last());
            let present = self.installed.get(name);
            let held = present.is_some_and(|present| present.held);
            let present = present.map(|present| &present.version);
            let Some(version) = version.as_ref().or(newest).or(present).cloned() else {
                continue;
            };
            self.installed.insert(
                name.clone(),
                SimulatedInstalledPackage {
                    version,
                    held,
                    half: false,
                },
            );
            self.left_over.remove(name);
        }
        Ok(())
    }

    /// A package that is installed needs no repository, and neither does its version.
    fn check_available(&self, package: &PackageVersion) -> Done {
        let PackageVersion { name, version } = package;
        let versions = self
            .offered
            .get(name)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let installed = self.installed.get(name);
        if versions.is_empty() && installed.is_none() {
            return Err((
                MISSING,
                format!("railwright: no package {name} in the repositories of this host"),
            ));
        }
        match version {
            Some(version)
                if !versions.contains(version)
                    && installed.is_none_or(|installed| installed.version != *version) =>
            {
                Err((
                    MISSING,
                    format!(
                        "railwright: no version {version} of package {name} in the repositories \
                         of this host"
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// What is left of an installation that was cut off: the first package is unpacked, the rest is
    /// not there.
    pub fn half_install(&mut self, packages: &[PackageVersion]) {
        let Some(first) = packages
            .first()
            .filter(|first| !self.installed.contains_key(&first.name))
        else {
            return;
        };
        let newest = self
            .offered
            .get(&first.name)
            .and_then(|versions| versions.last().cloned());
        let Some(version) = first.version.clone().or(newest) else {
            return;
        };
        if self.manager == PackageManager::Apt {
            self.installed.insert(
                first.name.clone(),
                SimulatedInstalledPackage {
                    version,
                    held: false,
                    half: true,
                },
            );
        }
    }

    /// Removes packages; apt refuses when one is held.
    pub fn remove(&mut self, names: &[String], purge: bool) -> Done {
        let mut present = names.iter().filter_map(|name| self.installed.get(name));
        if self.manager == PackageManager::Apt && present.any(|installed| installed.held) {
            let why = "E: Held packages were changed and -y was used without \
                       --allow-change-held-packages.";
            return Err((100, format!("{why}\nrailwright: {}", &why[3..])));
        }
        for name in names {
            if self.installed.remove(name).is_some()
                && self.manager == PackageManager::Apt
                && !purge
            {
                self.left_over.insert(name.clone());
            }
        }
        Ok(())
    }

    /// Holds packages, or lets them go.
    pub fn hold(&mut self, names: &[String], hold: bool) -> Done {
        for name in names {
            if let Some(installed) = self.installed.get_mut(name) {
                installed.held = hold;
            }
        }
        Ok(())
    }
}
