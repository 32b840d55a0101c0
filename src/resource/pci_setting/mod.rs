//! `pci_setting`: registers of PCI Express that decide how fast a NIC reaches memory: the maximum
//! read request of a NIC, and ACS on the bridges above GPUs and NICs. Its name is `<netdev or
//! address>.max_read_request` or `acs`.
//!
//! The kernel forgets both at a reboot, so a unit of ours sets them again. Writing needs `setpci`;
//! where a kernel is locked down nobody may write. ACS in a virtual machine is the host's, and a
//! machine that lends devices to virtual machines needs it: there it is refused.

mod acs;
pub mod config;
pub mod found;
pub mod script;

use super::keeper::{PersistenceUnit, PersistenceUnitFiles, Trigger};
use super::names::is_netdev;
use super::package::found::FoundPackage;
use super::{
    Action, Attribute, DesiredResource, Disruption, Plane, Read, ReadResults, Reading,
    ResourceDiff, ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use acs::AcsMode;
use config::{READ_REQUEST_MASK, is_address, read_request_field};
use found::{FoundDevice, Means, PciFunctionSelector};
use railwright_base::Reason;
use schemars::JsonSchema;
use script::{PciRegister, PciWrite};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The kind.
pub struct PciSetting;

/// The desired state of a NIC, or of the bridges above NICs.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PciSettingBody {
    netdev: Option<String>,
    address: Option<String>,
    /// Bytes: 128, 256, 512, 1024, 2048 or 4096.
    max_read_request: Option<u64>,
    acs: Option<AcsMode>,
    netdevs: Option<NetdevNames>,
    /// PCI addresses as the kernel writes them, such as 0000:3b:00.0.
    bridges: Option<BTreeSet<String>>,
    known_after: Option<String>,
}

/// A list of netdevs, or a text of names with spaces between them, as a template makes it of the
/// rails.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "not a list of netdevs")]
#[schemars(extend("type" = ["array", "string"], "items" = { "type": "string" }))]
enum NetdevNames {
    List(BTreeSet<String>),
    Text(String),
}

impl Body for PciSettingBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_known_after(self.known_after.as_deref());
        match (self.acs, self.max_read_request) {
            (Some(_), None) => self.check_acs(errors),
            (None, Some(bytes)) => self.check_read_request(bytes, errors),
            _ => errors.add(
                "",
                "a resource declares one of `acs` and `max_read_request`",
                "a resource for each of them",
            ),
        }
    }
}

impl PciSettingBody {
    fn check_read_request(&self, bytes: u64, errors: &mut BodyErrors) {
        match (&self.netdev, &self.address) {
            (Some(netdev), None) => errors.check_netdev("/netdev", netdev),
            (None, Some(address)) => check_addresses(errors, "address", [address]),
            _ => errors.add("", "the NIC is named by `netdev` or by `address`", ""),
        }
        for (field, is_there) in [
            ("netdevs", self.netdevs.is_some()),
            ("bridges", self.bridges.is_some()),
        ] {
            let message = format!("`{field}` belongs to `acs`");
            errors.require(!is_there, &format!("/{field}"), &message, "");
        }
        errors.require(
            read_request_field(bytes).is_some(),
            "/max_read_request",
            "`max_read_request` must be a size that PCI Express has, in bytes",
            "128, 256, 512, 1024, 2048 or 4096",
        );
    }

    fn check_acs(&self, errors: &mut BodyErrors) {
        for (field, is_there) in [
            ("netdev", self.netdev.is_some()),
            ("address", self.address.is_some()),
        ] {
            errors.require(
                !is_there,
                &format!("/{field}"),
                &format!("`{field}` belongs to `max_read_request`"),
                "`netdevs` for the bridges above NICs, `bridges` for addresses",
            );
        }
        match (&self.netdevs, &self.bridges) {
            (Some(_), None) => errors.require(
                self.list_netdevs().iter().all(|name| is_netdev(name)),
                "/netdevs",
                "`netdevs` must be a list of netdevs",
                "",
            ),
            (None, Some(bridges)) => check_addresses(errors, "bridges", bridges),
            _ => errors.add(
                "",
                "the bridges are those above `netdevs` and the GPUs, or named in `bridges`",
                "",
            ),
        }
    }

