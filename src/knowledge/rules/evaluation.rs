//! Rules applied to a spec: what breaks which, where, on which hosts, and what of it is waived.

use super::facts::{cluster_facts, collect_host_classes};
use super::job_subject::JobSubject;
use super::rule::{Rule, RuleScope, RuleSet};
use super::sort::{HostClassIndex, RuleHostClass, group_hosts_by_rule_facts};
use super::switch_facts::{SwitchFacts, switch_facts};
use super::waiver::{WaivedFinding, Waivers};
use crate::catalog::Catalog;
use crate::spec::LoadedSpec;
use crate::template::engine;
use indexmap::IndexMap;
use indexmap::map::Entry;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Label, Severity, nodeset};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tera::Context;

/// A rule that a spec breaks.
#[derive(Debug, Clone)]
pub struct RuleFinding {
    /// As it is shown.
    pub diagnostic: Diagnostic,
    /// The hosts that it is about, in the spec's order; none for what concerns the cluster or a
    /// switch.
    pub hosts: Vec<String>,
}

/// What the rules say of a spec.
#[derive(Debug, Clone, Default)]
pub struct RulesReport {
    /// What counts: errors and warnings.
    pub findings: Vec<RuleFinding>,
    /// What is accepted for a while.
    pub waived: Vec<WaivedFinding>,
    /// Waivers that ended, or that waive nothing.
    pub notes: Vec<Diagnostic>,
}

impl RulesReport {
    /// All that is to be shown, errors first.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let found = self.findings.iter();
        let mut diagnostics: Vec<Diagnostic> =
            found.map(|finding| finding.diagnostic.clone()).collect();
        diagnostics.extend(self.notes.iter().cloned());
        diagnostics.sort_by_key(|diagnostic| diagnostic.severity);
        diagnostics
    }

    /// The errors alone.
    pub fn errors(&self) -> Vec<Diagnostic> {
        let mut errors = self.diagnostics();
        errors.retain(|diagnostic| diagnostic.severity == Severity::Error);
        errors
    }
}

/// Asks every rule; `today` is a day as `2026-12-31`, in UTC.
pub fn evaluate_rules(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    rules: &RuleSet,
    today: &str,
) -> RulesReport {
    evaluate_with(
        loaded,
        catalog,
        rules,
        today,
        Beyond {
            codes: &[],
            is_partial: false,
            found: |_: &RulesReport| Vec::new(),
        },
    )
}

/// What is found beyond the rules of a spec, and waived like what they find.
#[derive(Debug)]
pub struct Beyond<'c, F> {
    /// Codes of its own.
    pub codes: &'c [&'c str],
    /// Not all jobs of the spec could be asked: a waiver of what rules say of jobs may yet be
    /// needed.
    pub is_partial: bool,
    /// What is found, given what the rules found.
    pub found: F,
}

/// Applies the rules, and adds what is found beyond them, waived like their own findings.
pub fn evaluate_with<F: FnOnce(&RulesReport) -> Vec<RuleFinding>>(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    rules: &RuleSet,
    today: &str,
    beyond: Beyond<'_, F>,
) -> RulesReport {
    let (mut waivers, mut evaluation) = (Waivers::of(loaded, today), RulesReport::default());
    waivers.part(
        collect_rule_findings(loaded, catalog, rules.rules.values(), None),
        &mut evaluation,
    );
    let more = (beyond.found)(&evaluation);
    waivers.part(more, &mut evaluation);
    let mut codes: BTreeSet<&str> = beyond.codes.iter().copied().collect();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (code, rule) in &rules.rules {
        codes.insert(code);
        if beyond.is_partial && rule.is_of_jobs() {
            open.insert(code);
        }
    }
    evaluation.notes = waivers.notes(&codes, &open);
    evaluation
}

/// Asks what concerns a job that is about to be run: rules about the job itself, and those that
/// look at what the spec says of jobs where `environment` holds. `loaded` is the spec with the
/// job's own environment in the place of the spec's. Nothing is waived yet.
pub fn asked_of_job(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    rules: &RuleSet,
    subject: &JobSubject,
    environment: bool,
) -> Vec<RuleFinding> {
    let concerned = rules
        .rules
        .values()
        .filter(|rule| rule.is_of_jobs() && (environment || rule.scope == RuleScope::Job));
    collect_rule_findings(loaded, catalog, concerned, Some(subject))
}

