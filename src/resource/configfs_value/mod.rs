//! `configfs_value`: a default of rdma_cm for the RDMA device on a netdev (`default_roce_tos`,
//! `default_roce_mode`). Its name is `<netdev>.<attribute>`.
//!
//! The kernel shows the value only below a directory that somebody has made for the device, and
//! forgets it with the device. Making the directory is a side effect, so a read never does: a unit
//! of ours makes it and keeps it, and a directory that is not there is a difference like any other.

use super::fields::Fields;
use super::keeper::{PersistenceUnit, PersistenceUnitFiles, Trigger};
use super::rdma_link::{device_on, rdma_devices};
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Disruption, Plane, Read,
    ReadResults, Reading, ResourceKind,
};
use crate::read::quote_rooted_path;
use crate::rights::RootAccessNeed;
use railwright_base::Reason;
use railwright_base::quote::quote_for_shell;
use serde_json::{Value, json};

/// The kind.
pub struct ConfigfsValue;

const ROOT: &str = "/sys/kernel/config";
const ATTRIBUTES: [&str; 2] = ["default_roce_tos", "default_roce_mode"];
const MODES: [&str; 2] = ["IB/RoCE v1", "RoCE v2"];

impl ResourceKind for ConfigfsValue {
    fn name(&self) -> &'static str {
        "configfs_value"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        Some(format!(
            "{}.{}",
            body.get("netdev")?.as_str()?,
            body.get("attribute")?.as_str()?
        ))
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(body, &["netdev", "attribute", "value", "known_after"]);
        fields.netdev(true);
        fields.resource("known_after");
        match fields.text("attribute", true) {
            Some("default_roce_tos") => {
                // the kernel keeps it in a byte
                let is_byte = fields
                    .get("value")
                    .and_then(parse_number_value)
                    .is_some_and(|tos| tos <= 255);
                if !is_byte {
                    let help = Some(
                        "four times the DSCP: DSCP 26 is 104; 106 also says that the sender reacts \
                         to ECN"
                            .to_owned(),
                    );
                    fields.error(
                        "/value",
                        "`value` must be a type of service from 0 to 255",
                        help,
                    );
                }
            }
            Some("default_roce_mode")
                if fields
                    .get("value")
                    .and_then(Value::as_str)
                    .is_none_or(|mode| !MODES.contains(&mode)) =>
            {
                fields.error(
                    "/value",
                    "`value` must be a RoCE mode",
                    Some(MODES.join(" or ")),
                );
            }
            Some("default_roce_mode") | None => {}
            Some(other) => fields.error(
                "/attribute",
                format!("`{other}` is no default of rdma_cm"),
                Some(ATTRIBUTES.join(" or ")),
            ),
        }
        fields.finish()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        let mut reads = vec![Read::RdmaLinks, build_rdma_cm_read()];
        reads.extend(build_configfs_unit(wish).reads());
        reads
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let keeper = build_configfs_unit(wish);
        let kept = keeper.kept(answers);
        let device = device_name(wish, answers);
        let found = read_running_value(wish, &device, answers);
        let mut assessment = Assessment::default();
        let on_disk = read_persisted_value(wish, &keeper, &kept);
        let value = Attribute::in_plane(Plane::Persisted, build_desired_reading(wish), on_disk)
            .and(Plane::Running, build_desired_reading(wish), found.clone());
        assessment.attributes.insert("value".to_owned(), value);
        assessment
            .attributes
            .insert("unit".to_owned(), keeper.attribute(&kept));
        assessment.before = json!({ "running": found.value() });
        match (device, kept) {
            (Ok(Some(device)), Ok(kept)) if !assessment.has_unknown() => {
                plan_write_actions(wish, &keeper, &kept, &device, &mut assessment)
            }
            (Ok(None), _) => {
                let step = wish.text("known_after").map_or_else(
                    || format!("rdma_link/{}", extract_netdev_name(wish)),
                    str::to_owned,
                );
                assessment.known_after = Some(step);
                assessment.announced = ["reload_systemd", "set_configfs", "write_file"]
                    .map(str::to_owned)
                    .to_vec();
            }
            _ => {}
        }
        assessment
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        plan_configfs_undo(last_applied, before, answers)
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["rdma_link", "kernel_module", "kernel_module_build"]
    }
}

fn extract_netdev_name(wish: &DesiredResource) -> &str {
    wish.text("netdev").unwrap_or_default()
}

