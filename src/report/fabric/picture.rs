//! The fabric as a picture: which rows of links there are between which devices, identical ones
//! folded. Text and SVG draw the same one.

use railwright_base::nodeset::{fold_node_set, natural_order};
use railwright_knowledge::spec::cabling::write;
use railwright_resource::Fact;
use railwright_resource::counters::names::Meter;
use railwright_verify::fabric::evaluation::format_priorities;
use railwright_verify::fabric::{
    DesiredFabricSettings, EndFacts, LinkProblemKind, LinkReport, Tier,
};
use std::collections::{BTreeMap, BTreeSet};

/// What makes links identical: what their ends are set to, and what is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cells {
    /// `9000 | 9216` where the ends differ, each value once where they do not; so are the others.
    pub mtu: String,
    /// `26>3 48>6`.
    pub dscp: String,
    /// `3`.
    pub pfc: String,
    /// `1000-2000 kB 10 %`.
    pub ecn: String,
    /// What is wrong or unknown.
    pub kinds: BTreeSet<LinkProblemKind>,
}

/// How much something rose on several links together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Together.
    pub rose: u64,
    /// Somebody counts it.
    pub is_counted: bool,
    /// Of somebody nobody can tell.
    pub is_unsure: bool,
}

/// What the counters of several links did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sums {
    /// PFC pause frames that came, by the tier of the device that was paused.
    pub told_to_wait: BTreeMap<Tier, Sum>,
    /// ECN-marked packets.
    pub marked: Sum,
    /// Congestion notifications that NICs sent.
    pub notified: Sum,
    /// Packets that were dropped of the lossless classes, or of whole ports.
    pub lost: Sum,
}

/// Links that are identical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricLinkRow {
    /// The rails; none between switches.
    pub rails: BTreeSet<u32>,
    /// The links, by their place in the report.
    pub links: Vec<usize>,
    /// What makes them identical.
    pub cells: Cells,
}

/// Hosts and the leaves that they are on; several such where they are identical.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// How many pods.
    pub pods: usize,
    /// Their hosts.
    pub hosts: BTreeSet<String>,
    /// Their leaves.
    pub leaves: BTreeSet<String>,
    /// Their links.
    pub rows: Vec<FabricLinkRow>,
}

/// The whole fabric.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Picture {
    /// Between leaves and spines.
    pub uplinks: Vec<FabricLinkRow>,
    /// Between switches of one tier: two leaves, or two spines.
    pub peers: Vec<FabricLinkRow>,
    /// Between hosts and leaves.
    pub blocks: Vec<Block>,
}

impl Picture {
    /// Of these links.
    pub fn of(links: &[LinkReport], desired: &DesiredFabricSettings) -> Self {
        let (of_hosts, of_switches): (Vec<usize>, Vec<usize>) =
            (0..links.len()).partition(|place| links[*place].link.from.tier == Tier::Host);
        let blocks = fold_blocks(links, of_hosts, desired);
        // What ends on the same spines stands together.
        let (of_peers, of_uplinks): (Vec<usize>, Vec<usize>) = of_switches
            .into_iter()
            .partition(|place| links[*place].link.from.tier == links[*place].link.to.tier);
        let mut uplinks = fold_links_into_rows(links, &of_uplinks, desired);
        uplinks.sort_by_cached_key(|row| row.side(links, false).0);
        Picture {
            uplinks,
            peers: fold_links_into_rows(links, &of_peers, desired),
            blocks,
        }
    }
}

