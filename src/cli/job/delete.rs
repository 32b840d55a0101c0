//! `railwright job delete`.

use super::cluster::{Cluster, Named, named};
use crate::base::text::counted;
use crate::cli::{Exit, Failure};
use crate::job::{Gone, delete, objects_of};
use crate::report::out;
use crate::resource::kubernetes_object::request::ObjectName;
use crate::system::terminal;

/// Delete a job with its pods and all that was submitted with it; may be run again
///
/// What it wrote on volumes stays, and is named.
#[derive(Debug, clap::Args)]
pub struct Delete {
    #[command(flatten)]
    named: Named,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

/// Deletes it.
pub async fn run(arguments: &Delete) -> Result<Exit, Failure> {
    let asked = &arguments.named;
    let cluster = Cluster::of(&asked.place.inventory).await?;
    let (reader, writer) = (cluster.reader(), cluster.writer());
    let looked = named(&reader, asked).await?;
    let objects = objects_of(&reader, &asked.place.namespace, &asked.job, &looked.jobs).await.map_err(|error| error.diagnostic())?;
    if objects.is_empty() {
        // Of what could not be read nobody knows that it is gone.
        if !looked.unread.is_empty() {
            return Err(super::cluster::none(asked, &looked).into());
        }
        out::print(&format!("Nothing is left of a job {} in namespace {}.\n", asked.job, asked.place.namespace));
        return Ok(Exit::Done);
    }
    let listed: String = objects.iter().map(|object| format!("  {object}\n")).collect();
    out::note(&format!("{} of the job {}, with the pods of each:\n{listed}", counted(objects.len(), "object"), asked.job));
    if !arguments.yes && !terminal::confirm("Delete them? Only `yes` is taken: ") {
        return Err(Failure::nobody_said_yes());
    }
    let mut worst = Exit::Done;
    for object in &objects {
        let told = delete(&writer, object, None).await.map_err(|error| error.diagnostic())?;
        let exit = tell(object, told);
        worst = if worst == Exit::Failed || exit == Exit::Done { worst } else { exit };
    }
    Ok(worst)
}

type Told = Result<(Gone, std::collections::BTreeSet<String>), String>;

fn tell(object: &ObjectName, told: Told) -> Exit {
    match told {
        Ok((Gone::StillEnds(seconds), _)) => {
            out::print(&format!("{object} was told to end, and is still there after {seconds} s\n"));
            Exit::Incomplete
        }
        Ok((_, stays)) => {
            out::print(&format!("{object} is gone\n"));
            stays.iter().for_each(|volume| out::print(&format!("  what it wrote stays on {volume}\n")));
            Exit::Done
        }
        Err(why) => {
            out::print(&format!("{object} could not be deleted: {why}\n"));
            Exit::Failed
        }
    }
}
