//! The buffer that a lossless priority needs beyond the point where a pause is asked for: the
//! formula of SONiC's dynamic buffer model (sonic-net/sonic-swss:
//! cfgmgr/buffer_headroom_mellanox.lua; sonic-net/SONiC:
//! doc/qos/dynamically-headroom-calculation.md). What a switch of the traditional model has is a
//! table of its SKU: the formula says nothing of it.

use super::switch::PacketPattern;

/// Metres a second in a cable, as the formula has it.
const SPEED_IN_CABLE: f64 = 198_000_000.0;
/// Bytes of the smallest packet.
const SMALL_PACKET: f64 = 64.0;
/// What is in MAC and PHY, and what a peer of a speed without a standard still sends, in KiB
/// (`mac_phy_delay` and `peer_response_time` of sonic-net/sonic-buildimage:
/// platform/mellanox/asic_table.j2, the same for all chips).
const MAC_PHY_KIB: f64 = 0.8;
const PEER_KIB: f64 = 3.8;

/// What the formula has to know of a chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chip {
    /// Bytes of a cell of the packet buffer.
    pub cell_bytes: u32,
    /// What is on its way inside the chip, in KiB.
    pub pipeline_kib: u32,
    /// Whether it is of tiles, which hold packets too.
    pub tiles: bool,
    /// What is added beyond all else, in KiB.
    pub more_kib: u32,
}

/// What it has to know of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadroomPort {
    /// The speed in Gb/s.
    pub speed_gbps: u32,
    /// The length of the cable in metres.
    pub cable_m: u32,
    /// The MTU in bytes.
    pub mtu: u32,
    /// Whether it has eight lanes.
    pub eight_lanes: bool,
}

/// The buffer of one lossless priority of one port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headroom {
    /// For what comes after a pause was asked for, in bytes.
    pub xoff_bytes: u64,
    /// Below it the pause ends, in bytes.
    pub xon_bytes: u64,
    /// All of it, in bytes, where no pool of headroom is shared.
    pub size_bytes: u64,
}

/// Pause quanta of 64 bytes that a peer still sends (IEEE 802.3, 31B.3.7).
fn find_pause_quanta(speed_gbps: u32) -> Option<f64> {
    let quanta = match speed_gbps {
        1 => 2.0,
        10 => 67.0,
        25 => 80.0,
        40 => 118.0,
        50 => 147.0,
        100 => 394.0,
        200 => 453.0,
        400 | 800 => 905.0,
        _ => return None,
    };
    Some(quanta)
}

/// The buffer of a port with these packets.
pub fn compute_headroom(chip: Chip, port: HeadroomPort, packets: PacketPattern) -> Headroom {
    let speed_mbps = f64::from(port.speed_gbps) * 1000.0;
    let on_cable = 2.0 * f64::from(port.cable_m) * speed_mbps * 1e9 / SPEED_IN_CABLE / 8000.0;
    let peer = find_pause_quanta(port.speed_gbps).map_or(PEER_KIB * 1024.0, |quanta| quanta * 64.0);
    let in_tile = if chip.tiles {
        speed_mbps / 1000.0 * 120.0 / 8.0
    } else {
        0.0
    };
    let on_the_way = f64::from(port.mtu) + on_cable + MAC_PHY_KIB * 1024.0 + peer + in_tile;
    let largest = f64::from(packets.mtu_bytes);
    let xoff = whole_kib(largest + on_the_way * cells_for_a_byte(chip.cell_bytes, packets))
        .saturating_add(u64::from(chip.more_kib) * 1024);
    let lanes = if port.eight_lanes { 2 } else { 1 };
    let xon = u64::from(chip.pipeline_kib) * 1024 * lanes;
    let last_packet = if port.eight_lanes {
        u64::from(port.mtu)
    } else {
        0
    };
    Headroom {
        xoff_bytes: xoff,
        xon_bytes: xon,
        size_bytes: xoff
            .saturating_add(xon + last_packet)
            .checked_next_multiple_of(1024)
            .unwrap_or(u64::MAX),
    }
}

