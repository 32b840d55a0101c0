//! What a rule can look at of a switch: its entry of the spec, the rows of its model and its
//! system, the numbers that come of them, and where it differs from the entries before it.

use crate::catalog::switch::{SwitchRow, SwitchSystemRow};
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
    /// The row of its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<SwitchRow>,
    /// The row of its system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<SwitchSystemRow>,
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
    (0..spec.switches.len())
        .map(|index| facts_of(spec, catalog, index))
        .collect()
}

fn facts_of(spec: &Spec, catalog: &Catalog, index: usize) -> SwitchFacts {
    let switch = &spec.switches[index];
    let (system, row) = (system_of(switch, catalog), model_of(switch, catalog));
    // who tells priorities by the VLAN tag has no use for a map of DSCPs
    let lossless = spec
        .fabric
        .lossless
        .as_ref()
        .filter(|lossless| lossless.trust != Some(Trust::Pcp));
    let (data, cnp) = (
        lossless.map(|lossless| lossless.dscp),
        lossless.and_then(|lossless| Some(lossless.cnp.as_ref()?.dscp)),
    );
    let stated = |dscp: Option<u8>| switch.dscp.as_ref()?.get(&Dscp(dscp?)).copied();
    let unsaid = |dscp: Option<u8>| {
        if stated(dscp).is_some() {
            None
        } else {
            system?.priority_of(dscp?)
        }
    };
    SwitchFacts {
        numbers: switch_numbers(switch, &spec.fabric, catalog),
        marks: switch.ecn.as_ref().map(Ecn::is_on),
        watched: switch.watchdog.as_ref().map(PfcWatchdogSpec::is_on),
        data_priority: stated(data),
        data_priority_unsaid: unsaid(data),
        cnp_priority: stated(cnp),
        cnp_priority_unsaid: unsaid(cnp),
        unmarked_priority: stated(Some(0)),
        unlike: compare_with_earlier_switches(&spec.switches, index),
        row: row.cloned(),
        system: system.cloned(),
        switch: switch.clone(),
    }
}

fn compare_with_earlier_switches(switches: &[SwitchGroup], index: usize) -> UnlikeFacts {
    let (this, before) = (&switches[index], &switches[..index]);
    let first = |differs: &dyn Fn(&SwitchGroup) -> bool| {
        before
            .iter()
            .find(|other| differs(other))
            .map(|other| other.name.clone())
    };
    let both = |one: Option<u32>, other: Option<u32>| one.zip(other);
    let speeds = |other: &SwitchGroup| both(this.port_speed_gbps, other.port_speed_gbps);
    UnlikeFacts {
        mtu: first(&|other| both(this.mtu, other.mtu).is_some_and(|(one, other)| one != other)),
        dscp: first(&|other| maps_differ(this, other)),
        thresholds: first(&|other| {
            let alike = speeds(other).is_some_and(|(one, other)| one == other);
            alike
                && find_ecn_thresholds(this)
                    .zip(find_ecn_thresholds(other))
                    .is_some_and(|(one, other)| one != other)
        }),
        speed: first(&|other| {
            let differ = speeds(other).is_some_and(|(one, other)| one != other);
            differ
                && find_ecn_thresholds(this)
                    .zip(find_ecn_thresholds(other))
                    .is_some_and(|(one, other)| one == other)
        }),
        pfc_unsaid: match this.pfc {
            Some(_) => None,
            None => switches
                .iter()
                .find(|other| other.pfc.as_ref().is_some_and(|pfc| !pfc.is_empty()))
                .map(|other| other.name.clone()),
        },
    }
}

/// A DSCP that both maps name, with another priority.
fn maps_differ(one: &SwitchGroup, other: &SwitchGroup) -> bool {
    let Some((one, other)) = one.dscp.as_ref().zip(other.dscp.as_ref()) else {
        return false;
    };
    one.iter()
        .any(|(dscp, priority)| other.get(dscp).is_some_and(|there| there != priority))
}

fn find_ecn_thresholds(switch: &SwitchGroup) -> Option<(u64, u64)> {
    let thresholds = switch.ecn.as_ref()?.thresholds()?;
    thresholds.min_bytes.zip(thresholds.max_bytes)
}
