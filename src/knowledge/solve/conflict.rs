//! Which requirements exclude each other: the fewest of them, and the facts that say so.

use super::book::{Book, ReleaseConstraint};
use super::question::{SolverQuestion, SpecRequirement};
use super::search::{SolverOutcome, collect_candidates, search_releases};
use super::settle::settle_without_search;
use super::value::Value;
use crate::catalog::release::HostComponent;
use std::collections::BTreeMap;

/// The most conflicts of a question that are reported.
const TOLD: usize = 8;

/// Of more requirements than so many, the first conflict alone is reported.
const REQUIREMENTS_NAMED: usize = 3;

/// Requirements that exclude each other.
#[derive(Debug, Clone)]
pub struct SolverConflict {
    /// The requirements, by their place in the question; each smaller choice can be kept.
    pub resources: Vec<usize>,
    /// Why: each is needed for the contradiction.
    pub facts: Vec<ReleaseConstraint>,
    /// False where it may work all the same.
    pub certain: bool,
    /// It rests on the first kernel of a system: hosts may run a later one, which the spec does not
    /// name.
    pub is_assumed: bool,
}

/// A question and what can be said of it.
pub(super) struct SolverQuery<'a> {
    question: &'a SolverQuestion,
    candidates: BTreeMap<HostComponent, Vec<Value>>,
}

