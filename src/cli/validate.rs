//! `railwright validate INVENTORY`: one line, or every error of the files with a caret.

use super::{CommandFailure, Exit};
use railwright_base::nodeset::fold_node_set;
use railwright_base::text::format_count;
use railwright_base::{Diagnostic, Severity};
use railwright_knowledge::rules::{WaivedFinding, check_rule_cases};
use railwright_knowledge::solve;
use railwright_knowledge::spec::Sources;
use railwright_report::diagnostic;
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::document::{self, SpecSummary, ValidationDocument};
use railwright_report::knowledge;
use railwright_report::out::{self, ScreenStyle};
use railwright_report::wrap::{COLUMNS, break_words};
use railwright_session::{Inventory, desired, read_inventory, secrets};
use railwright_system::clock;
use std::path::PathBuf;

/// Check an inventory: one line, or every error of its files
#[derive(Debug, clap::Args)]
pub struct Validate {
    /// The folder that holds the spec
    inventory: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Reads the inventory and its modules, and says what is wrong with them.
pub fn run(arguments: &Validate) -> Exit {
    let shown = arguments.inventory.display().to_string();
    let json = arguments.json;
    let read = match read_inventory(&arguments.inventory) {
        Ok(read) => read,
        Err(problems) => {
            return print_validation_errors(&shown, &problems.diagnostics, &problems.sources, json);
        }
    };
    let (found, waived) = match check_inventory(&read) {
        Ok(checked) => checked,
        Err(failure) => {
            return print_validation_errors(
                &shown,
                &failure.error.diagnostics,
                &failure.error.sources,
                json,
            );
        }
    };
    let sources = read.knowledge.sources(&read.loaded.sources);
    let has_errors = found
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    if has_errors {
        return print_validation_errors(&shown, &found, &sources, json);
    }
    if json {
        let summary = build_spec_summary(&read);
        let document = ValidationDocument::of(&shown, &found, &sources, Some(summary));
        out::print_result(&document::render_json_document(
            &document.with_waived(waived),
        ));
    } else {
        print_valid_inventory(&read, &found, &sources, &waived);
    }
    Exit::Done
}

/// What rules, modules, workloads and the catalogue find, and what is waived of it. An error where
/// the resources of the inventory cannot be computed, below what the rules say.
fn check_inventory(
    read: &Inventory,
) -> Result<(Vec<Diagnostic>, Vec<WaivedFinding>), CommandFailure> {
    let now = clock::read_current_time();
    let today = now.get(..10).unwrap_or_default();
    let known = &read.knowledge;
    let (workloads, unrendered) = read.workloads(today);
    let (evaluation, answers) = known.evaluate(&read.loaded, &read.loaded, &workloads, today);
    let checked = match unrendered {
        Some(failure) => Err(failure),
        None => desired::check_desired_resources(read, &workloads, &answers),
    };
    let warnings = checked.map_err(|failure| {
        let sources = known.sources(&read.loaded.sources);
        failure.after(evaluation.diagnostics(), &sources)
    })?;
    let mut found = evaluation.diagnostics();
    found.extend(read.warnings.iter().cloned());
    found.extend(secrets::report_unset_variables(read));
    found.extend(warnings);
    found.extend(known.overrides());
    found.extend(check_rule_cases(&known.rules, &known.catalog));
    found.extend(solve::check_combinations(&known.catalog));
    Ok((found, evaluation.waived))
}

fn print_valid_inventory(
    read: &Inventory,
    warnings: &[Diagnostic],
    sources: &Sources,
    waived: &[WaivedFinding],
) {
    let mut warned = String::new();
    if !warnings.is_empty() {
        print_diagnostics(warnings, sources);
        warned = format!(" {}.", format_count(warnings.len(), "warning"));
    }
    out::print_result(knowledge::render_waived_rules(waived).trim_start());
    let text = format!(
        "{}: valid. {}{warned}",
        read.path,
        render_inventory_summary(read)
    );
    out::print_result(&break_words(text.split(' '), 0, 0, COLUMNS));
}

fn print_validation_errors(
    inventory: &str,
    diagnostics: &[Diagnostic],
    sources: &Sources,
    json: bool,
) -> Exit {
    if json {
        out::print_result(&document::render_json_document(&ValidationDocument::of(
            inventory,
            diagnostics,
            sources,
            None,
        )));
    } else {
        out::print_result(&diagnostic::render_diagnostics(
            diagnostics,
            sources,
            ScreenStyle::of_stdout(),
        ));
        out::print_result(&format!(
            "\n{inventory}: not valid. {}",
            format_problem_count(diagnostics)
        ));
    }
    Exit::Failed
}

fn render_inventory_summary(read: &Inventory) -> String {
    let loaded = &read.loaded;
    let names: Vec<&str> = loaded.hosts.iter().map(|host| host.name.as_str()).collect();
    let rails: usize = loaded.hosts.iter().map(|host| host.netdevs.len()).sum();
    let without_ssh = match loaded.without_ssh().len() {
        0 => String::new(),
        all if all == names.len() => ", none with SSH".to_owned(),
        some => format!(", {some} of them without SSH"),
    };
    let hosts = match names.len() {
        0 => "no hosts".to_owned(),
        count => format!(
            "{} ({}){without_ssh}",
            format_count(count, "host"),
            railwright_base::text::one_line(&fold_node_set(&names), 60)
        ),
    };
    let fabric = serde_json::to_value(loaded.spec.fabric.kind)
        .ok()
        .and_then(|kind| kind.as_str().map(str::to_owned))
        .unwrap_or_default();
    let kubernetes = loaded
        .kubernetes_name()
        .map(|name| format!(", Kubernetes cluster {name}"))
        .unwrap_or_default();
    let workloads = match loaded.spec.workloads.len() {
        0 => String::new(),
        count => format!(" with {}", format_count(count, "workload")),
    };
    let (all, planned) = (loaded.switches.len(), loaded.managed_switches().count());
    let switches = match (all, planned) {
        (0, _) => String::new(),
        (_, 0) => format!(", {}", format_count(all, "switch")),
        (1, _) => ", 1 switch that is planned".to_owned(),
        _ if all == planned => format!(", {} that are planned", format_count(all, "switch")),
        _ => format!(
            ", {}, {planned} of them planned",
            format_count(all, "switch")
        ),
    };
    format!(
        "Cluster {}, fabric {fabric}, {hosts}, {}{switches}{kubernetes}{workloads}.",
        loaded.spec.cluster,
        format_count(rails, "rail")
    )
}

fn build_spec_summary(read: &Inventory) -> SpecSummary {
    SpecSummary {
        cluster: read.loaded.spec.cluster.clone(),
        hosts: read
            .loaded
            .hosts
            .iter()
            .map(|host| host.name.clone())
            .collect(),
        digest: read.loaded.digest.clone(),
        origin: read.origin.clone(),
    }
}

fn format_problem_count(diagnostics: &[Diagnostic]) -> String {
    let errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count();
    let warnings = diagnostics.len() - errors;
    let warned = if warnings > 0 {
        format!(", {}", format_count(warnings, "warning"))
    } else {
        String::new()
    };
    format!(
        "{}{warned}. `railwright explain CODE` tells more.",
        format_count(errors, "error")
    )
}
