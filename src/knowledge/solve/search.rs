//! Is there a release of every part, so that all requirements and needs are kept? PubGrub answers;
//! what is taken is decided by the order of the parts and of the entries, so that the same question
//! has the same answer.

use super::book::{Book, ReleaseConstraint};
use super::question::{SolverQuestion, SpecRequirement};
use super::value::{Value, list_range_ends};
use crate::catalog::release::HostComponent;
use pubgrub::{
    Dependencies, DependencyConstraints, DependencyProvider, PackageResolutionStatistics,
    PubGrubError, Ranges, resolve,
};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How often the search may look something up before it is given up.
const STEPS: u32 = 20_000;

/// What came of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SolverOutcome {
    /// A release of each part that matters.
    All(BTreeMap<HostComponent, Value>),
    /// There is none.
    Nothing,
    /// Nobody knows: the entries are too many or too entangled.
    GivenUp,
}

/// A part, or the question itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SolverPackage {
    Root,
    Part(HostComponent),
}

impl fmt::Display for SolverPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SolverPackage::Root => "the question",
            SolverPackage::Part(part) => part.key(),
        })
    }
}

/// The search was given up.
#[derive(Debug)]
struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too long")
    }
}

impl std::error::Error for TooLong {}

/// The releases that can be taken, by part: the best first. Known ones come before others, which
/// are no choice but keep a search from calling a contradiction what is only not in the entries.
pub(super) fn collect_candidates(
    book: &Book,
    question: &SolverQuestion,
    facts: &[&ReleaseConstraint],
) -> BTreeMap<HostComponent, Vec<Value>> {
    let mut others: BTreeMap<HostComponent, BTreeSet<Value>> = BTreeMap::new();
    for (part, range) in question
        .resources
        .iter()
        .flat_map(|resource| &resource.parts)
    {
        let ends = others.entry(*part).or_default();
        ends.extend(list_range_ends(range));
    }
    for fact in facts {
        others.entry(fact.on).or_default();
        others.entry(fact.of).or_default();
    }
    for part in &question.asked {
        others.entry(*part).or_default();
    }
    let mut candidates = BTreeMap::new();
    for (part, others) in others {
        candidates.insert(part, list_candidates(book, part, others));
    }
    candidates
}

/// The known releases of a part, then `others` and the marks of the entries, the newest first.
fn list_candidates(book: &Book, part: HostComponent, mut others: BTreeSet<Value>) -> Vec<Value> {
    if let Some(marks) = book.marks.get(&part) {
        others.extend(marks.iter().cloned());
    }
    if part.is_numbered() {
        others.extend([Value::Number(Vec::new()), Value::Number(vec![u64::MAX])]);
    }
    let mut values: Vec<Value> = Vec::new();
    if let Some(known) = book.known.get(&part) {
        values.extend(known.iter().map(|known| known.value.clone()));
    }
    for known in &values {
        others.remove(known);
    }
    values.extend(others.into_iter().rev());
    values
}

/// Searches with these requirements and facts.
pub(super) fn search_releases(
    resources: &[&SpecRequirement],
    asked: &[HostComponent],
    facts: &[&ReleaseConstraint],
    candidates: &BTreeMap<HostComponent, Vec<Value>>,
) -> SolverOutcome {
    let mut root: BTreeMap<HostComponent, Ranges<Value>> =
        asked.iter().map(|part| (*part, Ranges::full())).collect();
    for (part, range) in resources.iter().flat_map(|resource| &resource.parts) {
        narrow(&mut root, *part, range);
    }
    let provider = ReleaseDependencyProvider {
        root,
        facts,
        candidates,
        steps: Cell::new(0),
    };
    match resolve(&provider, SolverPackage::Root, Value::Number(vec![1])) {
        Ok(found) => {
            let mut releases = BTreeMap::new();
            for (package, value) in found {
                if let SolverPackage::Part(part) = package {
                    releases.insert(part, value);
                }
            }
            SolverOutcome::All(releases)
        }
        Err(PubGrubError::NoSolution(_)) => SolverOutcome::Nothing,
        Err(_) => SolverOutcome::GivenUp,
    }
}

/// Lets a part be only what is in this range too.
fn narrow(
    ranges: &mut BTreeMap<HostComponent, Ranges<Value>>,
    part: HostComponent,
    range: &Ranges<Value>,
) {
    let both = match ranges.get(&part) {
        Some(other) => other.intersection(range),
        None => range.clone(),
    };
    ranges.insert(part, both);
}

struct ReleaseDependencyProvider<'a> {
    root: BTreeMap<HostComponent, Ranges<Value>>,
    facts: &'a [&'a ReleaseConstraint],
    candidates: &'a BTreeMap<HostComponent, Vec<Value>>,
    steps: Cell<u32>,
}

impl DependencyProvider for ReleaseDependencyProvider<'_> {
    type P = SolverPackage;
    type V = Value;
    type VS = Ranges<Value>;
    type Priority = (bool, Reverse<Option<HostComponent>>);
    type M = String;
    type Err = TooLong;

    fn prioritize(
        &self,
        package: &SolverPackage,
        _: &Ranges<Value>,
        _: &PackageResolutionStatistics,
    ) -> Self::Priority {
        match package {
            SolverPackage::Root => (true, Reverse(None)),
            SolverPackage::Part(part) => (
                self.root
                    .get(part)
                    .is_some_and(|range| *range != Ranges::full()),
                Reverse(Some(*part)),
            ),
        }
    }

    fn choose_version(
        &self,
        package: &SolverPackage,
        range: &Ranges<Value>,
    ) -> Result<Option<Value>, TooLong> {
        let root = [Value::Number(vec![1])];
        let candidates: &[Value] = match package {
            SolverPackage::Root => &root[..],
            SolverPackage::Part(part) => match self.candidates.get(part) {
                Some(candidates) => candidates,
                None => &[],
            },
        };
        let mut candidates = candidates.iter();
        Ok(candidates.find(|value| range.contains(*value)).cloned())
    }

    fn get_dependencies(
        &self,
        package: &SolverPackage,
        value: &Value,
    ) -> Result<Dependencies<SolverPackage, Ranges<Value>, String>, TooLong> {
        let mut needs: BTreeMap<HostComponent, Ranges<Value>> = BTreeMap::new();
        match package {
            SolverPackage::Root => needs.clone_from(&self.root),
            SolverPackage::Part(part) => {
                for fact in self.facts {
                    if fact.of == *part && fact.at.contains(value) {
                        narrow(&mut needs, fact.on, &fact.allowed);
                    }
                }
            }
        }
        if needs.values().any(Ranges::is_empty) {
            return Ok(Dependencies::Unavailable(
                "its own needs exclude each other".to_owned(),
            ));
        }
        let needs = needs
            .into_iter()
            .map(|(part, range)| (SolverPackage::Part(part), range));
        Ok(Dependencies::Available(
            needs.collect::<DependencyConstraints<_, _>>(),
        ))
    }

    fn should_cancel(&self) -> Result<(), TooLong> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > STEPS {
            Err(TooLong)
        } else {
            Ok(())
        }
    }
}
