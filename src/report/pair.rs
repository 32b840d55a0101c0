//! A job with RDMA and without: in what the two differ and why, and as JSON.

use super::diagnostic::{self, DiagnosticDocument};
use super::workload::{JobDocument, format_shell_words};
use super::wrap::{COLUMNS, render_heading, wrap_labelled_text};
use railwright_base::text::sanitize_text;
use railwright_knowledge::spec::Sources;
use railwright_workload::{Half, Pair, PairDifference};
use schemars::JsonSchema;
use serde::Serialize;

/// `job render compare --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PairDocument<'a> {
    format_version: &'static str,
    /// The job with RDMA devices.
    rdma: JobDocument<'a>,
    /// What was measured over TCP.
    tcp: JobDocument<'a>,
    /// All in which they differ beside their names.
    differences: &'a [PairDifference],
    /// Why no gain is to be expected, as far as that is known beforehand.
    forecast: Vec<DiagnosticDocument>,
    /// The commands that go on, in order.
    next: &'a [String],
}

impl<'a> PairDocument<'a> {
    /// Of both.
    pub fn of(pair: &'a Pair, sources: &Sources, next: &'a [String]) -> Self {
        PairDocument {
            format_version: "1.0",
            rdma: JobDocument::of(&pair.rdma, sources),
            tcp: JobDocument::of(&pair.tcp, sources),
            differences: &pair.differences,
            forecast: diagnostic::build_diagnostic_documents(&pair.forecast, sources),
            next,
        }
    }
}

/// The commands that go on: one half after the other, by the words that were typed, then both are
/// compared.
pub fn list_pair_commands(typed: &[String], name: &str, place: &str) -> Vec<String> {
    vec![
        format_submit_command(typed, place, Half::Rdma),
        format_submit_command(typed, place, Half::Tcp),
        format!("railwright job compare {name} {place}"),
    ]
}

fn format_submit_command(typed: &[String], place: &str, half: Half) -> String {
    let words = [
        &[
            "railwright",
            "job",
            "render",
            "compare",
            "--only",
            half.word(),
        ]
        .map(str::to_owned)[..],
        typed,
    ]
    .concat();
    format!(
        "{} | railwright job submit {place} --watch -",
        format_shell_words(&words)
    )
}

/// They are shown below objects.
pub fn render_pair_hint(next: &[String]) -> String {
    format!(
        "Run one after the other, as they would share the network:\n{}",
        next.iter()
            .map(|line| format!("  {line}\n"))
            .collect::<String>()
    )
}

/// In what the two differ, each with its reason.
pub fn render_pair_explanation(pair: &Pair, next: &[String]) -> String {
    let (rdma, tcp) = (&pair.rdma, &pair.tcp);
    let mut out = format!(
        "{} {}/{} and {}, identical but for what is below\n",
        rdma.kind.word(),
        rdma.namespace,
        rdma.name,
        tcp.name
    );
    out.push_str(&render_heading("THE DIFFERENCE"));
    for one in &pair.differences {
        out.push_str(&wrap_labelled_text(" ", &one.name, COLUMNS));
        for (label, value) in [("rdma", &one.rdma), ("tcp", &one.tcp)] {
            out.push_str(&wrap_labelled_text(
                &format!("   {label:<8} "),
                value.as_deref().unwrap_or("(not there)"),
                COLUMNS,
            ));
        }
        out.push_str(&wrap_labelled_text("   why      ", &one.reason, COLUMNS));
    }
    out.push_str(&render_heading("RUN ONE AFTER THE OTHER"));
    // Not broken, so that they can be taken as they stand.
    for line in next {
        out.push_str(&format!("   {line}\n"));
    }
    sanitize_text(&out)
}
