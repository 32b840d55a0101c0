//! Wishes that exclude each other, told: carets under each, every reason with its row, what would
//! mend it, the sources.

use super::answer::SolverAnswers;
use super::book::ReleaseConstraint;
use super::conflict::SolverConflict;
use super::question::{SolverQuestion, SpecRequirement};
use crate::catalog::Catalog;
use crate::spec::LoadedSpec;
use railwright_base::{Diagnostic, nodeset};
use std::collections::{BTreeMap, BTreeSet};

/// The code of wishes that exclude each other.
pub const CODE: &str = "RW0132";

/// Which hosts a rule was said of, by its code.
pub type Hosts = BTreeMap<String, BTreeSet<String>>;

/// Wishes that exclude each other, and on which hosts.
#[derive(Debug, Clone)]
pub struct ConflictFinding {
    /// As it is shown.
    pub diagnostic: Diagnostic,
    /// The hosts.
    pub hosts: Vec<String>,
}

/// The answers where the rules do not count that are `waived` for all hosts of a group.
pub fn solve_with_waivers(loaded: &LoadedSpec, catalog: &Catalog, waived: &Hosts) -> SolverAnswers {
    let hosts = by_group(loaded);
    let wholly = |group: usize| {
        let all = |of: &BTreeSet<String>| hosts[group].iter().all(|host| of.contains(*host));
        waived
            .iter()
            .filter(|(_, of)| all(of))
            .map(|(code, _)| code.clone())
            .collect::<BTreeSet<String>>()
    };
    SolverAnswers::without(loaded, catalog, &wholly)
}

fn by_group(loaded: &LoadedSpec) -> Vec<Vec<&str>> {
    let mut hosts: Vec<Vec<&str>> = vec![Vec::new(); loaded.spec.nodes.len()];
    for host in &loaded.hosts {
        hosts[host.group].push(&host.name);
    }
    hosts
}

/// One finding a class of hosts. What a rule `found` of a host already is not told again, what is
/// `waived` is not told.
pub fn collect_conflict_findings(
    loaded: &LoadedSpec,
    answers: &SolverAnswers,
    found: &Hosts,
    waived: &Hosts,
) -> Vec<ConflictFinding> {
    let hosts = by_group(loaded);
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); answers.answers.len()];
    for (group, answer) in answers.of.iter().enumerate() {
        if let Some(groups) = answer.and_then(|answer| groups.get_mut(answer)) {
            groups.push(group);
        }
    }
    let mut told = Vec::new();
    for (answer, groups) in answers.answers.iter().zip(&groups) {
        let Some(first) = groups.first() else {
            continue;
        };
        for conflict in &answer.conflicts {
            let said = |host: &str| {
                let rules = conflict.facts.iter().flat_map(|fact| &fact.rules);
                rules
                    .flat_map(|rule| [found.get(rule), waived.get(rule)])
                    .flatten()
                    .any(|of| of.contains(host))
            };
            let of = groups
                .iter()
                .flat_map(|group| &hosts[*group])
                .filter(|host| !said(host));
            let of: Vec<String> = of.map(|host| (*host).to_owned()).collect();
            if !of.is_empty() {
                let diagnostic =
                    new_conflict_diagnostic(loaded, &answers.questions[*first], conflict)
                        .on(nodeset::fold_node_set(&of));
                told.push(ConflictFinding {
                    diagnostic,
                    hosts: of,
                });
            }
        }
    }
    told
}

fn new_conflict_diagnostic(
    loaded: &LoadedSpec,
    question: &SolverQuestion,
    conflict: &SolverConflict,
) -> Diagnostic {
    let wishes: Vec<&SpecRequirement> = conflict
        .wishes
        .iter()
        .filter_map(|at| question.wishes.get(*at))
        .collect();
    let names: Vec<String> = wishes
        .iter()
        .map(|wish| format!("`{}`", wish.said))
        .collect();
    let message = match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => {
            format!("{} and {last} exclude each other", rest.join(", "))
        }
        _ => format!("{} cannot be had", names.join(", ")),
    };
    let reasons: Vec<String> = conflict
        .facts
        .iter()
        .map(|fact| format!("{} ({})", fact.says, fact.place))
        .collect();
    let mut diagnostic = match conflict.certain && !conflict.is_assumed {
        true => Diagnostic::error(CODE, message).effect(format!(
            "no choice of the other parts satisfies all of them: {}",
            reasons.join("; ")
        )),
        false => Diagnostic::warning(CODE, message)
            .effect(format!("this may fail: {}", reasons.join("; "))),
    };
    for wish in wishes {
        let label = loaded.label_around(&wish.path, &format_caret_label(wish, &conflict.facts));
        diagnostic = label.into_iter().fold(diagnostic, Diagnostic::labelled);
    }
    let mends: Vec<&str> =
        collect_unique_texts(conflict.facts.iter().map(|fact| fact.mend.as_str()));
    let which = if conflict.wishes.len() == 1 {
        "change it"
    } else {
        "change one of them"
    };
    diagnostic = diagnostic.next(format!("{which}: {}", mends.join(", or ")));
    diagnostic.source = Some(
        collect_unique_texts(conflict.facts.iter().map(|fact| fact.source.as_str())).join("; "),
    );
    diagnostic
}

/// What is said under a wish: itself, or what it stands for besides where that is meant.
fn format_caret_label(wish: &SpecRequirement, facts: &[ReleaseConstraint]) -> String {
    let implied = wish.implied.as_ref().filter(|(part, _)| {
        facts
            .iter()
            .any(|fact| fact.on == *part || fact.of == *part)
    });
    implied.map_or_else(|| wish.said.clone(), |(_, text)| text.clone())
}

fn collect_unique_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for text in texts {
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}
