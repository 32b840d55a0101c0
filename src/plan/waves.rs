//! Hosts are taken in turn: the canary, then one batch after the other, with a gate after each
//! wave.
//!
//! The rules:
//!
//! - Where an earlier run left hosts out of service, they are a wave before all others, with their
//!   steps if they have any:
//!   what broke them may break every further host, so nobody else is disturbed before a gate has passed them.
//! - The first wave of the others has the first `canary` hosts of *each* hardware class: what
//!   breaks on one GPU, NIC or system only is
//!   seen on one host of it.
//! - Each wave after it is a rung of the ladder, the last rung repeated.
//! - With failure domains, a wave after the first has hosts of one domain only: where the domain
//!   has fewer hosts left
//!   than the rung asks for, the wave ends with the domain, and the next one begins with the next domain. So what a wave
//!   takes down is at most what a rack's power or a leaf switch takes down anyway. Domains follow each other in the order
//!   of their first hosts.
//!
//! How many of a wave's hosts are out of service at the same time is not decided here: the
//! scheduler keeps that budget, also where a wave is larger.

use super::model::{NodeKind, PlanNode};
use super::part::TargetPlan;
use super::policy::RolloutPolicy;
use indexmap::IndexMap;
use railwright_base::{Target, TargetKind};
use railwright_resource::Disruption;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Gives every part its wave and makes its first steps wait for the gate before it. The gates, one
/// after each wave, each followed by what gives nodes back that it proved. Blocked nodes stay outside:
/// they neither open a wave nor keep a gate waiting.
pub fn roll_out(
    parts: &mut [TargetPlan],
    targets: &[Target],
    verified_first: &BTreeSet<Target>,
    policy: &RolloutPolicy,
) -> Vec<PlanNode> {
    let waves = list_waves(parts, targets, verified_first, policy);
    let mut wave_of: BTreeMap<&Target, usize> = BTreeMap::new();
    for (wave, hosts) in waves.iter().enumerate() {
        wave_of.extend(hosts.iter().map(|host| (host, wave)));
    }
    let first = list_steps_before_hosts(parts);
    let mut ends: Vec<Vec<String>> = vec![Vec::new(); waves.len()];
    if let Some(ends) = ends.first_mut() {
        ends.clone_from(&first);
    }
    let mut given_back = Vec::new();
    for part in parts {
        let open = part.is_open();
        // What runs on the nodes comes once the nodes are right.
        let after_all = if part.target.kind != TargetKind::Host && !part.before_hosts {
            waves.len()
        } else {
            0
        };
        part.wave = wave_of.get(&part.target).copied().unwrap_or(after_all);
        bind_steps_to_wave(part, &first);
        if let Some(uncordon) = part.uncordon.take() {
            given_back.push(PlanNode {
                wave: part.wave,
                after: vec![gate_id(part.wave)],
                ..uncordon
            });
        }
        if part.target.kind == TargetKind::Host && open {
            ends[part.wave].extend(part.last().map(|node| node.id.clone()));
        }
    }
    let mut gates: Vec<PlanNode> = Vec::new();
    for (wave, (hosts, after)) in waves.iter().zip(ends).enumerate() {
        gates.push(build_gate_node(wave, hosts, after));
    }
    gates.extend(given_back);
    gates.sort_by_key(|node| node.wave);
    gates
}

/// The ids of the last steps that all hosts wait for.
fn list_steps_before_hosts(parts: &[TargetPlan]) -> Vec<String> {
    let mut ids = Vec::new();
    for part in parts {
        if part.before_hosts {
            ids.extend(part.last().map(|node| node.id.clone()));
        }
    }
    ids
}

/// The hosts of each wave, those that an earlier run left out of service before all others.
fn list_waves(
    parts: &[TargetPlan],
    targets: &[Target],
    verified_first: &BTreeSet<Target>,
    policy: &RolloutPolicy,
) -> Vec<Vec<Target>> {
    let open = parts.iter().filter(|part| part.is_open());
    let active: BTreeSet<&Target> = open.map(|part| &part.target).collect();
    let (mut left, mut hosts) = (Vec::new(), Vec::new());
    for target in targets {
        if target.kind != TargetKind::Host {
            continue;
        }
        if verified_first.contains(target) {
            left.push(target.clone());
        } else if active.contains(target) {
            hosts.push(target.clone());
        }
    }
    let mut waves = split_into_waves(&hosts, policy);
    if !left.is_empty() {
        waves.insert(0, left);
    }
    waves
}

