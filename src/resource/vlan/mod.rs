//! `vlan`: a VLAN netdev on a parent, running now and made at boot by the manager that owns the
//! parent. Its name is the netdev's. MTU, state and addresses are a `link` of the same name, which
//! comes after it.
//!
//! What is not there is made; what is there and means something else is never torn down, because
//! addresses and connections would go with it: it is refused with what to do by hand.

pub mod change;

use super::link::layers::{self, OnDisk, RunningLinkLayers, Settings};
use super::names::is_netdev;
use super::{DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff, ResourceKind};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use crate::link::Owner;
use railwright_base::Reason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The kind.
pub struct Vlan;

const NO_DETAILS: &str = "`ip -d` gave no details of it";

/// The desired state of a VLAN.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VlanBody {
    netdev: String,
    parent: String,
    /// The VLAN's number, 1 to 4094.
    id: u16,
    known_after: Option<String>,
}

impl Body for VlanBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_netdev("/netdev", &self.netdev);
        errors.require(
            is_netdev(&self.parent) && self.parent != self.netdev,
            "/parent",
            "`parent` must be the name of another netdev",
            "",
        );
        // 0 means a tag with a priority alone, 4095 is reserved (IEEE 802.1Q)
        errors.check_range("id", Some(self.id), 1..=4094);
        errors.check_known_after(self.known_after.as_deref());
    }
}

impl VlanBody {
    fn desired(&self) -> Settings {
        [
            ("id".to_owned(), json!(self.id)),
            ("parent".to_owned(), json!(self.parent)),
        ]
        .into()
    }
}

/// Whether it was there before our first change.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorVlanState {
    running: bool,
    persisted: bool,
}

const ANNOUNCED: [&str; 3] = ["add_vlan", "reload_link", "write_file"];

impl ResourceKind for Vlan {
    fn name(&self) -> &'static str {
        "vlan"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<VlanBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = read_body::<VlanBody>(&resource.body);
        let mut all = layers::build_layer_reads(&body.netdev, std::slice::from_ref(&body.parent));
        all.push(Read::Link {
            netdev: body.parent,
        });
        all
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = read_body::<VlanBody>(&resource.body);
        match decode_vlan_state(&body, answers) {
            Ok((running, on_disk)) => {
                diff_vlan(&body, resource, answers, running.as_ref(), &on_disk)
            }
            Err(reason) => build_unknown_vlan_diff(&body, reason),
        }
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let body = read_body::<VlanBody>(&last_applied.body);
        let before: PriorVlanState =
            serde_json::from_value(before.clone()).unwrap_or(PriorVlanState {
                running: true,
                persisted: true,
            });
        match decode_vlan_state(&body, answers) {
            Ok((Some(running), _)) if !running.is_told => {
                build_unknown_vlan_diff(&body, NO_DETAILS.into())
            }
            Ok((running, on_disk)) => {
                change::take_back(&body, before, running.as_ref(), &on_disk, answers)
            }
            Err(reason) => build_unknown_vlan_diff(&body, reason),
        }
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorVlanState::deserialize(before).is_ok()
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["kernel_module", "kernel_module_build"]
    }
}

fn decode_vlan_state(
    body: &VlanBody,
    answers: &ReadResults,
) -> Result<(Option<RunningLinkLayers>, OnDisk), Reason> {
    let running = layers::decode_running_layers(answers, &body.netdev)?;
    Ok((
        running,
        layers::on_disk(
            answers,
            &body.netdev,
            "vlan",
            std::slice::from_ref(&body.parent),
        )?,
    ))
}

fn build_unknown_vlan_diff(body: &VlanBody, reason: Reason) -> ResourceDiff {
    layers::diff_layer_settings(&body.desired(), |_, _| Reading::Unknown(reason.clone()))
}

