//! What the bodies of desired resources of switches have in common, and the classes of a port.

use super::{PfcWatchdogSettings, SwitchRead, SwitchSystem};
use crate::body::BodyErrors;
use crate::{DesiredResource, Read};
use serde::Deserialize;
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
}

/// The port that a desired resource is about.
pub fn extract_port_name(resource: &DesiredResource) -> &str {
    resource.text("port").unwrap_or_default()
}

/// The field of every body that says what the switch has.
#[derive(Default, Deserialize)]
struct SwitchSystemField {
    system: SwitchSystem,
}

/// The system of the switch; a body that was checked names one that there is.
pub fn extract_switch_system(resource: &DesiredResource) -> SwitchSystem {
    let field = SwitchSystemField::deserialize(&resource.body);
    field.unwrap_or_default().system
}

/// What every desired resource of a switch is compared with: both configurations.
pub fn build_switch_reads(system: SwitchSystem) -> Vec<Read> {
    [SwitchRead::Running, SwitchRead::Saved]
        .map(|of| Read::Switch { system, of })
        .to_vec()
}

/// Checks a port. Names of ports: `Ethernet0`, `Ethernet1/1`, `swp1s0`.
pub fn check_port_name(errors: &mut BodyErrors, port: &str) {
    let shown = railwright_base::text::one_line(port, 40);
    let message = format!("`{shown}` cannot be the name of a port");
    errors.require(is_port_name(port), "/port", &message, "");
}

fn is_port_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('-')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c))
}
