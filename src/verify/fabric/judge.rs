//! What is wrong between the two ends of a link. It does not matter which end is named first.

use super::facts::EndFacts;
use super::topology::Tier;
use super::{Kind, Wanted};
use railwright_resource::Fact;
use railwright_resource::counters::names::Meter;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One end, as it is judged.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Where its device stands.
    pub tier: Tier,
    /// What it says of itself.
    pub facts: &'a EndFacts,
    /// The spec wants the queue marked.
    pub is_to_mark: bool,
    /// The MTU that the spec wants.
    pub mtu: Option<u64>,
}

impl Seen<'_> {
    fn word(&self) -> &'static str {
        self.tier.word()
    }

    fn is_host(&self) -> bool {
        self.tier == Tier::Host
    }
}

/// One thing that is wrong or unknown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
pub struct Trouble {
    /// What it is.
    pub kind: Kind,
    /// What was found, without the names of the ends.
    pub said: String,
    /// How many packets or events; nothing where none are counted.
    pub count: Option<u64>,
}

fn trouble(kind: Kind, said: impl Into<String>) -> Trouble {
    Trouble { kind, said: said.into(), count: None }
}

/// All that is wrong or unknown of a link, each once and in a fixed order.
pub fn troubles(ends: [&Seen; 2], wanted: &Wanted) -> Vec<Trouble> {
    let mut all: Vec<Trouble> = ends.iter().flat_map(|end| of_one(end, wanted)).collect();
    all.extend(mtu(ends).or_else(|| mtu_of_spec(ends)));
    if ends.iter().all(|end| end.facts.silent.is_none()) {
        all.extend(dscp(ends, wanted));
        all.extend(pfc(ends, wanted));
        all.extend(ecn(ends));
    }
    all.sort();
    all.dedup();
    all
}

/// `host 9000, leaf 1500`: what both ends say, in the order of the words.
fn both(ends: [&Seen; 2], say: impl Fn(&EndFacts) -> String) -> String {
    let mut said = ends.map(|end| format!("{} {}", end.word(), say(end.facts)));
    said.sort();
    said.join(", ")
}

/// Hosts send packets as large as their own MTU, and take larger ones; between switches both are to be equal, because either sends.
fn mtu(ends: [&Seen; 2]) -> Option<Trouble> {
    let [one, other] = ends.map(|end| end.facts.mtu.value().copied());
    let (one, other) = (one?, other?);
    let is_wrong = match ends.map(Seen::is_host) {
        [true, false] => one > other,
        [false, true] => other > one,
        _ => one != other,
    };
    is_wrong.then(|| trouble(Kind::Mtu, format!("MTU: {}", both(ends, |facts| facts.mtu.value().map_or_else(String::new, u64::to_string)))))
}

/// Ends that take each other's packets and are alike wrong, or one of them: what the spec wants is not there.
fn mtu_of_spec(ends: [&Seen; 2]) -> Option<Trouble> {
    let told = |end: &&Seen| {
        let (found, wanted) = end.facts.mtu.value().zip(end.mtu)?;
        (*found != wanted).then(|| format!("{} {found} instead of {wanted}", end.word()))
    };
    let told: BTreeSet<String> = ends.iter().filter_map(told).collect();
    let told: Vec<String> = told.into_iter().collect();
    (!told.is_empty()).then(|| trouble(Kind::MtuOfSpec, format!("MTU: {}", told.join(", "))))
}

/// Where the spec names no class, the DSCPs that both ends have an entry for are compared.
fn dscp(ends: [&Seen; 2], wanted: &Wanted) -> Vec<Trouble> {
    let maps = ends.map(|end| end.facts.dscp.value());
    let watched: BTreeMap<u8, Option<u8>> = match (wanted.dscp.is_empty(), maps) {
        (false, _) => wanted.dscp.iter().map(|(dscp, priority)| (*dscp, Some(*priority))).collect(),
        (true, [Some(one), Some(other)]) => one.keys().filter(|dscp| other.contains_key(dscp)).map(|dscp| (*dscp, None)).collect(),
        _ => BTreeMap::new(),
    };
    let is_wrong = |dscp: u8, wanted: Option<u8>| {
        let found: BTreeSet<Option<u8>> = maps.into_iter().flatten().map(|map| map.get(&dscp).copied()).collect();
        found.len() > 1 || (wanted.is_some() && found.iter().any(|found| *found != wanted))
    };
    let priority = |facts: &EndFacts, dscp: u8| match &facts.dscp {
        Fact::Is(map) => map.get(&dscp).map_or_else(|| "none".to_owned(), u8::to_string),
        _ => "n/a".to_owned(),
    };
    let told = |(dscp, wanted): (u8, Option<u8>)| {
        let fabric = wanted.map_or_else(String::new, |wanted| format!(", the fabric {wanted}"));
        trouble(Kind::Dscp, format!("DSCP {dscp} has priority: {}{fabric}", both(ends, |facts| priority(facts, dscp))))
    };
    watched.into_iter().filter(|(dscp, wanted)| is_wrong(*dscp, *wanted)).map(told).collect()
}

