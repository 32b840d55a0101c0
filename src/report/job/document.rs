//! `job prove --json`.

use railwright_base::text::clean_line;
use railwright_verify::CheckVerdict;
use railwright_verify::nccl::devices::{self, HostDeviceGroup};
use railwright_verify::nccl::direct::{self, Direct};
use railwright_verify::nccl::failure::{NcclFailureCause, NcclLogFailure};
use railwright_verify::nccl::message::RdmaLinkLayer;
use railwright_verify::nccl::nccl_tests_table::{CollectiveRun, CollectiveSizeResult};
use railwright_verify::nccl::process::Channels;
use railwright_verify::nccl::transport::Transport;
use railwright_verify::nccl::{Aspect, JobVerdict, NcclExpectations, NcclLog, NcclProof};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The version of the document.
const FORMAT_VERSION: &str = "2.0";

/// `job prove --json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProofDocument<'a> {
    format_version: &'static str,
    /// The log, as it was named.
    log: &'a str,
    /// Whether it proves that RDMA was used (exit code 0, 1 or 3).
    verdict: JobVerdict,
    /// What carried the data between hosts.
    transport: Transport,
    /// Whether NICs read GPU memory themselves.
    gpudirect: Direct,
    /// Aspect by aspect.
    aspects: Vec<AspectDocument<'a>>,
    /// Lines of the log.
    lines: u64,
    /// Lines that were too long to be looked at whole.
    cut_lines: u64,
    /// It is of a ring of MPI's ranks, with no GPU and no NCCL: of those it proves nothing.
    is_of_ring: bool,
    /// Versions of NCCL.
    versions: &'a BTreeSet<String>,
    /// The ranks of the job, where the log says how many.
    ranks: Option<u32>,
    /// Hosts or pods that are named.
    hosts: BTreeSet<&'a str>,
    /// RDMA devices, by hosts that use the same.
    devices: Vec<DevicesDocument>,
    /// How many channels went which way.
    channels: Channels,
    /// Variables that NCCL obeyed, with their values; several where ranks differ.
    environment: &'a BTreeMap<String, BTreeSet<String>>,
    /// Runs of nccl-tests.
    runs: Vec<NcclRunDocument<'a>>,
    /// Progress of a training job.
    training: Option<TrainingDocument>,
    /// `ib_write_bw` between the lines.
    perftest: Option<PerftestDocument>,
    /// The first lines that say that the job broke.
    failures: Vec<FailureDocument<'a>>,
    /// How many there are.
    failed_lines: u64,
    /// Warnings of NCCL that break nothing.
    warnings: u64,
    /// The first of them.
    first_warning: Option<&'a str>,
}

/// One aspect.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AspectDocument<'a> {
    aspect: Aspect,
    verdict: CheckVerdict,
    /// What was found, in words.
    measured: String,
    /// What must be, in words; empty where nothing is stated.
    expected: &'a str,
    /// A code of `railwright explain`.
    code: Option<&'a str>,
    /// What it means.
    effect: &'a str,
    /// What to do.
    next: &'a str,
}

/// Hosts that use the same RDMA devices.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DevicesDocument {
    /// A node-set.
    hosts: String,
    /// Processes on them.
    processes: usize,
    /// Their ranks, as far as the log says them: `0-7`, `0, 2`.
    ranks: String,
    devices: Vec<DeviceDocument>,
}

/// An RDMA device.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeviceDocument {
    /// Device and port: `mlx5_0:1`.
    port: String,
    link: RdmaLinkLayer,
}

/// A run of nccl-tests.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NcclRunDocument<'a> {
    /// The line that it began with.
    line: u64,
    program: Option<&'a str>,
    /// `sum`, `none`: what is done with the data.
    operation: Option<&'a str>,
    /// It printed its last line.
    is_over: bool,
    /// Sizes that were measured.
    sizes: u64,
    /// The largest of them; rates in GB/s.
    largest: Option<CollectiveSizeResult>,
    /// Elements that arrived wrong.
    wrong: u64,
    /// Over all sizes and both placements, in GB/s.
    average_busbw: Option<f64>,
    ranks: u32,
}

/// Progress of a training job.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TrainingDocument {
    /// Lines of progress.
    lines: u64,
    first_epoch: u64,
    last_epoch: u64,
}

/// `ib_write_bw` between the lines.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PerftestDocument {
    runs: u64,
    /// In Gb/s.
    least_gbps: f64,
    /// In Gb/s.
    most_gbps: f64,
}

/// A line that says that the job broke.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailureDocument<'a> {
    line: u64,
    host: Option<&'a str>,
    trouble: &'a NcclFailureCause,
    text: &'a str,
}

impl<'a> ProofDocument<'a> {
    /// Of a log and its verdict.
    pub fn of(log: &'a NcclLog, proof: &'a NcclProof, expected: &'a NcclExpectations) -> Self {
        let training = &log.training;
        ProofDocument {
            format_version: FORMAT_VERSION,
            log: &expected.log,
            verdict: proof.verdict,
            transport: proof.transport,
            gpudirect: direct::of_log(log),
            aspects: proof.aspects.iter().map(build_aspect_document).collect(),
            lines: log.lines,
            cut_lines: log.cut,
            is_of_ring: log.is_of_ring(),
            versions: &log.versions,
            ranks: log.world,
            hosts: log.hosts(),
            devices: devices::group_hosts_by_devices(log)
                .into_iter()
                .map(build_devices_document)
                .collect(),
            channels: log.channels(),
            environment: &log.environment,
            runs: log.runs.iter().map(build_nccl_run_document).collect(),
            training: (training.lines > 0).then_some(TrainingDocument {
                lines: training.lines,
                first_epoch: training.epochs.0,
                last_epoch: training.epochs.1,
            }),
            perftest: log
                .perftest
                .map(|(runs, least_gbps, most_gbps)| PerftestDocument {
                    runs,
                    least_gbps,
                    most_gbps,
                }),
            failures: log.failures.iter().map(build_failure_document).collect(),
            failed_lines: log.failed,
            warnings: log.warnings.0,
            first_warning: log.warnings.1.as_ref().map(|(_, text)| text.as_str()),
        }
    }
}

fn build_aspect_document(
    (aspect, evaluation): &(Aspect, railwright_verify::result::CheckOutcome),
) -> AspectDocument<'_> {
    AspectDocument {
        aspect: *aspect,
        verdict: evaluation.verdict,
        measured: clean_line(&evaluation.measured),
        expected: &evaluation.expected,
        code: evaluation.code,
        effect: &evaluation.effect,
        next: &evaluation.next,
    }
}

fn build_devices_document(group: HostDeviceGroup) -> DevicesDocument {
    let devices = group
        .devices
        .into_iter()
        .map(|(port, link)| DeviceDocument { port, link })
        .collect();
    DevicesDocument {
        hosts: group.hosts,
        processes: group.processes,
        ranks: group.ranks,
        devices,
    }
}

fn build_nccl_run_document(run: &CollectiveRun) -> NcclRunDocument<'_> {
    NcclRunDocument {
        line: run.line,
        program: run.program.as_deref(),
        operation: run.operation.as_deref(),
        is_over: run.is_over(),
        sizes: run.sizes,
        largest: run.largest,
        wrong: run.wrong,
        average_busbw: run.average,
        ranks: run.ranks,
    }
}

fn build_failure_document(failure: &NcclLogFailure) -> FailureDocument<'_> {
    FailureDocument {
        line: failure.line,
        host: failure.host.as_deref(),
        trouble: &failure.trouble,
        text: &failure.text,
    }
}
