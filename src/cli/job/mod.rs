//! `railwright job`: jobs that use the fabric; one file a command.

mod acs;
mod deliver;
mod from_arena;
mod nccl_test;
mod perftest_pods;
mod pods;
mod pytorch;
mod ray;
mod render;

use super::{Exit, Failure};
use clap::Subcommand;

/// Jobs that use the fabric
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Render(render::Render),
    FromArena(from_arena::FromArena),
}

/// Runs one of them.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Render(arguments) => render::run(arguments),
        Command::FromArena(arguments) => from_arena::run(arguments),
    }
}
