//! A rule as its file has it, and what can be wrong with its words: the code, empty texts, tags in
//! templates, a path that the spec does not have.

use super::rule::{RuleScope, RuleSet};
use crate::spec::yaml::{NodeId, YamlDocument};
use crate::template::shape::{ContextShape, EACH};
use railwright_base::suggest::find_nearest_word;
use railwright_base::{Diagnostic, Reason};
use serde::Deserialize;
use serde_json::Value;

/// The words of a rule as its file has them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    pub code: String,
    pub title: String,
    pub severity: RuleSeverity,
    #[serde(default)]
    pub each: RuleScope,
    pub when: String,
    pub at: String,
    pub says: String,
    pub means: String,
    pub fix: String,
    #[serde(default)]
    pub more: Option<String>,
    pub source: String,
    pub passes: Value,
    pub fails: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RuleSeverity {
    Error,
    Warning,
}

/// A rule as it is written, and where.
pub(super) struct LocatedRule<'a> {
    /// The code on one line, for messages.
    pub code: String,
    pub written: &'a RawRule,
    pub document: &'a YamlDocument,
    pub node: NodeId,
}

impl LocatedRule<'_> {
    /// The value of a key, or the rule where it does not have it.
    pub(super) fn find_node(&self, key: &str) -> NodeId {
        let entry = self.document.entry(self.node, key);
        entry.map_or(self.node, |entry| entry.value)
    }

    fn new_error(&self, key: &str, message: String, label: &str) -> Diagnostic {
        Diagnostic::error("RW0224", message).at(
            self.document.source().name(),
            self.document.caret(self.find_node(key)),
            label,
        )
    }

    pub(super) fn check_code(&self, own: bool, set: &RuleSet) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        let code = &self.code;
        let is_code = code.len() == 6
            && code.bytes().take(2).all(|b| b.is_ascii_uppercase())
            && code.bytes().skip(2).all(|b| b.is_ascii_digit());
        if !is_code {
            let message = format!("`{code}` is no code of a rule");
            let label = "two capital letters and four digits";
            errors.push(self.new_error("code", message, label));
        }
        if own && code.starts_with("RW") && !set.rules.contains_key(code) {
            let message = format!("there is no shipped rule {code} to stand over");
            let label = "codes of your own start with other letters";
            errors.push(self.new_error("code", message, label));
        }
        errors
    }

    pub(super) fn check_texts(&self) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        let written = self.written;
        // A loop in a loop need never end, and no rule needs one.
        for (key, text) in [
            ("when", &written.when),
            ("says", &written.says),
            ("fix", &written.fix),
        ] {
            if text.contains("{%") {
                let message = format!("a rule's `{key}` has no tags");
                errors.push(self.new_error(key, message, "only `{{ ... }}` can stand here"));
            }
        }
        for (key, text) in [
            ("title", &written.title),
            ("means", &written.means),
            ("source", &written.source),
        ] {
            if text.trim().is_empty() {
                let message = format!("the rule {} says nothing for `{key}`", self.code);
                errors.push(self.new_error(key, message, "empty"));
            }
        }
        errors
    }

    /// `pointed` is what the `at` of a rule of this scope points into.
    pub(super) fn check_path(&self, pointed: &ContextShape) -> Option<Diagnostic> {
        let path = &self.written.at;
        let why = path_is_known(path, self.written.each, pointed).err()?;
        let shown = railwright_base::text::one_line(path, 60);
        Some(self.new_error("at", format!("the spec has no `{shown}`"), why.as_words()))
    }
}

/// Whether a path such as `host.gpu.driver` is one of the spec's; what is said where it is not.
fn path_is_known(path: &str, scope: RuleScope, spec: &ContextShape) -> Result<(), Reason> {
    let mut words = path.split('.');
    let first = words.next().unwrap_or_default();
    let start: &[&str] = match (first, scope) {
        ("host", RuleScope::Host | RuleScope::Pair) => &["nodes", EACH],
        ("switch", RuleScope::Switch) => &["switches", EACH],
        ("host" | "other" | "switch", _) => {
            return Err("this rule is not asked for each of them".into());
        }
        _ => &[first],
    };
    let words = start.iter().copied().chain(words);
    let path: Vec<String> = words.map(str::to_owned).collect();
    spec.at(&path).map(drop).map_err(|error| {
        let wrong = path.get(error.segment).map_or("", String::as_str);
        match find_nearest_word(wrong, error.known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?").into(),
            None => format!("there are: {}", error.known.join(", ")).into(),
        }
    })
}
