//! `railwright graph`.

use super::pipeline;
use super::{Exit, Failure};
use railwright_report as report;
use std::path::PathBuf;

/// Draw a plan's graph for Graphviz or Mermaid
#[derive(Debug, clap::Args)]
pub struct Graph {
    /// The plan file
    pub plan: PathBuf,
    /// What to write
    #[arg(long, value_enum, default_value = "dot")]
    pub format: report::graph::Format,
}

/// Draws a plan file's graph.
pub fn run(arguments: &Graph) -> Result<Exit, Failure> {
    let plan = pipeline::read_plan(&arguments.plan)?;
    report::out::print(&report::graph::graph(&plan, arguments.format));
    Ok(Exit::Done)
}
