//! The edits of the configuration that runs that bring a port of SONiC to its desired settings.

use super::config_db::{ConfigDb, Row};
use super::edit::{SonicEdit, SonicEditBuilder};
use super::port_view::SonicPortView;
use crate::Fact;
use crate::switch::body::Qos;
use crate::switch::configuration::{SwitchPortSettings as _, check_shared_map, has_desired_dscps};
use crate::switch::parse_values::{ANY, parse_bounded_number};
use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings, SwitchError};
use railwright_base::text::one_line;
use std::collections::BTreeMap;

/// The name of our maps.
pub const OURS: &str = "railwright";

/// The maps that SONiC's templates bring (sonic-net/sonic-buildimage:
/// files/build_templates/qos_config.j2).
const SHIPPED: &str = "AZURE";

/// How often the watchdog looks, in milliseconds, where nothing sets it (sonic-net/sonic-utilities:
/// pfcwd/main.py).
const POLL_MS: u64 = 200;

/// MTU and whether the port is up.
pub fn plan_sonic_port_edits(
    db: &ConfigDb,
    port: &str,
    mtu: Option<u64>,
    up: Option<bool>,
) -> Vec<SonicEdit> {
    let mut edits = SonicEditBuilder::of(db);
    if let Some(mtu) = mtu {
        edits.set("PORT", port, "mtu", &mtu.to_string());
    }
    if let Some(up) = up {
        edits.set("PORT", port, "admin_status", if up { "up" } else { "down" });
    }
    edits.finish()
}

/// The length of the cable, by which the switch sizes the buffer of a paused priority.
pub fn plan_sonic_cable_edits(db: &ConfigDb, port: &str, cable_m: u64) -> Vec<SonicEdit> {
    let mut edits = SonicEditBuilder::of(db);
    edits.set(
        "CABLE_LENGTH",
        cable_row(db, port),
        port,
        &format!("{cable_m}m"),
    );
    edits.finish()
}

/// The row of cable lengths that a port is in, or comes into.
pub fn cable_row<'a>(db: &'a ConfigDb, port: &str) -> &'a str {
    db.cable_row(port).map_or(SHIPPED, |(key, _)| key)
}

/// Marking of a queue. The profile is of all ports of one speed, so that other thresholds later are
/// an edit of it, and no port goes down. The error says why the row of the queue cannot be bound.
pub fn plan_sonic_marking_edits(
    db: &ConfigDb,
    port: &str,
    queue: u64,
    desired: EcnMarkingThresholds,
) -> Result<Vec<SonicEdit>, SwitchError> {
    let Some(view) = SonicPortView::of(db, port) else {
        return Ok(Vec::new());
    };
    let mut edits = SonicEditBuilder::of(db);
    if view.marking(queue) == Fact::Is(desired) {
        return Ok(Vec::new());
    }
    let profile = format!("{OURS}_{}", view.speed_mbps().unwrap_or(0));
    let row = name_own_row(&view, port, queue)?;
    for (field, value) in [
        ("ecn", "ecn_all".to_owned()),
        ("wred_green_enable", "true".to_owned()),
        ("green_min_threshold", desired.min_bytes.to_string()),
        ("green_max_threshold", desired.max_bytes.to_string()),
        (
            "green_drop_probability",
            desired.probability_percent.to_string(),
        ),
    ] {
        edits.set("WRED_PROFILE", &profile, field, &value);
    }
    edits.set("QUEUE", &row, "wred_profile", &profile);
    Ok(edits.finish())
}

/// The row of one queue alone.
fn name_own_row(view: &SonicPortView, port: &str, queue: u64) -> Result<String, SwitchError> {
    let own = format!("{port}|{queue}");
    match view.queue_row(queue) {
        Some(row) if row != own => Err(SwitchError::Conflict(format!(
            "its queue {queue} is set together with others (QUEUE|{row}): give each a row of its \
             own first"
        ))),
        _ => Ok(own),
    }
}

/// Which map of ours has to say what.
struct OwnMap {
    table: &'static str,
    binding: &'static str,
    /// What has to be so, whatever the map says of the rest.
    entries: BTreeMap<u64, u64>,
    /// What the rest is where no shipped map says it.
    rest: Vec<(u64, u64)>,
}

impl OwnMap {
    /// A map that gives each priority the queue or the group of its own number.
    fn of_priorities(table: &'static str, binding: &'static str, priorities: &[u64]) -> Self {
        OwnMap {
            table,
            binding,
            entries: priorities.iter().map(|n| (*n, *n)).collect(),
            rest: (0..8).map(|priority| (priority, priority)).collect(),
        }
    }
}