fn diff_vlan(
    body: &VlanBody,
    resource: &DesiredResource,
    answers: &ReadResults,
    running: Option<&RunningLinkLayers>,
    on_disk: &OnDisk,
) -> ResourceDiff {
    let mut diff = layers::diff_layer_settings(&body.desired(), |word, plane| {
        let value = match (plane, running) {
            (Plane::Persisted, _) => on_disk.settings.get(word),
            (_, Some(running)) if !running.is_told => {
                return Reading::Unknown(NO_DETAILS.into());
            }
            (_, Some(running)) => running.settings.get(word),
            (_, None) => None,
        };
        Reading::from(value.cloned())
    });
    let before = PriorVlanState {
        running: running.is_some(),
        persisted: !on_disk.settings.is_empty(),
    };
    diff.before = serde_json::to_value(before).unwrap_or_default();
    if !diff.is_met() && !diff.has_unknown() {
        plan_vlan_fix(body, resource, answers, running, on_disk, &mut diff);
    }
    diff
}

fn plan_vlan_fix(
    body: &VlanBody,
    resource: &DesiredResource,
    answers: &ReadResults,
    running: Option<&RunningLinkLayers>,
    on_disk: &OnDisk,
    diff: &mut ResourceDiff,
) {
    let disk = diff.differs_in(Plane::Persisted);
    let now = diff.differs_in(Plane::Running);
    if let Some(running) = running.filter(|_| now) {
        return diff.refusal = Some(in_the_way(body, running));
    }
    let desired = body.desired();
    if disk
        && on_disk
            .settings
            .iter()
            .any(|(word, value)| desired.get(word).is_some_and(|desired| desired != value))
    {
        return diff.refusal = Some(format!(
            "{} is on disk as {}, and {} is desired; change it there, because what goes by it \
             (addresses, routes) would go along",
            body.netdev,
            describe_vlan_settings(&on_disk.settings),
            describe_vlan_settings(&desired)
        ));
    }
    match super::link::link_state(answers, &body.parent) {
        Ok(Some(_)) => {}
        Ok(None) => {
            return change::wait_for_parent(body, resource, diff, || {
                format!(
                    "there is no netdev {} for VLAN {} to sit on",
                    body.parent, body.id
                )
            });
        }
        Err(reason) => return diff.refusal = Some(reason.to_string()),
    }
    let waits = resource
        .after
        .iter()
        .any(|after| after.kind() == "link" && after.name() == body.parent);
    if disk && waits && matches!(on_disk.below, Owner::Nobody { .. }) {
        diff.known_after = Some(format!("link/{}", body.parent));
        diff.announced = ANNOUNCED.map(str::to_owned).to_vec();
        return;
    }
    match change::plan_vlan_creation(body, disk, now, on_disk) {
        Err(reason) => diff.refusal = Some(reason.to_string()),
        Ok((actions, reload)) => {
            diff.actions = actions;
            change::record_vlan_disruption(body, reload, answers, diff);
        }
    }
}

/// `{"id":100,"parent":"ens1"}` in words.
fn describe_vlan_settings(settings: &Settings) -> String {
    let (id, parent) = (settings.get("id"), settings.get("parent"));
    format!(
        "VLAN {} on {}",
        describe_setting(id),
        describe_setting(parent)
    )
}

fn describe_setting(value: Option<&Value>) -> String {
    match value {
        None => "none".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

fn in_the_way(body: &VlanBody, running: &RunningLinkLayers) -> String {
    let what = match running.kind.as_deref() {
        Some("vlan") => describe_vlan_settings(&running.settings),
        Some(other) => format!("a {other}"),
        None => "a NIC".to_owned(),
    };
    format!(
        "{} is there as {what}, and VLAN {} on {} is desired; it is not torn down, because \
         addresses and connections would go with it: remove it by hand (ip link del dev {}) once \
         nobody uses it",
        body.netdev, body.id, body.parent, body.netdev
    )
}

#[cfg(test)]
mod tests;
