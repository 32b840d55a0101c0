//! What is wrong between the two ends of a link. It does not matter which end is named first.

use super::facts::{EndFacts, Rise};
use super::topology::Tier;
use super::{DesiredFabricSettings, LinkProblemKind};
use railwright_base::Reason;
use railwright_resource::Fact;
use railwright_resource::counters::names::Meter;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One end, as it is checked.
#[derive(Debug, Clone, Copy)]
pub struct CheckedLinkEnd<'a> {
    /// Where its device stands.
    pub tier: Tier,
    /// What it says of itself.
    pub facts: &'a EndFacts,
    /// By the spec the queue is marked.
    pub is_to_mark: bool,
    /// The MTU of the spec.
    pub mtu: Option<u64>,
}

impl CheckedLinkEnd<'_> {
    fn word(&self) -> &'static str {
        self.tier.word()
    }

    fn is_host(&self) -> bool {
        self.tier == Tier::Host
    }
}

/// One thing that is wrong or unknown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct LinkProblem {
    /// What it is.
    pub kind: LinkProblemKind,
    /// What was found, without the names of the ends.
    pub said: String,
    /// How many packets or events; nothing where none are counted.
    pub count: Option<u64>,
    /// What it is about where it is unknown.
    #[serde(skip)]
    pub matter: UnknownMatter,
}

/// What nobody can tell, which is found out in different ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnknownMatter {
    /// The settings of an end, or all of it.
    #[default]
    Settings,
    /// How its counters moved.
    Counters,
    /// It counts no pause frames.
    PauseFrames,
    /// Which packets were dropped as they came.
    Discards,
}

fn new_link_problem(kind: LinkProblemKind, said: impl Into<String>) -> LinkProblem {
    LinkProblem {
        kind,
        said: said.into(),
        count: None,
        matter: UnknownMatter::Settings,
    }
}

/// What nobody can tell of the end with this word.
fn new_unknown_problem(word: &str, why: &Reason, matter: UnknownMatter) -> LinkProblem {
    LinkProblem {
        matter,
        ..new_link_problem(LinkProblemKind::Unknown, format!("{word}: {why}"))
    }
}

/// All that is wrong or unknown of a link, each once and in a fixed order.
pub fn find_link_problems(
    ends: [&CheckedLinkEnd; 2],
    desired: &DesiredFabricSettings,
) -> Vec<LinkProblem> {
    let mut problems = Vec::new();
    for end in ends {
        problems.extend(check_link_end(end, desired));
    }
    match check_mtu(ends) {
        Some(problem) => problems.push(problem),
        None => problems.extend(check_mtu_of_spec(ends)),
    }
    if ends.iter().all(|end| end.facts.silent.is_none()) {
        problems.extend(check_dscp(ends, desired));
        problems.extend(check_pfc(ends, desired));
        problems.extend(check_unreadable_pfc(ends, desired));
        problems.extend(check_ecn(ends));
    }
    problems.sort();
    problems.dedup();
    problems
}

/// `host 9000, leaf 1500`: what both ends say, in the order of the words.
fn describe_both_ends(ends: [&CheckedLinkEnd; 2], say: impl Fn(&EndFacts) -> String) -> String {
    let mut said = ends.map(|end| format!("{} {}", end.word(), say(end.facts)));
    said.sort();
    said.join(", ")
}

/// Hosts send packets as large as their own MTU, and take larger ones; between switches both are to
/// be equal, because either sends.
fn check_mtu(ends: [&CheckedLinkEnd; 2]) -> Option<LinkProblem> {
    let [Some(one), Some(other)] = ends.map(|end| end.facts.mtu.value()) else {
        return None;
    };
    let is_wrong = match ends.map(CheckedLinkEnd::is_host) {
        [true, false] => one > other,
        [false, true] => other > one,
        _ => one != other,
    };
    if !is_wrong {
        return None;
    }
    let mtus = describe_both_ends(ends, |facts| match facts.mtu.value() {
        Some(mtu) => mtu.to_string(),
        None => String::new(),
    });
    Some(new_link_problem(
        LinkProblemKind::Mtu,
        format!("MTU: {mtus}"),
    ))
}

/// Ends that take each other's packets and are both wrong, or one of them: what the spec declares is
/// not there.
fn check_mtu_of_spec(ends: [&CheckedLinkEnd; 2]) -> Option<LinkProblem> {
    let mut differing = BTreeSet::new();
    for end in ends {
        if let (Some(actual), Some(desired)) = (end.facts.mtu.value(), end.mtu)
            && *actual != desired
        {
            differing.insert(format!("{} {actual} instead of {desired}", end.word()));
        }
    }
    if differing.is_empty() {
        return None;
    }
    let differing: Vec<String> = differing.into_iter().collect();
    Some(new_link_problem(
        LinkProblemKind::MtuOfSpec,
        format!("MTU: {}", differing.join(", ")),
    ))
}

