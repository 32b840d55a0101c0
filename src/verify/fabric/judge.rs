//! What is wrong between the two ends of a link. It does not matter which end is named first.

use super::facts::{EndFacts, Rise};
use super::topology::Tier;
use super::{DesiredFabricSettings, LinkProblemKind};
use railwright_resource::Fact;
use railwright_resource::counters::names::Meter;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One end, as it is judged.
#[derive(Debug, Clone, Copy)]
pub struct CheckedLinkEnd<'a> {
    /// Where its device stands.
    pub tier: Tier,
    /// What it says of itself.
    pub facts: &'a EndFacts,
    /// The spec wants the queue marked.
    pub is_to_mark: bool,
    /// The MTU that the spec wants.
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
}

fn new_link_problem(kind: LinkProblemKind, said: impl Into<String>) -> LinkProblem {
    LinkProblem {
        kind,
        said: said.into(),
        count: None,
    }
}

/// All that is wrong or unknown of a link, each once and in a fixed order.
pub fn find_link_problems(
    ends: [&CheckedLinkEnd; 2],
    wanted: &DesiredFabricSettings,
) -> Vec<LinkProblem> {
    let mut all: Vec<LinkProblem> = ends.iter().flat_map(|end| of_one(end, wanted)).collect();
    all.extend(check_mtu(ends).or_else(|| mtu_of_spec(ends)));
    if ends.iter().all(|end| end.facts.silent.is_none()) {
        all.extend(check_dscp(ends, wanted));
        all.extend(check_pfc(ends, wanted));
        all.extend(check_ecn(ends));
    }
    all.sort();
    all.dedup();
    all
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
    let [one, other] = ends.map(|end| end.facts.mtu.value().copied());
    let (one, other) = (one?, other?);
    let is_wrong = match ends.map(CheckedLinkEnd::is_host) {
        [true, false] => one > other,
        [false, true] => other > one,
        _ => one != other,
    };
    is_wrong.then(|| {
        new_link_problem(
            LinkProblemKind::Mtu,
            format!(
                "MTU: {}",
                describe_both_ends(ends, |facts| facts
                    .mtu
                    .value()
                    .map_or_else(String::new, u64::to_string))
            ),
        )
    })
}

/// Ends that take each other's packets and are alike wrong, or one of them: what the spec wants is
/// not there.
fn mtu_of_spec(ends: [&CheckedLinkEnd; 2]) -> Option<LinkProblem> {
    let told = |end: &&CheckedLinkEnd| {
        let (found, wanted) = end.facts.mtu.value().zip(end.mtu)?;
        (*found != wanted).then(|| format!("{} {found} instead of {wanted}", end.word()))
    };
    let told: BTreeSet<String> = ends.iter().filter_map(told).collect();
    let told: Vec<String> = told.into_iter().collect();
    (!told.is_empty()).then(|| {
        new_link_problem(
            LinkProblemKind::MtuOfSpec,
            format!("MTU: {}", told.join(", ")),
        )
    })
}

/// Where the spec names no class, the DSCPs that both ends have an entry for are compared.
fn check_dscp(ends: [&CheckedLinkEnd; 2], wanted: &DesiredFabricSettings) -> Vec<LinkProblem> {
    let maps = ends.map(|end| end.facts.dscp.value());
    let watched: BTreeMap<u8, Option<u8>> = match (wanted.dscp.is_empty(), maps) {
        (false, _) => wanted
            .dscp
            .iter()
            .map(|(dscp, priority)| (*dscp, Some(*priority)))
            .collect(),
        (true, [Some(one), Some(other)]) => one
            .keys()
            .filter(|dscp| other.contains_key(dscp))
            .map(|dscp| (*dscp, None))
            .collect(),
        _ => BTreeMap::new(),
    };
    let is_wrong = |dscp: u8, wanted: Option<u8>| {
        let found: BTreeSet<Option<u8>> = maps
            .into_iter()
            .flatten()
            .map(|map| map.get(&dscp).copied())
            .collect();
        found.len() > 1 || (wanted.is_some() && found.iter().any(|found| *found != wanted))
    };
    let priority = |facts: &EndFacts, dscp: u8| match &facts.dscp {
        Fact::Is(map) => map
            .get(&dscp)
            .map_or_else(|| "none".to_owned(), u8::to_string),
        _ => "n/a".to_owned(),
    };
    let told = |(dscp, wanted): (u8, Option<u8>)| {
        let fabric = wanted.map_or_else(String::new, |wanted| format!(", the fabric {wanted}"));
        new_link_problem(
            LinkProblemKind::Dscp,
            format!(
                "DSCP {dscp} has priority: {}{fabric}",
                describe_both_ends(ends, |facts| priority(facts, dscp))
            ),
        )
    };
    watched
        .into_iter()
        .filter(|(dscp, wanted)| is_wrong(*dscp, *wanted))
        .map(told)
        .collect()
}

fn check_pfc(ends: [&CheckedLinkEnd; 2], wanted: &DesiredFabricSettings) -> Option<LinkProblem> {
    let sets: Vec<&BTreeSet<u8>> = ends
        .iter()
        .filter_map(|end| end.facts.pfc.value())
        .collect();
    let differ = sets.windows(2).any(|two| two[0] != two[1]);
    let lacks = wanted
        .lossless
        .is_some_and(|priority| sets.iter().any(|set| !set.contains(&priority)));
    let say = |facts: &EndFacts| {
        facts
            .pfc
            .value()
            .map_or_else(|| "n/a".to_owned(), format_priorities)
    };
    let fabric = wanted
        .lossless
        .map_or_else(String::new, |priority| format!(", the fabric {priority}"));
    (differ || lacks).then(|| {
        new_link_problem(
            LinkProblemKind::Pfc,
            format!("PFC: {}{fabric}", describe_both_ends(ends, say)),
        )
    })
}

