//! One look at the targets for drift, with what the spec accepts, ages and outliers.

use super::CommandFailure;
use super::session::observe_targets;
use railwright_base::{Diagnostic, Reason, Target, nodeset};
use railwright_drift::compare::DiffFunctions;
use railwright_drift::outliers::{Outlier, Shown, collect_unmanaged_values, find_outliers};
use railwright_drift::{DriftReport, Occasion, accept, age, compute_drift, cordons};
use railwright_knowledge::spec::{LoadedSpec, Sources};
use railwright_plan::diff::{diff_resource, find_read_results};
use railwright_plan::{ClusterNodes, Unavailable};
use railwright_report::diagnostic::print_diagnostics;
use railwright_resource::{
    DesiredResource, Observation, ReadResults, ResourceDiff, ResourceKind, kind_named,
    redacted_diff,
};
use railwright_session::{ObservedTargets, Session};
use railwright_state::identity_conflict;
use railwright_state::sightings::Sightings;
use std::collections::BTreeMap;

/// Looks at all targets once.
pub async fn check_drift(session: &Session) -> Result<DriftReport, CommandFailure> {
    let observed = observe_targets(session).await?;
    let reinstalled = identity_conflict::warn_reinstalled_hosts(&observed.recognition.reinstalled);
    let warnings: Vec<Diagnostic> = reinstalled.into_iter().collect();
    print_diagnostics(&warnings, &Sources::default());
    Ok(build_drift_report(session, &observed, &session.targets))
}

/// What was observed of these targets, compared with the spec.
pub fn build_drift_report(
    session: &Session,
    observed: &ObservedTargets,
    targets: &[Target],
) -> DriftReport {
    let ObservedTargets {
        observation,
        state,
        resources,
        ..
    } = observed;
    let mut silent = BTreeMap::new();
    for target in targets {
        if let Err(unknown) = find_read_results(observation, target) {
            silent.insert(target.clone(), unknown);
        }
    }
    let occasion = Occasion {
        cluster: session.inventory.loaded.spec.cluster.clone(),
        inventory: session.inventory.origin.clone(),
        checked_at: observation.recorded_at.clone(),
    };
    let mut report = compute_drift(
        &occasion,
        resources,
        &silent,
        DiffFunctions {
            diff: &|resource| {
                let (kind, answers) = find_kind_and_answers(observation, resource)?;
                let applied = state.last_applied.resources.get(&resource.address);
                Ok(diff_resource(kind, resource, applied, answers))
            },
            left: &|applied, desired| {
                let (kind, answers) = find_kind_and_answers(observation, applied)?;
                Ok(redacted_diff::diff_left(kind, applied, desired, answers))
            },
        },
        &state.last_applied,
    );
    if let Some(nodes) = ClusterNodes::of(&session.inventory.loaded)
        && let Some(found) = observation.targets.get(&nodes.cluster)
        && found.problem.is_none()
    {
        cordons::add_cordon_findings(&mut report, &nodes, &found.answers.redacted());
    }
    let outages = state.outages.iter();
    let without_ssh = session.inventory.loaded.without_ssh();
    report.out_of_service = Unavailable::left_by_runs(outages.filter(|(host, _)| {
        targets.contains(&Target::host(host)) || without_ssh.contains(&host.as_str())
    }));
    report.waived = session.evaluation.waived.clone();
    report.no_ssh = nodeset::fold_node_set(&without_ssh);
    report.outliers = find_host_outliers(session, observation, resources);
    report
}

fn diff_observed(
    observation: &Observation,
    resource: &DesiredResource,
) -> Result<ResourceDiff, Reason> {
    let (kind, answers) = find_kind_and_answers(observation, resource)?;
    Ok(redacted_diff::diff_resource(kind, resource, answers))
}

/// The kind of a resource, and what its target answered; an error tells which of both is missing.
fn find_kind_and_answers<'o>(
    observation: &'o Observation,
    resource: &DesiredResource,
) -> Result<(&'static dyn ResourceKind, &'o ReadResults), Reason> {
    let kind = kind_named(&resource.kind)
        .ok_or_else(|| format!("this railwright has no resource kind `{}`", resource.kind))?;
    let found = observation
        .targets
        .get(&resource.address.target)
        .ok_or("its target is not in the observation")?;
    Ok((kind, &found.answers))
}

/// The outliers of every node group, among its hosts that answered.
fn find_host_outliers(
    session: &Session,
    observation: &Observation,
    resources: &[DesiredResource],
) -> Vec<Outlier> {
    let loaded = &session.inventory.loaded;
    let mut by_host: BTreeMap<&str, Vec<&DesiredResource>> = BTreeMap::new();
    for resource in resources {
        let of_host = by_host.entry(&resource.address.target.name).or_default();
        of_host.push(resource);
    }
    let mut groups: BTreeMap<usize, BTreeMap<&str, Shown>> = BTreeMap::new();
    for host in &loaded.hosts {
        let Some(found) = observation.targets.get(&Target::host(&host.name)) else {
            continue;
        };
        if found.problem.is_some() {
            continue;
        }
        let resources = by_host.get(host.name.as_str()).into_iter().flatten();
        let diffs = resources
            .filter_map(|resource| Some((*resource, diff_observed(observation, resource).ok()?)));
        let values = collect_unmanaged_values(&found.answers.redacted(), diffs);
        groups
            .entry(host.group)
            .or_default()
            .insert(&host.name, values);
    }
    let mut outliers = Vec::new();
    for (group, hosts) in groups {
        outliers.extend(find_outliers(&loaded.spec.nodes[group].name, &hosts));
    }
    outliers
}

/// Marks what the spec accepts; an acceptance that is about nothing is a warning.
pub fn mark_accepted_findings(session: &Session, report: &mut DriftReport) {
    let loaded = &session.inventory.loaded;
    let unmatched = accept::apply_acceptances(report, &loaded.spec.drift.accept).into_iter();
    let warnings: Vec<Diagnostic> = unmatched
        .map(|index| report_unmatched_acceptance(loaded, index))
        .collect();
    print_diagnostics(&warnings, &loaded.sources);
}

fn report_unmatched_acceptance(loaded: &LoadedSpec, index: usize) -> Diagnostic {
    let warning = Diagnostic::warning("RW0502", "this acceptance matches no drift")
        .effect(
            "what it was written for is fixed, or it names another attribute than its author meant",
        )
        .next("remove it, or name the attribute as `drift` shows it");
    match loaded.label(&format!("drift.accept[{index}]"), "nothing is found here") {
        Some(label) => warning.labelled(label),
        None => warning,
    }
}

/// Puts ages on the findings and remembers them. Where that cannot be, it is reported, there are no
/// ages, and nothing else changes; false then.
pub fn tell_ages(session: &Session, report: &mut DriftReport) -> bool {
    let Err(problem) = update_sightings(session, report) else {
        return true;
    };
    for finding in &mut report.findings {
        finding.seen = None;
    }
    report.last_known.clear();
    print_diagnostics(&[problem], &Sources::default());
    false
}

fn update_sightings(session: &Session, report: &mut DriftReport) -> Result<(), Diagnostic> {
    let known = Sightings::load(&session.folder)?;
    let next = age::set_finding_ages(report, &known);
    if next == known {
        return Ok(());
    }
    next.store(&session.folder)
}
