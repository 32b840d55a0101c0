//! `railwright graph`.

use super::{CommandFailure, Exit, plan_file};
use railwright_report as report;
use std::path::PathBuf;

/// Draw a plan's graph for Graphviz or Mermaid
#[derive(Debug, clap::Args)]
pub struct GraphArguments {
    /// The plan file
    pub plan: PathBuf,
    /// What to write
    #[arg(long, value_enum, default_value = "dot")]
    pub format: report::graph::GraphFormat,
}

/// Draws a plan file's graph.
pub fn run(arguments: &GraphArguments) -> Result<Exit, CommandFailure> {
    let plan = plan_file::read_plan(&arguments.plan)?;
    report::out::print_result(&report::graph::render_plan_graph(&plan, arguments.format));
    Ok(Exit::Done)
}
