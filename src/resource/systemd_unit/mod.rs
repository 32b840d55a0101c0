//! `systemd_unit`: a unit, its file and drop-ins (persisted), whether it starts at boot (next boot)
//! and whether it runs (running). A pending restart is no event: it is the difference between when
//! a watched file changed and when the unit became active, and it plans itself until it is done.

mod body;
pub mod found;
mod refusal;
pub mod script;
mod undo;

use super::action::UnitVerb;
use super::diff::WatchedFiles;
use super::file::found::{FileState, build_config_file_action};
use super::json_fields::read_text_field;
use super::merged_before::merge_before_values;
use super::{
    Action, Attribute, DesiredResource, Disruption, Plane, Read, ReadResults, Reading,
    ResourceDiff, ResourceKind,
};
use crate::body::{BodyType, read_body};
use body::UnitBody;
use found::{FoundUnit, decode_modification_times};
use railwright_base::Reason;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The kind.
pub struct SystemdUnit;

/// The state of the unit as far as undoing needs it.
fn build_unit_snapshot(unit: &Result<FoundUnit, Reason>) -> Value {
    match unit {
        Ok(unit) => json!({
            "there": !unit.is_missing(),
            "masked": unit.is_masked_for_good(),
            "enabled": unit.enabled().value().and_then(Value::as_bool),
            "active": unit.active() == Reading::is(true),
        }),
        Err(_) => Value::Null,
    }
}

/// What is compared of the unit itself, beside its files.
struct UnitComparison<'a> {
    body: &'a UnitBody,
    unit: Result<FoundUnit, Reason>,
    newer: Result<Vec<String>, Reason>,
}

impl<'a> UnitComparison<'a> {
    fn new(body: &'a UnitBody, answers: &ReadResults) -> Self {
        let unit = FoundUnit::of(&body.name, answers);
        let watched = body.list_restart_triggers();
        let newer = match &unit {
            _ if watched.is_empty() => Ok(Vec::new()),
            Ok(unit) => decode_modification_times(&watched, answers).map(|times| {
                let since = unit.active_since_s().unwrap_or(i64::MAX);
                times
                    .into_iter()
                    .filter(|(_, time)| *time > since)
                    .map(|(path, _)| path)
                    .collect()
            }),
            Err(reason) => Err(reason.clone()),
        };
        UnitComparison { body, unit, newer }
    }

    fn reading(&self, of: impl Fn(&FoundUnit) -> Reading) -> Reading {
        match &self.unit {
            Ok(unit) => of(unit),
            Err(reason) => Reading::Unknown(reason.clone()),
        }
    }

    fn diff(&self, diff: &mut ResourceDiff) {
        let body = self.body;
        if let Some(masked) = body.masked {
            let desired = || Reading::is(masked);
            let [running, next_boot] = [FoundUnit::is_masked, FoundUnit::is_masked_for_good]
                .map(|is_masked| self.reading(|unit| Reading::is(is_masked(unit))));
            diff.attributes.insert(
                "masked".to_owned(),
                Attribute::in_plane(Plane::Running, desired(), running).and(
                    Plane::NextBoot,
                    desired(),
                    next_boot,
                ),
            );
        }
        if let Some(enabled) = body.enabled {
            let content = body.content.as_deref();
            let actual = self.reading(|unit| unit.enabled_by(content));
            insert_flag(diff, "enabled", Plane::NextBoot, enabled, actual);
        }
        if let Some(active) = body.active {
            let actual = self.reading(|unit| match unit.is_missing() {
                false if !active => Reading::is(unit.is_running()),
                _ => unit.active(),
            });
            insert_flag(diff, "active", Plane::Running, active, actual);
        }
        let loaded = self.reading(|unit| match unit.is_missing() {
            true => Reading::NotApplicable("systemd does not know the unit yet".into()),
            false => Reading::is(!unit.is_stale()),
        });
        insert_flag(diff, "loaded", Plane::Running, true, loaded);
        if body.active == Some(true) && !body.list_restart_triggers().is_empty() {
            let actual = match &self.newer {
                Ok(newer) if newer.is_empty() => Reading::is(true),
                Ok(newer) => Reading::is(format!("{} changed since it started", newer.join(", "))),
                Err(reason) => Reading::Unknown(reason.clone()),
            };
            insert_flag(diff, "restarted", Plane::Running, true, actual);
        }
    }
}

/// A unit that is not there is neither enabled nor active nor masked.
fn insert_flag(diff: &mut ResourceDiff, name: &str, plane: Plane, desired: bool, actual: Reading) {
    let actual = match actual {
        Reading::Absent if !desired => Reading::is(false),
        actual => actual,
    };
    let attribute = Attribute::in_plane(plane, Reading::is(desired), actual);
    diff.attributes.insert(name.to_owned(), attribute);
}

fn has_attribute_difference(diff: &ResourceDiff, attribute: &str) -> bool {
    diff.attributes
        .get(attribute)
        .is_some_and(|attribute| !attribute.differences().is_empty())
}

