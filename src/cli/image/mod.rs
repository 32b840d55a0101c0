//! `railwright image`: images with the RDMA user space; one file a command.

mod check;
mod ground;
mod render;

use super::{CommandFailure, Exit};
use clap::Subcommand;

/// Images with the RDMA user space: write the file that one is built from, look for what is missing
/// in one
#[derive(Debug, clap::Args)]
pub struct ImageArguments {
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Debug, Subcommand)]
enum ImageCommand {
    Render(render::ImageRenderArguments),
    Check(check::ImageCheckArguments),
}

/// Runs one of them.
pub async fn run(arguments: &ImageArguments) -> Result<Exit, CommandFailure> {
    match &arguments.command {
        ImageCommand::Render(arguments) => render::run(arguments),
        ImageCommand::Check(arguments) => check::run(arguments).await,
    }
}
