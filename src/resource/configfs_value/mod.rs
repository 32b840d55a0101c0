//! `configfs_value`: a default of rdma_cm for the RDMA device on a netdev (`default_roce_tos`, `default_roce_mode`). Its name is
//! `<netdev>.<attribute>`.
//!
//! The kernel shows the value only below a directory that somebody has made for the device, and forgets it with the
//! device. Making the directory is a side effect, so a read never does: a unit of ours makes it and keeps it, and a
//! directory that is not there is a difference like any other.

use super::fields::Fields;
use super::keeper::{Keeper, Kept, Trigger};
use super::rdma_link::{device_on, rdma_devices};
use super::{Action, Answers, Assessment, Attribute, BodyError, Disruption, Kind, Plane, Read, Reading, Wish};
use crate::read::rooted;
use crate::rights::Need;
use railwright_base::quote::sh;
use serde_json::{Value, json};

/// The kind.
pub struct ConfigfsValue;

const ROOT: &str = "/sys/kernel/config";
const ATTRIBUTES: [&str; 2] = ["default_roce_tos", "default_roce_mode"];
const MODES: [&str; 2] = ["IB/RoCE v1", "RoCE v2"];

impl Kind for ConfigfsValue {
    fn name(&self) -> &'static str {
        "configfs_value"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        Some(format!("{}.{}", body.get("netdev")?.as_str()?, body.get("attribute")?.as_str()?))
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(body, &["netdev", "attribute", "value", "known_after"]);
        fields.netdev(true);
        fields.resource("known_after");
        match fields.text("attribute", true) {
            Some("default_roce_tos") => {
                // the kernel keeps it in a byte
                let is_byte = fields.get("value").and_then(number).is_some_and(|tos| tos <= 255);
                if !is_byte {
                    let help = Some("four times the DSCP: DSCP 26 is 104; 106 also says that the sender reacts to ECN".to_owned());
                    fields.error("/value", "`value` must be a type of service from 0 to 255", help);
                }
            }
            Some("default_roce_mode") if fields.get("value").and_then(Value::as_str).is_none_or(|mode| !MODES.contains(&mode)) => {
                fields.error("/value", "`value` must be a RoCE mode", Some(MODES.join(" or ")));
            }
            Some("default_roce_mode") | None => {}
            Some(other) => fields.error("/attribute", format!("`{other}` is no default of rdma_cm"), Some(ATTRIBUTES.join(" or "))),
        }
        fields.finish()
    }

    fn reads(&self, wish: &Wish) -> Vec<Read> {
        let mut reads = vec![Read::RdmaLinks, tree()];
        reads.extend(keeper(wish).reads());
        reads
    }

    fn assess(&self, wish: &Wish, answers: &Answers) -> Assessment {
        let keeper = keeper(wish);
        let kept = keeper.kept(answers);
        let device = device_name(wish, answers);
        let found = running(wish, &device, answers);
        let mut assessment = Assessment::default();
        let on_disk = persisted(wish, &keeper, &kept);
        let value = Attribute::in_plane(Plane::Persisted, wanted(wish), on_disk).and(Plane::Running, wanted(wish), found.clone());
        assessment.attributes.insert("value".to_owned(), value);
        assessment.attributes.insert("unit".to_owned(), keeper.attribute(&kept));
        assessment.before = json!({ "running": found.value() });
        match (device, kept) {
            (Ok(Some(device)), Ok(kept)) if !assessment.has_unknown() => act(wish, &keeper, &kept, &device, &mut assessment),
            (Ok(None), _) => {
                let step = wish.text("known_after").map_or_else(|| format!("rdma_link/{}", netdev(wish)), str::to_owned);
                assessment.known_after = Some(step);
                assessment.announced = ["reload_systemd", "set_configfs", "write_file"].map(str::to_owned).to_vec();
            }
            _ => {}
        }
        assessment
    }

    fn undo(&self, last_applied: &Wish, before: &Value, answers: &Answers) -> Assessment {
        undo(last_applied, before, answers)
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["rdma_link", "kernel_module", "kernel_module_build"]
    }
}

fn netdev(wish: &Wish) -> &str {
    wish.text("netdev").unwrap_or_default()
}

