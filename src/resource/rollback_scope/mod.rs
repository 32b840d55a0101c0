//! The automatic rollback of a change on the path of our own connection: what of the host it keeps
//! beforehand, so that the host itself puts it back unless the change is confirmed over a new
//! connection.
//!
//! It does not undo actions one by one: it keeps what they touch as it is right before them, and
//! puts that back as a whole, however far they came. So it needs no inverse of what it does not
//! know, and can run twice. What others put there meanwhile stays: of what was added, only what the
//! change itself brings is taken away.

pub mod path;
mod routes;
pub mod script;

pub use path::find_rollback_reason;

use super::action::NetworkManagerKind;
use super::body::read_body;
use super::file::base64;
use super::switch::SwitchSystem;
use super::switch::edit::SwitchEdit;
use super::sysctl::SysctlBody;
use super::sysctl::settings::{key_path, normal_value};
use super::{Action, DesiredResource};
use ipnet::IpNet;
use railwright_base::{Digest, secret};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Seconds after which a host rolls back by itself, unless the spec says otherwise. A lost
/// connection is only noticed after 45 s, and a link may take as long again to come up.
pub const DEFAULT_S: u32 = 180;

/// Seconds after which a switch rolls back by itself: a patch of all its ports takes minutes
/// (sonic-net/sonic-buildimage#22370), and has to be over by then.
pub const SWITCH_S: u32 = 900;

/// One thing that an automatic rollback keeps as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Keep {
    /// A file with mode and owner, or that there is none.
    File {
        /// Where.
        path: String,
    },
    /// Settings of a NetworkManager connection.
    Connection {
        /// Its UUID.
        uuid: String,
        /// NetworkManager's names of them.
        settings: Vec<String>,
    },
    /// A running kernel setting.
    Sysctl {
        /// Its key.
        key: String,
    },
    /// MTU, administrative state, addresses and routes of a netdev.
    Link {
        /// Its name.
        netdev: String,
    },
    /// IPv6 addresses and routes of all netdevs: the kernel takes them away with some of its
    /// settings, and gives none back.
    Ipv6,
    /// Whether a unit runs, starts at boot and is masked.
    Unit {
        /// Its name.
        name: String,
    },
    /// What a switch runs and has saved, as far as it is of these ports or of our own making: what
    /// others change there meanwhile stays.
    Switch {
        /// Its system.
        system: SwitchSystem,
        /// The ports.
        ports: BTreeSet<String>,
    },
}

impl Keep {
    /// True when it also keeps all that the other one would.
    fn covers(&self, other: &Keep) -> bool {
        match (self, other) {
            (
                Keep::Switch { system, ports },
                Keep::Switch {
                    system: of,
                    ports: desired,
                },
            ) => system == of && ports.is_superset(desired),
            _ => self == other,
        }
    }
}

/// What an automatic rollback keeps, and what has to be read again once it is put back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RollbackScope {
    /// In the order in which it is put back: files first, units last.
    pub keeps: Vec<Keep>,
    /// systemd has to read its unit files again.
    pub systemd: bool,
    /// Netdevs whose manager has to read its files again.
    pub reloads: Vec<(String, NetworkManagerKind)>,
    /// What the change puts there, by path, key and netdev: digests of a file, values of a setting,
    /// addresses. A path that is missing here is one whose new content is not known.
    pub ours: BTreeMap<String, BTreeSet<String>>,
}

/// What no automatic rollback can put back: the word of an action or the name of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRolledBack(pub String);

