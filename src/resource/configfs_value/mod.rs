//! `configfs_value`: a default of rdma_cm for the RDMA device on a netdev (`default_roce_tos`,
//! `default_roce_mode`). Its name is `<netdev>.<attribute>`.
//!
//! The kernel shows the value only below a directory that somebody has made for the device, and
//! forgets it with the device. Making the directory is a side effect, so a read never does: a unit
//! of ours makes it and keeps it, and a directory that is not there is a difference like any other.

use super::keeper::{PersistenceUnit, PersistenceUnitFiles, Trigger};
use super::rdma_link::{device_on, rdma_devices};
use super::{
    Action, Attribute, DesiredResource, Disruption, Plane, Read, ReadResults, Reading,
    ResourceDiff, ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, Scalar, read_body};
use crate::json_fields::read_text_field;
use crate::read::quote_rooted_path;
use crate::rights::RootAccessNeed;
use railwright_base::Reason;
use railwright_base::quote::quote_for_shell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind.
pub struct ConfigfsValue;

const ROOT: &str = "/sys/kernel/config";
const MODES: [&str; 2] = ["IB/RoCE v1", "RoCE v2"];

/// The desired state of a default of rdma_cm.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ConfigfsValueBody {
    netdev: String,
    attribute: RdmaCmDefault,
    /// A type of service from 0 to 255, or a RoCE mode: IB/RoCE v1 or RoCE v2.
    value: Scalar,
    known_after: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RdmaCmDefault {
    #[default]
    DefaultRoceTos,
    DefaultRoceMode,
}

impl RdmaCmDefault {
    fn word(self) -> &'static str {
        match self {
            RdmaCmDefault::DefaultRoceTos => "default_roce_tos",
            RdmaCmDefault::DefaultRoceMode => "default_roce_mode",
        }
    }
}

impl Body for ConfigfsValueBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_netdev("/netdev", &self.netdev);
        errors.check_known_after(self.known_after.as_deref());
        let Scalar(value) = &self.value;
        match self.attribute {
            RdmaCmDefault::DefaultRoceTos => errors.require(
                // the kernel keeps it in a byte
                value.parse::<u8>().is_ok(),
                "/value",
                "`value` must be a type of service from 0 to 255",
                "four times the DSCP: DSCP 26 is 104; 106 also says that the sender reacts to ECN",
            ),
            RdmaCmDefault::DefaultRoceMode => errors.require(
                MODES.contains(&value.as_str()),
                "/value",
                "`value` must be a RoCE mode",
                &MODES.join(" or "),
            ),
        }
    }
}

impl ConfigfsValueBody {
    /// The value as the kernel shows it: a number without leading zeros.
    fn value_text(&self) -> String {
        let Scalar(value) = &self.value;
        let number = value.parse::<u64>();
        number.map_or_else(|_| value.clone(), |number| number.to_string())
    }

    fn desired_reading(&self) -> Reading {
        parse_value_reading(&self.value_text())
    }
}

/// The number or text that ran before our first change; none where nobody had made its directory.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorConfigfsValue {
    running: Option<Value>,
}

impl ResourceKind for ConfigfsValue {
    fn name(&self) -> &'static str {
        "configfs_value"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        Some(format!(
            "{}.{}",
            read_text_field(body, "netdev")?,
            read_text_field(body, "attribute")?
        ))
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<ConfigfsValueBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let mut reads = vec![Read::RdmaLinks, build_rdma_cm_read()];
        reads.extend(build_configfs_unit(&read_body(&resource.body)).reads());
        reads
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = &read_body::<ConfigfsValueBody>(&resource.body);
        let keeper = build_configfs_unit(body);
        let kept = keeper.kept(answers);
        let device = device_name(body, answers);
        let found = read_running_value(body, &device, answers);
        let mut diff = ResourceDiff::default();
        let on_disk = read_persisted_value(body, &keeper, &kept);
        let value = Attribute::in_plane(Plane::Persisted, body.desired_reading(), on_disk).and(
            Plane::Running,
            body.desired_reading(),
            found.clone(),
        );
        diff.attributes.insert("value".to_owned(), value);
        diff.attributes
            .insert("unit".to_owned(), keeper.attribute(&kept));
        let before = PriorConfigfsValue {
            running: found.value().cloned(),
        };
        diff.before = serde_json::to_value(before).unwrap_or_default();
        match (device, kept) {
            (Ok(Some(device)), Ok(kept)) if !diff.has_unknown() => {
                plan_write_actions(body, &keeper, &kept, &device, &mut diff)
            }
            (Ok(None), _) => {
                let step = body.known_after.clone();
                diff.known_after = step.or_else(|| Some(format!("rdma_link/{}", body.netdev)));
                diff.announced = ["reload_systemd", "set_configfs", "write_file"]
                    .map(str::to_owned)
                    .to_vec();
            }
            _ => {}
        }
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        plan_configfs_undo(&read_body(&last_applied.body), before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorConfigfsValue::deserialize(before).is_ok_and(|prior| {
            let mut value = prior.running.iter();
            value.all(|value| value.is_u64() || value.is_string())
        })
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["rdma_link", "kernel_module", "kernel_module_build"]
    }
}

