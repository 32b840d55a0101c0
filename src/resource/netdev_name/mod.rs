//! `netdev_name`: the name of the netdev at a PCI address, or with a MAC address, as udev gives it
//! at boot. Its name is the name.
//!
//! A netdev that is up keeps its name until the next boot; nothing is renamed while the host runs.
//! The file with the name has to be in the initial RAM disks too: udev names a NIC once, and the
//! one in there may be first (systemd/systemd#9006, #9807). A configuration of the network that
//! goes by the old name would leave the host without its addresses: that is refused.

pub mod found;
pub mod keyed;
pub mod script;

use super::link::owner;
use super::names::is_netdev;
use super::pci_setting::config::is_address;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use found::{NetdevIdentity, NetdevNameFacts, parse_netdev_name_facts};
use keyed::{RenameEffect, predict_rename_effect};
use railwright_base::text::one_line;
use schemars::JsonSchema;
use script::build_link_file_path;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind.
pub struct NetdevName;

/// The desired state of the name of a netdev.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NetdevNameBody {
    name: String,
    /// A PCI address or a MAC address, such as 0000:3b:00.0, or b8:ce:f6:00:00:01, in small letters.
    device: String,
    /// PCI addresses or MAC addresses of those that may have the name until then.
    #[serde(default)]
    with: Vec<String>,
    known_after: Option<String>,
}

impl Body for NetdevNameBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_known_after(self.known_after.as_deref());
        let shown = one_line(&self.name, 40);
        errors.require(
            may_be_given(&self.name),
            "/name",
            &format!("`{shown}` cannot be given to a netdev"),
            "at most 15 letters, digits, `_` and `-`, and no name that the kernel gives by itself, \
             such as eth0",
        );
        let help = "such as 0000:3b:00.0, or b8:ce:f6:00:00:01, in small letters";
        let shown = one_line(&self.device, 40);
        errors.require(
            is_device(&self.device),
            "/device",
            &format!("`{shown}` is neither a PCI address nor a MAC address"),
            help,
        );
        errors.require(
            self.with.iter().all(|device| is_device(device)),
            "/with",
            "`with` must be a list of PCI addresses or MAC addresses",
            help,
        );
    }
}

/// What was there before our first change: the name, and the text of a file in our place.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorNetdevName {
    running: String,
    own: Option<String>,
}

impl ResourceKind for NetdevName {
    fn name(&self) -> &'static str {
        "netdev_name"
    }

    fn takes_effect_at_boot(&self) -> bool {
        true
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<NetdevNameBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        vec![build_netdev_name_read(&read_body(&resource.body))]
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = &read_body::<NetdevNameBody>(&resource.body);
        let out = match answers.output(&build_netdev_name_read(body)) {
            Ok((0, out)) => out,
            Ok((code, _)) => {
                let reason = format!("the names could not be read (status {code})");
                return build_uniform_diff(body, &Reading::Unknown(reason.into()));
            }
            Err(reason) => return build_uniform_diff(body, &Reading::Unknown(reason)),
        };
        let found = parse_netdev_name_facts(out);
        let mine: Vec<&NetdevIdentity> = found
            .netdevs
            .iter()
            .filter(|netdev| netdev.is(&body.device))
            .collect();
        match mine.as_slice() {
            [netdev] => diff_netdev_name(body, &found, netdev),
            [] => {
                let mut diff = build_uniform_diff(body, &Reading::Absent);
                let announced = ["write_file", "update_initial_ram_disks"];
                diff.wait_or_refuse(resource, &announced, || nobody_there(body, &found));
                diff
            }
            several => {
                let names: Vec<&str> = several.iter().map(|netdev| netdev.name.as_str()).collect();
                let refusal = format!(
                    "{} are all at {}: name them by their MAC addresses",
                    names.join(" and "),
                    body.device
                );
                ResourceDiff {
                    refusal: Some(refusal),
                    ..build_uniform_diff(body, &Reading::Absent)
                }
            }
        }
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        plan_netdev_name_undo(&read_body(&last_applied.body), before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorNetdevName::deserialize(before).is_ok()
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module_build"]
    }
}

/// A name that the kernel may give to another NIC at the same time is a race that either can win
/// (systemd.link(5), Name=); a dot belongs to VLANs.
fn may_be_given(name: &str) -> bool {
    let without_number = name.trim_end_matches(|c: char| c.is_ascii_digit());
    is_netdev(name)
        && !name.contains(['.', '@'])
        && !["", "eth", "ib", "wlan"].contains(&without_number)
}

fn is_device(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_mac = parts.len() == 6
        && parts.iter().all(|part| {
            part.len() == 2
                && part
                    .chars()
                    .all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
        });
    is_mac || is_address(text)
}

fn build_netdev_name_read(body: &NetdevNameBody) -> Read {
    Read::NetdevName {
        device: body.device.clone(),
        name: body.name.clone(),
    }
}

