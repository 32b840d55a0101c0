//! The links of the fabric, NIC to leaf and leaf to spine: whether both ends agree on MTU, DSCPs
//! and PFC, whether queues are marked, and what their counters did in a while. Pure: what was read
//! twice comes in, links and findings come out, and nobody is asked for anything.
//!
//! `topology` (which links there are), `desired` (what the spec asks of them) -> `facts` (what an
//! end says of itself) -> `evaluation` (what is wrong between two ends) -> `group` (one trouble of
//! many links is one finding).

mod desired;
pub mod evaluation;
mod facts;
mod group;
#[cfg(any(test, feature = "samples"))]
#[allow(
    clippy::unwrap_used,
    reason = "a sample that cannot be made stops its test"
)]
pub mod sample_for_tests;
#[cfg(test)]
mod tests;
mod topology;

pub use desired::DesiredFabricSettings;
pub use evaluation::{CheckedLinkEnd, LinkProblem, UnknownMatter, find_link_problems};
pub use facts::{DecodedDevice, Devices, EndFacts, FabricDevice};
pub use topology::{EndPoint, FabricLink, Tier, list_fabric_links};

use super::CheckVerdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is wrong, or unknown. In the order of the screen.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LinkProblemKind {
    /// An end is not there, or is down.
    Down,
    /// One end sends packets that the other drops for their size.
    Mtu,
    /// Both ends take each other's packets, and an end has not the MTU of the spec.
    MtuOfSpec,
    /// The ends give a DSCP different priorities, or not the fabric's.
    Dscp,
    /// The ends pause different priorities, or not the lossless one.
    Pfc,
    /// The queue of the lossless class is not marked.
    Ecn,
    /// Packets of the lossless class were dropped while it was looked.
    Lost,
    /// A priority that is not lossless was paused while it was looked.
    PausedElsewhere,
    /// A watchdog cut off a pause without end, or holds a queue down now.
    Watchdog,
    /// Nobody can tell.
    Unknown,
}

impl LinkProblemKind {
    /// All of them.
    pub const ALL: [LinkProblemKind; 10] = [
        LinkProblemKind::Down,
        LinkProblemKind::Mtu,
        LinkProblemKind::MtuOfSpec,
        LinkProblemKind::Dscp,
        LinkProblemKind::Pfc,
        LinkProblemKind::Ecn,
        LinkProblemKind::Lost,
        LinkProblemKind::PausedElsewhere,
        LinkProblemKind::Watchdog,
        LinkProblemKind::Unknown,
    ];

    /// The code of its page.
    pub fn code(self) -> &'static str {
        match self {
            LinkProblemKind::Mtu => "RW0840",
            LinkProblemKind::MtuOfSpec => "RW0850",
            LinkProblemKind::Dscp => "RW0841",
            LinkProblemKind::Pfc => "RW0842",
            LinkProblemKind::Ecn => "RW0843",
            LinkProblemKind::Lost => "RW0844",
            LinkProblemKind::PausedElsewhere => "RW0845",
            LinkProblemKind::Watchdog => "RW0846",
            LinkProblemKind::Unknown => "RW0847",
            LinkProblemKind::Down => "RW0848",
        }
    }

    /// Whether it is known to be wrong.
    pub fn verdict(self) -> CheckVerdict {
        if self == LinkProblemKind::Unknown {
            CheckVerdict::Unknown
        } else {
            CheckVerdict::Failed
        }
    }
}

/// A link, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct LinkReport {
    /// Which one.
    pub link: FabricLink,
    /// The NIC, or the end that the cabling file names first.
    pub from: EndFacts,
    /// The port of the switch.
    pub to: EndFacts,
    /// What is wrong or unknown.
    pub troubles: Vec<LinkProblem>,
}

impl LinkReport {
    /// The worst of its troubles.
    pub fn verdict(&self) -> CheckVerdict {
        self.troubles
            .iter()
            .map(|trouble| trouble.kind.verdict())
            .min()
            .unwrap_or(CheckVerdict::Passed)
    }
}

/// Links with the same trouble.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricFinding {
    /// What it is.
    pub kind: LinkProblemKind,
    /// What was found on all of them.
    pub said: String,
    /// What it is about where it is unknown.
    pub matter: UnknownMatter,
    /// How many packets or events, on all of them; nothing where none are counted.
    pub count: Option<u64>,
    /// The links, by their place in the report.
    pub links: Vec<usize>,
}

/// The whole fabric.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Every link, in the order of the cabling file.
    pub links: Vec<LinkReport>,
    /// What is wrong, worst first, identical ones folded.
    pub findings: Vec<FabricFinding>,
    /// The shortest time between two readings of a device, in seconds; nothing where counters were
    /// not looked at.
    pub seconds: Option<f64>,
}

impl Report {
    /// The worst of all; with no link nothing is known.
    pub fn verdict(&self) -> CheckVerdict {
        let worst = self
            .findings
            .iter()
            .map(|finding| finding.kind.verdict())
            .min();
        worst.unwrap_or(if self.links.is_empty() {
            CheckVerdict::Unknown
        } else {
            CheckVerdict::Passed
        })
    }
}

/// Checks these links by the facts of their devices.
pub fn check_fabric_links(
    links: &[FabricLink],
    devices: &Devices,
    desired: &DesiredFabricSettings,
) -> Report {
    let mut decoded = BTreeMap::new();
    for (name, device) in devices {
        decoded.insert(name.as_str(), DecodedDevice::of(device, desired.counts));
    }
    let mut reports = Vec::new();
    for link in links {
        reports.push(check_fabric_link(link, &decoded, desired));
    }
    let seconds = decoded
        .values()
        .filter_map(DecodedDevice::seconds)
        .min_by(f64::total_cmp);
    Report {
        findings: group::group_link_findings(&reports),
        links: reports,
        seconds,
    }
}

fn check_fabric_link(
    link: &FabricLink,
    decoded: &BTreeMap<&str, DecodedDevice<'_>>,
    desired: &DesiredFabricSettings,
) -> LinkReport {
    let from = find_end_facts(&link.from, decoded, desired);
    let to = find_end_facts(&link.to, decoded, desired);
    let ends = [
        &new_checked_end(&link.from, &from, desired),
        &new_checked_end(&link.to, &to, desired),
    ];
    LinkReport {
        troubles: evaluation::find_link_problems(ends, desired),
        link: link.clone(),
        from,
        to,
    }
}

fn find_end_facts(
    end: &EndPoint,
    decoded: &BTreeMap<&str, DecodedDevice<'_>>,
    desired: &DesiredFabricSettings,
) -> EndFacts {
    match decoded.get(end.device.as_str()) {
        Some(device) => device.end(end, desired).watched(&desired.dscp),
        None => EndFacts::silent("the spec does not say how it is reached (`ssh`)"),
    }
}

fn new_checked_end<'a>(
    end: &EndPoint,
    facts: &'a EndFacts,
    desired: &DesiredFabricSettings,
) -> CheckedLinkEnd<'a> {
    CheckedLinkEnd {
        tier: end.tier,
        facts,
        is_to_mark: desired.marking.contains(&end.device),
        mtu: desired.mtu_of(&end.device, &end.port),
    }
}
