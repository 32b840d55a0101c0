//! The edits of the applied revision that bring a port to its desired settings. The errors say why
//! there are none.

use super::config::Nvue;
use super::edit::{CumulusEdit, CumulusEditBuilder, Leaf, collect_leaves};
use super::port_view::CumulusPortView;
use super::profile::{DEFAULT, QosProfileKind, Roce};
use super::{OURS, POLLING_MS, ROBUSTNESS};
use crate::Fact;
use crate::switch::body::Qos;
use crate::switch::configuration::{
    SwitchPortSettings as _, check_queue_numbers, check_shared_map, has_desired_dscps,
};
use crate::switch::parse_values::ANY;
use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings, SwitchError};
use railwright_base::text::one_line;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The shares of the buffers where nobody divided them: those of the manual's example (Flow Control
/// Buffers).
const POOLS: [(&str, u64); 2] = [("default-lossless", 50), ("default-lossy", 50)];

/// The profile of one port alone: the cable and the thresholds are the port's own, and it goes with
/// what is undone.
pub fn format_port_profile_name(port: &str) -> String {
    format!("{OURS}_{port}")
}

/// The profile of all ports that were bound to the same one: the classes are those of the fabric.
fn select_shared_profile_name(nvue: &Nvue, port: &str, family: QosProfileKind) -> String {
    match nvue.bound(port, family) {
        Some(bound) if bound == OURS || bound.starts_with(&format!("{OURS}_")) => bound.to_owned(),
        Some(bound) => format!("{OURS}_{bound}"),
        None => OURS.to_owned(),
    }
}

fn new_word_leaf(text: &str) -> Leaf {
    Leaf::Word(text.to_owned())
}

fn bind_port_profile(
    edits: &mut CumulusEditBuilder,
    port: &str,
    family: QosProfileKind,
    profile: &str,
) {
    edits.set(
        &["interface", port, "qos", family.word(), "profile"],
        new_word_leaf(profile),
    );
}

/// MTU and whether the port is up.
pub fn plan_cumulus_port_edits(
    nvue: &Nvue,
    port: &str,
    mtu: Option<u64>,
    up: Option<bool>,
) -> Vec<CumulusEdit> {
    let mut edits = CumulusEditBuilder::of(nvue);
    let Some(view) = CumulusPortView::of(nvue, port) else {
        return Vec::new();
    };
    if let Some(mtu) = mtu
        && view.mtu() != Fact::Is(mtu)
    {
        edits.set(&["interface", port, "link", "mtu"], Leaf::Number(mtu));
    }
    if let Some(up) = up {
        let state = ["interface", port, "link", "state"];
        let (desired, other) = if up { ("up", "down") } else { ("down", "up") };
        match nvue.text(&state) {
            Some(_) => edits.set(&state, new_word_leaf(desired)),
            None => {
                edits.unset(&[&state[..], &[other]].concat());
                edits.set(&[&state[..], &[desired]].concat(), Leaf::Entry {});
            }
        }
    }
    edits.finish()
}

