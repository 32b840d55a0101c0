//! `railwright drift`.

use super::pipeline::{self, Observed, Prepared, Source};
use super::{Exit, Failure};
use crate::base::{Diagnostic, Target};
use crate::drift::compare::Assess;
use crate::drift::outliers::{Outlier, Shown, outliers, shown};
use crate::drift::{DriftReport, Occasion, accept, age, findings};
use crate::plan::judge::reached;
use crate::report::{self, drift as told};
use crate::resource::{Observation, Wish, kind_named};
use crate::state::sightings::Sightings;
use crate::system::clock::Stopwatch;
use crate::system::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Find what is no longer as the spec wants it, in each plane: persisted, running, at the next boot
///
/// Reads only. Exit code 2 when something drifted, 3 when something could not be found out.
#[derive(Debug, clap::Args)]
pub struct Drift {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Look at an observation that `facts` recorded instead of the hosts
    #[arg(long, value_name = "FILE")]
    pub observations: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write it to this file, whole or not at all; without it, to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// What `drift` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// Everything; `railwright schema drift` describes it
    Json,
    /// JUnit XML: a target is a suite, a resource a case
    Junit,
    /// SARIF 2.1.0: findings at the lines of the spec
    Sarif,
    /// Metrics for the textfile collector of Prometheus' node exporter
    Prometheus,
    /// For a comment of a pull request
    Markdown,
}

/// Finds drift.
pub async fn run(arguments: &Drift) -> Result<Exit, Failure> {
    let source = arguments.observations.clone().map_or(Source::Live, Source::Recorded);
    let format = if arguments.json { Format::Json } else { arguments.format };
    let watch = Stopwatch::start();
    let prepared = pipeline::prepare(&arguments.inventory, &source)?;
    let mut report = look(&prepared).await?;
    accept(&prepared, &mut report);
    if source == Source::Live {
        tell_ages(&prepared, &mut report);
    }
    let text = match format {
        Format::Text => told::screen(&report),
        Format::Json => told::json(&report),
        Format::Junit => told::junit::document(&report),
        Format::Sarif => told::sarif::document(&report),
        Format::Prometheus => told::prometheus::document(&report, watch.elapsed().as_secs_f64()),
        Format::Markdown => told::markdown::document(&report),
    };
    match &arguments.output {
        None => report::out::print(&text),
        Some(file) => write(file, &text, format, &told::summary(&report))?,
    }
    Ok(exit(&report))
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
        classes.entry(host.group).or_default().insert(&host.name, shown(&found.answers, judged));
    }
    classes.into_iter().flat_map(|(group, hosts)| outliers(&loaded.spec.nodes[group].name, &hosts)).collect()
}

/// Marks what the spec accepts; an acceptance that is about nothing is a warning.
fn accept(prepared: &Prepared, report: &mut DriftReport) {
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

/// Puts ages on the findings and remembers them; where that cannot be, it is said, and nothing else changes.
fn tell_ages(prepared: &Prepared, report: &mut DriftReport) {
    let aged = |report: &mut DriftReport| -> Result<(), Diagnostic> {
        let known = Sightings::load(&prepared.folder)?;
        let next = age::note(report, &known);
        if next == known { Ok(()) } else { next.store(&prepared.folder) }
    };
    if let Err(problem) = aged(report) {
        report.findings.iter_mut().for_each(|finding| finding.seen = None);
        report.last_known.clear();
        report::out::note(&report::diagnostic::text(&[problem], &Default::default(), report::out::Look::of_stderr()));
    }
}

/// Looks at the targets once.
async fn look(prepared: &Prepared) -> Result<DriftReport, Failure> {
    let Observed { observation, state, wishes } = pipeline::observe(prepared).await?;
    let silent = prepared.targets.iter().filter_map(|target| Some((target.clone(), reached(&observation, target).err()?))).collect();
    let assess = |wish: &Wish| {
        let kind = kind_named(&wish.kind).ok_or_else(|| format!("this railwright has no resource kind `{}`", wish.kind))?;
        let found = observation.targets.get(&wish.address.target).ok_or("its target is not in the observation")?;
        Ok(kind.assess(wish, &found.answers))
    };
    let occasion = Occasion {
        cluster: prepared.inventory.loaded.spec.cluster.clone(),
        inventory: prepared.inventory.origin.clone(),
        checked_at: observation.recorded_at.clone(),
    };
    let mut report = findings(&occasion, &wishes, &silent, &assess, &state.last_applied);
    report.outliers = odd_ones(prepared, &observation, &wishes, &assess);
    Ok(report)
}

/// Metrics hold no values of hosts and are read by the node exporter's own user; all else is for its owner alone.
fn write(file: &Path, text: &str, format: Format, summary: &str) -> Result<(), Failure> {
    let mode = if format == Format::Prometheus { 0o644 } else { 0o600 };
    files::write_atomic(file, text.as_bytes(), mode).map_err(|error| pipeline::file_problem(file, &error))?;
    report::out::note(&format!("{summary} Written to {}", file.display()));
    Ok(())
}

fn exit(report: &DriftReport) -> Exit {
    match (report.has_drift(), report.is_incomplete()) {
        (true, _) => Exit::Changes,
        (false, true) => Exit::Incomplete,
        (false, false) => Exit::Done,
    }
}
