//! `rdma_link`: an RDMA device on a netdev. `rxe` (Soft-RoCE) is added and kept by a unit of ours,
//! because the kernel forgets it; `hca` only checks that the hardware's driver gave one, and that no
//! Soft-RoCE takes its place. Its name is the netdev's: the device's own name is not stable.

pub mod devices;

pub use devices::{GidTableEntry, RdmaDevice, RdmaPort, device_on, rdma_devices};
use railwright_base::Reason;

use super::keeper::{PersistenceUnit, PersistenceUnitFiles, Trigger};
use super::link::{link_state, other_netdevs};
use super::{
    Action, Attribute, DesiredResource, Disruption, Plane, Read, ReadResults, Reading,
    ResourceDiff, ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use railwright_base::quote::quote_for_shell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind.
pub struct RdmaLink;

/// The desired state of the RDMA device of a netdev.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RdmaLinkBody {
    netdev: String,
    /// rxe is Soft-RoCE, hca is hardware.
    r#type: RdmaLinkType,
    name: Option<String>,
    known_after: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RdmaLinkType {
    Rxe,
    #[default]
    Hca,
}

impl Body for RdmaLinkBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_netdev("/netdev", &self.netdev);
        if let Some(name) = self.name.as_ref().filter(|name| !is_device_name(name)) {
            errors.add(
                "/name",
                format!("`{name}` cannot be the name of an RDMA device"),
                "letters, digits, `_` and `-`, such as rxe0",
            );
        }
        errors.check_known_after(self.known_after.as_deref());
    }
}

impl RdmaLinkBody {
    fn is_soft(&self) -> bool {
        self.r#type == RdmaLinkType::Rxe
    }

    fn device_name(&self) -> String {
        let name = self.name.clone();
        name.unwrap_or_else(|| format!("rxe_{}", self.netdev.replace(['.', '@'], "_")))
    }
}

/// What was there before our first change: the name of the device, and whether there were files in
/// the place of ours.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorRdmaLink {
    device: Option<String>,
    kept: bool,
}

impl ResourceKind for RdmaLink {
    fn name(&self) -> &'static str {
        "rdma_link"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<RdmaLinkBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = &read_body::<RdmaLinkBody>(&resource.body);
        let mut reads = vec![
            Read::RdmaLinks,
            Read::Link {
                netdev: body.netdev.clone(),
            },
        ];
        if body.is_soft() {
            reads.extend(build_soft_roce_unit(body).reads());
        }
        reads
    }

    /// Where hardware is desired now, Soft-RoCE may have been before.
    fn reads_to_undo(&self, applied: &DesiredResource) -> Vec<Read> {
        let body = &read_body::<RdmaLinkBody>(&applied.body);
        let mut reads = self.reads(applied);
        if !body.is_soft() {
            reads.extend(build_soft_roce_unit(body).reads());
        }
        reads
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = &read_body::<RdmaLinkBody>(&resource.body);
        let mut diff = ResourceDiff::default();
        let devices = rdma_devices(answers);
        let device = devices
            .as_ref()
            .map(|devices| device_on(devices, &body.netdev))
            .map_err(Clone::clone);
        let mut found = build_presence_reading(&device);
        if body.is_soft() {
            diff_soft(resource, body, answers, &device, &mut diff);
        } else if let Some(soft) = find_soft_roce(&devices, &body.netdev) {
            found = Reading::is(format!("the Soft-RoCE device {}", soft.name));
            diff.refusal = Some(format!(
                "{} has the Soft-RoCE device {}, and hardware is desired: take this rdma_link out \
                 of the spec and apply, which removes what railwright made, then declare it again; \
                 one of somebody else goes with `rdma link delete`",
                body.netdev, soft.name
            ));
        } else if let Ok(None) = device {
            wait_or_refuse(resource, body, answers, &mut diff);
        }
        let running = Attribute::in_plane(Plane::Running, Reading::is("present"), found);
        diff.attributes.insert("device".to_owned(), running);
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let body = read_body::<RdmaLinkBody>(&last_applied.body);
        if body.is_soft() || !before.is_null() {
            plan_rdma_link_undo(&body, before, answers)
        } else {
            ResourceDiff::default()
        }
    }

    /// What there was before Soft-RoCE: for hardware nothing is recorded, for nothing is changed.
    fn remembered(&self, first: &Value, now: &Value) -> Value {
        let recorded = if first.is_null() { now } else { first };
        recorded.clone()
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorRdmaLink::deserialize(before).is_ok()
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["kernel_module", "kernel_module_build", "package", "link"]
    }
}

fn is_device_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() < 64
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn build_soft_roce_unit(body: &RdmaLinkBody) -> PersistenceUnit {
    let netdev = &body.netdev;
    let commands = format!(
        "for g in /sys/class/infiniband/*/parent; do [ \"$(cat \"$g\" 2>/dev/null)\" = {netdev} ] \
         && exit 0; done\n\
         exec rdma link add {name} type rxe netdev {netdev}\n",
        name = quote_for_shell(&body.device_name()),
        netdev = quote_for_shell(netdev),
    );
    PersistenceUnit::new(
        "rdma-link",
        netdev,
        Trigger::Netdev(netdev.to_owned()),
        &commands,
    )
}

fn find_soft_roce<'a>(
    devices: &'a Result<Vec<RdmaDevice>, Reason>,
    netdev: &str,
) -> Option<&'a RdmaDevice> {
    let mut devices = devices.iter().flatten();
    devices.find(|device| device.is_soft_roce && device.netdev.as_deref() == Some(netdev))
}

