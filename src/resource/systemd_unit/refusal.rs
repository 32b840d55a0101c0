//! Why a resource cannot be applied to the unit that is there.

use super::body::UnitBody;
use super::found::FoundUnit;
use super::has_attribute_difference;
use crate::ResourceDiff;

/// The refusal of the diff, or what stands in the way of the unit itself.
pub(super) fn find_unit_refusal(
    body: &UnitBody,
    unit: &FoundUnit,
    diff: &ResourceDiff,
    files_change: bool,
) -> Option<String> {
    let name = body.name.as_str();
    if let Some(other) = unit.find_aliased_unit(name) {
        return Some(format!(
            "{name} is another name of {other} on this host: give that as `name`"
        ));
    }
    if diff.refusal.is_some() {
        return diff.refusal.clone();
    }
    if let Some(file) = unit.find_linked_file()
        && has_attribute_difference(diff, "enabled")
    {
        return Some(format!(
            "{name} is a link to {file}, which `systemctl disable` would take away, now or when it \
             is rolled back: put the file itself into /etc/systemd/system, or leave `enabled` out"
        ));
    }
    if is_kept_from_start(body, unit, diff) {
        return Some(format!(
            "{name} is masked; say `masked: false` to lift that"
        ));
    }
    let own_file = format!("/etc/systemd/system/{name}");
    if body.masked == Some(true)
        && !unit.is_masked_for_good()
        && unit.property("FragmentPath") == own_file
    {
        return Some(format!(
            "systemd masks no unit whose file is {own_file}: take the file away first"
        ));
    }
    forgets_its_run(body, unit, diff, files_change).then(|| {
        format!(
            "systemd forgets that {name} has run: it is a oneshot without RemainAfterExit=yes, and \
             no other unit keeps it loaded. Say `enabled: true`, or add RemainAfterExit=yes (in \
             `content` or `dropins`)"
        )
    })
}

/// It is masked, and the resource needs what systemctl does not do to a masked unit.
fn is_kept_from_start(body: &UnitBody, unit: &FoundUnit, diff: &ResourceDiff) -> bool {
    // `disable` leaves the links of a masked unit alone.
    let keeps_links = body.masked.is_none() && has_attribute_difference(diff, "enabled");
    let is_to_start = body.active == Some(true) || body.enabled == Some(true);
    unit.is_masked() && body.masked != Some(false) && (is_to_start || keeps_links)
}

/// Started, it would run and be let go, and nothing could tell afterwards that it ran.
fn forgets_its_run(
    body: &UnitBody,
    unit: &FoundUnit,
    diff: &ResourceDiff,
    files_change: bool,
) -> bool {
    let will_be = |setting: &str, value: &str| match body.find_setting(setting) {
        Some(text) if files_change => text == value,
        // The default of a unit file that says nothing else.
        None if files_change && setting == "Type" && body.content.is_some() => false,
        _ => unit.property(setting) == value,
    };
    body.active == Some(true)
        && has_attribute_difference(diff, "active")
        && body.enabled != Some(true)
        && unit.is_let_go()
        && will_be("Type", "oneshot")
        && will_be("RemainAfterExit", "no")
}
