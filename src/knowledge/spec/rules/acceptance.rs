//! Findings of drift that are accepted for a while: whose, by whom, why, and until when.

use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::acceptance::{AcceptancePattern, PatternError};
use crate::spec::hosts::Host;
use crate::spec::model::{Acceptance, Spec};
use railwright_base::suggest::find_nearest_word;
use std::collections::BTreeSet;

const CODE: &str = "RW0130";
const EFFECT: &str =
    "nothing would be accepted by it, and what it is meant for would count as drift";

/// Every entry of `drift.accept` for itself.
pub fn check_acceptances(checker: &mut SpecChecker<'_>, spec: &Spec) {
    for (index, acceptance) in spec.drift.accept.iter().enumerate() {
        check_acceptance(checker, &format!("drift.accept[{index}]"), acceptance);
    }
}

fn check_acceptance(checker: &mut SpecChecker<'_>, at: &str, acceptance: &Acceptance) {
    match AcceptancePattern::of(acceptance) {
        Ok(_) => {}
        Err(PatternError::Both) => {
            let finding = new_spec_error(
                CODE,
                "an acceptance is about an `address` or about `nodes`",
                EFFECT,
                "write one of the two",
            );
            checker.find(at, "neither, or both", finding);
        }
        Err(PatternError::Nodes(problem)) => {
            let fix = problem.fix.clone().unwrap_or_else(|| {
                "a node-set looks like `gpu[001-064]`; `*` stands for all".to_owned()
            });
            checker.find(
                &format!("{at}.nodes"),
                &problem.message,
                new_spec_error(CODE, "this is no node-set", EFFECT, fix),
            );
        }
        Err(PatternError::Address(why)) => {
            let fix = "write host/NODES/KIND/NAME, such as host/gpu[01-04]/link/ens4; NODES, KIND \
                       and NAME may be `*`";
            checker.find(
                &format!("{at}.address"),
                &why,
                new_spec_error(CODE, "this is no address of resources", EFFECT, fix),
            );
        }
    }
    let texts = [
        ("attribute", &acceptance.attribute),
        ("reason", &acceptance.reason),
        ("owner", &acceptance.owner),
    ];
    check_exception_fields(
        checker,
        (CODE, EFFECT),
        at,
        "of this acceptance",
        &texts,
        &acceptance.until,
    );
}

/// What every exception needs that somebody accepts for a while: texts of one line, and a last day.
/// `code` and its effect are those of the exception.
pub(super) fn check_exception_fields(
    checker: &mut SpecChecker<'_>,
    code: (&'static str, &str),
    at: &str,
    label: &str,
    texts: &[(&str, &String)],
    until: &str,
) {
    let (code, effect) = code;
    if !is_date(until) {
        let finding = new_spec_error(
            code,
            format!("`{}` is no date", truncate_user_text(until)),
            effect,
            "write the last day, such as 2026-12-31",
        );
        checker.find(&format!("{at}.until"), "not year-month-day", finding);
    }
    for (key, text) in texts {
        if !text.trim().is_empty() && !text.chars().any(char::is_control) {
            continue;
        }
        let finding = new_spec_error(
            code,
            format!("`{key}` says nothing, or more than a line"),
            effect,
            "write it as one line of text",
        );
        checker.find(&format!("{at}.{key}"), label, finding);
    }
}

/// A day as ISO 8601 writes it, and only so: days are compared as text.
fn is_date(text: &str) -> bool {
    text.parse::<jiff::civil::Date>()
        .is_ok_and(|date| date.to_string() == text)
}

/// The end of a message: which host may have been meant.
pub(super) fn suggest_host(name: &str, known: &BTreeSet<&str>) -> String {
    match find_nearest_word(name, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}

/// Hosts that the cluster does not have.
pub fn check_accepted_hosts(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: &[Host]) {
    let known: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    for (index, acceptance) in spec.drift.accept.iter().enumerate() {
        let Ok(pattern) = AcceptancePattern::of(acceptance) else {
            continue;
        };
        let named = pattern.hosts.unwrap_or_default();
        let Some(unknown) = named.iter().find(|name| !known.contains(name.as_str())) else {
            continue;
        };
        let near = suggest_host(unknown, &known);
        let key = if acceptance.nodes.is_some() {
            "nodes"
        } else {
            "address"
        };
        let finding = new_spec_error(
            CODE,
            format!("there is no host `{}`{near}", truncate_user_text(unknown)),
            EFFECT,
            "name hosts of `nodes`",
        );
        checker.find(
            &format!("drift.accept[{index}].{key}"),
            "of this cluster",
            finding,
        );
    }
}
