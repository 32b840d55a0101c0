//! `railwright job list`.

use super::cluster::{Cluster, Place};
use crate::cli::{Exit, Failure};
use railwright_jobs::job::{JobKind, Look};
use railwright_report::running_jobs::{self, JobsDocument};
use railwright_report::{document, out};
use railwright_system::clock;

/// List the jobs of a namespace: MPIJobs, PyTorchJobs, RayClusters, and what railwright submitted
///
/// Exit code 3 where a kind could not be read.
#[derive(Debug, clap::Args)]
pub struct List {
    #[command(flatten)]
    place: Place,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists them.
pub async fn run(arguments: &List) -> Result<Exit, Failure> {
    let namespace = &arguments.place.namespace;
    let reader = Cluster::of(&arguments.place.inventory).await?.reader();
    let looked = Look::at(&reader, namespace).all(&JobKind::ALL).await.map_err(|error| error.diagnostic())?;
    out::print(&match arguments.json {
        true => document::text(&JobsDocument::of(namespace, &looked)),
        false => running_jobs::list(namespace, &looked, clock::unix_seconds()),
    });
    Ok(if looked.unread.is_empty() { Exit::Done } else { Exit::Incomplete })
}
