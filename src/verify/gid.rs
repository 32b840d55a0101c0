//! The GID that traffic leaves with: of the right type, for the right address, bound to the right
//! netdev. Its index is found, never assumed: indexes are re-used, lowest first, so "index 3" is a
//! habit and no fact.

use super::rail_facts::{RailFacts, RailGid, RailRdmaPort, bare_address};
use super::request::{ExpectedRail, GidKind};
use super::result::CheckOutcome;
use std::net::IpAddr;

/// What traffic of a rail needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The RDMA device.
    pub device: String,
    /// Its port.
    pub device_port: u8,
    /// The GID's index.
    pub gid_index: u32,
    /// The rail's address.
    pub address: IpAddr,
    /// The netdev of the NIC's port.
    pub port: String,
}

/// The address of a rail: the spec's, or the first global one that the netdev has.
pub fn address_of(rail: &ExpectedRail, facts: &RailFacts) -> Option<IpAddr> {
    if let Some(text) = &rail.address {
        return bare_address(text);
    }
    let addresses = &facts.netdevs.get(&rail.netdev)?.addresses;
    addresses
        .iter()
        .copied()
        .find(|a| !matches!(a, IpAddr::V6(v6) if v6.segments()[0] & 0xffc0 == 0xfe80))
}

/// The end of a rail that traffic can use, or nothing when its GID check fails.
pub fn find_traffic_endpoint(
    kind: GidKind,
    rail: &ExpectedRail,
    facts: &RailFacts,
) -> Option<Endpoint> {
    let port = facts.port_of(&rail.netdev)?;
    let address = address_of(rail, facts)?;
    let gid_index = match kind {
        GidKind::RoceV2 => find_matching_gid(port, rail, address)?.index,
        GidKind::Infiniband => port.gids.iter().find(|g| g.index == 0)?.index,
    };
    Some(Endpoint {
        device: port.device.clone(),
        device_port: port.number,
        gid_index,
        address,
        port: rail.port.clone(),
    })
}

fn find_matching_gid<'a>(
    port: &'a RailRdmaPort,
    rail: &ExpectedRail,
    address: IpAddr,
) -> Option<&'a RailGid> {
    port.gids
        .iter()
        .find(|g| g.address == address && g.kind == "RoCE v2" && g.netdev == rail.netdev)
}

/// Is there the GID that the rail needs?
pub fn check_rail_gid(kind: GidKind, rail: &ExpectedRail, facts: &RailFacts) -> CheckOutcome {
    let Some(port) = facts.port_of(&rail.netdev) else {
        return CheckOutcome::not_applicable(format!("there is no RDMA device on {}", rail.netdev));
    };
    if kind == GidKind::Infiniband {
        return match port.gids.iter().find(|g| g.index == 0) {
            Some(gid) => CheckOutcome::passed(format!("GID 0 {}", gid.address)),
            None => report_missing_gid(
                format!("{} has no GID", port.device),
                "a port GID at index 0".to_owned(),
            ),
        };
    }
    let Some(address) = address_of(rail, facts) else {
        return report_missing_gid(
            format!(
                "{} has no address, so {} has no GID for it",
                rail.netdev, port.device
            ),
            "an address and its RoCE v2 GID".to_owned(),
        );
    };
    let expected = format!("RoCE v2 GID of the rail's address on {}", rail.netdev);
    match find_matching_gid(port, rail, address) {
        Some(gid) => CheckOutcome::passed(format!("GID {} RoCE v2", gid.index)).expected(expected),
        None => report_missing_gid(describe_wrong_gid(port, rail, address), expected),
    }
}

fn report_missing_gid(words: String, expected: String) -> CheckOutcome {
    CheckOutcome::failed("RW0805", words)
        .expected(expected)
        .effect("RDMA connections over this rail cannot be made: peers address it by this GID")
        .next("railwright plan {inventory}")
}

