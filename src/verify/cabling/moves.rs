//! What is to be moved by hand: cables that are in each other's ports are one finding, since nobody
//! can put one right alone.

use super::{CablingFinding, CablingFindingKind, Plug};
use railwright_knowledge::spec::cabling::CableEnd;
use std::collections::{BTreeMap, BTreeSet};

/// Findings of cables that are in a wrong port, in the order of their ends.
pub fn find_cable_moves(wrong: Vec<Plug>) -> Vec<CablingFinding> {
    let by_end: BTreeMap<CableEnd, Plug> = wrong
        .into_iter()
        .map(|plug| (plug.end.clone(), plug))
        .collect();
    let mut told: BTreeSet<&CableEnd> = BTreeSet::new();
    let mut findings = Vec::new();
    for (end, plug) in &by_end {
        if told.contains(end) {
            continue;
        }
        let round = find_swap_cycle(plug, &by_end);
        told.extend(round.iter().map(|plug| &plug.end));
        let kind = if round.len() > 1 {
            CablingFindingKind::Swapped
        } else {
            CablingFindingKind::WrongPort
        };
        findings.push(CablingFinding {
            kind,
            plugs: round.into_iter().cloned().collect(),
            why: None,
        });
    }
    findings
}

/// The cables from this one on, each in the port of the next, if they come back to it; else it
/// alone.
fn find_swap_cycle<'p>(first: &'p Plug, all: &'p BTreeMap<CableEnd, Plug>) -> Vec<&'p Plug> {
    let mut round = vec![first];
    let mut seen = BTreeSet::from([&first.end]);
    let mut at = first;
    while let Some(next) = at.owner.as_ref().and_then(|owner| all.get(owner)) {
        if next.end == first.end {
            return round;
        }
        if !seen.insert(&next.end) {
            break;
        }
        round.push(next);
        at = next;
    }
    vec![first]
}
