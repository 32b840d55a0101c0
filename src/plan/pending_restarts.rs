//! A resource that watches a file has a restart pending once another resource of this plan writes
//! it: that is known beforehand, so it is planned, counted and blocked like any other change.

use super::diff::{PlanItem, PlanItemStatus};
use super::model::ChangeReason;
use railwright_base::Target;
use railwright_graph::Graph;
use railwright_resource::Action;
use std::collections::{BTreeMap, BTreeSet};

/// Marks what will have a restart pending; which item comes before which because of it.
pub fn mark_pending_restarts(
    items: &mut [PlanItem],
    graph: &Graph,
    kept: &BTreeSet<usize>,
) -> BTreeSet<(usize, usize)> {
    let mut watching: BTreeMap<Target, Vec<usize>> = BTreeMap::new();
    for &n in kept {
        if items[n].diff.watch.is_some() {
            let target = items[n].resource.address.target.clone();
            watching.entry(target).or_default().push(n);
        }
    }
    let mut edges = BTreeSet::new();
    for &by in kept {
        let Some(watchers) = watching.get(&items[by].resource.address.target) else {
            continue;
        };
        if !items[by].changes() {
            continue;
        }
        let mut hit = watchers.clone();
        hit.retain(|n| *n != by && writes_what(&items[by], &items[*n]));
        if hit.is_empty() {
            continue;
        }
        // One that the spec puts before the file cannot come after it.
        let first = graph.with_prerequisites([by]);
        hit.retain(|n| !first.contains(n));
        edges.extend(hit.into_iter().map(|n| (by, n)));
    }
    for (by, n) in &edges {
        let by = items[*by].resource.address.to_string();
        let item = &mut items[*n];
        let Some(watch) = item.diff.watch.take() else {
            continue;
        };
        if item.status == PlanItemStatus::Met {
            item.status = PlanItemStatus::Change(ChangeReason::Disturbed { by });
        }
        item.diff.disruption = item.diff.disruption.max(watch.disruption);
        item.diff.interrupts.push(watch.interrupts);
    }
    edges
}

fn writes_what(by: &PlanItem, watcher: &PlanItem) -> bool {
    let Some(watch) = &watcher.diff.watch else {
        return false;
    };
    let mut written = by.diff.actions.iter().filter_map(Action::path);
    written.any(|path| watch.paths.iter().any(|watched| watched == path))
}
