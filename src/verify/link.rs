//! Netdev and RDMA port of a rail: there, up, of the right MTU, active.

use super::rail_facts::{RailFacts, RailNetdev};
use super::request::ExpectedRail;
use super::result::CheckOutcome;

const RDMA_NEXT: &str = "railwright plan {inventory}";

/// The netdev: there, up, carrier, MTU. The RDMA path MTU follows it downwards and never upwards.
pub fn evaluate_netdev(rail: &ExpectedRail, facts: &RailFacts) -> CheckOutcome {
    let name = &rail.netdev;
    let Some(netdev) = facts.netdevs.get(name) else {
        return CheckOutcome::unknown("RW0815", format!("the host said nothing of {name}"))
            .next("railwright verify {inventory}");
    };
    let desired = match rail.mtu {
        Some(mtu) => format!("up, mtu {mtu}"),
        None => "up".to_owned(),
    };
    if let Some(words) = describe_netdev_outage(name, netdev) {
        return CheckOutcome::failed("RW0802", words)
            .effect(format!(
                "rail {} of this host carries no traffic; jobs hang or fall back to fewer rails",
                rail.rail
            ))
            .next("railwright drift {inventory}")
            .expected(desired);
    }
    if let (Some(max), Some(mtu)) = (rail.mtu_max, netdev.mtu)
        && mtu > max
    {
        return CheckOutcome::failed("RW0803", format!("{name} has mtu {mtu}"))
            .expected(format!(
                "up, mtu {max} at most, which is what the NIC takes"
            ))
            .effect("packets above what the NIC takes never leave the host, and nothing says so")
            .next("railwright plan {inventory}");
    }
    match (rail.mtu, netdev.mtu) {
        (Some(desired_mtu), Some(mtu)) if mtu != desired_mtu => {
            CheckOutcome::failed("RW0803", format!("{name} has mtu {mtu}"))
                .expected(desired)
                .effect(
                    "the ends of a path disagree about the packet length: large packets are \
                     dropped without a word, or RDMA falls to a smaller path MTU",
                )
                .next("railwright drift {inventory}")
        }
        (_, Some(mtu)) => CheckOutcome::passed(format!("{name} up, mtu {mtu}")).expected(desired),
        (_, None) => CheckOutcome::passed(format!("{name} up")).expected(desired),
    }
}

/// Why a netdev carries nothing; nothing where it is up.
fn describe_netdev_outage(name: &str, netdev: &RailNetdev) -> Option<String> {
    if !netdev.present {
        return Some(format!("{name} does not exist"));
    }
    // Virtual devices say `unknown` and work.
    if netdev.carrier == Some(true) && matches!(netdev.operstate.as_str(), "up" | "unknown") {
        return None;
    }
    let carrier = if netdev.carrier == Some(false) {
        ", no carrier (cable, transceiver or switch port)"
    } else {
        ""
    };
    Some(format!("{name} is {}{carrier}", netdev.operstate))
}

/// True while a port may still come up by itself: Soft-RoCE stays DOWN about a second after it was
/// made, and a real port trains its lanes (`2: INIT`, `3: ARMED`).
pub fn may_still_come_up(rail: &ExpectedRail, facts: &RailFacts) -> bool {
    facts
        .port_of(&rail.netdev)
        .is_some_and(|port| !port.state.contains("ACTIVE") && !port.phys_state.contains("Disabled"))
}

/// The RDMA port of the netdev.
pub fn evaluate_rdma(rail: &ExpectedRail, facts: &RailFacts) -> CheckOutcome {
    let Some(port) = facts.port_of(&rail.netdev) else {
        let others: Vec<&str> = facts.ports.iter().map(|p| p.device.as_str()).collect();
        let others = if others.is_empty() {
            "the host has no RDMA device at all".to_owned()
        } else {
            format!("RDMA devices: {}", others.join(", "))
        };
        return CheckOutcome::failed(
            "RW0804",
            format!("no RDMA device on {}; {others}", rail.netdev),
        )
        .expected("an active RDMA port")
        .effect(
            "no program on this host can use the rail for RDMA; NCCL takes TCP sockets without a \
             word",
        )
        .next(RDMA_NEXT);
    };
    let name = format!("{}/{}", port.device, port.number);
    if port.state.contains("ACTIVE") {
        return CheckOutcome::passed(format!("{name} ACTIVE, {}, {}", port.link_layer, port.rate))
            .expected("ACTIVE");
    }
    CheckOutcome::failed(
        "RW0804",
        format!(
            "{name} is {}, {}",
            state_word(&port.state),
            state_word(&port.phys_state)
        ),
    )
    .expected("ACTIVE")
    .effect("the RDMA port follows its link: no RDMA traffic on this rail until it is up")
    .next("railwright drift {inventory}")
}

