//! A rule by its own two cases: the spec that keeps it and the one that breaks it.

use super::job_subject;
use super::judge::{asked_of_job, evaluate_rules, judge_job};
use super::rule::{Rule, RuleSet};
use crate::catalog::{Catalog, unknown_models};
use crate::template::engine;
use railwright_base::{Diagnostic, Severity};

/// What is wrong with the cases of the inventory's own rules: those of shipped rules are tried by
/// the tests.
pub fn check_rule_cases(rules: &RuleSet, catalog: &Catalog) -> Vec<Diagnostic> {
    let own: Vec<&Rule> = rules.rules.values().filter(|rule| rule.own).collect();
    let _allowance = engine::share_allowance(own.len());
    own.into_iter()
        .flat_map(|rule| {
            find_failed_cases(rule, catalog)
                .into_iter()
                .map(move |(case, why)| untrue_case(rule, case, &why))
        })
        .collect()
}

fn untrue_case(rule: &Rule, case: &str, why: &str) -> Diagnostic {
    Diagnostic::error(
        "RW0226",
        format!("the case `{case}` of {} does not hold: {why}", rule.code),
    )
    .labelled(rule.label.clone())
    .effect("what the rule finds is not what its author meant")
    .next(
        "`fails` is a small spec, without `cluster`, that breaks the rule; `passes` is the nearest \
         one that does not",
    )
}

/// The cases of one rule that do not hold, and why. None is tried once the shared allowance is used
/// up, which was said.
pub(super) fn find_failed_cases(rule: &Rule, catalog: &Catalog) -> Vec<(&'static str, String)> {
    let mut alone = RuleSet::default();
    alone.rules.insert(rule.code.clone(), rule.clone());
    let wrong = [
        ("passes", &rule.passes, false),
        ("fails", &rule.fails, true),
    ]
    .into_iter()
    .filter_map(|(name, case, breaks)| {
        if engine::is_allowance_used_up() {
            return None;
        }
        let (loaded, job) = match job_subject::parse_rule_case(case) {
            Ok(read) => read,
            Err(why) => return Some((name, why)),
        };
        if let Some(unknown) = unknown_models(&loaded, catalog)
            .into_iter()
            .find(|unknown| unknown.severity == Severity::Error)
        {
            return Some((name, unknown.message));
        }
        let judgement = match &job {
            Some(job) => judge_job(
                &loaded,
                "",
                asked_of_job(&loaded, catalog, &alone, job, true),
            ),
            None => evaluate_rules(&loaded, catalog, &alone, ""),
        };
        let found: Vec<&Diagnostic> = judgement
            .findings
            .iter()
            .map(|finding| &finding.diagnostic)
            .collect();
        match found.iter().find(|found| found.code != rule.code) {
            Some(other) => Some((
                name,
                other
                    .labels
                    .first()
                    .map_or_else(|| other.message.clone(), |label| label.text.clone()),
            )),
            None if found.is_empty() == breaks => Some((
                name,
                if breaks {
                    "the rule finds nothing in it"
                } else {
                    "the rule finds it broken"
                }
                .to_owned(),
            )),
            None => None,
        }
    });
    wrong.collect()
}
