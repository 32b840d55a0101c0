//! `firmware_setting`: settings of a NIC's firmware (nvconfig), such as SRIOV_EN. Written at once
//! for the card's next boot; in effect when the card boots, which is with the host or, for some,
//! only when its power was off. Its name is the netdev's.
//!
//! A card with two ports has one set of settings for both (`..._P1`, `..._P2`): declare them on one
//! of its netdevs.

pub mod script;
pub mod table;

use super::link::other_netdevs;
use super::merged_before::merge_before_values;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, Scalar, read_body};
use crate::json_fields::read_text_field;
use crate::names::is_word;
use railwright_base::Reason;
use railwright_base::json_pointer::escape_step;
use railwright_base::text::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use table::{Cell, FirmwareQueryResult, FirmwareSettingRow};

/// The kind.
pub struct FirmwareSetting;

/// Until it runs, the firmware does not show what it hides, MAX_ACC_OUT_READ for one.
const GATE: &str = "ADVANCED_PCI_SETTINGS";

const NO_PROGRAM: &str = "neither mlxconfig nor mstconfig (package mstflint) is installed";

/// The desired state of the firmware of a NIC.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FirmwareSettingBody {
    netdev: String,
    /// Settings and their values, such as { SRIOV_EN: 1 }.
    #[schemars(with = "BTreeMap<String, Scalar>")]
    settings: BTreeMap<String, FirmwareValue>,
    /// Settings that a card may not have.
    #[serde(default)]
    may_lack: Vec<String>,
    takes_effect: Option<TakesEffect>,
    known_after: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum FirmwareValue {
    Flag(bool),
    Text(Scalar),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TakesEffect {
    Reboot,
    PowerCycle,
}

impl Body for FirmwareSettingBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_netdev("/netdev", &self.netdev);
        errors.check_known_after(self.known_after.as_deref());
        errors.require(
            !self.settings.is_empty(),
            "/settings",
            "`settings` must be a map of settings and their values",
            "SRIOV_EN: 1",
        );
        for (name, value) in &self.settings {
            let pointer = format!("/settings/{}", escape_step(name));
            if !is_name(name) {
                errors.add(
                    &pointer,
                    format!("`{}` cannot be the name of a setting", one_line(name, 40)),
                    "as mlxconfig prints it, such as SRIOV_EN or LINK_TYPE_P1",
                );
            } else if !is_word(&value.to_text(), "_.-") {
                errors.add(
                    &pointer,
                    format!("the value of {name} must be a number or a word"),
                    "the number, or the word before it in mlxconfig's table: 1, True, ETH",
                );
            }
        }
        errors.require(
            self.may_lack.iter().all(|name| is_name(name)),
            "/may_lack",
            "`may_lack` must be a list of settings that a card may not have",
            "",
        );
    }
}

impl FirmwareSettingBody {
    fn desired_settings(&self) -> BTreeMap<String, String> {
        let settings = self.settings.iter();
        settings
            .map(|(name, value)| (name.clone(), value.to_text()))
            .collect()
    }

    fn needs_power_cycle(&self) -> bool {
        self.takes_effect == Some(TakesEffect::PowerCycle)
    }
}

impl FirmwareValue {
    /// As the program takes it: True and False have numbers in its table, and it minds their case.
    fn to_text(&self) -> String {
        match self {
            FirmwareValue::Flag(flag) => u8::from(*flag).to_string(),
            FirmwareValue::Text(text) => text.0.clone(),
        }
    }
}

/// All that was there before our first change, the factory's values too: a reset to those is no way
/// back.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorFirmwareSettings {
    default: BTreeMap<String, String>,
    running: BTreeMap<String, String>,
    next_boot: BTreeMap<String, String>,
}

