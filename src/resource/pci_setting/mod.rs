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

use super::fields::{Fields, is_netdev};
use super::keeper::{PersistenceUnit, PersistenceUnitFiles, Trigger};
use super::package::found::FoundPackage;
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Disruption, Plane, Read,
    ReadResults, Reading, ResourceKind,
};
use config::{READ_REQUEST_MASK, is_address, read_request_field};
use found::{FoundDevice, Means, PciFunctionSelector};
use railwright_base::Reason;
use script::{PciRegister, PciWrite};
use serde_json::{Value, json};

/// The kind.
pub struct PciSetting;

impl ResourceKind for PciSetting {
    fn name(&self) -> &'static str {
        "pci_setting"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        if body.get("acs").is_some_and(Value::is_string) {
            return Some("acs".to_owned());
        }
        let device = body
            .get("netdev")
            .or_else(|| body.get("address"))?
            .as_str()?;
        Some(format!("{device}.max_read_request"))
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(
            body,
            &[
                "netdev",
                "address",
                "max_read_request",
                "acs",
                "netdevs",
                "bridges",
                "known_after",
            ],
        );
        fields.resource("known_after");
        match (fields.get("acs"), fields.get("max_read_request")) {
            (Some(_), None) => acs::check_acs_body(&mut fields),
            (None, Some(_)) => check_read_request(&mut fields),
            _ => fields.error(
                "",
                "one of `acs` and `max_read_request` is wished for",
                Some("a resource for each of them".to_owned()),
            ),
        }
        fields.finish()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        let mut reads = if is_acs(wish) {
            vec![Read::PciBridges, Read::Host]
        } else {
            vec![build_device_read(wish)]
        };
        reads.extend(awaited_package(wish).map(|name| Read::Packages {
            names: vec![name.to_owned()],
        }));
        reads.extend(build_pci_setting_unit(wish).reads());
        reads
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        if is_acs(wish) {
            acs::diff_acs(wish, answers)
        } else {
            diff_read_request(wish, answers)
        }
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        let mut assessment = Assessment {
            before: before.clone(),
            ..Assessment::default()
        };
        build_pci_setting_unit(last_applied).take_back(&mut assessment, answers);
        if is_acs(last_applied) {
            acs::plan_acs_undo(before, answers, &mut assessment);
        } else {
            plan_read_request_undo(last_applied, before, answers, &mut assessment);
        }
        assessment
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module", "kernel_module_build"]
    }
}

fn is_acs(wish: &DesiredResource) -> bool {
    wish.text("acs").is_some()
}

fn check_read_request(fields: &mut Fields<'_>) {
    match (fields.get("netdev"), fields.get("address")) {
        (Some(_), None) => drop(fields.netdev(true)),
        (None, Some(_)) => check_addresses(fields, "address"),
        _ => fields.error("", "the NIC is named by `netdev` or by `address`", None),
    }
    for field in ["netdevs", "bridges"] {
        if fields.get(field).is_some() {
            fields.error(
                &format!("/{field}"),
                format!("`{field}` belongs to `acs`"),
                None,
            );
        }
    }
    if fields
        .get("max_read_request")
        .and_then(Value::as_u64)
        .and_then(read_request_field)
        .is_none()
    {
        let help = Some("128, 256, 512, 1024, 2048 or 4096".to_owned());
        fields.error(
            "/max_read_request",
            "`max_read_request` must be a size that PCI Express has, in bytes",
            help,
        );
    }
}

/// One address, or a list of them.
fn check_addresses(fields: &mut Fields<'_>, field: &str) {
    let Some(value) = fields.get(field) else {
        return;
    };
    let addresses = match value {
        value if field == "address" => std::slice::from_ref(value),
        Value::Array(list) => list.as_slice(),
        _ => &[],
    };
    let mut texts = addresses.iter().map(Value::as_str);
    if addresses.is_empty() || !texts.all(|text| text.is_some_and(is_address)) {
        let help = Some("as the kernel writes it, such as 0000:3b:00.0".to_owned());
        fields.error(
            &format!("/{field}"),
            format!("`{field}` must be a PCI address"),
            help,
        );
    }
}

