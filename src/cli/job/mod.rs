//! `railwright job`: jobs that use the fabric; one file a command.

mod acs;
mod against;
mod cluster;
mod compare;
mod compare_render;
mod delete;
pub mod deliver;
mod from_arena;
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
mod watch;

pub use against::Against;
pub use cluster::{Cluster, name};
pub use said::{Piece, Said};

use super::{Exit, Failure};
use clap::Subcommand;

/// Jobs that use the fabric: render, submit, run, list, watch, prove, compare and delete them
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Render(render::Render),
    FromArena(from_arena::FromArena),
    Submit(submit::Submit),
    Run(run::Run),
    List(list::List),
    Watch(watch::Watch),
    Prove(prove::Prove),
    Compare(compare::Compare),
    Delete(delete::Delete),
}

/// Runs one of them.
pub async fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Render(arguments) => render::run(arguments),
        Command::FromArena(arguments) => from_arena::run(arguments),
        Command::Submit(arguments) => submit::run(arguments).await,
        Command::Run(arguments) => run::run(arguments).await,
        Command::List(arguments) => list::run(arguments).await,
        Command::Watch(arguments) => watch::run(arguments).await,
        Command::Prove(arguments) => prove::run(arguments).await,
        Command::Compare(arguments) => compare::run(arguments).await,
        Command::Delete(arguments) => delete::run(arguments).await,
    }
}
