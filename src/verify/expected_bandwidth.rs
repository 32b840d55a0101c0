//! What a pair must deliver: what the spec states, else what the catalogue knows of ports of this
//! rate, else nothing.

use super::rail_facts::{RailFacts, RailRdmaPort};
use super::request::{ExpectedRail, VerifyRequest};
use railwright_knowledge::catalog::entries::BandwidthEntry;
use railwright_resource::probe::TrafficLoad;

/// From this MTU on packets of 4096 bytes pass with their headers, which the numbers of the
/// catalogue take for granted.
const WHOLE_PACKETS_MTU: u32 = 4200;

/// Headers, preamble and gap leave 97.5 to 98 % of an Ethernet port to packets of 4096 bytes (82 to
/// 106 bytes each, by IP's version and a VLAN tag). A number of InfiniBand's that asks for more
/// than this share is never used there.
const ETHERNET_SHARE: f64 = 0.96;

/// What a run is compared with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BandwidthExpectation {
    /// The least, in Gb/s.
    pub least_gbps: Option<f64>,
    /// The spec states it; else it is the catalogue's, of machines whose GPUs and NICs share
    /// switches.
    pub is_stated: bool,
    /// The least bandwidth in words, with where it comes from; empty where nothing is stated or
    /// known.
    pub words: String,
    /// The load that the number holds for.
    pub load: Option<TrafficLoad>,
}

/// One end of a pair.
#[derive(Debug, Clone, Copy)]
pub struct PairEnd<'a> {
    /// What the spec says of the rail.
    pub rail: &'a ExpectedRail,
    /// What the host says.
    pub facts: &'a RailFacts,
    /// The GPU model of the catalogue, for a run from and to GPU memory.
    pub gpu: Option<&'a str>,
}

impl PairEnd<'_> {
    fn port(&self) -> Option<&RailRdmaPort> {
        self.facts.port_of(&self.rail.netdev)
    }

    /// True where an entry of the catalogue is about this port and its packets are whole.
    fn is_as(&self, entry: &BandwidthEntry) -> bool {
        let Some(port) = self.port() else {
            return false;
        };
        let mtu = self
            .facts
            .netdevs
            .get(&self.rail.netdev)
            .and_then(|netdev| netdev.mtu);
        let fits = entry
            .least_gbps
            .zip(entry.rate_gbps)
            .is_none_or(|(least, rate)| least <= f64::from(rate) * ETHERNET_SHARE);
        let whole = entry.least_gbps.is_none()
            || port.link_layer == "InfiniBand"
            || (fits && mtu.is_some_and(|mtu| mtu >= WHOLE_PACKETS_MTU));
        let rate = entry
            .rate_gbps
            .is_none_or(|rate| rate_gbps(port) == Some(f64::from(rate)));
        let memory = match self.gpu {
            Some(model) => entry.gpus.iter().any(|gpu| gpu == model),
            None => entry.gpus.is_empty(),
        };
        whole
            && rate
            && memory
            && !port.in_software
            && self.rail.driver.as_deref() == Some(&entry.driver)
    }
}