/// Classes of a port: maps, bindings, PFC, the watchdog, what goes first.
pub fn plan_sonic_qos_edits(
    db: &ConfigDb,
    port: &str,
    desired: &Qos,
) -> Result<Vec<SonicEdit>, SwitchError> {
    let Some(view) = SonicPortView::of(db, port) else {
        return Ok(Vec::new());
    };
    let mut edits = SonicEditBuilder::of(db);
    for map in list_differing_maps(db, &view, desired) {
        bind_own_map(db, &mut edits, &view, port, &map)?;
    }
    let pfc: Vec<String> = desired.pfc().iter().map(u64::to_string).collect();
    edits.set("PORT_QOS_MAP", port, "pfc_enable", &pfc.join(","));
    if let Some(watchdog) = &desired.watchdog {
        add_watchdog_edits(db, &mut edits, port, watchdog, &pfc.join(","))?;
    }
    for queue in desired.strict_queues() {
        if view.is_strict(queue) != Fact::Is(true) {
            let row = name_own_row(&view, port, queue)?;
            let scheduler = format!("{OURS}_strict");
            edits.set("SCHEDULER", &scheduler, "type", "STRICT");
            edits.set("QUEUE", &row, "scheduler", &scheduler);
        }
    }
    Ok(edits.finish())
}

/// The error says why the times cannot be: SONiC looks no more often than its poll interval, which
/// all ports share.
fn add_watchdog_edits(
    db: &ConfigDb,
    edits: &mut SonicEditBuilder,
    port: &str,
    watchdog: &PfcWatchdogSettings,
    priorities: &str,
) -> Result<(), SwitchError> {
    let shortest = watchdog.detection_ms.min(watchdog.restoration_ms);
    let poll = db.field("PFC_WD", "GLOBAL", "POLL_INTERVAL");
    match parse_bounded_number("PFC_WD|GLOBAL POLL_INTERVAL", poll, ANY) {
        Fact::Is(poll) if poll > shortest => {
            return Err(SwitchError::Conflict(format!(
                "the watchdog of this switch looks every {poll} ms (PFC_WD|GLOBAL POLL_INTERVAL), \
                 more seldom than the {shortest} ms that are desired: state times of at least \
                 {poll} ms, or let it look more often"
            )));
        }
        Fact::Is(_) => {}
        Fact::Unknown(why) => {
            return Err(SwitchError::Unreadable(format!(
                "how often the watchdog of this switch looks is not known: {why}; all ports share \
                 it: set it to milliseconds first"
            )));
        }
        Fact::Absent | Fact::NotApplicable(_) => {
            let poll = POLL_MS.min(shortest).to_string();
            edits.set("PFC_WD", "GLOBAL", "POLL_INTERVAL", &poll);
        }
    }
    for (field, value) in [
        ("action", watchdog.action.clone()),
        ("detection_time", watchdog.detection_ms.to_string()),
        ("restoration_time", watchdog.restoration_ms.to_string()),
    ] {
        edits.set("PFC_WD", port, field, &value);
    }
    edits.set("PORT_QOS_MAP", port, "pfcwd_sw_enable", priorities);
    Ok(())
}

/// The maps in which something is not as desired. The two ways to a queue, by DSCP and by a pause
/// frame, have to end in the same one.
fn list_differing_maps(db: &ConfigDb, view: &SonicPortView, desired: &Qos) -> Vec<OwnMap> {
    let priorities: Vec<u64> = desired.classes.iter().map(|class| class.priority).collect();
    let lossless = Vec::from_iter(desired.pfc());
    let mut out = Vec::new();
    if !has_desired_dscps(view, desired) {
        out.push(OwnMap {
            table: "DSCP_TO_TC_MAP",
            binding: "dscp_to_tc_map",
            entries: BTreeMap::from_iter(desired.dscps()),
            rest: (0..64).map(|dscp| (dscp, 0)).collect(),
        });
    }
    if has_other_number(&priorities, |priority| view.queue(priority)) {
        let (table, binding) = ("TC_TO_QUEUE_MAP", "tc_to_queue_map");
        out.push(OwnMap::of_priorities(table, binding, &priorities));
    }
    if has_other_number(&lossless, |priority| view.group(priority)) {
        out.push(OwnMap {
            rest: (0..8).map(|priority| (priority, 0)).collect(),
            ..OwnMap::of_priorities("TC_TO_PRIORITY_GROUP_MAP", "tc_to_pg_map", &lossless)
        });
    }
    if has_other_number(&lossless, |priority| view.paused_queue(priority)) {
        let (table, binding) = ("MAP_PFC_PRIORITY_TO_QUEUE", "pfc_to_queue_map");
        out.push(OwnMap::of_priorities(table, binding, &lossless));
    }
    // Only some chips have it; where it is not there, the group of a priority is that of its
    // number.
    let (table, binding) = ("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", "pfc_to_pg_map");
    if let Some(map) = view.bound(binding)
        && lossless.iter().map(u64::to_string).any(|number| {
            let group = db.field(table, map, &number);
            group.is_some_and(|group| group != number)
        })
    {
        out.push(OwnMap::of_priorities(table, binding, &lossless));
    }
    out
}