impl<'a> SolverQuery<'a> {
    pub(super) fn new(
        book: &Book,
        question: &'a SolverQuestion,
        facts: &[&ReleaseConstraint],
    ) -> SolverQuery<'a> {
        SolverQuery {
            question,
            candidates: collect_candidates(book, question, facts),
        }
    }

    /// With some of the requirements.
    pub(super) fn some(&self, chosen: &[usize], facts: &[&ReleaseConstraint]) -> SolverOutcome {
        let (resources, facts) = self.bearing(chosen, facts);
        search_releases(&resources, &self.question.asked, &facts, &self.candidates)
    }

    /// Whether some of the requirements cannot all be kept.
    pub(super) fn excluded(&self, chosen: &[usize], facts: &[&ReleaseConstraint]) -> bool {
        let (resources, of) = self.bearing(chosen, facts);
        let settled =
            settle_without_search(&resources, &self.question.asked, &of, &self.candidates);
        match settled {
            Some(kept) => !kept,
            None => self.some(chosen, facts) == SolverOutcome::Nothing,
        }
    }

    /// The requirements, and the facts that bear on them: which DOCA or MLNX_OFED there would have
    /// to be matters to nobody who requires none.
    fn bearing<'f>(
        &self,
        chosen: &[usize],
        facts: &[&'f ReleaseConstraint],
    ) -> (Vec<&SpecRequirement>, Vec<&'f ReleaseConstraint>) {
        let resources: Vec<&SpecRequirement> = chosen
            .iter()
            .map(|at| &self.question.resources[*at])
            .collect();
        let mut parts = resources.iter().flat_map(|resource| &resource.parts);
        let has_stack = parts.any(|(part, _)| *part == HostComponent::Stack || is_stack(*part));
        let mut facts = facts.to_vec();
        facts.retain(|fact| has_stack || !is_stack(fact.of) && !is_stack(fact.on));
        (resources, facts)
    }

    /// With all of them.
    pub(super) fn all(&self, facts: &[&ReleaseConstraint]) -> SolverOutcome {
        self.some(
            &(0..self.question.resources.len()).collect::<Vec<_>>(),
            facts,
        )
    }

    /// All conflicts, the certain ones first; and the facts that can all be kept, where that is so
    /// of the certain ones or where these are `accepted`: those without what the conflicts rest on.
    pub(super) fn conflicts<'f>(
        &self,
        facts: &[&'f ReleaseConstraint],
        accepted: bool,
    ) -> (Vec<SolverConflict>, Vec<&'f ReleaseConstraint>) {
        let mut certain = facts.to_vec();
        certain.retain(|fact| fact.certain);
        let mut conflicts = Vec::new();
        let mut broken: Vec<&ReleaseConstraint> = Vec::new();
        self.find(&certain, true, &mut conflicts, &mut broken);
        self.find(facts, false, &mut conflicts, &mut broken);
        let mut others = facts.to_vec();
        others.retain(|fact| !broken.iter().any(|other| std::ptr::eq(*other, *fact)));
        if (accepted || conflicts.iter().all(|conflict| !conflict.certain))
            && self.all(&others) != SolverOutcome::Nothing
        {
            return (conflicts, others);
        }
        (conflicts, certain)
    }

    /// The fewest requirements that cannot all be kept, and all others that are as few or of three
    /// at most, by growing size. What holds a smaller one is no conflict of its own.
    fn find<'f>(
        &self,
        facts: &[&'f ReleaseConstraint],
        certain: bool,
        conflicts: &mut Vec<SolverConflict>,
        broken: &mut Vec<&'f ReleaseConstraint>,
    ) {
        let count = self.question.resources.len();
        if !self.excluded(&(0..count).collect::<Vec<_>>(), facts) {
            return;
        }
        for size in 1..=count {
            if size > REQUIREMENTS_NAMED && !conflicts.is_empty() {
                return;
            }
            for resources in enumerate_subsets(count, size) {
                let known = conflicts.iter().any(|other| {
                    other
                        .resources
                        .iter()
                        .all(|resource| resources.contains(resource))
                });
                if known || !self.excluded(&resources, facts) {
                    continue;
                }
                let core = self.core(&resources, facts);
                broken.extend(&core);
                let facts: Vec<ReleaseConstraint> = core.into_iter().cloned().collect();
                let is_assumed = self.is_assumed(&resources, &facts);
                conflicts.push(SolverConflict {
                    resources,
                    facts,
                    certain,
                    is_assumed,
                });
                if conflicts.len() == TOLD {
                    return;
                }
            }
        }
    }

    fn is_assumed(&self, resources: &[usize], facts: &[ReleaseConstraint]) -> bool {
        let kernel = HostComponent::Kernel;
        if !facts
            .iter()
            .any(|fact| fact.on == kernel || fact.of == kernel)
        {
            return false;
        }
        let mut resources = resources.iter().map(|at| &self.question.resources[*at]);
        resources.any(|resource| matches!(resource.implied, Some((HostComponent::Kernel, _))))
    }

    /// The facts that make it one: a single one where there is such, else as many as none can be
    /// left out of.
    fn core<'f>(
        &self,
        resources: &[usize],
        facts: &[&'f ReleaseConstraint],
    ) -> Vec<&'f ReleaseConstraint> {
        if let Some(fact) = facts
            .iter()
            .find(|fact| self.excluded(resources, &[**fact]))
        {
            return vec![*fact];
        }
        let mut core = facts.to_vec();
        for fact in facts {
            let mut without = core.clone();
            without.retain(|other| !std::ptr::eq(*other, *fact));
            if self.excluded(resources, &without) {
                core = without;
            }
        }
        core
    }
}

/// Whether a part is a release of drivers for RDMA, which only some hosts have.
fn is_stack(part: HostComponent) -> bool {
    matches!(part, HostComponent::Doca | HostComponent::MlnxOfed)
}

/// All choices of `size` numbers below `count`, in order.
pub(super) fn enumerate_subsets(count: usize, size: usize) -> impl Iterator<Item = Vec<usize>> {
    let mut next: Option<Vec<usize>> = (size <= count).then(|| (0..size).collect());
    std::iter::from_fn(move || {
        let now = next.clone()?;
        let mut places = (0..size).rev();
        next = None;
        if let Some(at) = places.find(|at| now[*at] < count - size + at) {
            let mut then = now.clone();
            then[at] += 1;
            for below in at + 1..size {
                then[below] = then[below - 1] + 1;
            }
            next = Some(then);
        }
        Some(now)
    })
}
