//! `railwright job delete`.

use super::cluster::{
    Cluster, JobNameArguments, find_jobs_by_name, find_jobs_of_other_kinds, refuse_ambiguous_name,
};
use crate::cli::{CommandFailure, Exit};
use railwright_base::text::{format_count, one_line};
use railwright_base::{Diagnostic, Reason};
use railwright_jobs::job::{
    Deletable, JobListing, JobObjects, ObjectDeletionOutcome, delete_job_object, objects_of,
};
use railwright_report::out;
use railwright_resource::kubernetes_object::request::ObjectName;
use railwright_system::terminal;
use std::collections::BTreeMap;

/// Delete a job with its pods and all that was submitted with it; may be run again
///
/// What it wrote on volumes stays, and is named. Exit code 3 where an object is still there, or a
/// kind could not be read.
#[derive(Debug, clap::Args)]
pub struct Delete {
    #[command(flatten)]
    named: JobNameArguments,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Deletes it.
pub async fn run(arguments: &Delete) -> Result<Exit, CommandFailure> {
    let asked = &arguments.named;
    let cluster = Cluster::of(&asked.place.inventory).await?;
    let (reader, writer) = (cluster.reader(), cluster.writer());
    let looked = find_jobs_by_name(&reader, asked).await?;
    refuse_ambiguous_name(asked, &looked)?;
    let others = find_jobs_of_other_kinds(&reader, asked).await?;
    let name = (asked.place.namespace(), asked.job.as_str());
    if let Some((kind, why)) = others.unread.first() {
        return Err(report_unread_kind(asked, kind.word(), why));
    }
    let objects = objects_of(&reader, name, &looked.jobs, &others.jobs)
        .await
        .map_err(|error| error.diagnostic())?;
    let unread = collect_unread_kinds(&looked, &objects);
    if objects.listed.is_empty() && unread.is_empty() {
        out::print_result(&format!(
            "Nothing is left of a job {} in namespace {}.\n",
            asked.job,
            asked.place.namespace()
        ));
    } else if !objects.listed.is_empty() {
        print_listed_objects(&asked.job, &objects);
        if !arguments.yes && !terminal::ask_confirmation("Delete them? Only `yes` is taken: ") {
            return Err(CommandFailure::nobody_said_yes());
        }
    }
    let mut worst = if unread.is_empty() {
        Exit::Done
    } else {
        Exit::Incomplete
    };
    for object in &objects.listed {
        let result = delete_job_object(&writer, Deletable::Listed(object))
            .await
            .map_err(|error| error.diagnostic())?;
        let exit = print_deletion_result(&object.name, result);
        worst = if worst == Exit::Failed || exit == Exit::Done {
            worst
        } else {
            exit
        };
    }
    for (kind, why) in &unread {
        out::print_result(&format!(
            "{kind} could not be read, so objects of the job may be left: {}\n",
            one_line(why, 300)
        ));
    }
    Ok(worst)
}

/// Without it nobody knows which objects of the name are another job's.
fn report_unread_kind(asked: &JobNameArguments, kind: &str, why: &str) -> CommandFailure {
    let message = format!(
        "whether a {kind} is called {} too is not known: {}",
        asked.job,
        one_line(why, 200)
    );
    CommandFailure::with_exit(
        Exit::Incomplete,
        Diagnostic::error("RW1240", message)
            .state("nothing was changed")
            .next("let the account list that kind, and run the command again"),
    )
}

fn print_listed_objects(job: &str, objects: &JobObjects) {
    let mut note = format!(
        "{} of the job {job}, with the pods of each:\n",
        format_count(objects.listed.len(), "object")
    );
    for object in &objects.listed {
        note += &format!("  {}\n", object.name);
    }
    out::print_note(&note);
}

/// Kinds of which objects of the job may be left, each once.
fn collect_unread_kinds(looked: &JobListing, objects: &JobObjects) -> BTreeMap<String, String> {
    let of_jobs = looked
        .unread
        .iter()
        .map(|(kind, why)| (kind.word().to_owned(), why.clone()));
    objects.unread.iter().cloned().chain(of_jobs).collect()
}

type DeletionResult = Result<(ObjectDeletionOutcome, std::collections::BTreeSet<String>), Reason>;

fn print_deletion_result(object: &ObjectName, result: DeletionResult) -> Exit {
    match result {
        Ok((ObjectDeletionOutcome::StillEnds(seconds), _)) => {
            out::print_result(&format!(
                "{object} was told to end, and is still there after {seconds} s\n"
            ));
            Exit::Incomplete
        }
        Ok((ObjectDeletionOutcome::LeftAlone(maker), _)) => {
            out::print_result(&format!(
                "{object} is no longer what was listed, and was left alone: {maker}\n"
            ));
            Exit::Incomplete
        }
        Ok((ObjectDeletionOutcome::Gone | ObjectDeletionOutcome::WasGone, stays)) => {
            out::print_result(&format!("{object} is gone\n"));
            for volume in &stays {
                out::print_result(&format!("  what it wrote stays on {volume}\n"));
            }
            Exit::Done
        }
        Err(why) => {
            out::print_result(&format!("{object} could not be deleted: {why}\n"));
            Exit::Failed
        }
    }
}
