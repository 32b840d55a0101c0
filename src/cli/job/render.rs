//! `railwright job render KIND`: a job as objects for `kubectl apply -f -`. Nothing is asked of a cluster.

use super::{acs, compare_render, nccl_test, perftest_pods, pytorch, ray};
use crate::cli::{Exit, Failure};
use clap::Subcommand;

/// Write a job that uses the fabric, for `kubectl apply -f -`; no cluster is asked
///
/// Environment and devices follow from the inventory; what you set goes before it, and is judged by the rules. `--explain` says why
/// each variable and each argument is there, and what it costs.
#[derive(Debug, clap::Args)]
pub struct Render {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    NcclTest(Box<nccl_test::Arguments>),
    Pytorch(Box<pytorch::Arguments>),
    Ray(Box<ray::Arguments>),
    Acs(Box<acs::Arguments>),
    PerftestPods(Box<perftest_pods::Arguments>),
    Compare(Box<compare_render::Arguments>),
}

/// Renders it.
pub fn run(arguments: &Render) -> Result<Exit, Failure> {
    let (pods, made) = match &arguments.kind {
        Kind::NcclTest(arguments) => (arguments.pods(), nccl_test::run(arguments)),
        Kind::Pytorch(arguments) => (arguments.pods(), pytorch::run(arguments)),
        Kind::Ray(arguments) => (arguments.pods(), ray::run(arguments)),
        Kind::Acs(arguments) => (arguments.pods(), acs::run(arguments)),
        Kind::PerftestPods(arguments) => (arguments.pods(), perftest_pods::run(arguments)),
        Kind::Compare(arguments) => (arguments.pods(), compare_render::run(arguments)),
    };
    pods.delivery().answered(made)
}