fn pfc(ends: [&Seen; 2], wanted: &Wanted) -> Option<Trouble> {
    let sets: Vec<&BTreeSet<u8>> = ends.iter().filter_map(|end| end.facts.pfc.value()).collect();
    let differ = sets.windows(2).any(|two| two[0] != two[1]);
    let lacks = wanted.lossless.is_some_and(|priority| sets.iter().any(|set| !set.contains(&priority)));
    let say = |facts: &EndFacts| facts.pfc.value().map_or_else(|| "n/a".to_owned(), numbers);
    let fabric = wanted.lossless.map_or_else(String::new, |priority| format!(", the fabric {priority}"));
    (differ || lacks).then(|| trouble(Kind::Pfc, format!("PFC: {}{fabric}", both(ends, say))))
}

/// `3, 4`; `none`.
pub fn numbers(all: &BTreeSet<u8>) -> String {
    if all.is_empty() { "none".to_owned() } else { all.iter().map(u8::to_string).collect::<Vec<_>>().join(" ") }
}

/// A queue is to be marked where the spec wants it, or where the other end of the link does it.
fn ecn(ends: [&Seen; 2]) -> Vec<Trouble> {
    let is_marked = ends.iter().any(|end| end.facts.marking.value().is_some());
    let lacks = |end: &&&Seen| end.facts.marking == Fact::Absent && end.facts.mtu != Fact::Absent && (end.is_to_mark || is_marked);
    ends.iter()
        .filter(lacks)
        .map(|end| trouble(Kind::Ecn, format!("{}: the queue of the lossless class is not marked", end.word())))
        .collect()
}

/// What is wrong or unknown of one end by itself.
fn of_one(end: &Seen, wanted: &Wanted) -> Vec<Trouble> {
    let (word, facts) = (end.word(), end.facts);
    if let Some(why) = &facts.silent {
        return vec![trouble(Kind::Unknown, format!("{word}: {why}"))];
    }
    if facts.mtu == Fact::Absent {
        return vec![trouble(Kind::Down, format!("{word}: there is no such {}", if end.is_host() { "netdev" } else { "port" }))];
    }
    let mut all = Vec::new();
    if facts.up == Fact::Is(false) {
        all.push(trouble(
            Kind::Down,
            format!("{word}: {}", if end.is_host() { "down, or without a link" } else { "administratively down" }),
        ));
    }
    let whys =
        [facts.up.why_unknown(), facts.mtu.why_unknown(), facts.dscp.why_unknown(), facts.pfc.why_unknown(), facts.marking.why_unknown()];
    all.extend(whys.into_iter().flatten().map(|why| trouble(Kind::Unknown, format!("{word}: {why}"))));
    all.extend(counted(end, wanted));
    all
}

/// What its counters say.
fn counted(end: &Seen, wanted: &Wanted) -> Vec<Trouble> {
    let word = end.word();
    let counted = match &end.facts.counted {
        Fact::Is(counted) => counted,
        Fact::Unknown(why) => return vec![trouble(Kind::Unknown, format!("{word}: {why}"))],
        _ => return Vec::new(),
    };
    let pfc = end.facts.pfc.value();
    let is_lossless = |priority: u8| wanted.lossless == Some(priority) || pfc.is_some_and(|pfc| pfc.contains(&priority));
    let mut all = Vec::new();
    for rise in &counted.rises {
        let rose = match &rise.rose {
            Fact::Is(0) => continue,
            Fact::Is(rose) => *rose,
            Fact::Unknown(why) => {
                all.push(trouble(Kind::Unknown, format!("{word}: {why}")));
                continue;
            }
            _ => continue,
        };
        let of = rise.priority.map_or_else(|| "the port".to_owned(), |priority| format!("priority {priority}"));
        let told = match (rise.meter, rise.priority) {
            (Meter::Lost, Some(priority)) if !is_lossless(priority) => None,
            (Meter::Lost, _) => Some((Kind::Lost, format!("{word}: dropped of {of} for want of a buffer"))),
            (Meter::Discarded, _) => {
                Some((Kind::Unknown, format!("{word}: packets were dropped as they came; of which class, and why, is not told")))
            }
            (Meter::PauseReceived, Some(priority)) if pfc.is_some_and(|pfc| !pfc.contains(&priority)) => {
                Some((Kind::PausedElsewhere, format!("{word}: was told to pause {of}, which has no PFC here")))
            }
            (Meter::PauseSent, Some(priority)) if pfc.is_some_and(|pfc| !pfc.contains(&priority)) => {
                Some((Kind::PausedElsewhere, format!("{word}: told the other end to pause {of}, which has no PFC here")))
            }
            (Meter::Storms, _) => Some((Kind::Watchdog, format!("{word}: the watchdog cut off a pause without end of {of}"))),
            _ => None,
        };
        all.extend(told.map(|(kind, said)| Trouble { kind, said, count: Some(rose) }));
    }
    let held = |priority: &u8| trouble(Kind::Watchdog, format!("{word}: the watchdog holds priority {priority} down now"));
    all.extend(counted.stormed.iter().map(held));
    let pauses = wanted.lossless.is_some() && pfc.is_some_and(|pfc| !pfc.is_empty());
    if pauses && counted.of_meter(Meter::PauseReceived).next().is_none() {
        all.push(trouble(Kind::Unknown, format!("{word}: it counts no pause frames")));
    }
    all
}
