//! Who owns a netdev's configuration, and what the next boot would make of it. Detected from what
//! the host does, not from what is installed: systemd-networkd says which file it applied,
//! NetworkManager which connection is active.

use super::{LinkState, ifupdown, netplan, network_manager, networkd};
use crate::action::NetworkManagerKind;
use crate::rights::RootAccessNeed;
use crate::sections::{self, SHELL, Section};
use crate::{Action, Read, ReadResults};
use ipnet::IpNet;
use railwright_base::Reason;
use railwright_base::quote::quote_for_shell;
use serde::{Deserialize, Serialize};

/// The first line of every file that we write for a manager.
pub const HEAD: &str = "# Written by railwright; changes made here are overwritten.\n";

/// What is written to disk about a netdev.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PersistedLinkSettings {
    /// MTU in bytes; nothing where the default stays.
    pub mtu: Option<u32>,
    /// Set up at boot.
    pub up: Option<bool>,
    /// Addresses set at boot.
    pub addresses: Vec<IpNet>,
}

/// What should be written to disk. What is `None` is left as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredLinkSettings {
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Set up at boot.
    pub up: Option<bool>,
    /// Addresses that must be there.
    pub addresses: Vec<IpNet>,
    /// No other addresses may be there.
    pub exclusive: bool,
    /// Addresses that we set for earlier declarations and that must go.
    pub dropped: Vec<IpNet>,
    /// NetworkManager's settings before our first change.
    pub prior_settings: std::collections::BTreeMap<String, String>,
}

/// A netdev's owner and its own view of the netdev.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedLinkView {
    /// Who.
    pub manager: NetworkManagerKind,
    /// Everything that the next boot applies, our file included.
    pub merged: PersistedLinkSettings,
    /// What the next boot would apply if our file were not there.
    pub others: PersistedLinkSettings,
    /// The text of our own file.
    pub own: Option<String>,
    /// What the manager needs to know to be written to.
    pub handle: Handle,
}

/// What each manager needs to know to be written to.
#[derive(Debug, Clone, PartialEq)]
pub enum Handle {
    /// The path of our file: a drop-in beside the file that networkd applied, or a file of its own.
    /// Or why that file may not be added to.
    Networkd {
        path: String,
        adopted: bool,
        shared: Option<String>,
    },
    /// The active connection.
    NetworkManager(network_manager::NetworkManagerConnection),
    /// The name of the definition and its section (`ethernets`).
    Netplan { id: String, section: String },
    /// Where stanzas of the netdev are, and whether our folder is read.
    Ifupdown(ifupdown::Stanzas),
}

/// The answer to "who owns this netdev?".
#[derive(Debug, Clone, PartialEq)]
pub enum Owner {
    /// Somebody, with the view.
    Managed(Box<ManagedLinkView>),
    /// Nobody; which manager runs and could take it over, and a file of ours that it does not use
    /// at the moment.
    Nobody {
        able: Option<NetworkManagerKind>,
        left: Option<String>,
    },
}

/// Reads what the managers say about the netdev `$n`, whose index is `$i`.
pub fn render_manager_reads() -> String {
    [
        networkd::READ,
        network_manager::READ,
        netplan::READ,
        ifupdown::READ,
    ]
    .concat()
}

/// What the reads of all these netdevs ask once: `nmcli` takes some hundredths of a second each
/// time, `netplan` a third of one.
pub fn shared_script(netdevs: &[&str]) -> String {
    let netdevs = quote_for_shell(&netdevs.join("\n"));
    format!(
        "{SHELL}netdevs={netdevs}\n{}{}",
        network_manager::SHARED,
        netplan::SHARED
    )
}

/// All that the managers say about a netdev.
pub fn read_script(netdev: &str) -> String {
    format!(
        "{SHELL}n={}; i=; {{ read -r i <\"$R/sys/class/net/$n/ifindex\"; }} 2>/dev/null\n\
         {}exit 0\n",
        quote_for_shell(netdev),
        render_manager_reads()
    )
}

