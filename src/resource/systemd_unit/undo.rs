//! Takes a unit back to how it stood before us: its files, whether it starts at boot and whether it
//! runs.

use super::body::UnitBody;
use super::found::FoundUnit;
use crate::action::UnitVerb;
use crate::body::read_body;
use crate::file::found::FileState;
use crate::json_fields::read_flag_field;
use crate::{
    Action, Attribute, DesiredResource, Disruption, Plane, ReadResults, Reading, ResourceDiff,
};
use serde_json::Value;

const NOT_RECORDED: &str = "how the unit stood before our first change is not recorded: roll it back \
                            by hand, then railwright state forget";

/// What is to be done for that, and what cannot be.
pub(super) fn plan_systemd_unit_undo(
    last_applied: &DesiredResource,
    before: &Value,
    answers: &ReadResults,
) -> ResourceDiff {
    let body: UnitBody = read_body(&last_applied.body);
    let name = body.name.as_str();
    let unknown = |reason| ResourceDiff::unknown_undo(Plane::Running, before, reason);
    let unit = match FoundUnit::of(name, answers) {
        Ok(unit) => unit,
        Err(reason) => return unknown(reason),
    };
    if before["unit"].is_null() && body.declares_state() {
        return unknown(NOT_RECORDED.into());
    }
    let undo = plan_read_unit_undo(&body, before, answers, &unit);
    match unit.find_aliased_unit(name) {
        Some(other) if !undo.is_met() => unknown(
            format!(
                "{name} is another name of {other}: roll that back by hand, then railwright state \
                 forget"
            )
            .into(),
        ),
        _ => match unit.find_linked_file() {
            Some(file) if undo.actions.contains(&body.build_action(UnitVerb::Disable)) => unknown(
                format!(
                    "{name} is a link to {file}, which `systemctl disable` would take away: roll \
                     that back by hand, then railwright state forget"
                )
                .into(),
            ),
            _ => undo,
        },
    }
}

/// What takes a unit back whose state is known.
fn plan_read_unit_undo(
    body: &UnitBody,
    before: &Value,
    answers: &ReadResults,
    unit: &FoundUnit,
) -> ResourceDiff {
    let (name, earlier) = (body.name.as_str(), &before["unit"]);
    let mut diff = ResourceDiff::default();
    let own_file = before["files"].get(format!("/etc/systemd/system/{name}"));
    let comes_back = matches!(FileState::remembered(own_file), FileState::Regular(_));
    if unit.is_missing() && earlier["there"] == true && !comes_back {
        diff.residue.push(format!(
            "{name} stays as it is: its unit file is gone since"
        ));
    } else {
        undo_unit(body, earlier, unit, &mut diff);
    }
    let late = std::mem::take(&mut diff.actions);
    restore_unit_files(body, before, answers, &mut diff);
    let mut files_change = !diff.actions.is_empty();
    // Files that went in an attempt that was cut short: systemd still has them until it reads anew.
    if unit.is_stale() {
        files_change = true;
        diff.attributes.insert(
            "loaded".to_owned(),
            Attribute::in_plane(Plane::Running, Reading::is(true), Reading::is(false)),
        );
    }
    let runs_on = unit.active() == Reading::is(true)
        && (unit.is_running() || earlier["active"] == true)
        && !late.contains(&body.build_action(UnitVerb::Stop));
    order_undo(body, late, files_change, &mut diff);
    if runs_on && files_change {
        plan_unit_restart(body, &mut diff);
    }
    diff
}

fn restore_unit_files(
    body: &UnitBody,
    before: &Value,
    answers: &ReadResults,
    diff: &mut ResourceDiff,
) {
    for (attribute, path, _) in body.list_files() {
        let kept = FileState::remembered(before["files"].get(&path));
        let now = FileState::at(&path, answers);
        let (actions, residue) = kept.restore(&path, &now);
        diff.actions.extend(actions);
        diff.residue.extend(residue);
        let (desired, actual) = (kept.restored_reading(&now), now.content_reading());
        diff.attributes.insert(
            attribute,
            Attribute::in_plane(Plane::Persisted, desired, actual),
        );
    }
}

/// It runs with what is taken away, and is restarted where we had it restarted for that.
fn plan_unit_restart(body: &UnitBody, diff: &mut ResourceDiff) {
    if body.active == Some(true) {
        diff.actions.push(body.build_action(UnitVerb::Restart));
        diff.interrupts.push(format!("{} restarts", body.name));
        diff.disruption = Disruption::Restart;
    } else {
        diff.residue.push(format!(
            "{} goes on as it was started until it is restarted",
            body.name
        ));
    }
}

/// Stop and disable come before the file goes, start and enable after it is back.
fn order_undo(
    body: &UnitBody,
    unit_actions: Vec<Action>,
    files_change: bool,
    diff: &mut ResourceDiff,
) {
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for action in unit_actions {
        if let Action::Unit {
            verb: UnitVerb::Stop | UnitVerb::Disable,
            ..
        } = action
        {
            first.push(action);
        } else {
            later.push(action);
        }
    }
    if !first.is_empty() {
        diff.interrupts
            .push(format!("{} stops or no longer starts at boot", body.name));
        diff.disruption = Disruption::Restart;
    }
    first.append(&mut diff.actions);
    if files_change {
        first.push(Action::ReloadSystemd);
        diff.disruption = diff.disruption.max(Disruption::Reload);
    }
    first.extend(later);
    diff.actions = first;
}

fn undo_unit(body: &UnitBody, earlier: &Value, unit: &FoundUnit, diff: &mut ResourceDiff) {
    let enabled = match unit.enabled() {
        Reading::Unknown(reason) => Reading::Unknown(reason),
        enabled => Reading::is(enabled == Reading::is(true)),
    };
    // That a oneshot has run is not undone, and it need not run again.
    let has_run_before = unit.runs_once() && earlier["active"] == true;
    let active = Reading::is(unit.is_running() || has_run_before);
    let states = [
        (
            "masked",
            body.masked,
            Plane::NextBoot,
            Reading::is(unit.is_masked_for_good()),
            UnitVerb::Mask,
            UnitVerb::Unmask,
        ),
        (
            "enabled",
            body.enabled,
            Plane::NextBoot,
            enabled,
            UnitVerb::Enable,
            UnitVerb::Disable,
        ),
        (
            "active",
            body.active,
            Plane::Running,
            active,
            UnitVerb::Start,
            UnitVerb::Stop,
        ),
    ];
    for (field, desired, plane, now, yes, no) in states {
        if desired.is_none() {
            continue;
        }
        let back = read_flag_field(earlier, field).unwrap_or(false);
        if Reading::is(back) != now {
            diff.actions
                .push(body.build_action(if back { yes } else { no }));
        }
        diff.attributes.insert(
            field.to_owned(),
            Attribute::in_plane(plane, Reading::is(back), now),
        );
    }
}
