//! `switch_qos`: the classes of a port: which DSCP has which priority, by which queue it leaves,
//! which priorities are paused instead of dropped, what goes before all others, and what is done
//! against a pause without end.

use super::body::{PortTrafficClass, Qos, build_switch_reads, check_port_name, extract_port_name};
use super::configuration::{DesiredPortSetting, SwitchPortSettings};
use super::diff::{SwitchConfigurations, SwitchDiffBuilder, can_read_before, take_back};
use super::{PfcWatchdogSettings, SwitchSystem};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use crate::merged_before::merge_before_values;
use crate::{DesiredResource, Fact, Read, ReadResults, Reading, ResourceDiff, ResourceKind};
use railwright_base::TargetKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The kind.
pub struct SwitchQos;

/// The desired state of the classes of a port.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SwitchQosBody {
    system: SwitchSystem,
    port: String,
    /// The lossless priority, 0 to 7.
    priority: u64,
    /// The DSCP of lossless packets, 0 to 63.
    dscp: u64,
    cnp_priority: Option<u64>,
    cnp_dscp: Option<u64>,
    watchdog_detection_ms: Option<u64>,
    watchdog_restoration_ms: Option<u64>,
    watchdog_action: Option<String>,
}

impl Body for SwitchQosBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        check_port_name(errors, &self.port);
        errors.check_range("priority", Some(self.priority), 0..=7);
        errors.check_range("cnp_priority", self.cnp_priority, 0..=7);
        errors.check_range("dscp", Some(self.dscp), 0..=63);
        errors.check_range("cnp_dscp", self.cnp_dscp, 0..=63);
        // sonic-net/sonic-buildimage: src/sonic-yang-models/yang-models/sonic-pfcwd.yang
        errors.check_range(
            "watchdog_detection_ms",
            self.watchdog_detection_ms,
            100..=5000,
        );
        errors.check_range(
            "watchdog_restoration_ms",
            self.watchdog_restoration_ms,
            100..=60_000,
        );
        let action = self.watchdog_action.as_deref();
        errors.require(
            matches!(action, None | Some("drop" | "forward" | "alert")),
            "/watchdog_action",
            "`watchdog_action` is drop, forward or alert",
            "",
        );
        for (cnp, own, other) in [
            ("cnp_priority", self.priority, self.cnp_priority),
            ("cnp_dscp", self.dscp, self.cnp_dscp),
        ] {
            errors.require(
                other != Some(own),
                &format!("/{cnp}"),
                &format!("`{cnp}` is that of the lossless class"),
                "notifications in a lossless class are paused together with the data that they \
                 are about",
            );
        }
    }
}

impl SwitchQosBody {
    /// The lossless class, and that of congestion notifications, which is strict.
    fn build_qos(&self) -> Qos {
        let mut classes = vec![PortTrafficClass {
            priority: self.priority,
            dscp: vec![self.dscp],
            pfc: true,
            strict: false,
        }];
        classes.extend(self.cnp_priority.map(|priority| PortTrafficClass {
            priority,
            dscp: Vec::from_iter(self.cnp_dscp),
            pfc: false,
            strict: true,
        }));
        let watchdog = self.watchdog_detection_ms.map(|detection_ms| {
            let action = self.watchdog_action.as_deref();
            self.system
                .watchdog(detection_ms, self.watchdog_restoration_ms, action)
        });
        Qos { classes, watchdog }
    }
}

impl ResourceKind for SwitchQos {
    fn name(&self) -> &'static str {
        "switch_qos"
    }

    fn target_kind(&self) -> TargetKind {
        TargetKind::Switch
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "port").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<SwitchQosBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        build_switch_reads(read_body::<SwitchQosBody>(&resource.body).system)
    }

    fn part<'a>(&self, resource: &'a DesiredResource) -> Option<&'a str> {
        Some(extract_port_name(resource))
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let configurations = SwitchConfigurations::decode(resource, answers);
        let body = read_body::<SwitchQosBody>(&resource.body);
        let desired = body.build_qos();
        let mut diff = SwitchDiffBuilder::new(resource, &configurations);
        add_class_attributes(&mut diff, &desired);
        if let Some(watchdog) = &desired.watchdog {
            let text = format_watchdog(desired.pfc(), watchdog);
            diff.attribute("watchdog", text, |port| {
                let actual = port.watchdog();
                actual
                    .map(|(on, actual)| format_watchdog(on, &actual))
                    .into()
            });
        }
        if body.system.has_pools() {
            diff.attribute("lossless_pool", "there", |port| {
                match port.has_lossless_pool() {
                    Fact::Is(false) => Reading::Absent,
                    has_pool => has_pool.map(|_| "there").into(),
                }
            });
        }
        diff.finish(&DesiredPortSetting::Qos(desired))
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
        take_back(last_applied, before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        can_read_before(before)
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

fn add_class_attributes(diff: &mut SwitchDiffBuilder<'_>, desired: &Qos) {
    let dscps = desired.dscps();
    diff.attribute("dscp", format_number_pairs(&dscps), |port| {
        let actual = dscps.iter().map(|(dscp, _)| (*dscp, port.priority(*dscp)));
        format_fact_pairs(actual).into()
    });
    let mut queues = Vec::new();
    for class in &desired.classes {
        queues.push((class.priority, class.priority));
    }
    diff.attribute("queue", format_number_pairs(&queues), |port| {
        let actual = desired.classes.iter().map(|class| {
            let queue = find_agreed_queue(port, class.priority, class.pfc);
            (class.priority, queue)
        });
        format_fact_pairs(actual).into()
    });
    diff.attribute("pfc", format_number_list(desired.pfc()), |port| {
        port.pfc().map(format_number_list).into()
    });
    let strict = desired.strict_queues();
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
/// that stores it. A pause that lands on another queue than the packets is the mismatch that no
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
