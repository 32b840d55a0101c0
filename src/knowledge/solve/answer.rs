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
    /// The release and its entry.
    pub known: KnownRelease,
    /// The facts that it was chosen by.
    pub because: Vec<ReleaseConstraint>,
    /// Those by which the first one, the newest, was not.
    pub against: Vec<ReleaseConstraint>,
}

/// What is said of a question.
#[derive(Debug, Clone, Default)]
pub struct SolverAnswer {
    /// Which requirements exclude each other.
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
        SolverAnswers::without(loaded, catalog, &[])
    }

    /// Of all groups that have hosts; the rules that are `waived` for a group do not count there,
    /// nor do the facts that say what they say.
    pub fn without(
        loaded: &LoadedSpec,
        catalog: &Catalog,
        waived: &[BTreeSet<String>],
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
            let waived = waived.get(group).cloned().unwrap_or_default();
            let next = answers.answers.len();
            let at = *by_key
                .entry((question.key(&book), waived.clone()))
                .or_insert(next);
            if at == next {
                let answer = solve_question(&book, &question, &waived);
                answers.answers.push(answer);
            }
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
    let (mut facts, unknown) = question.facts(book);
    facts.retain(|fact| !fact.rules.iter().any(|rule| waived.contains(rule)));
    let query = SolverQuery::new(book, question, &facts);
    let accepted = waived.contains(CODE);
    let (conflicts, left) = query.conflicts(&facts, accepted);
    let mut choices = Vec::new();
    if let SolverOutcome::All(found) = query.all(&left)
        && (accepted || conflicts.iter().all(|conflict| !conflict.certain))
    {
        for part in &question.asked {
            // what may not go together is nothing to choose by
            let mut doubted = conflicts.iter().flat_map(|conflict| &conflict.facts);
            if !doubted.any(|fact| fact.of == *part || fact.on == *part) {
                choices.extend(choose_release(book, *part, &left, &unknown, &found));
            }
        }
    }
    SolverAnswer { conflicts, choices }
}

/// The release that was found for a part; nothing where it is in no entry, or where too little is
/// known of what it needs.
fn choose_release(
    book: &Book,
    part: HostComponent,
    facts: &[&ReleaseConstraint],
    unknown: &[&ReleaseConstraint],
    found: &BTreeMap<HostComponent, Value>,
) -> Option<Choice> {
    let release = found.get(&part)?;
    let mut known = book.known.get(&part)?.iter();
    let known = known.find(|known| known.value == *release)?;
    let mut open = unknown.iter();
    if open.any(|fact| fact.of == part && fact.at.contains(release)) {
        return None;
    }
    let mut because = Vec::new();
    for fact in facts {
        if is_fact_relevant(fact, part, found) {
            because.push((*fact).clone());
        }
    }
    Some(Choice {
        part,
        known: known.clone(),
        because,
        against: collect_rejection_facts(book, part, known, facts, found),
    })
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
    let mut against = Vec::new();
    let Some(first) = book.known.get(&part).and_then(|known| known.first()) else {
        return against;
    };
    if first.value == taken.value {
        return against;
    }
    for fact in facts {
        if let Some(value) = found.get(&fact.on)
            && fact.of == part
            && fact.at.contains(&first.value)
            && !fact.allowed.contains(value)
        {
            against.push((*fact).clone());
        }
    }
    against
}

/// Whether a fact says something of a part here: what was taken needs it, or it needs what was
/// taken.
fn is_fact_relevant(
    fact: &ReleaseConstraint,
    part: HostComponent,
    found: &BTreeMap<HostComponent, Value>,
) -> bool {
    match found.get(&fact.of) {
        Some(value) => (fact.on == part || fact.of == part) && fact.at.contains(value),
        None => false,
    }
}
