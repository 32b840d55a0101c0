//! Everything that can be printed as JSON, each kind of document with a name, a version and a
//! schema. Readers ignore keys that they do not know; the major of `format_version` grows when a
//! key changes its meaning.

use crate::cabling::document::CablingDocument;
use crate::diagnostic::{self, DiagnosticDocument};
use crate::explanation::Explanation;
use crate::fabric::document::FabricDocument;
use crate::image::ImageDocument;
use crate::job::compare::ComparisonDocument;
use crate::job::diagnosis::DiagnosisDocument;
use crate::job::document::ProofDocument;
use crate::job::ladder::LadderDocument;
use crate::job::ray::RayProofDocument;
use crate::pair::PairDocument;
use crate::rbac::RbacRole;
use crate::running_jobs::{JobsDocument, WatchedJobDocument};
use crate::traffic::WatchTrafficDocument;
use crate::workload::{JobDocument, RefusedJobDocument};
use railwright_apply::status::RolloutStatus;
use railwright_apply::{ApplyOutcome, RunExitClass, StepCounts};
use railwright_base::nodeset;
use railwright_base::text::escape_unseen;
use railwright_drift::DriftReport;
use railwright_knowledge::rules::{Rule, WaivedFinding};
use railwright_knowledge::spec::Sources;
use railwright_knowledge::spec::schema::render_named_schema;
use railwright_knowledge::translate::{Translation, TranslationAnswer, TranslationConflict};
use railwright_plan::{AppliedResource, LastApplied, Outages, Plan};
use railwright_resource::Observation;
use railwright_state::{NodeOutcome, TakeOver};
use railwright_verify::{CheckVerdict, VerifyReport};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the documents that are defined here.
const FORMAT_VERSION: &str = "1.0";
/// Of the rules, whose `fix` was called otherwise before.
const RULES_FORMAT_VERSION: &str = "2.0";

/// `drift --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DriftDocument<'a> {
    #[serde(flatten)]
    report: &'a DriftReport,
    /// Something is not as desired (exit code 2).
    drift: bool,
    /// Something could not be found out.
    incomplete: bool,
}

impl<'a> DriftDocument<'a> {
    /// Of a report.
    pub fn of(report: &'a DriftReport) -> Self {
        DriftDocument {
            report,
            drift: report.has_drift(),
            incomplete: report.is_incomplete(),
        }
    }
}

/// `verify --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VerifyDocument<'a> {
    #[serde(flatten)]
    report: &'a VerifyReport,
    /// The worst verdict of all; not run where no check was.
    verdict: CheckVerdict,
}

impl<'a> VerifyDocument<'a> {
    /// Of a report.
    pub fn of(report: &'a VerifyReport) -> Self {
        VerifyDocument {
            report,
            verdict: report.conclusion(),
        }
    }
}

/// `apply --json` and `resume --json`: a run that is over.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApplyRunDocument {
    format_version: &'static str,
    /// The run's name, as the journal's file has it; nothing when it was refused before it began.
    run: Option<String>,
    /// How it ended as a whole.
    ending: RunExitClass,
    /// How many steps ended how; gates and barriers are not counted.
    counts: StepCounts,
    /// Hosts that wait for a power cycle, which is done by hand: a node-set for each wave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    power_cycles: Vec<String>,
    /// Every node of the plan, in the plan's order.
    steps: Vec<StepDocument>,
    /// What went wrong.
    problems: Vec<DiagnosticDocument>,
}

/// One node of a run's plan.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepDocument {
    /// Its id in the plan.
    node: String,
    #[serde(flatten)]
    outcome: NodeOutcome,
}

impl ApplyRunDocument {
    /// Of a run.
    pub fn of(outcome: &ApplyOutcome) -> Self {
        ApplyRunDocument {
            format_version: FORMAT_VERSION,
            run: outcome.run.clone(),
            ending: outcome.ending,
            counts: outcome.counts,
            power_cycles: outcome
                .power_cycles
                .iter()
                .map(|hosts| nodeset::fold_node_set(hosts))
                .collect(),
            steps: outcome
                .outcomes
                .iter()
                .map(|(node, outcome)| StepDocument {
                    node: node.clone(),
                    outcome: outcome.clone(),
                })
                .collect(),
            problems: diagnostic::build_diagnostic_documents(
                &outcome.problems,
                &Sources::default(),
            ),
        }
    }
}

/// `rollout status --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RolloutDocument<'a> {
    format_version: &'static str,
    #[serde(flatten)]
    status: &'a RolloutStatus,
}

impl<'a> RolloutDocument<'a> {
    /// Of a run.
    pub fn of(status: &'a RolloutStatus) -> Self {
        RolloutDocument {
            format_version: FORMAT_VERSION,
            status,
        }
    }
}

