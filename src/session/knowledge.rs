//! What is known beside the spec: the catalogue and the rules, the shipped ones with the
//! inventory's own over them; and what both say of a spec.

use railwright_base::{Diagnostic, nodeset};
use railwright_knowledge::catalog::{self, CATALOG_FOLDER, Catalog};
use railwright_knowledge::rules::{self, Beyond, RULES_FOLDER, RuleFinding, RuleSet, RulesReport};
use railwright_knowledge::solve::{self, SolverAnswers};
use railwright_knowledge::spec::{LoadedSpec, Problems, Sources};
use railwright_workload::Workloads;
use std::sync::Arc;

/// The catalogue and the rules.
#[derive(Debug, Clone)]
pub struct Knowledge {
    /// GPUs, NICs, instances, operating systems, switches.
    pub catalog: Arc<Catalog>,
    /// By code.
    pub rules: Arc<RuleSet>,
}

impl Knowledge {
    /// The shipped ones with the inventory's over them; `modules` are the files below its
    /// `modules/`.
    pub fn read(inventory: &str, modules: &[(String, String)]) -> Result<Self, Problems> {
        let folder = |name: &str| format!("{}/modules/{name}", inventory.trim_end_matches('/'));
        let own = |name: &str| {
            let prefix = format!("{name}/");
            modules
                .iter()
                .filter_map(|(path, text)| {
                    Some((path.strip_prefix(&prefix)?.to_owned(), text.clone()))
                })
                .collect::<Vec<_>>()
        };
        let catalog = catalog::load_catalog(&folder(CATALOG_FOLDER), own(CATALOG_FOLDER));
        let rules = rules::load_rules(&folder(RULES_FOLDER), own(RULES_FOLDER));
        let mut diagnostics = Vec::new();
        let mut sources = Sources::default();
        let catalog = catalog.map_err(|problems| {
            diagnostics.extend(problems.diagnostics);
            sources.join(&problems.sources);
        });
        let rules = rules.map_err(|problems| {
            diagnostics.extend(problems.diagnostics);
            sources.join(&problems.sources);
        });
        match (catalog, rules) {
            (Ok(catalog), Ok(rules)) => Ok(Knowledge {
                catalog: Arc::new(catalog),
                rules: Arc::new(rules),
            }),
            _ => Err(Problems {
                diagnostics,
                sources,
            }),
        }
    }

    /// Models and releases that nobody knows, what the rules find of the spec and of its workloads,
    /// and resources that exclude each other beyond that; the last of the hosts of `asked` alone,
    /// with what is chosen for these.
    pub fn evaluate(
        &self,
        loaded: &LoadedSpec,
        asked: &LoadedSpec,
        workloads: &Workloads,
        today: &str,
    ) -> (RulesReport, SolverAnswers) {
        let mut answers = SolverAnswers::default();
        let beyond = |evaluation: &RulesReport| {
            let mut found = solve::Hosts::new();
            for finding in &evaluation.findings {
                found
                    .entry(finding.diagnostic.code.to_string())
                    .or_default()
                    .extend(finding.hosts.iter().cloned());
            }
            let mut waived = solve::Hosts::new();
            for one in &evaluation.waived {
                let hosts = one
                    .nodes
                    .as_deref()
                    .and_then(|nodes| nodeset::expand_node_set(nodes).ok())
                    .unwrap_or_default();
                waived.entry(one.code.clone()).or_default().extend(hosts);
            }
            let accepted = rules::list_waived_hosts(loaded, solve::CODE, today)
                .into_iter()
                .map(str::to_owned);
            waived.insert(solve::CODE.to_owned(), accepted.collect());
            answers = solve::solve_with_waivers(asked, &self.catalog, &waived);
            let excluding =
                solve::collect_conflict_findings(asked, &answers, &found, &waived).into_iter();
            let excluding = excluding.map(|told| RuleFinding {
                diagnostic: told.diagnostic,
                hosts: told.hosts,
            });
            excluding.chain(workloads.found()).collect()
        };
        let beyond = Beyond {
            codes: &[solve::CODE],
            is_partial: workloads.is_partial,
            found: beyond,
        };
        let mut evaluation =
            rules::evaluate_with(loaded, &self.catalog, &self.rules, today, beyond);
        told_once(&mut evaluation);
        evaluation.notes.extend(workloads.notes());
        let models = catalog::unknown_models(loaded, &self.catalog).into_iter();
        let unknown = models
            .chain(catalog::unknown_releases(loaded, &self.catalog))
            .chain(catalog::foreign_repositories(loaded, &self.catalog));
        evaluation.findings.splice(
            0..0,
            unknown.map(|diagnostic| RuleFinding {
                diagnostic,
                hosts: Vec::new(),
            }),
        );
        (evaluation, answers)
    }

    /// The inventory's own entries and rules that stand over shipped ones.
    pub fn overrides(&self) -> Vec<Diagnostic> {
        self.catalog
            .overrides
            .iter()
            .map(catalog::Override::diagnostic)
            .chain(self.rules.overrides.iter().cloned())
            .collect()
    }

    /// The files that carets of findings and overrides point into, those of a spec among them.
    pub fn sources(&self, spec: &Sources) -> Sources {
        let mut sources = spec.clone();
        sources.join(&self.catalog.sources);
        sources.join(&self.rules.sources);
        sources
    }
}

/// What a workload has of the spec's `jobs` is found of both, in the same words and at the same
/// place.
fn told_once(evaluation: &mut RulesReport) {
    let mut seen: Vec<Diagnostic> = Vec::new();
    evaluation.findings.retain(|finding| {
        let is_new = !seen.contains(&finding.diagnostic);
        seen.extend(is_new.then(|| finding.diagnostic.clone()));
        is_new
    });
    let mut waived = Vec::new();
    evaluation.waived.retain(|one| {
        let is_new = !waived.contains(one);
        waived.extend(is_new.then(|| one.clone()));
        is_new
    });
}
