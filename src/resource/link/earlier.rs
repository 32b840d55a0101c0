//! Addresses that earlier declarations of a netdev made and that the one of now does not have: they
//! are ours by what is remembered, so they go.

use super::{LinkBody, Snapshot};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What earlier declarations of a netdev left to the one of now.
#[derive(Debug, Clone, Default)]
pub(super) struct EarlierAddresses {
    /// Those that go.
    pub(super) dropped: Vec<IpNet>,
    /// Those that stay, because the resource no longer declares addresses.
    pub(super) left: Vec<IpNet>,
    /// NetworkManager's settings before our first change.
    pub(super) prior_settings: BTreeMap<String, String>,
}

impl EarlierAddresses {
    /// Addresses of `earlier` that the resource does not have. Those that were there `before` us
    /// are not ours; where that cannot be read, none is.
    pub(super) fn of(resource: &LinkBody, earlier: &LinkBody, before: &Value) -> Self {
        let Ok(before) = Snapshot::deserialize(before) else {
            return EarlierAddresses::default();
        };
        let mut ours = before.left;
        for address in &earlier.addresses {
            if !ours.contains(address) {
                ours.push(*address);
            }
        }
        ours.retain(|address| {
            !resource.addresses.contains(address)
                && !before.running.addresses.contains(address)
                && !before.persisted.values.addresses.contains(address)
        });
        let (dropped, left) = match resource.compares_addresses() {
            true => (ours, Vec::new()),
            false => (Vec::new(), ours),
        };
        EarlierAddresses {
            dropped,
            left,
            prior_settings: before.persisted.settings,
        }
    }

    /// What somebody else's configuration sets by now is theirs.
    pub(super) fn leave_to_others(&mut self, others: &[IpNet]) {
        self.dropped.retain(|address| !others.contains(address));
    }
}

/// What is there before a change is remembered once; of the addresses that a change leaves behind,
/// the latest counts.
pub(super) fn remember_left_addresses(first: &Value, now: &Value) -> Value {
    let (Ok(first_snapshot), Ok(now)) = (Snapshot::deserialize(first), Snapshot::deserialize(now))
    else {
        return first.clone();
    };
    let merged = Snapshot {
        left: now.left,
        ..first_snapshot
    };
    serde_json::to_value(merged).unwrap_or_else(|_| first.clone())
}

/// The addresses of both, and of the other fields each that either has.
pub(super) fn join_bodies(applied: &Value, begun: &Value) -> Option<Value> {
    let mut joined = applied.as_object()?.clone();
    for (name, value) in begun.as_object()? {
        let entry = joined.entry(name.clone()).or_insert(Value::Null);
        match (&mut *entry, value) {
            (Value::Array(addresses), Value::Array(others)) => {
                let missing = others.iter().filter(|other| !addresses.contains(other));
                let missing: Vec<Value> = missing.cloned().collect();
                addresses.extend(missing);
            }
            (Value::Null | Value::Bool(false), _) => *entry = value.clone(),
            _ => {}
        }
    }
    Some(Value::Object(joined))
}