/// Hosts with the leaves that they are on, identical ones as one block, in the order of their
/// leaves.
fn fold_blocks(
    links: &[LinkReport],
    of_hosts: Vec<usize>,
    desired: &DesiredFabricSettings,
) -> Vec<Block> {
    let mut hosts_of: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for link in of_hosts.iter().map(|place| &links[*place].link) {
        hosts_of
            .entry(&link.to.device)
            .or_default()
            .insert(&link.from.device);
    }
    let mut pods: BTreeMap<&BTreeSet<&str>, Vec<usize>> = BTreeMap::new();
    for place in of_hosts {
        pods.entry(&hosts_of[links[place].link.to.device.as_str()])
            .or_default()
            .push(place);
    }
    let mut blocks: BTreeMap<_, Block> = BTreeMap::new();
    for (hosts, places) in &pods {
        let leaves: BTreeSet<String> = places
            .iter()
            .map(|place| links[*place].link.to.device.clone())
            .collect();
        let rows = fold_links_into_rows(links, places, desired);
        let shape: Vec<_> = rows
            .iter()
            .map(|row| (row.rails.clone(), row.links.len(), row.cells.clone()))
            .collect();
        let block = blocks
            .entry((hosts.len(), leaves.len(), shape))
            .or_default();
        block.pods += 1;
        for host in *hosts {
            block.hosts.insert((*host).to_owned());
        }
        block.leaves.extend(leaves);
        if block.rows.is_empty() {
            block.rows = rows;
            continue;
        }
        for (row, other) in block.rows.iter_mut().zip(rows) {
            row.links.extend(other.links);
        }
    }
    let mut blocks: Vec<Block> = blocks.into_values().collect();
    blocks.sort_by(|one, other| {
        natural_order(find_first_name(&one.leaves), find_first_name(&other.leaves))
    });
    blocks
}

fn find_first_name(names: &BTreeSet<String>) -> &str {
    names
        .iter()
        .min_by(|a, b| natural_order(a, b))
        .map_or("", String::as_str)
}

/// Links that are identical are one row, in the order of the first of each.
fn fold_links_into_rows(
    links: &[LinkReport],
    places: &[usize],
    desired: &DesiredFabricSettings,
) -> Vec<FabricLinkRow> {
    let mut rows: indexmap::IndexMap<Cells, FabricLinkRow> = indexmap::IndexMap::new();
    for place in places {
        let cells = build_link_cells(&links[*place], desired);
        let row = rows.entry(cells.clone()).or_insert_with(|| FabricLinkRow {
            rails: BTreeSet::new(),
            links: Vec::new(),
            cells,
        });
        row.rails.extend(links[*place].link.rail);
        row.links.push(*place);
    }
    rows.into_values().collect()
}

fn build_link_cells(report: &LinkReport, desired: &DesiredFabricSettings) -> Cells {
    let ends = [&report.from, &report.to];
    let mut marks = Vec::new();
    for facts in ends {
        if !matches!(facts.marking, Fact::NotApplicable(_)) {
            marks.push(format_fact(&facts.marking, |marking| {
                format!(
                    "{}-{} kB {} %",
                    marking.min_bytes.div_ceil(1000),
                    marking.max_bytes.div_ceil(1000),
                    marking.probability_percent
                )
            }));
        }
    }
    let dscp = if desired.dscp.is_empty() {
        String::new()
    } else {
        join_both_ends(
            ends.map(|facts| format_fact(&facts.dscp, |map| format_dscp_map(map, desired))),
        )
    };
    Cells {
        mtu: join_both_ends(ends.map(|facts| format_fact(&facts.mtu, u64::to_string))),
        dscp,
        pfc: join_both_ends(ends.map(|facts| format_fact(&facts.pfc, format_priorities))),
        ecn: match marks.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            [one, other, ..] => join_both_ends([one.clone(), other.clone()]),
        },
        kinds: report.troubles.iter().map(|trouble| trouble.kind).collect(),
    }
}

/// The priorities of the DSCP values that the spec names: `26>3 48>6`.
fn format_dscp_map(map: &BTreeMap<u8, u8>, desired: &DesiredFabricSettings) -> String {
    let mut entries = Vec::new();
    for dscp in desired.dscp.keys() {
        entries.push(match map.get(dscp) {
            Some(priority) => format!("{dscp}>{priority}"),
            None => format!("{dscp}>-"),
        });
    }
    entries.join(" ")
}

fn join_both_ends([one, other]: [String; 2]) -> String {
    if one == other {
        one
    } else {
        format!("{one} | {other}")
    }
}

fn format_fact<T>(fact: &Fact<T>, say: impl Fn(&T) -> String) -> String {
    match fact {
        Fact::Is(value) => say(value),
        Fact::Absent => "-".to_owned(),
        Fact::NotApplicable(_) => "n/a".to_owned(),
        Fact::Unknown(_) => "?".to_owned(),
    }
}

