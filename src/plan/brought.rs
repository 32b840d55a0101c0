//! What a step is in or of and is not there yet: a namespace, a kind. Where a step before it brings
//! that, the plan says that nobody could look at it before; where none does, it is held.

use super::judge::{KindLookup, PlanItem, PlanItemStatus};
use railwright_graph::Graph;
use std::collections::BTreeSet;

/// Judges what of the kept items lacks something.
pub(super) fn resolve_missing_prerequisites(
    items: &mut [PlanItem],
    graph: &Graph,
    kept: &BTreeSet<usize>,
    kinds: KindLookup,
) {
    let lacking = |n: &usize| {
        items[*n].assessment.lacks.is_some()
            && matches!(items[*n].status, PlanItemStatus::Change(_))
    };
    for n in kept.iter().copied().filter(lacking).collect::<Vec<_>>() {
        let Some(lacks) = items[n].assessment.lacks.clone() else {
            continue;
        };
        let brings = |other: &usize| {
            let item = &items[*other];
            *other != n
                && item.changes()
                && !item.removal
                && kinds(&item.wish.kind)
                    .is_some_and(|kind| kind.may_bring(&item.wish, &lacks.what))
        };
        let first = graph.with_prerequisites([n]);
        let named = |other: &usize| items[*other].wish.address.words();
        // What is nearest comes last in most orders; a step that surely brings it says so in the
        // same words.
        let brought = kept
            .iter()
            .filter(|other| first.contains(other))
            .find(|other| brings(other))
            .map(named);
        let elsewhere = kept
            .iter()
            .filter(|other| !first.contains(other))
            .find(|other| brings(other))
            .map(named);
        let item = &mut items[n];
        match (brought, &item.status) {
            (Some(step), _) => {
                let by = format!(
                    "not previewed: {} is not there yet, and may come with {step}",
                    lacks.what
                );
                item.assessment
                    .attributes
                    .values_mut()
                    .for_each(|attribute| attribute.by = Some(by.clone()));
            }
            (None, PlanItemStatus::Change(reason)) => {
                let way_out = match elsewhere {
                    Some(step) => format!("{step} may bring it: let this one come `after` it"),
                    None => "bring it by other means, or wish for it before this one".to_owned(),
                };
                let why = format!(
                    "{} is not there ({}), and no step before it brings it; {way_out}",
                    lacks.what, lacks.said
                );
                item.status = PlanItemStatus::Held(reason.clone(), why);
            }
            (None, _) => {}
        }
    }
}
