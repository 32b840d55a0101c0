//! The command line: one file a command, named after it, holding its arguments (whose doc comments are the help text)
//! and its one function. Nothing else parses arguments or decides an exit code.

pub mod exit;
pub mod explain;
pub mod inventory;
pub mod lab;
pub mod schema;
pub mod validate;

use crate::report::out;
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
    Validate(validate::Validate),
    Schema(schema::Schema),
    Explain(explain::Explain),
}

/// Runs a command to its exit code.
pub fn run(arguments: Arguments) -> Exit {
    let exit = match arguments.command {
        Command::Lab(arguments) => lab::run(arguments),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Schema(_) => schema::run(),
        Command::Explain(arguments) => explain::run(&arguments),
    };
    // A result that could not be written was not delivered, whatever the command thinks.
    if let (Exit::Done, Some(why)) = (exit, out::failure()) {
        out::note(&format!("the output could not be written: {why}"));
        return Exit::Failed;
    }
    exit
}