fn extract_attribute_name(wish: &DesiredResource) -> &str {
    wish.text("attribute").unwrap_or_default()
}

fn parse_number_value(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn value_text(wish: &DesiredResource) -> String {
    let value = wish.body.get("value").unwrap_or(&Value::Null);
    parse_number_value(value)
        .map(|number| number.to_string())
        .or_else(|| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn build_desired_reading(wish: &DesiredResource) -> Reading {
    parse_value_reading(&value_text(wish))
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

fn build_configfs_unit(wish: &DesiredResource) -> PersistenceUnit {
    let name = format!(
        "{}.{}",
        extract_netdev_name(wish),
        extract_attribute_name(wish)
    );
    PersistenceUnit::new(
        "configfs-value",
        &name,
        Trigger::RdmaDevice,
        &render_configfs_unit_script(wish),
    )
}

/// Finds the device by its netdev, because its name is not stable; without one there is nothing to
/// do yet.
fn render_configfs_unit_script(wish: &DesiredResource) -> String {
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
        netdev = quote_for_shell(extract_netdev_name(wish)),
        value = quote_for_shell(&value_text(wish)),
        attribute = extract_attribute_name(wish),
    )
}

/// The device on the netdev, by its name now.
fn device_name(wish: &DesiredResource, answers: &ReadResults) -> Result<Option<String>, Reason> {
    let devices = rdma_devices(answers)?;
    Ok(device_on(&devices, extract_netdev_name(wish)).map(|device| device.name.clone()))
}

fn read_running_value(
    wish: &DesiredResource,
    device: &Result<Option<String>, Reason>,
    answers: &ReadResults,
) -> Reading {
    let device = match device {
        Err(reason) => return Reading::Unknown(reason.clone()),
        Ok(None) => return Reading::Absent,
        Ok(Some(device)) => device,
    };
    let key = build_attribute_path(device, extract_attribute_name(wish));
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
    wish: &DesiredResource,
    keeper: &PersistenceUnit,
    kept: &Result<PersistenceUnitFiles, Reason>,
) -> Reading {
    keeper.persisted(kept, build_desired_reading(wish), |text| {
        let line = text
            .lines()
            .find_map(|line| line.split_once("printf '%s\\n' '")?.1.split_once('\''))
            .map(|(value, _)| value);
        line.map_or_else(|| Reading::is("changed"), parse_value_reading)
    })
}

fn plan_write_actions(
    wish: &DesiredResource,
    keeper: &PersistenceUnit,
    kept: &PersistenceUnitFiles,
    device: &str,
    assessment: &mut Assessment,
) {
    assessment.actions = keeper.write(kept);
    if assessment.differs_in(Plane::Running) {
        assessment.actions.push(Action::SetConfigfs {
            path: build_attribute_path(device, extract_attribute_name(wish)),
            value: value_text(wish),
        });
        assessment.disruption = Disruption::Reload;
        assessment.interrupts = vec![format!(
            "new RDMA connections over {} use it; those that exist keep theirs",
            extract_netdev_name(wish)
        )];
    }
}

/// What was set before comes back; what the kernel would have had without us is only known again
/// after its reload.
fn plan_configfs_undo(wish: &DesiredResource, before: &Value, answers: &ReadResults) -> Assessment {
    let mut assessment = Assessment {
        before: before.clone(),
        ..Assessment::default()
    };
    build_configfs_unit(wish).take_back(&mut assessment, answers);
    let device = device_name(wish, answers);
    let found = read_running_value(wish, &device, answers);
    let Some(old) = before.get("running").filter(|old| !old.is_null()) else {
        if found.value().is_some() {
            assessment.residue = vec![format!(
                "{} stays at {} on {} until its driver is reloaded: nobody had made its directory \
                 before",
                extract_attribute_name(wish),
                value_text(wish),
                extract_netdev_name(wish)
            )];
        }
        return assessment;
    };
    assessment.attributes.insert(
        "value".to_owned(),
        Attribute::in_plane(Plane::Running, Reading::Is(old.clone()), found.clone()),
    );
    if let (Ok(Some(device)), true) = (device, found != Reading::Is(old.clone())) {
        let value = old.as_str().map_or_else(|| old.to_string(), str::to_owned);
        assessment.actions.push(Action::SetConfigfs {
            path: build_attribute_path(&device, extract_attribute_name(wish)),
            value,
        });
        assessment.disruption = Disruption::Reload;
    }
    assessment
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
