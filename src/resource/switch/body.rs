//! The bodies of wishes of switches, decoded.

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

/// What is wished of the classes of a port.
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

    /// Of a body that was checked: the lossless class, and that of congestion notifications, which
    /// is strict.
    pub fn of(body: &Value, system: SwitchSystem) -> Self {
        let said = |field: &str| body.get(field).and_then(Value::as_u64);
        let lossless = PortTrafficClass {
            priority: extract_number_field(body, "priority"),
            dscp: vec![extract_number_field(body, "dscp")],
            pfc: true,
            strict: false,
        };
        let cnp = said("cnp_priority").map(|priority| PortTrafficClass {
            priority,
            dscp: said("cnp_dscp").into_iter().collect(),
            pfc: false,
            strict: true,
        });
        let watchdog = said("watchdog_detection_ms").map(|detection_ms| {
            system.watchdog(
                detection_ms,
                said("watchdog_restoration_ms"),
                body.get("watchdog_action").and_then(Value::as_str),
            )
        });
        Qos {
            classes: std::iter::once(lossless).chain(cnp).collect(),
            watchdog,
        }
    }
}

fn extract_number_field(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or_default()
}

/// The thresholds of a body that was checked.
pub fn parse_marking_thresholds(body: &Value) -> EcnMarkingThresholds {
    EcnMarkingThresholds {
        min_bytes: extract_number_field(body, "min_bytes"),
        max_bytes: extract_number_field(body, "max_bytes"),
        probability_percent: extract_number_field(body, "probability_percent"),
    }
}

/// The port that a wish is about.
pub fn extract_port_name(wish: &DesiredResource) -> &str {
    wish.text("port").unwrap_or_default()
}

/// The system of the switch; a body that was checked names one that there is.
pub fn extract_switch_system(wish: &DesiredResource) -> SwitchSystem {
    system_of(&wish.body).unwrap_or(SwitchSystem::Sonic)
}

/// The MTUs that ports of the switch take.
pub fn find_mtu_range(body: &Value) -> std::ops::RangeInclusive<u64> {
    system_of(body).unwrap_or(SwitchSystem::Sonic).mtus()
}

/// The system that a body names, if there is one.
pub fn system_of(body: &Value) -> Option<SwitchSystem> {
    SwitchSystem::deserialize(body.get("system")?).ok()
}

/// What every wish of a switch is judged by: both configurations.
pub fn build_switch_reads(wish: &DesiredResource) -> Vec<Read> {
    let system = extract_switch_system(wish);
    [SwitchRead::Running, SwitchRead::Saved]
        .map(|of| Read::Switch { system, of })
        .to_vec()
}

/// Checks what all bodies have: the system and the port. Names of ports: `Ethernet0`,
/// `Ethernet1/1`, `swp1s0`.
pub fn check_common_fields<'a>(body: &'a Value, own: &[&str]) -> Fields<'a> {
    let known: Vec<&str> = ["system", "port"]
        .into_iter()
        .chain(own.iter().copied())
        .collect();
    let mut fields = Fields::of(body, &known);
    if let Some(system) = fields
        .text("system", true)
        .filter(|_| system_of(body).is_none())
    {
        fields.error(
            "/system",
            format!("switches with `{system}` cannot be reached"),
            Some(format!("there are: {}", SwitchSystem::NAMES)),
        );
    }
    if let Some(port) = fields.text("port", true) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "./_-".contains(c);
        if port.len() > 64 || !port.chars().all(plain) || port.starts_with('-') {
            fields.error(
                "/port",
                format!(
                    "`{}` cannot be the name of a port",
                    railwright_base::text::one_line(port, 40)
                ),
                None,
            );
        }
    }
    fields
}
