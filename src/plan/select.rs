//! `--target X` is X and its prerequisites; `--exclude X` is all but X and what needs X (law 6).

use super::diff::PlanItem;
use railwright_base::suggest::find_nearest_word;
use railwright_base::{Address, Diagnostic, Target, quote};
use railwright_graph::Graph;
use std::collections::BTreeSet;

/// What the user narrowed the plan to. Each entry is a target (`host/gpu-001`) or a resource
/// (`host/gpu-001/link/ens4`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanSelection {
    /// Only these and their prerequisites; empty means all.
    pub targets: Vec<String>,
    /// Not these, nor what needs them.
    pub excludes: Vec<String>,
}

impl PlanSelection {
    /// Narrowed to nothing.
    pub fn is_everything(&self) -> bool {
        self.targets.is_empty() && self.excludes.is_empty()
    }

    /// As it is recorded in the plan and shown on its screen.
    pub fn words(&self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        words.extend(
            self.targets
                .iter()
                .map(|target| format!("--target {target}")),
        );
        words.extend(
            self.excludes
                .iter()
                .map(|excluded| format!("--exclude {excluded}")),
        );
        words
    }
}

impl PlanSelection {
    /// Whether the plan is also about this target as a whole, of which nothing could be read.
    pub fn covers(&self, target: &str) -> bool {
        if self.excludes(target) {
            return false;
        }
        let mut patterns = self.targets.iter();
        self.targets.is_empty() || patterns.any(|pattern| is_related(target, pattern))
    }

    /// Whether the whole target is left out by name.
    pub fn excludes(&self, target: &str) -> bool {
        let mut patterns = self.excludes.iter();
        patterns.any(|pattern| is_below(target, pattern))
    }

    /// Whether some entry is about this target or a resource of it.
    pub(super) fn names(&self, target: &Target) -> bool {
        if self.is_everything() {
            return false;
        }
        let target = target.to_string();
        let mut patterns = self.targets.iter().chain(&self.excludes);
        patterns.any(|pattern| is_related(&target, pattern))
    }
}

/// Whether one of two addresses is at or below the other.
fn is_related(target: &str, pattern: &str) -> bool {
    is_below(target, pattern) || is_below(pattern, target)
}

fn is_below(address: &str, pattern: &str) -> bool {
    match address.strip_prefix(pattern) {
        Some(rest) => rest.is_empty() || rest.starts_with('/'),
        None => false,
    }
}

/// Which entries of a selection named something so far.
pub(super) struct SelectionMatches<'a> {
    selection: &'a PlanSelection,
    targets: Vec<bool>,
    excludes: Vec<bool>,
}

impl<'a> SelectionMatches<'a> {
    /// Nothing yet.
    pub fn new(selection: &'a PlanSelection) -> Self {
        SelectionMatches {
            selection,
            targets: vec![false; selection.targets.len()],
            excludes: vec![false; selection.excludes.len()],
        }
    }

    /// The items that stay.
    pub fn select(&mut self, items: &[PlanItem], graph: &Graph) -> BTreeSet<usize> {
        if self.selection.is_everything() {
            return (0..items.len()).collect();
        }
        let addresses: Vec<String> = items
            .iter()
            .map(|item| item.resource.address.to_string())
            .collect();
        let desired =
            match_address_patterns(&self.selection.targets, &mut self.targets, &addresses);
        let undesired =
            match_address_patterns(&self.selection.excludes, &mut self.excludes, &addresses);
        let mut kept = if self.selection.targets.is_empty() {
            (0..items.len()).collect()
        } else {
            graph.with_prerequisites(desired)
        };
        for gone in graph.with_dependants(undesired) {
            kept.remove(&gone);
        }
        kept
    }

    /// An entry that matches neither a resource nor a target of the spec is an error, since it is
    /// most likely misspelt. A target may have no resource here: one that could not be read is left
    /// out by its name all the same.
    pub fn check_all_matched<'r>(
        &self,
        targets: &[Target],
        resources: impl Iterator<Item = &'r Address>,
    ) -> Result<(), Vec<Diagnostic>> {
        if !self.targets.contains(&false) && !self.excludes.contains(&false) {
            return Ok(());
        }
        let targets: Vec<String> = targets.iter().map(Target::to_string).collect();
        let mut known = targets.clone();
        for address in resources {
            known.push(address.to_string());
            let (target, kind) = (&address.target, address.kind_word());
            known.push(format!("{target}/{kind}/{}", address.name_words()));
        }
        let entries = [
            ("--target", &self.selection.targets, &self.targets),
            ("--exclude", &self.selection.excludes, &self.excludes),
        ];
        let mut problems = Vec::new();
        for (flag, patterns, matched) in entries {
            for (pattern, is_matched) in patterns.iter().zip(matched) {
                if !is_matched && !targets.contains(pattern) {
                    problems.push(names_nothing(flag, pattern, &targets, &known));
                }
            }
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(problems)
        }
    }
}

/// The addresses at or below some pattern; a pattern that has one is noted.
fn match_address_patterns(
    patterns: &[String],
    named: &mut [bool],
    addresses: &[String],
) -> Vec<usize> {
    let mut matching = Vec::new();
    for (pattern, named) in patterns.iter().zip(named) {
        let before = matching.len();
        matching.extend((0..addresses.len()).filter(|n| is_below(&addresses[*n], pattern)));
        *named |= matching.len() > before;
    }
    matching
}

fn names_nothing(flag: &str, pattern: &str, targets: &[String], known: &[String]) -> Diagnostic {
    let is_on_target = targets.iter().any(|target| is_below(pattern, target));
    let silent = if is_on_target {
        "; its target may be one that could not be read"
    } else {
        ""
    };
    let mut problem = Diagnostic::error(
        "RW0301",
        format!("{flag} {pattern} names nothing in this plan{silent}"),
    )
    .state("nothing was planned or changed");
    let others = known.iter().map(String::as_str);
    let others = others.filter(|known| *known != pattern);
    if let Some(near) = find_nearest_word(pattern, others) {
        problem = problem.next(format!("did you mean {}?", quote::quote_for_shell(near)));
    }
    problem
        .next(
            "name it as the plan prints it, such as 'gpu-001 link ens4', or by its address, such \
             as host/gpu-001/link/ens4",
        )
        .next("of a Kubernetes cluster: kube/NAME, or kube/NAME/KIND/NAMESPACE/OBJECT")
}
