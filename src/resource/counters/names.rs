//! What vendors call their counters: data, each table with its source. `{p}` stands for a priority,
//! a queue or a priority group, 0 to 7.

use serde::Serialize;

/// What a counter counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Meter {
    /// Pause frames received: the other end asked this one to pause.
    PauseReceived,
    /// Pause frames sent: this end asked the other to pause.
    PauseSent,
    /// Packets that were dropped for want of a buffer.
    Lost,
    /// Packets that were marked (ECN), by the switch or as they came to a NIC.
    Marked,
    /// Congestion notifications that a NIC sent.
    CnpSent,
    /// Congestion notifications that a NIC heeded.
    CnpHandled,
    /// Pauses without end that a watchdog cut off.
    Storms,
    /// Packets dropped on receipt, for want of a buffer or by a rule or for want of a receiver: the
    /// counter does not show which.
    Discarded,
}

/// What counts as one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterKey {
    /// What.
    pub meter: Meter,
    /// Of which priority; nothing where it is of the whole port.
    pub priority: Option<u8>,
}

impl CounterKey {
    /// Of one priority.
    pub fn of(meter: Meter, priority: u8) -> Self {
        CounterKey {
            meter,
            priority: Some(priority),
        }
    }

    /// Of the whole port.
    pub fn whole(meter: Meter) -> Self {
        CounterKey {
            meter,
            priority: None,
        }
    }
}

/// Where a counter goes round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// After 2^32.
    Bits32,
    /// After 2^64, which none does in the life of a machine.
    Bits64,
}

/// A counter of a vendor.
#[derive(Debug, Clone, Copy)]
pub struct VendorCounter {
    /// Its name.
    pub name: &'static str,
    /// What it counts.
    pub meter: Meter,
    /// Where it goes round.
    pub width: Width,
}

/// One that goes round after 2^64.
pub(crate) const fn new_64_bit_counter(name: &'static str, meter: Meter) -> VendorCounter {
    VendorCounter {
        name,
        meter,
        width: Width::Bits64,
    }
}

const fn new_32_bit_counter(name: &'static str, meter: Meter) -> VendorCounter {
    VendorCounter {
        name,
        meter,
        width: Width::Bits32,
    }
}

/// Files of `hw_counters` of mlx5 (torvalds/linux: drivers/infiniband/hw/mlx5/counters.c). Those of
/// a queue counter are read as 32 bits, those of congestion as 64 (there,
/// `mlx5_ib_query_q_counters` and `mlx5_ib_get_hw_stats`).
pub const HW_COUNTERS: &[VendorCounter] = &[
    new_32_bit_counter("out_of_buffer", Meter::Lost),
    new_64_bit_counter("np_ecn_marked_roce_packets", Meter::Marked),
    new_64_bit_counter("np_cnp_sent", Meter::CnpSent),
    new_64_bit_counter("rp_cnp_handled", Meter::CnpHandled),
];

/// Of `ethtool -S`.
const ETHTOOL: &[VendorCounter] = &[
    // mlx5 (torvalds/linux:
    // Documentation/networking/device_drivers/ethernet/mellanox/mlx5/counters.rst)
    new_64_bit_counter("rx_prio{p}_pause", Meter::PauseReceived),
    new_64_bit_counter("tx_prio{p}_pause", Meter::PauseSent),
    new_64_bit_counter("rx_prio{p}_buf_discard", Meter::Lost),
    new_64_bit_counter("rx_prio{p}_cong_discard", Meter::Lost),
    new_64_bit_counter("rx_discards_phy", Meter::Lost),
    new_64_bit_counter("tx_pause_storm_warning_events", Meter::Storms),
    new_64_bit_counter("tx_pause_storm_error_events", Meter::Storms),
    // bnxt_en (torvalds/linux: drivers/net/ethernet/broadcom/bnxt/bnxt_ethtool.c)
    new_64_bit_counter("rx_pfc_ena_frames_pri{p}", Meter::PauseReceived),
    new_64_bit_counter("tx_pfc_ena_frames_pri{p}", Meter::PauseSent),
    // ice (torvalds/linux: drivers/net/ethernet/intel/ice/ice_ethtool.c)
    new_64_bit_counter("rx_priority_{p}_xoff.nic", Meter::PauseReceived),
    new_64_bit_counter("tx_priority_{p}_xoff.nic", Meter::PauseSent),
];

/// What a watchdog says of a queue that it holds down: SONiC (sonic-net/sonic-swss:
/// orchagent/pfcactionhandler.cpp), Cumulus Linux (CumulusNetworks/docs:
/// content/nvue-reference/Show-Commands/QoS.md).
pub const STORMED: &[(&str, &str)] = &[("PFC_WD_STATUS", "stormed"), ("status", "DEADLOCK")];

/// What a host counts.
pub fn of_host() -> Vec<VendorCounter> {
    [ETHTOOL, HW_COUNTERS].concat()
}

/// What counters of this name count, of whatever priority.
pub fn find_meter_by_name(rows: &[VendorCounter], name: &str) -> Option<Meter> {
    rows.iter()
        .find(|row| row.name.trim_end_matches("/{p}") == name)
        .map(|row| row.meter)
}

/// What a counter of this name counts.
pub fn find_counter_meaning(rows: &[VendorCounter], name: &str) -> Option<(CounterKey, Width)> {
    rows.iter().find_map(|row| {
        let priority = match row.name.split_once("{p}") {
            None => (row.name == name).then_some(None),
            Some((before, after)) => {
                let digit = name.strip_prefix(before)?.strip_suffix(after)?;
                Some(Some(
                    digit
                        .parse::<u8>()
                        .ok()
                        .filter(|priority| *priority < 8 && digit.len() == 1)?,
                ))
            }
        }?;
        Some((
            CounterKey {
                meter: row.meter,
                priority,
            },
            row.width,
        ))
    })
}