fn in_planes(
    desired: &Reading,
    persisted: Reading,
    running: Reading,
    next_boot: Reading,
) -> Attribute {
    Attribute::in_plane(Plane::Persisted, desired.clone(), persisted)
        .and(Plane::Running, desired.clone(), running)
        .and(Plane::NextBoot, desired.clone(), next_boot)
}

/// One that cannot be compared.
fn build_uniform_diff(body: &NetdevNameBody, found: &Reading) -> ResourceDiff {
    let attribute = in_planes(
        &Reading::is(body.name.as_str()),
        found.clone(),
        found.clone(),
        found.clone(),
    );
    ResourceDiff {
        attributes: [("name".to_owned(), attribute)].into(),
        ..ResourceDiff::default()
    }
}

fn nobody_there(body: &NetdevNameBody, found: &NetdevNameFacts<'_>) -> String {
    let there: Vec<String> = found
        .netdevs
        .iter()
        .filter_map(|netdev| Some(format!("{} at {}", netdev.name, netdev.pci.as_ref()?)))
        .take(64)
        .collect();
    format!(
        "there is no netdev at {} (there are: {}); its driver is not loaded, or the card sits \
         elsewhere",
        body.device,
        there.join(", ")
    )
}

/// The file. A VLAN or bond that bears the NIC's MAC address has no place on a bus, so it is not
/// meant by it.
fn render_link_file(body: &NetdevNameBody, found: &NetdevNameFacts<'_>) -> String {
    let device = &body.device;
    let by = match is_address(device) {
        true => match found.id_path() {
            Some(path) => format!("Path={path}"),
            None => format!("Path=pci-{device}"),
        },
        false => format!("MACAddress={device}\nPath=*"),
    };
    format!(
        "# Written by railwright; a change by hand is drift.\n[Match]\n{by}\n[Link]\nName={}\n",
        body.name
    )
}

fn diff_netdev_name(
    body: &NetdevNameBody,
    actual: &NetdevNameFacts<'_>,
    netdev: &NetdevIdentity,
) -> ResourceDiff {
    let name = body.name.as_str();
    let desired = Reading::is(name);
    let (own, content) = (actual.own(), render_link_file(body, actual));
    let elsewhere = actual.named_elsewhere();
    let is_so_elsewhere = elsewhere.as_ref().is_some_and(|(_, other)| other == name);
    let persisted = if is_so_elsewhere {
        desired.clone()
    } else {
        read_link_file_name(own.as_deref(), &content, name)
    };
    let is_written = persisted == desired;
    let stale = actual
        .ram_disks()
        .find(|(_, is_newer)| !is_newer && !is_so_elsewhere)
        .map(|(path, _)| path);
    let next_boot = match (is_written, stale) {
        (true, None) => desired.clone(),
        (true, Some(disk)) => Reading::is(format!(
            "{}: {} is older than the file",
            netdev.name,
            one_line(disk, 60)
        )),
        (false, _) => Reading::is(netdev.name.as_str()),
    };
    let running = Reading::is(netdev.name.as_str());
    let attribute = in_planes(&desired, persisted, running, next_boot);
    let before = PriorNetdevName {
        running: netdev.name.clone(),
        own,
    };
    let mut diff = ResourceDiff {
        attributes: [("name".to_owned(), attribute)].into(),
        before: serde_json::to_value(before).unwrap_or_default(),
        ..ResourceDiff::default()
    };
    if diff.is_met() {
        return diff;
    }
    diff.refusal = find_rename_obstacle(body, actual, netdev, elsewhere);
    if diff.refusal.is_none() && netdev.name != name {
        check_rename_effect(&netdev.name, name, actual, &mut diff);
    }
    if diff.refusal.is_none() {
        let states = (is_written, stale.is_some());
        plan_rename_actions(body, actual, content, states, &mut diff);
    }
    diff
}

/// The name that our file gives. A file that is not ours to the letter says itself which.
fn read_link_file_name(own: Option<&str>, content: &str, desired: &str) -> Reading {
    let Some(text) = own else {
        return Reading::Absent;
    };
    if text == content {
        return Reading::is(desired);
    }
    let said = text
        .lines()
        .find_map(|line| line.strip_prefix("Name="))
        .filter(|said| *said != desired);
    Reading::is(said.map_or_else(|| "changed".to_owned(), |said| one_line(said, 40)))
}

/// What stands in the way of the name.
fn find_rename_obstacle(
    body: &NetdevNameBody,
    found: &NetdevNameFacts<'_>,
    netdev: &NetdevIdentity,
    elsewhere: Option<(String, String)>,
) -> Option<String> {
    if found.is_without_udev() {
        return Some(format!(
            "udev knows nothing of {}, so nobody would give it another name at boot",
            netdev.name
        ));
    }
    if let Some((path, other)) = elsewhere.filter(|(_, other)| *other != body.name) {
        let (path, other) = (one_line(&path, 120), one_line(&other, 40));
        return Some(format!(
            "{path} names it {other}: let one of the two name it, and change or remove that one"
        ));
    }
    let holder = found
        .netdevs
        .iter()
        .find(|other| other.name == body.name && *other != netdev)?;
    if body.with.iter().any(|device| holder.is(device)) {
        return None;
    }
    let place = holder.pci.as_deref().unwrap_or("no PCI address");
    Some(format!(
        "the netdev at {place} is named {} already, and only one can be: name that one too, or \
         choose another name",
        body.name
    ))
}

