//! The fabric: its MTU and the numbers of the lossless class.

use super::{SpecChecker, new_spec_error};
use crate::spec::model::{Cnp, Fabric, FabricKind, Lossless};
use railwright_resource::link_qos::settings::CABLE_LENGTH_MAX_M;

/// The smallest MTU of IPv4 (RFC 791) and the largest of current Ethernet NICs (mlx5: 9978).
const MTU_BYTES: std::ops::RangeInclusive<u32> = 68..=9978;

/// The `fabric` section.
pub fn check_fabric(checker: &mut SpecChecker<'_>, fabric: &Fabric) {
    if let Some(mtu) = fabric.mtu.filter(|mtu| !MTU_BYTES.contains(mtu)) {
        let effect = "NICs refuse it, or accept it and drop what the switch sends";
        let finding = new_spec_error(
            "RW0112",
            format!("an MTU of {mtu} bytes is out of range"),
            effect,
            "write a number from 68 to 9978; 9000 is common",
        );
        checker.find("fabric.mtu", "68 to 9978 is possible", finding);
    }
    if let Some(lossless) = &fabric.lossless {
        if checker.complete && fabric.kind != FabricKind::Rocev2 {
            let effect = "priority flow control belongs to RoCE; on any other fabric it only \
                          pauses ordinary traffic";
            let finding = new_spec_error(
                "RW0113",
                "a lossless class needs `kind: rocev2`",
                effect,
                "remove `lossless`, or set `fabric.kind: rocev2`",
            );
            checker.find("fabric.lossless", "this fabric is not RoCEv2", finding);
        }
        check_lossless(checker, lossless);
    }
}

fn check_lossless(checker: &mut SpecChecker<'_>, lossless: &Lossless) {
    check_priority(checker, "fabric.lossless.priority", lossless.priority);
    check_dscp(checker, "fabric.lossless.dscp", lossless.dscp);
    if let Some(percent) = lossless
        .bandwidth_percent
        .filter(|percent| !(1..=99).contains(percent))
    {
        let effect = "a class with no share starves; one with all of it starves SSH and storage";
        let finding = new_spec_error(
            "RW0113",
            format!("a share of {percent} % is out of range"),
            effect,
            "write a number from 1 to 99; 50 is common",
        );
        checker.find(
            "fabric.lossless.bandwidth_percent",
            "1 to 99 is possible",
            finding,
        );
    }
    if let Some(metres) = lossless
        .cable_length_m
        .filter(|metres| !(1..=CABLE_LENGTH_MAX_M).contains(&u64::from(*metres)))
    {
        let effect = "the NIC keeps the length that it assumes, and a longer cable loses packets \
                      of the lossless class while it is paused";
        let finding = new_spec_error(
            "RW0113",
            format!("{metres} m is no cable that a NIC takes"),
            effect,
            "write metres, 1 to 999",
        );
        checker.find(
            "fabric.lossless.cable_length_m",
            "1 to 999 is possible",
            finding,
        );
    }
    if let Some(cnp) = &lossless.cnp {
        check_cnp(checker, lossless, cnp);
    }
}

/// Congestion notifications have a class of their own, apart from the data's.
fn check_cnp(checker: &mut SpecChecker<'_>, lossless: &Lossless, cnp: &Cnp) {
    check_priority(checker, "fabric.lossless.cnp.priority", cnp.priority);
    check_dscp(checker, "fabric.lossless.cnp.dscp", cnp.dscp);
    if cnp.priority == lossless.priority {
        let effect = "congestion notifications would be paused together with the data that they \
                      are to slow down";
        let finding = new_spec_error(
            "RW0113",
            format!("data and CNPs share priority {}", cnp.priority),
            effect,
            "give CNPs their own priority, 6 by convention",
        );
        checker.find(
            "fabric.lossless.cnp.priority",
            "the data's priority too",
            finding,
        );
    }
    if cnp.dscp == lossless.dscp {
        let effect = "switches tell the two apart by DSCP only, so CNPs would queue behind data";
        let finding = new_spec_error(
            "RW0113",
            format!("data and CNPs share DSCP {}", cnp.dscp),
            effect,
            "give CNPs their own DSCP, 48 by convention",
        );
        checker.find("fabric.lossless.cnp.dscp", "the data's DSCP too", finding);
    }
}

fn check_priority(checker: &mut SpecChecker<'_>, path: &str, value: u8) {
    if value > 7 {
        let effect = "Ethernet has the priorities 0 to 7 (IEEE 802.1Q)";
        let finding = new_spec_error(
            "RW0113",
            format!("there is no priority {value}"),
            effect,
            "write a number from 0 to 7; data 3 and CNPs 6 by convention",
        );
        checker.find(path, "0 to 7 is possible", finding);
    }
}

fn check_dscp(checker: &mut SpecChecker<'_>, path: &str, value: u8) {
    if value > 63 {
        let effect = "the field has six bits (RFC 2474)";
        let fix = "write a number from 0 to 63; data 26 and CNPs 48 by convention. A ToS byte is \
                   four times the DSCP";
        checker.find(
            path,
            "0 to 63 is possible",
            new_spec_error("RW0113", format!("there is no DSCP {value}"), effect, fix),
        );
    }
}