impl ResourceKind for FirmwareSetting {
    fn name(&self) -> &'static str {
        "firmware_setting"
    }

    fn takes_effect_at_boot(&self) -> bool {
        true
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<FirmwareSettingBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = read_body::<FirmwareSettingBody>(&resource.body);
        let netdev = body.netdev.clone();
        vec![build_firmware_read(&body), Read::Link { netdev }]
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = &read_body::<FirmwareSettingBody>(&resource.body);
        match decode_firmware_settings(body, answers) {
            Err(reason) => ResourceDiff {
                attributes: build_uniform_attributes(body, &Reading::Unknown(reason)),
                ..ResourceDiff::default()
            },
            Ok(FirmwareQueryResult::NoNetdev) => {
                let others = other_netdevs(answers, &body.netdev);
                let others = if others.is_empty() {
                    String::new()
                } else {
                    format!("; there are {}", others.join(", "))
                };
                let why = format!("there is no netdev {}{others}", body.netdev);
                diff_missing_card(resource, body, why)
            }
            Ok(FirmwareQueryResult::NotACard(why)) => ResourceDiff {
                attributes: build_uniform_attributes(body, &Reading::Absent),
                refusal: Some(format!("{}: {why}", body.netdev)),
                ..ResourceDiff::default()
            },
            Ok(FirmwareQueryResult::NoProgram) => {
                diff_missing_card(resource, body, NO_PROGRAM.to_owned())
            }
            Ok(FirmwareQueryResult::Settings { device, rows }) => {
                let mut diff = ResourceDiff::default();
                for (name, value) in body.desired_settings() {
                    diff_firmware_setting(&name, &value, &rows, body, &mut diff);
                }
                diff.before = record_before_values(&rows);
                plan_firmware_actions(body, &device, &mut diff);
                diff
            }
        }
    }

    fn remembered(&self, first: &Value, now: &Value) -> Value {
        merge_before_values(first, now)
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        plan_firmware_undo(&read_body(&last_applied.body), before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorFirmwareSettings::deserialize(before).is_ok()
    }

    fn open_maps(&self) -> &'static [&'static str] {
        &["settings"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module"]
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// The gate distinguishes a hidden setting from one that does not exist.
fn build_firmware_read(body: &FirmwareSettingBody) -> Read {
    let names: BTreeSet<&str> = body
        .settings
        .keys()
        .map(String::as_str)
        .chain([GATE])
        .collect();
    Read::FirmwareSettings {
        netdev: body.netdev.clone(),
        settings: names.into_iter().map(str::to_owned).collect(),
    }
}

fn decode_firmware_settings(
    body: &FirmwareSettingBody,
    answers: &ReadResults,
) -> Result<FirmwareQueryResult, Reason> {
    let (code, text) = answers.output(&build_firmware_read(body))?;
    table::parse_firmware_answer(code, text)
}

/// Wanted in both planes that a card has.
fn build_two_plane_attribute(
    value: &str,
    next_boot: &Reading,
    running: Option<Reading>,
) -> Attribute {
    let running = running.unwrap_or_else(|| next_boot.clone());
    let desired = Reading::is(value);
    Attribute::in_plane(Plane::NextBoot, desired.clone(), next_boot.clone()).and(
        Plane::Running,
        desired,
        running,
    )
}

/// One reading for all settings.
fn build_uniform_attributes(
    body: &FirmwareSettingBody,
    reading: &Reading,
) -> BTreeMap<String, Attribute> {
    let mut attributes = BTreeMap::new();
    for (name, value) in body.desired_settings() {
        let attribute = build_two_plane_attribute(&value, reading, None);
        attributes.insert(name, attribute);
    }
    attributes
}

/// Nothing of it is there: it comes with the step that the resource names, or something is wrong.
fn diff_missing_card(
    resource: &DesiredResource,
    body: &FirmwareSettingBody,
    why: String,
) -> ResourceDiff {
    let mut diff = ResourceDiff {
        attributes: build_uniform_attributes(body, &Reading::Absent),
        ..ResourceDiff::default()
    };
    diff.wait_or_refuse(resource, &["set_firmware"], || why);
    // What it comes to will want the boot that others wait for too.
    diff.needs_reboot = diff.known_after.is_some();
    diff.needs_power_cycle = diff.needs_reboot && body.needs_power_cycle();
    diff
}

fn diff_firmware_setting(
    name: &str,
    desired: &str,
    rows: &BTreeMap<String, FirmwareSettingRow>,
    body: &FirmwareSettingBody,
    diff: &mut ResourceDiff,
) {
    let attribute = match rows.get(name) {
        None => {
            let reading = build_missing_setting_reading(name, rows, body, diff);
            build_two_plane_attribute(desired, &reading, None)
        }
        Some(row) => {
            let refused = match row {
                FirmwareSettingRow {
                    next_boot: Some(cell),
                    ..
                } if cell.is_array() => {
                    Some(format!("{name} is an array, which this kind does not set"))
                }
                FirmwareSettingRow {
                    next_boot: Some(cell),
                    is_read_only: true,
                    ..
                } if !cell.is(desired) => {
                    Some(format!("the firmware does not let {name} be written"))
                }
                _ => None,
            };
            diff.refusal = diff.refusal.take().or(refused);
            let next_boot = read_cell(&row.next_boot, desired, desired);
            let running = read_cell(&row.current, desired, desired);
            build_two_plane_attribute(desired, &next_boot, Some(running))
        }
    };
    diff.attributes.insert(name.to_owned(), attribute);
}

/// `shown`: how a cell that has the value is shown.
fn read_cell(cell: &Option<Cell>, value: &str, shown: &str) -> Reading {
    match cell {
        Some(cell) if cell.is(value) => Reading::is(shown),
        Some(cell) => Reading::is(cell.0.as_str()),
        None => Reading::NotApplicable("this firmware does not show it".into()),
    }
}

/// A card without a setting that it may lack is in sync; one that hides it shows it after its
/// next boot; for any other the name is wrong, or the card is.
fn build_missing_setting_reading(
    name: &str,
    rows: &BTreeMap<String, FirmwareSettingRow>,
    body: &FirmwareSettingBody,
    diff: &mut ResourceDiff,
) -> Reading {
    if body.may_lack.iter().any(|lacked| lacked == name) {
        return Reading::NotApplicable("this card has no such setting".into());
    }
    let hidden = is_gate_closed(rows);
    if hidden && body.settings.contains_key(GATE) {
        return Reading::NotApplicable(
            format!("hidden until {GATE} is in effect; a plan after that sets it").into(),
        );
    }
    let hint = if hidden {
        format!("; it may be hidden until {GATE} is in effect")
    } else {
        String::new()
    };
    diff.refusal = diff.refusal.take().or(Some(format!(
        "the firmware of this card has no setting {name}{hint}"
    )));
    Reading::Absent
}

fn is_gate_closed(rows: &BTreeMap<String, FirmwareSettingRow>) -> bool {
    let gate = rows.get(GATE).and_then(|gate| gate.current.as_ref());
    gate.is_some_and(|gate| gate.is("0"))
}

fn record_before_values(rows: &BTreeMap<String, FirmwareSettingRow>) -> Value {
    let mut before = PriorFirmwareSettings::default();
    for (name, row) in rows {
        for (column, cell) in [
            (&mut before.default, &row.default),
            (&mut before.running, &row.current),
            (&mut before.next_boot, &row.next_boot),
        ] {
            if let Some(cell) = cell {
                column.insert(name.clone(), cell.0.clone());
            }
        }
    }
    serde_json::to_value(before).unwrap_or_default()
}

fn plan_firmware_actions(body: &FirmwareSettingBody, device: &str, diff: &mut ResourceDiff) {
    if diff.refusal.is_some() || diff.has_unknown() {
        return;
    }
    let mut to_set = BTreeMap::new();
    let mut waits = false;
    for (name, attribute) in &diff.attributes {
        for (plane, desired, _) in attribute.differences() {
            match plane {
                Plane::NextBoot => drop(to_set.insert(name.clone(), value_of(desired))),
                _ => waits = true,
            }
        }
    }
    diff.pending = to_set.is_empty() && waits;
    if !to_set.is_empty() {
        diff.actions = vec![Action::SetFirmware {
            device: device.to_owned(),
            settings: to_set,
        }];
    }
    diff.needs_reboot = waits;
    diff.needs_power_cycle = waits && body.needs_power_cycle();
}

/// As the program takes it.
fn value_of(reading: &Reading) -> String {
    reading
        .value()
        .and_then(Value::as_str)
        .map_or_else(String::new, |text| Cell(text.to_owned()).to_set())
}

/// What was to come with the next boot before our first change comes with the next one again. The
/// firmware outlives its driver and the program that sets it: without them it is unknown.
fn plan_firmware_undo(
    body: &FirmwareSettingBody,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let unknown = |reason| ResourceDiff::unknown_undo(Plane::NextBoot, before, reason);
    let (device, rows) = match decode_firmware_settings(body, answers) {
        Ok(FirmwareQueryResult::Settings { device, rows }) => (device, rows),
        Ok(FirmwareQueryResult::NoNetdev) => {
            return unknown(format!("there is no netdev {}", body.netdev).into());
        }
        Ok(FirmwareQueryResult::NotACard(why)) => return unknown(why.into()),
        Ok(FirmwareQueryResult::NoProgram) => return unknown(NO_PROGRAM.into()),
        Err(reason) => return unknown(reason),
    };
    let mut diff = ResourceDiff {
        before: before.clone(),
        ..ResourceDiff::default()
    };
    let prior = PriorFirmwareSettings::deserialize(before).unwrap_or_default();
    for name in body.settings.keys() {
        match (prior.next_boot.get(name), rows.get(name)) {
            (Some(old), Some(row)) => {
                let attribute = build_restored_attribute(old, prior.running.get(name), row);
                diff.attributes.insert(name.clone(), attribute);
            }
            (Some(old), None) => {
                let found = read_hidden_setting(name, &rows, body, &mut diff);
                let attribute =
                    Attribute::in_plane(Plane::NextBoot, Reading::is(old.as_str()), found);
                diff.attributes.insert(name.clone(), attribute);
            }
            (None, Some(_)) => diff.residue.push(format!(
                "{name} stays as it is: what was there before was not recorded"
            )),
            (None, None) => {}
        }
    }
    plan_firmware_actions(body, &device, &mut diff);
    diff.pending = false;
    diff
}

fn build_restored_attribute(
    old: &str,
    ran: Option<&String>,
    row: &FirmwareSettingRow,
) -> Attribute {
    let found = read_cell(&row.next_boot, &Cell(old.to_owned()).to_set(), old);
    let attribute = Attribute::in_plane(Plane::NextBoot, Reading::is(old), found);
    let Some(ran) = ran else {
        return attribute;
    };
    let found = read_cell(&row.current, &Cell(ran.clone()).to_set(), ran);
    attribute.and(Plane::Running, Reading::is(ran.as_str()), found)
}

/// A setting that was there and that the firmware does not show now. Where the gate of ours that
/// showed it is closed, it was undone with it, or somebody closed the gate since.
fn read_hidden_setting(
    name: &str,
    rows: &BTreeMap<String, FirmwareSettingRow>,
    body: &FirmwareSettingBody,
    diff: &mut ResourceDiff,
) -> Reading {
    if is_gate_closed(rows) && body.settings.contains_key(GATE) {
        diff.residue.push(format!(
            "{name} stays as it is: it is hidden until {GATE} is in effect"
        ));
        return Reading::NotApplicable(format!("hidden until {GATE} is in effect").into());
    }
    Reading::Unknown(format!("the firmware does not show {name}").into())
}

#[cfg(test)]
mod tests;