    /// The NIC, by its netdev or its address.
    fn device(&self) -> &str {
        let device = self.netdev.as_deref().or(self.address.as_deref());
        device.unwrap_or_default()
    }

    fn read_request_bytes(&self) -> u64 {
        self.max_read_request.unwrap_or_default()
    }

    /// The names in the list or text, each once.
    fn list_netdevs(&self) -> Vec<String> {
        let names: BTreeSet<&str> = match &self.netdevs {
            Some(NetdevNames::Text(text)) => text.split_whitespace().collect(),
            Some(NetdevNames::List(list)) => list.iter().map(String::as_str).collect(),
            None => BTreeSet::new(),
        };
        names.into_iter().map(str::to_owned).collect()
    }

    /// The package that is to bring `setpci`.
    fn package_to_come(&self) -> Option<&str> {
        self.known_after.as_deref()?.strip_prefix("package/")
    }
}

/// Notes addresses that no PCI function has, or that none is there.
fn check_addresses<'a>(
    errors: &mut BodyErrors,
    field: &str,
    addresses: impl IntoIterator<Item = &'a String>,
) {
    let mut addresses = addresses.into_iter().peekable();
    errors.require(
        addresses.peek().is_some() && addresses.all(|address| is_address(address)),
        &format!("/{field}"),
        &format!("`{field}` must be a PCI address"),
        "as the kernel writes it, such as 0000:3b:00.0",
    );
}

/// What ran before our first change.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PriorPciSetting {
    /// The maximum read request in bytes.
    Running(Option<u64>),
    /// The ACS control word of each bridge.
    Bridges(BTreeMap<String, u16>),
}

impl ResourceKind for PciSetting {
    fn name(&self) -> &'static str {
        "pci_setting"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        if read_text_field(body, "acs").is_some() {
            return Some("acs".to_owned());
        }
        let device =
            read_text_field(body, "netdev").or_else(|| read_text_field(body, "address"))?;
        Some(format!("{device}.max_read_request"))
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<PciSettingBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = &read_body::<PciSettingBody>(&resource.body);
        let mut reads = if body.acs.is_some() {
            vec![Read::PciBridges, Read::Host]
        } else {
            let device = body.device().to_owned();
            vec![Read::PciDevice { device }]
        };
        reads.extend(body.package_to_come().map(|name| Read::Packages {
            names: vec![name.to_owned()],
        }));
        reads.extend(build_pci_setting_unit(body).reads());
        reads
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = read_body::<PciSettingBody>(&resource.body);
        match body.acs {
            Some(mode) => acs::diff_acs(resource, &body, mode, answers),
            None => diff_read_request(resource, &body, answers),
        }
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let mut diff = ResourceDiff {
            before: before.clone(),
            ..ResourceDiff::default()
        };
        let body = read_body::<PciSettingBody>(&last_applied.body);
        build_pci_setting_unit(&body).take_back(&mut diff, answers);
        let undone = if body.acs.is_some() {
            acs::plan_acs_undo(before, answers, &mut diff)
        } else {
            plan_read_request_undo(&body, before, answers, &mut diff)
        };
        match undone {
            Ok(()) => diff,
            Err(reason) => ResourceDiff::unknown_undo(Plane::Running, before, reason),
        }
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorPciSetting::deserialize(before).is_ok()
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module", "kernel_module_build"]
    }
}

fn build_pci_setting_unit(body: &PciSettingBody) -> PersistenceUnit {
    if let Some(mode) = body.acs {
        return acs::build_acs_unit(body, mode);
    }
    let device = body.device();
    let trigger = match PciFunctionSelector::of(device) {
        PciFunctionSelector::Netdev(netdev) => Trigger::Netdev(netdev.to_owned()),
        PciFunctionSelector::Address(address) => Trigger::PciFunction(address.to_owned()),
    };
    let bytes = body.read_request_bytes();
    let field = read_request_field(bytes).unwrap_or_default();
    let commands = script::keep_read_request(device, bytes, field);
    PersistenceUnit::new(
        "pci-setting",
        &format!("{device}.max_read_request"),
        trigger,
        &commands,
    )
}

