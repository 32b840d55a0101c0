//! `railwright show`.

use super::pipeline;
use super::{Exit, Failure};
use crate::base::Diagnostic;
use crate::report;
use std::path::PathBuf;

/// Show a plan file, anywhere, with no credentials
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The plan file
    pub plan: PathBuf,
    /// One target or resource in full: host/gpu-001, host/gpu-001/link/ens4
    pub address: Option<String>,
    /// Print the plan as JSON
    #[arg(long)]
    pub json: bool,
}

/// Shows a plan file.
pub fn run(arguments: &Show) -> Result<Exit, Failure> {
    let plan = pipeline::read_plan(&arguments.plan)?;
    let file = arguments.plan.display().to_string();
    let text = match &arguments.address {
        _ if arguments.json => String::from_utf8_lossy(&crate::plan::file::bytes(&plan)).into_owned(),
        None => report::plan::screen(&plan, &report::plan::Next { file: Some(file), inventory: String::new() }),
        Some(address) => report::plan::details(&plan, address).ok_or_else(|| {
            Diagnostic::error("RW0306", format!("{file} has no step for {address}"))
                .state("nothing was changed")
                .next(format!("railwright show {file}"))
        })?,
    };
    report::out::print(&text);
    Ok(Exit::Done)
}