/// `state list --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StateDocument {
    format_version: &'static str,
    /// What was last applied, by address.
    resources: LastApplied,
    /// Hosts that runs left out of service, by name, and that no gate has passed since.
    #[serde(default, skip_serializing_if = "Outages::is_empty")]
    out_of_service: Outages,
    /// Targets that were taken over from another cluster, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    taken_over: BTreeMap<String, TakeOver>,
}

impl StateDocument {
    /// Of these resources, hosts and targets.
    pub fn of<'a>(
        resources: impl IntoIterator<Item = (&'a railwright_base::Address, &'a AppliedResource)>,
        out_of_service: Outages,
        taken_over: &BTreeMap<&str, &TakeOver>,
    ) -> Self {
        let resources: BTreeMap<_, _> = resources
            .into_iter()
            .map(|(address, applied)| (address.clone(), applied.clone()))
            .collect();
        let taken_over = taken_over
            .iter()
            .map(|(name, taken)| ((*name).to_owned(), (*taken).clone()))
            .collect();
        StateDocument {
            format_version: FORMAT_VERSION,
            resources: LastApplied { resources },
            out_of_service,
            taken_over,
        }
    }
}

/// `validate --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ValidationDocument {
    format_version: &'static str,
    /// The inventory, as the user named it.
    inventory: String,
    /// True when nothing is an error.
    valid: bool,
    /// What the spec says in short; nothing when it is not valid.
    spec: Option<SpecSummary>,
    /// What was found.
    diagnostics: Vec<DiagnosticDocument>,
    /// Findings of rules that are accepted for a while.
    waived: Vec<WaivedFinding>,
}

/// A valid spec in short.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpecSummary {
    /// The cluster's name.
    pub cluster: String,
    /// All hosts.
    pub hosts: Vec<String>,
    /// Digest of the spec's files.
    pub digest: railwright_base::Digest,
    /// Where it came from.
    pub origin: railwright_plan::InventoryOrigin,
}

impl ValidationDocument {
    /// Of an inventory; `spec` is there when it is valid.
    pub fn of(
        inventory: &str,
        diagnostics: &[railwright_base::Diagnostic],
        sources: &Sources,
        spec: Option<SpecSummary>,
    ) -> Self {
        ValidationDocument {
            format_version: FORMAT_VERSION,
            inventory: inventory.to_owned(),
            valid: spec.is_some(),
            spec,
            diagnostics: diagnostic::build_diagnostic_documents(diagnostics, sources),
            waived: Vec::new(),
        }
    }

    /// With what is accepted for a while.
    pub fn with_waived(mut self, waived: Vec<WaivedFinding>) -> Self {
        self.waived = waived;
        self
    }
}

/// `catalog --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CatalogDocument<R> {
    format_version: &'static str,
    /// The category, such as `gpu`, `nic` or `switch`.
    sort: &'static str,
    /// The entries, in the fields of the catalogue's files.
    rows: Vec<R>,
}

impl<R: Serialize> CatalogDocument<R> {
    /// Of entries of one category.
    pub fn of(sort: &'static str, rows: impl IntoIterator<Item = R>) -> Self {
        CatalogDocument {
            format_version: FORMAT_VERSION,
            sort,
            rows: rows.into_iter().collect(),
        }
    }
}

/// `rules --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RulesDocument<'a> {
    format_version: &'static str,
    /// All rules, by code.
    rules: Vec<RuleDocument<'a>>,
}

/// A rule.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleDocument<'a> {
    code: &'a str,
    title: &'a str,
    family: &'a str,
    severity: railwright_base::Severity,
    /// The path in the spec that it is about.
    looks_at: &'a str,
    /// The condition, as it is written.
    breaks_when: &'a str,
    /// What it does to the fabric.
    effect: &'a str,
    /// What to write instead; what it takes from the spec stands in angle brackets.
    fix: String,
    /// Where the fact behind it is stated.
    source: &'a str,
    /// True for a rule of the inventory's own.
    own: bool,
}

impl<'a> RulesDocument<'a> {
    /// Of these rules.
    pub fn of(rules: impl IntoIterator<Item = &'a Rule>) -> Self {
        RulesDocument {
            format_version: RULES_FORMAT_VERSION,
            rules: rules
                .into_iter()
                .map(|rule| RuleDocument {
                    code: &rule.code,
                    title: &rule.title,
                    family: &rule.family,
                    severity: rule.severity,
                    looks_at: &rule.path,
                    breaks_when: &rule.condition,
                    effect: &rule.means,
                    fix: rule.fix_in_words(),
                    source: &rule.source,
                    own: rule.own,
                })
                .collect(),
        }
    }
}

/// `explain host/NAME --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplanationDocument {
    format_version: &'static str,
    #[serde(flatten)]
    explanation: Explanation,
}

impl ExplanationDocument {
    /// Of a host.
    pub fn of(explanation: Explanation) -> Self {
        ExplanationDocument {
            format_version: FORMAT_VERSION,
            explanation,
        }
    }
}

/// `version --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct VersionDocument {
    format_version: &'static str,
    /// The version of railwright.
    version: String,
    /// How many there are of what.
    counts: BTreeMap<String, usize>,
}