fn check_dscp(ends: [&CheckedLinkEnd; 2], desired: &DesiredFabricSettings) -> Vec<LinkProblem> {
    let mut problems = Vec::new();
    for (dscp, priority) in list_compared_dscps(ends, desired) {
        let mut actual = BTreeSet::new();
        for end in ends {
            if let Some(map) = end.facts.dscp.value() {
                actual.insert(map.get(&dscp).copied());
            }
        }
        let is_wrong =
            actual.len() > 1 || (priority.is_some() && actual.iter().any(|it| *it != priority));
        if !is_wrong {
            continue;
        }
        let priorities = describe_both_ends(ends, |facts| describe_dscp_priority(facts, dscp));
        let fabric = describe_fabric_priority(priority);
        problems.push(new_link_problem(
            LinkProblemKind::Dscp,
            format!("DSCP {dscp} has priority: {priorities}{fabric}"),
        ));
    }
    problems
}

/// The DSCPs of the spec with their priorities. Where the spec names no class, the DSCPs that both
/// ends have an entry for are compared.
fn list_compared_dscps(
    ends: [&CheckedLinkEnd; 2],
    desired: &DesiredFabricSettings,
) -> BTreeMap<u8, Option<u8>> {
    let mut compared = BTreeMap::new();
    for (dscp, priority) in &desired.dscp {
        compared.insert(*dscp, Some(*priority));
    }
    if desired.dscp.is_empty()
        && let [Some(one), Some(other)] = ends.map(|end| end.facts.dscp.value())
    {
        for dscp in one.keys().filter(|dscp| other.contains_key(dscp)) {
            compared.insert(*dscp, None);
        }
    }
    compared
}

fn describe_dscp_priority(facts: &EndFacts, dscp: u8) -> String {
    let Fact::Is(priorities) = &facts.dscp else {
        return "n/a".to_owned();
    };
    match priorities.get(&dscp) {
        Some(priority) => priority.to_string(),
        None => "none".to_owned(),
    }
}

/// `, the fabric 3`; nothing where the spec names no priority.
fn describe_fabric_priority(desired: Option<u8>) -> String {
    match desired {
        Some(priority) => format!(", the fabric {priority}"),
        None => String::new(),
    }
}

fn check_pfc(ends: [&CheckedLinkEnd; 2], desired: &DesiredFabricSettings) -> Option<LinkProblem> {
    let known: Vec<&BTreeSet<u8>> = ends
        .iter()
        .filter_map(|end| end.facts.pfc.value())
        .collect();
    let differ = known.windows(2).any(|two| two[0] != two[1]);
    let lacks_lossless = match desired.lossless {
        Some(priority) => known.iter().any(|set| !set.contains(&priority)),
        None => false,
    };
    if !differ && !lacks_lossless {
        return None;
    }
    let priorities = describe_both_ends(ends, |facts| match facts.pfc.value() {
        Some(pfc) => format_priorities(pfc),
        None => "n/a".to_owned(),
    });
    let fabric = describe_fabric_priority(desired.lossless);
    Some(new_link_problem(
        LinkProblemKind::Pfc,
        format!("PFC: {priorities}{fabric}"),
    ))
}

/// On a link with a lossless class it has to be known whether a NIC heeds its pauses.
fn check_unreadable_pfc(
    ends: [&CheckedLinkEnd; 2],
    desired: &DesiredFabricSettings,
) -> Vec<LinkProblem> {
    let pauses = |facts: &EndFacts| facts.pfc.value().is_some_and(|pfc| !pfc.is_empty());
    let is_lossless = desired.lossless.is_some() || ends.iter().any(|end| pauses(end.facts));
    let mut problems = Vec::new();
    for end in ends {
        if let Fact::NotApplicable(why) = &end.facts.pfc
            && is_lossless
        {
            problems.push(new_unknown_problem(
                end.word(),
                why,
                UnknownMatter::Settings,
            ));
        }
    }
    problems
}

