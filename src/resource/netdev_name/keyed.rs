//! By what a manager's configuration finds a netdev: one that goes by its name loses it, and its
//! addresses, when the name changes.

use crate::link::owner::{Handle, ManagedLinkView, Owner, owner_in};
use crate::link::{netplan, network_manager, networkd};
use crate::sections::Section;
use railwright_base::Reason;

/// What becomes of a netdev's configuration under its new name.
#[derive(Debug, PartialEq, Eq)]
pub enum RenameEffect {
    /// It is found as before.
    Follows,
    /// Nobody has any.
    Nobody,
    /// It is not found any more: in words, with what would fix that.
    Loses(String),
}

/// What a new name does to the configuration of a netdev. The error fits after "unknown:".
pub fn predict_rename_effect(
    old: &str,
    new: &str,
    sections: &[Section<'_>],
) -> Result<RenameEffect, Reason> {
    let Owner::Managed(view) = owner_in(sections, old)? else {
        return Ok(RenameEffect::Nobody);
    };
    Ok(match describe_lost_match(&view, old, new, sections) {
        None => RenameEffect::Follows,
        Some(words) => RenameEffect::Loses(words),
    })
}

fn describe_lost_match(
    view: &ManagedLinkView,
    old: &str,
    new: &str,
    sections: &[Section<'_>],
) -> Option<String> {
    match &view.handle {
        Handle::Netplan { id, section } => {
            match netplan::is_matched_by_netplan(id, section, new, sections) {
                true => None,
                false => Some(format!(
                    "netplan's definition `{id}` finds it by the name {old}: give the definition \
                     `match: {{ macaddress: ... }}` without `set-name`"
                )),
            }
        }
        Handle::Networkd { path, adopted, .. } => {
            match *adopted || networkd::is_matched_by_networkd(new, sections) {
                true => None,
                false => Some(format!(
                    "the file of systemd-networkd that {path} belongs to finds it by the name \
                     {old}: let its [Match] say MACAddress=, or add {new} to its Name="
                )),
            }
        }
        Handle::NetworkManager(connection) => {
            match network_manager::is_matched_by_connection(connection, new) {
                true => None,
                false => Some(format!(
                    "its connection of NetworkManager is bound to the name {old}: `nmcli \
                     connection modify {} connection.interface-name {new}`, which takes effect \
                     with the new name",
                    connection.uuid
                )),
            }
        }
        Handle::Ifupdown(stanzas) => match stanzas.names.iter().any(|name| name == new) {
            true => None,
            false => Some(format!(
                "/etc/network/interfaces knows it as {old} only: write its stanzas for {new} too"
            )),
        },
    }
}
