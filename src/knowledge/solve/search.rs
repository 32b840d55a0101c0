//! Is there a release of every part, so that all wishes and all needs are kept? PubGrub answers; what is taken is decided by
//! the order of the parts and of the rows, so that the same question has the same answer.

use super::book::{Book, Fact};
use super::question::{Question, Wish};
use super::value::{Value, ends};
use crate::catalog::release::Part;
use pubgrub::{Dependencies, DependencyConstraints, DependencyProvider, PackageResolutionStatistics, PubGrubError, Ranges, resolve};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How often the search may look something up before it is given up.
const STEPS: u32 = 20_000;

/// What came of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// A release of each part that matters.
    All(BTreeMap<Part, Value>),
    /// There is none.
    Nothing,
    /// Nobody knows: the rows are too many or too entangled.
    GivenUp,
}

/// A part, or the question itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Package {
    Root,
    Part(Part),
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Package::Root => "the question",
            Package::Part(part) => part.key(),
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

/// The releases that can be taken, by part: the best first. Known ones come before others, which are no choice but keep a
/// search from calling a contradiction what is only not in the rows.
pub(super) fn candidates(book: &Book, question: &Question, facts: &[&Fact]) -> BTreeMap<Part, Vec<Value>> {
    let mut others: BTreeMap<Part, BTreeSet<Value>> = BTreeMap::new();
    for (part, range) in question.wishes.iter().flat_map(|wish| &wish.parts) {
        others.entry(*part).or_default().extend(ends(range));
    }
    for fact in facts {
        others.entry(fact.on).or_default();
        others.entry(fact.of).or_default();
    }
    for part in &question.asked {
        others.entry(*part).or_default();
    }
    let all = |(part, mut other): (Part, BTreeSet<Value>)| {
        other.extend(book.marks.get(&part).into_iter().flatten().cloned());
        if part.is_numbered() {
            other.extend([Value::Number(Vec::new()), Value::Number(vec![u64::MAX])]);
        }
        let mut values: Vec<Value> = book.known.get(&part).into_iter().flatten().map(|known| known.value.clone()).collect();
        let known: BTreeSet<Value> = values.iter().cloned().collect();
        values.extend(other.into_iter().rev().filter(|value| !known.contains(value)));
        (part, values)
    };
    others.into_iter().map(all).collect()
}

/// Searches with these wishes and facts.
pub(super) fn search(wishes: &[&Wish], asked: &[Part], facts: &[&Fact], candidates: &BTreeMap<Part, Vec<Value>>) -> Found {
    let mut root: BTreeMap<Part, Ranges<Value>> = asked.iter().map(|part| (*part, Ranges::full())).collect();
    for (part, range) in wishes.iter().flat_map(|wish| &wish.parts) {
        let both = root.get(part).map_or_else(|| range.clone(), |other| other.intersection(range));
        root.insert(*part, both);
    }
    let provider = Provider { root, facts, candidates, steps: Cell::new(0) };
    match resolve(&provider, Package::Root, Value::Number(vec![1])) {
        Ok(found) => {
            let part = |(package, value)| match package {
                Package::Root => None,
                Package::Part(part) => Some((part, value)),
            };
            Found::All(found.into_iter().filter_map(part).collect())
        }
        Err(PubGrubError::NoSolution(_)) => Found::Nothing,
        Err(_) => Found::GivenUp,
    }
}

struct Provider<'a> {
    root: BTreeMap<Part, Ranges<Value>>,
    facts: &'a [&'a Fact],
    candidates: &'a BTreeMap<Part, Vec<Value>>,
    steps: Cell<u32>,
}

impl DependencyProvider for Provider<'_> {
    type P = Package;
    type V = Value;
    type VS = Ranges<Value>;
    type Priority = (bool, Reverse<Option<Part>>);
    type M = String;
    type Err = TooLong;

    fn prioritize(&self, package: &Package, _: &Ranges<Value>, _: &PackageResolutionStatistics) -> Self::Priority {
        match package {
            Package::Root => (true, Reverse(None)),
            Package::Part(part) => (self.root.get(part).is_some_and(|range| *range != Ranges::full()), Reverse(Some(*part))),
        }
    }

    fn choose_version(&self, package: &Package, range: &Ranges<Value>) -> Result<Option<Value>, TooLong> {
        Ok(match package {
            Package::Root => Some(Value::Number(vec![1])).filter(|value| range.contains(value)),
            Package::Part(part) => self.candidates.get(part).into_iter().flatten().find(|value| range.contains(*value)).cloned(),
        })
    }

    fn get_dependencies(&self, package: &Package, value: &Value) -> Result<Dependencies<Package, Ranges<Value>, String>, TooLong> {
        let mut needs: BTreeMap<Part, Ranges<Value>> = BTreeMap::new();
        match package {
            Package::Root => needs.clone_from(&self.root),
            Package::Part(part) => {
                for fact in self.facts.iter().filter(|fact| fact.of == *part && fact.at.contains(value)) {
                    let both = needs.get(&fact.on).map_or_else(|| fact.allowed.clone(), |other| other.intersection(&fact.allowed));
                    needs.insert(fact.on, both);
                }
            }
        }
        if needs.values().any(Ranges::is_empty) {
            return Ok(Dependencies::Unavailable("its own needs exclude each other".to_owned()));
        }
        let needs = needs.into_iter().map(|(part, range)| (Package::Part(part), range));
        Ok(Dependencies::Available(needs.collect::<DependencyConstraints<_, _>>()))
    }

    fn should_cancel(&self) -> Result<(), TooLong> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > STEPS { Err(TooLong) } else { Ok(()) }
    }
}