/// Lets a part's first steps wait for the gate before its wave; in the first wave those of a host
/// wait for `before_hosts`.
fn bind_steps_to_wave(part: &mut TargetPlan, before_hosts: &[String]) {
    let wave = part.wave;
    for node in &mut part.nodes {
        node.wave = wave;
    }
    if let Some(before) = wave.checked_sub(1) {
        for node in part.first() {
            node.after.push(gate_id(before));
        }
    } else if part.target.kind == TargetKind::Host {
        for node in part.first() {
            node.after.extend(before_hosts.iter().cloned());
        }
    }
}

/// The hosts of each wave, in the spec's order.
pub(super) fn split_into_waves(hosts: &[Target], policy: &RolloutPolicy) -> Vec<Vec<Target>> {
    if hosts.is_empty() {
        return Vec::new();
    }
    let (canary, rest) = split_canary_hosts(hosts, policy);
    let mut waves = vec![canary];
    let mut ladder = policy.ladder();
    for mut domain in split_failure_domains(rest, policy) {
        while !domain.is_empty() {
            let size = ladder.next().unwrap_or(1).clamp(1, domain.len());
            waves.push(domain.drain(..size).collect());
        }
    }
    waves
}

/// The first hosts of each hardware class, and all others.
fn split_canary_hosts(hosts: &[Target], policy: &RolloutPolicy) -> (Vec<Target>, Vec<Target>) {
    let class_of = policy.class_of();
    let of_each = policy.canary.clamp(1, policy.max_unavailable.max(1));
    let mut taken: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    hosts.iter().cloned().partition(|host| {
        let taken = taken.entry(class_of.get(&*host.name).copied()).or_default();
        *taken += 1;
        *taken <= of_each
    })
}

/// The hosts of each failure domain, in the order of their first hosts; all in one where waves do
/// not keep to domains.
fn split_failure_domains(hosts: Vec<Target>, policy: &RolloutPolicy) -> Vec<Vec<Target>> {
    let domain_of = policy.domain_of();
    let mut domains: IndexMap<Option<&str>, Vec<Target>> = IndexMap::new();
    for host in hosts {
        domains
            .entry(domain_of.get(&*host.name).copied())
            .or_default()
            .push(host);
    }
    domains.into_values().collect()
}

/// The gate of a wave.
pub(super) fn gate_id(wave: usize) -> String {
    format!("gate/{wave}")
}

