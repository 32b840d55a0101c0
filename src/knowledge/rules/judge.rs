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
        let mut all: Vec<Diagnostic> = self
            .findings
            .iter()
            .map(|finding| finding.diagnostic.clone())
            .chain(self.notes.iter().cloned())
            .collect();
        all.sort_by_key(|diagnostic| diagnostic.severity);
        all
    }

    /// The errors alone.
    pub fn errors(&self) -> Vec<Diagnostic> {
        self.diagnostics()
            .into_iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .collect()
    }
}

/// Asks every rule; `today` is a day as `2026-12-31`, in UTC.
pub fn evaluate_rules(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    rules: &RuleSet,
    today: &str,
) -> RulesReport {
    judge_with(
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
pub fn judge_with<F: FnOnce(&RulesReport) -> Vec<RuleFinding>>(
    loaded: &LoadedSpec,
    catalog: &Catalog,
    rules: &RuleSet,
    today: &str,
    beyond: Beyond<'_, F>,
) -> RulesReport {
    let (mut waivers, mut judgement) = (Waivers::of(loaded, today), RulesReport::default());
    waivers.part(
        collect_rule_findings(loaded, catalog, rules.rules.values(), None),
        &mut judgement,
    );
    let more = (beyond.found)(&judgement);
    waivers.part(more, &mut judgement);
    let of_jobs = rules
        .rules
        .iter()
        .filter(|(_, rule)| beyond.is_partial && rule.is_of_jobs());
    let open = of_jobs.map(|(code, _)| code.as_str()).collect();
    judgement.notes = waivers.notes(
        &rules
            .rules
            .keys()
            .map(String::as_str)
            .chain(beyond.codes.iter().copied())
            .collect(),
        &open,
    );
    judgement
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
pub fn judge_job(loaded: &LoadedSpec, today: &str, found: Vec<RuleFinding>) -> RulesReport {
    let (mut waivers, mut judgement) = (Waivers::of(loaded, today), RulesReport::default());
    waivers.part(found, &mut judgement);
    judgement
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
    let mut judging = Judging {
        loaded,
        switches: switch_facts(&loaded.spec, catalog),
        job: subject.map(|subject| context_of(&serde_json::json!({ "job": subject.facts }))),
        places: subject
            .map(|subject| subject.places.clone())
            .unwrap_or_default(),
        found: IndexMap::new(),
    };
    for rule in rules {
        judging.rule(rule, &cluster, &mut known);
    }
    judging.findings()
}

struct Judging<'a> {
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

impl Judging<'_> {
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
                    let path = rule.path.strip_prefix("switch").map_or_else(
                        || rule.path.clone(),
                        |rest| format!("switches[{index}]{rest}"),
                    );
                    self.ask(rule, &context, &path, &[]);
                }
            }
        }
    }

    /// Of each two sorts once: the first pair is told, the others are alike.
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
        let (engine, document) = (&rule.engine, &rule.document);
        let made = engine
            .holds(&rule.when, context, document)
            .and_then(|broken| {
                if !broken {
                    return Ok(None);
                }
                Ok(Some((
                    engine.text(&rule.says, context, document)?,
                    engine.text(&rule.mend, context, document)?,
                )))
            });
        let diagnostic = match made {
            Ok(None) => return,
            Ok(Some((says, mend))) => {
                let mut diagnostic =
                    Diagnostic::error(rule.code.clone(), one_line(&says, TEXT_MAX))
                        .effect(rule.means.trim())
                        .next(one_line(&mend, TEXT_MAX));
                diagnostic.severity = rule.severity;
                diagnostic.source = Some(rule.source.clone());
                diagnostic
            }
            Err(error) => *error,
        };
        // What is said in the same words of several sorts of hosts is one finding, at the place of
        // the first.
        let place = if groups.is_empty() {
            path.to_owned()
        } else {
            String::new()
        };
        let found = self.found.entry((
            diagnostic.code.to_string(),
            diagnostic.message.clone(),
            place,
        ));
        let caret = match found {
            Entry::Vacant(_) if diagnostic.labels.is_empty() => {
                let asked = place_of(&self.places, path, &diagnostic).map(|label| Label {
                    text: rule.title.clone(),
                    ..label.clone()
                });
                asked.or_else(|| self.loaded.label_around(path, &rule.title))
            }
            _ => None,
        };
        let (_, known) = found.or_insert_with(|| {
            (
                caret.into_iter().fold(diagnostic, Diagnostic::labelled),
                BTreeSet::new(),
            )
        });
        known.extend(groups);
    }

    fn findings(self) -> Vec<RuleFinding> {
        let mut of_group: Vec<Vec<&str>> = vec![Vec::new(); self.loaded.spec.nodes.len()];
        for host in &self.loaded.hosts {
            of_group[host.group].push(&host.name);
        }
        let finding = |(diagnostic, groups): (Diagnostic, BTreeSet<usize>)| {
            let hosts: Vec<String> = groups
                .into_iter()
                .flat_map(|group| &of_group[group])
                .map(|host| (*host).to_owned())
                .collect();
            let diagnostic = if hosts.is_empty() {
                diagnostic
            } else {
                diagnostic.on(nodeset::fold_node_set(&hosts))
            };
            RuleFinding { diagnostic, hosts }
        };
        self.found.into_values().map(finding).collect()
    }
}

/// The place in what was asked for: of the path, or of what lies below it and is named by what the
/// rule says or by what mends it.
fn place_of<'a>(
    places: &'a BTreeMap<String, Label>,
    path: &str,
    told: &Diagnostic,
) -> Option<&'a Label> {
    let says = |name: &str| {
        told.message.contains(name) || told.next.iter().any(|next| next.contains(name))
    };
    let is_named = |place: &str| {
        place
            .strip_prefix(path)
            .and_then(|rest| rest.strip_prefix('.'))
            .is_some_and(says)
    };
    places.get(path).or_else(|| {
        places
            .iter()
            .find(|(place, _)| is_named(place))
            .map(|(_, label)| label)
    })
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
    .next("write hosts that are alike in one way, so that there are fewer sorts of them")
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
