//! `railwright job`: jobs that use the fabric.

mod nics;
mod prove;

pub use prove::{nic_of, unreadable};

use super::{Exit, Failure};

/// Jobs that use the fabric: prove from a log that one used RDMA, and how fast
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

/// What is done with a job.
#[derive(Debug, clap::Subcommand)]
enum What {
    Prove(prove::Prove),
}

/// Does it.
pub fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    match &arguments.what {
        What::Prove(arguments) => prove::run(arguments),
    }
}
