//! `railwright facts`.

use super::pipeline::{self, Source};
use super::{Exit, Failure, recording};
use crate::plan::UnknownFinding;
use crate::plan::judge::reached;
use crate::report;
use std::path::PathBuf;

/// Record what the hosts say, for a plan without a connection
///
/// Asks only what the spec's wishes need. Changes nothing.
#[derive(Debug, clap::Args)]
pub struct Facts {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Write the observation to this file; without it, to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Records an observation.
pub async fn run(arguments: &Facts) -> Result<Exit, Failure> {
    let prepared = pipeline::prepare(&arguments.inventory, &Source::Live)?;
    let observation = pipeline::observe(&prepared).await?.observation;
    let silent: Vec<UnknownFinding> = observation.targets.keys().filter_map(|target| reached(&observation, target).err()).collect();
    match &arguments.output {
        Some(file) => {
            recording::write(file, &observation)?;
            report::out::note(&format!(
                "{} of {} hosts recorded in {}",
                observation.targets.len() - silent.len(),
                observation.targets.len(),
                file.display()
            ));
        }
        None => report::out::print(&serde_json::to_string_pretty(&observation).unwrap_or_default()),
    }
    if silent.is_empty() {
        return Ok(Exit::Done);
    }
    report::out::note(&format!("These targets gave no answer:\n{}", report::unread::entries(&silent).trim_end()));
    Ok(Exit::Incomplete)
}
