//! `link`: MTU, administrative state and addresses of a netdev, running now and persisted through
//! the manager that the host really uses for it. Its name is the netdev's.
//!
//! What runs is set with `ip`, what persists is written to the manager's own files; the manager is
//! made to read them again only where it would otherwise undo what runs (systemd-networkd,
//! netplan).

mod change;
mod earlier;
pub mod ifupdown;
pub mod layers;
pub mod netplan;
pub mod network_manager;
pub mod networkd;
pub mod owner;
mod persisted_layers;
pub mod state;
mod undo;

pub use owner::{Owner, decode_netdev_owner};
use railwright_base::Reason;
pub use state::{LinkState, link_state, other_netdevs};

use super::action::NetworkManagerKind;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use change::RunningLinkChange;
use earlier::EarlierAddresses;
use ipnet::IpNet;
use owner::{DesiredLinkSettings, PersistedLinkSettings, PriorLinkSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind.
pub struct Link;

/// The desired state of a netdev.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkBody {
    pub(super) netdev: String,
    pub(super) mtu: Option<u32>,
    pub(super) up: Option<bool>,
    /// Addresses with prefix, such as 192.0.2.7/24 or 2001:db8::7/64.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub(super) addresses: Vec<IpNet>,
    pub(super) exclusive: Option<bool>,
    rollback_timer: Option<bool>,
    known_after: Option<String>,
    /// What earlier declarations made, which no spec says.
    #[serde(skip)]
    earlier: EarlierAddresses,
}

impl Body for LinkBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_netdev("/netdev", &self.netdev);
        errors.check_range("mtu", self.mtu, 68..=65535);
        errors.check_known_after(self.known_after.as_deref());
        errors.require(
            self.mtu.is_some() || self.up.is_some() || self.compares_addresses(),
            "",
            "no resource is declared for",
            "name at least one of mtu, up, addresses",
        );
    }
}

impl LinkBody {
    fn is_exclusive(&self) -> bool {
        self.exclusive == Some(true)
    }

    fn intent(&self) -> DesiredLinkSettings {
        DesiredLinkSettings {
            mtu: self.mtu,
            up: self.up,
            addresses: self.addresses.clone(),
            exclusive: self.is_exclusive(),
            dropped: self.earlier.dropped.clone(),
            prior_settings: self.earlier.prior_settings.clone(),
        }
    }

    fn compares_addresses(&self) -> bool {
        !self.addresses.is_empty() || self.is_exclusive()
    }

    /// The addresses as an attribute's value: those declared now or earlier, or all where no others
    /// may be there.
    fn shown(&self, found: &[IpNet]) -> Reading {
        let is_ours = |a: &IpNet| self.addresses.contains(a) || self.earlier.dropped.contains(a);
        let mut list: Vec<String> = found
            .iter()
            .filter(|a| self.is_exclusive() || is_ours(a))
            .map(ToString::to_string)
            .collect();
        list.sort();
        list.dedup();
        Reading::is(json!(list))
    }
}

/// What there was before our first change.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Snapshot {
    running: PersistedLinkSettings,
    persisted: PriorLinkSettings,
    /// Addresses that were made since, and left as they were when all addresses left the resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left: Vec<IpNet>,
}

/// What a host reports about one netdev, ready to be compared.
struct LinkObservation {
    running: PersistedLinkSettings,
    state: LinkState,
    owner: Result<Owner, Reason>,
}

impl LinkObservation {
    fn new(state: LinkState, owner: Result<Owner, Reason>) -> Self {
        let addresses = state.addresses.iter().flatten();
        let running = PersistedLinkSettings {
            mtu: state.mtu,
            up: state.up,
            addresses: addresses
                .filter(|a| a.scope != "link")
                .map(|a| a.address)
                .collect(),
        };
        LinkObservation {
            running,
            state,
            owner,
        }
    }
}

