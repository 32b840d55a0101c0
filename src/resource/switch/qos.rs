//! `switch_qos`: the classes of a port: which DSCP has which priority, by which queue it leaves,
//! which priorities are paused instead of dropped, what goes before all others, and what is done
//! against a pause without end.

use super::PfcWatchdogSettings;
use super::before::merge_before_values;
use super::body::{
    Qos, build_switch_reads, check_common_fields, check_required_fields, extract_port_name,
    extract_switch_system,
};
use super::configuration::{DesiredPortSetting, SwitchPortSettings};
use super::diff::{SwitchConfigurations, SwitchDiffBuilder, take_back};
use crate::{
    Assessment, BodyError, DesiredResource, Fact, Read, ReadResults, Reading, ResourceKind,
};
use railwright_base::TargetKind;
use serde_json::Value;
use std::collections::BTreeSet;

/// The kind.
pub struct SwitchQos;

impl ResourceKind for SwitchQos {
    fn name(&self) -> &'static str {
        "switch_qos"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        body.get("port")?.as_str().map(str::to_owned)
    }

    fn check(&self, body: &Value) -> Vec<BodyError> {
        let own = [&["priority", "dscp"][..], self.open_fields()].concat();
        let mut fields = check_common_fields(body, &own);
        check_required_fields(&mut fields, body, &["priority", "dscp"]);
        for field in ["priority", "cnp_priority"] {
            fields.number(field, 0..=7);
        }
        for field in ["dscp", "cnp_dscp"] {
            fields.number(field, 0..=63);
        }
        // sonic-net/sonic-buildimage: src/sonic-yang-models/yang-models/sonic-pfcwd.yang
        fields.number("watchdog_detection_ms", 100..=5000);
        fields.number("watchdog_restoration_ms", 100..=60_000);
        let action = fields.get("watchdog_action").and_then(Value::as_str);
        if !matches!(action, None | Some("drop" | "forward" | "alert")) {
            fields.error(
                "/watchdog_action",
                "`watchdog_action` is drop, forward or alert",
                None,
            );
        }
        for (own, cnp) in [("priority", "cnp_priority"), ("dscp", "cnp_dscp")] {
            if fields.get(cnp).is_some() && fields.get(own) == fields.get(cnp) {
                let help = "notifications in a lossless class are paused together with the data \
                            that they are about";
                fields.error(
                    &format!("/{cnp}"),
                    format!("`{cnp}` is that of the lossless class"),
                    Some(help.to_owned()),
                );
            }
        }
        fields.finish()
    }

    fn reads(&self, desired: &DesiredResource) -> Vec<Read> {
        build_switch_reads(desired)
    }

    fn part<'a>(&self, desired: &'a DesiredResource) -> Option<&'a str> {
        Some(extract_port_name(desired))
    }

    fn assess(&self, desired: &DesiredResource, answers: &ReadResults) -> Assessment {
        let configurations = SwitchConfigurations::decode(desired, answers);
        let wanted = Qos::of(&desired.body, extract_switch_system(desired));
        let mut diff = SwitchDiffBuilder::new(desired, &configurations);
        add_class_attributes(&mut diff, &wanted);
        if let Some(watchdog) = &wanted.watchdog {
            let text = format_watchdog(wanted.pfc(), watchdog);
            diff.attribute("watchdog", text, |port| {
                let actual = port.watchdog();
                actual.map(|(on, found)| format_watchdog(on, &found)).into()
            });
        }
        if extract_switch_system(desired).has_pools() {
            diff.attribute("lossless_pool", "there", |port| {
                match port.has_lossless_pool() {
                    Fact::Is(false) => Reading::Absent,
                    has_pool => has_pool.map(|_| "there").into(),
                }
            });
        }
        diff.finish(&DesiredPortSetting::Qos(wanted))
    }

    fn remembered(&self, first: &Value, now: &Value) -> Value {
        merge_before_values(first, now)
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> Assessment {
        take_back(last_applied, before, answers)
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &[
            "cnp_priority",
            "cnp_dscp",
            "watchdog_detection_ms",
            "watchdog_restoration_ms",
            "watchdog_action",
        ]
    }
}