/// A list of netdevs, or a text of names with spaces between them, as a template makes it of the
/// rails.
fn check_netdevs(fields: &mut Fields<'_>) {
    let Some(value) = fields.get("netdevs") else {
        return;
    };
    let are_netdevs = match value {
        Value::String(text) => text.split_whitespace().all(is_netdev),
        Value::Array(list) => {
            let mut names = list.iter().map(Value::as_str);
            names.all(|name| name.is_some_and(is_netdev))
        }
        _ => false,
    };
    if !are_netdevs {
        fields.error("/netdevs", "`netdevs` must be a list of netdevs", None);
    }
}

fn extract_device_name(wish: &DesiredResource) -> &str {
    wish.text("netdev")
        .or_else(|| wish.text("address"))
        .unwrap_or_default()
}

fn extract_read_request_bytes(wish: &DesiredResource) -> u64 {
    wish.body
        .get("max_read_request")
        .and_then(Value::as_u64)
        .unwrap_or_default()
}

fn build_device_read(wish: &DesiredResource) -> Read {
    Read::PciDevice {
        device: extract_device_name(wish).to_owned(),
    }
}

fn build_pci_setting_unit(wish: &DesiredResource) -> PersistenceUnit {
    if is_acs(wish) {
        return acs::build_acs_unit(wish);
    }
    let device = extract_device_name(wish);
    let trigger = match PciFunctionSelector::of(device) {
        PciFunctionSelector::Netdev(netdev) => Trigger::Netdev(netdev.to_owned()),
        PciFunctionSelector::Address(address) => Trigger::PciFunction(address.to_owned()),
    };
    let field = read_request_field(extract_read_request_bytes(wish)).unwrap_or_default();
    let commands = script::keep_read_request(device, extract_read_request_bytes(wish), field);
    PersistenceUnit::new(
        "pci-setting",
        &format!("{device}.max_read_request"),
        trigger,
        &commands,
    )
}

/// The names in a list, or in a text with spaces between them, each once.
fn parse_name_list(wish: &DesiredResource, field: &str) -> Vec<String> {
    let names: std::collections::BTreeSet<&str> = match wish.body.get(field) {
        Some(Value::String(text)) => text.split_whitespace().collect(),
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Default::default(),
    };
    names.into_iter().map(str::to_owned).collect()
}