/// What of that counts, and what is waived.
pub fn evaluate_job(loaded: &LoadedSpec, today: &str, found: Vec<RuleFinding>) -> RulesReport {
    let (mut waivers, mut evaluation) = (Waivers::of(loaded, today), RulesReport::default());
    waivers.part(found, &mut evaluation);
    evaluation
}

fn collect_rule_findings<'r>(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    rules: impl Iterator<Item = &'r Rule>,
    subject: Option<&JobSubject>,
) -> Vec<RuleFinding> {
    let _allowance = engine::share_allowance(loaded.hosts.len());
    let cluster = context_of(&cluster_facts(loaded, catalog));
    let mut known = HostClassIndex::of(collect_host_classes(loaded, catalog));
    let mut evaluation = RuleEvaluation {
        loaded,
        switches: switch_facts(&loaded.spec, catalog),
        job: None,
        places: BTreeMap::new(),
        found: IndexMap::new(),
    };
    if let Some(subject) = subject {
        evaluation.job = Some(context_of(&serde_json::json!({ "job": subject.facts })));
        evaluation.places = subject.places.clone();
    }
    for rule in rules {
        evaluation.rule(rule, &cluster, &mut known);
    }
    evaluation.findings()
}

struct RuleEvaluation<'a> {
    loaded: &'a LoadedSpec,
    /// The job that is about to be run, if there is one.
    job: Option<Context>,
    /// Carets of what did not come from the spec, by path.
    places: BTreeMap<String, Label>,
    /// The entries of `switches`, in the order of the spec.
    switches: Vec<SwitchFacts>,
    /// By code, what is said, and the place of what is not about hosts: the finding and the groups
    /// of its hosts.
    found: IndexMap<(String, String, String), (Diagnostic, BTreeSet<usize>)>,
}

impl RuleEvaluation<'_> {
    fn rule(&mut self, rule: &Rule, cluster: &Context, known: &mut HostClassIndex) {
        match rule.scope {
            RuleScope::Cluster => self.ask(rule, cluster, &rule.path, &[]),
            RuleScope::Job => {
                let Some(job) = self.job.clone() else { return };
                let mut context = cluster.clone();
                context.extend(job);
                self.ask(rule, &context, &rule.path, &[]);
            }
            RuleScope::Host => {
                let mut context = cluster.clone();
                for sort in &group_hosts_by_rule_facts(rule, known) {
                    context.insert("host", &sort.host);
                    self.ask(rule, &context, &path_of(rule, sort), &sort.groups);
                }
            }
            RuleScope::Pair => self.pairs(rule, cluster, &group_hosts_by_rule_facts(rule, known)),
            RuleScope::Switch => {
                let mut context = cluster.clone();
                for index in 0..self.switches.len() {
                    context.insert("switch", &self.switches[index]);
                    let path = match rule.path.strip_prefix("switch") {
                        Some(rest) => format!("switches[{index}]{rest}"),
                        None => rule.path.clone(),
                    };
                    self.ask(rule, &context, &path, &[]);
                }
            }
        }
    }

    /// Of each two sorts once: the first pair is reported, the others are identical.
    fn pairs(&mut self, rule: &Rule, cluster: &Context, sorts: &[RuleHostClass]) {
        if sorts.len() > PAIRED_MAX {
            let key = ("RW0225".to_owned(), rule.code.clone(), String::new());
            self.found
                .insert(key, (too_many(rule, sorts.len()), BTreeSet::new()));
        }
        let sorts = &sorts[..sorts.len().min(PAIRED_MAX)];
        let mut context = cluster.clone();
        for (at, sort) in sorts.iter().enumerate() {
            context.insert("host", &sort.host);
            for other in &sorts[at + 1..] {
                let before = self.found.len();
                context.insert("other", &other.host);
                let groups: Vec<usize> = sort.groups.iter().chain(&other.groups).copied().collect();
                self.ask(rule, &context, &path_of(rule, other), &groups);
                if self.found.len() > before {
                    return;
                }
            }
        }
    }

    fn ask(&mut self, rule: &Rule, context: &Context, path: &str, groups: &[usize]) {
        if engine::is_allowance_used_up() {
            return;
        }
        let mut diagnostic = match apply_rule(rule, context) {
            Ok(None) => return,
            Ok(Some(diagnostic)) => diagnostic,
            Err(error) => *error,
        };
        // What is said in the same words of several sorts of hosts is one finding, at the place of
        // the first.
        let place = if groups.is_empty() {
            path.to_owned()
        } else {
            String::new()
        };
        let (code, message) = (diagnostic.code.to_string(), diagnostic.message.clone());
        let found = self.found.entry((code, message, place));
        if let Entry::Vacant(_) = found
            && diagnostic.labels.is_empty()
        {
            let caret = match place_of(&self.places, path, &diagnostic) {
                Some(label) => Some(Label {
                    text: rule.title.clone(),
                    ..label.clone()
                }),
                None => self.loaded.label_around(path, &rule.title),
            };
            diagnostic.labels.extend(caret);
        }
        let (_, known) = found.or_insert((diagnostic, BTreeSet::new()));
        known.extend(groups);
    }

    fn findings(self) -> Vec<RuleFinding> {
        let mut of_group: Vec<Vec<&str>> = vec![Vec::new(); self.loaded.spec.nodes.len()];
        for host in &self.loaded.hosts {
            of_group[host.group].push(&host.name);
        }
        let mut findings = Vec::with_capacity(self.found.len());
        for (mut diagnostic, groups) in self.found.into_values() {
            let mut hosts: Vec<String> = Vec::new();
            for group in groups {
                hosts.extend(of_group[group].iter().map(|host| (*host).to_owned()));
            }
            if !hosts.is_empty() {
                diagnostic = diagnostic.on(nodeset::fold_node_set(&hosts));
            }
            findings.push(RuleFinding { diagnostic, hosts });
        }
        findings
    }
}

