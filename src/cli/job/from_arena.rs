//! `railwright job from-arena`: a whole line `arena submit pytorch ...` as a PyTorchJob.

use super::deliver::{Delivery, Ground};
use crate::cli::{Exit, Failure};
use crate::workload::{self, Request};
use std::path::PathBuf;

/// Write the PyTorchJob of a line `arena submit pytorch ...`; nothing is run
///
/// With an inventory, what the line leaves open follows from the fabric, and the rules judge it.
#[derive(Debug, clap::Args)]
pub struct FromArena {
    /// The whole line, as one argument
    line: String,
    /// The folder that holds the spec; without it only what the line says is written
    #[arg(short, long, value_name = "FOLDER")]
    inventory: Option<PathBuf>,
    /// It is a trial: images of demonstrations are no finding
    #[arg(long)]
    trial: bool,
    #[command(flatten)]
    delivery: Delivery,
}

/// Translates it.
pub fn run(arguments: &FromArena) -> Result<Exit, Failure> {
    let mut line = workload::from_arena(&arguments.line).map_err(|(problems, sources)| Failure::from(problems).with_sources(&sources))?;
    line.job.pods.trial = arguments.trial;
    let ground = Ground::read(arguments.inventory.as_ref())?;
    ground.deliver(&Request::Pytorch(Box::new(line.job)), &line.asked, &arguments.delivery)
}
