//! `railwright job render KIND`: a job as objects for `kubectl apply -f -`. Nothing is asked of a
//! cluster.

use super::{alibaba_acs, compare_render, nccl_test, perftest_pods, pytorch, ray};
use crate::cli::{CommandFailure, Exit};
use clap::Subcommand;

/// Write a job that uses the fabric, for `kubectl apply -f -`; no cluster is asked
///
/// Environment and devices follow from the inventory; what you set goes before it, and the rules
/// check it. `--explain` says why each variable and each argument is there, and what it costs.
#[derive(Debug, clap::Args)]
pub struct JobRenderArguments {
    #[command(subcommand)]
    kind: JobRenderKind,
}

#[derive(Debug, Subcommand)]
enum JobRenderKind {
    NcclTest(Box<nccl_test::Arguments>),
    Pytorch(Box<pytorch::PytorchArguments>),
    Ray(Box<ray::RayArguments>),
    Acs(Box<alibaba_acs::AcsJobArguments>),
    PerftestPods(Box<perftest_pods::Arguments>),
    Compare(Box<compare_render::CompareRenderArguments>),
}

/// Renders it.
pub fn run(arguments: &JobRenderArguments) -> Result<Exit, CommandFailure> {
    let (pods, made) = match &arguments.kind {
        JobRenderKind::NcclTest(arguments) => (arguments.pods(), nccl_test::run(arguments)),
        JobRenderKind::Pytorch(arguments) => (arguments.pods(), pytorch::run(arguments)),
        JobRenderKind::Ray(arguments) => (arguments.pods(), ray::run(arguments)),
        JobRenderKind::Acs(arguments) => (arguments.pods(), alibaba_acs::run(arguments)),
        JobRenderKind::PerftestPods(arguments) => (arguments.pods(), perftest_pods::run(arguments)),
        JobRenderKind::Compare(arguments) => (arguments.pods(), compare_render::run(arguments)),
    };
    pods.delivery().answered(made)
}
