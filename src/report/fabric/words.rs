//! What a finding means for the fabric, where it is, and what to do next.

use super::FabricSubject;
use super::picture::fold_link_side;
use railwright_base::text::{format_count, one_line};
use railwright_verify::fabric::{FabricFinding, LinkProblemKind, LinkReport, Tier, UnknownMatter};
use std::collections::BTreeMap;

/// A file for a recording with counters.
const RECORDING: &str = "fabric-counters.json";

/// The parts of an entry on the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FabricFindingText {
    /// What it means for the fabric.
    pub means: String,
    /// What to do.
    pub next: Vec<String>,
}

/// A finding in words.
pub fn describe_fabric_finding(
    finding: &FabricFinding,
    subject: &FabricSubject,
) -> FabricFindingText {
    let means = match finding.kind {
        LinkProblemKind::Down => "this link carries nothing",
        LinkProblemKind::Mtu => {
            "packets above the smaller one are dropped at that end, without a word to whoever sent \
             them"
        }
        LinkProblemKind::MtuOfSpec => {
            "the ends take each other's packets, of another size than the spec says: what relies \
             on it, such as the next link or a job, may not get through"
        }
        LinkProblemKind::Dscp => {
            "RoCE packets change their class on the way: where they are in a lossy one, they are \
             dropped under load"
        }
        LinkProblemKind::Pfc => {
            "a pause of one end means nothing to the other: it goes on sending, and packets are \
             dropped"
        }
        LinkProblemKind::Ecn => {
            "senders do not slow down before the queue is full, so that all is left to \
             pauses, which spread"
        }
        LinkProblemKind::Lost => {
            "packets that must not be lost were: RDMA sends whole windows again, and slows down to \
             a fraction"
        }
        LinkProblemKind::PausedElsewhere => {
            "one end has PFC on for a class that the other drops in, or another device pauses on \
             this port"
        }
        LinkProblemKind::Watchdog => {
            "somebody pauses without end: a NIC or a switch that hangs; what the watchdog does \
             meanwhile loses packets"
        }
        LinkProblemKind::Unknown => "whatever is not known may be wrong",
    };
    FabricFindingText {
        means: means.to_owned(),
        next: list_next_steps(finding, subject),
    }
}

fn list_next_steps(finding: &FabricFinding, subject: &FabricSubject) -> Vec<String> {
    let inventory = subject.inventory;
    let plan = format!(
        "railwright plan {inventory} shows what both ends are to have, and changes the one that \
         has not"
    );
    match finding.kind {
        LinkProblemKind::Down => vec![format!(
            "railwright verify cabling {inventory} tells where the cable is; then look at both \
             plugs"
        )],
        LinkProblemKind::Mtu
        | LinkProblemKind::Dscp
        | LinkProblemKind::Pfc
        | LinkProblemKind::Ecn => vec![plan],
        LinkProblemKind::MtuOfSpec => vec![format!(
            "railwright plan {inventory} shows what is to be there, and changes it"
        )],
        LinkProblemKind::Lost => vec![
            "where the ends agree on PFC: is the length of the cable right on the switch \
             (`cable_length_m`), which sizes the buffer?"
                .to_owned(),
            format!(
                "railwright explain {} tells the other causes",
                finding.kind.code()
            ),
        ],
        LinkProblemKind::PausedElsewhere => {
            vec![format!(
                "railwright drift {inventory} tells which end has PFC that the spec does not want"
            )]
        }
        LinkProblemKind::Watchdog => {
            vec![format!(
                "look at the end that sends the pauses: its NIC's firmware, a host that hangs; \
                 railwright explain {}",
                finding.kind.code()
            )]
        }
        LinkProblemKind::Unknown => list_steps_for_unknown(finding, subject),
    }
}

/// What finds out what is unknown.
fn list_steps_for_unknown(finding: &FabricFinding, subject: &FabricSubject) -> Vec<String> {
    let inventory = subject.inventory;
    match (finding.matter, subject.recorded) {
        (UnknownMatter::Settings, _) => vec![format!(
            "railwright drift {inventory} tells what cannot be reached or read; railwright \
             explain RW0847"
        )],
        (UnknownMatter::PauseFrames, _) => vec![
            "on SONiC: `counterpoll show` has to tell port, queue and pg-drop enabled; on a host: \
             ethtool -S NETDEV"
                .to_owned(),
        ],
        (UnknownMatter::Discards, _) => vec![format!(
            "railwright verify fabric {inventory} again without traffic; railwright explain {}",
            finding.kind.code()
        )],
        (UnknownMatter::Counters, None) => vec![format!(
            "railwright verify fabric {inventory} again, while nobody clears counters; where a \
             command is named, enter it on the device: it tells why"
        )],
        (UnknownMatter::Counters, Some((file, _))) => vec![
            format!(
                "railwright verify fabric {inventory} --for 0 --observations {} checks the rest",
                one_line(file, 200)
            ),
            format!(
                "railwright verify fabric {inventory} --record {RECORDING} reads its devices \
                 twice, and keeps both readings"
            ),
        ],
    }
}

/// ` (+12)`: packets, bytes or events, as the vendor counts them; nothing where nothing is counted.
pub fn format_finding_count(finding: &FabricFinding) -> String {
    finding
        .count
        .map_or_else(String::new, |count| format!(" (+{count})"))
}

/// `gpu[001-016] ens0f0np0 - leaf1 Ethernet[0-60/4] (16 links)`; those to hosts apart from those
/// between switches.
pub fn format_finding_links(finding: &FabricFinding, links: &[LinkReport]) -> String {
    let mut tiers: BTreeMap<[Tier; 2], Vec<usize>> = BTreeMap::new();
    for place in &finding.links {
        let link = &links[*place].link;
        tiers
            .entry([link.from.tier, link.to.tier])
            .or_default()
            .push(*place);
    }
    let mut texts = Vec::new();
    for places in tiers.values() {
        let (host, nic) = fold_link_side(places, links, true);
        let (switch, port) = fold_link_side(places, links, false);
        texts.push(format!(
            "{host} {nic} - {switch} {port} ({})",
            format_count(places.len(), "link")
        ));
    }
    one_line(&texts.join("; "), 1000)
}
