//! The screen of `job compare` and its JSON: the answer first, then topic by topic, the figures,
//! and the profiler that goes on.

use super::render_result_row;
use crate::document as documents;
use crate::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::clean_line;
use railwright_knowledge::catalog::job::ProfilerEntry;
use railwright_verify::CheckVerdict;
use railwright_verify::nccl::compare::{Figure, LogComparison, LogComparisonTopic, format_seconds};
use railwright_verify::nccl::transport::Transport;
use railwright_verify::nccl::{JobVerdict, NcclProof};
use railwright_verify::result::CheckOutcome;
use schemars::JsonSchema;
use serde::Serialize;

/// The version of the document.
const FORMAT_VERSION: &str = "2.0";

/// All that is shown.
#[derive(Debug)]
pub struct JobComparisonView<'a> {
    /// What the logs are called.
    pub names: [&'a str; 2],
    /// What each proves by itself.
    pub proofs: [&'a NcclProof; 2],
    /// What they say together.
    pub comparison: &'a LogComparison,
    /// Profilers that say what a step waits for.
    pub profilers: Vec<&'a ProfilerEntry>,
}

/// The whole screen.
pub fn render_comparison_screen(compared: &JobComparisonView<'_>) -> String {
    let JobComparisonView {
        names,
        comparison,
        profilers,
        ..
    } = compared;
    let mut out = format!("job compare {} and {}\n", names[0], names[1]);
    out.push_str(&render_heading(&format_comparison_title(comparison)));
    for (topic, evaluation) in &comparison.topics {
        out.push_str(&render_result_row(topic.word(), evaluation));
    }
    if !comparison.figures.is_empty() {
        out.push_str(&render_heading("SECONDS"));
        out.push_str(
            "   of               rdma         tcp          gain      busbw rdma, tcp (GB/s)\n",
        );
        for figure in &comparison.figures {
            out.push_str(&render_figure_row(figure));
        }
    }
    if !profilers.is_empty() {
        out.push_str(&render_heading("WHAT A STEP WAITS FOR"));
        for row in profilers {
            out.push_str(&render_profiler_entry(row));
        }
    }
    out
}

/// Renders the comparison as a JSON document.
pub fn render_comparison_json(compared: &JobComparisonView<'_>) -> String {
    documents::render_json_document(&ComparisonDocument::of(compared))
}

fn format_comparison_title(comparison: &LogComparison) -> String {
    match (comparison.verdict, comparison.figure()) {
        (JobVerdict::Passed, Some(figure)) => {
            format!("COMPARED: {:.2} times as fast with RDMA", figure.gain)
        }
        (JobVerdict::Passed, None) | (JobVerdict::Inconclusive, _) => {
            "INCONCLUSIVE: the logs do not say enough".to_owned()
        }
        (JobVerdict::Failed, _) => "NO COMPARISON: the two are no such pair".to_owned(),
    }
}

fn render_figure_row(figure: &Figure) -> String {
    let busbw = figure
        .busbw
        .map_or(String::new(), |(rdma, tcp)| format!("{rdma}, {tcp}"));
    let line = format!(
        "   {:<16} {:<12} {:<12} {:<9} {busbw}",
        figure.of.word(),
        format_seconds(figure.rdma_s),
        format_seconds(figure.tcp_s),
        format!("{:.2}", figure.gain)
    );
    format!("{}\n", line.trim_end())
}

fn render_profiler_entry(row: &ProfilerEntry) -> String {
    let rows = [
        ("shows", &row.shows),
        ("run", &row.run),
        ("source", &row.source),
    ];
    let below: String = rows
        .iter()
        .map(|(word, text)| wrap_labelled_text(&format!("       {word:<8}"), text, COLUMNS))
        .collect();
    format!("   {}\n{below}", clean_line(&row.name))
}

/// `job compare --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparisonDocument<'a> {
    format_version: &'static str,
    /// Whether it is a comparison of RDMA with TCP, with figures (exit code 0, 1 or 3).
    verdict: JobVerdict,
    /// Both logs, in the order in which they were named.
    logs: [LogDocument<'a>; 2],
    /// Topic by topic.
    topics: Vec<ComparisonTopicDocument<'a>>,
    /// Step by step or size by size, the largest last.
    figures: &'a [Figure],
    /// How many times as fast the job was with RDMA.
    gain: Option<f64>,
    /// Profilers that say what a step waits for; none where no training was compared.
    profilers: &'a [&'a ProfilerEntry],
}

/// One of the logs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogDocument<'a> {
    /// As it was named.
    log: &'a str,
    /// What carried its data between hosts.
    transport: Transport,
    /// It is the one with RDMA.
    is_rdma: bool,
}

/// One topic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ComparisonTopicDocument<'a> {
    topic: LogComparisonTopic,
    verdict: CheckVerdict,
    /// What was found, in words.
    measured: String,
    /// What must be, in words; empty where nothing is stated.
    expected: &'a str,
    /// A code of `railwright explain`.
    code: Option<&'a str>,
    /// What it means.
    effect: &'a str,
    /// What to do.
    next: &'a str,
}

impl<'a> ComparisonDocument<'a> {
    /// Of two logs.
    pub fn of(compared: &'a JobComparisonView<'a>) -> Self {
        let comparison = compared.comparison;
        let logs = [0, 1].map(|place| LogDocument {
            log: compared.names[place],
            transport: compared.proofs[place].transport,
            is_rdma: comparison.rdma == Some(place),
        });
        ComparisonDocument {
            format_version: FORMAT_VERSION,
            verdict: comparison.verdict,
            logs,
            topics: comparison
                .topics
                .iter()
                .map(build_comparison_topic_document)
                .collect(),
            figures: &comparison.figures,
            gain: comparison.figure().map(|figure| figure.gain),
            profilers: &compared.profilers,
        }
    }
}

fn build_comparison_topic_document(
    (topic, evaluation): &(LogComparisonTopic, CheckOutcome),
) -> ComparisonTopicDocument<'_> {
    ComparisonTopicDocument {
        topic: *topic,
        verdict: evaluation.verdict,
        measured: clean_line(&evaluation.measured),
        expected: &evaluation.expected,
        code: evaluation.code,
        effect: &evaluation.effect,
        next: &evaluation.next,
    }
}
