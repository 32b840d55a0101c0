//! The bodies of desired resources of switches, decoded.

use super::{EcnMarkingThresholds, PfcWatchdogSettings, SwitchRead, SwitchSystem};
use crate::fields::Fields;
use crate::{DesiredResource, Read};
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::BTreeSet;

/// One class of traffic on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortTrafficClass {
    /// 0 to 7.
    pub priority: u64,
    /// The DSCPs of its packets, 0 to 63.
    pub dscp: Vec<u64>,
    /// Paused instead of dropped.
    pub pfc: bool,
    /// Its queue goes before all others.
    pub strict: bool,
}

/// The desired classes of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qos {
    /// The classes.
    pub classes: Vec<PortTrafficClass>,
    /// What is done against a pause without end.
    pub watchdog: Option<PfcWatchdogSettings>,
}

impl Qos {
    /// The priorities with PFC.
    pub fn pfc(&self) -> BTreeSet<u64> {
        self.classes
            .iter()
            .filter(|class| class.pfc)
            .map(|class| class.priority)
            .collect()
    }

    /// The DSCPs of all classes, each with the priority of its class.
    pub fn dscps(&self) -> Vec<(u64, u64)> {
        let mut dscps = Vec::new();
        for class in &self.classes {
            dscps.extend(class.dscp.iter().map(|dscp| (*dscp, class.priority)));
        }
        dscps
    }

    /// The queues that go before all others.
    pub fn strict_queues(&self) -> Vec<u64> {
        let strict = self.classes.iter().filter(|class| class.strict);
        strict.map(|class| class.priority).collect()
    }

    /// Of a body that was checked: the lossless class, and that of congestion notifications, which
    /// is strict.
    pub fn of(body: &Value, system: SwitchSystem) -> Self {
        let mut classes = vec![PortTrafficClass {
            priority: extract_number_field(body, "priority"),
            dscp: vec![extract_number_field(body, "dscp")],
            pfc: true,
            strict: false,
        }];
        if let Some(priority) = find_number_field(body, "cnp_priority") {
            classes.push(PortTrafficClass {
                priority,
                dscp: Vec::from_iter(find_number_field(body, "cnp_dscp")),
                pfc: false,
                strict: true,
            });
        }
        let watchdog = find_number_field(body, "watchdog_detection_ms").map(|detection_ms| {
            system.watchdog(
                detection_ms,
                find_number_field(body, "watchdog_restoration_ms"),
                body.get("watchdog_action").and_then(Value::as_str),
            )
        });
        Qos { classes, watchdog }
    }
}

fn find_number_field(body: &Value, field: &str) -> Option<u64> {
    body.get(field)?.as_u64()
}

/// A number of a body that was checked.
pub fn extract_number_field(body: &Value, field: &str) -> u64 {
    find_number_field(body, field).unwrap_or_default()
}

/// The thresholds of a body that was checked.
pub fn parse_marking_thresholds(body: &Value) -> EcnMarkingThresholds {
    EcnMarkingThresholds {
        min_bytes: extract_number_field(body, "min_bytes"),
        max_bytes: extract_number_field(body, "max_bytes"),
        probability_percent: extract_number_field(body, "probability_percent"),
    }
}

/// The port that a desired resource is about.
pub fn extract_port_name(desired: &DesiredResource) -> &str {
    desired.text("port").unwrap_or_default()
}

/// The system of the switch; a body that was checked names one that there is.
pub fn extract_switch_system(desired: &DesiredResource) -> SwitchSystem {
    system_of(&desired.body).unwrap_or_default()
}

/// The MTUs that ports of the switch take.
pub fn find_mtu_range(body: &Value) -> std::ops::RangeInclusive<u64> {
    system_of(body).unwrap_or_default().mtus()
}

/// The system that a body names, if there is one.
pub fn system_of(body: &Value) -> Option<SwitchSystem> {
    SwitchSystem::deserialize(body.get("system")?).ok()
}

/// What every desired resource of a switch is compared with: both configurations.
pub fn build_switch_reads(desired: &DesiredResource) -> Vec<Read> {
    let system = extract_switch_system(desired);
    [SwitchRead::Running, SwitchRead::Saved]
        .map(|of| Read::Switch { system, of })
        .to_vec()
}

/// Checks what all bodies have: the system and the port. Names of ports: `Ethernet0`,
/// `Ethernet1/1`, `swp1s0`.
pub fn check_common_fields<'a>(body: &'a Value, own: &[&str]) -> Fields<'a> {
    let mut fields = Fields::of(body, &[&["system", "port"][..], own].concat());
    if let Some(system) = fields.text("system", true)
        && system_of(body).is_none()
    {
        fields.error(
            "/system",
            format!("switches with `{system}` cannot be reached"),
            Some(format!(
                "there are: {}",
                SwitchSystem::ALL.map(|system| system.word()).join(", ")
            )),
        );
    }
    if let Some(port) = fields.text("port", true)
        && !is_port_name(port)
    {
        let shown = railwright_base::text::one_line(port, 40);
        fields.error(
            "/port",
            format!("`{shown}` cannot be the name of a port"),
            None,
        );
    }
    fields
}

fn is_port_name(name: &str) -> bool {
    name.len() <= 64
        && !name.starts_with('-')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c))
}

/// Notes the fields that a body has to have and lacks.
pub fn check_required_fields(fields: &mut Fields<'_>, body: &Value, required: &[&str]) {
    for field in required {
        if body.get(*field).is_none() {
            fields.error("", format!("`{field}` is missing"), None);
        }
    }
}
