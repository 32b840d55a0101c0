//! A rule by its own two cases: the spec that keeps it and the one that breaks it.

use super::evaluation::{asked_of_job, evaluate_job, evaluate_rules};
use super::job_subject;
use super::rule::{Rule, RuleSet};
use crate::catalog::{Catalog, unknown_models};
use crate::template::engine;
use railwright_base::{Diagnostic, Severity};
use serde_json::Value;

/// What is wrong with the cases of the inventory's own rules: those of shipped rules are tried by
/// the tests.
pub fn check_rule_cases(rules: &RuleSet, catalog: &Catalog) -> Vec<Diagnostic> {
    let own: Vec<&Rule> = rules.rules.values().filter(|rule| rule.own).collect();
    let _allowance = engine::share_allowance(own.len());
    let mut untrue = Vec::new();
    for rule in own {
        for (case, why) in find_failed_cases(rule, catalog) {
            untrue.push(untrue_case(rule, case, &why));
        }
    }
    untrue
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
    let mut failed = Vec::new();
    for (name, case, breaks) in [
        ("passes", &rule.passes, false),
        ("fails", &rule.fails, true),
    ] {
        if engine::is_allowance_used_up() {
            continue;
        }
        if let Some(why) = explain_failed_case(rule, case, breaks, catalog) {
            failed.push((name, why));
        }
    }
    failed
}

/// Why a case of a rule does not hold; `breaks` is whether it should break the rule.
fn explain_failed_case(
    rule: &Rule,
    case: &Value,
    breaks: bool,
    catalog: &Catalog,
) -> Option<String> {
    let (loaded, job) = match job_subject::parse_rule_case(case) {
        Ok(read) => read,
        Err(why) => return Some(why.to_string()),
    };
    for unknown in unknown_models(&loaded, catalog) {
        if unknown.severity == Severity::Error {
            return Some(unknown.message);
        }
    }
    let mut alone = RuleSet::default();
    alone.rules.insert(rule.code.clone(), rule.clone());
    let report = match &job {
        Some(job) => {
            let found = asked_of_job(&loaded, catalog, &alone, job, true);
            evaluate_job(&loaded, "", found)
        }
        None => evaluate_rules(&loaded, catalog, &alone, ""),
    };
    for finding in &report.findings {
        let found = &finding.diagnostic;
        if found.code != rule.code {
            return Some(match found.labels.first() {
                Some(label) => label.text.clone(),
                None => found.message.clone(),
            });
        }
    }
    match (breaks, report.findings.is_empty()) {
        (true, true) => Some("the rule finds nothing in it".to_owned()),
        (false, false) => Some("the rule finds it broken".to_owned()),
        _ => None,
    }
}