/// What a rule says where it is broken; the error where one of its templates fails.
fn apply_rule(rule: &Rule, context: &Context) -> Result<Option<Diagnostic>, Box<Diagnostic>> {
    let (engine, document) = (&rule.engine, &rule.document);
    if !engine.holds(&rule.when, context, document)? {
        return Ok(None);
    }
    let says = engine.text(&rule.says, context, document)?;
    let fix = engine.text(&rule.fix, context, document)?;
    let mut diagnostic = Diagnostic::error(rule.code.clone(), one_line(&says, TEXT_MAX))
        .effect(rule.means.trim())
        .next(one_line(&fix, TEXT_MAX));
    diagnostic.severity = rule.severity;
    diagnostic.source = Some(rule.source.clone());
    Ok(Some(diagnostic))
}

/// The place in what was asked for: of the path, or of what lies below it and is named by what the
/// rule says or by what fixes it.
fn place_of<'a>(
    places: &'a BTreeMap<String, Label>,
    path: &str,
    diagnostic: &Diagnostic,
) -> Option<&'a Label> {
    if let Some(label) = places.get(path) {
        return Some(label);
    }
    for (place, label) in places {
        if let Some(below) = place.strip_prefix(path)
            && let Some(name) = below.strip_prefix('.')
            && (diagnostic.message.contains(name)
                || diagnostic.next.iter().any(|next| next.contains(name)))
        {
            return Some(label);
        }
    }
    None
}

/// The most characters of what a rule says.
const TEXT_MAX: usize = 400;

/// The most sorts of hosts of which each two are compared.
const PAIRED_MAX: usize = 300;

fn too_many(rule: &Rule, sorts: usize) -> Diagnostic {
    Diagnostic::warning(
        "RW0225",
        format!(
            "{} was asked of the first {PAIRED_MAX} of {sorts} sorts of hosts only",
            rule.code
        ),
    )
    .labelled(rule.label.clone())
    .effect("hosts further down that do not go together are not found by this rule")
    .next("write identical hosts in one way, so that there are fewer sorts of them")
}

fn path_of(rule: &Rule, sort: &RuleHostClass) -> String {
    match rule.path.strip_prefix("host") {
        Some(rest) => format!(
            "nodes[{}]{rest}",
            sort.groups.first().copied().unwrap_or_default()
        ),
        None => rule.path.clone(),
    }
}

fn context_of(value: &impl Serialize) -> Context {
    Context::from_serialize(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
