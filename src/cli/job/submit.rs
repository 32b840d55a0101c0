//! `railwright job submit`.

use super::cluster::{Cluster, JobLocationArguments};
use super::watch::{self, JobWatchOptions};
use crate::cli::{CommandFailure, Exit};
use railwright_base::text::format_count;
use railwright_base::{Diagnostic, Reason, quote};
use railwright_jobs::job::{
    JobKind, JobReader, JobSubmissionOutcome, Submission, parse_submission, submit_job,
};
use railwright_report::out;
use railwright_resource::kubernetes_object::request::ObjectName;
use railwright_system::signals::{self, wait_for_interrupts};
use railwright_system::{clock, files};
use std::path::{Path, PathBuf};

/// A job is not larger.
const LIMIT_BYTES: u64 = 4 << 20;

/// Submit a job that `job render` wrote, and undo what was made before a refusal
///
/// `railwright job render nccl-test -i FOLDER --image IMAGE | railwright job submit -i FOLDER -`
#[derive(Debug, clap::Args)]
pub struct Submit {
    /// The file with the job's objects; `-` reads standard input
    file: PathBuf,
    #[command(flatten)]
    place: JobLocationArguments,
    /// Watch it until it ends
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    patience: JobWatchOptions,
}

/// Submits a job, and watches it where that is asked for.
pub async fn run(arguments: &Submit) -> Result<Exit, CommandFailure> {
    let shown = arguments.file.display().to_string();
    let submission = read_submission(arguments)
        .map_err(|why| report_invalid_submission(&shown, why.as_words()))?;
    let cluster = Cluster::of(&arguments.place.inventory).await?;
    let word = clock::generate_nonce().map_err(|error| {
        report_invalid_submission(&shown, &format!("no random numbers: {error}"))
    })?;
    let inventory = quote::quote_path(&arguments.place.inventory);
    let place = format!("-i {inventory} -n {}", submission.namespace);
    let (writer, mut interrupts) = (cluster.writer(), signals::watch_interrupts());
    // Whoever asks once is let go when all its objects are there, or what was made is undone.
    let submitted = tokio::select! {
        () = wait_for_interrupts(&mut interrupts, 2) => {
            return Err(report_abandoned_submission(&submission, &place).into());
        }
        submitted = submit_job(&writer, &submission, &word) => submitted,
    };
    match submitted.map_err(|error| error.diagnostic())? {
        JobSubmissionOutcome::Made(warnings) => {
            print_submission(&submission, &warnings);
            if arguments.watch {
                return watch_submission(&cluster, &submission, &arguments.patience, &place).await;
            }
            let name = &submission.name;
            out::print_result(&format!(
                "  watch it:  railwright job watch {name} {place}\n  delete it: railwright job delete {name} {place}\n"
            ));
            Ok(Exit::Done)
        }
        JobSubmissionOutcome::Taken { why, left, .. } => {
            Err(report_taken_name(&submission, &why, &left, &place).into())
        }
        JobSubmissionOutcome::Refused { object, why, left } => {
            let told = report_refused_object(&object, &why, &left);
            Err(told.next("fix what it names, and submit again").into())
        }
        JobSubmissionOutcome::UnknownKind { object, why, left } => {
            let told = report_refused_object(&object, &why, &left);
            Err(add_missing_operator(told, submission.kind).into())
        }
        JobSubmissionOutcome::Unknown { object, why, left } => {
            Err(report_unknown_submission(&submission, &object, &why, &left, &place).into())
        }
    }
}

/// Reads the file with the job's objects; an error is the reason why it is no such file.
fn read_submission(arguments: &Submit) -> Result<Submission, Reason> {
    let file = if arguments.file.as_os_str() == "-" {
        Path::new("/dev/stdin")
    } else {
        &arguments.file
    };
    let bytes = files::read_limited(file, LIMIT_BYTES).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is no text".to_owned())?;
    parse_submission(&text, arguments.place.namespace.as_deref())
}

