//! `railwright facts`.

use super::inventory::Inventory;
use super::pipeline::{self, Source};
use super::question;
use super::{Exit, Failure, output, recording};
use railwright_base::text::{counted, one_line};
use railwright_base::{Diagnostic, nodeset, quote};
use railwright_plan::UnknownFinding;
use railwright_plan::judge::reached;
use railwright_report as report;
use railwright_transport::TargetContact;
use std::path::PathBuf;

/// Record what the hosts say, for a plan without a connection
///
/// Asks what the spec's wishes need, and what the hosts are made of. Changes nothing.
#[derive(Debug, clap::Args)]
pub struct Facts {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Write the observation to this file; without it, to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Read the hosts as this user, who needs no rights but those that `sudoers` prints; what only root may see is unknown
    #[arg(long, value_name = "USER", value_parser = Inventory::user_name)]
    pub read_as: Option<String>,
}

/// Records an observation.
pub async fn run(arguments: &Facts) -> Result<Exit, Failure> {
    output::can_be_written(&arguments.output)?;
    let prepared = pipeline::prepare_to_record(&arguments.inventory, &Source::Live(TargetContact::begin()))?
        .read_as(arguments.read_as.clone())
        .with_hardware();
    let observation = question::observe(&prepared).await?.into_recording();
    let silent: Vec<UnknownFinding> = observation.targets.keys().filter_map(|target| reached(&observation, target).err()).collect();
    let none_answered = !silent.is_empty() && silent.len() == observation.targets.len();
    match &arguments.output {
        // What was recorded earlier is worth more than the news that nobody answers.
        Some(file) if none_answered => {
            report::out::note(&report::unread::entries(&silent));
            let problem = Diagnostic::error("RW1030", "no host answered, so nothing was recorded")
                .on(file.display().to_string())
                .effect("a plan from an empty recording would know nothing of any host")
                .state("the file is as it was")
                .next(format!(
                    "mend what is said above, then railwright facts {} -o {}",
                    quote::path(&arguments.inventory),
                    quote::path(file)
                ));
            return Err(Failure { exit: Exit::Incomplete, ..Failure::from(problem) });
        }
        Some(file) => {
            recording::write(file, &observation)?;
            report::out::note(&format!(
                "{} of {} recorded in {}",
                observation.targets.len() - silent.len(),
                counted(observation.targets.len(), "host"),
                file.display()
            ));
        }
        None => report::out::print(&report::document::text(&observation.redacted())),
    }
    let without_ssh = prepared.inventory.loaded.without_ssh();
    if !without_ssh.is_empty() {
        report::out::note(&format!("not asked, because they have no SSH: {}", one_line(&nodeset::fold(&without_ssh), 200)));
    }
    if silent.is_empty() {
        return Ok(Exit::Done);
    }
    report::out::note(&format!("These targets gave no answer:\n{}", report::unread::entries(&silent).trim_end()));
    Ok(Exit::Incomplete)
}