/// True where one of these priorities does not have the queue or the group of its own number.
fn has_other_number(priorities: &[u64], find: impl Fn(u64) -> Fact<u64>) -> bool {
    let mut priorities = priorities.iter();
    priorities.any(|priority| find(*priority) != Fact::Is(*priority))
}

/// The name of our map for the ports that are bound to this one. Names of maps have 32 characters
/// at most (sonic-net/sonic-buildimage: sonic-dscp-tc-map.yang).
fn name_own_map(bound: Option<&str>) -> String {
    match bound {
        Some(bound) if bound.starts_with(OURS) => bound.to_owned(),
        Some(bound) if bound != SHIPPED => format!("{OURS}_{bound}").chars().take(32).collect(),
        _ => OURS.to_owned(),
    }
}

fn parse_map_entry(from: &str, to: &str) -> Option<(u64, u64)> {
    Some((from.parse().ok()?, to.trim().parse().ok()?))
}

/// The entries of a map that make sense; nothing where the map is not there.
fn parse_map(db: &ConfigDb, table: &str, name: &str) -> Option<BTreeMap<u64, u64>> {
    let row = db.row(table, name)?.iter();
    Some(
        row.filter_map(|(from, to)| parse_map_entry(from, to))
            .collect(),
    )
}

/// The error names an entry of somebody else's that would not be in a copy of the map.
fn check_map_can_be_copied(db: &ConfigDb, map: &OwnMap, copied: &str) -> Result<(), SwitchError> {
    for (from, to) in db.row(map.table, copied).into_iter().flatten() {
        let is_desired = from
            .parse()
            .is_ok_and(|from: u64| map.entries.contains_key(&from));
        if !is_desired && parse_map_entry(from, to).is_none() {
            let entry = one_line(&format!("{}|{copied} {from}: {to}", map.table), 80);
            return Err(SwitchError::Unreadable(format!(
                "an entry of the map that the port is bound to makes no sense, and ours is a copy \
                 of that map: `{entry}`; correct it or take it away first"
            )));
        }
    }
    Ok(())
}

/// Whether a port is bound to this map of ours.
fn is_shared(db: &ConfigDb, binding: &str, own: &str) -> bool {
    let mut ports = db.table("PORT_QOS_MAP").into_iter().flatten();
    ports.any(|(port, _)| db.reference("PORT_QOS_MAP", port, binding) == Some(own))
}

/// Ours begins as a copy of the map that the port is bound to, the same for every port that is
/// bound to that one. It is recreated where no port is bound to it any more.
fn bind_own_map(
    db: &ConfigDb,
    edits: &mut SonicEditBuilder,
    view: &SonicPortView,
    port: &str,
    map: &OwnMap,
) -> Result<(), SwitchError> {
    let bound = view.bound(map.binding);
    let own = name_own_map(bound);
    let copied = bound.unwrap_or(SHIPPED);
    if own != copied {
        check_map_can_be_copied(db, map, copied)?;
    }
    let actual = parse_map(db, map.table, copied);
    let shared = parse_map(db, map.table, &own).filter(|_| is_shared(db, map.binding, &own));
    if let (Some(_), Some(actual), Some(shared)) = (bound, &actual, &shared) {
        let names = [copied, &own].map(|name| format!("{}|{name}", map.table));
        let [actual, shared] = [actual, shared].map(|entries| {
            let mut others = entries.clone();
            others.retain(|from, _| !map.entries.contains_key(from));
            others
        });
        check_shared_map(names.each_ref().map(String::as_str), &actual, &shared)?;
    }
    let is_new = shared.is_none();
    let mut entries = match shared.or(actual) {
        Some(entries) => entries,
        None => map.rest.iter().copied().collect(),
    };
    entries.extend(&map.entries);
    if is_new {
        // What is left of it from before.
        for from in db.row(map.table, &own).into_iter().flat_map(Row::keys) {
            if !entries.keys().any(|kept| kept.to_string() == *from) {
                edits.unset(map.table, &own, from);
            }
        }
    }
    for (from, to) in entries {
        edits.set(map.table, &own, &from.to_string(), &to.to_string());
    }
    if bound != Some(own.as_str()) {
        edits.set("PORT_QOS_MAP", port, map.binding, &own);
    }
    Ok(())
}