impl VersionDocument {
    /// Of this program.
    pub fn of<'a>(version: &str, counts: impl IntoIterator<Item = (&'a str, usize)>) -> Self {
        let counts = counts
            .into_iter()
            .map(|(what, count)| (what.to_owned(), count))
            .collect();
        VersionDocument {
            format_version: FORMAT_VERSION,
            version: version.to_owned(),
            counts,
        }
    }
}

/// `translate --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TranslationDocument<'a> {
    format_version: &'static str,
    /// Every command was understood (exit code 0).
    understood: bool,
    /// What the commands say, in the order of the script.
    answers: &'a [TranslationAnswer],
    /// Lines that are text around the commands, and none.
    prose: &'a [usize],
    /// The spec lines of all of them together.
    spec: &'a Value,
    /// Where commands say different things.
    conflicts: &'a [TranslationConflict],
}

impl<'a> TranslationDocument<'a> {
    /// Of a script.
    pub fn of(translation: &'a Translation) -> Self {
        TranslationDocument {
            format_version: FORMAT_VERSION,
            understood: translation.is_understood(),
            answers: &translation.answers,
            prose: &translation.prose,
            spec: &translation.spec,
            conflicts: &translation.conflicts,
        }
    }
}

/// `rbac --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RbacDocument<'a> {
    format_version: &'static str,
    /// The Kubernetes cluster's name in the spec.
    cluster: &'a str,
    /// Identities with what they may do.
    roles: &'a [RbacRole],
}

impl<'a> RbacDocument<'a> {
    /// Of these identities.
    pub fn of(cluster: &'a str, roles: &'a [RbacRole]) -> Self {
        RbacDocument {
            format_version: FORMAT_VERSION,
            cluster,
            roles,
        }
    }
}

/// A document with a line break at its end. What a terminal would act upon is written as its
/// number.
pub fn render_json_document(document: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(document)
        .expect("our own types have string keys and serialise without fail");
    escape_unseen(&text) + "\n"
}

/// Makes the schema of a document.
type Make = fn() -> schemars::Schema;

/// The documents by the name that `railwright schema NAME` knows.
const DOCUMENTS: [(&str, Make); 28] = [
    ("plan", || schemars::schema_for!(Plan)),
    ("observation", || schemars::schema_for!(Observation)),
    ("drift", || schemars::schema_for!(DriftDocument<'_>)),
    ("verify", || schemars::schema_for!(VerifyDocument<'_>)),
    ("cabling", || schemars::schema_for!(CablingDocument<'_>)),
    ("ladder", || schemars::schema_for!(LadderDocument<'_>)),
    ("traffic", || {
        schemars::schema_for!(WatchTrafficDocument<'_>)
    }),
    ("fabric", || schemars::schema_for!(FabricDocument<'_>)),
    ("jobs", || schemars::schema_for!(JobsDocument<'_>)),
    ("job-pair", || schemars::schema_for!(PairDocument<'_>)),
    ("ray-proof", || schemars::schema_for!(RayProofDocument<'_>)),
    ("job-comparison", || {
        schemars::schema_for!(ComparisonDocument<'_>)
    }),
    ("watched-job", || {
        schemars::schema_for!(WatchedJobDocument<'_>)
    }),
    ("job-proof", || schemars::schema_for!(ProofDocument<'_>)),
    ("diagnosis", || schemars::schema_for!(DiagnosisDocument<'_>)),
    ("run", || schemars::schema_for!(ApplyRunDocument)),
    ("rollout", || schemars::schema_for!(RolloutDocument<'_>)),
    ("state", || schemars::schema_for!(StateDocument)),
    ("validation", || schemars::schema_for!(ValidationDocument)),
    ("catalog", || schemars::schema_for!(CatalogDocument<Value>)),
    ("rules", || schemars::schema_for!(RulesDocument<'_>)),
    ("version", || schemars::schema_for!(VersionDocument)),
    ("explanation", || schemars::schema_for!(ExplanationDocument)),
    ("rbac", || schemars::schema_for!(RbacDocument<'_>)),
    ("translation", || {
        schemars::schema_for!(TranslationDocument<'_>)
    }),
    ("job", || schemars::schema_for!(JobDocument<'_>)),
    ("refused-job", || schemars::schema_for!(RefusedJobDocument)),
    ("image", || schemars::schema_for!(ImageDocument<'_>)),
];

/// Their names.
pub fn list_document_names() -> impl Iterator<Item = &'static str> {
    DOCUMENTS.iter().map(|(name, _)| *name)
}

/// The JSON Schema of a document; nothing for an unknown name.
pub fn find_document_schema(name: &str) -> Option<String> {
    let (_, schema) = DOCUMENTS.iter().find(|(known, _)| *known == name)?;
    Some(render_named_schema(
        schema(),
        &format!("urn:railwright:{name}"),
        &format!("railwright {name}"),
    ))
}