/// `3, 4`; `none`.
pub fn format_priorities(all: &BTreeSet<u8>) -> String {
    if all.is_empty() {
        "none".to_owned()
    } else {
        all.iter().map(u8::to_string).collect::<Vec<_>>().join(" ")
    }
}

/// A queue is to be marked where the spec wants it, or where the other end of the link does it.
fn check_ecn(ends: [&CheckedLinkEnd; 2]) -> Vec<LinkProblem> {
    let is_marked = ends.iter().any(|end| end.facts.marking.value().is_some());
    let lacks = |end: &&&CheckedLinkEnd| {
        end.facts.marking == Fact::Absent
            && end.facts.mtu != Fact::Absent
            && (end.is_to_mark || is_marked)
    };
    ends.iter()
        .filter(lacks)
        .map(|end| {
            new_link_problem(
                LinkProblemKind::Ecn,
                format!(
                    "{}: the queue of the lossless class is not marked",
                    end.word()
                ),
            )
        })
        .collect()
}

/// What is wrong or unknown of one end by itself.
fn of_one(end: &CheckedLinkEnd, wanted: &DesiredFabricSettings) -> Vec<LinkProblem> {
    let (word, facts) = (end.word(), end.facts);
    if let Some(why) = &facts.silent {
        return vec![new_link_problem(
            LinkProblemKind::Unknown,
            format!("{word}: {why}"),
        )];
    }
    if facts.mtu == Fact::Absent {
        return vec![new_link_problem(
            LinkProblemKind::Down,
            format!(
                "{word}: there is no such {}",
                if end.is_host() { "netdev" } else { "port" }
            ),
        )];
    }
    let mut all = Vec::new();
    if facts.up == Fact::Is(false) {
        all.push(new_link_problem(
            LinkProblemKind::Down,
            format!(
                "{word}: {}",
                if end.is_host() {
                    "down, or without a link"
                } else {
                    "administratively down"
                }
            ),
        ));
    }
    let whys = [
        facts.up.why_unknown(),
        facts.mtu.why_unknown(),
        facts.dscp.why_unknown(),
        facts.pfc.why_unknown(),
        facts.marking.why_unknown(),
    ];
    all.extend(
        whys.into_iter()
            .flatten()
            .map(|why| new_link_problem(LinkProblemKind::Unknown, format!("{word}: {why}"))),
    );
    all.extend(check_end_counters(end, wanted));
    all
}

/// What its counters say.
fn check_end_counters(end: &CheckedLinkEnd, wanted: &DesiredFabricSettings) -> Vec<LinkProblem> {
    let word = end.word();
    let unknown =
        |said: &str| new_link_problem(LinkProblemKind::Unknown, format!("{word}: {said}"));
    let counted = match &end.facts.counted {
        Fact::Is(counted) => counted,
        Fact::Unknown(why) => return vec![unknown(why)],
        _ => return Vec::new(),
    };
    let mut all = Vec::new();
    for rise in &counted.rises {
        match &rise.rose {
            Fact::Is(0) => {}
            Fact::Is(rose) => {
                let problem = describe_counter_rise(end, rise, wanted);
                all.extend(problem.map(|(kind, said)| LinkProblem {
                    kind,
                    said: format!("{word}: {said}"),
                    count: Some(*rose),
                }));
            }
            Fact::Unknown(why) => all.push(unknown(why)),
            _ => {}
        }
    }
    for priority in &counted.stormed {
        all.push(new_link_problem(
            LinkProblemKind::Watchdog,
            format!("{word}: the watchdog holds priority {priority} down now"),
        ));
    }
    let has_pfc = end.facts.pfc.value().is_some_and(|pfc| !pfc.is_empty());
    let pauses = wanted.lossless.is_some() && has_pfc;
    if pauses && counted.of_meter(Meter::PauseReceived).next().is_none() {
        all.push(unknown("it counts no pause frames"));
    }
    all
}

/// What a counter that rose says of its end; nothing where it may rise.
fn describe_counter_rise(
    end: &CheckedLinkEnd,
    rise: &Rise,
    wanted: &DesiredFabricSettings,
) -> Option<(LinkProblemKind, String)> {
    let pfc = end.facts.pfc.value();
    let has_pfc = |priority: u8| pfc.is_some_and(|pfc| pfc.contains(&priority));
    let lacks_pfc = |priority: u8| pfc.is_some_and(|pfc| !pfc.contains(&priority));
    let of = rise.priority.map_or_else(
        || "the port".to_owned(),
        |priority| format!("priority {priority}"),
    );
    match (rise.meter, rise.priority) {
        (Meter::Lost, Some(priority))
            if wanted.lossless != Some(priority) && !has_pfc(priority) =>
        {
            None
        }
        (Meter::Lost, _) => Some((
            LinkProblemKind::Lost,
            format!("dropped of {of} for want of a buffer"),
        )),
        (Meter::Discarded, _) => Some((
            LinkProblemKind::Unknown,
            "packets were dropped as they came; of which class, and why, is not told".to_owned(),
        )),
        (Meter::PauseReceived, Some(priority)) if lacks_pfc(priority) => Some((
            LinkProblemKind::PausedElsewhere,
            format!("was told to pause {of}, which has no PFC here"),
        )),
        (Meter::PauseSent, Some(priority)) if lacks_pfc(priority) => Some((
            LinkProblemKind::PausedElsewhere,
            format!("told the other end to pause {of}, which has no PFC here"),
        )),
        (Meter::Storms, _) => Some((
            LinkProblemKind::Watchdog,
            format!("the watchdog cut off a pause without end of {of}"),
        )),
        _ => None,
    }
}
