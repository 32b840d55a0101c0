//! The answers for all groups of a spec: a question that was asked before is not asked again.

use super::book::{Book, KnownRelease, ReleaseConstraint};
use super::conflict::{SolverConflict, SolverQuery};
use super::finding::CODE;
use super::question::SolverQuestion;
use super::search::SolverOutcome;
use super::value::Value;
use crate::catalog::Catalog;
use crate::catalog::release::HostComponent;
use crate::spec::LoadedSpec;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A release that was chosen for a part that the spec leaves open.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The part.
    pub part: HostComponent,
    /// The release and its row.
    pub known: KnownRelease,
    /// The facts that it was chosen by.
    pub because: Vec<ReleaseConstraint>,
    /// Those by which the first one, the newest, was not.
    pub against: Vec<ReleaseConstraint>,
}

/// What is said of a question.
#[derive(Debug, Clone, Default)]
pub struct SolverAnswer {
    /// Which wishes exclude each other.
    pub conflicts: Vec<SolverConflict>,
    /// What is chosen; nothing of a part of which too little is known.
    pub choices: Vec<Choice>,
}

/// The answers for the groups of a spec.
#[derive(Debug, Clone, Default)]
pub struct SolverAnswers {
    /// One a group.
    pub questions: Vec<SolverQuestion>,
    /// Which answer is a group's; none of a group without hosts.
    pub of: Vec<Option<usize>>,
    /// The answers, each once.
    pub answers: Vec<SolverAnswer>,
}

impl SolverAnswers {
    /// Of all groups that have hosts.
    pub fn new(loaded: &LoadedSpec, catalog: &Catalog) -> SolverAnswers {
        SolverAnswers::without(loaded, catalog, &|_| BTreeSet::new())
    }

    /// Of all groups that have hosts, where some rules do not count for a group: nor do the facts
    /// that say what they say.
    pub fn without(
        loaded: &LoadedSpec,
        catalog: &Catalog,
        waived: &dyn Fn(usize) -> BTreeSet<String>,
    ) -> SolverAnswers {
        let book = Book::of(catalog);
        let mut answers = SolverAnswers::default();
        let mut by_key: HashMap<(String, BTreeSet<String>), usize> = HashMap::new();
        let peopled: BTreeSet<usize> = loaded.hosts.iter().map(|host| host.group).collect();
        for group in 0..loaded.spec.nodes.len() {
            if !peopled.contains(&group) {
                answers.of.push(None);
                answers.questions.push(SolverQuestion::default());
                continue;
            }
            let question = SolverQuestion::of(loaded, group, catalog);
            let waived = waived(group);
            let at = *by_key
                .entry((question.key(&book), waived.clone()))
                .or_insert_with(|| {
                    answers
                        .answers
                        .push(solve_question(&book, &question, &waived));
                    answers.answers.len() - 1
                });
            answers.of.push(Some(at));
            answers.questions.push(question);
        }
        answers
    }

    /// The answer for a group.
    pub fn group(&self, group: usize) -> Option<&SolverAnswer> {
        self.answers.get((*self.of.get(group)?)?)
    }
}

/// The answer to one question.
pub fn solve_question(
    book: &Book,
    question: &SolverQuestion,
    waived: &BTreeSet<String>,
) -> SolverAnswer {
    let counts = |fact: &&ReleaseConstraint| !fact.rules.iter().any(|rule| waived.contains(rule));
    let (facts, unknown) = question.facts(book);
    let facts: Vec<&ReleaseConstraint> = facts.into_iter().filter(counts).collect();
    let asked = SolverQuery::new(book, question, &facts);
    let accepted = waived.contains(CODE);
    let (conflicts, left) = asked.conflicts(&facts, accepted);
    let choices = match asked.all(&left) {
        SolverOutcome::All(found)
            if accepted || conflicts.iter().all(|conflict| !conflict.certain) =>
        {
            // what may not go together is nothing to choose by
            let doubted = |part: &HostComponent| {
                conflicts
                    .iter()
                    .flat_map(|c| &c.facts)
                    .any(|fact| fact.of == *part || fact.on == *part)
            };
            let chosen = question
                .asked
                .iter()
                .filter(|part| !doubted(part))
                .filter_map(|part| {
                    let known = book
                        .known
                        .get(part)?
                        .iter()
                        .find(|known| found.get(part) == Some(&known.value))?;
                    let open = unknown
                        .iter()
                        .any(|fact| fact.of == *part && fact.at.contains(&known.value));
                    let because = left
                        .iter()
                        .filter(|fact| is_fact_relevant(fact, *part, &found))
                        .map(|fact| (*fact).clone())
                        .collect();
                    let against = collect_rejection_facts(book, *part, known, &left, &found);
                    (!open).then(|| Choice {
                        part: *part,
                        known: known.clone(),
                        because,
                        against,
                    })
                });
            chosen.collect()
        }
        _ => Vec::new(),
    };
    SolverAnswer { conflicts, choices }
}

/// Why the one that is taken first was not: what it needs and what was taken of that do not go
/// together.
fn collect_rejection_facts(
    book: &Book,
    part: HostComponent,
    taken: &KnownRelease,
    facts: &[&ReleaseConstraint],
    found: &BTreeMap<HostComponent, Value>,
) -> Vec<ReleaseConstraint> {
    let Some(first) = book
        .known
        .get(&part)
        .and_then(|known| known.first())
        .filter(|first| first.value != taken.value)
    else {
        return Vec::new();
    };
    let needs = |fact: &ReleaseConstraint| {
        fact.of == part
            && fact.at.contains(&first.value)
            && found
                .get(&fact.on)
                .is_some_and(|value| !fact.allowed.contains(value))
    };
    facts
        .iter()
        .filter(|fact| needs(fact))
        .map(|fact| (*fact).clone())
        .collect()
}

/// Whether a fact says something of a part here: what was taken needs it, or it needs what was
/// taken.
fn is_fact_relevant(
    fact: &ReleaseConstraint,
    part: HostComponent,
    found: &BTreeMap<HostComponent, Value>,
) -> bool {
    (fact.on == part || fact.of == part)
        && found
            .get(&fact.of)
            .is_some_and(|value| fact.at.contains(value))
}