/// How many bytes of cells a byte on the way takes: small packets fill their cells the worst.
fn cells_for_a_byte(cell_bytes: u32, packets: PacketPattern) -> f64 {
    let (cell, small) = (f64::from(cell_bytes), f64::from(packets.small_percent));
    let worst = if cell > 2.0 * SMALL_PACKET {
        (cell / SMALL_PACKET).ceil()
    } else {
        (2.0 * cell / (1.0 + cell)).ceil()
    };
    let average = (small * SMALL_PACKET + (100.0 - small) * f64::from(packets.mtu_bytes)) / 100.0;
    let small_bytes = 100.0 * SMALL_PACKET / average;
    (100.0 - small_bytes + small_bytes * worst) / 100.0
}

/// Rounded up to whole KiB.
fn whole_kib(bytes: f64) -> u64 {
    ((bytes / 1024.0).ceil() as u64).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPECTRUM_4: Chip = Chip {
        cell_bytes: 192,
        pipeline_kib: 19,
        tiles: true,
        more_kib: 0,
    };
    const SMALL: PacketPattern = PacketPattern {
        mtu_bytes: 1024,
        small_percent: 100,
    };

    fn port(speed_gbps: u32, cable_m: u32) -> HeadroomPort {
        HeadroomPort {
            speed_gbps,
            cable_m,
            mtu: 9216,
            eight_lanes: speed_gbps == 800,
        }
    }

    /// sonic-net/sonic-buildimage:
    /// device/mellanox/x86_64-nvidia_sn5600-r0/ACS-SN5600/pg_profile_lookup.ini, and what SONiC's
    /// own script answered in Redis.
    #[test]
    fn the_formula_gives_the_table_of_the_sn5600() {
        for (speed, table) in [
            (100, [113_664, 126_976, 225_280]),
            (200, [131_072, 157_696, 355_328]),
            (400, [231_424, 283_648, 677_888]),
            (800, [257_024, 362_496, 1_150_976]),
        ] {
            let computed = [5, 40, 300]
                .map(|metres| compute_headroom(SPECTRUM_4, port(speed, metres), SMALL).xoff_bytes);
            assert_eq!(computed, table, "{speed} Gb/s");
        }
    }

    #[test]
    fn eight_lanes_and_a_later_chip_need_more() {
        let wide = compute_headroom(SPECTRUM_4, port(800, 40), SMALL);
        assert_eq!(
            (wide.xon_bytes, wide.size_bytes),
            (38 * 1024, 362_496 + 38 * 1024 + 9216)
        );
        let narrow = compute_headroom(SPECTRUM_4, port(400, 40), SMALL);
        assert_eq!(
            (narrow.xon_bytes, narrow.size_bytes),
            (19 * 1024, 283_648 + 19 * 1024)
        );
        let later = compute_headroom(
            Chip {
                more_kib: 18,
                ..SPECTRUM_4
            },
            port(400, 40),
            SMALL,
        );
        assert_eq!(later.xoff_bytes, narrow.xoff_bytes + 18 * 1024);
    }

    proptest! {
        /// A longer cable never needs less, packets that fill their cells never need more, and no
        /// number of a row panics.
        #[test]
        fn more_on_the_way_needs_no_less(
            cell_bytes: u32, pipeline_kib: u32, tiles: bool, more_kib: u32, speed_gbps: u32, cable_m in 0_u32..1_000_000, mtu: u32,
            eight_lanes: bool, mtu_bytes in 64_u32..9217, small_percent in 0_u32..101,
        ) {
            let chip = Chip { cell_bytes, pipeline_kib, tiles, more_kib };
            let of = |cable_m| compute_headroom(chip, HeadroomPort { speed_gbps, cable_m, mtu, eight_lanes }, PacketPattern { mtu_bytes, small_percent });
            let (short, long) = (of(cable_m), of(cable_m + 100));
            prop_assert!(long.xoff_bytes >= short.xoff_bytes && short.size_bytes >= short.xoff_bytes);
        }
    }
}
