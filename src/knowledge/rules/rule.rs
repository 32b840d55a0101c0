//! A rule, ready to be applied, and all of them by code.

use crate::spec::source::Sources;
use crate::spec::yaml::YamlDocument;
use crate::template::engine::Engine;
use crate::template::snippet::Snippet;
use railwright_base::{Diagnostic, Label, Severity};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often a rule is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleScope {
    /// Once for the cluster.
    #[default]
    Cluster,
    /// For each class of hosts, as `host`.
    Host,
    /// For each two classes of hosts, as `host` and `other`.
    Pair,
    /// For each entry of `switches`, as `switch`.
    Switch,
    /// For a job that is about to be run, as `job`; not asked of a spec alone.
    Job,
}

/// A rule, ready to be applied.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its code, such as `RW2201`.
    pub code: String,
    /// A headline.
    pub title: String,
    /// The family, which is the name of its file.
    pub family: String,
    /// Error or warning.
    pub severity: Severity,
    /// How often it is asked.
    pub scope: RuleScope,
    /// What it does to the fabric.
    pub means: String,
    /// Further words.
    pub more: Option<String>,
    /// Where the fact behind it is said.
    pub source: String,
    /// The condition as it is written.
    pub condition: String,
    /// The fix as it is written, with its templates.
    pub fixing: String,
    /// The path in the spec that it is about, such as `host.gpu.driver`.
    pub path: String,
    /// A spec, without `cluster`, that keeps the rule.
    pub passes: Value,
    /// A spec that breaks it.
    pub fails: Value,
    /// Where it stands.
    pub label: Label,
    /// True for a rule of the user's own.
    pub own: bool,
    pub(super) when: Snippet,
    pub(super) says: Snippet,
    pub(super) fix: Snippet,
    pub(super) document: Arc<YamlDocument>,
    pub(super) engine: Arc<Engine>,
}

impl Rule {
    /// Whether it looks at something below this name, such as `jobs`.
    pub fn looks_at(&self, name: &str) -> bool {
        let uses = [&self.when, &self.says, &self.fix]
            .into_iter()
            .flat_map(|snippet| &snippet.uses);
        uses.filter_map(|path_use| path_use.path.first())
            .any(|first| first == name)
    }

    /// It is about a job itself, or about what the spec says of jobs.
    pub fn is_of_jobs(&self) -> bool {
        self.scope == RuleScope::Job || self.looks_at("jobs")
    }

    /// The fix with what it takes from the spec in angle brackets: `<host.gpu.model>`.
    pub fn fix_in_words(&self) -> String {
        let mut out = String::with_capacity(self.fixing.len());
        let mut rest = self.fixing.as_str();
        while let Some((before, (inside, after))) = rest
            .split_once("{{")
            .and_then(|(before, more)| Some((before, more.split_once("}}")?)))
        {
            out.push_str(before);
            out.push_str(&format!(
                "<{}>",
                inside.split_whitespace().collect::<Vec<_>>().join(" ")
            ));
            rest = after;
        }
        out + rest
    }
}

/// All rules, by code.
#[derive(Debug, Clone, Default)]
pub struct RuleSet {
    /// The rules.
    pub rules: BTreeMap<String, Rule>,
    /// What each family is about, by its name.
    pub families: BTreeMap<String, String>,
    /// The user's rules that stand over shipped ones, as warnings.
    pub overrides: Vec<Diagnostic>,
    /// The files, for diagnostics that point into them.
    pub sources: Sources,
}

/// Why the rules cannot be used.
#[derive(Debug, Clone)]
pub struct RuleProblems {
    /// All that is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// The files that it points into.
    pub sources: Sources,
}