fn add_class_attributes(diff: &mut SwitchDiffBuilder<'_>, wanted: &Qos) {
    let dscps = wanted.dscps();
    diff.attribute("dscp", format_number_pairs(&dscps), |port| {
        let actual = dscps.iter().map(|(dscp, _)| (*dscp, port.priority(*dscp)));
        format_fact_pairs(actual).into()
    });
    let mut queues = Vec::new();
    for class in &wanted.classes {
        queues.push((class.priority, class.priority));
    }
    diff.attribute("queue", format_number_pairs(&queues), |port| {
        let actual = wanted.classes.iter().map(|class| {
            let queue = find_agreed_queue(port, class.priority, class.pfc);
            (class.priority, queue)
        });
        format_fact_pairs(actual).into()
    });
    diff.attribute("pfc", format_number_list(wanted.pfc()), |port| {
        port.pfc().map(format_number_list).into()
    });
    let strict = wanted.strict_queues();
    if !strict.is_empty() {
        diff.attribute("strict", format_number_list(strict.clone()), |port| {
            let actual = select_strict_queues(port, &strict);
            actual.map(format_number_list).into()
        });
    }
}

fn format_watchdog(on: BTreeSet<u64>, watchdog: &PfcWatchdogSettings) -> String {
    format!("{}: {watchdog}", format_number_list(on))
}

/// The queue of a priority, where all ways to it agree: by DSCP, by a pause frame, and by the group
/// that it is held in. A pause that lands on another queue than the packets is the mismatch that no
/// check of the switch finds.
fn find_agreed_queue(port: &dyn SwitchPortSettings, priority: u64, pfc: bool) -> Fact<u64> {
    let queue = port.queue(priority);
    if !pfc || queue.value().is_none() {
        return queue;
    }
    let others = [port.paused_queue(priority), port.group(priority)];
    if let Some(why) = others.iter().find_map(Fact::why_unknown) {
        return Fact::Unknown(why.to_owned());
    }
    if others.iter().any(|other| *other != queue) {
        return Fact::Absent;
    }
    queue
}

/// The queues that go first, of these.
fn select_strict_queues(port: &dyn SwitchPortSettings, queues: &[u64]) -> Fact<Vec<u64>> {
    let mut strict = Vec::new();
    for queue in queues {
        match port.is_strict(*queue) {
            Fact::Is(true) => strict.push(*queue),
            Fact::Is(false) => {}
            unknown => return unknown.map(|_| Vec::new()),
        }
    }
    Fact::Is(strict)
}

/// `26: 3, 48: none` where all of it is known; one that nobody knows leaves it unknown.
fn format_fact_pairs(pairs: impl Iterator<Item = (u64, Fact<u64>)>) -> Fact<String> {
    let mut texts = Vec::new();
    for (from, to) in pairs {
        match to {
            Fact::Is(to) => texts.push(format!("{from}: {to}")),
            Fact::Absent | Fact::NotApplicable(_) => texts.push(format!("{from}: none")),
            Fact::Unknown(why) => return Fact::Unknown(why),
        }
    }
    Fact::Is(texts.join(", "))
}

/// `26: 3, 48: 6`.
fn format_number_pairs(pairs: &[(u64, u64)]) -> String {
    let texts = pairs.iter().map(|(from, to)| format!("{from}: {to}"));
    texts.collect::<Vec<_>>().join(", ")
}

/// `3`, `3, 4`, `none`.
fn format_number_list(numbers: impl IntoIterator<Item = u64>) -> String {
    let texts: Vec<String> = numbers.into_iter().map(|n| n.to_string()).collect();
    if texts.is_empty() {
        "none".to_owned()
    } else {
        texts.join(", ")
    }
}
