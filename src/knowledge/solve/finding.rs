//! Requirements that exclude each other, as diagnostics: carets under each, every reason with its
//! entry, what would fix it, the sources.

use super::answer::SolverAnswers;
use super::book::ReleaseConstraint;
use super::conflict::SolverConflict;
use super::question::{SolverQuestion, SpecRequirement};
use crate::catalog::Catalog;
use crate::spec::LoadedSpec;
use railwright_base::{Diagnostic, nodeset};
use std::collections::{BTreeMap, BTreeSet};

/// The code of requirements that exclude each other.
pub const CODE: &str = "RW0132";

/// Which hosts a rule was said of, by its code.
pub type Hosts = BTreeMap<String, BTreeSet<String>>;

/// Requirements that exclude each other, and on which hosts.
#[derive(Debug, Clone)]
pub struct ConflictFinding {
    /// As it is shown.
    pub diagnostic: Diagnostic,
    /// The hosts.
    pub hosts: Vec<String>,
}

/// The answers where the rules do not count that are `waived` for all hosts of a group.
pub fn solve_with_waivers(loaded: &LoadedSpec, catalog: &Catalog, waived: &Hosts) -> SolverAnswers {
    let mut waived_by_group: Vec<BTreeSet<String>> = Vec::new();
    for hosts in by_group(loaded) {
        let mut codes = BTreeSet::new();
        for (code, waived_hosts) in waived {
            if hosts.iter().all(|host| waived_hosts.contains(*host)) {
                codes.insert(code.clone());
            }
        }
        waived_by_group.push(codes);
    }
    SolverAnswers::without(loaded, catalog, &waived_by_group)
}

fn by_group(loaded: &LoadedSpec) -> Vec<Vec<&str>> {
    let mut hosts: Vec<Vec<&str>> = vec![Vec::new(); loaded.spec.nodes.len()];
    for host in &loaded.hosts {
        hosts[host.group].push(&host.name);
    }
    hosts
}

/// One finding a class of hosts. What a rule `found` of a host already is not reported again, what
/// is `waived` is not reported.
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
    let mut findings = Vec::new();
    for (answer, groups) in answers.answers.iter().zip(&groups) {
        let Some(first) = groups.first() else {
            continue;
        };
        for conflict in &answer.conflicts {
            let mut affected: Vec<String> = Vec::new();
            for host in groups.iter().flat_map(|group| &hosts[*group]) {
                if !is_found_by_rule(conflict, host, [found, waived]) {
                    affected.push((*host).to_owned());
                }
            }
            if affected.is_empty() {
                continue;
            }
            let question = &answers.questions[*first];
            let diagnostic = new_conflict_diagnostic(loaded, question, conflict)
                .on(nodeset::fold_node_set(&affected));
            findings.push(ConflictFinding {
                diagnostic,
                hosts: affected,
            });
        }
    }
    findings
}

/// Whether a rule that says what the conflict says was found or waived on a host.
fn is_found_by_rule(conflict: &SolverConflict, host: &str, known: [&Hosts; 2]) -> bool {
    for rule in conflict.facts.iter().flat_map(|fact| &fact.rules) {
        for hosts_by_rule in known {
            if let Some(hosts) = hosts_by_rule.get(rule)
                && hosts.contains(host)
            {
                return true;
            }
        }
    }
    false
}

fn new_conflict_diagnostic(
    loaded: &LoadedSpec,
    question: &SolverQuestion,
    conflict: &SolverConflict,
) -> Diagnostic {
    let places = conflict.resources.iter();
    let resources: Vec<&SpecRequirement> = places
        .filter_map(|at| question.resources.get(*at))
        .collect();
    let names = resources
        .iter()
        .map(|resource| format!("`{}`", resource.said));
    let names: Vec<String> = names.collect();
    let message = match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => {
            format!("{} and {last} exclude each other", rest.join(", "))
        }
        _ => format!("{} cannot be had", names.join(", ")),
    };
    let facts = conflict.facts.iter();
    let reasons = facts.map(|fact| format!("{} ({})", fact.says, fact.place));
    let reasons = reasons.collect::<Vec<_>>().join("; ");
    let mut diagnostic = if conflict.certain && !conflict.is_assumed {
        Diagnostic::error(CODE, message).effect(format!(
            "no choice of the other parts satisfies all of them: {reasons}"
        ))
    } else {
        Diagnostic::warning(CODE, message).effect(format!("this may fail: {reasons}"))
    };
    for resource in resources {
        let text = format_caret_label(resource, &conflict.facts);
        if let Some(label) = loaded.label_around(&resource.path, &text) {
            diagnostic = diagnostic.labelled(label);
        }
    }
    let fixes: Vec<&str> =
        collect_unique_texts(conflict.facts.iter().map(|fact| fact.fix.as_str()));
    let which = if conflict.resources.len() == 1 {
        "change it"
    } else {
        "change one of them"
    };
    diagnostic = diagnostic.next(format!("{which}: {}", fixes.join(", or ")));
    diagnostic.source = Some(
        collect_unique_texts(conflict.facts.iter().map(|fact| fact.source.as_str())).join("; "),
    );
    diagnostic
}

/// What is said under a requirement: itself, or what it stands for besides where that is meant.
fn format_caret_label(resource: &SpecRequirement, facts: &[ReleaseConstraint]) -> String {
    if let Some((part, text)) = &resource.implied
        && facts
            .iter()
            .any(|fact| fact.on == *part || fact.of == *part)
    {
        return text.clone();
    }
    resource.said.clone()
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
