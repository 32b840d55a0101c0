//! The screen of `watch traffic`: a few lines a look, hosts folded by what they carry, and the
//! verdict at the end; and the same as JSON.

use super::document as documents;
use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::nodeset;
use railwright_base::text::{clean_line, one_line};
use railwright_resource::Fact;
use railwright_resource::traffic::{RailTrafficRates, Rate};
use railwright_verify::CheckVerdict;
use railwright_verify::flow::{
    Flow, Look, RailTrafficState, classify_rail_traffic, find_fastest_rates,
};
use railwright_verify::result::CheckOutcome;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the document.
const FORMAT_VERSION: &str = "1.0";

/// One look, so many seconds after the first.
pub fn render_traffic_sample(seconds: u64, look: &Look) -> String {
    let mut out = String::new();
    let mut silent: BTreeMap<&str, (BTreeSet<&str>, BTreeSet<&str>)> = BTreeMap::new();
    let mut time = format!("{seconds:>5} s  ");
    let most = find_fastest_rates(look.values().flat_map(BTreeMap::values));
    for (netdev, hosts) in look {
        let mut identical: BTreeMap<RailTrafficState, Vec<(&str, &RailTrafficRates)>> =
            BTreeMap::new();
        for (host, fact) in hosts {
            let why = match fact {
                // Where nothing passes anywhere, nobody stands still beside others.
                Fact::Is(rates) => {
                    identical
                        .entry(classify_rail_traffic(fact, most))
                        .or_default()
                        .push((host, rates));
                    continue;
                }
                Fact::Unknown(why) => why.as_words(),
                _ => "the netdev is not there",
            };
            let (netdevs, hosts) = silent.entry(why).or_default();
            netdevs.insert(netdev);
            hosts.insert(host);
        }
        for (how, rails) in identical {
            let mark = if how == RailTrafficState::BothWays || most.is_nothing() {
                ' '
            } else {
                '!'
            };
            let head = format!("{time}{mark} {:<12} ", one_line(netdev, 15));
            out.push_str(&wrap_labelled_text(&head, &describe_rates(&rails), COLUMNS));
            time = " ".repeat(time.len());
        }
    }
    for (why, (netdevs, hosts)) in silent {
        let netdevs = nodeset::fold_node_set(&netdevs.into_iter().collect::<Vec<_>>());
        let hosts = nodeset::fold_node_set(&hosts.into_iter().collect::<Vec<_>>());
        out.push_str(&wrap_labelled_text(
            &format!("{time}? "),
            &format!(
                "{} of {}: {}",
                one_line(&netdevs, 80),
                one_line(&hosts, 200),
                clean_line(why)
            ),
            COLUMNS,
        ));
        time = " ".repeat(time.len());
    }
    out.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// What was received and sent on these rails, and by which hosts.
fn describe_rates(rails: &[(&str, &RailTrafficRates)]) -> String {
    let hosts = nodeset::fold_node_set(&rails.iter().map(|(host, _)| *host).collect::<Vec<_>>());
    let received = format_rate_range(rails.iter().map(|(_, rates)| rates.received));
    let sent = format_rate_range(rails.iter().map(|(_, rates)| rates.sent));
    format!("rx {received:<20} tx {sent:<20} {}", one_line(&hosts, 200))
}

/// The least and the most of them.
fn format_rate_range(rates: impl Iterator<Item = Rate>) -> String {
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
pub fn render_traffic_verdict(evaluation: &CheckOutcome) -> String {
    let title = match evaluation.verdict {
        CheckVerdict::Failed => "NOT ALL RAILS CARRY",
        CheckVerdict::Unknown => "INCONCLUSIVE",
        _ => "ALL RAILS CARRY",
    };
    let mut out = render_heading(title);
    let code = match evaluation.code {
        Some(code) => format!("{code}   "),
        None => String::new(),
    };
    out.push_str(&wrap_labelled_text(
        "   actual  ",
        &format!("{code}{}", evaluation.measured),
        COLUMNS,
    ));
    let rows = [
        ("desired", &evaluation.expected),
        ("means", &evaluation.effect),
        ("next", &evaluation.next),
    ];
    for (word, text) in rows {
        if !text.is_empty() && evaluation.code.is_some() {
            out.push_str(&wrap_labelled_text(&format!("   {word:<8}"), text, COLUMNS));
        }
    }
    out
}

/// `watch traffic --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct WatchTrafficDocument<'a> {
    format_version: &'static str,
    /// The inventory, as it was named.
    inventory: &'a str,
    /// What all looks say together: `passed`, `failed` where a rail carries nothing, `unknown`.
    verdict: CheckVerdict,
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
    carried: RailTrafficState,
    /// The most of each direction, over all looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<RailTrafficRates>,
    /// Why nobody can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

/// All of it as JSON.
pub fn render_traffic_json(inventory: &str, flow: &Flow, evaluation: &CheckOutcome) -> String {
    let document = WatchTrafficDocument {
        format_version: FORMAT_VERSION,
        inventory,
        verdict: evaluation.verdict,
        code: evaluation.code,
        measured: &evaluation.measured,
        rails: flow
            .rails()
            .map(|(netdev, host, fact, carried)| RailDocument {
                host,
                netdev,
                carried,
                most: fact.value().copied(),
                why: fact.why_unknown().map(|why| clean_line(why.as_words())),
            })
            .collect(),
    };
    documents::render_json_document(&document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_folded_where_they_carry_alike() {
        let rates = |received, sent| {
            Fact::Is(RailTrafficRates {
                received: Rate::GigabitsPerSecond(received),
                sent: Rate::GigabitsPerSecond(sent),
            })
        };
        let mut hosts: BTreeMap<String, Fact<RailTrafficRates>> = (1..=1000)
            .map(|n| (format!("gpu{n:04}"), rates(190.0 + f64::from(n % 7), 188.0)))
            .collect();
        hosts.insert("gpu0007".to_owned(), rates(0.0, 0.0));
        hosts.insert(
            "gpu0009".to_owned(),
            Fact::Unknown("no answer (RW0402)".into()),
        );
        let soft = Fact::Is(RailTrafficRates {
            received: Rate::PacketsPerSecond(10.0),
            sent: Rate::PacketsPerSecond(12.0),
        });
        let seen = Look::from([
            ("ens1f0np0".to_owned(), hosts),
            ("eth9".to_owned(), [("gpu0001".to_owned(), soft)].into()),
        ]);
        insta::assert_snapshot!(render_traffic_sample(4, &seen), @r"
            4 s    ens1f0np0    rx 190.00..196.00 Gb/s  tx 188.00 Gb/s
                                gpu[0001-0006,0008,0010-1000]
                 ! ens1f0np0    rx 0.00 Gb/s            tx 0.00 Gb/s            gpu0007
                   eth9         rx 10 packets/s         tx 12 packets/s         gpu0001
                 ? ens1f0np0 of gpu0009: no answer (RW0402)
        ");
    }
}
