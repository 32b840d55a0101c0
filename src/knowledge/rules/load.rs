//! From the files of rules to rules that can be applied: every name of every template checked
//! against the shape of the facts.

use super::facts::{ClusterFacts, HostClassFacts};
use super::job_subject::SubjectFacts;
use super::raw_rule::{LocatedRule, RawRule, RuleSeverity};
use super::rule::{Rule, RuleProblems, RuleScope, RuleSet};
use super::switch_facts::SwitchFacts;
use crate::shipped::yaml_files;
use crate::spec::decode::decode_or_report;
use crate::spec::model::Spec;
use crate::spec::source::{SourceFile, SourceText};
use crate::spec::yaml::{AliasBudget, NodeId, YamlDocument, YamlNodeKind};
use crate::template::engine::Engine;
use crate::template::names;
use crate::template::shape::ContextShape;
use crate::template::snippet::{Makes, Snippet, TemplateOrigin};
use railwright_base::{Diagnostic, Label, Severity};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// The folder below a folder of modules that holds rules.
pub const RULES_FOLDER: &str = "rules";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFileHeader {
    family: String,
    summary: String,
    #[serde(rename = "rules")]
    _rules: Vec<Value>,
}

/// The shipped rules with the user's files (`site.yaml` and text) over them; `folder` is what
/// messages call theirs.
pub fn load_rules(
    folder: &str,
    own: impl IntoIterator<Item = (String, String)>,
) -> Result<RuleSet, RuleProblems> {
    let mut reading = RuleLoader {
        aliases: AliasBudget::default(),
        set: RuleSet::default(),
        problems: Vec::new(),
        shapes: RuleShapes::new(),
    };
    for (name, text) in yaml_files(RULES_FOLDER) {
        reading.file(name, text, false);
    }
    for (path, text) in own.into_iter().filter(|(path, _)| path.ends_with(".yaml")) {
        reading.file(format!("{folder}/{path}"), text, true);
    }
    let RuleLoader { set, problems, .. } = reading;
    if problems.is_empty() {
        Ok(set)
    } else {
        Err(RuleProblems {
            diagnostics: problems,
            sources: set.sources,
        })
    }
}

/// The shapes of what a rule can name, by scope, and of the spec that its `at` points into.
struct RuleShapes {
    cluster: ContextShape,
    host: ContextShape,
    pair: ContextShape,
    switch: ContextShape,
    job: ContextShape,
    spec: ContextShape,
}

impl RuleShapes {
    fn new() -> Self {
        let cluster = ContextShape::of_schema(schemars::schema_for!(ClusterFacts).as_value());
        let host = ContextShape::of_schema(schemars::schema_for!(HostClassFacts).as_value());
        let switch = ContextShape::of_schema(schemars::schema_for!(SwitchFacts).as_value());
        let job = ContextShape::of_schema(schemars::schema_for!(SubjectFacts).as_value());
        RuleShapes {
            host: with_fields(&cluster, &[("host", &host)]),
            pair: with_fields(&cluster, &[("host", &host), ("other", &host)]),
            switch: with_fields(&cluster, &[("switch", &switch)]),
            job: with_fields(&cluster, &[("job", &job)]),
            spec: ContextShape::of_schema(schemars::schema_for!(Spec).as_value()),
            cluster,
        }
    }

    /// What the `at` of a rule points into.
    fn pointed(&self, scope: RuleScope) -> &ContextShape {
        if scope == RuleScope::Job {
            &self.job
        } else {
            &self.spec
        }
    }

    fn of(&self, scope: RuleScope) -> &ContextShape {
        match scope {
            RuleScope::Cluster => &self.cluster,
            RuleScope::Host => &self.host,
            RuleScope::Pair => &self.pair,
            RuleScope::Switch => &self.switch,
            RuleScope::Job => &self.job,
        }
    }
}

fn with_fields(shape: &ContextShape, more: &[(&str, &ContextShape)]) -> ContextShape {
    let mut shape = shape.clone();
    if let ContextShape::Map(fields) = &mut shape {
        for (name, field) in more {
            fields.insert((*name).to_owned(), (*field).clone());
        }
    }
    shape
}

struct RuleLoader {
    aliases: AliasBudget,
    set: RuleSet,
    problems: Vec<Diagnostic>,
    shapes: RuleShapes,
}

/// One rule before its file's engine is made.
struct RuleDraft {
    written: RawRule,
    node: NodeId,
    when: Snippet,
    says: Snippet,
    fix: Snippet,
}

/// What the rules of one file share.
struct RuleFile {
    family: String,
    document: Arc<YamlDocument>,
    engine: Arc<Engine>,
    /// True for a file of the user's.
    own: bool,
}

impl RuleFile {
    /// The place of the code of the rule at a node.
    fn label_code(&self, rule: NodeId) -> Label {
        let code = self.document.entry(rule, "code");
        Label {
            file: self.document.source().name().to_owned(),
            span: self.document.caret(code.map_or(rule, |entry| entry.value)),
            text: "this rule".to_owned(),
        }
    }
}

impl RuleDraft {
    fn into_rule(self, file: &RuleFile, label: Label) -> Rule {
        let written = self.written;
        Rule {
            code: written.code,
            title: written.title,
            family: file.family.clone(),
            severity: match written.severity {
                RuleSeverity::Error => Severity::Error,
                RuleSeverity::Warning => Severity::Warning,
            },
            scope: written.each,
            means: written.means,
            more: written.more,
            source: written.source,
            condition: written.when,
            fixing: written.fix,
            path: written.at,
            passes: written.passes,
            fails: written.fails,
            label,
            own: file.own,
            when: self.when,
            says: self.says,
            fix: self.fix,
            document: Arc::clone(&file.document),
            engine: Arc::clone(&file.engine),
        }
    }
}