impl Sum {
    fn add(&mut self, rise: &Fact<u64>) {
        match rise {
            Fact::Is(rose) => {
                self.rose = self.rose.saturating_add(*rose);
                self.is_counted = true;
            }
            Fact::Unknown(_) => self.is_unsure = true,
            Fact::Absent | Fact::NotApplicable(_) => {}
        }
    }
}

/// `12`; `12?` where somebody could not be asked; `-` where nobody counts it.
impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let doubt = if self.is_unsure { "?" } else { "" };
        match (self.is_counted, self.is_unsure) {
            (true, _) => write!(f, "{}{doubt}", self.rose),
            (false, true) => write!(f, "?"),
            (false, false) => write!(f, "-"),
        }
    }
}

/// The names of hosts or leaves, folded.
pub fn fold_device_names(names: &BTreeSet<String>) -> String {
    fold_node_set(&names.iter().collect::<Vec<_>>())
}

/// The devices and ports of one side of these links, folded.
pub fn fold_link_side(places: &[usize], links: &[LinkReport], is_from: bool) -> (String, String) {
    let ends = places.iter().map(|place| {
        if is_from {
            &links[*place].link.from
        } else {
            &links[*place].link.to
        }
    });
    let (devices, ports): (BTreeSet<&str>, BTreeSet<&str>) = ends
        .map(|end| (end.device.as_str(), end.port.as_str()))
        .unzip();
    let mut ports: Vec<&str> = ports.into_iter().collect();
    ports.sort_by(|a, b| natural_order(a, b));
    (
        fold_node_set(&devices.into_iter().collect::<Vec<_>>()),
        if is_from {
            fold_node_set(&ports)
        } else {
            write::fold_port_names(&ports)
        },
    )
}

impl FabricLinkRow {
    /// What the counters of its links did.
    pub fn sums(&self, links: &[LinkReport], desired: &DesiredFabricSettings) -> Sums {
        let mut sums = Sums::default();
        for report in self.links.iter().map(|place| &links[*place]) {
            for (tier, facts) in [
                (report.link.from.tier, &report.from),
                (report.link.to.tier, &report.to),
            ] {
                sums.add(tier, facts, desired);
            }
        }
        sums
    }

    /// The devices and ports of one side, folded: `gpu[001-016]`, `ens0f0np0`.
    pub fn side(&self, links: &[LinkReport], is_from: bool) -> (String, String) {
        fold_link_side(&self.links, links, is_from)
    }

    /// `ok`, or the codes of what is wrong.
    pub fn state(&self) -> String {
        let codes: Vec<&str> = self.cells.kinds.iter().map(|kind| kind.code()).collect();
        if codes.is_empty() {
            "ok".to_owned()
        } else {
            codes.join(" ")
        }
    }
}

impl Sums {
    /// True where a number is of some ends alone, and of the others nobody can tell.
    pub fn is_in_part(&self) -> bool {
        self.told_to_wait
            .values()
            .chain([&self.marked, &self.notified, &self.lost])
            .any(|sum| sum.is_unsure && sum.is_counted)
    }

    fn add(&mut self, tier: Tier, facts: &EndFacts, desired: &DesiredFabricSettings) {
        let waits = self.told_to_wait.entry(tier).or_default();
        let counted = match &facts.counted {
            Fact::Is(counted) => counted,
            Fact::Unknown(why) => {
                for sum in [waits, &mut self.lost] {
                    sum.add(&Fact::Unknown(why.clone()));
                }
                return;
            }
            _ => return,
        };
        for rise in &counted.rises {
            match (rise.meter, rise.priority) {
                (Meter::PauseReceived, _) => waits.add(&rise.rose),
                (Meter::Marked, _) => self.marked.add(&rise.rose),
                (Meter::CnpSent, _) => self.notified.add(&rise.rose),
                (Meter::Lost, None) => self.lost.add(&rise.rose),
                (Meter::Discarded, _) if rise.rose == Fact::Is(0) => {}
                (Meter::Discarded, _) => self.lost.is_unsure = true,
                (Meter::Lost, Some(priority)) if is_lossless(facts, desired, priority) => {
                    self.lost.add(&rise.rose)
                }
                _ => {}
            }
        }
    }
}

fn is_lossless(facts: &EndFacts, desired: &DesiredFabricSettings, priority: u8) -> bool {
    desired.lossless == Some(priority)
        || facts.pfc.value().is_some_and(|pfc| pfc.contains(&priority))
}