/// The value that our script sets; one that is not ours to the letter says itself what it sets, in
/// the line `NAME=value`.
fn read_persisted_value(
    name: &str,
    desired: &Reading,
    keeper: &PersistenceUnit,
    kept: &Result<PersistenceUnitFiles, Reason>,
) -> Reading {
    keeper.persisted(kept, desired.clone(), |text| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .map(|value| value.trim_matches('\''));
        value.map_or_else(
            || Reading::is("changed"),
            |value| {
                value.parse::<u64>().map_or_else(
                    |_| Reading::is(railwright_base::text::one_line(value, 40)),
                    Reading::is,
                )
            },
        )
    })
}

/// A resource that cannot be compared, or whose device cannot have it, in both planes.
fn build_uniform_diff(name: &str, desired: &Reading, actual: &Reading) -> ResourceDiff {
    let attribute = Attribute::in_plane(Plane::Persisted, desired.clone(), actual.clone()).and(
        Plane::Running,
        desired.clone(),
        actual.clone(),
    );
    ResourceDiff {
        attributes: [(name.to_owned(), attribute)].into(),
        ..ResourceDiff::default()
    }
}

/// What is not there comes with the step that the resource names, or something is wrong.
fn wait_or_refuse(resource: &DesiredResource, reason: Reason, diff: &mut ResourceDiff) {
    diff.actions = Vec::new();
    diff.wait_or_refuse(
        resource,
        &["reload_systemd", "set_pci", "write_file"],
        || reason.to_string(),
    );
}

/// The package that is to bring `setpci` and is there already: waiting for it would never end.
fn brought_nothing<'a>(body: &'a PciSettingBody, answers: &ReadResults) -> Option<&'a str> {
    let name = body.package_to_come()?;
    FoundPackage::of(name, None, answers)
        .ok()?
        .version()
        .map(|_| name)
}

/// What stands in the way of writing, if anything does.
fn refuse_if_unwritable(
    resource: &DesiredResource,
    body: &PciSettingBody,
    answers: &ReadResults,
    means: Means,
    diff: &mut ResourceDiff,
) -> bool {
    if !means.unlocked {
        diff.refusal = Some(
            "the kernel is locked down (Secure Boot) and lets nobody write PCI registers: set it \
             in the firmware's setup, ACS also by the kernel's own `pci=disable_acs_redir=`"
                .to_owned(),
        );
    } else if let (false, Some(package)) = (means.setpci, brought_nothing(body, answers)) {
        diff.refusal = Some(format!(
            "{package} is installed, and root finds no `setpci` in its PATH: install {package} \
             again (apt-get install --reinstall {package}, dnf reinstall {package}), or look who \
             took the program away"
        ));
    } else if !means.setpci {
        wait_or_refuse(
            resource,
            "the host has no `setpci`: install pciutils".into(),
            diff,
        );
    }
    !means.can_write()
}

/// The maximum read request of a NIC as it runs, and what writing it takes.
struct RunningReadRequest {
    address: String,
    size: Reading,
    means: Means,
}

/// Reads a NIC that has a maximum read request of its own. The error is the reading of one that has
/// none, in both planes.
fn find_running_read_request(
    body: &PciSettingBody,
    answers: &ReadResults,
) -> Result<RunningReadRequest, Reading> {
    let name = body.device();
    let (address, is_virtual_function, size, means) = match found::read_pci_device(answers, name) {
        Err(reason) => return Err(Reading::Unknown(reason)),
        Ok(FoundDevice::Missing) => return Err(Reading::Absent),
        Ok(FoundDevice::NotPci) => {
            return Err(Reading::NotApplicable(
                format!("{name} is on no PCI bus").into(),
            ));
        }
        Ok(FoundDevice::There {
            address,
            is_virtual_function,
            max_read_request,
            means,
        }) => (address, is_virtual_function, max_read_request, means),
    };
    // the kernel, drivers/pci/probe.c (pci_configure_mps): the field of a virtual function is
    // reserved
    if is_virtual_function {
        return Err(Reading::NotApplicable(
            format!("{name} is a virtual function: its physical function decides").into(),
        ));
    }
    let size = match size {
        Ok(Some(bytes)) => Reading::is(bytes),
        Ok(None) => {
            return Err(Reading::NotApplicable(
                format!("{name} has no PCI Express capability").into(),
            ));
        }
        Err(reason) => Reading::Unknown(reason),
    };
    Ok(RunningReadRequest {
        address,
        size,
        means,
    })
}

