//! `railwright job render compare`: a job twice, with RDMA and over TCP.

use super::deliver::JobPairOptions;
use super::pods::PodOptions;
use super::{nccl_test, pytorch};
use crate::cli::{CommandFailure, Exit};
use clap::Subcommand;
use railwright_base::Reason;
use railwright_workload::Half;

/// A job twice, NAME-rdma and NAME-tcp, identical in all but the RDMA devices and the variables
/// that choose the transport
///
/// Says beforehand where no gain can be expected. Submit one after the other (--only), as they
/// would share the network; job compare NAME then reads the logs of both.
#[derive(Debug, clap::Args)]
pub struct CompareRenderArguments {
    /// Only one of the two: rdma or tcp, for job submit
    #[arg(long, value_name = "HALF", value_parser = parse_half)]
    only: Option<Half>,
    /// How many parameters the model has, such as 7B or 350M, so that it can be said what to expect
    #[arg(long, value_name = "N", value_parser = parse_parameter_count)]
    parameters: Option<u64>,
    #[command(subcommand)]
    kind: CompareRenderKind,
}

#[derive(Debug, Subcommand)]
enum CompareRenderKind {
    NcclTest(Box<nccl_test::Arguments>),
    Pytorch(Box<pytorch::PytorchArguments>),
}

fn parse_half(text: &str) -> Result<Half, Reason> {
    Half::BOTH
        .into_iter()
        .find(|half| half.word() == text)
        .ok_or_else(|| "rdma or tcp".into())
}

/// `7B`, `1.5B`, `350M`, `1000000`.
fn parse_parameter_count(text: &str) -> Result<u64, Reason> {
    let units = [('B', 1e9), ('M', 1e6), ('K', 1e3)];
    let upper = text.to_ascii_uppercase();
    let (mut number, mut factor) = (upper.as_str(), 1.0);
    for (unit, of_unit) in units {
        if let Some(before) = upper.strip_suffix(unit) {
            (number, factor) = (before, of_unit);
        }
    }
    let value = number.parse::<f64>().unwrap_or_default();
    let value = (value * factor).round();
    match (1.0..1e15).contains(&value) {
        true => Ok(value as u64),
        false => Err("a number such as 7B or 350M".into()),
    }
}

impl CompareRenderArguments {
    /// What its pods have.
    pub fn pods(&self) -> &PodOptions {
        match &self.kind {
            CompareRenderKind::NcclTest(kind) => kind.pods(),
            CompareRenderKind::Pytorch(kind) => kind.pods(),
        }
    }
}

/// Renders both.
pub fn run(arguments: &CompareRenderArguments) -> Result<Exit, CommandFailure> {
    let (request, mut typed) = match &arguments.kind {
        CompareRenderKind::NcclTest(kind) => kind.request()?,
        CompareRenderKind::Pytorch(kind) => kind.request()?,
    };
    if let Some(parameters) = arguments.parameters {
        let option = format!("--parameters={parameters}");
        typed.push(("job.parameters".to_owned(), option));
    }
    arguments.pods().deliver_pair(
        &request,
        &typed,
        JobPairOptions {
            only: arguments.only,
            parameters: arguments.parameters,
        },
    )
}
