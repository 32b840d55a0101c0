//! `railwright job compare`: what RDMA gained, from the logs of the same job with it and without.

use super::cluster::{
    JobLocationArguments, JobNameArguments, parse_job_kind, parse_kubernetes_name,
};
use super::prove::{exit_from_proof, report_unreadable_log};
use super::said::{self, JobOutputPiece};
use crate::cli::{CommandFailure, Exit};
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, quote};
use railwright_jobs::job::JobKind;
use railwright_knowledge::spec::model::KubernetesPlatform;
use railwright_report::job::compare::{
    JobComparisonView, render_comparison_json, render_comparison_screen,
};
use railwright_report::out;
use railwright_session::{Inventory, Knowledge, read_inventory};
use railwright_system::files;
use railwright_verify::nccl::compare::{ComparedLog, FigureSubject, compare_nccl_logs};
use railwright_verify::nccl::{self, NcclExpectations, NcclLog, NcclLogDecoder, NcclProof};
use railwright_workload::Half;
use std::path::{Path, PathBuf};

/// Compare the same job with RDMA and without: what carried each, seconds of a step, what was
/// gained
///
/// Reads logs only: of two files, or of the pods of NAME-rdma and NAME-tcp, which job render
/// compare writes. Ends with 0 where one used RDMA and the other TCP and both have figures, with 1
/// where they are no such pair, and with 3 where a log does not say enough.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("both").required(true).args(["job", "log"])))]
pub struct Compare {
    /// The name of the pair, before -rdma and -tcp
    #[arg(value_parser = parse_kubernetes_name, requires = "inventory")]
    job: Option<String>,
    /// A log of each, in any order: the whole job, or its rank 0; with the times of its lines where
    /// it is a training's
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,
    /// The folder that holds the spec
    #[arg(short, long, value_name = "FOLDER")]
    inventory: Option<PathBuf>,
    /// The namespace of the jobs
    #[arg(short, long, value_name = "NAME", default_value = "default", value_parser = parse_kubernetes_name)]
    namespace: String,
    /// The jobs' kind, where several have their name
    #[arg(long, value_name = "KIND", value_parser = parse_job_kind)]
    kind: Option<JobKind>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What one log proves.
struct ComparedJobLog {
    name: String,
    words: String,
    log: NcclLog,
    proof: NcclProof,
}

/// Compares.
pub async fn run(arguments: &Compare) -> Result<Exit, CommandFailure> {
    let both = match &arguments.job {
        Some(job) => [
            read_half(arguments, job, Half::Rdma).await?,
            read_half(arguments, job, Half::Tcp).await?,
        ],
        None => read_log_files(&arguments.log)?,
    };
    let compared = compare_nccl_logs([0, 1].map(|place| new_comparison_side(&both[place])));
    let read = arguments
        .inventory
        .as_deref()
        .map(read_inventory)
        .transpose()?;
    let knowledge = match &read {
        Some(inventory) => inventory.knowledge.clone(),
        None => Knowledge::read("", &[])?,
    };
    let platform = read.as_ref().map(platform_from_inventory);
    let figure = compared.figure();
    let is_training = figure.is_some_and(|figure| matches!(figure.of, FigureSubject::Training(_)));
    let mut profilers = Vec::new();
    for entry in knowledge.catalog.profiler.entries() {
        let fits = match (entry.content.platform, platform) {
            (Some(needed), Some(platform)) => needed == platform,
            // Where no inventory is given nobody knows that it is not there.
            _ => true,
        };
        if is_training && fits {
            profilers.push(&entry.content);
        }
    }
    let view = JobComparisonView {
        names: [&both[0].name, &both[1].name],
        proofs: [&both[0].proof, &both[1].proof],
        comparison: &compared,
        profilers,
    };
    out::print_result(&if arguments.json {
        render_comparison_json(&view)
    } else {
        render_comparison_screen(&view)
    });
    Ok(exit_from_proof(compared.verdict))
}

fn read_log_files(logs: &[PathBuf]) -> Result<[ComparedJobLog; 2], CommandFailure> {
    match logs {
        [one, other] if one == other && one.as_os_str() == "-" => Err(report_same_pipe().into()),
        [one, other] => Ok([read_log_file(one)?, read_log_file(other)?]),
        logs => Err(report_not_two_logs(logs.len()).into()),
    }
}

fn platform_from_inventory(inventory: &Inventory) -> KubernetesPlatform {
    match &inventory.loaded.spec.kubernetes {
        Some(kubernetes) => kubernetes.platform,
        None => KubernetesPlatform::default(),
    }
}

fn new_comparison_side(read: &ComparedJobLog) -> ComparedLog<'_> {
    ComparedLog {
        name: &read.name,
        words: &read.words,
        log: &read.log,
        proof: &read.proof,
    }
}

fn read_log_file(path: &Path) -> Result<ComparedJobLog, CommandFailure> {
    let mut decoder = NcclLogDecoder::default();
    files::stream_file(path, |chunk| decoder.feed(chunk))
        .map_err(|error| report_unreadable_log(path, &error))?;
    let name = one_line(&path.display().to_string(), 120);
    Ok(finish_job_log(
        decoder,
        name,
        format!("--log {}", quote::quote_path(path)),
    ))
}

async fn read_half(
    arguments: &Compare,
    job: &str,
    half: Half,
) -> Result<ComparedJobLog, CommandFailure> {
    let inventory = arguments.inventory.clone().unwrap_or_default();
    let shown = quote::quote_path(&inventory);
    let place = JobLocationArguments {
        inventory,
        namespace: Some(arguments.namespace.clone()),
    };
    let named = JobNameArguments {
        job: half.of(job),
        kind: arguments.kind,
        place,
    };
    let words = format!("{} -i {shown} -n {}", named.job, arguments.namespace);
    let mut decoder = NcclLogDecoder::default();
    said::read_job_output(&named, true, |piece| {
        if let JobOutputPiece::Log(chunk) = piece {
            decoder.feed(chunk);
        }
    })
    .await?;
    Ok(finish_job_log(decoder, named.job, words))
}

fn finish_job_log(decoder: NcclLogDecoder, name: String, words: String) -> ComparedJobLog {
    let log = decoder.finish();
    let proof = nccl::check_nccl_log(&log, &NcclExpectations::of(&name, &words));
    ComparedJobLog {
        name,
        words,
        log,
        proof,
    }
}

fn report_same_pipe() -> Diagnostic {
    Diagnostic::error("RW1257", "both logs are the standard input, which is one")
        .state("nothing was checked")
        .next("keep one of them in a file: railwright job compare --log RDMA.log --log -")
}

fn report_not_two_logs(logs: usize) -> Diagnostic {
    Diagnostic::error(
        "RW1257",
        format!("two logs are compared, and {logs} are named"),
    )
    .state("nothing was checked")
    .next("railwright job compare --log RDMA.log --log TCP.log")
}
