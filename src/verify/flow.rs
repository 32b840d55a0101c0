//! Live traffic over the rails of hosts, look after look, and what it says in the end: a job that
//! uses all rails moves data in both directions on each of them.

use super::result::CheckOutcome;
use railwright_base::nodeset;
use railwright_base::text::format_count;
use railwright_resource::Fact;
use railwright_resource::traffic::{RailTrafficRates, Rate};
use std::collections::{BTreeMap, BTreeSet};

/// A rail that carries less than this share of the fastest of all stands still beside it: what
/// keeps connections alive is far below.
const STILL: f64 = 0.01;

/// What passed over the rails in one look, by netdev and host.
pub type Look = BTreeMap<String, BTreeMap<String, Fact<RailTrafficRates>>>;

/// The most of each rail over all looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Flow {
    looks: usize,
    rails: BTreeMap<String, BTreeMap<String, Fact<RailTrafficRates>>>,
}

/// What is expected of a job that uses all rails.
const WANTED: &str = "every rail carries data in both directions";

/// How a rail carried.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RailTrafficState {
    /// Data in both directions.
    BothWays,
    /// In one direction only, or next to nothing in the other.
    OneWay,
    /// Nothing, while others carry.
    Nothing,
    /// Nobody can tell.
    Unknown,
}

impl Flow {
    /// Takes a look.
    pub fn take(&mut self, look: &Look) {
        self.looks += 1;
        for (netdev, hosts) in look {
            let known = self.rails.entry(netdev.clone()).or_default();
            for (host, fact) in hosts {
                let most = match known.remove(host) {
                    Some(before) => merge_best_rates(before, fact),
                    None => fact.clone(),
                };
                known.insert(host.clone(), most);
            }
        }
    }

    /// Every rail with the most that it carried, and how.
    pub fn rails(
        &self,
    ) -> impl Iterator<Item = (&str, &str, &Fact<RailTrafficRates>, RailTrafficState)> {
        let fastest = find_fastest_rates(self.rails.values().flat_map(BTreeMap::values));
        self.rails.iter().flat_map(move |(netdev, hosts)| {
            hosts.iter().map(move |(host, fact)| {
                (
                    netdev.as_str(),
                    host.as_str(),
                    fact,
                    classify_rail_traffic(fact, fastest),
                )
            })
        })
    }

    /// Rails that carried like this, in words: `ens0f0np0 of gpu[1-2]`; nothing where none did.
    pub fn told(&self, desired: RailTrafficState) -> Option<String> {
        let mut rails: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (netdev, host, ..) in self.rails().filter(|(.., carried)| *carried == desired) {
            rails.entry(netdev).or_default().insert(host);
        }
        // Netdevs of the same hosts are reported together.
        let mut of_hosts: BTreeMap<&BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
        for (netdev, hosts) in &rails {
            of_hosts.entry(hosts).or_default().push(netdev);
        }
        let mut parts = Vec::new();
        for (hosts, netdevs) in of_hosts {
            let hosts: Vec<&str> = hosts.iter().copied().collect();
            parts.push(format!(
                "{} of {}",
                nodeset::fold_node_set(&netdevs),
                nodeset::fold_node_set(&hosts)
            ));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// How many rails carried like this.
    pub fn count(&self, desired: RailTrafficState) -> usize {
        self.rails()
            .filter(|(.., carried)| *carried == desired)
            .count()
    }

    /// All of it.
    pub fn evaluate(&self, inventory: &str) -> CheckOutcome {
        let both = self.count(RailTrafficState::BothWays);
        let one_way = self.count(RailTrafficState::OneWay);
        if both + one_way == 0 {
            return self.report_idle_rails(inventory).expected(WANTED);
        }
        if one_way + self.count(RailTrafficState::Nothing) > 0 {
            let wrong = [
                self.describe_rails(RailTrafficState::OneWay, "one way only"),
                self.describe_rails(RailTrafficState::Nothing, "nothing"),
            ];
            let wrong: Vec<String> = wrong.into_iter().flatten().collect();
            return CheckOutcome::failed("RW0824", wrong.join("; "))
                .expected(WANTED)
                .effect(
                    "the job goes over fewer NICs than there are, and at the speed of its slowest \
                     host",
                )
                .next(format!(
                    "railwright verify {inventory} proves each rail by itself; compare NCCL_IB_HCA \
                     with the names of the devices"
                ));
        }
        if let Some(unknown) = self.describe_rails(RailTrafficState::Unknown, "unknown") {
            return CheckOutcome::unknown("RW0823", unknown)
                .expected(WANTED)
                .effect("what these rails carry is not proven")
                .next("railwright explain RW0823");
        }
        CheckOutcome::passed(format!(
            "{} carried data in both directions",
            format_count(both, "rail")
        ))
        .expected(WANTED)
    }

    /// Nothing where no rail carried like this.
    fn describe_rails(&self, carried: RailTrafficState, word: &str) -> Option<String> {
        Some(format!("{word}: {}", self.told(carried)?))
    }

    fn report_idle_rails(&self, inventory: &str) -> CheckOutcome {
        match self.describe_rails(RailTrafficState::Unknown, "unknown") {
            Some(unknown) => CheckOutcome::unknown("RW0823", unknown)
                .effect("nothing is proven of what these rails carry")
                .next(format!(
                    "railwright verify {inventory} shows what is the matter with them"
                )),
            None => CheckOutcome::unknown("RW0823", "nothing passed over any rail")
                .effect("nothing is proven: no job ran, or it does not use RDMA")
                .next(format!(
                    "start a job, and look while it runs: railwright watch traffic {inventory}"
                )),
        }
    }
}

/// The greatest rates, in either direction: what is counted in packets is not compared with what is
/// counted in bits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fastest {
    gbps: f64,
    packets: f64,
}

impl Fastest {
    fn of(&self, rate: Rate) -> f64 {
        match rate {
            Rate::GigabitsPerSecond(_) => self.gbps,
            Rate::PacketsPerSecond(_) => self.packets,
        }
    }

