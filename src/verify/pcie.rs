//! The PCIe link below a NIC: as wide and fast as the NIC can, and enough for its port.

use super::hardware::{PciFunction, PcieLink};
use super::result::CheckOutcome;

/// Gb/s that a link carries without its encoding: 8 of 10 bits up to 5 GT/s, 128 of 130 up to 32
/// GT/s, all of them above (torvalds/linux: drivers/pci/pci.h, `PCIE_SPEED2MBS_ENC`).
fn capacity_gbps(link: PcieLink) -> Option<f64> {
    let (speed, width) = (link.speed_gts?, f64::from(link.width?));
    let share = if speed <= 5.0 {
        0.8
    } else if speed <= 32.0 {
        128.0 / 130.0
    } else {
        1.0
    };
    Some(speed * width * share)
}

/// Checks the NIC of a rail; `rate_gbps` is what its port runs at, where that says something.
pub fn evaluate_nic(nic: &PciFunction, rate_gbps: Option<f64>) -> CheckOutcome {
    let (Some(capacity), Some(speed), Some(width)) =
        (capacity_gbps(nic.current), nic.max.speed_gts, nic.max.width)
    else {
        return CheckOutcome::not_applicable(
            "the kernel does not know the link: no PCIe device, or a virtual function",
        );
    };
    let measured = format!("{} at {}", nic.address, format_pcie_link(nic.current));
    let expected = format_pcie_link(nic.max);
    if let Some(rate) = rate_gbps.filter(|rate| *rate > capacity) {
        // A card on two slots (Socket Direct) has a function on each, and its port says its whole
        // rate on both.
        return CheckOutcome::warning(
            "RW0817",
            format!("{measured} carries {capacity:.0} Gb/s, the port {rate:.0}"),
        )
        .expected(expected)
        .effect(
            "unless the card has a second slot, this one and not the fabric is the limit of the \
             rail: every collective runs at its speed",
        )
        .next(
            "look at slot, riser and BIOS setting of this NIC, then railwright verify {inventory}",
        );
    }
    let less = nic.current.speed_gts.is_some_and(|now| now < speed)
        || nic.current.width.is_some_and(|now| now < width);
    if less {
        return CheckOutcome::warning("RW0817", measured)
            .expected(expected)
            .effect(
                "the link did not train to what the NIC can: a smaller slot, or a bad seat; it \
                 still carries the port's rate",
            )
            .next(
                "look at slot, riser and BIOS setting of this NIC, then railwright verify \
                 {inventory}",
            );
    }
    CheckOutcome::passed(measured).expected(expected)
}

/// `16 GT/s x16`.
fn format_pcie_link(link: PcieLink) -> String {
    let speed = match link.speed_gts {
        Some(speed) => format!("{speed} GT/s"),
        None => "an unknown speed".to_owned(),
    };
    match link.width {
        Some(width) => format!("{speed} x{width}"),
        None => format!("{speed} x?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;

    fn nic(speed: f64, width: u32) -> PciFunction {
        PciFunction {
            address: "0000:1a:00.0".into(),
            current: PcieLink {
                speed_gts: Some(speed),
                width: Some(width),
            },
            max: PcieLink {
                speed_gts: Some(16.0),
                width: Some(16),
            },
            ..PciFunction::default()
        }
    }

    #[test]
    fn a_link_that_cannot_carry_the_port_or_is_smaller_than_it_could_be_is_told() {
        assert_eq!(
            evaluate_nic(&nic(16.0, 16), Some(200.0)).verdict,
            CheckVerdict::Passed
        );
        let narrow = evaluate_nic(&nic(16.0, 8), Some(200.0));
        assert_eq!(
            (narrow.verdict, narrow.code),
            (CheckVerdict::Warning, Some("RW0817"))
        );
        assert_eq!(
            narrow.measured,
            "0000:1a:00.0 at 16 GT/s x8 carries 126 Gb/s, the port 200"
        );
        assert_eq!(
            evaluate_nic(&nic(8.0, 16), Some(100.0)).verdict,
            CheckVerdict::Warning
        );
        assert_eq!(
            evaluate_nic(&nic(5.0, 8), None).measured,
            "0000:1a:00.0 at 5 GT/s x8"
        );
    }

    #[test]
    fn what_the_kernel_does_not_know_does_not_apply() {
        assert_eq!(
            evaluate_nic(&PciFunction::default(), Some(200.0)).verdict,
            CheckVerdict::NotApplicable
        );
    }
}