/// netplan's files are 0600 and what it renders for networkd is 0640 (netplan 0.106.1); the
/// interfaces of ifupdown may be.
pub fn list_manager_access_needs(netdev: &str) -> Vec<RootAccessNeed> {
    vec![
        RootAccessNeed::Content(format!("/run/systemd/network/10-netplan-{netdev}.network")),
        RootAccessNeed::Content(format!("/etc/netplan/90-railwright-{netdev}.yaml")),
        RootAccessNeed::Program(&["/usr/sbin/netplan"], vec!["get".to_owned()]),
        RootAccessNeed::Folder("/etc/network/interfaces.d", ""),
        RootAccessNeed::Sight("/etc/network/interfaces".to_owned()),
        RootAccessNeed::Folder("/run/NetworkManager/devices", ""),
        RootAccessNeed::Folder("/run/systemd/netif/links", ""),
    ]
}

/// Who owns the netdev, from the answers.
pub fn decode_netdev_owner(answers: &ReadResults, netdev: &str) -> Result<Owner, Reason> {
    let (_, out) = answers.output(&Read::LinkManager {
        netdev: netdev.to_owned(),
    })?;
    owner_in(&sections::parse_sections(out), netdev)
}

/// Who owns the netdev, from the parts of an answer.
pub fn owner_in(sections: &[Section<'_>], netdev: &str) -> Result<Owner, Reason> {
    let found = match networkd::rendered_by_netplan(sections)
        .or_else(|| network_manager::rendered_by_netplan(sections))
    {
        Some(id) => Some(netplan::parse_netplan_view(&id, sections)?),
        None => first_of(netdev, sections)?,
    };
    Ok(match found {
        Some(view) => Owner::Managed(Box::new(view)),
        None if network_manager::waits_for_a_connection(sections) => {
            if let Some(path) = network_manager::waiting_profile(netdev, sections) {
                return Err(format!(
                    "NetworkManager has {path} for {netdev}, which is not active: bring it up \
                     (nmcli connection up), or remove it"
                )
                .into());
            }
            Owner::Nobody {
                able: Some(NetworkManagerKind::NetworkManager),
                left: network_manager::own_waiting(netdev, sections),
            }
        }
        None => Owner::Nobody {
            able: sections::find_section(sections, "networkd-state")
                .map(|_| NetworkManagerKind::Networkd),
            left: None,
        },
    })
}

fn first_of(netdev: &str, sections: &[Section<'_>]) -> Result<Option<ManagedLinkView>, Reason> {
    if let Some(view) = networkd::parse_networkd_view(netdev, sections) {
        return Ok(Some(view));
    }
    if let Some(view) = network_manager::parse_connection_view(sections)? {
        return Ok(Some(view));
    }
    Ok(ifupdown::parse_ifupdown_view(netdev, sections))
}

/// What makes the next boot apply the intent. `Err` in words when it cannot be done without
/// touching what is not ours.
pub fn plan_persisted_link(
    netdev: &str,
    view: &ManagedLinkView,
    intent: &DesiredLinkSettings,
) -> Result<Vec<Action>, Reason> {
    match &view.handle {
        Handle::Networkd {
            shared: Some(reason),
            ..
        } => Err(reason.clone().into()),
        Handle::Networkd { path, adopted, .. } => {
            networkd::plan_networkd_settings(netdev, view, path, *adopted, intent)
        }
        Handle::NetworkManager(connection) => {
            Ok(network_manager::plan_connection_change(connection, intent))
        }
        Handle::Netplan { id, section } => {
            netplan::plan_netplan_settings(netdev, view, id, section, intent)
        }
        Handle::Ifupdown(stanzas) => {
            ifupdown::plan_ifupdown_settings(netdev, view, stanzas, intent)
        }
    }
}

/// Makes the manager that runs take over a netdev that nobody owns; a reason where it cannot.
pub fn plan_netdev_adoption(
    state: &LinkState,
    manager: NetworkManagerKind,
    intent: &DesiredLinkSettings,
) -> Result<Vec<Action>, Reason> {
    match manager {
        NetworkManagerKind::NetworkManager => network_manager::plan_new_connection(state, intent),
        _ => Ok(networkd::plan_networkd_adoption(&state.netdev, intent)),
    }
}

/// What was persisted before our first change, as far as taking it back needs it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorLinkSettings {
    /// The owner then; nothing when there was none.
    pub manager: Option<NetworkManagerKind>,
    /// The values then.
    pub values: PersistedLinkSettings,
    /// The text of our own file then, if one was there.
    pub own: Option<String>,
    /// NetworkManager's settings then.
    pub settings: std::collections::BTreeMap<String, String>,
}

impl PriorLinkSettings {
    /// What taking back will need to know of this owner.
    pub fn of(owner: &Owner) -> Self {
        let Owner::Managed(view) = owner else {
            return PriorLinkSettings::default();
        };
        let settings = match &view.handle {
            Handle::NetworkManager(connection) => connection.settings(),
            _ => Default::default(),
        };
        PriorLinkSettings {
            manager: Some(view.manager),
            values: view.merged.clone(),
            own: view.own.clone(),
            settings,
        }
    }
}

/// What takes our persisted settings back.
pub fn plan_persisted_restore(
    netdev: &str,
    view: &ManagedLinkView,
    before: &PriorLinkSettings,
    intent: &DesiredLinkSettings,
) -> Vec<Action> {
    match &view.handle {
        Handle::Networkd { path, .. } => networkd::plan_networkd_restore(view, path, before),
        Handle::NetworkManager(connection) => {
            network_manager::plan_connection_restore(netdev, connection, before, intent)
        }
        Handle::Netplan { .. } => netplan::plan_netplan_restore(netdev, view, before),
        Handle::Ifupdown(stanzas) => ifupdown::plan_ifupdown_restore(netdev, view, stanzas, before),
    }
}

/// A file of ours is replaced by what was there, or removed.
pub fn restore_file(
    path: &str,
    mode: &str,
    view: &ManagedLinkView,
    before: &PriorLinkSettings,
) -> Option<Action> {
    match (&view.own, &before.own) {
        (now, then) if now == then => None,
        (_, Some(text)) => Some(own_file(path, mode, text.clone())),
        (_, None) => Some(Action::RemoveFile {
            path: path.to_owned(),
            below: None,
        }),
    }
}

/// A whole file of ours.
pub fn own_file(path: &str, mode: &str, content: String) -> Action {
    Action::WriteFile {
        path: path.to_owned(),
        content,
        mode: mode.to_owned(),
        owner: "root".to_owned(),
        group: "root".to_owned(),
    }
}

/// The addresses of `all` without one each of those in `taken`.
pub fn subtract_addresses(all: &[IpNet], taken: &[IpNet]) -> Vec<IpNet> {
    let mut rest = all.to_vec();
    for address in taken {
        if let Some(at) = rest.iter().position(|other| other == address) {
            rest.remove(at);
        }
    }
    rest
}

/// The addresses that our file must hold: those which nobody else sets.
pub fn list_unset_addresses(
    intent: &DesiredLinkSettings,
    others: &PersistedLinkSettings,
) -> Vec<IpNet> {
    intent
        .addresses
        .iter()
        .filter(|address| !others.addresses.contains(address))
        .copied()
        .collect()
}

/// Why an exclusive list cannot be had, if another file sets more.
pub fn refuse_extra(
    intent: &DesiredLinkSettings,
    others: &PersistedLinkSettings,
    who: &str,
) -> Result<(), Reason> {
    let extra: Vec<String> = others
        .addresses
        .iter()
        .filter(|a| !intent.addresses.contains(a))
        .map(ToString::to_string)
        .collect();
    if intent.exclusive && !extra.is_empty() {
        return Err(format!(
            "{who} also sets {}, and a list can only grow from file to file; remove it there",
            extra.join(", ")
        )
        .into());
    }
    Ok(())
}

/// Makes the owner read its configuration again.
pub fn reload_script(netdev: &str, manager: NetworkManagerKind) -> String {
    match manager {
        NetworkManagerKind::Networkd => networkd::RELOAD.to_owned(),
        NetworkManagerKind::NetworkManager => network_manager::reload_script(netdev),
        NetworkManagerKind::Netplan => format!(
            "set -eu\n\
             netplan generate\n\
             if [ -d /run/NetworkManager/devices ]; then nmcli connection reload; fi\n\
             {}",
            networkd::RELOAD
        ),
        NetworkManagerKind::Ifupdown => format!("ifquery {} >/dev/null\n", quote_for_shell(netdev)),
    }
}