impl RollbackScope {
    /// The automatic rollback of these actions, and of all that these resources may need after
    /// them.
    pub fn over<'a>(
        actions: &[Action],
        resources: impl IntoIterator<Item = &'a DesiredResource>,
    ) -> Result<RollbackScope, NotRolledBack> {
        let mut scope = RollbackScope::default();
        for action in actions {
            scope.take(action)?;
        }
        for resource in resources {
            match resource.kind.as_str() {
                "file" => scope.keep_file(
                    resource.text("path").unwrap_or_default(),
                    resource.text("content").unwrap_or_default().as_bytes(),
                ),
                "sysctl" => {
                    let SysctlBody { key, value, .. } = read_body(&resource.body);
                    scope.keep_sysctl(&key, &value.0);
                }
                "link" => {
                    let netdev = resource.text("netdev").unwrap_or_default();
                    scope.keep_link(netdev, &addresses(resource));
                }
                "systemd_unit" => scope.keeps.push(Keep::Unit {
                    name: resource.text("name").unwrap_or_default().to_owned(),
                }),
                kind if kind.starts_with("switch_") => scope.keep_switch(
                    super::switch::body::extract_switch_system(resource),
                    [resource.text("port").unwrap_or_default().to_owned()],
                ),
                other => return Err(NotRolledBack(other.to_owned())),
            }
        }
        scope.keeps.sort();
        scope.keeps.dedup();
        scope.reloads.sort();
        scope.reloads.dedup();
        Ok(scope)
    }

    fn keep_switch(&mut self, system: SwitchSystem, more: impl IntoIterator<Item = String>) {
        let there = self.keeps.iter_mut().find_map(|keep| match keep {
            Keep::Switch { system: of, ports } if *of == system => Some(ports),
            _ => None,
        });
        match there {
            Some(ports) => ports.extend(more),
            None => self.keeps.push(Keep::Switch {
                system,
                ports: more.into_iter().collect(),
            }),
        }
    }

    /// Secrets are filled in later, so what a file with one will hold is not known here.
    fn keep_file(&mut self, path: &str, content: &[u8]) {
        self.keeps.push(Keep::File {
            path: path.to_owned(),
        });
        if std::str::from_utf8(content)
            .is_ok_and(|text| !secret::list_secret_names(text).is_empty())
        {
            return;
        }
        self.ours
            .entry(path.to_owned())
            .or_default()
            .insert(Digest::of_bytes(content).to_string());
    }

    fn keep_link(&mut self, netdev: &str, addresses: &[String]) {
        self.keeps.push(Keep::Link {
            netdev: netdev.to_owned(),
        });
        self.ours
            .entry(netdev.to_owned())
            .or_default()
            .extend(addresses.iter().cloned());
    }

    fn keep_sysctl(&mut self, key: &str, value: &str) {
        self.keeps.push(Keep::Sysctl {
            key: key.to_owned(),
        });
        self.ours
            .entry(key.to_owned())
            .or_default()
            .insert(normal_value(value));
        if key_path(key).starts_with("net/ipv6/conf/") {
            self.keeps.push(Keep::Ipv6);
        }
    }

    fn take(&mut self, action: &Action) -> Result<(), NotRolledBack> {
        match action {
            Action::EditSwitch { system, edits } => {
                self.keep_switch(*system, edits.iter().flat_map(SwitchEdit::ports))
            }
            Action::SaveSwitch { system } => self.keep_switch(*system, []),
            Action::SetSysctl { key, value } => self.keep_sysctl(key, value),
            Action::SetLink {
                netdev,
                add_addresses,
                ..
            } => self.keep_link(netdev, add_addresses),
            Action::ReloadLink { netdev, manager } => {
                self.keep_link(netdev, &[]);
                self.reloads.push((netdev.clone(), *manager));
            }
            Action::ModifyConnection { uuid, settings } => {
                self.keeps.push(Keep::Connection {
                    uuid: uuid.clone(),
                    settings: settings.keys().cloned().collect(),
                });
            }
            Action::Unit { name, .. } => self.keeps.push(Keep::Unit { name: name.clone() }),
            Action::ReloadSystemd => self.systemd = true,
            Action::RemoveFile { path, .. } => {
                self.keeps.push(Keep::File { path: path.clone() });
                self.ours.entry(path.clone()).or_default();
            }
            Action::WriteFile { path, content, .. } => self.keep_file(path, content.as_bytes()),
            Action::WriteBinaryFile { path, base64, .. } => self.keep_file(
                path,
                &base64::decode_base64_text(base64).unwrap_or_default(),
            ),
            // A folder that was empty holds nothing that anybody could miss.
            other => match other.path() {
                Some(path) => self.keeps.push(Keep::File {
                    path: path.to_owned(),
                }),
                None => return Err(NotRolledBack(other.word().to_owned())),
            },
        }
        Ok(())
    }

    /// True when the SSH server's own configuration is touched: it counts once the server has read
    /// it.
    pub fn is_of_server(&self) -> bool {
        self.keeps.iter().any(
            |keep| matches!(keep, Keep::File { path } if path.starts_with(path::SERVER_FOLDER)),
        )
    }

    /// True when it keeps the configuration of a switch.
    pub fn is_of_switch(&self) -> bool {
        self.keeps
            .iter()
            .any(|keep| matches!(keep, Keep::Switch { .. }))
    }

    /// True when it also keeps all that the other one would, and knows what that one's change puts
    /// there.
    pub fn covers(&self, other: &RollbackScope) -> bool {
        if other.systemd && !self.systemd {
            return false;
        }
        for keep in &other.keeps {
            let name = script::describe_kept_item(keep);
            let knows_changes = match (self.ours.get(&name), other.ours.get(&name)) {
                (None, _) => true,
                (Some(own), Some(theirs)) => own.is_superset(theirs),
                (Some(_), None) => false,
            };
            if !knows_changes || !self.keeps.iter().any(|own| own.covers(keep)) {
                return false;
            }
        }
        let mut reloads = other.reloads.iter();
        reloads.all(|reload| self.reloads.contains(reload))
    }
}

fn addresses(resource: &DesiredResource) -> Vec<String> {
    let addresses: Vec<IpNet> = resource
        .body
        .get("addresses")
        .and_then(|list| serde_json::from_value(list.clone()).ok())
        .unwrap_or_default();
    addresses.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod netdev_restore_tests;
#[cfg(test)]
mod tests;
