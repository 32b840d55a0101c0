//! The command line: one file a command, named after it, holding its arguments (whose doc comments are the help text)
//! and its one function. Nothing else parses arguments or decides an exit code.

pub mod exit;
pub mod inventory;
pub mod lab;

use clap::{Parser, Subcommand};
pub use exit::Exit;

/// Declarative provisioning for GPU/RDMA clusters: plan, apply, prove, find drift.
#[derive(Debug, Parser)]
#[command(name = "railwright", version, max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Lab(lab::Lab),
}

/// Runs a command to its exit code.
pub fn run(arguments: Arguments) -> Exit {
    match arguments.command {
        Command::Lab(arguments) => lab::run(arguments),
    }
}