/// Prints what was made, and before it what the API server warns of.
fn print_submission(submission: &Submission, warnings: &[String]) {
    for warning in warnings {
        out::print_note(&format!("the API server warns: {warning}"));
    }
    out::print_result(&format!(
        "{} {}/{} is submitted: {}\n",
        submission.kind.word(),
        submission.namespace,
        submission.name,
        format_count(submission.objects.len(), "object")
    ));
}

async fn watch_submission(
    cluster: &Cluster,
    submission: &Submission,
    patience: &JobWatchOptions,
    place: &str,
) -> Result<Exit, CommandFailure> {
    let Submission {
        kind,
        namespace,
        name,
        ..
    } = submission;
    let reader = cluster.reader();
    let looked = JobReader::at(&reader, namespace)
        .all(&[*kind])
        .await
        .map_err(|error| error.diagnostic())?;
    let mut jobs = looked.jobs.into_iter();
    match jobs.find(|found| found.job.name == *name) {
        Some(found) => watch::follow_job(&reader, &found, patience, place).await,
        None => Err(watch::report_deleted_job(*kind, namespace, name).into()),
    }
}

/// What is no job that can be submitted, by the name of its file.
pub fn report_invalid_submission(file: &str, why: &str) -> Diagnostic {
    Diagnostic::error(
        "RW1242",
        format!("{file} is no job that can be submitted: {why}"),
    )
    .state("nothing was asked or changed")
    .next("railwright job render KIND writes one")
}

fn report_taken_name(
    submission: &Submission,
    why: &str,
    left: &[ObjectName],
    place: &str,
) -> Diagnostic {
    let told = Diagnostic::error("RW1243", why.to_owned())
        .effect("it may be the job of somebody else, or one that came to its end")
        .state(describe_leftovers(left));
    told.next(format!(
        "railwright job list {place} tells how far it is; railwright job delete {} {place} takes \
         one of that name away",
        submission.name
    ))
    .next("or give the job another name")
}

fn report_refused_object(object: &ObjectName, why: &str, left: &[ObjectName]) -> Diagnostic {
    Diagnostic::error(
        "RW1244",
        format!("the API server does not take {object}: {why}"),
    )
    .state(describe_leftovers(left))
}

fn add_missing_operator(told: Diagnostic, kind: JobKind) -> Diagnostic {
    told.effect(format!(
        "{} is not installed in the cluster, or serves another version",
        kind.controller()
    ))
    .next(
        "install it: the module of that name has the chart or the manifest (`railwright plan` \
         shows it)",
    )
}

fn report_unknown_submission(
    submission: &Submission,
    object: &ObjectName,
    why: &str,
    left: &[ObjectName],
    place: &str,
) -> Diagnostic {
    let made = if left.is_empty() {
        String::new()
    } else {
        format!("; made before it: {}", join_object_names(left))
    };
    let what = format!("whether {object} was made is not known: {why}");
    let state = format!("the job may run{made}");
    report_job_that_may_be_there(what, state, submission, place)
}

/// Somebody asked twice for the end while objects were made.
fn report_abandoned_submission(submission: &Submission, place: &str) -> Diagnostic {
    let what = format!(
        "which objects of the job {} were made is not known: it was left while they were made",
        submission.name
    );
    let state = "some of them may be there, and the job may run".to_owned();
    report_job_that_may_be_there(what, state, submission, place)
}

fn report_job_that_may_be_there(
    what: String,
    state: String,
    submission: &Submission,
    place: &str,
) -> Diagnostic {
    Diagnostic::error("RW1245", what)
        .state(state)
        .next(format!(
            "railwright job list {place} tells whether it is there"
        ))
        .next(format!(
            "railwright job delete {} {place} takes all of it away",
            submission.name
        ))
}

fn describe_leftovers(left: &[ObjectName]) -> String {
    match left.is_empty() {
        true => "nothing is there of this job".to_owned(),
        false => format!(
            "left of this job, and could not be rolled back: {}",
            join_object_names(left)
        ),
    }
}

fn join_object_names(objects: &[ObjectName]) -> String {
    objects
        .iter()
        .map(ObjectName::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
