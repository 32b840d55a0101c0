//! Undo of a `link` resource: what was there before our first change comes back, and nothing else
//! is touched.

use super::change::{RunningLinkChange, list_missing_addresses, record_link_disruption};
use super::owner::{self, Owner, PersistedLinkSettings, PriorLinkSettings, decode_netdev_owner};
use super::{LinkBody, LinkObservation, Snapshot, link_state, read_link_setting};
use crate::{Action, Attribute, Plane, ReadResults, Reading, ResourceDiff};
use ipnet::IpNet;
use railwright_base::Reason;
use serde_json::Value;

/// What should be there afterwards, what is now, and the actions between.
pub(super) fn plan_link_undo(
    body: &LinkBody,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let snapshot: Snapshot = serde_json::from_value(before.clone()).unwrap_or_default();
    let state = match link_state(answers, &body.netdev) {
        Ok(Some(state)) => state,
        Ok(None) => {
            return ResourceDiff {
                residue: vec![format!(
                    "the files for {}, because the netdev is gone",
                    body.netdev
                )],
                ..ResourceDiff::default()
            };
        }
        Err(reason) => return build_unknown_link_diff(body, reason),
    };
    let owner = match decode_netdev_owner(answers, &body.netdev) {
        Ok(owner) => owner,
        Err(reason) => return build_unknown_link_diff(body, reason),
    };
    let mut body = body.clone();
    body.addresses.extend(&snapshot.left);
    if let Owner::Managed(view) = &owner {
        // what was left then may be somebody else's by now
        let others = &view.others.addresses;
        let is_theirs = |a: &IpNet| snapshot.left.contains(a) && others.contains(a);
        body.addresses.retain(|address| !is_theirs(address));
    }
    let found = LinkObservation::new(state, Ok(owner));
    take_back(&body, &snapshot, &found)
}

fn build_unknown_link_diff(body: &LinkBody, reason: Reason) -> ResourceDiff {
    let reading = Reading::Unknown(reason);
    ResourceDiff {
        attributes: super::build_uniform_attributes(body, &reading, &reading),
        ..ResourceDiff::default()
    }
}

fn take_back(body: &LinkBody, snapshot: &Snapshot, found: &LinkObservation) -> ResourceDiff {
    let mut diff = ResourceDiff {
        before: serde_json::to_value(snapshot).unwrap_or_default(),
        ..ResourceDiff::default()
    };
    let nothing = PersistedLinkSettings::default();
    let (on_disk, managed_now) = match &found.owner {
        Ok(Owner::Managed(view)) => (&view.merged, Some(view)),
        _ => (&nothing, None),
    };
    let then = compute_restored_plane(body, &snapshot.running, &found.running);
    let disk_then = compute_restored_plane(body, &snapshot.persisted.values, on_disk);
    add_plane_attributes(&mut diff, Plane::Running, body, &then, &found.running);
    add_plane_attributes(&mut diff, Plane::Persisted, body, &disk_then, on_disk);
    let mut reload = None;
    if let Some(view) = managed_now {
        diff.actions =
            owner::plan_persisted_restore(&body.netdev, view, &snapshot.persisted, &body.intent());
        let writes_files = !matches!(diff.actions[..], [] | [Action::ModifyConnection { .. }]);
        reload = Some(view.manager).filter(|_| writes_files);
        diff.residue = list_link_residue(&body.netdev, view, &snapshot.persisted);
    }
    if let (
        Ok(Owner::Nobody {
            able,
            left: Some(path),
        }),
        None,
    ) = (&found.owner, snapshot.persisted.manager)
    {
        diff.actions = vec![Action::RemoveFile {
            path: path.clone(),
            below: None,
        }];
        reload = *able;
        let ours = Attribute::in_plane(Plane::Persisted, Reading::Absent, Reading::is("in place"));
        diff.attributes.insert("connection".to_owned(), ours);
    }
    let change = RunningLinkChange {
        mtu: then.mtu.filter(|mtu| found.running.mtu != Some(*mtu)),
        up: then.up.filter(|up| found.running.up != Some(*up)),
        add: list_missing_addresses(&then.addresses, &found.running.addresses),
        remove: list_missing_addresses(&found.running.addresses, &then.addresses),
    };
    record_link_disruption(&body.netdev, &change, reload, found, &mut diff);
    diff.actions
        .extend(change.into_actions(&body.netdev, reload));
    diff
}

/// What a plane should be afterwards: what the resource declares as it was then, the rest as it is
/// now.
fn compute_restored_plane(
    body: &LinkBody,
    then: &PersistedLinkSettings,
    now: &PersistedLinkSettings,
) -> PersistedLinkSettings {
    let mut addresses: Vec<IpNet> = now
        .addresses
        .iter()
        .filter(|a| !body.addresses.contains(a) || then.addresses.contains(a))
        .copied()
        .collect();
    if body.is_exclusive() {
        let gone: Vec<IpNet> = then
            .addresses
            .iter()
            .filter(|a| !addresses.contains(a))
            .copied()
            .collect();
        addresses.extend(gone);
    }
    PersistedLinkSettings {
        mtu: then.mtu.filter(|_| body.mtu.is_some()),
        up: then.up.filter(|_| body.up.is_some()),
        addresses,
    }
}

fn add_plane_attributes(
    diff: &mut ResourceDiff,
    plane: Plane,
    body: &LinkBody,
    then: &PersistedLinkSettings,
    now: &PersistedLinkSettings,
) {
    let mut names = Vec::new();
    // a running value always exists: without a record of it there is nothing to go back to, and it
    // is not compared
    if body.mtu.is_some() && (plane == Plane::Persisted || then.mtu.is_some()) {
        names.push("mtu");
    }
    if body.up.is_some() && then.up.is_some() {
        names.push("up");
    }
    if body.compares_addresses() {
        names.push("addresses");
    }
    for name in names {
        let desired = read_link_setting(body, name, then).unwrap_or(Reading::Absent);
        let actual = read_link_setting(body, name, now).unwrap_or(Reading::Absent);
        let entry: &mut Attribute = diff.attributes.entry(name.to_owned()).or_default();
        entry.desired.set(plane, desired);
        entry.actual.set(plane, actual);
    }
}

fn list_link_residue(
    netdev: &str,
    view: &owner::ManagedLinkView,
    before: &PriorLinkSettings,
) -> Vec<String> {
    match (before.manager, &view.handle) {
        (Some(then), _) if then != view.manager => {
            vec![format!(
                "what an earlier manager of {netdev} has on disk: it is no longer the one that \
                 owns it"
            )]
        }
        (_, owner::Handle::NetworkManager(connection)) if connection.file.starts_with("/run/") => {
            vec![format!(
                "the connection of {netdev}, which lived in memory only, stays on disk"
            )]
        }
        _ => Vec::new(),
    }
}
