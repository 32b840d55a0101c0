//! A job with RDMA and without: in what the two differ and why, and as JSON.

use super::diagnostic::{self, Finding};
use super::workload::{JobDocument, shown};
use super::wrap::{COLUMNS, labelled, rule as heading};
use railwright_base::text::clean;
use railwright_knowledge::spec::Sources;
use railwright_workload::{Difference, Half, Pair};
use schemars::JsonSchema;
use serde::Serialize;

/// `job render compare --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PairDocument<'a> {
    format_version: &'static str,
    /// The job with RDMA devices.
    rdma: JobDocument<'a>,
    /// The same over TCP.
    tcp: JobDocument<'a>,
    /// All in which they differ beside their names.
    differences: &'a [Difference],
    /// Why no gain is to be expected, as far as that can be told beforehand.
    forecast: Vec<Finding>,
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
            forecast: diagnostic::findings(&pair.forecast, sources),
            next,
        }
    }
}

/// The commands that go on: one half after the other, by the words that were typed, then both are compared.
pub fn next(typed: &[String], name: &str, place: &str) -> Vec<String> {
    let submit = |half: Half| {
        let words = [&["railwright", "job", "render", "compare", "--only", half.word()].map(str::to_owned)[..], typed].concat();
        format!("{} | railwright job submit {place} --watch -", shown(&words))
    };
    vec![submit(Half::Rdma), submit(Half::Tcp), format!("railwright job compare {name} {place}")]
}

/// They are told below objects.
pub fn hint(next: &[String]) -> String {
    format!(
        "Run one after the other, as they would share the network:\n{}",
        next.iter().map(|line| format!("  {line}\n")).collect::<String>()
    )
}

/// In what the two differ, each with its reason.
pub fn explained(pair: &Pair, next: &[String]) -> String {
    let (rdma, tcp) = (&pair.rdma, &pair.tcp);
    let mut out = format!("{} {}/{} and {}, alike but for what is below\n", rdma.kind.word(), rdma.namespace, rdma.name, tcp.name);
    out.push_str(&heading("THE DIFFERENCE"));
    for one in &pair.differences {
        out.push_str(&labelled(" ", &one.name, COLUMNS));
        for (label, value) in [("rdma", &one.rdma), ("tcp", &one.tcp)] {
            out.push_str(&labelled(&format!("   {label:<8} "), value.as_deref().unwrap_or("(not there)"), COLUMNS));
        }
        out.push_str(&labelled("   why      ", &one.reason, COLUMNS));
    }
    out.push_str(&heading("RUN ONE AFTER THE OTHER"));
    // Not broken, so that they can be taken as they stand.
    out.extend(next.iter().map(|line| format!("   {line}\n")));
    clean(&out)
}
