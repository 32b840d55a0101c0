//! `firmware_setting`: settings of a NIC's firmware (nvconfig), such as SRIOV_EN. Written at once
//! for the card's next boot; in effect when the card boots, which is with the host or, for some,
//! only when its power was off. Its name is the netdev's.
//!
//! A card with two ports has one set of settings for both (`..._P1`, `..._P2`): wish for them on
//! one of its netdevs.

pub mod script;
pub mod table;

use super::fields::Fields;
use super::link::other_netdevs;
use super::{
    Action, Assessment, Attribute, BodyError, DesiredResource, Plane, Read, ReadResults, Reading,
    ResourceKind,
};
use crate::body::{is_word, read_text_field, scalar_text};
use railwright_base::Reason;
use railwright_base::json_pointer::escape_step;
use railwright_base::text::one_line;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use table::{Cell, FirmwareQueryResult, FirmwareSettingRow};

/// The kind.
pub struct FirmwareSetting;

/// Until it runs, the firmware does not show what it hides, MAX_ACC_OUT_READ for one.
const GATE: &str = "ADVANCED_PCI_SETTINGS";

impl ResourceKind for FirmwareSetting {
    fn name(&self) -> &'static str {
        "firmware_setting"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let mut fields = Fields::of(
            body,
            &[
                "netdev",
                "settings",
                "may_lack",
                "takes_effect",
                "known_after",
            ],
        );
        fields.netdev(true);
        fields.resource("known_after");
        let word = fields.text("takes_effect", false);
        if let Some(word) = word.filter(|word| !["reboot", "power_cycle"].contains(word)) {
            fields.error(
                "/takes_effect",
                format!("`{word}` is not when it takes effect"),
                Some("reboot or power_cycle".to_owned()),
            );
        }
        match fields.get("settings").map(Value::as_object) {
            Some(Some(map)) if !map.is_empty() => map
                .iter()
                .for_each(|(name, value)| check_setting(&mut fields, name, value)),
            _ => fields.error(
                "/settings",
                "`settings` must be a map of settings and their values",
                Some("SRIOV_EN: 1".to_owned()),
            ),
        }
        if let Some(list) = fields.get("may_lack") {
            let names = list
                .as_array()
                .is_some_and(|list| list.iter().all(|name| name.as_str().is_some_and(is_name)));
            if !names {
                fields.error(
                    "/may_lack",
                    "`may_lack` must be a list of settings that a card may not have",
                    None,
                );
            }
        }
        fields.finish()
    }

    fn reads(&self, wish: &DesiredResource) -> Vec<Read> {
        // The gate tells a setting that is hidden from one that does not exist.
        let mut names: Vec<String> = parse_desired_settings(wish)
            .into_keys()
            .chain([GATE.to_owned()])
            .collect();
        names.sort_unstable();
        names.dedup();
        let netdev = extract_netdev_name(wish).to_owned();
        vec![
            Read::FirmwareSettings {
                netdev: netdev.clone(),
                settings: names,
            },
            Read::Link { netdev },
        ]
    }

    fn assess(&self, wish: &DesiredResource, answers: &ReadResults) -> Assessment {
        let mut assessment = Assessment::default();
        let wanted = parse_desired_settings(wish);
        match decode_firmware_settings(wish, answers) {
            Err(reason) => {
                assessment.attributes =
                    build_uniform_attributes(&wanted, &Reading::Unknown(reason));
            }
            Ok(FirmwareQueryResult::NoNetdev) => {
                let others = other_netdevs(answers, extract_netdev_name(wish));
                let others = if others.is_empty() {
                    String::new()
                } else {
                    format!("; there are {}", others.join(", "))
                };
                diff_missing_card(
                    &wanted,
                    &mut assessment,
                    wish,
                    format!("there is no netdev {}{others}", extract_netdev_name(wish)).into(),
                    true,
                );
            }
            Ok(FirmwareQueryResult::NotACard(why)) => diff_missing_card(
                &wanted,
                &mut assessment,
                wish,
                format!("{}: {why}", extract_netdev_name(wish)).into(),
                false,
            ),
            Ok(FirmwareQueryResult::NoProgram) => {
                let why =
                    "neither mlxconfig nor mstconfig (package mstflint) is installed".to_owned();
                diff_missing_card(&wanted, &mut assessment, wish, why.into(), true);
            }
            Ok(FirmwareQueryResult::Settings { device, rows }) => {
                wanted.iter().for_each(|(name, value)| {
                    diff_firmware_setting(name, value, rows.get(name), &rows, wish, &mut assessment)
                });
                assessment.before = record_before_values(&rows);
                plan_firmware_actions(wish, &device, &mut assessment);
            }
        }
        assessment
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        plan_firmware_undo(last_applied, before, answers)
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module"]
    }
}