/// What is there instead, because that tells what to fix.
fn describe_wrong_gid(port: &RailRdmaPort, rail: &ExpectedRail, address: IpAddr) -> String {
    match port.gids.iter().find(|g| g.address == address) {
        Some(gid) if gid.netdev != rail.netdev => format!(
            "the GID of {address} is bound to {} and not to {}",
            gid.netdev, rail.netdev
        ),
        Some(gid) => format!("the GID of {address} is of type {} only", gid.kind),
        None => format!(
            "{} has no GID for {address}: the address is not on {}",
            port.device, rail.netdev
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;
    use crate::samples;

    fn rail(address: Option<&str>) -> ExpectedRail {
        ExpectedRail {
            rail: 0,
            netdev: "ens1f0np0".into(),
            port: "ens1f0np0".into(),
            address: address.map(str::to_owned),
            mtu: None,
            mtu_max: None,
            driver: None,
        }
    }

    #[test]
    fn the_index_is_found_for_the_address() {
        let facts = RailFacts::parse(samples::RAILS);
        let rail = rail(Some("192.168.77.1/24"));
        assert_eq!(
            check_rail_gid(GidKind::RoceV2, &rail, &facts).measured,
            "GID 1 RoCE v2"
        );
        let end = find_traffic_endpoint(GidKind::RoceV2, &rail, &facts).unwrap();
        assert_eq!((end.device.as_str(), end.gid_index), ("rocep193s0", 1));
    }

    #[test]
    fn an_address_that_is_gone_takes_its_gid_with_it() {
        let facts = RailFacts::parse(samples::RAILS_NO_ADDRESS);
        let evaluated = check_rail_gid(GidKind::RoceV2, &rail(Some("192.168.77.2/24")), &facts);
        assert_eq!(
            (evaluated.verdict, evaluated.code),
            (CheckVerdict::Failed, Some("RW0805"))
        );
        assert!(
            evaluated
                .measured
                .contains("has no GID for 192.168.77.2: the address is not on ens1f0np0"),
            "{}",
            evaluated.measured
        );
        assert_eq!(
            check_rail_gid(GidKind::RoceV2, &rail(None), &facts).code,
            Some("RW0805")
        );
    }

    /// The RDMA device is the port's; the GID of a VLAN has the VLAN's netdev.
    #[test]
    fn the_gid_of_a_rail_that_is_a_vlan_is_found() {
        let port = "@port mlx5_0 1\n\
                    netdev ens1f0np0\n\
                    gid 2 0000:0000:0000:0000:0000:ffff:c0a8:4d01 ens1f0np0.100 RoCE v2\n";
        let facts = RailFacts::parse(port);
        let rail = ExpectedRail {
            netdev: "ens1f0np0.100".into(),
            ..rail(Some("192.168.77.1/24"))
        };
        assert_eq!(
            check_rail_gid(GidKind::RoceV2, &rail, &facts).measured,
            "GID 2 RoCE v2"
        );
        assert_eq!(
            find_traffic_endpoint(GidKind::RoceV2, &rail, &facts)
                .unwrap()
                .device,
            "mlx5_0"
        );
    }

    #[test]
    fn the_wrong_type_and_the_wrong_netdev_are_named() {
        let with = |line: &str| {
            RailFacts::parse(&format!("@port mlx5_0 1\nnetdev ens1f0np0\ngid 2 {line}\n"))
        };
        let rail = rail(Some("192.168.77.1"));
        let v1 = check_rail_gid(
            GidKind::RoceV2,
            &rail,
            &with("0000:0000:0000:0000:0000:ffff:c0a8:4d01 ens1f0np0 IB/RoCE v1"),
        );
        assert!(
            v1.measured.ends_with("of type IB/RoCE v1 only"),
            "{}",
            v1.measured
        );
        let vlan = check_rail_gid(
            GidKind::RoceV2,
            &rail,
            &with("0000:0000:0000:0000:0000:ffff:c0a8:4d01 ens1f0np0.100 RoCE v2"),
        );
        assert!(
            vlan.measured.contains("bound to ens1f0np0.100"),
            "{}",
            vlan.measured
        );
    }
}