fn build_presence_reading(device: &Result<Option<&RdmaDevice>, Reason>) -> Reading {
    match device {
        Ok(Some(_)) => Reading::is("present"),
        Ok(None) => Reading::Absent,
        Err(reason) => Reading::Unknown(reason.clone()),
    }
}

fn diff_soft(
    resource: &DesiredResource,
    body: &RdmaLinkBody,
    answers: &ReadResults,
    device: &Result<Option<&RdmaDevice>, Reason>,
    diff: &mut ResourceDiff,
) {
    let keeper = build_soft_roce_unit(body);
    let kept = keeper.kept(answers);
    diff.attributes
        .insert("unit".to_owned(), keeper.attribute(&kept));
    let (Ok(device), Ok(kept)) = (device, kept) else {
        return;
    };
    let before = PriorRdmaLink {
        device: device.map(|device| device.name.clone()),
        kept: kept != PersistenceUnitFiles::default(),
    };
    diff.before = serde_json::to_value(before).unwrap_or_default();
    if let Some(hardware) = device.filter(|device| !device.is_soft_roce) {
        diff.refusal = Some(format!(
            "{} already has the hardware RDMA device {}; Soft-RoCE above it would only take its \
             place in programs that use the first device",
            body.netdev, hardware.name
        ));
        return;
    }
    match link_state(answers, &body.netdev) {
        Ok(None) => return wait_or_refuse(resource, body, answers, diff),
        Err(_) => return,
        Ok(Some(_)) => {}
    }
    diff.actions = keeper.write(&kept);
    if device.is_none() {
        let (name, netdev) = (body.device_name(), body.netdev.clone());
        diff.actions.push(Action::AddRdmaLink {
            name,
            link_type: "rxe".to_owned(),
            netdev,
        });
    }
}

/// The netdev or its device is not there: it comes with the step that the resource names, or
/// something is wrong.
fn wait_or_refuse(
    resource: &DesiredResource,
    body: &RdmaLinkBody,
    answers: &ReadResults,
    diff: &mut ResourceDiff,
) {
    let announced: &[&str] = if body.is_soft() {
        &["add_rdma_link", "reload_systemd", "write_file"]
    } else {
        &[]
    };
    diff.wait_or_refuse(resource, announced, || {
        let netdev = &body.netdev;
        let names = other_netdevs(answers, netdev);
        if names.is_empty() {
            format!(
                "{netdev} has no RDMA device: the RDMA half of its driver (mlx5_ib, irdma, \
                 bnxt_re, erdma) is not loaded, or it is no RDMA NIC"
            )
        } else {
            format!(
                "there is no netdev {netdev} (there are: {})",
                names.join(", ")
            )
        }
    });
}

/// Where hardware is desired by now, the files say whether a Soft-RoCE device is ours; so they go
/// last.
fn plan_rdma_link_undo(body: &RdmaLinkBody, before: &Value, answers: &ReadResults) -> ResourceDiff {
    let mut diff = ResourceDiff {
        before: before.clone(),
        ..ResourceDiff::default()
    };
    build_soft_roce_unit(body).take_back(&mut diff, answers);
    let prior = PriorRdmaLink::deserialize(before).unwrap_or_default();
    if prior.device.is_some() {
        return diff;
    }
    let devices = rdma_devices(answers);
    if let Err(reason) = devices {
        return ResourceDiff::unknown_undo(Plane::Running, before, reason);
    }
    let is_kept = !diff.actions.is_empty();
    let device = find_soft_roce(&devices, &body.netdev).filter(|_| body.is_soft() || is_kept);
    diff.attributes.insert(
        "device".to_owned(),
        Attribute::in_plane(
            Plane::Running,
            Reading::Absent,
            build_presence_reading(&Ok(device)),
        ),
    );
    if let Some(device) = device {
        let name = device.name.clone();
        diff.actions.insert(0, Action::RemoveRdmaLink { name });
        diff.disruption = Disruption::LinkBlip;
        diff.interrupts = vec![format!(
            "every RDMA connection over {} ends: its device {} goes away",
            body.netdev, device.name
        )];
        diff.disturbs = vec![
            format!("configfs_value/{}.default_roce_tos", body.netdev),
            format!("configfs_value/{}.default_roce_mode", body.netdev),
        ];
    }
    diff
}

/// Adds a Soft-RoCE device unless the netdev has one; the kernel loads the module of the type
/// itself. udev may rename the device right after, so its name is waited for no longer than the
/// rename takes.
pub fn add_script(name: &str, link_type: &str, netdev: &str) -> String {
    format!(
        "set -e\n\
         for g in /sys/class/infiniband/*/parent; do [ \"$(cat \"$g\" 2>/dev/null)\" = {netdev} ] \
         && exit 0; done\n\
         rdma link add {} type {} netdev {netdev}\n\
         udevadm settle -t 10 2>/dev/null || :\n",
        quote_for_shell(name),
        quote_for_shell(link_type),
        netdev = quote_for_shell(netdev)
    )
}

/// Removes a device that software added; absent is fine.
pub fn remove_script(name: &str) -> String {
    format!(
        "[ -e /sys/class/infiniband/{name} ] || exit 0\nrdma link delete {name}\n",
        name = quote_for_shell(name)
    )
}

#[cfg(test)]
mod tests;
