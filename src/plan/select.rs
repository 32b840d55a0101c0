//! `--target X` is X and its prerequisites; `--exclude X` is all but X and what needs X (law 6).

use super::judge::Item;
use crate::base::{Diagnostic, Target};
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

impl Selection {
    /// Whether the plan is also about this target as a whole, of which nothing could be read.
    pub fn covers(&self, target: &str) -> bool {
        let named = |pattern: &String| is_below(target, pattern) || is_below(pattern, target);
        !self.excludes.iter().any(|pattern| is_below(target, pattern)) && (self.targets.is_empty() || self.targets.iter().any(named))
    }
}

fn is_below(address: &str, pattern: &str) -> bool {
    address.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The items that stay; an entry that matches neither a resource nor a target of the spec is an error, since it is most
/// likely misspelt. A target may have no resource here: one that could not be read is left out by its name all the same.
pub fn select(items: &[Item], targets: &[Target], graph: &Graph, selection: &Selection) -> Result<BTreeSet<usize>, Vec<Diagnostic>> {
    let mut problems = Vec::new();
    let addresses: Vec<String> = items.iter().map(|item| item.wish.address.to_string()).collect();
    let targets: Vec<String> = targets.iter().map(Target::to_string).collect();
    let mut find = |pattern: &String, flag: &str| -> Vec<usize> {
        let found: Vec<usize> = (0..items.len()).filter(|n| is_below(&addresses[*n], pattern)).collect();
        if found.is_empty() && !targets.contains(pattern) {
            let is_on_target = targets.iter().any(|target| is_below(pattern, target));
            let silent = if is_on_target { "; its target may be one that could not be read" } else { "" };
            problems.push(
                Diagnostic::error("RW0301", format!("{flag} {pattern} names nothing in this plan{silent}"))
                    .state("nothing was planned or changed")
                    .next("name it as the plan prints it, such as 'gpu-001 link ens4', or by its address, such as host/gpu-001/link/ens4"),
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
