//! `railwright drift`.

use super::session::{open_session, print_rules_line};
use super::{CommandFailure, Exit, look, output, watch};
use railwright_base::text::one_line;
use railwright_drift::DriftReport;
use railwright_report::{self as report, drift as told};
use railwright_session::{Inventory, ObservationSource, Session, SessionRequest};
use railwright_system::clock::Stopwatch;
use railwright_transport::TargetContact;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Find what differs from the spec, in each plane: persisted, running, next boot
///
/// Reads only. Exit code 2 when something drifted, 3 when something could not be found out.
#[derive(Debug, clap::Args)]
pub struct DriftArguments {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Look at an observation that `facts` recorded instead of the hosts
    #[arg(long, value_name = "FILE")]
    pub observations: Option<PathBuf>,
    /// Read the hosts as this user, who needs no rights but those that `sudoers` prints; what only
    /// root may see is unknown
    #[arg(long, value_name = "USER", value_parser = Inventory::user_name, conflicts_with = "observations")]
    pub read_as: Option<String>,
    /// What to print
    #[arg(long, value_enum, default_value = "text")]
    pub format: DriftFormat,
    /// Print JSON, as --format json does
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write it to this file, whole or not at all; without it, to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Look again every so many seconds (60 unless said otherwise) and print what changed, until
    /// Ctrl-C
    #[arg(
        long,
        value_name = "SECONDS",
        num_args = 0..=1,
        default_missing_value = "60",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        conflicts_with_all = ["observations", "format", "json", "output"]
    )]
    pub watch: Option<u64>,
}

/// What `drift` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DriftFormat {
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
pub async fn run(arguments: &DriftArguments) -> Result<Exit, CommandFailure> {
    if let Some(seconds) = arguments.watch {
        return watch::watch_drift(
            &arguments.inventory,
            arguments.read_as.clone(),
            Duration::from_secs(seconds),
        )
        .await;
    }
    output::can_be_written(&arguments.output)?;
    let source = arguments.observations.clone().map_or_else(
        || ObservationSource::Live(TargetContact::begin()),
        ObservationSource::Recorded,
    );
    let format = if arguments.json {
        DriftFormat::Json
    } else {
        arguments.format
    };
    let stopwatch = Stopwatch::start();
    let session = open_session(&arguments.inventory, &SessionRequest::new(source.clone()))?
        .read_as(arguments.read_as.clone())
        .with_hardware();
    print_rules_line(&session);
    let mut report = look::check_drift(&session).await?;
    look::mark_accepted_findings(&session, &mut report);
    if matches!(source, ObservationSource::Live(_)) {
        look::tell_ages(&session, &mut report);
    }
    let text = match format {
        DriftFormat::Text => format!(
            "{}{}",
            describe_recording(&session, arguments),
            told::render_drift_screen(&report)
        ),
        DriftFormat::Json => told::render_drift_json(&report),
        DriftFormat::Junit => told::junit::render_junit_document(&report),
        DriftFormat::Sarif => told::sarif::render_sarif_document(&report),
        DriftFormat::Prometheus => {
            told::prometheus::render_prometheus_document(&report, stopwatch.elapsed().as_secs_f64())
        }
        DriftFormat::Markdown => told::markdown::render_markdown_document(&report),
    };
    match &arguments.output {
        None => report::out::print_result(&text),
        Some(file) => {
            write_drift_report(file, &text, format, &told::format_drift_summary(&report))?
        }
    }
    Ok(exit_from_drift(&report))
}

/// What a screen of recorded observations begins with.
fn describe_recording(session: &Session, arguments: &DriftArguments) -> String {
    match (&session.recorded, &arguments.observations) {
        (Some(observation), Some(file)) => format!(
            "as recorded {} in {}\n",
            one_line(&observation.recorded_at, 40),
            file.display()
        ),
        _ => String::new(),
    }
}

/// Metrics hold no values of hosts and are read by the node exporter's own user; all else is for
/// its owner alone.
fn write_drift_report(
    file: &Path,
    text: &str,
    format: DriftFormat,
    summary: &str,
) -> Result<(), CommandFailure> {
    let mode = if format == DriftFormat::Prometheus {
        0o644
    } else {
        0o600
    };
    output::write_output(file, text, mode)?;
    report::out::print_note(&format!("{summary} Written to {}", file.display()));
    Ok(())
}

/// How a look ends.
pub fn exit_from_drift(report: &DriftReport) -> Exit {
    match (report.has_drift(), report.is_incomplete()) {
        (true, _) => Exit::Changes,
        (false, true) => Exit::Incomplete,
        (false, false) => Exit::Done,
    }
}
