//! From the files of rules to rules that can be applied: every name of every template checked
//! against the shape of the facts.

use super::facts::{ClusterFacts, HostClassFacts};
use super::job_subject::SubjectFacts;
use super::rule::{Rule, RuleProblems, RuleScope, RuleSet};
use super::switch_facts::SwitchFacts;
use crate::shipped::yaml_files;
use crate::spec::decode::decode_or_report;
use crate::spec::model::Spec;
use crate::spec::source::{SourceFile, SourceText};
use crate::spec::yaml::{AliasBudget, NodeId, YamlDocument, YamlNodeKind};
use crate::template::engine::{Engine, Makes, Snippet, TemplateOrigin};
use crate::template::names;
use crate::template::shape::{ContextShape, EACH};
use railwright_base::suggest::find_nearest_word;
use railwright_base::{Diagnostic, Label, Severity};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;

/// The folder below a folder of modules that holds rules.
pub const RULES_FOLDER: &str = "rules";

/// The words of a rule as its file has them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    code: String,
    title: String,
    severity: RuleSeverity,
    #[serde(default)]
    each: RuleScope,
    when: String,
    at: String,
    says: String,
    means: String,
    mend: String,
    #[serde(default)]
    more: Option<String>,
    source: String,
    passes: Value,
    fails: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleSeverity {
    Error,
    Warning,
}

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
        let of = |schema: schemars::Schema| ContextShape::of_schema(schema.as_value());
        let (cluster, host, switch) = (
            of(schemars::schema_for!(ClusterFacts)),
            of(schemars::schema_for!(HostClassFacts)),
            of(schemars::schema_for!(SwitchFacts)),
        );
        let with = |more: &[(&str, &ContextShape)]| match &cluster {
            ContextShape::Map(fields) => {
                let more = more
                    .iter()
                    .map(|(name, shape)| ((*name).to_owned(), (*shape).clone()));
                ContextShape::Map(fields.clone().into_iter().chain(more).collect())
            }
            other => other.clone(),
        };
        RuleShapes {
            host: with(&[("host", &host)]),
            pair: with(&[("host", &host), ("other", &host)]),
            switch: with(&[("switch", &switch)]),
            job: with(&[("job", &of(schemars::schema_for!(SubjectFacts)))]),
            spec: of(schemars::schema_for!(Spec)),
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
    mend: Snippet,
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
        let list = document.entry(root, "rules").map(|entry| entry.value);
        let items: Vec<NodeId> = list
            .map(|list| document.items(list).collect())
            .unwrap_or_default();
        let drafts: Vec<RuleDraft> = items
            .into_iter()
            .filter_map(|item| self.draft(&document, item, own))
            .collect();
        let snippets: Vec<&Snippet> = drafts
            .iter()
            .flat_map(|draft| [&draft.when, &draft.says, &draft.mend])
            .collect();
        let engine = match Engine::new(&snippets, &document) {
            Ok(engine) => Arc::new(engine),
            Err(errors) => return self.problems.extend(errors),
        };
        if self.problems.len() > before {
            return;
        }
        self.set.families.insert(head.family.clone(), head.summary);
        let document = Arc::new(document);
        for draft in drafts {
            self.put(draft, &head.family, &document, &engine, own);
        }
    }

    fn draft(&mut self, document: &YamlDocument, node: NodeId, own: bool) -> Option<RuleDraft> {
        let written: RawRule = decode_or_report(document, node, &mut self.problems)?;
        let at = |key: &str| document.entry(node, key).map_or(node, |entry| entry.value);
        let mut wrong = |key: &str, message: String, label: String| {
            self.problems.push(Diagnostic::error("RW0224", message).at(
                document.source().name(),
                document.caret(at(key)),
                label,
            ));
        };
        let code = railwright_base::text::one_line(&written.code, 20);
        let form = code.len() == 6
            && code.bytes().take(2).all(|b| b.is_ascii_uppercase())
            && code.bytes().skip(2).all(|b| b.is_ascii_digit());
        if !form {
            wrong(
                "code",
                format!("`{code}` is no code of a rule"),
                "two capital letters and four digits".to_owned(),
            );
        }
        if own && code.starts_with("RW") && !self.set.rules.contains_key(&code) {
            wrong(
                "code",
                format!("there is no shipped rule {code} to stand over"),
                "codes of your own start with other letters".to_owned(),
            );
        }
        // A loop in a loop need never end, and no rule needs one.
        for (key, text) in [
            ("when", &written.when),
            ("says", &written.says),
            ("mend", &written.mend),
        ] {
            if text.contains("{%") {
                wrong(
                    key,
                    format!("a rule's `{key}` has no tags"),
                    "only `{{ ... }}` can stand here".to_owned(),
                );
            }
        }
        for (key, text) in [
            ("title", &written.title),
            ("means", &written.means),
            ("source", &written.source),
        ] {
            if text.trim().is_empty() {
                wrong(
                    key,
                    format!("the rule {code} says nothing for `{key}`"),
                    "empty".to_owned(),
                );
            }
        }
        if let Err(why) =
            path_is_known(&written.at, written.each, self.shapes.pointed(written.each))
        {
            wrong(
                "at",
                format!(
                    "the spec has no `{}`",
                    railwright_base::text::one_line(&written.at, 60)
                ),
                why,
            );
        }
        let mut snippet = |key: &str, text: &str, makes: Makes| {
            let node = at(key);
            let name = format!("{code}.{key}");
            let mut snippet = match makes {
                Makes::Condition => {
                    Snippet::new(&name, text, TemplateOrigin::Manifest(node), makes)
                }
                _ => Snippet::verbatim(&name, text, TemplateOrigin::Manifest(node)),
            };
            let (uses, problems) =
                names::check_template_names(snippet.text(), self.shapes.of(written.each), &[]);
            self.problems.extend(
                problems
                    .iter()
                    .map(|problem| snippet.diagnostic(document, problem)),
            );
            (snippet.uses, snippet.faulty) = (uses, !problems.is_empty());
            snippet
        };
        let when = snippet("when", &written.when, Makes::Condition);
        let says = snippet("says", &written.says, Makes::Text);
        let mend = snippet("mend", &written.mend, Makes::Text);
        Some(RuleDraft {
            written,
            node,
            when,
            says,
            mend,
        })
    }

    fn put(
        &mut self,
        draft: RuleDraft,
        family: &str,
        document: &Arc<YamlDocument>,
        engine: &Arc<Engine>,
        own: bool,
    ) {
        let RuleDraft {
            written,
            node,
            when,
            says,
            mend,
        } = draft;
        let said = document
            .entry(node, "code")
            .map_or(node, |entry| entry.value);
        let label = |text: &str| Label {
            file: document.source().name().to_owned(),
            span: document.caret(said),
            text: text.to_owned(),
        };
        if let Some(known) = self.set.rules.get(&written.code) {
            let there = Label {
                text: if own && !known.own {
                    "shipped"
                } else {
                    "first here"
                }
                .to_owned(),
                ..known.label.clone()
            };
            if own == known.own {
                let problem = Diagnostic::error(
                    "RW0224",
                    format!("two rules have the code {}", written.code),
                );
                self.problems.push(
                    problem
                        .labelled(label("again here"))
                        .labelled(there)
                        .next("give each rule its own code"),
                );
                return;
            }
            let warning = Diagnostic::warning(
                "RW0223",
                format!(
                    "a rule of your own stands in the place of the shipped {}",
                    written.code
                ),
            );
            let softer =
                known.severity == Severity::Error && written.severity == RuleSeverity::Warning;
            let effect = if softer {
                "only your rule is asked, and what was an error is a warning"
            } else {
                "only your rule is asked"
            };
            let warning = warning
                .labelled(label("yours"))
                .labelled(there)
                .effect(effect);
            self.set
                .overrides
                .push(warning.next("remove it when the shipped rule says what you need"));
        }
        let rule = Rule {
            code: written.code.clone(),
            title: written.title,
            family: family.to_owned(),
            severity: if written.severity == RuleSeverity::Error {
                Severity::Error
            } else {
                Severity::Warning
            },
            scope: written.each,
            means: written.means,
            more: written.more,
            source: written.source,
            condition: written.when,
            mending: written.mend,
            path: written.at,
            passes: written.passes,
            fails: written.fails,
            label: label("this rule"),
            own,
            when,
            says,
            mend,
            document: Arc::clone(document),
            engine: Arc::clone(engine),
        };
        self.set.rules.insert(written.code, rule);
    }
}

/// Whether a path such as `host.gpu.driver` is one of the spec's; what is said where it is not.
fn path_is_known(path: &str, scope: RuleScope, spec: &ContextShape) -> Result<(), String> {
    let words: Vec<&str> = path.split('.').collect();
    let (first, rest) = words
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (*first, rest));
    let start: &[&str] = match (first, scope) {
        ("host", RuleScope::Host | RuleScope::Pair) => &["nodes", EACH],
        ("switch", RuleScope::Switch) => &["switches", EACH],
        ("host" | "other" | "switch", _) => {
            return Err("this rule is not asked for each of them".to_owned());
        }
        _ => &[first],
    };
    let path: Vec<String> = start
        .iter()
        .chain(rest)
        .map(|word| (*word).to_owned())
        .collect();
    spec.at(&path).map(drop).map_err(|error| {
        let wrong = path.get(error.segment).map_or("", String::as_str);
        match find_nearest_word(wrong, error.known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are: {}", error.known.join(", ")),
        }
    })
}