fn parse_value_reading(text: &str) -> Reading {
    text.parse::<u64>()
        .map_or_else(|_| Reading::is(text), Reading::is)
}

/// All defaults of all devices that somebody made a directory for.
fn build_rdma_cm_read() -> Read {
    Read::Configfs {
        path: "rdma_cm".to_owned(),
    }
}

fn build_attribute_path(device: &str, attribute: &str) -> String {
    format!("{ROOT}/rdma_cm/{device}/ports/1/{attribute}")
}

fn build_configfs_unit(body: &ConfigfsValueBody) -> PersistenceUnit {
    let name = format!("{}.{}", body.netdev, body.attribute.word());
    PersistenceUnit::new(
        "configfs-value",
        &name,
        Trigger::RdmaDevice,
        &render_configfs_unit_script(body),
    )
}

/// Finds the device by its netdev, because its name is not stable; without one there is nothing to
/// do yet.
fn render_configfs_unit_script(body: &ConfigfsValueBody) -> String {
    format!(
        "netdev={netdev}\n\
         find_device() {{ for g in /sys/class/infiniband/*/ports/1/gid_attrs/ndevs/0 \
         /sys/class/infiniband/*/parent; do\n\
         [ \"$(cat \"$g\" 2>/dev/null)\" = \"$netdev\" ] || continue; \
         d=${{g#/sys/class/infiniband/}}; printf %s \"${{d%%/*}}\"; return 0; done; return 1; }}\n\
         for t in 1 2 3 4 5; do device=$(find_device) && break; sleep 1; done\n\
         [ -n \"$device\" ] || exit 0\n\
         modprobe -q rdma_cm; [ -d {ROOT}/rdma_cm ] || mount -t configfs none {ROOT}\n\
         mkdir -p \"{ROOT}/rdma_cm/$device\" && printf '%s\\n' {value} \
         >\"{ROOT}/rdma_cm/$device/ports/1/{attribute}\"\n",
        netdev = quote_for_shell(&body.netdev),
        value = quote_for_shell(&body.value_text()),
        attribute = body.attribute.word(),
    )
}

/// The device on the netdev, by its name now.
fn device_name(body: &ConfigfsValueBody, answers: &ReadResults) -> Result<Option<String>, Reason> {
    let devices = rdma_devices(answers)?;
    Ok(device_on(&devices, &body.netdev).map(|device| device.name.clone()))
}

fn read_running_value(
    body: &ConfigfsValueBody,
    device: &Result<Option<String>, Reason>,
    answers: &ReadResults,
) -> Reading {
    let device = match device {
        Err(reason) => return Reading::Unknown(reason.clone()),
        Ok(None) => return Reading::Absent,
        Ok(Some(device)) => device,
    };
    let key = build_attribute_path(device, body.attribute.word());
    match answers.output(&build_rdma_cm_read()) {
        Err(reason) => Reading::Unknown(reason),
        Ok((_, out)) => out
            .lines()
            .find_map(|line| line.strip_prefix(&key)?.strip_prefix(':'))
            .map_or(Reading::Absent, parse_value_reading),
    }
}

