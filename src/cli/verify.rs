//! `railwright verify`.

use super::pipeline;
use super::verification;
use super::{Exit, Failure};
use crate::report;
use crate::verify::{Verdict, verify};
use std::path::PathBuf;

/// Prove the fabric: drivers, links, GIDs, path MTU, marks, and a matrix of real RDMA traffic
///
/// Starts short test traffic between hosts, one pair a host at a time; the hosts themselves end it even if we die.
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Proves the fabric.
pub async fn run(arguments: &Verify) -> Result<Exit, Failure> {
    let prepared = pipeline::prepare_to_act(&arguments.inventory)?;
    let request = verification::request(&prepared);
    let connector = prepared.connector()?;
    let progress = report::progress::Proving::default();
    let report = verify(&*connector, &request, &|event| progress.show(&event)).await;
    progress.end();
    let text = if arguments.json { report::verify::json(&report) } else { report::verify::screen(&report) };
    report::out::print(&text);
    Ok(match report.verdict() {
        Verdict::Failed => Exit::Failed,
        Verdict::Unknown => Exit::Incomplete,
        Verdict::Passed | Verdict::NotRun | Verdict::Warning | Verdict::NotApplicable => Exit::Done,
    })
}
