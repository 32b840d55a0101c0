//! The cluster of an inventory, for commands about the jobs in it.

use crate::cli::{CommandFailure, Exit};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Reason, quote};
use railwright_jobs::job::{ClusterJob, JobKind, JobListing, JobReader};
use railwright_resource::kubernetes_object::manifest::is_subdomain;
use railwright_session::read_inventory;
use railwright_transport::{
    HostLink, JobWriter, Prober, Reader, TargetAccess, TargetContact, new_connector,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where jobs are.
#[derive(Debug, Clone, clap::Args)]
pub struct JobLocationArguments {
    /// The folder that holds the spec, which names the cluster
    #[arg(short, long, value_name = "FOLDER")]
    pub inventory: PathBuf,
    /// The namespace; `default` unless said otherwise
    #[arg(short, long, value_name = "NAME", value_parser = parse_kubernetes_name)]
    pub namespace: Option<String>,
}

impl JobLocationArguments {
    /// The namespace that is meant.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }
}

/// A job in it.
#[derive(Debug, Clone, clap::Args)]
pub struct JobNameArguments {
    /// The job's name
    #[arg(value_parser = parse_kubernetes_name)]
    pub job: String,
    /// Its kind, where jobs of several kinds have the name: MPIJob, PyTorchJob, RayCluster,
    /// Deployment, Job, Pod
    #[arg(long, value_name = "KIND", value_parser = parse_job_kind)]
    pub kind: Option<JobKind>,
    #[command(flatten)]
    pub place: JobLocationArguments,
}

/// A name of Kubernetes.
pub fn parse_kubernetes_name(text: &str) -> Result<String, Reason> {
    match is_subdomain(text) {
        true => Ok(text.to_owned()),
        false => Err("a name of Kubernetes: small letters, digits and `-`".into()),
    }
}

/// The name of a job, where the file of a log may have been meant.
pub fn name_not_file(text: &str) -> Result<String, Reason> {
    parse_kubernetes_name(text)
        .map_err(|why| format!("{why}; the file of a log is given as --log FILE").into())
}

/// A kind of jobs.
pub fn parse_job_kind(text: &str) -> Result<JobKind, Reason> {
    JobKind::of(text)
        .ok_or_else(|| format!("there are {}", JobKind::ALL.map(JobKind::word).join(", ")).into())
}

/// An API server that answers.
pub struct Cluster {
    link: Arc<dyn HostLink>,
}

impl Cluster {
    /// The one that the inventory names.
    pub async fn of(folder: &Path) -> Result<Self, CommandFailure> {
        let inventory = read_inventory(folder)?;
        // What looks wrong of it is about hosts, none of which is asked: `validate` and `plan` tell
        // it.
        let access: TargetAccess = inventory
            .accesses()
            .find(|access| access.cluster().is_some())
            .ok_or_else(|| {
                Diagnostic::error(
                    "RW1037",
                    format!(
                        "the inventory {} names no Kubernetes cluster",
                        inventory.path
                    ),
                )
                .state("nothing was asked or changed")
                .next("name it in the spec: kubernetes: { name: prod, kubeconfig: FILE }")
            })?;
        let link = new_connector(TargetContact::begin())
            .connect(&access)
            .await
            .map_err(|error| error.diagnostic())?;
        Ok(Cluster { link })
    }

    /// A handle that can only read.
    pub fn reader(&self) -> Reader {
        Reader::new(self.link.clone())
    }

    /// A handle that can read, and run what ends by itself in pods.
    pub fn prober(&self) -> Prober {
        Prober::new(self.link.clone())
    }

    /// A handle that can change what is there.
    pub fn writer(&self) -> JobWriter {
        JobWriter::new(self.link.clone())
    }
}

/// All jobs with this name.
pub async fn find_jobs_by_name(
    reader: &Reader,
    asked: &JobNameArguments,
) -> Result<JobListing, CommandFailure> {
    let kinds = asked
        .kind
        .map_or_else(|| JobKind::ALL.to_vec(), |kind| vec![kind]);
    let mut looked = list_jobs(reader, asked, &kinds).await?;
    looked.jobs.retain(|found| {
        found.job.name == asked.job || found.job.job.as_deref() == Some(asked.job.as_str())
    });
    Ok(looked)
}

/// All jobs of these kinds in the namespace that is asked about.
async fn list_jobs(
    reader: &Reader,
    asked: &JobNameArguments,
    kinds: &[JobKind],
) -> Result<JobListing, CommandFailure> {
    let listing = JobReader::at(reader, asked.place.namespace())
        .all(kinds)
        .await;
    Ok(listing.map_err(|error| error.diagnostic())?)
}

/// The one job with this name.
pub async fn find_single_job(
    reader: &Reader,
    asked: &JobNameArguments,
) -> Result<ClusterJob, CommandFailure> {
    let looked = find_jobs_by_name(reader, asked).await?;
    refuse_ambiguous_name(asked, &looked)?;
    let found = looked.jobs.iter().find(|found| found.job.name == asked.job);
    found
        .cloned()
        .ok_or_else(|| report_job_not_found(asked, &looked))
}

/// Refuses a name that several jobs have. What was submitted with a job bears its name as a label.
pub fn refuse_ambiguous_name(
    asked: &JobNameArguments,
    looked: &JobListing,
) -> Result<(), CommandFailure> {
    let named = looked.jobs.iter();
    let named: Vec<&ClusterJob> = named.filter(|found| found.job.name == asked.job).collect();
    match named.len() {
        0 | 1 => Ok(()),
        _ => Err(report_ambiguous_job(asked, &named).into()),
    }
}

/// The jobs that have this name and are of another kind than the one that is named.
pub async fn find_jobs_of_other_kinds(
    reader: &Reader,
    asked: &JobNameArguments,
) -> Result<JobListing, CommandFailure> {
    let Some(kind) = asked.kind else {
        return Ok(JobListing::default());
    };
    let kinds: Vec<JobKind> = JobKind::ALL
        .into_iter()
        .filter(|other| *other != kind)
        .collect();
    let mut listing = list_jobs(reader, asked, &kinds).await?;
    listing.jobs.retain(|found| found.job.name == asked.job);
    Ok(listing)
}

/// No job that could be read has the name. Of a kind that could not be read nobody knows.
fn report_job_not_found(asked: &JobNameArguments, looked: &JobListing) -> CommandFailure {
    let (job, namespace) = (&asked.job, asked.place.namespace());
    let unread: Vec<String> = looked
        .unread
        .iter()
        .map(|(kind, why)| format!("{} could not be read: {}", kind.word(), one_line(why, 200)))
        .collect();
    let (exit, message) = match unread.is_empty() {
        true => (
            Exit::Failed,
            format!("no job {job} is in namespace {namespace}"),
        ),
        false => (
            Exit::Incomplete,
            format!("whether a job {job} is in namespace {namespace} is not known"),
        ),
    };
    let mut diagnostic = Diagnostic::error("RW1240", message)
        .state("nothing was changed")
        .next(format!(
            "railwright job list -i {} -n {namespace}",
            quote::quote_path(&asked.place.inventory)
        ));
    diagnostic.effect = (!unread.is_empty()).then(|| unread.join("; "));
    CommandFailure::with_exit(exit, diagnostic)
}

fn report_ambiguous_job(asked: &JobNameArguments, found: &[&ClusterJob]) -> Diagnostic {
    let kinds: Vec<&str> = found.iter().map(|found| found.kind.word()).collect();
    Diagnostic::error(
        "RW1241",
        format!(
            "several jobs are called {}: {}",
            asked.job,
            kinds.join(", ")
        ),
    )
    .state("nothing was changed")
    .next(format!(
        "say which: --kind {}",
        kinds.first().copied().unwrap_or_default()
    ))
}
