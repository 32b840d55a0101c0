//! Whom results are about, folded: `gpu[01-16] rail 0-7`, `gpu[01-03] -> gpu04 rail 2`.

use railwright_base::nodeset;
use railwright_base::text::format_count;
use railwright_verify::{CheckResult, VerifyCheck};
use std::collections::{BTreeMap, BTreeSet};

/// Columns that a list of hosts may take.
const WIDTH: usize = 56;

/// All hosts and rails of these results. Hosts that share the same rails are one group.
pub fn describe_result_subjects(results: &[&CheckResult]) -> String {
    // Hosts that run NCCL's tests together are no pair, however many they are.
    if results
        .iter()
        .all(|result| matches!(result.check, VerifyCheck::Nccl(_)))
    {
        let runs: BTreeSet<String> = results
            .iter()
            .map(|result| nodeset::fold_node_set(&result.hosts))
            .collect();
        return truncate_subject(&runs.into_iter().collect::<Vec<_>>().join("; "));
    }
    let mut rails_of: BTreeMap<&[String], BTreeSet<u32>> = BTreeMap::new();
    for result in results {
        rails_of
            .entry(&result.hosts)
            .or_default()
            .extend(result.rail);
    }
    let mut groups: BTreeMap<BTreeSet<u32>, Vec<&[String]>> = BTreeMap::new();
    for (hosts, rails) in rails_of {
        groups.entry(rails).or_default().push(hosts);
    }
    let texts: Vec<String> = groups
        .into_iter()
        .map(|(rails, hosts)| format!("{}{}", fold_subject_hosts(&hosts), format_rails(&rails)))
        .collect();
    if texts.len() > 3 {
        format!(
            "{} and {} more groups",
            texts[..3].join("; "),
            texts.len() - 3
        )
    } else {
        texts.join("; ")
    }
}

/// Single hosts as one node-set; pairs as senders and receivers, senders with the same receivers
/// together.
fn fold_subject_hosts(subjects: &[&[String]]) -> String {
    let singles: Vec<&String> = subjects
        .iter()
        .filter(|hosts| hosts.len() == 1)
        .filter_map(|hosts| hosts.first())
        .collect();
    let mut receivers: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for hosts in subjects {
        if let [from, to] = hosts {
            receivers.entry(from).or_default().insert(to);
        }
    }
    let everybody: BTreeSet<&String> = receivers
        .iter()
        .flat_map(|(from, to)| to.iter().copied().chain([*from]))
        .collect();
    let pairs: usize = receivers.values().map(BTreeSet::len).sum();
    if pairs > 1 && pairs == everybody.len() * (everybody.len() - 1) {
        return format!(
            "all pairs of {}",
            nodeset::fold_node_set(&everybody.into_iter().collect::<Vec<_>>())
        );
    }
    let mut senders: BTreeMap<BTreeSet<&String>, Vec<&String>> = BTreeMap::new();
    for (from, to) in receivers {
        senders.entry(to).or_default().push(from);
    }
    let mut texts = Vec::new();
    if !singles.is_empty() {
        texts.push(nodeset::fold_node_set(&singles));
    }
    for (to, from) in &senders {
        texts.push(format!(
            "{} -> {}",
            nodeset::fold_node_set(from),
            nodeset::fold_node_set(&to.iter().collect::<Vec<_>>())
        ));
    }
    let whole = texts.join(", ");
    if whole.chars().count() <= WIDTH {
        return whole;
    }
    if pairs > 0 {
        return format!(
            "{} among {}",
            format_count(pairs, "pair"),
            truncate_subject(&nodeset::fold_node_set(
                &everybody.into_iter().collect::<Vec<_>>()
            ))
        );
    }
    format!(
        "{}: {}",
        format_count(singles.len(), "host"),
        truncate_subject(&whole)
    )
}

fn truncate_subject(text: &str) -> String {
    railwright_base::text::one_line(text, WIDTH - 16)
}

/// ` rail 0`, ` rails 0-3,6`.
fn format_rails(rails: &BTreeSet<u32>) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for rail in rails {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *rail => *last = *rail,
            _ => runs.push((*rail, *rail)),
        }
    }
    let texts: Vec<String> = runs
        .iter()
        .map(|(a, b)| {
            if a == b {
                a.to_string()
            } else {
                format!("{a}-{b}")
            }
        })
        .collect();
    match rails.len() {
        0 => String::new(),
        1 => format!(" rail {}", texts.join(",")),
        _ => format!(" rails {}", texts.join(",")),
    }
}