fn new_duplicate_code_error(known: &Rule, again: &Label) -> Diagnostic {
    Diagnostic::error("RW0224", format!("two rules have the code {}", known.code))
        .labelled(with_label_text(again, "again here"))
        .labelled(with_label_text(&known.label, "first here"))
        .next("give each rule its own code")
}

fn new_override_warning(shipped: &Rule, own: &RawRule, label: &Label) -> Diagnostic {
    let message = format!(
        "a rule of your own stands in the place of the shipped {}",
        own.code
    );
    let is_softer = shipped.severity == Severity::Error && own.severity == RuleSeverity::Warning;
    let effect = if is_softer {
        "only your rule is asked, and what was an error is a warning"
    } else {
        "only your rule is asked"
    };
    Diagnostic::warning("RW0223", message)
        .labelled(with_label_text(label, "yours"))
        .labelled(with_label_text(&shipped.label, "shipped"))
        .effect(effect)
        .next("remove it when the shipped rule says what you need")
}

fn with_label_text(label: &Label, text: &str) -> Label {
    Label {
        text: text.to_owned(),
        ..label.clone()
    }
}

impl RuleLoader {
    fn file(&mut self, name: String, text: String, own: bool) {
        let source = Arc::new(SourceText::new(SourceFile { name, text }));
        self.set.sources.add(Arc::clone(&source));
        let before = self.problems.len();
        let Some(document) = YamlDocument::parse(source, &mut self.aliases, &mut self.problems)
        else {
            return;
        };
        let Some(root) = document
            .root()
            .filter(|root| document.kind(*root) == YamlNodeKind::Mapping)
        else {
            self.problems.push(
                Diagnostic::error("RW0224", "a file of rules is a mapping").at(
                    document.source().name(),
                    0..0,
                    "nothing of the kind is here",
                ),
            );
            return;
        };
        let Some(head) = decode_or_report::<RuleFileHeader>(&document, root, &mut self.problems)
        else {
            return;
        };
        let mut drafts: Vec<RuleDraft> = Vec::new();
        if let Some(list) = document.entry(root, "rules") {
            for item in document.items(list.value) {
                drafts.extend(self.draft(&document, item, own));
            }
        }
        let mut snippets: Vec<&Snippet> = Vec::new();
        for draft in &drafts {
            snippets.extend([&draft.when, &draft.says, &draft.fix]);
        }
        let engine = match Engine::new(&snippets, &document) {
            Ok(engine) => Arc::new(engine),
            Err(errors) => return self.problems.extend(errors),
        };
        if self.problems.len() > before {
            return;
        }
        self.set.families.insert(head.family.clone(), head.summary);
        let file = RuleFile {
            family: head.family,
            document: Arc::new(document),
            engine,
            own,
        };
        for draft in drafts {
            self.put(draft, &file);
        }
    }

    fn draft(&mut self, document: &YamlDocument, node: NodeId, own: bool) -> Option<RuleDraft> {
        let written: RawRule = decode_or_report(document, node, &mut self.problems)?;
        let rule = LocatedRule {
            code: railwright_base::text::one_line(&written.code, 20),
            written: &written,
            document,
            node,
        };
        self.problems.extend(rule.check_code(own, &self.set));
        self.problems.extend(rule.check_texts());
        let pointed = self.shapes.pointed(written.each);
        self.problems.extend(rule.check_path(pointed));
        let when = self.snippet(&rule, "when", &written.when, Makes::Condition);
        let says = self.snippet(&rule, "says", &written.says, Makes::Text);
        let fix = self.snippet(&rule, "fix", &written.fix, Makes::Text);
        Some(RuleDraft {
            written,
            node,
            when,
            says,
            fix,
        })
    }

    /// The template of a key, with its names checked.
    fn snippet(&mut self, rule: &LocatedRule<'_>, key: &str, text: &str, makes: Makes) -> Snippet {
        let origin = TemplateOrigin::Manifest(rule.find_node(key));
        let name = format!("{}.{key}", rule.code);
        let mut snippet = match makes {
            Makes::Condition => Snippet::new(&name, text, origin, makes),
            _ => Snippet::verbatim(&name, text, origin),
        };
        let shape = self.shapes.of(rule.written.each);
        let (uses, problems) = names::check_template_names(snippet.text(), shape, &[]);
        for problem in &problems {
            let diagnostic = snippet.diagnostic(rule.document, problem);
            self.problems.push(diagnostic);
        }
        (snippet.uses, snippet.faulty) = (uses, !problems.is_empty());
        snippet
    }

    /// Adds a rule, unless its code is taken; a user's rule takes the place of a shipped one.
    fn put(&mut self, draft: RuleDraft, file: &RuleFile) {
        let label = file.label_code(draft.node);
        let code = draft.written.code.clone();
        if let Some(known) = self.set.rules.get(&code) {
            if file.own == known.own {
                self.problems.push(new_duplicate_code_error(known, &label));
                return;
            }
            let warning = new_override_warning(known, &draft.written, &label);
            self.set.overrides.push(warning);
        }
        self.set.rules.insert(code, draft.into_rule(file, label));
    }
}