/// What a pair is compared with. Where its ends differ in rate, the slower one counts.
pub fn select_bandwidth_expectation(
    request: &VerifyRequest,
    ends: [PairEnd<'_>; 2],
) -> BandwidthExpectation {
    let is_gpu = ends[0].gpu.is_some();
    let stated = if is_gpu {
        request.expectations.gpu_bandwidth_gbps
    } else {
        request.expectations.write_bandwidth_gbps
    };
    let entries = ends.map(|end| request.bandwidths.iter().find(|entry| end.is_as(entry)));
    let entry = match entries {
        [Some(one), Some(other)] => Some(if other.rate_gbps < one.rate_gbps {
            other
        } else {
            one
        }),
        _ => None,
    };
    let load = entry.map(|entry| TrafficLoad {
        message_bytes: entry.message_bytes,
        queue_pairs: entry.queue_pairs,
    });
    let (least_gbps, words) = match (stated, entry) {
        (Some(gbps), _) => (
            Some(gbps),
            format!("at least {gbps} Gb/s, as the spec states"),
        ),
        (None, Some(entry)) => (entry.least_gbps, describe_bandwidth_entry(entry)),
        (None, None) => (None, String::new()),
    };
    BandwidthExpectation {
        least_gbps,
        is_stated: stated.is_some(),
        words,
        load,
    }
}

fn describe_bandwidth_entry(entry: &BandwidthEntry) -> String {
    match (entry.least_gbps, entry.seen_gbps) {
        (Some(least), _) => format!(
            "at least {least} Gb/s, as entry `{}` of the catalogue has it",
            entry.name
        ),
        (None, Some(seen)) => format!(
            "no minimum is known; entry `{}` of the catalogue states {seen} Gb/s",
            entry.name
        ),
        (None, None) => String::new(),
    }
}

/// `200 Gb/sec (4X HDR)`.
pub fn rate_gbps(port: &RailRdmaPort) -> Option<f64> {
    let (number, unit) = port.rate.split_once(' ')?;
    number
        .parse()
        .ok()
        .filter(|rate: &f64| rate.is_finite() && *rate > 0.0 && unit.starts_with("Gb/sec"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::tests::request;

    fn known() -> Vec<BandwidthEntry> {
        railwright_knowledge::catalog::load_catalog("", [])
            .unwrap()
            .bandwidth
            .entries()
            .map(|entry| entry.content.clone())
            .collect()
    }

    fn facts(rate: &str, mtu: u32) -> RailFacts {
        let text = samples::RAILS
            .replace("100 Gb/sec (4X EDR)", rate)
            .replace("mtu 9000", &format!("mtu {mtu}"));
        RailFacts::parse(&text.replace("netdev ens1f0np0\nfunction", "function"))
    }

    fn of(
        stated: Option<f64>,
        driver: &str,
        facts: [&RailFacts; 2],
        gpu: Option<&str>,
    ) -> BandwidthExpectation {
        let mut request = request(2);
        request.bandwidths = known();
        (
            request.expectations.write_bandwidth_gbps,
            request.expectations.gpu_bandwidth_gbps,
        ) = (stated, stated);
        let rail = ExpectedRail {
            driver: Some(driver.to_owned()),
            ..request.hosts[0].rails[0].clone()
        };
        select_bandwidth_expectation(
            &request,
            facts.map(|facts| PairEnd {
                rail: &rail,
                facts,
                gpu,
            }),
        )
    }

    #[test]
    fn the_rate_of_the_port_gives_a_minimum_with_its_load_and_the_spec_stands_over_it() {
        let (hdr, edr) = (
            facts("200 Gb/sec (4X HDR)", 9000),
            facts("100 Gb/sec (4X EDR)", 9000),
        );
        let catalogue = of(None, "mlx5_core", [&hdr, &hdr], None);
        assert_eq!(
            catalogue.words,
            "at least 190 Gb/s, as entry `HDR` of the catalogue has it"
        );
        assert_eq!(
            catalogue.load,
            Some(TrafficLoad {
                message_bytes: 1_048_576,
                queue_pairs: 2
            })
        );
        assert_eq!(
            of(None, "mlx5_core", [&hdr, &edr], None).least_gbps,
            Some(95.0),
            "the slower end counts"
        );
        let spec = of(Some(180.0), "mlx5_core", [&hdr, &hdr], None);
        assert_eq!(
            (spec.least_gbps, spec.words.as_str(), spec.load),
            (
                Some(180.0),
                "at least 180 Gb/s, as the spec states",
                catalogue.load
            )
        );
    }

    #[test]
    fn gpu_memory_has_numbers_of_its_own() {
        let ndr = facts("400 Gb/sec (4X NDR)", 9000);
        assert_eq!(
            of(None, "mlx5_core", [&ndr, &ndr], Some("H200-SXM5-141GB")).least_gbps,
            Some(360.0)
        );
        assert_eq!(
            of(None, "mlx5_core", [&ndr, &ndr], Some("L20")),
            BandwidthExpectation::default()
        );
        assert_eq!(
            of(None, "mlx5_core", [&ndr, &ndr], None),
            BandwidthExpectation::default(),
            "more than Ethernet can promise"
        );
        let mut infiniband = ndr.clone();
        infiniband
            .ports
            .iter_mut()
            .for_each(|port| port.link_layer = "InfiniBand".to_owned());
        assert_eq!(
            of(None, "mlx5_core", [&infiniband, &infiniband], None).least_gbps,
            Some(390.0)
        );
    }

    #[test]
    fn what_the_numbers_were_not_found_with_has_none() {
        let (hdr, small) = (
            facts("200 Gb/sec (4X HDR)", 9000),
            facts("200 Gb/sec (4X HDR)", 1500),
        );
        assert_eq!(
            of(None, "mlx5_core", [&hdr, &small], None),
            BandwidthExpectation::default(),
            "packets of 1024 bytes"
        );
        assert_eq!(
            of(None, "ice", [&hdr, &hdr], None),
            BandwidthExpectation::default(),
            "another NIC"
        );
        let rxe = RailFacts::parse(samples::RAILS);
        assert_eq!(
            of(None, "mlx5_core", [&rxe, &rxe], None),
            BandwidthExpectation::default(),
            "Soft-RoCE says a rate that it does not have"
        );
        let seen = of(None, "erdma", [&small, &small], None);
        assert_eq!(
            (seen.least_gbps, seen.words.contains("118 Gb/s")),
            (None, true)
        );
    }
}
