//! A resource that watches a file owes something (a restart) once another resource of this plan
//! writes it: that is known beforehand, so it is planned, counted and held like any other change.

use super::judge::{PlanItem, PlanItemStatus};
use super::model::Reason;
use railwright_base::Target;
use railwright_graph::Graph;
use railwright_resource::Action;
use std::collections::{BTreeMap, BTreeSet};

/// Marks what will owe something; which item comes before which because of it.
pub fn mark_pending_restarts(
    items: &mut [PlanItem],
    graph: &Graph,
    kept: &BTreeSet<usize>,
) -> BTreeSet<(usize, usize)> {
    let mut watching: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
    for n in kept
        .iter()
        .filter(|n| items[**n].assessment.watch.is_some())
    {
        watching
            .entry(items[*n].wish.address.target.clone())
            .or_default()
            .push(*n);
    }
    let mut edges = BTreeSet::new();
    for by in kept.iter().copied().filter(|by| items[*by].changes()) {
        let watchers = watching
            .get(&items[by].wish.address.target)
            .into_iter()
            .flatten()
            .copied();
        let hit: Vec<usize> = watchers
            .filter(|n| *n != by && writes_what(&items[by], &items[*n]))
            .collect();
        // One that the spec puts before the file cannot come after it.
        let first = if hit.is_empty() {
            BTreeSet::new()
        } else {
            graph.with_prerequisites([by])
        };
        edges.extend(
            hit.into_iter()
                .filter(|n| !first.contains(n))
                .map(|n| (by, n)),
        );
    }
    for (by, n) in &edges {
        let by = items[*by].wish.address.to_string();
        let item = &mut items[*n];
        let Some(watch) = item.assessment.watch.take() else {
            continue;
        };
        if item.status == PlanItemStatus::Met {
            item.status = PlanItemStatus::Change(Reason::Disturbed { by });
        }
        item.assessment.disruption = item.assessment.disruption.max(watch.disruption);
        item.assessment.interrupts.push(watch.interrupts);
    }
    edges
}

fn writes_what(by: &PlanItem, watcher: &PlanItem) -> bool {
    let watched = |path: &str| {
        watcher
            .assessment
            .watch
            .iter()
            .flat_map(|watch| &watch.paths)
            .any(|watched| watched == path)
    };
    by.assessment
        .actions
        .iter()
        .filter_map(Action::path)
        .any(watched)
}