/// Whether the network's configuration finds the netdev under its new name. Where nobody configures
/// it, or by hand, it is for the check of our own connection to say no.
fn check_rename_effect(old: &str, new: &str, found: &NetdevNameFacts<'_>, diff: &mut ResourceDiff) {
    match predict_rename_effect(old, new, &found.sections) {
        Ok(RenameEffect::Follows) => {}
        Ok(RenameEffect::Nobody) => diff.interrupts_netdevs = vec![old.to_owned()],
        Ok(RenameEffect::Loses(words)) => {
            diff.refusal = Some(format!(
                "as {new}, {old} would be without its configuration after the next boot: {words}"
            ));
        }
        Err(reason) => {
            diff.refusal = Some(format!(
                "whether the configuration of {old} finds it as {new} is not known: {reason}"
            ));
        }
    }
}

fn plan_rename_actions(
    body: &NetdevNameBody,
    found: &NetdevNameFacts<'_>,
    content: String,
    (is_written, is_stale): (bool, bool),
    diff: &mut ResourceDiff,
) {
    if !is_written {
        diff.actions.push(owner::own_file(
            &build_link_file_path(&body.name),
            "0644",
            content,
        ));
        diff.interrupts
            .extend(found.lost_settings().map(|(file, settings)| {
                let settings: Vec<String> =
                    settings.into_iter().map(|key| one_line(key, 40)).collect();
                format!(
                    "from the next boot {} does not set {} of it: udev applies one file to a NIC",
                    one_line(file, 120),
                    settings.join(", ")
                )
            }));
    }
    if is_stale || (!is_written && found.ram_disks().next().is_some()) {
        diff.actions.push(Action::UpdateInitialRamDisks);
    }
    let waits = diff
        .attributes
        .values()
        .flat_map(Attribute::differences)
        .any(|(plane, ..)| plane == Plane::Running);
    diff.needs_reboot = waits;
    diff.pending = waits && diff.actions.is_empty();
    diff.transaction = Some("netdev_names".to_owned());
}

/// Our file goes, and with the next boot the name that was there before us comes back.
fn plan_netdev_name_undo(
    body: &NetdevNameBody,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let mut diff = ResourceDiff {
        before: before.clone(),
        transaction: Some("netdev_names".to_owned()),
        ..ResourceDiff::default()
    };
    let out = match answers.output(&build_netdev_name_read(body)) {
        Ok((_, out)) => out,
        Err(reason) => {
            let unknown =
                Attribute::in_plane(Plane::Persisted, Reading::Absent, Reading::Unknown(reason));
            diff.attributes.insert("name".to_owned(), unknown);
            return diff;
        }
    };
    let found = parse_netdev_name_facts(out);
    let name = body.name.as_str();
    let prior = PriorNetdevName::deserialize(before).unwrap_or_default();
    let earlier = prior.own.as_deref();
    let own = found.own();
    let [desired, actual] =
        [earlier, own.as_deref()].map(|text| text.map_or(Reading::Absent, Reading::is));
    let mut attribute = Attribute::in_plane(Plane::Persisted, desired, actual);
    let old = Some(prior.running.as_str()).filter(|old| *old != name && is_netdev(old));
    let is_ours = found
        .netdevs
        .iter()
        .any(|netdev| netdev.is(&body.device) && netdev.name == name);
    if let Some(old) = old {
        let running = Reading::is(if is_ours { name } else { old });
        attribute = attribute.and(Plane::Running, Reading::is(old), running);
    }
    diff.attributes.insert("name".to_owned(), attribute);
    diff.needs_reboot = old.is_some() && is_ours;
    if let Some(old) = old.filter(|_| is_ours) {
        check_rename_effect(name, old, &found, &mut diff);
    }
    if diff.refusal.is_some() {
        return diff;
    }
    let differs = own.as_deref() != earlier;
    if differs {
        let restore = build_link_file_restore(name, earlier);
        diff.actions.push(restore);
    }
    if (differs || diff.needs_reboot) && found.ram_disks().next().is_some() {
        diff.actions.push(Action::UpdateInitialRamDisks);
    }
    diff
}

fn build_link_file_restore(desired: &str, earlier: Option<&str>) -> Action {
    let path = build_link_file_path(desired);
    match earlier {
        Some(text) => owner::own_file(&path, "0644", text.to_owned()),
        None => Action::RemoveFile { path, below: None },
    }
}

#[cfg(test)]
mod tests;