fn attribute(wish: &Wish) -> &str {
    wish.text("attribute").unwrap_or_default()
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn value_text(wish: &Wish) -> String {
    let value = wish.body.get("value").unwrap_or(&Value::Null);
    number(value).map(|number| number.to_string()).or_else(|| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn wanted(wish: &Wish) -> Reading {
    typed(&value_text(wish))
}

fn typed(text: &str) -> Reading {
    text.parse::<u64>().map_or_else(|_| Reading::is(text), Reading::is)
}

/// All defaults of all devices that somebody made a directory for.
fn tree() -> Read {
    Read::Configfs { path: "rdma_cm".to_owned() }
}

fn path(device: &str, attribute: &str) -> String {
    format!("{ROOT}/rdma_cm/{device}/ports/1/{attribute}")
}

fn keeper(wish: &Wish) -> Keeper {
    let name = format!("{}.{}", netdev(wish), attribute(wish));
    Keeper::new("configfs-value", &name, Trigger::RdmaDevice, &commands(wish))
}

/// Finds the device by its netdev, because its name is not stable; without one there is nothing to do yet.
fn commands(wish: &Wish) -> String {
    format!(
        "netdev={netdev}\nfind_device() {{ for g in /sys/class/infiniband/*/ports/1/gid_attrs/ndevs/0 /sys/class/infiniband/*/parent; do\n\
         [ \"$(cat \"$g\" 2>/dev/null)\" = \"$netdev\" ] || continue; d=${{g#/sys/class/infiniband/}}; printf %s \"${{d%%/*}}\"; return 0; done; return 1; }}\n\
         for t in 1 2 3 4 5; do device=$(find_device) && break; sleep 1; done\n[ -n \"$device\" ] || exit 0\n\
         modprobe -q rdma_cm; [ -d {ROOT}/rdma_cm ] || mount -t configfs none {ROOT}\n\
         mkdir -p \"{ROOT}/rdma_cm/$device\" && printf '%s\\n' {value} >\"{ROOT}/rdma_cm/$device/ports/1/{attribute}\"\n",
        netdev = sh(netdev(wish)),
        value = sh(&value_text(wish)),
        attribute = attribute(wish),
    )
}

/// The device on the netdev, by its name now.
fn device_name(wish: &Wish, answers: &Answers) -> Result<Option<String>, String> {
    let devices = rdma_devices(answers)?;
    Ok(device_on(&devices, netdev(wish)).map(|device| device.name.clone()))
}

fn running(wish: &Wish, device: &Result<Option<String>, String>, answers: &Answers) -> Reading {
    let device = match device {
        Err(reason) => return Reading::Unknown(reason.clone()),
        Ok(None) => return Reading::Absent,
        Ok(Some(device)) => device,
    };
    let key = path(device, attribute(wish));
    match answers.output(&tree()) {
        Err(reason) => Reading::Unknown(reason),
        Ok((_, out)) => out.lines().find_map(|line| line.strip_prefix(&key)?.strip_prefix(':')).map_or(Reading::Absent, typed),
    }
}

/// The value that the script sets.
fn persisted(wish: &Wish, keeper: &Keeper, kept: &Result<Kept, String>) -> Reading {
    keeper.persisted(kept, wanted(wish), |text| {
        let line = text.lines().find_map(|line| line.split_once("printf '%s\\n' '")?.1.split_once('\'')).map(|(value, _)| value);
        line.map_or_else(|| Reading::is("changed"), typed)
    })
}

fn act(wish: &Wish, keeper: &Keeper, kept: &Kept, device: &str, assessment: &mut Assessment) {
    assessment.actions = keeper.write(kept);
    let differs = assessment.attributes.values().any(|a| a.differences().iter().any(|(plane, ..)| *plane == Plane::Running));
    if differs {
        assessment.actions.push(Action::SetConfigfs { path: path(device, attribute(wish)), value: value_text(wish) });
        assessment.disruption = Disruption::Reload;
        assessment.interrupts = vec![format!("new RDMA connections over {} use it; those that exist keep theirs", netdev(wish))];
    }
}

/// What was set before comes back; what the kernel would have had without us is only known again after its reload.
fn undo(wish: &Wish, before: &Value, answers: &Answers) -> Assessment {
    let mut assessment = Assessment { before: before.clone(), ..Assessment::default() };
    keeper(wish).take_back(&mut assessment, answers);
    let device = device_name(wish, answers);
    let found = running(wish, &device, answers);
    let Some(old) = before.get("running").filter(|old| !old.is_null()) else {
        if found.value().is_some() {
            assessment.residue = vec![format!(
                "{} stays at {} on {} until its driver is reloaded: nobody had made its directory before",
                attribute(wish),
                value_text(wish),
                netdev(wish)
            )];
        }
        return assessment;
    };
    assessment.attributes.insert("value".to_owned(), Attribute::in_plane(Plane::Running, Reading::Is(old.clone()), found.clone()));
    if let (Ok(Some(device)), true) = (device, found != Reading::Is(old.clone())) {
        let value = old.as_str().map_or_else(|| old.to_string(), str::to_owned);
        assessment.actions.push(Action::SetConfigfs { path: path(&device, attribute(wish)), value });
        assessment.disruption = Disruption::Reload;
    }
    assessment
}

/// configfs is the world's to read, unless it was mounted otherwise.
pub fn needs(path: &str) -> Vec<Need> {
    vec![Need::Sight(format!("{ROOT}/{path}/x"))]
}

/// Every file below a directory of configfs, as `path:value`; exit 1 when it is not there.
pub fn read_script(path: &str) -> String {
    let full = rooted(&format!("{ROOT}/{path}"));
    format!(
        "f={full}; [ -d \"$f\" ] || exit 1\ngrep -rs . \"$f\" /dev/null | while IFS= read -r l; do printf '%s\\n' \"${{l#\"$R\"}}\"; done\nexit 0\n"
    )
}

/// Writes a value, with the module, the mount and the directories that its path needs.
pub fn set_script(path: &str, value: &str) -> String {
    let subsystem = path.strip_prefix(ROOT).unwrap_or_default().trim_start_matches('/').split('/').next().unwrap_or_default();
    format!(
        "set -e\nmodprobe -q configfs || :\nmodprobe -q {module} || :\n[ -d {ROOT}/{module} ] || mount -t configfs none {ROOT}\n\
         f={path}\nmkdir -p \"${{f%/*}}\"\nprintf '%s\\n' {value} >\"$f\"\n",
        module = sh(subsystem),
        path = sh(path),
        value = sh(value),
    )
}

#[cfg(test)]
mod tests;
