//! What a step is in or of and is not there yet: a namespace, a kind. Where a step before it brings
//! that, the plan says that nobody could look at it before; where none does, it is blocked.

use super::diff::{KindLookup, PlanItem, PlanItemStatus};
use railwright_graph::Graph;
use railwright_resource::Lacking;
use railwright_resource::Provenance;
use std::collections::BTreeSet;

/// Checks which of the kept items lack something.
pub(super) fn resolve_missing_prerequisites(
    items: &mut [PlanItem],
    graph: &Graph,
    kept: &BTreeSet<usize>,
    kinds: KindLookup,
) {
    let mut lacking: Vec<usize> = kept.iter().copied().collect();
    lacking.retain(|n| matches!(items[*n].status, PlanItemStatus::Change(_)));
    for n in lacking {
        let Some(lacks) = items[n].diff.lacks.clone() else {
            continue;
        };
        let first = graph.with_prerequisites([n]);
        // What is nearest comes last in most orders; a step that surely brings it says so in the
        // same words.
        let (mut brought, mut elsewhere) = (None, None);
        for &other in kept {
            if other == n || !may_bring(&items[other], &lacks.what, kinds) {
                continue;
            }
            let found = if first.contains(&other) {
                &mut brought
            } else {
                &mut elsewhere
            };
            found.get_or_insert_with(|| items[other].resource.address.words());
        }
        note_lack(&mut items[n], &lacks, brought, elsewhere);
    }
}

fn may_bring(item: &PlanItem, what: &str, kinds: KindLookup) -> bool {
    item.changes()
        && !item.removal
        && kinds(&item.resource.kind).is_some_and(|kind| kind.may_bring(&item.resource, what))
}

/// Notes of an item that a step before it brings what it lacks, or blocks it where none does; then
/// the step `elsewhere` may be put before it.
fn note_lack(
    item: &mut PlanItem,
    lacks: &Lacking,
    brought: Option<String>,
    elsewhere: Option<String>,
) {
    if let Some(step) = brought {
        let by = Provenance::not_previewed(format!(
            "{} is not there yet, and may come with {step}",
            lacks.what
        ));
        for attribute in item.diff.attributes.values_mut() {
            attribute.by = Some(by.clone());
        }
        return;
    }
    let PlanItemStatus::Change(reason) = &item.status else {
        return;
    };
    let way_out = match elsewhere {
        Some(step) => format!("{step} may bring it: let this one come `after` it"),
        None => "bring it by other means, or declare it before this one".to_owned(),
    };
    let why = format!(
        "{} is not there ({}), and no step before it brings it; {way_out}",
        lacks.what, lacks.said
    );
    item.status = PlanItemStatus::Blocked(reason.clone(), why);
}