/// The gate waits for every step of its wave for which nothing else of its host waits.
pub(super) fn build_gate_node(wave: usize, hosts: &[Target], mut after: Vec<String>) -> PlanNode {
    after.sort();
    PlanNode {
        id: gate_id(wave),
        kind: NodeKind::Gate {
            hosts: hosts.iter().map(|h| h.name.to_string()).collect(),
        },
        target: None,
        disruption: Disruption::None,
        interrupts: Arc::default(),
        after,
        wave,
        blocked: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use railwright_base::nodeset;

    fn hosts(set: &str) -> Vec<Target> {
        nodeset::expand_node_set(set)
            .unwrap()
            .into_iter()
            .map(Target::host)
            .collect()
    }

    fn sets(sets: &[(&str, &str)]) -> BTreeMap<String, String> {
        sets.iter()
            .map(|(key, set)| ((*key).to_owned(), (*set).to_owned()))
            .collect()
    }

    fn shown(policy: &RolloutPolicy, set: &str) -> String {
        let names = |wave: &Vec<Target>| {
            nodeset::fold_node_set(
                &wave
                    .iter()
                    .map(|host| host.name.clone())
                    .collect::<Vec<_>>(),
            )
        };
        split_into_waves(&hosts(set), policy)
            .iter()
            .map(names)
            .collect::<Vec<_>>()
            .join(" > ")
    }

    #[test]
    fn a_canary_of_each_class_and_a_ladder_whose_last_rung_repeats() {
        let policy = RolloutPolicy {
            canary: 1,
            max_unavailable: 2,
            ..RolloutPolicy::default()
        };
        assert_eq!(shown(&policy, "n[1-6]"), "n1 > n[2-3] > n[4-5] > n6");
        let ladder = RolloutPolicy {
            batches: vec![1, 3],
            ..policy
        };
        assert_eq!(shown(&ladder, "n[1-9]"), "n1 > n2 > n[3-5] > n[6-8] > n9");
        let classes = RolloutPolicy {
            classes: sets(&[("a", "n[1-6]"), ("b", "n[7-8]")]),
            ..ladder
        };
        assert_eq!(
            shown(&classes, "n[1-9]"),
            "n[1,7,9] > n2 > n[3-5] > n[6,8]",
            "n9 is in no class: one of its own"
        );
        assert_eq!(
            shown(
                &RolloutPolicy {
                    canary: 9,
                    ..classes
                },
                "n[1-9]"
            ),
            "n[1-2,7-9] > n3 > n[4-6]",
            "never more than may be out"
        );
        assert_eq!(
            split_into_waves(&[], &RolloutPolicy::default()),
            Vec::<Vec<Target>>::new()
        );
        assert_eq!(
            shown(&RolloutPolicy::default(), "n[1-2]"),
            "n1 > n2",
            "a plan that says nothing goes one by one"
        );
    }

    #[test]
    fn a_wave_ends_with_its_failure_domain() {
        let domains = sets(&[("z", "n[1-4]"), ("a", "n[5-12]")]);
        let policy = RolloutPolicy {
            canary: 1,
            max_unavailable: 3,
            batches: vec![1, 3],
            domains,
            ..RolloutPolicy::default()
        };
        assert_eq!(
            shown(&policy, "n[1-12]"),
            "n1 > n2 > n[3-4] > n[5-7] > n[8-10] > n[11-12]"
        );
        assert_eq!(
            shown(&policy, "n[5-12],n[1-4]"),
            "n5 > n6 > n[7-9] > n[10-12] > n[1-3] > n4",
            "in the order of the spec"
        );
    }

    proptest! {
        #[test]
        fn every_host_once_canaries_of_all_classes_and_no_later_wave_across_domains_or_above_its_rung(
            class in proptest::collection::vec(0usize..3, 1..40), domain in proptest::collection::vec(0usize..4, 40),
            batches in proptest::collection::vec(1usize..9, 0..4), canary in 1usize..4, max_unavailable in 1usize..5, with_domains: bool
        ) {
            let all = hosts(&format!("n[1-{}]", class.len()));
            let sets = |keys: &[usize]| {
                let of = |key| all.iter().zip(keys).filter(|(_, k)| **k == key).map(|(host, _)| host.name.clone()).collect::<Vec<_>>();
                (0..4).map(|key| (format!("k{key}"), nodeset::fold_node_set(&of(key)))).filter(|(_, set)| !set.is_empty()).collect::<BTreeMap<_, _>>()
            };
            let domains = if with_domains { sets(&domain) } else { BTreeMap::new() };
            let policy = RolloutPolicy { canary, max_unavailable, batches, classes: sets(&class), domains, ..RolloutPolicy::default() };
            let waves = split_into_waves(&all, &policy);
            let mut seen: Vec<Target> = waves.concat();
            seen.sort();
            let mut sorted = all.clone();
            sorted.sort();
            prop_assert_eq!(seen, sorted);
            let number = |host: &Target| all.iter().position(|other| other == host).unwrap();
            for key in 0..3 {
                let count = |hosts: &[Target]| hosts.iter().filter(|host| class[number(host)] == key).count();
                prop_assert_eq!(count(&waves[0]), count(&all).min(canary.min(max_unavailable)));
            }
            for (wave, rung) in waves[1..].iter().zip(policy.ladder()) {
                prop_assert!(!wave.is_empty() && wave.len() <= rung);
                let of_wave: BTreeSet<usize> = wave.iter().map(|host| domain[number(host)]).collect();
                prop_assert!(!with_domains || of_wave.len() == 1, "a wave across {} domains", of_wave.len());
            }
        }
    }
}
