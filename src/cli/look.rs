//! One look at the targets for drift, with what the spec accepts, ages and outliers.

use super::Failure;
use super::pipeline::Prepared;
use super::question::{self, Observed};
use railwright_base::{Diagnostic, Target, nodeset};
use railwright_drift::compare::{Assess, Judge};
use railwright_drift::outliers::{Outlier, Shown, outliers, shown};
use railwright_drift::{DriftReport, Occasion, accept, age, cordons, findings};
use railwright_plan::judge::reached;
use railwright_plan::{ClusterNodes, Unavailable};
use railwright_report as report;
use railwright_resource::{Answers, Kind, Observation, Wish, diff, kind_named};
use railwright_state::identity_conflict;
use railwright_state::sightings::Sightings;
use std::collections::BTreeMap;

/// Looks at all targets once.
pub async fn look(prepared: &Prepared) -> Result<DriftReport, Failure> {
    let observed = question::observe(prepared).await?;
    let reinstalled = identity_conflict::reinstalled(&observed.recognition.reinstalled);
    let told: Vec<Diagnostic> = reinstalled.into_iter().collect();
    if !told.is_empty() {
        report::out::note(&report::diagnostic::text(&told, &Default::default(), report::out::Look::of_stderr()));
    }
    Ok(judge(prepared, &observed, &prepared.targets))
}

/// What was observed of these targets, judged.
pub fn judge(prepared: &Prepared, observed: &Observed, targets: &[Target]) -> DriftReport {
    let Observed { observation, state, wishes, .. } = observed;
    let silent = targets.iter().filter_map(|target| Some((target.clone(), reached(observation, target).err()?))).collect();
    let of = |wish: &Wish| -> Result<(&'static dyn Kind, &Answers), String> {
        let kind = kind_named(&wish.kind).ok_or_else(|| format!("this railwright has no resource kind `{}`", wish.kind))?;
        let found = observation.targets.get(&wish.address.target).ok_or("its target is not in the observation")?;
        Ok((kind, &found.answers))
    };
    let assess = |wish: &Wish| of(wish).map(|(kind, answers)| diff::diff(kind, wish, answers));
    let left = |applied: &Wish, wish: &Wish| of(applied).map(|(kind, answers)| diff::diff_left(kind, applied, wish, answers));
    let occasion = Occasion {
        cluster: prepared.inventory.loaded.spec.cluster.clone(),
        inventory: prepared.inventory.origin.clone(),
        checked_at: observation.recorded_at.clone(),
    };
    let mut report = findings(&occasion, wishes, &silent, Judge { assess: &assess, left: &left }, &state.last_applied);
    if let Some(nodes) = ClusterNodes::of(&prepared.inventory.loaded)
        && let Some(found) = observation.targets.get(&nodes.cluster).filter(|found| found.problem.is_none())
    {
        cordons::note(&mut report, &nodes, &found.answers.redacted());
    }
    let is_looked_at = |host: &String| targets.contains(&Target::host(host));
    report.out_of_service = Unavailable::left_by_runs(state.outages.iter().filter(|(host, _)| is_looked_at(host)));
    report.waived = prepared.judgement.waived.clone();
    report.no_ssh = nodeset::fold(&prepared.inventory.loaded.without_ssh());
    report.outliers = odd_ones(prepared, observation, wishes, &assess);
    report
}

/// The outliers of every node group, among its hosts that answered.
fn odd_ones(prepared: &Prepared, observation: &Observation, wishes: &[Wish], assess: Assess<'_>) -> Vec<Outlier> {
    let loaded = &prepared.inventory.loaded;
    let mut of_host: BTreeMap<&str, Vec<&Wish>> = BTreeMap::new();
    for wish in wishes {
        of_host.entry(&wish.address.target.name).or_default().push(wish);
    }
    let mut classes: BTreeMap<usize, BTreeMap<&str, Shown>> = BTreeMap::new();
    for host in &loaded.hosts {
        let Some(found) = observation.targets.get(&Target::host(&host.name)).filter(|found| found.problem.is_none()) else { continue };
        let wishes = of_host.get(host.name.as_str()).into_iter().flatten();
        let judged = wishes.filter_map(|wish| Some((*wish, assess(wish).ok()?)));
        classes.entry(host.group).or_default().insert(&host.name, shown(&found.answers.redacted(), judged));
    }
    classes.into_iter().flat_map(|(group, hosts)| outliers(&loaded.spec.nodes[group].name, &hosts)).collect()
}

/// Marks what the spec accepts; an acceptance that is about nothing is a warning.
pub fn accepted(prepared: &Prepared, report: &mut DriftReport) {
    let loaded = &prepared.inventory.loaded;
    let warning = |index: usize| {
        let warning = Diagnostic::warning("RW0502", "this acceptance matches no drift")
            .effect("what it was written for is mended, or it names another attribute than its author meant")
            .next("remove it, or name the attribute as `drift` shows it");
        match loaded.label(&format!("drift.accept[{index}]"), "nothing is found here") {
            Some(label) => warning.labelled(label),
            None => warning,
        }
    };
    let unmatched: Vec<Diagnostic> = accept::mark(report, &loaded.spec.drift.accept).into_iter().map(warning).collect();
    if !unmatched.is_empty() {
        report::out::note(&report::diagnostic::text(&unmatched, &loaded.sources, report::out::Look::of_stderr()));
    }
}

/// Puts ages on the findings and remembers them. Where that cannot be, it is said, there are no ages, and nothing else
/// changes; false then.
pub fn tell_ages(prepared: &Prepared, report: &mut DriftReport) -> bool {
    let aged = |report: &mut DriftReport| -> Result<(), Diagnostic> {
        let known = Sightings::load(&prepared.folder)?;
        let next = age::note(report, &known);
        if next == known { Ok(()) } else { next.store(&prepared.folder) }
    };
    let Err(problem) = aged(report) else { return true };
    report.findings.iter_mut().for_each(|finding| finding.seen = None);
    report.last_known.clear();
    report::out::note(&report::diagnostic::text(&[problem], &Default::default(), report::out::Look::of_stderr()));
    false
}