fn check_setting(fields: &mut Fields<'_>, name: &str, value: &Value) {
    let pointer = format!("/settings/{}", escape_step(name));
    if !is_name(name) {
        let help = Some("as mlxconfig prints it, such as SRIOV_EN or LINK_TYPE_P1".to_owned());
        return fields.error(
            &pointer,
            format!("`{}` cannot be the name of a setting", one_line(name, 40)),
            help,
        );
    }
    if scalar_text(value).is_none_or(|text| !is_word(&text, "_.-")) {
        let help =
            Some("the number, or the word before it in mlxconfig's table: 1, True, ETH".to_owned());
        fields.error(
            &pointer,
            format!("the value of {name} must be a number or a word"),
            help,
        );
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

fn extract_netdev_name(wish: &DesiredResource) -> &str {
    wish.text("netdev").unwrap_or_default()
}

fn parse_desired_settings(wish: &DesiredResource) -> BTreeMap<String, String> {
    let map = wish.body.get("settings").and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value_text(value)?)))
        .collect()
}

/// As the program takes it: True and False have numbers in its table, and it minds their case.
fn value_text(value: &Value) -> Option<String> {
    value.as_bool().map_or_else(
        || scalar_text(value),
        |flag| Some(u8::from(flag).to_string()),
    )
}

fn needs_power_cycle(wish: &DesiredResource) -> bool {
    wish.text("takes_effect") == Some("power_cycle")
}

fn decode_firmware_settings(
    wish: &DesiredResource,
    answers: &ReadResults,
) -> Result<FirmwareQueryResult, Reason> {
    let (code, text) = answers.output(&FirmwareSetting.reads(wish)[0])?;
    table::parse_firmware_answer(code, text)
}

/// Wanted in both planes that a card has.
fn build_two_plane_attribute(
    value: &str,
    next_boot: &Reading,
    running: Option<Reading>,
) -> Attribute {
    let running = running.unwrap_or_else(|| next_boot.clone());
    let wanted = Reading::is(value);
    Attribute::in_plane(Plane::NextBoot, wanted.clone(), next_boot.clone()).and(
        Plane::Running,
        wanted,
        running,
    )
}

/// One reading for all settings.
fn build_uniform_attributes(
    wanted: &BTreeMap<String, String>,
    reading: &Reading,
) -> BTreeMap<String, Attribute> {
    let mut attributes = BTreeMap::new();
    for (name, value) in wanted {
        let attribute = build_two_plane_attribute(value, reading, None);
        attributes.insert(name.clone(), attribute);
    }
    attributes
}

/// Nothing of it is there: it comes with the step that the wish names, or something is wrong.
fn diff_missing_card(
    wanted: &BTreeMap<String, String>,
    assessment: &mut Assessment,
    wish: &DesiredResource,
    why: Reason,
    comes: bool,
) {
    assessment.attributes = build_uniform_attributes(wanted, &Reading::Absent);
    match comes {
        true => {
            assessment.wait_or_refuse(wish, &["set_firmware"], || why.to_string());
            // What it comes to will want the boot that others wait for too.
            assessment.needs_reboot = assessment.known_after.is_some();
            assessment.needs_power_cycle = assessment.needs_reboot && needs_power_cycle(wish);
        }
        false => assessment.refusal = Some(why.to_string()),
    }
}

fn diff_firmware_setting(
    name: &str,
    wanted: &str,
    row: Option<&FirmwareSettingRow>,
    rows: &BTreeMap<String, FirmwareSettingRow>,
    wish: &DesiredResource,
    assessment: &mut Assessment,
) {
    let attribute = match row {
        None => {
            let reading = build_missing_setting_reading(name, rows, wish, assessment);
            build_two_plane_attribute(wanted, &reading, None)
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
                } if !cell.is(wanted) => {
                    Some(format!("the firmware does not let {name} be written"))
                }
                _ => None,
            };
            assessment.refusal = assessment.refusal.take().or(refused);
            let next_boot = read_cell(&row.next_boot, wanted, wanted);
            let running = read_cell(&row.current, wanted, wanted);
            build_two_plane_attribute(wanted, &next_boot, Some(running))
        }
    };
    assessment.attributes.insert(name.to_owned(), attribute);
}

/// `shown`: how a cell that has the value is shown.
fn read_cell(cell: &Option<Cell>, value: &str, shown: &str) -> Reading {
    match cell {
        Some(cell) if cell.is(value) => Reading::is(shown),
        Some(cell) => Reading::is(cell.0.as_str()),
        None => Reading::NotApplicable("this firmware does not tell it".into()),
    }
}

