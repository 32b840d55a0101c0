//! The combinations that are known to fit or not, tried.

use super::answer::SolverAnswers;
use crate::catalog::Catalog;
use crate::catalog::release::{CombinationRow, HostComponent};
use crate::spec;
use railwright_base::Diagnostic;
use std::collections::BTreeSet;

/// What is wrong with the inventory's own combinations: the shipped ones are tried by the tests.
pub fn check_combinations(catalog: &Catalog) -> Vec<Diagnostic> {
    let own = catalog.combination.entries().filter(|entry| entry.own);
    own.filter_map(|entry| {
        let why = explain_failed_combination(&entry.row, catalog)?;
        let name = railwright_base::text::one_line(&entry.row.name, 60);
        Some(
            Diagnostic::error(
                "RW0226",
                format!("the combination `{name}` does not hold: {why}"),
            )
            .labelled(entry.label.clone())
            .effect("what the releases of the catalogue need is not what its author knows")
            .next("mend the combination, or the row of the release: railwright catalog release"),
        )
    })
    .collect()
}

/// Why a combination does not hold.
pub(super) fn explain_failed_combination(
    row: &CombinationRow,
    catalog: &Catalog,
) -> Option<String> {
    let loaded = match spec::load_case_spec(&row.spec) {
        Ok(loaded) => loaded,
        Err(why) => return Some(why),
    };
    let answers = SolverAnswers::new(&loaded, catalog);
    let (Some(answer), Some(question)) = (answers.group(0), answers.questions.first()) else {
        return Some("it has no entry of `nodes`".to_owned());
    };
    let short = |path: &str| path.trim_start_matches("nodes[0].").to_owned();
    let excludes: BTreeSet<String> = row.excludes.iter().cloned().collect();
    let found = answer.conflicts.iter().map(|conflict| {
        let paths: BTreeSet<String> = conflict
            .wishes
            .iter()
            .map(|at| short(&question.wishes[*at].path))
            .collect();
        (paths, conflict.certain && !conflict.is_assumed)
    });
    let found: Vec<(BTreeSet<String>, bool)> = found.collect();
    let words = |paths: &BTreeSet<String>| {
        paths
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" and ")
    };
    if excludes.is_empty() {
        if let Some((paths, _)) = found.first() {
            return Some(format!("{} exclude each other", words(paths)));
        }
    } else if !found.contains(&(excludes.clone(), !row.unsure)) {
        let others: Vec<String> = found.iter().map(|(paths, _)| words(paths)).collect();
        let instead = if others.is_empty() {
            "nothing does".to_owned()
        } else {
            format!("{} do", others.join(", "))
        };
        return Some(format!(
            "{} do not exclude each other so, {instead}",
            words(&excludes)
        ));
    }
    row.chosen.iter().find_map(|(part, release)| {
        let chosen = answer
            .choices
            .iter()
            .find(|choice| choice.part == *part)
            .map(|choice| choice.known.release.as_str());
        (chosen != Some(release.as_str())).then(|| not_chosen(*part, release, chosen))
    })
}

fn not_chosen(part: HostComponent, release: &str, chosen: Option<&str>) -> String {
    let chosen = chosen.map_or("nothing".to_owned(), |chosen| part.with(chosen));
    format!(
        "{chosen} is chosen, not {}",
        part.with(&railwright_base::text::one_line(release, 40))
    )
}