/// What nobody can change for one port: the macro's other modes set classes that are others'.
fn check_roce_mode(nvue: &Nvue, wants_pfc: bool) -> Result<(), SwitchError> {
    match nvue.roce() {
        Roce::Other(words) => Err(SwitchError::Conflict(format!(
            "`qos roce {words}` rules the classes of all ports of this switch: unset it (`nv unset \
             qos roce {}`), or take the port out of the spec",
            words.split(' ').next().unwrap_or_default()
        ))),
        Roce::Lossy if wants_pfc => Err(SwitchError::Conflict(
            "`qos roce mode lossy` pauses nothing, on all ports of this switch: `nv set qos roce \
             mode lossless` changes it, and `nv unset qos roce` leaves the classes to railwright"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// The length of the cable, by which the switch sizes the buffer of a paused priority.
pub fn plan_cumulus_cable_edits(
    nvue: &Nvue,
    port: &str,
    metres: u64,
) -> Result<Vec<CumulusEdit>, SwitchError> {
    let mut edits = CumulusEditBuilder::of(nvue);
    check_roce_mode(nvue, false)?;
    if let Some(view) = CumulusPortView::of(nvue, port)
        && view.cable_m() != Fact::Is(metres)
    {
        let profile = format_port_profile_name(port);
        edits.copy(
            &["qos", "pfc", &profile],
            &nvue.effective(port, QosProfileKind::Pfc),
            &["cable-length"],
        );
        edits.set(
            &["qos", "pfc", &profile, "cable-length"],
            Leaf::Number(metres),
        );
        bind_port_profile(&mut edits, port, QosProfileKind::Pfc, &profile);
    }
    Ok(edits.finish())
}

/// Marking of a queue.
pub fn plan_cumulus_marking_edits(
    nvue: &Nvue,
    port: &str,
    queue: u64,
    desired: EcnMarkingThresholds,
) -> Result<Vec<CumulusEdit>, SwitchError> {
    let mut edits = CumulusEditBuilder::of(nvue);
    check_roce_mode(nvue, false)?;
    if let Some(view) = CumulusPortView::of(nvue, port)
        && view.marking(queue) != Fact::Is(desired)
    {
        let (profile, queue) = (format_port_profile_name(port), queue.to_string());
        let path = ["qos", QosProfileKind::Marking.word(), &profile];
        let mut others = nvue.effective(port, QosProfileKind::Marking);
        put_thresholds(&mut others, &queue, desired);
        edits.copy(&path, &others, &[]);
        let class = [&path[..], &["traffic-class", &queue]].concat();
        for (name, value) in [
            ("min-threshold", desired.min_bytes),
            ("max-threshold", desired.max_bytes),
            ("probability", desired.probability_percent),
        ] {
            edits.set(&[&class[..], &[name]].concat(), Leaf::Number(value));
        }
        bind_port_profile(&mut edits, port, QosProfileKind::Marking, &profile);
    }
    Ok(edits.finish())
}

/// Puts the thresholds of a queue into the members of a profile that are to be copied: a place that
/// has its desired value is no edit, and the copy would take it away.
fn put_thresholds(profile: &mut Map<String, Value>, queue: &str, desired: EcnMarkingThresholds) {
    let Some(Value::Object(queues)) = profile.get_mut("traffic-class") else {
        return;
    };
    let mut thresholds = json!({
        "min-threshold": desired.min_bytes,
        "max-threshold": desired.max_bytes,
        "probability": desired.probability_percent,
    });
    if let Some(red) = queues.get(queue).and_then(|class| class.get("red")) {
        thresholds["red"] = red.clone();
    }
    queues.insert(queue.to_owned(), thresholds);
}

/// Classes of a port.
pub fn plan_cumulus_qos_edits(
    nvue: &Nvue,
    port: &str,
    desired: &Qos,
) -> Result<Vec<CumulusEdit>, SwitchError> {
    let Some(view) = CumulusPortView::of(nvue, port) else {
        return Ok(Vec::new());
    };
    check_roce_mode(nvue, !desired.pfc().is_empty())?;
    let words = [
        "priority",
        "qos egress-queue-mapping",
        ", on all ports of the switch",
    ];
    check_queue_numbers(&view, desired, words)?;
    let mut edits = CumulusEditBuilder::of(nvue);
    if !has_desired_dscps(&view, desired) {
        add_dscp_map_edits(nvue, &mut edits, port, desired)?;
    }
    if view.pfc() != Fact::Is(desired.pfc()) {
        add_pfc_edits(nvue, &mut edits, port, desired)?;
    }
    if !desired.pfc().is_empty() && view.has_lossless_pool() != Fact::Is(true) {
        add_buffer_pool_edits(nvue, &mut edits)?;
    }
    if let Some(watchdog) = &desired.watchdog {
        add_watchdog_edits(nvue, &mut edits, &view, port, watchdog)?;
    }
    let strict = desired.strict_queues();
    if strict
        .iter()
        .any(|queue| view.is_strict(*queue) != Fact::Is(true))
    {
        add_scheduler_edits(nvue, &mut edits, port, &strict)?;
    }
    Ok(edits.finish())
}

/// Whether a port has this profile of ours.
fn has_shared_profile(nvue: &Nvue, port: &str, family: QosProfileKind, profile: &str) -> bool {
    let members = nvue.at(&["qos", family.word(), profile]);
    members.is_some_and(Value::is_object) && nvue.bound(port, family) == Some(profile)
}

/// Makes our shared profile a copy of what the port has, where no port has ours. The error says in
/// what a copy differs from ours beside `desired`, the first words of what is set in it.
fn copy_shared_profile(
    nvue: &Nvue,
    edits: &mut CumulusEditBuilder,
    port: &str,
    family: QosProfileKind,
    copy: &Map<String, Value>,
    desired: &[[String; 2]],
) -> Result<(), SwitchError> {
    let profile = select_shared_profile_name(nvue, port, family);
    let path = ["qos", family.word(), &profile];
    let interfaces = nvue.at(&["interface"]).and_then(Value::as_object);
    let mut ports = interfaces.into_iter().flat_map(Map::keys);
    let is_shared = ports.any(|other| has_shared_profile(nvue, other, family, &profile));
    match nvue.at(&path) {
        Some(Value::Object(shared)) if is_shared => {
            let theirs = nvue.bound(port, family).unwrap_or(DEFAULT);
            let names = [theirs, &profile].map(|name| format!("qos {} {name}", family.word()));
            let [actual, shared] = [copy, shared].map(|profile| list_settings(profile, desired));
            check_shared_map(names.each_ref().map(String::as_str), &actual, &shared)
        }
        _ => {
            edits.copy(&path, copy, &[]);
            Ok(())
        }
    }
}

/// What a profile says beside `desired`, by the words that lead there: `dscp 46 switch-priority`.
fn list_settings(
    profile: &Map<String, Value>,
    desired: &[[String; 2]],
) -> BTreeMap<String, String> {
    let mut leaves = collect_leaves(profile, &[]);
    leaves.retain(|path, _| !desired.iter().any(|start| path.starts_with(start)));
    let leaves = leaves.into_iter();
    let settings = leaves.map(|(path, leaf)| (path.join(" "), leaf.word()));
    settings.collect()
}

/// Which priority packets have. A profile that says something of one DSCP says it of all 64,
/// because nothing says what it does with the others; the VLAN tag counts for packets without a
/// DSCP where it counted before.
fn add_dscp_map_edits(
    nvue: &Nvue,
    edits: &mut CumulusEditBuilder,
    port: &str,
    desired: &Qos,
) -> Result<(), SwitchError> {
    let family = QosProfileKind::Mapping;
    let dscps = desired.dscps();
    let profile = select_shared_profile_name(nvue, port, family);
    let path = ["qos", "mapping", &profile];
    let now = nvue.effective(port, family);
    let by_tag = matches!(
        now.get("trust").and_then(Value::as_str),
        Some("l2" | "both")
    );
    let trust = if by_tag { "both" } else { "l3" };
    if !has_shared_profile(nvue, port, family, &profile) {
        let mut copy = now;
        copy.insert("dscp".to_owned(), copy_dscp_map(nvue, port, &dscps)?.into());
        copy.insert("trust".to_owned(), trust.into());
        let priorities: Vec<[String; 2]> = dscps
            .iter()
            .map(|(dscp, _)| ["dscp".to_owned(), dscp.to_string()])
            .collect();
        copy_shared_profile(nvue, edits, port, family, &copy, &priorities)?;
    }
    edits.set(&[&path[..], &["trust"]].concat(), new_word_leaf(trust));
    for (dscp, priority) in dscps {
        edits.set(
            &[&path[..], &["dscp", &dscp.to_string(), "switch-priority"]].concat(),
            Leaf::Number(priority),
        );
    }
    bind_port_profile(edits, port, family, &profile);
    Ok(())
}

/// All 64 DSCPs with their desired priorities, and else those of now. The error names one that is
/// not desired, whose priority is not known.
fn copy_dscp_map(
    nvue: &Nvue,
    port: &str,
    desired: &[(u64, u64)],
) -> Result<Map<String, Value>, SwitchError> {
    let mut entries = Map::new();
    for dscp in 0..64 {
        let own = desired.iter().find(|(other, _)| *other == dscp);
        let priority = match (own, nvue.priority(port, dscp)) {
            (Some((_, priority)), _) => *priority,
            (None, Fact::Is(priority)) => priority,
            (None, Fact::Unknown(why)) => {
                return Err(SwitchError::Unreadable(format!(
                    "the map that {port} has cannot be copied: {why}"
                )));
            }
            (None, _) => dscp / 8,
        };
        entries.insert(dscp.to_string(), json!({ "switch-priority": priority }));
    }
    Ok(entries)
}

/// Which priorities pause, and no others. Both ways are on where nothing is set (the manual, PFC).
fn add_pfc_edits(
    nvue: &Nvue,
    edits: &mut CumulusEditBuilder,
    port: &str,
    desired: &Qos,
) -> Result<(), SwitchError> {
    if let Some(profile) = nvue.text(&["interface", port, "qos", "link-pause", "profile"]) {
        return Err(SwitchError::Conflict(format!(
            "{port} has link pause (profile {}), and a port has that or PFC: `nv unset interface \
             {port} qos link-pause` takes it away",
            one_line(profile, 40)
        )));
    }
    let profile = format_port_profile_name(port);
    let path = ["qos", "pfc", &profile];
    let now = nvue.effective(port, QosProfileKind::Pfc);
    edits.copy(&path, &now, &["switch-priority", "tx", "rx"]);
    let pfc = desired.pfc();
    let own = nvue.at(&[&path[..], &["switch-priority"]].concat());
    for priorities in [now.get("switch-priority"), own] {
        let Some(Value::Object(priorities)) = priorities else {
            continue;
        };
        for priority in priorities.keys() {
            let is_desired = priority
                .parse()
                .is_ok_and(|number: u64| pfc.contains(&number));
            if !is_desired {
                edits.never(&[&path[..], &["switch-priority", priority]].concat());
            }
        }
    }
    for way in ["tx", "rx"] {
        edits.never(&[&path[..], &[way]].concat());
    }
    for priority in pfc {
        edits.set(
            &[&path[..], &["switch-priority", &priority.to_string()]].concat(),
            Leaf::Entry {},
        );
    }
    bind_port_profile(edits, port, QosProfileKind::Pfc, &profile);
    Ok(())
}

/// Sets buffers aside for paused packets where nobody divided them: all are for the others then
/// (the manual, Flow Control Buffers).
fn add_buffer_pool_edits(nvue: &Nvue, edits: &mut CumulusEditBuilder) -> Result<(), SwitchError> {
    let pools = nvue.at(&["qos", "traffic-pool"]).and_then(Value::as_object);
    let divided = pools
        .into_iter()
        .flatten()
        .any(|(_, pool)| pool.get("memory-percent").is_some());
    let advanced = nvue.at(&["qos", "advance-buffer-config"]).is_some();
    if divided || advanced || nvue.roce() != Roce::Off {
        let at = if advanced {
            "qos advance-buffer-config"
        } else {
            "qos traffic-pool"
        };
        return Err(SwitchError::Conflict(format!(
            "the buffers of this switch are divided already ({at}), and none are set aside for \
             paused packets: give the lossless pool its share (`nv set qos traffic-pool \
             default-lossless memory-percent ...`, 100 with the others at most)"
        )));
    }
    for (pool, percent) in POOLS {
        edits.set(
            &["qos", "traffic-pool", pool, "memory-percent"],
            Leaf::Number(percent),
        );
    }
    Ok(())
}

/// The times are for all ports of the switch, and the action is not to be chosen (the manual, PFC
/// Watchdog).
fn add_watchdog_edits(
    nvue: &Nvue,
    edits: &mut CumulusEditBuilder,
    view: &CumulusPortView,
    port: &str,
    watchdog: &PfcWatchdogSettings,
) -> Result<(), SwitchError> {
    let (detection, polling) = (watchdog.detection_ms, watchdog.restoration_ms);
    if watchdog.action != "drop" {
        return Err(SwitchError::Unsupported(format!(
            "the watchdog of Cumulus Linux drops, and cannot be set to {}: take `action` out of \
             `watchdog`",
            watchdog.action
        )));
    }
    if polling == 0 || detection < polling || !detection.is_multiple_of(polling) {
        return Err(SwitchError::Unsupported(format!(
            "the watchdog of Cumulus Linux comes back after one look without a pause, and acts \
             after some of them: {polling} ms do not go into {detection} ms; leave \
             `restoration_ms` out, or let it go into `detection_ms`"
        )));
    }
    let path = ["interface", port, "qos", "pfc-watchdog"];
    if view.watchdog().value().is_none() {
        edits.unset(&[&path[..], &["state"]].concat());
        edits.set(&path, Leaf::Entry {});
    }
    for (name, default, value) in [
        ("polling-interval", POLLING_MS, polling),
        ("robustness", ROBUSTNESS, detection / polling),
    ] {
        let path = ["qos", "pfc-watchdog", name];
        if nvue.number(&path, ANY).or(default) != Fact::Is(value) {
            edits.set(&path, Leaf::Number(value));
        }
    }
    Ok(())
}

/// Queues that go before all others.
fn add_scheduler_edits(
    nvue: &Nvue,
    edits: &mut CumulusEditBuilder,
    port: &str,
    strict: &[u64],
) -> Result<(), SwitchError> {
    let family = QosProfileKind::Scheduler;
    let profile = select_shared_profile_name(nvue, port, family);
    let path = ["qos", family.word(), &profile];
    if !has_shared_profile(nvue, port, family, &profile) {
        let mut copy = nvue.effective(port, family);
        let mut queues = match copy.remove("traffic-class") {
            Some(Value::Object(queues)) => queues,
            _ => Map::new(),
        };
        let mut desired = Vec::new();
        for queue in strict.iter().map(u64::to_string) {
            queues.insert(queue.clone(), json!({ "mode": "strict" }));
            desired.push(["traffic-class".to_owned(), queue]);
        }
        copy.insert("traffic-class".to_owned(), queues.into());
        copy_shared_profile(nvue, edits, port, family, &copy, &desired)?;
    }
    for queue in strict.iter().map(u64::to_string) {
        let class = [&path[..], &["traffic-class", &queue]].concat();
        edits.set(&[&class[..], &["mode"]].concat(), new_word_leaf("strict"));
        edits.unset(&[&class[..], &["bw-percent"]].concat());
    }
    bind_port_profile(edits, port, family, &profile);
    Ok(())
}