fn diff_read_request(
    resource: &DesiredResource,
    body: &PciSettingBody,
    answers: &ReadResults,
) -> ResourceDiff {
    const NAME: &str = "max_read_request";
    let desired = Reading::is(body.read_request_bytes());
    let running = match find_running_read_request(body, answers) {
        Ok(running) => running,
        Err(reading) => {
            let mut diff = build_uniform_diff(NAME, &desired, &reading);
            if reading == Reading::Absent {
                let reason = format!("there is no {}", body.device());
                wait_or_refuse(resource, reason.into(), &mut diff);
            }
            return diff;
        }
    };
    let keeper = build_pci_setting_unit(body);
    let kept = keeper.kept(answers);
    let mut diff = build_kept_setting_diff(NAME, &desired, &running.size, &keeper, &kept);
    let bytes = running.size.value().and_then(Value::as_u64);
    diff.before = serde_json::to_value(PriorPciSetting::Running(bytes)).unwrap_or_default();
    let Ok(kept) = kept else { return diff };
    if diff.is_met()
        || diff.has_unknown()
        || refuse_if_unwritable(resource, body, answers, running.means, &mut diff)
    {
        return diff;
    }
    diff.actions = keeper.write(&kept);
    if running.size != desired {
        diff.actions.push(write_read_request(
            &running.address,
            body.read_request_bytes(),
        ));
        diff.disruption = Disruption::Reload;
        diff.interrupts = vec![format!(
            "{} asks for memory in other portions from then on",
            body.device()
        )];
    }
    diff
}

/// A setting as it runs and as our unit sets it at boot, and the unit itself.
fn build_kept_setting_diff(
    name: &str,
    desired: &Reading,
    running: &Reading,
    keeper: &PersistenceUnit,
    kept: &Result<PersistenceUnitFiles, Reason>,
) -> ResourceDiff {
    let on_disk = read_persisted_value(name, desired, keeper, kept);
    let attribute = Attribute::in_plane(Plane::Persisted, desired.clone(), on_disk).and(
        Plane::Running,
        desired.clone(),
        running.clone(),
    );
    ResourceDiff {
        attributes: [
            (name.to_owned(), attribute),
            ("unit".to_owned(), keeper.attribute(kept)),
        ]
        .into(),
        ..ResourceDiff::default()
    }
}

fn write_read_request(address: &str, bytes: u64) -> Action {
    let value = read_request_field(bytes).unwrap_or_default();
    let write = PciWrite {
        address: address.to_owned(),
        register: PciRegister::DeviceControl,
        value,
        mask: READ_REQUEST_MASK,
    };
    Action::SetPci {
        writes: vec![write],
    }
}

/// The size of before comes back; what the firmware would have set is only known again after a
/// reboot. An error where the size of now is unknown.
fn plan_read_request_undo(
    body: &PciSettingBody,
    before: &Value,
    answers: &ReadResults,
    diff: &mut ResourceDiff,
) -> Result<(), Reason> {
    let now = found::read_pci_device(answers, body.device())?;
    let old = match PriorPciSetting::deserialize(before) {
        Ok(PriorPciSetting::Running(bytes)) => bytes,
        _ => None,
    };
    let old = old.filter(|bytes| read_request_field(*bytes).is_some());
    let there = match now {
        FoundDevice::There {
            address,
            max_read_request,
            means,
            ..
        } => max_read_request?.map(|bytes| (address, bytes, means)),
        FoundDevice::Missing | FoundDevice::NotPci => None,
    };
    let (Some((address, found, means)), Some(old)) = (there, old) else {
        diff.residue = vec![format!(
            "the maximum read request of {} stays until the next reboot",
            body.device()
        )];
        return Ok(());
    };
    let differs = u64::from(found) != old;
    if differs && !means.can_write() {
        diff.residue = vec![format!(
            "the maximum read request of {} stays until the next reboot: nothing here can write it",
            body.device()
        )];
        return Ok(());
    }
    let attribute = Attribute::in_plane(Plane::Running, Reading::is(old), Reading::is(found));
    diff.attributes
        .insert("max_read_request".to_owned(), attribute);
    if differs {
        diff.actions.push(write_read_request(&address, old));
        diff.disruption = Disruption::Reload;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
