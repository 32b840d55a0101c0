//! `railwright facts`.

use super::session::{observe_targets, open_quietly};
use super::{CommandFailure, Exit, output, recording};
use railwright_base::text::{format_count, one_line};
use railwright_base::{Diagnostic, nodeset, quote};
use railwright_plan::UnknownFinding;
use railwright_plan::diff::find_read_results;
use railwright_report as report;
use railwright_resource::Observation;
use railwright_session::{Inventory, SessionRequest, SigningKeys};
use railwright_transport::TargetContact;
use std::path::{Path, PathBuf};

/// Record the hosts' facts, for a plan without a connection
///
/// Reads what the spec's resources need, and what the hosts are made of. Changes nothing.
#[derive(Debug, clap::Args)]
pub struct Facts {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Write the observation to this file; without it, to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Read the hosts as this user, who needs no rights but those that `sudoers` prints; what only
    /// root may see is unknown
    #[arg(long, value_name = "USER", value_parser = Inventory::user_name)]
    pub read_as: Option<String>,
}

/// Records an observation.
pub async fn run(arguments: &Facts) -> Result<Exit, CommandFailure> {
    output::can_be_written(&arguments.output)?;
    let request = SessionRequest::from_targets(TargetContact::begin())
        .with_keys(SigningKeys::WhereAStepNeedsThem);
    let session = open_quietly(&arguments.inventory, &request)?
        .read_as(arguments.read_as.clone())
        .with_hardware();
    let observation = observe_targets(&session).await?.into_recording();
    let silent: Vec<UnknownFinding> = observation
        .targets
        .keys()
        .filter_map(|target| find_read_results(&observation, target).err())
        .collect();
    deliver_observation(arguments, &observation, &silent)?;
    let without_ssh = session.inventory.loaded.without_ssh();
    if !without_ssh.is_empty() {
        report::out::print_note(&format!(
            "not asked, because they have no SSH: {}",
            one_line(&nodeset::fold_node_set(&without_ssh), 200)
        ));
    }
    if silent.is_empty() {
        return Ok(Exit::Done);
    }
    report::out::print_note(&format!(
        "These targets gave no answer:\n{}",
        report::unread::render_unknown_findings(&silent).trim_end()
    ));
    Ok(Exit::Incomplete)
}

/// Records an observation in a file, or prints it where there is none.
fn deliver_observation(
    arguments: &Facts,
    observation: &Observation,
    silent: &[UnknownFinding],
) -> Result<(), CommandFailure> {
    let Some(file) = &arguments.output else {
        let document = report::document::render_json_document(&observation.redacted());
        report::out::print_result(&document);
        return Ok(());
    };
    let hosts = observation.targets.len();
    // What was recorded earlier is worth more than the news that nobody answers.
    if !silent.is_empty() && silent.len() == hosts {
        report::out::print_note(&report::unread::render_unknown_findings(silent));
        return Err(CommandFailure::with_exit(
            Exit::Incomplete,
            report_no_answers(&arguments.inventory, file),
        ));
    }
    recording::write_recording(file, observation)?;
    report::out::print_note(&format!(
        "{} of {} recorded in {}",
        hosts - silent.len(),
        format_count(hosts, "host"),
        file.display()
    ));
    Ok(())
}

fn report_no_answers(inventory: &Path, file: &Path) -> Diagnostic {
    Diagnostic::error("RW1030", "no host answered, so nothing was recorded")
        .on(file.display().to_string())
        .effect("a plan from an empty recording would know nothing of any host")
        .state("the file is as it was")
        .next(format!(
            "fix what is said above, then railwright facts {} -o {}",
            quote::quote_path(inventory),
            quote::quote_path(file)
        ))
}
