//! `railwright image`: images with the RDMA user space; one file a command.

mod check;
mod ground;
mod render;

use super::{Exit, Failure};
use clap::Subcommand;

/// Images with the RDMA user space: write the file that one is built from, look for what is missing in one
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Render(render::Render),
    Check(check::Check),
}

/// Runs one of them.
pub async fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.command {
        Command::Render(arguments) => render::run(arguments),
        Command::Check(arguments) => check::run(arguments).await,
    }
}