/// `4: ACTIVE` -> `ACTIVE`.
fn state_word(state: &str) -> &str {
    state.split_once(": ").map_or(state, |(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;
    use crate::samples;

    fn rail(mtu: u32) -> ExpectedRail {
        ExpectedRail {
            rail: 0,
            netdev: "ens1f0np0".into(),
            port: "ens1f0np0".into(),
            address: Some("192.168.77.1/24".into()),
            mtu: Some(mtu),
            mtu_max: None,
            driver: None,
        }
    }

    #[test]
    fn a_sound_rail_passes_both() {
        let facts = RailFacts::parse(samples::RAILS);
        assert_eq!(
            evaluate_netdev(&rail(9000), &facts).verdict,
            CheckVerdict::Passed
        );
        let rdma = evaluate_rdma(&rail(9000), &facts);
        assert_eq!(
            (rdma.verdict, rdma.measured.as_str()),
            (
                CheckVerdict::Passed,
                "rocep193s0/1 ACTIVE, Ethernet, 100 Gb/sec (4X EDR)"
            )
        );
    }

    #[test]
    fn a_link_that_is_down_fails_both_and_is_not_waited_for() {
        let facts = RailFacts::parse(samples::RAILS_DOWN);
        let netdev = evaluate_netdev(&rail(9000), &facts);
        assert_eq!(
            (netdev.code, netdev.measured.as_str()),
            (Some("RW0802"), "ens1f0np0 is down")
        );
        let rdma = evaluate_rdma(&rail(9000), &facts);
        assert_eq!(
            (rdma.code, rdma.measured.as_str()),
            (Some("RW0804"), "rocep193s0/1 is DOWN, Disabled")
        );
        assert!(!may_still_come_up(&rail(9000), &facts));
    }

    #[test]
    fn a_wrong_mtu_and_a_missing_netdev_are_different_failures() {
        let facts = RailFacts::parse(samples::RAILS);
        assert_eq!(evaluate_netdev(&rail(4200), &facts).code, Some("RW0803"));
        let facts = RailFacts::parse("@netdev ens1f0np0\nabsent\n@rdma\n@tools\n");
        assert_eq!(
            evaluate_netdev(&rail(9000), &facts).measured,
            "ens1f0np0 does not exist"
        );
        assert!(
            evaluate_rdma(&rail(9000), &facts)
                .measured
                .contains("no RDMA device at all")
        );
        assert_eq!(
            evaluate_netdev(&rail(9000), &RailFacts::default()).verdict,
            CheckVerdict::Unknown
        );
    }

    #[test]
    fn an_mtu_above_what_the_nic_takes_fails_whatever_the_spec_says() {
        let facts = RailFacts::parse(samples::RAILS);
        let evaluated = evaluate_netdev(
            &ExpectedRail {
                mtu_max: Some(8500),
                ..rail(9000)
            },
            &facts,
        );
        assert_eq!(
            (evaluated.code, evaluated.expected.as_str()),
            (
                Some("RW0803"),
                "up, mtu 8500 at most, which is what the NIC takes"
            )
        );
        assert_eq!(
            evaluate_netdev(
                &ExpectedRail {
                    mtu_max: Some(9978),
                    ..rail(9000)
                },
                &facts
            )
            .verdict,
            CheckVerdict::Passed
        );
    }

    #[test]
    fn a_port_that_was_just_made_is_asked_again() {
        let facts = RailFacts::parse(
            "@port rxe0 1\nstate 1: DOWN\nphys_state 2: Polling\nnetdev ens1f0np0\n",
        );
        assert!(may_still_come_up(&rail(9000), &facts));
    }
}
