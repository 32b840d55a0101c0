//! `railwright job list`.

use super::cluster::{Cluster, JobLocationArguments};
use crate::cli::{CommandFailure, Exit};
use railwright_jobs::job::{JobKind, JobReader};
use railwright_report::running_jobs::{self, JobsDocument};
use railwright_report::{document, out};
use railwright_system::clock;

/// List the jobs of a namespace: MPIJobs, PyTorchJobs, RayClusters, and what railwright submitted
///
/// Exit code 3 where a kind could not be read.
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    place: JobLocationArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists them.
pub async fn run(arguments: &List) -> Result<Exit, CommandFailure> {
    let namespace = arguments.place.namespace();
    let reader = Cluster::of(&arguments.place.inventory).await?.reader();
    let looked = JobReader::at(&reader, namespace)
        .all(&JobKind::ALL)
        .await
        .map_err(|error| error.diagnostic())?;
    out::print_result(&match arguments.json {
        true => document::render_json_document(&JobsDocument::of(namespace, &looked)),
        false => running_jobs::render_job_list(namespace, &looked, clock::unix_seconds()),
    });
    Ok(if looked.unread.is_empty() {
        Exit::Done
    } else {
        Exit::Incomplete
    })
}
