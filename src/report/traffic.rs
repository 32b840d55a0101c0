//! The screen of `watch traffic`: a few lines a look, hosts folded where they carry alike, and the verdict at the end; and the same as JSON.

use super::document as documents;
use super::wrap::{COLUMNS, labelled, rule};
use railwright_base::nodeset;
use railwright_base::text::{clean_line, one_line};
use railwright_resource::Fact;
use railwright_resource::traffic::{Rate, Rates};
use railwright_verify::Verdict;
use railwright_verify::flow::{Carried, Flow, Look, carried, fastest};
use railwright_verify::result::Judgement;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the document.
const FORMAT_VERSION: &str = "1.0";

/// One look, so many seconds after the first.
pub fn look(seconds: u64, look: &Look) -> String {
    let mut out = String::new();
    let mut silent: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    let mut time = format!("{seconds:>5} s  ");
    let most = fastest(look.values().flat_map(BTreeMap::values));
    for (netdev, hosts) in look {
        let mut alike: BTreeMap<Carried, Vec<(&str, &Rates)>> = BTreeMap::new();
        for (host, fact) in hosts {
            let why = match fact {
                // Where nothing passes anywhere, nobody stands still beside others.
                Fact::Is(rates) => {
                    alike.entry(carried(fact, most)).or_default().push((host, rates));
                    continue;
                }
                Fact::Unknown(why) => why,
                _ => "the netdev is not there",
            };
            let (netdevs, hosts) = silent.entry(why).or_default();
            netdevs.insert(netdev);
            hosts.insert(host);
        }
        for (how, rails) in alike {
            let mark = if how == Carried::BothWays || most.is_nothing() { ' ' } else { '!' };
            let hosts = nodeset::fold(&rails.iter().map(|(host, _)| *host).collect::<Vec<_>>());
            let received = range(rails.iter().map(|(_, rates)| rates.received));
            let sent = range(rails.iter().map(|(_, rates)| rates.sent));
            let head = format!("{time}{mark} {:<12} ", one_line(netdev, 15));
            out.push_str(&labelled(&head, &format!("rx {received:<20} tx {sent:<20} {}", one_line(&hosts, 200)), COLUMNS));
            time = " ".repeat(time.len());
        }
    }
    for (why, (netdevs, hosts)) in silent {
        let netdevs = nodeset::fold(&netdevs.into_iter().collect::<Vec<_>>());
        let hosts = nodeset::fold(&hosts.into_iter().collect::<Vec<_>>());
        out.push_str(&labelled(
            &format!("{time}? "),
            &format!("{} of {}: {}", one_line(&netdevs, 80), one_line(&hosts, 200), clean_line(why)),
            COLUMNS,
        ));
        time = " ".repeat(time.len());
    }
    out.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The least and the most of them.
fn range(rates: impl Iterator<Item = Rate>) -> String {
    let rates: Vec<Rate> = rates.collect();
    let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
    for rate in &rates {
        (least, most) = (least.min(rate.number()), most.max(rate.number()));
    }
    let unit = match rates.first() {
        Some(Rate::PacketsPerSecond(_)) => "packets/s",
        _ => "Gb/s",
    };
    let digits = if unit == "Gb/s" { 2 } else { 0 };
    let shown = [least, most].map(|number| format!("{number:.digits$}"));
    match shown[0] == shown[1] {
        true => format!("{} {unit}", shown[0]),
        false => format!("{}..{} {unit}", shown[0], shown[1]),
    }
}

/// What all looks say together.
pub fn end(judgement: &Judgement) -> String {
    let title = match judgement.verdict {
        Verdict::Failed => "NOT ALL RAILS CARRY",
        Verdict::Unknown => "NOT KNOWN",
        _ => "ALL RAILS CARRY",
    };
    let mut out = rule(title);
    let code = judgement.code.map_or(String::new(), |code| format!("{code}   "));
    out.push_str(&labelled("   found   ", &format!("{code}{}", judgement.measured), COLUMNS));
    let rows = [("wanted", &judgement.expected), ("means", &judgement.effect), ("next", &judgement.next)];
    let told = rows.into_iter().filter(|(_, text)| !text.is_empty() && judgement.code.is_some());
    out.extend(told.map(|(word, text)| labelled(&format!("   {word:<8}"), text, COLUMNS)));
    out
}

/// `watch traffic --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrafficDocument<'a> {
    format_version: &'static str,
    /// The inventory, as it was named.
    inventory: &'a str,
    /// What all looks say together: `passed`, `failed` where a rail carries nothing, `unknown`.
    verdict: Verdict,
    /// A code of `railwright explain`, for all but `passed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// In words.
    measured: &'a str,
    /// Every rail with the most that it carried in a look.
    rails: Vec<RailDocument<'a>>,
}

/// A rail of a host.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RailDocument<'a> {
    host: &'a str,
    netdev: &'a str,
    carried: Carried,
    /// The most of each direction, over all looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<Rates>,
    /// Why nobody can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// All of it as JSON.
pub fn json(inventory: &str, flow: &Flow, judgement: &Judgement) -> String {
    let rail = |(netdev, host, fact, carried): (&'_ str, &'_ str, &Fact<Rates>, Carried)| {
        (netdev.to_owned(), host.to_owned(), fact.clone(), carried)
    };
    let rails: Vec<_> = flow.rails().map(rail).collect();
    let document = TrafficDocument {
        format_version: FORMAT_VERSION,
        inventory,
        verdict: judgement.verdict,
        code: judgement.code,
        measured: &judgement.measured,
        rails: rails
            .iter()
            .map(|(netdev, host, fact, carried)| RailDocument {
                host,
                netdev,
                carried: *carried,
                most: fact.value().copied(),
                why: fact.why_unknown().map(clean_line),
            })
            .collect(),
    };
    documents::text(&document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_folded_where_they_carry_alike() {
        let rates = |received, sent| Fact::Is(Rates { received: Rate::GigabitsPerSecond(received), sent: Rate::GigabitsPerSecond(sent) });
        let mut hosts: BTreeMap<String, Fact<Rates>> =
            (1..=1000).map(|n| (format!("gpu{n:04}"), rates(190.0 + f64::from(n % 7), 188.0))).collect();
        hosts.insert("gpu0007".to_owned(), rates(0.0, 0.0));
        hosts.insert("gpu0009".to_owned(), Fact::Unknown("no answer (RW0402)".to_owned()));
        let soft = Fact::Is(Rates { received: Rate::PacketsPerSecond(10.0), sent: Rate::PacketsPerSecond(12.0) });
        let seen = Look::from([("ens1f0np0".to_owned(), hosts), ("eth9".to_owned(), [("gpu0001".to_owned(), soft)].into())]);
        insta::assert_snapshot!(look(4, &seen), @r"
            4 s    ens1f0np0    rx 190.00..196.00 Gb/s  tx 188.00 Gb/s
                                gpu[0001-0006,0008,0010-1000]
                 ! ens1f0np0    rx 0.00 Gb/s            tx 0.00 Gb/s            gpu0007
                   eth9         rx 10 packets/s         tx 12 packets/s         gpu0001
                 ? ens1f0np0 of gpu0009: no answer (RW0402)
        ");
    }
}
