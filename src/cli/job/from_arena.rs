//! `railwright job from-arena`: a whole line `arena submit pytorch ...` as a PyTorchJob.

use super::deliver::{Delivery, JobRenderContext};
use crate::cli::{CommandFailure, Exit};
use railwright_base::Diagnostic;
use railwright_system::files;
use railwright_workload::{self as workload, JobRequest};
use std::path::{Path, PathBuf};

/// The longest line that is read, in bytes.
const LINE_MAX: u64 = 256 << 10;

/// Write the PyTorchJob of a line `arena submit pytorch ...`; nothing is run
///
/// With an inventory, what the line leaves open follows from the fabric, and the rules check it.
#[derive(Debug, clap::Args)]
pub struct FromArena {
    /// The whole line, as one argument; `-` reads it from the standard input
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
pub fn run(arguments: &FromArena) -> Result<Exit, CommandFailure> {
    arguments.delivery.answered(translate_arena_line(arguments))
}

fn translate_arena_line(arguments: &FromArena) -> Result<Exit, CommandFailure> {
    let text = match arguments.line.as_str() {
        "-" => standard_input()?,
        line => line.to_owned(),
    };
    let mut line = workload::from_arena(&text)
        .map_err(|(problems, sources)| CommandFailure::from(problems).with_sources(&sources))?;
    line.job.pods.trial = arguments.trial;
    let ground = JobRenderContext::read(arguments.inventory.as_ref())?;
    ground.deliver(
        &JobRequest::Pytorch(Box::new(line.job)),
        &line.asked,
        &arguments.delivery,
    )
}

fn standard_input() -> Result<String, Diagnostic> {
    let read =
        files::read_limited(Path::new("/dev/stdin"), LINE_MAX).map_err(|error| error.to_string());
    read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is no text".to_owned()))
        .map_err(|why| {
            Diagnostic::error(
                "RW1222",
                format!("the standard input cannot be read as a line: {why}"),
            )
            .state("nothing was run or rendered")
            .next("pipe the line of one command in, or give it as one argument")
        })
}
