//! What a rule can look at of a switch: its entry of the spec, the entries of its model and its
//! system, the numbers that come of them, and where it differs from the entries before it.

use crate::catalog::switch::{SwitchModelEntry, SwitchSystemEntry};
use crate::catalog::{Catalog, SwitchNumbers, model_of, switch_numbers, system_of};
use crate::spec::model::{Dscp, Ecn, PfcWatchdogSpec, Spec, SwitchGroup, Trust};
use schemars::JsonSchema;
use serde::Serialize;

/// An entry of `switches`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SwitchFacts {
    /// As the spec has it.
    #[serde(flatten)]
    pub switch: SwitchGroup,
    /// The entry of its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<SwitchModelEntry>,
    /// The entry of its system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<SwitchSystemEntry>,
    /// Its numbers: the spec's, else those that are chosen.
    pub numbers: SwitchNumbers,
    /// Whether it marks packets, where the spec says so or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<bool>,
    /// Whether it has a watchdog, where the spec says so or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched: Option<bool>,
    /// The priority that its map in the spec gives to the fabric's lossless DSCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_priority: Option<u8>,
    /// The one that the map of its system gives to it, where the spec's names it not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_priority_unsaid: Option<u8>,
    /// The priority that its map in the spec gives to the fabric's DSCP of congestion
    /// notifications.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_priority: Option<u8>,
    /// The one that the map of its system gives to it, where the spec's names it not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_priority_unsaid: Option<u8>,
    /// The priority that its map in the spec gives to unmarked packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmarked_priority: Option<u8>,
    /// The entries before it that it does not go with, by what they differ in.
    pub unlike: UnlikeFacts,
}

/// The first entry before it that differs; nothing where none does, or one of the two says nothing.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct UnlikeFacts {
    /// In the MTU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<String>,
    /// In the priority of a DSCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<String>,
    /// In stated thresholds of ECN, for ports of the same speed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<String>,
    /// In speed, with the same stated thresholds of ECN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// Any other entry that has PFC on, where this one says nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc_unsaid: Option<String>,
}

/// All entries of `switches`, in the order of the spec.
pub fn switch_facts(spec: &Spec, catalog: &Catalog) -> Vec<SwitchFacts> {
    let indices = 0..spec.switches.len();
    indices
        .map(|index| build_switch_facts(spec, catalog, index))
        .collect()
}

fn build_switch_facts(spec: &Spec, catalog: &Catalog, index: usize) -> SwitchFacts {
    let switch = &spec.switches[index];
    let (system, entry) = (system_of(switch, catalog), model_of(switch, catalog));
    let (mut data, mut cnp) = (None, None);
    // who tells priorities by the VLAN tag has no use for a map of DSCPs
    if let Some(lossless) = &spec.fabric.lossless
        && lossless.trust != Some(Trust::Pcp)
    {
        data = Some(lossless.dscp);
        cnp = lossless.cnp.as_ref().map(|cnp| cnp.dscp);
    }
    SwitchFacts {
        numbers: switch_numbers(switch, &spec.fabric, catalog),
        marks: switch.ecn.as_ref().map(Ecn::is_on),
        watched: switch.watchdog.as_ref().map(PfcWatchdogSpec::is_on),
        data_priority: find_stated_priority(switch, data),
        data_priority_unsaid: find_system_priority(switch, system, data),
        cnp_priority: find_stated_priority(switch, cnp),
        cnp_priority_unsaid: find_system_priority(switch, system, cnp),
        unmarked_priority: find_stated_priority(switch, Some(0)),
        unlike: compare_with_earlier_switches(&spec.switches, index),
        entry: entry.cloned(),
        system: system.cloned(),
        switch: switch.clone(),
    }
}

/// The priority that the spec's map gives to a DSCP.
fn find_stated_priority(switch: &SwitchGroup, dscp: Option<u8>) -> Option<u8> {
    switch.dscp.as_ref()?.get(&Dscp(dscp?)).copied()
}

/// The priority that the system's map gives to a DSCP that the spec's does not name.
fn find_system_priority(
    switch: &SwitchGroup,
    system: Option<&SwitchSystemEntry>,
    dscp: Option<u8>,
) -> Option<u8> {
    match find_stated_priority(switch, dscp) {
        Some(_) => None,
        None => system?.priority_of(dscp?),
    }
}

fn compare_with_earlier_switches(switches: &[SwitchGroup], index: usize) -> UnlikeFacts {
    let this = &switches[index];
    let mut unlike = UnlikeFacts::default();
    for other in &switches[..index] {
        if are_equal(this.mtu, other.mtu) == Some(false) {
            note_first(&mut unlike.mtu, other);
        }
        if maps_differ(this, other) {
            note_first(&mut unlike.dscp, other);
        }
        let thresholds = are_equal(find_ecn_thresholds(this), find_ecn_thresholds(other));
        let speeds = are_equal(this.port_speed_gbps, other.port_speed_gbps);
        match (speeds, thresholds) {
            (Some(true), Some(false)) => note_first(&mut unlike.thresholds, other),
            (Some(false), Some(true)) => note_first(&mut unlike.speed, other),
            _ => {}
        }
    }
    if this.pfc.is_none() {
        for other in switches {
            if other.pfc.as_ref().is_some_and(|pfc| !pfc.is_empty()) {
                note_first(&mut unlike.pfc_unsaid, other);
            }
        }
    }
    unlike
}

/// Whether both are the same; nothing where one of them says nothing.
fn are_equal<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<bool> {
    Some(one? == other?)
}

fn note_first(name: &mut Option<String>, switch: &SwitchGroup) {
    name.get_or_insert_with(|| switch.name.clone());
}

/// A DSCP that both maps name, with another priority.
fn maps_differ(one: &SwitchGroup, other: &SwitchGroup) -> bool {
    let (Some(one), Some(other)) = (&one.dscp, &other.dscp) else {
        return false;
    };
    for (dscp, priority) in one {
        if let Some(theirs) = other.get(dscp)
            && theirs != priority
        {
            return true;
        }
    }
    false
}

fn find_ecn_thresholds(switch: &SwitchGroup) -> Option<(u64, u64)> {
    let thresholds = switch.ecn.as_ref()?.thresholds()?;
    Some((thresholds.min_bytes?, thresholds.max_bytes?))
}
