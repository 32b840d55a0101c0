//! A change of what runs on a netdev, and how much it disturbs.

use super::owner::{DesiredLinkSettings, Owner, PersistedLinkSettings};
use super::{LinkObservation, LinkState};
use crate::action::NetworkManagerKind;
use crate::{Action, Assessment, Disruption};
use ipnet::IpNet;

/// A change of what runs.
#[derive(Debug, Default)]
pub(super) struct RunningLinkChange {
    pub(super) mtu: Option<u32>,
    pub(super) up: Option<bool>,
    pub(super) add: Vec<String>,
    pub(super) remove: Vec<String>,
}

impl RunningLinkChange {
    /// What brings what runs to what is wished.
    pub(super) fn between(intent: &DesiredLinkSettings, running: &PersistedLinkSettings) -> Self {
        RunningLinkChange {
            mtu: intent.mtu.filter(|mtu| running.mtu != Some(*mtu)),
            up: intent.up.filter(|up| running.up != Some(*up)),
            add: list_missing_addresses(&intent.addresses, &running.addresses),
            remove: if intent.exclusive {
                list_missing_addresses(&running.addresses, &intent.addresses)
            } else {
                Vec::new()
            },
        }
    }

    fn is_nothing(&self) -> bool {
        self.mtu.is_none() && self.up.is_none() && self.add.is_empty() && self.remove.is_empty()
    }

    /// MTU and state first, then the manager, then addresses: networkd sets those of its files
    /// itself, and what it has set is left alone.
    pub(super) fn into_actions(
        self,
        netdev: &str,
        reload: Option<NetworkManagerKind>,
    ) -> Vec<Action> {
        let netdev = netdev.to_owned();
        let set = |mtu, up, add_addresses, remove_addresses| Action::SetLink {
            netdev: netdev.clone(),
            mtu,
            up,
            add_addresses,
            remove_addresses,
        };
        let Some(manager) = reload else {
            return if self.is_nothing() {
                Vec::new()
            } else {
                vec![set(self.mtu, self.up, self.add, self.remove)]
            };
        };
        let mut actions = Vec::new();
        if self.mtu.is_some() || self.up.is_some() {
            actions.push(set(self.mtu, self.up, Vec::new(), Vec::new()));
        }
        actions.push(Action::ReloadLink {
            netdev: netdev.clone(),
            manager,
        });
        if !self.add.is_empty() || !self.remove.is_empty() {
            actions.push(set(None, None, self.add, self.remove));
        }
        actions
    }
}

/// How much a change disturbs, in degrees and in words.
pub(super) fn record_link_disruption(
    netdev: &str,
    change: &RunningLinkChange,
    reload: Option<NetworkManagerKind>,
    found: &LinkObservation,
    assessment: &mut Assessment,
) {
    let networkd_runs = match &found.owner {
        Ok(Owner::Managed(view)) => {
            view.manager == NetworkManagerKind::Networkd
                || view.manager == NetworkManagerKind::Netplan
        }
        Ok(Owner::Nobody { able, .. }) => *able == Some(NetworkManagerKind::Networkd),
        Err(_) => false,
    };
    let sets_anew = reload.is_some()
        && networkd_runs
        && found
            .running
            .addresses
            .iter()
            .any(|a| !a.addr().is_loopback());
    let mut words = Vec::new();
    if change.mtu.is_some() {
        words.push(format!("RDMA traffic on {netdev} stops for about 1 s"));
    }
    if change.up == Some(false) {
        words.push(format!(
            "all traffic on {netdev} stops until it is set up again"
        ));
    }
    if sets_anew {
        words.push(format!(
            "systemd-networkd sets the addresses of {netdev} anew, and its RDMA GIDs with them"
        ));
    }
    if !change.remove.is_empty() {
        words.push(format!("connections over {} end", change.remove.join(", ")));
    }
    if !words.is_empty() {
        assessment.disruption = Disruption::LinkBlip;
        assessment.interrupts_netdevs = vec![netdev.to_owned()];
    } else if reload.is_some() {
        assessment.disruption = Disruption::Reload;
    }
    assessment.interrupts.extend(words);
    assessment.disturbs = change
        .mtu
        .map(|mtu| dragged_along(mtu, &found.state))
        .unwrap_or_default();
}

/// The kernel drags VLANs down with their parent (never up), and pushes a bond's MTU to its
/// members.
fn dragged_along(mtu: u32, state: &LinkState) -> Vec<String> {
    let is_bond = state.kind.as_deref() == Some("bond");
    let members = state.lower.iter().filter(|_| is_bond);
    let above = state
        .upper
        .iter()
        .filter(|upper| upper.mtu.is_some_and(|other| other > mtu));
    members
        .chain(above)
        .map(|other| format!("link/{}", other.netdev))
        .collect()
}

/// The addresses of one list that the other has not.
pub(super) fn list_missing_addresses(list: &[IpNet], other: &[IpNet]) -> Vec<String> {
    list.iter()
        .filter(|address| !other.contains(address))
        .map(ToString::to_string)
        .collect()
}
