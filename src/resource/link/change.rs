//! A change of what runs on a netdev, and how much it disturbs.

use super::owner::{DesiredLinkSettings, Owner, PersistedLinkSettings};
use super::{LinkObservation, LinkState};
use crate::action::NetworkManagerKind;
use crate::{Action, Disruption, ResourceDiff};
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
    /// What brings what runs to the desired state.
    pub(super) fn between(intent: &DesiredLinkSettings, running: &PersistedLinkSettings) -> Self {
        RunningLinkChange {
            mtu: intent.mtu.filter(|mtu| running.mtu != Some(*mtu)),
            up: intent.up.filter(|up| running.up != Some(*up)),
            add: list_missing_addresses(&intent.addresses, &running.addresses),
            remove: running
                .addresses
                .iter()
                .filter(|a| !intent.addresses.contains(a))
                .filter(|a| intent.exclusive || intent.dropped.contains(a))
                .map(ToString::to_string)
                .collect(),
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
        let Some(manager) = reload else {
            return self.into_set_action(netdev).into_iter().collect();
        };
        let state = RunningLinkChange {
            mtu: self.mtu,
            up: self.up,
            ..RunningLinkChange::default()
        };
        let addresses = RunningLinkChange {
            mtu: None,
            up: None,
            ..self
        };
        let mut actions = Vec::new();
        actions.extend(state.into_set_action(netdev));
        actions.push(Action::ReloadLink {
            netdev: netdev.to_owned(),
            manager,
        });
        actions.extend(addresses.into_set_action(netdev));
        actions
    }

    fn into_set_action(self, netdev: &str) -> Option<Action> {
        if self.is_nothing() {
            return None;
        }
        Some(Action::SetLink {
            netdev: netdev.to_owned(),
            mtu: self.mtu,
            up: self.up,
            add_addresses: self.add,
            remove_addresses: self.remove,
        })
    }
}

/// How much a change disturbs, in degrees and in words.
pub(super) fn record_link_disruption(
    netdev: &str,
    change: &RunningLinkChange,
    reload: Option<NetworkManagerKind>,
    found: &LinkObservation,
    diff: &mut ResourceDiff,
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
        diff.disruption = Disruption::LinkBlip;
        diff.interrupts_netdevs = vec![netdev.to_owned()];
    } else if reload.is_some() {
        diff.disruption = Disruption::Reload;
    }
    diff.interrupts.extend(words);
    diff.disturbs = change
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