/// `3, 4`; `none`.
pub fn format_priorities(all: &BTreeSet<u8>) -> String {
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.iter().map(u8::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// A queue is to be marked where the spec says so, or where the other end of the link does it.
fn check_ecn(ends: [&CheckedLinkEnd; 2]) -> Vec<LinkProblem> {
    let is_marked = ends.iter().any(|end| end.facts.marking.value().is_some());
    let mut problems = Vec::new();
    for end in ends {
        let is_to_mark = end.is_to_mark || is_marked;
        let is_there = end.facts.mtu != Fact::Absent;
        if is_to_mark && is_there && end.facts.marking == Fact::Absent {
            problems.push(new_link_problem(
                LinkProblemKind::Ecn,
                format!(
                    "{}: the queue of the lossless class is not marked",
                    end.word()
                ),
            ));
        }
    }
    problems
}

/// What is wrong or unknown of one end by itself.
fn check_link_end(end: &CheckedLinkEnd, desired: &DesiredFabricSettings) -> Vec<LinkProblem> {
    let (word, facts) = (end.word(), end.facts);
    if let Some(why) = &facts.silent {
        return vec![new_unknown_problem(word, why, UnknownMatter::Settings)];
    }
    if facts.mtu == Fact::Absent {
        let sort = if end.is_host() { "netdev" } else { "port" };
        return vec![new_link_problem(
            LinkProblemKind::Down,
            format!("{word}: there is no such {sort}"),
        )];
    }
    let mut problems = Vec::new();
    if facts.up == Fact::Is(false) {
        let state = if end.is_host() {
            "down, or without a link"
        } else {
            "administratively down"
        };
        problems.push(new_link_problem(
            LinkProblemKind::Down,
            format!("{word}: {state}"),
        ));
    }
    let unknown = [
        facts.up.why_unknown(),
        facts.mtu.why_unknown(),
        facts.dscp.why_unknown(),
        facts.pfc.why_unknown(),
        facts.marking.why_unknown(),
    ];
    for why in unknown.into_iter().flatten() {
        problems.push(new_unknown_problem(word, why, UnknownMatter::Settings));
    }
    problems.extend(check_end_counters(end, desired));
    problems
}

/// What its counters say.
fn check_end_counters(end: &CheckedLinkEnd, desired: &DesiredFabricSettings) -> Vec<LinkProblem> {
    let word = end.word();
    let counted = match &end.facts.counted {
        Fact::Is(counted) => counted,
        Fact::Unknown(why) => return vec![new_unknown_problem(word, why, UnknownMatter::Counters)],
        _ => return Vec::new(),
    };
    let mut problems = Vec::new();
    for rise in &counted.rises {
        match &rise.rose {
            Fact::Is(rose) if *rose > 0 => {
                if let Some((kind, said)) = describe_counter_rise(end, rise, desired) {
                    problems.push(LinkProblem {
                        kind,
                        said: format!("{word}: {said}"),
                        count: Some(*rose),
                        matter: match rise.meter {
                            Meter::Discarded => UnknownMatter::Discards,
                            _ => UnknownMatter::Counters,
                        },
                    });
                }
            }
            Fact::Unknown(why) => {
                problems.push(new_unknown_problem(word, why, UnknownMatter::Counters))
            }
            _ => {}
        }
    }
    for priority in &counted.stormed {
        problems.push(new_link_problem(
            LinkProblemKind::Watchdog,
            format!("{word}: the watchdog holds priority {priority} down now"),
        ));
    }
    let has_pfc = end.facts.pfc.value().is_some_and(|pfc| !pfc.is_empty());
    let pauses = desired.lossless.is_some() && has_pfc;
    if pauses && counted.of_meter(Meter::PauseReceived).next().is_none() {
        problems.push(new_unknown_problem(
            word,
            &"it counts no pause frames".into(),
            UnknownMatter::PauseFrames,
        ));
    }
    problems
}

/// What a counter that rose says of its end; nothing where it may rise.
fn describe_counter_rise(
    end: &CheckedLinkEnd,
    rise: &Rise,
    desired: &DesiredFabricSettings,
) -> Option<(LinkProblemKind, String)> {
    // Whether its priority has PFC; nothing where that is not known, or the whole port is counted.
    let has_pfc = match (end.facts.pfc.value(), rise.priority) {
        (Some(pfc), Some(priority)) => Some(pfc.contains(&priority)),
        _ => None,
    };
    let of = match rise.priority {
        Some(priority) => format!("priority {priority}"),
        None => "the port".to_owned(),
    };
    let is_lossy = rise.priority.is_some() && desired.lossless != rise.priority;
    match rise.meter {
        Meter::Lost if is_lossy && has_pfc != Some(true) => None,
        Meter::Lost => Some((
            LinkProblemKind::Lost,
            format!("dropped of {of} for want of a buffer"),
        )),
        Meter::Discarded => Some((
            LinkProblemKind::Unknown,
            "packets were dropped as they came; of which class, and why, is not told".to_owned(),
        )),
        Meter::PauseReceived if has_pfc == Some(false) => Some((
            LinkProblemKind::PausedElsewhere,
            format!("was told to pause {of}, which has no PFC here"),
        )),
        Meter::PauseSent if has_pfc == Some(false) => Some((
            LinkProblemKind::PausedElsewhere,
            format!("told the other end to pause {of}, which has no PFC here"),
        )),
        Meter::Storms => Some((
            LinkProblemKind::Watchdog,
            format!("the watchdog cut off a pause without end of {of}"),
        )),
        _ => None,
    }
}
