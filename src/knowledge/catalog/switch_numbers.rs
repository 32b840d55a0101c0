//! The numbers of a switch: what the spec states, else what is chosen from the entries of its model
//! and its system, with what the vendor has beside it. Vendors' thresholds of ECN differ by a
//! factor of ten, so none is shown as the truth.

use super::headroom::{Chip, HeadroomPort, compute_headroom};
use super::load::Catalog;
use super::switch::{BufferModel, CatalogEcnThresholds, SwitchModelEntry, SwitchSystemEntry};
use crate::spec::model::{Cnp, Fabric, SwitchGroup, WatchdogTimes};
use schemars::JsonSchema;
use serde::Serialize;

/// The numbers of a switch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct SwitchNumbers {
    /// From where on packets are marked; not there where they are not, or where neither thresholds
    /// nor speed are stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnNumbers>,
    /// The watchdog; not there where there is none, or where the system is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<WatchdogTimes>,
    /// The buffer of one lossless priority of one port, as SONiC has it; not there where model,
    /// speed or cable are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<HeadroomNumbers>,
    /// The class of congestion notifications: the fabric's, else that of convention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp: Option<Cnp>,
}

/// From where on packets are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EcnNumbers {
    /// Below so many bytes in the queue nothing is marked.
    pub min_bytes: u64,
    /// From so many bytes on everything is marked.
    pub max_bytes: u64,
    /// The share of packets that is marked just below, in percent.
    pub probability_percent: u8,
    /// True where the spec states the thresholds.
    pub stated: bool,
    /// What would be chosen for the speed of the ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<CatalogEcnThresholds>,
    /// What the vendor's templates have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vendor: Option<CatalogEcnThresholds>,
}

/// The buffer of one lossless priority of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeadroomNumbers {
    /// For what comes after a pause was asked for, in bytes; of several SKUs of a model the
    /// largest. Not there where the table of the model has no row for speed and cable: SONiC then
    /// makes no lossless buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xoff_bytes: Option<u64>,
    /// Of all ports and lossless priorities together, in bytes, where the formula says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_bytes: Option<u64>,
    /// True where it is of a table of the model, not of the formula.
    pub table: bool,
}

/// The entry of a switch's system, where the spec names it.
pub fn system_of<'a>(switch: &SwitchGroup, catalog: &'a Catalog) -> Option<&'a SwitchSystemEntry> {
    catalog.switch_system.get(switch.os?.word())
}

/// The entry of its model.
pub fn model_of<'a>(switch: &SwitchGroup, catalog: &'a Catalog) -> Option<&'a SwitchModelEntry> {
    catalog.switch.get(switch.model.as_deref()?)
}

/// The numbers of a switch in this fabric.
pub fn switch_numbers(switch: &SwitchGroup, fabric: &Fabric, catalog: &Catalog) -> SwitchNumbers {
    let (system, model) = (system_of(switch, catalog), model_of(switch, catalog));
    let stated = fabric
        .lossless
        .as_ref()
        .and_then(|lossless| lossless.cnp.as_ref());
    SwitchNumbers {
        ecn: compute_ecn_numbers(switch, system, model),
        watchdog: select_watchdog_times(switch, system),
        headroom: system
            .zip(model)
            .and_then(|(system, model)| compute_lossless_buffer(switch, system, model)),
        cnp: stated.copied().or(system.map(|system| system.cnp)),
    }
}

fn compute_ecn_numbers(
    switch: &SwitchGroup,
    system: Option<&SwitchSystemEntry>,
    model: Option<&SwitchModelEntry>,
) -> Option<EcnNumbers> {
    let ecn = switch.ecn.as_ref().filter(|ecn| ecn.is_on())?;
    let in_spec = ecn.thresholds().cloned().unwrap_or_default();
    let choice = match (system, switch.port_speed_gbps) {
        (Some(system), Some(speed)) => {
            Some(compute_ecn_thresholds(system, speed, in_spec.round_trip_us))
        }
        _ => None,
    };
    let vendor = find_vendor_thresholds(switch.port_speed_gbps, system, model);
    let share = match in_spec.probability_percent {
        Some(share) => share,
        None => system?.choice.probability_percent,
    };
    let (min_bytes, max_bytes, stated) = match (in_spec.min_bytes, in_spec.max_bytes, choice) {
        (Some(min), Some(max), _) => (min, max, true),
        (_, _, Some(choice)) => (choice.min_bytes, choice.max_bytes, false),
        _ => return None,
    };
    Some(EcnNumbers {
        min_bytes,
        max_bytes,
        probability_percent: share,
        stated,
        choice,
        vendor,
    })
}

