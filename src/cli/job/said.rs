//! What a job wrote: a log from a file or a pipe, or what the cluster has of a job: what keeps its
//! pods, and the logs of all of them.

use super::cluster::{
    Cluster, JobLocationArguments, JobNameArguments, find_single_job, name_not_file,
    parse_job_kind, parse_kubernetes_name,
};
use super::prove::report_unreadable_log;
use crate::cli::CommandFailure;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, quote};
use railwright_jobs::job::{JobKind, JobReader, JobView};
use railwright_report::out;
use railwright_system::files;
use std::path::PathBuf;

/// Lines of a pod's log that are read, the last ones: NCCL says what it uses when a job begins, so
/// that is a lot.
const LINES: u32 = 200_000;

/// A piece of a job's output.
pub enum JobOutputPiece<'a> {
    /// Of a log.
    Log(&'a [u8]),
    /// Of what the cluster says.
    Status(&'a [u8]),
}

/// Where it is.
#[derive(Debug, Clone, clap::Args)]
#[command(group(clap::ArgGroup::new("said").required(true).args(["job", "log"])))]
pub struct JobOutputArguments {
    /// A job in the inventory's cluster: the logs of its pods are read, and what keeps them
    #[arg(value_parser = name_not_file, requires = "inventory")]
    job: Option<String>,
    /// The log of one rank, one pod or the whole job; `-` is the standard input
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The folder that holds the spec
    #[arg(short, long, value_name = "FOLDER")]
    pub inventory: Option<PathBuf>,
    /// The namespace of the job
    #[arg(short, long, value_name = "NAME", default_value = "default", value_parser = parse_kubernetes_name)]
    pub namespace: String,
    /// The job's kind, where several have its name
    #[arg(long, value_name = "KIND", value_parser = parse_job_kind)]
    kind: Option<JobKind>,
}

impl JobOutputArguments {
    /// The job in a cluster, where it is one and no log.
    pub fn named(&self) -> Option<JobNameArguments> {
        let place = JobLocationArguments {
            inventory: self.inventory.clone()?,
            namespace: Some(self.namespace.clone()),
        };
        Some(JobNameArguments {
            job: self.job.clone()?,
            kind: self.kind,
            place,
        })
    }

    /// The words by which a command that is suggested finds it; what came by a pipe has to be kept
    /// first.
    pub fn words(&self) -> String {
        match (&self.job, &self.inventory, &self.log) {
            (Some(job), Some(inventory), _) => {
                let (inventory, namespace) = (quote::quote_path(inventory), &self.namespace);
                let kind = match self.kind {
                    Some(kind) => format!(" --kind {}", kind.word()),
                    None => String::new(),
                };
                format!("{job} -i {inventory} -n {namespace}{kind}")
            }
            (_, inventory, log) => {
                let log = match log {
                    Some(log) if log.as_os_str() != "-" => quote::quote_path(log),
                    _ => "FILE".to_owned(),
                };
                let inventory = match inventory {
                    Some(folder) => format!(" -i {}", quote::quote_path(folder)),
                    None => String::new(),
                };
                format!("--log {log}{inventory}")
            }
        }
    }

    /// All of it, piece by piece; what it is called. What the cluster says of a job and its pods is
    /// no log: each piece says which of both it is.
    pub async fn read(
        &self,
        mut each: impl FnMut(JobOutputPiece<'_>),
    ) -> Result<String, CommandFailure> {
        match (&self.job, &self.inventory, &self.log) {
            (Some(job), Some(inventory), _) => {
                let place = JobLocationArguments {
                    inventory: inventory.clone(),
                    namespace: Some(self.namespace.clone()),
                };
                let named = JobNameArguments {
                    job: job.clone(),
                    kind: self.kind,
                    place,
                };
                read_job_output(&named, false, each).await
            }
            (_, _, Some(log)) => {
                files::stream_file(log, |chunk| each(JobOutputPiece::Log(chunk)))
                    .map_err(|error| report_unreadable_log(log, &error))?;
                Ok(one_line(&log.display().to_string(), 120))
            }
            // The command line says what is missing before.
            _ => Err(
                Diagnostic::error("RW1214", "neither a job nor a log is named")
                    .state("nothing was checked")
                    .into(),
            ),
        }
    }
}

/// What the cluster says of a job, and the logs of all its pods, with the kubelet's time before
/// each line where that is asked for; what it is called.
pub async fn read_job_output(
    asked: &JobNameArguments,
    timed: bool,
    mut each: impl FnMut(JobOutputPiece<'_>),
) -> Result<String, CommandFailure> {
    let reader = Cluster::of(&asked.place.inventory).await?.reader();
    let found = find_single_job(&reader, asked).await?;
    let look = JobReader::at(&reader, asked.place.namespace());
    let view = look
        .view(&found)
        .await
        .map_err(|error| error.diagnostic())?;
    let view = view.ok_or_else(|| {
        super::watch::report_deleted_job(found.kind, &found.job.namespace, &found.job.name)
    })?;
    feed_status(&view, &mut each);
    let (mut read, mut unread) = (0, Vec::new());
    for pod in &view.pods {
        if pod.phase == "Pending" {
            continue;
        }
        let log = look.log(pod, LINES, None).await;
        match log.map_err(|error| error.diagnostic())? {
            Ok((text, is_cut)) => {
                read += 1;
                if is_cut {
                    unread.push(format!(
                        "{}: only its first 16 MiB were read; kubectl logs {} -n {} has all of it",
                        pod.name,
                        quote::quote_word_if_needed(&pod.name),
                        asked.place.namespace()
                    ));
                }
                feed_log(&text, timed, &mut each);
            }
            Err(why) => unread.push(format!("{}: {why}", pod.name)),
        }
    }
    for one in &unread {
        out::print_note(&format!(
            "a log could not be read whole: {}",
            one_line(one, 300)
        ));
    }
    let (kind, place) = (found.kind.word(), &found.job.namespace);
    Ok(format!(
        "{kind} {place}/{}, the logs of {}",
        one_line(&found.job.name, 63),
        railwright_base::text::format_count(read, "pod")
    ))
}

/// Symptoms are known by the words of the scheduler and the kubelet.
fn feed_status(view: &JobView, each: &mut impl FnMut(JobOutputPiece<'_>)) {
    let mut lines = view.news(None);
    for pod in &view.pods {
        for reason in pod.unscheduled.iter().chain(&pod.waits) {
            lines.push(one_line(reason, 600));
        }
    }
    for line in &lines {
        let line = format!("{}\n", one_line(line, 600));
        each(JobOutputPiece::Status(line.as_bytes()));
    }
}

/// The kubelet's time stands before each line; it is left out unless it is asked for.
fn feed_log(text: &str, timed: bool, each: &mut impl FnMut(JobOutputPiece<'_>)) {
    for line in text.lines() {
        let line = if timed {
            line
        } else {
            line.split_once(' ').map_or("", |(_, said)| said)
        };
        each(JobOutputPiece::Log(format!("{line}\n").as_bytes()));
    }
}
