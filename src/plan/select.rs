//! `--target X` is X and its prerequisites; `--exclude X` is all but X and what needs X (law 6).

use super::judge::Item;
use crate::base::Diagnostic;
use crate::graph::Graph;
use std::collections::BTreeSet;

/// What the user narrowed the plan to. Each entry is a target (`host/gpu-001`) or a resource (`host/gpu-001/link/ens4`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these and their prerequisites; empty means all.
    pub targets: Vec<String>,
    /// Not these, nor what needs them.
    pub excludes: Vec<String>,
}

impl Selection {
    /// As it is recorded in the plan and shown on its screen.
    pub fn words(&self) -> Vec<String> {
        let targets = self.targets.iter().map(|t| format!("--target {t}"));
        targets.chain(self.excludes.iter().map(|e| format!("--exclude {e}"))).collect()
    }
}

fn matches(item: &Item, pattern: &str) -> bool {
    let address = item.wish.address.to_string();
    address == pattern || (address.starts_with(pattern) && address[pattern.len()..].starts_with('/'))
}

/// The items that stay; an entry that matches nothing is an error, since it is most likely misspelt.
pub fn select(items: &[Item], graph: &Graph, selection: &Selection) -> Result<BTreeSet<usize>, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let mut find = |pattern: &String, flag: &str| -> Vec<usize> {
        let found: Vec<usize> = (0..items.len()).filter(|n| matches(&items[*n], pattern)).collect();
        if found.is_empty() {
            problems.push(
                Diagnostic::error("RW0301", format!("{flag} {pattern} names nothing in this plan"))
                    .state("nothing was planned or changed")
                    .next("use a target such as host/gpu-001, or a resource such as host/gpu-001/link/ens4; `railwright plan` without it lists them"),
            );
        }
        found
    };
    let wanted: Vec<usize> = selection.targets.iter().flat_map(|t| find(t, "--target")).collect();
    let unwanted: Vec<usize> = selection.excludes.iter().flat_map(|e| find(e, "--exclude")).collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut kept = if selection.targets.is_empty() { (0..items.len()).collect() } else { graph.with_prerequisites(wanted) };
    for gone in graph.with_dependants(unwanted) {
        kept.remove(&gone);
    }
    Ok(kept)
}
