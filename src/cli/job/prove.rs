//! `railwright job prove`: whether the log of a job proves that RDMA was used.

use super::against::JobExpectationArguments;
use super::cluster::{self, Cluster};
use super::said::{JobOutputArguments, JobOutputPiece};
use super::{prove_ray, prove_traffic};
use crate::cli::{CommandFailure, Exit};
use railwright_base::Diagnostic;
use railwright_base::text::one_line;
use railwright_jobs::job::JobKind;
use railwright_knowledge::spec::Sources;
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::{job, out};
use railwright_session::read_inventory;
use railwright_verify::nccl::{self, JobVerdict, NcclExpectations, NcclLog, NcclLogDecoder};
use std::path::Path;

/// Prove from the log of a job that it used RDMA, and how fast: NCCL's own lines, nccl-tests,
/// progress of a training
///
/// Reads the log only, and with `--traffic` the counters of hosts. Of a RayCluster, which has no
/// such log, it looks into every pod and sends RDMA traffic between two of them for some seconds.
/// Run the job with NCCL_DEBUG=INFO, so that NCCL says what it uses. Ends with 0 where the log
/// proves it, with 1 where it disproves it, and with 3 where it does not say enough.
#[derive(Debug, clap::Args)]
pub struct Prove {
    #[command(flatten)]
    said: JobOutputArguments,
    #[command(flatten)]
    against: JobExpectationArguments,
    /// Without GPUDirect RDMA nothing is proven
    #[arg(long)]
    require_gpudirect: bool,
    /// While the job runs, look for so many seconds at the counters of the rails of the hosts that
    /// its pods are on: every one of them has to carry data in both directions
    #[arg(
        long,
        value_name = "SECONDS",
        conflicts_with = "log",
        value_parser = clap::value_parser!(u64).range(2..=3600)
    )]
    traffic: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Proves.
pub async fn run(arguments: &Prove) -> Result<Exit, CommandFailure> {
    let inventory = arguments
        .said
        .inventory
        .as_deref()
        .map(read_inventory)
        .transpose()?;
    let mut traffic = None;
    if let Some(named) = arguments.said.named() {
        let cluster = Cluster::of(&named.place.inventory).await?;
        let found = cluster::find_single_job(&cluster.reader(), &named).await?;
        if found.kind == JobKind::Ray {
            return prove_ray::prove_ray_cluster(&cluster, &found, &named.place, arguments.json)
                .await;
        }
        if let (Some(seconds), Some(inventory)) = (arguments.traffic, &inventory) {
            traffic = Some(
                prove_traffic::observe_job_traffic(inventory, &cluster, &found, seconds).await?,
            );
        }
    }
    let expectations = arguments.against.of(&arguments.said, inventory.as_ref())?;
    let mut decoder = NcclLogDecoder::default();
    let name = arguments
        .said
        .read(|piece| {
            if let JobOutputPiece::Log(chunk) = piece {
                decoder.feed(chunk);
            }
        })
        .await?;
    let log = decoder.finish();
    let expected = NcclExpectations {
        needs_gpudirect: arguments.require_gpudirect,
        traffic,
        ..expectations.expected(&name, &log, |unknown| {
            print_diagnostics(&[unknown], &Sources::default());
        })
    };
    Ok(print_proof(&log, &expected, arguments.json))
}

/// Prints what a log proves; the exit code says it too.
pub fn print_proof(log: &NcclLog, expected: &NcclExpectations, json: bool) -> Exit {
    let proof = nccl::check_nccl_log(log, expected);
    out::print_result(&if json {
        job::render_proof_json(log, &proof, expected)
    } else {
        job::render_proof_screen(log, &proof, expected)
    });
    exit_from_proof(proof.verdict)
}

/// How a command ends that proves something.
pub fn exit_from_proof(verdict: JobVerdict) -> Exit {
    match verdict {
        JobVerdict::Passed => Exit::Done,
        JobVerdict::Failed => Exit::Failed,
        JobVerdict::Inconclusive => Exit::Incomplete,
    }
}

/// A log that cannot be read.
pub fn report_unreadable_log(path: &Path, error: &std::io::Error) -> Diagnostic {
    let name = if path == Path::new("-") {
        "the standard input".to_owned()
    } else {
        one_line(&path.display().to_string(), 80)
    };
    Diagnostic::error("RW1214", format!("the log {name} cannot be read: {error}"))
        .state("nothing was checked")
        .next(
            "name the file of a log, or pipe one in: kubectl logs POD | railwright job prove --log \
             -",
        )
}