    fn is_moving(&self, rate: Rate) -> bool {
        rate.number() > 0.0 && rate.number() >= self.of(rate) * STILL
    }

    /// Nothing passed anywhere.
    pub fn is_nothing(&self) -> bool {
        self.gbps == 0.0 && self.packets == 0.0
    }
}

/// The greatest rates of these.
pub fn find_fastest_rates<'f>(facts: impl Iterator<Item = &'f Fact<RailTrafficRates>>) -> Fastest {
    let mut fastest = Fastest::default();
    for rates in facts.filter_map(Fact::value) {
        for rate in [rates.received, rates.sent] {
            match rate {
                Rate::GigabitsPerSecond(number) => fastest.gbps = fastest.gbps.max(number),
                Rate::PacketsPerSecond(number) => fastest.packets = fastest.packets.max(number),
            }
        }
    }
    fastest
}

/// How a rail carries beside the fastest of all.
pub fn classify_rail_traffic(fact: &Fact<RailTrafficRates>, fastest: Fastest) -> RailTrafficState {
    let Some(rates) = fact.value() else {
        return RailTrafficState::Unknown;
    };
    match [rates.received, rates.sent].map(|rate| fastest.is_moving(rate)) {
        [true, true] => RailTrafficState::BothWays,
        [false, false] => RailTrafficState::Nothing,
        _ => RailTrafficState::OneWay,
    }
}

/// The more of two looks: what a rail can do is shown by its best one, in each direction.
fn merge_best_rates(
    before: Fact<RailTrafficRates>,
    now: &Fact<RailTrafficRates>,
) -> Fact<RailTrafficRates> {
    match (&before, now) {
        (Fact::Is(one), Fact::Is(other)) => Fact::Is(RailTrafficRates {
            received: greater_rate(one.received, other.received),
            sent: greater_rate(one.sent, other.sent),
        }),
        (Fact::Is(_), _) => before,
        _ => now.clone(),
    }
}

fn greater_rate(one: Rate, other: Rate) -> Rate {
    if other.number() > one.number() {
        other
    } else {
        one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;

    fn rates(received: f64, sent: f64) -> Fact<RailTrafficRates> {
        Fact::Is(RailTrafficRates {
            received: Rate::GigabitsPerSecond(received),
            sent: Rate::GigabitsPerSecond(sent),
        })
    }

    fn evaluated(looks: &[&[(&str, &str, Fact<RailTrafficRates>)]]) -> CheckOutcome {
        let mut flow = Flow::default();
        for rails in looks {
            let mut look = Look::new();
            rails.iter().for_each(|(netdev, host, fact)| {
                drop(
                    look.entry((*netdev).to_owned())
                        .or_default()
                        .insert((*host).to_owned(), fact.clone()),
                )
            });
            flow.take(&look);
        }
        flow.evaluate("inv")
    }

    #[test]
    fn every_rail_has_to_carry_both_ways_in_some_look() {
        let quiet = rates(0.0, 0.0);
        let good = evaluated(&[
            &[("e0", "a", quiet.clone()), ("e0", "b", rates(90.0, 80.0))],
            &[("e0", "a", rates(95.0, 99.0)), ("e0", "b", quiet.clone())],
        ]);
        assert_eq!(
            (good.verdict, good.measured.as_str()),
            (
                CheckVerdict::Passed,
                "2 rails carried data in both directions"
            )
        );
        let bad = evaluated(&[&[
            ("e0", "a1", rates(90.0, 90.0)),
            ("e0", "a2", rates(90.0, 0.5)),
            ("e1", "a1", rates(50.0, 50.0)),
            ("e1", "a2", quiet.clone()),
        ]]);
        assert_eq!(
            (bad.code, bad.measured.as_str()),
            (Some("RW0824"), "one way only: e0 of a2; nothing: e1 of a2")
        );
        // A second rail on which connections are kept alive and nothing is sent, as with a wrong
        // list of devices.
        let idle = evaluated(&[&[
            ("e0", "a", rates(100.0, 100.0)),
            ("e1", "a", rates(0.000_001, 0.000_001)),
        ]]);
        assert_eq!(
            (idle.code, idle.measured.as_str()),
            (Some("RW0824"), "nothing: e1 of a")
        );
        let soft = Fact::Is(RailTrafficRates {
            received: Rate::PacketsPerSecond(1e6),
            sent: Rate::PacketsPerSecond(1e6),
        });
        assert_eq!(
            evaluated(&[&[("e0", "a", rates(90.0, 90.0)), ("e0", "b", soft)]]).verdict,
            CheckVerdict::Passed,
            "unlike units"
        );
        assert_eq!(
            (
                evaluated(&[&[("e0", "a", quiet)]]).code,
                evaluated(&[]).code
            ),
            (Some("RW0823"), Some("RW0823"))
        );
    }

    #[test]
    fn what_nobody_can_tell_proves_nothing() {
        let silent = Fact::Unknown("no answer".into());
        let some = evaluated(&[&[("e0", "a", rates(1.0, 1.0)), ("e0", "b", silent.clone())]]);
        assert_eq!(
            (some.verdict, some.measured.as_str()),
            (CheckVerdict::Unknown, "unknown: e0 of b")
        );
        // A look that failed takes nothing away from one that did not.
        let later = evaluated(&[&[("e0", "a", rates(1.0, 1.0))], &[("e0", "a", silent)]]);
        assert_eq!(later.verdict, CheckVerdict::Passed);
    }
}