impl ResourceKind for Link {
    fn name(&self) -> &'static str {
        "link"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<LinkBody>()
    }

    fn needs_rollback_timer(&self, resource: &DesiredResource) -> bool {
        read_body::<LinkBody>(&resource.body).rollback_timer == Some(true)
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let netdev = read_body::<LinkBody>(&resource.body).netdev;
        vec![
            Read::Link {
                netdev: netdev.clone(),
            },
            Read::LinkManager { netdev },
        ]
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        diff_resource(read_body(&resource.body), resource, answers)
    }

    fn diff_after(
        &self,
        resource: &DesiredResource,
        earlier: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let mut body = read_body::<LinkBody>(&resource.body);
        body.earlier = EarlierAddresses::of(&body, &read_body(&earlier.body), before);
        diff_resource(body, resource, answers)
    }

    fn join_bodies(&self, applied: &Value, begun: &Value) -> Option<Value> {
        earlier::join_bodies(applied, begun)
    }

    fn remembered(&self, first: &Value, now: &Value) -> Value {
        earlier::remember_left_addresses(first, now)
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        undo::plan_link_undo(&read_body(&last_applied.body), before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        Snapshot::deserialize(before).is_ok()
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["mtu", "up", "addresses"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["kernel_module", "kernel_module_build"]
    }
}

/// The desired state of the netdev beside its actual one.
fn diff_resource(
    mut body: LinkBody,
    resource: &DesiredResource,
    answers: &ReadResults,
) -> ResourceDiff {
    let state = match link_state(answers, &body.netdev) {
        Ok(Some(state)) => state,
        Ok(None) => return diff_missing_netdev(&body, resource, answers),
        Err(reason) => {
            let unknown = Reading::Unknown(reason);
            return ResourceDiff {
                attributes: build_uniform_attributes(&body, &unknown, &unknown),
                ..ResourceDiff::default()
            };
        }
    };
    let owner = decode_netdev_owner(answers, &body.netdev);
    if let Ok(Owner::Managed(view)) = &owner {
        body.earlier.leave_to_others(&view.others.addresses);
    }
    diff_link(&body, resource, state, owner)
}

/// One reading for all declared attributes.
fn build_uniform_attributes(
    body: &LinkBody,
    persisted: &Reading,
    running: &Reading,
) -> std::collections::BTreeMap<String, Attribute> {
    let mut stated = Vec::new();
    if let Some(mtu) = body.mtu {
        stated.push(("mtu", Reading::is(mtu)));
    }
    if let Some(up) = body.up {
        stated.push(("up", Reading::is(up)));
    }
    if body.compares_addresses() {
        stated.push(("addresses", body.shown(&body.addresses)));
    }
    let mut attributes = std::collections::BTreeMap::new();
    for (name, desired) in stated {
        let attribute = Attribute::in_plane(Plane::Persisted, desired.clone(), persisted.clone())
            .and(Plane::Running, desired, running.clone());
        attributes.insert(name.to_owned(), attribute);
    }
    attributes
}

/// No such netdev: either it comes with an earlier step, or the name or the driver is wrong.
fn diff_missing_netdev(
    body: &LinkBody,
    resource: &DesiredResource,
    answers: &ReadResults,
) -> ResourceDiff {
    let reason = format!("there is no netdev {}", body.netdev);
    let mut diff = ResourceDiff {
        attributes: build_uniform_attributes(
            body,
            &Reading::Unknown(reason.into()),
            &Reading::Absent,
        ),
        ..ResourceDiff::default()
    };
    diff.wait_or_refuse(resource, &ANNOUNCED, || {
        let others = other_netdevs(answers, &body.netdev).join(", ");
        format!(
            "there is no netdev {} (there are: {others}); its driver is not loaded, or the driver \
             gives it another name",
            body.netdev
        )
    });
    diff
}

const ANNOUNCED: [&str; 5] = [
    "modify_connection",
    "reload_link",
    "set_interfaces_mtu",
    "set_link",
    "write_file",
];

fn diff_link(
    body: &LinkBody,
    resource: &DesiredResource,
    state: LinkState,
    owner: Result<Owner, Reason>,
) -> ResourceDiff {
    let found = LinkObservation::new(state, owner);
    let mut diff = ResourceDiff {
        attributes: diff_link_attributes(body, &found),
        ..ResourceDiff::default()
    };
    if let Ok(owner) = &found.owner {
        let snapshot = Snapshot {
            running: found.running.clone(),
            persisted: PriorLinkSettings::of(owner),
            left: body.earlier.left.clone(),
        };
        diff.before = serde_json::to_value(snapshot).unwrap_or_default();
    }
    if diff.is_met() || diff.has_unknown() {
        return diff;
    }
    match find_mtu_obstacle(body, resource, &found.state) {
        Some(Obstacle::ParentFirst(parent)) => {
            diff.known_after = Some(format!("link/{parent}"));
            diff.announced = ANNOUNCED.map(str::to_owned).to_vec();
        }
        Some(Obstacle::Never(reason)) => diff.refusal = Some(reason),
        None => plan_link_fix(body, &found, &mut diff),
    }
    diff
}

/// Desired beside actual values; without an owner nothing is persisted.
fn diff_link_attributes(
    body: &LinkBody,
    found: &LinkObservation,
) -> std::collections::BTreeMap<String, Attribute> {
    let mut all = build_uniform_attributes(body, &Reading::Absent, &Reading::Absent);
    for (name, attribute) in &mut all {
        let disk = match &found.owner {
            Ok(Owner::Managed(view)) => {
                read_link_setting(body, name, &view.merged).unwrap_or(Reading::Absent)
            }
            Ok(Owner::Nobody { .. }) => Reading::Absent,
            Err(reason) => Reading::Unknown(reason.clone()),
        };
        let running = if name == "addresses" && found.state.addresses.is_none() {
            None
        } else {
            read_link_setting(body, name, &found.running)
        };
        let running =
            running.unwrap_or_else(|| Reading::Unknown("`ip` or sysfs gave no answer".into()));
        attribute.actual.set(Plane::Persisted, disk);
        attribute.actual.set(Plane::Running, running);
    }
    all
}

fn read_link_setting(
    body: &LinkBody,
    attribute: &str,
    settings: &PersistedLinkSettings,
) -> Option<Reading> {
    match attribute {
        "mtu" => settings.mtu.map(Reading::is),
        "up" => settings.up.map(Reading::is),
        _ => Some(body.shown(&settings.addresses)),
    }
}

enum Obstacle {
    /// The kernel refuses this before the netdev below is changed, which is a resource of its own.
    ParentFirst(String),
    /// The kernel or the driver refuses this.
    Never(String),
}

/// A VLAN cannot be larger than what it sits on (`Numerical result out of range`), and no link
/// larger than its driver takes.
fn find_mtu_obstacle(
    body: &LinkBody,
    resource: &DesiredResource,
    state: &LinkState,
) -> Option<Obstacle> {
    let desired = body.mtu?;
    if let Some(parent) = state
        .lower
        .iter()
        .find(|_| matches!(state.kind.as_deref(), Some("vlan" | "macvlan" | "ipvlan")))
    {
        let small = parent.mtu.is_some_and(|mtu| mtu < desired);
        let is_desired = resource
            .after
            .iter()
            .any(|after| after.kind() == "link" && after.name() == parent.netdev);
        if small && is_desired {
            return Some(Obstacle::ParentFirst(parent.netdev.clone()));
        }
        if small {
            let mtu = parent.mtu.unwrap_or_default();
            return Some(Obstacle::Never(format!(
                "{} sits on {}, whose MTU is {mtu}; the kernel refuses {desired} above it: declare \
                 {desired} on {} first",
                body.netdev, parent.netdev, parent.netdev
            )));
        }
    }
    let most = state.max_mtu.filter(|most| *most < desired)?;
    Some(Obstacle::Never(format!(
        "the driver of {} takes an MTU of at most {most}, not {desired}",
        body.netdev
    )))
}

/// The actions for what differs, and what they disturb.
fn plan_link_fix(body: &LinkBody, found: &LinkObservation, diff: &mut ResourceDiff) {
    let disk = diff.differs_in(Plane::Persisted);
    let mut reload = None;
    let mut actions = Vec::new();
    if disk {
        match plan_persisted_changes(body, found) {
            Err(reason) => return diff.refusal = Some(reason.to_string()),
            Ok((written, manager)) => {
                actions = written;
                reload = manager;
            }
        }
    }
    let change = if diff.differs_in(Plane::Running) {
        RunningLinkChange::between(&body.intent(), &found.running)
    } else {
        RunningLinkChange::default()
    };
    if let Some(Owner::Nobody {
        able: Some(manager),
        ..
    }) = found.owner.as_ref().ok().filter(|_| disk)
    {
        let manager = if *manager == NetworkManagerKind::NetworkManager {
            "NetworkManager"
        } else {
            "systemd-networkd"
        };
        diff.interrupts.push(format!(
            "{manager} takes over {}, which nobody managed",
            body.netdev
        ));
    }
    change::record_link_disruption(&body.netdev, &change, reload, found, diff);
    actions.extend(change.into_actions(&body.netdev, reload));
    diff.actions = actions;
}

/// The actions that persist the settings, and the manager that then has to read its files again.
fn plan_persisted_changes(
    body: &LinkBody,
    found: &LinkObservation,
) -> Result<(Vec<Action>, Option<NetworkManagerKind>), Reason> {
    match &found.owner {
        Err(reason) => Err(reason.clone()),
        Ok(Owner::Managed(view)) => {
            let actions = owner::plan_persisted_link(&body.netdev, view, &body.intent())?;
            // NetworkManager wrote its connection itself, and an active device keeps what `ip` sets
            let reload =
                Some(view.manager).filter(|manager| *manager != NetworkManagerKind::NetworkManager);
            Ok((actions, reload))
        }
        Ok(Owner::Nobody {
            able: Some(manager),
            ..
        }) => Ok((
            owner::plan_netdev_adoption(&found.state, *manager, &body.intent())?,
            Some(*manager),
        )),
        Ok(Owner::Nobody { able: None, .. }) => Err(format!(
            "nobody manages {} (neither systemd-networkd, NetworkManager, netplan nor ifupdown), \
             so what is set would be lost at the next boot; start systemd-networkd, or configure \
             {} in the manager of this host",
            body.netdev, body.netdev
        )
        .into()),
    }
}

#[cfg(test)]
mod tests;