/// Shares of what is on its way on one port: its speed times the round trip.
fn compute_ecn_thresholds(
    system: &SwitchSystemEntry,
    speed_gbps: u32,
    round_trip_us: Option<u16>,
) -> CatalogEcnThresholds {
    let choice = system.choice;
    // 1 Gb/s is 125 bytes in a microsecond
    let on_the_way =
        u64::from(speed_gbps) * 125 * u64::from(round_trip_us.unwrap_or(choice.round_trip_us));
    CatalogEcnThresholds {
        min_bytes: on_the_way * u64::from(choice.min_percent) / 100,
        max_bytes: on_the_way * u64::from(choice.max_percent) / 100,
        probability_percent: choice.probability_percent,
    }
}

/// Those of the model for this speed, of the model for any speed, of the system.
fn find_vendor_thresholds(
    speed_gbps: Option<u32>,
    system: Option<&SwitchSystemEntry>,
    model: Option<&SwitchModelEntry>,
) -> Option<CatalogEcnThresholds> {
    let system = system?;
    if let Some(model) = model
        && system.model_numbers
    {
        let mut rows = model.ecn.iter();
        let of_speed = rows.find(|ecn| ecn.speed_gbps.is_some() && ecn.speed_gbps == speed_gbps);
        let of_any = model.ecn.iter().find(|ecn| ecn.speed_gbps.is_none());
        if let Some(ecn) = of_speed.or(of_any) {
            return Some(ecn.thresholds);
        }
    }
    system.ecn
}

fn select_watchdog_times(
    switch: &SwitchGroup,
    system: Option<&SwitchSystemEntry>,
) -> Option<WatchdogTimes> {
    let watchdog = switch
        .watchdog
        .as_ref()
        .filter(|watchdog| watchdog.is_on())?;
    let in_spec = watchdog.times().copied().unwrap_or_default();
    let default = system?.watchdog;
    Some(WatchdogTimes {
        detection_ms: in_spec.detection_ms.or(default.detection_ms),
        restoration_ms: in_spec.restoration_ms.or(default.restoration_ms),
        polling_ms: in_spec.polling_ms.or(default.polling_ms),
        action: in_spec.action.or(default.action),
    })
}

/// The largest buffer that the model's table has for this speed and cable; nothing where the model
/// has no table.
fn find_buffer_in_table(
    model: &SwitchModelEntry,
    speed_gbps: u32,
    cable_m: u32,
) -> Option<HeadroomNumbers> {
    if model.headroom.is_empty() {
        return None;
    }
    let mut xoff_bytes = None;
    for row in &model.headroom {
        if row.speed_gbps == speed_gbps && row.cable_m == cable_m {
            xoff_bytes = xoff_bytes.max(Some(row.xoff_bytes));
        }
    }
    Some(HeadroomNumbers {
        xoff_bytes,
        total_bytes: None,
        table: true,
    })
}

