//! `railwright job`: jobs that use the fabric; one file a command.

mod against;
mod alibaba_acs;
mod cluster;
mod compare;
mod compare_render;
mod delete;
pub mod deliver;
mod from_arena;
mod job_output;
pub mod ladder;
mod list;
mod nccl_test;
pub mod nics;
mod perftest_pods;
mod pods;
mod prove;
mod prove_ray;
mod prove_traffic;
mod pytorch;
mod ray;
mod render;
mod run;
mod run_end;
mod said;
mod submit;
mod trial_logs;
mod watch;

pub use against::JobExpectationArguments;
pub use cluster::{Cluster, parse_kubernetes_name};
pub use said::{JobOutputArguments, JobOutputPiece};

use super::{CommandFailure, Exit};
use clap::Subcommand;

/// Jobs that use the fabric: render, submit, run, list, watch, prove, compare and delete them
#[derive(Debug, clap::Args)]
pub struct JobArguments {
    #[command(subcommand)]
    command: JobCommand,
}

#[derive(Debug, Subcommand)]
enum JobCommand {
    Render(render::JobRenderArguments),
    FromArena(from_arena::FromArena),
    Submit(submit::Submit),
    Run(run::JobRunArguments),
    List(list::List),
    Watch(watch::JobWatchArguments),
    Prove(prove::Prove),
    Compare(compare::Compare),
    Delete(delete::Delete),
}

/// Runs one of them.
pub async fn run(arguments: &JobArguments) -> Result<Exit, CommandFailure> {
    match &arguments.command {
        JobCommand::Render(arguments) => render::run(arguments),
        JobCommand::FromArena(arguments) => from_arena::run(arguments),
        JobCommand::Submit(arguments) => submit::run(arguments).await,
        JobCommand::Run(arguments) => run::run(arguments).await,
        JobCommand::List(arguments) => list::run(arguments).await,
        JobCommand::Watch(arguments) => watch::run(arguments).await,
        JobCommand::Prove(arguments) => prove::run(arguments).await,
        JobCommand::Compare(arguments) => compare::run(arguments).await,
        JobCommand::Delete(arguments) => delete::run(arguments).await,
    }
}