/// The value that the script sets.
fn read_persisted_value(
    body: &ConfigfsValueBody,
    keeper: &PersistenceUnit,
    kept: &Result<PersistenceUnitFiles, Reason>,
) -> Reading {
    keeper.persisted(kept, body.desired_reading(), |text| {
        let line = text
            .lines()
            .find_map(|line| line.split_once("printf '%s\\n' '")?.1.split_once('\''))
            .map(|(value, _)| value);
        line.map_or_else(|| Reading::is("changed"), parse_value_reading)
    })
}

fn plan_write_actions(
    body: &ConfigfsValueBody,
    keeper: &PersistenceUnit,
    kept: &PersistenceUnitFiles,
    device: &str,
    diff: &mut ResourceDiff,
) {
    diff.actions = keeper.write(kept);
    if diff.differs_in(Plane::Running) {
        diff.actions.push(Action::SetConfigfs {
            path: build_attribute_path(device, body.attribute.word()),
            value: body.value_text(),
        });
        diff.disruption = Disruption::Reload;
        diff.interrupts = vec![format!(
            "new RDMA connections over {} use it; those that exist keep theirs",
            body.netdev
        )];
    }
}

/// What was set before comes back; what the kernel would have had without us is only known again
/// after its reload.
fn plan_configfs_undo(
    body: &ConfigfsValueBody,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let device = device_name(body, answers);
    let found = read_running_value(body, &device, answers);
    if let Reading::Unknown(reason) = found {
        return ResourceDiff::unknown_undo(Plane::Running, before, reason);
    }
    let mut diff = ResourceDiff {
        before: before.clone(),
        ..ResourceDiff::default()
    };
    build_configfs_unit(body).take_back(&mut diff, answers);
    let prior = PriorConfigfsValue::deserialize(before).unwrap_or_default();
    let Some(old) = prior.running else {
        if found.value().is_some() {
            diff.residue = vec![format!(
                "{} stays at {} on {} until its driver is reloaded: nobody had made its directory \
                 before",
                body.attribute.word(),
                body.value_text(),
                body.netdev
            )];
        }
        return diff;
    };
    // What is gone has no value to be put back.
    let Ok(Some(device)) = device else {
        return diff;
    };
    diff.attributes.insert(
        "value".to_owned(),
        Attribute::in_plane(Plane::Running, Reading::Is(old.clone()), found.clone()),
    );
    if found != Reading::Is(old.clone()) {
        let value = old.as_str().map_or_else(|| old.to_string(), str::to_owned);
        diff.actions.push(Action::SetConfigfs {
            path: build_attribute_path(&device, body.attribute.word()),
            value,
        });
        diff.disruption = Disruption::Reload;
    }
    diff
}

/// configfs is the world's to read, unless it was mounted otherwise.
pub fn list_configfs_access_needs(path: &str) -> Vec<RootAccessNeed> {
    vec![RootAccessNeed::Sight(format!("{ROOT}/{path}/x"))]
}

/// Every file below a directory of configfs, as `path:value`; exit 1 when it is not there.
pub fn read_script(path: &str) -> String {
    let full = quote_rooted_path(&format!("{ROOT}/{path}"));
    format!(
        "f={full}; [ -d \"$f\" ] || exit 1\n\
         grep -rs . \"$f\" /dev/null | while IFS= read -r l; do printf '%s\\n' \"${{l#\"$R\"}}\"; \
         done\n\
         exit 0\n"
    )
}

/// Writes a value, with the module, the mount and the directories that its path needs.
pub fn set_script(path: &str, value: &str) -> String {
    let subsystem = path
        .strip_prefix(ROOT)
        .unwrap_or_default()
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    format!(
        "set -e\n\
         modprobe -q configfs || :\n\
         modprobe -q {module} || :\n\
         [ -d {ROOT}/{module} ] || mount -t configfs none {ROOT}\n\
         f={path}\n\
         mkdir -p \"${{f%/*}}\"\n\
         printf '%s\\n' {value} >\"$f\"\n",
        module = quote_for_shell(subsystem),
        path = quote_for_shell(path),
        value = quote_for_shell(value),
    )
}

#[cfg(test)]
mod tests;