/// The value that our script sets; one that is not ours to the letter says itself what it sets, in
/// the line `NAME=value`.
fn read_persisted_value(
    name: &str,
    wanted: &Reading,
    keeper: &PersistenceUnit,
    kept: &Result<PersistenceUnitFiles, Reason>,
) -> Reading {
    keeper.persisted(kept, wanted.clone(), |text| {
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

/// A wish that cannot be judged, or whose device cannot have it, in both planes.
fn build_uniform_diff(name: &str, wanted: &Reading, found: &Reading) -> Assessment {
    let attribute = Attribute::in_plane(Plane::Persisted, wanted.clone(), found.clone()).and(
        Plane::Running,
        wanted.clone(),
        found.clone(),
    );
    Assessment {
        attributes: [(name.to_owned(), attribute)].into(),
        ..Assessment::default()
    }
}

/// What is not there comes with the step that the wish names, or something is wrong.
fn wait_or_refuse(wish: &DesiredResource, reason: Reason, assessment: &mut Assessment) {
    assessment.actions = Vec::new();
    assessment.wait_or_refuse(wish, &["reload_systemd", "set_pci", "write_file"], || {
        reason.to_string()
    });
}

/// The package that is to bring `setpci`.
fn awaited_package(wish: &DesiredResource) -> Option<&str> {
    wish.text("known_after")?.strip_prefix("package/")
}

/// The package that is to bring `setpci` and is there already: waiting for it would never end.
fn brought_nothing<'a>(wish: &'a DesiredResource, answers: &ReadResults) -> Option<&'a str> {
    let name = awaited_package(wish)?;
    FoundPackage::of(name, None, answers)
        .ok()?
        .version()
        .map(|_| name)
}

/// What stands in the way of writing, if anything does.
fn refuse_if_unwritable(
    wish: &DesiredResource,
    answers: &ReadResults,
    means: Means,
    assessment: &mut Assessment,
) -> bool {
    if !means.unlocked {
        assessment.refusal = Some(
            "the kernel is locked down (Secure Boot) and lets nobody write PCI registers: set it \
             in the firmware's setup, ACS also by the kernel's own `pci=disable_acs_redir=`"
                .to_owned(),
        );
    } else if let (false, Some(package)) = (means.setpci, brought_nothing(wish, answers)) {
        assessment.refusal = Some(format!(
            "{package} is installed, and root finds no `setpci` in its PATH: install {package} \
             again (apt-get install --reinstall {package}, dnf reinstall {package}), or look who \
             took the program away"
        ));
    } else if !means.setpci {
        wait_or_refuse(
            wish,
            "the host has no `setpci`: install pciutils".into(),
            assessment,
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
    wish: &DesiredResource,
    answers: &ReadResults,
) -> Result<RunningReadRequest, Reading> {
    let name = extract_device_name(wish);
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

fn diff_read_request(wish: &DesiredResource, answers: &ReadResults) -> Assessment {
    const NAME: &str = "max_read_request";
    let wanted = Reading::is(extract_read_request_bytes(wish));
    let running = match find_running_read_request(wish, answers) {
        Ok(running) => running,
        Err(reading) => {
            let mut assessment = build_uniform_diff(NAME, &wanted, &reading);
            if reading == Reading::Absent {
                let reason = format!("there is no {}", extract_device_name(wish));
                wait_or_refuse(wish, reason.into(), &mut assessment);
            }
            return assessment;
        }
    };
    let keeper = build_pci_setting_unit(wish);
    let kept = keeper.kept(answers);
    let mut assessment = build_kept_setting_diff(NAME, &wanted, &running.size, &keeper, &kept);
    assessment.before = json!({ "running": running.size.value() });
    let Ok(kept) = kept else { return assessment };
    if assessment.is_met()
        || assessment.has_unknown()
        || refuse_if_unwritable(wish, answers, running.means, &mut assessment)
    {
        return assessment;
    }
    assessment.actions = keeper.write(&kept);
    if running.size != wanted {
        assessment.actions.push(write_read_request(
            &running.address,
            extract_read_request_bytes(wish),
        ));
        assessment.disruption = Disruption::Reload;
        assessment.interrupts = vec![format!(
            "{} asks for memory in other portions from then on",
            extract_device_name(wish)
        )];
    }
    assessment
}

/// A setting as it runs and as our unit sets it at boot, and the unit itself.
fn build_kept_setting_diff(
    name: &str,
    wanted: &Reading,
    running: &Reading,
    keeper: &PersistenceUnit,
    kept: &Result<PersistenceUnitFiles, Reason>,
) -> Assessment {
    let on_disk = read_persisted_value(name, wanted, keeper, kept);
    let attribute = Attribute::in_plane(Plane::Persisted, wanted.clone(), on_disk).and(
        Plane::Running,
        wanted.clone(),
        running.clone(),
    );
    Assessment {
        attributes: [
            (name.to_owned(), attribute),
            ("unit".to_owned(), keeper.attribute(kept)),
        ]
        .into(),
        ..Assessment::default()
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
/// reboot.
fn plan_read_request_undo(
    wish: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
    assessment: &mut Assessment,
) {
    let now = found::read_pci_device(answers, extract_device_name(wish));
    let old = before
        .get("running")
        .and_then(Value::as_u64)
        .filter(|bytes| read_request_field(*bytes).is_some());
    let (
        Ok(FoundDevice::There {
            address,
            max_read_request: Ok(Some(found)),
            means,
            ..
        }),
        Some(old),
    ) = (now, old)
    else {
        assessment.residue = vec![format!(
            "the maximum read request of {} stays until the next reboot",
            extract_device_name(wish)
        )];
        return;
    };
    let differs = u64::from(found) != old;
    if differs && !means.can_write() {
        assessment.residue = vec![format!(
            "the maximum read request of {} stays until the next reboot: nothing here can write it",
            extract_device_name(wish)
        )];
        return;
    }
    let attribute = Attribute::in_plane(Plane::Running, Reading::is(old), Reading::is(found));
    assessment
        .attributes
        .insert("max_read_request".to_owned(), attribute);
    if differs {
        assessment.actions.push(write_read_request(&address, old));
        assessment.disruption = Disruption::Reload;
    }
}

#[cfg(test)]
mod tests;
