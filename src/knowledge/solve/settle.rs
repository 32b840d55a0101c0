//! An answer without a search, where one is at hand: needs that follow from each other leave
//! nothing of some part, or the first release of every part keeps them all. Most questions about a
//! few requirements are settled so, and that is many times faster.

use super::book::ReleaseConstraint;
use super::question::SpecRequirement;
use super::value::Value;
use crate::catalog::release::HostComponent;
use pubgrub::Ranges;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What is left of each part that matters.
type Left<'a> = BTreeMap<HostComponent, Cow<'a, Ranges<Value>>>;

/// Whether these requirements and facts can all be kept; nothing where only a search can tell.
pub(super) fn settle_without_search(
    resources: &[&SpecRequirement],
    asked: &[HostComponent],
    facts: &[&ReleaseConstraint],
    candidates: &BTreeMap<HostComponent, Vec<Value>>,
) -> Option<bool> {
    let mut left: Left<'_> = asked
        .iter()
        .map(|part| (*part, Cow::Owned(Ranges::full())))
        .collect();
    for (part, range) in resources.iter().flat_map(|resource| &resource.parts) {
        if narrow_range(&mut left, *part, range) == Some(false) {
            return Some(false);
        }
    }
    if !propagate_constraints(&mut left, facts) {
        return Some(false);
    }
    is_first_choice_valid(left, facts, candidates).then_some(true)
}

/// Takes from a part what is outside of a range; whether something is left, and nothing said where
/// nothing was taken.
fn narrow_range<'a>(
    left: &mut Left<'a>,
    part: HostComponent,
    range: &'a Ranges<Value>,
) -> Option<bool> {
    let now = match left.get(&part) {
        None => Cow::Borrowed(range),
        Some(before) if before.subset_of(range) => return None,
        Some(before) => Cow::Owned(before.intersection(range)),
    };
    let is_left = !now.is_empty();
    left.insert(part, now);
    Some(is_left)
}

/// What follows from what is left, as long as something does; false where nothing of a part
/// remains.
fn propagate_constraints<'a>(left: &mut Left<'a>, facts: &[&'a ReleaseConstraint]) -> bool {
    loop {
        let mut changed = false;
        for fact in facts {
            if left
                .get(&fact.of)
                .is_some_and(|range| range.subset_of(&fact.at))
            {
                match narrow_range(left, fact.on, &fact.allowed) {
                    Some(false) => return false,
                    Some(true) => changed = true,
                    None => {}
                }
            }
        }
        if !changed {
            return true;
        }
    }
}

/// Whether the first release that is left of every part keeps all facts.
fn is_first_choice_valid<'a>(
    mut left: Left<'a>,
    facts: &[&'a ReleaseConstraint],
    candidates: &'a BTreeMap<HostComponent, Vec<Value>>,
) -> bool {
    let mut taken: BTreeMap<HostComponent, &Value> = BTreeMap::new();
    loop {
        let before = taken.len();
        for (part, range) in &left {
            if !taken.contains_key(part) {
                let mut values = candidates.get(part).into_iter().flatten();
                let Some(first) = values.find(|value| range.contains(*value)) else {
                    return false;
                };
                taken.insert(*part, first);
            }
        }
        for fact in facts {
            let value = taken.get(&fact.of);
            if !value.is_some_and(|value| fact.at.contains(*value)) {
                continue;
            }
            match taken.get(&fact.on) {
                Some(value) if fact.allowed.contains(*value) => {}
                Some(_) => return false,
                None if narrow_range(&mut left, fact.on, &fact.allowed) == Some(false) => {
                    return false;
                }
                None => {}
            }
        }
        if taken.len() == before {
            return true;
        }
    }
}