/// A card without a setting that it may lack is in sync; one that hides it shows it after its
/// next boot; for any other the name is wrong, or the card is.
fn build_missing_setting_reading(
    name: &str,
    rows: &BTreeMap<String, FirmwareSettingRow>,
    wish: &DesiredResource,
    assessment: &mut Assessment,
) -> Reading {
    let may_lack = wish.body.get("may_lack").and_then(Value::as_array);
    if may_lack.is_some_and(|list| list.iter().any(|lacked| lacked == name)) {
        return Reading::NotApplicable("this card has no such setting".into());
    }
    let hidden = rows
        .get(GATE)
        .and_then(|gate| gate.current.as_ref())
        .is_some_and(|gate| gate.is("0"));
    if hidden && parse_desired_settings(wish).contains_key(GATE) {
        return Reading::NotApplicable(
            format!("hidden until {GATE} is in effect; a plan after that sets it").into(),
        );
    }
    let hint = if hidden {
        format!("; it may be hidden until {GATE} is in effect")
    } else {
        String::new()
    };
    assessment.refusal = assessment.refusal.take().or(Some(format!(
        "the firmware of this card has no setting {name}{hint}"
    )));
    Reading::Absent
}

/// All that was there, the factory's values too: a reset to those is no way back.
fn record_before_values(rows: &BTreeMap<String, FirmwareSettingRow>) -> Value {
    let (mut default, mut running, mut next_boot) =
        (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    for (name, row) in rows {
        for (column, cell) in [
            (&mut default, &row.default),
            (&mut running, &row.current),
            (&mut next_boot, &row.next_boot),
        ] {
            if let Some(cell) = cell {
                column.insert(name, cell.0.as_str());
            }
        }
    }
    json!({ "default": default, "running": running, "next_boot": next_boot })
}

fn plan_firmware_actions(wish: &DesiredResource, device: &str, assessment: &mut Assessment) {
    if assessment.refusal.is_some() || assessment.has_unknown() {
        return;
    }
    let mut to_set = BTreeMap::new();
    let mut waits = false;
    for (name, attribute) in &assessment.attributes {
        for (plane, wanted, _) in attribute.differences() {
            match plane {
                Plane::NextBoot => drop(to_set.insert(name.clone(), value_of(wanted))),
                _ => waits = true,
            }
        }
    }
    assessment.owed = to_set.is_empty() && waits;
    if !to_set.is_empty() {
        assessment.actions = vec![Action::SetFirmware {
            device: device.to_owned(),
            settings: to_set,
        }];
    }
    assessment.needs_reboot = waits;
    assessment.needs_power_cycle = waits && needs_power_cycle(wish);
}

/// As the program takes it.
fn value_of(reading: &Reading) -> String {
    reading
        .value()
        .and_then(Value::as_str)
        .map_or_else(String::new, |text| Cell(text.to_owned()).to_set())
}

/// What was to come with the next boot before our first change comes with the next one again.
fn plan_firmware_undo(wish: &DesiredResource, before: &Value, answers: &ReadResults) -> Assessment {
    let mut assessment = Assessment {
        before: before.clone(),
        ..Assessment::default()
    };
    let (device, rows) = match decode_firmware_settings(wish, answers) {
        Ok(FirmwareQueryResult::Settings { device, rows }) => (device, rows),
        Ok(_) => return assessment,
        Err(reason) => {
            assessment.attributes.insert(
                "settings".to_owned(),
                Attribute::in_plane(
                    Plane::NextBoot,
                    Reading::is("as before"),
                    Reading::Unknown(reason),
                ),
            );
            return assessment;
        }
    };
    for name in parse_desired_settings(wish).keys() {
        let old = find_before_value(before, "next_boot", name);
        let (Some(old), Some(row)) = (old, rows.get(name)) else {
            continue;
        };
        let found = read_cell(&row.next_boot, &Cell(old.to_owned()).to_set(), old);
        let mut attribute = Attribute::in_plane(Plane::NextBoot, Reading::is(old), found);
        if let Some(ran) = find_before_value(before, "running", name) {
            let found = read_cell(&row.current, &Cell(ran.to_owned()).to_set(), ran);
            attribute = attribute.and(Plane::Running, Reading::is(ran), found);
        }
        assessment.attributes.insert(name.clone(), attribute);
    }
    plan_firmware_actions(wish, &device, &mut assessment);
    assessment.owed = false;
    assessment
}

fn find_before_value<'b>(before: &'b Value, plane: &str, name: &str) -> Option<&'b str> {
    before.get(plane)?.get(name)?.as_str()
}

#[cfg(test)]
mod tests;
