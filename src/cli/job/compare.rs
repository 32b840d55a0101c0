//! `railwright job compare`: what RDMA gained, from the logs of the same job with it and without.

use super::cluster::{Named, Place, kind, name};
use super::prove::unreadable;
use super::said::{self, Piece};
use crate::cli::inventory::{self, Inventory};
use crate::cli::knowledge::Knowledge;
use crate::cli::{Exit, Failure};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, quote};
use railwright_jobs::job::JobKind;
use railwright_knowledge::spec::model::Platform;
use railwright_report::job::compare::{Compared, json, screen};
use railwright_report::out;
use railwright_system::files;
use railwright_verify::nccl::compare::{Comparison, Measured, Side, compare};
use railwright_verify::nccl::{self, Decoder, Expected, Log, Proof, Proven};
use railwright_workload::Half;
use std::path::{Path, PathBuf};

/// Compare the same job with RDMA and without: what carried each, seconds of a step, what was gained
///
/// Reads logs only: of two files, or of the pods of NAME-rdma and NAME-tcp, which job render compare writes. Ends with 0 where one used RDMA
/// and the other TCP and both have figures, with 1 where they are no such pair, and with 3 where a log does not say enough.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("both").required(true).args(["job", "log"])))]
pub struct Compare {
    /// The name of the pair, before -rdma and -tcp
    #[arg(value_parser = name, requires = "inventory")]
    job: Option<String>,
    /// A log of each, in any order: the whole job, or its rank 0; with the times of its lines where it is a training's
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,
    /// The folder that holds the spec
    #[arg(short, long, value_name = "FOLDER")]
    inventory: Option<PathBuf>,
    /// The namespace of the jobs
    #[arg(short, long, value_name = "NAME", default_value = "default", value_parser = name)]
    namespace: String,
    /// The jobs' kind, where several have their name
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<JobKind>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What one log told.
struct Read {
    name: String,
    words: String,
    log: Log,
    proof: Proof,
}

/// Compares.
pub async fn run(arguments: &Compare) -> Result<Exit, Failure> {
    let both = match &arguments.job {
        Some(job) => [of_half(arguments, job, Half::Rdma).await?, of_half(arguments, job, Half::Tcp).await?],
        None => match &arguments.log[..] {
            [one, other] if one == other && one.as_os_str() == "-" => return Err(one_pipe().into()),
            [one, other] => [of_file(one)?, of_file(other)?],
            logs => return Err(not_two(logs.len()).into()),
        },
    };
    let compared = compare([0, 1].map(|place| side(&both[place])));
    let read = arguments.inventory.as_deref().map(inventory::read).transpose()?;
    let knowledge = match &read {
        Some(inventory) => inventory.knowledge.clone(),
        None => Knowledge::read("", &[])?,
    };
    let platform = read.as_ref().map(platform);
    let is_training = compared.figure().is_some_and(|figure| matches!(figure.of, Measured::Training(_)));
    let rows = knowledge.catalog.profiler.entries().map(|entry| &entry.row);
    // Where no inventory is given nobody knows that it is not there.
    let fits = |of: Platform| platform.is_none_or(|platform| platform == of);
    let profilers = rows.filter(|row| is_training && row.platform.is_none_or(fits)).collect();
    let said =
        Compared { names: [&both[0].name, &both[1].name], proofs: [&both[0].proof, &both[1].proof], comparison: &compared, profilers };
    out::print(&if arguments.json { json(&said) } else { screen(&said) });
    Ok(exit(&compared))
}

fn exit(compared: &Comparison) -> Exit {
    match compared.proven {
        Proven::Proven => Exit::Done,
        Proven::Disproven => Exit::Failed,
        Proven::NotKnown => Exit::Incomplete,
    }
}

fn platform(inventory: &Inventory) -> Platform {
    inventory.loaded.spec.kubernetes.as_ref().map(|kubernetes| kubernetes.platform).unwrap_or_default()
}

fn side(read: &Read) -> Side<'_> {
    Side { name: &read.name, words: &read.words, log: &read.log, proof: &read.proof }
}

fn of_file(path: &Path) -> Result<Read, Failure> {
    let mut decoder = Decoder::default();
    files::stream(path, |chunk| decoder.feed(chunk)).map_err(|error| unreadable(path, &error))?;
    let name = one_line(&path.display().to_string(), 120);
    Ok(proven(decoder, name, format!("--log {}", quote::path(path))))
}

async fn of_half(arguments: &Compare, job: &str, half: Half) -> Result<Read, Failure> {
    let inventory = arguments.inventory.clone().unwrap_or_default();
    let shown = quote::path(&inventory);
    let place = Place { inventory, namespace: arguments.namespace.clone() };
    let named = Named { job: half.of(job), kind: arguments.kind, place };
    let words = format!("{} -i {shown} -n {}", named.job, arguments.namespace);
    let mut decoder = Decoder::default();
    let of_logs = |piece: Piece<'_>| {
        if let Piece::Log(chunk) = piece {
            decoder.feed(chunk);
        }
    };
    said::of_job(&named, true, of_logs).await?;
    Ok(proven(decoder, named.job, words))
}

fn proven(decoder: Decoder, name: String, words: String) -> Read {
    let log = decoder.finish();
    let proof = nccl::judge(&log, &Expected::of(&name, &words));
    Read { name, words, log, proof }
}

fn one_pipe() -> Diagnostic {
    Diagnostic::error("RW1257", "both logs are the standard input, which is one")
        .state("nothing was judged")
        .next("keep one of them in a file: railwright job compare --log RDMA.log --log -")
}

fn not_two(logs: usize) -> Diagnostic {
    Diagnostic::error("RW1257", format!("two logs are compared, and {logs} are named"))
        .state("nothing was judged")
        .next("railwright job compare --log RDMA.log --log TCP.log")
}
