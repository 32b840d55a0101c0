//! The combinations that are known to fit or not, tried.

use super::answer::SolverAnswers;
use crate::catalog::Catalog;
use crate::catalog::release::{CombinationEntry, HostComponent};
use crate::spec;
use railwright_base::Diagnostic;
use std::collections::BTreeSet;

/// What is wrong with the inventory's own combinations: the shipped ones are tried by the tests.
pub fn check_combinations(catalog: &Catalog) -> Vec<Diagnostic> {
    let mut failures = Vec::new();
    for entry in catalog.combination.entries() {
        if !entry.own {
            continue;
        }
        let Some(why) = explain_failed_combination(&entry.content, catalog) else {
            continue;
        };
        let name = railwright_base::text::one_line(&entry.content.name, 60);
        let message = format!("the combination `{name}` does not hold: {why}");
        failures.push(
            Diagnostic::error("RW0226", message)
                .labelled(entry.label.clone())
                .effect("what the releases of the catalogue need is not what its author knows")
                .next("fix the combination, or the release's entry: railwright catalog release"),
        );
    }
    failures
}

/// Why a combination does not hold.
pub(super) fn explain_failed_combination(
    entry: &CombinationEntry,
    catalog: &Catalog,
) -> Option<String> {
    let loaded = match spec::load_case_spec(&entry.spec) {
        Ok(loaded) => loaded,
        Err(why) => return Some(why.to_string()),
    };
    let answers = SolverAnswers::new(&loaded, catalog);
    let (Some(answer), Some(question)) = (answers.group(0), answers.questions.first()) else {
        return Some("it has no entry of `nodes`".to_owned());
    };
    let excludes: BTreeSet<&str> = entry.excludes.iter().map(String::as_str).collect();
    let mut found: Vec<(BTreeSet<&str>, bool)> = Vec::new();
    for conflict in &answer.conflicts {
        let paths = conflict
            .resources
            .iter()
            .map(|at| &question.resources[*at].path);
        let paths = paths.map(|path| path.trim_start_matches("nodes[0]."));
        found.push((paths.collect(), conflict.certain && !conflict.is_assumed));
    }
    if excludes.is_empty() {
        if let Some((paths, _)) = found.first() {
            return Some(format!("{} exclude each other", join_paths(paths)));
        }
    } else if !found.contains(&(excludes.clone(), !entry.unsure)) {
        let others: Vec<String> = found.iter().map(|(paths, _)| join_paths(paths)).collect();
        let instead = if others.is_empty() {
            "nothing does".to_owned()
        } else {
            format!("{} do", others.join(", "))
        };
        return Some(format!(
            "{} do not exclude each other so, {instead}",
            join_paths(&excludes)
        ));
    }
    for (part, release) in &entry.chosen {
        let mut choices = answer.choices.iter();
        let choice = choices.find(|choice| choice.part == *part);
        let chosen = choice.map(|choice| choice.known.release.as_str());
        if chosen != Some(release.as_str()) {
            return Some(not_chosen(*part, release, chosen));
        }
    }
    None
}

fn join_paths(paths: &BTreeSet<&str>) -> String {
    paths.iter().copied().collect::<Vec<_>>().join(" and ")
}

fn not_chosen(part: HostComponent, release: &str, chosen: Option<&str>) -> String {
    let chosen = match chosen {
        Some(chosen) => part.with(chosen),
        None => "nothing".to_owned(),
    };
    format!(
        "{chosen} is chosen, not {}",
        part.with(&railwright_base::text::one_line(release, 40))
    )
}