/// The verbs that fix what differs, in the order that systemd needs.
fn plan_unit_actions(
    body: &UnitBody,
    files_change: bool,
    unit_runs: bool,
    diff: &mut ResourceDiff,
) {
    if files_change || has_attribute_difference(diff, "loaded") {
        diff.actions.push(Action::ReloadSystemd);
        diff.disruption = Disruption::Reload;
    }
    let enabled = diff.attributes.get("enabled");
    let enabled_elsewhere = enabled.is_some_and(|enabled| {
        let found = enabled.actual.get(Plane::NextBoot);
        matches!(found, Some(Reading::Is(Value::String(_))))
    });
    for (attribute, desired, yes, no) in [
        (
            "masked",
            body.masked,
            &[UnitVerb::Mask][..],
            // Below a mask for good there may be one of /run.
            &[UnitVerb::Unmask, UnitVerb::UnmaskRuntime][..],
        ),
        (
            "enabled",
            body.enabled,
            // Links of an earlier [Install] go first.
            match enabled_elsewhere {
                true => &[UnitVerb::Disable, UnitVerb::Enable],
                false => &[UnitVerb::Enable],
            },
            &[UnitVerb::Disable],
        ),
    ] {
        if has_attribute_difference(diff, attribute) {
            let verbs = if desired == Some(true) { yes } else { no };
            let actions = verbs.iter().map(|verb| body.build_action(*verb));
            diff.actions.extend(actions);
        }
    }
    let active_differs = has_attribute_difference(diff, "active");
    let (verb, interrupts) = match body.active {
        Some(true) if active_differs => (UnitVerb::Start, None),
        Some(true)
            if unit_runs && (files_change || has_attribute_difference(diff, "restarted")) =>
        {
            (UnitVerb::Restart, Some("restarts"))
        }
        Some(false) if active_differs => (UnitVerb::Stop, Some("stops")),
        _ => return,
    };
    diff.actions.push(body.build_action(verb));
    if let Some(interrupts) = interrupts {
        diff.interrupts.push(format!("{} {interrupts}", body.name));
        diff.disruption = Disruption::Restart;
    }
}

impl ResourceKind for SystemdUnit {
    fn name(&self) -> &'static str {
        "systemd_unit"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "name").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<UnitBody>()
    }

    fn needs_rollback_timer(&self, resource: &DesiredResource) -> bool {
        read_body::<UnitBody>(&resource.body).rollback_timer == Some(true)
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body: UnitBody = read_body(&resource.body);
        let files = body.list_files().into_iter();
        let paths = body.list_restart_triggers();
        let mut reads = vec![Read::Unit { name: body.name }];
        reads.extend(files.map(|(_, path, _)| Read::File { path }));
        if !paths.is_empty() {
            reads.push(Read::Modified { paths });
        }
        reads
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body: UnitBody = read_body(&resource.body);
        let compared = UnitComparison::new(&body, answers);
        let masked = compared.unit.as_ref().is_ok_and(FoundUnit::is_masked);
        let mut diff = ResourceDiff::default();
        let mut kept = Map::new();
        for (attribute, path, content) in body.list_files() {
            let actual = FileState::at(&path, answers);
            kept.insert(path.clone(), actual.remember());
            // A mask is such a link, and the resource may lift it.
            let is_lifted = masked && body.masked == Some(false) && attribute == "content";
            if let (FileState::Other { what }, false) = (&actual, is_lifted) {
                diff.refusal = Some(format!(
                    "there is a {what} at {path}; railwright replaces only regular files (take it \
                     away, or leave `{attribute}` out)"
                ));
            }
            let (desired, shown) = (Reading::is(content.as_str()), actual.content_reading());
            if desired != shown {
                diff.actions.push(build_config_file_action(&path, content));
            }
            diff.attributes.insert(
                attribute,
                Attribute::in_plane(Plane::Persisted, desired, shown),
            );
        }
        compared.diff(&mut diff);
        let files_change = !diff.actions.is_empty();
        let runs = compared.reading(FoundUnit::active) == Reading::is(true);
        plan_unit_actions(&body, files_change, runs, &mut diff);
        if let Ok(unit) = &compared.unit {
            let refusal = refusal::find_unit_refusal(&body, unit, &diff, files_change);
            diff.refusal = refusal;
        }
        diff.before = json!({ "unit": build_unit_snapshot(&compared.unit), "files": kept });
        if runs
            && body.active == Some(true)
            && !body.restart_on.is_empty()
            && diff.disruption < Disruption::Restart
        {
            let interrupts = format!("{} restarts", body.name);
            diff.watch = Some(WatchedFiles {
                paths: body.restart_on,
                disruption: Disruption::Restart,
                interrupts,
            });
        }
        diff
    }

    fn unsteady(
        &self,
        resource: &DesiredResource,
        answers: &ReadResults,
    ) -> Option<(&'static str, Reading)> {
        let unit = FoundUnit::of(resource.text("name")?, answers).ok()?;
        Some(("active", unit.unsteady()?))
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
        undo::plan_systemd_unit_undo(last_applied, before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        let is_snapshot = |unit: &Value| {
            let mut flags = ["there", "masked", "active"].iter();
            unit.is_null() || flags.all(|flag| unit[flag].is_boolean())
        };
        before.get("unit").is_some_and(is_snapshot)
            && BTreeMap::<String, FileState>::deserialize(&before["files"]).is_ok()
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["enabled", "active", "masked", "content"]
    }

    fn open_maps(&self) -> &'static [&'static str] {
        &["dropins"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "file", "kernel_module"]
    }
}

#[cfg(test)]
mod state_tests;
#[cfg(test)]
mod tests;