/// As the system of the models' numbers comes to it: by the table of the model, or by the formula.
fn compute_lossless_buffer(
    switch: &SwitchGroup,
    system: &SwitchSystemEntry,
    model: &SwitchModelEntry,
) -> Option<HeadroomNumbers> {
    if !system.model_numbers {
        return None;
    }
    let (speed_gbps, cable_m) = (switch.port_speed_gbps?, u32::from(switch.cable_length_m?));
    if model.buffer_model? == BufferModel::Traditional {
        return find_buffer_in_table(model, speed_gbps, cable_m);
    }
    let (more_kib, tiles) = (model.more_kib.unwrap_or_default(), model.tiles);
    let chip = Chip {
        cell_bytes: model.cell_bytes?,
        pipeline_kib: model.pipeline_kib?,
        tiles,
        more_kib,
    };
    let fastest = model.speeds_gbps.iter().copied().max();
    let eight_lanes = model.lanes == Some(8) && fastest == Some(speed_gbps);
    let port = HeadroomPort {
        speed_gbps,
        cable_m,
        mtu: switch.mtu.or(system.mtu_default)?,
        eight_lanes,
    };
    let one = compute_headroom(chip, port, system.pattern?);
    // What all ports and lossless priorities need together.
    let mut total_bytes = None;
    if let (Some(ports), Some(fastest), Some(pfc)) = (model.ports, fastest, &switch.pfc) {
        let ports = u64::from(ports) * u64::from(fastest / speed_gbps.max(1));
        let of_priority = one.size_bytes.saturating_mul(ports);
        total_bytes = Some(of_priority.saturating_mul(pfc.len() as u64));
    }
    Some(HeadroomNumbers {
        xoff_bytes: Some(one.xoff_bytes),
        total_bytes,
        table: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::load_catalog;

    fn numbers(keys: &str) -> SwitchNumbers {
        let text = format!("cluster: c\nswitches: [{{ name: s1, {keys} }}]\n");
        let loaded = crate::spec::load_spec(vec![crate::spec::SourceFile {
            name: "c.yaml".into(),
            text,
        }])
        .unwrap();
        let catalog = load_catalog("", [])
            .map_err(|problems| problems.diagnostics)
            .unwrap();
        switch_numbers(&loaded.spec.switches[0], &loaded.spec.fabric, &catalog)
    }

    #[test]
    fn thresholds_are_chosen_by_speed_and_stated_ones_stay() {
        let of = |keys: &str| {
            numbers(keys).ecn.map(|ecn| {
                (
                    ecn.min_bytes,
                    ecn.max_bytes,
                    ecn.probability_percent,
                    ecn.stated,
                )
            })
        };
        for (keys, expected) in [
            (
                "os: sonic, port_speed_gbps: 400, ecn: true",
                Some((500_000, 2_000_000, 20, false)),
            ),
            (
                "os: sonic, port_speed_gbps: 100, ecn: \
                 { round_trip_us: 8, probability_percent: 10 }",
                Some((50_000, 200_000, 10, false)),
            ),
            (
                "os: eos, ecn: { min_bytes: 7, max_bytes: 9 }",
                Some((7, 9, 20, true)),
            ),
            ("os: eos, ecn: true", None),
            ("port_speed_gbps: 400, ecn: true", None),
            ("os: sonic, port_speed_gbps: 400, ecn: false", None),
            ("os: sonic, port_speed_gbps: 400", None),
        ] {
            assert_eq!(of(keys), expected, "{keys}");
        }
        let vendor = |keys: &str| {
            numbers(keys)
                .ecn
                .and_then(|ecn| ecn.vendor)
                .map(|vendor| vendor.max_bytes)
        };
        assert_eq!(
            vendor("os: sonic, port_speed_gbps: 400, ecn: true"),
            Some(2_097_152)
        );
        assert_eq!(
            vendor("os: sonic, model: SN5600, port_speed_gbps: 400, ecn: true"),
            Some(10_000_000)
        );
        assert_eq!(
            vendor("os: sonic, model: 7060X6-64PE, port_speed_gbps: 400, ecn: true"),
            Some(262_144)
        );
        assert_eq!(
            vendor("os: cumulus, model: SN5600, port_speed_gbps: 400, ecn: true"),
            Some(1_500_000)
        );
    }

    #[test]
    fn what_a_watchdog_leaves_out_is_its_systems() {
        let watchdog = numbers("os: sonic, watchdog: { detection_ms: 400 }")
            .watchdog
            .unwrap();
        assert_eq!(
            (
                watchdog.detection_ms,
                watchdog.restoration_ms,
                watchdog.polling_ms
            ),
            (Some(400), Some(200), Some(200))
        );
        assert_eq!(
            watchdog.action,
            Some(crate::spec::model::WatchdogAction::Drop)
        );
        assert_eq!(
            numbers("os: cumulus, watchdog: true")
                .watchdog
                .unwrap()
                .restoration_ms,
            None
        );
        assert_eq!(numbers("os: sonic, watchdog: false").watchdog, None);
        assert_eq!(
            numbers("os: sonic").cnp,
            Some(Cnp {
                priority: 6,
                dscp: 48
            })
        );
    }

    #[test]
    fn buffers_are_of_the_formula_or_of_the_table() {
        let of = |keys: &str| {
            numbers(&format!("os: sonic, mtu: 9216, {keys}"))
                .headroom
                .map(|room| (room.xoff_bytes, room.total_bytes))
        };
        for (keys, expected) in [
            (
                "model: SN5600, port_speed_gbps: 800, cable_length_m: 40, pfc: [3, 4]",
                Some((Some(362_496), Some(410_624 * 128))),
            ),
            (
                "model: SN5600, port_speed_gbps: 400, cable_length_m: 300",
                Some((Some(677_888), None)),
            ),
            (
                "model: 7060X6-64PE, port_speed_gbps: 400, cable_length_m: 5",
                Some((Some(612_140), None)),
            ),
            (
                "model: 7060X6-64PE, port_speed_gbps: 400, cable_length_m: 40",
                Some((None, None)),
            ),
            (
                "model: IXR7220-H5-64D, port_speed_gbps: 400, cable_length_m: 40",
                None,
            ),
            ("model: SN5600, port_speed_gbps: 400", None),
            ("port_speed_gbps: 400, cable_length_m: 40", None),
        ] {
            assert_eq!(of(keys), expected, "{keys}");
        }
        assert_eq!(
            numbers(
                "os: cumulus, model: SN5600, mtu: 9216, port_speed_gbps: 400, cable_length_m: 40"
            )
            .headroom,
            None
        );
    }
}
