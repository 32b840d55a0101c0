//! Takes a unit back to how it stood before us: its files, whether it starts at boot and whether it runs.

use super::found::FoundUnit;
use super::{files, name, verb};
use crate::action::UnitVerb;
use crate::body::flag;
use crate::file::found::Found;
use crate::{Action, Answers, Assessment, Attribute, Disruption, Plane, Reading, Wish};
use serde_json::Value;

/// What is to be done for that, and what cannot be.
pub(super) fn undo(last_applied: &Wish, before: &Value, answers: &Answers) -> Assessment {
    let unit = FoundUnit::of(name(last_applied), answers);
    let earlier = &before["unit"];
    let mut assessment = Assessment::default();
    let own_file = format!("/etc/systemd/system/{}", name(last_applied));
    let comes_back = matches!(Found::remembered(before["files"].get(&own_file)), Found::Regular(_));
    if unit.as_ref().is_ok_and(FoundUnit::is_missing) && earlier["there"] == true && !comes_back {
        assessment.residue.push(format!("{} stays as it is: its unit file is gone since", name(last_applied)));
    } else if earlier.is_null() {
        assessment.residue.push(format!("{} stays as it is: how it stood before is not recorded", name(last_applied)));
    } else {
        undo_unit(last_applied, earlier, &unit, &mut assessment);
    }
    let late = std::mem::take(&mut assessment.actions);
    let mut files_change = false;
    for (attribute, path, _) in files(last_applied) {
        let (kept, now) = (Found::remembered(before["files"].get(&path)), Found::at(&path, answers));
        let (actions, residue) = kept.restore(&path, &now);
        files_change |= !actions.is_empty();
        assessment.actions.extend(actions);
        assessment.residue.extend(residue);
        assessment.attributes.insert(attribute, Attribute::in_plane(Plane::Persisted, kept.restored_reading(&now), now.content_reading()));
    }
    // Files that went in an attempt that was cut short: systemd still has them until it reads anew.
    if unit.as_ref().is_ok_and(FoundUnit::is_stale) {
        files_change = true;
        assessment.attributes.insert("loaded".to_owned(), Attribute::in_plane(Plane::Running, Reading::is(true), Reading::is(false)));
    }
    let runs_on = unit.as_ref().is_ok_and(|unit| unit.active() == Reading::is(true)) && !late.contains(&verb(last_applied, UnitVerb::Stop));
    order_undo(last_applied, late, files_change, &mut assessment);
    if runs_on && files_change {
        restart(last_applied, &mut assessment);
    }
    assessment
}

/// It runs with what is taken away, and is restarted where we had it restarted for that.
fn restart(wish: &Wish, assessment: &mut Assessment) {
    if flag(&wish.body, "active") == Some(true) {
        assessment.actions.push(verb(wish, UnitVerb::Restart));
        assessment.interrupts.push(format!("{} restarts", name(wish)));
        assessment.disruption = Disruption::Restart;
    } else {
        assessment.residue.push(format!("{} goes on as it was started until it is restarted", name(wish)));
    }
}

/// Stop and disable come before the file goes, start and enable after it is back.
fn order_undo(wish: &Wish, unit_actions: Vec<Action>, files_change: bool, assessment: &mut Assessment) {
    let early = |action: &Action| matches!(action, Action::Unit { verb: UnitVerb::Stop | UnitVerb::Disable, .. });
    let (mut first, later): (Vec<_>, Vec<_>) = unit_actions.into_iter().partition(early);
    if !first.is_empty() {
        assessment.interrupts.push(format!("{} stops or no longer starts at boot", name(wish)));
        assessment.disruption = Disruption::Restart;
    }
    first.append(&mut assessment.actions);
    if files_change {
        first.push(Action::ReloadSystemd);
        assessment.disruption = assessment.disruption.max(Disruption::Reload);
    }
    first.extend(later);
    assessment.actions = first;
}

fn undo_unit(wish: &Wish, earlier: &Value, unit: &Result<FoundUnit, String>, assessment: &mut Assessment) {
    let Ok(unit) = unit else {
        assessment.residue.push(format!("{} could not be asked; it stays as it is", name(wish)));
        return;
    };
    let now = |reading: Reading| reading == Reading::is(true);
    let states = [
        ("masked", Plane::NextBoot, unit.is_masked(), UnitVerb::Mask, UnitVerb::Unmask),
        ("enabled", Plane::NextBoot, now(unit.enabled()), UnitVerb::Enable, UnitVerb::Disable),
        ("active", Plane::Running, now(unit.active()), UnitVerb::Start, UnitVerb::Stop),
    ];
    for (field, plane, now, yes, no) in states {
        if flag(&wish.body, field).is_none() {
            continue;
        }
        let back = earlier.get(field).and_then(Value::as_bool).unwrap_or(false);
        if back != now {
            assessment.actions.push(verb(wish, if back { yes } else { no }));
        }
        assessment.attributes.insert(field.to_owned(), Attribute::in_plane(plane, Reading::is(back), Reading::is(now)));
    }
}
