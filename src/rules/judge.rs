//! Rules applied to a spec: what breaks which, where, on which hosts, and what of it is waived.

use super::facts::{Class, classes, cluster_facts};
use super::load::{Rule, RuleSet, Scope};
use super::waiver::{self, Waived};
use crate::base::{Diagnostic, Label, nodeset};
use crate::catalog::Catalog;
use crate::spec::Loaded;
use serde::Serialize;
use std::collections::BTreeSet;
use tera::Context;

/// A rule that a spec breaks.
#[derive(Debug, Clone)]
pub struct Finding {
    /// As it is shown.
    pub diagnostic: Diagnostic,
    /// The hosts that it is about, in the spec's order; none for what concerns the cluster or a switch.
    pub hosts: Vec<String>,
}

/// What the rules say of a spec.
#[derive(Debug, Clone, Default)]
pub struct Judgement {
    /// What counts: errors and warnings.
    pub findings: Vec<Finding>,
    /// What is accepted for a while.
    pub waived: Vec<Waived>,
    /// Waivers that ended, or that waive nothing.
    pub notes: Vec<Diagnostic>,
}

impl Judgement {
    /// All that is to be shown, errors first.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut all: Vec<Diagnostic> =
            self.findings.iter().map(|finding| finding.diagnostic.clone()).chain(self.notes.iter().cloned()).collect();
        all.sort_by_key(|diagnostic| diagnostic.severity);
        all
    }
}

/// Asks every rule; `today` is a day as `2026-12-31`, in UTC.
pub fn judge(loaded: &Loaded, catalog: &Catalog, rules: &RuleSet, today: &str) -> Judgement {
    let cluster = context_of(&cluster_facts(loaded, catalog));
    let classes = classes(loaded, catalog);
    let mut judging = Judging { loaded, found: Vec::new() };
    for rule in rules.rules.values() {
        judging.rule(rule, &cluster, &classes);
    }
    waiver::apply(loaded, rules, judging.found, today)
}

struct Judging<'a> {
    loaded: &'a Loaded,
    found: Vec<Finding>,
}

impl Judging<'_> {
    fn rule(&mut self, rule: &Rule, cluster: &Context, classes: &[Class]) {
        match rule.scope {
            Scope::Cluster => self.ask(rule, cluster, &rule.path, &[]),
            Scope::Host => {
                for class in classes {
                    let context = with(cluster, "host", &class.facts);
                    self.ask(rule, &context, &path_of(rule, class), &class.groups);
                }
            }
            Scope::Pair => self.pairs(rule, cluster, classes),
            Scope::Switch => {
                for (index, switch) in self.loaded.spec.switches.iter().enumerate() {
                    let context = with(cluster, "switch", switch);
                    let path =
                        rule.path.strip_prefix("switch").map_or_else(|| rule.path.clone(), |rest| format!("switches[{index}]{rest}"));
                    self.ask(rule, &context, &path, &[]);
                }
            }
        }
    }

    /// Of each two classes once: the first pair is told, the others are alike.
    fn pairs(&mut self, rule: &Rule, cluster: &Context, classes: &[Class]) {
        for (at, class) in classes.iter().enumerate() {
            let context = with(cluster, "host", &class.facts);
            for other in &classes[at + 1..] {
                let before = self.found.len();
                let context = with(&context, "other", &other.facts);
                let groups: Vec<usize> = class.groups.iter().chain(&other.groups).copied().collect();
                self.ask(rule, &context, &path_of(rule, other), &groups);
                if self.found.len() > before {
                    return;
                }
            }
        }
    }

    fn ask(&mut self, rule: &Rule, context: &Context, path: &str, groups: &[usize]) {
        let (engine, document) = (&rule.engine, &rule.document);
        let made = engine.holds(&rule.when, context, document).and_then(|broken| {
            if !broken {
                return Ok(None);
            }
            Ok(Some((engine.text(&rule.says, context, document)?, engine.text(&rule.mend, context, document)?)))
        });
        let diagnostic = match made {
            Ok(None) => return,
            Ok(Some((says, mend))) => {
                let mut diagnostic = Diagnostic::error(rule.code.clone(), says.trim()).effect(rule.means.trim()).next(mend.trim());
                diagnostic.severity = rule.severity;
                diagnostic.source = Some(rule.source.clone());
                diagnostic
            }
            Err(error) => *error,
        };
        let hosts: Vec<String> = if groups.is_empty() {
            Vec::new()
        } else {
            let groups: BTreeSet<usize> = groups.iter().copied().collect();
            self.loaded.hosts.iter().filter(|host| groups.contains(&host.group)).map(|host| host.name.clone()).collect()
        };
        let diagnostic = match self.label(path, &rule.title) {
            Some(label) if diagnostic.labels.is_empty() => diagnostic.labelled(label),
            _ => diagnostic,
        };
        let diagnostic = if hosts.is_empty() { diagnostic } else { diagnostic.on(nodeset::fold(&hosts)) };
        self.found.push(Finding { diagnostic, hosts });
    }

    /// A caret at the path, or at the nearest value around it that the files hold.
    fn label(&self, path: &str, text: &str) -> Option<Label> {
        let mut path = path;
        loop {
            if let Some(label) = self.loaded.label(path, text) {
                return Some(label);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

fn path_of(rule: &Rule, class: &Class) -> String {
    match rule.path.strip_prefix("host") {
        Some(rest) => format!("nodes[{}]{rest}", class.groups.first().copied().unwrap_or_default()),
        None => rule.path.clone(),
    }
}

fn context_of(value: &impl Serialize) -> Context {
    Context::from_serialize(value).unwrap_or_default()
}

fn with(context: &Context, name: &'static str, value: &impl Serialize) -> Context {
    let mut context = context.clone();
    context.insert(name, value);
    context
}

#[cfg(test)]
mod tests;
