//! Rounds of pairs: in a round no host is in two pairs, so that each pair has both NICs for itself.
//! Pure.
//!
//! The circle method of round-robin tournaments: with an even number of hosts every round pairs all
//! of them, and all rounds together pair everybody once. Two neighbouring rounds form one ring
//! through all hosts, so that even a sample ties the whole rail together; further rounds are spread
//! evenly, and each rail starts elsewhere. No randomness: the same hosts give the same rounds.

use std::collections::BTreeMap;

/// Up to this many hosts every pair is tested.
pub const FULL_MATRIX_HOSTS: usize = 8;
/// Rounds per rail for more hosts than that.
pub const SAMPLED_ROUNDS: usize = 4;

/// Pairs of one rail that run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    /// The rail.
    pub rail: u32,
    /// Hosts that talk to each other, both ways one after the other.
    pub pairs: Vec<(String, String)>,
}

/// The rounds for the hosts of each rail; at most `limit` a rail, or as many as the number of hosts
/// calls for.
pub fn schedule_rounds(
    hosts_by_rail: &BTreeMap<u32, Vec<String>>,
    limit: Option<usize>,
) -> Vec<Round> {
    let mut out = Vec::new();
    for (place, (rail, hosts)) in hosts_by_rail.iter().enumerate() {
        let mut hosts = hosts.clone();
        hosts.sort();
        hosts.dedup();
        if hosts.len() < 2 {
            continue;
        }
        let all = hosts.len() + hosts.len() % 2 - 1;
        let limit = limit.unwrap_or(if hosts.len() <= FULL_MATRIX_HOSTS {
            all
        } else {
            SAMPLED_ROUNDS
        });
        for number in select_rounds(all, limit, place) {
            out.push(Round {
                rail: *rail,
                pairs: pair_round_hosts(&hosts, number),
            });
        }
    }
    out
}

/// Which of `all` rounds: two neighbours, then evenly spread ones, shifted by the rail's place.
fn select_rounds(all: usize, limit: usize, place: usize) -> Vec<usize> {
    if limit >= all {
        return (0..all).collect();
    }
    let start = place * limit % all;
    let mut out: Vec<usize> = Vec::new();
    for k in 0..limit {
        let spread = match k {
            0 | 1 => k,
            _ => 1 + (k - 1) * (all - 1) / (limit.max(2) - 1).max(1),
        };
        let number = (start + spread) % all;
        if !out.contains(&number) {
            out.push(number);
        }
    }
    out
}

/// One round: the last seat stands still, the others turn; an odd one out rests.
fn pair_round_hosts(hosts: &[String], round: usize) -> Vec<(String, String)> {
    let seats = hosts.len() + hosts.len() % 2;
    let turning = seats - 1;
    let mut places = vec![(round % turning, turning)];
    for k in 1..seats / 2 {
        places.push(((round + k) % turning, (round + turning - k) % turning));
    }
    let mut pairs = Vec::new();
    for (one, other) in places {
        if let (Some(one), Some(other)) = (hosts.get(one), hosts.get(other)) {
            pairs.push((one.clone(), other.clone()));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn rail(n: usize) -> BTreeMap<u32, Vec<String>> {
        BTreeMap::from([(0, (0..n).map(|i| format!("n{i:04}")).collect())])
    }

    #[test]
    fn one_host_has_no_pair_and_three_hosts_rest_in_turn() {
        assert!(schedule_rounds(&rail(1), None).is_empty());
        let three = schedule_rounds(&rail(3), None);
        assert_eq!(three.len(), 3);
        assert!(three.iter().all(|r| r.pairs.len() == 1));
    }

    #[test]
    fn rails_of_a_large_cluster_sample_different_pairs() {
        let hosts = rail(100)[&0].clone();
        let all = schedule_rounds(&BTreeMap::from([(0, hosts.clone()), (1, hosts)]), None);
        assert_eq!(all.len(), 2 * SAMPLED_ROUNDS);
        assert_ne!(all[0].pairs, all[SAMPLED_ROUNDS].pairs);
    }

    /// Walks from the first host over the pairs; true when every host is met.
    fn connected(n: usize, rounds: &[Round]) -> bool {
        let mut met = BTreeSet::from(["n0000".to_owned()]);
        loop {
            let before = met.len();
            for (a, b) in rounds.iter().flat_map(|r| &r.pairs) {
                if met.contains(a) || met.contains(b) {
                    met.extend([a.clone(), b.clone()]);
                }
            }
            if met.len() == before {
                return before == n;
            }
        }
    }

    proptest! {
        #[test]
        fn no_host_is_twice_in_a_round_and_no_pair_twice_at_all(n in 2usize..60, limit in proptest::option::of(1usize..70)) {
            let all = schedule_rounds(&rail(n), limit);
            let mut seen = BTreeSet::new();
            for round in &all {
                let mut busy = BTreeSet::new();
                for (a, b) in &round.pairs {
                    prop_assert!(busy.insert(a.clone()) && busy.insert(b.clone()));
                    prop_assert!(seen.insert((a.min(b).clone(), a.max(b).clone())));
                }
                prop_assert_eq!(round.pairs.len(), n / 2);
            }
            if limit.is_none() && n <= FULL_MATRIX_HOSTS {
                prop_assert_eq!(seen.len(), n * (n - 1) / 2);
            }
            if limit.unwrap_or(SAMPLED_ROUNDS) >= 2 {
                prop_assert!(connected(n, &all));
            }
        }

        #[test]
        fn the_limit_holds_and_host_order_does_not_matter(n in 2usize..60, limit in 1usize..10) {
            let mut backwards = rail(n);
            backwards.get_mut(&0).unwrap().reverse();
            let all = schedule_rounds(&rail(n), Some(limit));
            prop_assert!(all.len() <= limit);
            prop_assert_eq!(all, schedule_rounds(&backwards, Some(limit)));
        }
    }
}
